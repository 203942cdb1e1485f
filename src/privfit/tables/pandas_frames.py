"""Frames of pandas, read column by column. pandas itself is never imported: whoever gives a frame has it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, TypeGuard

import numpy as np
import polars as pl

from privfit.schema import Column
from privfit.tables.arrays import column_values
from privfit.tables.table import Batch, Table, TableLike, Values, quietly, series_values

if TYPE_CHECKING:
    import pandas as pd


def is_pandas(table: TableLike) -> TypeGuard[pd.DataFrame]:
    """Whether this is a frame of pandas."""
    return type(table).__module__.partition(".")[0] == "pandas" and hasattr(table, "iloc") and hasattr(table, "columns")


class PandasTable(Table):
    """A pandas frame, read column by column."""

    label = "pandas frame"

    in_memory = True

    def __init__(self, frame: pd.DataFrame) -> None:
        self._frame = frame
        self.labels = tuple(frame.columns)
        self.names, self.n_rows = tuple(str(name) for name in self.labels), len(frame)

    def read(self, columns: Sequence[Column], positions: Sequence[int], rows: int) -> Iterator[Batch]:
        chosen = [self._frame.iloc[:, position] for position in positions]
        for start in range(0, len(self._frame), rows):
            yield [
                pandas_values(series.iloc[start : start + rows], column)
                for series, column in zip(chosen, columns, strict=True)
            ]


def pandas_values(series: pd.Series, column: Column) -> Values:
    """One pandas column as numbers or as positions of levels."""
    dtype = series.dtype
    if isinstance(dtype, np.dtype):
        return column_values(series.to_numpy(), column)
    if dtype.name == "category":
        return column_values(np.asarray(series.astype(object)), column)
    return series_values(quietly("pandas frame", lambda: pl.Series(column.name, series.reset_index(drop=True))), column)
