"""Times to an event as one signed number a row, and exact sums over such rows."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from privfit.rows.cached_design import CachedDesign
from privfit.rows.encoding import level_codes, within_bounds
from privfit.rows.fixed_point import Predictors
from privfit.rows.interactions import COUNT_UNIT
from privfit.rows.workers import Chunk, Sums
from privfit.schema import Category, Numeric, make_block
from privfit.tables import Batch

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

SQUARE_STEPS = 1 << 16
"""Steps to 1 of a row's squared score: rounding is far below the noise of one row. Chosen, not measured."""


def signed_target(time: Numeric) -> Numeric:
    """The column that `SignedTimes` computes: a time from `low` on counts from one range to two, so that none is 0."""
    width = time.high - time.low
    return Numeric(time.name, -2 * width, 2 * width)


@dataclass(frozen=True)
class SignedTimes:
    """Computes the features of some rows, and after them a signed time: positive for an event before the upper bound.

    Columns of a batch are features, the time and the event, whose second level means that it happened, and a weight
    where rows have one. A row's values depend on that row alone.

    Guarantee: docs/proofs/cox-objective.md, Lemma 1.
    """

    places: tuple[int, ...]
    """Where the features stand."""
    time: Numeric
    event: Category
    time_place: int
    event_place: int
    besides: tuple[int, ...] = ()
    """Where columns stand that follow the time as they are: weights."""

    def __call__(self, batch: Batch) -> Batch:
        """The columns that are computed."""
        times = within_bounds(self.time, batch[self.time_place])
        happened = level_codes(make_block(self.event, 0, whole=True), batch[self.event_place]) == 1
        since = (times - self.time.low) + (self.time.high - self.time.low)
        signed = np.where(happened & (times < self.time.high), since, -since)
        return [*(batch[place] for place in self.places), signed, *(batch[place] for place in self.besides)]


def count_by_target(design: CachedDesign, grid: Floats) -> Integers:
    """How many rows have a target below the first value of an ascending grid, from each on up to the next, and from the
    last on. Where rows have weights: COUNT_UNIT times what they count together, the whole part of each row's.

    Parameters
    ----------
    design : CachedDesign
        The rows.
    grid : ndarray
        Values in ascending order.

    Returns
    -------
    ndarray of int
        One number of rows more than there are values.
    """
    return np.asarray(design.total(partial(_counts, grid))[0], dtype=np.int64)


def _counts(grid: Floats, _: int, chunk: Chunk) -> Sums:
    places = np.searchsorted(grid, chunk.target, side="right")
    parts = None if chunk.weights is None else np.trunc(chunk.weights * COUNT_UNIT)
    return [np.rint(np.bincount(places, parts, minlength=len(grid) + 1)).astype(np.int64)]


def sum_of_squares(design: CachedDesign, weights: Floats, bits: int) -> int:
    """The sum over rows of the squared predictor, cut at 1, times the row's weight if it has one, in SQUARE_STEPS.

    Weights of columns are integers, 2^bits to 1, few enough digits long that predictors are exact in floats: what a row
    adds depends on that row alone.

    Parameters
    ----------
    design : CachedDesign
        The rows.
    weights : ndarray of shape (n_columns, 1)
        The integer weights.
    bits : int
        Logarithm of the steps to 1.

    Returns
    -------
    int
        The sum, in steps.
    """
    return int(design.total(partial(_squares, design._predictors(weights), 1 << bits))[0])


def _squares(predictors: Predictors, most: int, _: int, chunk: Chunk) -> Sums:
    scores = np.clip(np.floor(predictors(chunk)[:, 0]) / most, -1.0, 1.0)
    squares = scores * scores * SQUARE_STEPS
    if chunk.weights is not None:
        squares *= chunk.weights
    return [np.floor(squares).astype(np.int64).sum()]
