"""`privfit bench description`: how far figures are off, and how often intervals hold."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.box import SIMPLE_HEAD
from rich.table import Table

from privfit.cli.console import print_json, stdout
from privfit_papers.bench.description import EPSILON, ROWS, SHAPES, Accuracy, compared
from privfit_papers.bench.speed import peer_environment


def description(
    runs: Annotated[int, typer.Option(min=1, help="Generated tables of each kind.")] = 50,
    peer: Annotated[
        bool, typer.Option(help="Compare with diffprivlib 0.6.6, installed in an environment of its own.")
    ] = False,
    work: Annotated[Path, typer.Option("--work", help="Folder of the peer's environment.")] = Path("results"),
    shape: Annotated[
        list[str] | None, typer.Option("--shape", help="Populations; repeat for more. Default: all.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON for scripts.")] = False,
) -> None:
    """Relative errors of quantiles and means, and how often 90% intervals hold.

    10,000 skewed incomes, bounded at 1,000,000, epsilon 0.1. Errors are against the
    table; intervals are about the population it is a sample of. Tables and noise are
    seeded: the same command gives the same numbers.
    """
    found = list(compared(runs, peer_environment(work / "peer") if peer else None, shape or tuple(SHAPES)))
    if as_json:
        print_json({"rows": ROWS, "epsilon": EPSILON, "runs": runs, "figures": [one.to_dict() for one in found]})
        return
    stdout().print(_table(found))


def _table(found: list[Accuracy]) -> Table:
    lines = Table("by", "incomes", "figure", "median error", "mean error", "held", "width", box=SIMPLE_HEAD)
    for one in found:
        held = "" if one.covered is None else f"{one.covered:.0%}"
        width = "" if one.width is None else f"{one.width:.3f}"
        lines.add_row(one.what, one.shape, one.figure, f"{one.median_error:.4f}", f"{one.mean_error:.4f}", held, width)
    return lines
