"""How long the coefficients of a quadratic stand-in for the logistic loss should be. Post-processing of released moments."""

from __future__ import annotations

import math
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from privfit.statistics import MomentValues

TAYLOR = 1 / 8
LONGEST = 3.0
_NODES, _MASSES = np.polynomial.hermite_e.hermegauss(41)
_MASSES = _MASSES / _MASSES.sum()


def chebyshev_curvature(interval: float) -> float:
    """The quadratic coefficient of the best uniform fit b0 + z/2 + b2 z^2 of log(1 + e^z) on [-interval, interval].

    With u = z^2 the even part log(2 cosh(sqrt(u) / 2)) is concave in u, and the best line through a concave function is parallel
    to its chord: b2 = log(cosh(interval / 2)) / interval^2.
    """
    half = interval / 2
    return (half + math.log1p(math.exp(-2 * half)) - math.log(2)) / interval**2


def logistic_length(
    weights: NDArray[np.float64], intercept: float, moments: MomentValues, centred: bool, interval: float | Literal["auto"]
) -> float:
    """The factor that takes Taylor's coefficients to the length that suits the scores they give.

    With a number, the curvature of the best quadratic on that interval. With "auto", as if the scores x'w were normal with the
    released mean and variance: then least squares and logistic regression point the same way, and their lengths differ by
    1 / (4 E[s'(z)]), s being the logistic function (Stein's identity). The equation for the length is solved by bisection.
    """
    if interval != "auto":
        return TAYLOR / chebyshev_curvature(float(interval))
    n = max(moments.n_rows, 1.0)
    offset = int(centred)
    matrix = moments.products[offset:, offset:]
    mean = float(moments.products[0, 1:] @ weights / n) if centred else 0.0
    variance = float(weights @ matrix @ weights / n) - mean**2
    if not (math.isfinite(mean) and math.isfinite(variance)):
        return 1.0
    scores = mean + intercept + math.sqrt(max(variance, 0.0)) * _NODES

    def excess(length: float) -> float:
        slope = expit(length * scores)
        return float(4 * length * (_MASSES @ (slope * (1 - slope)))) - 1.0

    if excess(LONGEST) < 0:
        return LONGEST
    low, high = 1.0, LONGEST
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if excess(middle) < 0 else (low, middle)
    return high
