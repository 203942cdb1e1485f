"""Arrow files (also called Feather), read batch by batch; of every batch only the columns that are asked for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import polars as pl
import pyarrow as pa

from privfit.schema import Column
from privfit.tables.arrow_columns import record_batches
from privfit.tables.kinds import arrow_kinds
from privfit.tables.table import Batch, FileTable


class ArrowFileTable(FileTable):
    """A file in Arrow's format for files, which ends with a list of its batches: one that was cut has none.

    It is read, not mapped into memory: a mapped file that is cut meanwhile ends the process.
    """

    kind = "Arrow"
    endings = (".arrow", ".feather", ".ipc")

    def opened(self) -> None:
        """Read the schema."""
        self._schema = self._reader(None).schema
        self.names = tuple(self._schema.names)

    def scanned(self, columns: Sequence[Column], positions: Sequence[int], rows: int) -> Iterator[Batch]:
        """The batches that the file lists."""
        asked = sorted(set(positions))
        reader = self._reader(asked)
        listed = (reader.get_batch(place) for place in range(reader.num_record_batches))
        return record_batches(listed, columns, [asked.index(position) for position in positions], rows)

    def kinds(self) -> pl.Schema:
        """The types that the file states."""
        return arrow_kinds(self._schema)

    def whole(self) -> pl.DataFrame:
        """All rows."""
        frame = pl.from_arrow(self._reader(None).read_all())
        assert isinstance(frame, pl.DataFrame)
        return frame

    def _reader(self, fields: list[int] | None) -> pa.RecordBatchFileReader:
        options = pa.ipc.IpcReadOptions(included_fields=fields, use_threads=False)
        return pa.ipc.open_file(pa.OSFile(str(self.path)), options=options)
