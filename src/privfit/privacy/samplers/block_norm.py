"""Noise in the shape of octahedra that are cut where all have the same sum: a density that falls with the largest of
several sums of sizes, one for each block of values.

A row has one level of every category, so that it moves one block of values by as much as any other, and the sums of all
blocks by exactly as much. Laplace noise protects against the sum over all blocks; this noise against the largest, with
one draw for all blocks, and no noise at all where no row can pull: between the sums of blocks. One block alone is
Laplace noise.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln, logsumexp

from privfit.privacy.errors import PrivacyError
from privfit.privacy.samplers.norms import GeometricSource, Source, check_cube, whole_scale

Integers = NDArray[np.int64]

_DIGIT = 1 << 32
_FINER = 16
_PLACES = 2048


def octahedra(widths: Sequence[int], scale: float, source: GeometricSource) -> Integers:
    """Whole numbers b with P(b) proportional to exp(-M / scale), exactly, M the largest sum of |b_i| over a block,
    among those whose blocks all have the same sum.

    Blocks of so many values stand one after the other. A width of 1 is a value that stands alone: the difference of a
    block of two, so that it is even or odd as the blocks' sum is.

    Guarantee: exact law, but for a chance below 2^-150 of a radius beyond 2^60; docs/proofs/shapes.md, Lemma 3.
    """
    check_octahedra(sum(widths), scale)
    return cut_octahedra(widths, whole_scale(scale), source)


def check_octahedra(size: int, scale: float) -> None:
    """Refuse, from public facts alone, octahedra that 64 bits cannot hold or that a lattice is too coarse for."""
    if _FINER * size**2 > scale:
        raise PrivacyError(
            f"Noise in one piece on {size} values with scale {scale:.3g} was asked for; it needs a lattice that is far "
            "finer than its noise. "
            "Use noise='laplace', or a smaller epsilon."
        )
    check_cube(size, scale)


def cut_octahedra(widths: Sequence[int], scale: float, source: GeometricSource) -> Integers:
    """As `octahedra`, at any scale: the chance of a radius beyond 2^60, and how long it takes, are not bounded.

    Let all values that are above zero add up to at most g in every block, those below to at most h, and all to g - h: b
    is in all such sets with the right g - h and g + h >= M, so that g and h are drawn with weights exp(-(g + h) /
    scale) times the number of points in all blocks, and then one of those points. g + h is proposed as a sum of
    geometric numbers, g as any number up to that, and both are kept with the chance that makes their weights right.
    """
    frees = [max(width - 1, 1) for width in widths]
    size, widest = sum(frees), max(frees)
    largest = math.prod(math.comb(2 * free, free) ** many for free, many in Counter(frees).items())
    for both, up in _proposals(size, widest, scale, source):
        points = {free: points_between(free, up, both - up) for free in set(frees)}
        weight = math.prod(
            (sum(points[free]) * math.factorial(free) << free) ** many for free, many in Counter(frees).items()
        )
        if _comes_up(weight * (both + 1), largest * math.perm(both + widest + size, size + 1), source):
            break
    return np.concatenate([_block(width, up, both - up, points[max(width - 1, 1)], source) for width in widths])


def _proposals(size: int, widest: int, scale: float, source: GeometricSource) -> Iterator[tuple[int, int]]:
    """Proposals of g + h and g without end, drawn many at a time: about as many as it takes until one is kept."""
    many = math.isqrt(size) + 1
    while True:
        sums = [sum(own) + 1 - widest for own in source.geometric(many * (size + 2), scale).reshape(many, -1).tolist()]
        sums = [both for both in sums if both >= 0]
        yield from zip(sums, source.below(np.array(sums, dtype=np.int64) + 1).tolist(), strict=True)


def points_between(free: int, up: int, down: int) -> list[int]:
    """How many whole-number points of so many values have positive ones that add up to at most `up` and negative ones
    to at most `down`, by how many are positive.

    i of them have C(up, i) choices of sizes, the others, which may be zero, C(down + free - i, free - i).
    """
    ups, downs = [1], [1]
    for i in range(free):
        ups.append(ups[-1] * (up - i) // (i + 1) if up > i else 0)
        downs.append(downs[-1] * (down + i + 1) // (i + 1))
    return [math.comb(free, i) * ups[i] * downs[free - i] for i in range(free + 1)]


def octahedra_sds(widths: tuple[int, ...]) -> tuple[float, ...]:
    """The standard deviation of the noise, of scale 1 and on a fine lattice, in each block: of a value beside the
    others, in any direction in which a block's values add up to zero.
    """
    return _moments(widths)[0]


def octahedra_sum_sd(widths: tuple[int, ...]) -> float:
    """The standard deviation of the sum that all blocks share, as for `octahedra_sds`."""
    return _moments(widths)[1]


@lru_cache(maxsize=256)
def _moments(widths: tuple[int, ...]) -> tuple[tuple[float, ...], float]:
    """Deviations by block, and that of the sum: g + h is a Gamma number of size + 2, and its share of g has a density
    that is a product of volumes; docs/proofs/shapes.md, Lemma 3.
    """
    frees = [max(width - 1, 1) for width in widths]
    size = sum(frees)
    share = (np.arange(_PLACES) + 0.5) / _PLACES
    squares, volumes = {}, {}
    for free in set(frees):
        some = np.arange(free + 1)[:, None]
        logs = (
            2 * (gammaln(free + 1) - gammaln(some + 1) - gammaln(free - some + 1))
            + some * np.log(share)
            + (free - some) * np.log1p(-share)
        )
        volumes[free] = logsumexp(logs, axis=0)
        above = share**2 * 2 * some / ((some + 1) * (some + 2))
        below = (1 - share) ** 2 * 2 * (free - some) / ((free - some + 1) * (free - some + 2))
        each = (np.exp(logs - volumes[free]) * (above + below)).sum(axis=0) / free
        squares[free] = ((free + 1) * each - (2 * share - 1) ** 2 / (free + 1)) / free
    likely = sum(many * volumes[free] for free, many in Counter(frees).items())
    likely = np.exp(likely - logsumexp(likely)) * (size + 2) * (size + 3)
    sds = tuple(math.sqrt(likely.sum() / 3 if width == 1 else likely @ squares[width - 1]) for width in widths)
    return sds, math.sqrt(likely @ (2 * share - 1) ** 2)


def octahedra_sd(widths: Sequence[int]) -> float:
    """The root of the mean square of `octahedra_sds` over all values."""
    return math.sqrt(
        sum(width * sd**2 for width, sd in zip(widths, octahedra_sds(tuple(widths)), strict=True)) / sum(widths)
    )


def _block(width: int, up: int, down: int, points: list[int], source: Source) -> Integers:
    """One of the points of a block, all equally likely: which of all values but one are positive, and all sizes; the
    last one is what is left.
    """
    free = max(width - 1, 1)
    left = sum(points)
    for some in sorted(range(free + 1), key=points.__getitem__, reverse=True):
        if _comes_up(points[some], left, source):
            break
        left -= points[some]
    block = np.zeros(free + 1, dtype=np.int64)
    places = _places(free, some, source)
    block[places[:some]] = np.diff(_distinct(some, up, source), prepend=0)
    block[places[some:]] = 1 - np.diff(_distinct(free - some, down + free - some, source), prepend=0)
    block[free] = up - down - block.sum()
    return block if width > 1 else block[:1] - block[1:]


def _distinct(some: int, limit: int, source: Source) -> Integers:
    """So many different numbers from 1 to the limit in ascending order, all choices equally likely."""
    found = np.zeros(0, dtype=np.int64)
    while len(set(found.tolist())) < some:
        found = source.below(np.full(some, limit, dtype=np.int64)) + 1
    return np.sort(found)


def _places(width: int, some: int, source: Source) -> Integers:
    """All places, so many of them first, all choices of those equally likely: the beginning of a shuffle."""
    places = np.arange(width)
    if some < width:
        for i, step in enumerate(source.below(width - np.arange(some)).tolist()):
            places[[i, i + step]] = places[[i + step, i]]
    return places


def _comes_up(part: int, whole: int, source: Source) -> bool:
    """A coin of probability part / whole, exactly: a uniform number is compared with the quotient digit by digit, until
    they differ.
    """
    if part >= whole:
        return True
    while part:
        digit, part = divmod(part * _DIGIT, whole)
        drawn = int(source.below(np.array([_DIGIT], dtype=np.int64))[0])
        if drawn != digit:
            return drawn < digit
    return False
