"""Noise in the shape of octahedra: a density that falls with the largest of several sums of sizes, one for each block of values.

A row has one level of every category, so that it moves one block of values by as much as any other, and within a block one value. Laplace noise protects against the sum
over all blocks; this noise against the largest, with one draw for all blocks. One block alone is Laplace noise, blocks of one value each are a cube.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from privfit.privacy.shapes import Source, check_cube, whole_scale

Integers = NDArray[np.int64]

_DIGIT = 1 << 32


def octahedra(widths: Sequence[int], scale: float, source: Source) -> Integers:
    """Whole numbers b with P(b) proportional to exp(-M / scale), exactly, M the largest sum of |b_i| over a block; blocks of so many values stand one after the other.

    A radius R with P(R) proportional to exp(-R / scale) times the number of points in the octahedra of radius R, then one of those points: every b is in those with R >= M, and the sum of
    exp(-R / scale) over them is proportional to exp(-M / scale). R is proposed as for a cube and kept with the chance that makes its weights right.

    Guarantee: exact law, but for a chance below 2^-150 of a radius beyond 2^60; docs/proofs/shapes.md, Lemma 3.
    """
    size = sum(widths)
    check_cube(size, scale)
    scale = whole_scale(scale)
    while True:
        radius = sum(source.geometric(size + 1, scale).tolist())
        points = {width: points_within(width, radius) for width in set(widths)}
        weight = math.prod((points[width] * math.factorial(width)) ** many for width, many in Counter(widths).items())
        if _comes_up(weight, math.perm(radius + size, size) << size, source):
            return np.concatenate([_point(width, radius, points[width], source) for width in widths])


def points_within(width: int, radius: int) -> int:
    """How many whole-number points of so many values have sizes that add up to at most the radius."""
    before, now = 0, 1
    for m in range(1, width + 1):
        before, now = now, ((2 * radius + 1) * now + (m - 1) * before) // m
    return now


def octahedron_sd(width: int, size: int) -> float:
    """The standard deviation of a value in a block of this width, of noise of scale 1 on so many values in all, on a fine lattice."""
    return math.sqrt(2 * (size + 1) * (size + 2) / ((width + 1) * (width + 2)))


def octahedra_sd(widths: Sequence[int]) -> float:
    """The root of the mean square of a value, over all blocks."""
    size = sum(widths)
    return math.sqrt(sum(width * octahedron_sd(width, size) ** 2 for width in widths) / size)


def _point(width: int, radius: int, points: int, source: Source) -> Integers:
    """One of the points of an octahedron, all equally likely: how many values are not zero, which, how large, and their signs.

    With j values that are not zero there are C(width, j) choices of them, 2^j of signs, and C(radius, j) of sizes: j numbers from 1 to the radius are partial sums of sizes.
    """
    left, some = points, width
    while not _comes_up(weight := math.comb(width, some) * math.comb(radius, some) << some, left, source):
        left, some = left - weight, some - 1
    point = np.zeros(width, dtype=np.int64)
    if some:
        sums = np.zeros(0, dtype=np.int64)
        while len(set(sums.tolist())) < some:
            sums = source.below(np.full(some, radius, dtype=np.int64)) + 1
        sizes = np.diff(np.sort(sums), prepend=0)
        signs = 2 * source.below(np.full(some, 2, dtype=np.int64)) - 1
        point[_places(width, some, source)] = sizes * signs
    return point


def _places(width: int, some: int, source: Source) -> Integers:
    """So many of the places, all choices equally likely: the beginning of a shuffle."""
    places = np.arange(width)
    if some < width:
        for i, step in enumerate(source.below(width - np.arange(some)).tolist()):
            places[[i, i + step]] = places[[i + step, i]]
    return places[:some]


def _comes_up(part: int, whole: int, source: Source) -> bool:
    """A coin of probability part / whole, exactly: a uniform number is compared with the quotient digit by digit, until they differ."""
    if part >= whole:
        return True
    while part:
        digit, part = divmod(part * _DIGIT, whole)
        drawn = int(source.below(np.array([_DIGIT], dtype=np.int64))[0])
        if drawn != digit:
            return drawn < digit
    return False
