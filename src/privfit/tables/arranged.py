"""Tables made of others: with a target that stands apart, with columns that go by their position, or one batch."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from privfit.schema import Column, Schema
from privfit.tables.arrays import column_values
from privfit.tables.errors import DataError
from privfit.tables.table import Batch, Table


class WithTarget(Table):
    """A table of features beside a target that the user gave apart, both in memory."""

    def __init__(self, features: Table, target: NDArray[np.generic], name: str | None = None) -> None:
        if not features.in_memory:
            raise DataError(
                f"The target was given apart from a {features.label}, which is read in batches. "
                "Put the target into the table as a column that the schema names. Nothing was charged."
            )
        if features.n_rows != len(target):
            raise DataError(
                f"Found input variables with inconsistent numbers of samples: [{features.n_rows}, {len(target)}]. "
                "Give one target value per row. Nothing was charged."
            )
        self._features, self._target, self._name = features, target, name
        self.label, self.names = features.label, features.names
        self.n_rows, self.in_memory = features.n_rows, True

    def positions(self, columns: Sequence[Column]) -> list[int]:
        """Where the features stand; the target, known by its name or else the last column, stands nowhere (-1)."""
        name = columns[-1].name if self._name is None else self._name
        places = iter(self._features.positions([column for column in columns if column.name != name]))
        return [-1 if column.name == name else next(places) for column in columns]

    def read(self, columns: Sequence[Column], positions: Sequence[int], rows: int) -> Iterator[Batch]:
        """Batches of the features at these positions, and of the target where the position is -1."""
        asked = [place for place, position in enumerate(positions) if position >= 0]
        first = 0
        parts = self._features.read([columns[place] for place in asked], [positions[place] for place in asked], rows)
        for features in parts:
            stop, values = first + len(features[0]), iter(features)
            yield [
                column_values(self._target[first:stop], column) if position < 0 else next(values)
                for column, position in zip(columns, positions, strict=True)
            ]
            first = stop


class ByPosition(Table):
    """A table whose columns are called x0, x1, ... in their order, whatever names they carry; the target alone is found
    by its name.

    A box of open width says nothing about single columns, so that it knows them by position and their own names are not
    kept.
    """

    def __init__(self, table: Table, target: str | None) -> None:
        own: Sequence[object] = range(table.width) if table.names is None else table.names
        features = [place for place, name in enumerate(own) if table.names is None or name != target]
        called = {place: f"x{number}" for number, place in enumerate(features)}
        self._table, self.label, self.n_rows = table, table.label, table.n_rows
        self.names = tuple(called.get(place, str(target)) for place in range(len(own)))
        self.passes_once, self.runs_again, self.in_memory = table.passes_once, table.runs_again, table.in_memory
        self.width, self.cluster = len(features), table.cluster  # columns stand where they stood
        self.part, self.needs_person, self.same_order = table.part, table.needs_person, table.same_order

    def read(self, columns: Sequence[Column], positions: Sequence[int], rows: int) -> Iterator[Batch]:
        """The table's own batches: columns stand where they stood."""
        return self._table.read(columns, positions, rows)


def settled_box(table: Table, schema: Schema) -> tuple[Table, Schema]:
    """A table under a box of open width: its columns called by position, and the box with as many columns."""
    target = None if schema.target is None else schema.target.name
    placed = ByPosition(table, target)
    if not placed.width:
        raise DataError(
            "The table has 0 feature(s), and a minimum of 1 is required. Add a column. Nothing was charged."
        )
    table.refuse_values_as_names(() if target is None else (target,))
    return (table if table.names is None else placed), schema.with_features(
        [f"x{place}" for place in range(placed.width)]
    )


class DecodedTable(Table):
    """One batch of a table, already read: numbers and positions of levels, in the order of the schema's columns."""

    def __init__(self, columns: Sequence[Column], batch: Batch, label: str) -> None:
        self._values = {column.name: values for column, values in zip(columns, batch, strict=True)}
        self.label = label
        self.names = self._fields = tuple(self._values)
        self.n_rows = len(batch[0])

    def read(self, columns: Sequence[Column], positions: Sequence[int], rows: int) -> Iterator[Batch]:
        """Parts of the batch. The columns are those of the schema that it was read with."""
        chosen = [self._values[self._fields[position]] for position in positions]
        for start in range(0, self.n_rows or 0, rows):
            yield [values[start : start + rows] for values in chosen]
