"""The types of a table's columns, and all rows of one that is public."""

from __future__ import annotations

from typing import Any, cast

import polars as pl
import pyarrow as pa

from privfit.tables.arrow_columns import check_interval
from privfit.tables.kept_columns import KeptColumn
from privfit.tables.table import Table, quietly

FRAME_ROWS = 1 << 16
"""Rows of a batch: it changes time and memory only."""


def arrow_kinds(schema: pa.Schema) -> pl.Schema:
    """Types of Arrow as those of polars."""
    for field in schema:
        check_interval(field.name, field.type)
    frame = pl.from_arrow(schema.empty_table())
    assert isinstance(frame, pl.DataFrame)
    return frame.schema


def table_kinds(table: Table) -> pl.Schema:
    """The types of a table's columns; of a CSV file those that its first rows suggest."""
    if hasattr(table, "kinds"):
        return cast(pl.Schema, quietly(table.label, table.kinds))
    return table_frame(table).schema


def table_frame(table: Table) -> pl.DataFrame:
    """All rows of a table."""
    if hasattr(table, "whole"):
        return cast(pl.DataFrame, quietly(table.label, table.whole))
    names = table.names or tuple(f"x{place}" for place in range(table.width))
    kept = cast(Any, [KeptColumn(name) for name in names])
    frames = [pl.DataFrame(batch) for batch in table.batches(kept, range(len(names)), FRAME_ROWS)]
    return pl.concat(frames, how="vertical_relaxed") if frames else pl.DataFrame({name: [] for name in names})
