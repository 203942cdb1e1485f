"""Arrow streams: record batches that pass by once and are never held in memory together.

A stream is as long as it says. One whose maker fails raises, and the fit is refused; one that was cut where a batch
ends looks like a shorter one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import polars as pl
import pyarrow as pa

from privfit.schema import Column
from privfit.tables.frames import series_values
from privfit.tables.quiet import quiet_batches, quietly
from privfit.tables.table import Batch, DataError


class StreamTable:
    """A stream of Arrow record batches. It can be read once."""

    label = "Arrow stream"
    n_rows: int | None = None
    passes_once = True

    def __init__(self, stream: Any) -> None:
        opened = isinstance(stream, pa.RecordBatchReader)
        self._reader = stream if opened else quietly(self.label, lambda: pa.RecordBatchReader.from_stream(stream))
        self.names: tuple[str, ...] | None = tuple(self._reader.schema.names)
        self._read = False

    @quiet_batches
    def batches(self, columns: Sequence[Column], positions: Sequence[int], rows: int) -> Iterator[Batch]:
        if self._read:
            raise DataError(
                "An Arrow stream was to be read a second time; it passes by once. Give a table or a file instead. "
                "Nothing was charged."
            )
        self._read = True
        yield from record_batches(self._reader, columns, positions, rows)


def record_batches(
    reader: pa.RecordBatchReader, columns: Sequence[Column], positions: Sequence[int], rows: int
) -> Iterator[Batch]:
    """The columns at these positions of every record batch, at most so many rows at a time."""
    for batch in reader:
        chosen = [
            pl.Series(column.name, batch.column(position)) for column, position in zip(columns, positions, strict=True)
        ]
        for start in range(0, batch.num_rows, rows):
            yield [
                series_values(series.slice(start, rows), column) for series, column in zip(chosen, columns, strict=True)
            ]
