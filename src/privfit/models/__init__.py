"""scikit-learn estimators: wiring between tables, mechanisms and solvers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from privfit.models import saving
from privfit.models.aggregate import Aggregate
from privfit.models.erm import ERM
from privfit.models.general import FunctionalClassifier, FunctionalRegressor
from privfit.models.kmeans import KMeans
from privfit.models.linear import LinearRegression
from privfit.models.logistic import LogisticRegression
from privfit.models.penalised import ElasticNet, Lasso, Ridge
from privfit.models.report import Report
from privfit.models.saving import ModelFileError
from privfit.models.search import GeneticSearch
from privfit.models.svm import LinearSVC

ESTIMATORS = (LinearRegression, Ridge, Lasso, ElasticNet, LogisticRegression, FunctionalRegressor, FunctionalClassifier, LinearSVC, ERM)


LOADABLE: dict[str, type] = {estimator.__name__: estimator for estimator in (*ESTIMATORS, KMeans)}
"""The classes that may be in a saved model, by name. Baselines add theirs."""


def load_model(path: str | Path) -> Any:
    """The model that `model.save(path)` wrote. Runs no code from the file. Its ledger, its mechanism and a loss of its own are not in the file."""
    return saving.load(path, LOADABLE)


__all__ = [
    "ERM",
    "ESTIMATORS",
    "LOADABLE",
    "Aggregate",
    "ElasticNet",
    "FunctionalClassifier",
    "FunctionalRegressor",
    "GeneticSearch",
    "KMeans",
    "Lasso",
    "LinearRegression",
    "LinearSVC",
    "LogisticRegression",
    "ModelFileError",
    "Report",
    "Ridge",
    "load_model",
]
