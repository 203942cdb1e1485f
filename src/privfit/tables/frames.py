"""Data frames and Arrow tables in memory: polars, pandas, pyarrow."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from privfit.schema import Category, Column, Numeric
from privfit.tables.arrays import column_values
from privfit.tables.quiet import quiet_batches, quietly
from privfit.tables.table import ABSENT, UNKNOWN, Batch, Values, codes_of_numbers, only_absent, wanted, wrong_type


class PolarsTable:
    """A polars frame, or an Arrow table seen as one without copying."""

    def __init__(self, frame: pl.DataFrame, label: str) -> None:
        self._frame = frame
        self.label = label
        self.names: tuple[str, ...] | None = tuple(frame.columns)
        self.n_rows: int | None = frame.height

    @quiet_batches
    def batches(self, columns: Sequence[Column], positions: Sequence[int], rows: int) -> Iterator[Batch]:
        chosen = [self._frame.to_series(position) for position in positions]
        for start in range(0, self._frame.height, rows):
            yield [
                series_values(series.slice(start, rows), column) for series, column in zip(chosen, columns, strict=True)
            ]


class PandasTable:
    """A pandas frame, read column by column."""

    label = "pandas frame"

    def __init__(self, frame: Any) -> None:
        self._frame = frame
        self.labels = tuple(frame.columns)
        self.names: tuple[str, ...] | None = tuple(str(name) for name in self.labels)
        self.n_rows: int | None = len(frame)

    @quiet_batches
    def batches(self, columns: Sequence[Column], positions: Sequence[int], rows: int) -> Iterator[Batch]:
        chosen = [self._frame.iloc[:, position] for position in positions]
        for start in range(0, len(self._frame), rows):
            yield [
                pandas_values(series.iloc[start : start + rows], column)
                for series, column in zip(chosen, columns, strict=True)
            ]


def pandas_values(series: Any, column: Column) -> Values:
    """One pandas column as numbers or as positions of levels."""
    dtype = series.dtype
    if isinstance(dtype, np.dtype):
        return column_values(series.to_numpy(), column)
    if dtype.name == "category":
        return column_values(np.asarray(series.astype(object)), column)
    return series_values(quietly("pandas frame", lambda: pl.Series(column.name, series.reset_index(drop=True))), column)


def series_values(series: pl.Series, column: Column) -> Values:
    """One polars column as numbers or as positions of levels."""
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
    raise wrong_type(column.name, "texts" if text else f"values of type {type(dtype).__name__}", wanted(column))


def text_codes(strings: pl.Series, column: Category) -> NDArray[np.int32]:
    """Positions of texts among a category's levels."""
    codes = strings.replace_strict(
        list(column.levels), list(range(len(column.levels))), default=UNKNOWN, return_dtype=pl.Int32
    )
    return np.where(strings.is_null().to_numpy(), ABSENT, codes.to_numpy()).astype(np.int32)


def columns_to_frame(columns: dict[str, NDArray[Any]]) -> pl.DataFrame:
    """Columns as a polars frame; objects are texts or numbers, whichever they all are."""
    return pl.DataFrame(
        {name: values.tolist() if values.dtype == object else values for name, values in columns.items()}
    )
