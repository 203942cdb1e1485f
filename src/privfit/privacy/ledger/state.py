"""What a ledger's file says of itself in one row: how many entries, the head of their chain, and the sums that their
total depends on.

The row is written in the transaction that appends an entry, so that a charge reads a bounded number of rows however
many there are. `ledger_check` compares it with all entries.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import lru_cache

from privfit.privacy.composition import History, stated_epsilon
from privfit.privacy.event import Event
from privfit.privacy.ledger.chain import COLUMNS, MOST_ENTRIES, STATED, Entry, Row, digest, is_row, linked, new_nonce
from privfit.privacy.parameters import number

# Raise it with any change to composition.order_for, composition._fixed_part or the rule of composition.History: the
# Renyi order is not stored but computed anew at each charge, and the proof needs one order for all charges to a file.
VERSION = 2
NEWEST = 64  # entries that every use checks against the chain: about a millisecond, and most ledgers are never longer
PAGE = 1_000  # entries read at a time, so that a long ledger is read in little memory and nobody waits for a lock
TABLES = """
CREATE TABLE budget (
    version INTEGER NOT NULL, identity TEXT NOT NULL, epsilon REAL NOT NULL, delta REAL NOT NULL,
    created TEXT NOT NULL, carried INTEGER NOT NULL
);
CREATE TABLE entry (
    id INTEGER PRIMARY KEY AUTOINCREMENT, time TEXT NOT NULL, dataset TEXT NOT NULL, mechanism TEXT NOT NULL,
    epsilon REAL NOT NULL, delta REAL NOT NULL, event TEXT NOT NULL, model TEXT NOT NULL,
    target TEXT NOT NULL, note TEXT NOT NULL, owner TEXT NOT NULL, version TEXT NOT NULL, stated TEXT NOT NULL,
    nonce TEXT NOT NULL, hash TEXT NOT NULL
);
CREATE TABLE state (entries INTEGER NOT NULL, head TEXT NOT NULL, totals TEXT NOT NULL, seal TEXT NOT NULL);
"""
_FIELDS = ", ".join(COLUMNS)
_INSERT = f"INSERT INTO entry ({_FIELDS}, hash) VALUES ({', '.join('?' * (len(COLUMNS) + 1))})"


class Damaged(Exception):
    """What a file says contradicts itself; the ledger turns this into its own error."""


@dataclass(frozen=True)
class Whole:
    """The row of a ledger's budget. `carried` entries were there before the file had a chain."""

    version: int
    identity: str
    epsilon: float
    delta: float
    created: str
    carried: int = 0

    @property
    def genesis(self) -> str:
        """What the first entry is linked to."""
        return digest(self.version, self.identity, self.epsilon, self.delta, self.created, self.carried)


@dataclass(frozen=True)
class State:
    """A ledger after some entries. `head` is empty for a file of version 1, which has no chain."""

    whole: Whole
    entries: int
    head: str
    history: History = field(default_factory=History)
    promise: tuple[str, int] | None = None
    """The adjacency and the rows per person of all entries that name them; the first ones, if they are `mixed`."""
    mixed: bool = False

    def total(self) -> tuple[Fraction, Fraction]:
        """What all entries cost together."""
        return self.history.total(self.whole.epsilon, self.whole.delta)

    def promises_otherwise(self, event: Event) -> bool:
        """Whether some entry protects against other neighbours than this event."""
        return self.promise is not None and (self.mixed or self.promise != (event.adjacency, event.rows_per_person))

    def after(self, event: Event, stated: Fraction | None, head: str) -> State:
        """The state with one entry more."""
        promise = self.promise if event.elsewhere or self.promise else (event.adjacency, event.rows_per_person)
        return replace(
            self,
            entries=self.entries + 1,
            head=head,
            history=self.history.after(event.cost, stated, self.whole.epsilon, self.whole.delta),
            promise=promise,
            mixed=self.mixed or (not event.elsewhere and self.promises_otherwise(event)),
        )

    def to_row(self) -> tuple[int, str, str, str]:
        """The row of the file: entries, head, sums, and a digest of these, so that no change in them goes unnoticed."""
        totals = json.dumps(
            {"history": self.history.to_dict(), "promise": self.promise, "mixed": self.mixed}, sort_keys=True
        )
        return self.entries, self.head, totals, digest(self.whole.genesis, self.entries, self.head, totals)


