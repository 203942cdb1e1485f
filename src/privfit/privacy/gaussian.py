"""How private Gaussian noise is, exactly."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_ndtr

Floats = NDArray[np.float64]

_STEPS = 200  # halvings of a bracket at most: a float has no more digits
_PRECISION = 1e-9  # relative width at which a search for a scale stops: at most so much more noise than needed
_ROUNDING = 1e-13  # relative error of log_ndtr and of the difference that is taken, rounded up: on the safe side


def gaussian_delta(epsilon: float, shift: float) -> float:
    """The least delta with which a normal number of standard deviation 1 hides a shift, at this epsilon (which may be
    negative).

    P(N(shift, 1) > c) - e^epsilon P(N(0, 1) > c) at the best c (Balle and Wang 2018, Theorem 8).

    Guarantee: docs/proofs/gaussian.md, Lemma 2.
    """
    return math.exp(float(log_gaussian_deltas(np.array(epsilon), np.array(shift))))


def log_gaussian_deltas(epsilon: Floats, shift: Floats) -> Floats:
    """The logarithm of the same, for arrays: deltas too small for a float may be summed in great numbers.

    Guarantee: docs/proofs/gaussian.md, Lemma 2.
    """
    some = np.where(shift > 0, shift, 1.0)
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):  # a tiny shift is as good as none
        upper = log_ndtr(some / 2 - epsilon / some)
        lower = epsilon + log_ndtr(-some / 2 - epsilon / some)
        share = -np.expm1(np.minimum(lower - upper, 0.0)) + _ROUNDING * (1 + np.abs(epsilon))
        moved = np.where(np.isneginf(upper), -np.inf, np.minimum(upper + np.log(share), 0.0))
        unmoved = np.log(np.maximum(0.0, -np.expm1(np.minimum(epsilon, 0.0))))
    return np.asarray(np.where(shift > 0, moved, unmoved), dtype=np.float64)


def least_scale(delta_at: Callable[[float], float], delta: float, start: float) -> float:
    """The least scale, up to a small share, at which a falling function of it is at most delta. On the safe side."""
    low = high = start
    while not delta_at(high) <= delta:  # nor what is no number
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
