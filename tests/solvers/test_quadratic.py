"""Repairs of noisy quadratics, and the curvature that stands in for the logistic loss."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privfit.solvers import NoiseLevel, calibrate, chebyshev_curvature, is_bounded, minimise
from privfit.statistics import MomentValues


def indefinite() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    directions = np.linalg.qr(rng.normal(size=(4, 4)))[0]
    return directions @ np.diag([100.0, 10.0, -3.0, -50.0]) @ directions.T, rng.normal(size=4) * 10


def test_without_noise_every_repair_solves_the_equations() -> None:
    rng = np.random.default_rng(1)
    root = rng.normal(size=(5, 5))
    matrix, truth = root @ root.T + np.eye(5), rng.normal(size=5) * 0.3
    for repair in ("floor", "trim", "ridge", "rerun", None):
        solution = minimise(matrix, matrix @ truth, NoiseLevel(1e-9, 1e-9), repair)
        np.testing.assert_allclose(solution.weights, truth, atol=1e-6)
        assert solution.bounded
        assert solution.directions_kept == pytest.approx(5, abs=1e-6)


def test_floor_makes_an_indefinite_quadratic_harmless() -> None:
    matrix, vector = indefinite()
    solution = minimise(matrix, vector, NoiseLevel(5.0, 2.0), "floor")
    assert solution.bounded
    assert solution.eigenvalues_changed == 2
    assert np.linalg.norm(solution.weights) < 5


def test_ridge_adds_four_deviations_and_may_stay_unbounded() -> None:
    matrix, vector = indefinite()
    solution = minimise(matrix, vector, NoiseLevel(5.0, 5.0), "ridge")
    assert solution.ridge == 20.0
    assert not solution.bounded
    np.testing.assert_allclose((matrix + 20 * np.eye(4)) @ solution.weights, vector, atol=1e-8)


def test_trim_leaves_out_what_is_still_not_positive() -> None:
    matrix, vector = indefinite()
    solution = minimise(matrix, vector, NoiseLevel(5.0, 5.0), "trim")
    assert (solution.bounded, solution.eigenvalues_changed) == (True, 1)
    _values, vectors = np.linalg.eigh(matrix)
    assert abs(vectors[:, 0] @ solution.weights) < 1e-9, "the direction of -50 is left out"


def test_none_changes_nothing() -> None:
    matrix, vector = indefinite()
    solution = minimise(matrix, vector, NoiseLevel(5.0, 5.0), None)
    np.testing.assert_allclose(matrix @ solution.weights, vector, atol=1e-8)
    assert not solution.bounded
    assert not is_bounded(matrix)


@given(st.integers(1, 12), st.floats(1e-3, 1e6), st.floats(1e-3, 1e6), st.integers(0, 1000))
@settings(max_examples=60, deadline=None)
def test_floor_is_always_finite_and_shrinks_pure_noise(d, sd, size, seed) -> None:
    rng = np.random.default_rng(seed)
    noise = rng.normal(size=(d, d)) * sd
    matrix = np.diag(np.full(d, size)) + (noise + noise.T) / 2
    solution = minimise(matrix, rng.normal(size=d) * sd, NoiseLevel(sd, sd), "floor")
    assert np.isfinite(solution.weights).all()
    assert 0 <= solution.directions_kept <= d
    if size < sd:
        assert np.linalg.norm(solution.weights) < 3


@pytest.mark.parametrize(
    ("interval", "curvature", "error"), [(1, 0.1201, 0.0007), (2, 0.1084, 0.0078), (4, 0.0828, 0.07), (6, 0.0643, 0.19)]
)
def test_the_curvature_is_that_of_the_best_uniform_quadratic(interval, curvature, error) -> None:
    ours = chebyshev_curvature(interval)
    assert ours == pytest.approx(curvature, abs=2e-4)
    z = np.linspace(-interval, interval, 4001)

    def worst(b2: float) -> float:
        rest = np.logaddexp(0, z) - z / 2 - b2 * z**2
        return float(rest.max() - rest.min()) / 2

    assert worst(ours) <= error
    assert worst(ours) <= min(worst(ours * 1.01), worst(ours * 0.99)), "no other curvature does better"


def test_calibration_finds_the_length_and_intercept_of_normal_scores() -> None:
    """One normal feature, true weight 1.5 and intercept -1: from the moments of a large sample, calibration recovers
    both.
    """
    rng = np.random.default_rng(0)
    x = rng.normal(0, 1, 400_000)
    t = np.where(rng.uniform(size=len(x)) < 1 / (1 + np.exp(1 - 1.5 * x)), 1.0, -1.0)
    n = float(len(x))
    products = np.array([[n, x.sum()], [x.sum(), x @ x]])
    moments = MomentValues(products, np.array([t.sum(), x @ t]), n)
    slope, intercept = np.linalg.solve(products, moments.with_target)[::-1] * 2
    length, fitted = calibrate(np.array([slope]), intercept, t.mean(), moments, True, "auto")
    assert length * slope == pytest.approx(1.5, abs=0.03)
    assert fitted == pytest.approx(-1.0, abs=0.03)
