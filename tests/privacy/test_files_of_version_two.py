"""A ledger and models of version 2, with events that named noise by strings: read as they were, and charged further."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

import privfit as pf
from privfit.schema import Schema
from tests.conformance.flow_tables import public_table

FIXTURES = Path(__file__).parents[1] / "fixtures"
SAID = json.loads((FIXTURES / "totals-version-2.json").read_text(encoding="utf-8"))


@pytest.fixture
def ledger(tmp_path: Path) -> pf.Ledger:
    return pf.Ledger(shutil.copy(FIXTURES / "ledger-version-2.sqlite", tmp_path / "ledger.db"))


def test_the_ledger_has_the_totals_and_the_chain_it_had(ledger: pf.Ledger) -> None:
    assert (list(ledger.spent), list(ledger.remaining)) == (SAID["spent"], SAID["remaining"])
    found = ledger.verify()
    assert (found.entries, found.unprotected, found.head) == (SAID["entries"], 0, SAID["head"])


def test_every_event_says_what_it_said(ledger: pf.Ledger) -> None:
    for entry, said in zip(ledger.entries(), SAID["events"], strict=True):
        mechanism, _, n_values, epsilon, delta, rho, *_, noise_sd, usual_sd = said
        event = entry.event
        assert (event.mechanism, event.n_values) == (mechanism, n_values)
        assert (event.epsilon, event.delta, event.rho) == (epsilon, delta, rho)
        assert (event.noise_sd, event.summary.usual_sd) == pytest.approx((noise_sd, usual_sd), rel=1e-12)


def test_the_ledger_goes_on(ledger: pf.Ledger) -> None:
    receipt = ledger.charge(0.01)
    assert (receipt.entry, ledger.verify(receipt).entries) == (SAID["entries"] + 1, SAID["entries"] + 1)


@pytest.mark.parametrize("said", SAID["models"], ids=[said["file"] for said in SAID["models"]])
def test_models_predict_and_report_as_they_did(said: dict) -> None:
    model = pf.load_model(FIXTURES / said["file"])
    assert isinstance(model.schema_, Schema)
    public = public_table(model.schema_)
    scores = model.decision_function(public) if hasattr(model, "decision_function") else model.predict(public)
    assert scores.ravel().tolist() == pytest.approx(said["scores"], rel=1e-9)
    for line in ("epsilon", "delta", "private", "rows per person"):
        told = [text for text in said["report"].splitlines() if text.strip().startswith(line)]
        assert told
        assert all(text in str(model.report_) for text in told)
