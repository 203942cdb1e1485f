"""kaplan_meier: what it returns and what it refuses."""

from __future__ import annotations

import json
import re
from typing import Any

import numpy as np
import polars as pl
import pytest

import privfit as pf
from privfit.audit.recording import RecordingNoise, noise_from

RNG = np.random.default_rng(0)
ROWS = 20_000
ARM = RNG.choice(["old", "new"], ROWS)
LIVES, WATCHED = RNG.exponential(np.where(ARM == "new", 4.0, 2.0)), RNG.uniform(0, 8, ROWS)
TABLE = pl.DataFrame({"arm": ARM, "years": np.minimum(LIVES, WATCHED), "died": LIVES <= WATCHED}).with_columns(
    status=pl.when("died").then(pl.lit("dead")).otherwise(pl.lit("alive"))
)
YEARS, BY = pf.Numeric("years", 0, 6), pf.Category("arm", ["old", "new"])


@pytest.mark.parametrize("adjacency", ["replace-one", "add-remove"])
def test_a_curve_for_each_group_is_near_the_truth(adjacency: str) -> None:
    given: dict[str, Any] = {"epsilon": 1.0, "adjacency": adjacency, "random_state": 0}
    curves = pf.kaplan_meier(TABLE, YEARS, "died", by=BY, **given)
    assert curves.groups == ("old", "new")
    assert curves.survival.shape == (2, 21)
    assert curves.band.shape == curves.survival.interval.shape == (2, 21, 2)
    truth = np.exp(-np.outer([1 / 2, 1 / 4], curves.times))
    assert np.abs(np.asarray(curves.survival) - truth).max() < 0.05
    assert np.asarray(curves.median) == pytest.approx(np.log(2) * np.array([2.0, 4.0]), abs=0.15)
    ends = curves.median.interval
    assert (ends[:, 0] < curves.median).all()
    assert (ends[:, 1] > curves.median).all()


def test_the_event_may_be_a_category() -> None:
    given: dict[str, Any] = {"epsilon": 1.0, "random_state": 0}
    status = pf.kaplan_meier(TABLE, YEARS, pf.Category("status", ["alive", "dead"]), **given)
    named = pf.kaplan_meier(TABLE, YEARS, "died", **given)
    np.testing.assert_array_equal(status.survival, named.survival)
    np.testing.assert_array_equal(status.band, named.band)


def test_bins_of_the_time_are_those_of_the_grid() -> None:
    curves = pf.kaplan_meier(TABLE, pf.Numeric("years", 0, 6, bins=[1, 2, 4]), "died", epsilon=1.0, random_state=0)
    assert curves.times.tolist() == [0, 1, 2, 4, 6]
    assert curves.at_risk.shape == (4,)
    assert curves.at_risk[0] == pytest.approx(ROWS)
    assert float(curves.at(1.0)) == curves.survival[1]
    assert curves.at([0.0, 7.0]).tolist() == pytest.approx([1.0, np.nan], nan_ok=True)


def test_curves_print_and_are_ready_for_json(tmp_path: Any) -> None:
    curves = pf.kaplan_meier(TABLE[:300], YEARS, "died", by=BY, epsilon=0.3, random_state=0)
    told = json.loads(json.dumps(curves.to_dict(), allow_nan=False))
    assert list(told["curves"]) == ["old", "new"]
    assert "90% interval" in str(curves)
    assert repr(curves) == str(curves)
    assert {"Survival curves", "90% interval", "5.7", "Privacy report"} <= set(
        re.findall(r">([^<>]+)<", curves._repr_html_())
    )
    pytest.importorskip("matplotlib")
    drawing = curves.plot(tmp_path / "curves.png")
    assert "old" in drawing.alt
    assert (tmp_path / "curves.png").stat().st_size > 0


def test_a_ledger_pays_once_for_all_curves() -> None:
    ledger = pf.Ledger(epsilon=1.0)
    curves = pf.kaplan_meier(TABLE, YEARS, "died", by=BY, epsilon=0.4, ledger=ledger)
    assert ledger.spent.epsilon == 0.4
    assert ledger.entries()[0].model == "kaplan_meier"
    assert curves.report.epsilon == 0.4
    with pytest.raises(pf.BudgetExceeded):
        pf.kaplan_meier(TABLE, YEARS, "died", epsilon=0.7, ledger=ledger)


