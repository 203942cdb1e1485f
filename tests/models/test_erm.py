"""Any convex loss: the right minimum, in the right units, of classes and of numbers."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.metrics import log_loss

import privfit as pf
from privfit.losses import LOGISTIC, ConvexLoss, robust, smooth_hinge
from tests.support.beats import assert_told_in_order
from tests.support.patients import FEATURES, SCHEMA, people

HUGE = 1e7
LOGCOSH = ConvexLoss(
    slope=lambda z, y: np.tanh(z - y),
    curvature=lambda z, y: 1 - np.tanh(z - y) ** 2,
    most_slope=1.0,
    most_curvature=1.0,
    value=lambda z, y: np.logaddexp(z - y, y - z) - np.log(2),
    name="log-cosh loss",
)


# -- ERM: classes ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "mechanism", [pf.ObjectivePerturbation(ridge=4.0, steepest=1.0), pf.OutputPerturbation(ridge=30.0)]
)
@pytest.mark.parametrize("loss", [None, LOGISTIC], ids=["no loss", "the logistic loss"])
def test_the_logistic_loss_makes_a_logistic_regression(mechanism: Any, loss: ConvexLoss | None) -> None:
    table, _ = people(300)
    erm = pf.ERM(loss, epsilon=1.0, schema=SCHEMA, mechanism=mechanism, random_state=4).fit(table)
    model = pf.LogisticRegression(1.0, schema=SCHEMA, mechanism=mechanism, random_state=4).fit(table)
    np.testing.assert_array_equal(erm.coef_, model.coef_)
    np.testing.assert_array_equal(erm.intercept_, model.intercept_)
    np.testing.assert_allclose(erm.predict_proba(table), model.predict_proba(table))
    np.testing.assert_array_equal(erm.predict(table), model.predict(table))
    np.testing.assert_array_equal(erm.decision_function(table), model.decision_function(table))


def test_the_probabilities_of_an_empirical_risk_are_those_of_the_loss_it_minimised() -> None:
    table, _ = people(20_000)
    erm = pf.ERM(
        epsilon=10.0, schema=SCHEMA, numeric="slope", mechanism=pf.ObjectivePerturbation(steepest=0.3), random_state=0
    ).fit(table)
    model = pf.LogisticRegression(
        10.0, schema=SCHEMA, numeric="slope", mechanism=pf.ObjectivePerturbation(steepest=0.3), random_state=0
    ).fit(table)
    ill = table["ill"].to_numpy() == "yes"
    assert log_loss(ill, erm.predict_proba(table)[:, 1]) == pytest.approx(
        log_loss(ill, model.predict_proba(table)[:, 1]), rel=1e-3
    )


def test_an_empirical_risk_minimises_the_loss_it_was_given() -> None:
    table, _ = people(300)
    report = pf.ERM(LOGISTIC, epsilon=1.0, schema=SCHEMA, random_state=0).fit(table).report_
    assert "minimises the logistic loss over all rows" in report.notes[0]


def test_the_penalty_is_the_ridge_and_overrides_that_of_the_mechanism() -> None:
    table, _ = people(200)
    given_ = {"epsilon": 1.0, "schema": SCHEMA, "random_state": 0}
    by_penalty = pf.ERM(smooth_hinge(), 50.0, **given_).fit(table)
    by_mechanism = pf.ERM(smooth_hinge(), mechanism=pf.ObjectivePerturbation(ridge=50.0), **given_).fit(table)
    both = pf.ERM(smooth_hinge(), 50.0, mechanism=pf.ObjectivePerturbation(ridge=2.0), **given_).fit(table)
    assert by_penalty.report_.repairs["ridge"] == 50.0
    np.testing.assert_array_equal(by_penalty.coef_, by_mechanism.coef_)
    np.testing.assert_array_equal(by_penalty.coef_, both.coef_)
    automatic = pf.ERM(smooth_hinge(), "auto", **given_).fit(table)
    np.testing.assert_array_equal(automatic.coef_, pf.ERM(smooth_hinge(), **given_).fit(table).coef_)
    assert automatic.report_.repairs["ridge"] not in (50.0, 2.0)


def test_a_larger_penalty_makes_shorter_weights() -> None:
    table, _ = people(2000)
    sizes = [
        np.linalg.norm(
            pf.ERM(smooth_hinge(), penalty, 100.0, schema=SCHEMA, numeric="slope", random_state=0)
            .fit(table)
            .coef_[:, 2:]
        )
        for penalty in (1.0, 100.0, 1e4)
    ]
    assert sizes == sorted(sizes, reverse=True)


# -- ERM: numbers ----------------------------------------------------------------------------------


def line(rows: int = 6000, offset: float = 0.0, stretch: float = 1.0, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """A line with one row in ten an outlier, all of them on one side."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(0, 10, rows)
    y = 4 + 1.5 * x + rng.normal(0, 0.5, rows) + np.where(rng.random(rows) < 0.1, 15.0, 0.0)
    return x[:, None], offset + stretch * y


