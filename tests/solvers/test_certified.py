"""A certified minimum has a gradient below the tolerance, or there is none."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import softmax

from privfit.losses import LOGISTIC, ConvexLoss, hinge, robust, smooth_hinge, tempered_logistic
from privfit.solvers import minimise_certified, newton_on_sample, solver_of

Gradient = Callable[[np.ndarray], np.ndarray]


def same(vectors: np.ndarray) -> np.ndarray:
    """No preconditioning."""
    return vectors


class Counted:
    """A gradient that counts how often it was asked for."""

    def __init__(self, gradient: Gradient) -> None:
        self._gradient = gradient
        self.calls = 0

    def __call__(self, weights: np.ndarray) -> np.ndarray:
        self.calls += 1
        return self._gradient(weights)


def quadratic(condition: float, columns: int, classes: int, seed: int) -> tuple[Gradient, np.ndarray, np.ndarray]:
    """The gradient of half w'Aw - b'w per class, the minimum, and the eigenvalues' largest to smallest of A as asked
    for.
    """
    rng = np.random.default_rng(seed)
    turned = np.linalg.qr(rng.normal(size=(columns, columns)))[0]
    matrix = turned @ np.diag(np.geomspace(1.0, condition, columns)) @ turned.T
    minimum = rng.normal(size=(columns, classes))
    return lambda weights: matrix @ (weights - minimum), minimum, matrix


def rows(n: int, columns: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    design = rng.uniform(-1, 1, (n, columns))
    design[:, 0] = 1.0
    return design, np.where(rng.random(n) < 1 / (1 + np.exp(-3 * design[:, -1])), 1.0, -1.0)


def risk(loss: ConvexLoss, design: np.ndarray, target: np.ndarray, ridge: float, tilt: np.ndarray) -> Gradient:
    return lambda weights: design.T @ loss.slope(design @ weights, target[:, None]) + ridge * weights + tilt


LOSSES = {
    "logistic": LOGISTIC,
    "tempered": tempered_logistic(0.5, 20.0),
    "smooth hinge": smooth_hinge(0.5),
    "sharp smooth hinge": smooth_hinge(0.01),
    "hinge": hinge(),
    "robust": robust(0.3),
}


# -- the certificate -------------------------------------------------------------------------------


@given(
    st.integers(1, 25),
    st.integers(1, 4),
    st.floats(0, 3),
    st.floats(-9, -1),
    st.sampled_from([0.03, 1.0, 30.0]),
    st.integers(0, 10**6),
)
@settings(max_examples=60)
def test_a_quadratic_is_minimised_to_any_tolerance_from_any_guess_of_its_curvature(
    columns: int, classes: int, condition: float, precision: float, guess: float, seed: int
) -> None:
    gradient, minimum, _ = quadratic(10**condition, columns, classes, seed)
    start = np.random.default_rng(seed).normal(size=minimum.shape)
    tolerance = 10**precision
    found = minimise_certified(gradient, tolerance, start, lambda vectors: guess * vectors)
    assert found.weights.shape == minimum.shape
    assert np.linalg.norm(gradient(found.weights)) == found.gradient_norm <= tolerance
    assert np.linalg.norm(found.weights - minimum) <= tolerance * (1 + 1e-6)  # strongly convex with constant one


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("ridge", [0.1, 30.0])
@pytest.mark.parametrize("seed", range(3))
def test_losses_with_and_without_corners_are_certified(name: str, ridge: float, seed: int) -> None:
    design, target = rows(400, 6, seed)
    tilt = np.random.default_rng(seed).laplace(scale=5, size=(6, 1))
    gradient = risk(LOSSES[name], design, target, ridge, tilt)
    found = minimise_certified(gradient, 1e-6, np.zeros((6, 1)), same)
    assert np.linalg.norm(gradient(found.weights)) == found.gradient_norm <= 1e-6


@pytest.mark.parametrize("classes", [3, 5])
def test_softmax_of_several_classes_is_certified_whatever_the_guess(classes: int) -> None:
    design, _ = rows(300, 5, 2)
    labels = np.eye(classes)[np.random.default_rng(3).integers(classes, size=300)]

    def gradient(weights: np.ndarray) -> np.ndarray:
        return design.T @ (softmax(design @ weights, axis=1) - labels) + 0.5 * weights

    found = [
        minimise_certified(gradient, 1e-8, np.zeros((5, classes)), lambda v, guess=guess: guess * v)
        for guess in (1e-4, 1.0, 100.0)
    ]
    assert all(np.linalg.norm(gradient(one.weights)) <= 1e-8 for one in found)
    for one in found[1:]:
        np.testing.assert_allclose(one.weights, found[0].weights, atol=2 * 1e-8 / 0.5)


def test_only_the_real_gradient_decides() -> None:
    """A guess of the curvature that points anywhere but down costs passes and nothing else."""
    gradient, minimum, matrix = quadratic(100.0, 8, 1, 4)
    good = minimise_certified(gradient, 1e-9, np.zeros((8, 1)), lambda v: np.linalg.solve(matrix, v))
    poor = minimise_certified(gradient, 1e-9, np.zeros((8, 1)), lambda v: matrix @ v)
    assert good.passes < poor.passes
    for found in (good, poor):
        np.testing.assert_allclose(found.weights, minimum, atol=1.01e-9)


def test_passes_are_the_gradients_that_were_taken() -> None:
    design, target = rows(300, 5, 1)
    for start in (0.0, 50.0):
        gradient = Counted(risk(LOGISTIC, design, target, 0.1, np.zeros((5, 1))))
        found = minimise_certified(gradient, 1e-7, np.full((5, 1), start), same)
        assert found.passes == gradient.calls


def test_a_start_that_is_flat_enough_is_the_answer_after_one_pass() -> None:
    gradient, minimum, _ = quadratic(10.0, 4, 2, 0)
    found = minimise_certified(gradient, 1e-3, minimum + 1e-5, same)
    assert found.passes == 1
    np.testing.assert_array_equal(found.weights, minimum + 1e-5)


def test_the_start_is_left_as_it_was() -> None:
    gradient, _, _ = quadratic(10.0, 4, 1, 0)
    start = np.ones((4, 1))
    minimise_certified(gradient, 1e-8, start, same)
    assert (start == 1.0).all()


# -- no certificate, no minimum --------------------------------------------------------------------


def test_a_gradient_too_coarse_for_the_tolerance_gives_no_minimum() -> None:
    design, target = rows(200, 4, 0)
    exact = risk(LOGISTIC, design, target, 1.0, np.zeros((4, 1)))

    def coarse(weights: np.ndarray) -> np.ndarray:
        return exact(weights) + 1e-4 * np.cos(1e9 * weights)

    assert minimise_certified(coarse, 1e-2, np.zeros((4, 1)), same).gradient_norm <= 1e-2
    best = minimise_certified(coarse, 1e-12, np.zeros((4, 1)), same, most_passes=300)
    assert 1e-12 < best.gradient_norm <= 1e-2
    assert best.gradient_norm == np.linalg.norm(coarse(best.weights))


def test_too_few_passes_give_no_minimum() -> None:
    gradient, _, _ = quadratic(1e4, 20, 1, 0)
    best = minimise_certified(gradient, 1e-9, np.zeros((20, 1)), same, most_passes=4)
    assert 1e-9 < best.gradient_norm <= np.linalg.norm(gradient(np.zeros((20, 1))))


@pytest.mark.parametrize("tolerance", [1e-3, 1.414])  # the gradient is the root of two everywhere
def test_an_objective_without_a_minimum_gives_none(tolerance: float) -> None:
    best = minimise_certified(lambda weights: np.ones_like(weights), tolerance, np.zeros((2, 1)), same, most_passes=100)
    assert best.gradient_norm > tolerance


@pytest.mark.filterwarnings("ignore:invalid value")
@pytest.mark.parametrize("beyond", [np.nan, np.inf, -np.inf])
def test_a_gradient_that_is_no_number_further_out_is_never_certified_there(beyond: float) -> None:
    gradient, _, _ = quadratic(3.0, 3, 1, 0)

    def walled(weights: np.ndarray) -> np.ndarray:
        return gradient(weights) if np.linalg.norm(weights) < 100 else np.full_like(weights, beyond)

    found = minimise_certified(walled, 1e-9, np.zeros((3, 1)), lambda v: 1e4 * v)  # the first steps go far too far
    assert found.gradient_norm == np.linalg.norm(gradient(found.weights)) <= np.linalg.norm(gradient(np.zeros((3, 1))))


@pytest.mark.filterwarnings("ignore:invalid value")
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_a_gradient_that_is_no_number_at_the_start_gives_no_minimum(value: float) -> None:
    best = minimise_certified(lambda weights: np.full_like(weights, value), 1e-3, np.zeros((2, 1)), same)
    assert not best.gradient_norm <= 1e-3


# -- Newton's method on a sample -------------------------------------------------------------------


@pytest.mark.parametrize("name", LOSSES)
def test_newton_on_all_rows_starts_at_the_minimum(name: str) -> None:
    loss = LOSSES[name]
    design, target = rows(400, 6, 5)
    gradient = risk(loss, design, target, 2.0, np.zeros((6, 1)))

    def curvature(weights: np.ndarray) -> np.ndarray:
        bends = loss.curvature(design @ weights, target[:, None])
        return np.stack([(design * bends).T @ design])

    start, solve = newton_on_sample(
        gradient, lambda weights: solver_of(curvature(weights), 2.0), np.zeros((6, 1)), 1e-7
    )
    assert np.linalg.norm(gradient(start)) <= 1e-7
    assert minimise_certified(gradient, 1e-7, start, solve).passes == 1


def test_the_guess_of_the_curvature_is_solved_with_class_by_class() -> None:
    rng = np.random.default_rng(0)
    roots = rng.normal(size=(3, 4, 4))
    matrices = roots @ roots.transpose(0, 2, 1)
    minimum = rng.normal(size=(4, 3))
    whole = matrices + 0.5 * np.eye(4)

    def gradient(weights: np.ndarray) -> np.ndarray:
        return np.einsum("kij,jk->ik", whole, weights - minimum)

    start, solve = newton_on_sample(gradient, lambda weights: solver_of(matrices, 0.5), np.zeros((4, 3)), 1e-9)
    np.testing.assert_allclose(start, minimum, atol=1e-8)
    vectors = rng.normal(size=(4, 3))
    np.testing.assert_allclose(np.einsum("kij,jk->ik", whole, solve(vectors)), vectors, atol=1e-10)


def test_a_sample_saves_passes_over_all_rows() -> None:
    design, target = rows(20_000, 12, 6)
    tilt = np.zeros((12, 1))
    gradient = Counted(risk(LOGISTIC, design, target, 1.0, tilt))
    part = design[::10], target[::10]

    def sampled(weights: np.ndarray) -> np.ndarray:
        return 10 * (part[0].T @ LOGISTIC.slope(part[0] @ weights, part[1][:, None])) + weights

    def curvature(weights: np.ndarray) -> np.ndarray:
        return np.stack([10 * (part[0] * LOGISTIC.curvature(part[0] @ weights, 1.0)).T @ part[0]])

    start, solve = newton_on_sample(sampled, lambda weights: solver_of(curvature(weights), 1.0), np.zeros((12, 1)), 1.0)
    assert gradient.calls == 0
    warm = minimise_certified(gradient, 1e-6, start, solve)
    cold = minimise_certified(gradient, 1e-6, np.zeros((12, 1)), same)
    assert warm.passes < cold.passes
    np.testing.assert_allclose(warm.weights, cold.weights, atol=2.1e-6)


def test_where_shifts_are_free_only_the_ridge_acts_on_what_classes_share() -> None:
    """The guess is symmetric and positive, exact for what all columns share, and leaves what is apart apart."""
    rng = np.random.default_rng(1)
    roots = rng.normal(size=(3, 4, 4))
    solve = solver_of(roots @ roots.transpose(0, 2, 1), 0.5, shifts_are_free=True)
    shared = np.repeat(rng.normal(size=(4, 1)), 3, axis=1)
    np.testing.assert_allclose(solve(shared), shared / 0.5)
    apart = rng.normal(size=(4, 3))
    apart -= apart.mean(axis=1, keepdims=True)
    np.testing.assert_allclose(solve(apart).mean(axis=1), 0, atol=1e-12)
    whole = np.array([solve(unit.reshape(4, 3)).ravel() for unit in np.eye(12)])
    np.testing.assert_allclose(whole, whole.T, atol=1e-12)
    assert np.linalg.eigvalsh(whole).min() > 0
