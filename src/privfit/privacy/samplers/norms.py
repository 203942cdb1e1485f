"""Noise in the shape of a cube or a ball: densities that fall with the largest entry, or with the length, of the noise.

One draw moves all values together. Where a row can move many values by about as much each, a cube wastes less noise
than independent Laplace noise, which protects against the sum of all moves.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator
from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal, localcontext
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from privfit.privacy.errors import PrivacyError

Integers = NDArray[np.int64]

_MOST = (1 << 63) - 1
_MOST_CUBE = 2.0**53
_MOST_SCALE = 1 << 53
_MOST_COINS = 200
FINE = 2.0**20
_UNIFORM_BYTES = 50
_DIGITS = Context(prec=150, Emin=MIN_EMIN, Emax=MAX_EMAX)


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


def cube(size: int, scale: float, source: GeometricSource) -> Integers:
    """Whole numbers b with P(b) proportional to exp(-max|b| / scale), exactly.

    A half-width R with P(R) proportional to (2R+1)^size exp(-R / scale), then a point of {-R..R}^size: every b is in
    the cubes with R >= max|b|, and the sum of exp(-R / scale) over them is proportional to exp(-max|b| / scale). R is
    proposed as the sum of size + 1 geometric numbers, which has weights C(R + size, size) exp(-R / scale), and kept
    with probability (2R+1) / (2R+2i), for i = 1..size, one after the other. A scale of at least 2^20 is rounded up to a
    whole number.

    Guarantee: exact law, but for a chance below 2^-150 of a half-width beyond 2^60; docs/proofs/shapes.md, Lemma 1.
    """
    check_cube(size, scale)
    scale = whole_scale(scale)
    while True:
        half = sum(source.geometric(size + 1, scale).tolist())
        kept = source.below(2 * (half + np.arange(1, size + 1, dtype=np.int64))) <= 2 * half
        if kept.all():
            return np.asarray(source.below(np.full(size, 2 * half + 1, dtype=np.int64)) - half, dtype=np.int64)


def whole_scale(scale: float) -> float:
    """A large scale rounded up to an integer, for which geometric numbers are quick to draw; a small one as it is."""
    return float(math.ceil(scale)) if scale >= FINE else scale


def check_cube(size: int, scale: float) -> None:
    """Refuse, from public facts alone, a cube, or octahedra, that 64 bits cannot hold or that a lattice is too coarse
    for.
    """
    if size > 8 * scale:
        raise PrivacyError(
            f"Noise in one piece on {size} values with scale {scale:.3g} was asked for; it needs a lattice that is "
            "finer than its noise. "
            "Use noise='laplace', or a smaller epsilon."
        )
    if (size + 1) * scale > _MOST_CUBE:
        raise PrivacyError(
            f"Noise in one piece on {size} values with scale {scale:.3g} was asked for, and it does not fit 64-bit "
            "whole numbers. "
            "Use noise='laplace', a larger epsilon, or fewer columns."
        )


def check_ball(size: int, scale: float) -> None:
    """Refuse, from public facts alone, a ball that the decimals were not made for."""
    if not (size <= 1 << 20 and scale >= 1 and (size + 1) * scale <= _MOST_CUBE):
        raise PrivacyError(
            f"A ball of {size} values with scale {scale:.3g} was asked for; it has at most 2^20 values, a scale of at "
            "least 1, and fits 64 bits. "
            "Use noise='laplace'."
        )


def ball(values: Integers, scale: float) -> Integers:
    """The values plus noise b with density proportional to exp(-|b| / scale), |b| the length of b, rounded to whole
    numbers.

    The noise is a Gamma length times a direction of normal numbers, in decimals of 150 digits made from 400 secret bits
    each. Rounding is post-processing of the real-valued mechanism, which the digits follow but for a chance below
    2^-64.

    Guarantee: docs/proofs/shapes.md, Lemma 2.
    """
    check_ball(values.size, scale)
    flat = [int(value) for value in values.ravel()]
    with localcontext(_DIGITS):
        normals = _normals(len(flat))
        length = sum((normal * normal for normal in normals), Decimal(0)).sqrt()
        product = Decimal(1)
        for _ in flat:
            product *= _uniform()
        stretch = -product.ln() * Decimal(scale) / length
        noisy = [
            int((value + stretch * normal).to_integral_value()) for value, normal in zip(flat, normals, strict=True)
        ]
    held = [min(max(value, -_MOST), _MOST) for value in noisy]  # to 64 bits, as OpenDP does
    return np.array(held, dtype=np.int64).reshape(values.shape)


def rounded_normal(values: Integers, scale: float) -> Integers:
    """The values plus independent normal noise of standard deviation `scale`, rounded to whole numbers.

    In decimals of 150 digits, as `ball`: rounding is post-processing of the real-valued mechanism, which the digits
    follow but for a chance below 2^-64.

    Guarantee: docs/proofs/shapes.md, Lemma 2.
    """
    check_ball(values.size, scale)
    flat = [int(value) for value in values.ravel()]
    with localcontext(_DIGITS):
        stretch = Decimal(scale)
        noisy = [
            int((value + stretch * normal).to_integral_value())
            for value, normal in zip(flat, _normals(len(flat)), strict=True)
        ]
    held = [min(max(value, -_MOST), _MOST) for value in noisy]
    return np.array(held, dtype=np.int64).reshape(values.shape)


def _normals(size: int) -> list[Decimal]:
    """Independent standard normal numbers, by Marsaglia's polar method."""
    pairs = _pairs_in_the_disc()
    normals: list[Decimal] = []
    while len(normals) < size:
        x, y, square = next(pairs)
        factor = (-2 * square.ln() / square).sqrt()
        normals += [x * factor, y * factor]
    return normals[:size]


