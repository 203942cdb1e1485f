"""Intervals of models that perturb an objective: how often they cover, what they say, and what is saved."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import privfit as pf
from tests.support.effort import quick_or_full

TRUTH = np.array([1.5, -1.0, 0.5, -0.5])
"""Three slopes and the intercept."""
CLASSES = pf.Schema.box(-1, 1, n_features=3, target=["no", "yes"])


def columns(n_rows: int, correlation: float, rng: np.random.Generator) -> np.ndarray:
    own = rng.standard_normal((n_rows, 3))
    own[:, 1] = correlation * own[:, 0] + np.sqrt(1 - correlation**2) * own[:, 1]
    return np.clip(own / 3, -1, 1)


def classes(n_rows: int, correlation: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    x = columns(n_rows, correlation, rng)
    probability = 1 / (1 + np.exp(-(x @ TRUTH[:3] + TRUTH[3])))
    return x, np.where(rng.uniform(size=n_rows) < probability, "yes", "no")


def ends_of(model: pf.LogisticRegression) -> np.ndarray:
    return np.vstack([model.coef_interval_, model.intercept_interval_])


def least(runs: int) -> float:
    """The least share of runs in which 90% intervals cover: less by three errors."""
    return 0.9 - 3 * (0.09 / runs) ** 0.5


@quick_or_full("runs", quick=[16], full=[40])
@pytest.mark.parametrize(("correlation", "epsilon"), [(0.0, 0.5), (0.9, 2.0)])
def test_every_coefficient_of_a_classifier_is_covered_as_often_as_claimed(
    correlation: float, epsilon: float, runs: int
) -> None:
    hits = []
    for seed in range(runs):
        x, y = classes(20_000, correlation, seed)
        model = pf.LogisticRegression(epsilon, schema=CLASSES, intervals=True, random_state=seed).fit(x, y)
        low, high = ends_of(model).T
        hits.append((low <= TRUTH) & (high >= TRUTH))
        if correlation == 0.0:
            assert np.isfinite(high - low).all()
    assert np.mean(hits, axis=0).min() >= least(runs)


def test_noise_narrows_with_epsilon_and_hides_correlated_columns() -> None:
    x, y = classes(20_000, 0.0, 0)
    few, many = (pf.LogisticRegression(e, schema=CLASSES, intervals=True, random_state=0).fit(x, y) for e in (0.5, 5.0))
    assert np.all(np.diff(few.coef_interval_) > np.diff(many.coef_interval_))
    assert few.summary().noise_share[0] > 3 * many.summary().noise_share[0]
    x[:, 1] = x[:, 0]
    hidden = pf.LogisticRegression(1.0, schema=CLASSES, intervals=True, random_state=0).fit(x, y)
    assert np.isinf(hidden.coef_interval_[:2]).all()
    assert np.isfinite(hidden.coef_interval_[2]).all()
    assert any("not identified" in note for note in hidden.report_.notes)
    table = hidden.summary()
    assert str(table).count("not identified") == 2
    assert table.to_dict()["lines"][0]["interval"] is None
    ends = hidden.predict_interval(x[:5])  # the sum of both is known
    assert np.all(ends[:, 1] - ends[:, 0] < 0.3)


def test_predictions_have_intervals_around_them() -> None:
    x, y = classes(20_000, 0.5, 1)
    model = pf.LogisticRegression(1.0, schema=CLASSES, intervals=True, random_state=1).fit(x, y)
    ends, told = model.predict_interval(x[:50]), model.predict_proba(x[:50])[:, 1]
    assert np.all((ends[:, 0] < told) & (told < ends[:, 1]))
    assert np.all(np.diff(model.predict_interval(x[:50], 0.5)) < np.diff(ends))
    true = 1 / (1 + np.exp(-(x[:50] @ TRUTH[:3] + TRUTH[3])))
    assert np.mean((ends[:, 0] < true) & (true < ends[:, 1])) > 0.5
    machine = pf.LinearSVC(1.0, schema=CLASSES, intervals=True, random_state=1).fit(x, y)
    ends, score = machine.predict_interval(x[:50]), machine.decision_function(x[:50])
    assert np.all((ends[:, 0] < score) & (score < ends[:, 1]))
    with pytest.raises(pf.PrivacyError, match=r"confidence=1\.5"):
        model.confidence_intervals(1.5)


def test_a_summary_has_odds_ratios_and_says_what_it_is() -> None:
    x, y = classes(20_000, 0.0, 2)
    model = pf.LogisticRegression(1.0, schema=CLASSES, intervals=True, random_state=2).fit(x, y)
    table = model.summary(0.95)
    text = str(table)
    assert "odds ratio" in text
    assert "95% interval" in text
    assert "NOT private" in text  # a seed was given
    assert "p-values" in text
    assert f"{np.exp(model.coef_[0, 0]):.4g}" in text
    assert "<table>" in table._repr_html_()
    assert "odds ratio" not in str(
        pf.LinearSVC(1.0, schema=CLASSES, intervals=True, random_state=2).fit(x, y).summary()
    )


def test_levels_have_intervals_and_weights_of_classes_count() -> None:
    rng = np.random.default_rng(3)
    levels = rng.integers(0, 3, 30_000)
    effects = np.array([-1.0, 0.0, 1.0])
    y = (rng.uniform(size=30_000) < 1 / (1 + np.exp(-effects[levels]))).astype(int)
    schema = pf.Schema([pf.Category("level", [0, 1, 2])], target=pf.Category("y", [0, 1]))
    table = np.column_stack([levels, y])
    model = pf.LogisticRegression(1.0, schema=schema, intervals=True, random_state=3).fit(table)
    assert np.all((model.coef_interval_[:, 0] < effects) & (effects < model.coef_interval_[:, 1]))
    halved = pf.LogisticRegression(
        1.0, schema=schema, intervals=True, random_state=3, class_weight={0: 0.5, 1: 1.0}
    ).fit(table)
    low, high = halved.intercept_interval_
    assert low < np.log(2) < high


SLOPES = np.array([0.8, -0.5, 0.3, 0.5])
"""Of log means, logits of proportions and quantiles; the intercept last."""


def numbers(model: type, n_rows: int, correlation: float, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Columns, a target of the kind that a model is for, and the coefficients that its intervals are for."""
    rng = np.random.default_rng(seed)
    x = columns(n_rows, correlation, rng)
    line = x @ SLOPES[:3] + SLOPES[3]
    if model is pf.QuantileRegressor:  # skewed errors whose size depends on the first column
        high = np.log(5.0)  # the quantile .8 of exponential errors
        return x, line + rng.exponential(1.0, n_rows) * (1 + 0.5 * x[:, 0]), SLOPES + high * np.array([0.5, 0, 0, 1])
    if model is pf.FractionalRegressor:
        share = 1 / (1 + np.exp(-line))
        return x, 8 * rng.beta(2 * share, 2 * (1 - share)), SLOPES
    drawn = rng.poisson(np.exp(line)) if model is pf.PoissonRegressor else rng.gamma(2, np.exp(line) / 2)
    return x, drawn.astype(float), SLOPES


