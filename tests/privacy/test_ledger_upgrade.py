"""Ledgers and models of earlier versions: files written before a change are read, with the same entries and totals, after it."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

import privfit as pf

FIXTURES = Path(__file__).parents[1] / "fixtures"
TOTALS = json.loads((FIXTURES / "totals-version-1.json").read_text())


@pytest.fixture(params=TOTALS)
def old(request, tmp_path):
    """A copy of a ledger as version 1 wrote it, and what that version said of it."""
    return Path(shutil.copy(FIXTURES / request.param, tmp_path / "ledger.db")), TOTALS[request.param]


def test_an_old_ledger_is_read_with_the_totals_it_had(old):
    path, said = old
    ledger = pf.Ledger(path)
    assert (list(ledger.spent), list(ledger.remaining)) == (said["spent"], said["remaining"])
    assert len(ledger.entries()) == said["entries"]


def test_an_old_model_is_loaded():
    model = pf.load_model(FIXTURES / "model-version-1.json")
    assert (model.report_.epsilon, model.report_.mechanism) == (0.5, "functional mechanism, tight calibration")
