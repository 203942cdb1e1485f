"""Files of version 1, which had neither a chain nor a row for the state: upgraded at the first charge."""

from __future__ import annotations

import sqlite3
from dataclasses import replace

from privfit.privacy.ledger.chain import COLUMNS, STATED, TABLES, VERSION, State, append, read_event


def upgrade(connection: sqlite3.Connection, old: State) -> State:
    """Turn a file of version 1 into one of this version, inside the caller's transaction: every entry is kept, and
    linked from now on. `old` is what was read from all of them, in the same transaction.
    """
    budget = replace(old.budget, version=VERSION, carried=old.entries)
    state = State(budget, 0, budget.genesis)
    connection.execute("ALTER TABLE budget ADD COLUMN carried INTEGER NOT NULL DEFAULT 0")
    connection.execute("UPDATE budget SET version = ?, carried = ?", (VERSION, budget.carried))
    connection.execute("ALTER TABLE entry RENAME TO entry_of_version_1")
    for statement in TABLES.split(";")[1:3]:
        connection.execute(statement)
    names = ", ".join(COLUMNS[:7])
    for row in connection.execute(f"SELECT {names} FROM entry_of_version_1 ORDER BY id"):
        full = (*row, *[""] * (len(COLUMNS) - 7))
        state = append(connection, state, full[1:STATED], read_event(full))
    connection.execute("DROP TABLE entry_of_version_1")
    connection.execute("INSERT INTO state VALUES (?, ?, ?, ?)", state.to_row())
    return state
