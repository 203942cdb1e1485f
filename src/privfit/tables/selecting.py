"""Some columns of a frame in memory or a lazy query, by name, in the form that it has."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import polars as pl
import pyarrow as pa

from privfit.tables.errors import DataError
from privfit.tables.pandas_frames import is_pandas


def with_columns(table: Any, needed: Sequence[str], beside: Sequence[str]) -> Any:
    """The frame with the columns that are needed, and those of the others that it has; any other table as it is."""
    if not (is_pandas(table) or isinstance(table, pl.DataFrame | pl.LazyFrame | pa.Table)):
        return table
    names = _names(table)
    missing = [name for name in needed if name not in names]
    if missing:
        raise DataError(
            f"transform was given a table without the column {missing[0]!r}, which was selected. Give a table with the "
            "columns that were fitted. Nothing was charged."
        )
    kept = [*needed, *(name for name in beside if name in names)]
    return table[kept] if is_pandas(table) else table.select(kept)


def _names(table: Any) -> list[str]:
    if isinstance(table, pl.LazyFrame):
        return table.collect_schema().names()
    return list(table.column_names) if isinstance(table, pa.Table) else list(table.columns)
