"""The making of a ledger: its budget, and its file, whole or not at all."""

from __future__ import annotations

import atexit
import math
import os
import sqlite3
import tempfile
import uuid
from contextlib import suppress
from dataclasses import astuple
from datetime import UTC, datetime
from pathlib import Path

from privfit.privacy.budget import Budget
from privfit.privacy.errors import LedgerError
from privfit.privacy.ledger.chain import VERSION, BudgetRow, State

# FULL does not sync the folder after a commit: power lost then would bring the old journal back
DURABLE = "PRAGMA synchronous = EXTRA"
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


def new_budget(epsilon: float, delta: float) -> BudgetRow:
    """The budget of a ledger that is about to be made; refuses one that means nothing."""
    budget = Budget(1.0 if epsilon == math.inf else epsilon, delta)
    whole = (math.inf if epsilon == math.inf else budget.epsilon, budget.delta)
    return BudgetRow(VERSION, uuid.uuid4().hex, *whole, datetime.now(UTC).isoformat(timespec="seconds"))


def make_file(path: Path, epsilon: float, delta: float) -> None:
    """A new ledger's file, whole or not at all. If another process was first, its file stays."""
    row = new_budget(epsilon, delta)
    if not path.parent.is_dir():
        raise LedgerError(
            f"The folder of the ledger {path.name!r} does not exist. Make the folder first, then the ledger."
        )
    made: str | None = None
    connection: sqlite3.Connection | None = None
    try:
        handle, made = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}-")
        os.close(handle)
        connection = sqlite3.connect(made, isolation_level=None)
        connection.execute(DURABLE)
        connection.executescript(TABLES)
        connection.execute("INSERT INTO budget VALUES (?, ?, ?, ?, ?, ?)", astuple(row))
        connection.execute("INSERT INTO state VALUES (?, ?, ?, ?)", State(row, 0, row.genesis).to_row())
        connection.close()
        with suppress(FileExistsError):  # another process was first: its ledger is the one to use
            os.link(made, path)
    except (OSError, sqlite3.Error) as error:
        raise LedgerError(
            f"The ledger {path.name!r} cannot be made: {error}. Nothing was charged. Choose a folder that can be "
            "written and has room."
        ) from error
    finally:
        if connection is not None:
            connection.close()
        for left in (made, f"{made}-journal") if made else ():
            with suppress(FileNotFoundError):
                os.unlink(left)


def temporary_place() -> Path:
    """Where a ledger can be made that lives as long as this process."""
    path = Path(tempfile.mkdtemp(prefix="privfit-ledger-")) / "ledger.db"
    atexit.register(_remove_temporary, path, os.getpid())
    return path


def _remove_temporary(path: Path, owner: int) -> None:
    if os.getpid() == owner and path.parent.is_dir():
        for left in path.parent.iterdir():
            left.unlink()
        path.parent.rmdir()
