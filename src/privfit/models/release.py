"""What a document about a release says, as plain values: from the report, the schema, the ledger and the model file."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from privfit.privacy import Ledger, LedgerError
from privfit.schema import Category, Column, Schema
from privfit.version import VERSION

JSONObject = dict[str, Any]
Line = tuple[object, ...]

NEWEST = 50
"""Entries of a ledger that a document lists: about one printed page. Totals are over all. Chosen, not measured."""


@dataclass(frozen=True)
class Known:
    """What is known beside the report; all of it may be missing."""

    schema: Schema | None = None
    ledger: Ledger | None = None
    model_file: str | Path | None = None
    estimates: tuple[Line, ...] = ()


def release_facts(report: JSONObject, known: Known) -> JSONObject:
    """The facts of a release. Notes, owners and names of tables in the ledger are left out: they may not be public."""
    facts: JSONObject = {"report": report, "version": VERSION, "estimates": known.estimates}
    if known.schema is not None:
        facts["columns"] = tuple(_columns(known.schema))
    if known.model_file is not None:
        content = Path(known.model_file).read_bytes()
        facts |= {
            "sha256": hashlib.sha256(content).hexdigest(),
            "saved_by": f"privfit {json.loads(content)['privfit']}",
        }
    if known.ledger is not None:
        facts |= _of_ledger(known.ledger, report["receipt"])
    return facts


def _columns(schema: Schema) -> Iterable[Line]:
    for column in schema.features:
        yield column.name, "feature", _values(column)
    if schema.target is not None:
        yield schema.target.name, "target", _values(schema.target)
    if schema.person is not None:
        yield schema.person, "person", "whose row it is; identifiers are not kept"
    for one in schema.where:
        bounds = ("any" if end is None else f"{end:g}" for end in (one.low, one.high))
        yield one.name, "row filter", ", ".join(map(str, one.levels)) if one.levels else " to ".join(bounds)


def _values(column: Column) -> str:
    found = ", ".join(map(str, column.levels)) if isinstance(column, Category) else f"{column.low:g} to {column.high:g}"
    return found if column.fill is None else f"{found}; missing values: {column.fill}"


def _of_ledger(ledger: Ledger, receipt: JSONObject) -> JSONObject:
    """The ledger; it must have the entry that the receipt names, or the document would be about other people."""
    if not receipt:
        raise LedgerError(
            "A ledger was given, and the report names no entry of one: the model was fitted without a ledger. "
            "Leave the ledger out."
        )
    ledger.check_receipt(receipt)
    spent, entries = ledger.spent, ledger.entries(NEWEST)
    own = next((one for one in ledger.iter_entries() if one.id == receipt["entry"]), None)
    lines = tuple((one.id, one.time, one.model, one.epsilon, one.delta) for one in entries)
    told = {
        "epsilon": ledger.epsilon,
        "delta": ledger.delta,
        "spent": (spent.epsilon, spent.delta),
        "n_entries": ledger.n_entries,
        "mixed": ledger.has_mixed_promises,
        "entries": lines,
        "receipt": "yes",
    }
    return {"ledger": told, "time": None if own is None else own.time}
