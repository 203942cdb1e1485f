"""The ledger under faults: killed processes, many processes, forks, full disks, read-only and damaged files."""

from __future__ import annotations

import contextlib
import errno
import os
import random
import resource
import shutil
import signal
import sqlite3
import tempfile
import threading
import time
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import privfit as pf
from privfit.privacy import Event, SecureNoise
from privfit.privacy.ledger import file as ledger_file
from privfit.privacy.ledger.file import is_there
from tests.support.kept_ledgers import KeptInFile
from tests.support.processes import finish, go, in_child, start

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="faults are made with POSIX signals, limits and forks")


@pytest.fixture
def path(tmp_path):
    return tmp_path / "ledger.db"


@pytest.fixture
def no_noise(monkeypatch):
    """Fails a test that draws noise."""
    drawn = []
    monkeypatch.setattr(SecureNoise, "laplace", lambda self, values, scale: drawn.append(scale) or values)
    return drawn


def fit(ledger):
    X = np.random.default_rng(0).uniform(-1, 1, (40, 2))
    return pf.LinearRegression(0.1, schema=pf.Schema.box(-1, 1, target=(-1, 1)), ledger=ledger).fit(X, X[:, 0])


# -- killed ----------------------------------------------------------------------------------------


CHARGE_FOREVER = """
while True:
    ledger.charge(0.001)
    os.write(1, b"released\\n")
"""


def test_a_ledger_never_shows_less_than_was_released_before_kill_9(kept):
    ledger = pf.Ledger(kept.address, epsilon=1e6)
    rng = random.Random(11)
    released, kills = 0, 8 if isinstance(kept, KeptInFile) else 3
    for _ in range(kills):
        process = start(CHARGE_FOREVER, kept.address)
        go(process)
        assert process.stdout.readline() == b"released\n"
        time.sleep(rng.uniform(0, 0.12))
        os.kill(process.pid, signal.SIGKILL)
        released += 1 + finish(process).count(b"released")
        assert process.returncode == -signal.SIGKILL
        written = len(ledger.entries())
        assert released <= written <= released + kills
        released = written  # a charge without a release is allowed: at most one a kill
    assert ledger.spent == pytest.approx(0.001 * written, rel=1e-12)
    ledger.charge(0.001)
    assert len(ledger.entries()) == written + 1


DIE_AT_COMMIT = """
connect = sqlite3.connect

class Dying(sqlite3.Connection):
    def execute(self, statement, *values):
        if statement == "COMMIT" and MOMENT == "before":
            os.kill(os.getpid(), signal.SIGKILL)
        result = super().execute(statement, *values)
        if statement == "COMMIT" or (MOMENT == "written" and statement.startswith("INSERT")):
            os.kill(os.getpid(), signal.SIGKILL)
        return result

sqlite3.connect = lambda *args, **options: connect(*args, **options, factory=Dying)
ledger.charge(0.5)
os.write(1, b"released\\n")
"""


@pytest.mark.parametrize(("moment", "written"), [("written", 0), ("before", 0), ("after", 1)])
def test_a_charge_stands_from_its_commit_on_and_not_before(path, moment, written):
    ledger = pf.Ledger(path, epsilon=1.0)
    process = start(f"MOMENT = {moment!r}\n" + DIE_AT_COMMIT, path)
    go(process)
    assert finish(process) == []
    assert process.returncode == -signal.SIGKILL
    assert len(ledger.entries()) == written
    ledger.charge(0.5)
    assert ledger.spent == 0.5 * (written + 1)


def test_a_fit_killed_at_its_first_draw_has_paid(kept):
    ledger = pf.Ledger(kept.address, epsilon=1.0)

    def die(self, values, scale):
        os.kill(os.getpid(), signal.SIGKILL)

    child = os.fork()
    if child == 0:
        SecureNoise.laplace = die
        try:
            fit(ledger)
        finally:
            os._exit(0)
    _, status = os.waitpid(child, 0)
    assert os.WTERMSIG(status) == signal.SIGKILL
    assert ledger.spent == 0.1


