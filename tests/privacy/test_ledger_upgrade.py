"""Ledgers and models of earlier versions: files written before a change are read, with the same entries and totals,
after it.
"""

from __future__ import annotations

import json
import pickle
import shutil
import sqlite3
from pathlib import Path

import pytest

import privfit as pf

FIXTURES = Path(__file__).parents[1] / "fixtures"
TOTALS = json.loads((FIXTURES / "totals-version-1.json").read_text())


@pytest.fixture(params=TOTALS)
def old(request, tmp_path):
    """A copy of a ledger as version 1 wrote it, and what that version said of it."""
    return Path(shutil.copy(FIXTURES / request.param, tmp_path / "ledger.db")), TOTALS[request.param]


def rows(path, columns="id, time, dataset, mechanism, epsilon, delta, event"):
    connection = sqlite3.connect(path)
    found = connection.execute(f"SELECT {columns} FROM entry ORDER BY id").fetchall()
    connection.close()
    return found


def run_sql(path, statement):
    connection = sqlite3.connect(path)
    with connection:
        connection.execute(statement)
    connection.close()


def test_an_old_ledger_is_read_with_the_totals_it_had_and_left_as_it_is(old):
    path, said = old
    before = path.read_bytes()
    ledger = pf.Ledger(path)
    assert (list(ledger.spent), list(ledger.remaining)) == (said["spent"], said["remaining"])
    assert len(ledger.entries()) == ledger.n_entries == said["entries"]
    assert path.read_bytes() == before


def test_the_first_charge_upgrades_an_old_ledger_and_loses_nothing(old):
    path, said = old
    entries, before = pf.Ledger(path).entries(), rows(path)
    ledger = pf.Ledger(path)
    receipt = ledger.charge(0.01)
    assert receipt.entry == said["entries"] + 1
    assert rows(path)[:-1] == before
    assert [(entry.id, entry.event) for entry in ledger.entries()[:-1]] == [
        (entry.id, entry.event) for entry in entries
    ]
    assert float(ledger.spent) == pytest.approx(said["spent"][0] + 0.01, rel=1e-12)
    assert ledger.spent.delta == said["spent"][1]
    run_sql(path, "INSERT INTO sqlite_sequence VALUES ('none', 1)")  # the file is still an ordinary database
    assert [file.name for file in path.parent.iterdir()] == ["ledger.db"]


def test_verify_says_which_entries_no_chain_protects(old):
    path, said = old
    found = pf.Ledger(path).verify()
    assert (found.entries, found.unprotected, found.head) == (said["entries"], said["entries"], "")
    ledger = pf.Ledger(path)
    receipt = ledger.charge(0.01)
    found = ledger.verify(receipt)
    assert (found.entries, found.unprotected, found.head) == (said["entries"] + 1, said["entries"], receipt.head)


def test_an_edit_after_the_upgrade_is_found_in_old_entries_too(old):
    path, _ = old
    pf.Ledger(path).charge(0.01)
    run_sql(path, "UPDATE entry SET dataset = 'another' WHERE id = 1")
    with pytest.raises(pf.LedgerError, match="damaged"):
        pf.Ledger(path).verify()


def test_a_refused_charge_leaves_an_old_ledger_as_it_is(old):
    path, _ = old
    before = path.read_bytes()
    with pytest.raises(pf.BudgetExceeded):
        pf.Ledger(path).charge(1_000.0)
    assert path.read_bytes() == before


@pytest.mark.parametrize("moment", ["ALTER", "INSERT", "DROP", "UPDATE state"])
def test_an_upgrade_that_is_broken_off_leaves_the_old_ledger(old, monkeypatch, moment):
    path, said = old
    connect = sqlite3.connect

    class Breaking(sqlite3.Connection):
        def execute(self, statement, *values):
            if statement.startswith(moment):
                raise KeyboardInterrupt
            return super().execute(statement, *values)

    monkeypatch.setattr(sqlite3, "connect", lambda *args, **options: connect(*args, **options, factory=Breaking))
    with pytest.raises(KeyboardInterrupt):
        pf.Ledger(path).charge(0.01)
    monkeypatch.undo()
    assert (list(pf.Ledger(path).spent), rows(path)) == (said["spent"], rows(FIXTURES / _source(said)))
    pf.Ledger(path).charge(0.01)
    assert pf.Ledger(path).verify().entries == said["entries"] + 1


def _source(said) -> str:
    return next(name for name, totals in TOTALS.items() if totals == said)


def test_code_of_version_1_that_is_still_running_cannot_charge_an_upgraded_ledger(old):
    path, said = old
    pf.Ledger(path).charge(0.01)
    with pytest.raises(sqlite3.IntegrityError):
        run_sql(
            path,
            "INSERT INTO entry (time, dataset, mechanism, epsilon, delta, event) VALUES ('', '', '', 0.1, 0.0, '{}')",
        )
    assert pf.Ledger(path).verify().entries == said["entries"] + 1


@pytest.mark.parametrize(
    "damage",
    [
        "DELETE FROM entry WHERE id = 3",
        "DELETE FROM entry WHERE id = (SELECT max(id) FROM entry)",
        "DELETE FROM entry",
        "UPDATE entry SET epsilon = 0.001 WHERE id = 2",
        "UPDATE entry SET event = '{' WHERE id = 2",
        'UPDATE entry SET event = \'{"noise": 3, "mechanism": "x", "epsilon": 1}\' WHERE id = 2',
        "UPDATE entry SET event = x'ff00ff' WHERE id = 2",
        "UPDATE budget SET epsilon = 'much'",
        "UPDATE budget SET epsilon = -1",
    ],
)
def test_a_damaged_old_ledger_is_refused_and_not_upgraded(old, damage):
    path, _ = old
    run_sql(path, damage)
    before = path.read_bytes()
    for use in (lambda ledger: ledger.spent, lambda ledger: ledger.charge(0.01), lambda ledger: ledger.verify()):
        with pytest.raises(pf.LedgerError):
            use(pf.Ledger(path))
    assert path.read_bytes() == before


def test_a_pickle_of_version_1_is_a_reference_still(old):
    path, said = old
    ledger = pf.Ledger(path)
    reopen, facts = ledger.__reduce__()
    assert list(reopen(*facts[:3]).spent) == said["spent"]  # all that version 1 put into a pickle
    assert pickle.loads(pickle.dumps(ledger)).charge(0.01).entry == said["entries"] + 1


def test_an_old_model_is_loaded():
    model = pf.load_model(FIXTURES / "model-version-1.json")
    assert (model.report_.epsilon, model.report_.mechanism) == (0.5, "functional mechanism, tight calibration")
    assert model.report_.receipt == {}
