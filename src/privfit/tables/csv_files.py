"""CSV files, read in batches by polars as the texts they are, after their records were checked byte by byte."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

import numpy as np
import polars as pl
from numpy.typing import NDArray

from privfit.schema import Category, Column, Numeric, OpenCategory
from privfit.tables.csv_lines import count_records, separator_of
from privfit.tables.errors import DataError, wrong_type
from privfit.tables.identifiers import PersonColumn, hashed_series
from privfit.tables.kept_columns import KeptColumn, kept_series
from privfit.tables.open_levels import open_series
from privfit.tables.polars_tables import chosen_columns, query_batches
from privfit.tables.table import ABSENT, UNKNOWN, Batch, FileTable, Values, codes_of_numbers, quietly, text_codes

MISSING_TEXTS = ("", "NA", "N/A", "n/a", "<NA>", "NaN", "nan", "NULL", "null", "None")
"""What stands for a missing value in a CSV file, unless the schema lists it as a level."""


class CsvTable(FileTable):
    """A CSV file.

    The first pass checks and counts its records by itself. That is before the charge, and later passes find the same
    file.
    """

    kind = "CSV"
    endings = (".csv", ".csv.gz", ".tsv")
    is_csv = True

    def opened(self) -> None:
        """Read the line of names."""
        self._separator = separator_of(self.path)
        self._fields = tuple(self._scan(as_text=False).collect_schema().names())
        self.names = tuple(_as_written(name, self._fields) for name in self._fields)

    def scanned(self, columns: Sequence[Column], positions: Sequence[int], rows: int) -> Iterator[Batch]:
        """Batches of polars' streaming engine, read out of texts."""
        self._check_records()
        query = chosen_columns(self._scan(as_text=True), positions)
        for frame in query_batches(query, rows, self.label):
            yield [csv_values(series, column) for series, column in zip(frame.get_columns(), columns, strict=True)]

    def kinds(self) -> pl.Schema:
        """The types that the first rows suggest, dates among them."""
        return quietly(self.label, self._scan(as_text=False, dates=True).collect_schema)

    def whole(self) -> pl.DataFrame:
        """All rows, the columns of the types that the first rows suggest."""
        self._check_records()
        frame = self._scan(as_text=False).collect()
        if frame.height != self.promised:
            raise self.miscounted()
        return frame

    def miscounted(self) -> DataError:
        """The error for a CSV file of which polars finds more or fewer rows than there are records."""
        return DataError(
            f"The file {self.label!r} is read as another number of rows than it has records. "
            "Write it again, as Parquet if it can be, or read it yourself and give the frame. Nothing was charged."
        )

    def _check_records(self) -> None:
        """Count the rows of a file that all readers understand alike; others are refused."""
        if self.promised is None:
            self.promised = count_records(self.path, self._separator, len(self._fields))

    def _scan(self, as_text: bool, dates: bool = False) -> pl.LazyFrame:
        """The file, every cell as the text it is, or, for a draft of its schema, as the types that its first rows
        suggest.
        """
        return pl.scan_csv(
            self.path,
            separator=self._separator,
            infer_schema=not as_text,
            try_parse_dates=dates,
            null_values=None if as_text else list(MISSING_TEXTS),
            glob=False,
        )


def csv_values(series: pl.Series, column: Column) -> Values:
    """One column of a CSV file. Everything in it is text, so that numbers are read out of texts, cell by cell."""
    if isinstance(column, KeptColumn):
        return kept_series(series, column.name)
    if isinstance(column, PersonColumn):
        return hashed_series(series.set(series.is_in(MISSING_TEXTS), None), column)
    if isinstance(column, OpenCategory):
        return open_series(series.set(series.is_in(MISSING_TEXTS), None), column)
    listed = column.levels if isinstance(column, Category) else ()
    strings = series.set(series.is_in([text for text in MISSING_TEXTS if text not in listed]), None)
    if isinstance(column, Numeric):
        return _parsed_numbers(strings, column)
    return text_codes(strings, column) if column.is_text else _parsed_codes(strings, column)


def _parsed_numbers(strings: pl.Series, column: Numeric) -> NDArray[np.float64]:
    numbers = strings.str.strip_chars().cast(pl.Float64, strict=False)
    if numbers.null_count() > strings.null_count():
        raise wrong_type(column, "texts that are not numbers (a number has a decimal point and no separators)")
    return numbers.to_numpy()


def _parsed_codes(strings: pl.Series, column: Category) -> NDArray[np.int32]:
    plain = strings.str.strip_chars()
    truth = plain.str.to_lowercase().replace_strict(
        ["true", "false"], [1.0, 0.0], default=None, return_dtype=pl.Float64
    )
    codes = codes_of_numbers(plain.cast(pl.Float64, strict=False).fill_null(truth).to_numpy(), column)
    return np.where(strings.is_null().to_numpy(), ABSENT, np.where(codes == ABSENT, UNKNOWN, codes)).astype(np.int32)


def _as_written(name: str, names: tuple[str, ...]) -> str:
    """The name that stands in the file: polars renames the second of two columns of one name, and the first would seem
    to be alone.
    """
    base = re.sub(r"_duplicated_\d+$", "", name)
    return base if base in names else name
