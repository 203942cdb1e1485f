"""`privfit itemsets`: what it prints and what it refuses."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import privfit as pf
from tests.cli.conftest import Run


@pytest.fixture
def baskets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    held = np.tile([[1, 1, 0], [1, 1, 1], [1, 0, 0]], (200, 1))
    pl.DataFrame(held, schema=["bread", "milk", "salt"]).write_csv("baskets.csv")
    pf.Schema([pf.Category("bread", [0, 1]), pf.Category("milk", [0, 1, 2])]).save("baskets.toml")


def test_sets_are_found_and_paid_for(run: Run, baskets: None) -> None:
    items = ("-i", "bread", "-i", "milk", "-i", "salt")
    result = run("itemsets", "baskets.csv", *items, "-k", 3, "-e", 2, "-l", "shop.db", "--ledger-epsilon", 3, "--json")
    assert result.exit_code == 0, result.stderr
    told = json.loads(result.stdout)
    assert sorted(tuple(one["items"]) for one in told["itemsets"]) == [("bread",), ("bread", "milk"), ("milk",)]
    assert told["ledger"]["spent"]["epsilon"] == 2
    assert pf.Ledger("shop.db").entries()[0].model == "frequent_itemsets"


def test_levels_of_a_schema_are_items_and_a_person_reads_a_table(run: Run, baskets: None) -> None:
    result = run("itemsets", "baskets.csv", "-s", "baskets.toml", "-k", 2, "--epsilon", 5)
    assert result.exit_code == 0, result.stderr
    assert "90% interval" in result.stdout
    assert "milk_1" in result.stdout
    assert "Privacy report of frequent_itemsets" in result.stdout


@pytest.mark.parametrize("items", [(), ("-i", "bread", "-s", "baskets.toml")])
def test_items_come_from_one_place(run: Run, baskets: None, items: tuple[str, ...]) -> None:
    result = run("itemsets", "baskets.csv", *items, "-k", 3, "-e", 1, "-l", "new.db", "--ledger-epsilon", 3)
    assert result.exit_code != 0
    assert "--item" in result.stderr
    assert not Path("new.db").exists()
