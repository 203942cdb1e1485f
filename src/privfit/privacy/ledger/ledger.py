"""The ledger: a budget that cannot be overdrawn, written down before any noise is drawn."""

from __future__ import annotations

import math
import os
import threading
import warnings
from collections.abc import Mapping
from dataclasses import asdict, astuple, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from privfit.privacy.budget import Budget, exact, number, stated_epsilon
from privfit.privacy.errors import BudgetExceeded, LedgerError, PrivacyWarning
from privfit.privacy.event import Event
from privfit.privacy.ledger.chain import PlacedLedger, Seen, State, open_place
from privfit.privacy.ledger.entries import Receipt, Row
from privfit.privacy.ledger.file import FilePlace, resolved_place
from privfit.privacy.ledger.making import temporary_place
from privfit.privacy.ledger.place import Place
from privfit.privacy.ledger.postgresql import PREFIXES, known_place, place_in_database
from privfit.privacy.ledger.reading import LedgerReading, left
from privfit.privacy.ledger.splits import Identity, Split, kept_split, refuse_foreign_part
from privfit.version import VERSION

LONGEST = 2_000
"""Characters of one text of an entry: far longer than any name of ours, and the millionth entry is still read in no
time."""


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


def checked_text(name: str, value: object) -> str:
    """A text that an entry can hold, and every file and terminal."""
    if not isinstance(value, str):
        given = f"of type {type(value).__name__}"
    elif len(value) > LONGEST or "\0" in value:
        with_nul = ", a NUL among them" if "\0" in value else ""
        given = f"of {len(value):,} characters{with_nul}"
    elif value.encode(errors="ignore").decode() != value:
        given = "that is no valid Unicode"
    else:
        return value
    raise LedgerError(
        f"An entry of a ledger was given a {name} {given}; it is a text of at most {LONGEST:,} characters, without a "
        "NUL. Write a shorter or a plainer one. Nothing was charged."
    )


def place_of(path: str | os.PathLike[str], *, resolved: bool = False) -> Place:
    """Where a path or an address leads to; one that is resolved already is taken as it is."""
    if isinstance(path, str) and path.startswith(PREFIXES):
        return known_place(path) if resolved else place_in_database(path)
    return FilePlace(Path(path) if resolved else resolved_place(path))


class Ledger(LedgerReading):
    """A privacy budget in a file or a database, shared by every process that opens it.

    Copies, clones and pickles of a ledger are references to the same one, so cross-validation, joblib workers and
    refits all charge the one budget. A ledger that has gone missing is refused, never started again.

    Parameters
    ----------
    path : str, PathLike or None, default=None
        The SQLite file, or `postgresql://user@host/database?ledger=people` (docs/ledger.md). None makes a temporary
        file that lives as long as this process.
    epsilon : float or None, default=None
        The whole budget. Needed to make a ledger; to open an existing one leave it out or repeat it.
    delta : float or None, default=None
        The delta of the whole budget, in the same way.
    owner : str, default=''
        Who answers for what is charged through this object; every entry says so. It is not a property of the ledger:
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
    itself does not, and `has_mixed_promises` shows it afterwards.

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

    _about: About
    last_receipt: Receipt | None
    """Receipt of the last charge that was made through this very object; None if there was none."""

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
        self._about, self.last_receipt = About(owner=owner), None
        place = FilePlace(temporary_place()) if path is None else place_of(path)
        if not place.exists():
            if epsilon is None:
                raise LedgerError(
                    f"There is no ledger at {place.name!r}, and a new one needs a budget. "
                    f"Check the path, or make one: Ledger({place.name!r}, epsilon=1.0)."
                )
            _make(place, epsilon, 0.0 if delta is None else delta)
        self._placed = open_place(place)
        for name, asked, kept in (("epsilon", epsilon, self.epsilon), ("delta", delta, self.delta)):
            if asked is not None and number(asked) != kept:
                raise LedgerError(
                    f"The ledger {self.name!r} was made with {name}={kept:g}, and {name}={asked!r} was asked for. "
                    f"A budget does not change. Open it as it is: Ledger({self.name!r})."
                )

    def with_note(self, note: str) -> Ledger:
        """Return the same ledger for entries with this note.

        Parameters
        ----------
        note : str
            What the entries are for.

        Returns
        -------
        Ledger
            A reference to the same ledger.
        """
        return self.describing(note=note)

    def describing(self, *, model: str | None = None, target: str | None = None, note: str | None = None) -> Ledger:
        """Return the same ledger for the entries of one fit.

        Parameters
        ----------
        model : str or None, default=None
            Public name of the estimator; None leaves it as it is.
        target : str or None, default=None
            Public name of its target, in the same way.
        note : str or None, default=None
            What the entries are for, in the same way.

        Returns
        -------
        Ledger
            A reference to the same ledger.
        """
        given = {"model": model, "target": target, "note": note}
        view = type(self).__new__(type(self))
        view.__dict__.update(self.__dict__)
        view._about = replace(self._about, **{name: text for name, text in given.items() if text is not None})
        view.last_receipt = None
        return view

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
        with self._placed.opened() as (records, state):
            if event.split:
                refuse_foreign_part(records, state.budget.identity, self.name, event)
            self._refuse_beyond(state, event)
        if state.mixed or state.promise not in (None, (event.adjacency, event.rows_per_person)):
            warnings.warn(
                f"This ledger has entries with another adjacency or another rows_per_person than {event.adjacency!r} "
                f"and {event.rows_per_person}. Their prices do not add up to one guarantee. Use one ledger for each.",
                PrivacyWarning,
                stacklevel=4,
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
            If the ledger cannot be trusted.
        """
        if not isinstance(event, Event):
            budget = Budget(event, delta)
            event = Event(mechanism, budget.epsilon, budget.delta, elsewhere=True)
        about = self._about if note is None else replace(self._about, note=note)
        row = _row(event, checked_text("dataset", dataset), about)
        with self._placed.opened(write=True) as (records, state):
            if event.split:
                refuse_foreign_part(records, state.budget.identity, self.name, event)
            self._refuse_beyond(state, event)
            self.last_receipt = self._placed.append(records, state, row, event)
        return self.last_receipt

    def split(self, name: str, identity: Identity, columns: object, share: str) -> Split:
        """Return the split of the table of this name, made and kept now if there is none; `pf.holdout` calls it.

        Parameters
        ----------
        name : str
            Name of the split.
        identity : {'person', 'content'}
            Who or what has a part.
        columns : object
            What identities are made of, as plain values.
        share : str
            The share of identities to evaluate on, as a fraction.

        Returns
        -------
        Split
            The split, with its key.
        """
        return kept_split(self._placed, checked_text("split", name), identity, columns, share)

    def _refuse_beyond(self, state: State, event: Event) -> None:
        """Refuse an event that the budget, or an entry, cannot hold."""
        checked_text("mechanism", event.mechanism)
        for part in (*event.parts, *event.flat()):  # a repetition and what it repeats
            checked_text("purpose", part.purpose)
        budget, cost, of_split = state.budget, event.cost, event.of_split
        after = state.history.after(cost, stated_epsilon(cost), budget.epsilon, budget.delta, of_split)
        epsilon, delta = after.total(budget.epsilon, budget.delta)
        if budget.epsilon < math.inf and (epsilon > exact(budget.epsilon) or delta > exact(budget.delta)):
            raise _refusal(state, event)

    # -- copies are references ---------------------------------------------------------------------

    def __copy__(self) -> Ledger:
        return self

    def __deepcopy__(self, memo: dict[int, object]) -> Ledger:
        return self

    def __reduce__(self) -> tuple[object, ...]:
        seen = (self._placed.seen.entry, self._placed.seen.head)
        return _reopen, (str(self.path), self._placed.identity, (self.epsilon, self.delta), asdict(self._about), seen)

    def __repr__(self) -> str:
        return f"Ledger({self.name!r}, epsilon={self.epsilon:g}, delta={self.delta:g})"