# -- reading ---------------------------------------------------------------------------------------


def read_whole(connection: sqlite3.Connection) -> Whole | None:
    """The budget in a file; None if it has none that this version can read."""
    rows = connection.execute("SELECT * FROM budget LIMIT 2").fetchall()
    kinds = (int, str, float, float, str, int)
    if (
        len(rows) != 1
        or rows[0][0] not in (1, VERSION)
        or tuple(map(type, rows[0])) != kinds[: 5 if rows[0][0] == 1 else 6]
    ):
        return None
    whole = Whole(*rows[0])
    fits = whole.epsilon > 0 and 0 <= whole.delta < 1 and whole.carried >= 0
    return whole if fits else None


def read_state(connection: sqlite3.Connection) -> State:
    """The state of a ledger.

    Checks its row, and the newest entries against the chain; constant work, but for a file of version 1, all of which
    is read.
    """
    whole = read_whole(connection)
    if whole is None:
        raise Damaged
    if whole.version == 1:
        return _replayed(connection, whole)
    rows = connection.execute("SELECT entries, head, totals, seal FROM state LIMIT 2").fetchall()
    if len(rows) != 1 or tuple(map(type, rows[0])) != (int, str, str, str):
        raise Damaged
    state = _from_row(whole, *rows[0])
    _check_newest(connection, state)
    return state


def _from_row(whole: Whole, entries: int, head: str, totals: str, seal: str) -> State:
    if seal != digest(whole.genesis, entries, head, totals):
        raise Damaged
    try:
        plain = json.loads(totals)
        promise = None if plain["promise"] is None else (str(plain["promise"][0]), int(plain["promise"][1]))
        return State(whole, entries, head, History.from_dict(plain["history"]), promise, bool(plain["mixed"]))
    except (ValueError, TypeError, KeyError, IndexError, AttributeError, ZeroDivisionError, RecursionError):
        raise Damaged from None


def _check_newest(connection: sqlite3.Connection, state: State) -> None:
    """The newest entries are there, in order, and linked up to the head; all of them, where they are few."""
    last = connection.execute("SELECT seq FROM sqlite_sequence WHERE name = 'entry'").fetchone()
    rows = connection.execute(f"SELECT {_FIELDS}, hash FROM entry ORDER BY id DESC LIMIT ?", (NEWEST + 1,)).fetchall()[
        ::-1
    ]
    if (last[0] if last else 0) != state.entries or len(rows) != min(state.entries, NEWEST + 1):
        raise Damaged
    head = state.whole.genesis
    if len(rows) > NEWEST:
        head = rows.pop(0)[-1]
    for place, (*row, own) in enumerate(rows, state.entries - len(rows) + 1):
        if row[0] != place or not is_row(tuple(row)) or own != linked(head, tuple(row)):
            raise Damaged
        head = own
    if head != state.head:
        raise Damaged


def head_at(connection: sqlite3.Connection, whole: Whole, entry: int) -> str | None:
    """The head of the chain after so many entries; None if there are not as many."""
    if entry == 0 or whole.version == 1:
        return whole.genesis  # of version 1: of another budget row than any that was ever a head
    if not 0 < entry <= MOST_ENTRIES:
        return None
    found = connection.execute("SELECT hash FROM entry WHERE id = ?", (entry,)).fetchone()
    return found[0] if found else None


def read_rows(connection: sqlite3.Connection, whole: Whole, after: int, most: int) -> list[tuple[Row, str]]:
    """Entries and their hashes, oldest first: at most so many of those after the entry of this number."""
    fields = _FIELDS + ", hash" if whole.version > 1 else ", ".join(COLUMNS[:7])
    rows = connection.execute(f"SELECT {fields} FROM entry WHERE id > ? ORDER BY id LIMIT ?", (after, most)).fetchall()
    told = [(row[:-1], row[-1]) if whole.version > 1 else ((*row, *[""] * (len(COLUMNS) - 7)), "") for row in rows]
    if not all(is_row(row) for row, _ in told):
        raise Damaged
    return told


