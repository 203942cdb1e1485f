"""Rows: a table behind its schema, read in two ways and no other.

`Rows.sum` (and `split_sum`, the same over two parts) adds up exact integers in one pass. `CachedRows` is the base of
all that is read many times: encoded once, kept in memory where it fits, and read again where it does not.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from threading import Lock
from typing import Generic, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import ThreadpoolController

from privfit.rows.encoding import Encoder
from privfit.schema import Geometry, Schema
from privfit.tables import NOT_CHARGED, Batch, DataError, Table

Given = TypeVar("Given")
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


def count_rows(table: Table, schema: Schema) -> int | None:
    """How many rows a table has, if that can be found out without using it up: by reading one column, where the table
    does not say.

    A query is run once, kept in a temporary file, and read from there.
    """
    if table.passes_once and table.runs_again:
        table.keep(schema.columns)
    if table.n_rows is not None or table.passes_once:
        return table.n_rows
    column = schema.features[:1]
    return sum(len(batch[0]) for batch in table.batches(column, table.positions(column), BATCH_ROWS))


class Kernel(Protocol):
    """What is summed over rows."""

    @property
    def step(self) -> int:
        """The integer that stands for 1 in a feature."""
        ...

    @property
    def target_units(self) -> int:
        """The integer that stands for 1 in the target."""
        ...

    @property
    def largest(self) -> int:
        """The most that one row can add to any entry that is used."""
        ...

    def __call__(self, encoded: NDArray[np.float64]) -> NDArray[np.float64]:
        """The sum over these rows (one column of `encoded` per row): integers, exact in float64."""
        ...


class RowBits(Protocol):
    """A random bit per row, drawn without looking at it."""

    def ones(self, first: int, count: int) -> NDArray[np.bool_]:
        """Which of `count` rows from number `first` on have a 1. The same answer whenever asked."""
        ...


_counting = Lock()


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
    ) -> None:
        self.geometry, self.label = geometry, table.label
        self.passes_once = table.passes_once
        self.known_rows: int | None = table.n_rows
        self._table, self._batch_rows = table, batch_rows
        self._columns = schema.columns if geometry.target is not None else schema.features
        self._positions = table.positions(self._columns)
        cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
        self.threads = threads or cores or 1
        self._was_read = False

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
        return self._table.batches(self._columns, self._positions, self._batch_rows)

    def pieces(self, size: int) -> Iterator[tuple[int, Batch]]:
        """One pass: the number of the first row of every piece, and its columns, at most so many rows of them.

        There are as many rows as the table says, and as many in every pass. Progress is reported in the first.
        """
        report = None if self._was_read else _progress.get()
        seen = 0
        for batch in self.batches():
            for start in range(0, len(batch[0]), size):
                piece = [column[start : start + size] for column in batch]
                yield seen, piece
                seen += len(piece[0])
                if report is not None:
                    report(seen)
        if not seen:
            raise no_rows()
        if self.known_rows not in (None, seen):
            raise other_rows()
        self.known_rows, self._was_read = seen, True

    def sum(self, kernel: Kernel) -> NDArray[np.int64]:
        """The exact sum of the kernel over all rows."""

        def piece_sum(encoded: NDArray[np.float64], first: int) -> NDArray[np.int64]:
            return kernel(encoded).astype(np.int64)

        return self._total(kernel, piece_sum)

    def split_sum(self, kernel: Kernel, bits: RowBits) -> tuple[NDArray[np.int64], NDArray[np.int64], int]:
        """The exact sums over the rows whose bit is 0 and over those whose bit is 1, and how many have a 1.

        One pass.
        """
        ones = [0]

        def piece_sum(encoded: NDArray[np.float64], first: int) -> NDArray[np.int64]:
            drawn = bits.ones(first, encoded.shape[1])
            with _counting:
                ones[0] += int(drawn.sum())
            return np.stack([kernel(encoded[:, ~drawn]), kernel(encoded[:, drawn])]).astype(np.int64)

        of_zeros, of_ones = self._total(kernel, piece_sum)
        return of_zeros, of_ones, ones[0]

    def _total(
        self, kernel: Kernel, piece_sum: Callable[[NDArray[np.float64], int], NDArray[np.int64]]
    ) -> NDArray[np.int64]:
        """The sum over pieces of what `piece_sum` makes of encoded rows and the number of the first of them."""
        if kernel.largest > EXACT_FLOAT:
            raise ValueError(
                f"One row could add {kernel.largest} to a sum, and integers are exact up to 2^53 only. "
                "Weigh the target less: a loss with more curvature or less slope. Nothing was charged."
            )
        encoder = Encoder(self.geometry, kernel.step, kernel.target_units)
        size = max(1, min(SUM_ROWS, SUM_VALUES // encoder.height, EXACT_FLOAT // kernel.largest))
        most = EXACT_INT // kernel.largest

        def task(piece: tuple[int, Batch]) -> NDArray[np.int64]:
            first, batch = piece
            if first + len(batch[0]) > most:
                raise too_many_rows(most)
            return piece_sum(encoder.encode(batch), first)

        with one_blas_thread(), ThreadPoolExecutor(self.threads) as pool:
            sums = in_order(pool, task, self.pieces(size), 4 * self.threads)
            total = next(sums)
            for part in sums:
                total = total + part
        return total


class Kept(Protocol):
    """Some encoded rows in memory."""

    @property
    def nbytes(self) -> int:
        """How much memory they take."""
        ...


Chunks = TypeVar("Chunks", bound=Kept)


class CachedRows(ABC, Generic[Chunks]):
    """The rows of a table for several passes: kept in memory, or read again where they take more than `most_bytes`.

    Subclasses say how rows are encoded, and hand out sums over them; never a row.
    """

    def __init__(self, rows: Rows, most_bytes: int | None = None) -> None:
        self._rows = rows
        self._most_bytes = HALF_OF_MEMORY if most_bytes is None else most_bytes
        self._chunks: list[Chunks] | None = None
        self.n_rows = 0

    @abstractmethod
    def _encoded(self) -> Iterator[Chunks]:
        """All rows, encoded, in one pass over the table."""

    def read(self) -> None:
        """Read everything once: keep it if it fits, count it in any case, and meet every error that the table holds
        before anything is charged. A second call does nothing.
        """
        if self.n_rows:
            return
        chunks: list[Chunks] | None = []
        held = 0
        for chunk in self._encoded():
            if chunks is None:
                continue
            chunks.append(chunk)
            held += chunk.nbytes
            if held > self._most_bytes:
                refuse_large_stream(self._rows)
                chunks = None
        self._chunks, self.n_rows = chunks, self._rows.n_rows

    def _every_chunk(self) -> Iterator[Chunks]:
        """The rows from memory, or else of the table, which must have as many as when it was read first.

        Reading again happens after the charge, where no error may depend on a row. What a row can do to a reader (a
        cell of the wrong kind, a query that panics on a value), it did in the first pass, before the charge: engines
        read the same bytes the same way twice. What fails here and did not then was changed from outside: a file was
        replaced, a disk failed. Tables that may answer differently when asked again are streams, and are never read
        twice. (A query with a random part is the one exception: it is its author who makes the passes differ.)
        """
        if self._chunks is not None:
            yield from self._chunks
            return
        try:
            yield from self._encoded()
        except DataError as error:
            told = str(error).replace(NOT_CHARGED, "")
        else:
            return
        raise DataError(f"{told} The table was being read again, and is not what it was at first. The charge stands.")


def _half_of_memory() -> int:
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2
    except (AttributeError, ValueError, OSError):
        return 1 << 32


HALF_OF_MEMORY = _half_of_memory()
"""Bytes of encoded rows that are kept: the rest is for the caller's table and for solvers. More rows are read again in
every pass.
"""


def refuse_large_stream(rows: Rows) -> None:
    """Refuse a stream that does not fit in memory, before anything is charged."""
    if rows.passes_once:
        raise DataError(
            f"A {rows.label} was given to a fit in several passes, and what it holds does not fit in memory. "
            "Give a file or a table that can be read again. Nothing was charged."
        )


def no_rows() -> DataError:
    """The error for an empty table."""
    return DataError(
        "The table has no rows (0 sample(s)), and a minimum of 1 is required. Give a table with rows. Nothing was "
        "charged."
    )


def other_rows() -> DataError:
    """The error for a table that grew or shrank between two readings, or that has another number than it said."""
    return DataError(
        "The table has another number of rows than it said, or than when it was read first. "
        "Give a table that nobody writes to. Nothing was charged."
    )


def too_many_rows(most: int) -> DataError:
    """The error for a table whose sums would not be exact."""
    return DataError(
        f"The table has more than {most} rows, and 64-bit sums would overflow. Split the table. Nothing was charged."
    )


def in_order(
    pool: ThreadPoolExecutor, task: Callable[[Given], Made], pieces: Iterator[Given], ahead: int
) -> Iterator[Made]:
    """What a task makes of the pieces, in their order, with few of them in work at a time."""
    pending: deque[Future[Made]] = deque()
    broken: Exception | None = None
    while True:
        try:
            piece = next(pieces)
        except StopIteration:
            break
        except Exception as error:  # what rows before it have to say comes first, however far ahead was read
            broken = error
            break
        pending.append(pool.submit(task, piece))
        if len(pending) > ahead:
            yield pending.popleft().result()
    while pending:
        yield pending.popleft().result()
    if broken is not None:
        raise broken


@cache
def _blas() -> ThreadpoolController:
    return ThreadpoolController()


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Our own threads share the cores; BLAS threads on top of them only get in each other's way."""
    with _blas().limit(limits=1, user_api="blas"):
        yield
