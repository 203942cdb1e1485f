"""Regressions: R2, root mean squared error and mean absolute error, from sums of clipped residuals."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privfit.evaluation.cells import CLEAR, Estimate
from privfit.evaluation.predictor import Predictor
from privfit.evaluation.subject import Found, Subject
from privfit.mechanisms.base import AnyMechanism
from privfit.mechanisms.summaries.questions import NORMAL
from privfit.mechanisms.summaries.residuals import WIDER, ResidualProblem, ResidualSums, Sums
from privfit.privacy.parts import KNorm
from privfit.schema import Category, Numeric
from privfit.statistics.quantiles import FineGrid, fine_grid
from privfit.summaries.release import Answer
from privfit.tables import Batch, DecodedTable

Floats = NDArray[np.float64]

REACH = 1e6
"""What the width of the target's bounds counts as, so that grids have steps of equal factors down to a millionth."""
RESOLUTION = 64.0
"""Points of a grid per factor of two: 1% apart."""
NORMAL_EXCESS, STEEPER = 0.17, 0.6
"""Values beyond a range are taken to lie above it by a part of it on average: this much where squares are to sizes as
in a normal law, and more the larger squares are. Half of what they have beyond the widened range is added;
papers/experiments/evaluation.py."""
LEAST_EXCESS, MOST_EXCESS = 0.12, 0.7
"""Ends of that part. No command varies them."""
UNSURE = 0.75
"""The part of the same that intervals are wider by; papers/experiments/evaluation.py."""


@dataclass(frozen=True)
class Regression(Subject):
    """A regression, by its residuals and the target's distance from a public number."""

    predictor: Predictor

    @property
    def names(self) -> tuple[str, ...]:
        """All that sums give."""
        return ("r2", "rmse", "mae")

    @property
    def columns(self) -> tuple[Numeric, ...]:
        """Both in units of the width of the target's bounds."""
        return Numeric("residual", -REACH, REACH), Numeric("distance", -REACH, REACH)

    @property
    def mechanism(self) -> AnyMechanism:
        """Ranges and sums."""
        return ResidualSums()

    @property
    def problem(self) -> ResidualProblem:
        """Both grids."""
        return ResidualProblem(*self._grids)

    @cached_property
    def _grids(self) -> tuple[FineGrid, FineGrid]:
        residuals, target = self.columns
        return fine_grid(residuals, RESOLUTION), fine_grid(target, RESOLUTION)

    @property
    def _target(self) -> Numeric:
        target = self.predictor.schema.target
        assert isinstance(target, Numeric)
        return target

    @cached_property
    def centre(self) -> float:
        """What the model predicts in the middle of all columns: a public number near the target's mean."""
        row: Batch = [
            np.array([0], dtype=np.int32) if isinstance(column, Category) else np.array(column.between(1))
            for column in self.predictor.schema.features
        ]
        target = self._target
        (found,) = self.predictor.predicted(row, _prediction).tolist()
        return min(max(found, target.low), target.high) if math.isfinite(found) else target.low / 2 + target.high / 2

    @property
    def unit(self) -> float:
        """What 1 in a computed column stands for."""
        return (self._target.high - self._target.low) / REACH

    def compute(self, batch: Batch) -> Batch:
        """The residual and the distance of every row, its target clipped as in a fit."""
        if not len(batch[-1]):
            return [np.empty(0), np.empty(0)]
        target = self.predictor.numbers(batch)
        with np.errstate(all="ignore"):
            residuals = (target - self.predictor.predicted(batch, _prediction)) / self.unit
            distances = (target - self.centre) / self.unit
        return [np.where(np.isnan(residuals), REACH, residuals), distances]

    def found(self, answer: Answer) -> Found:
        """The figures, of the sums."""
        noise = answer.event.parts[-1]
        assert isinstance(noise, KNorm)
        sums: Sums = answer.value
        rows = float(sums.sums[4]) if len(sums.sums) > 4 else float(answer.n_rows or sums.n_rows)
        return Found(SumFigures(sums, noise.sd, max(rows, 1.0), self.unit).all)


