"""Tables of polars: frames in memory, and queries that are read in batches, to their very end or not at all."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from queue import Full, Queue
from threading import Event, Thread, main_thread

import polars as pl

from privfit.schema import Column
from privfit.tables.errors import unreadable
from privfit.tables.table import Batch, Table, quietly, series_values

WAITING = 2
"""Batches that the engine may be ahead: enough that neither side waits for the other, and no more memory than that."""
PATIENCE = 0.1
"""Seconds after which a waiting engine looks whether anybody still reads; only an abandoned read ever waits that long.
"""


class PolarsTable(Table):
    """A polars frame, or an Arrow table seen as one without copying."""

    in_memory = True

    def __init__(self, frame: pl.DataFrame, label: str = "polars frame") -> None:
        self._frame, self.label = frame, label
        self.names, self.n_rows = tuple(frame.columns), frame.height

    def read(self, columns: Sequence[Column], positions: Sequence[int], rows: int) -> Iterator[Batch]:
        chosen = [self._frame.to_series(position) for position in positions]
        for start in range(0, self._frame.height, rows):
            yield [
                series_values(series.slice(start, rows), column) for series, column in zip(chosen, columns, strict=True)
            ]


class QueryTable(Table):
    """A query of polars, read in batches."""

    label = "polars query"

    def __init__(self, query: pl.LazyFrame) -> None:
        self._query = query
        self.names = quietly(self.label, lambda: tuple(query.collect_schema().names()))

    def read(self, columns: Sequence[Column], positions: Sequence[int], rows: int) -> Iterator[Batch]:
        for frame in query_batches(chosen_columns(self._query, positions), rows, self.label):
            yield [series_values(series, column) for series, column in zip(frame.get_columns(), columns, strict=True)]


def chosen_columns(query: pl.LazyFrame, positions: Sequence[int]) -> pl.LazyFrame:
    """The columns at these positions, called by their place: one may be asked for twice, and a name such as `*` or
    `^x$` would stand for others.
    """
    return query.select(pl.nth(position).alias(str(place)) for place, position in enumerate(positions))


@dataclass(frozen=True)
class _End:
    """How a query ended: of its own accord, or with an error of this type."""

    error: str | None


def query_batches(query: pl.LazyFrame, rows: int, label: str) -> Iterator[pl.DataFrame]:
    """The rows of a query in batches of about `rows`, in order; an error if the engine did not come to the end of them.

    `LazyFrame.collect_batches` runs a query on a thread of its own and takes the end of that thread for the end of the
    rows. If the query panics on the value in one cell, the thread ends and the rest of the table is missing without an
    error: one row decides what becomes of the others. `sink_batches` returns after the last batch, or raises what
    stopped it, a panic too. It calls back; the queue turns that round. Nothing of the engine's error but its type is
    kept.
    """
    handed: Queue[pl.DataFrame | _End] = Queue(WAITING)
    left = Event()

    def hand_on(frame: pl.DataFrame) -> bool:
        """Called by the engine. True means that nobody reads any more."""
        return not _put(handed, frame, left)

    def run() -> None:
        kind = None
        try:
            query.sink_batches(hand_on, chunk_size=rows, maintain_order=True, engine="streaming")
        except BaseException as error:
            kind = type(error).__name__
        _put(handed, _End(kind), left)

    engine = Thread(target=run, name="privfit-query")
    engine.start()
    try:
        while not isinstance(part := handed.get(), _End):
            yield part
        if part.error is not None:
            raise unreadable(label, part.error)
    finally:
        left.set()
        engine.join()


def _put(handed: Queue[pl.DataFrame | _End], part: pl.DataFrame | _End, left: Event) -> bool:
    """Whether the reader took it. A reader that went away, or a program that ends, takes nothing."""
    while not left.is_set() and main_thread().is_alive():
        try:
            handed.put(part, timeout=PATIENCE)
        except Full:
            continue
        return True
    return False
