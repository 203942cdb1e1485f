"""scikit-learn estimators: wiring between tables, mechanisms and solvers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from privfit.models import saving
from privfit.models.erm import ERM
from privfit.models.general import FunctionalClassifier, FunctionalRegressor
from privfit.models.linear import LinearRegression
from privfit.models.logistic import LogisticRegression
from privfit.models.penalised import ElasticNet, Lasso, Ridge
from privfit.models.report import Report
from privfit.models.saving import ModelFileError
from privfit.models.svm import LinearSVC

ESTIMATORS = (LinearRegression, Ridge, Lasso, ElasticNet, LogisticRegression, FunctionalRegressor, FunctionalClassifier, LinearSVC, ERM)


def load_model(path: str | Path) -> Any:
    """The model that `model.save(path)` wrote. Runs no code from the file."""
    return saving.load(path, {estimator.__name__: estimator for estimator in ESTIMATORS})


__all__ = [
    "ERM",
    "ESTIMATORS",
    "ElasticNet",
    "FunctionalClassifier",
    "FunctionalRegressor",
    "Lasso",
    "LinearRegression",
    "LinearSVC",
    "LogisticRegression",
    "ModelFileError",
    "Report",
    "Ridge",
    "load_model",
]