def regression(low: float, high: float, threshold: float, epsilon: float = 5.0, **given_: Any) -> pf.ERM:
    schema = pf.Schema([pf.Numeric("x", 0, 10)], target=pf.Numeric("y", low, high))
    return pf.ERM(robust(threshold), epsilon=epsilon, schema=schema, numeric="slope", random_state=0, **given_)


@pytest.mark.parametrize(("offset", "stretch"), [(0.0, 1.0), (1e4, 1.0), (-300.0, 0.1), (1e6, 1e3)])
def test_a_robust_line_is_found_beside_outliers_in_the_units_of_the_target(offset: float, stretch: float) -> None:
    X, y = line(offset=offset, stretch=stretch)
    model = regression(offset - 5 * stretch, offset + 40 * stretch, 0.8 * stretch).fit(X, y)
    assert model.coef_[0] == pytest.approx(1.5 * stretch, abs=0.1 * stretch)
    assert model.intercept_ == pytest.approx(offset + 4 * stretch, abs=0.5 * stretch)
    np.testing.assert_allclose(model.predict(X), model.coef_[0] * X[:, 0] + model.intercept_, rtol=1e-12)
    squares = np.polyfit(X[:, 0], y, 1)  # which outliers pull up
    assert squares[1] > offset + 5 * stretch


def test_the_units_of_the_target_change_nothing_but_units() -> None:
    X, y = line(2000)
    usual, tiny = (regression(-5 * unit, 40 * unit, 0.8 * unit).fit(X, unit * y) for unit in (1.0, 1e-6))
    np.testing.assert_allclose(tiny.predict(X) / 1e-6, usual.predict(X), rtol=1e-2)


def test_at_a_huge_epsilon_a_robust_line_has_residuals_in_balance() -> None:
    """Clipped at the threshold they add up to nothing, alone and times the number: the loss is flat there."""
    X, y = line(800)
    model = regression(-5, 40, 0.8, HUGE, penalty=1.0).fit(X, y)
    pull = np.clip(y - model.predict(X), -0.8, 0.8)
    assert abs(pull.mean()) < 1e-4
    assert abs((pull * X[:, 0]).mean()) < 1e-3
    assert abs(np.clip(y - model.predict(X) - 0.05, -0.8, 0.8).mean()) > 1e-2


def test_without_an_intercept_the_line_runs_through_the_origin() -> None:
    rng = np.random.default_rng(0)
    x = rng.uniform(0, 10, 4000)
    y = 2 * x + rng.normal(0, 0.3, 4000) + np.where(rng.random(4000) < 0.1, 12.0, 0.0)
    model = regression(0, 40, 0.5, fit_intercept=False).fit(x[:, None], y)
    assert model.intercept_ == pytest.approx(0, abs=1e-12)
    assert model.coef_[0] == pytest.approx(2, abs=0.1)
    assert model.predict(np.array([[0.0]]))[0] == pytest.approx(0, abs=1e-12)


def test_a_target_beyond_its_bounds_counts_as_at_them() -> None:
    X, y = line(300)
    wild = np.where(np.arange(300) % 7 == 0, 1e12, y)
    models = [regression(0, 20, 1.0).fit(X, values) for values in (wild, np.clip(wild, 0, 20))]
    np.testing.assert_array_equal(models[0].coef_, models[1].coef_)


def test_the_score_of_numbers_is_r_squared_and_of_classes_the_share_that_is_right() -> None:
    X, y = line()
    model = regression(-5, 40, 0.8).fit(X, y)
    assert model.score(X, y) == pytest.approx(1 - np.sum((y - model.predict(X)) ** 2) / np.sum((y - y.mean()) ** 2))
    table, _ = people(300)
    erm = pf.ERM(epsilon=3.0, schema=SCHEMA, random_state=0).fit(table)
    assert erm.score(table, table["ill"]) == np.mean(erm.predict(table) == table["ill"].to_numpy())


# -- ERM: a loss of the user's own -----------------------------------------------------------------


def test_a_loss_of_ones_own_is_minimised() -> None:
    X, y = line(3000)
    schema = pf.Schema([pf.Numeric("x", 0, 10)], target=pf.Numeric("y", -5, 40))
    model = pf.ERM(LOGCOSH, 1.0, 1e5, schema=schema, numeric="slope", random_state=0).fit(X, y)
    assert "log-cosh loss" in model.report_.notes[0]

    def loss(slope: float, start: float) -> float:
        return float(LOGCOSH.value(slope * X[:, 0] + start, y).sum())

    least = loss(model.coef_[0], model.intercept_)
    steps = [(0.02, 0), (-0.02, 0), (0, 0.1), (0, -0.1)]
    assert all(least < loss(model.coef_[0] + a, model.intercept_ + b) for a, b in steps)


