"""The mean of a number: bounds that hold most rows are selected first, then clipped values are added up."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from privfit.mechanisms.summaries.questions import NORMAL, Figures, Interval, Question, Share
from privfit.privacy import Draws
from privfit.privacy.parts import Laplace, Part, Selection
from privfit.schema import Block
from privfit.statistics.quantiles import STEP, FineGrid, clipped_values
from privfit.statistics.ranges import Ranges, octave_price, range_scores, tolerated

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

FOR_BOUNDS, FOR_SQUARES, FOR_COUNT = Fraction(25, 100), Fraction(10, 100), Fraction(15, 100)
"""Parts of the price: bounds, the sum of squares that the interval needs, and, where it is private, the number of rows;
the rest goes to the sum. `privfit bench description`."""
HELD = 0.9995
"""The share of rows that bounds shall hold, before they are widened; noise mostly makes them hold less."""
WIDER = 2.0
"""Bounds are widened by this factor: more noise against fewer values that are clipped; `privfit bench description`."""
TAIL_INDEX = 3.0
"""Beyond the selected bound values are taken to fall off as a Pareto law of this index. Half of what it has beyond the
widened bound is added to the mean, and three quarters widen the interval; `privfit bench description`."""
UNIT = 1 << 10
"""Steps of a score per row."""


@dataclass(frozen=True)
class Mean(Question):
    """The mean of one number, of values that are clipped to bounds that are bought on the way.

    Guarantee: docs/proofs/description.md, Lemma 4.
    """

    grid: FineGrid

    @property
    def _candidates(self) -> Ranges:
        return self.grid.ranges()

    def block(self, start: int) -> Block:
        return self.grid.block(start)

    def parts(self, share: Share) -> tuple[Part, ...]:
        bounds = Selection(
            rule="permute-and-flip",
            scale=share.scale(UNIT, FOR_BOUNDS),
            sensitivity=UNIT * share.rows_per_person,
            epsilon=float(share.epsilon * FOR_BOUNDS),
            purpose="bounds",
        )
        return bounds, *noises(share, FOR_BOUNDS)

    def draw(self, counts: Integers, share: Share, draws: Draws) -> tuple[int, list[int]]:
        place = draws.select(self._scores(counts, share))
        return place, drawn_sums(self.grid, self._bounds(place), counts, share, draws)

    def _allowed(self, share: Share) -> float:
        return tolerated(HELD, share.n_rows, share.scale(UNIT, FOR_BOUNDS) / UNIT)

    def _scores(self, counts: Integers, share: Share) -> list[int]:
        candidates, allowed = self._candidates, self._allowed(share)
        price = octave_price(allowed, share.n_rows, float(candidates.octaves.max()))
        return range_scores(candidates, counts, allowed, price, UNIT)

    def _bounds(self, place: int) -> tuple[float, float]:
        """The range that was selected, widened at the ends that moved."""
        low, high = self._candidates.ends(place)
        more = (WIDER - 1.0) * (high - low)
        column = self.grid.column
        if column.low < 0.0 < column.high:
            return max(column.low, low - more / 2), min(column.high, high + more / 2)
        return (low, min(column.high, high + more)) if column.low >= 0.0 else (max(column.low, low - more), high)

    def _tail(self, place: int, share: Share) -> tuple[float, float]:
        """What lies beyond the widened bounds, as a mean over all rows: how much is added to the mean, and how much is
        uncertain.
        """
        low, high = self._candidates.ends(place)
        column, (first, last) = self.grid.column, self._bounds(place)
        beyond = self._allowed(share) / share.n_rows * (high - low) * WIDER ** (1.0 - TAIL_INDEX) / (TAIL_INDEX - 1.0)
        below, above = beyond * (first > column.low), beyond * (last < column.high)
        if column.low < 0.0 < column.high:
            return 0.0, 0.75 * (below + above) / 2
        return ((above if column.low >= 0.0 else -below) / 2, 0.75 * (above if column.low >= 0.0 else below))

    def figures(self, drawn: tuple[int, list[int]], share: Share) -> Figures:
        place, sums = drawn
        return {"mean": mean_of(sums, noises(share, FOR_BOUNDS), self._bounds(place), self._tail(place, share), share)}


# -- sums of clipped values, and what follows from them ------------------------------------------------


def noises(share: Share, aside: Fraction = Fraction(0)) -> tuple[Laplace, ...]:
    """The noise on the sum of clipped values, on that of their squares and, where it is private, on the number of rows;
    a part of the price is spent on something else.
    """
    private_count = share.adjacency == "add-remove"
    for_sum = 1 - aside - FOR_SQUARES - (FOR_COUNT if private_count else 0)
    total = share.laplace(1, STEP, unit=STEP, part=for_sum)
    squares = share.laplace(1, STEP, unit=STEP, part=FOR_SQUARES, purpose="intervals")
    return (total, squares, share.laplace(1, 1, part=FOR_COUNT, purpose="number of rows"))[: 2 + private_count]


def drawn_sums(grid: FineGrid, bounds: tuple[float, float], counts: Integers, share: Share, draws: Draws) -> list[int]:
    """The noisy sums of the values of a column, clipped to these bounds and scaled to [0, STEP]."""
    values = clipped_values(grid, *bounds).astype(object)
    held = counts.astype(object)
    sums = [int(held @ values), int(held @ (values * values)) // STEP]
    if share.adjacency == "add-remove":
        sums.append(int(counts.sum()))
    return [int(draws.add(np.array([one], dtype=np.int64))[0]) for one in sums]


def mean_of(
    sums: list[int], noise: tuple[Laplace, ...], bounds: tuple[float, float], tail: tuple[float, float], share: Share
) -> Interval:
    """The mean with its interval, of noisy sums; the tail is what is added for values beyond the bounds, and how much
    of that is uncertain.
    """
    rows = max(float(sums[2]), 1.0) if len(sums) > 2 else float(share.n_rows)
    inside = min(max(sums[0] / STEP / rows, 0.0), 1.0)
    variance = min(max(sums[1] / STEP / rows - inside**2, 0.0), 0.25)
    error = variance / rows + (noise[0].sd / rows) ** 2
    if len(noise) > 2:
        error += (inside * noise[2].sd / rows) ** 2
    (low, high), (added, unsure) = bounds, tail
    middle, half = low + (high - low) * inside + added, (high - low) * NORMAL * math.sqrt(error) + unsure
    return Interval(*np.array([[middle], [middle - half], [middle + half]]))
