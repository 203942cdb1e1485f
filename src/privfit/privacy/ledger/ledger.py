"""The ledger: a budget that cannot be overdrawn, written down before any noise is drawn."""

from __future__ import annotations

import math
import os
import threading
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import asdict, astuple, dataclass, replace
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path
from typing import Any

from privfit.privacy import composition
from privfit.privacy.errors import BudgetExceeded, LedgerError, PrivacyWarning
from privfit.privacy.event import Event
from privfit.privacy.ledger.chain import Entry, Receipt, Row, check_unicode, checked_text
from privfit.privacy.ledger.check import Verification, check_receipt, verified
from privfit.privacy.ledger.file import LedgerFile, Seen, make_file, open_file, resolved_place, temporary_place
from privfit.privacy.ledger.state import PAGE, State, read_entry, read_rows
from privfit.privacy.parameters import Amount, Budget, exact, number
from privfit.version import VERSION


@dataclass(frozen=True)
class About:
    """What entries say besides their price: who made them, and what for."""

    model: str = ""
    target: str = ""
    note: str = ""
    owner: str = ""

    def __post_init__(self) -> None:
        for name, value in asdict(self).items():
            checked_text(name, value)


class Ledger:
    """A privacy budget in a file, shared by every process that opens it.

    Copies, clones and pickles of a ledger are references to the same file, so cross-validation, joblib workers and
    refits all charge the one budget. A file that has gone missing is refused, never started again.

    Parameters
    ----------
    path : str, PathLike or None, default=None
        The SQLite file. None makes a temporary one that lives as long as this process.
    epsilon : float or None, default=None
        The whole budget. Needed to make a ledger; to open an existing one leave it out or repeat it.
    delta : float or None, default=None
        The delta of the whole budget, in the same way.
    owner : str, default=''
        Who answers for what is charged through this object; every entry says so. It is not a property of the file:
        others may open it under their own name.

    See Also
    --------
    BudgetExceeded : Raised when the budget does not suffice.
    Report : Has the receipt of a fit.

    Notes
    -----
    Guarantee: all releases charged to a ledger are together (epsilon, delta)-DP, its whole budget, however they were
    chosen, for the adjacency and the rows per person that they share; docs/proofs/composition.md, Theorem 1. `check`,
    which every fit calls before it reads rows, warns of a guarantee that differs from the ones before; `charge` by
    itself does not, and `has_mixed_promises` tells afterwards.

    Examples
    --------
    >>> import privfit as pf
    >>> ledger = pf.Ledger(epsilon=1.0)
    >>> receipt = ledger.charge(0.4, mechanism="a histogram made elsewhere", note="yearly report")
    >>> ledger.remaining
    0.6
    >>> study = ledger.with_note("readmission study")  # the same budget; entries charged through it carry the note
    >>> study.charge(0.1).entry
    2
    """

    _file: LedgerFile
    _about: About
    _last: Receipt | None

    def __init__(
        self,
        path: str | os.PathLike[str] | None = None,
        epsilon: float | None = None,
        delta: float | None = None,
        *,
        owner: str = "",
    ) -> None:
        if path is not None and not isinstance(path, str | os.PathLike):
            raise LedgerError(
                f"A ledger was given the path {path!r}; a path is a text. For a budget without a file write "
                f"Ledger(epsilon={path!r})."
            )
        if path is None and epsilon is None:
            raise LedgerError(
                "A ledger was asked for without a budget. Say how much may be spent in all: Ledger(epsilon=1.0)."
            )
        self._about, self._last = About(owner=owner), None
        place = temporary_place() if path is None else resolved_place(path)
        if not place.exists():
            if epsilon is None:
                raise LedgerError(
                    f"There is no ledger at {place.name!r}, and a new one needs a budget. "
                    f"Check the path, or make one: Ledger({place.name!r}, epsilon=1.0)."
                )
            make_file(place, epsilon, 0.0 if delta is None else delta)
        self._file = open_file(place)
        self._refuse_another_budget(epsilon, delta)

    def with_note(self, note: str) -> Ledger:
        """Return the same ledger for entries with this note.

        Parameters
        ----------
        note : str
            What the entries are for.

        Returns
        -------
        Ledger
            A reference to the same file.
        """
        return self._view(replace(self._about, note=note))

    def describing(self, *, model: str, target: str) -> Ledger:
        """Return the same ledger for the entries of one fit.

        Parameters
        ----------
        model : str
            Public name of the estimator.
        target : str
            Public name of its target.

        Returns
        -------
        Ledger
            A reference to the same file.
        """
        return self._view(replace(self._about, model=model, target=target))

    def _view(self, about: About) -> Ledger:
        view = type(self).__new__(type(self))
        view.__dict__.update(self.__dict__)
        view._about, view._last = about, None
        return view

    # -- the budget --------------------------------------------------------------------------------

    @property
    def path(self) -> Path:
        """The ledger's file.

        Returns
        -------
        Path
            The file.
        """
        return self._file.path

    @property
    def epsilon(self) -> float:
        """Epsilon of the whole budget.

        Returns
        -------
        float
            The epsilon.
        """
        return self._file.epsilon

    @property
    def delta(self) -> float:
        """Delta of the whole budget.

        Returns
        -------
        float
            The delta.
        """
        return self._file.delta

    @property
    def spent(self) -> Amount:
        """What all entries cost together, rounded up.

        It counts against the budget, and the budget is what is guaranteed. What is spent is a guarantee of its own only
        if the prices, and how many there are, were fixed beforehand. Someone who repeats a release of delta 0.01 until
        it leaks, at most 10 times, may see 0.01 spent, but leaks with probability 0.096. A ledger without a limit has
        no budget: this is its running total, and a guarantee in that one case alone.

        Returns
        -------
        Amount
            An epsilon that also knows its delta.
        """
        spent = self._state().total()
        return Amount(_not_below(spent[0]), _not_below(spent[1]))

    @property
    def remaining(self) -> Amount:
        """What is left to spend.

        Returns
        -------
        Amount
            An epsilon that also knows its delta.
        """
        return self._left(self._state())

    def _left(self, state: State) -> Amount:
        if math.isinf(self.epsilon):
            return Amount(math.inf, self.delta)
        spent = state.total()
        return Amount(_not_above(exact(self.epsilon) - spent[0]), _not_above(exact(self.delta) - spent[1]))

    @property
    def n_entries(self) -> int:
        """Number of charges.

        Returns
        -------
        int
            The number.
        """
        return self._state().entries

    @property
    def has_mixed_promises(self) -> bool:
        """Whether entries have different adjacencies or rows per person, so that prices do not add up to one guarantee.

        Returns
        -------
        bool
            True where they differ.
        """
        return self._state().mixed

    @property
    def last_receipt(self) -> Receipt | None:
        """Receipt of the last charge that was made through this very object.

        Returns
        -------
        Receipt or None
            The receipt; None if there was no charge.
        """
        return self._last

    def entries(self, last: int | None = None) -> list[Entry]:
        """Return every charge, oldest first.

        Parameters
        ----------
        last : int or None, default=None
            Only the newest so many.

        Returns
        -------
        list of Entry
            The entries.
        """
        return list(self.iter_entries(last))

    def iter_entries(self, last: int | None = None) -> Iterator[Entry]:
        """Yield every charge, oldest first, one by one.

        It takes little memory for a long ledger, and nobody waits for a lock while entries are read.

        Parameters
        ----------
        last : int or None, default=None
            Only the newest so many.

        Yields
        ------
        Entry
            The next entry.
        """
        if last is not None and (isinstance(last, bool) or not hasattr(last, "__index__") or last < 0):
            raise LedgerError(f"last={last!r} was given; it is a whole number of at least 0. Write entries(last=20).")
        end = self.n_entries
        place = 0 if last is None else max(end - last, 0)
        while place < end:
            page = self._page(place, min(PAGE, end - place))
            yield from page
            place += len(page)

    def _page(self, after: int, most: int) -> list[Entry]:
        with self._file.connection() as connection:
            rows = read_rows(connection, self._file.state(connection).whole, after, most)
            if len(rows) != most:
                raise self._file.damaged()
            return [read_entry(row, head) for row, head in rows]

    def verify(self, against: Receipt | Mapping[str, Any] | None = None) -> Verification:
        """Read the whole ledger and check it.

        Every entry is checked against the chain of hashes and against its own event, and the sums against all entries.

        Parameters
        ----------
        against : Receipt, mapping or None, default=None
            The receipt of a charge, kept outside the file (`model.report_.receipt`): an older copy of the ledger,
            another ledger and a rewritten history are distinguished from the one that was charged.

        Returns
        -------
        Verification
            What was checked.

        Raises
        ------
        LedgerError
            If something does not fit.
        """
        found = verified(self._file)
        if against is not None:
            self.check_receipt(against)
        return found

    def check_receipt(self, receipt: Receipt | Mapping[str, Any]) -> None:
        """Check one receipt, kept outside the file, against the entry that it names.

        It is `verify(against=...)` without reading the rest.

        Parameters
        ----------
        receipt : Receipt or mapping
            The receipt of a charge.

        Raises
        ------
        LedgerError
            If the ledger does not have this entry.
        """
        check_receipt(self._file, Receipt.from_dict(receipt.to_dict() if isinstance(receipt, Receipt) else receipt))

    def _state(self) -> State:
        with self._file.connection() as connection:
            return self._file.state(connection)

    # -- spending ----------------------------------------------------------------------------------

    def check(self, event: Event) -> None:
        """Refuse now what `charge` would refuse later, so that no long read is wasted.

        Parameters
        ----------
        event : Event
            The event of a planned release.

        Raises
        ------
        BudgetExceeded
            If less is left than the event costs.

        Warns
        -----
        PrivacyWarning
            If the event has another adjacency or other rows per person than the entries before.
        """
        _check_texts(event)
        state = self._state()
        self._refuse_overdraft(state, event)
        self._warn_of_another_promise(state, event)

    def _warn_of_another_promise(self, state: State, event: Event) -> None:
        """Prices add up to one claim only if all entries protect against the same neighbours."""
        if state.promises_otherwise(event):
            warnings.warn(
                f"This ledger has entries with another adjacency or another rows_per_person than {event.adjacency!r} "
                f"and {event.rows_per_person}. "
                "Their prices do not add up to one claim. Use one ledger per kind of promise.",
                PrivacyWarning,
                stacklevel=5,
            )

    def charge(
        self,
        event: Event | float,
        delta: float = 0.0,
        *,
        mechanism: str = "outside privfit",
        dataset: str = "",
        note: str | None = None,
    ) -> Receipt:
        """Write one charge durably, or raise BudgetExceeded and write nothing.

        Parameters
        ----------
        event : Event or float
            The event of a release, or an epsilon for a release made by other means.
        delta : float, default=0.0
            The delta of a release made by other means.
        mechanism : str, default='outside privfit'
            The mechanism of a release made by other means.
        dataset : str, default=''
            Name of the table.
        note : str or None, default=None
            What the release is for.

        Returns
        -------
        Receipt
            Names the entry, and lets `verify` distinguish this history from an older or another one.

        Raises
        ------
        BudgetExceeded
            If less is left than the charge.
        LedgerError
            If the file cannot be trusted.
        """
        if not isinstance(event, Event):
            budget = Budget(event, delta)
            event = Event(mechanism, budget.epsilon, budget.delta, elsewhere=True)
        row = self._row(event, dataset, self._about if note is None else replace(self._about, note=note))
        with self._file.connection(write=True) as connection:
            state = self._file.state(connection)
            self._refuse_overdraft(state, event)
            self._last = self._file.append(connection, state, row, event)
        return self._last

    def _row(self, event: Event, dataset: str, about: About) -> Row:
        """What an entry says, but for its number and its place in the chain."""
        time = datetime.now(UTC).isoformat(timespec="seconds")
        _check_texts(event)
        return (
            time,
            checked_text("dataset", dataset),
            event.mechanism,
            event.epsilon,
            event.delta,
            event.to_json(),
            *astuple(about),
            VERSION,
        )

    def _refuse_overdraft(self, state: State, event: Event) -> None:
        after = state.after(event, composition.stated_epsilon(event.cost), "").total()
        if math.isinf(self.epsilon) or composition.affordable(after, Budget(self.epsilon, self.delta)):
            return
        left = self._left(state)
        delta = f" and delta {event.delta:.3g}" if event.delta else ""
        no_delta = (
            " This ledger has no delta: ask for delta=0, or make a ledger that has one (delta=1e-5)."
            if event.delta and not self.delta
            else ""
        )
        refusal = BudgetExceeded(
            f"epsilon {event.epsilon:.6g}{delta} was asked for, and the ledger has epsilon {left.epsilon:.6g} and "
            f"delta {left.delta:.3g} left "
            f"of epsilon {self.epsilon:.6g} and delta {self.delta:.3g}. Nothing was charged or released. Ask for less, "
            "or stop here: "
            f"a budget that grows is not a budget.{no_delta}"
        )
        refusal.remaining = left
        raise refusal

    def _refuse_another_budget(self, epsilon: float | None, delta: float | None) -> None:
        for name, asked, kept in (("epsilon", epsilon, self.epsilon), ("delta", delta, self.delta)):
            if asked is not None and number(asked) != kept:
                raise LedgerError(
                    f"The ledger {self.path.name!r} was made with {name}={kept:g}, and {name}={asked!r} was asked for. "
                    f"A budget does not change. Open it as it is: Ledger({self.path.name!r})."
                )

    # -- copies are references ---------------------------------------------------------------------

    def __copy__(self) -> Ledger:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Ledger:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        seen = (self._file.seen.entry, self._file.seen.head)
        return _reopen, (str(self.path), self._file.identity, (self.epsilon, self.delta), asdict(self._about), seen)

    def __repr__(self) -> str:
        return f"Ledger({self.path.name!r}, epsilon={self.epsilon:g}, delta={self.delta:g})"


def _reopen(
    path: str,
    identity: str,
    budget: tuple[float, float],
    about: Mapping[str, str] | None = None,
    seen: tuple[int, str] = (0, ""),
) -> Ledger:
    """A reference to a ledger.

    Whether its file is still there, still the same, and not rolled back is looked at when it is used.
    """
    ledger = Ledger.__new__(Ledger)
    ledger._file, ledger._about, ledger._last = (
        LedgerFile(Path(path), identity, *budget, Seen(*seen)),
        About(**(about or {})),
        None,
    )
    return ledger


def _check_texts(event: Event) -> None:
    """Refuse an event whose texts an entry cannot hold."""
    checked_text("mechanism", event.mechanism)
    for part in (*event.parts, *event.flat()):  # a repetition and what it repeats
        check_unicode("purpose", part.purpose)


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
    fits = ledger.n_entries
    if fits > 1:
        warnings.warn(
            f"{fits} private fits in this process have spent epsilon {ledger.spent!r} together, and no budget limits "
            "them. "
            "Pass ledger=pf.Ledger(epsilon=...) to set one.",
            PrivacyWarning,
            stacklevel=4,
        )