# -- many processes --------------------------------------------------------------------------------


CHARGE_OFTEN = """
for _ in range(15):
    try:
        ledger.charge(0.01)
    except BudgetExceeded:
        os.write(1, b"refused\\n")
    else:
        os.write(1, b"released\\n")
"""


def test_many_processes_never_pass_the_budget_and_spend_all_of_it(kept):
    ledger = pf.Ledger(kept.address, epsilon=0.5)
    processes = [start(CHARGE_OFTEN, kept.address) for _ in range(6)]
    go(*processes)
    lines = [line for process in processes for line in finish(process)]
    assert lines.count(b"released") == len(ledger.entries()) == 50
    assert lines.count(b"refused") == 40
    assert (ledger.spent, ledger.remaining) == (0.5, 0.0)


def test_a_process_forked_while_a_thread_charges_can_charge_too(path, monkeypatch):
    """A fork inherits SQLite's note of its locks but not the locks themselves: the child would wait for itself."""
    monkeypatch.setattr(ledger_file, "_WAIT_SECONDS", 15.0)
    ledger = pf.Ledger(path, epsilon=1e6)
    charged, stop = [], threading.Event()

    def hammer():
        while not stop.is_set():
            ledger.charge(0.001)
            charged.append(1)
            time.sleep(0.002)

    thread = threading.Thread(target=hammer)
    thread.start()
    try:
        answers = [in_child(lambda: ledger.charge(1.0).entry) for _ in range(12)]
    finally:
        stop.set()
        thread.join()
    assert sorted(set(answers)) == answers  # numbers of entries, none of them twice
    assert len(ledger.entries()) == len(charged) + 12


def test_a_charge_that_waits_too_long_for_another_process_is_refused_and_nothing_is_written(
    path, monkeypatch, no_noise
):
    ledger = pf.Ledger(path, epsilon=1.0)
    monkeypatch.setattr(ledger_file, "_WAIT_SECONDS", 0.05)
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN EXCLUSIVE")
    with pytest.raises(pf.LedgerError, match="locked"):
        fit(ledger)
    other.execute("ROLLBACK")
    other.close()
    assert no_noise == []
    assert ledger.entries() == []


# -- no room ---------------------------------------------------------------------------------------


def limit_files_to(size: int) -> None:
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))


@pytest.mark.parametrize("room", [0, 600, 4096])
def test_a_disk_that_fills_up_refuses_and_every_release_is_written(path, room):
    """The database may grow by `room` bytes; its journal is smaller."""
    ledger = pf.Ledger(path, epsilon=1e6)
    ledger.charge(1.0)
    size = path.stat().st_size + room

    def charge_until_refused():
        limit_files_to(size)
        for charged in range(500):
            try:
                ledger.charge(1.0, mechanism="x" * 300)
            except pf.LedgerError as error:
                return charged, str(error)
        return None

    charged, error = in_child(charge_until_refused)
    assert "has room" in error
    assert len(ledger.entries()) == 1 + charged
    assert ledger.spent == 1 + charged
    ledger.charge(1.0)


def test_a_disk_without_room_for_the_journal_refuses_the_first_charge_and_the_fit(path):
    ledger = pf.Ledger(path, epsilon=1.0)

    def try_to_fit():
        limit_files_to(100)
        drawn = []
        SecureNoise.laplace = lambda self, values, scale: drawn.append(scale) or values
        with contextlib.suppress(pf.LedgerError):
            fit(ledger)
            return "fitted"
        return len(drawn)

    assert in_child(try_to_fit) == 0
    assert ledger.entries() == []
    ledger.charge(1.0)


