"""Datasets of pyarrow: files that it scans in batches, in the order of its fragments."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import polars as pl
import pyarrow.dataset as ds

from privfit.schema import Column
from privfit.tables.arrow_columns import record_batches
from privfit.tables.errors import changed_source
from privfit.tables.kinds import arrow_kinds
from privfit.tables.table import Batch, Table, quietly

READ_AHEAD = 2
"""Batches and files that are read before they are asked for: more is more memory, and reads no faster from a disk."""


def is_dataset(table: Any) -> bool:
    """Whether this is a dataset of pyarrow."""
    return isinstance(table, ds.Dataset)


class DatasetTable(Table):
    """A dataset of pyarrow.

    Every pass must find the files as they were when the dataset was opened and, where all of them are Parquet files
    that no filter is over, as many rows as they say they have.
    """

    label = "pyarrow dataset"

    def __init__(self, dataset: ds.Dataset) -> None:
        self._dataset = dataset
        self.names = self._fields = tuple(dataset.schema.names)
        self._marks = quietly(self.label, lambda: _marks(dataset))
        self.n_rows = quietly(self.label, lambda: _promised(dataset))

    def read(self, columns: Sequence[Column], positions: Sequence[int], rows: int) -> Iterator[Batch]:
        self._check_files()
        chosen = {str(place): ds.field(self._fields[position]) for place, position in enumerate(positions)}
        scanner = self._dataset.scanner(
            columns=chosen, batch_size=rows, batch_readahead=READ_AHEAD, fragment_readahead=READ_AHEAD
        )
        count = 0
        for batch in record_batches(scanner.to_batches(), columns, range(len(columns)), rows):
            count += len(batch[0])
            yield batch
        self._check_files()
        if self.n_rows not in (None, count):
            raise changed_source(self.label)

    def kinds(self) -> pl.Schema:
        """The types of the columns."""
        return arrow_kinds(self._dataset.schema)

    def _check_files(self) -> None:
        if _marks(self._dataset) != self._marks:
            raise changed_source(self.label)


def _marks(dataset: Any) -> list[tuple[str, int | None, int | None]]:
    """What shows whether a file of the dataset was changed: its size, and when it was written."""
    if isinstance(dataset, ds.UnionDataset):
        return [mark for child in dataset.children for mark in _marks(child)]
    if not isinstance(dataset, ds.FileSystemDataset):
        return []
    found = dataset.filesystem.get_file_info(dataset.files)
    return [(info.path, info.size, info.mtime_ns) for info in found]


def _promised(dataset: Any) -> int | None:
    """How many rows Parquet files say they have."""
    if not isinstance(dataset, ds.FileSystemDataset) or getattr(dataset, "_scan_options", None):
        return None
    if not isinstance(dataset.format, ds.ParquetFileFormat):
        return None
    return int(sum(fragment.metadata.num_rows for fragment in dataset.get_fragments()))
