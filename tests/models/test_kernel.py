"""A kernel by public random features: what a line cannot separate, with norms that noise is calibrated from, saved and
loaded.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import privfit as pf
from privfit.features import FourierFeatures
from privfit.models.features import PUBLIC_SEED
from tests.support.beats import assert_told_in_order

SCHEMA = pf.Schema.box(-1, 1, target=[0, 1])
ESTIMATORS = [pf.LogisticRegression, pf.LinearSVC]


def corners(rows: int = 6000, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Opposite corners are of one class: no line separates them, and no sum of curves of one column each."""
    X = np.random.default_rng(seed).uniform(-1, 1, (rows, 2))
    return X, (X[:, 0] * X[:, 1] > 0).astype(int)


def fitted(estimator: Any, epsilon: float = 20.0, rows: int = 6000, **given_: Any) -> Any:
    usual = {"kernel": "rbf", "gamma": 2.0, "n_components": 60, "numeric": "slope", "random_state": 0}
    return estimator(epsilon=epsilon, schema=SCHEMA, **(usual | given_)).fit(*corners(rows))


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_a_kernel_separates_what_linear_models_cannot(estimator: Any) -> None:
    X, y = corners(3000, seed=1)
    assert fitted(estimator).score(X, y) > 0.85
    for numeric in ("slope", "splines"):  # not even with a curve per column, as long as columns add up
        assert fitted(estimator, kernel="linear", numeric=numeric, mechanism="objective").score(X, y) < 0.6


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_a_kernel_finds_a_circle_that_a_line_does_not(estimator: Any) -> None:
    X = np.random.default_rng(5).uniform(-1, 1, (6000, 2))
    inside = ((X**2).sum(axis=1) < 2 / np.pi).astype(int)  # half of all
    given_ = {"epsilon": 5.0, "schema": SCHEMA, "gamma": 1.0, "n_components": 40, "numeric": "slope", "random_state": 0}
    assert estimator(kernel="rbf", **given_).fit(X, inside).score(X, inside) > 0.85
    assert estimator(kernel="linear", **given_).fit(X, inside).score(X, inside) < 0.6


@pytest.mark.parametrize("pairs", [1, 7, 50])
@pytest.mark.parametrize("gamma", [0.01, 1.0, 30.0])
def test_no_row_of_features_is_longer_than_noise_is_made_for(pairs: int, gamma: float) -> None:
    features = FourierFeatures(4, pairs, gamma, PUBLIC_SEED)
    rows = features(np.random.default_rng(0).uniform(-1, 1, (3000, 4)) @ features.frequencies)
    assert rows.shape == (3000, 2 * pairs) == (3000, features.n_columns)
    np.testing.assert_allclose(np.linalg.norm(rows, axis=1), features.norms.l2)
    assert np.abs(rows).sum(axis=1).max() <= features.norms.l1
    assert np.abs(rows).max() <= features.norms.linf * (1 + 1e-12)
    assert features.norms.l1 == pytest.approx(math.sqrt(2 * pairs))


def test_inner_products_of_features_approach_the_kernel() -> None:
    rng = np.random.default_rng(0)
    left, right = rng.uniform(-1, 1, (2, 200, 3))
    features = FourierFeatures(3, 4000, 0.8, PUBLIC_SEED)
    found = np.sum(features(left @ features.frequencies) * features(right @ features.frequencies), axis=1)
    np.testing.assert_allclose(found, np.exp(-0.8 * ((left - right) ** 2).sum(axis=1)), atol=0.08)


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_features_come_from_a_public_seed(estimator: Any) -> None:
    """At a huge epsilon two fits with other noise agree, and so do their features."""
    given_ = {"mechanism": pf.ObjectivePerturbation(ridge=5.0), "n_components": 20, "rows": 500}
    models = [fitted(estimator, 1e8, random_state=seed, **given_) for seed in (0, 1)]
    X, _ = corners(100, seed=2)
    assert models[0]._features == models[1]._features
    np.testing.assert_allclose(models[0].decision_function(X), models[1].decision_function(X), atol=1e-3)
    np.testing.assert_allclose(models[0].coef_, models[1].coef_, atol=1e-3)


def test_a_fit_without_a_seed_has_the_same_features_and_is_private() -> None:
    models = [fitted(pf.LogisticRegression, random_state=None, rows=300, n_components=10) for _ in range(2)]
    assert models[0]._features == models[1]._features
    assert models[0].report_.private
    assert (models[0].coef_ != models[1].coef_).any()


@pytest.mark.parametrize("estimator", ESTIMATORS)
@pytest.mark.parametrize("numeric", ["slope", "splines"])
def test_a_saved_model_with_a_kernel_predicts_the_same(estimator: Any, numeric: str, tmp_path: Path) -> None:
    model = fitted(estimator, rows=300, n_components=12, numeric=numeric)
    X, _ = corners(100, seed=3)
    model.save(tmp_path / "model.json")
    loaded = pf.load_model(tmp_path / "model.json")
    np.testing.assert_array_equal(loaded.decision_function(X), model.decision_function(X))
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))
    assert (loaded.kernel, loaded.gamma, loaded.n_components) == ("rbf", 2.0, 12)
    assert list(loaded.get_feature_names_out()) == list(model.get_feature_names_out())


def test_a_saved_model_with_a_kernel_and_no_intercept_predicts_the_same(tmp_path: Path) -> None:
    schema = pf.Schema([pf.Numeric("a", 0, 1), pf.Numeric("b", 0, 1)], target=pf.Category("y", [0, 1]))
    X, y = corners(300)
    model = pf.LogisticRegression(
        10.0, schema=schema, kernel="rbf", n_components=10, numeric="slope", fit_intercept=False, random_state=0
    ).fit(X, y)
    model.save(tmp_path / "model.json")
    np.testing.assert_allclose(pf.load_model(tmp_path / "model.json").decision_function(X), model.decision_function(X))


