"""Which file systems keep a lock from everybody else: some grant every lock, some keep locks to one machine.

Two processes that both think they are alone with a ledger would both spend what is left. Two things are looked at,
until a process has found nothing wrong with a file system: whether a second lock is refused while a first one is held,
and, because that says nothing of other machines, what is mounted where the file lies.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from privfit.privacy.errors import LedgerError

MOUNTS = Path("/proc/self/mountinfo")
ONE_MACHINE: dict[str, tuple[str, ...]] = {
    "nfs": ("nolock", "local_lock=all", "local_lock=posix"),
    "nfs4": ("nolock", "local_lock=all", "local_lock=posix"),
    "cifs": ("nobrl", "nolock"),
    "smb3": ("nobrl", "nolock"),
    "lustre": ("localflock", "noflock"),
    "gfs2": ("localflocks", "lockproto=lock_nolock"),
    "ocfs2": ("localflocks",),
}
"""Network file systems that keep locks for all machines, unless they are mounted with one of these options."""
NEVER_SHARED = frozenset(
    {"afs", "vboxsf", "prl_fs", "vmhgfs", "fuse.vmhgfs-fuse", "fuse.sshfs", "fuse.s3fs", "fuse.gcsfuse"}
    | {"fuse.goofys", "fuse.rclone", "fuse.davfs", "fuse.curlftpfs", "fuse.mount-s3", "fuse.blobfuse2", "fuse.encfs"}
)
"""File systems that are shared between machines and whose locks are not."""
ESCAPED = re.compile(rb"\\([0-3][0-7]{2})")
"""How proc(5) writes a blank, a tab, the end of a line and a backslash within a folder's name."""
sound: set[int] = set()
"""Devices of file systems whose locks this process has found to be kept."""


@dataclass(frozen=True)
class Mount:
    """Where a file system is mounted, what it is called, and its options."""

    folder: str
    kind: str
    options: frozenset[str]

    @property
    def keeps_locks(self) -> bool:
        """Whether a lock is one for all machines that mount it, as far as is known."""
        return self.kind not in NEVER_SHARED and self.options.isdisjoint(ONE_MACHINE.get(self.kind, ()))


def check_locks(path: Path, descriptor: int, lock: Callable[[int], None]) -> None:
    """Refuse a file where locks mean nothing; where they are kept, its file system is `sound` from now on. `descriptor`
    has the lock; `lock` asks for it by another descriptor, and raises OSError where that is refused, as it must be.

    Must be called before SQLite opens the file: a process that closes a descriptor loses SQLite's locks.
    """
    if fault := _fault(path, lock):
        raise LedgerError(
            f"The ledger {path.name!r} lies on a file system that {fault} could both spend what is left. "
            "Nothing was charged or released. Keep it on a local disk, or in PostgreSQL for several machines."
        )
    sound.add(os.fstat(descriptor).st_dev)


def _fault(path: Path, lock: Callable[[int], None]) -> str:
    """What is wrong with locks there; nothing, in most cases."""
    second = os.open(path, os.O_RDWR | os.O_NONBLOCK)
    try:
        lock(second)
        return "grants one lock twice, so that two processes"
    except OSError:
        found = mount_of(path)
    finally:
        os.close(second)
    if found is None or found.keeps_locks:
        return ""
    return f"keeps locks to one machine ({found.kind}, as it is mounted here), so that two machines"


def mount_of(path: Path) -> Mount | None:
    """The file system that a path lies on; None where that cannot be found out."""
    try:
        text = os.fsdecode(MOUNTS.read_bytes())
    except OSError:
        return None
    where = os.path.realpath(path)
    found = None
    for mount in filter(None, map(_mount, text.split("\n"))):  # the last one of a folder is the one that is seen
        inside = where == mount.folder or where.startswith(mount.folder.rstrip("/") + "/")
        if inside and (found is None or len(mount.folder) >= len(found.folder)):
            found = mount
    return found


def _mount(line: str) -> Mount | None:
    """One line of proc(5): ... folder options ... - kind source options."""
    before, divided, after = line.partition(" - ")
    fields, rest = before.split(" "), after.split(" ")
    if not divided or len(fields) < 6 or len(rest) < 3:
        return None
    folder = os.fsdecode(ESCAPED.sub(lambda found: bytes([int(found[1], 8)]), os.fsencode(fields[4])))
    return Mount(folder, rest[0], frozenset([*fields[5].split(","), *rest[2].split(",")]))
