"""The file of a ledger in use: locked, opened anew every time, and refused when it is gone, replaced, rolled back or
not a ledger.

SQLite locks with POSIX record locks, and a process loses all of those that it has on a file as soon as *any* of its
code closes *any* descriptor of that file: a backup, a checksum, a download, a second copy of SQLite. Two processes
could then both read what is left and both spend it. So every use of a ledger also holds an open file description lock
(fcntl(2), F_OFD_SETLK), which belongs to a descriptor of our own and goes with that one alone. It lies on a byte that
SQLite never locks, so both kinds do not meet.

- Threads: one thread of a process uses ledgers at a time. A use inside another one, by the same thread, shares its
  descriptor: to close a second one would drop the locks of SQLite that the outer use needs.
- Forks: os.fork waits until no thread uses a ledger. A child that is forked inside a use closes its copy of the
  descriptor and has no lock.
- Pickles, copies and views name a path; the lock is found by the file, so that all of them wait for each other.
- Readers take it too: while the locks of a writer are lost, its journal looks like one that a killed process left, and
  a reader would undo it.

Used on Linux, where Python has these locks and the layout of their request is known. Elsewhere, and on file systems
without them, SQLite's own locks are all there is; docs/sharp-edges.md says what must not be done then.
"""

from __future__ import annotations

import errno
import glob
import os
import sqlite3
import stat
import struct
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from privfit.privacy.errors import LedgerError
from privfit.privacy.event import Event
from privfit.privacy.ledger.chain import VERSION, BudgetRow, Damaged, Receipt, Row, State, append, head_at, read_state
from privfit.privacy.ledger.upgrade import upgrade

if sys.platform == "linux":
    import fcntl

# Seconds that a use waits for others: a charge takes milliseconds, so that a thousand may stand in line.
_WAIT_SECONDS = 60.0
# FULL does not sync the folder after a commit: power lost then would bring the old journal back
DURABLE = "PRAGMA synchronous = EXTRA"
_MARK = "user.privfit.ledger"  # the extended attribute of the file that has its newest head
_BYTE = (1 << 30) + 1024  # SQLite locks the 512 bytes from 2^30 on; below 2^31, which every file system can lock
# Seconds between two tries: a charge takes a few milliseconds, and who waits long should take little of the processor.
_FIRST_PAUSE, _LONGEST_PAUSE = 0.001, 0.02
_NOT_HERE = (errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP)  # an old kernel, or a file system without them
_READ_ONLY = (errno.EACCES, errno.EPERM, errno.EROFS)


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
    def opened(self, *, write: bool = False) -> Iterator[tuple[sqlite3.Connection, State]]:
        """A fresh connection in a transaction, and the state of the ledger: safe across threads, forks and processes,
        and a file that vanished, was replaced or rolled back is noticed every time.
        """
        with connected(self.path) as connection:
            connection.execute("BEGIN IMMEDIATE" if write else "BEGIN")
            try:
                yield connection, self._checked_state(connection)
            except Damaged:
                raise self.damaged() from None
            finally:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")

    def _checked_state(self, connection: sqlite3.Connection) -> State:
        """The state of this very ledger, which must go on from every head that was seen before."""
        _refuse_second_names(self.path)  # under the lock: a name that was made since the file was opened is seen too
        budget = read_budget(self.path, connection)
        known = (self.identity, self.epsilon, self.delta)
        if budget is None or (budget.identity, budget.epsilon, budget.delta) != known or not holds(self.path):
            raise LedgerError(
                f"The ledger {self.path.name!r} was replaced by another one. Nothing was charged or released. "
                "Restore the first file."
            )
        heads = [(self.seen.entry, self.seen.head)] if self.seen.head else []
        heads += _marked(self.path, self.identity)
        state = read_state(connection, budget)
        for entry, head in heads:
            if head_at(connection, budget, entry) != head:
                raise LedgerError(
                    f"The ledger {self.path.name!r} was rolled back or rewritten: it no longer has entry {entry} as it "
                    "was seen before. Nothing was charged or released. Restore the newest copy of the file."
                )
        self.seen.entry, self.seen.head = state.entries, state.head
        return state

    def append(self, connection: sqlite3.Connection, state: State, row: Row, event: Event) -> Receipt:
        """Write an entry durably. The first one to a file of version 1 upgrades it in the same transaction."""
        if state.budget.version < VERSION:
            state = upgrade(connection, state)
        state = append(connection, state, row, event)
        connection.execute("UPDATE state SET entries = ?, head = ?, totals = ?, seal = ?", state.to_row())
        connection.execute("COMMIT")
        self.seen.entry, self.seen.head = state.entries, state.head
        if hasattr(os, "setxattr"):
            with suppress(
                OSError
            ):  # beside the content, where the file system can: it survives when that is rolled back
                os.setxattr(self.path, _MARK, f"{self.identity} {state.entries} {state.head}".encode("ascii"))
        return Receipt(self.identity, state.entries, state.head)

    def damaged(self, where: str = "entries are missing or were changed") -> LedgerError:
        """The refusal of a file that contradicts itself."""
        return LedgerError(
            f"The ledger {self.path.name!r} is damaged: {where}. Nothing was charged or released. Restore the file."
        )


def open_file(path: Path) -> LedgerFile:
    """The ledger in an existing file."""
    with connected(path) as connection:
        budget = read_budget(path, connection)
    if budget is None:
        raise LedgerError(
            f"The file {path.name!r} is not a ledger of this version. Nothing was charged. Use the file that "
            "Ledger(...) made."
        )
    return LedgerFile(path, budget.identity, budget.epsilon, budget.delta)


