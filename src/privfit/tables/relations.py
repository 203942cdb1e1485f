"""Relations of DuckDB: queries that the database runs and hands out as Arrow record batches."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa

from privfit.schema import Column
from privfit.tables.quiet import quiet_batches
from privfit.tables.streams import record_batches
from privfit.tables.table import Batch


def is_relation(table: Any) -> bool:
    """Whether this is a relation of DuckDB, found out without importing it.

    A relation's attributes are its columns: none is asked for.
    """
    return (
        type(table).__module__.partition(".")[0] in ("duckdb", "_duckdb") and type(table).__name__ == "DuckDBPyRelation"
    )


class RelationTable:
    """A relation of DuckDB.

    It is taken for a stream: run twice, a query may hand out its rows in another order, or others.
    """

    label = "DuckDB relation"
    n_rows: int | None = None
    passes_once = True

    def __init__(self, relation: Any) -> None:
        self._relation = relation
        self.names: tuple[str, ...] | None = tuple(relation.columns)

    @quiet_batches
    def batches(self, columns: Sequence[Column], positions: Sequence[int], rows: int) -> Iterator[Batch]:
        chosen = dict.fromkeys(_quoted(self.names[position]) for position in positions)  # type: ignore[index]
        reader = pa.RecordBatchReader.from_stream(self._relation.project(", ".join(chosen)))
        yield from record_batches(reader, columns, range(len(chosen)), rows)


def _quoted(name: str) -> str:
    """A column's name in SQL."""
    return '"' + name.replace('"', '""') + '"'
