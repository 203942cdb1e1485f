"""Relations of DuckDB: queries that the database runs and hands out as Arrow record batches.

Texts that are levels come as places in the list of levels: the database looks a text up where it is stored, and takes
half as long for that as for handing it out.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeGuard, cast

from privfit.schema import Category, Column, Level
from privfit.tables.arrow_columns import arrow_values, is_listed, short_batches
from privfit.tables.database_urls import quoted
from privfit.tables.table import ABSENT, UNKNOWN, Batch, Table, TableLike

if TYPE_CHECKING:
    import duckdb

MOST_LEVELS = 1000
"""Levels of a column that are written into a query, which gets longer by them. No command varies it."""


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
        self._fields = fields_of(relation)
        self.names = tuple(name for name, _ in self._fields)

    def read(self, columns: Sequence[Column], positions: Sequence[int], rows: int) -> Iterator[Batch]:
        asked = Selection(columns, [self._fields[position] for position in positions])
        yield from asked.batches(self._relation.project(asked.sql), rows)


@dataclass(frozen=True)
class Selection:
    """What is selected for columns of a schema, each called by its place."""

    columns: Sequence[Column]
    fields: Sequence[tuple[str, str]]
    """The name and the type that each of them has in the database."""

    @property
    def sql(self) -> str:
        """What stands between SELECT and FROM."""
        asked = (
            _place(cast(Category, column), quoted(name)) if coded else quoted(name)
            for column, (name, _), coded in zip(self.columns, self.fields, self._coded, strict=True)
        )
        return ", ".join(f"{what} AS {quoted(str(place))}" for place, what in enumerate(asked))

    def batches(self, relation: Any, rows: int) -> Iterator[Batch]:
        """All rows of what was selected, at most so many at a time."""
        for batch in short_batches(arrow_reader(relation, rows), rows):
            yield [
                values.to_numpy() if coded else arrow_values(values, column)
                for values, column, coded in zip(batch.columns, self.columns, self._coded, strict=True)
            ]

    @cached_property
    def _coded(self) -> list[bool]:
        """Whether the database looks the texts of a column up."""
        return [
            kind == "VARCHAR" and is_listed(column) and _are_written(column.levels)
            for column, (_, kind) in zip(self.columns, self.fields, strict=True)
        ]


def _are_written(levels: Sequence[Level]) -> bool:
    """Whether levels can be written into a query, and make no long one."""
    return len(levels) <= MOST_LEVELS and not any("\0" in str(level) for level in levels)


def _place(column: Category, name: str) -> str:
    """The place of a text among the levels, as `arrow_values` has it for texts that come here."""
    levels = ", ".join("'" + str(level).replace("'", "''") + "'" for level in column.levels)
    found = f"CAST(enum_code(TRY_CAST({name} AS ENUM({levels}))) AS INTEGER)"
    return f"coalesce({found}, CASE WHEN {name} IS NULL THEN {ABSENT} ELSE {UNKNOWN} END)"


def fields_of(relation: Any) -> list[tuple[str, str]]:
    """The names and types of a relation's columns."""
    return list(zip(relation.columns, map(str, relation.types), strict=True))


def arrow_reader(relation: Any, rows: int) -> Any:
    """A relation's rows as Arrow record batches of about so many rows; the method's name depends on the version."""
    read = getattr(relation, "to_arrow_reader", None) or relation.fetch_arrow_reader
    return read(rows)
