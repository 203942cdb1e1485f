"""Descent in a known number of steps: however gradients are off, within their bound, it ends as near the minimum as
Theorem 6 says.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privfit.losses import LOGISTIC, smooth_hinge
from privfit.losses.convex import ConvexLoss
from privfit.solvers import accelerated_descent

Errors = Callable[[np.ndarray, np.ndarray, int], np.ndarray]
"""An error of length 1 from weights, the minimum and the number of the step."""


def unit(vector: np.ndarray) -> np.ndarray:
    length = float(np.linalg.norm(vector))
    return vector / length if length else np.full_like(vector, 1 / math.sqrt(vector.size))


ERRORS: dict[str, Errors] = {
    "none": lambda weights, minimum, step: np.zeros_like(weights),
    "away": lambda weights, minimum, step: unit(minimum - weights),
    "towards": lambda weights, minimum, step: unit(weights - minimum),
    "constant": lambda weights, minimum, step: unit(np.ones_like(weights)),
    "alternating": lambda weights, minimum, step: (-1) ** step * unit(np.ones_like(weights)),
    "random": lambda weights, minimum, step: unit(np.random.default_rng(step).normal(size=weights.shape)),
    "resonant": lambda weights, minimum, step: (
        math.copysign(1.0, math.sin(step / 50)) * unit(np.eye(len(weights))[:, -1:])
    ),
}


def quadratic(
    condition: float, size: int, radius: float, seed: int
) -> tuple[Callable[[np.ndarray], np.ndarray], np.ndarray]:
    """The gradient of a quadratic with eigenvalues from 1 to `condition`, and its minimum of this length."""
    rng = np.random.default_rng(seed)
    basis = np.linalg.qr(rng.normal(size=(size, size)))[0]
    matrix = (basis * np.geomspace(1.0, condition, size)) @ basis.T
    minimum = radius * unit(rng.normal(size=(size, 1)))
    return (lambda weights: matrix @ (weights - minimum)), minimum


def descended(
    gradient: Callable, minimum: np.ndarray, radius: float, rho: float, condition: float, errors: Errors, *, plain: bool
) -> tuple:
    """Where the descent ends for a ridge of 1, and how far from the minimum it may be."""
    reached = 2 * rho * math.sqrt(math.sqrt(condition) + 1.5)
    slack = 2 * rho if plain else max(reached, 1e-9 * radius)
    accelerated = math.ceil(4 * math.sqrt(condition) * max(1.0, math.log(1.75 * radius / slack)))
    seen: list[float] = []

    def off(weights: np.ndarray) -> np.ndarray:
        seen.append(float(np.linalg.norm(weights)))
        return gradient(weights) + rho * errors(weights, minimum, len(seen))

    found = accelerated_descent(
        off,
        lambda weights, slope: False,
        np.zeros_like(minimum),
        ridge=1.0,
        smoothness=condition,
        accelerated=accelerated,
        plain=math.ceil(condition * math.log(reached / rho)) if plain else 0,
    )
    return found, slack, max(seen)


@pytest.mark.parametrize("errors", ERRORS)
@pytest.mark.parametrize("condition", [1.5, 30.0, 3000.0])
@pytest.mark.parametrize("plain", [False, True])
def test_every_error_within_its_bound_leaves_no_more_than_is_planned(
    errors: str, condition: float, plain: bool
) -> None:
    for seed in range(3):
        gradient, minimum = quadratic(condition, 6, 5.0, seed)
        rho = 5.0 / (8 * math.sqrt(math.sqrt(condition) + 1.5))  # as large as the theorem allows
        for smaller in (1.0, 1e-3):
            found, slack, longest = descended(
                gradient, minimum, 5.0, rho * smaller, condition, ERRORS[errors], plain=plain
            )
            assert np.linalg.norm(found - minimum) <= slack
            assert longest <= 3 * 5.0


@given(
    st.integers(0, 10**6),
    st.sampled_from([LOGISTIC, smooth_hinge(0.05), smooth_hinge(2.0)]),
    st.sampled_from(sorted(ERRORS)),
)
@settings(max_examples=40, deadline=None)
def test_losses_over_rows_are_descended_as_far_as_planned(seed: int, loss: ConvexLoss, errors: str) -> None:
    """Rows that are separable, alike or opposed; the minimum is found by many plain steps without errors."""
    rng = np.random.default_rng(seed)
    design = rng.choice([-1.0, -0.01, 0.0, 0.01, 1.0], (12, 2))
    target = rng.choice([-1.0, 1.0], 12) if seed % 2 else np.ones(12)
    ridge = 0.5

    def gradient(weights: np.ndarray) -> np.ndarray:
        return (design.T @ loss.slope(design @ weights[:, 0], target))[:, None] / ridge + weights  # for a ridge of 1

    condition = 1 + 12 * float(loss.most_curvature or 0.0) * 2 / ridge
    minimum = np.zeros((2, 1))
    for _ in range(math.ceil(40 * condition)):
        minimum = minimum - gradient(minimum) / condition
    radius = math.sqrt(2 * 12 * float(loss.excess_at_zero or math.inf) / ridge)
    rho = 1e-4 * radius / math.sqrt(math.sqrt(condition) + 1.5)
    found, slack, longest = descended(gradient, minimum, radius, rho, condition, ERRORS[errors], plain=False)
    assert np.linalg.norm(minimum) <= radius
    assert np.linalg.norm(found - minimum) <= slack
    assert longest <= 3 * radius


def test_a_certified_point_ends_the_descent() -> None:
    gradient, _ = quadratic(100.0, 4, 1.0, 0)
    passes = []

    def counted(weights: np.ndarray) -> np.ndarray:
        passes.append(weights)
        return gradient(weights)

    found = accelerated_descent(
        counted,
        lambda weights, slope: bool(np.linalg.norm(slope) <= 1e-3),
        np.zeros((4, 1)),
        ridge=1.0,
        smoothness=100.0,
        accelerated=10**6,
        plain=10**6,
    )
    assert np.linalg.norm(gradient(found)) <= 1e-3
    assert len(passes) < 1000
    again = accelerated_descent(
        gradient,
        lambda *_: bool(np.linalg.norm(_[1]) <= 1e-3),
        found,
        ridge=1.0,
        smoothness=100.0,
        accelerated=0,
        plain=5,
    )
    assert np.array_equal(again, found)
