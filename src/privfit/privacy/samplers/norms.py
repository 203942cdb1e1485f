"""K-norm noise on integers: P(b) proportional to exp(-|b|_K / scale), exactly.

One draw covers all values. L-infinity noise hides changes of many values by about as much each, with less noise than
independent Laplace noise, which hides the sum of all changes.

The block norm is the largest over blocks of the sum of sizes. A row has one level of every category, so that it changes
every block by as much as any other, and the sums of all blocks by exactly the same. The noise is drawn from the
subspace with equal block sums: there is none in directions in which no row can change anything. One block alone is
Laplace noise.

Read `check_fits`, `linf_noise`, `block_norm_noise`; docs/proofs/k-norm.md has the proofs.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from typing import Literal, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln, logsumexp

from privfit.privacy.errors import PrivacyError

Integers = NDArray[np.int64]
Norm = Literal["linf", "l2", "blocks"]

INTEGER_SCALE = 2.0**20
"""From this scale on it is rounded up to an integer, for which geometric numbers are quick to draw: at most 10^-6 more
noise."""
MOST_SPREAD = 2.0**53
"""The largest (values + 1) * scale: a radius then stays below 2^60, which 64 bits hold, but for a probability below
2^-150 (docs/proofs/k-norm.md, Lemma 1)."""
LINF_VALUES = 8
"""The most values of L-infinity noise per lattice step of its scale: a proposal is kept with probability e^-4 or more.
"""
BLOCK_NORM_STEPS = 16
"""The least scale of a block norm over values squared: a proposal is kept with probability 0.1 / sqrt(values) or more
(Lemma 3)."""
MOST_REALS = 1 << 20
"""The most values of real-valued noise, for which the error of its decimals is proved to be below 2^-64 (Lemma 2)."""
_DIGIT = 1 << 32  # base in which a uniform number is compared with a quotient: one digit nearly always decides
_PLACES = 2048  # nodes of the quadrature for standard deviations, which steer nothing but reports and choices of noise


class Source(Protocol):
    """Random integers that are equally likely."""

    def below(self, limits: Integers) -> Integers:
        """For each limit an integer from 0 to limit - 1, all equally likely."""
        ...


class GeometricSource(Source, Protocol):
    """Random integers that noise is made of."""

    def geometric(self, size: int, scale: float) -> Integers:
        """Independent integers from 0 on, P(j) proportional to exp(-j / scale)."""
        ...


def check_fits(norm: Norm, size: int, scale: float) -> None:
    """Refuse, from public facts alone, noise that its lattice is too coarse for or that 64 bits cannot hold."""
    if norm == "l2":
        if not (size <= MOST_REALS and scale >= 1 and (size + 1) * scale <= MOST_SPREAD):
            raise PrivacyError(
                f"Rounded noise on {size} values with scale {scale:.3g} was asked for; it has at most 2^20 values, a "
                "scale of at least 1, and fits 64 bits. Use noise='laplace'."
            )
        return
    asked = f"Noise in one draw on {size} values with scale {scale:.3g} was asked for"
    if size > LINF_VALUES * scale or (norm == "blocks" and BLOCK_NORM_STEPS * size**2 > scale):
        finer = "far finer" if norm == "blocks" else "finer"
        raise PrivacyError(
            f"{asked}; it needs a lattice that is {finer} than its noise. Use noise='laplace', or a smaller epsilon."
        )
    if (size + 1) * scale > MOST_SPREAD:
        raise PrivacyError(
            f"{asked}, and it does not fit 64-bit integers. Use noise='laplace', a larger epsilon, or fewer columns."
        )


# -- L-infinity ------------------------------------------------------------------------------------


def linf_noise(size: int, scale: float, source: GeometricSource) -> Integers:
    """Integers b with P(b) proportional to exp(-max|b| / scale), exactly.

    A half-width R with P(R) proportional to (2R+1)^size exp(-R / scale), then a point of {-R..R}^size: every b is in
    the L-infinity balls with R >= max|b|, and the sum of exp(-R / scale) over them is proportional to exp(-max|b| /
    scale). R is proposed as the sum of size + 1 geometric numbers, which has weights C(R + size, size) exp(-R / scale),
    and kept with probability (2R+1) / (2R+2i), for i = 1..size, one after the other. A scale of at least 2^20 is
    rounded up to an integer.

    Guarantee: exact law, but for a probability below 2^-150 of a half-width beyond 2^60; docs/proofs/k-norm.md,
    Lemma 1.
    """
    check_fits("linf", size, scale)
    scale = float(math.ceil(scale)) if scale >= INTEGER_SCALE else scale
    while True:
        half = sum(source.geometric(size + 1, scale).tolist())
        kept = source.below(2 * (half + np.arange(1, size + 1, dtype=np.int64))) <= 2 * half
        if kept.all():
            return np.asarray(source.below(np.full(size, 2 * half + 1, dtype=np.int64)) - half, dtype=np.int64)


# -- block norm ------------------------------------------------------------------------------------


def block_norm_noise(
    widths: Sequence[int], scale: float, source: GeometricSource, *, any_scale: bool = False
) -> Integers:
    """Integers b with P(b) proportional to exp(-M / scale), exactly, M the largest sum of |b_i| over a block, among
    those whose blocks all have the same sum.

    Blocks of these widths stand one after the other. A width of 1 is a value that stands alone: the difference of a
    block of two, so that it is even or odd as the blocks' sum is. `any_scale` leaves out the check of the lattice: the
    probability of a radius beyond 2^60, and the time that it takes, are then not bounded.

    Let all values above zero add up to at most g in every block, those below to at most h, and all to g - h: b is in
    all such sets with the right g - h and g + h >= M, so that g and h are drawn with weights exp(-(g + h) / scale)
    times the number of points in all blocks, and then one of those points. g + h is proposed as a sum of geometric
    numbers, g as any number up to that, and both are kept with the probability that makes their weights right.

    Guarantee: exact law, but for a probability below 2^-150 of a radius beyond 2^60; docs/proofs/k-norm.md, Lemma 3.
    """
    if not any_scale:
        check_fits("blocks", sum(widths), scale)
        scale = float(math.ceil(scale)) if scale >= INTEGER_SCALE else scale
    frees = [max(width - 1, 1) for width in widths]
    size, widest = sum(frees), max(frees)
    largest = math.prod(math.comb(2 * free, free) ** many for free, many in Counter(frees).items())
    for both, up in _proposals(size, widest, scale, source):
        points = {free: points_between(free, up, both - up) for free in set(frees)}
        weight = math.prod(
            (sum(points[free]) * math.factorial(free) << free) ** many for free, many in Counter(frees).items()
        )
        if _bernoulli(weight * (both + 1), largest * math.perm(both + widest + size, size + 1), source):
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
    """How many integer points of so many values have positive ones that add up to at most `up` and negative ones
    to at most `down`, by how many are positive.

    i of them have C(up, i) choices of sizes, the others, which may be zero, C(down + free - i, free - i).
    """
    ups, downs = [1], [1]
    for i in range(free):
        ups.append(ups[-1] * (up - i) // (i + 1) if up > i else 0)
        downs.append(downs[-1] * (down + i + 1) // (i + 1))
    return [math.comb(free, i) * ups[i] * downs[free - i] for i in range(free + 1)]


def _block(width: int, up: int, down: int, points: list[int], source: Source) -> Integers:
    """One of the points of a block, all equally likely: which of all values but one are positive, and all sizes; the
    last one is what is left.
    """
    free = max(width - 1, 1)
    left = sum(points)
    for some in sorted(range(free + 1), key=points.__getitem__, reverse=True):
        if _bernoulli(points[some], left, source):
            break
        left -= points[some]
    places = _places(free, some, source)
    block = np.zeros(free + 1, dtype=np.int64)
    block[places[:some]] = np.diff(_distinct(some, up, source), prepend=0)
    block[places[some:]] = 1 - np.diff(_distinct(free - some, down + free - some, source), prepend=0)
    block[free] = up - down - block.sum()
    return block if width > 1 else block[:1] - block[1:]


def _places(width: int, some: int, source: Source) -> Integers:
    """All places, so many of them first, all choices of those equally likely: the beginning of a shuffle."""
    places = np.arange(width)
    if some < width:
        for i, step in enumerate(source.below(width - np.arange(some)).tolist()):
            places[[i, i + step]] = places[[i + step, i]]
    return places


def _distinct(some: int, limit: int, source: Source) -> Integers:
    """So many different numbers from 1 to the limit in ascending order, all choices equally likely."""
    found = np.zeros(0, dtype=np.int64)
    while len(set(found.tolist())) < some:
        found = source.below(np.full(some, limit, dtype=np.int64)) + 1
    return np.sort(found)


def _bernoulli(part: int, whole: int, source: Source) -> bool:
    """True with probability part / whole, exactly: a uniform number is compared with the quotient digit by digit, until
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


# -- standard deviations ---------------------------------------------------------------------------


UNIT_SD: dict[str, Callable[[int], float]] = {
    "laplace": lambda size: math.sqrt(2.0),
    "gaussian": lambda size: 1.0,
    "l2": lambda size: math.sqrt(size + 1),
    "linf": lambda size: math.sqrt((size + 1) * (size + 2) / 3),
}
"""The standard deviation of one of so many values whose noise has scale 1 and is one draw, on a fine lattice."""


@lru_cache(maxsize=256)
def block_norm_sds(widths: tuple[int, ...]) -> tuple[tuple[float, ...], float]:
    """The standard deviation of the noise, of scale 1 and on a fine lattice, in each block: of a value beside the
    others, in any direction in which a block's values add up to zero; and that of the sum which all blocks share.

    g + h is a Gamma number of size + 2, and its share of g has a density that is a product of volumes;
    docs/proofs/k-norm.md, Lemma 3.
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
