"""Counterexamples to statements of the functional-mechanism paper (Zhang et al., VLDB 2012) that no other test shows;
docs/papers.md lists them all.
"""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy.stats import laplace

import privfit as pf
from privfit.losses import SQUARED, truncated_logistic
from privfit.solvers import NoiseLevel, minimise
from privfit.statistics import Moments

# -- the printed sensitivities ---------------------------------------------------------------------


def in_the_ball(d: int) -> list[np.ndarray]:
    """Rows of length 1 at most: the one that is worst, its signs turned at random, and others."""
    rng = np.random.default_rng(d)
    even = np.full(d, 1 / math.sqrt(d))
    turned = [even * rng.choice([-1.0, 1.0], d) for _ in range(20)]
    return [even, *turned, *(x / max(1, np.linalg.norm(x)) for x in rng.normal(size=(300, d)))]


def monomials(x: np.ndarray, linear: float, quadratic: float) -> float:
    """The size in L1 of a row's coefficients: every product of two weights once, so that x_i x_j counts twice off the
    diagonal.
    """
    products = np.outer(x, x)
    size = np.abs(np.diag(products)).sum() + 2 * np.abs(products[np.triu_indices(len(x), 1)]).sum()
    return float(quadratic * size + linear * np.abs(x).sum())


@pytest.mark.parametrize(("d", "linear", "logistic"), [(4, 3.1, 5.3), (13, 9.7, 11.9), (30, 23.5, 24.3)])
def test_the_printed_sensitivities_are_many_times_what_replacing_a_row_of_the_ball_can_do(d, linear, logistic) -> None:
    """Twice the longest row is always enough. The paper bounds a row of the ball as if every entry could be 1."""
    worst = max(monomials(x, 2.0, 1.0) for x in in_the_ball(d))
    assert worst == pytest.approx(d + 2 * math.sqrt(d))
    assert SQUARED.printed_sensitivity(d) / (2 * worst) == pytest.approx(linear, abs=0.05)
    worst = max(monomials(x, 1 / 2, 1 / 8) for x in in_the_ball(d))
    assert worst == pytest.approx(d / 8 + math.sqrt(d) / 2)
    assert truncated_logistic().printed_sensitivity(d) / (2 * worst) == pytest.approx(logistic, abs=0.05)


@pytest.mark.parametrize("d", [1, 2, 3])
def test_in_the_box_the_printed_sensitivity_is_twice_the_exact_one(d: int) -> None:
    """All coefficients are entries of zz', z = (x, y).

    Replacing a row moves them by (d + 1)^2 at most, which is reached; the paper and Dandekar et al. print twice that.
    """
    rows = np.array(list(itertools.product((-1.0, 0.0, 1.0), repeat=d + 1)))
    squares = np.einsum("ri,rj->rij", rows, rows).reshape(len(rows), -1)
    worst = max(float(np.abs(squares - one).sum(axis=1).max()) for one in squares)
    assert worst == (d + 1) ** 2
    assert SQUARED.printed_sensitivity(d) == 2 * worst


@pytest.mark.parametrize("y", [0, 1])
def test_the_linear_coefficient_of_the_logistic_loss_is_a_half_and_not_three_halves(y: int) -> None:
    """Section 5.3 pays for 1/2 and for y apart; the coefficient of z is their difference."""
    z = 1e-5
    slope = ((np.logaddexp(0, z) - y * z) - (np.logaddexp(0, -z) + y * z)) / (2 * z)
    assert abs(slope) == pytest.approx(1 / 2)
    assert (1 / 2 + 1) / abs(slope) == pytest.approx(3), "what is paid for"


# -- Algorithm 1 and Theorem 1 ---------------------------------------------------------------------


def moved(reach: float) -> tuple[float, float]:
    """How far one row moves the coefficients x^2 and -2xy, and these with y^2, where |x| <= reach and |y| <= 1."""
    rows = [(x, y) for x in np.linspace(-reach, reach, 9) for y in np.linspace(-1, 1, 9)]
    pairs = [
        (abs(x * x - u * u) + 2 * abs(x * y - u * v), abs(y * y - v * v))
        for (x, y), (u, v) in itertools.product(rows, rows)
    ]
    return max(first for first, _ in pairs), max(first + second for first, second in pairs)


@pytest.mark.parametrize(("reach", "told"), [(1.0, 0.67), (0.1, 2.88)])
def test_the_noisy_constant_of_algorithm_1_is_not_paid_for(reach: float, told: float) -> None:
    """Line 1 sums from degree 1, line 4 noises from degree 0.

    Where x is small the constant y^2 moves most, and publishing it costs 2.88 epsilon.
    """
    paid = 2 * (reach**2 + 2 * reach)  # line 1: twice the largest row
    without, with_constant = moved(reach)
    assert without <= paid
    assert with_constant / paid == pytest.approx(told, abs=0.01)


