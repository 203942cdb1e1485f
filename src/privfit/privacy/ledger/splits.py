"""Splits of a table into parts: kept by its ledger, secret, and the same whenever they are opened again.

A split's number is a hash of all that decides it, its key among them, and of the ledger. Entries name it, and their
chain covers it: a split whose key was changed is another one, which no entry names. Whoever can charge a ledger can
read its keys; roles that may only read one in a database cannot.
"""

from __future__ import annotations

import json
import secrets
from dataclasses import dataclass, replace
from typing import Literal

from privfit.privacy.errors import LedgerError
from privfit.privacy.event import Event
from privfit.privacy.ledger.chain import MAKE_SPLITS, PlacedLedger, digest
from privfit.privacy.ledger.entries import Damaged
from privfit.privacy.ledger.place import Records

Identity = Literal["person", "content"]

KEY_BYTES = 32
"""Two keys of SipHash: of persons or contents, and of the part."""
PARTS = ("fit", "evaluate")
_FIELDS = "id, name, key, identity, columns, share"


@dataclass(frozen=True)
class Split:
    """What decides the part of every row: who or what has a part, the columns that a release may read, the share of
    rows to evaluate on, as a text, and the secret key.
    """

    id: str
    name: str
    key: str
    identity: Identity
    columns: str
    share: str

    def __repr__(self) -> str:  # without the key
        return f"Split({self.name!r}, by {self.identity}, share {self.share})"

    def number(self, ledger: str) -> str:
        """The number of a split that all this decides, in this ledger."""
        return digest("split", ledger, self.name, self.key, self.identity, self.columns, self.share)[:32]

    def event(self, event: Event, part: str, promised_rows: int) -> Event:
        """The event as one of a part, where it may be charged as one.

        Several rows of a person may be in both parts, unless persons have parts.
        """
        if self.identity != "person" and promised_rows > 1:
            return event
        return replace(event, split=self.id, split_part=part)


def kept_split(placed: PlacedLedger, name: str, identity: Identity, columns: object, share: str) -> Split:
    """The split of this name, made now if the ledger has none; refuses one that was made of something else."""
    wanted = Split("", name, "", identity, json.dumps(columns, sort_keys=True), share)
    with placed.opened(write=True) as (records, state):
        ledger = state.budget.identity
        found = read_splits(records, ledger).get(name)
        if found is None:
            made = replace(wanted, key=secrets.token_hex(KEY_BYTES))
            found = replace(made, id=made.number(ledger))
            if not records.has_splits():
                records.ask(MAKE_SPLITS)
            values = (found.id, found.name, found.key, found.identity, found.columns, found.share)
            records.ask(f"INSERT INTO {{schema}}.split ({_FIELDS}) VALUES (%s, %s, %s, %s, %s, %s)", *values)
            records.ask("COMMIT")
    if replace(found, id="", key="") != wanted:
        raise LedgerError(
            f"The ledger {placed.place.name!r} has a split {name!r} of other columns, persons or another share. Open "
            "it as it was made, or give another name: then it is a new split, whose releases add to all others. "
            "Nothing was charged."
        )
    return found


def read_splits(records: Records, ledger: str) -> dict[str, Split]:
    """All splits of a ledger by name, each of them whole."""
    if not records.has_splits():
        return {}
    rows = records.ask(f"SELECT {_FIELDS} FROM {{schema}}.split")
    found = [Split(*map(str, row)) for row in rows]  # type: ignore[arg-type]
    if any(split.id != split.number(ledger) for split in found):
        raise Damaged
    return {split.name: split for split in found}


def refuse_foreign_part(records: Records, ledger: str, name: str, event: Event) -> None:
    """Refuse a release on a part of a split that this ledger has not made: it cannot know which rows are whose."""
    known = {split.id for split in read_splits(records, ledger).values()}
    if event.split not in known or event.split_part not in PARTS:
        raise LedgerError(
            f"A release on the part {event.split_part!r} of a split was to be charged to the ledger {name!r}, which "
            "has not made this split. Give the ledger that pf.holdout was given. Nothing was charged or released."
        )
