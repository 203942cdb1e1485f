"""Counterexamples to statements of Dandekar, Basu and Bressan (2018), and of papers that others compare with, that no
other test shows; docs/papers.md lists them all.
"""

from __future__ import annotations

import itertools
import math
from collections import defaultdict
from collections.abc import Callable, Hashable
from fractions import Fraction

import numpy as np
import pytest
from sklearn.linear_model import Ridge

from privfit_papers.bench.printed import printed_sensitivity

# -- what is computed from noisy coefficients ------------------------------------------------------

DECAY = Fraction(1, 2)
"""e^(-epsilon) for coefficients that move by 1 in all: one value of integer Laplace noise costs log 2."""
REACH = 6
"""Noisy values beyond are taken as this, which is done to both tables alike."""


def noisy(value: int) -> dict[int, Fraction]:
    """The exact law of an integer with discrete Laplace noise, cut at the ends."""
    law: dict[int, Fraction] = {}
    for place in range(-REACH + 1, REACH):
        law[place] = (1 - DECAY) / (1 + DECAY) * DECAY ** abs(place - value)
    tails = [DECAY ** (REACH + sign * value) / (1 + DECAY) for sign in (1, -1)]
    return law | {-REACH: tails[0], REACH: tails[1]}


def law_of(table: tuple[int, int, int], function: Callable[..., Hashable]) -> dict[Hashable, Fraction]:
    """Of a function of a noisy 2 x 2 matrix with this diagonal, and of a noise of its own on both entries off it."""
    found: dict[Hashable, Fraction] = defaultdict(Fraction)
    laws = [noisy(value).items() for value in (table[0], table[2], table[2], table[1])]
    for (a, p), (b, q), (c, r), (d, s) in itertools.product(*laws):
        found[function(a, b, c, d)] += p * q * r * s
    return found


def symmetrised(a: int, b: int, c: int, d: int) -> Hashable:
    return (a, b + c, d)


def stopped(a: int, b: int, c: int, d: int) -> Hashable:
    """Three steps of a descent that has not converged, and may have nowhere to converge to."""
    w = (0.0, 0.0)
    for _ in range(3):
        w = (w[0] - 0.05 * (2 * a * w[0] + (b + c) * w[1] - 2), w[1] - 0.05 * ((b + c) * w[0] + 2 * d * w[1] - 2))
    return (round(w[0], 9), round(w[1], 9))


def trimmed(a: int, b: int, c: int, d: int) -> Hashable:
    """The eigenvalues that spectral trimming keeps, of the symmetric part."""
    half, off = (a + d) / 2, math.hypot((a - d) / 2, (b + c) / 2)
    return tuple(round(value, 9) for value in (half - off, half + off) if value > 0)


@pytest.mark.parametrize("function", [symmetrised, stopped, trimmed], ids=lambda function: function.__name__)
def test_nothing_that_is_computed_from_noisy_coefficients_costs_more(function: Callable[..., Hashable]) -> None:
    """Section 4 fears for privacy when the matrix is made symmetric, its eigenvalues are trimmed or a solver stops
    early. In exact fractions: the loss stays log 2.
    """
    here, there = law_of((1, 0, 0), function), law_of((2, 0, 0), function)
    assert sum(here.values()) == 1
    assert here.keys() == there.keys()
    assert max(max(here[end] / there[end], there[end] / here[end]) for end in here) == 1 / DECAY


def test_a_solver_that_starts_from_the_rows_costs_all() -> None:
    """What is not allowed: a warm start.

    One step from the exact minimum reaches weights that the other table cannot give.
    """

    def ends(exact: float) -> set[float]:
        return {round(exact - 0.01 * (2 * a * exact - 2), 9) for a in range(-REACH, REACH + 1)}

    assert ends(1.0).isdisjoint(ends(0.5))


# -- scaling and penalties from the data -----------------------------------------------------------


