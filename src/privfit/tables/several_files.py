"""Several files as one table: what is in a folder, what a pattern matches, or what a list names.

The files are read one after the other, folders and patterns in the order of their names, lists in their own. All must
be of one kind and have the same columns. A folder called `year=2020` is a column `year` that holds 2020 in all files
below it, as Hive writes it, unless the files have that column themselves.

What could lose or double a person is refused: a file that privfit cannot read among others, files of two kinds, the
same file twice, folders of Delta or Hudi tables, of whose files only some are part of the table.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast
from urllib.parse import unquote

import numpy as np
import polars as pl

from privfit.schema import Category, Column, Numeric
from privfit.tables.csv_files import csv_values
from privfit.tables.errors import DataError
from privfit.tables.kept_columns import KeptColumn
from privfit.tables.kinds import table_frame, table_kinds
from privfit.tables.local_files import file_engine
from privfit.tables.table import Batch, Table, Values, series_values

HIVE_MISSING = "__HIVE_DEFAULT_PARTITION__"
VERSIONED = ("_delta_log", ".hoodie")


@dataclass(frozen=True, repr=False)
class Part:
    """A file by its place, and what the names of its folders say about all its rows."""

    place: Any
    partition: Mapping[str, str | None] = field(default_factory=dict)


def chosen_names(names: Sequence[str]) -> list[str]:
    """Of the paths below a folder, those of files with rows, sorted; hidden ones and such as begin with _ have none."""
    for name in names:
        if any(part in VERSIONED for part in name.split("/")):
            raise DataError(
                "A folder of a table with versions (Delta or Hudi) was given: some of its files are not part of the "
                "table. Read it with its own library and give the Arrow table or dataset. Nothing was charged."
            )
    shown = [name for name in names if not any(part.startswith((".", "_")) for part in name.split("/"))]
    if any(file_engine(name) is None for name in shown):
        raise DataError(
            "There is a file among those in the folder that is neither Parquet nor CSV nor Arrow by its ending, and "
            "its rows would be left out. Move it, or give a pattern such as 'folder/*.parquet'. Nothing was charged."
        )
    return sorted(shown)


def partition_of(name: str) -> dict[str, str | None]:
    """What the folders on a path say: `year=2020/city=Oslo/part.parquet`."""
    found: dict[str, str | None] = {}
    for folder in name.split("/")[:-1]:
        key, sign, value = folder.partition("=")
        if sign and key:
            if _decoded(key) in found:
                raise DataError(
                    "The path of a file names a column twice, as in year=2020/year=2021. Rename one of the folders. "
                    "Nothing was charged."
                )
            found[_decoded(key)] = None if value == HIVE_MISSING else _decoded(value)
    return found


def _decoded(text: str) -> str:
    """The text that stands in a folder's name: signs after % are bytes of UTF-8, as pyarrow, polars and DuckDB write
    and read them.
    """
    try:
        return unquote(text, errors="strict")
    except UnicodeDecodeError:
        pass  # it quotes the value
    raise DataError(
        "The name of a folder has bytes after % that are not UTF-8, and several such values could be taken for one. "
        "Rename the folders: urllib.parse.quote spells values as all engines read them. Nothing was charged."
    )


def one_kind(names: Sequence[str]) -> str:
    """The kind that all files are of."""
    engines = {file_engine(name) for name in names}
    if len(engines) == 1 and (engine := engines.pop()) is not None:
        return engine.kind
    raise DataError(
        "Files of several kinds were given as one table, as if the same rows had been written twice. "
        "Give files of one kind, for example by the pattern 'folder/*.parquet'. Nothing was charged."
    )


class FilesTable(Table):
    """Several files of one kind, one after the other.

    Each file refuses to be shorter than it says, or another than the one that was opened.
    """

    def __init__(self, tables: Sequence[Table], partitions: Sequence[Mapping[str, str | None]], label: str) -> None:
        self.label = label
        self.is_csv = tables[0].is_csv
        self._tables, self.same_order = tables, all(table.same_order for table in tables)
        own = tables[0].names or ()
        self.names = self._fields = (*own, *(name for name in partitions[0] if name not in own))
        self._partitions = partitions
        counts = [table.n_rows for table in tables if table.n_rows is not None]
        self.n_rows = sum(counts) if len(counts) == len(tables) else None
        for place, (table, partition) in enumerate(zip(tables, partitions, strict=True), start=1):
            if sorted(table.names or ()) != sorted(own) or set(partition) != set(partitions[0]):
                raise DataError(
                    f"File {place} of {len(tables)} has other columns than the first. Give files with the same "
                    "columns. Nothing was charged."
                )

    def read(self, columns: Sequence[Column], positions: Sequence[int], rows: int) -> Iterator[Batch]:
        names = [self._fields[position] for position in positions]
        for table, partition in zip(self._tables, self._partitions, strict=True):
            yield from _part_batches(table, partition, columns, names, rows)

    def whole(self) -> pl.DataFrame:
        """All rows of all files."""
        frames = []
        for table, partition in zip(self._tables, self._partitions, strict=True):
            frame = table_frame(table)
            added = {name: value for name, value in partition.items() if name not in frame.columns}
            frames.append(frame.with_columns(pl.lit(value, pl.String).alias(name) for name, value in added.items()))
        joined = pl.concat([frame.select(frames[0].columns) for frame in frames], how="vertical_relaxed")
        return joined.with_columns(
            _typed(joined[name]) for name in (self.names or ())[len(self._tables[0].names or ()) :]
        )

    def kinds(self) -> pl.Schema:
        """The types of the columns in the first file, and of what the folders' names say."""
        found = dict(table_kinds(self._tables[0]))
        for name in self._partitions[0]:
            values = [partition[name] for partition in self._partitions]
            found.setdefault(name, _typed(pl.Series(name, values, pl.String)).dtype)
        return pl.Schema(found)


def _part_batches(
    table: Table, partition: Mapping[str, str | None], columns: Sequence[Column], names: Sequence[str], rows: int
) -> Iterator[Batch]:
    """The batches of one file, with its partition's values where the file has no such column."""
    held = table.names or ()
    read = [(column, held.index(name)) for column, name in zip(columns, names, strict=True) if name in held]
    if not read:  # the file is asked how many rows it has
        read = [(cast(Any, KeptColumn(held[0])), 0)]
    for batch in table.batches([column for column, _ in read], [position for _, position in read], rows):
        values = iter(batch)
        yield [
            next(values) if name in held else _constant(partition[name], column, len(batch[0]))
            for column, name in zip(columns, names, strict=True)
        ]


def _constant(value: str | None, column: Column, rows: int) -> Values:
    """A value of a partition for every row: numbers are read out of the text as out of a CSV file. A text is what it
    says, also where it says NA.
    """
    of_number = isinstance(column, Numeric) or (isinstance(column, Category) and not column.is_text)
    series = pl.Series(column.name, [value], pl.String)
    cell: Any = csv_values(series, column) if of_number else series_values(series, column)
    return cast(Values, cell.new_from_index(0, rows) if isinstance(cell, pl.Series) else np.repeat(cell, rows))


def _typed(texts: pl.Series) -> pl.Series:
    """Texts as integers, if they all are."""
    numbers = texts.cast(pl.Int64, strict=False)
    return numbers if numbers.null_count() == texts.null_count() else texts
