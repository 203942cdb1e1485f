"""Ledgers in both places that they can be kept in, and what can be done to them behind their back."""

from __future__ import annotations

import itertools
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

import privfit as pf
from tests.support.servers import postgresql_server

_numbers = itertools.count(1)


class KeptInFile:
    """A place for a ledger in a file."""

    def __init__(self, folder: Path, name: str = "ledger.db") -> None:
        self.path = folder / name
        self.address = str(self.path)

    def other(self) -> KeptInFile:
        """Another place beside this one."""
        return KeptInFile(self.path.parent, f"other-{next(_numbers)}.db")

    def make(self, **budget) -> pf.Ledger:
        return pf.Ledger(self.address, **budget)

    def exists(self) -> bool:
        return list(self.path.parent.glob("*ledger*")) != []

    def sql(self, *statements: str) -> list[tuple]:
        """Run statements as somebody may who can write the file; the rows of the last one."""
        with closing(sqlite3.connect(self.path)) as connection, connection:
            return [connection.execute(statement).fetchall() for statement in statements][-1]

    def content(self) -> bytes:
        return self.path.read_bytes()

    def restore(self, content: bytes) -> None:
        """Go back to an older content."""
        self.path.write_bytes(content)

    def copy(self) -> KeptInFile:
        """The same content in a place that nobody has looked at before."""
        copy = self.other()
        shutil.copyfile(self.path, copy.path)
        return copy

    def remove(self) -> None:
        self.path.unlink()

    def move_to(self, other: KeptInFile) -> None:
        self.path.rename(other.path)


class KeptInDatabase:
    """A place for a ledger on the PostgreSQL server of the tests."""

    def __init__(self) -> None:
        pytest.importorskip("psycopg", reason="psycopg, the driver of ledgers in PostgreSQL, is not installed")
        self.name = f"tested-{next(_numbers)}"
        self.schema = f'"privfit_{self.name}"'
        self.address = f"{postgresql_server().address}&ledger={self.name}"

    def other(self) -> KeptInDatabase:
        return KeptInDatabase()

    def make(self, **budget) -> pf.Ledger:
        return pf.Ledger(self.address, **budget)

    def exists(self) -> bool:
        found = self.sql(f"SELECT FROM pg_namespace WHERE nspname = '{self.schema[1:-1]}'")
        return found != []

    @contextmanager
    def connected(self, **options) -> Iterator:
        import psycopg

        with psycopg.connect(
            postgresql_server().address, options=f"-c search_path={self.schema[1:-1]}", **options
        ) as connection:
            yield connection

    def sql(self, *statements: str) -> list[tuple]:
        """Run statements as the owner of the database may; the rows of the last one."""
        with self.connected() as connection:
            for statement in statements:
                cursor = connection.execute(statement)
            return cursor.fetchall() if cursor.description is not None else []

    def content(self) -> dict[str, list[tuple]]:
        return {table: self.sql(f"SELECT * FROM {table} ORDER BY 1") for table in ("budget", "entry")}

    def restore(self, content: dict[str, list[tuple]]) -> None:
        """Go back to a backup."""
        with self.connected() as connection:
            for table, rows in content.items():
                connection.execute(f"DELETE FROM {table}")
                for row in rows:
                    connection.execute(f"INSERT INTO {table} VALUES ({', '.join(['%s'] * len(row))})", row)

    def copy(self) -> KeptInDatabase:
        copy, tables = KeptInDatabase(), ("budget", "entry")
        copy.sql(
            f"CREATE SCHEMA {copy.schema}",
            *(f"CREATE TABLE {copy.schema}.{table} (LIKE {self.schema}.{table} INCLUDING ALL)" for table in tables),
            *(f"INSERT INTO {copy.schema}.{table} SELECT * FROM {self.schema}.{table}" for table in tables),
        )
        return copy

    def remove(self) -> None:
        self.sql(f"DROP SCHEMA {self.schema} CASCADE")

    def move_to(self, other: KeptInDatabase) -> None:
        self.sql(f"ALTER SCHEMA {self.schema} RENAME TO {other.schema}")


Kept = KeptInFile | KeptInDatabase
