"""`privfit describe`: what it prints and what it refuses."""

from __future__ import annotations

import json
from pathlib import Path

import privfit as pf
from tests.cli.conftest import Run

START = ("describe", "people.csv", "--schema", "linear.toml", "--epsilon", 0.5)


def test_all_columns_are_described_and_paid_for(run: Run, folder: Path) -> None:
    result = run(*START, "--ledger", "people.db", "--ledger-epsilon", 1, "--json")
    assert result.exit_code == 0, result.stderr
    told = json.loads(result.stdout)
    assert [one["figure"] for one in told["columns"]["income"]] == ["mean", "median", "90%"]
    assert told["ledger"]["spent"]["epsilon"] == 0.5
    assert pf.Ledger("people.db").entries()[0].model == "describe"


def test_a_person_reads_a_table_and_the_report(run: Run, folder: Path) -> None:
    result = run(*START, "-q", 0.25)
    assert result.exit_code == 0, result.stderr
    assert "90% interval" in result.stdout
    assert "25%" in result.stdout
    assert "Privacy report of describe" in result.stdout


def test_a_schema_with_question_marks_is_refused_and_no_ledger_made(run: Run, folder: Path) -> None:
    Path("draft.toml").write_text(run("schema", "people.csv").stdout)
    result = run("describe", "people.csv", "-s", "draft.toml", "-e", 0.5, "-l", "new.db", "--ledger-epsilon", 1)
    assert result.exit_code != 0
    assert not Path("new.db").exists()
