"""A table beside weights that the user gave apart."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from privfit.schema import Column
from privfit.tables.arrays import column_values
from privfit.tables.errors import DataError
from privfit.tables.table import Batch, Table

APART = -2
"""The position of a column of weights; -1 is that of a target that stands apart."""


class WithWeights(Table):
    """A table and weights of its rows, both in memory."""

    def __init__(self, table: Table, weights: NDArray[np.generic], name: str) -> None:
        if not table.in_memory:
            raise DataError(
                f"Weights were given apart from a {table.label}, which is read in batches. Put them into the table as "
                "a column, and give its name: sample_weight='weight'. Nothing was charged."
            )
        if weights.shape != (table.n_rows,):
            raise DataError(
                f"Found weights of {weights.ndim} dimension(s) and length {len(weights) if weights.ndim else 0} for "
                f"{table.n_rows} rows. Give one weight per row. Nothing was charged."
            )
        self._table, self._weights, self._name = table, weights, name
        self.label, self.names, self.labels = table.label, table.names, table.labels
        self.n_rows, self.width, self.in_memory = table.n_rows, table.width, True

    def positions(self, columns: Sequence[Column]) -> list[int]:
        """Where columns stand; the weights, known by their name, stand nowhere."""
        places = iter(self._table.positions([column for column in columns if column.name != self._name]))
        return [APART if column.name == self._name else next(places) for column in columns]

    def read(self, columns: Sequence[Column], positions: Sequence[int], rows: int) -> Iterator[Batch]:
        """Batches of the table's own columns, and of the weights where they were asked for."""
        asked = [place for place, position in enumerate(positions) if position != APART]
        first = 0
        for part in self._table.read([columns[place] for place in asked], [positions[place] for place in asked], rows):
            stop, values = first + len(part[0]), iter(part)
            yield [
                column_values(self._weights[first:stop], column) if position == APART else next(values)
                for column, position in zip(columns, positions, strict=True)
            ]
            first = stop
