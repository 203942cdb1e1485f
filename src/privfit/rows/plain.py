"""Rows as a function of the user's own may see them: numbers within their bounds, categories as the places of their
levels.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privfit.rows.encoding import level_codes, within_bounds
from privfit.rows.memory import half_of_memory, read_again, read_once
from privfit.rows.rows import Rows
from privfit.schema import Block, Numeric
from privfit.tables import Batch

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

CHUNK_VALUES = 1 << 20


class PlainRows:
    """The rows of a table, the target last.

    Hands out whole-number sums over rows, and the number of rows; with `every_row`, all rows to one function.
    """

    def __init__(self, rows: Rows, most_bytes: int | None = None) -> None:
        self._rows = rows
        self._most_bytes = half_of_memory() if most_bytes is None else most_bytes
        target = rows.geometry.target
        self._blocks = rows.geometry.blocks if target is None else (*rows.geometry.blocks, target)
        self._chunks: list[Floats] | None = None
        self.n_rows = 0

    def read(self) -> None:
        """Read everything once, keep it if it fits, and meet every error that the table holds."""
        self._chunks, self.n_rows = read_once(
            self._read(), self._rows, self._most_bytes, len, lambda chunk: chunk.nbytes
        )

    def _every_chunk(self) -> Iterator[Floats]:
        if self._chunks is not None:
            yield from self._chunks
            return
        yield from read_again(self._read(), self.n_rows, len)

    def _read(self) -> Iterator[Floats]:
        size = max(1, CHUNK_VALUES // len(self._blocks))
        for batch in self._rows.batches():
            for start in range(0, len(batch[0]), size):
                yield self._plain(batch, start, start + size)

    def _plain(self, batch: Batch, start: int, stop: int) -> Floats:
        columns = []
        for place, block in enumerate(self._blocks):
            columns.append(_values(block, batch[place][start:stop]))
        return np.column_stack(columns).astype(np.float64)

    def sum(self, scores: Callable[[Floats], Integers]) -> Integers:
        """The sum over rows of whole-number scores: `scores` gives one row of them per row."""
        total = None
        for chunk in self._every_chunk():
            part = scores(chunk).sum(axis=0, dtype=np.int64)
            total = part if total is None else total + part
        assert total is not None
        return np.asarray(total, dtype=np.int64)

    def every_row(self, function: Callable[[Floats], Floats]) -> Floats:
        """What a function makes of all rows together."""
        return function(np.concatenate(list(self._every_chunk())))


def _values(block: Block, values: Any) -> Floats:
    column = block.column
    if isinstance(column, Numeric) and block.kind in ("slope", "share"):
        return within_bounds(column, values)
    return level_codes(block, values).astype(np.float64)
