"""`privfit publish`: what it writes, what it refuses, and that a refusal charges and changes nothing."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import privfit as pf
from privfit.datasets.census import census_schema, generated_census
from tests.cli.conftest import Run

START = ("publish", "people.csv", "--schema", "linear.toml")


@pytest.fixture
def public(folder: Path) -> pl.DataFrame:
    table = generated_census(800, seed=9)
    table.write_parquet("public.parquet")
    return table


@pytest.mark.parametrize("name", ["weights.parquet", "weights.csv"])
def test_the_public_rows_are_written_with_their_weights(
    run: Run, folder: Path, public: pl.DataFrame, name: str
) -> None:
    result = run(*START, "--public", "public.parquet", "-e", 0.5, "-o", name)
    assert result.exit_code == 0, result.stderr
    written = pl.read_parquet(name) if name.endswith("parquet") else pl.read_csv(name)
    assert written.columns == [*public.columns, "weight"]
    assert written.height == 800
    assert written["weight"].mean() == pytest.approx(1)
    assert name in result.stdout
    assert "No ledger was given" in result.stderr


def test_the_column_of_weights_has_the_name_that_is_asked_for(run: Run, folder: Path, public: pl.DataFrame) -> None:
    public.with_columns(weight=pl.lit(2.0)).write_parquet("heavy.parquet")
    asked = (*START, "-p", "heavy.parquet", "-e", 0.5, "-o", "weights.parquet")
    assert run(*asked).exit_code != 0
    assert run(*asked, "--weight-name", "importance").exit_code == 0
    written = pl.read_parquet("weights.parquet")
    assert written.columns == [*public.columns, "weight", "importance"]
    assert written["weight"].unique().to_list() == [2.0]


def test_a_seed_gives_the_weights_of_the_library_and_says_not_private(
    run: Run, folder: Path, public: pl.DataFrame
) -> None:
    result = run(
        *START,
        "-p",
        "public.parquet",
        "-e",
        0.5,
        "--seed",
        3,
        "--method",
        "paper",
        "--alpha",
        0.2,
        "--tau",
        0.5,
        "-o",
        "w.parquet",
        "--json",
    )
    told = json.loads(result.stdout)
    assert told["report"]["private"] is False
    expected = pf.ImportanceWeights(
        0.5, schema=census_schema("income"), method="paper", alpha=0.2, tau=0.5, random_state=3
    )
    expected.fit(pl.read_csv("people.csv"), public)
    np.testing.assert_allclose(pl.read_parquet("w.parquet")["weight"], expected.weights_)
    assert told["weights"]["effective_rows"] == pytest.approx(expected.effective_rows_)


def test_the_ledger_is_charged_once(run: Run, folder: Path, public: pl.DataFrame) -> None:
    options = ("-p", "public.parquet", "-l", "budget.db", "--ledger-epsilon", 1)
    result = run(*START, *options, "-e", 0.7, "-o", "w.parquet", "--json")
    assert json.loads(result.stdout)["ledger"]["remaining"] == {"epsilon": pytest.approx(0.3), "delta": 0.0}
    again = run(*START, *options, "-e", 0.7, "-o", "other.parquet")
    assert again.exit_code == 3
    assert not Path("other.parquet").exists()
    assert pf.Ledger("budget.db").spent == pytest.approx(0.7)


def test_rows_are_made_up_without_a_public_file_and_several_are_joined(
    run: Run, folder: Path, public: pl.DataFrame
) -> None:
    result = run(*START, "-e", 1, "-o", "made.parquet", "--pairs", "none")
    assert result.exit_code == 0
    assert "heaviest hundredth" in " ".join(result.stderr.split())
    made = pl.read_parquet("made.parquet")
    assert made.height == 20_000
    assert made.columns == [*(column.name for column in census_schema("income").columns), "weight"]
    public[:100].write_csv("more.csv")
    result = run(
        *START, "-e", 1, "-p", "public.parquet", "-p", "more.csv", "-o", "both.parquet", "--adjacency", "add-remove"
    )
    assert result.exit_code == 0, result.stderr
    assert pl.read_parquet("both.parquet").height == 900


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("-o", "weights.txt"), "neither .csv nor .parquet"),
        (("-o", "public.parquet"), "also an input"),
        (("-o", "w.csv", "--alpha", "0.1"), "--method paper"),
        (("-o", "w.csv", "--method", "paper", "--pairs", "all"), "only tilting"),
        (("-o", "w.csv", "--tau", "3"), "tau=3"),
        (("-o", "w.csv", "--method", "paper", "--adjacency", "add-remove"), "expected_rows"),
        (("-o", "w.csv", "--ledger-delta", "0.1"), "--ledger-epsilon"),
        (("-o", "w.csv", "-p", "nowhere.csv"), "nowhere.csv"),
    ],
)
def test_what_is_refused_writes_and_charges_nothing(
    run: Run, folder: Path, public: pl.DataFrame, options: tuple, said: str
) -> None:
    ledger = pf.Ledger("budget.db", epsilon=1.0)
    extra = () if "--ledger-delta" in options else ("-l", "budget.db")
    result = run(*START, "-p", "public.parquet", "-e", 0.5, *extra, *options)
    assert result.exit_code != 0
    assert said in " ".join(result.stderr.split())
    assert not Path("w.csv").exists()
    assert ledger.spent == 0


def test_lists_that_csv_cannot_hold_are_refused_before_a_ledger_is_made(
    run: Run, folder: Path, public: pl.DataFrame
) -> None:
    public.with_columns(lists=pl.lit([1, 2], dtype=pl.List(pl.Int64))).write_parquet("nested.parquet")
    result = run(
        *START, "--public", "nested.parquet", "-e", 0.5, "-l", "new.db", "--ledger-epsilon", 1, "-o", "weights.csv"
    )
    assert result.exit_code != 0
    assert "CSV cannot hold them" in " ".join(result.stderr.split())
    assert not Path("new.db").exists()


def test_the_private_file_is_no_public_one(run: Run, folder: Path) -> None:
    result = run(
        *START, "--public", "people.csv", "-e", 0.5, "-l", "new.db", "--ledger-epsilon", 1, "-o", "weights.csv"
    )
    assert result.exit_code != 0
    assert "public rows are published as they are" in " ".join(result.stderr.split())
    assert not Path("new.db").exists()
