"""The loss of a quantile with its corner rounded: bounded slopes, self-bounded curvature."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import expit

from privfit.losses.checks import is_positive
from privfit.losses.convex import ConvexLoss, ready_made


@dataclass(frozen=True)
class SmoothPinball:
    """The loss of a residual r = z - (y - centre) / threshold: its slope is 1 / (1 + e^(-r / width)) - quantile."""

    quantile: float
    width: float
    centre: float
    threshold: float

    def _residual(self, z: Any, y: Any) -> Any:
        """The residual, in units of the width."""
        return (z - (y - self.centre) / self.threshold) / self.width

    @ready_made
    @np.errstate(all="ignore")
    def slope(self, z: Any, y: Any) -> Any:
        return expit(self._residual(z, y)) - self.quantile

    @ready_made
    @np.errstate(all="ignore")
    def curvature(self, z: Any, y: Any) -> Any:
        residual = self._residual(z, y)
        return expit(residual) * expit(-residual) / self.width

    def value(self, z: Any, y: Any) -> Any:
        residual = self._residual(z, y)
        return self.width * (np.logaddexp(0.0, residual) - self.quantile * residual)


def smooth_pinball(
    quantile: float = 0.5, width: float = 0.25, centre: float = 0.0, threshold: float = 1.0
) -> ConvexLoss:
    """The loss of a quantile, for numbers in [-1, 1], with its corner rounded over a width.

    Without rounding it is the pinball loss of a residual r = z - y: (1 - quantile) r above 0 and -quantile r below. The
    target is measured from `centre` in units of `threshold`, and so is the predictor. The curvature is self-bounded.

    Parameters
    ----------
    quantile : float, default=0.5
        The quantile, above 0 and below 1.
    width : float, default=0.25
        The scale of the rounding, in units of the threshold.
    centre : float, default=0.0
        The value that the target is measured from.
    threshold : float, default=1.0
        The unit that it is measured in.

    Returns
    -------
    ConvexLoss
        The loss.

    See Also
    --------
    tapered_huber : The loss of a mean, with bounded slopes.
    QuantileRegressor : Fits it at a width that is chosen privately.

    Examples
    --------
    >>> from privfit.losses import smooth_pinball
    >>> loss = smooth_pinball(0.75, width=0.5)
    >>> loss.most_slope, loss.most_curvature, loss.taper
    (0.75, 0.5, 2.0)
    """
    sizes = all(map(is_positive, (quantile, width, threshold)))
    if not (sizes and quantile < 1 and abs(centre) <= 1):
        raise ValueError(
            f"The smooth pinball loss was given quantile={quantile!r}, width={width!r}, centre={centre!r} and "
            f"threshold={threshold!r}; it needs a quantile above 0 and below 1, a width and a threshold above 0 and a "
            "centre between -1 and 1. Use 0.5, 0.25, 0 and 1 if in doubt."
        )
    own = SmoothPinball(float(quantile), float(width), float(centre), float(threshold))
    steepest = max(own.quantile, 1 - own.quantile)
    lowest = 2 / own.threshold + own.width * abs(math.log(own.quantile) - math.log1p(-own.quantile))
    return ConvexLoss(
        own.slope,
        own.curvature,
        steepest,
        1 / (4 * own.width),
        1 / own.width,
        own.value,
        name="smooth pinball loss",
        excess_at_zero=steepest * lowest,  # the minimum is at most so far from 0
    )
