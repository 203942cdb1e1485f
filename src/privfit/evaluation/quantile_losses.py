"""Quantiles: beside what every regression has, the pinball loss, and the share of rows at or below their prediction."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from privfit.evaluation.cells import Estimate
from privfit.evaluation.regressions import Regression, SumFigures
from privfit.mechanisms.summaries.questions import NORMAL
from privfit.mechanisms.summaries.residuals import ResidualProblem

SQUARES_ABOVE = 3.0
"""Squares of residuals above zero, over the square of their mean: an exponential law has 2, a heavier one more. It
widens intervals by the sample's part alone. Chosen, not measured."""


@dataclass(frozen=True)
class QuantileLosses(Regression):
    """A regression of a quantile: its loss weighs residuals above by the quantile, and those below by the rest."""

    @property
    def names(self) -> tuple[str, ...]:
        """Those of a quantile first."""
        return ("pinball_loss", "share_below", *super().names)

    @property
    def problem(self) -> ResidualProblem:
        """Residuals with their sides."""
        return replace(super().problem, sided=True)

    def _figures(self, sums: SumFigures) -> dict[str, Estimate]:
        quantile = float(self.predictor.model.quantile)
        return {"pinball_loss": _loss(sums, quantile), "share_below": _share(sums), **sums.all}


def _loss(sums: SumFigures, quantile: float) -> Estimate:
    """The mean of what residuals above zero count, and those below.

    Tails are taken to be on the heavier side for the upper end, and on the lighter one for the value.
    """
    reach, rows = sums.sums.reach[0], sums.rows
    squares, sizes, above, below = (float(sums.sums.sums[place]) / rows for place in (0, 1, 4, 5))
    tail, (lighter, heavier) = sums.tail_of_sizes, sorted((quantile, 1 - quantile))
    value = reach * ((1 - quantile) * sizes + (2 * quantile - 1) * above) + lighter * tail.added
    noise = reach * sums.sd / rows * math.hypot(1 - quantile, 2 * quantile - 1)
    high_squares = min(SQUARES_ABOVE * above**2 / max(1 - below, 1 / rows), max(squares, 0.0))
    second = quantile**2 * high_squares + (1 - quantile) ** 2 * (squares - high_squares)
    sample = max(reach**2 * second - value**2, 0.0) / rows
    low, high = replace(tail, likely=heavier * tail.likely, most=heavier * tail.most).ends(
        value, NORMAL * math.sqrt(noise**2 + sample)
    )
    return Estimate(*(sums.unit * max(end, 0.0) for end in (value, low, high)))


def _share(sums: SumFigures) -> Estimate:
    """The share of rows whose target is at most what is predicted."""
    found = min(max(float(sums.sums.sums[5]) / sums.rows, 0.0), 1.0)
    sample = max(found * (1 - found), 1 / sums.rows) / sums.rows
    half = NORMAL * math.hypot(sums.sd / sums.rows, math.sqrt(sample))
    return Estimate(found, max(found - half, 0.0), min(found + half, 1.0))
