"""Tables in PostgreSQL, read through ADBC as Arrow record batches, all from one snapshot."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import polars as pl
import pyarrow as pa

from privfit.schema import Column
from privfit.tables.arrow_columns import record_batches
from privfit.tables.database_urls import DatabaseUrl, quoted, second_pass
from privfit.tables.drivers import driver
from privfit.tables.errors import DataError, changed_source
from privfit.tables.kinds import arrow_kinds
from privfit.tables.table import Batch, Table, quietly

PREFIXES = ("postgresql://", "postgres://")
SNAPSHOT = (
    "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY",
    "SET LOCAL synchronize_seqscans = off",
    "SET LOCAL max_parallel_workers_per_gather = 0",
    "SET LOCAL enable_indexscan = off",
    "SET LOCAL enable_indexonlyscan = off",
    "SET LOCAL enable_bitmapscan = off",
)
"""One snapshot that cannot write. For tables also one order: of a snapshot, a scan by one process from the first page
on.
"""
QUERY_SNAPSHOT = SNAPSHOT[:1]
"""Of a query the order is the database's: only the snapshot."""
STORED = ("r", "m")
"""Kinds of relations that are scanned page by page: tables and materialised views. Views, foreign and partitioned
tables may come in another order each time.
"""
BATCH_BYTES = 1 << 22
"""Bytes that the driver puts into a record batch: few enough that several batches take little memory."""
AS_NUMBERS, AS_TEXTS = ("numeric", "money"), ("bpchar",)
"""Types that the driver hands out as something else than they mean: digits as text, cents, blanks up to a width."""


class PostgreSQLTable(Table):
    """A table, a view or a query of PostgreSQL.

    The rows are those of the moment at which it was opened, however often they are read and whoever writes meanwhile.
    A table has one order in a snapshot and can be read again; a view or a query is read once. Errors of the server,
    which quote cells, are replaced.
    """

    runs_again = True

    def __init__(self, address: DatabaseUrl) -> None:
        self.label = f"PostgreSQL {address.kind}"
        self._source = address.source
        adbc = driver("adbc_driver_postgresql.dbapi", "PostgreSQL", "sql")
        self._connection = _connected(adbc, address.database)
        quietly(self.label, lambda: self._begin(SNAPSHOT if address.query is None else QUERY_SNAPSHOT))
        self._fields = quietly(self.label, lambda: self._described(f"SELECT * FROM {self._source} LIMIT 0"))
        self.names = tuple(self._fields.names)
        self.passes_once = address.query is not None or not quietly(self.label, self._is_stored)
        self.n_rows = None if self.passes_once else int(self._one(f"SELECT count(*) FROM {self._source}"))
        self._read = False

    def read(self, columns: Sequence[Column], positions: Sequence[int], rows: int) -> Iterator[Batch]:
        if self._read and self.passes_once:
            raise second_pass(self.label)
        self._read = True
        chosen = ", ".join(f"{self._column(position)} AS {quoted(str(i))}" for i, position in enumerate(positions))
        count = 0
        with self._connection.cursor() as cursor:
            cursor.adbc_statement.set_options(**{"adbc.postgresql.batch_size_hint_bytes": str(BATCH_BYTES)})
            cursor.execute(f"SELECT {chosen} FROM {self._source}")
            for batch in record_batches(cursor.fetch_record_batch(), columns, range(len(columns)), rows):
                count += len(batch[0])
                yield batch
        if self.n_rows not in (None, count):
            raise changed_source(self.label)

    def kinds(self) -> pl.Schema:
        """The types of the columns."""
        chosen = ", ".join(f"{self._column(i)} AS {quoted(field.name)}" for i, field in enumerate(self._fields))
        return arrow_kinds(self._described(f"SELECT {chosen} FROM {self._source} LIMIT 0"))

    def _column(self, position: int) -> str:
        """A column in SQL, as numbers or texts where the driver would hand out something else."""
        field = self._fields.field(position)
        kind = (field.metadata or {}).get(b"POSTGRESQL:type", b"").decode()
        name = quoted(field.name)
        if kind == "money":
            return f"CAST(CAST({name} AS numeric) AS double precision)"
        if kind in AS_NUMBERS:
            return f"CAST({name} AS double precision)"
        return f"CAST({name} AS text)" if kind in AS_TEXTS or _is_opaque(field.type) else name

    def _begin(self, settings: Sequence[str]) -> None:
        with self._connection.cursor() as cursor:
            for setting in settings:
                cursor.execute(setting)

    def _described(self, query: str) -> pa.Schema:
        """The names and types of what a query hands out."""
        with self._connection.cursor() as cursor:
            cursor.execute(query)
            return cursor.fetch_record_batch().schema

    def _is_stored(self) -> bool:
        kind = "SELECT relkind::text FROM pg_class WHERE oid = to_regclass($1)"
        return self._one(kind, (self._source,)) in STORED

    def _one(self, query: str, values: tuple[Any, ...] | None = None) -> Any:
        def asked() -> Any:
            with self._connection.cursor() as cursor:
                cursor.execute(query, values)
                found = cursor.fetchone()
            return None if found is None else found[0]

        return quietly(self.label, asked)

    def close(self) -> None:
        """End the snapshot."""
        quietly(self.label, self._connection.close)


def _is_opaque(kind: pa.DataType) -> bool:
    """Whether Arrow has no type for this one of PostgreSQL's, as for an enumeration."""
    return getattr(kind, "extension_name", "") == "arrow.opaque"


def _connected(adbc: Any, database: str) -> Any:
    try:
        return adbc.connect(database)
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt):
            raise
        kind = type(error).__name__
    raise DataError(
        f"The PostgreSQL server could not be reached, or did not let the user in ({kind}). Check the address: "
        "postgresql://user@host:port/database?table=people. Nothing was charged."
    )
