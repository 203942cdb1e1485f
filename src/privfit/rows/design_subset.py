"""A part of the rows of a cached design, chosen without looking at them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from privfit.rows.cached_design import EXACT_BITS, CachedDesign, Floats, SampledDesign
from privfit.rows.errors import other_rows
from privfit.rows.fixed_point import Predictors
from privfit.rows.interactions import COUNT_UNIT
from privfit.rows.workers import Chunk, ChunkTask, KnownBits, Sums


class DesignSubset(CachedDesign):
    """The rows of one part of a partition. Chunks are those of all rows with the others left out."""

    _all: CachedDesign
    _mine: NDArray[np.bool_]

    def __init__(self, kept: CachedDesign, mine: NDArray[np.bool_]) -> None:
        if isinstance(kept, DesignSubset):  # a part of a part is one of all rows, which workers number
            whole = np.zeros(len(kept._mine), dtype=np.bool_)
            whole[kept._mine] = mine
            kept, mine = kept._all, whole
        self._share(kept)
        self._all, self._mine = kept, mine
        self.n_rows = int(mine.sum())

    def _every_chunk(self) -> Iterator[Chunk]:
        first = 0
        for chunk in self._all._every_chunk():
            mine = self._mine[first : first + len(chunk.target)]
            first += len(chunk.target)
            if len(mine) < len(chunk.target):
                raise other_rows()
            yield chunk.of(np.flatnonzero(mine))  # places, which are taken faster than a mask is gone through

    def total(self, task: ChunkTask[Chunk], side_by_side: bool = True) -> Sums:
        """As for all rows; workers are sent which of them are in this part."""
        if self._kept is None:
            return super().total(task, side_by_side)
        return self._all.total(OfPart(task, KnownBits.of(self._mine)), side_by_side)

    def sample(self) -> SampledDesign:
        """Rows of the part; none, if it has none."""
        if self.n_rows:
            return super().sample()
        return SampledDesign(np.zeros((0, self.n_columns)), np.zeros(0), np.zeros(0), 1.0, 0)

    def rounding(self, weights: Floats, most_slope: float, most_curvature: float, offset: float = 0.0) -> float:
        """As for all rows."""
        return self._all.rounding(weights, most_slope, most_curvature, offset)

    def mistakes(self, weights: Floats) -> int:
        """How many rows are not in the class that these weights give them; where rows count by weights, the whole part
        of how much these count together.

        Weights are rounded to integers so that sums over columns are exact: a row's side then depends on that row
        alone, whatever the order of sums.
        """
        largest = float(np.abs(weights).max()) or 1.0
        predictors = self._predictors(np.rint(weights / largest * 2.0 ** (EXACT_BITS - self.n_columns.bit_length())))
        return int(self.total(partial(_mistakes, predictors))[0]) // (COUNT_UNIT if self.weighted else 1)


@dataclass(frozen=True)
class OfPart:
    """A task on the rows of one part."""

    task: ChunkTask[Chunk]
    mine: KnownBits

    def __call__(self, first: int, chunk: Chunk) -> Sums:
        mine = self.mine.ones(first, len(chunk.target))
        if len(mine) < len(chunk.target):
            raise other_rows()
        return self.task(first, chunk.of(np.flatnonzero(mine)))


def _mistakes(predictors: Predictors, first: int, chunk: Chunk) -> Sums:
    scores = predictors(chunk)
    if scores.shape[1] == 1:
        wrong = (scores[:, 0] > 0) != (chunk.target > 0)
    else:
        wrong = np.argmax(scores, axis=1) != chunk.target
    if chunk.weights is None:
        return [np.sum(wrong, dtype=np.int64)]
    return [np.sum(np.trunc(chunk.weights[wrong] * COUNT_UNIT).astype(np.int64))]
