"""The mean of a number of which quantiles were released before: they say where values are clipped, at no price."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray
from scipy.special import erfcx, ndtr, ndtri

from privfit.mechanisms.summaries.means import TAIL_INDEX, drawn_sums, mean_of, noises
from privfit.mechanisms.summaries.questions import Figures, Share
from privfit.privacy import Draws
from privfit.privacy.parts import Part
from privfit.statistics.quantiles import FineGrid

Integers = NDArray[np.int64]

LOWEST_HIGH, LOWEST = Fraction(3, 4), Fraction(1, 4)
"""The highest quantile must be at least the first of these, and the one beside it, by which the tail is judged, at
least the second. Chosen, not measured."""
MOST_ROWS_TIMES_EPSILON = 1_600.0
"""Below so many rows times epsilon of the mean, over `rows_per_person`, values are clipped by quantiles; beyond, bounds
that are bought hold enough. `privfit bench description`."""
REACH, AT_ROWS_TIMES_EPSILON = 1.5, 100.0
"""Values are clipped at this multiple of the highest quantile where there are so many rows times epsilon, and further
out in proportion to the root of these: noise against what lies beyond; `privfit bench description`."""
LEAST_REACH, MOST_REACH = 1.25, 4.0
"""That multiple is in this range; `privfit bench description`."""


@dataclass(frozen=True)
class MeanOfDescribed:
    """The mean of a number, of values that are clipped at a multiple of its highest released quantile.

    What lies beyond is judged by two quantiles: half of what a log-normal law through them has there, and half of what
    an exponential one has, is added.

    Guarantee: docs/proofs/description.md, Lemma 4.
    """

    grid: FineGrid
    quantiles: tuple[Fraction, ...]

    def suits(self, share: Share) -> bool:
        """Whether this is the way, by public facts: few rows times epsilon, and quantiles that say something of the
        tail of a number that is not negative.
        """
        few = share.n_rows > 1 and self._rows_times_epsilon(share) < MOST_ROWS_TIMES_EPSILON
        beside = [quantile for quantile in self.quantiles if LOWEST <= quantile < max(self.quantiles)]
        return few and self.grid.column.low >= 0.0 and max(self.quantiles) >= LOWEST_HIGH and bool(beside)

    def _rows_times_epsilon(self, share: Share) -> float:
        return share.n_rows * float(share.epsilon) / share.rows_per_person

    def parts(self, share: Share) -> tuple[Part, ...]:
        """The noise on the sums."""
        return noises(share)

    def draw(self, counts: Integers, places: list[int], share: Share, draws: Draws) -> list[int]:
        """The noisy sums, of values clipped as the levels say that were selected for the quantiles."""
        return drawn_sums(self.grid, self._bounds(places, share), counts, share, draws)

    def figures(self, sums: list[int], places: list[int], share: Share) -> Figures:
        """The mean, and what of it lies beyond the bounds."""
        bounds = self._bounds(places, share)
        return {"mean": mean_of(sums, noises(share), bounds, self._tail(places, bounds[1]), share)}

    def _bounds(self, places: list[int], share: Share) -> tuple[float, float]:
        """From the lower bound of the column; all of it, where the highest quantile is at the lower bound too."""
        column, (_, high) = self.grid.column, self._two(places)
        wanted = REACH * math.sqrt(self._rows_times_epsilon(share) / AT_ROWS_TIMES_EPSILON)
        reach = min(max(wanted, LEAST_REACH), MOST_REACH) * high
        return column.low, min(column.low + reach, column.high) if high > 0.0 else column.high

    def _two(self, places: list[int]) -> tuple[float, float]:
        """How far the quantile beside the highest one, and the highest one, lie above the lower bound: 0 for the lowest
        level, which holds it.
        """
        found = (self.grid.at(np.array(places, dtype=np.float64)) - self.grid.column.low) * (np.array(places) > 0)
        first, last = self._ranks
        return float(found[self.quantiles.index(first)]), float(found[self.quantiles.index(last)])

    @property
    def _ranks(self) -> tuple[Fraction, Fraction]:
        return min(quantile for quantile in self.quantiles if quantile >= LOWEST), max(self.quantiles)

    def _tail(self, places: list[int], end: float) -> tuple[float, float]:
        """What lies beyond an end, as a mean over all rows: how much is added, and how much is uncertain."""
        column, (first, last) = self.grid.column, self._two(places)
        if end >= column.high or last <= 0.0:
            return 0.0, 0.0
        near, far = end - column.low, column.high - column.low
        added = self._between(first, last, near, far) if first < last else 0.0
        beyond = float(1 - self._ranks[1]) / (TAIL_INDEX - 1.0)
        unsure = beyond * (near * (last / near) ** TAIL_INDEX - far * (last / far) ** TAIL_INDEX)
        return max(added, 0.0), 0.75 * unsure

    def _between(self, first: float, last: float, near: float, far: float) -> float:
        """How far values lie beyond one end on average, up to another one and counting those below as 0: the mean of
        what two laws say that go through both quantiles, or what the exponential one says.
        """
        below, above = (float(rank) for rank in self._ranks)
        scale = (last - first) / math.log((1.0 - below) / (1.0 - above))
        exponential = (1.0 - above) * scale * (math.exp((last - near) / scale) - math.exp((last - far) / scale))
        if first <= 0.0:
            return exponential
        spread = math.log(last / first) / float(ndtri(above) - ndtri(below))
        centre = math.log(last) - spread * float(ndtri(above))
        normal = clipped_mean(centre, spread, far) - clipped_mean(centre, spread, near)
        return (exponential + normal) / 2


def clipped_mean(centre: float, spread: float, end: float) -> float:
    """The mean of a log-normal law of which what lies beyond an end counts as the end: at most the end, however wide
    the law is. Its mean without an end may be more than a float holds.
    """
    z = (centre - math.log(end)) / spread
    if z + spread > 0.0:
        below = end * math.exp(-(z**2) / 2) * float(erfcx((z + spread) / math.sqrt(2))) / 2
    else:
        below = math.exp(centre + spread**2 / 2) * float(ndtr(-z - spread))
    return below + end * float(ndtr(z))
