"""scikit-learn to the letter: its tools around our estimators, and its rules about names."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone, is_classifier
from sklearn.compose import make_column_transformer
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_predict, cross_val_score, cross_validate
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler

import privfit as pf
from privfit.models import ESTIMATORS
from tests.conformance.cases import AMOUNTS

# -- a table, in two guises ------------------------------------------------------------------------


def box(model: type) -> pf.Schema:
    return pf.Schema.box(-1, 1, target=[0, 1] if is_classifier(model()) else (-2, 2))


def numbers(model: type, n: int = 600, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n, 3))
    score = X @ [1.0, -0.5, 0.25]
    if model in AMOUNTS:  # the mean is a function of the score, between the bounds of `box`
        return X, 2 * np.tanh(score / 2) if model is pf.FractionalRegressor else np.exp(score - 1)
    return X, (score > 0).astype(int) if is_classifier(model()) else score + rng.normal(0, 0.05, n)


def people(model: type) -> pf.Schema:
    target = pf.Category("goal", ["no", "yes"]) if is_classifier(model()) else pf.Numeric("goal", -50, 250)
    features = [
        pf.Numeric("age", 0, 100),
        pf.Category("city", ["Oslo", "Rome", "Lima"], other=True),
        pf.Numeric("wage", 0, 50, bins=[10, 20]),
        pf.Category("sex", ["F", "M"]),
        pf.Numeric("height", 1.2, 2.2),
    ]
    return pf.Schema(features, target)


def people_table(model: type, n: int = 800) -> pd.DataFrame:
    rng = np.random.default_rng(7)
    frame = pd.DataFrame(
        {
            "age": rng.uniform(0, 100, n),
            "city": rng.choice(["Oslo", "Rome", "Lima", "Bonn"], n),
            "wage": rng.uniform(0, 50, n),
            "sex": rng.choice(["F", "M"], n),
            "height": rng.uniform(1.2, 2.2, n),
        }
    )
    score = frame["age"] + 30 * (frame["city"] == "Rome") + frame["wage"] - 5 * (frame["sex"] == "M")
    return frame.assign(goal=np.where(score > score.median(), "yes", "no") if is_classifier(model()) else score)


def scores(model: Any, X: Any) -> np.ndarray:
    return model.decision_function(X) if is_classifier(model) else model.predict(X)


def knows(model: type, mechanism: Any) -> bool:
    """Whether a model can be fitted by this mechanism: moments, gradients, or, for logistic regression, both."""
    if isinstance(mechanism, pf.FunctionalMechanism):
        return model not in (pf.LinearSVC, pf.ERM, pf.AdditiveRegressor, pf.QuantileRegressor, *AMOUNTS)
    if isinstance(mechanism, pf.ObjectiveRegression):
        return model in (pf.LinearRegression, pf.AdditiveRegressor, pf.QuantileRegressor, *AMOUNTS)
    return model in (pf.LinearSVC, pf.ERM, pf.LogisticRegression, pf.AdditiveClassifier)


each_model = pytest.mark.parametrize("model", ESTIMATORS)

# -- scikit-learn's tools --------------------------------------------------------------------------


@each_model
def test_a_clone_has_the_same_parameters_the_same_ledger_and_no_fit(model: type) -> None:
    ledger = pf.Ledger(epsilon=1)
    fitted = model(epsilon=0.5, schema=box(model), adjacency="add-remove", ledger=ledger).fit(*numbers(model))
    twin = clone(fitted)
    assert twin.ledger is ledger
    assert twin.schema == fitted.schema
    assert {name: repr(value) for name, value in twin.get_params().items()} == {
        n: repr(v) for n, v in fitted.get_params().items()
    }
    with pytest.raises(NotFittedError):
        twin.predict(numbers(model)[0])
    twin.fit(*numbers(model))
    assert ledger.remaining == 0


@each_model
def test_parameters_can_be_set_and_are_never_overwritten_by_a_fit(model: type) -> None:
    mechanism = next(
        known
        for known in (
            pf.FunctionalMechanism(repair="ridge"),
            pf.ObjectivePerturbation(ridge=3.0),
            pf.ObjectiveRegression(noise="l2"),
        )
        if knows(model, known)
    )
    given = {
        "epsilon": 0.7,
        "mechanism": mechanism,
        "adjacency": "add-remove",
        "numeric": "bins",
        "rows_per_person": 2,
        "random_state": 3,
    }
    estimator = model().set_params(schema=box(model), **given)
    before = estimator.get_params(deep=False)
    estimator.fit(*numbers(model))
    after = estimator.get_params(deep=False)
    assert all(after[name] is value for name, value in before.items())
    with pytest.raises(ValueError, match="Invalid parameter"):
        estimator.set_params(epsilom=1)


@each_model
def test_a_pipeline_fits_predicts_and_scores(model: type) -> None:
    X, y = numbers(model)
    pipeline = Pipeline(
        [("scale", MinMaxScaler((-1, 1), clip=True)), ("fit", model(epsilon=1e6, schema=box(model), random_state=0))]
    )
    assert pipeline.fit(X, y).score(X, y) > 0.9
    assert pipeline.predict(X).shape == y.shape
    assert pipeline[-1].n_features_in_ == 3


@each_model
@pytest.mark.parametrize(
    ("output", "columns"), [("pandas", ["x0", "x1", "x2"]), ("polars", ["x0", "x1", "x2"]), ("default", None)]
)
def test_a_box_counts_the_columns_that_set_output_hands_on(model: type, output: str, columns: list[str] | None) -> None:
    X, y = numbers(model)
    estimator = model(epsilon=1e6, schema=box(model), numeric="slope", random_state=0)
    pipeline = make_pipeline(StandardScaler().set_output(transform=output), estimator)
    pipeline.fit(pd.DataFrame(X, columns=["a", "b", "c"]), y)
    names = getattr(pipeline[-1], "feature_names_in_", None)
    assert (None if names is None else list(names)) == columns
    assert list(pipeline[-1].get_feature_names_out()) == ["x0", "x1", "x2"]
    assert pipeline.predict(pd.DataFrame(X, columns=["a", "b", "c"])).shape == y.shape


@each_model
def test_a_column_transformer_can_stand_before_a_box(model: type) -> None:
    X, y = numbers(model)
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    chosen = make_column_transformer((MinMaxScaler((-1, 1)), ["c", "a"])).set_output(transform="pandas")
    pipeline = make_pipeline(chosen, model(epsilon=1e6, schema=box(model), numeric="slope", random_state=0)).fit(
        frame, y
    )
    assert list(pipeline[-1].feature_names_in_) == ["x0", "x1"]
    assert np.ravel(pipeline[-1].coef_).shape == (2,)


@each_model
def test_cross_validation_charges_every_fold(model: type) -> None:
    X, y = numbers(model)
    ledger = pf.Ledger(epsilon=1)
    result = cross_validate(model(epsilon=0.25, schema=box(model), ledger=ledger), X, y, cv=3, error_score="raise")
    assert np.isfinite(result["test_score"]).all()
    assert [entry.epsilon for entry in ledger.entries()] == [0.25] * 3
    with pytest.raises(pf.BudgetExceeded):
        cross_val_score(model(epsilon=0.25, schema=box(model), ledger=ledger), X, y, cv=3, error_score="raise")
    assert ledger.remaining == 0


@each_model
def test_a_grid_search_finds_the_better_setting_and_charges_every_fit(model: type) -> None:
    X, y = numbers(model, 3000)
    ledger = pf.Ledger(epsilon=1e7)
    grid = {"epsilon": [1e-3, 1e5], "fit_intercept": [True, False]}
    search = GridSearchCV(model(schema=box(model), ledger=ledger), grid, cv=3, error_score="raise").fit(X, y)
    assert search.best_params_["epsilon"] == 1e5
    assert search.best_score_ > 0.9
    assert len(ledger.entries()) == 2 * 2 * 3 + 1
    assert search.predict(X).shape == y.shape


@each_model
def test_a_grid_search_in_other_processes_charges_the_same_ledger(model: type) -> None:
    X, y = numbers(model)
    ledger = pf.Ledger(epsilon=10)
    GridSearchCV(
        model(schema=box(model), ledger=ledger), {"epsilon": [0.5, 1.0]}, cv=2, n_jobs=2, error_score="raise"
    ).fit(X, y)
    assert len(ledger.entries()) == 5
    assert {entry.epsilon for entry in ledger.entries()} <= {0.5, 1.0}


@each_model
@pytest.mark.parametrize("kind", [pd.DataFrame, pl.from_pandas])
def test_cross_validation_takes_frames_with_a_named_schema(model: type, kind: Any) -> None:
    frame = people_table(model)
    estimator = model(epsilon=1e6, schema=people(model), random_state=0)
    predicted = cross_val_predict(estimator, kind(frame.drop(columns="goal")), frame["goal"], cv=3)
    assert predicted.shape == (len(frame),)
    assert (
        cross_val_score(estimator, kind(frame.drop(columns="goal")), frame["goal"], cv=3, error_score="raise") > 0.6
    ).all()


def test_one_against_the_rest_makes_many_classes_of_two() -> None:
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (3000, 2))
    y = np.array(["left", "middle", "right"])[np.digitize(X[:, 0], [-0.4, 0.4])]
    ledger = pf.Ledger(epsilon=1e6)
    binary = pf.LogisticRegression(epsilon=1e5, schema=pf.Schema.box(-1, 1, target=[0, 1]), ledger=ledger)
    model = OneVsRestClassifier(binary).fit(X, y)
    assert model.score(X, y) > 0.6
    assert len(ledger.entries()) == 3


@each_model
def test_a_fitted_model_survives_a_pickle(model: type) -> None:
    frame = people_table(model)
    fitted = model(schema=people(model), ledger=pf.Ledger(epsilon=1)).fit(frame)
    again = pickle.loads(pickle.dumps(fitted))
    assert np.array_equal(scores(again, frame), scores(fitted, frame))
    assert repr(again.report_) == repr(fitted.report_)


# -- names and their order -------------------------------------------------------------------------


@each_model
def test_a_named_schema_finds_its_columns_in_any_order_and_ignores_others(model: type) -> None:
    frame = people_table(model)
    fitted = model(epsilon=1000, schema=people(model), random_state=0).fit(frame)
    mixed = frame[list(reversed(frame.columns))].assign(extra="?", **{"0": 1.5})
    again = model(epsilon=1000, schema=people(model), random_state=0).fit(mixed)
    assert np.array_equal(again.coef_, fitted.coef_)
    expected = scores(fitted, frame)
    assert np.ptp(expected) > 0.5  # columns matter, and so does their order
    for table in (
        frame.drop(columns="goal"),
        mixed,
        mixed.drop(columns="goal"),
        pl.from_pandas(mixed),
        frame.drop(columns="goal").to_numpy(),
    ):
        assert np.array_equal(scores(fitted, table), expected)
    assert list(fitted.feature_names_in_) == ["age", "city", "wage", "sex", "height"]
    assert fitted.n_features_in_ == 5


@each_model
def test_y_apart_and_the_target_as_a_column_are_the_same_fit(model: type) -> None:
    frame = people_table(model)
    inside = model(schema=people(model), random_state=0).fit(frame)
    apart = model(schema=people(model), random_state=0).fit(frame.drop(columns="goal"), frame["goal"])
    assert np.array_equal(inside.coef_, apart.coef_)
    assert np.array_equal(inside.intercept_, apart.intercept_)
    assert list(inside.feature_names_in_) == list(apart.feature_names_in_)


@each_model
def test_a_box_knows_columns_by_position_whatever_they_are_called(model: type) -> None:
    """A box lists no names, so that none of the table's own is public: they may be a row of a file without a header."""
    X, y = numbers(model)
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    named = model(schema=box(model), epsilon=1e5, ledger=pf.Ledger(epsilon=1e5)).fit(frame, y)
    assert list(named.feature_names_in_) == ["x0", "x1", "x2"]
    placed = model(schema=box(model), epsilon=1e5, ledger=pf.Ledger(epsilon=1e5)).fit(X, y)
    assert not hasattr(placed, "feature_names_in_")
    for fitted in (named, placed):
        expected = scores(fitted, X)
        assert np.ptp(expected) > 0.5  # columns matter, and so does their order
        for table in (
            frame,
            pl.from_pandas(frame),
            frame.rename(columns={"a": "z"}),
            frame.assign(target=0.0),
            pd.DataFrame(X),
        ):
            assert np.array_equal(scores(fitted, table), expected)
        for wrong in (frame.assign(d=0.0), frame[["a", "b"]], X[:, :2]):
            with pytest.raises(ValueError, match=r"X has [24] features, but \w+ is expecting 3"):
                scores(fitted, wrong)