def read_event(row: Row) -> Event:
    """The event of an entry, which has the price that the entry states."""
    try:
        event = _parsed(row[6])
    except (ValueError, TypeError, AttributeError, OverflowError, RecursionError):
        raise Damaged from None
    if (event.epsilon, event.delta, event.mechanism) != (number(row[4]), number(row[5]), row[3]):
        raise Damaged
    return event


@lru_cache(maxsize=1 << 10)  # fits often repeat; a thousand texts are a few hundred kilobytes
def _parsed(text: str) -> Event:
    return Event.from_json(text)


def read_entry(row: Row, head: str) -> Entry:
    """An entry as a reader wants it: its event in place of the event's text."""
    return Entry(**{**dict(zip(COLUMNS[:STATED], row, strict=False)), "event": read_event(row), "hash": head})


# -- writing ---------------------------------------------------------------------------------------


def append(connection: sqlite3.Connection, state: State, row: Row, event: Event) -> State:
    """Write an entry and the state after it, inside the caller's transaction.

    `row` lacks its number, the epsilon as stated and its nonce.
    """
    after = _insert(connection, state, (state.entries + 1, *row), event)
    connection.execute("UPDATE state SET entries = ?, head = ?, totals = ?, seal = ?", after.to_row())
    return after


def _insert(connection: sqlite3.Connection, state: State, row: Row, event: Event) -> State:
    stated = stated_epsilon(event.cost)
    full = (*row, "" if stated is None else str(stated), new_nonce())
    head = linked(state.head, full)
    connection.execute(_INSERT, (*full, head))
    return state.after(event, stated, head)


# -- version 1 -------------------------------------------------------------------------------------


def _all_rows(connection: sqlite3.Connection, whole: Whole) -> Iterator[Row]:
    """Every entry of a file of version 1; refuses a file that has lost some."""
    last = connection.execute("SELECT seq FROM sqlite_sequence WHERE name = 'entry'").fetchone()
    place = 0
    while page := read_rows(connection, whole, place, PAGE):
        for row, _ in page:
            place += 1
            if row[0] != place:
                raise Damaged
            yield row
    if place != (last[0] if last else 0):
        raise Damaged


def _replayed(connection: sqlite3.Connection, whole: Whole) -> State:
    state = State(whole, 0, "")
    for row in _all_rows(connection, whole):
        event = read_event(row)
        state = state.after(event, stated_epsilon(event.cost), "")
    return state


def upgrade(connection: sqlite3.Connection) -> None:
    """Turn a file of version 1 into one of this version, inside the caller's transaction: every entry is kept, and
    linked from now on.
    """
    old = read_whole(connection)
    if old is None or old.version != 1:
        return
    entries = _replayed(connection, old).entries
    whole = replace(old, version=VERSION, carried=entries)
    state = State(whole, 0, whole.genesis)
    connection.execute("ALTER TABLE budget ADD COLUMN carried INTEGER NOT NULL DEFAULT 0")
    connection.execute("UPDATE budget SET version = ?, carried = ?", (VERSION, entries))
    connection.execute("ALTER TABLE entry RENAME TO entry_of_version_1")
    for statement in TABLES.split(";")[1:3]:
        connection.execute(statement)
    for row in _old_rows(connection):
        state = _insert(connection, state, row[:STATED], read_event(row))
    connection.execute("DROP TABLE entry_of_version_1")
    connection.execute("INSERT INTO state VALUES (?, ?, ?, ?)", state.to_row())


def _old_rows(connection: sqlite3.Connection) -> Iterator[Row]:
    names = ", ".join(COLUMNS[:7])
    for row in connection.execute(f"SELECT {names} FROM entry_of_version_1 ORDER BY id"):
        yield (*row, *[""] * (len(COLUMNS) - 7))
