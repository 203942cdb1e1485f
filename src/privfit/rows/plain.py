"""Rows as a function of the user's own may see them: numbers within their bounds, categories as the places of their
levels.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

from privfit.rows.cached_rows import CachedRows
from privfit.rows.encoding import level_codes, within_bounds
from privfit.rows.rows import Rows
from privfit.schema import Block, Numeric
from privfit.tables import Arrays, Batch, Values

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

PLAIN_VALUES = 1 << 20
"""Values that are kept together."""


class PlainRows(CachedRows[Floats]):
    """The rows of a table, the target last.

    Hands out integer sums over rows, and the number of rows; with `every_row`, all rows to one function.
    """

    def __init__(self, rows: Rows, most_bytes: int | None = None) -> None:
        super().__init__(rows, most_bytes)
        geometry = rows.geometry
        self._blocks = geometry.blocks if geometry.target is None else (*geometry.blocks, geometry.target)
        self._piece_rows = max(1, PLAIN_VALUES // len(self._blocks))

    def _encode(self, batches: Iterator[Batch]) -> Iterator[Floats]:
        for batch in batches:
            columns = [_values(block, batch[place]) for place, block in enumerate(self._blocks)]
            yield np.column_stack(columns).astype(np.float64)

    def _arrays(self, chunk: Floats) -> Arrays:
        return [chunk]

    def _chunk_of(self, arrays: Arrays) -> Floats:
        return arrays[0]

    def sum(self, scores: Callable[[Floats], Integers]) -> Integers:
        """The sum over rows of integer scores: `scores` gives one row of them per row."""
        total: Integers = self.total(lambda _, chunk: [scores(chunk).sum(axis=0, dtype=np.int64)], side_by_side=False)[
            0
        ]
        return total

    def every_row(self, function: Callable[[Floats], Floats]) -> Floats:
        """What a function makes of all rows together."""
        return function(np.concatenate(list(self._every_chunk())))


def _values(block: Block, values: Values) -> Floats:
    column = block.column
    if isinstance(column, Numeric) and block.kind in ("slope", "share"):
        return within_bounds(column, values)
    return level_codes(block, values).astype(np.float64)
