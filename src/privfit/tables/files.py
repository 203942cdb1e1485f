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
    """A Parquet or CSV file, read in batches. Every pass must find the file that was opened, and all the rows that a Parquet file says it has."""

    n_rows: int | None = None

    def __init__(self, path: Path) -> None:
        self.label = path.name
        self.is_csv = not self.label.lower().endswith(PARQUET)
        self._path = path
        self._mark: Mark = quietly(self.label, lambda: mark_of(path))  # before anything is read of it
        self.scan = quietly(self.label, lambda: _scan_csv(path, as_text=False) if self.is_csv else _scan_parquet(path))
        self._fields = quietly(self.label, lambda: tuple(self.scan.collect_schema().names()))
        self.names: tuple[str, ...] | None = (
            tuple(_as_written(name, self._fields) for name in self._fields) if self.is_csv else self._fields
        )
        self._promised = None if self.is_csv else quietly(self.label, lambda: int(self.scan.select(pl.len()).collect().item()))

    @classmethod
    def open(cls, given: Any) -> FileTable:
        """The file at this path, by its ending."""
        path = existing_file(given)
        if path.name.lower().endswith((*PARQUET, *CSV)):
            return cls(path)
        raise DataError(
            f"The file {path.name!r} is neither Parquet nor CSV by its ending. Use one of {[*PARQUET, *CSV]}. Nothing was charged."
        )

    def kinds(self) -> pl.Schema:
        """The types of the columns; of a CSV file those that its first rows suggest, dates among them."""
        scan = _scan_csv(self._path, as_text=False, dates=True) if self.is_csv else self.scan
        return quietly(self.label, scan.collect_schema)

    @quiet_batches
    def batches(self, columns: Sequence[Column], positions: Sequence[int], rows: int) -> Iterator[Batch]:
        names = [self._fields[position] for position in positions]
        scan, read = (_scan_csv(self._path, as_text=True), csv_values) if self.is_csv else (self.scan, series_values)
        count = 0
        self._check_mark()
        for frame in query_batches(scan.select(names), rows, self.label):
            count += frame.height
            yield [read(series, column) for series, column in zip(frame.get_columns(), columns, strict=True)]
        self._check_mark()
        if self._promised not in (None, count):
            raise changed_file(self.label)

    def _check_mark(self) -> None:
        """Refuse a file that is not what it was when it was opened."""
        if mark_of(self._path) != self._mark:
            raise changed_file(self.label)


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
        raise wrong_type(column.name, "texts that are not numbers (a number has a decimal point and no separators)", wanted(column))
    return numbers.to_numpy()


def _parsed_codes(strings: pl.Series, column: Category) -> NDArray[np.int32]:
    plain = strings.str.strip_chars()
    truth = plain.str.to_lowercase().replace_strict(["true", "false"], [1.0, 0.0], default=None, return_dtype=pl.Float64)
    codes = codes_of_numbers(plain.cast(pl.Float64, strict=False).fill_null(truth).to_numpy(), column)
    return np.where(strings.is_null().to_numpy(), ABSENT, np.where(codes == ABSENT, UNKNOWN, codes)).astype(np.int32)


def _scan_parquet(path: Path) -> pl.LazyFrame:
    return pl.scan_parquet(path, glob=False, low_memory=True)


def _scan_csv(path: Path, as_text: bool, dates: bool = False) -> pl.LazyFrame:
    """The file, every cell as the text it is, or, for a draft of its schema, as the types that its first rows suggest."""
    first = _first_line(path)
    tab, semicolon = path.name.lower().endswith(".tsv"), first.count(";") > first.count(",")
    return pl.scan_csv(
        path,
        separator="\t" if tab else ";" if semicolon else ",",
        infer_schema=not as_text,
        try_parse_dates=dates,
        null_values=None if as_text else list(MISSING_TEXTS),
        glob=False,
    )


def _as_written(name: str, names: tuple[str, ...]) -> str:
    """The name that stands in the file: polars renames the second of two columns of one name, and the first would seem to be alone."""
    base = re.sub(r"_duplicated_\d+$", "", name)
    return base if base in names else name


def _first_line(path: Path) -> str:
    with path.open("rb") as file:
        compressed = file.read(2) == b"\x1f\x8b"
    if compressed:
        import gzip

        with gzip.open(path, "rb") as unpacked:
            return unpacked.readline().decode("utf-8", "replace")
    with path.open("rb") as file:
        return file.readline().decode("utf-8", "replace")
