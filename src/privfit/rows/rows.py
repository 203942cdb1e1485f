"""Rows: a table behind its schema, read in two ways and no other.

`Rows.sum` (and `split_sum`, the same over two parts) adds up exact integers in one pass. `CachedRows` (cached_rows.py)
is the base of all that is read many times.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial, reduce
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from privfit.privacy import Event, PrivacyParameters
from privfit.rows.encoding import Encoder
from privfit.rows.errors import no_rows, other_rows, too_many_rows
from privfit.rows.kernels import EncodedSum, Kernel, PieceSum, RowBits, kernel_sum, kernel_sums
from privfit.rows.product_sums import ProductSum
from privfit.rows.row_weights import RowWeights
from privfit.rows.workers import (
    KnownBits,
    PartitionSum,
    PieceTask,
    Sums,
    added,
    in_order,
    one_blas_thread,
    thread_count,
)
from privfit.schema import Category, Column, Geometry, Schema
from privfit.tables import Batch, DataError, Persisted, Table, Values, numbered_pieces

Made = TypeVar("Made")

BATCH_ROWS = 1 << 16
"""Rows that an engine hands out at a time: time against memory. No command varies it."""
SUM_ROWS = 1 << 14
"""Rows that one thread encodes and sums at a time. Sums are exact for any number; no command varies it."""
SUM_VALUES = 1 << 21
"""Wide rows are summed in shorter pieces, whose memory is used again and not asked for anew."""
EXACT_FLOAT = 1 << 53
"""Integers up to here are exact in float64."""
EXACT_INT = 1 << 62
"""Sums below this never overflow 64 bits."""

_progress: ContextVar[Callable[[int], None] | None] = ContextVar("privfit_progress", default=None)


@contextmanager
def on_progress(report: Callable[[int], None]) -> Iterator[None]:
    """While this is open, `report` is called with the number of rows read so far."""
    token = _progress.set(report)
    try:
        yield
    finally:
        _progress.reset(token)


def report_progress(rows: int) -> None:
    """Report to whoever asked for it that so many rows were read."""
    report = _progress.get()
    if report is not None:
        report(rows)


def rows_to_plan_for(table: Table, columns: Sequence[Column], parameters: PrivacyParameters) -> int | None:
    """How many rows a plan may know before it is made: under replace-one those of the table, from whatever source it
    is; under add-remove as many as are expected, or None.
    """
    return count_rows(table, columns) if parameters.adjacency == "replace-one" else parameters.expected_rows


def count_rows(table: Table, columns: Sequence[Column]) -> int | None:
    """How many rows a table has: by reading one column, where the table does not say.

    A table that passes by once is first kept in a temporary file, with these columns, and read from there. Where rows
    are left out, how many could be used, or None where that is private.
    """
    if table.leaves_out:
        return table.slots
    if table.passes_once:
        table.keep(columns)
    if table.n_rows is not None:
        return table.n_rows
    column = columns[:1]
    if table.cluster is not None:
        return sum(table.cluster.counts(column, table.positions(column)))
    return sum(len(batch[0]) for batch in table.batches(column, table.positions(column), BATCH_ROWS))


class Rows:
    """Encoded, clipped and quantised rows of a table, read batch by batch and never handed out.

    The sums are exact integers: the same bits for every engine, batch size, row order and number of threads.
    """

    def __init__(
        self,
        table: Table,
        schema: Schema,
        geometry: Geometry,
        *,
        batch_rows: int = BATCH_ROWS,
        threads: int | None = None,
        max_memory: int | None = None,
        weights: RowWeights | None = None,
    ) -> None:
        self.geometry, self.label, self.passes_once = geometry, table.label, table.passes_once
        self.known_rows: int | None = table.n_rows
        self.leaves_out, self.slots = table.leaves_out, table.slots
        self._table, self._batch_rows = table, batch_rows
        own, self.weights = schema.columns if geometry.target is not None else schema.features, weights
        self._columns = own if weights is None else (*own, weights.column)
        self.on_workers = table.cluster is not None
        """Whether functions are sent to the rows, and rows do not come here."""
        self.threads, self.max_memory, self._was_read = thread_count(threads), max_memory, False

    @property
    def n_rows(self) -> int:
        """The number of rows: public under replace-one, private under add-remove.

        A stream knows it after its first sum; `known_rows` is None before.
        """
        if self.known_rows is None:
            raise DataError("The number of rows of a stream or file is known after it was read once. Sum it first.")
        return self.known_rows

    def keep(self) -> None:
        """See to it that the table can be read again: one that passes by once is kept in a temporary file."""
        if self.passes_once:
            self._table.keep(self._columns)
            self.passes_once, self.known_rows = False, self._table.n_rows

    def batches(self) -> Iterator[Batch]:
        """The table's columns, batch by batch, as the schema lists them.

        For this package only: nothing outside reads rows.
        """
        return self._table.batches(self._columns, self._table.positions(self._columns), self._batch_rows)

    def pieces(self, size: int) -> Iterator[tuple[int, Batch]]:
        """One pass: the number of the first row of every piece, and its columns, at most so many rows of them.

        There are as many rows as the table says, and as many in every pass. Progress is reported in the first, but
        where rows are left out: how many are used is private.
        """
        report = None if self._was_read or self.leaves_out else _progress.get()
        seen = 0
        for first, piece in numbered_pieces(self.batches(), size):
            yield first, piece
            seen = first + len(piece[0])
            if report is not None:
                report(seen)
        if not seen:
            if not self.leaves_out:
                raise no_rows()
            yield 0, self._no_rows()
        if self.known_rows not in (None, seen):
            raise other_rows()
        self.known_rows, self._was_read = seen, True

    def _no_rows(self) -> Batch:
        """A piece without rows: where all are left out, sums are zero and nothing is refused."""
        empty: dict[bool, Values] = {True: np.empty(0, dtype=np.int32), False: np.empty(0)}
        return [empty[isinstance(column, Category)] for column in self._columns]

    def stated(self, event: Event, parameters: PrivacyParameters) -> Event:
        """The event of a release on these rows as it is charged: as promised, and as one on a part where rows are one.

        Rows that were divided by persons are refused one by one: how many of them a part has is private.
        """
        if (needed := self._table.needs_person) is not None:
            raise DataError(
                "A part of a table that was divided by persons was given, and a schema without the person column. Use "
                f"pf.Schema(..., person={needed!r}) for every release on the part. Nothing was charged."
            )
        stated = event if parameters.promise is None else event.promising(parameters.promise)
        part = self._table.part
        return stated if part is None else part.split.event(stated, part.name, int(stated.rows_per_person))

    def sum(self, kernel: Kernel) -> NDArray[np.int64]:
        """The exact sum of the kernel over all rows."""
        encoder, size, most = self._encoder(kernel)
        task = ProductSum.of(encoder, kernel, size, most)
        if task is None:
            total: NDArray[np.int64] = self._total(kernel, partial(kernel_sum, kernel))[0]
            return total
        return task.assembled(self._checked(self.total(task, size), most))

    def split_sum(self, kernel: Kernel, bits: RowBits) -> tuple[NDArray[np.int64], NDArray[np.int64], int]:
        """The exact sums over the rows whose bit is 0 and over those whose bit is 1, and how many have a 1.

        One pass.
        """
        firsts = None
        if self.on_workers:
            firsts, n_rows = self._firsts()
            bits = KnownBits.of(bits.ones(0, n_rows))
        of_zeros, of_ones, ones = self._total(kernel, partial(kernel_sums, kernel, bits), firsts)
        return of_zeros, of_ones, int(ones)

    def _total(self, kernel: Kernel, piece_sum: PieceSum, firsts: list[int] | None = None) -> Sums:
        """The sum over pieces of what `piece_sum` makes of encoded rows and the number of the first of them."""
        encoder, size, most = self._encoder(kernel)
        return self._checked(self.total(EncodedSum(encoder, piece_sum, most), size, firsts), most)

    def _encoder(self, kernel: Kernel) -> tuple[Encoder, int, int]:
        """What encodes rows for a kernel, in pieces of how many, and how many of them sums can hold."""
        if kernel.largest > EXACT_FLOAT:
            raise ValueError(
                f"One row could add {kernel.largest} to a sum, and integers are exact up to 2^53 only. "
                "Weigh the target less: a loss with more curvature or less slope. Nothing was charged."
            )
        encoder = Encoder(self.geometry, kernel.step, kernel.target_units, self.weights)
        size = max(1, min(SUM_ROWS, SUM_VALUES // encoder.height, EXACT_FLOAT // kernel.largest))
        return encoder, size, EXACT_INT // kernel.largest

    def _checked(self, total: Sums, most: int) -> Sums:
        """Sums of no more rows than they can hold."""
        if self.n_rows > most:
            raise too_many_rows(most)
        return total

    def total(self, task: PieceTask, size: int = SUM_ROWS, firsts: list[int] | None = None) -> Sums:
        """One pass: the sums over pieces of at most so many rows of what a task makes of them, here or on workers.

        Sums are of integers, so that neither pieces nor their order matter.
        """
        if self.on_workers:
            found = self.run(PartitionSum(task, size, firsts), added)
            return task((0, self._no_rows())) if found is None else found
        with one_blas_thread():
            return reduce(added, in_order(self.threads, task, self.pieces(size), 4 * self.threads))

    # -- on the workers of a cluster ---------------------------------------------------------------

    def run(
        self, work: Callable[[int, Iterator[Batch]], Made | None], add: Callable[[Made, Made], Made]
    ) -> Made | None:
        """One pass on workers: the sum of what is made of every partition; None where all rows are left out."""
        assert self._table.cluster is not None
        places = self._table.positions(self._columns)
        made = self._table.cluster.run(self._columns, places, self._batch_rows, work, add)
        self.was_counted(self._table.cluster.n_rows)
        return made

    def persist(self, encode: Callable[[Iterator[Batch]], Iterator[Any]]) -> Persisted:
        """All rows, encoded and kept on workers."""
        assert self._table.cluster is not None
        places = self._table.positions(self._columns)
        kept = self._table.cluster.persist(self._columns, places, self._batch_rows, encode)
        self.was_counted(self._table.cluster.n_rows)
        return kept

    def was_counted(self, rows: int | None) -> None:
        """So many rows were read: at least one, and as many as before."""
        if not rows and not self.leaves_out:
            raise no_rows()
        if self.known_rows not in (None, rows):
            raise other_rows()
        if not self._was_read and not self.leaves_out:
            report_progress(rows or 0)
        self.known_rows, self._was_read = rows, True

    def _firsts(self) -> tuple[list[int], int]:
        """The number of the first row of every partition, and how many rows there are."""
        assert self._table.cluster is not None
        counts = self._table.cluster.counts(self._columns, self._table.positions(self._columns))
        return [0, *np.cumsum(counts).tolist()][:-1], sum(counts)
