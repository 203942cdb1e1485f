"""The chain of a ledger's entries: every entry's hash covers all that it says and the hash of the entry before it.

The first entry's hash covers the budget. Every entry has a random nonce, so that no two charges have the same hash:
not equal ones in the same second, not those of a copy of the file, and not those of a file that was rolled back and
charged again alike. So whoever knows the hash of entry k (its *head*) can tell whether entries 1 to k and the budget
are still the same. There is no secret: who can write the file can write another chain, and is found out by heads kept
elsewhere, in reports, saved models and live `Ledger` objects. docs/guide.md says what this protects from.
"""

from __future__ import annotations

import hashlib
import json
import secrets
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from privfit.privacy.errors import LedgerError
from privfit.privacy.event import Event

COLUMNS = (
    *("id", "time", "dataset", "mechanism", "epsilon", "delta", "event"),  # all that version 1 had
    *("model", "target", "note", "owner", "version", "stated", "nonce"),
)
"""What an entry says, in the order in which it is hashed.

`stated` is `composition.stated_epsilon`, as a fraction, empty where there is none.
"""
STATED = COLUMNS.index("stated")
MOST_ENTRIES = 2**63 - 1  # the largest number that SQLite can look up
Row = tuple[Any, ...]
_KINDS = {"id": int, "epsilon": float, "delta": float}
_NONCE_BYTES = 16  # two of 2^40 entries have the same one with a chance below 2^-48
# characters of one text of an entry: far longer than any name of ours, and the millionth entry is still read in no time
_LONGEST = 2_000


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

    def to_dict(self) -> dict[str, Any]:
        """The entry as plain values."""
        return asdict(self)


@dataclass(frozen=True)
class Receipt:
    """What a charge leaves in the hands of who paid: which ledger, which entry, and the head of the chain at that
    entry.
    """

    ledger: str
    entry: int
    head: str

    def to_dict(self) -> dict[str, Any]:
        """The receipt as plain values."""
        return asdict(self)

    @classmethod
    def from_dict(cls, plain: Any) -> Receipt:
        """The receipt that `to_dict` wrote."""
        kinds = {"ledger": str, "entry": int, "head": str}
        fits = isinstance(plain, Mapping) and {name: type(value) for name, value in plain.items()} == kinds
        if not fits or not 0 < plain["entry"] <= MOST_ENTRIES:
            raise LedgerError(
                "A receipt was given that no charge has written; it has a ledger, an entry and a head. Give the one of "
                "a report or of a saved model."
            )
        return cls(**plain)


def digest(*values: Any) -> str:
    """SHA-256 of plain values, as canonical JSON: floats as Python writes them, texts in ASCII."""
    return hashlib.sha256(json.dumps(values, separators=(",", ":")).encode("ascii")).hexdigest()


def linked(previous: str, row: Row) -> str:
    """The hash of an entry that follows the one with the hash `previous` (for the first: the digest of the budget)."""
    return digest(previous, *row)


def new_nonce() -> str:
    """What tells an entry from all others that say the same."""
    return secrets.token_hex(_NONCE_BYTES)


def is_row(row: Row) -> bool:
    """Whether what was read from a file has the types of an entry."""
    return all(type(value) is _KINDS.get(name, str) for name, value in zip(COLUMNS, row, strict=True))


def checked_text(name: str, value: Any) -> str:
    """A text that an entry can hold."""
    wanted = (
        f"it is a text of at most {_LONGEST:,} characters, without a NUL. Write a shorter or a plainer one. Nothing "
        "was charged."
    )
    if not isinstance(value, str):
        raise LedgerError(f"An entry of a ledger was given a {name} of type {type(value).__name__}; {wanted}")
    if len(value) > _LONGEST or "\0" in value:
        with_nul = ", a NUL among them" if "\0" in value else ""
        raise LedgerError(f"An entry of a ledger was given a {name} of {len(value):,} characters{with_nul}; {wanted}")
    check_unicode(name, value)
    return value


def check_unicode(name: str, value: str) -> None:
    """Refuse a text that no file and no terminal can hold."""
    try:
        value.encode()
    except UnicodeEncodeError:
        raise LedgerError(
            f"An entry of a ledger was given a {name} that is no valid Unicode; it is a text of characters. "
            "Write a plainer one. Nothing was charged."
        ) from None
