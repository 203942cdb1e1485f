"""Counterexamples to statements of Chaudhuri and Monteleoni (NIPS 2008) that no other test shows; docs/papers.md lists
them all.
"""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from scipy.special import expit
from scipy.stats import laplace

from privfit.privacy import Budget, Event

# -- section 2: noise by its deviation -------------------------------------------------------------


def test_noise_of_the_stated_deviation_costs_the_root_of_two_times_epsilon() -> None:
    """Section 2 says that a standard deviation of S / epsilon is enough.

    That is the scale; the deviation is larger by sqrt(2).
    """
    sensitivity, epsilon = 3.0, 0.5
    far = np.linspace(-40, 40, 2001)

    def told(scale: float) -> float:
        return float(np.abs(laplace(0, scale).logpdf(far) - laplace(sensitivity, scale).logpdf(far)).max())

    scale = sensitivity / epsilon / math.sqrt(2)
    assert laplace(0, scale).std() == pytest.approx(sensitivity / epsilon), "as stated"
    assert told(scale) == pytest.approx(math.sqrt(2) * epsilon)
    assert told(sensitivity / epsilon) == pytest.approx(epsilon)
    event = Event.laplace("any", Budget(epsilon), sensitivity=3, adjacency="replace-one")
    assert event.scale == pytest.approx(sensitivity / epsilon)
    assert event.noise_sd == pytest.approx(math.sqrt(2) * sensitivity / epsilon, rel=0.01)


# -- Algorithm 1 -----------------------------------------------------------------------------------


def test_the_scale_of_algorithm_1_tells_that_a_row_was_removed() -> None:
    """Noise of density exp(-n epsilon lambda |b| / 2) for n and for n - 1 rows, at the same minimum: the loss grows
    with |b| without end.
    """
    n, epsilon, ridge, d = 50, 0.1, 0.01, 3

    def log_density(length: float, rows: int) -> float:
        rate = rows * epsilon * ridge / 2
        return d * math.log(rate) - rate * length

    losses = [abs(log_density(length, n) - log_density(length, n - 1)) for length in (1e3, 1e4, 1e5, 1e6)]
    assert losses == sorted(losses)
    assert losses[-1] > 1000 * epsilon


def test_an_intercept_without_a_ridge_moves_further_than_corollary_2_says() -> None:
    """A constant column without a penalty: one label of 1,000 moves it by log 2, where 2 / (n lambda) is 0.002."""
    n, ridge = 1000, 1.0

    def intercept(negative: int, ridge: float) -> float:
        def objective(b: float) -> float:
            return float(((n - negative) * np.logaddexp(0, -b) + negative * np.logaddexp(0, b)) / n + ridge / 2 * b * b)

        return float(minimize_scalar(objective, bounds=(-20, 20), method="bounded", options={"xatol": 1e-10}).x)

    bound = 2 / (n * ridge)
    assert abs(intercept(1, 0.0) - intercept(2, 0.0)) == pytest.approx(math.log(2), abs=0.01)
    assert abs(intercept(1, 0.0) - intercept(2, 0.0)) > 300 * bound
    assert abs(intercept(1, ridge) - intercept(2, ridge)) < bound


def test_the_proof_of_lemma_1_fails_in_coordinates_and_the_lemma_does_not() -> None:
    """It bounds each coordinate of the move by that of the gradient over the least curvature.

    With a curved G a gradient along the first axis moves the second by 4.9.
    """
    hessian, gradient = np.array([[2.0, 1.9], [1.9, 2.0]]), np.array([1.0, 0.0])
    least = np.linalg.eigvalsh(hessian)[0]
    move = -np.linalg.solve(hessian, gradient)
    assert abs(gradient[1]) / least == 0
    assert abs(move[1]) == pytest.approx(4.87, abs=0.01)
    assert np.linalg.norm(move) == pytest.approx(7.07, abs=0.01)
    assert np.linalg.norm(move) <= np.linalg.norm(gradient) / least


# -- Theorem 3 -------------------------------------------------------------------------------------