def _pairs_in_the_disc() -> Iterator[tuple[Decimal, Decimal, Decimal]]:
    while True:
        x, y = 2 * _uniform() - 1, 2 * _uniform() - 1
        square = x * x + y * y
        if 0 < square < 1:
            yield x, y, square


def _uniform() -> Decimal:
    """A secret number between 0 and 1: the middle of one of 2^400 equal parts."""
    return (2 * Decimal(int.from_bytes(os.urandom(_UNIFORM_BYTES))) + 1) / _PARTS


with localcontext(_DIGITS):
    _PARTS = Decimal(2) ** (8 * _UNIFORM_BYTES + 1)


def secret_below(limits: Integers) -> Integers:
    """Uniform whole numbers below each limit from the operating system's entropy, by rejection: exact."""
    if (limits < 1).any():
        raise ValueError("There is no whole number from 0 to below a limit of less than 1.")
    bounds = limits.astype(np.uint64)
    found = np.zeros(limits.shape, dtype=np.uint64)
    open_ = np.ones(limits.shape, dtype=bool)
    whole = np.uint64(1 << 63)  # 63 bits: whole // bound is exact
    while open_.any():
        count = int(open_.sum())
        tried = np.frombuffer(os.urandom(8 * count), dtype=np.uint64) >> np.uint64(1)
        bound = bounds[open_]
        fits = tried < whole // bound * bound
        found[open_] = np.where(fits, tried % bound, 0)
        open_[open_] = ~fits
    return found.astype(np.int64)


def secret_geometric(size: int, scale: float, laplace: Callable[[Integers, float], Integers]) -> Integers:
    """Independent geometric numbers, P(j) proportional to exp(-j / scale).

    For a whole-number scale by Algorithm 2 of Canonne, Kamath and Steinke (2020), all at once: a uniform number u below
    the scale, kept with probability exp(-u / scale), plus the scale times the number of coins of probability 1/e that
    come up in a row. For other scales from two-sided numbers: k stays if it is not negative and becomes -k - 1 if it
    is; both halves have the law wanted.
    """
    whole = int(scale)
    if whole != scale or not 1 <= whole <= _MOST_SCALE:
        drawn = laplace(np.zeros(size, dtype=np.int64), scale)
        return np.asarray(np.where(drawn >= 0, drawn, -drawn - 1), dtype=np.int64)
    low = np.zeros(size, dtype=np.int64)
    open_ = np.arange(size)
    while len(open_):
        low[open_] = secret_below(np.full(len(open_), whole, dtype=np.int64))
        open_ = open_[~_exp_coins(low[open_], whole)]
    high = np.zeros(size, dtype=np.int64)
    open_ = np.arange(size)
    while len(open_):
        open_ = open_[_exp_coins(np.full(len(open_), whole, dtype=np.int64), whole)]
        high[open_] += 1
    return low + whole * high


def _exp_coins(parts: Integers, whole: int) -> NDArray[np.bool_]:
    """Coins that come up with probability exp(-parts / whole), exactly: coins of probability parts / (k whole), k = 1,
    2, ..., are thrown until
    one fails; the number thrown is odd with that probability."""
    odd = np.ones(len(parts), dtype=bool)
    open_ = np.arange(len(parts))
    for k in range(1, _MOST_COINS):
        open_ = open_[secret_below(np.full(len(open_), whole * k, dtype=np.int64)) < parts[open_]]
        if not len(open_):
            break
        odd[open_] = k % 2 == 0
    return odd