def test_the_likelihoods_of_theorem_1_have_minus_signs() -> None:
    """One coefficient, two tables, one released value: the printed ratio is that of the tables exchanged."""
    here, there, scale = 2.06, 1.5, 3.0
    for released in (-4.0, 1.7, 9.0):
        true = laplace(here, scale).pdf(released) / laplace(there, scale).pdf(released)
        printed = math.exp(abs(here - released) / scale) / math.exp(abs(there - released) / scale)
        assert printed == pytest.approx(1 / true)
        assert abs(math.log(true)) <= abs(here - there) / scale + 1e-12
    assert abs(printed - true) > 0.1


@pytest.mark.parametrize("tries", [1, 5])
def test_the_number_of_draws_tells_more_than_two_draws_cost(tries: int) -> None:
    """Section 6: integer Laplace noise that costs log 2 a draw, drawn until the curvature is positive.

    Curvatures of 0 and 1 are neighbours.

    The price of Lemma 5 is a factor of 4. Five refusals in a row are 32 times likelier for the one than for the other.
    """
    refused = [sum((1 / 3) * 0.5 ** abs(value - exact) for value in range(-60, 1)) for exact in (0, 1)]
    assert refused == pytest.approx([2 / 3, 1 / 3])
    told = (refused[0] / refused[1]) ** tries
    assert told == pytest.approx(2**tries)
    assert (told > 4) == (tries == 5)


def test_with_an_intercept_the_number_of_rows_is_released_under_add_remove_and_only_there() -> None:
    """Footnote 2 leaves the intercept to the reader.

    Its product with itself is n. A row of zeros moves nothing else.
    """
    geometry = pf.Schema.box(-1, 1, n_features=2, target=(-1, 1)).geometry(intercept=True)
    moments, nothing = Moments(geometry), np.zeros((4, 4), dtype=np.int64)
    public, private = (
        [moments.distinct(nothing, rows, adjacency) / moments.unit for rows in (5, 4)]
        for adjacency in ("replace-one", "add-remove")
    )
    assert len(private[0]) == len(public[0]) + 1
    assert np.abs(private[0] - private[1]).sum() == 1
    assert not np.concatenate(public).any()


# -- convexity -------------------------------------------------------------------------------------


def test_the_logistic_loss_is_convex_for_classes_that_are_no_probabilities() -> None:
    """Sections 2 and 3 say that it is not, for y in {0, 1} and for -1 and 1.

    No chord lies below the curve, and no second derivative below zero.
    """
    rng = np.random.default_rng(0)
    x, one, other = (rng.normal(0, 3, (2000, 4)) for _ in range(3))

    def cost(w: np.ndarray, y: np.ndarray) -> np.ndarray:
        z = (x * w).sum(axis=1)
        return np.logaddexp(0, z) - y * z

    def signed(w: np.ndarray, y: np.ndarray) -> np.ndarray:
        return np.logaddexp(0, -(2 * y - 1) * (x * w).sum(axis=1))

    for y, function in itertools.product((np.zeros(2000), np.ones(2000)), (cost, signed)):
        between = (function(one, y) + function(other, y)) / 2 - function((one + other) / 2, y)
        assert between.min() > -1e-12
        assert between.max() > 0.5
    z = np.linspace(-20, 20, 2001)
    bend = np.exp(-np.abs(z)) / (1 + np.exp(-np.abs(z))) ** 2
    assert bend.min() > 0
    assert bend.max() == 1 / 4


# -- the repairs of section 6 ----------------------------------------------------------------------


def lowest_eigenvalues(d: int, draws: int = 100) -> np.ndarray:
    """Of symmetric matrices of Laplace noise, the upper triangle copied down, in deviations of one entry."""
    rng = np.random.default_rng(d)
    upper = np.triu(rng.laplace(0, 1 / math.sqrt(2), (draws, d, d)))
    return np.linalg.eigvalsh(upper + np.triu(upper, 1).transpose(0, 2, 1))[:, 0]


def test_four_deviations_lift_the_noise_of_two_columns_and_not_of_thirteen() -> None:
    """Section 6.1 adds 4 deviations to the diagonal.

    The lowest eigenvalue of the noise is near -2 sqrt(d) of them: -6 for 13 columns, -15 for 60.
    """
    assert np.mean(lowest_eigenvalues(2) < -4) < 0.05
    assert np.mean(lowest_eigenvalues(13) < -4) > 0.95
    assert np.median(lowest_eigenvalues(13)) == pytest.approx(-6.3, abs=0.5)
    assert np.median(lowest_eigenvalues(60)) == pytest.approx(-2 * math.sqrt(60), rel=0.1)


def test_trimming_keeps_an_eigenvalue_just_above_zero_and_floor_does_not_follow_it() -> None:
    """Section 6.2 leaves out what is not positive. What is barely positive stays, and the weights run 1,000 away."""
    noise = NoiseLevel(5.0, 5.0)
    matrix, vector = np.diag([100.0, -4 * 5.0 + 0.005]), np.array([30.0, 5.0])
    trimmed = minimise(matrix, vector, noise, "trim")
    assert trimmed.bounded
    assert trimmed.eigenvalues_changed == 0
    assert trimmed.weights[1] == pytest.approx(1000)
    assert np.abs(minimise(matrix, vector, noise, "floor").weights).max() < 1
