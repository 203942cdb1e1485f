"""Parquet and CSV files, scanned in batches by polars and never held in memory whole."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

from privfit.schema import Category, Column, Numeric
from privfit.tables.frames import series_values, text_codes
from privfit.tables.quiet import quietly
from privfit.tables.table import ABSENT, UNKNOWN, Batch, DataError, Values, codes_of_numbers, wanted, wrong_type

PARQUET = (".parquet", ".pq")
CSV = (".csv", ".csv.gz", ".tsv")
MISSING_TEXTS = ("", "NA", "N/A", "n/a", "<NA>", "NaN", "nan", "NULL", "null", "None")
"""What stands for a missing value in a CSV file, unless the schema lists it as a level."""


class FileTable:
    """A Parquet or CSV file, or any polars query, read in batches."""

    n_rows: int | None = None

    def __init__(self, scan: pl.LazyFrame, label: str, csv: Path | None = None) -> None:
        self.scan = scan
        self._csv = csv
        self.label = label
        self.names: tuple[str, ...] | None = quietly(label, lambda: tuple(scan.collect_schema().names()))
        if csv is not None:
            _refuse_twins(self.names)

    @classmethod
    def open(cls, path: Path) -> FileTable:
        """The file at this path, by its ending."""
        if not path.is_file():
            raise DataError(f"There is no file {path.name!r}. Give the path of a Parquet or CSV file. Nothing was charged.")
        name = path.name.lower()
        if name.endswith(PARQUET):
            return cls(quietly(path.name, lambda: pl.scan_parquet(path, glob=False, low_memory=True)), path.name)
        if name.endswith(CSV):
            return cls(quietly(path.name, lambda: _scan_csv(path, as_text=False)), path.name, path)
        raise DataError(
            f"The file {path.name!r} is neither Parquet nor CSV by its ending. Use one of {[*PARQUET, *CSV]}. Nothing was charged."
        )

    def batches(self, columns: Sequence[Column], positions: Sequence[int], rows: int) -> Iterator[Batch]:
        names = [self.names[position] for position in positions]  # type: ignore[index]
        csv = self._csv
        scan = self.scan if csv is None else quietly(self.label, lambda: _scan_csv(csv, as_text=True))
        read = series_values if csv is None else csv_values
        frames = quietly(self.label, lambda: iter(scan.select(names).collect_batches(chunk_size=rows, maintain_order=True)))
        while (frame := quietly(self.label, lambda: next(frames, None))) is not None:
            yield [read(series, column) for series, column in zip(frame.get_columns(), columns, strict=True)]


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


def _scan_csv(path: Path, as_text: bool) -> pl.LazyFrame:
    """The file, every cell as the text it is, or, for a draft of its schema, as the types that its first rows suggest."""
    first = _first_line(path)
    tab, semicolon = path.name.lower().endswith(".tsv"), first.count(";") > first.count(",")
    return pl.scan_csv(
        path,
        separator="\t" if tab else ";" if semicolon else ",",
        infer_schema=not as_text,
        null_values=None if as_text else list(MISSING_TEXTS),
        glob=False,
    )


def _first_line(path: Path) -> str:
    with path.open("rb") as file:
        compressed = file.read(2) == b"\x1f\x8b"
    if compressed:
        import gzip

        with gzip.open(path, "rb") as unpacked:
            return unpacked.readline().decode("utf-8", "replace")
    with path.open("rb") as file:
        return file.readline().decode("utf-8", "replace")


def _refuse_twins(names: tuple[str, ...] | None) -> None:
    """polars renames the second of two columns of one name, and the schema would find the first as if it were alone."""
    twins = [name for name in names or () if f"{name}_duplicated_0" in (names or ())]
    if twins:
        raise DataError(
            f"The file has more than one column called {', '.join(map(repr, twins))}. Rename or drop one of them. Nothing was charged."
        )
