"""The cells of Ji and Elkan's experiments: one bootstrap of the private rows each, with all methods and settings.

Sums and regressions of a bootstrap are found once and noised again for every epsilon.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

import numpy as np

from privfit.privacy import seeded_generator
from privfit.publish.diagnostics import effective_rows
from privfit_papers.bench.grid import Cell
from privfit_papers.bench.papers.importance_weighting.claims import (
    AS_MANY,
    DIRECT,
    DISTANCE,
    EPSILON,
    EPSILONS,
    ESTIMATE,
    LAPLACE,
    NO_NOISE,
    NORM,
    OBJECTIVE,
    OFF,
    OWN,
    PERTURBED,
    PRINTED,
    REPAIRED,
    RIDGE,
    RIDGES,
    SHARE,
    SVM_NOISE,
    TILTING,
    TRIMMED,
    TRUTH,
    UNWEIGHTED,
    WELL_SPECIFIED,
    WORTH,
)
from privfit_papers.bench.papers.importance_weighting.fits import (
    HINGE,
    MEAN,
    SAME,
    SKEWED,
    SQUARED,
    STRENGTH,
    UNIFORM,
    Draw,
    Floats,
    People,
    Public,
    expected_svm_noise,
)
from privfit_papers.bench.results import Value
from privfit_papers.bench.weights import direct_deviation

TABLE = "Adult"
BOOTSTRAPS, QUICK_BOOTSTRAPS = 100, 20
HARDLY_ANY = 1000.0
"""An epsilon at which noise does not matter and tilting releases pairs of levels."""
READINGS = (SQUARED, HINGE, MEAN)
CASES = (SAME, SKEWED, UNIFORM)


def bootstraps(experiment: str, cost: float) -> Callable[[bool], list[Cell]]:
    """One cell a bootstrap."""

    def cells(quick: bool) -> list[Cell]:
        return [
            Cell(experiment, TABLE, "all", run, quick, cost) for run in range(QUICK_BOOTSTRAPS if quick else BOOTSTRAPS)
        ]

    return cells


def _drawn(cell: Cell, table: People, case: str = SKEWED) -> Draw:
    return Draw(table.split.bootstrapped(cell.seed("rows")), table.publics[case])


def _sampled(cell: Cell, table: People, rows: int) -> Public:
    """So many private rows, as if they were public."""
    places = seeded_generator(cell.seed("sample")).choice(
        table.split.private.height, size=min(rows, table.split.private.height), replace=False
    )
    return Public(table.split.private[places], table.split.schema)


def _estimates(panel: str, x: float, table: People, draw: Draw, weights: Mapping[str, Floats]) -> Iterator[Value]:
    """The share by every method, how far each is off, and what it is compared to."""
    truth = table.split.truth
    for method, own in weights.items():
        estimate = draw.public.estimate(own)
        yield Value(panel, method, x, estimate, ESTIMATE)
        yield Value(panel, method, x, abs(estimate - truth), OFF)
    yield Value(panel, TRUTH, x, truth, ESTIMATE)
    yield Value(panel, UNWEIGHTED, x, float(draw.public.is_large.mean()), ESTIMATE)


def measure_ridges(cell: Cell, table: People) -> Iterator[Value]:
    """Estimates by lambda at epsilon 0.1 (Figures 1 and 4), and the other ways to answer that section 5.1 has."""
    draw, seed = _drawn(cell, table), cell.seed("noise")
    tilting = draw.tilting(EPSILON, seed)
    for ridge in RIDGES:
        weights = {PRINTED: draw.printed(ridge, EPSILON, seed), REPAIRED: draw.repaired(ridge, EPSILON, seed)}
        yield from _estimates(
            SHARE, ridge, table, draw, {**weights, TILTING: tilting, NO_NOISE: draw.without_noise(ridge)}
        )
    yield Value(SHARE, OWN, EPSILON, draw.share, ESTIMATE)
    yield Value(SHARE, OWN, EPSILON, direct_deviation(table.split, EPSILON), DIRECT)
    large = draw.is_large
    noise = seeded_generator(cell.seed("every row")).laplace(scale=2 * draw.frame.width / EPSILON, size=draw.rows)
    yield Value(SHARE, LAPLACE, EPSILON, float(np.mean(large + noise)), PERTURBED)
    yield Value(SHARE, LAPLACE, EPSILON, float(np.mean(np.clip(large + noise, 0, 1))), TRIMMED)


def measure_epsilons(cell: Cell, table: People) -> Iterator[Value]:
    """Estimates and SVMs by epsilon at lambda 0.1 (Figures 2 and 3)."""
    draw, seed = _drawn(cell, table), cell.seed("noise")
    public, columns = draw.public, draw.public.features.shape[1]
    plain = {NO_NOISE: draw.without_noise(RIDGE), UNWEIGHTED: np.ones(public.frame.height)}
    plain_distances = {
        (method, reading): table.distance(public, own, reading) for method, own in plain.items() for reading in READINGS
    }
    for epsilon in EPSILONS:
        weights = {
            PRINTED: draw.printed(RIDGE, epsilon, seed),
            REPAIRED: draw.repaired(RIDGE, epsilon, seed),
            OBJECTIVE: draw.objective(RIDGE, epsilon, seed),
            TILTING: draw.tilting(epsilon, seed),
        }
        yield from _estimates(SHARE, epsilon, table, draw, {**weights, NO_NOISE: plain[NO_NOISE]})
        fewer = _sampled(cell, table, round(effective_rows(weights[TILTING])))
        for reading in READINGS:
            yield Value(
                reading, AS_MANY, epsilon, table.distance(fewer, np.ones(fewer.frame.height), reading), DISTANCE
            )
            for method, own in weights.items():
                yield Value(reading, method, epsilon, table.distance(public, own, reading), DISTANCE)
            for method in plain:
                yield Value(reading, method, epsilon, plain_distances[method, reading], DISTANCE)
            yield Value(reading, OWN, epsilon, float(np.linalg.norm(table.own_svms[reading])), NORM)
            yield Value(
                reading, SVM_NOISE, epsilon, expected_svm_noise(columns, draw.rows, STRENGTH, epsilon), DISTANCE
            )
    best = draw.tilting(HARDLY_ANY, seed)
    for reading in READINGS:
        yield Value(reading, WELL_SPECIFIED, HARDLY_ANY, table.distance(public, best, reading), DISTANCE)


def measure_publics(cell: Cell, table: People) -> Iterator[Value]:
    """Estimates and SVMs with three public tables (Figures 5 and 6)."""
    seed = cell.seed("noise")
    for case in CASES:
        draw = _drawn(cell, table, case)
        weights = {
            PRINTED: draw.printed(RIDGE, EPSILON, seed),
            REPAIRED: draw.repaired(RIDGE, EPSILON, seed),
            TILTING: draw.tilting(EPSILON, seed),
            NO_NOISE: draw.without_noise(RIDGE),
        }
        yield from _estimates(case, EPSILON, table, draw, weights)
        for method, own in {**weights, UNWEIGHTED: np.ones(draw.public.frame.height)}.items():
            yield Value(case, method, EPSILON, table.distance(draw.public, own, SQUARED), DISTANCE)
            yield Value(case, method, EPSILON, effective_rows(own) / len(own), WORTH)
        yield Value(case, OWN, EPSILON, float(np.linalg.norm(table.own_svms[SQUARED])), NORM)