@contextmanager
def connected(path: Path) -> Iterator[sqlite3.Connection]:
    """A connection that is alone with the file from before it is opened until after it is closed."""
    try:
        if not path.exists():
            raise LedgerError(
                f"The ledger {path.name!r} is gone, and what it had spent with it. Nothing was charged or released. "
                "Restore the file; a ledger is never started again by itself."
            )
        with alone(path, _WAIT_SECONDS), closing(_connect(path)) as connection:
            yield connection
    except (OSError, sqlite3.Error, UnicodeError, OverflowError) as error:  # SQLite's message may quote damaged names
        raise LedgerError(
            f"The ledger {path.name!r} cannot be read or written: {error}. Nothing was released. "
            "Check that the file is whole, may be written and that the disk has room."
        ) from error


def _connect(path: Path) -> sqlite3.Connection:
    _refuse_second_names(path)
    connection = sqlite3.connect(f"{path.as_uri()}?mode=rw", uri=True, timeout=_WAIT_SECONDS, isolation_level=None)
    try:
        connection.execute(DURABLE)
    except BaseException:
        connection.close()
        raise
    return connection


def read_budget(path: Path, connection: sqlite3.Connection) -> BudgetRow | None:
    """The budget in a file; None if it has none that this version can read.

    Refuses a file that some other program has put into WAL mode, which the file itself keeps: charges would sit in a
    second file, which a copy or a backup of the ledger leaves behind. In a transaction nobody can change it any more.
    """
    rows = connection.execute("SELECT * FROM budget LIMIT 2").fetchall()
    (mode,) = connection.execute("PRAGMA journal_mode").fetchone()
    if mode != "delete":
        raise LedgerError(
            f"The ledger {path.name!r} has the journal mode {mode!r}, which another program has set, and it needs "
            "'delete': otherwise charges are kept in another file. Nothing was charged or released. Set it back: "
            f'sqlite3 {path.name} "PRAGMA journal_mode=delete".'
        )
    version = rows[0][0] if len(rows) == 1 else None
    kinds = (int, str, float, float, str) if version == 1 else (int, str, float, float, str, int)
    if version not in (1, VERSION) or tuple(map(type, rows[0])) != kinds:
        return None
    budget = BudgetRow(*rows[0])
    return budget if budget.epsilon > 0 and 0 <= budget.delta < 1 and budget.carried >= 0 else None


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


def _marked(path: Path, identity: str) -> list[tuple[int, str]]:
    """The head that was noted on the file, if there is one, of the ledger with this identity."""
    try:
        owner, entry, head = os.getxattr(path, _MARK).decode("ascii").split(" ")
        return [(int(entry), head)] if owner == identity else []
    except (OSError, ValueError, AttributeError):  # no such mark, or no such thing as marks
        return []


# -- the lock --------------------------------------------------------------------------------------

# One thread at a time. A process forked while a thread has a file open would inherit SQLite's note of a lock that it
# does not have.
_one_thread = threading.RLock()
_held: dict[tuple[int, int], int] = {}  # device and inode of locked files, and the descriptor that has the lock


def _forget() -> None:
    """In a child: the locks are the parent's. Closing a copy of its descriptor leaves its lock alone."""
    for descriptor in _held.values():
        os.close(descriptor)
    _held.clear()
    _one_thread.release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_one_thread.acquire, after_in_parent=_one_thread.release, after_in_child=_forget)


@contextmanager
def alone(path: Path, seconds: float) -> Iterator[None]:
    """While this is open, nobody else uses this file as a ledger. Waits for so many seconds, then refuses."""
    with _one_thread:
        if holds(path):
            yield
            return
        descriptor = _lock(path, seconds)
        facts = os.fstat(descriptor)
        key = (facts.st_dev, facts.st_ino)
        _held[key] = descriptor
        try:
            yield
        finally:
            if _held.pop(key, None) is not None:  # None: in a child that was forked meanwhile
                try:  # unlock before closing: a copy in a process that was started meanwhile must not keep the lock
                    _request(descriptor, fcntl.F_UNLCK)
                except OSError as error:
                    if error.errno not in _NOT_HERE:
                        raise
                finally:
                    os.close(descriptor)


def holds(path: Path) -> bool:
    """Whether the lock is of the file that has this path now, and not of one that had it before."""
    if sys.platform != "linux":
        return True
    facts = os.stat(path)
    return (facts.st_dev, facts.st_ino) in _held


def _lock(path: Path, seconds: float) -> int:
    """A descriptor that has the lock. Who may only read the file shares it, which keeps others from writing."""
    try:
        descriptor, kind = os.open(path, os.O_RDWR | os.O_NONBLOCK), fcntl.F_WRLCK
    except OSError as error:
        if error.errno not in _READ_ONLY:
            raise
        descriptor, kind = os.open(path, os.O_RDONLY | os.O_NONBLOCK), fcntl.F_RDLCK  # may be read, not charged
    try:
        end, pause = time.monotonic() + seconds, _FIRST_PAUSE
        while True:  # a call that blocks could not be interrupted
            try:
                _request(descriptor, kind)
                return descriptor
            except OSError as error:
                if error.errno in _NOT_HERE:
                    return descriptor
                if error.errno not in (errno.EAGAIN, errno.EACCES):
                    raise
            if time.monotonic() > end:
                raise LedgerError(
                    f"The ledger {path.name!r} is locked: other processes used it for {seconds:g} seconds. Nothing was "
                    "charged or released. Try again later, or look for a process that hangs."
                )
            time.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE)
    except BaseException:
        os.close(descriptor)
        raise


def _request(descriptor: int, kind: int) -> None:
    """struct flock: kind, whence, start, length, and a process number that must be 0."""
    fcntl.fcntl(descriptor, fcntl.F_OFD_SETLK, struct.pack("hhqqi4x", kind, os.SEEK_SET, _BYTE, 1, 0))
