"""The two worked examples of the functional-mechanism paper: three rows each, a squared and a logistic objective (its
Figures 2 and 3).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import partial
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar

from privfit.losses import SQUARED
from privfit.mechanisms import QuadraticProblem
from privfit.privacy import Budget, PrivacyParameters, SeededNoise
from privfit.rows import Rows
from privfit.schema import Schema
from privfit.solvers import chebyshev_curvature
from privfit.tables import open_table
from privfit_papers.bench.claims import UNTESTED, Check
from privfit_papers.bench.grid import Cell, Experiment, Verdict
from privfit_papers.bench.kept_sums import FunctionalOnce
from privfit_papers.bench.printed import Quadratic, printed_sensitivity
from privfit_papers.bench.results import Results, Value

Floats = NDArray[np.float64]

LINEAR_ROWS = np.array([[1.0, 0.4], [0.9, 0.3], [-0.5, -1.0]])
LOGISTIC_ROWS = np.array([[-0.5, 1.0], [0.0, 0.0], [1.0, 1.0]])
NOISY_AT = {"epsilon 0.8": 0.8, "epsilon 100": 100.0}
"""The paper does not say at which epsilon its example was drawn: its default, and one at which noise is smaller than
the coefficients.
"""
LOGISTIC = "logistic"
OBJECTIVE, NOISY, APPROXIMATION, OURS = "objective", "noisy objective", "approximation", "privfit"
WEIGHTS = np.linspace(-1.0, 3.0, 41)
INTERVAL = 4.0
PRINTED_BOUND = (math.e**2 - math.e) / (6 * (1 + math.e) ** 3)


def examples() -> Experiment:
    """Both examples as one experiment: a cell each."""
    return Experiment("examples", _cells, _measure)


def no_table(source: Any) -> SimpleNamespace:
    """The rows of the examples are printed in the paper."""
    return SimpleNamespace(origin="printed", notice="Three rows that the paper prints.")


def _cells(quick: bool) -> list[Cell]:
    return [Cell("examples", "printed", part, 0, quick, 1.0) for part in ("linear", "logistic")]


def _measure(cell: Cell, table: Any) -> Iterator[Value]:
    yield from _linear(cell) if cell.part == "linear" else _logistic()


# -- Figure 2 --------------------------------------------------------------------------------------


def _linear(cell: Cell) -> Iterator[Value]:
    x, y = LINEAR_ROWS.T
    exact = Quadratic(x[:, None].T @ x[:, None], np.array([x @ y]))
    constant = float(y @ y)
    best = float(exact.vector[0] / exact.matrix[0, 0])
    draws = 200 if cell.quick else 2000
    for panel, epsilon in NOISY_AT.items():
        yield from _exact_numbers(panel, exact, constant, best)
        makers: dict[str, Callable[[int], tuple[Quadratic, float | None]]] = {
            NOISY: partial(_printed, exact, epsilon),
            OURS: partial(_ours, epsilon),
        }
        for method, make in makers.items():
            curve, _ = make(cell.seed(method, panel))
            yield from (Value(panel, method, w, _height(curve, constant, w), "objective") for w in WEIGHTS)
            drawn = [make(cell.seed(method, panel, draw)) for draw in range(draws)]
            distances = [math.inf if weight is None else abs(weight - best) for _, weight in drawn]
            yield Value(panel, method, 0.0, float(np.mean(np.isinf(distances))), "without a minimum")
            yield Value(panel, method, 0.0, float(np.median(distances)), "median distance")


def _exact_numbers(panel: str, exact: Quadratic, constant: float, best: float) -> Iterator[Value]:
    numbers = {"a": float(exact.matrix[0, 0]), "b": -2 * float(exact.vector[0]), "c": constant, "minimum": best}
    yield from (Value(panel, OBJECTIVE, 0.0, value, name) for name, value in numbers.items())
    yield Value(panel, NOISY, 0.0, float(printed_sensitivity(1)), "sensitivity")
    yield from (Value(panel, OBJECTIVE, w, _height(exact, constant, w), "objective") for w in WEIGHTS)


def _height(quadratic: Quadratic, constant: float, weight: float) -> float:
    return float(quadratic.matrix[0, 0] * weight**2 - 2 * quadratic.vector[0] * weight + constant)


def _printed(exact: Quadratic, epsilon: float, seed: int) -> tuple[Quadratic, float | None]:
    """Algorithm 1 without noise on the constant, and the minimum if there is one."""
    noisy = exact.noised(epsilon, SeededNoise(seed))
    return noisy, float(noisy.vector[0] / noisy.matrix[0, 0]) if noisy.matrix[0, 0] > 0 else None


_SCHEMA = Schema.box(-1, 1, 1, target=(-1, 1))
_GOAL = QuadraticProblem(SQUARED, fit_intercept=False)
_ONCE = FunctionalOnce()


def _ours(epsilon: float, seed: int) -> tuple[Quadratic, float | None]:
    """What privfit releases of the same rows, and the weight that it fits."""
    geometry = _ONCE.geometry(_SCHEMA, _GOAL)
    rows = Rows(open_table(LINEAR_ROWS), _SCHEMA, geometry)
    release = _ONCE.release(
        rows, PrivacyParameters(Budget(epsilon, 0.0), "replace-one", 1, None), None, SeededNoise(seed), _GOAL
    )
    fit = _ONCE.solve(release, geometry, _GOAL)
    return Quadratic(release.value.products, release.value.with_target), float(
        geometry.table_units(fit.weights, fit.intercept)[0][0]
    )


# -- Figure 3 --------------------------------------------------------------------------------------


def _logistic() -> Iterator[Value]:
    constant, curvature = _best_quadratic(INTERVAL)
    lines: dict[str, Callable[[float], float]] = {
        OBJECTIVE: lambda w: _summed(w, lambda z: np.logaddexp(0, z)),
        APPROXIMATION: lambda w: _summed(w, lambda z: math.log(2) + z / 2 + z**2 / 8),
        OURS: lambda w: _summed(w, lambda z: constant + z / 2 + curvature * z**2),
    }
    best = {name: float(minimize_scalar(line, bounds=(-10, 10), method="bounded").x) for name, line in lines.items()}
    for name, line in lines.items():
        yield from (Value(LOGISTIC, name, w, line(w), "objective") for w in WEIGHTS)
        yield Value(LOGISTIC, name, 0.0, best[name], "minimum")
        excess = (lines[OBJECTIVE](best[name]) - lines[OBJECTIVE](best[OBJECTIVE])) / len(LOGISTIC_ROWS)
        yield Value(LOGISTIC, name, 0.0, excess, "excess a row")
    z = np.linspace(-1, 1, 2001)
    left = np.logaddexp(0, z) - (math.log(2) + z / 2 + z**2 / 8)
    yield Value(LOGISTIC, APPROXIMATION, 0.0, float(left.max() - left.min()), "spread of the remainder")
    yield Value(LOGISTIC, APPROXIMATION, 0.0, PRINTED_BOUND, "printed bound")


def _summed(weight: float, loss: Callable[[Floats], Floats]) -> float:
    x, y = LOGISTIC_ROWS.T
    return float(np.sum(loss(x * weight) - y * x * weight))


def _best_quadratic(interval: float) -> tuple[float, float]:
    """The constant and the curvature of the quadratic that is nearest to log(1 + e^z) on an interval around 0."""
    curvature = chebyshev_curvature(interval)
    z = np.linspace(0, interval, 4001)
    left = np.logaddexp(0, z) - z / 2 - curvature * z**2
    return float((left.max() + left.min()) / 2), curvature


# -- claims ----------------------------------------------------------------------------------------


def number(
    method: str, measure: str, printed: float, tolerance: float = 1e-9, panels: tuple[str, ...] = tuple(NOISY_AT)
) -> Check:
    """A number that the paper prints, computed again."""

    def check(results: Results) -> Verdict:
        found = [results.middle(panel, method, 0.0, measure) for panel in panels]
        if any(math.isnan(value) for value in found):
            return UNTESTED
        worst = max(abs(value - printed) for value in found)
        return Verdict("held" if worst <= tolerance else "not held", f"{found[0]:.6g}, printed {printed:.6g}")

    return check


def close_when_preserved(results: Results) -> Verdict:
    """Whether the noisy minimum is near the true one where noise is small, and what happens where it is not."""
    texts, held = [], True
    for panel, epsilon in NOISY_AT.items():
        distance = results.middle(panel, NOISY, 0.0, "median distance")
        missing = results.middle(panel, NOISY, 0.0, "without a minimum")
        ours = results.middle(panel, OURS, 0.0, "median distance")
        if math.isnan(distance):
            return UNTESTED
        held &= epsilon < 10 or (distance < 0.1 and missing == 0)
        texts.append(
            f"{panel}: median distance {distance:.3g}, {missing:.0%} of draws without a minimum (privfit {ours:.3g}, "
            "never)"
        )
    return Verdict("held" if held else "not held", "; ".join(texts))


def small_constant(results: Results) -> Verdict:
    """Whether the excess of the approximation is below the printed constant, and how large it can be where |z| <= 1."""
    bound, spread, excess = (
        results.middle(LOGISTIC, APPROXIMATION, 0.0, name)
        for name in ("printed bound", "spread of the remainder", "excess a row")
    )
    if math.isnan(bound):
        return UNTESTED
    text = (
        f"{excess:.2g} a row here, at most {spread:.4f} where |z| <= 1, printed {bound:.4f}; the printed algebra loses "
        "a factor of 2, which the number survives"
    )
    return Verdict("held" if excess <= spread <= bound else "not held", text)


def gap_of_minima(results: Results) -> Verdict:
    """Whether the two minima differ."""
    first, second = (results.middle(LOGISTIC, name, 0.0, "minimum") for name in (OBJECTIVE, APPROXIMATION))
    if math.isnan(first):
        return UNTESTED
    return Verdict("held" if abs(first - second) > 1e-6 else "not held", f"minima at {first:.4f} and {second:.4f}")
