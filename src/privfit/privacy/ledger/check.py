"""The whole of a ledger checked: entries against their chain, sums against entries, and the chain against receipts kept
elsewhere.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from privfit.privacy.budget import stated_epsilon
from privfit.privacy.errors import LedgerError
from privfit.privacy.event import Event
from privfit.privacy.ledger.chain import PAGE, PlacedLedger, State, digest, head_at, read_rows
from privfit.privacy.ledger.entries import STATED, Damaged, Receipt, Row, read_event

_CLOSE = 1 - Fraction(1, 10**9)
"""The least ratio of a stated epsilon to the one computed here: logarithms of other machines are rounded otherwise, by
far less than this."""


@dataclass(frozen=True)
class Verification:
    """What was found in order: so many entries, of which the first `unprotected` were written before the file had a
    chain.
    """

    ledger: str
    entries: int
    unprotected: int
    head: str


def verified(ledger: PlacedLedger) -> Verification:
    """Read all entries and check them; refuse what does not fit, and name the first entry that does not."""
    with ledger.opened() as (_, state):
        pass
    if state.budget.version == 1:  # reading its state has read all entries; there is nothing else to compare them with
        unprotected = state.entries
    else:
        _replay(ledger, state)
        unprotected = state.budget.carried
    return Verification(ledger.identity, state.entries, unprotected, state.head)


def _replay(ledger: PlacedLedger, state: State) -> None:
    """All entries page by page: those that are there when it begins, whatever is charged meanwhile."""
    so_far = State(state.budget, 0, state.budget.genesis)
    while so_far.entries < state.entries:
        with ledger.opened() as (records, _):
            page = read_rows(records, state.budget, so_far.entries, min(PAGE, state.entries - so_far.entries))
        if not page:
            raise ledger.damaged(f"entry {so_far.entries + 1} is missing")
        for row, head in page:
            so_far = _checked(ledger, so_far, row, head)
    if so_far.head != state.head:
        raise ledger.damaged("the chain of its entries does not end at its head")
    if so_far != state:
        raise ledger.damaged("its sums are not those of its entries")


def _checked(ledger: PlacedLedger, so_far: State, row: Row, head: str) -> State:
    place = so_far.entries + 1
    if row[0] != place:
        raise ledger.damaged(f"entry {place} is missing")
    if head != digest(so_far.head, *row):
        raise ledger.damaged(f"entry {place} was changed, or stands where another stood")
    try:
        event = read_event(row)
        return so_far.after(event, _stated(row, event), head)
    except Damaged:
        raise ledger.damaged(f"entry {place} contradicts itself") from None


def _stated(row: Row, event: Event) -> Fraction | None:
    """The epsilon as stated that the entry was charged with, which is what its price implies, but for the last digits
    of a logarithm.
    """
    told, implied = row[STATED], stated_epsilon(event.cost)
    if implied is None or not told:
        if implied is not None or told:
            raise Damaged
        return None
    try:
        stated = Fraction(str(told))
    except (ValueError, ZeroDivisionError):
        raise Damaged from None
    if stated < implied * _CLOSE:
        raise Damaged
    return stated


def check_receipt(ledger: PlacedLedger, receipt: Receipt) -> None:
    """Refuse a ledger that is not, or no longer, the one that the receipt is of.

    Constant work: one entry is looked up.
    """
    name = ledger.place.name
    if receipt.ledger != ledger.identity:
        raise LedgerError(f"The receipt is of another ledger than {name!r}. Give the ledger that was charged.")
    with ledger.opened() as (records, state):
        head = head_at(records, state.budget, receipt.entry)
    if receipt.entry > state.entries:
        raise LedgerError(
            f"The receipt is of entry {receipt.entry}, and the ledger {name!r} has {state.entries}: it is an older "
            "copy. "
            f"What was charged since is missing. Restore the newest copy of the {ledger.place.kind}."
        )
    if head != receipt.head:
        raise LedgerError(
            f"Entry {receipt.entry} of the ledger {name!r} is not the one that the receipt is of: the ledger was "
            "rewritten, or went another way "
            f"from an older copy. Restore the {ledger.place.kind} that was charged."
        )
