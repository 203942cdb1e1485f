"""The derivatives of a stopped hazard, read from tables: the same bits wherever a row stands in memory."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from privfit.losses.convex import ConvexLoss
from privfit.losses.stopped_hazard import MOST_CURVATURE, StoppedHazard, time_steps
from privfit.losses.tabulated import CELLS_TO_ONE, REACH

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class HazardResponse:
    """A function from 0 to 1 of rows with a cumulative hazard, from two tables by the log of that: one for people
    without an event and one for those with one.

    Guarantee: docs/proofs/cox-objective.md, Lemma 4.
    """

    log_hazards: Floats
    tables: Floats

    def __call__(self, scores: Floats, target: Floats) -> Floats:
        """The answer of every row."""
        logs = np.clip(np.nan_to_num(scores + self.log_hazards[time_steps(target)]), -REACH, REACH)
        cells = np.minimum(np.floor((logs + REACH) * CELLS_TO_ONE).astype(np.intp), self.tables.shape[1] - 1)
        return np.asarray(self.tables[(target > 0).astype(np.intp), cells])


@dataclass(frozen=True)
class HazardTables:
    """The curvature over the largest, and the squared slope, whose largest is 1."""

    curvature: HazardResponse
    square: HazardResponse
    most_curvature: float = MOST_CURVATURE

    @classmethod
    def of(cls, loss: ConvexLoss) -> HazardTables:
        """The tables of this loss, a stopped hazard."""
        own = getattr(loss.slope, "__self__", None)
        assert isinstance(own, StoppedHazard)
        middles = (np.arange(int(2 * REACH * CELLS_TO_ONE)) + 0.5) / CELLS_TO_ONE - REACH
        scores = middles - own.log_hazards[0]  # at which a row that left at the beginning has these logs
        curvatures = np.stack([loss.curvature(scores, sign) / MOST_CURVATURE for sign in (-0.5, 0.5)])
        squares = np.stack([loss.slope(scores, sign) ** 2 for sign in (-0.5, 0.5)])
        curved, square = (HazardResponse(own.log_hazards, np.clip(each, 0.0, 1.0)) for each in (curvatures, squares))
        return cls(curved, square)
