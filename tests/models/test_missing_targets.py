"""A missing target is refused with advice that is sound, and a schema that fills targets in says so in the report."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import privfit as pf
from privfit.models import ESTIMATORS
from tests.conformance.cases import _rows, frame, schema_for

ILL = pf.Category("ill", ["no", "yes"])
AGE = pf.Numeric("age", 0, 100)


def table() -> pd.DataFrame:
    return pd.DataFrame(
        {"age": np.tile([20.0, 60.0], 50), "ill": ["no", "yes"] * 50, "income": np.tile([1.0, 2.0], 50)}
    )


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_no_model_tells_to_fill_a_target_with_a_number(estimator: type) -> None:
    schema = schema_for(estimator)
    rows = frame(_rows(estimator, 30)).to_pandas()
    rows[schema.target.name] = rows[schema.target.name].astype(object)
    rows.loc[3, schema.target.name] = None
    ledger = pf.Ledger(epsilon=10.0)
    with pytest.raises(pf.DataError, match=rf"target '{schema.target.name}' contains NaN or missing values") as caught:
        estimator(schema=schema, ledger=ledger).fit(rows)
    said = str(caught.value)
    for part in (
        "leave such rows out",
        "fill='drop'",
        "people whose target is known",
        "adjacency='add-remove'",
        "Nothing was charged",
    ):
        assert part in said
    assert said.count("fill=") == 1
    assert ledger.entries() == []


def test_the_advice_for_classes_works() -> None:
    rows = table()
    rows.loc[:9, "ill"] = None
    with_level = pf.Category("ill", ["no", "yes", "unknown"], fill="unknown")
    model = pf.LogisticRegression(schema=pf.Schema([AGE], with_level), ledger=pf.Ledger(epsilon=1.0)).fit(rows)
    assert list(model.classes_) == ["no", "unknown", "yes"]


def test_a_missing_feature_is_still_told_of_fill() -> None:
    rows = table()
    rows.loc[0, "age"] = np.nan
    with pytest.raises(pf.DataError, match=r"'age' contains NaN.*Numeric\('age', ..., fill=...\)"):
        pf.LogisticRegression(schema=pf.Schema([AGE], ILL)).fit(rows)


@pytest.mark.parametrize(
    ("target", "says"),
    [
        (pf.Numeric("income", 0, 10, fill=0), "missing targets are taken as 0: that changes what is estimated"),
        (pf.Numeric("income", 0, 10), ""),
        (pf.Category("ill", ["no", "yes"], fill="no"), "missing targets are taken as the level 'no'"),
        (ILL, ""),
    ],
)
def test_a_schema_that_fills_targets_in_is_told_of_whether_or_not_one_is_missing(target, says: str) -> None:
    estimator = pf.LogisticRegression if isinstance(target, pf.Category) else pf.LinearRegression
    model = estimator(schema=pf.Schema([AGE], target), ledger=pf.Ledger(epsilon=1.0)).fit(table())
    found = [note for note in model.report_.notes if "missing targets" in note]
    assert len(found) == bool(says)
    assert all(note.startswith(says) for note in found)
