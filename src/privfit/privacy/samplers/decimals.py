"""Real-valued noise, rounded to integers: K-norm noise in the L2 norm, and normal noise.

Computed in decimals that are long enough for the rounded result to be that of real arithmetic, but for a probability
below 2^-64.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal, localcontext

import numpy as np
from numpy.typing import NDArray

from privfit.privacy.samplers.norms import check_fits

Integers = NDArray[np.int64]

_MOST = (1 << 63) - 1  # results are held at the limits of 64 bits, as OpenDP does
_UNIFORM_BYTES = 50  # 400 secret bits for each uniform number: the proof's error terms stay below 2^-120 an entry
_DIGITS = Context(prec=150, Emin=MIN_EMIN, Emax=MAX_EMAX)  # 2^-490: enough for 210 bits lost on the way (k-norm.md)


def l2_noise(values: Integers, scale: float) -> Integers:
    """The values plus noise b with density proportional to exp(-|b| / scale), |b| the length of b, rounded to integers.

    The noise is a Gamma length times a direction of normal numbers. Rounding is post-processing of the real-valued
    mechanism, which the digits follow but for a probability below 2^-64.

    Guarantee: docs/proofs/k-norm.md, Lemma 2.
    """
    check_fits("l2", values.size, scale)
    with localcontext(_DIGITS):
        normals = _normals(values.size)
        length = sum((normal * normal for normal in normals), Decimal(0)).sqrt()
        product = Decimal(1)
        for _ in normals:
            product *= _uniform()
        return _rounded(values, -product.ln() * Decimal(scale) / length, normals)


def rounded_normal(values: Integers, scale: float) -> Integers:
    """The values plus independent normal noise of standard deviation `scale`, rounded to integers.

    Guarantee: docs/proofs/k-norm.md, Lemma 2.
    """
    check_fits("l2", values.size, scale)
    with localcontext(_DIGITS):
        return _rounded(values, Decimal(scale), _normals(values.size))


def _rounded(values: Integers, stretch: Decimal, normals: list[Decimal]) -> Integers:
    """The values plus stretched normal numbers, rounded and held at the limits of 64 bits."""
    flat = [int(value) for value in values.ravel()]
    noisy = [int((value + stretch * normal).to_integral_value()) for value, normal in zip(flat, normals, strict=True)]
    return np.array([min(max(value, -_MOST), _MOST) for value in noisy], dtype=np.int64).reshape(values.shape)


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
