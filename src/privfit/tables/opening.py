"""From whatever the user has to a Table: the one place that looks at types of tables."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa

from privfit.schema import Column
from privfit.tables.arrays import ArrayTable, plain_array
from privfit.tables.files import FileTable, QueryTable
from privfit.tables.frames import PandasTable, PolarsTable
from privfit.tables.quiet import quiet_batches, quietly
from privfit.tables.relations import RelationTable, is_relation
from privfit.tables.streams import StreamTable
from privfit.tables.table import Batch, DataError, Table


def is_pandas(table: Any) -> bool:
    """Whether this is a pandas frame, found out without importing pandas."""
    return type(table).__module__.partition(".")[0] == "pandas" and hasattr(table, "iloc") and hasattr(table, "columns")


def is_file(table: Any) -> bool:
    """Whether this names a file."""
    return isinstance(table, str | os.PathLike)


def is_named(table: Any) -> bool:
    """Whether the columns of this table have names."""
    return (
        is_pandas(table)
        or is_file(table)
        or isinstance(table, pl.DataFrame | pl.LazyFrame)
        or is_relation(table)
        or _is_arrow(table)
    )


def _is_arrow(table: Any) -> bool:
    known = isinstance(table, pa.Table | pa.RecordBatch | pa.RecordBatchReader)
    return known or (hasattr(table, "__arrow_c_stream__") and len(getattr(table, "shape", (0, 0))) == 2)


def is_frame(table: Any) -> bool:
    """Whether this is a frame in memory whose names scikit-learn reads too, and may insist on."""
    return is_pandas(table) or isinstance(table, pl.DataFrame | pa.Table)


def open_table(table: Any) -> Table:
    """The table behind any object or path that privfit can read."""
    return quietly(type(table).__name__, lambda: _opened(table))


def _opened(table: Any) -> Table:
    if is_file(table):
        return FileTable.open(table)
    if is_pandas(table):
        return PandasTable(table)
    if isinstance(table, pl.DataFrame):
        return PolarsTable(table, "polars frame")
    if isinstance(table, pl.LazyFrame):
        return QueryTable(table)
    if is_relation(table):
        return RelationTable(table)
    if isinstance(table, pa.RecordBatch):
        table = pa.Table.from_batches([table])
    if isinstance(table, pa.Table):
        return PolarsTable(_unique(table), "Arrow table")
    if _is_arrow(table):
        _refuse_polars_stream(table)
        return StreamTable(table)
    return ArrayTable(plain_array(table))


def _refuse_polars_stream(table: Any) -> None:
    """Refuse what `LazyFrame.collect_batches` returns: it ends without an error where its query fails, and nobody could
    tell.
    """
    if type(table).__module__.partition(".")[0] == "polars":
        raise DataError(
            f"A {type(table).__name__} of polars was given, a stream that ends without an error if its query fails "
            "half way. "
            "Give the LazyFrame itself, which is read in batches too. Nothing was charged."
        )


def _unique(table: pa.Table) -> pl.DataFrame:
    if len(set(table.column_names)) != len(table.column_names):
        raise DataError(
            "The Arrow table has two columns of one name, and the schema cannot tell them apart. Rename one. Nothing "
            "was charged."
        )
    frame = quietly("Arrow table", lambda: pl.from_arrow(table))
    assert isinstance(frame, pl.DataFrame)
    return frame


class WithTarget:
    """A table of features beside a target that the user gave apart, both in memory."""

    def __init__(self, features: Table, target: np.ndarray[Any, Any]) -> None:
        if features.n_rows is None:
            raise DataError(
                f"The target was given apart from a {features.label}, which is read in batches. "
                "Put the target into the table as a column that the schema names. Nothing was charged."
            )
        if features.n_rows != len(target):
            raise DataError(
                f"Found input variables with inconsistent numbers of samples: [{features.n_rows}, {len(target)}]. "
                "Give one target value per row. Nothing was charged."
            )
        self._features, self._target = features, ArrayTable(target.reshape(-1, 1))
        self.label, self.names = features.label, features.names
        self.n_rows: int | None = features.n_rows

    @quiet_batches
    def batches(self, columns: Sequence[Column], positions: Sequence[int], rows: int) -> Iterator[Batch]:
        """Batches of the features at these positions, followed by the target, which is the last of `columns`."""
        features = self._features.batches(columns[:-1], positions, rows)
        targets = self._target.batches(columns[-1:], [0], rows)
        for left, right in zip(features, targets, strict=True):
            yield left + right
