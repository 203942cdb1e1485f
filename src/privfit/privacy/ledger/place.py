"""Where a ledger is kept: what a file and a database each fill in."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from privfit.privacy.errors import LedgerError
from privfit.privacy.ledger.entries import Damaged, Row, StateRow, Value

if TYPE_CHECKING:
    from privfit.privacy.ledger.chain import State


@dataclass(frozen=True)
class Snapshot:
    """What every use of a ledger reads: rows as they are, which nobody has checked. Of version 1 the budget alone."""

    budget: Sequence[Row]
    state: Sequence[Row] = ()
    """The row of the state, as `State.to_row` made it. Two rows, or none, mean damage."""
    newest: Sequence[tuple[Row, str]] = ()
    """The newest entries with their hashes, oldest of them first: one more than `NEWEST`, where there are as many."""


class Records(ABC):
    """The rows of a ledger inside one transaction: what a file and a database each do in their own SQL."""

    @abstractmethod
    def budget(self) -> Sequence[Row]:
        """The rows of the table of budgets."""

    @abstractmethod
    def snapshot(self) -> Snapshot:
        """The budget, the state and the newest entries."""

    @abstractmethod
    def after(self, entry: int, most: int, version: int) -> list[tuple[Row, str]]:
        """Entries that follow the one of this number, oldest first, with their hashes."""

    @abstractmethod
    def head(self, entry: int) -> str | None:
        """The hash of an entry; None if there is no such entry."""

    @abstractmethod
    def commit(self, added: Iterable[tuple[Row, StateRow]]) -> None:
        """Write entries, at least one, each with the state after it, whose head is the entry's hash, and make all of it
        durable, or raise.
        """

    @abstractmethod
    def ask(self, query: str, *values: Value) -> list[Row]:
        """The rows of a statement in which `{schema}.` stands before names of tables and `%s` for values."""

    @abstractmethod
    def has_splits(self) -> bool:
        """Whether there is a table of splits: older ledgers have none."""

    def upgraded(self, old: State) -> State:
        """The state after the ledger was turned from an older version into this one; only files are that old."""
        raise Damaged


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


def replaced(place: Place) -> LedgerError:
    """The refusal of a ledger that is not the one that was opened."""
    return LedgerError(
        f"The ledger {place.name!r} was replaced by another one. Nothing was charged or released. Restore the first "
        f"{place.kind}."
    )
