"""A table of which some rows are left out: those that do not meet the schema's filter, those without a target that
drops them, and those beyond the number of rows that a person may have.

It stands between a table and `Rows`, so that every engine and every mechanism has it. A row that is left out counts as
absent. How many are used is private; how many could be is public under replace-one (`slots`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from privfit.rows.errors import no_rows, other_division
from privfit.rows.persons import AHEAD, ChosenRows, PersonRows, entries
from privfit.rows.rows import BATCH_ROWS
from privfit.rows.workers import in_order, kept_bytes, thread_count
from privfit.schema import Category, Column, Condition, Schema
from privfit.tables import (
    ABSENT,
    Batch,
    ChosenPartitions,
    DataError,
    PersonColumn,
    Table,
    Values,
)


def used_rows(
    table: Table,
    schema: Schema,
    rows_per_person: int,
    key: bytes,
    counted: bool,
    besides: Sequence[Column] = (),
    max_memory: int | None = None,
) -> Table:
    """The rows of a table that are used, as the schema says; the table itself where none is left out.

    `counted` is whether the number of rows, or of persons, is public and wanted; `besides` are columns that are read
    beside the schema's.
    """
    if not schema.leaves_out:
        return table
    return UsedRows(table, schema, rows_per_person, key, counted, besides, kept_bytes(max_memory))


class UsedRows(Table):
    """A table that hands out the rows that are used.

    With a person column one pass chooses rows, by their places, before anything else is read. A table that passes by
    once, or whose rows may come in another order next time, is kept in a temporary file for it, in which persons are
    hashes.
    """

    leaves_out = True

    def __init__(
        self,
        table: Table,
        schema: Schema,
        rows_per_person: int,
        key: bytes,
        counted: bool,
        besides: Sequence[Column] = (),
        held_bytes: int = 0,
    ) -> None:
        self._table, self._schema = table, schema
        self.label, self.names, self.labels = table.label, table.names, table.labels
        self.width, self.in_memory, self.is_csv = table.width, table.in_memory, table.is_csv
        if table.part is not None and schema.person not in (None, table.needs_person):
            raise other_division(schema.person)
        self.part = table.part
        self.needs_person = None if schema.person == table.needs_person else table.needs_person
        self._tested = [*(condition.column for condition in schema.where)]
        if schema.drops_target and schema.target is not None:
            self._tested.append(schema.target)
        person = [] if schema.person is None else [cast(Any, PersonColumn(schema.person, key))]
        self._places = self._positions([*self._tested, *person])
        stable = table.in_memory or table.same_order
        if (person and not stable) or (counted and table.passes_once):
            table.keep([*schema.columns, *self._tested, *besides, *person])  # in one order from now on
        self._chosen = self._choose(PersonRows(rows_per_person, held_bytes), key, person[0]) if person else None
        if table.cluster is not None and self._chosen is None:  # rows of persons that were chosen may be anywhere
            self.cluster = ChosenPartitions(table.cluster, self._tested, self._places, partial(_fitting, schema))
        self.passes_once, self.runs_again = table.passes_once, table.runs_again
        if counted:
            self.slots = self._count() if self._chosen is None else rows_per_person * self._chosen.persons

    def positions(self, columns: Sequence[Column]) -> list[int]:
        """Where the table has these columns."""
        return self._table.positions(columns)

    def read(self, columns: Sequence[Column], positions: Sequence[int], rows: int) -> Iterator[Batch]:
        """Batches of the rows that are used, some of them empty."""
        own = self._tested if self._chosen is None else []
        first = 0
        for batch in self._table.batches([*columns, *own], [*positions, *self._places[: len(own)]], rows):
            count = len(batch[0])
            used = (
                fits(self._schema, batch[len(columns) :]) if self._chosen is None else self._chosen.used(first, count)
            )
            first += count
            yield _taken(batch[: len(columns)], used)
        if not first:
            raise no_rows()

    def _choose(self, persons: PersonRows, key: bytes, person: Column) -> ChosenRows:
        """One pass over all rows: which of each person are used."""
        columns = [*self._schema.columns, *self._tested, person]
        positions = [*self._table.positions(self._schema.columns), *self._places]
        held = len(self._schema.columns)

        def made(batch: Batch) -> tuple[NDArray[np.uint64], NDArray[np.intp]]:
            tested = batch[held:-1]
            fit = fits(self._schema, tested) if tested else np.ones(len(batch[0]), dtype=bool)
            return entries(cast(Any, batch[-1]), batch[:held], fit, key)

        threads = thread_count(None)
        for lines, ends in in_order(threads, made, self._table.batches(columns, positions, BATCH_ROWS), AHEAD):
            persons.add(lines, ends)
        return persons.chosen(threads)

    def _count(self) -> int:
        """How many rows the table has: public under replace-one."""
        if self._table.n_rows is not None:
            return self._table.n_rows
        column, place = self._schema.features[0], self._table.positions(self._schema.columns)[0]
        if self._table.cluster is not None:
            return sum(self._table.cluster.counts([column], [place]))
        return sum(len(batch[0]) for batch in self._table.batches([column], [place], BATCH_ROWS))

    def _positions(self, columns: Sequence[Column]) -> list[int]:
        """Where columns stand that may not be the schema's own."""
        listed = [column.name for column in self._schema.columns]
        own = dict(zip(listed, self._table.positions(self._schema.columns), strict=True))
        if self._table.names is None:
            unnamed = [column.name for column in columns if column.name not in own]
            if unnamed:
                raise DataError(
                    f"The schema asks for the column {unnamed[0]!r}, and the columns of this table have no names. Give "
                    "a frame with names. Nothing was charged."
                )
        return [own[name] if name in own else self._table.positions([column])[0] for column, name in _named(columns)]


def _taken(batch: Batch, used: NDArray[np.bool_]) -> Batch:
    places = np.flatnonzero(used)  # taken in half the time of a mask
    return batch if len(places) == len(used) else [values.take(places) for values in batch]


def _fitting(schema: Schema, batch: Batch, tested: Batch) -> Batch:
    """The rows of a batch that are used: on a worker."""
    return _taken(batch, fits(schema, tested))


def fits(schema: Schema, tested: Sequence[Values]) -> NDArray[np.bool_]:
    """Which rows meet all conditions of the schema and have a target."""
    found = np.ones(len(tested[0]), dtype=bool)
    for condition, values in zip(schema.where, tested, strict=False):
        found &= meets(condition, values)
    if schema.drops_target:
        found &= tested[-1] != ABSENT if isinstance(schema.target, Category) else ~np.isnan(tested[-1])
    return found


def _named(columns: Sequence[Column]) -> list[tuple[Column, str]]:
    return [(column, column.name) for column in columns]


def meets(condition: Condition, values: Values) -> NDArray[np.bool_]:
    """Which values meet a condition: of numbers those between the bounds, of levels those listed; none is missing."""
    if condition.levels:
        return np.asarray((values >= 0) & (values < len(condition.levels)))
    found = ~np.isnan(values)
    if condition.low is not None:
        found &= values >= condition.low
    if condition.high is not None:
        found &= values <= condition.high
    return np.asarray(found)
