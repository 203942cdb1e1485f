"""The file of a ledger: made whole or not at all, opened anew for every use, and refused when it is gone, replaced or not a ledger."""

from __future__ import annotations

import atexit
import math
import os
import sqlite3
import tempfile
import threading
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from privfit.privacy.budget import Budget
from privfit.privacy.errors import LedgerError

# Once released, raise it with any change to composition.order_for, composition._fixed_part or the rule of composition.total: the Renyi
# order is not stored but computed anew at each charge, and the proof needs the same one for all charges to a file.
_VERSION = 1
_WAIT_SECONDS = 60.0
_DURABLE = "PRAGMA synchronous = EXTRA"  # FULL does not sync the folder after a commit: power lost then would bring the old journal back
_TABLES = """
CREATE TABLE budget (version INTEGER NOT NULL, identity TEXT NOT NULL, epsilon REAL NOT NULL, delta REAL NOT NULL, created TEXT NOT NULL);
CREATE TABLE entry (
    id INTEGER PRIMARY KEY AUTOINCREMENT, time TEXT NOT NULL, dataset TEXT NOT NULL, mechanism TEXT NOT NULL,
    epsilon REAL NOT NULL, delta REAL NOT NULL, event TEXT NOT NULL
);
"""

# A process forked while a thread has the file open would inherit SQLite's note of a lock that it does not have.
_no_fork = threading.RLock()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_no_fork.acquire, after_in_parent=_no_fork.release, after_in_child=_no_fork.release)


@dataclass(frozen=True)
class LedgerFile:
    """A ledger's file and what it must say of itself at every use: its identity and its whole budget."""

    path: Path
    identity: str
    epsilon: float
    delta: float

    @contextmanager
    def connection(self) -> Iterator[sqlite3.Connection]:
        """A fresh connection: safe across threads, forks and processes, and a file that vanished or was replaced is noticed every time."""
        with _connected(self.path) as connection:
            kept = connection.execute("SELECT identity, epsilon, delta FROM budget").fetchone()
            if kept != (self.identity, self.epsilon, self.delta):
                raise LedgerError(
                    f"The ledger {self.path.name!r} was replaced by another one. Nothing was charged or released. Restore the first file."
                )
            yield connection


def make_file(path: Path, epsilon: float, delta: float) -> None:
    """A new ledger's file, whole or not at all. If another process was first, its file stays."""
    budget = Budget(1.0 if epsilon == math.inf else epsilon, delta)
    whole = (math.inf if epsilon == math.inf else budget.epsilon, budget.delta)
    if not path.parent.is_dir():
        raise LedgerError(f"The folder of the ledger {path.name!r} does not exist. Make the folder first, then the ledger.")
    made: str | None = None
    connection: sqlite3.Connection | None = None
    try:
        handle, made = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}-")
        os.close(handle)
        connection = sqlite3.connect(made, isolation_level=None)
        connection.execute(_DURABLE)
        connection.executescript(_TABLES)
        created = datetime.now(UTC).isoformat(timespec="seconds")
        connection.execute("INSERT INTO budget VALUES (?, ?, ?, ?, ?)", (_VERSION, uuid.uuid4().hex, *whole, created))
        connection.close()
        with suppress(FileExistsError):  # another process was first: its ledger is the one to use
            os.link(made, path)
    except (OSError, sqlite3.Error) as error:
        raise LedgerError(
            f"The ledger {path.name!r} cannot be made: {error}. Nothing was charged. Choose a folder that can be written and has room."
        ) from error
    finally:
        if connection is not None:
            connection.close()
        for left in (made, f"{made}-journal") if made else ():
            with suppress(FileNotFoundError):
                os.unlink(left)


def open_file(path: Path) -> LedgerFile:
    """The ledger in an existing file."""
    with _connected(path) as connection:
        rows = connection.execute("SELECT version, identity, epsilon, delta FROM budget").fetchall()
    if len(rows) != 1 or rows[0][0] != _VERSION:
        raise LedgerError(
            f"The file {path.name!r} is not a ledger of this version. Nothing was charged. Use the file that Ledger(...) made."
        )
    _, identity, epsilon, delta = rows[0]
    return LedgerFile(path, identity, float(epsilon), float(delta))


def temporary_place() -> Path:
    """Where a ledger can be made that lives as long as this process."""
    path = Path(tempfile.mkdtemp(prefix="privfit-ledger-")) / "ledger.db"
    atexit.register(_remove_temporary, path, os.getpid())
    return path


@contextmanager
def _connected(path: Path) -> Iterator[sqlite3.Connection]:
    with _no_fork:
        connection: sqlite3.Connection | None = None
        try:
            connection = _connect(path)
            yield connection
        except (OSError, sqlite3.Error) as error:
            raise LedgerError(
                f"The ledger {path.name!r} cannot be read or written: {error}. Nothing was released. "
                "Check that the file is whole, may be written and that the disk has room."
            ) from error
        finally:
            if connection is not None:
                connection.close()


def _connect(path: Path) -> sqlite3.Connection:
    if not path.exists():
        raise LedgerError(
            f"The ledger {path.name!r} is gone, and what it had spent with it. Nothing was charged or released. "
            "Restore the file; a ledger is never started again by itself."
        )
    connection = sqlite3.connect(f"{path.as_uri()}?mode=rw", uri=True, timeout=_WAIT_SECONDS, isolation_level=None)
    try:
        connection.execute(_DURABLE)
    except BaseException:
        connection.close()
        raise
    return connection


def _remove_temporary(path: Path, owner: int) -> None:
    if os.getpid() == owner and path.parent.is_dir():
        for left in path.parent.iterdir():
            left.unlink()
        path.parent.rmdir()
