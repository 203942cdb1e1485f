"""A ledger in a PostgreSQL database, for teams: `postgresql://user@host/db?ledger=people&project=readmission`.

Every ledger is a schema of its own, with the tables of a file, so that rights are granted ledger by ledger. Two things
differ from a file:

- The sums stand in every entry, and not in a row that is written again and again. Who spends needs the right to insert
  entries and no other: nobody but the owner of the schema can change or remove anything.
- The answer to a COMMIT can get lost with the connection. The charge is then looked for on a new connection, by the
  hash that its nonce makes unlike any other; it counts only if it is found, and is never repeated.

Charges wait for each other by an advisory lock. It keeps them from failing, and nothing rests on it: the number of an
entry is its primary key, so of two that follow the same head only one can be committed.

psycopg is the driver: statements of a transaction go out as they are written here, errors have the server's codes, and
there is a connection for every use, so that threads, forks and pickles share none.
"""

from __future__ import annotations

import hashlib
import re
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import astuple, dataclass
from functools import partial
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING
from urllib.parse import quote, unquote

from privfit.privacy.errors import LedgerError
from privfit.privacy.ledger.chain import MAKE_SPLITS, NEWEST, BudgetRow, State
from privfit.privacy.ledger.entries import COLUMNS, Row, StateRow, Value
from privfit.privacy.ledger.making import new_budget
from privfit.privacy.ledger.place import Place, Records, Snapshot
from privfit.privacy.ledger.postgresql_errors import CONNECT_SECONDS, LOCKED_OUT, MEANINGS, reason

if TYPE_CHECKING:
    import psycopg

    Connection = psycopg.Connection[tuple[str | int | float | bool, ...]]

PREFIXES = ("postgresql://", "postgres://")
_NAME = re.compile(r"[a-z0-9]+([_-][a-z0-9]+)*")  # no two underscores: they stand between a ledger and a project
_LONGEST_NAME = 63  # bytes of a name in PostgreSQL, which cuts longer ones off in silence
_WAIT_SECONDS = 60  # that a use waits for others, as for a file; a client that hangs is cut off after as long
_RECONNECT_SECONDS = 15  # that the outcome of a lost COMMIT is asked for: a server that crashed is often back by then
_BEGIN = {
    False: "BEGIN ISOLATION LEVEL REPEATABLE READ, READ ONLY",  # one moment, however many statements
    True: "BEGIN ISOLATION LEVEL READ COMMITTED, READ WRITE",  # what is read behind the lock was committed before it
}
_DURABLE = f"""
SELECT pg_catalog.set_config('lock_timeout', '{_WAIT_SECONDS}s', true),
    pg_catalog.set_config('idle_in_transaction_session_timeout', '{_WAIT_SECONDS}s', true),
    pg_catalog.set_config('synchronous_commit', CASE pg_catalog.current_setting('synchronous_commit')
        WHEN 'remote_apply' THEN 'remote_apply' ELSE 'on' END, true),
    pg_catalog.current_setting('fsync')
"""
_FIELDS = ", ".join(COLUMNS)
_WRITTEN = f"{_FIELDS}, hash, totals, seal"
_TYPES = {"id": "bigint PRIMARY KEY CHECK (id > 0)", "epsilon": "double precision NOT NULL"}
_TYPES["delta"] = _TYPES["epsilon"]
_TABLES = f"""
CREATE TABLE {{schema}}.budget (
    version integer NOT NULL, identity text NOT NULL, epsilon double precision NOT NULL,
    delta double precision NOT NULL, created text NOT NULL, carried integer NOT NULL
);
CREATE TABLE {{schema}}.entry (
    {", ".join(f"{name} {_TYPES.get(name, 'text NOT NULL')}" for name in _WRITTEN.split(", "))},
    charged_by text NOT NULL DEFAULT session_user
);
{MAKE_SPLITS};
"""
_secrets: dict[str, dict[str, str]] = {}
"""Passwords that stood in addresses, by server. They live here, in the memory of this process, and nowhere else."""