NUMBERS = [pf.PoissonRegressor, pf.GammaRegressor, pf.FractionalRegressor, pf.QuantileRegressor]


def sure(model: type, epsilon: float, seed: int, x: np.ndarray, y: np.ndarray, **own: object) -> pf.PoissonRegressor:
    schema = pf.Schema.box(-1, 1, n_features=3, target=(0, 8 if model is pf.FractionalRegressor else 60))
    own |= {"quantile": 0.8} if model is pf.QuantileRegressor else {}
    return model(epsilon, schema=schema, intervals=True, random_state=seed, **own).fit(x, y)


@quick_or_full("runs", quick=[16], full=[40])
@pytest.mark.parametrize("model", NUMBERS)
@pytest.mark.parametrize(("correlation", "epsilon"), [(0.0, 2.0), (0.9, 4.0)])
def test_every_coefficient_of_a_regression_is_covered_as_often_as_claimed(
    model: type, correlation: float, epsilon: float, runs: int
) -> None:
    known, hits = [], []
    for seed in range(runs):
        x, y, truth = numbers(model, 20_000, correlation, seed)
        low, high = ends_of(sure(model, epsilon, seed, x, y)).T
        known.append(np.isfinite(high))
        hits.append((low <= truth) & (high >= truth))
    found, covered = np.array(known), np.array(hits)
    assert found[:, 2:].mean() > 0.9
    rates = [covered[found[:, j], j].mean() for j in range(4) if found[:, j].sum() >= runs / 2]
    assert min(rates) >= least(runs)


@pytest.mark.parametrize("model", NUMBERS)
def test_a_regression_says_how_sure_it_is_and_keeps_it(model: type, tmp_path: Path) -> None:
    x, y, _ = numbers(model, 20_000, 0.0, 7)
    fitted = sure(model, 3.0, 7, x, y)
    ends, told = fitted.predict_interval(x[:50]), fitted.predict(x[:50])
    assert np.all((ends[:, 0] < told) & (told < ends[:, 1]))
    names = {pf.FractionalRegressor: "odds ratio", pf.QuantileRegressor: "noise"}
    assert names.get(model, "rate ratio") in str(fitted.summary())
    assert any("a quarter of epsilon" in note for note in fitted.report_.notes)
    fitted.save(tmp_path / "model.json")
    loaded = pf.load_model(tmp_path / "model.json")
    assert isinstance(loaded, model)
    assert np.allclose(loaded.coef_interval_, fitted.coef_interval_, rtol=1e-6)
    assert str(loaded.summary()) == str(fitted.summary())
    again = sure(model, 3.0, 7, x, y)
    again.set_params(intervals=False).fit(x, y)
    with pytest.raises(AttributeError, match="intervals=True"):
        again.summary()


@pytest.mark.parametrize("model", NUMBERS)
def test_without_an_intercept_and_with_weights_there_are_intervals(model: type) -> None:
    x, y, truth = numbers(model, 20_000, 0.0, 9)
    weighed = sure(model, 4.0, 9, x, y, max_weight=2.0).fit(x, y, sample_weight=np.full(len(x), 2.0))
    low, high = ends_of(weighed).T
    assert np.all((low - 0.1 < truth) & (truth < high + 0.1))
    plain = sure(model, 4.0, 9, x, y, fit_intercept=False)
    assert plain.intercept_ == 0
    assert np.isfinite(plain.coef_interval_).all()
    assert "intercept" not in plain.summary().names


