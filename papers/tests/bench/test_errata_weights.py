"""Counterexamples to statements of Ji and Elkan (Machine Learning 2013) that no other test shows; docs/papers.md lists
them all.
"""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

# -- Lemma 2 and what is said below Algorithm 1 ----------------------------------------------------


def farthest(rows: np.ndarray) -> float:
    """The largest difference of two gradients s x and t u, 0 <= s, t <= 1.

    The slopes are at their ends where it is largest.
    """
    ends = np.concatenate([rows, np.zeros((1, rows.shape[1]))])
    return max(float(np.linalg.norm(ends - one, axis=1).max()) for one in ends)


@pytest.mark.parametrize("d", [1, 2, 5])
def test_the_root_of_d_is_right_for_numbers_from_zero_to_one_and_half_of_what_signs_need(d: int) -> None:
    """Lemma 2, replacement: gradients of [0, 1]^d lie sqrt(d) apart at most, and that is reached.

    With entries of both signs it is 2 sqrt(d).
    """
    assert farthest(np.array(list(itertools.product((0.0, 1.0), repeat=d)))) == pytest.approx(math.sqrt(d))
    assert farthest(np.array(list(itertools.product((-1.0, 1.0), repeat=d)))) == pytest.approx(2 * math.sqrt(d))


def test_the_length_of_rows_may_not_stand_for_the_root_of_d() -> None:
    """Below Algorithm 1: rows of length B are said to need B.

    Without negative entries they need sqrt(2) B, with them 2 B.
    """
    turns = np.linspace(0, 2 * math.pi, 361)
    ball = 3 * np.column_stack([np.cos(turns), np.sin(turns)])
    assert farthest(ball[(ball > -1e-9).all(axis=1)]) == pytest.approx(math.sqrt(2) * 3)
    assert farthest(ball) == pytest.approx(2 * 3)


@pytest.mark.parametrize(("low", "factor"), [(0.0, 1.0), (-1.0, 2.0)])
def test_a_row_that_leaves_moves_the_mean_gradient_as_far_as_lemma_2_says_and_twice_that_with_signs(
    low: float, factor: float
) -> None:
    """The gradient moves by (l'(x_0) - mean of the others) / N: at most from a corner of the box to its opposite."""
    n, d = 20, 3
    rows = np.full((n, d), 1.0)
    rows[0] = low  # the others stand at the opposite corner, and all slopes are 1
    moved = np.linalg.norm(rows.mean(axis=0) - rows[1:].mean(axis=0))
    assert moved == pytest.approx(factor * math.sqrt(d) / n)


# -- Lemma 7 and section 6 -------------------------------------------------------------------------


def ball_noise(d: int, scale: float, draws: int) -> np.ndarray:
    """Noise of density exp(-|b| / scale) in d columns."""
    rng = np.random.default_rng(d)
    directions = rng.standard_normal((draws, d))
    return rng.gamma(d, scale, draws)[:, None] * directions / np.linalg.norm(directions, axis=1, keepdims=True)


@pytest.mark.parametrize("d", [2, 5])
def test_entries_of_the_noise_are_uncorrelated_and_not_independent(d: int) -> None:
    """The proof of Lemma 7 says independent.

    Their squares go together: the mean product is (d + 3) / (d + 1) times what independent ones have.
    """
    noise = ball_noise(d, 1.0, 200_000)
    one, two = noise[:, 0], noise[:, 1]
    assert abs(np.corrcoef(one, two)[0, 1]) < 0.02
    exact = (d + 3) / (d + 1)
    assert np.mean(one**2 * two**2) / (np.mean(one**2) * np.mean(two**2)) == pytest.approx(exact, rel=0.1)
    assert exact > 1.3


def test_the_expected_length_of_the_noise_is_a_root_mean_square() -> None:
    """Section 6: 4.8 for 63 columns, 21,000 rows, Lambda and epsilon of a tenth.

    The expected length is 4.76; the paper's own noise has half of it.
    """
    d, scale = 63, 2 * math.sqrt(63) / (21_000 * 0.1 * 0.1)
    lengths = np.linalg.norm(ball_noise(d, scale, 20_000), axis=1)
    assert math.sqrt(np.mean(lengths**2)) == pytest.approx(4.8, rel=0.005)
    assert lengths.mean() == pytest.approx(4.762, rel=0.005)
    assert d * scale / 2 == pytest.approx(2.381, abs=1e-3)


def test_with_the_signs_of_the_appendix_beta_is_far_from_that_of_algorithm_1() -> None:
    """Appendix B subtracts the ridge and maximises.

    For one public and one private row, both 1, Algorithm 1 gives 0, and the appendix nearly 10.
    """
    ridge = 0.1

    def losses(beta: float) -> float:
        return float(np.logaddexp(0, beta) + np.logaddexp(0, -beta))

    def least(function) -> float:
        return float(minimize_scalar(function, bounds=(-0.5, 50), method="bounded", options={"xatol": 1e-9}).x)

    assert least(lambda beta: losses(beta) + ridge / 2 * beta**2) == pytest.approx(0, abs=1e-4)
    assert least(lambda beta: -(losses(beta) - ridge / 2 * beta**2)) == pytest.approx(9.999, abs=1e-3)
