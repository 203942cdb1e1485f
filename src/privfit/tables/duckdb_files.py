"""Tables in a DuckDB file, read over a connection that cannot write."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import polars as pl

from privfit.schema import Column
from privfit.tables.database_urls import DatabaseUrl, second_pass
from privfit.tables.drivers import driver
from privfit.tables.duckdb_relations import Selection, arrow_reader, fields_of
from privfit.tables.errors import DataError, changed_source
from privfit.tables.kinds import arrow_kinds
from privfit.tables.table import Batch, Mark, Table, mark_of, quietly

PREFIX = "duckdb://"


class DuckDBTable(Table):
    """A table, a view or a query of a DuckDB file.

    Every pass opens the file anew and must find it as it was. A table hands out its rows in one order, so that it can
    be read again. A view or a query may hand out its rows in another order each time, and is run once.
    """

    runs_again = True

    def __init__(self, address: DatabaseUrl) -> None:
        self.label = f"DuckDB {address.kind}"
        self._source = address.source
        self._path = _file_of(address)
        self._duckdb = driver("duckdb", "DuckDB", "duckdb")
        self._mark = quietly(self.label, lambda: _marks(self._path))
        with self._connected() as connection:
            fields = quietly(self.label, lambda: fields_of(connection.sql(self._select("*"))))
            self.names, self._fields = tuple(name for name, _ in fields), fields
            stored = address.query is None and quietly(self.label, lambda: _is_table(connection, address))
            count = self._select("count(*)")
            self.passes_once = not stored
            self.n_rows = quietly(self.label, lambda: connection.execute(count).fetchone()[0]) if stored else None
        self._read = False

    def read(self, columns: Sequence[Column], positions: Sequence[int], rows: int) -> Iterator[Batch]:
        """The batches that the database makes."""
        if self._read and self.passes_once:
            raise second_pass(self.label)
        self._read = True
        asked = Selection(columns, [self._fields[position] for position in positions])
        count = 0
        self._check_unchanged()
        with self._connected() as connection:
            for batch in asked.batches(connection.sql(self._select(asked.sql)), rows):
                count += len(batch[0])
                yield batch
        self._check_unchanged()
        if self.n_rows not in (None, count):
            raise changed_source(self.label)

    def kinds(self) -> pl.Schema:
        """The types of the columns."""
        with self._connected() as connection:
            return arrow_kinds(arrow_reader(connection.sql(f"{self._select('*')} LIMIT 0"), 1).schema)

    def _select(self, what: str) -> str:
        return f"SELECT {what} FROM {self._source}"

    def _connected(self) -> Any:
        """A connection that cannot write; nobody else can while it is open."""
        try:
            return self._duckdb.connect(str(self._path), read_only=True)
        except self._duckdb.Error as error:
            kind = type(error).__name__
        raise DataError(
            f"The DuckDB file could not be opened for reading ({kind}), as when somebody has it open for writing. "
            "Close that connection, or give a relation of it: connection.table('people'). Nothing was charged."
        )

    def _check_unchanged(self) -> None:
        if _marks(self._path) != self._mark:
            raise changed_source(self.label)


def _marks(path: Path) -> list[Mark]:
    """What shows whether the file was changed, or the log beside it that is not yet part of it."""
    log = path.with_name(f"{path.name}.wal")
    return [mark_of(one) for one in (path, log) if one == path or one.exists()]


def _is_table(connection: Any, address: DatabaseUrl) -> bool:
    found = connection.execute(
        "SELECT count(*) FROM duckdb_tables() WHERE table_name = ? AND schema_name = coalesce(?, current_schema()) "
        "AND database_name = current_database()",
        [address.table, address.schema],
    ).fetchone()
    return bool(found[0])


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
