"""The ledger: a budget that cannot be overdrawn, written down before any noise is drawn."""

from __future__ import annotations

import atexit
import math
import os
import sqlite3
import tempfile
import threading
import uuid
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
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

# Once released, raise it with any change to composition.order_for, composition._fixed_part or the rule of composition.total: the Renyi
# order is not stored but computed anew at each charge, and the proof needs the same one for all charges to a file.
_VERSION = 1
OUTSIDE = "unknown"
_WAIT_SECONDS = 60.0
_DURABLE = "PRAGMA synchronous = EXTRA"  # FULL does not sync the folder after a commit: power lost then would bring the old journal back
_TABLES = """
CREATE TABLE budget (version INTEGER NOT NULL, identity TEXT NOT NULL, epsilon REAL NOT NULL, delta REAL NOT NULL, created TEXT NOT NULL);
CREATE TABLE entry (
    id INTEGER PRIMARY KEY AUTOINCREMENT, time TEXT NOT NULL, dataset TEXT NOT NULL, mechanism TEXT NOT NULL,
    epsilon REAL NOT NULL, delta REAL NOT NULL, event TEXT NOT NULL
);
"""
_PRICES = """
SELECT last, epsilon, delta, event FROM (SELECT COALESCE(MAX(seq), 0) AS last FROM sqlite_sequence WHERE name = 'entry') LEFT JOIN entry ORDER BY id
"""

