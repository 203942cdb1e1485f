"""Slopes and curvatures of ready-made losses, read from tables: the same bits wherever a row stands in memory.

An exponential can differ in its last bit with the place of a row in a vector, and a sum of what is rounded down would
then depend on the order of rows. Differences, products with signs, and reading a table cannot.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privfit.losses.amounts import CappedMean
from privfit.losses.convex import ConvexLoss, is_ready_made

Floats = NDArray[np.float64]

CELLS_TO_ONE = 128
"""Cells of a table to 1 on its axis. Derivatives are taken in the middle of a cell: with losses whose corners are
rounded over an eighth of their unit, that is 16 cells, and an error of at most 3%. Chosen, not measured."""
REACH = 16.0
"""Tables go so far to both sides; beyond, the last cell counts: what is bounded changes by less than 1e-6 there."""


@dataclass(frozen=True)
class Axis:
    """What a table is looked up by: the margin y z of a class, the residual z - (y - centre) / unit of a number, or the
    predictor z itself.
    """

    kind: str
    centre: float = 0.0
    unit: float = 1.0

    def __call__(self, scores: Floats, target: Floats) -> Floats:
        """The places of rows on the axis."""
        if self.kind == "margin":
            return scores * target
        return scores - (target - self.centre) / self.unit if self.kind == "residual" else scores


@dataclass(frozen=True)
class Response:
    """A function of rows from 0 to 1, from a table: what stands there, or with an `amount` the square of the difference
    between that and the amount (y - zero) / unit, cut to [0, 1]; over `most`, and at most 1.

    Guarantee: docs/proofs/bought-moments.md, Lemma 1.
    """

    axis: Axis
    table: Floats
    amount: tuple[float, float] | None = None
    most: float = 1.0

    def __call__(self, scores: Floats, target: Floats) -> Floats:
        """The answer of every row."""
        places = np.clip(np.nan_to_num(self.axis(scores, target)), -REACH, REACH)
        cells = np.minimum(np.floor((places + REACH) * CELLS_TO_ONE).astype(np.intp), len(self.table) - 1)
        found = self.table[cells]
        if self.amount is None:
            return found if self.most == 1 else np.asarray(np.minimum(found / self.most, 1.0))
        zero, unit = self.amount
        apart = found - np.clip((target - zero) / unit, 0.0, 1.0)
        return np.asarray(np.minimum(apart * apart / self.most, 1.0), dtype=np.float64)


@dataclass(frozen=True)
class TabulatedLoss:
    """Both derivatives of a loss: its curvature over the largest, and its squared slope over that of the largest
    slope.
    """

    curvature: Response
    most_curvature: float
    square: Response
    most_square: float

    @classmethod
    def of(cls, loss: ConvexLoss) -> TabulatedLoss | None:
        """The tables of a ready-made loss; None for another one, or one without bounded curvature."""
        curved, steep = loss.most_curvature, loss.most_slope
        if curved is None or steep is None or not is_ready_made(loss.slope):
            return None
        axis, at, amount = _structure(loss)
        middles = (np.arange(int(2 * REACH * CELLS_TO_ONE)) + 0.5) / CELLS_TO_ONE - REACH
        slopes = np.nan_to_num(loss.slope(middles, at)) / steep
        curvatures = np.clip(np.nan_to_num(loss.curvature(middles, at)) / curved, 0.0, 1.0)
        if amount is None:
            slopes = np.clip(slopes**2, 0.0, 1.0)
        return cls(Response(axis, curvatures), curved, Response(axis, slopes, amount), steep**2)

    def up_to(self, largest: float, curvature: bool = False) -> TabulatedLoss:
        """The same with squared slopes cut at the square of this share of the largest, and with curvatures cut at this
        if asked for: less noise where larger ones are rare.
        """
        square, answers = min(largest, 1.0) ** 2, self.curvature
        most = min(self.most_curvature, largest) if curvature else self.most_curvature
        if most < self.most_curvature:
            answers = replace(answers, table=np.minimum(answers.table * (self.most_curvature / most), 1.0))
        return TabulatedLoss(answers, most, replace(self.square, most=square), self.most_square * square)


def tables_of(loss: ConvexLoss) -> TabulatedLoss:
    """The tables of a loss that is known to have some."""
    found = TabulatedLoss.of(loss)
    assert found is not None
    return found


def _structure(loss: ConvexLoss) -> tuple[Axis, float, tuple[float, float] | None]:
    """The axis on which a loss is a function of one number; the target at which it is that function; and where the
    slope is a mean less an amount, the zero and the unit of amounts.
    """
    own: Any = getattr(loss.slope, "__self__", None)
    if loss.one_sided:
        return Axis("margin"), 1.0, None
    if isinstance(own, CappedMean):
        return Axis("predictor"), own.zero, (own.zero, own.cap)
    if own is None:  # a proportion
        return Axis("predictor"), -1.0, (-1.0, 2.0)
    centre, unit = float(getattr(own, "centre", 0.0)), float(getattr(own, "threshold", 1.0))
    if not hasattr(own, "centre"):  # Huber's loss, in the units of the target
        return Axis("residual"), 0.0, None
    return Axis("residual", centre, unit), centre, None