def test_a_squared_loss_is_refused_because_its_slope_has_no_end(tmp_path: Path) -> None:
    squared = ConvexLoss(
        slope=lambda z, y: z - y,
        curvature=lambda z, y: 1.0 + 0 * z,
        most_slope=45.0,
        most_curvature=1.0,
        name="squared loss",
    )
    ledger = pf.Ledger(tmp_path / "ledger.db", epsilon=3.0)
    X, y = line(50)
    schema = pf.Schema([pf.Numeric("x", 0, 10)], target=pf.Numeric("y", -5, 40))
    with pytest.raises(ValueError) as refused:
        pf.ERM(squared, schema=schema, ledger=ledger).fit(X, y)
    assert_told_in_order(
        str(refused.value), ["The squared loss has a slope of", "states most_slope=45", "privacy rests", "Correct"]
    )
    assert ledger.spent.epsilon == 0
    with pytest.raises(ValueError, match="A loss that grows like a square has none"):
        pf.ERM(replace(squared, most_slope=None), schema=schema, random_state=0).fit(X, y)


def test_a_loss_for_numbers_wants_a_number_and_one_for_classes_a_category() -> None:
    table, _ = people(30)
    with pytest.raises(pf.SchemaError, match="it needs a Numeric"):
        pf.ERM(robust(1.0), schema=SCHEMA, random_state=0).fit(table)
    with pytest.raises(pf.SchemaError, match="it needs a Category"):
        pf.ERM(schema=pf.Schema(FEATURES, pf.Numeric("ill", 0, 1)), random_state=0).fit(table.with_columns(ill=0.5))


def test_what_a_model_is_follows_its_loss() -> None:
    assert is_classifier(pf.ERM())
    assert is_classifier(pf.ERM(smooth_hinge()))
    assert is_regressor(pf.ERM(robust(1.0)))
    assert hasattr(pf.ERM(), "predict_proba")
    assert not hasattr(pf.ERM(robust(1.0)), "predict_proba")
    assert not hasattr(pf.ERM(robust(1.0)), "decision_function")


def test_a_model_can_be_fitted_again_with_a_loss_of_the_other_kind() -> None:
    table, _ = people(60)
    X, y = line(60)
    model = pf.ERM(epsilon=5.0, schema=SCHEMA, random_state=0).fit(table)
    numbers = regression(-5, 40, 1.0)
    model.set_params(loss=numbers.loss, schema=numbers.schema, numeric="slope").fit(X, y)
    np.testing.assert_array_equal(model.predict(X), numbers.fit(X, y).predict(X))


def test_parameters_are_kept_as_given_and_cloned() -> None:
    model = pf.ERM(LOGCOSH, 3.0, 0.7, schema=SCHEMA, delta=1e-7, rows_per_person=2)
    assert model.get_params()["loss"] is LOGCOSH
    assert (model.get_params()["penalty"], model.get_params()["epsilon"]) == (3.0, 0.7)
    copied = clone(model)
    assert copied.get_params() == {**model.get_params(), "loss": copied.loss}
    assert (copied.loss.name, copied.loss.most_slope) == ("log-cosh loss", 1.0)
    assert model.set_params(penalty="auto", loss=None).penalty == "auto"
    assert copied.penalty == 3.0
    X, y = line(100)
    numbers = regression(-5, 40, 1.0)
    np.testing.assert_array_equal(clone(numbers).fit(X, y).coef_, numbers.fit(X, y).coef_)


def _sloped(sharpness: Callable[[], float]) -> pf.ConvexLoss:
    """A logistic loss whose curvature is a quarter of its sharpness, and states a quarter."""
    return pf.ConvexLoss(
        slope=lambda z, y: -y / (1 + np.exp(np.clip(sharpness() * y * z, -500, 500))),
        curvature=lambda z, y: sharpness() / (2 + 2 * np.cosh(np.clip(sharpness() * z, -500, 500))),
        most_slope=1.0,
        most_curvature=0.25,
        link="slopes",
    )


def test_a_loss_that_has_changed_since_the_last_fit_is_checked_again() -> None:
    table, _ = people(200)
    sharpness = [1.0]
    ledger = pf.Ledger(epsilon=10.0)
    model = pf.ERM(_sloped(lambda: sharpness[0]), schema=SCHEMA, ledger=ledger).fit(table)
    sharpness[0] = 50.0
    for again in (model, clone(model)):
        with pytest.raises(ValueError, match=r"curvature of 12\.5 and states most_curvature=0\.25"):
            again.fit(table)
    assert ledger.n_entries == 1