@dataclass(frozen=True)
class PostgreSQLPlace(Place):
    """A ledger in a database, or the budget of a project, which is taken from that of its ledger."""

    server: str
    """The address of the database, without a password."""

    ledger: str = "default"
    project: str = ""
    kind = "database"

    def __post_init__(self) -> None:
        object.__setattr__(self, "name", f"{self.ledger}/{self.project}" if self.project else self.ledger)

    def __str__(self) -> str:
        project = f"&project={self.project}" if self.project else ""
        return f"{self.server}{'&' if '?' in self.server else '?'}ledger={self.ledger}{project}"

    @property
    def within(self) -> Place | None:
        """The ledger that the budget of a project is taken from."""
        return PostgreSQLPlace(self.server, self.ledger) if self.project else None

    @property
    def schema(self) -> str:
        """The schema, between quotes."""
        return f'"{_schema_name(self.ledger, self.project)}"'

    def exists(self) -> bool:
        with self._connected(write=False) as connection:
            query = "SELECT EXISTS (SELECT FROM pg_catalog.pg_namespace WHERE nspname = %s)"
            return connection.execute(query, (self.schema.strip('"'),)).fetchone() == (True,)

    def make(self, epsilon: float, delta: float, records: Records | None = None) -> None:
        budget = new_budget(epsilon, delta)
        if isinstance(records, PostgreSQLRecords):
            self._make(records.connection, budget)
            return
        with self._connected(write=True) as connection:
            if not self.exists():  # behind the lock: who was first has committed
                self._make(connection, budget)
                connection.execute("COMMIT")

    def _make(self, connection: Connection, budget: BudgetRow) -> None:
        connection.execute(f"CREATE SCHEMA {self.schema}")
        connection.execute(_TABLES.format(schema=self.schema))
        connection.execute(f"INSERT INTO {self.schema}.budget VALUES (%s, %s, %s, %s, %s, %s)", astuple(budget))

    def check_roles(self, roles: Sequence[str]) -> None:
        with self._connected(write=False) as connection:
            for role in roles:
                query = "SELECT EXISTS (SELECT FROM pg_catalog.pg_roles WHERE rolname = %s)"
                if connection.execute(query, (role,)).fetchone() != (True,):
                    raise LedgerError(
                        f"There is no role {role!r} on the server, and rights are granted to roles. Make it first "
                        f"(CREATE ROLE {role} LOGIN), or correct the name. Nothing was granted."
                    )

    def grant(self, *, spenders: Sequence[str] = (), readers: Sequence[str] = ()) -> None:
        self.check_roles([*spenders, *readers])
        with self._connected(write=True) as connection:
            query = "SELECT pg_catalog.pg_has_role(nspowner, 'USAGE') FROM pg_catalog.pg_namespace WHERE nspname = %s"
            if connection.execute(query, (self.schema.strip('"'),)).fetchone() != (True,):
                raise LedgerError(  # PostgreSQL would warn, and grant nothing
                    f"Rights to the ledger {self.name!r} were to be granted by a role that does not own it. Ask who "
                    "made the ledger. Nothing was granted."
                )
            for role in (*spenders, *readers):
                name = '"' + role.replace('"', '""') + '"'
                connection.execute(f"GRANT USAGE ON SCHEMA {self.schema} TO {name}")
                connection.execute(f"GRANT SELECT ON {self.schema}.budget, {self.schema}.entry TO {name}")
                if role in spenders:
                    connection.execute(f"GRANT INSERT ({_WRITTEN}) ON {self.schema}.entry TO {name}")
                    if PostgreSQLRecords(connection, self).has_splits():  # their keys are for spenders alone
                        connection.execute(f"GRANT SELECT, INSERT ON {self.schema}.split TO {name}")
            connection.execute("COMMIT")

    @contextmanager
    def transaction(self, write: bool) -> Iterator[PostgreSQLRecords]:
        with self._connected(write) as connection:
            yield PostgreSQLRecords(connection, self)

    @contextmanager
    def _connected(self, write: bool) -> Iterator[Connection]:
        """A connection in a transaction, which is undone at its end unless it was committed."""
        driver = _driver()
        with closing(self._connect()) as connection:
            try:
                connection.execute(_BEGIN[write])
                if write:
                    self._alone(connection)
                yield connection
            except (driver.Error, UnicodeError, OverflowError) as error:
                raise self._refusal(error) from None

    def _connect(self) -> Connection:
        driver, kept = _driver(), _secrets.get(self.server, {})
        try:
            connection: Connection = driver.connect(
                self.server,
                autocommit=True,
                prepare_threshold=None,
                connect_timeout=CONNECT_SECONDS,
                tcp_user_timeout=1_000 * _WAIT_SECONDS,
                client_encoding="utf8",
                application_name="privfit",
                **kept,
            )
            return connection
        except (driver.Error, OSError, UnicodeError) as error:
            told = reason(str(error).lower())
        if told == LOCKED_OUT:
            _secrets.pop(self.server, None)
        raise LedgerError(f"The server of the ledger {self.name!r} {told} Nothing was charged or released.")

    def _alone(self, connection: Connection) -> None:
        """Make commits durable, and wait until nobody else charges this ledger."""
        told = connection.execute(_DURABLE).fetchone()
        if told is None or told[-1] != "on":
            raise LedgerError(
                f"The server of the ledger {self.name!r} has fsync=off, and loses charges when it crashes. Nothing was "
                "charged or released. Set fsync=on in its postgresql.conf."
            )
        key = int.from_bytes(hashlib.sha256(f"privfit {self.schema}".encode()).digest()[:8], "big", signed=True)
        connection.execute("SELECT pg_catalog.pg_advisory_xact_lock(%s::bigint)", (key,))

    def settle(self, entry: int, head: str) -> None:
        """Find out, after the answer to a COMMIT was lost, whether the charge was made; refuse if not, or not known.

        Behind the lock the lost connection has ended, so that the answer is final.
        """
        end = time.monotonic() + _RECONNECT_SECONDS
        while True:
            try:
                with self.transaction(write=True) as records:
                    found = records.head(entry)
                break
            except LedgerError as error:
                if time.monotonic() > end:
                    raise LedgerError(
                        f"The connection to the ledger {self.name!r} was lost while a charge was committed, and "
                        f"whether it was made is not known ({error}) Nothing was released. Count it as charged; look "
                        f"later whether entry {entry} has the hash {head[:16]}..."
                    ) from None
            time.sleep(0.2)
        if found != head:
            raise LedgerError(
                f"The connection to the ledger {self.name!r} was lost while a charge was committed, and the charge was "
                "not made. Nothing was charged or released. Try again."
            )

    def _refusal(self, error: Exception) -> LedgerError:
        """The server's error as ours. Its details, which quote rows, stay out."""
        code = getattr(error, "sqlstate", None)
        told = getattr(getattr(error, "diag", None), "message_primary", None) or type(error).__name__
        what, cure = MEANINGS.get(code or "", (f"cannot be read or written: {told}", "Check the server and its disk"))
        if code is None:
            what, cure = "lost its connection to the server", "Check the server, then try again"
        what = what.format(told=told, seconds=_WAIT_SECONDS)
        return LedgerError(f"The ledger {self.name!r} {what}. Nothing was charged or released. {cure}.")


