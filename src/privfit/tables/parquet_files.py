"""Parquet files, read page by page: memory depends neither on the number of rows nor on the size of row groups.

Texts come as places in the dictionaries that the file has of them. polars decodes several row groups at a time: with
row groups of 250,000 rows of 15 columns a fit took 0.94 GB on a busy machine where this reader takes 0.35 GB, and more
time of the processor (`privfit bench engines -s Parquet`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from privfit.schema import Category, Column
from privfit.tables.arrow_columns import TEXTS, record_batches
from privfit.tables.errors import changed_file
from privfit.tables.table import Batch, FileTable

BUFFER, FAR_BUFFER = 1 << 16, 1 << 20
"""Bytes of a column that are read together, of a file on this machine and of one elsewhere, where every read is a
request: with row groups of millions of rows, memory stays small. With 1 MB here, what fifteen columns wait with does
not stay close to the processor: a fit in one pass takes 6% more of its time (`privfit bench engines -s Parquet`)."""


class ParquetTable(FileTable):
    """A Parquet file. Its footer says how many rows it has, and every pass must find as many."""

    kind = "Parquet"
    endings = (".parquet", ".pq")

    def opened(self) -> None:
        """Read the footer."""
        footer = pq.read_metadata(self.path)
        self._schema = footer.schema.to_arrow_schema()
        self.names = tuple(self._schema.names)
        self.n_rows = self.promised = footer.num_rows

    def scanned(self, columns: Sequence[Column], positions: Sequence[int], rows: int) -> Iterator[Batch]:
        """The rows of every row group, a batch at a time."""
        with pa.OSFile(str(self.path)) as file:
            yield from parquet_batches(file, self._schema, columns, positions, rows)

    def kinds(self) -> pl.Schema:
        """The types that the file states."""
        return self._scan().collect_schema()

    def whole(self) -> pl.DataFrame:
        """All rows."""
        frame = self._scan().collect()
        if frame.height != self.n_rows:
            raise changed_file(self.label)
        return frame

    def _scan(self) -> pl.LazyFrame:
        return pl.scan_parquet(self.path, glob=False)


def parquet_batches(
    file: Any, schema: pa.Schema, columns: Sequence[Column], positions: Sequence[int], rows: int, buffer: int = BUFFER
) -> Iterator[Batch]:
    """The columns at these positions of an open Parquet file, at most so many rows at a time.

    Texts that are levels come as places in the dictionaries that the file has of them.
    """
    asked = sorted(set(positions))
    texts = [
        schema.names[position]
        for column, position in zip(columns, positions, strict=True)
        if isinstance(column, Category) and schema.field(position).type in TEXTS
    ]
    opened = pq.ParquetFile(file, read_dictionary=texts, buffer_size=buffer, pre_buffer=False)
    if opened.num_row_groups == 0:  # as polars writes no rows; pyarrow 18 cannot read none
        return
    parts = opened.iter_batches(batch_size=rows, columns=[schema.names[position] for position in asked])
    yield from record_batches(parts, columns, [asked.index(position) for position in positions], rows)