def test_a_changed_copy_of_a_ready_made_loss_is_checked() -> None:
    table, _ = people(200)
    changed = copy.copy(LOGISTIC)
    object.__setattr__(changed, "most_curvature", 1e-3)
    with pytest.raises(ValueError, match="states most_curvature"):
        pf.ERM(changed, schema=SCHEMA, ledger=pf.Ledger(epsilon=1.0)).fit(table)


# -- ERM: saved ------------------------------------------------------------------------------------


def test_a_saved_model_of_numbers_predicts_the_same_without_its_loss(tmp_path: Path) -> None:
    X, y = line(200, offset=500.0)
    for fit_intercept in (True, False):
        model = regression(490, 540, 1.0, fit_intercept=fit_intercept).fit(X, y)
        model.save(tmp_path / "model.json")
        loaded = pf.load_model(tmp_path / "model.json")
        np.testing.assert_array_equal(loaded.predict(X), model.predict(X))
        assert loaded.loss is None
        assert loaded.score(X, y) == model.score(X, y)
        assert not hasattr(loaded, "predict_proba")
        assert not hasattr(loaded, "classes_")


def test_a_saved_model_of_classes_has_probabilities_only_if_its_loss_was_the_usual_one(tmp_path: Path) -> None:
    table, _ = people(200)
    mechanism = pf.ObjectivePerturbation(steepest=1.0)
    for loss, kept in [(None, True), (smooth_hinge(0.3), False)]:
        model = pf.ERM(loss, 7.0, schema=SCHEMA, mechanism=mechanism, random_state=0).fit(table)
        model.save(tmp_path / "model.json")
        loaded = pf.load_model(tmp_path / "model.json")
        np.testing.assert_array_equal(loaded.predict(table), model.predict(table))
        np.testing.assert_array_equal(loaded.decision_function(table), model.decision_function(table))
        assert loaded.penalty == 7.0
        assert hasattr(loaded, "predict_proba") is kept
        assert hasattr(model, "predict_proba")
        if kept:
            np.testing.assert_array_equal(loaded.predict_proba(table), model.predict_proba(table))


@pytest.mark.parametrize("loss", [None, LOGISTIC, smooth_hinge(), robust(1.0)])
def test_a_model_with_a_ready_made_loss_can_be_pickled(loss: Any) -> None:
    target = pf.Numeric("y", -1, 1) if getattr(loss, "link", "") == "identity" else pf.Category("y", [-1, 1])
    X = np.linspace(-1, 1, 40)[:, None]
    model = pf.ERM(loss, epsilon=50.0, schema=pf.Schema([pf.Numeric("x", -1, 1)], target=target), random_state=0).fit(
        X, np.sign(X[:, 0])
    )
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).predict(X), model.predict(X))


@pytest.mark.parametrize("kind", [np.int64, np.float32, np.float64])
def test_numbers_of_numpy_are_penalties_and_others_are_refused_by_their_name(kind: Any) -> None:
    schema = pf.Schema([pf.Numeric("x", -1, 1)], target=pf.Category("y", [-1, 1]))
    X = np.linspace(-1, 1, 40)[:, None]
    assert pf.ERM(None, kind(2), epsilon=50.0, schema=schema, random_state=0).fit(X, np.sign(X[:, 0])).coef_.shape == (
        1,
        8,
    )
    with pytest.raises(pf.PrivacyError, match="penalty=-1"):
        pf.ERM(None, -1, schema=schema).fit(X, np.sign(X[:, 0]))


def test_a_loaded_model_is_fitted_again_only_with_its_loss(tmp_path: Path) -> None:
    schema = pf.Schema([pf.Numeric("x", -1, 1)], target=pf.Numeric("y", -1, 1))
    X = np.linspace(-1, 1, 40)[:, None]
    pf.ERM(robust(0.5), epsilon=50.0, schema=schema, random_state=0).fit(X, X[:, 0]).save(tmp_path / "model.json")
    again = pf.load_model(tmp_path / "model.json")
    with pytest.raises(pf.PrivacyError, match="Set its loss"):
        again.fit(X, X[:, 0])
    with pytest.raises(pf.PrivacyError, match="Set its loss"):
        clone(again).fit(X, X[:, 0])
    assert again.set_params(loss=robust(0.5)).fit(X, X[:, 0]).score(X, X[:, 0]) > 0.5


def test_a_loss_for_numbers_given_classes_says_how_to_make_it_one_for_classes() -> None:
    loss = ConvexLoss(LOGISTIC.slope, LOGISTIC.curvature, most_slope=1.0, most_curvature=0.25)
    with pytest.raises(pf.SchemaError, match="link='slopes'"):
        pf.ERM(loss, schema=pf.Schema([pf.Numeric("x", -1, 1)], target=pf.Category("y", [-1, 1]))).fit(
            [[0.0], [1.0]], [-1, 1]
        )