def test_scaling_by_the_data_moves_the_coefficients_by_far_more_than_is_paid_for() -> None:
    """1,000 people at the ends of a column, one of whom is replaced by somebody ten times further out: all others are
    squeezed into a tenth of the scale.
    """
    x, y = np.tile([0.0, 1.0], 500), np.tile([-1.0, 1.0], 500)
    other = x.copy()
    other[-1] = 10.0

    def coefficients(values: np.ndarray, low: float, high: float) -> np.ndarray:
        scaled = np.clip(2 * (values - low) / (high - low) - 1, -1, 1)
        return np.array([scaled @ scaled, -2 * scaled @ y, y @ y])

    by_data = np.abs(coefficients(x, x.min(), x.max()) - coefficients(other, other.min(), other.max())).sum()
    by_bounds = np.abs(coefficients(x, 0.0, 1.0) - coefficients(other, 0.0, 1.0)).sum()
    assert printed_sensitivity(1) == 8
    assert by_bounds <= 8
    assert by_data == pytest.approx(1976, abs=1), "247 times what is paid for"


def test_a_penalty_with_the_least_test_error_tells_of_a_single_row() -> None:
    """Two penalties, ten folds of one row: replacing a row turns the choice, which has no noise at all."""
    x = np.array([-1.0, -0.8, -0.5, -0.2, 0.1, 0.3, 0.5, 0.7, 0.9, 1.0])
    noise = np.array([0.5, -0.4, 0.3, -0.5, 0.4, -0.3, 0.5, -0.4, 0.3, 0.1])

    def chosen(y: np.ndarray) -> float:
        def error(alpha: float) -> float:
            kept = [np.arange(10) != place for place in range(10)]
            fits = [Ridge(alpha=alpha, fit_intercept=False).fit(x[rows, None], y[rows]).coef_[0] for rows in kept]
            return float(np.sum((y - x * fits) ** 2))

        return min((0.1, 10.0), key=error)

    choices = set()
    for last in (-1.0, 1.0):
        y = 0.25 * x + 0.5 * noise
        y[-1] = last
        choices.add(chosen(y))
    assert choices == {0.1, 10.0}


# -- positive definite -----------------------------------------------------------------------------


def test_dependent_attributes_have_a_positive_definite_matrix_and_independent_ones_may_not() -> None:
    """Section 4 says that independence makes X'X positive definite.

    What it takes is that no column is a sum of others, and X'X is never indefinite.
    """
    rng = np.random.default_rng(0)
    first = rng.normal(size=500)
    dependent = np.column_stack([first, first + 0.3 * rng.normal(size=500)])
    assert np.corrcoef(dependent.T)[0, 1] > 0.9
    assert np.linalg.eigvalsh(dependent.T @ dependent)[0] > 1
    few = rng.normal(size=(3, 5))  # independent columns, fewer rows than columns
    assert abs(np.linalg.eigvalsh(few.T @ few)[0]) < 1e-9


# -- Algorithm 3 of Chaudhuri, Monteleoni and Sarwate (2011) ---------------------------------------


def equal_parts(n: int) -> list[tuple[int, ...]]:
    return [places for places in itertools.product((0, 1), repeat=n) if sum(places) in (n // 2, (n + 1) // 2)]


def by_coins(n: int) -> list[tuple[int, ...]]:
    return list(itertools.product((0, 1), repeat=n))


def test_equal_parts_cost_more_than_epsilon_where_a_row_leaves() -> None:
    """Algorithm 3 deals rows into equal parts and runs a private method on each.

    A method that costs 1, here a count with Laplace noise, costs 1.478 in all; with a coin for each row it does not.
    """
    noise = np.arange(-12, 13)

    def law(table: tuple[int, ...], deals: Callable[[int], list[tuple[int, ...]]]) -> np.ndarray:
        """Of both noisy counts, up to a factor that is the same for all tables."""
        laws = []
        for places in deals(len(table)):
            counts = [sum(row for row, place in zip(table, places, strict=True) if place == part) for part in (0, 1)]
            laws.append(np.exp(-np.abs(noise[:, None] - counts[0]) - np.abs(noise[None, :] - counts[1])))
        return np.mean(laws, axis=0)

    def told(deals: Callable[[int], list[tuple[int, ...]]]) -> float:
        tables = [rows for n in (2, 3, 4) for rows in itertools.product((-1, 0, 1), repeat=n)]
        return max(float(np.abs(np.log(law(rows, deals) / law(rows[1:], deals))).max()) for rows in tables)

    assert told(by_coins) <= 1 + 1e-9
    assert told(equal_parts) == pytest.approx(1.478, abs=1e-3)
