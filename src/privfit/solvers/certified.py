"""Minimising a smooth, strongly convex objective until its gradient is certified to be small.

Limited-memory BFGS, started and preconditioned by the curvature of a sample. Only gradients of the whole objective
decide, so that a poor sample costs passes and nothing else. Step lengths are found from directional derivatives: near
the minimum differences of values are lost in rounding, derivatives do not.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve

Floats = NDArray[np.float64]
Gradient = Callable[[Floats], Floats]

MEMORY = 30
"""Pairs of steps and gradients that BFGS keeps: more take memory, fewer take passes. Not measured."""
FLAT_ENOUGH = 0.9
"""A step is long enough when the directional derivative has fallen to this share (the Wolfe condition)."""
MOST_TRIALS = 60
"""Lengths tried for one step; halving so often leaves nothing of it."""
MOST_PASSES = 2000
"""Passes before accelerated descent with a proved number of steps takes over: it limits time, never what is
released."""
SAMPLE_STEPS = 50
"""Newton steps on a sample, for a start: a poor one costs passes and nothing else."""
SAMPLE_PRECISION = 1e-3
"""The same: the sample is minimised to this, below its own sampling error."""


@dataclass(frozen=True)
class Minimum:
    """Where the gradient is small, how small (in L2), and how many gradients it took."""

    weights: Floats
    gradient_norm: float
    passes: int


def minimise_certified(
    gradient: Gradient, tolerance: float, start: Floats, precondition: Gradient, most_passes: int = MOST_PASSES
) -> Minimum:
    """The minimum of a strongly convex objective, up to a gradient with an L2 norm of at most `tolerance`; or the best
    point on the way there.

    `precondition` solves with a positive definite guess of the Hessian. The norm of the gradient says whether the
    tolerance was reached.

    Every accepted step has a directional derivative that is smaller in size than before; for a strongly convex
    objective with bounded curvature such steps of limited-memory BFGS converge (Liu and Nocedal 1989). What can stop
    them is rounding.
    """
    weights, slope = start, gradient(start)
    passes, norm = 1, float(np.linalg.norm(slope))
    best = (norm, weights)
    pairs: deque[tuple[Floats, Floats, float]] = deque(maxlen=MEMORY)
    while not norm <= tolerance and passes < most_passes:
        direction = -_two_loops(slope, pairs, precondition)
        if float(np.sum(direction * slope)) >= 0:
            pairs.clear()
            direction = -precondition(slope)
        step, new_slope, tried = _step(gradient, weights, direction, slope)
        passes += tried
        moved, turned = step * direction, new_slope - slope
        curvature = float(np.sum(moved * turned))
        if curvature > 1e-12 * float(np.linalg.norm(moved) * np.linalg.norm(turned)):
            pairs.append((moved, turned, 1 / curvature))
        weights, slope = weights + moved, new_slope
        norm = float(np.linalg.norm(slope))
        if norm < best[0]:
            best = (norm, weights)
        if not np.isfinite(norm) or not np.any(moved):
            break
    return Minimum(best[1], best[0], passes)


def _two_loops(slope: Floats, pairs: deque[tuple[Floats, Floats, float]], precondition: Gradient) -> Floats:
    """The inverse Hessian that the steps so far suggest, times the gradient."""
    left = slope.copy()
    shares = []
    for moved, turned, inverse in reversed(pairs):
        share = inverse * float(np.sum(moved * left))
        shares.append(share)
        left -= share * turned
    found = precondition(left)
    if pairs:  # as long as the newest step says
        moved, turned, inverse = pairs[-1]
        found = found / max(inverse * float(np.sum(turned * precondition(turned))), 1e-300)
    for (moved, turned, inverse), share in zip(pairs, reversed(shares), strict=True):
        found = found + (share - inverse * float(np.sum(turned * found))) * moved
    return found


def _step(gradient: Gradient, weights: Floats, direction: Floats, slope: Floats) -> tuple[float, Floats, int]:
    """A step whose end is flatter along the direction than its beginning, the gradient there, and how many gradients it
    took.
    """
    before = float(np.sum(direction * slope))
    short, long, step = 0.0, np.inf, 1.0
    for tried in range(1, MOST_TRIALS + 1):
        found = gradient(weights + step * direction)
        after = float(np.sum(direction * found))
        if abs(after) <= FLAT_ENOUGH * abs(before):
            return step, found, tried
        if after < 0:
            short, step = step, 4 * step if not np.isfinite(long) else (step + long) / 2
        else:
            long, step = (
                step,
                max((short + step) / 2, short + (step - short) * before / (before - after))
                if short
                else step * max(0.1, before / (before - after)),
            )
    return step, gradient(weights + step * direction), MOST_TRIALS + 1


def newton_on_sample(
    gradient: Gradient, solver: Callable[[Floats], Gradient], start: Floats, tolerance: float
) -> tuple[Floats, Gradient]:
    """Newton's method on an estimate of the objective that is cheap to evaluate: where to start, and how to
    precondition, the real one.

    `solver` gives, for weights, what solves with the Hessian there, or with a guess of it. Full steps that do not help
    are halved.
    """
    weights = start
    slope = gradient(weights)
    solve = solver(weights)
    for _ in range(SAMPLE_STEPS):
        norm = float(np.linalg.norm(slope))
        if norm <= tolerance:
            break
        step, new_slope, _ = _step(gradient, weights, -solve(slope), slope)
        weights = weights - step * solve(slope)
        progress = float(np.linalg.norm(new_slope)) / norm
        slope = new_slope
        if progress > SAMPLE_PRECISION:
            solve = solver(weights)
    return weights, solve


def solver_of(matrices: Floats, ridge: float, shifts_are_free: bool = False) -> Gradient:
    """Solves with each matrix plus the ridge, for the column of its own.

    Where `shifts_are_free`, the objective has no curvature along equal shifts of all columns, as with softmax: only the
    ridge acts on what they share.
    """
    factors = []
    for matrix in matrices:
        matrix = matrix + ridge * np.eye(len(matrix))
        factors.append(cho_factor(matrix))

    def solve(vectors: Floats) -> Floats:
        return np.stack([cho_solve(factor, vectors[:, k]) for k, factor in enumerate(factors)], axis=1)

    def solve_apart(vectors: Floats) -> Floats:
        shared = vectors.mean(axis=1, keepdims=True)
        apart = solve(vectors - shared)
        return np.asarray(apart - apart.mean(axis=1, keepdims=True) + shared / ridge)

    return solve_apart if shifts_are_free else solve
