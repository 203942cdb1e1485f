"""kill -9 at random moments, with hot journals and second names: nothing that was released is lost, and nothing passes
the budget.
"""

from __future__ import annotations

import contextlib
import os
import random
import signal
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

import privfit as pf

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are forked and killed")

PRICE = 0.001
MAGIC = bytes.fromhex("d9d505f920a163d7")


@dataclass
class Child:
    """A process that charges until it is killed or the budget is spent, and says so after every charge."""

    path: Path
    pid: int = 0
    reader: int = 0

    def __post_init__(self):
        self.reader, writer = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            with contextlib.suppress(BaseException):
                self._charge_for_ever(writer)
            os._exit(0)
        os.close(writer)

    def _charge_for_ever(self, writer):
        while True:
            try:
                pf.Ledger(self.path).charge(PRICE)
            except pf.BudgetExceeded:
                os.write(writer, b"x")
                time.sleep(0.005)
            except pf.LedgerError:  # it has a second name just now
                os.write(writer, b"n")
            else:
                os.write(writer, b"r")

    def killed(self) -> int:
        """How many releases it has told of."""
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        with open(self.reader, "rb") as pipe:
            return pipe.read().count(b"r")


@dataclass
class Run:
    """What happened to one ledger, which has room for so many charges."""

    path: Path
    kills: int
    capacity: int
    rng: random.Random = field(default_factory=lambda: random.Random(29))
    released: int = 0
    hot: int = 0
    refused_names: int = 0
    accepted_names: int = 0

    def __post_init__(self):
        self.ledger = pf.Ledger(self.path, epsilon=PRICE * self.capacity)

    def kill_all(self):
        done = 0
        while done < self.kills:
            children = [Child(self.path) for _ in range(2)]
            time.sleep(self.rng.uniform(0, 0.05))
            if self.rng.random() < 0.3:
                self.try_second_name()
            for child in children:
                self.released += child.killed()
                done += 1
                if self.rng.random() < 0.5:
                    self.after_a_kill()
            written = len(self.ledger.entries())
            assert self.released <= written <= self.released + 2, (
                "lost, or more than one charge a kill without its release"
            )
            self.released = written

    def after_a_kill(self):
        journal = Path(f"{self.path}-journal")
        with contextlib.suppress(FileNotFoundError):
            self.hot += journal.read_bytes()[:8] == MAGIC
        self.try_second_name()

    def try_second_name(self):
        second = self.path.with_name("second.db")
        os.link(self.path, second)
        try:
            pf.Ledger(second).charge(PRICE)
        except pf.LedgerError:
            self.refused_names += 1
        else:
            self.accepted_names += 1
            self.released += 1
        second.unlink()


def check(path, kills, capacity) -> Run:
    run = Run(path, kills, capacity)
    run.kill_all()
    spent = len(run.ledger.entries())
    with contextlib.suppress(pf.BudgetExceeded):
        while True:
            run.ledger.charge(PRICE)
            spent += 1
    assert spent == len(run.ledger.entries()) == run.capacity
    assert run.ledger.remaining == 0
    assert run.ledger.verify().entries == run.capacity
    assert run.accepted_names == 0
    assert run.refused_names > 0
    print(
        f"{kills} kills, {run.hot} hot journals seen, {run.refused_names} charges by a second name refused, "
        f"{run.released} entries before the end"
    )
    return run


def test_forty_kills(tmp_path):
    assert check(tmp_path / "ledger.db", 40, 40).accepted_names == 0


@pytest.fixture
def on_disk() -> Iterator[Path]:
    """A folder on a disk: in memory, where tests usually write, a commit is too short for kills to hit it."""
    disk = Path("/var/tmp")
    with tempfile.TemporaryDirectory(dir=disk if disk.is_dir() else None) as folder:
        yield Path(folder)


@pytest.mark.slow
def test_thousands_of_kills(on_disk):
    """A thousand kills at a time, until more than 20 have hit a commit: how many do so is a matter of the disk."""
    hot = 0
    for turn in range(10):
        hot += check(on_disk / f"ledger-{turn}.db", 1_000, 1_500).hot
        if hot > 20:
            break
    assert hot > 20