@pytest.mark.parametrize(
    ("ask", "match"),
    [
        (lambda **more: pf.kaplan_meier(TABLE, "years", "died", **more), "Numeric"),
        (lambda **more: pf.kaplan_meier(TABLE, YEARS, pf.Category("arm", ["a", "b", "c"]), **more), "two levels"),
        (lambda **more: pf.kaplan_meier(TABLE, YEARS, pf.Numeric("died", 0, 1), **more), "two levels"),
        (lambda **more: pf.kaplan_meier(TABLE, YEARS, "died", by="arm", **more), "Category"),
        (lambda **more: pf.kaplan_meier(TABLE, YEARS, "status", **more), "status"),
        (lambda **more: pf.kaplan_meier(TABLE, pf.Numeric("time", 0, 5), "died", **more), "time"),
    ],
)
def test_what_cannot_be_asked_is_refused_and_charges_nothing(ask: Any, match: str) -> None:
    ledger = pf.Ledger(epsilon=1.0)
    with pytest.raises((pf.SchemaError, pf.DataError), match=match):
        ask(epsilon=0.5, ledger=ledger)
    assert ledger.spent.epsilon == 0


@pytest.mark.parametrize("adjacency", ["replace-one", "add-remove"])
def test_no_person_moves_counts_further_than_the_noise_is_for_however_many_rows_they_have(adjacency: Any) -> None:
    columns, most, furthest = [pf.Numeric("years", 0, 4, bins=4), pf.Category("died", [0, 1])], 2, 0.0
    schema, rng = pf.Schema(columns, person="id", where={"age": (18, None)}), np.random.default_rng(0)

    def rows_of(person: str, many: int) -> pl.DataFrame:
        return pl.DataFrame(
            {
                "years": rng.uniform(0, 5, many),
                "died": rng.integers(0, 2, many),
                "age": rng.choice([10.0, 40.0], many),
                "id": [person] * many,
            }
        )

    for _ in range(40):
        others = pl.concat([rows_of(name, int(rng.integers(1, 5))) for name in "abc"])
        calls = []
        for one in (rows_of("x", 30), rows_of("y", int(rng.integers(1, 30)))):
            noise = RecordingNoise(0)
            with noise_from(noise):
                pf.kaplan_meier(
                    pl.concat([others, one]) if adjacency == "replace-one" or not calls else others,
                    columns[0],
                    "died",
                    schema=schema,
                    epsilon=1.0,
                    adjacency=adjacency,
                    rows_per_person=most,
                    expected_rows=10,
                )
            calls.append(noise.calls[0])
        apart = np.abs(calls[0].values - calls[1].values).sum() / calls[0].scale
        assert apart <= 1.0
        furthest = max(furthest, apart)
    assert furthest == 1.0


@pytest.mark.parametrize("levels", [None, [0, 1], ["no", "yes"]])
def test_columns_that_a_schema_lists_are_named(levels: Any) -> None:
    rng = np.random.default_rng(0)
    died, arm = rng.integers(0, 2, 900), pf.Category("arm", ["old", "new"])
    table = pl.DataFrame({"years": rng.uniform(0, 5, 900), "arm": rng.choice(["old", "new"], 900), "died": died})
    if levels == ["no", "yes"]:
        table = table.with_columns(died=pl.Series(np.array(levels)[died]))
    event = pf.Numeric("died", 0, 1) if levels is None else pf.Category("died", levels)
    years = pf.Numeric("years", 0, 5, bins=4)
    schema = pf.Schema([arm, event, years], where={"years": (0.5, None)})
    by_name = pf.kaplan_meier(table, "years", "died", by="arm", schema=schema, epsilon=2.0, random_state=0)
    own = event if isinstance(event, pf.Category) else "died"
    by_column = pf.kaplan_meier(table, years, own, by=arm, schema=schema, epsilon=2.0, random_state=0)
    np.testing.assert_array_equal(by_name.survival, by_column.survival)
    assert by_name.groups == ("old", "new")
    with pytest.raises(pf.SchemaError, match="without the column 'days'"):
        pf.kaplan_meier(table, "days", "died", schema=schema, epsilon=2.0)
    with pytest.raises(pf.SchemaError, match="a number with public bounds"):
        pf.kaplan_meier(table, "years", "died", epsilon=2.0)


def test_a_schema_of_other_columns_or_of_another_type_is_refused() -> None:
    for schema, told in ((5, "it is a pf.Schema"), (pf.Schema([YEARS]), "without the column 'died'")):
        ledger = pf.Ledger(epsilon=1.0)
        with pytest.raises(pf.SchemaError, match=told):
            pf.kaplan_meier(TABLE, YEARS, "died", schema=schema, epsilon=1.0, ledger=ledger)  # type: ignore[arg-type]
        assert ledger.spent == 0
