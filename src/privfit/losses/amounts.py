"""Losses of amounts and proportions with bounded slopes: a log mean that levels off at a cap, and a logit mean."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import expit

from privfit.losses.checks import is_positive
from privfit.losses.convex import ConvexLoss, ready_made

START = 1.5
"""At a predictor of 0 the mean is the cap over e to this power: about where means are below a 98% point. Another value
moves the intercept, which is penalised by hardly more than privacy needs. Chosen, not measured."""


@dataclass(frozen=True)
class CappedMean:
    """The loss of a predictor x = z - start with the mean m = e^x: its slope is (1 + m^-k)^(-1/k) less the amount, cut
    to [0, 1], k the sharpness. Amounts are (y - zero) / cap.
    """

    zero: float
    cap: float
    start: float
    sharpness: float

    def _turn(self, z: Any) -> Any:
        return self.sharpness * (z - self.start)

    @ready_made
    @np.errstate(all="ignore")
    def slope(self, z: Any, y: Any) -> Any:
        return expit(self._turn(z)) ** (1 / self.sharpness) - np.clip((y - self.zero) / self.cap, 0.0, 1.0)

    @ready_made
    @np.errstate(all="ignore")
    def curvature(self, z: Any, y: Any) -> Any:
        turn = self._turn(z)
        return expit(turn) ** (1 / self.sharpness) * expit(-turn) + 0 * y


def capped_mean(
    zero: float = -1.0,
    cap: float = 1.0,
    *,
    sharpness: float = 2.0,
    start: float = START,
    most_start: float | None = None,
) -> ConvexLoss:
    """The loss of a mean e^z, for amounts in [-1, 1], that levels off at a cap.

    Poisson's loss has the slope e^z - y, which has no bound. Here a mean m counts as (1 + m^-k)^(-1/k) and the amount
    is cut at 1, in units of the cap: slopes are at most 1, and the curvature is self-bounded with the sharpness k.
    Where means and amounts are small beside the cap it is Poisson's loss; for k = 1 it is the logistic loss.

    Parameters
    ----------
    zero : float, default=-1.0
        The value of the target that stands for an amount of 0.
    cap : float, default=1.0
        The amount at which means level off and amounts are cut.
    sharpness : float, default=2.0
        How suddenly means level off, at least 1: sharper has less bias and needs more ridge.
    start : float, default=1.5
        At a predictor of 0 the mean is the cap over e to this power.
    most_start : float or None, default=None
        The largest size of `start` that the stated excess at zero is to hold for; that of `start` if None.

    Returns
    -------
    ConvexLoss
        The loss.

    See Also
    --------
    PoissonRegressor : Fits it at a cap that is chosen privately.

    Examples
    --------
    >>> from privfit.losses import capped_mean
    >>> loss = capped_mean(sharpness=2.0)
    >>> loss.most_slope, loss.taper, round(loss.most_curvature, 4)
    (1.0, 2.0, 0.3849)
    """
    finite = all(math.isfinite(number) for number in (zero, start, most_start or 0.0))
    if not (finite and is_positive(cap) and is_positive(sharpness) and sharpness >= 1):
        raise ValueError(
            f"The capped mean was given zero={zero!r}, cap={cap!r}, sharpness={sharpness!r} and start={start!r}; it "
            "needs a cap above 0, a sharpness of at least 1, and finite numbers. Use -1, 1, 2 and 1.5 if in doubt."
        )
    own = CappedMean(float(zero), float(cap), float(start), float(sharpness))
    k = own.sharpness
    return ConvexLoss(
        own.slope,
        own.curvature,
        1.0,
        k / (k + 1) * (k + 1) ** (-1 / k) * (1 + 1e-12),
        k,
        name="capped mean",
        excess_at_zero=max(abs(start), most_start or 0.0) + 1.0,
    )


@ready_made
@np.errstate(all="ignore")
def proportion_slope(z: Any, y: Any) -> Any:
    """The slope of a logistic loss whose target is a proportion: the probability less (1 + y) / 2."""
    return expit(z) - (1 + y) / 2


@ready_made
@np.errstate(all="ignore")
def proportion_curvature(z: Any, y: Any) -> Any:
    """Its curvature."""
    return expit(z) * expit(-z) + 0 * y


def _proportion_value(z: Any, y: Any) -> Any:
    return np.logaddexp(0.0, z) - (1 + y) / 2 * z


PROPORTION = ConvexLoss(
    slope=proportion_slope,
    curvature=proportion_curvature,
    most_slope=1.0,
    most_curvature=0.25,
    taper=1.0,
    value=_proportion_value,
    name="logistic loss of a proportion",
    excess_at_zero=math.log(2.0),
)
"""The logistic loss of a proportion (1 + y) / 2 of ones, for y in [-1, 1]: that of classes at both ends."""
