"""`privfit bounds`: what it prints, what it refuses, and that a refusal charges nothing."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import polars as pl
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


# -- a draft with bought bounds --------------------------------------------------------------------


def test_a_draft_has_the_bounds_that_were_bought_and_says_so(run: Run, folder: Path) -> None:
    pf.Ledger("people.db", epsilon=1.0)
    ranges = ("--range", "income=0:10000000", "--range", "age=0:150")
    result = run(
        "schema", "people.csv", "-t", "income", "--buy-bounds", 0.5, *ranges, "-l", "people.db", "-o", "d.toml"
    )
    assert result.exit_code == 0, result.stderr
    text = Path("d.toml").read_text()
    assert text.startswith("# Bought, not known: the bounds of ")
    assert "Epsilon 0.5" in text.splitlines()[0]
    document = tomllib.loads(text)
    assert document["target"]["low"] == 0
    assert 10_000 < document["target"]["high"] < 2_000_000
    bought = {column["name"] for column in document["feature"] if column.get("low", "?") != "?"}
    assert bought == {"age"}
    assert pf.Ledger("people.db").spent.epsilon == 0.5


def test_without_ranges_all_numbers_are_bought(run: Run, folder: Path) -> None:
    result = run("schema", "people.csv", "--buy-bounds", 5.0, "--json")
    assert result.exit_code == 0, result.stderr
    told = json.loads(result.stdout)
    numbers = [column for column in tomllib.loads(told["schema"])["feature"] if column["type"] == "numeric"]
    assert {column["name"] for column in numbers} == told["bounds"].keys()
    assert all(column["low"] == -column["high"] for column in numbers)


def test_a_draft_has_the_levels_that_were_bought_and_says_so(run: Run, folder: Path) -> None:
    pf.Ledger("people.db", epsilon=2.0, delta=1e-3)
    drugs = ["aspirin"] * 600 + ["ibuprofen"] * 300 + ["a rare one"] * 2
    rows = {"drug": drugs, "town": ["x"] * 902, "name": [f"n{place}" for place in range(902)], "age": [40] * 902}
    pl.DataFrame(rows).write_csv("drugs.csv")
    options = ("--buy-levels", 1.0, "--delta", 1e-5, "--levels-of", "drug", "--levels-of", "town")
    bounds = ("--buy-bounds", 0.5, "--range", "age=0:150")
    result = run("schema", "drugs.csv", *options, *bounds, "-l", "people.db", "-o", "d.toml")
    assert result.exit_code == 0, result.stderr
    assert "Bought: 2 levels of drug." in result.stderr
    first, second, *_ = (text := Path("d.toml").read_text()).splitlines()
    assert first.startswith('# Bought, not known: the bounds of "age"')
    assert second.startswith(
        '# Bought, not known: levels of "drug", "town" that many rows have. Epsilon 1, delta 1e-05'
    )
    assert "a rare one" not in text
    columns = {column["name"]: column for column in tomllib.loads(text)["feature"]}
    assert (columns["drug"]["levels"], columns["drug"]["other"]) == (["aspirin", "ibuprofen"], True)
    assert columns["name"]["levels"] == ["?"]
    spent = pf.Ledger("people.db").spent
    assert (spent.epsilon, spent.delta) == (pytest.approx(1.5), pytest.approx(1e-5))
    again = run("schema", "drugs.csv", *options, "-l", "people.db", "--json")
    assert again.exit_code != 0  # 0.5 is left
    assert pf.Ledger("people.db").n_entries == 3


def test_without_names_levels_of_all_categories_are_bought(run: Run, folder: Path) -> None:
    result = run("schema", "people.csv", "--buy-levels", 50.0, "--delta", 1e-5, "--json")
    assert result.exit_code == 0, result.stderr
    told = json.loads(result.stdout)
    categories = [column for column in tomllib.loads(told["schema"])["feature"] if column["type"] == "category"]
    assert {column["name"] for column in categories} == told["levels"].keys()
    assert any("other" in column for column in categories)


@pytest.mark.parametrize(
    "options",
    [
        ("--buy-levels", 0.5),
        ("--delta", 1e-6),
        ("--levels-of", "sex"),
        ("--buy-levels", 0.5, "--delta", 1e-6, "--levels-of", "wealth", "-l", "new.db", "--ledger-epsilon", 1),
        ("--buy-levels", 0.5, "--delta", 1e-6, "-l", "new.db", "--ledger-epsilon", 1),
        ("--buy-levels", 0.5, "--delta", 1e-6, "--check", "linear.toml"),
        ("--range", "income=0:5"),
        ("--ledger", "new.db", "--ledger-epsilon", 1),
        ("--buy-bounds", 0.5, "--check", "linear.toml"),
        ("--buy-bounds", 0.5, "--range", "wealth=0:5", "-l", "new.db", "--ledger-epsilon", 1),
        ("--buy-bounds", -1),
        ("--buy-bounds", 0.5, "-l", "none.db"),
    ],
)
def test_options_that_do_not_go_together_are_refused(run: Run, folder: Path, options: tuple) -> None:
    result = run("schema", "people.csv", *options)
    assert result.exit_code != 0
    assert "Traceback" not in result.stderr
    assert not Path("new.db").exists()
