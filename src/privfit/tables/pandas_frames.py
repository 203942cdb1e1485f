"""Frames of pandas, read column by column. pandas itself is never imported: whoever gives a frame has it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, TypeGuard

import numpy as np
import polars as pl
import pyarrow as pa

from privfit.schema import Category, Column
from privfit.tables.arrays import column_values
from privfit.tables.arrow_columns import arrow_values, is_listed
from privfit.tables.table import Batch, Table, TableLike, Values, quietly, series_values

if TYPE_CHECKING:
    import pandas as pd

TEXTS = ("str", "string", "string[pyarrow]", "large_string[pyarrow]")
"""Names of types of texts that pandas keeps as Arrow does."""


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


def _listed_texts(texts: Any, column: Category) -> Values:
    """The level of every row, looked up where Arrow keeps the texts."""
    array = quietly("pandas frame", lambda: pa.array(texts))
    parts = array.chunks if isinstance(array, pa.ChunkedArray) else [array]
    codes = [arrow_values(part, column) for part in parts]
    return codes[0] if len(codes) == 1 else np.concatenate([np.empty(0, dtype=np.int32), *codes])


def pandas_values(series: pd.Series, column: Column) -> Values:
    """One pandas column as numbers or as positions of levels."""
    dtype = series.dtype
    if isinstance(dtype, np.dtype):
        return column_values(series.to_numpy(), column)
    if dtype.name == "category":
        return column_values(np.asarray(series.astype(object)), column)
    if is_listed(column) and dtype.name in TEXTS:
        return _listed_texts(series.array, column)
    return series_values(quietly("pandas frame", lambda: pl.Series(column.name, series.reset_index(drop=True))), column)
