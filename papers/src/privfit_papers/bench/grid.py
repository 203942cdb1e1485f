"""What a paper's experiments are made of: cells to measure, figures to draw, claims to check.

Declared once a paper, in `bench/papers/`.

A cell is the smallest piece of work that is kept: it has a seed of its own, runs in any process and in any order, and
is never run twice. It may measure many values, so that sums over the same rows are computed once and noised again.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from privfit_papers.bench.results import Results, Value

Outcome = Literal["held", "held in part", "not held", "cannot be tested"]
Kind = Literal["paper", "ours", "reference"]


@dataclass(frozen=True)
class Cell:
    """One piece of an experiment: which table, which part of the methods or settings, which repetition.

    `cost` is a guess of its seconds, for the order of work and the time left; it is not part of what a cell is.
    """

    experiment: str
    table: str
    part: str
    repetition: int
    quick: bool = False
    cost: float = field(default=1.0, compare=False)

    @property
    def key(self) -> tuple[str, str, str, int]:
        """What distinguishes a cell from others of its paper."""
        return (self.experiment, self.table, self.part, self.repetition)

    def seed(self, *purpose: object) -> int:
        """A seed for this repetition on this table.

        The same for every part, so that methods share their splits; name the method in `purpose` to part them.
        """
        text = "/".join(map(str, (self.experiment, self.table, self.repetition, *purpose)))
        return int.from_bytes(hashlib.sha256(text.encode()).digest()[:4], "big")


@dataclass(frozen=True)
class Experiment:
    """Cells, how to list them and how to measure one.

    `measure` gets the table that the cell names, loaded once a process.
    """

    name: str
    cells: Callable[[bool], Sequence[Cell]]
    measure: Callable[[Cell, Any], Iterable[Value]]


@dataclass(frozen=True)
class Method:
    """A line of a figure: as the paper names it, ours beside it, or a reference that is not private."""

    name: str
    kind: Kind = "paper"


@dataclass(frozen=True)
class Verdict:
    """What became of a claim, and our number for it, in words."""

    outcome: Outcome
    number: str
    printed: str = ""
    """The paper's own number, where its text has one."""


@dataclass(frozen=True)
class Claim:
    """What a paper says, in our words, and the check of it on our results for the figure that it belongs to.

    `printed` is the paper's own number for it, where its text has one.
    """

    text: str
    check: Callable[[Results], Verdict]
    printed: str = ""


@dataclass(frozen=True)
class Axis:
    """A label, a scale, and ticks where the paper has them."""

    label: str
    log: bool = False
    ticks: tuple[float, ...] = ()
    limits: tuple[float | None, float | None] = (None, None)


@dataclass(frozen=True)
class Figure:
    """A figure or a table of a paper: what it shows of which experiment.

    `panels` maps names in the results to titles. `default` names the line of privfit's own default method, which should
    be the lowest private one; None where the figure is not about errors. `middle` is what lines go through, and bands
    are the 10% to 90% quantiles of repetitions. `style` is "lines", "boxes" (spread by x), "bars" (one bar a method),
    or "table" (means ± deviations). `derived` makes more values out of those that were measured, where a figure shows
    what only all repetitions together have.
    """

    number: str
    title: str
    experiment: str
    panels: Mapping[str, str]
    methods: tuple[Method, ...]
    x: Axis
    y: Axis
    caption: str
    measure: str = "error"
    claims: tuple[Claim, ...] = ()
    default: str | None = None
    middle: Literal["mean", "median"] = "mean"
    style: Literal["lines", "boxes", "bars", "table"] = "lines"
    derived: Callable[[Sequence[Value]], Sequence[Value]] = lambda values: ()


@dataclass(frozen=True)
class Paper:
    """A paper: its figures, the experiments behind them, and its tables by name, each a function of where data comes
    from.
    """

    name: str
    title: str
    citation: str
    experiments: tuple[Experiment, ...]
    figures: tuple[Figure, ...]
    tables: Mapping[str, Callable[[Any], Any]]

    def experiment(self, name: str) -> Experiment:
        """The experiment of that name."""
        return next(experiment for experiment in self.experiments if experiment.name == name)

    def figures_of(self, number: str) -> list[Figure]:
        """The figure of that number, or all its parts ("2" is both "2a-b" and "2c-d"), or an error that lists all."""
        found = [
            figure for figure in self.figures if figure.number == number or figure.number.rstrip("abcdefgh-") == number
        ]
        if not found:
            known = ", ".join(figure.number for figure in self.figures)
            raise ValueError(
                f"{self.name} has no figure {number}. It has {known}. `privfit reproduce --list` shows them all."
            )
        return found