def test_a_kernel_without_an_intercept_takes_signs() -> None:
    schema = pf.Schema([pf.Numeric("a", -1, 1), pf.Category("s", [0, 1])], target=pf.Category("y", [0, 1]))
    X, y = corners(200)
    X[:, 1] = X[:, 1] > 0
    model = pf.LogisticRegression(
        10.0, schema=schema, kernel="rbf", n_components=10, numeric="slope", fit_intercept=False, random_state=0
    )
    assert np.isfinite(model.fit(X, y).decision_function(X)).all()


def test_features_are_named_by_their_number() -> None:
    model = fitted(pf.LogisticRegression, rows=100, n_components=4)
    assert list(model.get_feature_names_out()) == ["cos_0", "cos_1", "sin_0", "sin_1"]
    assert model.coef_.shape == (1, 4)
    assert model.intercept_.tolist() == [0.0]
    assert model.report_.released_values == 4


@pytest.mark.parametrize("classes", [3, 5])
def test_many_classes_have_kernels_too(classes: int, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (4000, 2))
    y = np.minimum((np.hypot(X[:, 0], X[:, 1]) * classes / 1.2).astype(int), classes - 1)  # rings
    schema = pf.Schema.box(-1, 1, target=list(range(classes)))
    given_ = {"schema": schema, "gamma": 2.0, "n_components": 60, "numeric": "slope", "random_state": 0}
    model, flat = (pf.LogisticRegression(100.0, kernel=kernel, **given_).fit(X, y) for kernel in ("rbf", "linear"))
    assert model.score(X, y) > flat.score(X, y) + 0.15
    assert model.predict_proba(X).shape == (4000, classes)
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1)
    model.save(tmp_path / "model.json")
    np.testing.assert_array_equal(pf.load_model(tmp_path / "model.json").predict_proba(X), model.predict_proba(X))


def test_a_perturbed_minimum_and_a_private_choice_take_kernels() -> None:
    X, y = corners(1500)
    given_ = {"rows": 1500, "n_components": 20}
    assert fitted(pf.LogisticRegression, 1e5, mechanism="output", **given_).score(X, y) > 0.8
    tuned = pf.TunedPerturbation(candidates=(pf.ObjectivePerturbation(ridge=1.0), pf.ObjectivePerturbation(ridge=1e9)))
    model = fitted(pf.LogisticRegression, 100.0, mechanism=tuned, **given_)
    assert model.report_.repairs["ridge"] == 1.0


REFUSED = {
    "moments": (
        {"mechanism": "functional"},
        ["kernel='rbf' was given with the functional mechanism", "fits linear models", "Use mechanism='objective'"],
    ),
    "an unknown kernel": ({"kernel": "poly"}, ["kernel='poly' was given", "it is one of", "'linear' if in doubt"]),
    "a gamma of nothing": ({"gamma": 0.0}, ["gamma=0.0 was given", "a positive number", "Leave it out"]),
    "a gamma of text": ({"gamma": "scale"}, ["gamma='scale' was given", "a positive number", "Leave it out"]),
    "no components": ({"n_components": 0}, ["n_components=0 was given", "a positive integer", "Leave it out"]),
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_a_kernel_cannot_do_is_refused_in_three_beats_and_uncharged(what: str, tmp_path: Path) -> None:
    parameters, beats = REFUSED[what]
    ledger = pf.Ledger(tmp_path / "ledger.db", epsilon=30.0)
    with pytest.raises(pf.PrivacyError) as refused:
        fitted(pf.LogisticRegression, rows=50, ledger=ledger, random_state=None, **parameters)
    assert_told_in_order(str(refused.value), beats)
    assert ledger.spent.epsilon == 0


def test_a_gamma_that_is_no_number_is_refused_in_a_sentence() -> None:
    with pytest.raises(pf.PrivacyError, match="gamma=None was given"):
        fitted(pf.LogisticRegression, rows=50, gamma=None)


def test_without_a_gamma_of_its_own_a_kernel_has_four_over_the_columns_and_categories_count_three_times() -> None:
    model = fitted(pf.LogisticRegression, rows=100, gamma="auto", n_components=6)
    assert model._features.gamma == 2.0
    assert (
        fitted(pf.LogisticRegression, rows=100, gamma="auto", n_components=6, numeric="splines")._features.gamma == 2.0
    )
    schema = pf.Schema(
        [pf.Numeric("x", 0, 1), pf.Category("c", list("abc")), pf.Numeric("b", 0, 1, bins=4)],
        target=pf.Category("y", [0, 1]),
    )
    frame = pl.DataFrame({"x": [0.1, 0.9], "c": ["a", "b"], "b": [0.3, 0.6], "y": [0, 1]})
    assert pf.LogisticRegression(schema=schema, kernel="rbf", random_state=0).fit(frame)._features.gamma == 4 / 7


@pytest.mark.parametrize("estimator", [pf.LogisticRegression, pf.LinearSVC])
@pytest.mark.parametrize("epsilon", [0.3, 3.0])
def test_a_kernel_sees_what_two_of_several_columns_say_together(estimator: Any, epsilon: float) -> None:
    """By default, at any epsilon: numbers enter as they are, and not as a line through knots."""
    rng = np.random.default_rng(3)
    X = rng.uniform(-1, 1, (30_000, 6))
    y = (X[:, 0] * X[:, 1] > 0).astype(int)
    model = estimator(epsilon, schema=pf.Schema.box(-1, 1, target=[0, 1]), kernel="rbf", random_state=0).fit(X, y)
    assert model._numeric_used == "slope"
    assert model.score(X, y) > 0.8
