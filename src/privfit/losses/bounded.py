"""Ready-made convex losses with bounded slopes: hinge, Huber and tapered Huber.

Their functions are methods or stand in this file, so that losses can be pickled.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from privfit.losses.checks import is_positive
from privfit.losses.convex import ConvexLoss, ready_made


@dataclass(frozen=True)
class _SmoothHinge:
    width: float

    @ready_made
    @np.errstate(all="ignore")
    def slope(self, z: Any, y: Any) -> Any:
        return -y * np.clip((1 + self.width - y * z) / (2 * self.width), 0.0, 1.0)

    @ready_made
    @np.errstate(all="ignore")
    def curvature(self, z: Any, y: Any) -> Any:
        return np.where(np.abs(1 - y * z) <= self.width, 1 / (2 * self.width), 0.0)

    def value(self, z: Any, y: Any) -> Any:
        short = 1 - y * z
        return np.where(
            short > self.width, short, np.where(short < -self.width, 0.0, (short + self.width) ** 2 / (4 * self.width))
        )


def smooth_hinge(width: float = 0.5) -> ConvexLoss:
    """The hinge loss max(0, 1 - y z) with its corner rounded over y z from 1 - width to 1 + width.

    Huber's loss for classes. Chaudhuri, Monteleoni and Sarwate (JMLR 2011) use width 0.5.

    Parameters
    ----------
    width : float, default=0.5
        How much of the corner is rounded, to either side.

    Returns
    -------
    ConvexLoss
        The loss.

    See Also
    --------
    hinge : Hardly any rounding, for output perturbation.
    LinearSVC : Fits it.

    Examples
    --------
    >>> from privfit.losses import smooth_hinge
    >>> smooth_hinge(0.5).most_curvature
    1.0
    """
    if not is_positive(width) or float(width) > 1e6:
        raise ValueError(f"The smooth hinge was given width={width!r}; it is a positive number. Use 0.5 if in doubt.")
    own = _SmoothHinge(float(width))
    return ConvexLoss(
        own.slope,
        own.curvature,
        1.0,
        1 / (2 * own.width),
        None,
        own.value,
        one_sided=True,
        link="slopes",
        name=f"hinge loss rounded over {width:g}",
        excess_at_zero=float(own.value(0.0, 1.0)),
    )


def hinge() -> ConvexLoss:
    """The hinge loss max(0, 1 - y z), with its corner rounded over a thousandth.

    The rounding lets a gradient certify a minimum. The loss states no bound of its curvature, only the smoothness that
    a solver needs: use output perturbation.

    Returns
    -------
    ConvexLoss
        The loss.

    See Also
    --------
    smooth_hinge : A wider rounding, for objective perturbation.

    Examples
    --------
    >>> from privfit.losses import hinge
    >>> hinge().most_slope, hinge().most_curvature
    (1.0, None)
    """
    rounded = smooth_hinge(1e-3)
    return replace(rounded, most_curvature=None, smoothness=rounded.most_curvature, name="hinge loss")


@dataclass(frozen=True)
class _Robust:
    threshold: float

    @ready_made
    @np.errstate(all="ignore")
    def slope(self, z: Any, y: Any) -> Any:
        return np.clip(z - y, -self.threshold, self.threshold)

    @ready_made
    @np.errstate(all="ignore")
    def curvature(self, z: Any, y: Any) -> Any:
        return np.where(np.abs(z - y) <= self.threshold, 1.0, 0.0)

    def value(self, z: Any, y: Any) -> Any:
        size = np.abs(y - z)
        return np.where(size <= self.threshold, size**2 / 2, self.threshold * (size - self.threshold / 2))


def robust(threshold: float) -> ConvexLoss:
    """The loss of Huber for numbers, in the units of the target.

    Half the square of y - z up to the threshold, linear beyond.

    Parameters
    ----------
    threshold : float
        Where the loss becomes linear.

    Returns
    -------
    ConvexLoss
        The loss.

    See Also
    --------
    privfit.losses.huber : The same loss as a polynomial.
    ERM : Fits it.

    Examples
    --------
    >>> from privfit.losses import robust
    >>> robust(2.0).most_slope
    2.0
    """
    if not is_positive(threshold):
        raise ValueError(
            f"The robust loss was given threshold={threshold!r}; it is a positive number in the target's units. Use "
            "the size of a usual residual."
        )
    own = _Robust(float(threshold))
    return ConvexLoss(
        own.slope,
        own.curvature,
        own.threshold,
        1.0,
        value=own.value,
        name=f"Huber loss at {threshold:g}",
        least_at_target=True,
    )


@dataclass(frozen=True)
class _TaperedHuber:
    """The loss of a residual z - (y - centre) / threshold: its slope is the residual up to `knee`, then nears 1."""

    taper: float
    centre: float
    threshold: float

    @property
    def knee(self) -> float:
        return 1 - 1 / self.taper

    def _residual(self, z: Any, y: Any) -> tuple[Any, Any, Any]:
        """The residual, its size up to the knee, and what it has beyond."""
        residual = z - (y - self.centre) / self.threshold
        size = np.abs(residual)
        return residual, np.minimum(size, self.knee), np.maximum(size - self.knee, 0.0)

    @ready_made
    @np.errstate(all="ignore")
    def slope(self, z: Any, y: Any) -> Any:
        residual, within, beyond = self._residual(z, y)
        return np.copysign(np.minimum(within - np.expm1(-self.taper * beyond) / self.taper, 1.0), residual)

    @ready_made
    @np.errstate(all="ignore")
    def curvature(self, z: Any, y: Any) -> Any:
        return np.exp(-self.taper * self._residual(z, y)[2])

    def value(self, z: Any, y: Any) -> Any:
        _, within, beyond = self._residual(z, y)
        return within**2 / 2 + beyond + np.expm1(-self.taper * beyond) / self.taper**2


def tapered_huber(taper: float = 2.0, centre: float = 0.0, threshold: float = 1.0) -> ConvexLoss:
    """A loss of numbers in [-1, 1]: half the squared residual where that is small, linear where it is large.

    The target is measured from `centre` in units of `threshold`, and so is the predictor. With t = `taper` the slope is
    the residual up to 1 - 1 / t and then nears 1 such that the curvature is at most t (1 - |slope|) everywhere: it is
    self-bounded, so that it costs nothing when the noise is calibrated.

    Parameters
    ----------
    taper : float, default=2.0
        How quickly the curvature falls beyond the quadratic part; at least 1.
    centre : float, default=0.0
        The value that the target is measured from.
    threshold : float, default=1.0
        The unit that it is measured in: residuals beyond have about the same gradient.

    Returns
    -------
    ConvexLoss
        The loss.

    See Also
    --------
    robust : Huber's loss, whose curvature is not self-bounded.
    ObjectiveRegression : Fits it at a threshold that is chosen privately.

    Examples
    --------
    >>> from privfit.losses import tapered_huber
    >>> loss = tapered_huber(2.0)
    >>> loss.most_slope, loss.most_curvature, loss.taper
    (1.0, 1.0, 2.0)
    """
    if not (is_positive(taper) and is_positive(threshold) and taper >= 1 and abs(centre) <= 1):
        raise ValueError(
            f"The tapered Huber loss was given taper={taper!r}, centre={centre!r} and threshold={threshold!r}; it "
            "needs taper at least 1, a centre between -1 and 1 and a threshold above 0. Use 2, 0 and 1 if in doubt."
        )
    own = _TaperedHuber(float(taper), float(centre), float(threshold))
    return ConvexLoss(
        own.slope,
        own.curvature,
        1.0,
        1.0,
        own.taper,
        own.value,
        name="tapered Huber loss",
        excess_at_zero=2 / own.threshold,  # slopes of at most 1, on targets at most 2 from the centre
    )
