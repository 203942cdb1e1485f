"""A ledger's own lock: code in the same process that opens and closes the file drops SQLite's locks, but not this."""

from __future__ import annotations

import errno
import os
import pickle
import signal
import sqlite3
import subprocess
import sys
import threading

import pytest

import privfit as pf
from privfit.privacy.ledger import file as ledger_file
from privfit.privacy.ledger import file as ledger_lock
from privfit.privacy.ledger import file_systems
from tests.support.processes import finish, go, in_child, start

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="elsewhere there are SQLite's locks alone")


@pytest.fixture
def path(tmp_path):
    return tmp_path / "ledger.db"


# In the middle of a charge, other code of the process looks at the file; then the charge waits until it is told to go
# on.
INTERRUPTED = """
refuse_beyond = Ledger._refuse_beyond

def paused(self, state, event):
    refuse_beyond(self, state, event)
    open(sys.argv[1], "rb").close()
    os.write(1, b"paused\\n")
    sys.stdin.readline()

Ledger._refuse_beyond = paused
os.write(1, b"released %d\\n" % ledger.charge(0.9).entry)
"""
IMPATIENT = """
from privfit.privacy.ledger import file as ledger_file
ledger_file._WAIT_SECONDS = 0.2
try:
    {use}
except BudgetExceeded:
    os.write(1, b"refused\\n")
except LedgerError as error:
    os.write(1, b"waited\\n" if "is locked" in str(error) else b"failed\\n")
else:
    os.write(1, b"done\\n")
"""


def tell(process: subprocess.Popen) -> None:
    process.stdin.write(b"go on\n")
    process.stdin.flush()


def impatient(path, use: str = "ledger.spent") -> subprocess.Popen:
    """A process of its own that is about to use the ledger, and waits for a fifth of a second only."""
    process = start(IMPATIENT.format(use=use), path)
    assert process.stdout.readline() == b"ready\n"
    return process


def outcome(process: subprocess.Popen) -> bytes:
    """How the use of an impatient process ends."""
    tell(process)
    return b"".join(finish(process))


@pytest.mark.parametrize(
    "use", ["ledger.charge(0.9)", "ledger.spent", "ledger.entries()", "Ledger(sys.argv[1]).verify()"]
)
def test_nobody_uses_a_ledger_while_another_process_charges_it_though_that_one_has_lost_sqlite_s_locks(path, use):
    """A budget of 1.0 took 0.9 twice."""
    ledger = pf.Ledger(path, epsilon=1.0)
    second, first = impatient(path, use), start(INTERRUPTED, path)
    go(first)
    assert first.stdout.readline() == b"paused\n"
    assert outcome(second) == b"waited"
    tell(first)
    assert finish(first) == [b"released 1"]
    assert ledger.spent == 0.9
    with pytest.raises(pf.BudgetExceeded):
        ledger.charge(0.9)
    assert ledger.verify().entries == 1


def test_a_process_that_is_killed_while_it_has_the_lock_holds_nobody_up(path):
    ledger = pf.Ledger(path, epsilon=1.0)
    process = start(INTERRUPTED, path)
    go(process)
    assert process.stdout.readline() == b"paused\n"
    os.kill(process.pid, signal.SIGKILL)
    assert finish(process) == []
    assert ledger.charge(0.9).entry == 1


READ_ALL_THE_TIME = """
import threading
threading.Thread(target=lambda: [open(sys.argv[1], "rb").read(10) for _ in iter(int, 1)], daemon=True).start()
try:
    ledger.charge(0.9)
except BudgetExceeded:
    os.write(1, b"refused\\n")
else:
    os.write(1, b"released\\n")
sys.stdout.flush()
os._exit(0)
"""


@pytest.mark.parametrize("runs", [3, pytest.param(60, marks=pytest.mark.slow)])
def test_a_file_that_is_read_all_the_time_by_the_processes_that_charge_it_is_not_overdrawn(tmp_path, runs):
    for run in range(runs):
        place = tmp_path / f"{run}.db"
        ledger = pf.Ledger(place, epsilon=1.0)
        processes = [start(READ_ALL_THE_TIME, place) for _ in range(2)]
        go(*processes)
        assert sorted(line for process in processes for line in finish(process)) == [b"refused", b"released"]
        assert ledger.spent == 0.9


def test_others_can_read_the_file_while_it_is_locked(path):
    ledger = pf.Ledger(path, epsilon=1.0)
    ledger.charge(0.5)
    command = [
        sys.executable,
        "-c",
        "import sqlite3, sys; print(sqlite3.connect(sys.argv[1]).execute('SELECT count(*) FROM entry').fetchone())",
    ]
    with ledger._placed.opened():
        assert path.read_bytes()[:6] == b"SQLite"
        assert subprocess.run([*command, path], capture_output=True, check=True).stdout == b"(1,)\n"