@dataclass(frozen=True)
class PostgreSQLRecords(Records):
    """The rows of a ledger in a database, inside a transaction."""

    connection: Connection
    place: PostgreSQLPlace

    def ask(self, query: str, *values: Value) -> list[Row]:
        cursor = self.connection.execute(query.format(schema=self.place.schema), values)
        return cursor.fetchall() if cursor.description else []

    def has_splits(self) -> bool:
        return self.ask("SELECT to_regclass(%s) IS NOT NULL", f"{self.place.schema}.split") == [(True,)]

    def budget(self) -> Sequence[Row]:
        columns = "version, identity, epsilon, delta, created, carried"
        return self.ask(f"SELECT {columns} FROM {{schema}}.budget LIMIT 2")

    def snapshot(self) -> Snapshot:
        """The state stands in the newest entry; before the first one it follows from the budget."""
        budget = self.budget()
        rows = self.ask(f"SELECT {_WRITTEN} FROM {{schema}}.entry ORDER BY id DESC LIMIT %s", NEWEST + 1)
        state = [(row[0], *row[-3:]) for row in rows[:1]]
        if not rows and (known := BudgetRow.read(budget)) is not None:
            state = [State(known, 0, known.genesis).to_row()]
        return Snapshot(budget, state, [(row[:-3], str(row[-3])) for row in rows[::-1]])

    def after(self, entry: int, most: int, version: int) -> list[tuple[Row, str]]:
        query = f"SELECT {_FIELDS}, hash FROM {{schema}}.entry WHERE id > %s ORDER BY id LIMIT %s"
        return [(row[:-1], str(row[-1])) for row in self.ask(query, entry, most)]

    def head(self, entry: int) -> str | None:
        found = self.ask("SELECT hash FROM {schema}.entry WHERE id = %s", entry)
        return str(found[0][0]) if found else None

    def commit(self, added: Iterable[tuple[Row, StateRow]]) -> None:
        """Write and commit. If no answer comes, the charge is looked for, and counts only if it is found."""
        for entry, after in added:
            values = (*entry, *after[1:])
            query = f"INSERT INTO {self.place.schema}.entry ({_WRITTEN}) VALUES ({', '.join(['%s'] * len(values))})"
            self.connection.execute(query, values)
        try:
            answer = self.connection.execute("COMMIT").statusmessage
        except _driver().Error:
            answer = None
        if answer != "COMMIT":
            self.connection.close()
            self.place.settle(*after[:2])


