"""Clusters: the mean squared distance of rows from the nearest centre."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privfit.evaluation.cells import Estimate
from privfit.evaluation.predictor import Predictor
from privfit.evaluation.subject import Asked, Found, Subject
from privfit.mechanisms.summaries.means import Mean
from privfit.schema import Numeric
from privfit.statistics.quantiles import fine_grid
from privfit.summaries.release import Answer
from privfit.tables import Batch, DecodedTable

MEAN = "mean_squared_distance"


@dataclass(frozen=True)
class Clusters(Subject):
    """Centres of clusters, in columns that are scaled to [-1, 1]."""

    predictor: Predictor
    resolution: float

    @property
    def names(self) -> tuple[str, ...]:
        """One figure."""
        return (MEAN,)

    @property
    def columns(self) -> tuple[Numeric, ...]:
        """A squared distance is at most that of a corner of the bounds; larger ones count as that."""
        return (Numeric(MEAN, 0.0, 4.0 * len(self.predictor.schema.features)),)

    def compute(self, batch: Batch) -> Batch:
        """The squared distance of every row from the nearest centre."""
        if not len(batch[0]):
            return [np.empty(0)]
        found = self.predictor.predicted(batch, _squared)
        return [np.where(np.isnan(found), self.columns[0].high, found)]

    def questions(self) -> Asked:
        """A mean."""
        return ((Mean(fine_grid(self.columns[0], self.resolution)), 1),)

    def found(self, answer: Answer) -> Found:
        """The figure."""
        own = answer.value[0]["mean"]
        return Found({MEAN: Estimate(float(own.value[0]), float(own.low[0]), float(own.high[0]))})


def _squared(model: Any, table: DecodedTable) -> NDArray[np.float64]:
    return np.asarray(model.transform(table).min(axis=1) ** 2)
