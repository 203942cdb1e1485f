"""How long the coefficients of a quadratic stand-in for the logistic loss should be.

Post-processing of released moments.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from privfit.statistics import MomentValues

TAYLOR = 1 / 8
"""The second-order coefficient of log(1 + e^z) at zero."""
USUAL_INTERVAL = 4.0
"""The interval of the Chebyshev fit where none is given: a wider one fits the loss less well near zero. Chosen, not
measured."""
LONGEST_PREDICTOR = 2.0
"""The largest length of the predictor that is assumed: best on Adult, docs/decisions.md."""
LARGEST_INTERCEPT = 50.0
"""Intercepts are sought within it: beyond, probabilities are 0 or 1 in floats."""
RAREST = 1e-3
"""Shares of a class are held this far from 0 and 1, so that the intercept is finite."""
_NODES, _MASSES = np.polynomial.hermite_e.hermegauss(41)
"""Gauss-Hermite quadrature for the mean over a normal predictor: exact to far below any noise."""
_MASSES = _MASSES / _MASSES.sum()


def chebyshev_curvature(interval: float) -> float:
    """The quadratic coefficient of the best uniform fit b0 + z/2 + b2 z^2 of log(1 + e^z) on [-interval, interval].

    With u = z^2 the even part log(2 cosh(sqrt(u) / 2)) is concave in u, and the best line through a concave function is
    parallel to its chord: b2 = log(cosh(interval / 2)) / interval^2.
    """
    half = interval / 2
    return (half + math.log1p(math.exp(-2 * half)) - math.log(2)) / interval**2


def calibrate(
    weights: NDArray[np.float64],
    intercept: float,
    target_mean: float,
    moments: MomentValues,
    centred: bool,
    interval: float | Literal["auto"],
) -> tuple[float, float]:
    """The factor that takes Taylor's weights to the length that suits the scores they give, and the intercept that goes
    with it.

    With a number, the curvature of the best quadratic on that interval; the intercept grows with the weights, so that
    no predicted class changes. With "auto", as if the scores x'w were normal with the released mean and variance: then
    least squares and logistic regression point the same way, their lengths differ by 1 / (4 E[s'(z)]), s being the
    logistic function (Stein's identity), and the intercept is the one at which the mean probability is the released
    share of the second class. The length stops at 2: real scores have shorter tails than normal ones.
    """
    n = moments.n_rows
    if interval != "auto" or not (math.isfinite(n) and n >= 1):
        length = TAYLOR / chebyshev_curvature(USUAL_INTERVAL if interval == "auto" else float(interval))
        return length, length * intercept
    if not centred:
        deviation = math.sqrt(max(float(weights @ moments.products @ weights) / n, 0.0))
        return _length(deviation, lambda length: 0.0), 0.0
    means = moments.products[0, 1:] / n
    mean = float(means @ weights)
    deviation = math.sqrt(max(float(weights @ moments.products[1:, 1:] @ weights) / n - mean**2, 0.0))
    share = min(max((target_mean + 1) / 2, RAREST), 1 - RAREST)

    def centre(length: float) -> float:
        return _bisect(
            lambda middle: float(_MASSES @ expit(middle + length * deviation * _NODES)) - share,
            -LARGEST_INTERCEPT,
            LARGEST_INTERCEPT,
        )

    length = _length(deviation, centre)
    return length, centre(length) - length * mean


def _length(deviation: float, centre: Callable[[float], float]) -> float:
    """The length at which 4 * length * E[s'(z)] is 1, or the longest allowed."""

    def excess(length: float) -> float:
        probability = expit(centre(length) + length * deviation * _NODES)
        return float(4 * length * (_MASSES @ (probability * (1 - probability)))) - 1.0

    return LONGEST_PREDICTOR if excess(LONGEST_PREDICTOR) < 0 else _bisect(excess, 0.0, LONGEST_PREDICTOR)


def _bisect(rising: Callable[[float], float], low: float, high: float) -> float:
    """Where a rising function crosses zero."""
    for _ in range(50):
        middle = (low + high) / 2
        low, high = (middle, high) if rising(middle) < 0 else (low, middle)
    return (low + high) / 2
