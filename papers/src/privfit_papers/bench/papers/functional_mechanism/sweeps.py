"""The three sweeps of the functional-mechanism paper (its Table 2): by dimensionality, by cardinality, by epsilon.

One cell is one fold of one table.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import cast

from privfit.privacy import seeded_generator
from privfit_papers.bench.grid import Cell, Experiment
from privfit_papers.bench.papers.functional_mechanism.fits import FOLDS, Fold, Point, measured
from privfit_papers.bench.papers.functional_mechanism.tables import DEFAULT_D, Kind, Tasks
from privfit_papers.bench.results import Value

EPSILONS = (0.1, 0.2, 0.4, 0.8, 1.6, 3.2)
DEFAULT_EPSILON = 0.8
RATES = tuple(tenths / 10 for tenths in range(1, 11))
DIMENSIONS = (5, 8, 11, 14)
REPETITIONS = 50
KINDS: tuple[Kind, ...] = ("linear", "logistic")


@dataclass(frozen=True)
class Sweep:
    """What varies on which tables, and how quickly it can be had. `seconds` are those of one fold of each table."""

    name: str
    points: Sequence[Point]
    tables: Mapping[str, str]
    """Tables, and what their panels are called."""
    seconds: Mapping[str, float]
    quick_folds: Mapping[str, int]
    quick_draws: int
    quick_points: Sequence[Point]

    def experiment(self) -> Experiment:
        """The sweep as an experiment."""
        return Experiment(self.name, self.cells, self.measure)

    def cells(self, quick: bool) -> list[Cell]:
        """A cell a fold. Quick: one repetition, some of its folds."""
        return [
            Cell(self.name, table, f"{kind}, fold {fold}", repetition, quick, self.seconds[table])
            for repetition in range(1 if quick else REPETITIONS)
            for table in self.tables
            for fold in range(self.quick_folds[table] if quick else FOLDS)
            for kind in KINDS
        ]

    def measure(self, cell: Cell, table: Tasks) -> Iterator[Value]:
        """All methods on one fold, at every point."""
        kind, number = cell.part.split(", fold ")
        panel = f"{self.tables[cell.table]} {kind}"
        order = seeded_generator(cell.seed("order")).permutation(
            table.task(cast(Kind, kind), self.points[0].d).frame.height
        )
        points, draws = (self.quick_points, self.quick_draws) if cell.quick else (self.points, 1)
        for (d, rate), places in groupby(points, key=lambda point: (point.d, point.rate)):
            fold = Fold.of(cast(Kind, kind), table.task(cast(Kind, kind), d), order, rate, int(number))
            for one in measured(fold, list(places), lambda *purpose: cell.seed(number, *purpose), draws):
                yield Value(panel, one.method, one.x, one.error)
                if one.seconds is not None:
                    yield Value(panel, one.method, one.x, one.seconds, "seconds")


def _by_dimension(d: int) -> Point:
    return Point(d, d, 1.0, DEFAULT_EPSILON)


def _by_rate(rate: float) -> Point:
    return Point(rate, DEFAULT_D, rate, DEFAULT_EPSILON)


def _by_epsilon(epsilon: float) -> Point:
    return Point(epsilon, DEFAULT_D, 1.0, epsilon)


ALL_DIMENSIONS = [_by_dimension(d) for d in DIMENSIONS]
DIMENSIONALITY = Sweep(
    "dimensionality",
    ALL_DIMENSIONS,
    {"people": "US", "brazil": "Brazil"},
    {"people": 15.0, "brazil": 1.5},
    {"people": 2, "brazil": 5},
    3,
    ALL_DIMENSIONS,
)
CARDINALITY = Sweep(
    "cardinality",
    [_by_rate(rate) for rate in RATES],
    {"men": "US", "brazil": "Brazil"},
    {"men": 3.5, "brazil": 1.0},
    {"men": 5, "brazil": 5},
    3,
    [_by_rate(rate) for rate in (0.1, 0.2, 0.4, 0.7, 1.0)],
)
ALL_EPSILONS = [_by_epsilon(epsilon) for epsilon in EPSILONS]
BUDGET = Sweep(
    "budget",
    ALL_EPSILONS,
    {"men": "US", "brazil": "Brazil"},
    {"men": 4.0, "brazil": 1.5},
    {"men": 5, "brazil": 5},
    3,
    ALL_EPSILONS,
)
SWEEPS = (DIMENSIONALITY, CARDINALITY, BUDGET)
