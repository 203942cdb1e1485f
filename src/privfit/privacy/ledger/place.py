"""Where a ledger is kept, and the order of steps at every use, which a file and a database share."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from typing import ClassVar

from privfit.privacy.errors import LedgerError
from privfit.privacy.event import Event
from privfit.privacy.ledger.chain import (
    VERSION,
    BudgetRow,
    Damaged,
    Receipt,
    Records,
    Row,
    State,
    appended,
    head_at,
    read_state,
    replayed,
)


class Place(ABC):
    """Where a ledger is kept. As a text it is what opens the ledger again; it holds no password."""

    kind: ClassVar[str]
    """What is restored from a backup when something was lost, in a word."""

    name: str
    """What sentences call the ledger."""

    @property
    def within(self) -> Place | None:
        """The ledger that the budget of this one is taken from; None if it stands by itself."""
        return None

    @abstractmethod
    def exists(self) -> bool:
        """Whether there is something at this place."""

    @abstractmethod
    def make(self, epsilon: float, delta: float, records: Records | None = None) -> None:
        """A new ledger, whole or not at all. If another process was first, its ledger stays. One that is made within
        another is made in the transaction of that one's `records`.
        """

    @abstractmethod
    def transaction(self, write: bool) -> AbstractContextManager[Records]:
        """The rows of the ledger, in a transaction that is undone unless it is committed.

        Nobody else commits a charge while one that writes is open. Whatever goes wrong is a LedgerError.
        """

    def check_roles(self, roles: Sequence[str]) -> None:
        """Refuse names that rights cannot be granted to."""
        if roles:
            raise LedgerError(
                f"Roles were named for the ledger {self.name!r}, which is a file: who may use it is a matter of the "
                "file system (chmod, groups). Leave out --spender and --reader, or give postgresql://..."
            )

    def grant(self, *, spenders: Sequence[str] = (), readers: Sequence[str] = ()) -> None:
        """Let roles read the ledger, or read and charge it. All of them, or none."""
        self.check_roles([*spenders, *readers])

    def marks(self, identity: str) -> list[tuple[int, str]]:
        """Heads that were noted beside the ledger with this identity."""
        return []

    def mark(self, identity: str, state: State) -> None:  # noqa: B027  # a place without marks does nothing here
        """Note the head beside the ledger, where that is possible."""


@dataclass
class Seen:
    """The newest head that this process has seen of a ledger; empty if none."""

    entry: int = 0
    head: str = ""


@dataclass(frozen=True)
class PlacedLedger:
    """A place, and what the ledger there must say of itself at every use: its identity, its whole budget, and the
    heads that were seen before.
    """

    place: Place
    identity: str
    epsilon: float
    delta: float
    seen: Seen = field(default_factory=Seen, compare=False)

    @contextmanager
    def opened(self, *, write: bool = False) -> Iterator[tuple[Records, State]]:
        """A fresh transaction, and the state of this very ledger, which goes on from every head that was seen before:
        safe across threads, forks and processes, and a ledger that vanished, was replaced or rolled back is noticed
        every time.
        """
        with self.place.transaction(write) as records:
            try:
                heads = [(self.seen.entry, self.seen.head)] if self.seen.head else []  # before anything is read
                heads += self.place.marks(self.identity)
                found = records.snapshot()
                budget, known = BudgetRow.read(found.budget), (self.identity, self.epsilon, self.delta)
                if budget is None or (budget.identity, budget.epsilon, budget.delta) != known:
                    raise replaced(self.place)
                state = replayed(records, budget) if budget.version == 1 else read_state(found, budget)
                newest = {row[0]: own for row, own in found.newest}
                for entry, head in heads:
                    if head != (newest.get(entry) or head_at(records, budget, entry)):
                        raise self._rolled_back(entry)
                self.seen.entry, self.seen.head = state.entries, state.head
                yield records, state
            except Damaged:
                raise self.damaged() from None

    def append(self, records: Records, state: State, row: Row, event: Event) -> Receipt:
        """Write an entry durably. The first one to a ledger of version 1 upgrades it in the same transaction."""
        if state.budget.version < VERSION:
            state = records.upgraded(state)
        entry, state = appended(state, row, event)
        records.commit([(entry, state.to_row())])
        self.seen.entry, self.seen.head = state.entries, state.head
        self.place.mark(self.identity, state)
        return Receipt(self.identity, state.entries, state.head)

    def _rolled_back(self, entry: int) -> LedgerError:
        return LedgerError(
            f"The ledger {self.place.name!r} was rolled back or rewritten: it no longer has entry {entry} as it was "
            f"seen before. Nothing was charged or released. Restore the newest copy of the {self.place.kind}."
        )

    def damaged(self, where: str = "entries are missing or were changed") -> LedgerError:
        """The refusal of a ledger that contradicts itself."""
        return LedgerError(
            f"The ledger {self.place.name!r} is damaged: {where}. Nothing was charged or released. Restore the "
            f"{self.place.kind}."
        )


def open_place(place: Place) -> PlacedLedger:
    """The ledger at a place."""
    with place.transaction(write=False) as records:
        budget = BudgetRow.read(records.budget())
    if budget is None:
        raise LedgerError(
            f"The {place.kind} {place.name!r} is not a ledger of this version. Nothing was charged. Use the "
            f"{place.kind} that Ledger(...) made."
        )
    return PlacedLedger(place, budget.identity, budget.epsilon, budget.delta)


def replaced(place: Place) -> LedgerError:
    """The refusal of a ledger that is not the one that was opened."""
    return LedgerError(
        f"The ledger {place.name!r} was replaced by another one. Nothing was charged or released. Restore the first "
        f"{place.kind}."
    )
