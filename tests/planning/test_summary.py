"""Rows of a public summary: they agree with it, and a plan can be made of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import privfit as pf
from privfit.planning.summary import rows_of_summary

SCHEMA = pf.Schema(
    [
        pf.Numeric("age", 0, 100),
        pf.Numeric("income", 0, 1e6),
        pf.Category("area", ["n", "s", "e"]),
        pf.Numeric("height", 100, 200),
    ],
    target=pf.Category("ill", ["no", "yes"]),
)
SUMMARY: dict[Any, Any] = {
    "age": (40, 12),
    "income": (30_000, 25_000),
    "area": {"n": 0.5, "e": 0.5},
    "ill": {"no": 0.8, "yes": 0.2},
    ("age", "ill"): 0.6,
    ("age", "income"): -0.3,
}


def test_rows_agree_with_the_summary() -> None:
    rows = rows_of_summary(SCHEMA, SUMMARY, 0)
    age, income, ill = rows["age"], rows["income"], rows["ill"] == 1
    assert age.mean() == pytest.approx(40, abs=1)
    assert age.std() == pytest.approx(12, rel=0.05)
    assert income.mean() == pytest.approx(30_000, rel=0.08)
    assert income.std() == pytest.approx(25_000, rel=0.15)
    assert np.median(income) < 0.85 * income.mean()  # skewed, as a mean near its bound must be
    assert set(rows["area"]) == {0.0, 2.0}
    assert ill.mean() == pytest.approx(0.2, abs=0.03)
    assert rows["height"].mean() == pytest.approx(150, abs=2)
    assert age[ill].mean() - age[~ill].mean() > 6
    assert np.corrcoef(age, np.log(income))[0, 1] == pytest.approx(-0.3, abs=0.06)
    assert all(np.array_equal(again, rows[name]) for name, again in rows_of_summary(SCHEMA, SUMMARY, 0).items())


def test_correlations_that_cannot_all_be_true_are_moved() -> None:
    rows = rows_of_summary(SCHEMA, {("age", "income"): 0.9, ("age", "height"): 0.9, ("income", "height"): -0.9}, 0)
    assert np.corrcoef(rows["age"], rows["height"])[0, 1] > 0.3


def test_a_plan_of_a_summary_knows_what_the_target_goes_with() -> None:
    given = {"epsilon": (5.0,), "mechanisms": ("auto",), "repetitions": 2, "max_rows": 2000, "costs": False}
    strong = pf.plan(SCHEMA, 20_000, public=SUMMARY, **given)
    weak = pf.plan(SCHEMA, 20_000, public={**SUMMARY, ("age", "ill"): 0.0, "ill": {"no": 1, "yes": 1}}, **given)
    assert strong.source == "public summary"
    assert "public summary" in str(strong)
    assert strong.best(5.0).score > weak.best(5.0).score + 0.1


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"weight": (1, 2)}, "columns of the schema"),
        ({("age", "age"): 0.1}, "pairs of them"),
        ({("age", "ill"): 2}, "from -1 to 1"),
        ({"age": (120, 5)}, "its mean, between 0 and 100"),
        ({"age": 40}, "standard deviation"),
        ({"area": {"w": 1.0}}, "shares of its levels"),
        ({"area": {"n": 0.0}}, "shares of its levels"),
    ],
)
def test_a_summary_that_means_nothing_is_refused(wrong: dict[Any, Any], said: str) -> None:
    with pytest.raises(pf.SchemaError, match=said):
        pf.plan(SCHEMA, 1000, public=wrong)