def test_a_ledger_that_there_is_no_room_for_is_not_made_and_leaves_nothing_behind(path):
    def make():
        limit_files_to(4096)
        pf.Ledger(path, epsilon=1.0)

    assert in_child(make).startswith("LedgerError: The ledger 'ledger.db' cannot be made")
    assert list(path.parent.iterdir()) == []


# -- no right --------------------------------------------------------------------------------------


@pytest.fixture
def open_folder():
    """A folder that another user can enter."""
    folder = Path(tempfile.mkdtemp(prefix="privfit-faults-"))
    folder.chmod(0o755)
    yield folder
    folder.chmod(0o755)
    shutil.rmtree(folder)


def as_nobody(function):
    def run():
        if os.getuid() == 0:
            os.setgroups([])
            os.setgid(65534)
            os.setuid(65534)
        return function()

    return in_child(run)


def test_a_read_only_file_can_be_read_and_refuses_every_charge(open_folder):
    path = open_folder / "ledger.db"
    ledger = pf.Ledger(path, epsilon=1.0)
    ledger.charge(0.25)
    path.chmod(0o444)
    open_folder.chmod(0o777)
    before = path.read_bytes()

    def try_to_fit():
        drawn = []
        SecureNoise.laplace = lambda self, values, scale: drawn.append(scale) or values
        try:
            fit(ledger)
        except pf.LedgerError as error:
            return float(ledger.spent), len(drawn), str(error)

    spent, drawn, error = as_nobody(try_to_fit)
    assert (spent, drawn) == (0.25, 0)
    assert "readonly" in error
    assert path.read_bytes() == before


def test_a_read_only_folder_refuses_every_charge(open_folder):
    path = open_folder / "ledger.db"
    ledger = pf.Ledger(path, epsilon=1.0)
    path.chmod(0o666)
    open_folder.chmod(0o555)
    assert as_nobody(lambda: ledger.charge(0.1)).startswith(
        "LedgerError: The ledger 'ledger.db' cannot be read or written"
    )
    assert as_nobody(lambda: pf.Ledger(open_folder / "new.db", epsilon=1.0)).startswith(
        "LedgerError: The ledger 'new.db' cannot be made"
    )
    assert ledger.entries() == []


def test_a_folder_that_may_not_be_entered_refuses(open_folder):
    ledger = pf.Ledger(open_folder / "ledger.db", epsilon=1.0)
    open_folder.chmod(0o700 if os.getuid() == 0 else 0o000)
    assert as_nobody(lambda: ledger.charge(0.1)).startswith(
        "LedgerError: The ledger 'ledger.db' cannot be read or written"
    )


def test_a_ledger_that_cannot_be_looked_up_is_not_said_to_be_gone(tmp_path, monkeypatch):
    """Since Python 3.14 `Path.exists` answers no where the system refuses to answer."""

    def refuse(path):
        raise PermissionError(errno.EACCES, "Permission denied")

    ledger = pf.Ledger(tmp_path / "ledger.db", epsilon=1.0)
    with monkeypatch.context() as patched:
        patched.setattr("privfit.privacy.ledger.file.os", SimpleNamespace(stat=refuse))
        with pytest.raises(pf.LedgerError, match=r"cannot be read or written.*Permission denied"):
            ledger.charge(0.1)
    assert not is_there(tmp_path / "other.db")
    assert not is_there(tmp_path / "ledger.db" / "inside")
    assert ledger.entries() == []


def test_a_folder_that_does_not_exist_is_not_made(tmp_path):
    with pytest.raises(pf.LedgerError, match=r"folder of the ledger 'ledger\.db' does not exist"):
        pf.Ledger(tmp_path / "missing" / "ledger.db", epsilon=1.0)
    assert list(tmp_path.iterdir()) == []


def test_a_ledger_whose_folder_is_gone_refuses(tmp_path, no_noise):
    folder = tmp_path / "folder"
    folder.mkdir()
    ledger = pf.Ledger(folder / "ledger.db", epsilon=1.0)
    shutil.rmtree(folder)
    with pytest.raises(pf.LedgerError, match="gone"):
        fit(ledger)
    assert no_noise == []
    assert not folder.exists()