# -- one process -----------------------------------------------------------------------------------


def descriptors() -> set[str]:
    return {name for name in os.listdir("/proc/self/fd") if os.path.exists(f"/proc/self/fd/{name}")}


def test_no_use_leaves_a_descriptor_or_a_lock_behind(path, monkeypatch):
    ledger = pf.Ledger(path, epsilon=1.0)
    before = descriptors()
    ledger.charge(0.5)
    with pytest.raises(pf.BudgetExceeded):
        ledger.charge(0.9)
    ledger.verify()
    monkeypatch.setattr(ledger_file, "_connect", lambda place: (_ for _ in ()).throw(KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        ledger.charge(0.1)
    assert (descriptors(), ledger_lock._held) == (before, {})


def test_a_use_inside_another_one_keeps_the_lock_of_the_outer_one(path):
    ledger = pf.Ledger(path, epsilon=1.0)
    early, late = impatient(path), impatient(path)
    with ledger_lock.alone(path, 1.0):
        assert ledger.spent == 0.0
        assert pickle.loads(pickle.dumps(ledger)).spent == 0.0
        assert outcome(early) == b"waited"
    assert outcome(late) == b"done"


def test_threads_wait_for_each_other(path):
    ledger = pf.Ledger(path, epsilon=1.0)
    done = threading.Event()
    thread = threading.Thread(target=lambda: (ledger.charge(0.5), done.set()))
    with ledger_lock.alone(path, 1.0):
        thread.start()
        assert not done.wait(0.2)
    assert done.wait(30)
    thread.join()
    assert ledger.spent == 0.5


def test_a_child_that_is_forked_inside_a_use_has_no_lock_and_takes_none_away(path, monkeypatch):
    ledger = pf.Ledger(path, epsilon=1.0)
    monkeypatch.setattr(ledger_file, "_WAIT_SECONDS", 0.1)

    def use():
        assert ledger_lock._held == {}
        with pytest.raises(pf.LedgerError, match="is locked"):
            ledger.charge(0.5)
        return "waited"

    other = impatient(path)
    with ledger_lock.alone(path, 1.0):
        assert in_child(use) == "waited"
        assert outcome(other) == b"waited"
    assert in_child(lambda: ledger.charge(0.5).entry) == 1


def test_a_file_that_is_put_in_the_place_of_a_locked_one_is_refused(path, monkeypatch):
    """The same content in another file: the lock would be of the one, and the charge go to the other."""
    ledger = pf.Ledger(path, epsilon=1.0)
    connect = ledger_file._connect

    def swapped(place):
        copy = path.with_name("copy.db")
        copy.write_bytes(path.read_bytes())
        os.replace(copy, path)
        return connect(place)

    monkeypatch.setattr(ledger_file, "_connect", swapped)
    with pytest.raises(pf.LedgerError, match="replaced"):
        ledger.charge(0.5)
    monkeypatch.undo()
    assert ledger.spent == 0.0


@pytest.mark.parametrize("number", [errno.EINVAL, errno.EOPNOTSUPP, errno.ENOSYS])
def test_where_the_file_system_has_no_such_locks_sqlite_s_are_used(path, monkeypatch, number):
    def refused(*request):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(ledger_lock, "_request", refused)
    ledger = pf.Ledger(path, epsilon=1.0)
    ledger.charge(0.5)
    assert ledger.spent == 0.5


def test_another_failure_to_lock_is_a_refusal(path, monkeypatch):
    ledger = pf.Ledger(path, epsilon=1.0)

    def refused(*request):
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(ledger_lock, "_request", refused)
    with pytest.raises(pf.LedgerError, match="cannot be read or written"):
        ledger.charge(0.5)
    monkeypatch.undo()
    assert ledger.entries() == []


# -- another journal -------------------------------------------------------------------------------


def set_mode(path, mode):
    connection = sqlite3.connect(path)
    connection.execute(f"PRAGMA journal_mode={mode}")
    connection.close()


def test_a_ledger_that_a_database_browser_has_put_into_wal_mode_is_refused_until_it_is_set_back(path):
    """Charges would sit in a second file, which a copy of the ledger leaves behind."""
    ledger = pf.Ledger(path, epsilon=1.0)
    ledger.charge(0.5)
    set_mode(path, "wal")
    uses = (
        *(
            lambda: ledger.charge(0.1),
            lambda: ledger.spent,
            lambda: ledger.entries(),
            lambda: ledger.verify(),
            lambda: pf.Ledger(path),
        ),
        lambda: pickle.loads(pickle.dumps(ledger)).charge(0.1),
    )
    for use in uses:
        with pytest.raises(
            pf.LedgerError, match=r"journal mode 'wal'.*Nothing was charged.*PRAGMA journal_mode=delete"
        ):
            use()
    set_mode(path, "delete")
    assert ledger.charge(0.5).entry == 2
    assert [file.name for file in path.parent.iterdir()] == ["ledger.db"]


# -- file systems that lie about locks -------------------------------------------------------------

LOCAL = "22 1 8:1 / / rw,relatime - ext4 /dev/sda1 rw\n"


@pytest.fixture
def mounts(tmp_path, monkeypatch):
    """Tell the library what is mounted where its ledger lies."""

    def tell(kind: str, options: str = "rw", folder: str = str(tmp_path)) -> None:
        lines = LOCAL + f"23 22 0:40 / {folder} rw,relatime shared:7 - {kind} server:/x {options}\n"
        (tmp_path / "mounts").write_text(lines, encoding="utf-8")

    monkeypatch.setattr(file_systems, "MOUNTS", tmp_path / "mounts")
    monkeypatch.setattr(ledger_lock, "sound", set())
    monkeypatch.setattr(file_systems, "sound", ledger_lock.sound)
    return tell


REFUSED = [
    ("nfs4", "rw,vers=4.2,local_lock=all"),
    ("nfs", "rw,vers=3,nolock,local_lock=none"),
    ("nfs", "rw,local_lock=posix"),
    ("cifs", "rw,vers=3.0,nobrl"),
    ("lustre", "rw,localflock"),
    ("fuse.sshfs", "rw"),
    ("afs", "rw"),
    ("vboxsf", "rw"),
]
TAKEN = [("ext4", "rw"), ("nfs4", "rw,vers=4.2,local_lock=none"), ("cifs", "rw,vers=3.0"), ("lustre", "rw,flock")]


@pytest.mark.parametrize(("kind", "options"), REFUSED)
def test_a_mount_that_keeps_locks_to_one_machine_is_refused_in_a_sentence(path, mounts, kind, options):
    ledger = pf.Ledger(path, epsilon=1.0)
    mounts(kind, options)
    file_systems.sound.clear()
    for use in (lambda: ledger.charge(0.25), lambda: ledger.spent, lambda: pf.Ledger(path)):
        with pytest.raises(pf.LedgerError, match=rf"keeps locks to one machine \({kind}, .*Nothing was charged"):
            use()
    mounts("ext4")
    file_systems.sound.clear()
    assert ledger.spent == 0


@pytest.mark.parametrize(("kind", "options"), TAKEN)
def test_mounts_whose_locks_are_for_everybody_are_taken(path, mounts, kind, options):
    mounts(kind, options)
    assert pf.Ledger(path, epsilon=1.0).charge(0.25).entry == 1


def test_a_file_system_that_grants_every_lock_is_refused_in_a_sentence(path, monkeypatch):
    ledger = pf.Ledger(path, epsilon=1.0)
    monkeypatch.setattr(ledger_lock, "sound", set())
    monkeypatch.setattr(file_systems, "sound", ledger_lock.sound)
    monkeypatch.setattr(ledger_lock, "_request", lambda descriptor, kind: None)
    with pytest.raises(pf.LedgerError, match=r"grants one lock twice.*Nothing was charged.*PostgreSQL"):
        ledger.charge(0.25)
    monkeypatch.undo()
    file_systems.sound.clear()
    assert ledger.spent == 0


def test_the_mount_of_a_path_is_the_last_one_of_the_nearest_folder(tmp_path, mounts):
    mounts("nfs", "rw,nolock", str(tmp_path / "some\\040where"))
    assert file_systems.mount_of(tmp_path / "some where" / "people.db").kind == "nfs"
    assert file_systems.mount_of(tmp_path / "some where else").kind == "ext4"
    mounts("nfs", "rw,nolock", str(tmp_path / "Köln\u2028\\134"))
    assert file_systems.mount_of(tmp_path / "Köln\u2028\\" / "people.db").kind == "nfs"
    mounts("nfs", "rw,nolock", str(tmp_path / "some\\040where"))
    with (tmp_path / "mounts").open("a") as more:
        more.write(f"24 22 0:41 / {tmp_path}/some\\040where rw - tmpfs none rw\nnot a line\n")
    assert file_systems.mount_of(tmp_path / "some where" / "people.db").kind == "tmpfs"
    (tmp_path / "mounts").unlink()
    assert file_systems.mount_of(tmp_path) is None


def test_other_descriptors_of_the_file_are_tried_once_for_each_file_system(path, monkeypatch):
    monkeypatch.setattr(ledger_lock, "sound", set())
    monkeypatch.setattr(file_systems, "sound", ledger_lock.sound)
    asked = []
    fault = file_systems._fault
    monkeypatch.setattr(file_systems, "_fault", lambda *given: asked.append(given) or fault(*given))
    ledger = pf.Ledger(path, epsilon=1.0)
    ledger.charge(0.25)
    assert (len(asked), ledger.spent) == (1, 0.25)
