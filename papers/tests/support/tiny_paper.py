"""A paper with one figure that takes a moment a cell, to try the harness on."""

from __future__ import annotations

import time
from collections.abc import Iterator
from types import SimpleNamespace

from privfit.privacy import seeded_generator
from privfit_papers.bench.claims import below
from privfit_papers.bench.grid import Axis, Cell, Claim, Experiment, Figure, Method, Paper
from privfit_papers.bench.results import Value

SECONDS = 0.15
EPSILONS = (0.1, 1.0, 10.0)


def _cells(quick: bool) -> list[Cell]:
    return [
        Cell("errors", "made-up", part, repetition, quick)
        for part in ("ours", "theirs")
        for repetition in range(4 if quick else 8)
    ]


def _measure(cell: Cell, table: SimpleNamespace) -> Iterator[Value]:
    time.sleep(SECONDS)
    generator = seeded_generator(cell.seed(cell.part))
    scale = table.scale if cell.part == "ours" else 10 * table.scale
    for epsilon in EPSILONS:
        yield Value("left", cell.part, epsilon, scale / epsilon + 0.01 * generator.random())


PAPER = Paper(
    "tiny",
    "A tiny paper",
    "Nobody, nowhere.",
    experiments=(Experiment("errors", _cells, _measure),),
    figures=(
        Figure(
            "1",
            "errors against epsilon",
            "errors",
            {"left": "The only panel"},
            (Method("theirs"), Method("ours", "ours")),
            Axis("epsilon", log=True),
            Axis("error", log=True),
            "Made-up errors.",
            claims=(Claim("theirs is below ours", below("theirs", "ours")),),
            default="ours",
        ),
    ),
    tables={"made-up": lambda source: SimpleNamespace(scale=1.0, origin="generated", notice="made up")},
)
