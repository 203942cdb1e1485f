"""The hashes that chain entries together, the state at their head, and what every use of a ledger does with them.

Every entry's hash covers all that it says and the hash of the entry before it; the first one's covers the budget. Every
entry has a random nonce, so that no two charges have the same hash: not equal ones in the same second, not those of a
copy of the file, and not those of a file that was rolled back and charged again alike. So whoever knows the hash of
entry k (its *head*) can check whether entries 1 to k and the budget are still the same. There is no secret: who can
write the file can write another chain, and is found out by heads kept elsewhere, in reports, saved models and live
`Ledger` objects. docs/guide.md says what this protects from.

The state is one row: how many entries, their head, and the sums that their total depends on. It is written in the
transaction that appends an entry, so that a charge reads a bounded number of rows however many there are. check.py
compares it with all entries.
"""

from __future__ import annotations

import hashlib
import json
import re
import secrets
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from fractions import Fraction

from privfit.privacy.budget import SUMS, History, SplitPart, stated_epsilon
from privfit.privacy.errors import LedgerError
from privfit.privacy.event import Event
from privfit.privacy.ledger.entries import COLUMNS, MOST_ENTRIES, Damaged, Receipt, Row, StateRow, Value, read_event
from privfit.privacy.ledger.place import Place, Records, Snapshot, replaced

_KINDS = {"id": int, "epsilon": float, "delta": float}
_NONCE_BYTES = 16  # two of 2^40 entries have the same one with probability below 2^-48
# Raise it with any change to budget.order_for, budget._fixed_part or the rule of budget.History: the
# Renyi order is not stored but computed anew at each charge, and the proof needs one order for all charges to a file.
VERSION = 2
MAKE_SPLITS = (
    "CREATE TABLE {schema}.split (id TEXT PRIMARY KEY, name TEXT NOT NULL UNIQUE, key TEXT NOT NULL, "
    "identity TEXT NOT NULL, columns TEXT NOT NULL, share TEXT NOT NULL)"
)
"""The table of splits (splits.py); a file gets it with its first split."""
NEWEST = 64  # entries that every use checks against the chain: about a millisecond, and most ledgers are never longer
PAGE = 1_000  # entries read at a time: a long ledger is read in little memory, and nobody waits long for the lock


@dataclass(frozen=True)
class BudgetRow:
    """The row of a ledger's budget. `carried` entries were there before the file had a chain."""

    version: int
    identity: str
    epsilon: float
    delta: float
    created: str
    carried: int = 0

    @property
    def genesis(self) -> str:
        """What the first entry is linked to."""
        return digest(self.version, self.identity, self.epsilon, self.delta, self.created, self.carried)

    @classmethod
    def read(cls, rows: Sequence[Row]) -> BudgetRow | None:
        """The budget in the rows of a table of budgets; None if it is not one that this version can read."""
        version = rows[0][0] if len(rows) == 1 else None
        kinds = (int, str, float, float, str) if version == 1 else (int, str, float, float, str, int)
        if version not in (1, VERSION) or tuple(map(type, rows[0])) != kinds:
            return None
        budget = cls(*rows[0])  # type: ignore[arg-type]
        return budget if budget.epsilon > 0 and 0 <= budget.delta < 1 and budget.carried >= 0 else None


@dataclass(frozen=True)
class State:
    """A ledger after some entries. `head` is empty for a file of version 1, which has no chain."""

    budget: BudgetRow
    entries: int
    head: str
    history: History = field(default_factory=History)
    promise: tuple[str, int] | None = None
    """The adjacency and the rows per person of all entries that name them; the first ones, if they are `mixed`."""
    mixed: bool = False

    def total(self) -> tuple[Fraction, Fraction]:
        """What all entries cost together."""
        return self.history.total(self.budget.epsilon, self.budget.delta)

    def after(self, event: Event, stated: Fraction | None, head: str) -> State:
        """The state with one entry more. Prices add up to one guarantee only if all entries protect against the same
        neighbours; of a release made elsewhere that is not known.
        """
        own = (event.adjacency, event.rows_per_person)
        promise = self.promise if event.elsewhere or self.promise else own
        return replace(
            self,
            entries=self.entries + 1,
            head=head,
            history=self.history.after(event.cost, stated, self.budget.epsilon, self.budget.delta, event.of_split),
            promise=promise,
            mixed=self.mixed or (not event.elsewhere and promise != own),
        )

    def to_row(self) -> StateRow:
        """The row of the file: entries, head, sums, and a digest of these, so that no change in them goes unnoticed."""
        totals = json.dumps(
            {"history": history_fields(self.history), "promise": self.promise, "mixed": self.mixed}, sort_keys=True
        )
        return self.entries, self.head, totals, digest(self.budget.genesis, self.entries, self.head, totals)


def digest(*values: Value) -> str:
    """SHA-256 of plain values, as canonical JSON: floats as Python writes them, texts in ASCII."""
    return hashlib.sha256(json.dumps(values, separators=(",", ":")).encode("ascii")).hexdigest()


def history_fields(history: History) -> dict[str, str | bool | list[list[str]] | None]:
    """The sums of a history as plain values; fractions as text, which is exact. Without parts, none are named."""
    plain: dict[str, str | bool | list[list[str]] | None] = {
        name: str(value) if isinstance(value, Fraction) else value
        for name, value in vars(history).items()
        if name != "parts"
    }
    if history.parts:
        plain["parts"] = [[*own, *map(str, sums)] for own, sums in history.parts.items()]
    return plain


