"""pf.frequent_itemsets: what it returns and what it refuses."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import polars as pl
import pytest

import privfit as pf

BASKETS = np.tile([[1, 1, 0], [1, 1, 1], [1, 0, 0]], (300, 1))
FRAME = pl.DataFrame(BASKETS, schema=["bread", "milk", "salt"])


def asked(table: Any = BASKETS, *items: Any, **more: Any) -> pf.FrequentItemsets:
    return pf.frequent_itemsets(table, *items, **{"k": 3, "epsilon": 10.0, "random_state": 0, **more})


def test_names_truth_values_levels_and_bins_are_items() -> None:
    assert sorted(asked()) == [("x0",), ("x0", "x1"), ("x1",)]
    assert sorted(asked(FRAME.cast(pl.Boolean), ["bread", "milk"])) == [("bread",), ("bread", "milk"), ("milk",)]
    kinds = [pf.Category("milk", ["0", "1"]), pf.Numeric("salt", 0, 1, bins=[0.5])]
    mixed = asked(FRAME.with_columns(pl.col("milk").cast(pl.String)), kinds, k=8)
    assert max(map(len, mixed)) == 2
    assert {"milk_0", "milk_1", "salt_[0, 0.5)", "salt_[0.5, 1]"} == {item for one in mixed for item in one}


def test_a_schema_leaves_rows_out() -> None:
    people = FRAME.with_columns(person=pl.Series(np.arange(900) // 3))
    columns = [pf.Category(name, [0, 1]) for name in FRAME.columns]
    found = asked(people, pf.Schema(columns, person="person"), k=1, rows_per_person=1, epsilon=100.0)
    assert found[("bread",)] == pytest.approx(300, abs=5)


def test_answers_act_as_numbers_print_as_a_table_and_survive_a_pickle() -> None:
    found = asked(max_size=1)
    assert sorted(found) == [("x0",), ("x1",), ("x2",)]
    low, high = found[("x1",)].interval
    assert low < found[("x1",)] < high
    assert str(found).splitlines()[0].split() == ["rows", "90%", "interval", "items"]
    assert [one["items"] for one in found.to_dict()["itemsets"]] == [list(one) for one in found]
    again = pickle.loads(pickle.dumps(found))
    assert dict(again) == dict(found)
    assert again.report.epsilon == found.report.epsilon == 10.0


def test_a_delta_is_spent_where_it_helps_and_only_there() -> None:
    wide = np.tile(np.eye(40)[np.arange(40)], (20, 1))
    few, many = (asked(wide, k=k, epsilon=1.0, delta=1e-6).report for k in (2, 40))
    assert (few.delta, many.delta) == (0.0, 1e-6)
    assert "delta was not spent" in str(few)


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: asked(FRAME), "List them"),
        (lambda: asked(BASKETS, []), "no columns"),
        (lambda: asked(FRAME, ["bread", 3]), "type int"),
        (lambda: asked(k=0), "k=0"),
        (lambda: asked(k=8), "make 7"),
        (lambda: asked(k=7, max_size=2), "make 6"),
        (lambda: asked(max_size=0.5), "max_size=0.5"),
        (lambda: asked(BASKETS + 1), "level"),
        (lambda: asked(FRAME, ["bread", "eggs"]), "eggs"),
    ],
)
def test_refusals_name_what_to_do_and_charge_nothing(call: Any, said: str) -> None:
    with pytest.raises((pf.SchemaError, pf.PrivacyError, pf.DataError), match=said):
        call()