def _prediction(model: Any, table: DecodedTable) -> Floats:
    return np.asarray(model.predict(table), dtype=np.float64)


@dataclass(frozen=True)
class SumFigures:
    """Figures of noisy sums; `sd` is the standard deviation of the noise of each."""

    sums: Sums
    sd: float
    rows: float
    unit: float

    def _beyond(self, place: int) -> float:
        """What squares are likely to have beyond a range, as a mean over all rows; in computed units."""
        reach = self.sums.reach[place]
        if reach >= REACH:
            return 0.0
        share, excess = self._tail(place)
        return share * 2 * excess * (reach + excess)

    def _tail(self, place: int) -> tuple[float, float]:
        """The share of rows beyond a widened range, and by how much they are on average."""
        reach, sizes = self.sums.reach[place], max(float(self.sums.sums[1]) / self.rows, 1e-3)
        ratio = float(self.sums.sums[0]) / self.rows / sizes**2
        part = NORMAL_EXCESS + STEEPER * (ratio - math.pi / 2)
        excess = reach / WIDER * min(max(part, LEAST_EXCESS), MOST_EXCESS)
        outside = math.exp(-(reach - reach / WIDER) / excess)
        return self.sums.cut_off[place] / self.sums.n_rows * outside, excess

    @property
    def all(self) -> dict[str, Estimate]:
        """R2, root mean squared error, mean absolute error."""
        first, second = self.sums.reach
        noise = self.sd / self.rows
        tails = self._beyond(0), self._beyond(1)
        squares = self.sums.sums[0] / self.rows * first**2 + tails[0] / 2
        sizes = self.sums.sums[1] / self.rows * first
        spread = self.sums.sums[2] / self.rows * second**2 + tails[1] / 2
        mean = 2 * self.sums.sums[3] / self.rows * second
        errors = noise * first**2, math.hypot(noise * second**2, 4 * abs(mean) * noise * second)
        total = spread - mean**2
        heavy = max(3.0, 0.5 * first**2 / max(squares, first**2 / 1e4))
        return {
            "r2": self._r2(squares, total, errors, tails, heavy),
            "rmse": self._rmse(squares, errors[0], tails[0], heavy),
            "mae": self._mae(sizes, squares, noise * first, math.prod(self._tail(0)) if tails[0] else 0.0),
        }

    def _r2(
        self, squares: float, total: float, errors: tuple[float, float], tails: tuple[float, float], heavy: float
    ) -> Estimate:
        if total <= CLEAR * errors[1]:
            return Estimate(math.nan, -math.inf, 1.0)
        left = max(squares, 0.0) / total
        sample = 4 * max(1 - left, 0.05) * left**2 / self.rows * heavy / 3
        error = math.sqrt((errors[0] / total) ** 2 + (left * errors[1] / total) ** 2 + sample)
        half = NORMAL * error + UNSURE * (tails[0] + left * tails[1]) / total
        value = 1 - squares / total
        return Estimate(min(value, 1.0), min(value - half, 1.0), min(value + half, 1.0))

    def _rmse(self, squares: float, error: float, tail: float, heavy: float) -> Estimate:
        sample = max(squares, 0.0) * math.sqrt((heavy - 1) / self.rows)
        half = NORMAL * math.hypot(error, sample) + UNSURE * tail
        ends = (max(end, 0.0) for end in (squares, squares - half, squares + half))
        return Estimate(*(self.unit * math.sqrt(end) for end in ends))

    def _mae(self, sizes: float, squares: float, error: float, tail: float) -> Estimate:
        sample = max(squares - sizes**2, 0.0) / self.rows
        value = sizes + tail / 2
        half = NORMAL * math.sqrt(error**2 + sample) + UNSURE * tail
        return Estimate(*(self.unit * max(end, 0.0) for end in (value, value - half, value + half)))
