"""The file of a ledger: made whole or not at all, opened anew for every use, and refused when it is gone, replaced or
not a ledger.
"""

from __future__ import annotations

import atexit
import glob
import math
import os
import sqlite3
import stat
import tempfile
import uuid
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import astuple, dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from privfit.privacy.errors import LedgerError
from privfit.privacy.event import Event
from privfit.privacy.ledger.chain import Receipt, Row
from privfit.privacy.ledger.lock import alone, holds
from privfit.privacy.ledger.state import (
    TABLES,
    VERSION,
    Damaged,
    State,
    Whole,
    append,
    head_at,
    read_state,
    read_whole,
    upgrade,
)
from privfit.privacy.parameters import Budget

_WAIT_SECONDS = 60.0
# FULL does not sync the folder after a commit: power lost then would bring the old journal back
_DURABLE = "PRAGMA synchronous = EXTRA"
_MARK = "user.privfit.ledger"


@dataclass
class Seen:
    """The newest head that this process has seen of a ledger; empty if none."""

    entry: int = 0
    head: str = ""


@dataclass(frozen=True)
class LedgerFile:
    """A ledger's file and what it must say of itself at every use: its identity, its whole budget, and the heads that
    were seen before.
    """

    path: Path
    identity: str
    epsilon: float
    delta: float
    seen: Seen = field(default_factory=Seen, compare=False)

    @contextmanager
    def connection(self, *, write: bool = False) -> Iterator[sqlite3.Connection]:
        """A fresh connection in a transaction: safe across threads, forks and processes, and a file that vanished or
        was replaced is noticed every time.
        """
        with _connected(self.path) as connection:
            connection.execute("BEGIN IMMEDIATE" if write else "BEGIN")
            _refuse_second_names(
                self.path
            )  # under the lock: a name that was made since the file was opened is seen too
            whole = read_whole(connection)
            known = (self.identity, self.epsilon, self.delta)
            if whole is None or (whole.identity, whole.epsilon, whole.delta) != known or not holds(self.path):
                raise LedgerError(
                    f"The ledger {self.path.name!r} was replaced by another one. Nothing was charged or released. "
                    "Restore the first file."
                )
            _refuse_journal_in_parts(self.path, connection)
            try:
                yield connection
            except Damaged:
                raise self.damaged() from None
            finally:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")

    def state(self, connection: sqlite3.Connection) -> State:
        """The state of the ledger, which must go on from every head that was seen before."""
        state = read_state(connection)
        for entry, head in self._heads():
            if head_at(connection, state.whole, entry) != head:
                raise LedgerError(
                    f"The ledger {self.path.name!r} was rolled back or rewritten: it no longer has entry {entry} as it "
                    "was seen before. "
                    "Nothing was charged or released. Restore the newest copy of the file."
                )
        self._remember(state)
        return state

    def append(self, connection: sqlite3.Connection, state: State, row: Row, event: Event) -> Receipt:
        """Write an entry durably. The first one to a file of version 1 upgrades it in the same transaction."""
        if state.whole.version < VERSION:
            upgrade(connection)
            state = read_state(connection)
        state = append(connection, state, row, event)
        connection.execute("COMMIT")
        self._remember(state)
        _mark(self.path, f"{self.identity} {state.entries} {state.head}")
        return Receipt(self.identity, state.entries, state.head)

    def _heads(self) -> Iterator[tuple[int, str]]:
        if self.seen.head:
            yield self.seen.entry, self.seen.head
        mark = _mark_of(self.path)
        if mark is not None and mark[0] == self.identity:
            yield mark[1], mark[2]

    def _remember(self, state: State) -> None:
        self.seen.entry, self.seen.head = state.entries, state.head

    def damaged(self, where: str = "entries are missing or were changed") -> LedgerError:
        """The refusal of a file that contradicts itself."""
        return LedgerError(
            f"The ledger {self.path.name!r} is damaged: {where}. Nothing was charged or released. Restore the file."
        )


def make_file(path: Path, epsilon: float, delta: float) -> None:
    """A new ledger's file, whole or not at all. If another process was first, its file stays."""
    budget = Budget(1.0 if epsilon == math.inf else epsilon, delta)
    whole = (math.inf if epsilon == math.inf else budget.epsilon, budget.delta)
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
        connection.execute(_DURABLE)
        connection.executescript(TABLES)
        row = Whole(VERSION, uuid.uuid4().hex, *whole, datetime.now(UTC).isoformat(timespec="seconds"))
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


def open_file(path: Path) -> LedgerFile:
    """The ledger in an existing file."""
    with _connected(path) as connection:
        whole = read_whole(connection)
        _refuse_journal_in_parts(path, connection)
    if whole is None:
        raise LedgerError(
            f"The file {path.name!r} is not a ledger of this version. Nothing was charged. Use the file that "
            "Ledger(...) made."
        )
    return LedgerFile(path, whole.identity, whole.epsilon, whole.delta)


