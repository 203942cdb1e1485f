"""The five papers, one file each: tables, grids, figures, claims."""

from __future__ import annotations

from importlib import import_module

from privfit_papers.bench.grid import Paper

MODULES = {
    "functional-mechanism": "privfit_papers.bench.papers.functional_mechanism.paper",
    "regularised-regression": "privfit_papers.bench.papers.regularised_regression.paper",
    "logistic-regression": "privfit_papers.bench.papers.logistic_regression.paper",
    "importance-weighting": "privfit_papers.bench.papers.importance_weighting.paper",
    "privgene": "privfit_papers.bench.papers.privgene.paper",
}
"""Papers by name, and the module that declares each as `PAPER`."""


def paper_named(name: str) -> Paper:
    """The paper of that name, or an error that lists all."""
    if name not in MODULES:
        raise ValueError(
            f"There is no paper {name}. The papers are {', '.join(MODULES)}, and all stands for each of them."
        )
    paper = import_module(MODULES[name]).PAPER
    assert isinstance(paper, Paper)
    return paper
