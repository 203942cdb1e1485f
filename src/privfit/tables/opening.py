"""From whatever the user has to a Table: the one place that looks at types of tables."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeGuard

import polars as pl
import pyarrow as pa

from privfit.tables.arrays import ArrayTable
from privfit.tables.arrow_tables import StreamTable, arrow_table, is_stream
from privfit.tables.dask_frames import DaskTable, is_dask
from privfit.tables.datasets import DatasetTable, is_dataset
from privfit.tables.duckdb_relations import RelationTable, is_relation
from privfit.tables.local_files import ENDINGS, FILES
from privfit.tables.locations import is_location, open_location
from privfit.tables.narwhals_frames import is_narwhals, native_table
from privfit.tables.pandas_frames import PandasTable, is_pandas
from privfit.tables.polars_tables import PolarsTable, QueryTable
from privfit.tables.spark_frames import SparkTable, is_spark
from privfit.tables.sparse import SparseTable, is_sparse
from privfit.tables.table import Table, TableLike, quietly

ENGINES: tuple[tuple[Callable[[TableLike], bool], Callable[[Any], Table]], ...] = (
    (lambda table: isinstance(table, Table), lambda table: table),
    (is_narwhals, lambda table: open_table(native_table(table))),
    (is_location, open_location),
    (is_sparse, SparseTable),
    (is_dataset, DatasetTable),
    (is_dask, DaskTable),
    (is_spark, SparkTable),
    (is_pandas, PandasTable),
    (lambda table: isinstance(table, pl.DataFrame), PolarsTable),
    (lambda table: isinstance(table, pl.LazyFrame), QueryTable),
    (is_relation, RelationTable),
    (lambda table: isinstance(table, pa.Table | pa.RecordBatch), arrow_table),
    (is_stream, StreamTable),
)
"""Which objects each engine reads; the first that does is taken. All else is an array, or refused as one."""


def open_table(table: TableLike) -> Table:
    """The table behind any object or path that privfit can read."""
    if not is_local_file(table):
        return quietly(type(table).__name__, lambda: engine_of(table)(table))
    path = Path(table)
    engine = next(kind for kind in FILES if path.name.lower().endswith(kind.endings))
    return quietly(path.name, lambda: engine(path))


def is_local_file(table: TableLike) -> TypeGuard[str | os.PathLike[str]]:
    """Whether this is the path of a file that can be read. What is wrong with others, locations.py finds out."""
    try:
        return isinstance(table, str | os.PathLike) and str(table).lower().endswith(ENDINGS) and Path(table).is_file()
    except (OSError, ValueError, TypeError):  # too long, with a NUL, or no text at all
        return False


def engine_of(table: TableLike) -> Callable[[Any], Table]:
    """What opens this table."""
    return next((engine for reads, engine in ENGINES if reads(table)), ArrayTable)


def is_named(table: TableLike) -> bool:
    """Whether the columns of this table have names."""
    if isinstance(table, Table):
        return table.names is not None
    return engine_of(native_table(table)) not in (ArrayTable, SparseTable)


def is_frame(table: TableLike) -> bool:
    """Whether this is a frame in memory whose names scikit-learn reads too, and may insist on."""
    return is_pandas(table) or isinstance(table, pl.DataFrame | pa.Table)
