"""Files, which must stay what they were when they were opened; and Parquet files, scanned in batches by polars."""

from __future__ import annotations

import os
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import ClassVar

import polars as pl

from privfit.schema import Column
from privfit.tables.errors import DataError
from privfit.tables.polars_tables import query_batches, series_values
from privfit.tables.table import Batch, Table

Mark = tuple[int, int, int, int]


class FileTable(Table):
    """A file of one table, read in batches and never held in memory whole.

    Every pass must find the file that was opened, and all its rows.
    """

    kind: ClassVar[str]
    endings: ClassVar[tuple[str, ...]]

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


class ParquetTable(FileTable):
    """A Parquet file. Its metadata says how many rows it has, and every pass must find as many."""

    kind = "Parquet"
    endings = (".parquet", ".pq")

    def __init__(self, path: Path, label: str | None = None) -> None:
        super().__init__(path, label)
        self._scan = pl.scan_parquet(path, glob=False, low_memory=True)
        self.names = self._fields = tuple(self._scan.collect_schema().names())
        self.n_rows = int(self._scan.select(pl.len()).collect().item())

    def read(self, columns: Sequence[Column], positions: Sequence[int], rows: int) -> Iterator[Batch]:
        """Batches of polars' streaming engine."""
        self.check_unchanged()
        count = 0
        for frame in query_batches(self._scan.select([self._fields[place] for place in positions]), rows, self.label):
            count += frame.height
            yield [series_values(series, column) for series, column in zip(frame.get_columns(), columns, strict=True)]
        self.check_unchanged()
        if count != self.n_rows:
            raise changed_file(self.label)

    def kinds(self) -> pl.Schema:
        """The types that the file states."""
        return self._scan.collect_schema()

    def whole(self) -> pl.DataFrame:
        """All rows."""
        frame = self._scan.collect()
        if frame.height != self.n_rows:
            raise changed_file(self.label)
        return frame


def mark_of(path: Path) -> Mark:
    """What tells a file from any other, and from itself after it was written to."""
    state = os.stat(path)
    return state.st_dev, state.st_ino, state.st_size, state.st_mtime_ns


def changed_source(label: str) -> DataError:
    """The error for a source that is not what it was when it was opened, or hands out other rows than it said."""
    return DataError(
        f"The {label} changed after it was opened, or handed out another number of rows than it said it has. "
        "Give a source that nobody writes to. Nothing was charged."
    )


def changed_file(label: str) -> DataError:
    """The error for a file that is not what it was when it was opened."""
    return DataError(
        f"The file {label!r} was cut, replaced or written to after it was opened, so that its rows are not those of "
        "one table. Give a copy that nobody writes to. Nothing was charged."
    )
