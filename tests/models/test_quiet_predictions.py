"""Whether numpy warns does not depend on the rows that are predicted: a warning would tell of a single one."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from sklearn.base import is_classifier

import privfit as pf
from privfit.baselines import PrivateERM
from privfit.models import ESTIMATORS

HUGE = np.array([[np.inf, 0.1], [-np.inf, np.inf], [1e308, 1e308], [-1e308, 1e308], [0.1, 0.2]])
METHODS = ("predict", "predict_proba", "predict_log_proba", "decision_function", "predict_interval", "transform")


def fitted(estimator: type, numeric: str, classes: int = 2) -> Any:
    X = np.random.default_rng(0).uniform(-1, 1, (200, 2))
    if estimator is pf.KMeans:
        return pf.KMeans(2, schema=pf.Schema.box(-1, 1, 2), random_state=0).fit(X)
    target: Any = (-1, 1)
    y = X[:, 0]
    if is_classifier(estimator()):
        target, y = pf.Category("y", list(range(classes))), np.digitize(y, [0.0, 0.5][: classes - 1])
    model = estimator(schema=pf.Schema.box(-1, 1, 2, target=target), random_state=0)
    known = model.get_params()
    asked: dict[str, Any] = {"numeric": numeric, "intervals": classes == 2}
    return model.set_params(**{name: value for name, value in asked.items() if name in known}).fit(X, y)


def assert_quiet(model: Any) -> None:
    without = () if getattr(model, "intervals", True) else ("predict_interval",)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for name in METHODS:
            if hasattr(model, name) and name not in without:
                getattr(model, name)(HUGE)
        if isinstance(model, pf.LinearRegression | pf.Ridge) and "predict_interval" not in without:
            model.predict_interval(HUGE, of="target")


@pytest.mark.parametrize("numeric", ["auto", "slope"])
@pytest.mark.parametrize("estimator", [*ESTIMATORS, pf.KMeans, PrivateERM], ids=lambda estimator: estimator.__name__)
def test_predictions_for_infinite_and_huge_rows_do_not_warn(estimator: type, numeric: str) -> None:
    assert_quiet(fitted(estimator, numeric))


@pytest.mark.parametrize(
    "estimator", [pf.LogisticRegression, pf.LinearSVC, pf.ERM], ids=lambda estimator: estimator.__name__
)
def test_nor_do_those_of_many_classes(estimator: type) -> None:
    assert_quiet(fitted(estimator, "slope", classes=3))


def test_nor_does_a_kernel_or_an_exponential_link() -> None:
    X = np.random.default_rng(0).uniform(-1, 1, (200, 2))
    schema = pf.Schema.box(-1, 1, 2, target=pf.Category("y", [0, 1]))
    assert_quiet(pf.LinearSVC(schema=schema, kernel="rbf", random_state=0).fit(X, (X[:, 0] > 0).astype(int)))
    counts = pf.FunctionalRegressor(
        schema=pf.Schema.box(-1, 1, 2, target=(0, 3)), loss=pf.losses.poisson(), random_state=0
    )
    assert_quiet(counts.fit(X, np.abs(X[:, 0])))
