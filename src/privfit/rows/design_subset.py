"""A part of the rows of a cached design, chosen without looking at them."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from privfit.rows.cached_design import EXACT_BITS, CachedDesign, Floats, SampledDesign
from privfit.rows.errors import other_rows
from privfit.rows.layout import Chunk


class DesignSubset(CachedDesign):
    """The rows of one part of a partition. Chunks are those of all rows with the others left out."""

    def __init__(self, kept: CachedDesign, mine: NDArray[np.bool_]) -> None:
        self.__dict__.update(kept.__dict__)
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

    def sample(self) -> SampledDesign:
        """Rows spread evenly over the part; none, if it has none."""
        return super().sample() if self.n_rows else SampledDesign(np.zeros((0, self.n_columns)), np.zeros(0), 1.0, 0)

    def rounding(self, weights: Floats, most_slope: float, most_curvature: float, offset: float = 0.0) -> float:
        """As for all rows, whose number of chunks a part has."""
        return self._all.rounding(weights, most_slope, most_curvature, offset)

    def mistakes(self, weights: Floats) -> int:
        """How many rows are not in the class that these weights give them.

        Weights are rounded to integers so that sums over columns are exact: a row's side then depends on that row
        alone, whatever the order of sums. Features of a kernel are no integers; for them a row's side is computed
        row by row.
        """
        largest = float(np.abs(weights).max()) or 1.0
        whole = np.rint(weights / largest * 2.0 ** (EXACT_BITS - self.n_columns.bit_length()))
        table = self._table(whole)
        return sum(int(np.sum(self._is_wrong(chunk, table, whole))) for chunk in self._every_chunk())

    def _is_wrong(self, chunk: Chunk, table: Floats, weights: Floats) -> NDArray[np.bool_]:
        if self._features is not None:  # not by a matrix product, in which one row could change how another is rounded
            scores = np.stack([(chunk.numbers * column).sum(axis=1) for column in weights.T], axis=1)
        else:
            scores = self._scores(chunk, table, weights)
        if scores.shape[1] == 1:
            return np.asarray((scores[:, 0] > 0) != (chunk.target > 0))
        return np.asarray(np.argmax(scores, axis=1) != chunk.target.astype(np.intp))
