"""scikit-learn estimators: wiring between tables, mechanisms and solvers."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

from privfit.models import saving
from privfit.models.additive import AdditiveClassifier, AdditiveRegressor
from privfit.models.aggregate import Aggregate
from privfit.models.amounts import FractionalRegressor, GammaRegressor, PoissonRegressor
from privfit.models.classes import ClassModel
from privfit.models.cox import CoxRegression
from privfit.models.erm import ERM
from privfit.models.general import FunctionalClassifier, FunctionalRegressor
from privfit.models.holdout import Holdout, holdout
from privfit.models.kmeans import KMeans
from privfit.models.linear import LinearRegression
from privfit.models.logistic import LogisticRegression
from privfit.models.model_files import ModelFileError
from privfit.models.naive_bayes import GaussianNB
from privfit.models.pca import PCA
from privfit.models.penalised import ElasticNet, Lasso, Ridge
from privfit.models.private import AnyModel
from privfit.models.private_search import PrivateSearch
from privfit.models.quantile import QuantileRegressor
from privfit.models.report import Report
from privfit.models.search import GeneticSearch
from privfit.models.select import SelectPrivate
from privfit.models.shapes import Shape
from privfit.models.streaming import prediction_batches
from privfit.models.summary import CoefficientTable
from privfit.models.svm import LinearSVC

ESTIMATORS = (
    LinearRegression,
    Ridge,
    Lasso,
    ElasticNet,
    LogisticRegression,
    FunctionalRegressor,
    FunctionalClassifier,
    LinearSVC,
    ERM,
    AdditiveRegressor,
    AdditiveClassifier,
    QuantileRegressor,
    PoissonRegressor,
    GammaRegressor,
    FractionalRegressor,
)


LOADABLE: dict[str, type[AnyModel]] = {
    estimator.__name__: estimator for estimator in (*ESTIMATORS, KMeans, PCA, GaussianNB, CoxRegression)
}
"""The classes that may be in a saved model, by name. Baselines add theirs."""


SavedModel = (
    LinearRegression
    | Ridge
    | Lasso
    | ElasticNet
    | LogisticRegression
    | FunctionalRegressor
    | FunctionalClassifier
    | LinearSVC
    | ERM
    | AdditiveRegressor
    | AdditiveClassifier
    | QuantileRegressor
    | PoissonRegressor
    | GammaRegressor
    | FractionalRegressor
    | KMeans
    | PCA
    | GaussianNB
    | CoxRegression
    | ClassModel[Any, Any, Any]
)
"""What `load_model` returns. ClassModel stands for the baselines that can be saved: they are in a package above this
one."""


def load_model(path: str | Path) -> SavedModel:
    """Read the model that `model.save(path)` wrote.

    No code of the file is run. Its ledger, its mechanism and a loss of its own are not in the file.

    Parameters
    ----------
    path : str or Path
        The file that `save`, or `privfit fit -o`, wrote.

    Returns
    -------
    LinearRegression, LogisticRegression, KMeans or another estimator
        The fitted model, ready to predict.

    Raises
    ------
    ModelFileError
        If the file is not a model saved by privfit.

    See Also
    --------
    LinearRegression.save : Write a model to a file.

    Examples
    --------
    >>> import os, tempfile
    >>> import numpy as np, privfit as pf
    >>> X = np.linspace(-1, 1, 1000).reshape(-1, 1)
    >>> model = pf.LinearRegression(epsilon=1.0, schema=pf.Schema.box(-1, 1, target=(-1, 1))).fit(X, 0.5 * X[:, 0])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     model.save(os.path.join(folder, "model.json"))
    ...     loaded = pf.load_model(os.path.join(folder, "model.json"))
    >>> bool(loaded.coef_[0] == model.coef_[0])
    True
    """
    return cast("SavedModel", saving.load(path, LOADABLE))


__all__ = [
    "ERM",
    "ESTIMATORS",
    "LOADABLE",
    "PCA",
    "AdditiveClassifier",
    "AdditiveRegressor",
    "Aggregate",
    "CoefficientTable",
    "CoxRegression",
    "ElasticNet",
    "FractionalRegressor",
    "FunctionalClassifier",
    "FunctionalRegressor",
    "GammaRegressor",
    "GaussianNB",
    "GeneticSearch",
    "Holdout",
    "KMeans",
    "Lasso",
    "LinearRegression",
    "LinearSVC",
    "LogisticRegression",
    "ModelFileError",
    "PoissonRegressor",
    "PrivateSearch",
    "QuantileRegressor",
    "Report",
    "Ridge",
    "SelectPrivate",
    "Shape",
    "holdout",
    "load_model",
    "prediction_batches",
]
