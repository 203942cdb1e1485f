"""QuantileRegressor: near the plain fit, scored as in scikit-learn, refused where a quantile means nothing."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from sklearn.metrics import d2_pinball_score

import privfit as pf


@pytest.mark.parametrize("quantile", [0.1, 0.5, 0.9])
def test_the_share_of_targets_below_is_the_quantile(quantile: float) -> None:
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (20_000, 2))
    y = 2 * X[:, 0] - X[:, 1] + rng.exponential(1.0, len(X))
    schema = pf.Schema.box(-1, 1, target=(-20, 20))
    model = pf.QuantileRegressor(2.0, quantile=quantile, schema=schema, random_state=0).fit(X, y)
    assert np.mean(y <= model.predict(X)) == pytest.approx(quantile, abs=0.03)
    np.testing.assert_allclose(model.coef_, [2, -1], atol=0.25)
    assert model.score(X, y) == d2_pinball_score(y, model.predict(X), alpha=quantile)


@pytest.mark.parametrize("quantile", [0.0, 1.0, -1, "half", True, float("nan")])
def test_a_quantile_that_means_nothing_is_refused_before_a_charge(quantile: object) -> None:
    ledger = pf.Ledger(epsilon=1)
    model = pf.QuantileRegressor(
        quantile=quantile,  # type: ignore[arg-type]
        schema=pf.Schema.box(-1, 1, target=(-1, 1)),
        ledger=ledger,
    )
    with pytest.raises(pf.PrivacyError, match="above 0 and below 1"):
        model.fit(np.zeros((10, 1)), np.zeros(10))
    assert ledger.remaining == 1


def test_the_example_of_the_page_runs() -> None:
    page = (Path(__file__).parents[2] / "docs" / "counts-and-quantiles.md").read_text(encoding="utf-8")
    example = re.search(r"```python\n(.*?)```", page, re.DOTALL)
    assert example is not None
    exec(example[1], {})
