"""Principal components: the share of the variance of rows that they explain."""

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

EXPLAINED = "explained_variance_ratio"
FOR_REST = 2
"""The weight in the price of the mean distance that components leave, beside 1 for that from the means: it is the
smaller one, and the ratio has its error alone. No command varies it."""


@dataclass(frozen=True)
class Components(Subject):
    """Directions through the means of a table, both of which are released."""

    predictor: Predictor
    resolution: float

    @property
    def names(self) -> tuple[str, ...]:
        """One figure."""
        return (EXPLAINED,)

    @property
    def columns(self) -> tuple[Numeric, ...]:
        """Squared distances over what a corner of the bounds can have; larger ones count as that."""
        return Numeric("rest", 0.0, 1.0), Numeric("whole", 0.0, 1.0)

    def compute(self, batch: Batch) -> Batch:
        """The squared distance of every row from the plane of the components, and from the means."""
        if not len(batch[0]):
            return [np.empty(0), np.empty(0)]
        found = self.predictor.predicted(batch, _squared)
        held = np.where(np.isnan(found), 1.0, np.clip(found, 0.0, 1.0))
        return [held[:, 0], held[:, 1]]

    def questions(self) -> Asked:
        """Two means."""
        rest, whole = (Mean(fine_grid(column, self.resolution)) for column in self.columns)
        return (rest, FOR_REST), (whole, 1)

    def found(self, answer: Answer) -> Found:
        """The share; its ends are those of both means at once, and a cell says no more than that a row is in it."""
        rest, whole = (one["mean"] for one in answer.value)
        unseen = float(fine_grid(self.columns[0], self.resolution).values[0])
        lowest, highest = (max(float(end), 0.0) for end in (rest.low[0] - unseen, rest.high[0] + unseen))
        least, most = float(whole.low[0]), float(whole.high[0])
        if least <= 0:
            return Found({EXPLAINED: Estimate(float("nan"), 0.0, 1.0)})
        value = 1 - max(float(rest.value[0]), 0.0) / max(float(whole.value[0]), least)
        ends = 1 - highest / least, 1 - lowest / most
        return Found({EXPLAINED: Estimate(*(min(max(one, 0.0), 1.0) for one in (value, *ends)))})


def _squared(model: Any, table: DecodedTable) -> NDArray[np.float64]:
    found: NDArray[np.float64] = model.squared_distances(table)
    return found
