"""Majority, attacked by replay and by its law; NoPrivacy and Truncated, which say that they are not private and refuse
a ledger.
"""

from __future__ import annotations

import itertools
import math

import numpy as np
import polars as pl
import pytest
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.cluster import KMeans
from sklearn.linear_model import LinearRegression, LogisticRegression, RidgeClassifier
from sklearn.utils.estimator_checks import parametrize_with_checks

import privfit as pf
from privfit.baselines import Majority, NoPrivacy, Truncated
from privfit.mechanisms.base import PublicFacts
from privfit.mechanisms.histograms.class_counts import ClassCounts
from privfit.models import private
from privfit.privacy import Budget, Event, PrivacyParameters, process_ledger
from tests.support.noise import RecordingNoise, ReplayingNoise
from tests.support.people import people

TWO = pf.Schema([pf.Numeric("x", 0, 1)], target=pf.Category("y", ["no", "yes"]))
THREE = pf.Schema([pf.Numeric("x", 0, 1)], target=pf.Category("y", ["c", "a", "b"]))


def table_of(classes) -> pl.DataFrame:
    return pl.DataFrame({"x": [0.5] * len(classes), "y": list(classes)}, schema={"x": pl.Float64, "y": pl.String})


# -- Majority --------------------------------------------------------------------------------------


@pytest.mark.parametrize("people_", [1, 2])
@pytest.mark.parametrize("adjacency", ["replace-one", "add-remove"])
@pytest.mark.parametrize("schema", [TWO, THREE], ids=["two", "three"])
def test_noise_replayed_on_all_neighbours(monkeypatch, schema, adjacency, people_) -> None:
    levels = schema.target.levels
    smaller = list(itertools.combinations_with_replacement(levels, 2))
    if adjacency == "replace-one":
        pairs = [([*rest, a], [*rest, b]) for rest in smaller for a, b in itertools.combinations(levels, 2)]
    else:
        pairs = [([*rest, a], list(rest)) for rest in smaller for a in levels]
    most = 0.0
    for left_rows, right_rows in pairs:
        outcomes = []
        noise = RecordingNoise(seed=0)
        for rows in (left_rows, right_rows):
            monkeypatch.setattr(private, "noise_source", lambda random_state, noise=noise: noise)
            ledger = pf.Ledger(epsilon=1.0)
            model = Majority(0.4, schema=schema, adjacency=adjacency, rows_per_person=people_, ledger=ledger).fit(
                table_of(rows)
            )
            (entry,) = ledger.entries()
            outcomes.append((noise.calls[-1], model.majority_, str(model.report_), entry.event))
            noise = ReplayingNoise(noise.calls)
        (call, *told), (call_too, *told_too) = outcomes
        assert told == told_too
        assert (call.values.shape, call.scale) == (call_too.values.shape, call_too.scale)
        moved = people_ * int(np.abs(call.values - call_too.values).sum())
        assert moved <= told[-1].sensitivity
        assert moved / call.scale <= 0.4 * (1 + 1e-12)
        most = max(most, moved / told[-1].sensitivity)
    assert most == 1.0


@pytest.mark.parametrize("adjacency", ["replace-one", "add-remove"])
def test_two_classes_need_one_number_with_noise_of_one_over_epsilon(adjacency) -> None:
    def planned(schema) -> Event:
        mechanism, parameters = ClassCounts(), PrivacyParameters(Budget(0.5), adjacency)
        return mechanism.plan(PublicFacts(mechanism.geometry(schema), parameters, None)).event

    event = planned(TWO)
    assert (event.sensitivity, event.scale, event.n_values) == (1, 2.0, 1)
    three = planned(THREE)
    assert (three.sensitivity, three.n_values) == (2 if adjacency == "replace-one" else 1, 3)


@pytest.mark.parametrize("adjacency", ["replace-one", "add-remove"])
def test_the_chance_of_the_other_class_is_that_of_the_noise(adjacency) -> None:
    """Five against three at epsilon 0.5.

    The count 3 + noise exceeds 4 where noise is at least 2; the difference -2 + noise exceeds 0 where it is at least 3.
    """
    table = table_of(["no"] * 5 + ["yes"] * 3)
    runs = 1500
    seen = sum(
        Majority(0.5, schema=TWO, adjacency=adjacency, random_state=seed).fit(table).majority_ == "yes"
        for seed in range(runs)
    )
    alpha, least = math.exp(-0.5), 2 if adjacency == "replace-one" else 3
    chance = alpha**least / (1 + alpha)
    assert abs(seen - runs * chance) < 5 * math.sqrt(runs * chance * (1 - chance))


