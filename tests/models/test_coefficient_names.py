"""Coefficients belong to the names that a model gives them: predictions follow from both."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit
from sklearn.base import is_classifier

import privfit as pf
from tests.conformance.cases import AMOUNTS
from tests.models.test_sklearn import each_model, knows, numbers, people, people_table, scores


def shown(names: list[str], frame: pd.DataFrame) -> np.ndarray:
    """The columns that the names speak of: a number by its name, a level as name_level, a bin as name_[from, to)."""
    columns = []
    for name in names:
        if name in frame:
            columns.append(frame[name].to_numpy(dtype=float))
            continue
        column, _, level = name.partition("_")
        if level.startswith("["):
            low, high = (float(end) for end in level[1:-1].split(", "))
            top = level.endswith("]")
            values = frame[column].to_numpy(dtype=float)
            columns.append((values >= low) & ((values <= high) if top else (values < high)))
        elif level == "other":
            known = {other.partition("_")[2] for other in names if other.startswith(f"{column}_")}
            columns.append(~frame[column].isin(known - {"other"}))
        else:
            columns.append(frame[column] == level)
    return np.column_stack(columns).astype(float)


@each_model
@pytest.mark.parametrize("numeric", ["slope", "bins"])
@pytest.mark.parametrize(
    "mechanism",
    [
        pf.FunctionalMechanism(),
        pf.FunctionalMechanism(calibration="paper"),
        pf.ObjectivePerturbation(),
        pf.OutputPerturbation(),
    ],
)
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_predictions_are_what_names_coefficients_and_intercept_say(
    model: type, numeric: str, mechanism: Any, fit_intercept: bool
) -> None:
    if not knows(model, mechanism):
        pytest.skip("this model does not know this mechanism")
    frame = people_table(model, 200)
    estimator = model(
        epsilon=50,
        schema=people(model),
        numeric=numeric,
        mechanism=mechanism,
        fit_intercept=fit_intercept,
        random_state=0,
    ).fit(frame)
    names = list(estimator.get_feature_names_out())
    assert len(names) == len(set(names)) == np.ravel(estimator.coef_).size
    assert ("age" in names) == (numeric == "slope")
    assert [name for name in names if name.startswith("city_")] == ["city_Oslo", "city_Rome", "city_Lima", "city_other"]
    assert [name for name in names if name.startswith("wage")] == ["wage_[0, 10)", "wage_[10, 20)", "wage_[20, 50]"]
    by_hand = shown(names, frame) @ np.ravel(estimator.coef_) + float(np.ravel(estimator.intercept_)[0])
    assert np.abs(np.ravel(estimator.coef_)).max() > 0
    assert scores(estimator, frame) == pytest.approx(by_hand, rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("mechanism", ["functional", "output", pf.ObjectivePerturbation(steepest=1.0)])
def test_classes_and_probabilities_follow_the_scores(mechanism: Any) -> None:
    frame = people_table(pf.LogisticRegression)
    settings = {"epsilon": 50, "schema": people(pf.LogisticRegression), "random_state": 0}
    model = pf.LogisticRegression(mechanism=mechanism, **settings).fit(frame)
    score = model.decision_function(frame)
    assert model.classes_.tolist() == ["no", "yes"]
    assert model.coef_.shape == (1, len(model.get_feature_names_out()))
    assert model.intercept_.shape == (1,)
    assert (model.predict(frame) == np.where(score > 0, "yes", "no")).all()
    assert model.predict_proba(frame) == pytest.approx(np.column_stack([expit(-score), expit(score)]))
    assert np.exp(model.predict_log_proba(frame)) == pytest.approx(model.predict_proba(frame))


def test_classes_are_sorted_whatever_their_order_in_the_schema() -> None:
    X, y = numbers(pf.LogisticRegression)
    labels = np.array(["sick", "healthy"])[y]
    models = [
        pf.LogisticRegression(schema=pf.Schema.box(-1, 1, target=classes), random_state=0).fit(X, labels)
        for classes in (["sick", "healthy"], ["healthy", "sick"])
    ]
    for model in models:
        assert model.classes_.tolist() == ["healthy", "sick"]
    assert np.array_equal(models[0].coef_, models[1].coef_)


@each_model
def test_with_much_budget_the_fit_is_good(model: type) -> None:
    frame = people_table(model, 3000)
    fitted = model(epsilon=1e6, schema=people(model), random_state=0).fit(frame)
    least = 0.85 if is_classifier(fitted) else 0.9
    if model is pf.QuantileRegressor:  # a share of absolute errors, not of their squares
        least = 1 - np.sqrt(1 - least)
    if model in AMOUNTS:  # whose mean is no line
        least = 0.8
    assert fitted.score(frame, frame["goal"]) > least


def test_with_much_budget_coefficients_are_the_effects_in_the_units_of_the_table() -> None:
    frame = people_table(pf.LinearRegression, 5000)
    wage = np.digitize(frame["wage"], [10, 20]) * 7.0
    frame["goal"] = (
        0.8 * frame["age"] + 30 * (frame["city"] == "Rome") - 20 * (frame["sex"] == "M") + wage + 10 * frame["height"]
    )
    model = pf.LinearRegression(epsilon=1e8, schema=people(pf.LinearRegression), random_state=0).fit(frame)
    effect = dict(zip(model.get_feature_names_out(), model.coef_, strict=True))
    assert effect["age"] == pytest.approx(0.8, abs=0.01)
    assert effect["height"] == pytest.approx(10, abs=0.1)
    assert effect["sex_M"] - effect["sex_F"] == pytest.approx(-20, abs=0.1)
    assert effect["city_Rome"] - effect["city_Oslo"] == pytest.approx(30, abs=0.1)
    assert effect["wage_[10, 20)"] - effect["wage_[0, 10)"] == pytest.approx(7, abs=0.1)
    assert effect["wage_[20, 50]"] - effect["wage_[0, 10)"] == pytest.approx(14, abs=0.1)


def test_with_much_budget_coefficients_of_a_classifier_point_the_right_way() -> None:
    frame = people_table(pf.LogisticRegression, 5000)
    frame["goal"] = np.where((frame["sex"] == "M") ^ (np.random.default_rng(2).random(5000) < 0.1), "yes", "no")
    model = pf.LogisticRegression(epsilon=1e6, schema=people(pf.LogisticRegression), random_state=0).fit(frame)
    effect = dict(zip(model.get_feature_names_out(), model.coef_[0], strict=True))
    assert effect["sex_M"] - effect["sex_F"] > 1
