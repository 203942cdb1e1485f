"""What a ledger shows: its budget, what is spent and left, its entries, and whether they are in order."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any

from privfit.privacy.budget import Amount, History, exact, stated_epsilon
from privfit.privacy.errors import LedgerError
from privfit.privacy.ledger.chain import PAGE, PlacedLedger, State, read_rows
from privfit.privacy.ledger.check import Verification, check_receipt, verified
from privfit.privacy.ledger.entries import Entry, Receipt, read_entry
from privfit.privacy.ledger.file import FilePlace
from privfit.report.ledger import draw_ledger
from privfit.report.notebook import folded, fragment, table

MOST_DRAWN = 500
"""Entries of a drawing: more cannot be distinguished on a page. Each costs a total, a millisecond at most."""
MOST_LISTED = 10
"""Entries that a notebook lists: less than a screen. Totals are over all. Chosen, not measured."""


class LedgerReading:
    """The part of a ledger that reads it and never writes to it."""

    _placed: PlacedLedger

    @property
    def path(self) -> Path | str:
        """The ledger's file, or its address in a database, without a password.

        Returns
        -------
        Path or str
            What opens the ledger again.
        """
        place = self._placed.place
        return place.path if isinstance(place, FilePlace) else str(place)

    @property
    def name(self) -> str:
        """What sentences call the ledger: the name of its file, or its name in a database.

        Returns
        -------
        str
            The name.
        """
        return self._placed.place.name

    @property
    def epsilon(self) -> float:
        """Epsilon of the whole budget.

        Returns
        -------
        float
            The epsilon.
        """
        return self._placed.epsilon

    @property
    def delta(self) -> float:
        """Delta of the whole budget.

        Returns
        -------
        float
            The delta.
        """
        return self._placed.delta

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
        return left(self._state())

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
            raise LedgerError(f"last={last!r} was given; it is an integer of at least 0. Write entries(last=20).")
        end = self.n_entries
        place = 0 if last is None else max(end - last, 0)
        while place < end:
            page = self._page(place, min(PAGE, end - place))
            yield from page
            place += len(page)

    def _page(self, after: int, most: int) -> list[Entry]:
        with self._placed.opened() as (records, state):
            rows = read_rows(records, state.budget, after, most)
            if len(rows) != most:
                raise self._placed.damaged()
            return [read_entry(row, head) for row, head in rows]

    def plot(self, path: str | Path | None = None) -> Any:
        """Draw how much was spent in all after each entry, and the budget. Needs the extra `plots`.

        Parameters
        ----------
        path : str, Path or None, default=None
            Where to write a PNG, SVG or PDF file; None writes none.

        Returns
        -------
        matplotlib.figure.Figure
            The drawing.
        """
        drawn = self._running_totals()
        facts = {
            "name": self.name,
            "epsilon": self.epsilon,
            "n_entries": drawn[-1][0].id if drawn else 0,
            "numbers": [entry.id for entry, _ in drawn],
            "entries": [(entry.time, total) for entry, total in drawn],
        }
        return draw_ledger(facts, path)

    def _repr_html_(self) -> str:
        spent, left = self.spent, self.remaining
        sums = [("budget", self.epsilon, self.delta), ("spent", spent.epsilon, spent.delta)]
        newest = [(one.id, one.time, one.model, one.mechanism, one.epsilon) for one in self.entries(MOST_LISTED)]
        head = ("entry", "time (UTC)", "model", "mechanism", "epsilon")
        return fragment(
            table(f"Ledger {self.name}", ("what", "epsilon", "delta"), [*sums, ("left", left.epsilon, left.delta)]),
            folded(f"{self.n_entries:,} entries", table("The newest entries", head, newest)),
        )

    def _running_totals(self) -> list[tuple[Entry, float]]:
        """Entries and the epsilon spent after each, at most MOST_DRAWN of them; the last one is among them."""
        found: list[tuple[Entry, float]] = []
        history, count = History(), self.n_entries
        every = max(1, -(-count // MOST_DRAWN))
        for entry in self.iter_entries():
            event = entry.event
            stated = stated_epsilon(event.cost)
            history = history.after(event.cost, stated, self.epsilon, self.delta, event.of_split)
            if entry.id % every == 0 or entry.id == count:
                found.append((entry, _not_below(history.total(self.epsilon, self.delta)[0])))
        return found

    def verify(self, against: Receipt | Mapping[str, object] | None = None) -> Verification:
        """Read the whole ledger and check it.

        Every entry is checked against the chain of hashes and against its own event, and the sums against all entries.

        Parameters
        ----------
        against : Receipt, mapping or None, default=None
            The receipt of a charge, kept outside the ledger (`model.report_.receipt`): an older copy of the ledger,
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
        found = verified(self._placed)
        if against is not None:
            self.check_receipt(against)
        return found

    def check_receipt(self, receipt: Receipt | Mapping[str, object]) -> None:
        """Check one receipt, kept outside the ledger, against the entry that it names.

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
        check_receipt(self._placed, Receipt.from_dict(receipt.to_dict() if isinstance(receipt, Receipt) else receipt))

    def _state(self) -> State:
        with self._placed.opened() as (_, state):
            return state


def left(state: State) -> Amount:
    """What is left to spend."""
    budget = state.budget
    if math.isinf(budget.epsilon):
        return Amount(math.inf, budget.delta)
    spent = state.total()
    return Amount(_not_above(exact(budget.epsilon) - spent[0]), _not_above(exact(budget.delta) - spent[1]))


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
