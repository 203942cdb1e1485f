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

Used on Linux, where Python has these locks and the layout of their request is known; file systems that lie about them
are refused (file_systems.py). Elsewhere, and on file systems without them, SQLite's own locks are all there is;
docs/sharp-edges.md says what must not be done then.
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
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, closing, contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path

from privfit.privacy.errors import LedgerError
from privfit.privacy.ledger.chain import NEWEST, VERSION, State, appended
from privfit.privacy.ledger.entries import COLUMNS, STATED, Damaged, Row, StateRow, Value, read_event
from privfit.privacy.ledger.file_systems import check_locks, sound
from privfit.privacy.ledger.making import DURABLE, TABLES, make_file
from privfit.privacy.ledger.place import Place, Records, Snapshot, replaced

if sys.platform == "linux":
    import fcntl

# Seconds that a use waits for others: a charge takes milliseconds, so that a thousand may stand in line.
_WAIT_SECONDS = 60.0
_MARK = "user.privfit.ledger"  # the extended attribute of the file that has its newest head
_BYTE = (1 << 30) + 1024  # SQLite locks the 512 bytes from 2^30 on; below 2^31, which every file system can lock
# Seconds between two tries: a charge takes a few milliseconds, and who waits long should take little of the processor.
_FIRST_PAUSE, _LONGEST_PAUSE = 0.001, 0.02
_NOT_HERE = (errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP)  # an old kernel, or a file system without them
_READ_ONLY = (errno.EACCES, errno.EPERM, errno.EROFS)
_ABSENT = (errno.ENOENT, errno.ENOTDIR, errno.EBADF, errno.ELOOP)  # as `Path.exists` had it before Python 3.14
_FIELDS = ", ".join(COLUMNS)
_OLD = ", ".join(COLUMNS[:7])
_WRITTEN = "SELECT coalesce((SELECT seq FROM sqlite_sequence WHERE name = 'entry'), 0)"
"""How many entries were ever written, as SQLite counts them; entries that were removed are among them."""
_INSERT = f"INSERT INTO entry ({_FIELDS}, hash) VALUES ({', '.join('?' * (len(COLUMNS) + 1))})"


def is_there(path: Path) -> bool:
    """Whether a file is there; an OSError where the system does not say, as behind a folder that may not be entered.

    `Path.exists` calls such a file absent since Python 3.14, and a ledger that cannot be read is not one that is gone.
    """
    try:
        os.stat(path)
    except OSError as error:
        if error.errno in _ABSENT:
            return False
        raise
    return True


def resolved_place(path: str | os.PathLike[str]) -> Path:
    """The file that a path leads to, symbolic links followed once: a link that is turned elsewhere later does not move
    a ledger.
    """
    try:
        place = Path(path).expanduser().resolve()
        is_there(place)
    except (OSError, ValueError, TypeError, RuntimeError) as error:
        raise LedgerError(
            f"A ledger was given a path that no file can have ({type(error).__name__}). Give the name of a file in a "
            "folder that exists."
        ) from None
    return place


