"""kill -9 during the upgrade of a ledger of version 1: the old file or the new one, never something between, and
nothing is lost.
"""

from __future__ import annotations

import os
import random
import shutil
import signal
import sqlite3
import time
from pathlib import Path

import pytest

import privfit as pf
from privfit.privacy.ledger import file as ledger_file

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are forked and killed")

FIXTURE = Path(__file__).parents[1] / "fixtures" / "ledger-version-1.sqlite"
MAGIC = bytes.fromhex("d9d505f920a163d7")
COPIES = (
    25  # of the fixture's entries: with a cache of a few pages, an upgrade writes to the file long before it commits
)
PRICE = 0.001


@pytest.fixture(scope="module")
def old(tmp_path_factory):
    """A long ledger of version 1, with room for the charge that upgrades it."""
    path = Path(shutil.copy(FIXTURE, tmp_path_factory.mktemp("old") / "old.db"))
    connection = sqlite3.connect(path)
    columns = "time, dataset, mechanism, epsilon, delta, event"
    with connection:
        (entries,) = connection.execute("SELECT count(*) FROM entry").fetchone()
        for _ in range(COPIES):
            connection.execute(f"INSERT INTO entry ({columns}) SELECT {columns} FROM entry WHERE id <= ?", (entries,))
        connection.execute("UPDATE budget SET epsilon = 100000.0, delta = 0.9")
    connection.close()
    return path


def rows(path) -> list[tuple]:
    connection = sqlite3.connect(path)
    found = connection.execute(
        "SELECT id, time, dataset, mechanism, epsilon, delta, event FROM entry ORDER BY id"
    ).fetchall()
    connection.close()
    return found


def small_cache(path):
    """As when the file is much larger than the memory that SQLite takes: changed pages go to the file before the
    commit.
    """
    connection = CONNECT(path)
    connection.execute("PRAGMA cache_size = 5")
    return connection


CONNECT = ledger_file._connect


def charged_in_child(path, prepared) -> int:
    """Charge in a process of its own, whose connections were prepared so; how it ended."""
    child = os.fork()
    if child == 0:
        try:
            ledger_file._connect = lambda place: prepared(small_cache(place))
            pf.Ledger(path).charge(PRICE)
            os._exit(0)
        finally:
            os._exit(1)
    return os.waitpid(child, 0)[1]


def steps_of_a_charge(path) -> int:
    """How many hundreds of instructions SQLite's virtual machine executes in the charge that upgrades: far more than in
    the connections that open the ledger before it and read the charge back after it.
    """
    counts = []

    def counting(connection):
        counts.append(0)
        connection.set_progress_handler(lambda: counts.__setitem__(-1, counts[-1] + 1), 100)
        return connection

    ledger = pf.Ledger(path)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ledger_file, "_connect", lambda place: counting(small_cache(place)))
        ledger.charge(PRICE)
    return max(counts)


def dying_at(step):
    """Kill the process at this step of any one connection; only the charge takes as many."""

    def prepared(connection):
        count = [0]

        def tick():
            count[0] += 1
            if count[0] == step:
                os.kill(os.getpid(), signal.SIGKILL)

        connection.set_progress_handler(tick, 100)
        return connection

    return prepared


def is_hot(path) -> bool:
    """Whether the killed process has left a journal that must be rolled back."""
    journal = Path(f"{path}-journal")
    return journal.exists() and journal.read_bytes()[:8] == MAGIC


def check_after(path, old, charges: int) -> None:
    """The file is the old one, or the new one with the charge in it; and it goes on from there."""
    before = rows(old)
    reference = pf.Ledger(shutil.copy(old, path.with_name(f"reference-{path.name}")))
    for _ in range(charges):
        reference.charge(PRICE)
    ledger = pf.Ledger(path)
    assert (tuple(ledger.spent), ledger.n_entries) == (tuple(reference.spent), len(before) + charges)
    assert rows(path)[: len(before)] == before
    assert ledger.charge(PRICE).entry == len(before) + charges + 1
    assert ledger.verify().unprotected == len(before)
    assert rows(path)[: len(before)] == before


def test_a_kill_at_any_step_of_an_upgrade_leaves_the_old_ledger(old, tmp_path):
    steps = steps_of_a_charge(shutil.copy(old, tmp_path / "counted.db"))
    hot = 0
    for part in range(1, 13):
        path = Path(shutil.copy(old, tmp_path / f"{part}.db"))
        status = charged_in_child(path, dying_at(steps * part // 13))
        assert os.WIFSIGNALED(status)
        hot += is_hot(path)
        check_after(path, old, 0)
    assert hot >= 4


@pytest.mark.parametrize(("moment", "charges"), [("before", 0), ("after", 1)])
def test_an_upgrade_stands_from_its_commit_on_and_not_before(old, tmp_path, moment, charges):
    path = Path(shutil.copy(old, tmp_path / "ledger.db"))

    class Dying(sqlite3.Connection):
        def execute(self, statement, *values):
            if statement == "COMMIT" and moment == "before":
                os.kill(os.getpid(), signal.SIGKILL)
            result = super().execute(statement, *values)
            if statement == "COMMIT":
                os.kill(os.getpid(), signal.SIGKILL)
            return result

    connect = sqlite3.connect
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sqlite3, "connect", lambda *args, **options: connect(*args, **options, factory=Dying))
        assert os.WIFSIGNALED(charged_in_child(path, lambda connection: connection))
    check_after(path, old, charges)


@pytest.mark.parametrize("kills", [6, pytest.param(100, marks=pytest.mark.slow)])
def test_kills_at_random_moments_of_upgrades(old, tmp_path, kills):
    rng = random.Random(3)
    begin = time.monotonic()
    assert charged_in_child(Path(shutil.copy(old, tmp_path / "timed.db")), lambda connection: connection) == 0
    whole = time.monotonic() - begin
    for kill in range(kills):
        path = Path(shutil.copy(old, tmp_path / f"{kill}.db"))
        child = os.fork()
        if child == 0:
            try:
                ledger_file._connect = small_cache
                pf.Ledger(path).charge(PRICE)
            finally:
                os._exit(0)
        time.sleep(rng.uniform(0, 1.2 * whole))
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        check_after(path, old, pf.Ledger(path).n_entries - len(rows(old)))
