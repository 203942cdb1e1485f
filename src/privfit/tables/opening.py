"""From whatever the user has to a Table: the one place that looks at types of tables."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, TypeGuard

import polars as pl
import pyarrow as pa

from privfit.tables.arrays import ArrayTable
from privfit.tables.arrow_tables import StreamTable, arrow_table, is_stream
from privfit.tables.csv_files import CsvTable
from privfit.tables.duckdb_relations import RelationTable, is_relation
from privfit.tables.errors import DataError, quietly
from privfit.tables.files import FileTable, ParquetTable
from privfit.tables.pandas_frames import PandasTable, is_pandas
from privfit.tables.polars_tables import PolarsTable, QueryTable
from privfit.tables.table import Table, TableLike

FILES: tuple[type[FileTable], ...] = (ParquetTable, CsvTable)
ENDINGS = tuple(ending for kind in FILES for ending in kind.endings)
QUOTED = 100
"""Characters of a file's name that an error quotes at most.

A text that is longer is more likely a table than a name.
"""


def is_file(table: TableLike) -> TypeGuard[str | os.PathLike[str]]:
    """Whether this names a file."""
    return isinstance(table, str | os.PathLike)


def open_file(given: str | os.PathLike[str]) -> FileTable:
    """The file at this path, by its ending. An error quotes nothing which could be the content of a table."""
    try:
        path = Path(given)
        found = path.is_file()
    except (OSError, ValueError, TypeError):  # too long, with a NUL, or no text at all
        path, found = Path(), False
    if not found:
        raise _no_file(path.name)
    engine = next((kind for kind in FILES if path.name.lower().endswith(kind.endings)), None)
    if engine is not None:
        return quietly(path.name, partial(engine, path))
    raise DataError(
        f"The file {path.name!r} is neither Parquet nor CSV by its ending. Use one of {[*ENDINGS]}. Nothing was "
        "charged."
    )


ENGINES: tuple[tuple[Callable[[TableLike], bool], Callable[[Any], Table]], ...] = (
    (is_file, open_file),
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
    return quietly(type(table).__name__, lambda: engine_of(table)(table))


def engine_of(table: TableLike) -> Callable[[Any], Table]:
    """What opens this table."""
    return next((engine for reads, engine in ENGINES if reads(table)), ArrayTable)


def is_named(table: TableLike) -> bool:
    """Whether the columns of this table have names."""
    return engine_of(table) is not ArrayTable


def is_frame(table: TableLike) -> bool:
    """Whether this is a frame in memory whose names scikit-learn reads too, and may insist on."""
    return is_pandas(table) or isinstance(table, pl.DataFrame | pa.Table)


def _no_file(name: str) -> DataError:
    """The error for a path at which nothing is."""
    if _is_plain(name):
        return DataError(f"There is no file {name!r}. Give the path of a Parquet or CSV file. Nothing was charged.")
    return DataError(
        "There is no file at the path that was given as a table. Give the path of a Parquet or CSV file, or a table: "
        "text is read with polars.read_csv(io.StringIO(text)). Nothing was charged."
    )


def _is_plain(name: str) -> bool:
    """Whether this is the name of a file and nothing else: short, printable, with an ending that privfit reads."""
    return len(name) <= QUOTED and name.isprintable() and name.lower().endswith(ENDINGS)
