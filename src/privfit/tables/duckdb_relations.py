"""Relations of DuckDB: queries that the database runs and hands out as Arrow record batches."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, TypeGuard

import pyarrow as pa

from privfit.schema import Column
from privfit.tables.database_urls import quoted
from privfit.tables.table import Batch, Table, TableLike, record_batches

if TYPE_CHECKING:
    import duckdb


def is_relation(table: TableLike) -> TypeGuard[duckdb.DuckDBPyRelation]:
    """Whether this is a relation of DuckDB, found out without importing it.

    A relation's attributes are its columns: none is asked for.
    """
    return (
        type(table).__module__.partition(".")[0] in ("duckdb", "_duckdb") and type(table).__name__ == "DuckDBPyRelation"
    )


class RelationTable(Table):
    """A relation of DuckDB.

    It is run once: run twice, a query may hand out its rows in another order, or others. A fit that has to read it
    again keeps what it needs in a temporary file.
    """

    label = "DuckDB relation"
    passes_once = runs_again = True

    def __init__(self, relation: duckdb.DuckDBPyRelation) -> None:
        self._relation = relation
        self.names = self._fields = tuple(relation.columns)

    def read(self, columns: Sequence[Column], positions: Sequence[int], rows: int) -> Iterator[Batch]:
        asked = (f"{quoted(self._fields[position])} AS {quoted(str(i))}" for i, position in enumerate(positions))
        reader = pa.RecordBatchReader.from_stream(self._relation.project(", ".join(asked)))
        yield from record_batches(reader, columns, range(len(positions)), rows)
