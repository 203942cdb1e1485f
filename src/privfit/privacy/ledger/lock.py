"""A lock on a ledger's file that other code of the same process cannot drop by accident.

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
import os
import struct
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from privfit.privacy.errors import LedgerError

if sys.platform == "linux":
    import fcntl

_BYTE = (1 << 30) + 1024  # SQLite locks the 512 bytes from 2^30 on; below 2^31, which every file system can lock
# Seconds between two tries: a charge takes a few milliseconds, and who waits long should take little of the processor.
_FIRST_PAUSE, _LONGEST_PAUSE = 0.001, 0.02
_NOT_HERE = (errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP)  # an old kernel, or a file system without them
_READ_ONLY = (errno.EACCES, errno.EPERM, errno.EROFS)

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
        if sys.platform != "linux" or holds(path):
            yield
            return
        descriptor = _opened(path)
        try:
            _wait_for(descriptor, path, seconds)
        except BaseException:
            os.close(descriptor)
            raise
        key = _key(os.fstat(descriptor))
        _held[key] = descriptor
        try:
            yield
        finally:
            if _held.pop(key, None) is not None:  # None: in a child that was forked meanwhile
                _free(descriptor)


def holds(path: Path) -> bool:
    """Whether the lock is of the file that has this path now, and not of one that had it before."""
    return sys.platform != "linux" or _key(os.stat(path)) in _held


def _key(facts: os.stat_result) -> tuple[int, int]:
    return facts.st_dev, facts.st_ino


def _opened(path: Path) -> int:
    try:
        return os.open(path, os.O_RDWR | os.O_NONBLOCK)
    except OSError as error:
        if error.errno not in _READ_ONLY:
            raise
        return os.open(path, os.O_RDONLY | os.O_NONBLOCK)  # may be read and not be charged


def _wait_for(descriptor: int, path: Path, seconds: float) -> None:
    """Try, and try again: a call that blocks could not be told to give up."""
    end, pause = time.monotonic() + seconds, _FIRST_PAUSE
    while not _locked(descriptor):
        if time.monotonic() > end:
            raise LedgerError(
                f"The ledger {path.name!r} is locked: other processes used it for {seconds:g} seconds. Nothing was "
                "charged or released. "
                "Try again later, or look for a process that hangs."
            )
        time.sleep(pause)
        pause = min(2 * pause, _LONGEST_PAUSE)


def _locked(descriptor: int) -> bool:
    """Take the lock if it is free. Who may only read the file shares it, which keeps others from writing."""
    writable = fcntl.fcntl(descriptor, fcntl.F_GETFL) & os.O_ACCMODE == os.O_RDWR
    try:
        _request(descriptor, fcntl.F_WRLCK if writable else fcntl.F_RDLCK)
    except OSError as error:
        if error.errno in (errno.EAGAIN, errno.EACCES):
            return False
        if error.errno not in _NOT_HERE:
            raise
    return True


def _free(descriptor: int) -> None:
    """Unlock before closing: a copy in a process that was started meanwhile must not keep the lock."""
    try:
        _request(descriptor, fcntl.F_UNLCK)
    except OSError as error:
        if error.errno not in _NOT_HERE:
            raise
    finally:
        os.close(descriptor)


def _request(descriptor: int, kind: int) -> None:
    """struct flock: kind, whence, start, length, and a process number that must be 0."""
    fcntl.fcntl(descriptor, fcntl.F_OFD_SETLK, struct.pack("hhqqi4x", kind, os.SEEK_SET, _BYTE, 1, 0))