@pytest.mark.parametrize("ridge", [0.1, 10.0, 1000.0])
def test_a_loss_with_continuous_slopes_and_endless_curvature_is_not_private_at_any_ridge(ridge: float) -> None:
    """Theorem 3 asks for continuous slopes of at most 1.

    The loss 2/3 |z|^1.5, straight beyond 1, has them, and is infinitely curved at 0.

    Its perturbed minimum lies in [-t, t] if b lies in [-(ridge t + sqrt t), ridge t + sqrt t]; without the row, if b
    lies in [-ridge t, ridge t].
    """
    epsilon = 0.1

    def chance(end: float) -> float:
        """Of |b| <= end, b of density exp(-epsilon |b| / 2)."""
        return -math.expm1(-epsilon * end / 2)

    def told(t: float) -> float:
        return math.log(chance(ridge * t + math.sqrt(t)) / chance(ridge * t))

    near = [told(10.0**-power) for power in (2, 6, 10, 14, 18)]
    assert near == sorted(near)
    assert near[-1] > 100 * epsilon
    z = np.linspace(-3, 3, 6001)
    slope = np.sign(z) * np.minimum(np.sqrt(np.abs(z)), 1)
    assert (np.diff(slope) >= 0).all()  # convex
    assert np.abs(slope).max() == 1
    assert np.diff(slope).max() < 0.07  # no jump


# -- the exact minimum -----------------------------------------------------------------------------


@pytest.mark.parametrize("tolerance", [0.1, 1e-3, 1e-6])
def test_a_solver_that_stops_early_gives_weights_that_only_one_of_two_tables_can_give(tolerance: float) -> None:
    """All proofs take the exact minimum.

    A descent from 0 that stops at a small gradient leaves a gap next to 0, of another width for another table.
    """
    ridge = 1.0

    def stopped(noise: np.ndarray, x: float) -> np.ndarray:
        """Steps of one over the largest curvature, for the row (x, +1) and a ridge, until the gradient is small; one
        weight a noise vector.
        """
        w, steps = np.zeros_like(noise), ridge + x * x / 4
        for _ in range(200):
            gradient = ridge * w - x * expit(-x * w) + noise
            w = np.where(np.abs(gradient) > tolerance, w - gradient / steps, w)
        assert np.abs(ridge * w - x * expit(-x * w) + noise).max() <= tolerance * (1 + 1e-9)
        return w

    noises = np.concatenate([centre + tolerance * np.linspace(-3, 3, 6001) for centre in (0.0, 0.5)])
    with_row, without = stopped(noises, 1.0), stopped(noises, 0.0)
    low, high = tolerance / (ridge + 1 / 4) * 1.01, tolerance / ridge * 0.99
    assert ((low < with_row) & (with_row < high)).sum() > 100
    assert not ((low < without) & (without < high)).any()


# -- what is merely loose, or misprinted -----------------------------------------------------------


@pytest.mark.parametrize(("radius", "most"), [(1, 1.10), (2, 1.27), (5, 1.62), (10, 1.82)])
def test_two_rows_pull_by_two_only_where_weights_are_endless(radius: float, most: float) -> None:
    """Theorem 2 bounds the difference of two gradients by 2.

    For weights of this length it is smaller: over a grid of directions and both labels.
    """
    turns = np.linspace(0, 2 * math.pi, 181)
    rows = np.column_stack([np.cos(turns), np.sin(turns)])  # a label of -1 is a turn by half
    gradients = expit(-radius * rows[:, :1]) * rows
    apart = max(float(np.linalg.norm(gradients - one, axis=1).max()) for one in gradients)
    assert apart == pytest.approx(most, abs=0.01)
    assert apart < 2


def test_a_short_weight_loses_at_least_what_one_over_e_gives_and_not_one_over_epsilon() -> None:
    """Below Theorem 5: log(1 + 1/e) is the least loss of a weight of length 1.

    With epsilon in place of e the bound would exceed the loss of no weight at all.
    """
    margins = np.array([x * w for x, w in itertools.product(np.linspace(-1, 1, 41), repeat=2)])
    least = np.logaddexp(0, -margins).min()
    assert least == pytest.approx(math.log(1 + 1 / math.e))
    assert math.log(1 + 1 / 0.1) > math.log(2) > least
