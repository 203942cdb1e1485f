"""Parquet and CSV files, scanned in batches by polars and never held in memory whole."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from privfit.schema import Category, Column, Numeric
from privfit.tables.csv_lines import count_rows, separator_of
from privfit.tables.frames import series_values, text_codes
from privfit.tables.paths import CSV, PARQUET, Mark, changed_file, existing_file, mark_of
from privfit.tables.queries import query_batches
from privfit.tables.quiet import quiet_batches, quietly
from privfit.tables.table import ABSENT, UNKNOWN, Batch, DataError, Values, codes_of_numbers, wanted, wrong_type

MISSING_TEXTS = ("", "NA", "N/A", "n/a", "<NA>", "NaN", "nan", "NULL", "null", "None")
"""What stands for a missing value in a CSV file, unless the schema lists it as a level."""


class QueryTable:
    """A query of polars, read in batches."""

    n_rows: int | None = None
    label = "polars query"

    def __init__(self, scan: pl.LazyFrame) -> None:
        self.scan = scan
        self.names: tuple[str, ...] | None = quietly(self.label, lambda: tuple(scan.collect_schema().names()))

    @quiet_batches
    def batches(self, columns: Sequence[Column], positions: Sequence[int], rows: int) -> Iterator[Batch]:
        names = [self.names[position] for position in positions]  # type: ignore[index]
        for frame in query_batches(self.scan.select(names), rows, self.label):
            yield [series_values(series, column) for series, column in zip(frame.get_columns(), columns, strict=True)]


class FileTable:
    """A Parquet or CSV file, read in batches.

    Every pass must find the file that was opened, and all its rows: as many as a Parquet file says it has, or as the
    records of a CSV file, which the first pass checks and counts by itself. That is before the charge, and later passes
    find the same file.
    """

    n_rows: int | None = None

    def __init__(self, path: Path) -> None:
        self.label = path.name
        self.is_csv = not self.label.lower().endswith(PARQUET)
        self._path = path
        self._mark: Mark = quietly(self.label, lambda: mark_of(path))  # before anything is read of it
        self._separator = quietly(self.label, lambda: separator_of(path)) if self.is_csv else ""
        self.scan = quietly(self.label, lambda: self._scan_csv(as_text=False) if self.is_csv else _scan_parquet(path))
        self._fields = quietly(self.label, lambda: tuple(self.scan.collect_schema().names()))
        self.names: tuple[str, ...] | None = (
            tuple(_as_written(name, self._fields) for name in self._fields) if self.is_csv else self._fields
        )
        self._promised = (
            None if self.is_csv else quietly(self.label, lambda: int(self.scan.select(pl.len()).collect().item()))
        )

    @classmethod
    def open(cls, given: Any) -> FileTable:
        """The file at this path, by its ending."""
        path = existing_file(given)
        if path.name.lower().endswith((*PARQUET, *CSV)):
            return cls(path)
        raise DataError(
            f"The file {path.name!r} is neither Parquet nor CSV by its ending. Use one of {[*PARQUET, *CSV]}. Nothing "
            "was charged."
        )

    def kinds(self) -> pl.Schema:
        """The types of the columns; of a CSV file those that its first rows suggest, dates among them."""
        scan = self._scan_csv(as_text=False, dates=True) if self.is_csv else self.scan
        return quietly(self.label, scan.collect_schema)

    @quiet_batches
    def batches(self, columns: Sequence[Column], positions: Sequence[int], rows: int) -> Iterator[Batch]:
        names = [self._fields[position] for position in positions]
        scan, read = (self._scan_csv(as_text=True), csv_values) if self.is_csv else (self.scan, series_values)
        count = 0
        self._check_mark()
        self._count_lines()
        for frame in query_batches(scan.select(names), rows, self.label):
            count += frame.height
            yield [read(series, column) for series, column in zip(frame.get_columns(), columns, strict=True)]
        self._check_mark()
        self._check_count(count)

    def whole(self) -> pl.DataFrame:
        """All of the file, its columns of the types that its first rows suggest."""
        self._count_lines()
        frame = self.scan.collect()
        self._check_count(frame.height)
        return frame

    def _check_mark(self) -> None:
        """Refuse a file that is not what it was when it was opened."""
        if mark_of(self._path) != self._mark:
            raise changed_file(self.label)

    def _count_lines(self) -> None:
        """Refuse a CSV file that readers understand differently, and keep the number of its rows."""
        if self._promised is None:
            self._promised = count_rows(self._path, self._separator, len(self._fields))

    def _check_count(self, rows: int) -> None:
        if rows != self._promised:
            raise _miscounted(self.label) if self.is_csv else changed_file(self.label)

    def _scan_csv(self, as_text: bool, dates: bool = False) -> pl.LazyFrame:
        """The file, every cell as the text it is, or, for a draft of its schema, as the types that its first rows
        suggest.
        """
        return pl.scan_csv(
            self._path,
            separator=self._separator,
            infer_schema=not as_text,
            try_parse_dates=dates,
            null_values=None if as_text else list(MISSING_TEXTS),
            glob=False,
        )


def csv_values(series: pl.Series, column: Column) -> Values:
    """One column of a CSV file. Everything in it is text, so that numbers are read out of texts, cell by cell."""
    listed = column.levels if isinstance(column, Category) else ()
    strings = series.set(series.is_in([text for text in MISSING_TEXTS if text not in listed]), None)
    if isinstance(column, Numeric):
        return _parsed_numbers(strings, column)
    return text_codes(strings, column) if column.is_text else _parsed_codes(strings, column)


def _parsed_numbers(strings: pl.Series, column: Numeric) -> NDArray[np.float64]:
    numbers = strings.str.strip_chars().cast(pl.Float64, strict=False)
    if numbers.null_count() > strings.null_count():
        raise wrong_type(
            column.name, "texts that are not numbers (a number has a decimal point and no separators)", wanted(column)
        )
    return numbers.to_numpy()


def _parsed_codes(strings: pl.Series, column: Category) -> NDArray[np.int32]:
    plain = strings.str.strip_chars()
    truth = plain.str.to_lowercase().replace_strict(
        ["true", "false"], [1.0, 0.0], default=None, return_dtype=pl.Float64
    )
    codes = codes_of_numbers(plain.cast(pl.Float64, strict=False).fill_null(truth).to_numpy(), column)
    return np.where(strings.is_null().to_numpy(), ABSENT, np.where(codes == ABSENT, UNKNOWN, codes)).astype(np.int32)


def _scan_parquet(path: Path) -> pl.LazyFrame:
    return pl.scan_parquet(path, glob=False, low_memory=True)


def _as_written(name: str, names: tuple[str, ...]) -> str:
    """The name that stands in the file: polars renames the second of two columns of one name, and the first would seem
    to be alone.
    """
    base = re.sub(r"_duplicated_\d+$", "", name)
    return base if base in names else name


def _miscounted(label: str) -> DataError:
    """The error for a CSV file of which polars finds more or fewer rows than there are records."""
    return DataError(
        f"The file {label!r} is read as another number of rows than it has records. "
        "Write it again, as Parquet if it can be, or read it yourself and give the frame. Nothing was charged."
    )
