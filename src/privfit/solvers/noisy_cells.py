"""What the cells of a table add to scores, from noisy sums of slopes and curvatures: a posterior mean.

Post-processing of released numbers and of the public scale of their noise: no row is seen.

Most cells of a fine table hold few rows or none, and effects of neighbouring cells are often alike. So a cell's step is
the mean of what its effect may be, given its two sums, the known law of their noise, how large the curvatures of all
cells seem to be, and, along a number, the cells beside it. Curvatures weigh in that mean: an effect matters as much as
the cell has rows.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_ndtr

Floats = NDArray[np.float64]

POSITIVE = np.array([0.08, 0.16, 0.3, 0.5, 0.8, 1.2, 1.8, 2.6, 4.0])
"""Positive effects that are weighed; a bin about each ends halfway to the next. More take longer. Not varied, but for
the largest, which is what it was for Newton steps: docs/classifiers.md."""
EFFECTS = np.concatenate([-POSITIVE[::-1], [0.0], POSITIVE])
"""All effects that are weighed."""
FALLS, NONE = 1.5, 0.3
"""How effects are distributed before sums are seen: with density exp(-1.5 |effect|), and 0.3 to 1 with no effect:
papers/experiments/noisy_cells.py."""
CHANGES = 0.2
"""The probability that half of a part of a number has an effect drawn anew: a larger one trusts each cell, a smaller
one smooths: papers/experiments/noisy_cells.py."""
OF_SAMPLING = 0.6
"""The variance of a row's slope over its curvature, about. 0.3 and 1.2 are level: papers/experiments/noisy_cells.py."""
SIZES, ROUNDS, RAREST = 14, 8, 1e-12
"""Curvatures that are weighed, rounds in which their frequencies are learned, and the least frequency, so that no sum
is impossible. Not varied."""


def expected_steps(slopes: Floats, curvatures: Floats, scales: tuple[float, float], in_order: bool) -> Floats:
    """What each cell adds to scores.

    `scales` are those of the Laplace noise on slopes and on curvatures. `in_order` says that cells lie side by side
    along a number.

    Guarantee: post-processing of its arguments; docs/proofs/pairs.md, Theorem 1.
    """
    sizes, logs = _sizes(curvatures, scales[1])
    spread = OF_SAMPLING * sizes
    seen = np.clip(-slopes[:, None] / sizes, EFFECTS[0], EFFECTS[-1])
    effects = _within(EFFECTS, seen[:, :, None], ((spread + 2 * scales[0] ** 2) / sizes**2)[:, :, None])
    away = slopes[:, None, None] + effects * sizes[:, :, None]
    logs = logs[:, :, None] + _log_density(away, scales[0], np.sqrt(spread)[:, :, None])
    joint = np.exp(logs - logs.max(axis=(1, 2), keepdims=True))
    before = _before()
    prior = _beside(joint.sum(axis=1), before) if in_order else before
    weights = joint * sizes[:, :, None] * np.reshape(prior, (-1, 1, len(EFFECTS)))
    return np.asarray((weights * effects).sum(axis=(1, 2)) / weights.sum(axis=(1, 2)))


def _before() -> Floats:
    """How likely each effect is before sums are seen."""
    found = np.exp(-FALLS * np.abs(EFFECTS)) * np.gradient(EFFECTS)
    found[len(POSITIVE)] += NONE * found.sum()
    return np.asarray(found / found.sum())


def _sizes(curvatures: Floats, scale: float) -> tuple[Floats, Floats]:
    """Sizes that the curvature of each cell may have, and the logarithm of how likely each is: (cells, sizes).

    The frequencies of sizes are those under which all noisy curvatures are most likely, found by expectation and
    maximisation.
    """
    largest = max(float(curvatures.max()), 4 * scale)
    grid = np.array([1e-3 * min(scale, 1.0), *np.geomspace(min(scale / 2, largest / 4), largest, SIZES)])
    sizes = _within(grid, curvatures[:, None], np.full((len(curvatures), 1), 2 * scale**2))
    logs = -np.abs(curvatures[:, None] - sizes) / scale
    likely = np.exp(logs - logs.max(axis=1, keepdims=True))
    frequencies = np.full(len(grid), 1 / len(grid))
    for _ in range(ROUNDS):
        found = likely * np.maximum(frequencies, RAREST)
        frequencies = (found / found.sum(axis=1, keepdims=True)).mean(axis=0)
    return sizes, logs + np.log(np.maximum(frequencies, RAREST))


def _within(grid: Floats, seen: Floats, variance: Floats) -> Floats:
    """The values of a grid, each moved inside its bin towards what is seen with this variance: as the variance falls,
    one of them is what is seen.
    """
    between = (grid[1:] + grid[:-1]) / 2
    low, high = np.array([grid[0], *between]), np.array([*between, grid[-1]])
    wide = (high - low) ** 2 / 12
    return np.asarray(np.clip(grid + wide / (wide + variance) * (seen - grid), low, high))


def _log_density(away: Floats, scale: float, sd: Floats) -> Floats:
    """The logarithm of the density of Laplace noise plus a normal error, but for a constant."""
    scales = np.maximum(scale, 1e-3 * sd)
    far, ratio = np.abs(away), sd / scales
    sides = (sign * far / scales + log_ndtr(-sign * far / sd - ratio) for sign in (-1.0, 1.0))
    return np.asarray(ratio**2 / 2 + np.logaddexp(*sides) - np.log(scales))


def _beside(likely: Floats, before: Floats) -> Floats:
    """How likely each effect of each cell is before its own sums are seen, by all other cells of a number: (cells,
    effects).

    The number is halved again and again. The effect of a half is that of the part it belongs to, or drawn anew with
    probability `CHANGES`.
    """
    cells = len(likely)
    level = np.ones((1 << max(cells - 1, 1).bit_length(), len(before)))
    level[:cells] = likely / likely.max(axis=1, keepdims=True)
    told = []
    while len(level) > 1:
        told.append((1 - CHANGES) * level + CHANGES * (level @ before)[:, None])
        level = told[-1][0::2] * told[-1][1::2]
        level /= level.max(axis=1, keepdims=True)
    outside = before[None, :]
    for own in reversed(told):
        twin = own.reshape(-1, 2, len(before))[:, ::-1].reshape(own.shape)
        outside = np.repeat(outside, 2, axis=0) * twin
        outside = (1 - CHANGES) * outside / outside.sum(axis=1, keepdims=True) + CHANGES * before
    return np.asarray(outside[:cells])
