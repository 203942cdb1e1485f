"""Logistic regression by a perturbed objective: the right minimum, in the right units, with probabilities that hold."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.special import expit
from sklearn.linear_model import LogisticRegression as Plain
from sklearn.metrics import log_loss

import privfit as pf
from tests.support.beats import assert_told_in_order
from tests.support.patients import SCHEMA, dense, people

HUGE = 1e7


# -- the right minimum -----------------------------------------------------------------------------


@pytest.mark.parametrize("ridge", [0.5, 20.0])
@pytest.mark.parametrize("noise", ["auto", "laplace"])
def test_at_a_huge_epsilon_the_minimum_is_that_of_scikit_learn(ridge: float, noise: str) -> None:
    table, _ = people(1500)
    mechanism = pf.ObjectivePerturbation(ridge=ridge, steepest=1.0, noise=noise)
    model = pf.LogisticRegression(HUGE, schema=SCHEMA, mechanism=mechanism, numeric="slope", random_state=0).fit(table)
    plain = Plain(C=1 / ridge, fit_intercept=False, tol=1e-10, max_iter=10_000).fit(
        dense(table), table["ill"].to_numpy()
    )
    np.testing.assert_allclose(model.decision_function(table), plain.decision_function(dense(table)), atol=1e-3)
    np.testing.assert_allclose(model.predict_proba(table), plain.predict_proba(dense(table)), atol=1e-3)
    assert list(model.classes_) == list(plain.classes_)


def test_a_perturbed_minimum_at_a_huge_epsilon_is_the_same() -> None:
    table, _ = people(800)
    models = [
        pf.LogisticRegression(1e9, schema=SCHEMA, mechanism=mechanism, numeric="slope", random_state=0).fit(table)
        for mechanism in (pf.ObjectivePerturbation(ridge=5.0, steepest=1.0), pf.OutputPerturbation(ridge=5.0))
    ]
    np.testing.assert_allclose(
        *[model.decision_function(table) for model in models], atol=2e-2
    )  # a lattice of 1/256 for four columns


def test_without_categories_an_intercept_of_its_own_is_fitted_and_has_the_ridge_too() -> None:
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (900, 2))
    y = np.where(rng.random(900) < expit(2 * X[:, 0] + 1.5), "b", "a")
    model = pf.LogisticRegression(
        HUGE,
        schema=pf.Schema.box(-1, 1, target=["a", "b"]),
        mechanism=pf.ObjectivePerturbation(ridge=3.0, steepest=1.0),
        numeric="slope",
        random_state=0,
    ).fit(X, y)
    plain = Plain(C=1 / 3, fit_intercept=False, tol=1e-10, max_iter=10_000).fit(np.column_stack([np.ones(900), X]), y)
    assert model.intercept_[0] == pytest.approx(plain.coef_[0, 0], abs=1e-3)
    np.testing.assert_allclose(model.coef_[0], plain.coef_[0, 1:], atol=1e-3)


@pytest.mark.parametrize("numeric", ["slope", "bins", "splines", "auto"])
def test_every_way_that_numbers_enter_learns(numeric: str) -> None:
    table, chance = people(4000)
    model = pf.LogisticRegression(4.0, schema=SCHEMA, numeric=numeric, random_state=0).fit(table)
    best = np.mean((chance > 0.5) == (table["ill"].to_numpy() == "yes"))
    assert model.score(table, table["ill"]) > best - 0.03
    widths = {"slope": 1, "bins": 8, "splines": 8, "auto": 8}
    assert model.coef_.shape == (1, 2 * widths[numeric] + 3 + 2) == (1, len(model.get_feature_names_out()))


# -- what coefficients mean ------------------------------------------------------------------------


@pytest.mark.parametrize("numeric", ["slope", "bins", "splines"])
def test_levels_are_measured_from_their_mean_and_the_intercept_holds_the_rest(numeric: str) -> None:
    table, _ = people(500)
    model = pf.LogisticRegression(5.0, schema=SCHEMA, numeric=numeric, random_state=0).fit(table)
    names = list(model.get_feature_names_out())
    for start in ("region_", "member_") + (("age_", "weight_") if numeric != "slope" else ()):
        own = model.coef_[0, [name.startswith(start) for name in names]]
        assert own.sum() == pytest.approx(0, abs=1e-9)
        assert np.abs(own).max() > 0
    one = table[:1]
    rest = model.decision_function(one)[0] - model.intercept_[0]
    shown = dict(zip(names, model.coef_[0], strict=True))
    told = shown[f"region_{one['region'][0]}"] + shown[f"member_{one['member'][0]}"]
    if numeric == "slope":
        told += shown["age"] * one["age"][0] + shown["weight"] * one["weight"][0]
        assert rest == pytest.approx(told)
    else:
        assert rest != pytest.approx(told)  # numbers have a share in it


def test_without_an_intercept_there_is_none() -> None:
    table, _ = people(300)
    for mechanism in ("functional", "objective"):
        model = pf.LogisticRegression(
            5.0, schema=SCHEMA, numeric="slope", fit_intercept=False, mechanism=mechanism, random_state=0
        ).fit(table)
        assert model.intercept_[0] == 0


def test_splines_are_lines_between_knots_continuous_and_constant_beyond_the_bounds() -> None:
    rng = np.random.default_rng(0)
    x = rng.uniform(0, 70, 3000)
    y = np.where(rng.random(3000) < expit(3 * np.sin(x / 10)), 1, 0)
    schema = pf.Schema([pf.Numeric("x", 0, 70)], target=pf.Category("y", [0, 1]))
    model = pf.LogisticRegression(20.0, schema=schema, interactions=0, random_state=0).fit(x[:, None], y)
    knots = np.array(schema.features[0].knots(8))  # every 10
    heights = model.decision_function(knots[:, None])
    assert heights == pytest.approx(model.coef_[0] + model.intercept_[0])
    grid = np.linspace(0, 70, 1401)
    np.testing.assert_allclose(model.decision_function(grid[:, None]), np.interp(grid, knots, heights), atol=1e-9)
    beyond = model.decision_function(np.array([[-1e9], [-0.1], [70.1], [1e300]]))
    np.testing.assert_allclose(beyond, heights[[0, 0, -1, -1]])
    assert np.ptp(np.diff(heights)) > 0.5  # it bends


def test_splines_are_refused_where_moments_are_released() -> None:
    table, _ = people(50)
    with pytest.raises(pf.PrivacyError) as refused:
        pf.LogisticRegression(schema=SCHEMA, numeric="splines", mechanism="functional", random_state=0).fit(table)
    assert_told_in_order(
        str(refused.value), ["numeric='splines' was given", "need too many values", "Use 'slope' or 'bins'"]
    )


def test_an_unknown_way_for_numbers_is_refused() -> None:
    with pytest.raises(pf.PrivacyError, match="numeric='cubes' was given; it is one of"):
        pf.LogisticRegression(schema=SCHEMA, numeric="cubes", random_state=0).fit(people(50)[0])


@pytest.mark.parametrize("numeric", ["slope", "bins", "splines"])
def test_a_missing_value_counts_as_its_fill_when_fitting_and_predicting(numeric: str) -> None:
    rng = np.random.default_rng(1)
    x = rng.uniform(-1, 1, 400)
    y = (x > 0).astype(int)
    schema = pf.Schema([pf.Numeric("x", -1, 1, fill=0.3)], target=pf.Category("y", [0, 1]))
    holes = np.where(rng.random(400) < 0.2, np.nan, x)
    models = [
        pf.LogisticRegression(2.0, schema=schema, numeric=numeric, random_state=0).fit(column[:, None], y)
        for column in (holes, np.where(np.isnan(holes), 0.3, holes))
    ]
    np.testing.assert_array_equal(models[0].coef_, models[1].coef_)
    at = models[0].decision_function(np.array([[np.nan], [0.3]]))
    assert at[0] == at[1]
    with pytest.raises(pf.DataError, match="contains NaN"):
        pf.LogisticRegression(schema=pf.Schema([pf.Numeric("x", -1, 1)], schema.target), random_state=0).fit(
            holes[:, None], y
        )


# -- probabilities ---------------------------------------------------------------------------------


@pytest.mark.parametrize(("steepest", "off", "worse"), [("auto", 0.06, 1.02), (1.0, 0.02, 1.01), (0.3, 0.11, 1.04)])
@pytest.mark.parametrize("numeric", ["slope", "splines"])
def test_probabilities_are_close_to_shares_whatever_the_slopes(
    steepest: Any, off: float, worse: float, numeric: str
) -> None:
    """On fresh rows of a large table: the mean chance of each tenth of rows is near the share of its second class.

    The gentler the slopes, the less exactly, because
    a score that is linear in a row is then not quite so in log-odds."""
    table, _ = people(40_000)
    fresh, _ = people(40_000, seed=1)
    mechanism = pf.ObjectivePerturbation(steepest=steepest)
    model = pf.LogisticRegression(5.0, schema=SCHEMA, numeric=numeric, mechanism=mechanism, random_state=0).fit(table)
    chance, ill = model.predict_proba(fresh)[:, 1], fresh["ill"].to_numpy() == "yes"
    for tenth in np.array_split(np.argsort(chance), 10):
        assert chance[tenth].mean() == pytest.approx(ill[tenth].mean(), abs=off)
    plain = Plain(C=1e6, max_iter=5000).fit(dense(table), table["ill"].to_numpy())
    assert log_loss(ill, chance) < worse * log_loss(ill, plain.predict_proba(dense(fresh))[:, 1])


def test_scores_of_gentle_slopes_taken_for_log_odds_would_not_be_calibrated() -> None:
    """So that the test above can fail: a loss that bends away from the logistic one has larger scores for the same
    chance.
    """
    table, _ = people(40_000)
    model = pf.LogisticRegression(
        5.0, schema=SCHEMA, numeric="slope", mechanism=pf.ObjectivePerturbation(steepest=0.3), random_state=0
    ).fit(table)
    ill = table["ill"].to_numpy() == "yes"
    assert log_loss(ill, expit(model.decision_function(table))) > 1.01 * log_loss(ill, model.predict_proba(table)[:, 1])


def test_probabilities_add_up_to_one_and_side_with_the_predicted_class() -> None:
    table, _ = people(700)
    model = pf.LogisticRegression(1.0, schema=SCHEMA, random_state=0).fit(table)
    chances = model.predict_proba(table)
    np.testing.assert_allclose(chances.sum(axis=1), 1)
    np.testing.assert_allclose(np.log(chances), model.predict_log_proba(table))
    np.testing.assert_array_equal(model.classes_[chances.argmax(axis=1)], model.predict(table))
    np.testing.assert_array_equal(chances[:, 1] > 0.5, model.decision_function(table) > 0)
