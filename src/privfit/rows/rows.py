"""Rows: a table behind its schema.

Data is read by `Rows.sum` (and `split_sum`, the same over two parts) and, for many passes, by CachedDesign; by nothing
else.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from threading import Lock
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import ThreadpoolController

from privfit.rows.encoding import Encoder
from privfit.schema import Geometry, Schema
from privfit.tables import Batch, DataError, Table

BATCH_ROWS = 1 << 16
CHUNK_ROWS = 1 << 14
CHUNK_VALUES = 1 << 21  # wide rows in shorter chunks, whose memory is used again and not asked for anew
_EXACT_FLOAT = 1 << 53
_EXACT_INT = 1 << 62

_progress: ContextVar[Callable[[int], None] | None] = ContextVar("privfit_progress", default=None)


@contextmanager
def on_progress(report: Callable[[int], None]) -> Iterator[None]:
    """While this is open, `report` is called with the number of rows read so far."""
    token = _progress.set(report)
    try:
        yield
    finally:
        _progress.reset(token)


def progress_report() -> Callable[[int], None] | None:
    """Whom to tell how many rows were read, if anybody asked."""
    return _progress.get()


def count_rows(table: Table, schema: Schema) -> int | None:
    """How many rows a table has, if that can be found out without using it up: by reading one column, where the table
    does not say.
    """
    if table.n_rows is not None or table.passes_once:
        return table.n_rows
    column = schema.features[:1]
    return sum(len(batch[0]) for batch in table.batches(column, table.positions(column), BATCH_ROWS))


class Kernel(Protocol):
    """What is summed over rows."""

    @property
    def step(self) -> int:
        """The whole number that stands for 1 in a feature."""
        ...

    @property
    def target_units(self) -> int:
        """The whole number that stands for 1 in the target."""
        ...

    @property
    def largest(self) -> int:
        """The most that one row can add to any entry that is used."""
        ...

    def __call__(self, encoded: NDArray[np.float64]) -> NDArray[np.float64]:
        """The sum over these rows (one column of `encoded` per row): whole numbers, exact in float64."""
        ...


class Coins(Protocol):
    """A coin per row, thrown without looking at it."""

    def heads(self, first: int, count: int) -> NDArray[np.bool_]:
        """Which of `count` rows from number `first` on show heads. The same answer whenever asked."""
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
        self.geometry = geometry
        self.label = table.label
        self._table = table
        self._columns = schema.columns if geometry.target is not None else schema.features
        self._positions = table.positions(self._columns)
        self._batch_rows = batch_rows
        self.threads = (
            threads or len(os.sched_getaffinity(0))
            if hasattr(os, "sched_getaffinity")
            else threads or os.cpu_count() or 1
        )
        self._counted: int | None = table.n_rows

    @property
    def passes_once(self) -> bool:
        """Whether the table can be summed once only: a stream."""
        return self._table.passes_once

    @property
    def n_rows(self) -> int:
        """The number of rows: public under replace-one, private under add-remove.

        A stream knows it after its first sum.
        """
        if self._counted is None:
            raise DataError("The number of rows of a stream or file is known after it was read once. Sum it first.")
        return self._counted

    @property
    def known_rows(self) -> int | None:
        """The number of rows if it is known already."""
        return self._counted

    def settle_count(self, count: int) -> None:
        """Note how many rows there are, once all were read: as many as the table says, and as many in every pass."""
        if self._counted not in (None, count):
            raise DataError(
                "The table handed out another number of rows than it said it has, or than when it was read first. "
                "Give a table that nobody writes to. Nothing was charged."
            )
        self._counted = count

    def batches(self) -> Iterator[Batch]:
        """The table's columns, batch by batch, as the schema lists them.

        For this room only: nothing outside reads rows.
        """
        return self._table.batches(self._columns, self._positions, self._batch_rows)

    def sum(self, kernel: Kernel) -> NDArray[np.int64]:
        """The exact sum of the kernel over all rows."""

        def chunk_sum(encoded: NDArray[np.float64], first: int) -> NDArray[np.int64]:
            return kernel(encoded).astype(np.int64)

        return self._total(kernel, chunk_sum)

    def split_sum(self, kernel: Kernel, coins: Coins) -> tuple[NDArray[np.int64], NDArray[np.int64], int]:
        """The exact sums over the rows whose coin shows tails and over those that show heads, and how many show heads.

        One pass.
        """
        heads = [0]

        def chunk_sum(encoded: NDArray[np.float64], first: int) -> NDArray[np.int64]:
            shown = coins.heads(first, encoded.shape[1])
            with _counting:
                heads[0] += int(shown.sum())
            return np.stack([kernel(encoded[:, ~shown]), kernel(encoded[:, shown])]).astype(np.int64)

        tails_sum, heads_sum = self._total(kernel, chunk_sum)
        return tails_sum, heads_sum, heads[0]

    def _total(
        self, kernel: Kernel, chunk_sum: Callable[[NDArray[np.float64], int], NDArray[np.int64]]
    ) -> NDArray[np.int64]:
        """The sum over chunks of what `chunk_sum` makes of encoded rows and the number of the first of them."""
        if kernel.largest > _EXACT_FLOAT:
            raise ValueError(
                f"One row could add {kernel.largest} to a sum, and whole numbers are exact up to 2^53 only. "
                "Weigh the target less: a loss with more curvature or less slope. Nothing was charged."
            )
        encoder = Encoder(self.geometry, kernel.step, kernel.target_units)
        size = max(1, min(CHUNK_ROWS, CHUNK_VALUES // encoder.height, _EXACT_FLOAT // kernel.largest))
        most = _EXACT_INT // kernel.largest

        def task(batch: Batch, start: int, stop: int, first: int) -> NDArray[np.int64]:
            return chunk_sum(encoder.encode(batch, start, stop), first)

        total: NDArray[np.int64] | None = None
        rows = 0
        report = progress_report()
        with one_blas_thread(), ThreadPoolExecutor(self.threads) as pool:
            pending: deque[Future[NDArray[np.int64]]] = deque()
            for batch in self.batches():
                length = len(batch[0])
                before, rows = rows, rows + length
                if rows > most:
                    raise DataError(
                        f"The table has more than {most} rows, and 64-bit sums would overflow. Split the table. "
                        "Nothing was charged."
                    )
                for start in range(0, length, size):
                    pending.append(pool.submit(task, batch, start, min(start + size, length), before + start))
                while len(pending) > 4 * self.threads:
                    total = _added(total, pending.popleft().result())
                if report is not None:
                    report(rows)
            while pending:
                total = _added(total, pending.popleft().result())
        if total is None:
            raise DataError(
                "The table has no rows (0 sample(s)), and a minimum of 1 is required. Give a table with rows. Nothing "
                "was charged."
            )
        self.settle_count(rows)
        return total


def _added(total: NDArray[np.int64] | None, part: NDArray[np.int64]) -> NDArray[np.int64]:
    return part if total is None else total + part


@cache
def _blas() -> ThreadpoolController:
    return ThreadpoolController()


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Our own threads share the cores; BLAS threads on top of them only get in each other's way."""
    with _blas().limit(limits=1, user_api="blas"):
        yield
