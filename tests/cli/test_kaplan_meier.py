"""`privfit kaplan-meier`: what it prints and what it refuses."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import privfit as pf
from tests.cli.conftest import Run

START = ("kaplan-meier", "lives.csv", "--schema", "lives.toml", "--time", "years", "--epsilon", 0.5)


@pytest.fixture
def lives(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with lives.csv and lives.toml."""
    rng = np.random.default_rng(0)
    rows = {"years": rng.exponential(2, 500), "died": rng.integers(0, 2, 500), "arm": rng.choice(["a", "b"], 500)}
    pl.DataFrame(rows).write_csv(tmp_path / "lives.csv")
    columns = [pf.Numeric("years", 0, 4, bins=4), pf.Category("died", [0, 1]), pf.Category("arm", ["a", "b"])]
    pf.Schema(columns).save(tmp_path / "lives.toml")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_curves_are_released_and_paid_for(run: Run, lives: Path) -> None:
    result = run(*START, "--event", "died", "--by", "arm", "--ledger", "l.db", "--ledger-epsilon", 1, "--json")
    assert result.exit_code == 0, result.stderr
    told = json.loads(result.stdout)
    assert list(told["curves"]) == ["a", "b"]
    assert told["times"] == [0, 1, 2, 3, 4]
    assert told["ledger"]["spent"]["epsilon"] == 0.5


def test_a_person_reads_a_table_and_the_report(run: Run, lives: Path) -> None:
    pytest.importorskip("matplotlib")
    result = run(*START, "--event", "died", "--figure", "curves.png")
    assert result.exit_code == 0, result.stderr
    assert "90% interval" in result.stdout
    assert "Privacy report of kaplan_meier" in result.stdout
    assert Path("curves.png").exists()


def test_columns_that_are_not_there_or_of_the_wrong_kind_are_refused(run: Run, lives: Path) -> None:
    ledger = ("--ledger", "new.db", "--ledger-epsilon", 1)
    assert "no column of the schema" in run(*START, "--event", "dead", *ledger).stderr.replace("\n", " ")
    wrong = run("kaplan-meier", "lives.csv", "-s", "lives.toml", "--time", "arm", "--event", "died", "-e", 1, *ledger)
    assert wrong.exit_code != 0
    assert not Path("new.db").exists()


def test_the_schema_says_which_rows_are_used(run: Run, lives: Path) -> None:
    rows = pl.DataFrame(
        {
            "years": [5.0] * 400,
            "died": [0] * 400,
            "id": ["many"] * 300 + [f"p{i}" for i in range(100)],
            "age": [40] * 400,
        }
    )
    rows = rows.with_columns(pl.when(pl.int_range(400) >= 350).then(10).otherwise(pl.col("age")).alias("age"))
    rows.write_csv("lives.csv")
    columns = [pf.Numeric("years", 0, 4, bins=4), pf.Category("died", [0, 1])]
    pf.Schema(columns, person="id", where={"age": (18, 120)}).save("lives.toml")
    start = ("kaplan-meier", "lives.csv", "--schema", "lives.toml", "--time", "years", "--epsilon", 1e6)
    told = json.loads(run(*start, "--event", "died", "--rows-per-person", 2, "--json").stdout)
    assert told["curves"]["all"]["at_risk"][0] == pytest.approx(52, abs=1)  # 2 of one person, and 50 grown-ups
    assert any("person" in note for note in told["report"]["notes"])
