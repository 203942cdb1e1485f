"""pf.bounds and Schema.with_bounds: what they return and what they refuse; the page about them runs."""

from __future__ import annotations

import pickle
import re
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import privfit as pf

PAGE = Path(__file__).parents[2] / "docs" / "bounds.md"
INCOME = np.exp(np.random.default_rng(0).normal(10.3, 0.8, 20_000))
TABLE = pl.DataFrame({"income": INCOME, "gain": np.random.default_rng(1).normal(0, 500, 20_000)})


def test_bounds_hold_about_the_share_asked_for() -> None:
    for share, least in ((0.99, 0.975), (0.9, 0.86)):
        found = [
            pf.bounds(TABLE, {"income": (0, 4e6)}, epsilon=0.2, share=share, random_state=seed)["income"][1]
            for seed in range(20)
        ]
        held = [np.mean(high >= INCOME) for high in found]
        assert least < np.median(held) < 1 - (1 - share) / 4


def test_numbers_of_both_signs_have_one_bound_on_their_size_or_two_ends() -> None:
    low, high = pf.bounds(TABLE, {"gain": (-1e6, 1e6)}, epsilon=1.0, random_state=0)["gain"]
    assert low == -high
    assert 1000 < high < 2000
    low, high = pf.bounds(TABLE, {"gain": (-1e6, 1e6)}, epsilon=1.0, ends="both", random_state=0)["gain"]
    assert -2500 < low < -900
    assert 900 < high < 2500


def test_a_range_below_zero_is_mirrored() -> None:
    table = pl.DataFrame({"loss": -INCOME})
    low, high = pf.bounds(table, {"loss": (-4e6, 0)}, epsilon=1.0, random_state=0)["loss"]
    assert high == 0
    assert -400_000 < low < -100_000


def test_linear_steps_suit_a_narrow_range() -> None:
    years = np.random.default_rng(2).integers(1940, 2006, 20_000)
    table = pl.DataFrame({"born": years})
    low, high = pf.bounds(table, {"born": (1800, 2100)}, epsilon=1.0, ends="both", random_state=0)["born"]
    assert 1930 < low <= 1941
    assert 2003 < high < 2015


def test_few_rows_are_warned_of() -> None:
    with pytest.warns(pf.PrivacyWarning, match="hold about"):
        pf.bounds(TABLE[:200], {"income": (0, 4e6)}, epsilon=0.1, random_state=0)


@pytest.mark.parametrize(
    ("columns", "options", "match"),
    [
        ({}, {}, "no columns"),
        ([("income", (0, 1))], {}, "a dict"),
        ({"income": 5}, {}, "pair"),
        ({"income": (5, 1)}, {}, "low < high"),
        ({"income": (0, 1)}, {"share": 1.0}, "share"),
        ({"income": (0, 1)}, {"share": "all"}, "share"),
        ({"income": (0, 1)}, {"grid": "fine"}, "grid"),
        ({"income": (0, 1)}, {"ends": "left"}, "ends"),
        ({"income": (0, 1)}, {"epsilon": -1}, "epsilon"),
        ({"income": (0, 1)}, {"adjacency": "add-remove"}, "expected_rows"),
        ({"income": (0, 1)}, {"ledger": "people.db"}, "Ledger"),
        ({"wealth": (0, 1)}, {}, "wealth"),
    ],
)
def test_what_means_nothing_is_refused(columns, options, match) -> None:
    with pytest.raises((pf.PrivacyError, pf.SchemaError, pf.DataError), match=match):
        pf.bounds(TABLE, columns, **{"epsilon": 0.5, **options})


def test_missing_values_are_refused_or_filled() -> None:
    table = pl.DataFrame({"income": [None, *INCOME[:500].tolist()]})
    with pytest.raises(pf.DataError, match="fill"):
        pf.bounds(table, {"income": (0, 4e6)}, epsilon=0.5)
    pf.bounds(table, {"income": pf.Numeric("income", 0, 4e6, fill=0)}, epsilon=0.5)


def test_columns_of_an_array_are_named_in_order() -> None:
    assert pf.bounds(TABLE.to_numpy(), {"a": (0, 1e7), "b": (-1e6, 1e6)}, epsilon=1.0)["b"][1] < 1e4
    with pytest.raises(pf.DataError, match="2 columns"):
        pf.bounds(TABLE.to_numpy(), {"a": (0, 1e7)}, epsilon=1.0)


# -- schemas ---------------------------------------------------------------------------------------


def test_a_schema_takes_bounds() -> None:
    schema = pf.Schema(
        [pf.Numeric("age", 0, 150, bins=[20, 120], fill=40), pf.Category("sex", ["f", "m"])],
        target=pf.Numeric("income", 0, 1e7),
    )
    changed = schema.with_bounds({"age": (0, 89), "income": (0, 2e5)})
    assert changed.features[0] == pf.Numeric("age", 0, 89, bins=[20], fill=40)
    assert changed.features[1] == schema.features[1]
    assert changed.target == pf.Numeric("income", 0, 2e5)
    assert schema.with_bounds({}) == schema
    with pytest.raises(pf.SchemaError, match="sex"):
        schema.with_bounds({"sex": (0, 1)})


def test_a_box_takes_bounds_of_its_target_alone() -> None:
    box = pf.Schema.box(-1, 1, target=(0, 1e7))
    assert box.with_bounds({"target": (0, 5)}) == pf.Schema.box(-1, 1, target=(0, 5))


def test_the_examples_of_the_page_run() -> None:
    code = "\n".join(re.findall(r"^```python\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.S | re.M))
    names: dict = {"print": lambda *values: None}
    exec(compile(code, PAGE.name, "exec"), names)
    assert 90_000 < names["bought"]["income"][1] < 300_000
    assert names["both"]["balance"][1] < 20_000
    assert names["ledger"].spent.epsilon == pytest.approx(0.5)


# -- levels ----------------------------------------------------------------------------------------


def test_levels_with_rows_are_bought_and_others_are_not() -> None:
    codes = pl.DataFrame({"code": ["a"] * 900 + ["b"] * 300 + ["c"] * 2 + ["unheard of"] * 500})
    listed = pf.Category("code", ["z", "b", "a", "c", *map(str, range(500))])
    found = [pf.levels(codes, listed, epsilon=1.0, random_state=seed) for seed in range(20)]
    assert all({"a", "b"} <= set(bought) for bought in found)
    assert sum(bought == ("b", "a") for bought in found) >= 16
    bought = found[0]
    assert pickle.loads(pickle.dumps(bought)).report == bought.report
    with pytest.raises(pf.SchemaError, match="list"):
        pf.levels(codes, ["a", "b"], epsilon=1.0)  # type: ignore[arg-type]
