"""What a document about a release says, as plain values: from the report, the schema, the ledger and the model file."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from privfit.privacy import Ledger, LedgerError
from privfit.schema import Schema, described
from privfit.version import VERSION

JSONObject = dict[str, Any]
Line = tuple[object, ...]

NEWEST = 50
"""Entries of a ledger that a document lists: about one printed page. Totals are over all. Chosen, not measured."""
MOST_LISTED = 200
"""Coefficients that a document lists; models with more have none listed. About four printed pages. Chosen, not
measured."""


@dataclass(frozen=True)
class Known:
    """What is known beside the report; all of it may be missing."""

    schema: Schema | None = None
    ledger: Ledger | None = None
    model_file: str | Path | None = None
    estimates: tuple[Line, ...] = ()
    evaluation: JSONObject | None = None
    """What `Evaluation.to_dict()` says of this model."""
    audit: JSONObject | None = None
    """What `AuditResult.to_dict()` says."""
    publisher: str = ""


def release_facts(report: JSONObject, known: Known) -> JSONObject:
    """The facts of a release. Notes, owners and names of tables in the ledger are left out: they may not be public."""
    facts: JSONObject = {
        "report": report,
        "version": VERSION,
        "estimates": known.estimates,
        "publisher": known.publisher,
        "evaluation": _of_this_model(known.evaluation, report["model"]),
        "audit": known.audit,
    }
    if known.schema is not None:
        facts["columns"] = tuple(described(known.schema))
    if known.model_file is not None:
        content = Path(known.model_file).read_bytes()
        facts |= {
            "sha256": hashlib.sha256(content).hexdigest(),
            "saved_by": f"privfit {json.loads(content)['privfit']}",
        }
    if known.ledger is not None:
        facts |= _of_ledger(known.ledger, report["receipt"])
    return facts


def _of_this_model(evaluation: JSONObject | None, model: str) -> JSONObject | None:
    """The evaluation, which must be of a model of this kind."""
    if evaluation is not None and evaluation["model"] != model:
        raise ValueError(
            f"The evaluation is of a {evaluation['model']}, and the report of a {model}. Give the evaluation of this "
            "model, or none."
        )
    return evaluation


def estimates_of(model: Any) -> tuple[Line, ...]:
    """Coefficients of one predictor, with their 90% intervals where the model has them."""
    coef = np.atleast_2d(getattr(model, "coef_", np.empty((0, 0))))
    if len(coef) != 1 or coef.shape[1] > MOST_LISTED:
        return ()
    names = [str(name) for name in model.get_feature_names_out()]
    if len(names) != coef.shape[1]:  # interaction terms have no single name
        return ()
    try:
        ends = model.coef_interval_.tolist()
    except AttributeError:
        return tuple(zip(names, coef[0].tolist(), strict=True))
    shown = [pair if np.isfinite(pair).all() else ["not identified"] * 2 for pair in ends]
    return tuple((name, value, *pair) for name, value, pair in zip(names, coef[0].tolist(), shown, strict=True))


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