@dataclass(frozen=True)
class FilePlace(Place):
    """An SQLite file."""

    path: Path
    kind = "file"

    def __post_init__(self) -> None:
        object.__setattr__(self, "name", self.path.name)

    def __str__(self) -> str:
        return str(self.path)

    def exists(self) -> bool:
        return is_there(self.path)

    def make(self, epsilon: float, delta: float, records: Records | None = None) -> None:
        make_file(self.path, epsilon, delta)

    @contextmanager
    def transaction(self, write: bool) -> Iterator[FileRecords]:
        """The connection is alone with the file from before it is opened until after it is closed."""
        try:
            if not is_there(self.path):
                raise LedgerError(
                    f"The ledger {self.name!r} is gone, and what it had spent with it. Nothing was charged or "
                    "released. Restore the file; a ledger is never started again by itself."
                )
            with alone(self.path, _WAIT_SECONDS), self._opened() as connection:
                connection.execute("BEGIN IMMEDIATE" if write else "BEGIN")
                try:
                    _refuse_second_names(self.path)  # under the lock: a name made since it was opened is seen too
                    if not holds(self.path):
                        raise replaced(self)
                    yield FileRecords(connection, self.path)
                finally:
                    if connection.in_transaction:
                        connection.execute("ROLLBACK")
        except (OSError, sqlite3.Error, UnicodeError, OverflowError) as error:  # SQLite's may quote damaged names
            raise LedgerError(
                f"The ledger {self.name!r} cannot be read or written: {error}. Nothing was released. Check that the "
                "file is whole, may be written and that the disk has room."
            ) from error

    def _opened(self) -> AbstractContextManager[sqlite3.Connection]:
        _refuse_second_names(self.path)  # before SQLite looks for a journal
        return closing(_connect(self.path))

    def marks(self, identity: str) -> list[tuple[int, str]]:
        """The head that was noted on the file itself, if there is one, of the ledger with this identity."""
        try:
            owner, entry, head = os.getxattr(self.path, _MARK).decode("ascii").split(" ")
            return [(int(entry), head)] if owner == identity else []
        except (OSError, ValueError, AttributeError):  # no such mark, or no such thing as marks
            return []

    def mark(self, identity: str, state: State) -> None:
        """Note the head on the file, beside its content: it survives when the content is rolled back."""
        if hasattr(os, "setxattr"):
            with suppress(OSError):
                os.setxattr(self.path, _MARK, f"{identity} {state.entries} {state.head}".encode("ascii"))


