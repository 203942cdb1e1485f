"""Tables made of others row by row: partitions of which rows are left out, and columns that are computed, such as what
a released model says about each row.

A computed table stands between a table and whoever reads it, so that every engine has it. On a cluster rows are chosen
and computed where they are.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Generic, TypeVar

import numpy as np

from privfit.schema import Column
from privfit.tables.arranged import DecodedTable
from privfit.tables.partitioned import Answer, Block, KeptBlocks, Merge, PartitionedTable, PartTask
from privfit.tables.table import Batch, Table

Made = TypeVar("Made")
Compute = Callable[[Batch], Batch]
"""From the columns of some rows to new ones. A row's new values depend on that row alone, to the bit."""

ROWS_AT_ONCE = 1 << 10
"""Rows that are computed together: always so many, whatever the batch. No command varies it."""


@dataclass(frozen=True)
class Deriving(Generic[Made]):
    """A task on batches that a function makes of others."""

    task: Callable[[int, Iterator[Batch]], Made]
    derive: Compute

    def __call__(self, number: int, batches: Iterator[Batch]) -> Made:
        return self.task(number, map(self.derive, batches))


class DerivedPartitions(PartitionedTable):
    """Partitions whose batches are made of those of another table, on workers."""

    def __init__(self, table: PartitionedTable) -> None:
        self.label, self.names, self._table = table.label, table.names, table

    def everywhere(self, positions: Sequence[int], task: PartTask[Answer[Made]], merge: Merge[Made]) -> Answer[Made]:
        return self._table.everywhere(self._places(positions), self._deriving(task, positions), merge)

    def kept(self, positions: Sequence[int], task: PartTask[Iterator[Block]]) -> KeptBlocks:
        return self._table.kept(self._places(positions), self._deriving(task, positions))

    def each(self, positions: Sequence[int], task: PartTask[Iterator[Block]]) -> Iterator[Block]:
        return self._table.each(self._places(positions), self._deriving(task, positions))

    @abstractmethod
    def _places(self, positions: Sequence[int]) -> list[int]:
        """Where the columns are that are read."""

    @abstractmethod
    def _deriving(self, task: PartTask[Made], positions: Sequence[int]) -> PartTask[Made]:
        """The task on what is read."""


@dataclass(frozen=True)
class Choosing:
    """Leaves out rows: of a batch with the columns of a task, and then those that decide."""

    width: int
    choose: Callable[[Batch, Batch], Batch]

    def __call__(self, batch: Batch) -> Batch:
        return self.choose(batch[: self.width], batch[self.width :])


class ChosenPartitions(DerivedPartitions):
    """Partitions of which a function leaves out rows, on workers, by what is in some columns."""

    def __init__(
        self,
        table: PartitionedTable,
        columns: Sequence[Column],
        positions: Sequence[int],
        choose: Callable[[Batch, Batch], Batch],
    ) -> None:
        super().__init__(table)
        self._columns, self._positions, self._choose = tuple(columns), tuple(positions), choose

    def _places(self, positions: Sequence[int]) -> list[int]:
        return [*positions, *self._positions]

    def _deriving(self, task: PartTask[Made], positions: Sequence[int]) -> PartTask[Made]:
        choosing = Deriving(task.task, Choosing(len(task.columns), self._choose))
        return replace(task, columns=(*task.columns, *self._columns), task=choosing)


@dataclass(frozen=True)
class Computing:
    """Some of the columns that a function computes."""

    compute: Compute
    positions: tuple[int, ...]

    def __call__(self, batch: Batch) -> Batch:
        made = self.compute(batch)
        return [made[position] for position in self.positions]


class ComputedPartitions(DerivedPartitions):
    """Partitions of which a function computes new columns, on workers."""

    def __init__(
        self, table: PartitionedTable, columns: Sequence[Column], positions: Sequence[int], compute: Compute
    ) -> None:
        super().__init__(table)
        self._columns, self._positions, self._compute = tuple(columns), list(positions), compute

    def _places(self, positions: Sequence[int]) -> list[int]:
        return self._positions

    def _deriving(self, task: PartTask[Made], positions: Sequence[int]) -> PartTask[Made]:
        computing = Deriving(task.task, Computing(self._compute, tuple(positions)))
        return replace(task, columns=self._columns, task=computing)


class ComputedTable(Table):
    """The columns `names`, computed from `columns` of a table.

    Guarantee: neighbouring tables are neighbours in what is computed; docs/proofs/evaluation.md, Lemma 1.
    """

    def __init__(self, table: Table, columns: Sequence[Column], names: Sequence[str], compute: Compute) -> None:
        self._table, self._columns, self._compute = table, tuple(columns), compute
        self._places = table.positions(self._columns)
        self.names, self.label, self.n_rows = tuple(names), table.label, table.n_rows
        self.leaves_out, self.slots = table.leaves_out, table.slots
        self.part, self.needs_person = table.part, table.needs_person
        self.passes_once, self.runs_again, self.same_order = table.passes_once, table.runs_again, table.same_order
        if table.cluster is not None:
            self.cluster = ComputedPartitions(table.cluster, self._columns, self._places, compute)

    def read(self, columns: Sequence[Column], positions: Sequence[int], rows: int) -> Iterator[Batch]:
        """Batches of what is computed."""
        computing = Computing(self._compute, tuple(positions))
        return (computing(batch) for batch in self._table.batches(self._columns, self._places, rows))


def in_equal_parts(columns: Sequence[Column], batch: Batch, work: Callable[[DecodedTable], Batch]) -> Batch:
    """What `work` makes of a batch, which is handed to it in tables that all have the same number of rows.

    The last one is filled up with copies of a row, whose results are dropped. Functions such as exp round alike at
    every place of arrays of one length, so that a row's result does not depend on the rows beside it.
    """
    made: list[Batch] = []
    for start in range(0, len(batch[0]), ROWS_AT_ONCE):
        part = [values[start : start + ROWS_AT_ONCE] for values in batch]
        held = len(part[0])
        filled: Batch = [np.append(values, np.repeat(values[:1], ROWS_AT_ONCE - held)) for values in part]
        made.append([values[:held] for values in work(DecodedTable(columns, filled, "table"))])
    return [np.concatenate(values) for values in zip(*made, strict=True)]
