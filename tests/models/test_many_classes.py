"""More than two classes: softmax for the logistic loss, each against the rest for others; in order, with chances that
add up and come true, saved and loaded.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression as Plain
from sklearn.metrics import log_loss

import privfit as pf
from privfit.losses import LOGISTIC, hinge, smooth_hinge
from privfit.mechanisms.perturbation import precision as minima
from privfit.mechanisms.perturbation.problem import coupling_for
from privfit.solvers import minimise_certified
from tests.support.beats import assert_told_in_order

ESTIMATORS = [pf.LogisticRegression, pf.LinearSVC, pf.ERM]


def table_of(classes: int, rows: int = 5000, seed: int = 0, noise: float = 0.15) -> tuple[np.ndarray, np.ndarray]:
    """Slices of a disc: each class is where one direction is longest."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (rows, 2))
    angles = 2 * np.pi * np.arange(classes) / classes
    reach = X @ np.stack([np.cos(angles), np.sin(angles)]) + noise * rng.gumbel(size=(rows, classes))
    return X, np.argmax(reach, axis=1)


def schema_for(classes: int, levels: list | None = None) -> pf.Schema:
    columns = [pf.Numeric("a", -1, 1), pf.Numeric("b", -1, 1)]
    return pf.Schema(columns, target=pf.Category("y", levels if levels is not None else list(range(classes))))


def fitted(estimator: Any, classes: int, epsilon: float = 3.0, rows: int = 5000, **given_: Any) -> Any:
    return estimator(epsilon=epsilon, schema=schema_for(classes), random_state=0, **given_).fit(
        *table_of(classes, rows)
    )


def test_classes_are_fitted_by_softmax_or_each_against_the_rest() -> None:
    assert [coupling_for(LOGISTIC, classes) for classes in (1, 3, 4, 9)] == ["one", "softmax", "softmax", "softmax"]
    assert {coupling_for(smooth_hinge(), classes) for classes in (3, 4, 9)} == {"one-vs-rest"}


@pytest.mark.parametrize("estimator", ESTIMATORS)
@pytest.mark.parametrize("classes", [3, 5])
@pytest.mark.parametrize("mechanism", ["objective", "output"])
def test_classes_are_told_apart_and_results_have_a_column_each(estimator: Any, classes: int, mechanism: str) -> None:
    given_ = {"mechanism": mechanism, "epsilon": 3.0 if mechanism == "objective" else 1e4}
    model = fitted(estimator, classes, numeric="slope", **given_)
    X, y = table_of(classes, 2000, seed=1)
    best = Plain(C=1e4).fit(*table_of(classes)).score(X, y)
    assert model.score(X, y) > best - 0.06
    assert model.coef_.shape == (classes, 2)
    assert model.intercept_.shape == (classes,)
    assert list(model.classes_) == list(range(classes))
    scores = model.decision_function(X)
    assert scores.shape == (2000, classes)
    np.testing.assert_allclose(scores, X @ model.coef_.T + model.intercept_, atol=1e-9)
    np.testing.assert_array_equal(model.predict(X), scores.argmax(axis=1))


@pytest.mark.parametrize("estimator", [pf.LogisticRegression, pf.ERM])
@pytest.mark.parametrize("classes", [3, 5])
def test_chances_add_up_and_side_with_the_predicted_class(estimator: Any, classes: int) -> None:
    model = fitted(estimator, classes, mechanism=pf.ObjectivePerturbation(steepest=1.0))
    X, _ = table_of(classes, 300, seed=2)
    chances = model.predict_proba(X)
    assert chances.shape == (300, classes)
    assert (chances > 0).all()
    np.testing.assert_allclose(chances.sum(axis=1), 1)
    np.testing.assert_array_equal(chances.argmax(axis=1), model.predict(X))


@pytest.mark.parametrize(("classes", "worse"), [(3, 1.1), (5, 1.05)])
def test_chances_are_about_as_good_as_those_of_scikit_learn(classes: int, worse: float) -> None:
    """One against the rest is another model than softmax, which the classes here follow; its chances are made to add
    up.
    """
    X, y = table_of(classes, 20_000, noise=0.4)
    model = pf.LogisticRegression(20.0, schema=schema_for(classes), numeric="slope", random_state=0).fit(X, y)
    plain = Plain(C=1e4).fit(X, y)
    fresh, truth = table_of(classes, 10_000, seed=1, noise=0.4)
    assert log_loss(truth, model.predict_proba(fresh)) < worse * log_loss(truth, plain.predict_proba(fresh))


