"""Arrow: tables in memory, and streams of record batches that pass by once and are never held in memory together.

A stream is as long as it says. One whose maker fails raises, and the fit is refused; one that was cut where a batch
ends looks like a shorter one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol

import polars as pl
import pyarrow as pa

from privfit.schema import Column
from privfit.tables.arrow_columns import check_interval, record_batches
from privfit.tables.errors import DataError
from privfit.tables.polars_tables import PolarsTable
from privfit.tables.table import Batch, Table, TableLike, quietly


class ArrowStream(Protocol):
    """Whatever can start an Arrow stream."""

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """A capsule with the stream."""
        ...


def is_stream(table: TableLike) -> bool:
    """Whether this can start an Arrow stream of rows and columns."""
    started = hasattr(table, "__arrow_c_stream__") and len(getattr(table, "shape", (0, 0))) == 2
    return isinstance(table, pa.RecordBatchReader) or started


def arrow_table(table: pa.Table | pa.RecordBatch) -> PolarsTable:
    """An Arrow table in memory, seen by polars without copying."""
    whole = pa.Table.from_batches([table]) if isinstance(table, pa.RecordBatch) else table
    if len(set(whole.column_names)) != len(whole.column_names):
        raise DataError(
            "The Arrow table has two columns of one name, and the schema cannot distinguish them. Rename one. Nothing "
            "was charged."
        )
    for field in whole.schema:
        check_interval(field.name, field.type)
    frame = quietly("Arrow table", lambda: pl.from_arrow(whole))
    assert isinstance(frame, pl.DataFrame)
    return PolarsTable(frame, "Arrow table")


class StreamTable(Table):
    """A stream of Arrow record batches. It can be read once."""

    label = "Arrow stream"
    passes_once = True

    def __init__(self, stream: pa.RecordBatchReader | ArrowStream) -> None:
        _refuse_polars_stream(stream)
        self._reader: pa.RecordBatchReader = (
            stream
            if isinstance(stream, pa.RecordBatchReader)
            else quietly(self.label, lambda: pa.RecordBatchReader.from_stream(stream))
        )
        self.names = tuple(self._reader.schema.names)
        self._read = False

    def read(self, columns: Sequence[Column], positions: Sequence[int], rows: int) -> Iterator[Batch]:
        if self._read:
            raise DataError(
                "An Arrow stream was to be read a second time; it passes by once. Give a table or a file instead. "
                "Nothing was charged."
            )
        self._read = True
        yield from record_batches(self._reader, columns, positions, rows)


def _refuse_polars_stream(stream: object) -> None:
    """Refuse what `LazyFrame.collect_batches` returns: it ends without an error where its query fails, and nobody could
    notice.
    """
    if type(stream).__module__.partition(".")[0] == "polars":
        raise DataError(
            f"A {type(stream).__name__} of polars was given, a stream that ends without an error if its query fails "
            "half way. Give the LazyFrame itself, which is read in batches too. Nothing was charged."
        )
