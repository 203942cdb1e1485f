"""Arrow streams: record batches that pass by once and are never held in memory together."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import polars as pl
import pyarrow as pa

from privfit.schema import Column
from privfit.tables.frames import series_values
from privfit.tables.table import Batch, DataError


class StreamTable:
    """A stream of Arrow record batches. It can be read once."""

    label = "Arrow stream"
    n_rows: int | None = None

    def __init__(self, stream: Any) -> None:
        self._reader = stream if isinstance(stream, pa.RecordBatchReader) else pa.RecordBatchReader.from_stream(stream)
        self.names: tuple[str, ...] | None = tuple(self._reader.schema.names)
        self._read = False

    def batches(self, columns: Sequence[Column], positions: Sequence[int], rows: int) -> Iterator[Batch]:
        if self._read:
            raise DataError(
                "An Arrow stream was to be read a second time; it passes by once. Give a table or a file instead. Nothing was charged."
            )
        self._read = True
        for batch in self._reader:
            chosen = [pl.Series(column.name, batch.column(position)) for column, position in zip(columns, positions, strict=True)]
            for start in range(0, batch.num_rows, rows):
                yield [series_values(series.slice(start, rows), column) for series, column in zip(chosen, columns, strict=True)]