@pytest.mark.parametrize("adjacency", ["replace-one", "add-remove"])
@pytest.mark.parametrize(
    ("schema", "classes", "largest"),
    [(TWO, ["yes"] * 900 + ["no"] * 700, "yes"), (THREE, ["c"] * 900 + ["a"] * 700 + ["b"], "c")],
)
def test_the_largest_class_is_predicted_for_every_row(adjacency, schema, classes, largest) -> None:
    model = Majority(1.0, schema=schema, adjacency=adjacency, ledger=pf.Ledger(epsilon=1.0)).fit(table_of(classes))
    assert model.majority_ == largest
    assert model.classes_.tolist() == sorted(schema.target.levels)
    assert model.predict(table_of(classes)[:7]).tolist() == [largest] * 7
    assert model.score(table_of(classes).drop("y"), np.array(classes)) == pytest.approx(
        classes.count(largest) / len(classes)
    )
    assert model.report_.private


def test_majority_charges_nothing_for_bad_rows() -> None:
    ledger = pf.Ledger(epsilon=1.0)
    for bad in (["no", "what"], []):
        with pytest.raises(pf.DataError, match="Nothing was charged"):
            Majority(schema=TWO, ledger=ledger).fit(table_of(bad))
    assert float(ledger.spent) == 0.0


@parametrize_with_checks([Majority(schema="public"), Truncated(schema="public")])
def test_scikit_learns_own_checks(estimator, check) -> None:
    assert check(estimator) is None


# -- not private -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "model",
    [NoPrivacy(schema=TWO), NoPrivacy("svm", schema=TWO), Truncated(schema=TWO)],
    ids=lambda m: type(m).__name__,
)
def test_a_ledger_is_refused_before_anything_is_read(model) -> None:
    ledger = pf.Ledger(epsilon=1.0)
    refused = clone(model).set_params(ledger=ledger)
    with pytest.raises(pf.PrivacyError, match=r"without noise.*takes private fits only"):
        refused.fit("there is no such file.csv")
    assert ledger.entries() == []
    assert float(ledger.spent) == 0.0


def test_they_say_that_they_are_not_private_and_leave_the_process_ledger_alone(tmp_path) -> None:
    before = len(process_ledger().entries())
    table = table_of(["no", "yes", "yes", "no"]).with_columns(pl.Series("x", [0.0, 0.8, 1.0, 0.3]))
    for model in (NoPrivacy(schema=TWO), Truncated(schema=TWO)):
        report = model.fit(table).report_
        assert not report.private
        assert math.isinf(report.epsilon)
        assert "NO: " in str(report)
        assert "without noise" in str(report)
        assert report.released_values == 0
        with pytest.raises(pf.PrivacyError, match="not private"):
            model.save(tmp_path / "model.json")
    assert len(process_ledger().entries()) == before


def test_linear_regression_without_privacy_is_least_squares_on_the_clipped_table() -> None:
    frame, schema = people(2000)
    frame = frame.with_columns(pl.when(pl.col("age") > 70).then(500.0).otherwise(pl.col("age")).alias("age"))
    model = NoPrivacy("linear", schema=schema).fit(frame)
    dummies = [
        (frame[name] == level).cast(pl.Float64)
        for name, levels in (("region", "nesw"), ("member", ["no", "yes"]))
        for level in levels
    ]
    design = np.column_stack([frame["age"].clip(18, 80), frame["hours"].clip(0, 80), *dummies])
    income = np.clip(frame["income"].to_numpy(), -20, 150)
    wanted = LinearRegression().fit(design, income)
    inside = frame.filter(pl.col("age") <= 80)
    kept = (frame["age"] <= 80).to_numpy()
    np.testing.assert_allclose(model.predict(inside.drop("income")), wanted.predict(design[kept]), rtol=1e-8)
    assert is_regressor(model)
    assert not is_classifier(model)
    assert model.get_feature_names_out().tolist()[:3] == ["age", "hours", "region_n"]


