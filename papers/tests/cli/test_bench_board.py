"""`privfit bench board`: a table of one's own, without a network, for people, for scripts and as a page."""

from __future__ import annotations

import json

import pytest

from privfit.datasets.census import census_schema, generated_census
from tests.cli.conftest import Run

HERE = ("-m", "boosted", "-m", "constant", "-m", "least squares")


@pytest.fixture
def own_table(tmp_path, monkeypatch):
    generated_census(1_000, seed=1).write_csv(tmp_path / "people.csv")
    census_schema("income").save(tmp_path / "schema.toml")
    monkeypatch.setenv("PRIVFIT_DATA", str(tmp_path))
    return ("--csv", tmp_path / "people.csv", "--schema", tmp_path / "schema.toml", "--work", tmp_path / "work")


def test_a_table_of_ones_own_has_results_a_page_and_is_not_measured_twice(run: Run, own_table, tmp_path) -> None:
    asked = ("bench", "board", *own_table, *HERE, "--splits", 2, "-e", 2, "--workers", 1)
    first = run(*asked, "--page", tmp_path / "page")
    assert first.exit_code == 0, first.stderr
    assert "people: 1,000 rows, 12 columns, 6 fits." in first.stderr
    assert "boosted AdaSSP, epsilon 2" in first.stderr
    for said in ("people: R2", "boosted AdaSSP", "least squares"):
        assert said in first.stdout
    page = (tmp_path / "page" / "board.md").read_text(encoding="utf-8")
    assert str(tmp_path) not in page
    assert "- Left out of this page: privfit," in page
    said = "`privfit bench board --csv people.csv --method boosted --method constant --method least-squares"
    assert said in " ".join(page.split())
    second = run(*asked, "--json")
    assert "split 0" not in second.stderr
    lines = json.loads(second.stdout)["board"]
    assert {line["method"] for line in lines} == {"boosted AdaSSP", "constant", "least squares"}
    assert all(line["spreads"]["r2"]["splits"] == 2 for line in lines)


def test_missing_tables_and_unknown_names_are_told(run: Run, tmp_path) -> None:
    missing = run("bench", "board", "--data", tmp_path, "-t", "bank", "-m", "constant", "--work", tmp_path)
    assert missing.exit_code == 0
    assert "bank is not measured" in missing.stderr
    assert run("bench", "board", "-t", "no-such-table").exit_code == 2
    assert run("bench", "board", "-m", "no-such-method").exit_code == 2
    assert run("bench", "board", "--csv", tmp_path / "x.csv").exit_code == 2
