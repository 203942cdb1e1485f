"""The tables that are shipped: those that the generators make, within their schemas, and good for what they show."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from sklearn.metrics import roc_auc_score

import privfit as pf
from privfit.datasets.loading import CENSUS_ROWS


@pytest.fixture(scope="module")
def stays() -> pl.DataFrame:
    return pf.datasets.load_patients().table


def test_the_shipped_tables_are_those_that_the_generators_make(stays: pl.DataFrame) -> None:
    assert pf.datasets.load_census().table.equals(pf.datasets.generated_census(CENSUS_ROWS))
    assert stays.equals(pf.datasets.generated_patients())
    assert not stays.equals(pf.datasets.generated_patients(seed=1))


def test_census_has_either_target() -> None:
    people, schema = pf.datasets.load_census("high_income")
    assert schema.target is not None
    assert (people.columns[-1], schema.target.name) == ("high_income", "high_income")
    assert 0.2 < (people["high_income"] == "yes").mean() < 0.8


@pytest.mark.parametrize("target", ["readmitted", "cost"])
def test_stays_lie_within_a_schema_that_is_not_read_off_them(stays: pl.DataFrame, target: str) -> None:
    schema = pf.datasets.patients_schema(target)  # type: ignore[arg-type]
    assert schema.target is not None
    for column in (*schema.features, schema.target):
        values = stays[column.name].drop_nulls()
        if isinstance(column, pf.Category):
            assert set(values.unique()) <= set(column.levels)
        else:
            assert (column.low, column.high) != (values.min(), values.max())
            assert values.is_between(column.low, column.high).all()


def test_patients_have_several_stays_and_one_value_is_missing(stays: pl.DataFrame) -> None:
    counts = stays["patient_id"].value_counts()["count"]
    assert (counts.min(), counts.max()) == (1, 6)
    assert stays.group_by("patient_id").agg(pl.col("sex").n_unique())["sex"].max() == 1
    assert 0.1 < stays["haemoglobin"].null_count() / stays.height < 0.3
    assert stays.drop("haemoglobin").null_count().sum_horizontal().item() == 0


def test_readmission_can_be_predicted(stays: pl.DataFrame) -> None:
    others = pf.datasets.generated_patients(3_000, seed=1)
    model = pf.LogisticRegression(1e6, schema=pf.datasets.patients_schema(), random_state=0).fit(stays)
    truth = (others["readmitted"] == "yes").to_numpy()
    assert 0.08 < truth.mean() < 0.4
    assert roc_auc_score(truth, model.predict_proba(others)[:, 1]) > 0.68


def test_costs_can_be_predicted(stays: pl.DataFrame) -> None:
    model = pf.LinearRegression(1e6, schema=pf.datasets.patients_schema("cost"), random_state=0).fit(stays)
    cost = stays["cost"].to_numpy()
    assert 1 - np.mean((cost - model.predict(stays)) ** 2) / np.var(cost) > 0.5


def test_what_does_not_exist_is_refused() -> None:
    with pytest.raises(ValueError, match="no target 'age'"):
        pf.datasets.load_patients("age")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="at least one"):
        pf.datasets.generated_patients(0)
