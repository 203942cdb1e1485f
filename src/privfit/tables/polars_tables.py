"""Tables of polars: frames in memory, and queries that are read in batches, to their very end or not at all.

Files of every kind must stay what they were when they were opened (`FileTable`).
"""

from __future__ import annotations

import os
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from queue import Full, Queue
from threading import Event, Thread, main_thread
from typing import ClassVar

import numpy as np
import polars as pl
from numpy.typing import NDArray

from privfit.schema import Category, Column, Numeric
from privfit.tables.errors import changed_file, unreadable, wrong_type
from privfit.tables.identifiers import PersonColumn, hashed_series
from privfit.tables.kept_columns import KeptColumn, kept_series
from privfit.tables.table import ABSENT, UNKNOWN, Batch, Table, Values, codes_of_numbers, only_absent, quietly

Mark = tuple[int, int, int, int]

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


class FileTable(Table):
    """A file of one table, read in batches and never held in memory whole.

    Every pass must find the file that was opened, and all its rows.
    """

    kind: ClassVar[str]
    endings: ClassVar[tuple[str, ...]]
    same_order = True

    def __init__(self, path: Path, label: str | None = None) -> None:
        self.path, self.label = path, path.name if label is None else label
        self._mark = mark_of(path)  # before anything is read of it

    def check_unchanged(self) -> None:
        """Refuse a file that is not what it was when it was opened."""
        if mark_of(self.path) != self._mark:
            raise changed_file(self.label)

    @abstractmethod
    def kinds(self) -> pl.Schema:
        """The types of the columns."""

    @abstractmethod
    def whole(self) -> pl.DataFrame:
        """All of the file: for public tables."""


def mark_of(path: Path) -> Mark:
    """What distinguishes a file from any other, and from itself after it was written to."""
    state = os.stat(path)
    return state.st_dev, state.st_ino, state.st_size, state.st_mtime_ns


def series_values(series: pl.Series, column: Column) -> Values:
    """One polars column as numbers or as positions of levels."""
    if isinstance(column, KeptColumn):
        return kept_series(series, column.name)
    if isinstance(column, PersonColumn):
        return hashed_series(series, column)
    dtype = series.dtype
    if series.null_count() == len(series):  # nothing is there, and nothing is of every kind
        return (
            np.full(len(series), np.nan)
            if isinstance(column, Numeric)
            else np.full(len(series), ABSENT, dtype=np.int32)
        )
    text = dtype == pl.String or isinstance(dtype, pl.Categorical | pl.Enum)
    number = dtype.is_numeric() or dtype == pl.Boolean
    if number:
        numbers = series.cast(pl.Float64).to_numpy()
        if isinstance(column, Numeric):
            return numbers
        return (
            only_absent(np.isnan(numbers), "numbers", column) if column.is_text else codes_of_numbers(numbers, column)
        )
    if text and isinstance(column, Category) and column.is_text:
        return text_codes(series.cast(pl.String), column)
    raise wrong_type(column, "texts" if text else f"values of type {type(dtype).__name__}")


def text_codes(strings: pl.Series, column: Category) -> NDArray[np.int32]:
    """Positions of texts among a category's levels."""
    places = strings.cast(pl.Enum(map(str, column.levels)), strict=False).to_physical().cast(pl.Int32)
    if not places.null_count():
        return places.to_numpy()
    codes = places.fill_null(UNKNOWN).to_numpy()
    return np.where(strings.is_null().to_numpy(), np.int32(ABSENT), codes)


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