def is_row(row: Row) -> bool:
    """Whether what was read from a file has the types of an entry."""
    return all(type(value) is _KINDS.get(name, str) for name, value in zip(COLUMNS, row, strict=True))


# -- reading ---------------------------------------------------------------------------------------


def read_state(found: Snapshot, budget: BudgetRow) -> State:
    """The state of a ledger with this budget: its row is checked, and the newest entries against the chain."""
    if len(found.state) != 1:
        raise Damaged
    entries, head, totals, seal = found.state[0]
    if not (type(entries) is int and isinstance(head, str) and isinstance(totals, str) and isinstance(seal, str)):
        raise Damaged
    if seal != digest(budget.genesis, entries, head, totals):
        raise Damaged
    try:
        plain = json.loads(totals)
        promise = None if plain["promise"] is None else (str(plain["promise"][0]), int(plain["promise"][1]))
        state = State(budget, entries, head, read_history(plain["history"]), promise, bool(plain["mixed"]))
    except (ValueError, TypeError, KeyError, IndexError, AttributeError, ZeroDivisionError, RecursionError):
        raise Damaged from None
    _check_newest(list(found.newest), state)
    return state


def read_history(plain: Mapping[str, object]) -> History:
    """The history that `history_fields` wrote. Raises ValueError or TypeError for anything else."""
    given = dict(plain)
    for name in ("direct", "rho", "stated", "delta", "counted", "first"):
        text = given.get(name)
        if isinstance(text, str) and re.fullmatch(r"[0-9]+(/[0-9]+)?", text):
            given[name] = Fraction(text)
        elif name != "first" or text is not None:
            raise ValueError("a sum of prices is not a fraction of at least 0")
    if "parts" in given:
        given["parts"] = _read_parts(given["parts"])
    history = History(**given)  # type: ignore[arg-type]
    if not (isinstance(history.statable, bool) and isinstance(history.exposed, bool)):
        raise TypeError("a mark of a history is neither true nor false")
    return history


def _read_parts(plain: object) -> dict[SplitPart, tuple[Fraction, ...]]:
    """The sums of parts as `history_fields` wrote them."""
    found: dict[SplitPart, tuple[Fraction, ...]] = {}
    for line in plain if isinstance(plain, list) else [None]:
        split, part, *sums = line if isinstance(line, list) else [None, None]
        whole = all(isinstance(text, str) and re.fullmatch(r"[0-9]+(/[0-9]+)?", text) for text in sums)
        if not (isinstance(split, str) and isinstance(part, str) and whole and len(sums) == len(SUMS)):
            raise ValueError("the sums of a part are not fractions of at least 0")
        found[split, part] = tuple(map(Fraction, sums))
    return found


def _check_newest(rows: list[tuple[Row, str]], state: State) -> None:
    """The newest entries are there, in order, and linked up to the head; all of them, where they are few."""
    if len(rows) != min(state.entries, NEWEST + 1):
        raise Damaged
    head = state.budget.genesis
    if len(rows) > NEWEST:
        _, head = rows.pop(0)
    for place, (row, own) in enumerate(rows, state.entries - len(rows) + 1):
        if row[0] != place or not is_row(row) or own != digest(head, *row):
            raise Damaged
        head = own
    if head != state.head:
        raise Damaged


def head_at(records: Records, budget: BudgetRow, entry: int) -> str | None:
    """The head of the chain after so many entries; None if there are not as many."""
    if entry == 0 or budget.version == 1:
        return budget.genesis  # of version 1: of another budget row than any that was ever a head
    return records.head(entry) if 0 < entry <= MOST_ENTRIES else None


def read_rows(records: Records, budget: BudgetRow, after: int, most: int) -> list[tuple[Row, str]]:
    """Entries and their hashes, oldest first: at most so many of those after the entry of this number."""
    told = records.after(after, most, budget.version)
    if not all(is_row(row) for row, _ in told):
        raise Damaged
    return told


def replayed(records: Records, budget: BudgetRow) -> State:
    """The state of a ledger of version 1, which has no row for it, from all of its entries."""
    state = State(budget, 0, "")
    for row in _all_rows(records, budget):
        event = read_event(row)
        state = state.after(event, stated_epsilon(event.cost), "")
    return state


def _all_rows(records: Records, budget: BudgetRow) -> Iterator[Row]:
    """Every entry of a ledger of version 1, without gaps."""
    place = 0
    while page := read_rows(records, budget, place, PAGE):
        for row, _ in page:
            place += 1
            if row[0] != place:
                raise Damaged
            yield row


# -- writing ---------------------------------------------------------------------------------------


def appended(state: State, row: Row, event: Event) -> tuple[Row, State]:
    """The next entry, and the state after it. `row` lacks its number, the epsilon as stated and its nonce."""
    stated = stated_epsilon(event.cost)
    full = (state.entries + 1, *row, "" if stated is None else str(stated), secrets.token_hex(_NONCE_BYTES))
    return full, state.after(event, stated, digest(state.head, *full))


# -- every use -------------------------------------------------------------------------------------


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
