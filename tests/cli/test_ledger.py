"""`privfit ledger`: budgets made once, shown as they are."""

import json
import math
from pathlib import Path

import pytest

import privfit as pf
from privfit.privacy import Event
from tests.cli.conftest import Run


@pytest.fixture(autouse=True)
def _in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_create_makes_a_ledger_that_python_opens(run: Run) -> None:
    assert run("ledger", "budget.db", "--create", "--epsilon", 2, "--delta", 1e-6).exit_code == 0
    made = pf.Ledger("budget.db")
    assert (made.epsilon, made.delta) == (2.0, 1e-6)


def test_create_never_touches_an_existing_ledger(run: Run) -> None:
    pf.Ledger("budget.db", epsilon=1.0).charge(0.25)
    assert run("ledger", "budget.db", "--create", "--epsilon", 9).exit_code == 1
    kept = pf.Ledger("budget.db")
    assert (kept.epsilon, kept.spent) == (1.0, 0.25)


@pytest.mark.parametrize(
    "options",
    [
        ("--create",),
        ("--create", "--epsilon", "inf"),
        ("--create", "--epsilon", 0),
        ("--create", "--epsilon", 1, "--delta", 1),
        ("--epsilon", 1),
        (),
    ],
)
def test_refusals_make_no_file(run: Run, options: tuple[object, ...]) -> None:
    result = run("ledger", "budget.db", *options)
    assert result.exit_code == 1
    assert result.stderr.startswith("Error: ")
    assert not Path("budget.db").exists()


def test_entries_are_shown(run: Run) -> None:
    ledger = pf.Ledger("budget.db", epsilon=1.0)
    ledger.charge(0.25, mechanism="a count [red]by hand", dataset="visits")
    ledger.charge(0.125, mechanism="a mean")
    shown = run("ledger", "budget.db").stdout
    for fact in ("0.375", "0.625 is left", "visits", "[red]by", "a mean", "0.125"):
        assert fact in shown
    told = json.loads(run("ledger", "budget.db", "--json").stdout)
    assert told["spent"] == {"epsilon": 0.375, "delta": 0.0}
    assert told["remaining"] == {"epsilon": 0.625, "delta": 0.0}
    assert [entry["mechanism"] for entry in told["entries"]] == ["a count [red]by hand", "a mean"]


def test_a_ledger_without_limit_is_valid_json(run: Run) -> None:
    pf.Ledger("open.db", epsilon=math.inf).charge(0.5)
    told = json.loads(run("ledger", "open.db", "--json").stdout, parse_constant=lambda name: pytest.fail(f"{name} is not JSON"))
    assert told["epsilon"] is None
    assert "no limit" in run("ledger", "open.db").stdout


def test_another_file_is_not_a_ledger(run: Run) -> None:
    Path("notes.txt").write_text("not a ledger")
    result = run("ledger", "notes.txt", "--json")
    assert result.exit_code == 1
    assert json.loads(result.stdout)["error"] == "LedgerError"
    assert Path("notes.txt").read_text() == "not a ledger"


def test_entries_that_protect_against_different_neighbours_are_pointed_out(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    book = pf.Ledger("budget.db", epsilon=2.0)
    book.charge(0.1, mechanism="made elsewhere")
    book.charge(Event("one", 0.2))
    alike = run("ledger", "budget.db").output
    assert "replace-one" in alike
    assert "different neighbours" not in alike
    book.charge(Event("other", 0.2, adjacency="add-remove", rows_per_person=12))
    mixed = run("ledger", "budget.db").output
    assert "add-remove, 12 rows a person" in mixed
    assert "different neighbours" in mixed
