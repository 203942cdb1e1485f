"""The ledger: a budget that cannot be overdrawn, written down before any noise is drawn."""

from __future__ import annotations

import math
import os
import sqlite3
import threading
import warnings
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from fractions import Fraction
from functools import lru_cache
from pathlib import Path
from typing import Any

from privfit.privacy import composition
from privfit.privacy.budget import Amount, Budget, exact, number
from privfit.privacy.errors import BudgetExceeded, LedgerError, PrivacyWarning
from privfit.privacy.event import Event
from privfit.privacy.ledger_file import LedgerFile, make_file, open_file, temporary_place

OUTSIDE = "unknown"
_PRICES = """
SELECT last, epsilon, delta, event FROM (SELECT COALESCE(MAX(seq), 0) AS last FROM sqlite_sequence WHERE name = 'entry') LEFT JOIN entry ORDER BY id
"""


@dataclass(frozen=True)
class Entry:
    """One line of a ledger."""

    id: int
    time: str
    dataset: str
    mechanism: str
    epsilon: float
    delta: float
    event: Event

    def to_dict(self) -> dict[str, Any]:
        """The entry as plain values."""
        return asdict(self)


class Ledger:
    """A privacy budget in a file, shared by every process that opens it.

    Parameters
    ----------
    path : the SQLite file. None makes a temporary one that lives as long as this process.
    epsilon, delta : the whole budget. Needed to make a ledger; to open an existing one leave them out or repeat them.

    Copies, clones and pickles of a ledger are references to the same file, so cross-validation, joblib workers and refits all
    charge the one budget. A file that has gone missing is refused, never started again.

    >>> ledger = Ledger(epsilon=1.0)
    >>> ledger.charge(0.4, mechanism="a histogram made elsewhere")
    >>> ledger.remaining
    0.6

    Guarantee: all releases charged to a ledger are together (epsilon, delta)-DP, its whole budget, however they were chosen, for the
    adjacency and the rows per person that they share; docs/proofs/composition.md, Theorem 1. A charge that makes another promise warns.
    """

    def __init__(self, path: str | os.PathLike[str] | None = None, epsilon: float | None = None, delta: float | None = None) -> None:
        if path is not None and not isinstance(path, str | os.PathLike):
            raise LedgerError(
                f"A ledger was given the path {path!r}; a path is a text. For a budget without a file write Ledger(epsilon={path!r})."
            )
        if path is None and epsilon is None:
            raise LedgerError("A ledger was asked for without a budget. Say how much may be spent in all: Ledger(epsilon=1.0).")
        place = temporary_place() if path is None else Path(path).expanduser().absolute()
        if not place.exists():
            if epsilon is None:
                raise LedgerError(
                    f"There is no ledger at {place.name!r}, and a new one needs a budget. "
                    f"Check the path, or make one: Ledger({place.name!r}, epsilon=1.0)."
                )
            make_file(place, epsilon, 0.0 if delta is None else delta)
        self._file = open_file(place)
        self._refuse_another_budget(epsilon, delta)

    # -- the budget -------------------------------------------------------------------------------------------------

    @property
    def path(self) -> Path:
        """The ledger's file."""
        return self._file.path

    @property
    def epsilon(self) -> float:
        """The whole budget's epsilon."""
        return self._file.epsilon

    @property
    def delta(self) -> float:
        """The whole budget's delta."""
        return self._file.delta

    @property
    def spent(self) -> Amount:
        """What all entries cost together, rounded up.

        It counts against the budget, and the budget is what is guaranteed. What is spent is a guarantee of its own only if the prices,
        and how many there are, were fixed beforehand. Who repeats a release of delta 0.01 until it leaks, at most 10 times, may see 0.01
        spent, but leaks with a chance of 0.096. A ledger without a limit has no budget: this is its running total, and a guarantee in
        that one case alone.
        """
        with self._file.connection() as connection:
            spent = self._total(self._costs(connection))
        return Amount(_not_below(spent[0]), _not_below(spent[1]))

    @property
    def remaining(self) -> Amount:
        """What is left to spend."""
        with self._file.connection() as connection:
            spent = self._total(self._costs(connection))
        if math.isinf(self.epsilon):
            return Amount(math.inf, self.delta)
        return Amount(_not_above(exact(self.epsilon) - spent[0]), _not_above(exact(self.delta) - spent[1]))

    def entries(self) -> list[Entry]:
        """Every charge, oldest first."""
        with self._file.connection() as connection:
            rows = connection.execute("SELECT id, time, dataset, mechanism, epsilon, delta, event FROM entry ORDER BY id").fetchall()
        return [
            Entry(row, time, dataset, mechanism, epsilon, delta, self._event(event))
            for row, time, dataset, mechanism, epsilon, delta, event in rows
        ]

    # -- spending ---------------------------------------------------------------------------------------------------

    def check(self, event: Event) -> None:
        """Refuse now what `charge` would refuse later, so that no long read is wasted."""
        with self._file.connection() as connection:
            self._refuse_overdraft(connection, event)
        self._warn_of_another_promise(event)

    def _warn_of_another_promise(self, event: Event) -> None:
        """Prices add up to one claim only if all entries protect against the same neighbours."""
        earlier = [entry.event for entry in self.entries() if entry.event.noise != OUTSIDE]
        if any((made.adjacency, made.rows_per_person) != (event.adjacency, event.rows_per_person) for made in earlier):
            warnings.warn(
                f"This ledger has entries with another adjacency or another rows_per_person than {event.adjacency!r} and {event.rows_per_person}. "
                "Their prices do not add up to one claim. Use one ledger per kind of promise.",
                PrivacyWarning,
                stacklevel=5,
            )

    def charge(self, event: Event | float, delta: float = 0.0, *, mechanism: str = "outside privfit", dataset: str = "") -> None:
        """Write one charge down, durably, or raise BudgetExceeded and write nothing.

        `event` is the Event of a release, or simply an epsilon, for a release made by other means.
        """
        if not isinstance(event, Event):
            budget = Budget(event, delta)
            event = Event(mechanism, budget.epsilon, budget.delta, noise=OUTSIDE)
        with self._file.connection() as connection:
            connection.execute("BEGIN IMMEDIATE")
            try:
                self._refuse_overdraft(connection, event)
                connection.execute(
                    "INSERT INTO entry (time, dataset, mechanism, epsilon, delta, event) VALUES (?, ?, ?, ?, ?, ?)",
                    (
                        datetime.now(UTC).isoformat(timespec="seconds"),
                        dataset,
                        event.mechanism,
                        event.epsilon,
                        event.delta,
                        event.to_json(),
                    ),
                )
                connection.execute("COMMIT")
            except BaseException:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                raise

    def _refuse_overdraft(self, connection: sqlite3.Connection, event: Event) -> None:
        costs = self._costs(connection)
        after = self._total([*costs, event.cost])
        if math.isinf(self.epsilon) or composition.affordable(after, Budget(self.epsilon, self.delta)):
            return
        before = self._total(costs)
        left_epsilon, left_delta = _not_above(exact(self.epsilon) - before[0]), _not_above(exact(self.delta) - before[1])
        delta = f" and delta {event.delta:.3g}" if event.delta else ""
        no_delta = (
            " This ledger has no delta: ask for delta=0, or make a ledger that has one (delta=1e-5)."
            if event.delta and not self.delta
            else ""
        )
        refusal = BudgetExceeded(
            f"epsilon {event.epsilon:.6g}{delta} was asked for, and the ledger has epsilon {left_epsilon:.6g} and delta {left_delta:.3g} left "
            f"of epsilon {self.epsilon:.6g} and delta {self.delta:.3g}. Nothing was charged or released. Ask for less, or stop here: "
            f"a budget that grows is not a budget.{no_delta}"
        )
        refusal.remaining = Amount(left_epsilon, left_delta)
        raise refusal

    def _costs(self, connection: sqlite3.Connection) -> list[composition.Cost]:
        """The price of every entry. Refuses a file that has lost entries, or whose entries contradict themselves."""
        rows = connection.execute(_PRICES).fetchall()
        last = rows[0][0]
        prices = [(epsilon, delta, self._event(text)) for _, epsilon, delta, text in rows if text is not None]
        if len(prices) != last or any((event.epsilon, event.delta) != (epsilon, delta) for epsilon, delta, event in prices):
            raise self._damaged()
        return [event.cost for _, _, event in prices]

    def _event(self, text: str) -> Event:
        try:
            return _parsed(text)
        except (ValueError, TypeError) as error:
            raise self._damaged() from error

    def _damaged(self) -> LedgerError:
        return LedgerError(
            f"The ledger {self.path.name!r} is damaged: entries are missing or were changed. Nothing was charged or released. "
            "Restore the file."
        )

    def _total(self, costs: list[composition.Cost]) -> tuple[Fraction, Fraction]:
        return composition.total(costs, self.epsilon, self.delta)

    def _refuse_another_budget(self, epsilon: float | None, delta: float | None) -> None:
        for name, asked, kept in (("epsilon", epsilon, self.epsilon), ("delta", delta, self.delta)):
            if asked is not None and number(asked) != kept:
                raise LedgerError(
                    f"The ledger {self.path.name!r} was made with {name}={kept:g}, and {name}={asked!r} was asked for. "
                    f"A budget does not change. Open it as it is: Ledger({self.path.name!r})."
                )

    # -- copies are references --------------------------------------------------------------------------------------

    def __copy__(self) -> Ledger:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Ledger:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return _reopen, (str(self.path), self._file.identity, (self.epsilon, self.delta))

    def __repr__(self) -> str:
        return f"Ledger({self.path.name!r}, epsilon={self.epsilon:g}, delta={self.delta:g})"


