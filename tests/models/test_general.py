"""Losses of the user's own: close to the references with hardly any noise, bounded with much, told apart by their
links, saved by name.
"""

from __future__ import annotations

import json

import numpy as np
import polars as pl
import pytest
from scipy.optimize import minimize
from scipy.special import expit
from sklearn.base import clone
from sklearn.linear_model import LinearRegression as PlainLinear
from sklearn.linear_model import LogisticRegression as PlainLogistic
from sklearn.linear_model import PoissonRegressor
from sklearn.model_selection import GridSearchCV

import privfit as pf
from privfit.losses import SQUARED
from tests.support.model_files import rewrite

ALMOST_NO_NOISE = 1e6
WEIGHTS = np.array([0.8, -0.5, 0.3])


def numbers(n: int = 20_000, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.random.Generator]:
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n, 3))
    return X, X @ WEIGHTS + 0.2, rng


def fitted(loss, X, y, target, epsilon: float = ALMOST_NO_NOISE, **parameters):
    kind = pf.FunctionalClassifier if isinstance(target, list) else pf.FunctionalRegressor
    return kind(epsilon, loss=loss, schema=pf.Schema.box(-1, 1, target=target), random_state=0, **parameters).fit(X, y)


def whole(model) -> np.ndarray:
    return np.concatenate([np.ravel(model.intercept_), np.ravel(model.coef_)])


# -- against references ----------------------------------------------------------------------------


@pytest.mark.parametrize("adjacency", ["replace-one", "add-remove"])
def test_least_squares_is_least_squares_whatever_the_bounds_of_the_target(adjacency: str) -> None:
    X, z, rng = numbers()
    y = 1000 * z + 5000 + rng.normal(0, 100, len(X))
    model = fitted(None, X, y, (2000, 8000), adjacency=adjacency)
    plain = PlainLinear().fit(X, y)
    np.testing.assert_allclose(model.coef_, plain.coef_, atol=1)
    assert model.intercept_ == pytest.approx(plain.intercept_, abs=1)
    assert model.approximation_error_ == 0.0
    assert model.report_.notes == ()


def test_least_squares_has_the_noise_of_linear_regression() -> None:
    X, z, rng = numbers(500)
    y = z + rng.normal(0, 0.2, len(X))
    schema = pf.Schema.box(-1, 1, target=(-2, 3))
    general = pf.FunctionalRegressor(0.5, schema=schema, random_state=3).fit(X, y)
    plain = pf.FunctionalMechanism(loss=SQUARED)  # named, so that nothing is bought for intervals
    special = pf.LinearRegression(0.5, schema=schema, mechanism=plain, random_state=3).fit(X, y)
    np.testing.assert_allclose(whole(general), whole(special), atol=1e-9)
    assert general.report_.noise_scale == special.report_.noise_scale


def test_the_logistic_loss_points_where_logistic_regression_points_and_degree_four_is_closer() -> None:
    X, z, rng = numbers()
    y = (rng.uniform(size=len(X)) < expit(2 * z)).astype(int)
    plain = PlainLogistic(C=np.inf).fit(X, y)
    reference = whole(plain)
    found = {degree: whole(fitted(pf.losses.logistic(degree), X, y, [0, 1])) for degree in (2, 4)}
    for weights in found.values():
        assert weights @ reference / np.linalg.norm(weights) / np.linalg.norm(reference) > 0.999
    distances = {
        degree: np.linalg.norm(weights - reference) / np.linalg.norm(reference) for degree, weights in found.items()
    }
    assert distances[4] < 0.05 < distances[2]


