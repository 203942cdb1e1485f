"""Losses of degree two in the linear predictor: all that the functional mechanism needs to know of a model."""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True)
class QuadraticLoss:
    """A row's loss  curvature * z^2 - (slope * t + offset) * z,  where z = x'w and t is the target scaled to [-1, 1].

    For a category with two classes t is -1 or 1. Constant terms do not move the minimum and are never released.
    The minimiser over all rows solves  2 * curvature * X'X w = X'(slope * t + offset).
    """

    curvature: float
    slope: float
    offset: float = 0.0
    printed: tuple[float, float, float] | None = None
    """For `calibration="paper"`: a, b, c of the printed bound 2 (a d^2 + b d + c); None derives it from the other numbers."""

    def __post_init__(self) -> None:
        for name in ("curvature", "slope", "offset"):
            if not math.isfinite(getattr(self, name)):
                raise ValueError(f"QuadraticLoss was given {name}={getattr(self, name)!r}; it is a finite number. Write one.")
        if self.curvature <= 0:
            raise ValueError(
                f"QuadraticLoss was given curvature={self.curvature!r}; a loss with a minimum curves upward. Use a positive number."
            )
        if self.slope == 0:
            raise ValueError("QuadraticLoss was given slope=0, and the target would not matter. Use another number.")

    def printed_sensitivity(self, d: int) -> float:
        """The sensitivity that the functional-mechanism paper prints for d columns (line 1 of its Algorithm 1)."""
        a, b, c = self.printed or (self.curvature, abs(self.slope) + abs(self.offset), 0.0)
        return 2 * (a * d * d + b * d + c)


SQUARED = QuadraticLoss(curvature=1.0, slope=2.0, printed=(1.0, 2.0, 1.0))
"""(t - z)^2 without its constant t^2."""


def truncated_logistic(curvature: float = 1 / 8) -> QuadraticLoss:
    """log(1 + e^z) - y z  with y = (1 + t) / 2, cut after its second-order term.

    The curvature 1/8 is Taylor's at zero, as in the functional-mechanism paper (section 5.3).
    """
    return QuadraticLoss(curvature=curvature, slope=0.5, printed=(1 / 8, 3 / 2, 0.0))