def _row(event: Event, dataset: str, about: About) -> Row:
    """What an entry says, but for its number, the epsilon as stated and its nonce."""
    time = datetime.now(UTC).isoformat(timespec="seconds")
    return (time, dataset, event.mechanism, event.epsilon, event.delta, event.to_json(), *astuple(about), VERSION)


def _make(place: Place, epsilon: float, delta: float) -> None:
    """A new ledger. The budget of one within another is charged to that one, in the transaction that makes it."""
    if place.within is None:
        place.make(epsilon, delta)
        return
    budget, whole = Budget(epsilon, delta), Ledger(str(place.within))
    event = Event("budget of a project", budget.epsilon, budget.delta, elsewhere=True)
    with whole._placed.opened(write=True) as (records, state):
        if not place.exists():  # behind the lock: who was first has committed
            whole._refuse_beyond(state, event)
            place.make(budget.epsilon, budget.delta, records)
            whole._placed.append(records, state, _row(event, "", About(note=place.name)), event)


def _reopen(
    path: str,
    identity: str,
    budget: tuple[float, float],
    about: Mapping[str, str] | None = None,
    seen: tuple[int, str] = (0, ""),
) -> Ledger:
    """A reference to a ledger.

    Whether it is still there, still the same, and not rolled back is looked at when it is used.
    """
    ledger = Ledger.__new__(Ledger)
    ledger._placed = PlacedLedger(place_of(path, resolved=True), identity, *budget, Seen(*seen))
    ledger._about, ledger.last_receipt = About(**(about or {})), None
    return ledger


def _refusal(state: State, event: Event) -> BudgetExceeded:
    """What is said to who asks for more than is left."""
    budget, remaining = state.budget, left(state)
    asked = f"epsilon {event.epsilon:.6g}" + (f" and delta {event.delta:.3g}" if event.delta else "")
    cure = "Ask for less, or stop here: a budget that grows is not a budget."
    if event.delta and not budget.delta:
        cure += " This ledger has no delta: ask for delta=0, or make a ledger that has one (delta=1e-5)."
    refusal = BudgetExceeded(
        f"{asked} was asked for, and the ledger has epsilon {remaining.epsilon:.6g} and delta {remaining.delta:.3g} "
        f"left of epsilon {budget.epsilon:.6g} and delta {budget.delta:.3g}. Nothing was charged or released. {cure}"
    )
    refusal.remaining = remaining
    return refusal


_process_ledger: Ledger | None = None
_process_lock = threading.Lock()


def process_ledger() -> Ledger:
    """The ledger of fits that were given none: without a cap, it only keeps the running total of this process."""
    global _process_ledger
    with _process_lock:
        if _process_ledger is None:
            _process_ledger = Ledger(epsilon=math.inf)
        return _process_ledger


def warn_of_running_total(ledger: Ledger, frames: int = 1) -> None:
    """Warn the user of a process-wide ledger what all fits so far cost together, from the second fit on.

    `frames` is how many calls the caller is away from the user's line, which the warning names.
    """
    fits = ledger.n_entries
    if fits > 1:
        warnings.warn(
            f"{fits} private fits in this process have spent epsilon {ledger.spent!r} together, and no budget limits "
            "them. "
            "Pass ledger=pf.Ledger(epsilon=...) to set one.",
            PrivacyWarning,
            stacklevel=2 + frames,
        )
