"""Poisson, gamma and fractional regression: near the plain fit, scored as in scikit-learn."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from sklearn.linear_model import GammaRegressor, PoissonRegressor
from sklearn.metrics import d2_tweedie_score

import privfit as pf

RNG = np.random.default_rng(0)
X = RNG.uniform(-1, 1, (20_000, 2))
MEAN = np.exp(1 + X @ np.array([0.8, -0.4]))


@pytest.mark.parametrize(("model", "power"), [(pf.PoissonRegressor, 1), (pf.GammaRegressor, 2)])
def test_a_log_mean_is_near_that_of_scikit_learn(model: type, power: int) -> None:
    rng = np.random.default_rng(1)
    y = rng.poisson(MEAN) if power == 1 else np.maximum(rng.gamma(2, MEAN / 2), 1e-3)
    plain = (PoissonRegressor if power == 1 else GammaRegressor)(alpha=0).fit(X, y)
    found = model(1.0, schema=pf.Schema.box(-1, 1, target=(0, 1000)), random_state=0).fit(X, y)
    score = d2_tweedie_score(y, found.predict(X), power=power)
    assert found.score(X, y) == score
    assert score > 0.93 * d2_tweedie_score(y, plain.predict(X), power=power)
    assert found.predict(X).mean() == pytest.approx(y.mean(), rel=0.05)
    np.testing.assert_allclose(np.log(found.predict(X)), X @ found.coef_ + found.intercept_)


def test_without_an_intercept_the_log_mean_is_zero_at_zero() -> None:
    y = np.random.default_rng(2).poisson(np.exp(X @ np.array([0.8, -0.4])))
    schema = pf.Schema.box(-1, 1, target=(0, 50))
    found = pf.PoissonRegressor(10.0, schema=schema, fit_intercept=False, random_state=0).fit(X, y)
    assert found.intercept_ == 0
    np.testing.assert_allclose(found.coef_, [0.8, -0.4], atol=0.15)


def test_weights_are_exposures_of_rates() -> None:
    rng = np.random.default_rng(3)
    years = rng.uniform(0.1, 2.0, len(X))
    counts = rng.poisson(years * MEAN)
    model = pf.PoissonRegressor(3.0, schema=pf.Schema.box(-1, 1, target=(0, 500)), max_weight=2.0, random_state=0)
    found = model.fit(X, counts / years, sample_weight=years)
    assert (found.predict(X) * years).sum() == pytest.approx(counts.sum(), rel=0.05)
    np.testing.assert_allclose(found.coef_, [0.8, -0.4], atol=0.15)


@pytest.mark.parametrize(("low", "high"), [(0.0, 1.0), (0.0, 100.0), (1.0, 5.0)])
def test_a_proportion_is_of_the_way_between_the_bounds(low: float, high: float) -> None:
    chance = 1 / (1 + np.exp(-X @ np.array([1.0, -0.5])))
    share = np.random.default_rng(4).binomial(4, chance) / 4
    y = low + (high - low) * share
    found = pf.FractionalRegressor(2.0, schema=pf.Schema.box(-1, 1, target=(low, high)), random_state=0).fit(X, y)
    np.testing.assert_allclose(found.coef_, [1.0, -0.5], atol=0.1)
    np.testing.assert_allclose((found.predict(X) - low) / (high - low), chance, atol=0.05)
    assert 0.1 < found.score(X, y) < 1


def test_the_score_of_a_proportion_is_one_for_what_is_known_and_zero_for_the_mean() -> None:
    y = np.array([0.0, 1.0, 0.25, 0.75] * 50)
    model = pf.FractionalRegressor(schema=pf.Schema.box(-1, 1, target=(0, 1)), random_state=0).fit(X[:200], y)
    assert model._explained(y, y, None) == pytest.approx(1.0)
    assert model._explained(y, np.full(200, 0.5), None) == pytest.approx(0.0)


def test_a_target_that_is_never_above_zero_is_refused_before_a_charge() -> None:
    ledger = pf.Ledger(epsilon=1)
    with pytest.raises(pf.PrivacyError, match="not above 0"):
        pf.PoissonRegressor(schema=pf.Schema.box(-1, 1, target=(-5, 0)), ledger=ledger).fit(X, -MEAN)
    assert ledger.remaining == 1


@pytest.mark.parametrize("epsilon", [1e-3, 1e3])
@pytest.mark.parametrize("fill", [0.0, 7.0, 1000.0])
def test_predictions_are_positive_and_bounded_whatever_the_rows(epsilon: float, fill: float) -> None:
    schema = pf.Schema.box(-1, 1, target=(0, 1000))
    found = pf.GammaRegressor(epsilon, schema=schema, random_state=0).fit(X[:50], np.full(50, fill)).predict(X)
    assert ((found > 0) & (found <= 1000)).all()


def test_a_saved_model_predicts_the_same(tmp_path: Path) -> None:
    schema = pf.Schema.box(-1, 1, target=(0, 100))
    for model in (pf.PoissonRegressor, pf.GammaRegressor, pf.FractionalRegressor):
        fitted = model(schema=schema, random_state=0).fit(X, MEAN)
        fitted.save(tmp_path / "model.json")
        np.testing.assert_array_equal(pf.load_model(tmp_path / "model.json").predict(X), fitted.predict(X))


def test_the_examples_of_the_page_run() -> None:
    page = (Path(__file__).parents[2] / "docs" / "counts-and-quantiles.md").read_text(encoding="utf-8")
    examples = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    assert len(examples) >= 3
    names: dict[str, object] = {}
    for example in examples:
        exec(example, names)
