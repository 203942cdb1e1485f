"""Gradient descent that reaches a known distance of the minimum in a known number of steps, whatever is minimised."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def accelerated_descent(
    gradient: Callable[[Floats], Floats],
    is_certified: Callable[[Floats, Floats], bool],
    start: Floats,
    *,
    ridge: float,
    smoothness: float,
    accelerated: int,
    plain: int,
) -> Floats:
    """Steps of Nesterov's method, then of plain gradient descent, on a strongly convex and smooth objective.

    Computed gradients may be off by as much as rounding is: both step lengths are halved against the textbook's, so
    that errors add up to a known amount. `is_certified` takes weights and their gradient, and may end the descent
    early. Never raises where `gradient` does not.

    Guarantee: docs/proofs/perturbation.md, Theorem 6.
    """
    share = math.sqrt(ridge / smoothness) / 2
    momentum = (1 - share) / (1 + share)
    weights = ahead = start
    for _ in range(accelerated):
        slope = gradient(ahead)
        if is_certified(ahead, slope):
            return ahead
        before, weights = weights, ahead - slope / (2 * smoothness)
        ahead = weights + momentum * (weights - before)
    for _ in range(plain):
        slope = gradient(weights)
        if is_certified(weights, slope):
            return weights
        weights = weights - slope / smoothness
    return weights
