"""Columns of a table that passes by once, in a temporary file from which they can be read again."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from privfit.schema import Column
from privfit.tables.array_file import ArrayFile

if TYPE_CHECKING:
    from privfit.tables.table import Batch


class Spool:
    """Batches of these columns, written once and read in their order any number of times."""

    def __init__(self, columns: Sequence[Column], batches: Iterable[Batch]) -> None:
        self._columns = [_read_as(column) for column in columns]
        self._file = ArrayFile()
        self._lengths: list[int] = []
        for batch in batches:
            self._lengths.append(len(batch[0]))
            self._file.append(batch)
        self._file.close_for_writing()

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
        for number, length in enumerate(self._lengths):
            for start in range(0, length, rows):
                yield [self._file.part(number, place, start, min(rows, length - start)) for place in places]


def _read_as(column: Column) -> tuple[object, ...]:
    """What decides how the cells of a column are read; bins and fills are for later."""
    return type(column).__name__, column.name, getattr(column, "levels", None)
