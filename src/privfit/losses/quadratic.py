"""Losses of degree two in the linear predictor: all that the functional mechanism needs to know of a model."""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True)
class QuadraticLoss:
    """The loss curvature * z^2 - (slope * t + offset) * z of a row, with z = x'w and t the target in [-1, 1].

    For a category with two classes t is -1 or 1. Constant terms do not change the minimum and are never released. The
    minimiser over all rows solves 2 * curvature * X'X w = X'(slope * t + offset).

    Parameters
    ----------
    curvature : float
        Coefficient of z^2.
    slope : float
        Coefficient of -t z.
    offset : float, default=0.0
        Coefficient of -z.
    printed : tuple of float or None, default=None
        For calibration="paper": a, b and c of the printed bound 2 (a d^2 + b d + c); None derives it from the other
        numbers.

    See Also
    --------
    FunctionalMechanism : Releases what fits such a loss.
    privfit.losses.truncated_logistic : The logistic loss, cut after its second-order term.

    Examples
    --------
    >>> from privfit.losses import SQUARED
    >>> SQUARED.curvature, SQUARED.slope
    (1.0, 2.0)
    """

    curvature: float
    slope: float
    offset: float = 0.0
    printed: tuple[float, float, float] | None = None
    """For `calibration="paper"`: a, b, c of the printed bound 2 (a d^2 + b d + c); None derives it from the other
    numbers.
    """

    def __post_init__(self) -> None:
        for name in ("curvature", "slope", "offset"):
            if not math.isfinite(getattr(self, name)):
                raise ValueError(
                    f"QuadraticLoss was given {name}={getattr(self, name)!r}; it is a finite number. Write one."
                )
        if self.curvature <= 0:
            raise ValueError(
                f"QuadraticLoss was given curvature={self.curvature!r}; a loss with a minimum curves upward. Use a "
                "positive number."
            )
        if self.slope == 0:
            raise ValueError("QuadraticLoss was given slope=0, and the target would not matter. Use another number.")

    def printed_sensitivity(self, d: int) -> float:
        """Return the sensitivity that the functional-mechanism paper prints for d columns (line 1 of its Algorithm 1).

        Parameters
        ----------
        d : int
            Number of columns.

        Returns
        -------
        float
            The printed sensitivity.
        """
        a, b, c = self.printed or (self.curvature, abs(self.slope) + abs(self.offset), 0.0)
        return 2 * (a * d * d + b * d + c)


SQUARED = QuadraticLoss(curvature=1.0, slope=2.0, printed=(1.0, 2.0, 1.0))
"""(t - z)^2 without its constant t^2."""


def truncated_logistic(curvature: float = 1 / 8) -> QuadraticLoss:
    """The logistic loss log(1 + e^z) - y z, with y = (1 + t) / 2, cut after its second-order term.

    Parameters
    ----------
    curvature : float, default=0.125
        Coefficient of z^2. 1/8 is that of the Taylor expansion at zero, as in section 5.3 of the functional-mechanism
        paper.

    Returns
    -------
    QuadraticLoss
        The loss.

    See Also
    --------
    privfit.losses.logistic : Polynomials of higher degree, or fitted to an interval.

    Examples
    --------
    >>> from privfit.losses import truncated_logistic
    >>> truncated_logistic().curvature
    0.125
    """
    return QuadraticLoss(curvature=curvature, slope=0.5, printed=(1 / 8, 3 / 2, 0.0))
