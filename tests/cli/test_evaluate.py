"""`privfit evaluate`: what it prints and what it refuses."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import privfit as pf
from tests.cli.conftest import Run

RNG = np.random.default_rng(0)
HELD = pl.DataFrame({"size": RNG.uniform(-1, 1, 3000)}).with_columns(
    ill=pl.when(pl.col("size") > 0).then(pl.lit("yes")).otherwise(pl.lit("no"))
)
SCHEMA = pf.Schema([pf.Numeric("size", -1, 1)], pf.Category("ill", ["no", "yes"]))
START = ("evaluate", "model.json", "held.parquet", "--epsilon", 0.5)


@pytest.fixture
def files(folder: Path) -> None:
    HELD.write_parquet("held.parquet")
    pf.LogisticRegression(epsilon=5.0, schema=SCHEMA).fit(HELD).save("model.json")


def test_a_model_is_evaluated_and_paid_for(run: Run, files: None) -> None:
    result = run(*START, "--ledger", "people.db", "--ledger-epsilon", 1, "--json")
    assert result.exit_code == 0, result.stderr
    told = json.loads(result.stdout)
    assert told["figures"]["auc"]["value"] > 0.9
    assert told["ledger"]["spent"]["epsilon"] == 0.5
    assert pf.Ledger("people.db").entries()[0].model == "evaluate"


def test_a_person_reads_a_table_and_the_report(run: Run, files: None) -> None:
    result = run(*START, "--metric", "accuracy", "--metric", "confusion")
    assert result.exit_code == 0, result.stderr
    assert "accuracy" in result.stdout
    assert "auc" not in result.stdout
    assert "predicted yes" in result.stdout
    assert "Privacy report of evaluate" in result.stdout


def test_it_is_drawn(run: Run, files: None) -> None:
    pytest.importorskip("matplotlib")
    assert run(*START, "--figure", "model.png").exit_code == 0
    assert Path("model.png").stat().st_size > 1000


@pytest.mark.parametrize("more", [("--metric", "speed"), ("--seed", 1), ("--figure", "held.parquet")])
def test_refusals_charge_nothing(run: Run, files: None, more: tuple[object, ...]) -> None:
    pf.Ledger("people.db", epsilon=1.0)
    result = run(*START, *more, "--ledger", "people.db")
    assert result.exit_code != 0
    assert pf.Ledger("people.db").n_entries == 0


# -- parts of one table ----------------------------------------------------------------------------


def test_both_parts_of_a_table_cost_what_the_dearer_one_costs(run: Run, files: None) -> None:
    SCHEMA.save("people.toml")
    pf.Ledger("people.db", epsilon=1.0)
    parts = ("--ledger", "people.db", "--holdout", "2026", "--holdout-share", 0.25, "--json")
    fitted = run("fit", "held.parquet", "-s", "people.toml", "-m", "logistic", "-e", 0.8, "-o", "own.json", *parts)
    assert fitted.exit_code == 0, fitted.stderr
    found = run("evaluate", "own.json", "held.parquet", "--epsilon", 0.5, *parts)
    assert found.exit_code == 0, found.stderr
    ledger = pf.Ledger("people.db")
    assert ledger.spent.epsilon == pytest.approx(0.8)
    assert {entry.event.split_part for entry in ledger.entries()} == {"fit", "evaluate"}
    counted = np.array(json.loads(found.stdout)["confusion"]["values"]).sum()
    assert 0.2 * len(HELD) < counted < 0.3 * len(HELD)


@pytest.mark.parametrize("options", [("--holdout", "2026"), ("--holdout-share", 0.3, "-l", "people.db")])
def test_a_part_needs_a_name_and_a_ledger(run: Run, files: None, options: tuple[object, ...]) -> None:
    SCHEMA.save("people.toml")
    pf.Ledger("people.db", epsilon=1.0)
    assert run(*START, *options).exit_code != 0
    fit = ("fit", "held.parquet", "-s", "people.toml", "-m", "logistic", "-e", 0.8, "-o", "own.json")
    assert run(*fit, *options).exit_code != 0
    assert pf.Ledger("people.db").n_entries == 0


def test_a_share_of_nothing_is_refused(run: Run, files: None) -> None:
    SCHEMA.save("people.toml")
    pf.Ledger("people.db", epsilon=1.0)
    found = run(*START, "-l", "people.db", "--holdout", "2026", "--holdout-share", 0)
    assert found.exit_code != 0
    assert "share=0" in found.stderr
    assert pf.Ledger("people.db").n_entries == 0
