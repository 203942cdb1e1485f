"""What is attacked: something that claims to be private, with settings, on tables of a schema."""

from __future__ import annotations

import atexit
import itertools
import os
import shutil
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Protocol, Self

import polars as pl

from privfit.audit.rows import Neighbours, RowMaker
from privfit.audit.table import Finding
from privfit.privacy import Adjacency, Event, Ledger, Receipt
from privfit.schema import Schema

LIMIT = 1e6
"""Budget of the ledgers of an audit: no fit of it is refused by accident."""
EXPECTED = 40
"""A guess of the number of rows, given where one is needed because the number itself is private."""
MEMORY = Path("/dev/shm")
"""Where files lie in memory, on systems that have it: an audit's ledgers need not outlive a power cut."""


class Fits(Protocol):
    """Anything that is fitted on a table: estimators, and functions in the form of one."""

    def fit(self, X: object, /) -> Self:
        """Read the table and release something."""
        ...


Setting = Mapping[str, Any]
Maker = Callable[[Adjacency, Ledger, float], Fits]
"""From an adjacency, a ledger and an epsilon to something that is not fitted."""


@cache
def _folder() -> Path:
    """Where the ledgers of this process lie."""
    made = tempfile.mkdtemp(dir=MEMORY if os.access(MEMORY, os.W_OK) else None, prefix="privfit-audit-")
    atexit.register(shutil.rmtree, made, ignore_errors=True)
    return Path(made)


_numbers = itertools.count()


def spacious_ledger(epsilon: float = LIMIT, delta: float = 0.5, kind: type[Ledger] = Ledger) -> Ledger:
    """A ledger that refuses no fit of an audit, in memory where the system has files there."""
    return kind(_folder() / f"{os.getpid()}-{next(_numbers)}.db", epsilon=epsilon, delta=delta)


class UnkeptLedger(Ledger):
    """A ledger that pays for everything and writes nothing down, as half of the time of a small fit is its ledger's:
    for runs of which nothing is asked but what they show. What is charged, and when, is for other attacks.
    """

    def check(self, event: Event) -> None:
        """Any event can be paid."""

    def charge(
        self,
        event: Event | float,
        delta: float = 0.0,
        *,
        mechanism: str = "",
        dataset: str = "",
        note: str | None = None,
    ) -> Receipt:
        """Keep nothing."""
        self.last_receipt = Receipt(self.name, 1, "")
        return self.last_receipt


@dataclass(frozen=True)
class Case:
    """A mechanism as users meet it: an estimator or a function, with settings, on tables of a schema."""

    name: str
    make: Maker
    schema: Schema
    setting: Mapping[str, object] = field(default_factory=dict)
    epsilon: float = 1.0
    seed: int = 0
    adjacencies: tuple[Adjacency, ...] = ("replace-one", "add-remove")
    """The adjacencies it knows."""
    rows_of_a_person: int = 1
    """How many rows a person has in the tables: more than are used, where the schema names persons."""
    by_position: bool = False
    """Whether it knows rows by their position, so that their order matters: docs/engines.md."""
    thresholded: bool = False
    """Whether which draws count depends on which cells are empty: then the law of the output is the same for
    neighbours with the same noise, and not the output."""
    share: float = 1.0
    """Its share of the black-box runs of its name."""
    fits_inside: bool = False
    """Whether its noise is that of fits inside of it, whose scales its own event does not list."""

    @property
    def key(self) -> str:
        """The case in words, by which a resumed audit knows it."""
        return f"{self.name} ({self.told})"

    @property
    def told(self) -> str:
        """The settings in words."""
        shown = dict(self.setting) | ({} if self.epsilon == 1 else {"epsilon": self.epsilon})
        return ", ".join(f"{name}={value}" for name, value in shown.items()) or "defaults"

    @property
    def delta(self) -> float:
        """The delta that is claimed."""
        return float(str(self.setting.get("delta", 0.0)))

    @property
    def rows(self) -> RowMaker:
        """Rows of the schema, the same ones every time."""
        return RowMaker(self.schema, self.seed)

    def pairs(self) -> list[Neighbours]:
        """Built-in neighbours, of the adjacencies it knows."""
        return [pair for pair in self.rows.pairs(self.rows_of_a_person) if pair.adjacency in self.adjacencies]

    def frame(self, rows: RowMaker, pair: Neighbours, own: tuple[tuple[object, ...], ...]) -> pl.DataFrame:
        """The table of a pair with these rows of one person."""
        return rows.frame((*pair.crowd, *own), own=len(own))  # type: ignore[arg-type]

    def finding(
        self, attack: str, numbers: tuple[float | None, float | None], runs: int, faults: str, note: str = ""
    ) -> Finding:
        """A line of the table."""
        verdict = "violated" if faults else "holds"
        return Finding(self.name, self.told, attack, *numbers, runs, verdict, faults or note)