def test_poisson_regression_of_degree_four_is_close_to_poisson_regression() -> None:
    X, z, rng = numbers()
    y = rng.poisson(np.exp(z)).astype(float)
    plain = PoissonRegressor(alpha=0, tol=1e-9, max_iter=1000).fit(X, y)
    models = {degree: fitted(pf.losses.poisson(degree), X, y, (0, 12)) for degree in (2, 4)}
    distances = {degree: np.linalg.norm(whole(model) - whole(plain)) for degree, model in models.items()}
    assert distances[4] < 0.05 < distances[2]
    np.testing.assert_allclose(models[4].predict(X), plain.predict(X), rtol=0.1)
    np.testing.assert_array_equal(models[4].predict(X), np.exp(models[4].linear_predictor(X)))


def test_poisson_regression_of_degree_two_is_close_where_the_predictor_is_small() -> None:
    X, z, rng = numbers(60_000)
    y = rng.poisson(np.exp(z / 4)).astype(float)
    plain = PoissonRegressor(alpha=0, tol=1e-9, max_iter=1000).fit(X, y)
    model = fitted(pf.losses.poisson(interval=0.5), X, y, (0, 12))
    np.testing.assert_allclose(whole(model), whole(plain), atol=0.03)


@pytest.mark.parametrize("degree", [2, 4])
def test_the_huber_loss_is_moved_less_by_outliers_than_least_squares(degree: int) -> None:
    X, z, rng = numbers()
    clean = z + rng.normal(0, 0.2, len(X))
    spoiled = np.where(rng.uniform(size=len(X)) < 0.1, 5.0, clean)
    by_squares = fitted(None, X, spoiled, (-5, 5)).intercept_ - 0.2
    model = fitted(pf.losses.huber(0.5, degree, interval=2.0), X, spoiled, (-5, 5))
    assert abs(model.intercept_ - 0.2) < 0.5 * by_squares
    np.testing.assert_allclose(model.coef_, WEIGHTS, rtol=0.2)


def test_a_fit_is_the_minimum_of_its_polynomial_and_almost_of_the_loss() -> None:
    """The paper's Lemma 3: per row, the loss of the fit exceeds the least one by at most twice the error of the
    approximation.
    """
    X, z, rng = numbers()
    y = rng.poisson(np.exp(z)).astype(float)
    loss = pf.losses.poisson(4)
    model = fitted(loss, X, y, (0, 12))
    ones = np.column_stack([np.ones(len(X)), X])

    def by(weights: np.ndarray, polynomial: bool) -> float:
        predictor = ones @ weights
        if polynomial:
            return float((predictor ** np.arange(5)[:, None] * loss.coefficients(y)).sum(axis=0).mean())
        return float((np.exp(predictor) - y * predictor).mean())

    best = {kind: minimize(by, np.zeros(4), args=(kind,), method="BFGS").fun for kind in (True, False)}
    assert by(whole(model), True) - best[True] < 1e-3
    assert 0 <= by(whole(model), False) - best[False] + 1e-9 < 2 * model.approximation_error_


@pytest.mark.parametrize("loss", [pf.losses.huber(10.0, 2), pf.losses.huber(10.0, 4)], ids=str)
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("adjacency", ["replace-one", "add-remove"])
def test_categories_and_bins_enter_as_they_do_elsewhere(loss, fit_intercept: bool, adjacency: str) -> None:
    """Where the threshold is beyond every residual, Huber's loss is half the square, exactly: the same fit as least
    squares.
    """
    rng = np.random.default_rng(0)
    n = 5000
    frame = pl.DataFrame(
        {"a": rng.uniform(0, 10, n), "c": rng.choice(["x", "y", "z"], n), "s": rng.choice(["n", "m"], n)}
    )
    y = 0.1 * frame["a"] + (frame["c"] == "y") - 0.5 * (frame["s"] == "m") + rng.normal(0, 0.1, n)
    schema = pf.Schema(
        [pf.Numeric("a", 0, 10, bins=3), pf.Category("c", ["x", "y", "z"]), pf.Category("s", ["n", "m"])],
        target=pf.Numeric("goal", -2, 4),
    )
    settings = {"schema": schema, "fit_intercept": fit_intercept, "adjacency": adjacency, "random_state": 0}
    general = pf.FunctionalRegressor(1e8, loss=loss, **settings).fit(frame.with_columns(goal=y))
    special = pf.FunctionalRegressor(1e8, **settings).fit(frame.with_columns(goal=y))
    np.testing.assert_allclose(general.predict(frame), special.predict(frame), atol=0.02)
    assert list(general.get_feature_names_out()) == list(special.get_feature_names_out())
    if fit_intercept:
        np.testing.assert_allclose(general.coef_, special.coef_, atol=0.03)