# A process forked while a thread has the file open would inherit SQLite's note of a lock that it does not have.
_no_fork = threading.RLock()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_no_fork.acquire, after_in_parent=_no_fork.release, after_in_child=_no_fork.release)


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
        if path is None:
            if epsilon is None:
                raise LedgerError("A ledger was asked for without a budget. Say how much may be spent in all: Ledger(epsilon=1.0).")
            self._path = Path(tempfile.mkdtemp(prefix="privfit-ledger-")) / "ledger.db"
            atexit.register(_remove_temporary, self._path, os.getpid())
        else:
            self._path = Path(path).expanduser().absolute()
        if not self._path.exists():
            if epsilon is None:
                raise LedgerError(
                    f"There is no ledger at {self._path.name!r}, and a new one needs a budget. "
                    f"Check the path, or make one: Ledger({self._path.name!r}, epsilon=1.0)."
                )
            self._create(epsilon, 0.0 if delta is None else delta)
        self._identity = ""
        self._budget = self._open()
        self._refuse_another_budget(epsilon, delta)

    # -- the budget -------------------------------------------------------------------------------------------------

    @property
    def path(self) -> Path:
        """The ledger's file."""
        return self._path

    @property
    def epsilon(self) -> float:
        """The whole budget's epsilon."""
        return self._budget[0]

    @property
    def delta(self) -> float:
        """The whole budget's delta."""
        return self._budget[1]

    @property
    def spent(self) -> Amount:
        """What all entries cost together, rounded up.

        It counts against the budget, and the budget is what is guaranteed. What is spent is a guarantee of its own only if the prices,
        and how many there are, were fixed beforehand. Who repeats a release of delta 0.01 until it leaks, at most 10 times, may see 0.01
        spent, but leaks with a chance of 0.096. A ledger without a limit has no budget: this is its running total, and a guarantee in
        that one case alone.
        """
        with self._connection() as connection:
            spent = self._total(self._costs(connection))
        return Amount(_not_below(spent[0]), _not_below(spent[1]))

    @property
    def remaining(self) -> Amount:
        """What is left to spend."""
        with self._connection() as connection:
            spent = self._total(self._costs(connection))
        if math.isinf(self.epsilon):
            return Amount(math.inf, self.delta)
        return Amount(_not_above(exact(self.epsilon) - spent[0]), _not_above(exact(self.delta) - spent[1]))

    def entries(self) -> list[Entry]:
        """Every charge, oldest first."""
        with self._connection() as connection:
            rows = connection.execute("SELECT id, time, dataset, mechanism, epsilon, delta, event FROM entry ORDER BY id").fetchall()
        return [
            Entry(row, time, dataset, mechanism, epsilon, delta, self._event(event))
            for row, time, dataset, mechanism, epsilon, delta, event in rows
        ]

    # -- spending ---------------------------------------------------------------------------------------------------

    def check(self, event: Event) -> None:
        """Refuse now what `charge` would refuse later, so that no long read is wasted."""
        with self._connection() as connection:
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
        with self._connection() as connection:
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
            f"The ledger {self._path.name!r} is damaged: entries are missing or were changed. Nothing was charged or released. "
            "Restore the file."
        )

    def _total(self, costs: list[composition.Cost]) -> tuple[Fraction, Fraction]:
        return composition.total(costs, self.epsilon, self.delta)

    # -- the file ---------------------------------------------------------------------------------------------------

    def _create(self, epsilon: float, delta: float) -> None:
        budget = Budget(1.0 if epsilon == math.inf else epsilon, delta)
        whole = (math.inf if epsilon == math.inf else budget.epsilon, budget.delta)
        if not self._path.parent.is_dir():
            raise LedgerError(f"The folder of the ledger {self._path.name!r} does not exist. Make the folder first, then the ledger.")
        made: str | None = None
        connection: sqlite3.Connection | None = None
        try:
            handle, made = tempfile.mkstemp(dir=self._path.parent, prefix=f".{self._path.name}-")
            os.close(handle)
            connection = sqlite3.connect(made, isolation_level=None)
            connection.execute(_DURABLE)
            connection.executescript(_TABLES)
            created = datetime.now(UTC).isoformat(timespec="seconds")
            connection.execute("INSERT INTO budget VALUES (?, ?, ?, ?, ?)", (_VERSION, uuid.uuid4().hex, *whole, created))
            connection.close()
            with suppress(FileExistsError):  # another process was first: its ledger is the one to use
                os.link(made, self._path)
        except (OSError, sqlite3.Error) as error:
            raise LedgerError(
                f"The ledger {self._path.name!r} cannot be made: {error}. Nothing was charged. "
                "Choose a folder that can be written and has room."
            ) from error
        finally:
            if connection is not None:
                connection.close()
            for left in (made, f"{made}-journal") if made else ():
                with suppress(FileNotFoundError):
                    os.unlink(left)

    def _open(self) -> tuple[float, float]:
        with self._connection() as connection:
            rows = connection.execute("SELECT version, identity, epsilon, delta FROM budget").fetchall()
        if len(rows) != 1 or rows[0][0] != _VERSION:
            raise LedgerError(
                f"The file {self._path.name!r} is not a ledger of this version. Nothing was charged. Use the file that Ledger(...) made."
            )
        self._identity = rows[0][1]
        return float(rows[0][2]), float(rows[0][3])

    @contextmanager
    def _connection(self) -> Iterator[sqlite3.Connection]:
        """A fresh connection: safe across threads, forks and processes, and a vanished file is noticed every time."""
        with _no_fork:
            connection: sqlite3.Connection | None = None
            try:
                connection = self._connect()
                yield connection
            except (OSError, sqlite3.Error) as error:
                raise LedgerError(
                    f"The ledger {self._path.name!r} cannot be read or written: {error}. Nothing was released. "
                    "Check that the file is whole, may be written and that the disk has room."
                ) from error
            finally:
                if connection is not None:
                    connection.close()

    def _connect(self) -> sqlite3.Connection:
        if not self._path.exists():
            raise LedgerError(
                f"The ledger {self._path.name!r} is gone, and what it had spent with it. Nothing was charged or released. "
                "Restore the file; a ledger is never started again by itself."
            )
        connection = sqlite3.connect(f"{self._path.as_uri()}?mode=rw", uri=True, timeout=_WAIT_SECONDS, isolation_level=None)
        try:
            connection.execute(_DURABLE)
            kept = connection.execute("SELECT identity, epsilon, delta FROM budget").fetchone() if self._identity else None
            if self._identity and kept != (self._identity, *self._budget):
                raise LedgerError(
                    f"The ledger {self._path.name!r} was replaced by another one. Nothing was charged or released. Restore the first file."
                )
        except BaseException:
            connection.close()
            raise
        return connection

    def _refuse_another_budget(self, epsilon: float | None, delta: float | None) -> None:
        for name, asked, kept in (("epsilon", epsilon, self.epsilon), ("delta", delta, self.delta)):
            if asked is not None and number(asked) != kept:
                raise LedgerError(
                    f"The ledger {self._path.name!r} was made with {name}={kept:g}, and {name}={asked!r} was asked for. "
                    f"A budget does not change. Open it as it is: Ledger({self._path.name!r})."
                )

    # -- copies are references --------------------------------------------------------------------------------------

    def __copy__(self) -> Ledger:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Ledger:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return _reopen, (str(self._path), self._identity, self._budget)

    def __repr__(self) -> str:
        return f"Ledger({self._path.name!r}, epsilon={self.epsilon:g}, delta={self.delta:g})"


def _reopen(path: str, identity: str, budget: tuple[float, float]) -> Ledger:
    """A reference to a ledger. Whether its file is still there, and still the same, is looked at when it is used."""
    ledger = Ledger.__new__(Ledger)
    ledger._path, ledger._identity, ledger._budget = Path(path), identity, budget
    return ledger


@lru_cache(maxsize=1 << 16)
def _parsed(text: str) -> Event:
    return Event.from_json(text)


def _not_below(value: Fraction) -> float:
    """The least float that, as written, is at least the value: what is spent is rounded up."""
    nearest = float(value)
    return nearest if exact(nearest) >= value else math.nextafter(nearest, math.inf)


def _not_above(value: Fraction) -> float:
    """The largest float that, as written, is at most the value: what is left is rounded down, and can be spent."""
    nearest = float(value)
    return nearest if exact(nearest) <= value else math.nextafter(nearest, -math.inf)


def _remove_temporary(path: Path, owner: int) -> None:
    if os.getpid() == owner and path.parent.is_dir():
        for left in path.parent.iterdir():
            left.unlink()
        path.parent.rmdir()


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
