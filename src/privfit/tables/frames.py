"""Data frames and Arrow tables in memory: polars, pandas, pyarrow."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from privfit.schema import Category, Column, Numeric
from privfit.tables.arrays import column_values
from privfit.tables.table import ABSENT, UNKNOWN, Batch, DataError, Values, codes_of_numbers, wanted, wrong_type


class PolarsTable:
    """A polars frame, or an Arrow table seen as one without copying."""

    def __init__(self, frame: pl.DataFrame, label: str) -> None:
        self._frame = frame
        self.label = label
        self.names: tuple[str, ...] | None = tuple(frame.columns)
        self.n_rows: int | None = frame.height

    def batches(self, columns: Sequence[Column], positions: Sequence[int], rows: int) -> Iterator[Batch]:
        chosen = [self._frame.to_series(position) for position in positions]
        for start in range(0, self._frame.height, rows):
            yield [series_values(series.slice(start, rows), column) for series, column in zip(chosen, columns, strict=True)]


class PandasTable:
    """A pandas frame, read column by column."""

    label = "pandas frame"

    def __init__(self, frame: Any) -> None:
        self._frame = frame
        self.names: tuple[str, ...] | None = tuple(str(name) for name in frame.columns)
        self.n_rows: int | None = len(frame)

    def batches(self, columns: Sequence[Column], positions: Sequence[int], rows: int) -> Iterator[Batch]:
        chosen = [self._frame.iloc[:, position] for position in positions]
        for start in range(0, len(self._frame), rows):
            yield [pandas_values(series.iloc[start : start + rows], column) for series, column in zip(chosen, columns, strict=True)]


def pandas_values(series: Any, column: Column) -> Values:
    """One pandas column as numbers or as positions of levels."""
    dtype = series.dtype
    if isinstance(dtype, np.dtype):
        return column_values(series.to_numpy(), column)
    if dtype.name == "category":
        return column_values(np.asarray(series.astype(object)), column)
    try:
        return series_values(pl.Series(column.name, series.reset_index(drop=True)), column)
    except (pl.exceptions.PolarsError, TypeError, ValueError) as error:
        if isinstance(error, DataError):
            raise
        raise wrong_type(column.name, f"values of type {dtype}", wanted(column)) from None


def series_values(series: pl.Series, column: Column) -> Values:
    """One polars column as numbers or as positions of levels."""
    dtype = series.dtype
    text = dtype == pl.String or isinstance(dtype, pl.Categorical | pl.Enum)
    number = dtype.is_numeric() or dtype in (pl.Boolean, pl.Null)
    if isinstance(column, Numeric):
        if not number:
            raise wrong_type(column.name, "texts" if text else f"values of type {dtype}", wanted(column))
        return _numbers(series)
    if text:
        strings = series.cast(pl.String)
        return _text_codes(strings, column) if column.is_text else _parsed_codes(strings, column)
    if dtype == pl.Null or (number and not column.is_text):
        return codes_of_numbers(_numbers(series), column)
    raise wrong_type(column.name, "numbers" if number else f"values of type {dtype}", wanted(column))


def _numbers(series: pl.Series) -> NDArray[np.float64]:
    return series.cast(pl.Float64).to_numpy()


def _text_codes(strings: pl.Series, column: Category) -> NDArray[np.int32]:
    codes = strings.replace_strict(list(column.levels), list(range(len(column.levels))), default=UNKNOWN, return_dtype=pl.Int32)
    return np.where(strings.is_null().to_numpy(), ABSENT, codes.to_numpy()).astype(np.int32)


def _parsed_codes(strings: pl.Series, column: Category) -> NDArray[np.int32]:
    """Texts, as a CSV file has them, that stand for numbers or truth values."""
    plain = strings.str.strip_chars()
    if any(isinstance(level, bool) for level in column.levels):
        plain = plain.str.to_lowercase().replace(["true", "false"], ["1", "0"])
    codes = codes_of_numbers(plain.cast(pl.Float64, strict=False).to_numpy(), column)
    return np.where(strings.is_null().to_numpy(), ABSENT, np.where(codes == ABSENT, UNKNOWN, codes)).astype(np.int32)