def test_softmax_at_a_huge_epsilon_is_that_of_scikit_learn() -> None:
    X, y = table_of(4, 800, noise=0.4)
    X = np.rint(X * 2**16) / 2**16
    model = pf.LogisticRegression(
        1e7, schema=schema_for(4), mechanism=pf.ObjectivePerturbation(ridge=2.0), numeric="slope", random_state=0
    ).fit(X, y)
    plain = Plain(C=1 / 2, fit_intercept=False, tol=1e-10, max_iter=10_000).fit(np.column_stack([np.ones(800), X]), y)
    np.testing.assert_allclose(model.coef_, plain.coef_[:, 1:], atol=1e-3)
    np.testing.assert_allclose(model.intercept_, plain.coef_[:, 0], atol=1e-3)
    np.testing.assert_allclose(
        model.predict_proba(X), plain.predict_proba(np.column_stack([np.ones(800), X])), atol=1e-3
    )


def test_one_against_the_rest_at_a_huge_epsilon_is_a_fit_per_class() -> None:
    X, y = table_of(3, 600)
    X = np.rint(X * 2**16) / 2**16
    loss = replace(LOGISTIC, name="a logistic loss by another name")
    model = pf.ERM(loss, 2.0, epsilon=1e7, schema=schema_for(3), numeric="slope", random_state=0).fit(X, y)
    for k in range(3):
        plain = Plain(C=1 / 2, fit_intercept=False, tol=1e-10, max_iter=10_000).fit(
            np.column_stack([np.ones(600), X]), y == k
        )
        np.testing.assert_allclose(model.coef_[k], plain.coef_[0, 1:], atol=1e-3)
        assert model.intercept_[k] == pytest.approx(plain.coef_[0, 0], abs=1e-3)


@pytest.mark.parametrize("estimator", ESTIMATORS)
@pytest.mark.parametrize("levels", [["mid", "low", "top"], [30, 10, 20], ["b", "e", "a", "d", "c"]])
def test_classes_are_in_order_whatever_order_the_schema_lists_them_in(estimator: Any, levels: list) -> None:
    X, y = table_of(len(levels), 3000)
    named = np.array(levels)[y]
    model = estimator(epsilon=50.0, schema=schema_for(0, levels), numeric="slope", random_state=0).fit(X, named)
    assert list(model.classes_) == sorted(levels)
    assert model.score(X, named) > 0.7
    assert set(model.predict(X)) == set(levels)


@pytest.mark.parametrize("estimator", ESTIMATORS)
@pytest.mark.parametrize("classes", [3, 5])
def test_a_saved_model_of_many_classes_is_the_same(estimator: Any, classes: int, tmp_path: Path) -> None:
    model = fitted(estimator, classes, rows=500)
    X, _ = table_of(classes, 200, seed=3)
    model.save(tmp_path / "model.json")
    loaded = pf.load_model(tmp_path / "model.json")
    np.testing.assert_array_equal(loaded.classes_, model.classes_)
    np.testing.assert_array_equal(loaded.coef_, model.coef_)
    np.testing.assert_array_equal(loaded.decision_function(X), model.decision_function(X))
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))
    if estimator is not pf.LinearSVC:
        np.testing.assert_array_equal(loaded.predict_proba(X), model.predict_proba(X))


def test_one_row_is_predicted_as_a_row_of_classes() -> None:
    model = fitted(pf.LogisticRegression, 3, rows=300)
    assert model.decision_function(np.zeros((1, 2))).shape == (1, 3)
    assert model.predict_proba(np.zeros((1, 2))).shape == (1, 3)


def test_moments_fit_two_classes_only(tmp_path: Path) -> None:
    ledger = pf.Ledger(tmp_path / "ledger.db", epsilon=2.0)
    for mechanism in ("functional", pf.FunctionalMechanism()):
        with pytest.raises(pf.SchemaError) as refused:
            pf.LogisticRegression(1.0, schema=schema_for(3), mechanism=mechanism, ledger=ledger).fit(*table_of(3, 50))
        assert_told_in_order(
            str(refused.value), ["was given the target 'y' with 3 classes", "it fits two", "Use mechanism='objective'"]
        )
    assert ledger.spent.epsilon == 0