LINES = pf.Schema.box(-1, 1, n_features=3, target=(-5, 30))


def linear(epsilon: float, seed: int, model: type = pf.LinearRegression, **own: object) -> pf.LinearRegression:
    settings = {"schema": LINES, "mechanism": "objective", "intervals": True, "random_state": seed}
    return model(epsilon, **{**settings, **own})


@pytest.mark.parametrize(("correlation", "epsilon"), [(0.0, 0.5), (0.9, 2.0)])
def test_least_squares_by_a_perturbed_objective_cover_the_mean(correlation: float, epsilon: float) -> None:
    truth, hits = SLOPES + np.array([0.5, 0, 0, 1]), []  # errors of the quantile's table have a mean of 1 + x / 2
    for seed in range(30):
        x, y, _ = numbers(pf.QuantileRegressor, 20_000, correlation, seed)
        low, high = ends_of(linear(epsilon, seed).fit(x, y)).T
        assert np.isfinite(high[2:]).all()
        hits.append((low <= truth) & (high >= truth))
    assert np.mean(hits, axis=0).min() >= 0.7  # 90% less three and a half errors of 30 runs


def test_least_squares_say_how_much_is_noise_and_keep_it(tmp_path: Path) -> None:
    x, y, _ = numbers(pf.QuantileRegressor, 20_000, 0.0, 5)
    shares = []
    for mechanism in ("objective", "functional"):
        fitted = linear(1.0, 5, mechanism=mechanism).fit(x, y)
        shares.append(fitted.summary().noise_share[:3])
        fitted.save(tmp_path / "model.json")
        loaded = pf.load_model(tmp_path / "model.json")
        assert isinstance(loaded, pf.LinearRegression)
        assert np.allclose(loaded.coef_interval_, fitted.coef_interval_, rtol=1e-6)
        assert np.allclose(loaded.predict_interval(x[:9]), fitted.predict_interval(x[:9]), rtol=1e-5)
        assert str(loaded.summary()) == str(fitted.summary())
    assert np.all((np.array(shares) > 0.2) & (np.array(shares) < 1))
    with pytest.raises(pf.PrivacyError, match="of='target'"):
        linear(1.0, 5).fit(x, y).predict_interval(x[:9], of="target")


def test_a_penalty_that_is_asked_for_is_kept_and_one_that_is_not_is_undone() -> None:
    x, y, _ = numbers(pf.QuantileRegressor, 20_000, 0.0, 6)
    columns = np.column_stack([x, np.ones(len(x))])
    penalty = np.diag([2_000.0] * 3 + [0.0])
    wanted = np.linalg.solve(columns.T @ columns + penalty, columns.T @ y)
    asked = linear(8.0, 6, pf.Ridge, alpha=2_000.0).fit(x, y)
    assert np.allclose(asked.coef_, wanted[:3], atol=0.06)
    plain = np.linalg.lstsq(columns, y, rcond=None)[0]
    assert np.allclose(linear(8.0, 6, pf.Ridge).fit(x, y).coef_, plain[:3], atol=0.1)
    assert np.abs(plain[0] - wanted[0]) > 0.4
    with pytest.raises(pf.PrivacyError, match="absolute values"):
        linear(8.0, 6, pf.Lasso).fit(x, y)
    with pytest.raises(pf.PrivacyError, match="releases nothing"):
        linear(8.0, 6, mechanism="adassp").fit(x, y)


def test_columns_that_are_the_same_are_not_identified() -> None:
    x, y, _ = numbers(pf.PoissonRegressor, 20_000, 0.0, 8)
    x[:, 1] = x[:, 0]
    fitted = sure(pf.PoissonRegressor, 2.0, 8, x, y)
    assert np.isinf(fitted.coef_interval_[:2]).all()
    assert str(fitted.summary()).count("not identified") == 2
    ends = fitted.predict_interval(x[:20])
    assert np.isfinite(ends).all()


def test_a_saved_model_keeps_its_intervals(tmp_path: Path) -> None:
    x, y = classes(5_000, 0.9, 4)
    model = pf.LogisticRegression(0.5, schema=CLASSES, intervals=True, random_state=4).fit(x, y)
    model.save(tmp_path / "model.json")
    loaded = pf.load_model(tmp_path / "model.json")
    assert isinstance(loaded, pf.LogisticRegression)
    assert np.allclose(loaded.coef_interval_, model.coef_interval_, rtol=1e-6)
    assert np.allclose(loaded.predict_interval(x[:9]), model.predict_interval(x[:9]), rtol=1e-6)
    assert str(loaded.summary()) == str(model.summary())
    plain = pf.LogisticRegression(0.5, schema=CLASSES, random_state=4).fit(x, y)
    with pytest.raises(AttributeError, match="intervals=True"):
        plain.summary()