def test_classifiers_without_privacy_are_scikit_learns_own() -> None:
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (800, 3))
    y = np.where(X @ [3.0, -2.0, 0.0] + rng.logistic(size=len(X)) > 0, "yes", "no")
    schema = pf.Schema.box(-1, 1, target=["yes", "no"])
    model = NoPrivacy("logistic", schema=schema).fit(X, y)
    wanted = LogisticRegression(max_iter=1000).fit(X, y)
    np.testing.assert_allclose(model.predict_proba(X), wanted.predict_proba(X), atol=1e-6)
    np.testing.assert_allclose(model.decision_function(X), wanted.decision_function(X), atol=1e-5)
    assert model.score(X, y) == wanted.score(X, y)
    assert model.classes_.tolist() == ["no", "yes"]
    assert is_classifier(model)
    machine = NoPrivacy("svm", schema=schema, random_state=0).fit(X, y)
    assert not hasattr(machine, "predict_proba")
    assert machine.score(X, y) > 0.75
    own = NoPrivacy(RidgeClassifier(alpha=2.0), schema=schema).fit(X, y)
    assert own.score(X, y) == RidgeClassifier(alpha=2.0).fit(X, y).score(X, y)


def test_clusters_without_privacy() -> None:
    rows = np.tile([[10.0, 10.0], [90.0, 90.0]], (50, 1))
    model = NoPrivacy(KMeans(2, n_init=1), schema=pf.Schema.box(0, 100), random_state=0).fit(rows)
    assert len(set(model.predict(rows[:2]))) == 2
    assert model.score(rows) == pytest.approx(0.0)
    spread = np.random.default_rng(0).uniform(0, 100, (200, 2))
    assert len(NoPrivacy("kmeans", schema=pf.Schema.box(0, 100)).fit(spread).model_.cluster_centers_) == 8


@pytest.mark.parametrize("model", ["forest", None, 3, pf.LinearRegression()], ids=str)
def test_models_that_nobody_knows_are_refused(model) -> None:
    with pytest.raises(pf.PrivacyError, match="NoPrivacy"):
        NoPrivacy(model, schema=TWO).fit(table_of(["no", "yes"]))


def test_truncated_minimises_the_taylor_quadratic() -> None:
    """log(1 + e^z) - y z, cut after z^2 / 8: its minimum is least squares of 4 (y - 1/2) on the columns."""
    rng = np.random.default_rng(0)
    X = np.round(rng.uniform(-1, 1, (600, 3)), 2)
    y = (X @ [1.0, -2.0, 0.5] + rng.logistic(size=len(X)) > 0.3).astype(int)
    schema = pf.Schema.box(-1, 1, target=[0, 1])
    model = Truncated(schema=schema).fit(X, y)
    wanted = LinearRegression().fit(X, 4 * (y - 0.5))
    np.testing.assert_allclose(model.coef_[0], wanted.coef_, atol=1e-3)
    np.testing.assert_allclose(model.intercept_[0], wanted.intercept_, atol=1e-3)
    through = Truncated(schema=schema, fit_intercept=False).fit(X, y)
    np.testing.assert_allclose(
        through.coef_[0], LinearRegression(fit_intercept=False).fit(X, 4 * (y - 0.5)).coef_, atol=1e-3
    )
    assert model.score(X, y) > 0.7
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1.0)


def test_truncated_takes_columns_that_say_the_same() -> None:
    rng = np.random.default_rng(0)
    x = np.round(rng.uniform(-1, 1, 300), 2)
    frame = pl.DataFrame({"a": x, "b": x, "c": ["u"] * 300, "y": np.where(x > 0.1, "yes", "no")})
    schema = pf.Schema(
        [pf.Numeric("a", -1, 1), pf.Numeric("b", -1, 1), pf.Category("c", ["u", "v", "w"])], target=TWO.target
    )
    model = Truncated(schema=schema).fit(frame)
    assert np.abs(model.coef_).max() < 10
    assert model.coef_[0, 0] == pytest.approx(model.coef_[0, 1], rel=1e-6)


def test_truncated_and_the_functional_mechanism_meet_as_epsilon_grows() -> None:
    rng = np.random.default_rng(1)
    X = rng.uniform(-1, 1, (3000, 2))
    y = np.where(X @ [2.0, -1.0] + rng.logistic(size=len(X)) > 0, "yes", "no")
    schema = pf.Schema.box(-1, 1, target=["no", "yes"])
    wanted = Truncated(schema=schema).fit(X, y).coef_[0]
    noisy = pf.LogisticRegression(1e7, schema=schema, mechanism="functional", random_state=0).fit(X, y).coef_[0]
    assert noisy @ wanted / np.linalg.norm(noisy) / np.linalg.norm(wanted) > 0.9999
