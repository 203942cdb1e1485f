"""Exact sums of products of columns over a cached design, each row counted by what it answers at released weights."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from privfit.rows.cached_design import CachedDesign
from privfit.rows.fixed_point import LONGEST, Predictors, RowResponse
from privfit.rows.layout import Layout
from privfit.rows.workers import Chunk, Sums

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

ENTRY_STEPS = 1 << 12
"""Steps to 1 of a column: rounding is far below the noise on a sum, and sums of 2^31 rows fit 64 bits. Chosen, not
measured."""
ANSWER_STEPS = 1 << 8
"""Steps to 1 of what a row counts; chosen as `ENTRY_STEPS` is."""
MOMENT_UNIT = ENTRY_STEPS * ENTRY_STEPS * ANSWER_STEPS
"""The integer that stands for 1 in a sum."""
PART_ROWS = 1 << 13
"""Rows that are multiplied at a time: sums of 2^20 would be exact in floats; fewer take less memory."""


def response_moments(design: CachedDesign, weights: Floats, respond: RowResponse, power: int = 1) -> Integers:
    """The sum over rows of h x x', in steps of 1 / MOMENT_UNIT, where h = respond(x'weights, target) is from 0 to 1; of
    a row with a weight, a power of the weight times that.

    What a row adds depends on that row alone: its predictor is computed by itself, and `respond` has to answer with
    the same bits wherever a row stands, as comparisons and tables do. h is rounded down to steps of 1 / ANSWER_STEPS.

    Parameters
    ----------
    design : CachedDesign
        The rows, without features of a kernel.
    weights : ndarray of shape (n_columns, 1)
        Released weights; of such that are too long for predictors all sums are 0.
    respond : callable
        From predictors and targets to what each row counts.
    power : int, default=1
        1 for what is linear in the weight of a row, 2 for what is square.

    Returns
    -------
    ndarray of int, shape (n_columns, n_columns)
        The sums.
    """
    assert design._features is None
    if not float(np.abs(weights).max(initial=0.0)) <= LONGEST:
        return np.zeros((design.n_columns, design.n_columns), dtype=np.int64)
    return np.asarray(
        design.total(_Products(design._layout, design._predictors(weights), respond, power))[0], dtype=np.int64
    )


@dataclass(frozen=True)
class _Products:
    """What one chunk adds."""

    layout: Layout
    predictors: Predictors
    respond: RowResponse
    power: int

    def __call__(self, first: int, chunk: Chunk) -> Sums:
        width = self.layout.geometry.n_columns
        total = np.zeros((width, width), dtype=np.int64)
        for part in chunk.parts(PART_ROWS):
            answers = self.respond(self.predictors(part)[:, 0], part.target)
            weighed = answers if part.weights is None else answers * _power(part.weights, self.power)
            counts = np.floor(np.clip(np.nan_to_num(weighed), 0.0, 1.0) * ANSWER_STEPS)
            columns = np.rint(self.layout.dense(part) * ENTRY_STEPS)  # integers: every sum is exact in floats
            total += ((columns * counts[:, None]).T @ columns).astype(np.int64)
        return [total]


def _power(weights: Floats, power: int) -> Floats:
    """Weights, or their squares: products, whose bits do not depend on neighbours in memory."""
    return weights if power == 1 else weights * weights
