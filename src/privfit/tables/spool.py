"""Columns of a table that passes by once, in a temporary file from which they can be read again.

The file has no name once it is open, so that it is gone when its table is, or its process; only its owner could read
it before. It lies where PRIVFIT_CACHE says, or where the system has its temporary files.
"""

from __future__ import annotations

import os
import tempfile
import weakref
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from privfit.schema import Column

if TYPE_CHECKING:
    from privfit.tables.table import Batch, Values

CACHE = "PRIVFIT_CACHE"


class Spool:
    """Batches of these columns, written once and read in their order any number of times."""

    def __init__(self, columns: Sequence[Column], batches: Iterable[Batch]) -> None:
        self._columns = [_read_as(column) for column in columns]
        self._file = tempfile.TemporaryFile(prefix="privfit-", dir=os.environ.get(CACHE))  # noqa: SIM115
        weakref.finalize(self, self._file.close)  # or a warning would come at some later time, in somebody else's fit
        self._kinds: list[np.dtype[np.generic]] = []
        self._lengths: list[int] = []
        for batch in batches:
            self._kinds = [values.dtype for values in batch]
            self._lengths.append(len(batch[0]))
            for values in batch:
                self._file.write(np.ascontiguousarray(values).data)
        self._file.flush()

    @property
    def rows(self) -> int:
        """How many rows there are."""
        return sum(self._lengths)

    def holds(self, columns: Sequence[Column]) -> bool:
        """Whether all of these columns were written, read as they are asked for now."""
        return all(_read_as(column) in self._columns for column in columns)

    def read(self, columns: Sequence[Column], rows: int) -> Iterator[Batch]:
        """The batches again, of these columns and at most so many rows."""
        places = [self._columns.index(_read_as(column)) for column in columns]
        first = 0
        for length in self._lengths:
            for start in range(0, length, rows):
                yield [self._values(first, place, length, start, min(rows, length - start)) for place in places]
            first += length * sum(kind.itemsize for kind in self._kinds)

    def _values(self, first: int, place: int, length: int, start: int, count: int) -> Values:
        """Part of a column of the batch that begins at this byte."""
        kind = self._kinds[place]
        before = first + length * sum(earlier.itemsize for earlier in self._kinds[:place]) + start * kind.itemsize
        self._file.seek(before)
        held = self._file.read(count * kind.itemsize)
        return np.frombuffer(held, dtype=kind, count=count)


def _read_as(column: Column) -> tuple[object, ...]:
    """What decides how the cells of a column are read; bins and fills are for later."""
    return type(column).__name__, column.name, getattr(column, "levels", None)