def _connect(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(f"{path.as_uri()}?mode=rw", uri=True, timeout=_WAIT_SECONDS, isolation_level=None)
    try:
        connection.execute(DURABLE)
    except BaseException:
        connection.close()
        raise
    return connection


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
            if os.path.samestat(os.lstat(left), facts) and not is_there(Path(f"{left}-journal")):
                left.unlink()


# -- rows ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class FileRecords(Records):
    """The rows of a file that is open, inside a transaction."""

    connection: sqlite3.Connection
    path: Path

    @property
    def name(self) -> str:
        """What sentences call the file."""
        return self.path.name

    def budget(self) -> Sequence[Row]:
        """The rows of the budget. Refuses a file that some other program has put into WAL mode, which the file itself
        keeps: charges would sit in a second file, which a copy or a backup of the ledger leaves behind; and one with
        triggers or views. In a transaction nobody can change it any more.
        """
        rows = self.connection.execute("SELECT * FROM budget LIMIT 2").fetchall()
        (mode,) = self.connection.execute("PRAGMA journal_mode").fetchone()
        if mode != "delete":
            raise LedgerError(
                f"The ledger {self.name!r} has the journal mode {mode!r}, which another program has set, and it needs "
                "'delete': otherwise charges are kept in another file. Nothing was charged or released. Set it back: "
                f'sqlite3 {self.name} "PRAGMA journal_mode=delete".'
            )
        programs = "SELECT 1 FROM sqlite_master WHERE type NOT IN ('table', 'index') LIMIT 1"
        if self.connection.execute(programs).fetchone():  # a trigger could take away the entry that is written
            raise LedgerError(
                f"The ledger {self.name!r} has triggers or views, which another program has put there and which could "
                "change entries. Nothing was charged or released. Restore the file."
            )
        return rows

    def snapshot(self) -> Snapshot:
        budget, read = self.budget(), self.connection.execute
        if [row[0] for row in budget] != [VERSION]:
            return Snapshot(budget)
        state = read("SELECT entries, head, totals, seal FROM state LIMIT 2").fetchall()
        if [row[0] for row in state] != list(read(_WRITTEN).fetchone()):
            raise Damaged
        newest = read(f"SELECT {_FIELDS}, hash FROM entry ORDER BY id DESC LIMIT ?", (NEWEST + 1,)).fetchall()
        return Snapshot(budget, state, [(row[:-1], row[-1]) for row in newest[::-1]])

    def after(self, entry: int, most: int, version: int) -> list[tuple[Row, str]]:
        fields = _OLD if version == 1 else f"{_FIELDS}, hash"
        query = f"SELECT {fields} FROM entry WHERE id > ? ORDER BY id LIMIT ?"
        rows = self.connection.execute(query, (entry, most)).fetchall()
        if version > 1:
            return [(row[:-1], row[-1]) for row in rows]
        (written,) = self.connection.execute(_WRITTEN).fetchone()
        if len(rows) < most and (rows[-1][0] if rows else entry) != written:  # the end was reached too early
            raise Damaged
        return [((*row, *[""] * (len(COLUMNS) - 7)), "") for row in rows]

    def head(self, entry: int) -> str | None:
        found = self.connection.execute("SELECT hash FROM entry WHERE id = ?", (entry,)).fetchone()
        return found[0] if found else None

    def ask(self, query: str, *values: Value) -> list[Row]:
        return self.connection.execute(query.replace("{schema}.", "").replace("%s", "?"), values).fetchall()

    def has_splits(self) -> bool:
        return self.ask("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'split'") != []

    def commit(self, added: Iterable[tuple[Row, StateRow]]) -> None:
        for entry, after in added:
            self.connection.execute(_INSERT, (*entry, after[1]))
        self.connection.execute("UPDATE state SET entries = ?, head = ?, totals = ?, seal = ?", after)
        self.connection.execute("COMMIT")
        self._check_written(entry, after)

    def _check_written(self, entry: Row, after: StateRow) -> None:
        """Read the last entry back from the file, before anything is drawn: a file with damage that no check of its
        entries sees may have written the charge into it. A second name made since then is left to the next charge: this
        one is in the file, and its journal is gone.
        """
        with closing(_connect(self.path)) as fresh:
            try:
                seen = FileRecords(fresh, self.path).snapshot()
            except (Damaged, LedgerError, sqlite3.Error, UnicodeError, OverflowError) as error:
                raise self._lost() from error
        written = Snapshot(self.budget(), [after], [(entry, after[1])])
        if Snapshot(list(seen.budget), list(seen.state), list(seen.newest[-1:])) != written:
            raise self._lost()

    def _lost(self) -> LedgerError:
        return LedgerError(
            f"The ledger {self.name!r} is damaged: a charge was written and cannot be read back. Nothing was released. "
            "Restore the file from a backup."
        )

    def upgraded(self, old: State) -> State:
        """Turn a file of version 1, which had neither a chain nor a row for the state, into one of this version, inside
        the transaction of its first charge: every entry is kept, and linked from now on. `old` is what was read from
        all of them, in the same transaction.
        """
        connection, budget = self.connection, replace(old.budget, version=VERSION, carried=old.entries)
        state = State(budget, 0, budget.genesis)
        connection.execute("ALTER TABLE budget ADD COLUMN carried INTEGER NOT NULL DEFAULT 0")
        connection.execute("UPDATE budget SET version = ?, carried = ?", (VERSION, budget.carried))
        connection.execute("ALTER TABLE entry RENAME TO entry_of_version_1")
        for statement in TABLES.split(";")[1:3]:
            connection.execute(statement)
        for row in connection.execute(f"SELECT {_OLD} FROM entry_of_version_1 ORDER BY id"):
            full = (*row, *[""] * (len(COLUMNS) - 7))
            entry, state = appended(state, full[1:STATED], read_event(full))
            connection.execute(_INSERT, (*entry, state.head))
        connection.execute("DROP TABLE entry_of_version_1")
        connection.execute("INSERT INTO state VALUES (?, ?, ?, ?)", state.to_row())
        return state


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
                if kind == fcntl.F_WRLCK and os.fstat(descriptor).st_dev not in sound:
                    check_locks(path, descriptor, lambda second: _request(second, fcntl.F_WRLCK))
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