# -- noise -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("epsilon", [1e-4, 1e-2, 1.0])
@pytest.mark.parametrize(
    "loss", [pf.losses.poisson(3), pf.losses.poisson(4), pf.losses.huber(1.0), pf.losses.huber(1.0, 4)], ids=str
)
def test_coefficients_stay_bounded_however_small_epsilon_is(loss, epsilon: float) -> None:
    X, z, rng = numbers(300)
    y = rng.poisson(np.exp(z)).astype(float)
    low, high = loss.on_target(0, 12).bounds
    for seed in range(5):
        schema = pf.Schema.box(-1, 1, target=(0, 12))
        model = pf.FunctionalRegressor(epsilon, loss=loss, schema=schema, random_state=seed).fit(X, y)
        assert np.isfinite(whole(model)).all()
        assert np.abs(model.linear_predictor(X)).max() <= (high if loss.degree > 2 else 10 * (high - low)) + 1e-6


def test_more_epsilon_is_more_accurate() -> None:
    X, z, rng = numbers(5000)
    y = (rng.uniform(size=len(X)) < expit(2 * z)).astype(int)
    reference = whole(fitted(pf.losses.logistic(4), X, y, [0, 1]))
    medians = []
    for epsilon in (0.1, 1.0, 10.0):
        schema = pf.Schema.box(-1, 1, target=[0, 1])
        models = [
            pf.FunctionalClassifier(epsilon, loss=pf.losses.logistic(4), schema=schema, random_state=s).fit(X, y)
            for s in range(9)
        ]
        medians.append(np.median([np.linalg.norm(whole(model) - reference) for model in models]))
    assert medians == sorted(medians, reverse=True)


# -- what is reported and kept ---------------------------------------------------------------------


def test_the_report_says_how_far_off_the_polynomial_is_and_where() -> None:
    X, z, rng = numbers(500)
    y = (rng.uniform(size=len(X)) < expit(z)).astype(int)
    model = fitted(pf.losses.logistic(), X, y, [0, 1])
    assert model.approximation_error_ == pytest.approx(0.0687, abs=1e-4)
    (note,) = model.report_.notes
    assert (
        "degree 2 stands in for the logistic loss; it is off by at most 0.0687 where the linear predictor is in [-4, 4]"
        in note
    )
    narrow = fitted(pf.losses.logistic(4, interval=0.5), X, (z > 0).astype(int), [0, 1])
    assert "edge" in narrow.report_.notes[-1]


def test_predictions_follow_the_link() -> None:
    X, z, rng = numbers(500)
    y = rng.uniform(0, 1, len(X))
    for link, inverse in (("identity", lambda z: z), ("exp", np.exp), ("logistic", expit)):
        loss = pf.PolynomialLoss.fit(lambda z, y: (z - y) ** 2, interval=(0, 1), link=link)
        model = fitted(loss, X, y, (0, 1))
        assert model.link_ == link
        np.testing.assert_array_equal(model.predict(X), inverse(model.linear_predictor(X)))
    classes = np.where(z > 0, "yes", "no")
    model = fitted(None, X, classes, ["no", "yes"])
    np.testing.assert_array_equal(model.predict(X), np.where(model.decision_function(X) > 0, "yes", "no"))
    np.testing.assert_allclose(model.predict_proba(X)[:, 1], expit(model.decision_function(X)))
    assert model.score(X, classes) > 0.9
    hinge = fitted(pf.PolynomialLoss.fit(lambda z, y: np.maximum(0, 1 - y * z), interval=2), X, classes, ["no", "yes"])
    assert not hasattr(hinge, "predict_proba")
    assert hinge.score(X, classes) > 0.9


