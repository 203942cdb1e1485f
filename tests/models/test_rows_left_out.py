"""Filters and dropped targets: a fit is what it is on a table that holds no rows but those that are used."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

import privfit as pf

AGE = pf.Numeric("age", 0, 100)
INCOME = pf.Numeric("income", 0, 100_000)
SEX = pf.Category("sex", ["f", "m"])


def table(rows: int = 3000, missing: float = 0.39) -> pl.DataFrame:
    rng = np.random.default_rng(4)
    age, sex = rng.uniform(0, 100, rows), rng.choice(["f", "m"], rows)
    income = 400 * age + 20_000 * (sex == "m") + rng.normal(0, 8000, rows)
    return pl.DataFrame(
        {"age": age, "sex": sex, "area": rng.choice(["n", "s", "x"], rows), "income": income}
    ).with_columns(income=pl.when(pl.Series(rng.random(rows) >= missing)).then(pl.col("income")))


def large(schema: pf.Schema, source: object, **more: object) -> np.ndarray:
    """Coefficients with hardly any noise."""
    return pf.LinearRegression(1e7, schema=schema, random_state=0, **more).fit(source).coef_


def test_a_dropped_target_is_as_if_its_rows_were_not_there() -> None:
    schema = pf.Schema([AGE, SEX], pf.Numeric("income", 0, 100_000, fill="drop"))
    left, plain = large(schema, table()), large(pf.Schema([AGE, SEX], INCOME), table().drop_nulls())
    np.testing.assert_allclose(left, plain, rtol=1e-3)


@pytest.mark.parametrize(
    ("where", "kept"),
    [
        ({"age": (18, None)}, pl.col("age") >= 18),
        ({"age": (None, 65.0)}, pl.col("age") <= 65),
        ({"age": (18, 65), "area": ["n", "s"]}, pl.col("age").is_between(18, 65) & pl.col("area").is_in(["n", "s"])),
        ({"area": "x"}, pl.col("area") == "x"),
        ({"sex": ["f"]}, pl.col("sex") == "f"),
        ({"income": (1000, None)}, pl.col("income") >= 1000),
    ],
)
def test_a_filter_is_as_if_other_rows_were_not_there(where: dict, kept: pl.Expr) -> None:
    rows = table(missing=0)
    left = large(pf.Schema([AGE, SEX], INCOME, where=where), rows)
    np.testing.assert_allclose(left, large(pf.Schema([AGE, SEX], INCOME), rows.filter(kept)), rtol=1e-3, atol=1.0)


def test_a_missing_value_meets_no_condition_and_rows_left_out_are_not_refused() -> None:
    """A row that is left out may hold what is refused elsewhere: a missing feature, a level that is not listed."""
    rows = table(missing=0)
    odd = pl.DataFrame({"age": [None, 50.0], "sex": ["f", "other"], "area": ["n", "y"], "income": [1.0, 1.0]})
    schema = pf.Schema([AGE, SEX], INCOME, where={"age": (0, None), "area": ["n", "s", "x"]})
    np.testing.assert_array_equal(large(schema, pl.concat([rows, odd])), large(schema, rows))


def test_a_filter_on_an_array_goes_by_the_schemas_names() -> None:
    rows = np.random.default_rng(0).uniform(0, 1, (500, 2))
    features = [pf.Numeric("a", 0, 1), pf.Numeric("b", 0, 1)]
    target = rows @ [1.0, 2.0]
    schema = pf.Schema(features, pf.Numeric("y", 0, 3), where={"b": (0.5, None)})
    model = pf.LinearRegression(1e7, schema=schema, random_state=0).fit(rows, target)
    kept = rows[:, 1] >= 0.5
    plain = pf.LinearRegression(1e7, schema=pf.Schema(features, pf.Numeric("y", 0, 3)), random_state=0)
    np.testing.assert_allclose(model.coef_, plain.fit(rows[kept], target[kept]).coef_, atol=1e-3)


def test_the_report_says_what_was_left_out_and_not_how_much() -> None:
    schema = pf.Schema([AGE, SEX], pf.Numeric("income", 0, 100_000, fill="drop"), where={"age": (18, None)})
    ledger = pf.Ledger(epsilon=2.0)
    model = pf.LinearRegression(1.0, schema=schema, ledger=ledger).fit(table())
    said = str(model.report_)
    assert "rows that do not meet the filter" in said
    assert "rows without a value of 'income'" in said
    assert "how many rows were used is private" in said
    assert "the number of rows, those left out included" in said
    assert "replace-one" in said
    assert "missing targets are taken as" not in said
    used = table().filter(pl.col("age") >= 18).drop_nulls().height
    assert f"{used:,}" not in said
    assert str(used) not in said
    pf.LinearRegression(1.0, schema=pf.Schema([AGE], INCOME), ledger=ledger).fit(table().drop_nulls())
    assert not ledger.has_mixed_promises


def test_schemas_that_leave_rows_out_survive_toml_and_models(tmp_path) -> None:
    schema = pf.Schema(
        [AGE, SEX],
        pf.Category("ill", ["no", "yes"], fill="drop"),
        person="id",
        where={"age": (18, None), "area": ["n", "s"], "code": 3},
    )
    assert pf.Schema.from_toml(schema.to_toml()) == schema
    schema.save(tmp_path / "schema.toml")
    assert pf.Schema.load(tmp_path / "schema.toml") == schema
    assert hash(schema) != hash(pf.Schema(schema.features, schema.target))
    assert schema.with_target(None).person == "id"
    model = pf.LinearRegression(
        schema=pf.Schema([AGE], pf.Numeric("income", 0, 1e5, fill="drop"), where={"area": ["n"]}), random_state=0
    )
    model.fit(table()).save(tmp_path / "model.json")
    loaded = pf.load_model(tmp_path / "model.json")
    assert loaded.schema_ == model.schema
    np.testing.assert_array_equal(loaded.predict(table()), model.predict(table()))


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"where": lambda row: True}, "never a function"),
        ({"where": {"age": (3, 1)}}, "between which nothing is"),
        ({"where": {"age": (None, None)}}, "is a pair"),
        ({"where": {"age": []}}, "is a pair"),
        ({"where": {"age": {"from": 3}}}, "is a pair"),
        ({"where": {1: (0, 1)}}, "non-empty text"),
        ({"person": 3}, "the name of the column"),
        ({"person": "age"}, "Leave it out of the columns"),
        ({"features": [pf.Numeric("a", 0, 1, fill="drop")]}, "is for the target"),
    ],
)
def test_what_is_no_filter_or_person_is_refused(given: dict, says: str) -> None:
    with pytest.raises(pf.SchemaError, match=says):
        pf.Schema(**{"features": [AGE], **given})


def test_a_publisher_of_rows_refuses_to_leave_any_out() -> None:
    from privfit.baselines import LaplacePublisher

    schema = pf.Schema([AGE, SEX], where={"age": (18, None)})
    ledger = pf.Ledger(epsilon=1.0)
    with pytest.raises(pf.PrivacyError, match="would reveal how many are used"):
        LaplacePublisher(epsilon=0.5, schema=schema, ledger=ledger).fit(table())
    assert ledger.entries() == []
