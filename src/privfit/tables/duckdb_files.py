"""Tables in a DuckDB file, read over a connection that cannot write."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import polars as pl

from privfit.schema import Column
from privfit.tables.arrow_tables import record_batches
from privfit.tables.database_urls import DatabaseUrl, quoted, second_pass
from privfit.tables.drivers import driver
from privfit.tables.errors import DataError, quietly
from privfit.tables.files import changed_source, mark_of
from privfit.tables.kinds import arrow_kinds
from privfit.tables.table import Batch, Table

PREFIX = "duckdb://"


class DuckDBTable(Table):
    """A table, a view or a query of a DuckDB file.

    A table hands out its rows in one order, and nobody can write to the file while it is open, so that it can be read
    again. A view or a query may hand out its rows in another order each time, and is read once.
    """

    runs_again = True

    def __init__(self, address: DatabaseUrl) -> None:
        self.label = f"DuckDB {address.kind}"
        self._source = address.source
        self._path = _file_of(address)
        self._mark = quietly(self.label, lambda: mark_of(self._path))
        duckdb = driver("duckdb", "DuckDB", "duckdb")
        self._connection = quietly(self.label, lambda: duckdb.connect(str(self._path), read_only=True))
        self.names = self._fields = quietly(self.label, self._names)
        self.passes_once = address.query is not None or not quietly(self.label, lambda: self._is_table(address))
        self.n_rows = None if self.passes_once else quietly(self.label, self._count)
        self._read = False

    def read(self, columns: Sequence[Column], positions: Sequence[int], rows: int) -> Iterator[Batch]:
        if self._read and self.passes_once:
            raise second_pass(self.label)
        self._read = True
        chosen = ", ".join(
            f"{quoted(self._fields[position])} AS {quoted(str(place))}" for place, position in enumerate(positions)
        )
        count = 0
        self._check_mark()
        with self._connection.cursor() as cursor:
            reader = arrow_reader(cursor.sql(f"SELECT {chosen} FROM {self._source}"), rows)
            for batch in record_batches(reader, columns, range(len(columns)), rows):
                count += len(batch[0])
                yield batch
        self._check_mark()
        if self.n_rows not in (None, count):
            raise changed_source(self.label)

    def kinds(self) -> pl.Schema:
        """The types of the columns."""
        with self._connection.cursor() as cursor:
            return arrow_kinds(arrow_reader(cursor.sql(f"SELECT * FROM {self._source} LIMIT 0"), 1).schema)

    def _names(self) -> tuple[str, ...]:
        with self._connection.cursor() as cursor:
            return tuple(cursor.sql(f"SELECT * FROM {self._source}").columns)

    def _is_table(self, address: DatabaseUrl) -> bool:
        with self._connection.cursor() as cursor:
            found = cursor.execute(
                "SELECT count(*) FROM duckdb_tables() WHERE table_name = ? AND schema_name = coalesce(?, "
                "current_schema()) AND database_name = current_database()",
                [address.table, address.schema],
            ).fetchone()
        return bool(found[0])

    def _count(self) -> int:
        with self._connection.cursor() as cursor:
            return int(cursor.execute(f"SELECT count(*) FROM {self._source}").fetchone()[0])

    def _check_mark(self) -> None:
        if mark_of(self._path) != self._mark:
            raise changed_source(self.label)


def arrow_reader(relation: Any, rows: int) -> Any:
    """A relation's rows as Arrow record batches of about so many rows; the method's name depends on the version."""
    read = getattr(relation, "to_arrow_reader", None) or relation.fetch_arrow_reader
    return read(rows)


def _file_of(address: DatabaseUrl) -> Path:
    """The file in `duckdb:///people.db` (beside the program) or `duckdb:////data/people.db` (from the root)."""
    rest = address.database.removeprefix(PREFIX)
    path = Path(unquote(rest.partition("?")[0].removeprefix("/")))
    if rest.startswith("/") and path.is_file():
        return path
    raise DataError(
        "There is no DuckDB file at the address that was given. Write duckdb:///people.db?table=people for a file in "
        "the working folder, duckdb:////data/people.db?table=people for one from the root. Nothing was charged."
    )
