"""scikit-learn to the letter: its own checks, its tools around our estimators, its rules about names, its public
modules only.
"""

from __future__ import annotations

import ast
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy.special import expit
from sklearn.base import clone, is_classifier
from sklearn.compose import make_column_transformer
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_predict, cross_val_score, cross_validate
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

import privfit as pf
from privfit.models import ESTIMATORS

ROOT = Path(__file__).parents[2]
SOURCES = [path for folder in ("src", "papers/src") for path in sorted((ROOT / folder).rglob("*.py"))]

# -- scikit-learn's own checks ---------------------------------------------------------------------

EXCEPTIONS: dict[type, dict[str, str]] = {}
"""Checks that an estimator may fail, by name, with the reason. Empty: all pass."""


def checked(epsilon: float) -> pytest.MarkDecorator:
    return parametrize_with_checks(
        [estimator(epsilon=epsilon, schema="public") for estimator in ESTIMATORS],
        expected_failed_checks=lambda estimator: EXCEPTIONS.get(type(estimator), {}),
    )


@checked(epsilon=1e6)
def test_every_check_of_scikit_learn_passes(estimator: Any, check: Any) -> None:
    check(estimator)


@pytest.mark.slow
@checked(epsilon=1.0)
def test_every_check_of_scikit_learn_passes_with_much_noise(estimator: Any, check: Any) -> None:
    check(estimator)


# -- a table, in two guises ------------------------------------------------------------------------


def box(model: type) -> pf.Schema:
    return pf.Schema.box(-1, 1, target=[0, 1] if is_classifier(model()) else (-2, 2))


def numbers(model: type, n: int = 600, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n, 3))
    score = X @ [1.0, -0.5, 0.25]
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
        for known in (pf.FunctionalMechanism(repair="ridge"), pf.ObjectivePerturbation(ridge=3.0))
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


# -- coefficients and their names ------------------------------------------------------------------


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


def knows(model: type, mechanism: Any) -> bool:
    """Whether a model can be fitted by this mechanism: moments, gradients, or, for logistic regression, both."""
    if isinstance(mechanism, pf.FunctionalMechanism):
        return model not in (pf.LinearSVC, pf.ERM)
    return model in (pf.LinearSVC, pf.ERM, pf.LogisticRegression)


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
    assert fitted.score(frame, frame["goal"]) > (0.85 if is_classifier(fitted) else 0.9)


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


# -- public modules only ---------------------------------------------------------------------------


def private_uses(source: str) -> list[str]:
    """Every way in which a source reaches into a private part of scikit-learn: imports and dotted names."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names if alias.name.split(".")[0] == "sklearn"]
        elif isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "sklearn":
            found += [f"{node.module}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Attribute):
            dotted = ast.unparse(node)
            found += [dotted] if dotted.split(".")[0] == "sklearn" else []
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.startswith("sklearn."):
            found.append(node.value)
    return [name for name in found if any(part.startswith("_") for part in name.split("."))]


@pytest.mark.parametrize(
    "source",
    [
        "from sklearn.utils._param_validation import Interval",
        "from sklearn.linear_model import _base",
        "import sklearn.linear_model._logistic as logistic",
        "import sklearn\nsklearn.utils._tags",
        "importlib.import_module('sklearn.utils._mask')",
    ],
)
def test_a_private_module_of_scikit_learn_would_be_found(source: str) -> None:
    assert private_uses(source)


def test_only_public_modules_of_scikit_learn_are_used() -> None:
    sources = {path: path.read_text(encoding="utf-8") for path in SOURCES}
    assert sum("sklearn" in source for source in sources.values()) >= 3
    assert {
        str(path.relative_to(ROOT)): uses for path, source in sources.items() if (uses := private_uses(source))
    } == {}
