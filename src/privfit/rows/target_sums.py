"""Exact sums over the targets of a cached design: how many are beyond a value, and what predictors leave of them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from privfit.rows.cached_design import CachedDesign
from privfit.rows.fixed_point import Predictors
from privfit.rows.interactions import COUNT_UNIT, Pair
from privfit.rows.worker_cells import ChunkCells, Residuals
from privfit.rows.workers import Chunk, Sums

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

AMOUNT_STEPS = 1 << 20
"""Steps to 1 of amounts whose sum is released: what rounding moves is far below the noise of one row."""
SCORE_UNIT = 16
"""The unit of scores whose exponentials are looked up: those of scores that are lower than the top by more are next to
nothing."""
PLACES = 1 << 12
"""Places of that table: 256 to a factor of e."""
EXPONENTIALS = np.array(
    [round(AMOUNT_STEPS * math.exp(-SCORE_UNIT * (place + 0.5) / PLACES)) for place in range(PLACES)], dtype=np.int64
)
"""What is predicted in every place, in AMOUNT_STEPS."""


def count_up_to(design: CachedDesign, grid: Floats, centre: float | None = None) -> Integers:
    """How many rows have a target of at most each value of an ascending grid; with a centre, a distance from it of at
    most that. Targets are multiples of a power of two, and so is a centre: differences are exact.

    Parameters
    ----------
    design : CachedDesign
        The rows.
    grid : ndarray
        Values in ascending order.
    centre : float or None, default=None
        What distances are measured from.

    Returns
    -------
    ndarray of int
        One number of rows per value.
    """
    found = design.total(partial(_counts, grid, centre))[0]
    return np.asarray(np.cumsum(found)[:-1], dtype=np.int64)


def _counts(grid: Floats, centre: float | None, _: int, chunk: Chunk) -> Sums:
    values = chunk.target if centre is None else np.abs(chunk.target - centre)
    counts = np.bincount(np.searchsorted(grid, values, side="left"), minlength=len(grid) + 1)
    return [counts.astype(np.int64)]


def sum_of_residuals(
    design: CachedDesign,
    weights: Floats,
    centre: float,
    width: float,
    bits: int,
    added: Sequence[tuple[Pair, Integers]] = (),
) -> int:
    """The sum over rows of (target - centre) / width less the predictor, in steps of 2^-bits, each cut at 1 in size; of
    a row with a weight, the whole part of weight times that.

    Weights are integers, 2^bits to 1, few enough digits long that predictors are exact in floats: what a row adds
    depends on that row alone.

    Parameters
    ----------
    design : CachedDesign
        The rows.
    weights : ndarray of shape (n_columns, 1)
        The integer weights.
    centre : float
        What targets are measured from.
    width : float
        The unit of targets and predictors, and where residuals are cut.
    bits : int
        Logarithm of the steps to 1.
    added : sequence of (pair, ndarray of int), default=()
        Interaction terms: what every cell of a pair of columns adds to the predictor, in steps.

    Returns
    -------
    int
        The sum, in steps.
    """
    if added:
        of_chunk = design._of_chunk(weights, Residuals(centre, width, 1 << bits))
        return -int(design.total(partial(_beside_terms, of_chunk, tuple(added), 1 << bits))[0])
    return int(design.total(partial(_residuals, design._predictors(weights), centre, width, 1 << bits))[0])


def count_residuals_up_to(
    design: CachedDesign, weights: Floats, centre: float, width: float, bits: int, grid: Floats
) -> Integers:
    """How many rows have a residual, (target - centre) / width less the predictor, of at most each value of a grid.

    Where rows have weights: COUNT_UNIT times what they count together.

    Residuals are whole steps of 2^-bits, as in `sum_of_residuals`: a row's depends on that row alone.

    Parameters
    ----------
    design : CachedDesign
        The rows.
    weights : ndarray of shape (n_columns, 1)
        The integer weights.
    centre : float
        What targets are measured from.
    width : float
        The unit of targets and predictors.
    bits : int
        Logarithm of the steps to 1.
    grid : ndarray
        Values in ascending order, where the width is 1.

    Returns
    -------
    ndarray of int
        One number of rows per value.
    """
    most = 1 << bits
    found = design.total(partial(_places, design._predictors(weights), centre, width, most, grid * most))[0]
    return np.asarray(np.cumsum(found)[:-1], dtype=np.int64)


def _places(predictors: Predictors, centre: float, width: float, most: int, grid: Floats, _: int, chunk: Chunk) -> Sums:
    residuals = _in_steps(predictors, centre, width, most, chunk)
    parts = None if chunk.weights is None else np.trunc(chunk.weights * COUNT_UNIT)
    counts = np.bincount(np.searchsorted(grid, residuals, side="left"), parts, minlength=len(grid) + 1)
    return [np.rint(counts).astype(np.int64)]


def _in_steps(predictors: Predictors, centre: float, width: float, most: int, chunk: Chunk) -> Floats:
    return Residuals(centre, width, most).steps(chunk.target) - np.floor(predictors(chunk)[:, 0])


def _residuals(predictors: Predictors, centre: float, width: float, most: int, _: int, chunk: Chunk) -> Sums:
    steps = np.clip(_in_steps(predictors, centre, width, most, chunk), -most, most)
    if chunk.weights is not None:
        steps *= chunk.weights  # what is behind the point goes with the conversion
    return [steps.astype(np.int64).sum()]


def _beside_terms(
    of_chunk: ChunkCells, added: Sequence[tuple[Pair, Integers]], most: int, _: int, chunk: Chunk
) -> Sums:
    return [np.int64(of_chunk(chunk, added).sum_of_scores(most))]


def weighed_rows(design: CachedDesign, unit: int) -> int:
    """How many rows there are, `unit` for each; of a row with a weight, the whole part of weight times unit.

    Parameters
    ----------
    design : CachedDesign
        The rows.
    unit : int
        What a row counts.

    Returns
    -------
    int
        The sum.
    """
    return int(design.total(partial(_counted, unit))[0]) if design.weighted else design.n_rows * unit


def weights_of_classes(design: CachedDesign, classes: int, unit: int) -> Integers:
    """The same for the rows of every class: by its place, or the first class first.

    Parameters
    ----------
    design : CachedDesign
        The rows.
    classes : int
        How many classes there are.
    unit : int
        What a row counts.

    Returns
    -------
    ndarray of int
        One sum per class.
    """
    return np.asarray(design.total(partial(_by_class, classes, unit))[0], dtype=np.int64)


def _whole_weights(chunk: Chunk, unit: int) -> Integers:
    weights = np.ones(len(chunk.target)) if chunk.weights is None else chunk.weights
    return np.trunc(weights * unit).astype(np.int64)


def _counted(unit: int, _: int, chunk: Chunk) -> Sums:
    return [_whole_weights(chunk, unit).sum()]


def _by_class(classes: int, unit: int, _: int, chunk: Chunk) -> Sums:
    counts = np.zeros(classes, dtype=np.int64)
    np.add.at(counts, np.maximum(chunk.target, 0.0).astype(np.intp), _whole_weights(chunk, unit))
    return [counts]


@dataclass(frozen=True)
class AmountSums:
    """The sum of amounts, and the sum of what a log mean predicts for them; times weights, where rows have some.

    Amounts are (target - zero) / cap, cut to [0, 1]. What is predicted is e^(score - top), cut at 1, where scores are
    predictors of integer weights, 2^bits to SCORE_UNIT. It is looked up: what a row adds to both depends on that row
    alone, to the bit, which an exponential function of many numbers at a time does not promise.
    """

    zero: float
    cap: float
    top: int
    bits: int

    def of(self, design: CachedDesign, weights: Floats) -> Integers:
        """Both sums, in AMOUNT_STEPS."""
        return np.asarray(design.total(partial(self._added, design._predictors(weights)))[0], dtype=np.int64)

    def _added(self, predictors: Predictors, _: int, chunk: Chunk) -> Sums:
        below = (self.top - np.floor(predictors(chunk)[:, 0])) * (PLACES / (1 << self.bits))
        predicted = EXPONENTIALS[np.clip(np.floor(below), 0, PLACES - 1).astype(np.intp)]
        amounts = np.clip((chunk.target - self.zero) / self.cap, 0.0, 1.0) * AMOUNT_STEPS
        weights = 1.0 if chunk.weights is None else chunk.weights
        sums = [int(np.rint(each * weights).astype(np.int64).sum()) for each in (amounts, predicted)]
        return [np.array(sums, dtype=np.int64)]