def resolved_place(path: str | os.PathLike[str]) -> Path:
    """The file that a path leads to, symbolic links followed once: a link that is turned elsewhere later does not move
    a ledger.
    """
    try:
        place = Path(path).expanduser().resolve()
        place.exists()
    except (OSError, ValueError, TypeError, RuntimeError) as error:
        raise LedgerError(
            f"A ledger was given a path that no file can have ({type(error).__name__}). Give the name of a file in a "
            "folder that exists."
        ) from None
    return place


def temporary_place() -> Path:
    """Where a ledger can be made that lives as long as this process."""
    path = Path(tempfile.mkdtemp(prefix="privfit-ledger-")) / "ledger.db"
    atexit.register(_remove_temporary, path, os.getpid())
    return path


@contextmanager
def _connected(path: Path) -> Iterator[sqlite3.Connection]:
    """A connection that is alone with the file from before it is opened until after it is closed."""
    try:
        _refuse_missing(path)
        with alone(path, _WAIT_SECONDS), closing(_connect(path)) as connection:
            yield connection
    except (
        OSError,
        sqlite3.Error,
        UnicodeError,
        OverflowError,
    ) as error:  # a scribble in a name makes SQLite's own message no text
        raise LedgerError(
            f"The ledger {path.name!r} cannot be read or written: {error}. Nothing was released. "
            "Check that the file is whole, may be written and that the disk has room."
        ) from error


def _refuse_missing(path: Path) -> None:
    if not path.exists():
        raise LedgerError(
            f"The ledger {path.name!r} is gone, and what it had spent with it. Nothing was charged or released. "
            "Restore the file; a ledger is never started again by itself."
        )


def _connect(path: Path) -> sqlite3.Connection:
    _refuse_second_names(path)
    connection = sqlite3.connect(f"{path.as_uri()}?mode=rw", uri=True, timeout=_WAIT_SECONDS, isolation_level=None)
    try:
        connection.execute(_DURABLE)
    except BaseException:
        connection.close()
        raise
    return connection


def _refuse_journal_in_parts(path: Path, connection: sqlite3.Connection) -> None:
    """Refuse a file that some other program has put into WAL mode, which the file itself keeps.

    Charges would sit in a second file, which a copy or a backup of the ledger leaves behind. Asked in the transaction:
    nobody can change it then.
    """
    (mode,) = connection.execute("PRAGMA journal_mode").fetchone()
    if mode != "delete":
        raise LedgerError(
            f"The ledger {path.name!r} has the journal mode {mode!r}, which another program has set, and it needs "
            "'delete': "
            "otherwise charges are kept in another file. Nothing was charged or released. Set it back: "
            f'sqlite3 {path.name} "PRAGMA journal_mode=delete".'
        )


def _refuse_second_names(path: Path) -> None:
    """Refuse a file that has another name: SQLite finds the journal of an unfinished charge by the file's name.

    A charge under another name would not see that journal, and be undone by it when the first name is used again.
    """
    facts = os.stat(path)
    if not stat.S_ISREG(facts.st_mode) or facts.st_nlink == 1:
        return
    _drop_names_of_making(path, facts)
    names = os.stat(path).st_nlink
    if names > 1:
        raise LedgerError(
            f"The ledger {path.name!r} has {names} names (hard links), and a charge under one is undone by a crash "
            "under another. "
            f"Nothing was charged or released. Keep one name: `find / -samefile {path.name}` lists all, `rm` removes "
            "one."
        )


def _drop_names_of_making(path: Path, facts: os.stat_result) -> None:
    """A process that was killed in `make_file` leaves the name under which the file was made; nobody ever charged under
    it.
    """
    for left in path.parent.glob(f".{glob.escape(path.name)}-*"):
        with suppress(OSError):
            if os.path.samestat(os.lstat(left), facts) and not Path(f"{left}-journal").exists():
                left.unlink()


def _mark(path: Path, text: str) -> None:
    """Note the head on the file itself, beside its content, where the file system can: it survives when the content is
    rolled back.
    """
    if hasattr(os, "setxattr"):
        with suppress(OSError):
            os.setxattr(path, _MARK, text.encode("ascii"))


def _mark_of(path: Path) -> tuple[str, int, str] | None:
    try:
        identity, entry, head = os.getxattr(path, _MARK).decode("ascii").split(" ")
        return identity, int(entry), head
    except (OSError, ValueError, AttributeError):  # no such mark, or no such thing as marks
        return None


def _remove_temporary(path: Path, owner: int) -> None:
    if os.getpid() == owner and path.parent.is_dir():
        for left in path.parent.iterdir():
            left.unlink()
        path.parent.rmdir()
