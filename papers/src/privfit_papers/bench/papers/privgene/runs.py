"""The experiments behind the figures of the PrivGene paper: which cells there are, and how one is measured."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np

from privfit_papers.bench.genetic import FOLDS
from privfit_papers.bench.grid import Cell, Experiment
from privfit_papers.bench.papers.privgene import clusters
from privfit_papers.bench.papers.privgene.fits import GROUPS, OURS, Kind, default_error, error_after, traced_errors
from privfit_papers.bench.papers.privgene.tables import ClassTable, Fold, PointTable
from privfit_papers.bench.results import Results, Value

ADULT, BANKING, US, BRAZIL, LIFESCI, IMAGE = "Adult", "Banking", "US", "BR", "Lifesci", "Image"
CLASS_TABLES = (ADULT, BANKING, US, BRAZIL)
KINDS: Mapping[str, Kind] = {"logistic": "logistic", "SVM": "svm"}
EPSILONS = (0.01, 0.05, 0.1, 0.2, 0.5, 1.0)
CLUSTER_EPSILONS = (0.05, 0.1, 0.2, 0.5, 1.0)
CS, QUICK_CS = (0.5, 0.75, 1.0, 1.25, 1.5, 2.0, 2.5, 3.0), (0.5, 1.25, 3.0)
"""Iterations per thousand rows and unit of epsilon."""
FIRST_C, CHOSEN_C = 0.5, 1.25
LARGEST_EPSILON = 1.0
EEM, EM = "EEM", "EM"
REPETITIONS = 500
ERROR, RATIO = "error", "ratio"
COSTS = {"genes": 3.0, "risks": 3.0, "others": 2.0, "ours": 2.5}
"""Seconds of a group of methods on one fold."""
CLUSTERS = {(LIFESCI, 3): 5.5, (LIFESCI, 5): 7.5, (IMAGE, 10): 10.0, (IMAGE, 15): 14.0}
"""The tables of points with the numbers of clusters that are sought, and the seconds of all methods."""


def _cells(
    experiment: str, places: Sequence[tuple[str, str, float]], quick_repetitions: int, folds: int = FOLDS
) -> Callable[[bool], list[Cell]]:
    """Cells for every table and part, with the seconds that each takes on a fold: in a quick run one fold and few
    repetitions.
    """

    def cells(quick: bool) -> list[Cell]:
        return [
            Cell(experiment, table, part, repetition, quick, cost if quick else folds * cost)
            for repetition in range(quick_repetitions if quick else REPETITIONS)
            for table, part, cost in places
        ]

    return cells


def _folds(cell: Cell, table: ClassTable) -> Iterator[tuple[Fold, Callable[..., int]]]:
    """Folds of a repetition, each with seeds of its own: all five, or one in a quick run."""
    for number, fold in enumerate(table.folds(cell.seed("folds"), 1 if cell.quick else FOLDS)):
        yield fold, lambda *purpose, number=number: cell.seed(number, *purpose)


def _means(panel: str, found: Mapping[tuple[str, float], list[float]]) -> Iterator[Value]:
    """The mean over folds for every method and place."""
    for (method, x), errors in found.items():
        yield Value(panel, method, x, float(np.mean(errors)))


# -- classes ---------------------------------------------------------------------------------------


def comparison(name: str, kind: Kind) -> Experiment:
    """All methods on all tables, by epsilon."""

    def measure(cell: Cell, table: ClassTable) -> Iterator[Value]:
        found: dict[tuple[str, float], list[float]] = {}
        for fold, seed in _folds(cell, table):
            for method, epsilon, error in GROUPS[cell.part](kind, fold, EPSILONS, seed):
                found.setdefault((method, epsilon), []).append(error)
        yield from _means(cell.table, found)

    places = [(table, group, cost) for table in CLASS_TABLES for group, cost in COSTS.items()]
    return Experiment(name, _cells(name, places, 2), measure)


# -- the number of iterations ----------------------------------------------------------------------


def _measure_iterations(cell: Cell, table: ClassTable) -> Iterator[Value]:
    found: dict[tuple[str, float], list[float]] = {}
    for fold, seed in _folds(cell, table):
        for c in QUICK_CS if cell.quick else CS:
            rounds = max(1, round(c / 1000 * fold.split.train.height * LARGEST_EPSILON))
            error = error_after(KINDS[cell.part], fold, LARGEST_EPSILON, rounds, seed(cell.part, c))
            found.setdefault((cell.table, c), []).append(error)
    yield from _means(cell.part, found)


def ratios(values: Sequence[Value]) -> list[Value]:
    """Mean errors as shares of those with the fewest iterations."""
    results = Results(values)
    found = []
    for panel in results.panels():
        for method in results.methods(panel):
            first = results.middle(panel, method, FIRST_C)
            found += [
                Value(panel, method, x, results.middle(panel, method, x) / first, RATIO)
                for x in results.xs(panel, method)
            ]
    return found


# -- exponential and enhanced ----------------------------------------------------------------------


def selection(name: str, table: str) -> Experiment:
    """Errors after every iteration by either rule of selection, on one table, beside privfit's default, which has no
    such iterations.
    """

    def measure(cell: Cell, table: ClassTable) -> Iterator[Value]:
        found: dict[tuple[str, float], list[float]] = {}
        kind = KINDS[cell.part]
        for fold, seed in _folds(cell, table):
            enhanced = traced_errors(kind, fold, LARGEST_EPSILON, "enhanced", seed(EEM, cell.part))
            exponential = traced_errors(kind, fold, LARGEST_EPSILON, "exponential", seed(EM, cell.part))
            default = default_error(kind, fold, LARGEST_EPSILON, seed(OURS, cell.part))
            for method, errors in ((EEM, enhanced), (EM, exponential), (OURS, [default] * len(enhanced))):
                for place, error in enumerate(errors):
                    found.setdefault((method, place + 1.0), []).append(error)
        yield from _means(cell.part, found)

    return Experiment(name, _cells(name, [(table, part, 1.5) for part in KINDS], 4), measure)


# -- clusters --------------------------------------------------------------------------------------


def panel_of(table: str, k: int) -> str:
    """The name of a panel of clusters."""
    return f"{table}, k = {k}"


def _measure_clusters(cell: Cell, table: PointTable) -> Iterator[Value]:
    k = int(cell.part)
    for method, epsilon, distance in clusters.measured(
        table, k, CLUSTER_EPSILONS, lambda *purpose: cell.seed(k, *purpose)
    ):
        yield Value(panel_of(cell.table, k), method, epsilon, distance)


LOGISTIC = comparison("logistic", "logistic")
SVM = comparison("svm", "svm")
ITERATIONS = Experiment(
    "iterations",
    _cells("iterations", [(table, part, 4.5) for table in (ADULT, BANKING) for part in KINDS], 4),
    _measure_iterations,
)
SELECTION_US = selection("selection-us", US)
SELECTION_BRAZIL = selection("selection-brazil", BRAZIL)
KMEANS = Experiment(
    "kmeans",
    _cells("kmeans", [(table, str(k), cost) for (table, k), cost in CLUSTERS.items()], 2, folds=1),
    _measure_clusters,
)
EXPERIMENTS = (ITERATIONS, LOGISTIC, SVM, KMEANS, SELECTION_US, SELECTION_BRAZIL)