def test_many_classes_are_one_release_and_one_charge(tmp_path: Path) -> None:
    ledger = pf.Ledger(tmp_path / "ledger.db", epsilon=2.0)
    report = (
        pf.LogisticRegression(0.7, schema=schema_for(5), ledger=ledger, numeric="slope").fit(*table_of(5, 300)).report_
    )
    assert ledger.spent.epsilon == pytest.approx(0.7, abs=0)
    assert report.released_values == 5 * 3


def test_more_classes_need_more_noise() -> None:
    sizes = [fitted(pf.LinearSVC, classes, rows=200, numeric="slope").report_.noise_deviation for classes in (3, 5, 9)]
    assert sizes == sorted(sizes)
    assert sizes[-1] > 1.5 * sizes[0]


def test_a_class_that_no_row_has_is_predicted_for_none() -> None:
    X, y = table_of(4, 2000)
    kept = y != 2
    for estimator in ESTIMATORS:
        model = estimator(epsilon=20.0, schema=schema_for(4), numeric="slope", random_state=0).fit(X[kept], y[kept])
        assert list(model.classes_) == [0, 1, 2, 3]
        assert np.mean(model.predict(X[kept]) == 2) < 0.01


@pytest.mark.parametrize(
    "estimator",
    [pf.LogisticRegression(1.0), pf.LogisticRegression(1.0, mechanism="output"), pf.ERM(), pf.ERM(smooth_hinge())],
)
@pytest.mark.parametrize("classes", [3, 5])
def test_chances_come_true(estimator: Any, classes: int) -> None:
    """One category whose levels have known shares of the classes: with many rows those are what is predicted."""
    rng = np.random.default_rng(classes)
    shares = rng.dirichlet(np.full(classes, 1.5), 4)
    levels = rng.integers(0, 4, 60_000)
    y = (shares[levels].cumsum(axis=1) < rng.random(60_000)[:, None]).sum(axis=1).clip(0, classes - 1)
    schema = pf.Schema([pf.Category("g", [0, 1, 2, 3])], target=pf.Category("y", list(range(classes))))
    model = clone(estimator).set_params(schema=schema, random_state=0, epsilon=20.0).fit(levels[:, None], y)
    np.testing.assert_allclose(model.predict_proba(np.arange(4)[:, None]), shares, atol=0.03)


def test_a_hinge_that_is_certain_of_several_classes_still_has_chances() -> None:
    X, y = table_of(3)
    model = pf.ERM(smooth_hinge(), 1e-3, epsilon=50.0, schema=schema_for(3), random_state=0).fit(X, y)
    chances = model.predict_proba(X)
    assert np.isfinite(chances).all()
    np.testing.assert_allclose(chances.sum(axis=1), 1)
    assert (np.abs(model.decision_function(X)) > 2).any()


@pytest.mark.parametrize("classes", [4, 10])
@pytest.mark.parametrize("epsilon", [0.5, 50.0])
def test_softmax_needs_no_more_passes_than_a_few(classes: int, epsilon: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """All weights of a column moved alike change no chance: only the ridge acts there, and a solver that takes it for
    curved needs hundreds of passes.
    """
    passes = []

    def counted(*given_: Any) -> Any:
        found = minimise_certified(*given_)
        passes.append(found.passes)
        return found

    monkeypatch.setattr(minima, "minimise_certified", counted)
    fitted(pf.LogisticRegression, classes, epsilon, rows=60_000)
    assert 1 < passes[0] < 40


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_classes_of_a_public_table_may_be_many(estimator: Any) -> None:
    X, y = table_of(3, 500)
    model = estimator(schema="public").fit(X, y)
    assert model.classes_.tolist() == [0, 1, 2]
    with pytest.raises(ValueError, match="Only binary classification"):
        pf.LogisticRegression(schema="public", mechanism="functional").fit(X, y)


@pytest.mark.parametrize("loss", [hinge(), smooth_hinge()])
def test_chances_of_hinge_losses_side_with_the_predicted_class(loss: Any) -> None:
    X, y = table_of(3, 2000)
    mechanism = "output" if loss.most_curvature is None else "objective"
    model = pf.ERM(loss, epsilon=10.0, schema=schema_for(3), mechanism=mechanism, random_state=0).fit(X, y)
    assert (model.classes_[model.predict_proba(X).argmax(axis=1)] == model.predict(X)).mean() > 0.999
