"""From noisy sums of every class to class shares, means, variances and shares of levels. It never sees a row."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Shape = tuple[int, int, bool]
"""Where a block of columns begins, how many columns it has, and whether the first of them is a number."""

LEAST_VARIANCE = 1e-5
"""The least variance of a number whose bounds are -1 and 1: a class whose values hardly differ then has a standard
deviation of a 600th of the range, and not none. Chosen, not measured."""
LEAST_COUNT = 0.5
"""Rows that a level has at least, so that no probability is 0; more where noise is larger. Chosen, not measured."""


@dataclass(frozen=True)
class ClassNoise:
    """The standard deviation of the noise on every sum, in rows."""

    sd: float


@dataclass(frozen=True)
class ClassProfiles:
    """What naive Bayes knows of every class (one line each), in encoded units: numbers in [-1, 1]."""

    counts: Floats
    means: Floats
    """Of numbers their means, of levels their shares: one entry per column."""
    variances: Floats
    """One entry per number."""
    noise: ClassNoise


def class_profiles(sums: Floats, blocks: Sequence[Shape], noise: ClassNoise) -> ClassProfiles:
    """The profiles of noisy sums: counts, columns and squares, one line per class.

    Levels of a block add up to the class's rows. What a class has of its own is shrunk towards what all classes have
    together as far as the noise explains it, so that columns that are mostly noise have no effect.
    """
    columns = sum(width for _, width, _ in blocks)
    counts, found = _consistent(sums[:, 0], sums[:, 1 : 1 + columns], blocks)
    squares, means = sums[:, 1 + columns :], np.empty_like(found)
    shares = counts / counts.sum()
    variances = np.empty_like(squares)
    place = 0
    for start, width, number in blocks:
        own = slice(start, start + width)
        means[:, own] = _shrunk(found[:, own] / counts[:, None], shares, (noise.sd / counts) ** 2)
        levels = slice(start + number, start + width)
        least = max(LEAST_COUNT, noise.sd) / counts[:, None]
        means[:, levels] = np.clip(means[:, levels], np.minimum(least, 1.0 / max(width, 2)), 1.0)
        if not number:
            means[:, levels] /= means[:, levels].sum(axis=1, keepdims=True)
            continue
        means[:, start] = np.clip(means[:, start], -1.0, 1.0)
        spread = squares[:, place] / counts - means[:, start] ** 2
        error = (noise.sd / counts) ** 2 * (1 + 4 * means[:, start] ** 2)
        smooth = _shrunk(spread[:, None], shares, error)[:, 0]
        variances[:, place] = np.clip(smooth, np.minimum(np.maximum(LEAST_VARIANCE, np.sqrt(error)), 1.0), 1.0)
        place += 1
    return ClassProfiles(counts, means, variances, noise)


def _consistent(counts: Floats, columns: Floats, blocks: Sequence[Shape]) -> tuple[Floats, Floats]:
    """Counts of classes and levels that add up, by least squares; every class has at least one row."""
    complete = [(start, width) for start, width, number in blocks if not number]
    best, weight = counts.copy(), 1.0
    for start, width in complete:
        best += columns[:, start : start + width].sum(axis=1) / width
        weight += 1 / width
    best /= weight
    adjusted = columns.copy()
    for start, width in complete:
        own = slice(start, start + width)
        adjusted[:, own] += ((best - columns[:, own].sum(axis=1)) / width)[:, None]
    return np.maximum(best, 1.0), adjusted


def _shrunk(values: Floats, shares: Floats, errors: Floats) -> Floats:
    """Values of the classes (lines), moved towards their mean over classes as far as their noise explains that they
    differ: an empirical Bayes estimate with one spread for all columns given.
    """
    middle = shares @ values
    apart = values - middle
    spread = max(0.0, float((shares @ (apart**2)).mean() - shares @ errors))
    kept = spread / (spread + errors) if spread > 0 else np.zeros_like(errors)
    return np.asarray(middle + apart * kept[:, None])