@pytest.mark.parametrize("degree", [2, 4])
def test_a_saved_model_keeps_its_link_and_its_error_and_runs_no_code(degree: int, tmp_path) -> None:
    X, z, rng = numbers(500)
    loss = pf.PolynomialLoss.fit(lambda z, y: np.exp(z) - y * z, degree=degree, interval=2, link="exp")
    model = fitted(loss, X, rng.poisson(np.exp(z)).astype(float), (0, 12))
    model.save(tmp_path / "model.json")
    loaded = pf.load_model(tmp_path / "model.json")
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))
    assert (loaded.link_, loaded.approximation_error_) == ("exp", model.approximation_error_)
    assert loaded.loss is None
    document = json.loads((tmp_path / "model.json").read_text())
    assert document["facts"] == {"link": "exp", "approximation_error": model.approximation_error_}
    rewrite(tmp_path / "model.json", lambda document: document["facts"].update(link="probit"))
    with pytest.raises(pf.ModelFileError):
        pf.load_model(tmp_path / "model.json")


def test_a_loss_is_a_parameter_like_any_other() -> None:
    X, z, rng = numbers(2000)
    y = rng.poisson(np.exp(z)).astype(float)
    ledger = pf.Ledger(epsilon=1e7)
    model = pf.FunctionalRegressor(
        1e5, loss=pf.losses.poisson(4), schema=pf.Schema.box(-1, 1, target=(0, 12)), ledger=ledger
    )
    assert clone(model).get_params()["loss"] == model.loss
    search = GridSearchCV(model, {"loss": [pf.losses.poisson(2), pf.losses.poisson(4)]}, cv=2, error_score="raise").fit(
        X, y
    )
    assert search.best_params_["loss"].degree == 4
    assert len(ledger.entries()) == 5


def test_what_is_no_loss_is_refused_before_anything_is_read() -> None:
    X, z, _ = numbers(50)
    ledger = pf.Ledger(epsilon=1)
    schema = pf.Schema.box(-1, 1, target=(-2, 2))
    with pytest.raises(pf.PrivacyError, match=r"loss='huber' was given; it is a pf.PolynomialLoss.*Write"):
        pf.FunctionalRegressor(loss="huber", schema=schema, ledger=ledger).fit(X, z)  # type: ignore[arg-type]
    mechanism = pf.FunctionalMechanism(loss=SQUARED)
    with pytest.raises(pf.PrivacyError, match=r"beside the loss of the model.*Leave it out"):
        pf.FunctionalRegressor(mechanism=mechanism, schema=schema, ledger=ledger).fit(X, z)
    with pytest.raises(pf.SchemaError, match=r"FunctionalClassifier was given the Numeric target"):
        pf.FunctionalClassifier(schema=schema, ledger=ledger).fit(X, z)
    three = pf.Schema.box(-1, 1, target=["a", "b", "c"])
    with pytest.raises(pf.SchemaError, match="3 classes; it fits two"):
        pf.FunctionalClassifier(schema=three, ledger=ledger).fit(X, np.array(["a", "b"] * 25))
    wide = pf.Schema([pf.Category(f"c{i}", list(range(30))) for i in range(5)], target=pf.Numeric("y", 0, 5))
    with pytest.raises(pf.SchemaError, match=r"different products of them.*at most 200000.*lower degree"):
        pf.FunctionalRegressor(loss=pf.losses.poisson(4), schema=wide, ledger=ledger).fit(
            np.zeros((10, 5)), np.zeros(10)
        )
    assert ledger.entries() == []
