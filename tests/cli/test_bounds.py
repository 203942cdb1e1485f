"""`privfit bounds`: what it prints, what it refuses, and that a refusal charges nothing."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import privfit as pf
from tests.cli.conftest import Run

START = ("bounds", "people.csv", "income=0:10000000", "age=0:150", "--epsilon", 0.5)


def test_bounds_are_bought_and_paid_for(run: Run, folder: Path) -> None:
    pf.Ledger("people.db", epsilon=1.0)
    result = run(*START, "--ledger", "people.db", "--json")
    assert result.exit_code == 0, result.stderr
    told = json.loads(result.stdout)
    assert told["bounds"].keys() == {"income", "age"}
    assert told["bounds"]["income"][0] == 0
    assert 10_000 < told["bounds"]["income"][1] < 2_000_000
    assert 50 < told["bounds"]["age"][1] <= 150
    assert told["ledger"]["spent"]["epsilon"] == 0.5
    assert pf.Ledger("people.db").entries()[0].model == "bounds"


def test_a_person_reads_lines_for_the_schema(run: Run, folder: Path) -> None:
    result = run(*START, "--adjacency", "add-remove", "--expected-rows", 3000)
    assert result.exit_code == 0, result.stderr
    assert 'name = "income"  low = 0  high = ' in result.stdout
    assert "permute-and-flip" in result.stdout


@pytest.mark.parametrize("column", ["income", "income=5", "income=a:b", "=0:1", "income=0:", "income=3:1"])
def test_a_range_that_is_none_is_refused(run: Run, folder: Path, column: str) -> None:
    result = run("bounds", "people.csv", column, "-e", 0.5, "-l", "new.db", "--ledger-epsilon", 1)
    assert result.exit_code != 0
    assert "Traceback" not in result.stderr
    assert not Path("new.db").exists()


def test_a_budget_that_is_too_small_is_refused(run: Run, folder: Path) -> None:
    pf.Ledger("people.db", epsilon=0.1)
    result = run(*START, "--ledger", "people.db")
    assert result.exit_code != 0
    assert pf.Ledger("people.db").n_entries == 0


def test_a_column_that_is_not_there_charges_nothing(run: Run, folder: Path) -> None:
    pf.Ledger("people.db", epsilon=1.0)
    result = run("bounds", "people.csv", "wealth=0:1", "-e", 0.5, "-l", "people.db")
    assert result.exit_code != 0
    assert "wealth" in result.stderr
    assert pf.Ledger("people.db").n_entries == 0
