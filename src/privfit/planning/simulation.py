"""Fits of the library's own estimators on generated tables, with seeded noise and without a ledger."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from privfit.models import (
    PCA,
    AdditiveClassifier,
    AdditiveRegressor,
    CoxRegression,
    ElasticNet,
    FractionalRegressor,
    GammaRegressor,
    GaussianNB,
    KMeans,
    Lasso,
    LinearRegression,
    LinearSVC,
    LogisticRegression,
    PoissonRegressor,
    QuantileRegressor,
    Ridge,
)
from privfit.models.named import ADDITIVE, PENALISED
from privfit.planning.generated import Source
from privfit.planning.hazards import HazardSource, concordance
from privfit.privacy import PrivacyError, PrivacyWarning
from privfit.schema import Numeric, Schema
from privfit.tables import Frame, columns_to_frame

CLUSTERERS = ("auto", "hybrid", "cells", "grid", "lloyd", "genetic", "sample-and-aggregate")
MODELS: Mapping[str, tuple[type[Any], tuple[str, ...]]] = {
    "linear": (LinearRegression, tuple(LinearRegression._mechanisms.named)),
    "ridge": (Ridge, tuple(PENALISED.named)),
    "lasso": (Lasso, tuple(Lasso._mechanisms.named)),
    "elastic-net": (ElasticNet, tuple(ElasticNet._mechanisms.named)),
    "logistic": (LogisticRegression, tuple(LogisticRegression._mechanisms.named)),
    "svc": (LinearSVC, tuple(LinearSVC._mechanisms.named)),
    "kmeans": (KMeans, CLUSTERERS),
    "additive-regressor": (AdditiveRegressor, tuple(ADDITIVE.named)),
    "additive-classifier": (AdditiveClassifier, tuple(LogisticRegression._mechanisms.named)),
    "naive-bayes": (GaussianNB, ("auto",)),
    "poisson": (PoissonRegressor, ("auto",)),
    "gamma": (GammaRegressor, ("auto",)),
    "fractional": (FractionalRegressor, ("auto",)),
    "quantile": (QuantileRegressor, ("auto",)),
    "cox": (CoxRegression, ("auto",)),
    "pca": (PCA, ("auto",)),
}
"""The estimators that can be planned, with the mechanisms that they know by name."""
WITHOUT_TARGET = ("kmeans", "pca")
TEST_ROWS = 10_000
"""Rows that scores are measured on: a standard error of at most 0.005 for a share. Chosen, not measured."""
NO_NOISE = 10_000.0
"""The epsilon of the reference: the same estimator with noise that is negligible."""


@dataclass(frozen=True)
class Settings:
    """What is fitted, apart from the schema: the estimator with its parameters, and how many rows stand for the real
    ones.
    """

    model: str
    n_rows: int
    most_rows: int
    rows_per_person: int
    parameters: Mapping[str, Any]

    @property
    def simulated_rows(self) -> int:
        """Rows of a generated table."""
        return min(self.n_rows, self.most_rows)

    def estimator(self, schema: Schema, mechanism: str, epsilon: float, seed: int) -> Any:
        """An estimator that is not fitted. Where rows are fewer than the real ones, epsilon is larger by as much: what
        noise does to a fit depends on rows times epsilon.
        """
        scaled, estimator = epsilon * self.n_rows / self.simulated_rows, MODELS[self.model][0]
        named = {"mechanism": mechanism} if "mechanism" in estimator._get_param_names() else {}
        return estimator(
            epsilon=scaled,
            schema=schema,
            **named,
            rows_per_person=self.rows_per_person,
            random_state=seed,
            **self.parameters,
        )

    def refusal(self, schema: Schema, mechanism: str, train: Frame) -> str:
        """Why this mechanism cannot fit this model; empty where it can."""
        try:
            fitted(self.estimator(schema, mechanism, 1.0, 0), train)
        except PrivacyError as error:
            return str(error)
        return ""


def fitted(estimator: Any, train: Frame) -> Any:
    """The estimator, fitted. Seeded noise is meant here, so nothing warns of it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrivacyWarning)
        return estimator.fit(train)


def score(model: Any, test: Frame, target: str | None) -> float:
    """The share of right classes, R^2, D^2, for hazards the concordance, or the share of variance that components
    explain, or centres of clusters, which is of scaled variance. The deviance of a gamma law is of rows above 0 alone.
    """
    if isinstance(model, PCA):
        rest, whole = model.squared_distances(test).mean(axis=0)
        return float(1 - rest / whole)
    if isinstance(model, CoxRegression):
        return concordance(model, test)
    if not isinstance(model, KMeans):
        values = np.array(test[str(target)].to_list())
        if isinstance(model, GammaRegressor) and not (values > 0).all():
            test = columns_to_frame({name: np.array(test[name].to_list())[values > 0] for name in test.columns})
            values = values[values > 0]
        return float(model.score(test, values))
    numbers = [column for column in model.schema_.features if isinstance(column, Numeric)]
    halves = np.array([(column.high - column.low) / 2 for column in numbers])
    points = np.column_stack([test[column.name].to_numpy() for column in numbers])
    spread = (points / halves).var(axis=0).sum() * len(points)
    return float(1 + model.score(test) / spread)


def without_noise(settings: Settings) -> Settings:
    """The settings of the reference. Classifiers and additive models are sums over columns there: interaction terms are
    chosen by data, and with generated rows, which have none, they would only overfit.
    """
    if settings.model not in ("logistic", "additive-classifier", "additive-regressor"):
        return settings
    return replace(settings, parameters={"interactions": 0, **settings.parameters})


Step = Callable[[], None]


@dataclass(frozen=True)
class Repetition:
    """One generated table to fit on, and rows to score on."""

    train: Frame
    test: Frame
    seed: int

    @classmethod
    def of(cls, source: Source | HazardSource, rows: int, seed: int) -> Repetition:
        """The repetition of this seed; noise and tables have seeds of their own."""
        known = source.with_law(seed)
        return cls(known.table(rows, 3 * seed), known.table(TEST_ROWS, 3 * seed + 1), 3 * seed + 2)

    def score(self, settings: Settings, schema: Schema, mechanism: str, epsilon: float) -> float:
        """The score of one fit."""
        model = fitted(settings.estimator(schema, mechanism, epsilon, self.seed), self.train)
        return score(model, self.test, None if schema.target is None else schema.target.name)
