"""How private Gaussian noise is, exactly."""

from __future__ import annotations

import math
from collections.abc import Callable

from scipy.special import log_ndtr

_STEPS = 200
_PRECISION = 1e-9
_ROUNDING = 1e-13


def gaussian_delta(epsilon: float, shift: float) -> float:
    """The least delta with which a normal number of standard deviation 1 hides a shift, at this epsilon (which may be negative).

    P(N(shift, 1) > c) - e^epsilon P(N(0, 1) > c) at the best c (Balle and Wang 2018, Theorem 8).

    Guarantee: docs/proofs/gaussian.md, Lemma 2.
    """
    if shift <= 0:
        return max(0.0, -math.expm1(epsilon))
    upper = math.exp(float(log_ndtr(shift / 2 - epsilon / shift)))
    lower = math.exp(min(epsilon + float(log_ndtr(-shift / 2 - epsilon / shift)), 0.0))
    return min(1.0, max(0.0, upper - lower) + _ROUNDING * upper)


def least_scale(delta_at: Callable[[float], float], delta: float, start: float) -> float:
    """The least scale, up to a small share, at which a falling function of it is at most delta. On the safe side."""
    low = high = start
    while delta_at(high) > delta:
        low, high = high, 2 * high
        if not math.isfinite(high):
            raise ArithmeticError("No scale of noise is large enough.")
    while low > 1e-300 and delta_at(low) <= delta:
        low, high = low / 2, low
    for _ in range(_STEPS):
        middle = (low + high) / 2
        if high - low <= _PRECISION * high:
            break
        low, high = (low, middle) if delta_at(middle) <= delta else (middle, high)
    return high
