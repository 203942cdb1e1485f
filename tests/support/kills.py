"""kill -9 at random moments: processes that charge a ledger or fit with one, and what must hold after each kill."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

import privfit as pf

PRICE = 0.001
MAGIC = bytes.fromhex("d9d505f920a163d7")


def charge(address: str) -> None:
    """One charge by a ledger that is opened for it."""
    pf.Ledger(address).charge(PRICE)


def fit(address: str) -> None:
    """One fit that pays the same price."""
    rows = np.linspace(-1, 1, 20).reshape(-1, 1)
    model = pf.LinearRegression(PRICE, schema=pf.Schema.box(-1, 1, target=(-1, 1)), ledger=pf.Ledger(address))
    model.fit(rows, rows[:, 0])


@dataclass
class Child:
    """A process that releases until it is killed or the budget is spent, and says so after every release."""

    address: str
    release: Callable[[str], None] = charge
    pid: int = 0
    reader: int = 0

    def __post_init__(self) -> None:
        self.reader, writer = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            with contextlib.suppress(BaseException):
                self._release_for_ever(writer)
            os._exit(0)
        os.close(writer)

    def _release_for_ever(self, writer: int) -> None:
        while True:
            try:
                self.release(self.address)
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
class Kills:
    """What happened to one ledger, which has room for so many releases."""

    address: str
    kills: int
    capacity: int
    release: Callable[[str], None] = charge
    longest: float = 0.05
    """Seconds that a process lives at most."""

    rng: random.Random = field(default_factory=lambda: random.Random(29))
    released: int = 0
    hot: int = 0
    refused_names: int = 0
    accepted_names: int = 0

    def __post_init__(self) -> None:
        self.ledger = pf.Ledger(self.address, epsilon=PRICE * self.capacity)
        self.path = None if "://" in self.address else Path(self.address)

    def run(self) -> Kills:
        """Kill, count after every kill, then spend the rest: exactly the budget was spent."""
        done = 0
        while done < self.kills:
            children = [Child(self.address, self.release) for _ in range(2)]
            time.sleep(self.rng.uniform(0, self.longest))
            if self.rng.random() < 0.3:
                self.try_second_name()
            for child in children:
                self.released += child.killed()
                done += 1
                if self.rng.random() < 0.5:
                    self.after_a_kill()
            written = self.ledger.n_entries
            assert self.released <= written <= self.released + 2, (
                f"{self.released} releases and {written} charges: lost, or more than one charge a kill without release"
            )
            self.released = written
        self._spend_the_rest()
        return self

    def _spend_the_rest(self) -> None:
        spent = self.ledger.n_entries
        with contextlib.suppress(pf.BudgetExceeded):
            while True:
                self.ledger.charge(PRICE)
                spent += 1
        assert spent == self.ledger.verify().entries == self.capacity
        assert self.ledger.remaining == 0
        assert self.accepted_names == 0
        assert self.refused_names > 0 or self.path is None

    def after_a_kill(self) -> None:
        if self.path is not None:
            with contextlib.suppress(FileNotFoundError):
                self.hot += Path(f"{self.path}-journal").read_bytes()[:8] == MAGIC
            self.try_second_name()

    def try_second_name(self) -> None:
        if self.path is None:
            return
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

    def __str__(self) -> str:
        names = f", {self.refused_names} charges by a second name refused" if self.path else ""
        return (
            f"{self.kills:,} kills, {self.hot} in the middle of a commit, {self.capacity:,} of {self.capacity:,} "
            f"releases charged{names}"
        )
