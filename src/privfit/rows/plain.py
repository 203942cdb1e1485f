"""Rows as a function of the user's own may see them: numbers within their bounds, categories as the places of their
levels.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

from privfit.rows.encoding import level_codes, within_bounds
from privfit.rows.rows import CachedRows
from privfit.schema import Block, Numeric
from privfit.tables import Values

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

PLAIN_VALUES = 1 << 20
"""Values that are kept together."""


class PlainRows(CachedRows[Floats]):
    """The rows of a table, the target last.

    Hands out integer sums over rows, and the number of rows; with `every_row`, all rows to one function.
    """

    def _encoded(self) -> Iterator[Floats]:
        geometry = self._rows.geometry
        blocks = geometry.blocks if geometry.target is None else (*geometry.blocks, geometry.target)
        for _, batch in self._rows.pieces(max(1, PLAIN_VALUES // len(blocks))):
            columns = [_values(block, batch[place]) for place, block in enumerate(blocks)]
            yield np.column_stack(columns).astype(np.float64)

    def sum(self, scores: Callable[[Floats], Integers]) -> Integers:
        """The sum over rows of integer scores: `scores` gives one row of them per row."""
        total = None
        for chunk in self._every_chunk():
            part = scores(chunk).sum(axis=0, dtype=np.int64)
            total = part if total is None else total + part
        assert total is not None
        return np.asarray(total, dtype=np.int64)

    def every_row(self, function: Callable[[Floats], Floats]) -> Floats:
        """What a function makes of all rows together."""
        return function(np.concatenate(list(self._every_chunk())))


def _values(block: Block, values: Values) -> Floats:
    column = block.column
    if isinstance(column, Numeric) and block.kind in ("slope", "share"):
        return within_bounds(column, values)
    return level_codes(block, values).astype(np.float64)
