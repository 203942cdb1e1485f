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
"""The part of the same that ends are further out by at which a tail is lighter than that;
papers/experiments/evaluation.py."""
WORST_TAIL, WORST_STEEPER, LEAST_WORST, MOST_WORST = 1.2, 18.0, 2.0, 8.0
"""The most that squares are taken to have beyond a range, where a tail makes errors larger: over the squared range and
the share of rows outside, as much at a ratio of squares to sizes of 1.5, more where that is larger, within limits. A
Pareto law of index 3 has 2, one of 2.6 has 3. Larger values hold more tails and say less about light ones;
papers/experiments/evaluation.py."""
USUAL_SHARE, FALLING = 0.0267, 0.75
"""The share of rows outside at which that holds (10,000 rows at epsilon 0.1), and the power of smaller ones that it
falls with, because tails are steeper further out; papers/experiments/evaluation.py."""
TOGETHER = 0.7
"""The part of it that R2 may be off by: residuals and target mostly have their tails in the same rows;
papers/experiments/evaluation.py."""
SIZES_OF_WORST = 0.25
"""What sizes have beyond a range then, over what squares have; papers/experiments/evaluation.py."""


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
        counted = len(sums.sums) % 2 == 1  # the number of rows is the last sum where it is private
        rows = float(sums.sums[-1]) if counted else float(answer.n_rows or sums.n_rows)
        return Found(self._figures(SumFigures(sums, noise.sd, max(rows, 1.0), self.unit)))

    def _figures(self, sums: SumFigures) -> dict[str, Estimate]:
        """What follows from the sums."""
        return sums.all


def _prediction(model: Any, table: DecodedTable) -> Floats:
    return np.asarray(model.predict(table), dtype=np.float64)


@dataclass(frozen=True)
class Tail:
    """What lies beyond a range, as a mean over all rows: what is likely, and the most that it is taken to be."""

    likely: float
    most: float

    @property
    def added(self) -> float:
        """What is added to a sum."""
        return self.likely / 2

    @property
    def less(self) -> float:
        """By how much less it may be."""
        return UNSURE * self.likely

    @property
    def more(self) -> float:
        """By how much more."""
        return max(self.most - self.added, 0.0)

    def ends(self, value: float, half: float) -> tuple[float, float]:
        """The ends of an interval whose halves are so wide without a tail."""
        return value - math.hypot(half, self.less), value + math.hypot(half, self.more)


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
        reach = self.sums.reach[place]
        part = NORMAL_EXCESS + STEEPER * (self._ratio - math.pi / 2)
        excess = reach / WIDER * min(max(part, LEAST_EXCESS), MOST_EXCESS)
        outside = math.exp(-(reach - reach / WIDER) / excess)
        return self.sums.cut_off[place] / self.sums.n_rows * outside, excess

    def _most_beyond(self, place: int) -> float:
        """The most that squares are taken to have beyond a range, as a mean over all rows."""
        reach = self.sums.reach[place]
        if reach >= REACH:
            return 0.0
        share = self.sums.cut_off[place] / self.sums.n_rows
        worst = min(max(WORST_TAIL + WORST_STEEPER * (self._ratio - 1.5), LEAST_WORST), MOST_WORST)
        return float(share * (reach / WIDER) ** 2 * worst * min((share / USUAL_SHARE) ** FALLING, 1.0))

    @property
    def _ratio(self) -> float:
        """Squares to sizes of residuals: 1.57 for a normal law, more where tails are heavy."""
        sizes = max(float(self.sums.sums[1]) / self.rows, 1e-3)
        return float(self.sums.sums[0]) / self.rows / sizes**2

    @property
    def all(self) -> dict[str, Estimate]:
        """R2, root mean squared error, mean absolute error."""
        first, second = self.sums.reach
        noise = self.sd / self.rows
        tails = Tail(self._beyond(0), self._most_beyond(0)), Tail(self._beyond(1), self._most_beyond(1))
        squares = self.sums.sums[0] / self.rows * first**2 + tails[0].added
        sizes = self.sums.sums[1] / self.rows * first
        spread = self.sums.sums[2] / self.rows * second**2 + tails[1].added
        mean = 2 * self.sums.sums[3] / self.rows * second
        errors = noise * first**2, math.hypot(noise * second**2, 4 * abs(mean) * noise * second)
        total = spread - mean**2
        heavy = max(3.0, 0.5 * first**2 / max(squares, first**2 / 1e4))
        return {
            "r2": self._r2(squares, total, errors, tails, heavy),
            "rmse": self._rmse(squares, errors[0], tails[0], heavy),
            "mae": self._mae(sizes, squares, noise * first, self.tail_of_sizes),
        }

    @property
    def tail_of_sizes(self) -> Tail:
        """What sizes of residuals have beyond their range."""
        most = self._most_beyond(0) * WIDER / self.sums.reach[0] * SIZES_OF_WORST
        return Tail(math.prod(self._tail(0)) if self._beyond(0) else 0.0, most)

    def _r2(
        self, squares: float, total: float, errors: tuple[float, float], tails: tuple[Tail, Tail], heavy: float
    ) -> Estimate:
        if total <= CLEAR * errors[1]:
            return Estimate(math.nan, -math.inf, 1.0)
        left, (own, all_) = max(squares, 0.0) / total, tails
        sample = 4 * max(1 - left, 0.05) * left**2 / self.rows * heavy / 3
        half = NORMAL * math.sqrt((errors[0] / total) ** 2 + (left * errors[1] / total) ** 2 + sample)
        below = TOGETHER * own.more / total, left * all_.less / total
        above = own.less / total, TOGETHER * left * all_.more / total
        value = 1 - squares / total
        ends = value - math.hypot(half, *below), value + math.hypot(half, *above)
        return Estimate(min(value, 1.0), min(ends[0], 1.0), min(ends[1], 1.0))

    def _rmse(self, squares: float, error: float, tail: Tail, heavy: float) -> Estimate:
        sample = max(squares, 0.0) * math.sqrt((heavy - 1) / self.rows)
        low, high = tail.ends(squares, NORMAL * math.hypot(error, sample))
        return Estimate(*(self.unit * math.sqrt(max(end, 0.0)) for end in (squares, low, high)))

    def _mae(self, sizes: float, squares: float, error: float, tail: Tail) -> Estimate:
        value = sizes + tail.added
        sample = max(squares - value**2, 0.0) / self.rows
        low, high = tail.ends(value, NORMAL * math.sqrt(error**2 + sample))
        return Estimate(*(self.unit * max(end, 0.0) for end in (value, low, high)))