def _reopen(path: str, identity: str, budget: tuple[float, float]) -> Ledger:
    """A reference to a ledger. Whether its file is still there, and still the same, is looked at when it is used."""
    ledger = Ledger.__new__(Ledger)
    ledger._file = LedgerFile(Path(path), identity, *budget)
    return ledger


@lru_cache(maxsize=1 << 16)
def _parsed(text: str) -> Event:
    return Event.from_json(text)


def _not_below(value: Fraction) -> float:
    """The least float that, as written, is at least the value: what is spent is rounded up."""
    try:
        nearest = float(value)
    except OverflowError:
        return math.inf
    return nearest if exact(nearest) >= value else math.nextafter(nearest, math.inf)


def _not_above(value: Fraction) -> float:
    """The largest float that, as written, is at most the value: what is left is rounded down, and can be spent."""
    nearest = float(value)
    return nearest if exact(nearest) <= value else math.nextafter(nearest, -math.inf)


_process_ledger: Ledger | None = None
_process_lock = threading.Lock()


def process_ledger() -> Ledger:
    """The ledger of fits that were given none: without a cap, it only keeps the running total of this process."""
    global _process_ledger
    with _process_lock:
        if _process_ledger is None:
            _process_ledger = Ledger(epsilon=math.inf)
        return _process_ledger


def warn_of_running_total(ledger: Ledger) -> None:
    """Tell the user of a process-wide ledger what all fits so far cost together, from the second fit on."""
    fits = len(ledger.entries())
    if fits > 1:
        warnings.warn(
            f"{fits} private fits in this process have spent epsilon {ledger.spent!r} together, and no budget limits them. "
            "Pass ledger=pf.Ledger(epsilon=...) to set one.",
            PrivacyWarning,
            stacklevel=4,
        )
