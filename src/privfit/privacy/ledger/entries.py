"""What a ledger's entries say, as rows and as a reader wants them, and the receipt that a charge leaves."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import lru_cache

from privfit.privacy.budget import number
from privfit.privacy.errors import LedgerError
from privfit.privacy.event import Event

Value = str | int | float
Row = tuple[Value, ...]
StateRow = tuple[int, str, str, str]

COLUMNS = (
    *("id", "time", "dataset", "mechanism", "epsilon", "delta", "event"),  # all that version 1 had
    *("model", "target", "note", "owner", "version", "stated", "nonce"),
)
"""What an entry says, in the order in which it is hashed.

`stated` is `budget.stated_epsilon`, as a fraction, empty where there is none.
"""
STATED = COLUMNS.index("stated")
MOST_ENTRIES = 2**63 - 1  # the largest number that SQLite can look up


class Damaged(Exception):
    """What a ledger says contradicts itself; the ledger turns this into its own error."""


@dataclass(frozen=True)
class Entry:
    """One line of a ledger: what was released, at which price, and what for."""

    id: int
    time: str
    dataset: str
    mechanism: str
    epsilon: float
    delta: float
    event: Event
    model: str = ""
    target: str = ""
    note: str = ""
    owner: str = ""
    version: str = ""
    hash: str = ""

    def to_dict(self) -> dict[str, object]:
        """The entry as plain values: the event as it was stated, without what is made of its price and its split."""
        plain = asdict(self)
        del plain["event"]["cost"], plain["event"]["of_split"]
        return plain


@dataclass(frozen=True)
class Receipt:
    """What a charge leaves in the hands of who paid: which ledger, which entry, and the head of the chain at that
    entry.
    """

    ledger: str
    entry: int
    head: str

    def to_dict(self) -> dict[str, object]:
        """The receipt as plain values."""
        return asdict(self)

    @classmethod
    def from_dict(cls, plain: object) -> Receipt:
        """The receipt that `to_dict` wrote."""
        given = dict(plain) if isinstance(plain, Mapping) else {}
        kinds = {"ledger": str, "entry": int, "head": str}
        fits = {name: type(value) for name, value in given.items()} == kinds
        if not fits or not 0 < given["entry"] <= MOST_ENTRIES:
            raise LedgerError(
                "A receipt was given that no charge has written; it has a ledger, an entry and a head. Give the one of "
                "a report or of a saved model."
            )
        return cls(**given)


def read_event(row: Row) -> Event:
    """The event of an entry, which has the price that the entry states."""
    try:
        event = _parsed(str(row[6]))
    except (ValueError, TypeError, AttributeError, OverflowError, RecursionError):
        raise Damaged from None
    if (event.epsilon, event.delta, event.mechanism) != (number(row[4]), number(row[5]), row[3]):
        raise Damaged
    return event


@lru_cache(maxsize=1 << 10)  # fits often repeat; a thousand texts are a few hundred kilobytes
def _parsed(text: str) -> Event:
    return Event.from_json(text)


def read_entry(row: Row, head: str) -> Entry:
    """An entry as a reader wants it: its event in place of the event's text."""
    told: dict[str, object] = dict(zip(COLUMNS[:STATED], row, strict=False))
    return Entry(**{**told, "event": read_event(row), "hash": head})  # type: ignore[arg-type]