@each_model
def test_numbered_columns_are_no_names(model: type) -> None:
    X, y = numbers(model)
    fitted = model(schema=box(model), epsilon=1e5, ledger=pf.Ledger(epsilon=1e5)).fit(pd.DataFrame(X), y)
    assert not hasattr(fitted, "feature_names_in_")
    assert np.array_equal(scores(fitted, pd.DataFrame(X)), scores(fitted, X))
    with pytest.raises(pf.DataError, match=r"some column names that are texts and some that are not"):
        model(schema=box(model), epsilon=1e5, ledger=pf.Ledger(epsilon=1e5)).fit(
            pd.DataFrame(X, columns=["a", 1, 2]), y
        )


@each_model
def test_names_are_forgotten_when_the_next_fit_has_none(model: type) -> None:
    X, y = numbers(model)
    fitted = model(schema=box(model), random_state=0).fit(pd.DataFrame(X, columns=["a", "b", "c"]), y)
    fitted.fit(X[:, :2], y)
    assert not hasattr(fitted, "feature_names_in_")
    assert fitted.n_features_in_ == 2


@each_model
def test_a_box_from_a_file_remembers_its_width(model: type, tmp_path: Path) -> None:
    X, y = numbers(model)
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    pl.from_pandas(frame.assign(target=y)).write_parquet(tmp_path / "t.parquet")
    schema = box(model)
    schema.save(tmp_path / "box.toml")
    fitted = model(schema=str(tmp_path / "box.toml"), epsilon=1e5, ledger=pf.Ledger(epsilon=1e5)).fit(
        tmp_path / "t.parquet"
    )
    assert (fitted.n_features_in_, list(fitted.feature_names_in_)) == (3, ["x0", "x1", "x2"])
    expected = scores(fitted, frame)
    assert np.ptp(expected) > 0.5  # columns matter, and so does their order
    lazy = pl.scan_parquet(tmp_path / "t.parquet")
    for table in (
        tmp_path / "t.parquet",
        lazy,
        lazy.collect().to_arrow().to_reader(),
        lazy.collect().to_arrow().to_batches()[0],
    ):
        assert np.array_equal(scores(fitted, table), expected)
    with pytest.raises(ValueError, match="2 features, but"):
        fitted.predict(X[:, :2])