# -- addresses -------------------------------------------------------------------------------------


def place_in_database(address: str) -> PostgreSQLPlace:
    """The place that an address names. Its password is kept in memory only."""
    place = known_place(address)
    server, secrets = _without_secrets(place.server)
    if secrets:
        _secrets[server] = secrets
    return PostgreSQLPlace(server, place.ledger, place.project)


def known_place(address: str) -> PostgreSQLPlace:
    """The place that an address of ours names: `ledger=` and `project=` are taken out of it."""
    server, _, options = address.partition("?")
    names = {"ledger": "default", "project": ""}
    others = []
    for option in filter(None, options.split("&")):
        name, _, value = option.partition("=")
        if name in names:
            names[name] = unquote(value)
        else:
            others.append(option)
    _schema_name(**names)
    return PostgreSQLPlace(f"{server}?{'&'.join(others)}" if others else server, **names)


def _schema_name(ledger: str, project: str) -> str:
    """The schema of a ledger, which psql shows."""
    names = [ledger, project] if project else [ledger]
    name = "privfit_" + "__".join(names)
    if not all(map(_NAME.fullmatch, names)) or len(name) > _LONGEST_NAME:
        raise LedgerError(
            "The address of a ledger was given with a name of a ledger or a project that a database cannot keep. Write "
            f"small letters, digits and single - or _ between them, together at most {_LONGEST_NAME - 10} characters: "
            "?ledger=people&project=readmission."
        )
    return name


def _without_secrets(server: str) -> tuple[str, dict[str, str]]:
    """An address in one spelling, and what must not stand in it."""
    driver = _driver()
    try:
        given = {name: str(value) for name, value in import_module("psycopg.conninfo").conninfo_to_dict(server).items()}
        hidden = {option.keyword.decode() for option in driver.pq.Conninfo.get_defaults() if option.dispchar == b"*"}
    except (driver.Error, UnicodeError):
        given, hidden = {"host": "@"}, set()
    secrets = {name: given.pop(name) for name in hidden & set(given)}
    if any("@" in given.get(name, "") for name in ("host", "dbname", "port")):
        raise LedgerError(
            "The address of a ledger cannot be read. Write postgresql://user@host:port/database?ledger=people, with "
            "%40 for an @ and %2F for a / inside of names; a password is best left to PGPASSWORD or a password file. "
            "Nothing was charged."
        )
    text = partial(quote, safe="")
    user, database = given.pop("user", ""), given.pop("dbname", "")
    host = ""
    if re.fullmatch(r"[A-Za-z0-9.-]+", given.get("host", "")) and given.get("port", "0").isdigit():
        host = given.pop("host") + (f":{given.pop('port')}" if "port" in given else "")
    options = "&".join(f"{name}={quote(value, safe='/,')}" for name, value in sorted(given.items()))
    address = f"postgresql://{text(user) + '@' if user else ''}{host}/{text(database)}"
    return f"{address}?{options}" if options else address, secrets


def _driver() -> ModuleType:
    try:
        return import_module("psycopg")
    except ImportError:
        pass
    raise LedgerError(
        "A ledger in PostgreSQL needs the library 'psycopg', which is not installed. Install it: pip install "
        "'privfit[postgres]'. Nothing was charged."
    )