def test_a_folder_in_the_place_of_a_ledger_is_refused(tmp_path):
    with pytest.raises(pf.LedgerError):
        pf.Ledger(tmp_path, epsilon=1.0)


# -- damage ----------------------------------------------------------------------------------------


def run_sql(statement):
    def damage(path):
        connection = sqlite3.connect(path)
        with connection:
            connection.execute(statement)
        connection.close()

    return damage


def overwrite(start, length):
    def damage(path):
        content = bytearray(path.read_bytes())
        content[start : start + length] = random.Random(3).randbytes(len(content[start : start + length]))
        path.write_bytes(content)

    return damage


DAMAGE = {
    "random bytes": lambda path: path.write_bytes(random.Random(1).randbytes(20_000)),
    "a text": lambda path: path.write_text("epsilon = 1.0\n"),
    "emptied": lambda path: path.write_bytes(b""),
    "cut in half": lambda path: os.truncate(path, path.stat().st_size // 2),
    "one page left": lambda path: os.truncate(path, 4096),
    "last byte lost": lambda path: os.truncate(path, path.stat().st_size - 1),
    "header overwritten": overwrite(0, 100),
    "pages overwritten": overwrite(4096, 100_000),
    "another database": lambda path: (path.unlink(), run_sql("CREATE TABLE t (x)")(path)),
    "no budget": run_sql("DELETE FROM budget"),
    "no table of entries": run_sql("DROP TABLE entry"),
}
CHEAPER = "replace(event, '\"epsilon\": 0.25', '\"epsilon\": {}')"
ENTRY_STATEMENTS = {
    "an entry deleted": "DELETE FROM entry WHERE id = 2",
    "the last entry deleted": "DELETE FROM entry WHERE id = 3",
    "all entries deleted": "DELETE FROM entry",
    "a price changed": "UPDATE entry SET epsilon = 0.01 WHERE id = 2",
    "a delta changed": "UPDATE entry SET delta = 0.01 WHERE id = 2",
    "an event changed": f"UPDATE entry SET event = {CHEAPER.format(0.01)} WHERE id = 2",
    "a refund": f"UPDATE entry SET epsilon = -1, event = {CHEAPER.format(-1)} WHERE id = 2",
    "an event cut": "UPDATE entry SET event = '{' WHERE id = 2",
    "an event of another kind": "UPDATE entry SET event = '[1]' WHERE id = 2",
    "an event with an unknown field": "UPDATE entry SET event = replace(event, '{', '{\"new\": 1, ') WHERE id = 2",
    "an event that is no text": "UPDATE entry SET event = x'ff00ff' WHERE id = 2",
}
ENTRY_DAMAGE = {kind: run_sql(statement) for kind, statement in ENTRY_STATEMENTS.items()}


def charged_thrice(place):
    ledger = pf.Ledger(place, epsilon=1.0)
    for _ in range(3):
        ledger.charge(0.25)
    return ledger


@pytest.fixture
def charged(path):
    return charged_thrice(path)


DAMAGE_IN_DATABASE = {
    kind: statement
    for kind, statement in (
        ENTRY_STATEMENTS | {"no budget": "DELETE FROM budget", "no table": "DROP TABLE entry"}
    ).items()
    if kind != "an event that is no text"  # of which a column of text has none
}


@pytest.mark.parametrize("kind", DAMAGE_IN_DATABASE)
def test_a_damaged_ledger_in_a_database_refuses_with_its_own_error_and_draws_nothing(database, kind, no_noise):
    ledger = charged_thrice(database.address)
    database.sql(DAMAGE_IN_DATABASE[kind])
    uses = (fit, lambda ledger: ledger.charge(0.1), lambda ledger: ledger.check(Event("test", 0.1)))
    for use in (*uses, lambda ledger: ledger.spent, lambda ledger: ledger.remaining):
        with pytest.raises(pf.LedgerError) as refusal:
            use(ledger)
        assert not isinstance(refusal.value, pf.BudgetExceeded)
    assert no_noise == []


@pytest.mark.parametrize("kind", [*DAMAGE, *ENTRY_DAMAGE])
def test_a_damaged_ledger_refuses_with_its_own_error_and_draws_nothing(charged, kind, no_noise):
    {**DAMAGE, **ENTRY_DAMAGE}[kind](charged.path)
    before = charged.path.read_bytes()
    with pytest.raises(pf.LedgerError) as refusal:
        fit(charged)
    for use in (
        lambda: charged.charge(0.1),
        lambda: charged.check(Event("test", 0.1)),
        lambda: charged.spent,
        lambda: charged.remaining,
    ):
        with pytest.raises(pf.LedgerError):
            use()
    assert not isinstance(refusal.value, pf.BudgetExceeded)
    assert no_noise == []
    assert charged.path.read_bytes() == before


@pytest.mark.parametrize("kind", DAMAGE)
@pytest.mark.parametrize("budget", [{}, {"epsilon": 1.0}])
def test_a_damaged_file_is_neither_opened_nor_started_again(charged, kind, budget):
    DAMAGE[kind](charged.path)
    before = charged.path.read_bytes()
    with pytest.raises(pf.LedgerError):
        pf.Ledger(charged.path, **budget).spent  # noqa: B018
    assert charged.path.read_bytes() == before


@pytest.mark.parametrize("statement", ["UPDATE budget SET version = 3", "INSERT INTO budget SELECT * FROM budget"])
def test_a_ledger_of_another_version_or_with_two_budgets_is_not_opened(charged, statement):
    run_sql(statement)(charged.path)
    with pytest.raises(pf.LedgerError, match="not a ledger of this version"):
        pf.Ledger(charged.path)


def test_bytes_overwritten_anywhere_never_make_an_open_ledger_show_less(path):
    """A scribble of 1 to 64 bytes at a random place: an error, or the whole truth."""
    ledger = pf.Ledger(path, epsilon=10.0)
    for _ in range(40):
        ledger.charge(0.1, mechanism="a mechanism with a name of some length")
    whole = path.read_bytes()
    rng = random.Random(17)
    refused = 0
    for _ in range(150):
        content = bytearray(whole)
        place, length = rng.randrange(len(whole)), rng.choice([1, 2, 8, 64])
        content[place : place + length] = rng.randbytes(len(content[place : place + length]))
        path.write_bytes(content)
        try:
            spent = ledger.spent
        except pf.LedgerError:
            refused += 1
        else:
            assert spent >= 4.0
    assert refused > 30
    path.write_bytes(whole)
    assert ledger.spent == 4.0


@pytest.mark.parametrize(
    "program",
    [
        "CREATE TRIGGER t AFTER INSERT ON entry BEGIN DELETE FROM entry WHERE id = new.id; END",
        "CREATE TRIGGER t AFTER UPDATE ON state BEGIN UPDATE budget SET epsilon = 100; END",
        "CREATE VIEW v AS SELECT * FROM entry",
    ],
)
def test_a_file_with_programs_of_its_own_is_refused_before_a_charge(program: str, tmp_path) -> None:
    path = tmp_path / "people.db"
    ledger = pf.Ledger(path, epsilon=1.0)
    ledger.charge(0.25)
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute(program)
    for use in (lambda: ledger.charge(0.25), lambda: pf.Ledger(path), lambda: ledger.spent):
        with pytest.raises(pf.LedgerError, match="triggers or views"):
            use()
    with contextlib.closing(sqlite3.connect(path)) as connection:
        assert connection.execute("SELECT count(*) FROM entry").fetchone() == (1,)
