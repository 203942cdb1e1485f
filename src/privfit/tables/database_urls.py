"""Addresses of tables in databases: `duckdb:///people.db?table=people`, `postgresql://user@host/db?query=select ...`.

Names reach SQL between quotes, always. Neither an address nor a query is repeated in a label or an error: addresses
have passwords in them, queries may have cells.
"""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import unquote

from privfit.tables.errors import DataError

_QUERY = "query="


@dataclass(frozen=True, repr=False)
class DatabaseUrl:
    """An address in its parts: the database, and a table in it or a query."""

    database: str
    """The address without what privfit reads of it."""

    table: str | None = None
    schema: str | None = None
    query: str | None = None

    @property
    def kind(self) -> str:
        """What stands behind it: a table or a query."""
        return "table" if self.query is None else "query"

    @property
    def source(self) -> str:
        """What stands behind FROM in SQL."""
        if self.query is not None:
            return f"({self.query}\n) AS privfit_source"
        return ".".join(quoted(name) for name in (self.schema, self.table) if name is not None)


def quoted(name: str) -> str:
    """A name as SQL takes it, whatever characters it has."""
    if "\0" in name:
        raise DataError("A name with a NUL character was given, which no database has. Correct it.")
    return '"' + name.replace('"', '""') + '"'


def parsed_url(url: str) -> DatabaseUrl:
    """The parts of an address.

    `query=` comes last: everything behind it is the query, with `&` and `+` as they stand and `%20` for a blank.
    """
    database, _, options = url.partition("?")
    before, found, query = _before_query(options)
    ours: dict[str, str] = {}
    others = []
    for option in filter(None, before.split("&")):
        name, _, value = option.partition("=")
        if name in ("table", "schema"):
            ours[name] = unquote(value)
        else:
            others.append(option)
    if bool(found) == ("table" in ours) or not (query.strip() if found else ours["table"]):
        raise DataError(
            "The address of a database was given, and not which of its rows. End it with ?table=NAME or with ?query= "
            "and a query. Nothing was charged."
        )
    rest = f"{database}?{'&'.join(others)}" if others else database
    if found:
        return DatabaseUrl(rest, query=unquote(query).strip().rstrip(";").rstrip())
    return DatabaseUrl(rest, ours["table"], ours.get("schema"))


def _before_query(options: str) -> tuple[str, str, str]:
    if options.startswith(_QUERY):
        return "", _QUERY, options[len(_QUERY) :]
    before, found, query = options.partition("&" + _QUERY)
    return before, found, query


def second_pass(label: str) -> DataError:
    """The error for a source that is read once."""
    return DataError(
        f"A {label} was to be read a second time; its rows may come in another order then. Give a table instead. "
        "Nothing was charged."
    )
