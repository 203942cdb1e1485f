"""scikit-learn's own models on the same bounds and encoding, NOT private: what no private model is expected to beat."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, clone
from sklearn.utils import Tags, get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from privfit.baselines.not_private import NotPrivate, without_noise
from privfit.mechanisms.base import Mechanism, Numbers, PublicFacts, ReleasePlan
from privfit.models._docs import documented
from privfit.models.classes import public_classes
from privfit.models.inputs import Input, predict_table, predicting
from privfit.models.private import FitResult, PrivateModel
from privfit.privacy import Draws, Ledger, PrivacyError, PrivacyParameters, Seed
from privfit.rows import PlainRows, Rows, linear_scores
from privfit.schema import Category, Geometry, Numeric, Schema
from privfit.tables import TableLike

Floats = NDArray[np.float64]
Method = TypeVar("Method")

MODELS = ("linear", "logistic", "svm", "kmeans")


def sklearn_model(name: str) -> BaseEstimator:
    """scikit-learn's own, with its defaults; logistic regression with enough steps to converge. They are imported here,
    because they take long to load.
    """
    from sklearn import cluster, linear_model, svm

    if name == "linear":
        return linear_model.LinearRegression()
    if name == "logistic":
        return linear_model.LogisticRegression(max_iter=1000)
    return svm.LinearSVC() if name == "svm" else cluster.KMeans(n_init=10)


@dataclass(frozen=True)
class AsItIs(Mechanism[Schema, ReleasePlan, BaseEstimator, BaseEstimator]):
    """scikit-learn's model on the encoded rows as they are. NOT private."""

    estimator: BaseEstimator
    target: bool

    name = "none"
    many_classes = True

    def geometry(self, schema: Schema, problem: Schema | None = None, numeric: Numbers = "slope") -> Geometry:
        """Numbers in [-1, 1], a column per level, no constant."""
        return schema.geometry(intercept=False, target=self.target, several=True)

    def reasons_not_private(self, problem: Schema | None) -> tuple[str, ...]:
        """Always the same."""
        return ("NoPrivacy fits the rows as they are, without noise",)

    def plan(self, facts: PublicFacts, problem: Schema) -> ReleasePlan:
        """Nothing is drawn."""
        return ReleasePlan(without_noise(self.name, facts), facts)

    def read(self, rows: Rows, plan: ReleasePlan, problem: Schema, draws: Draws) -> BaseEstimator:
        """Fit on all rows."""
        plain = PlainRows(rows)
        plain.read()
        table = plain.every_row(lambda values: values)
        design = encoded(table, rows.geometry)
        if not self.target:
            return self.estimator.fit(design)
        values = table[:, -1]
        classes = isinstance(problem.target, Category)
        return self.estimator.fit(design, public_classes(problem)[values.astype(np.intp)] if classes else values)

    def draw(self, data: BaseEstimator, plan: ReleasePlan, draws: Draws) -> BaseEstimator:
        """The model as it is."""
        return data


def encoded(table: Floats, geometry: Geometry) -> Floats:
    """Plain rows as models see them: numbers measured from the middle of their bounds, 1 at the upper one; a column per
    level.
    """
    columns = []
    for place, block in enumerate(geometry.blocks):
        values = table[:, place]
        if block.kind == "slope":
            columns.append(((values - block.center) / block.unit)[:, None])
        else:
            columns.append(np.eye(len(block.labels))[values.astype(np.intp)])
    return np.hstack(columns)


def _can(name: str) -> Callable[[Method], Method]:
    """Whether the model inside, fitted or not, has a method of this name."""

    def has(self: NoPrivacy) -> bool:
        return hasattr(getattr(self, "model_", None) or self._inside(), name)

    limited: Callable[[Method], Method] = available_if(has)
    return limited


@documented
class NoPrivacy(NotPrivate[AsItIs, Schema, BaseEstimator]):
    """A model of scikit-learn on the same bounds and encoding, without noise. NOT private.

    What no private model can be expected to beat.

    Parameters
    ----------
    model : {'linear', 'logistic', 'svm', 'kmeans'} or estimator
        LinearRegression, LogisticRegression, LinearSVC or KMeans of scikit-learn with its defaults; or an estimator of
        scikit-learn that is not fitted.
    schema : Schema, str, Path or None
        Public facts about the table, as for private models. A target is ignored for clusters.
    ledger : Ledger or None
        A ledger is refused.
    random_state : int, RandomState or None
        Passed to the model, where it takes one.

    Attributes
    ----------
    model_ : estimator
        The fitted model of scikit-learn, on numbers scaled to [-1, 1] by their bounds and one column per level, in the
        order of `get_feature_names_out()`.
    classes_ : ndarray of shape (n_classes,)
        For classifiers, the public classes, sorted.
    report_ : Report
        Says that it is not private, and why.

    See Also
    --------
    Truncated : What the functional mechanism loses before any noise.

    Examples
    --------
    >>> import numpy as np, privfit as pf
    >>> X = np.linspace(-1, 1, 50).reshape(-1, 1)
    >>> model = pf.baselines.NoPrivacy("linear", schema=pf.Schema.box(-1, 1, target=(-1, 1))).fit(X, 0.5 * X[:, 0])
    >>> round(float(model.predict([[1.0]])[0]), 6), model.report_.private
    (0.5, False)
    """

    def __init__(
        self,
        model: str | BaseEstimator = "logistic",
        *,
        schema: Schema | str | Path | None = None,
        ledger: Ledger | None = None,
        random_state: Seed = None,
        n_jobs: int | None = None,
        max_memory: int | str | None = None,
    ) -> None:
        self.model = model
        self.schema = schema
        self.ledger = ledger
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.max_memory = max_memory

    _check_selectors = False  # nothing is charged, and scikit-learn says what it can read from the model inside

    def _inside(self) -> BaseEstimator:
        """The model of scikit-learn, not fitted."""
        if isinstance(self.model, str) and self.model in MODELS:
            inside = sklearn_model(self.model)
        elif isinstance(self.model, BaseEstimator) and not isinstance(self.model, PrivateModel):
            inside = clone(self.model)
        else:
            raise PrivacyError(
                f"model={self.model!r} was given to NoPrivacy; it is one of {MODELS} or an estimator of "
                "scikit-learn. Use 'logistic' for classes, 'linear' for numbers."
            )
        if self.random_state is not None and "random_state" in inside.get_params():
            inside.set_params(random_state=self.random_state)
        return inside

    @property
    def _target(self) -> Literal["needed", "ignored"]:  # type: ignore[override]
        return "needed" if get_tags(self._inside()).estimator_type in ("classifier", "regressor") else "ignored"

    @property
    def _is_classifier(self) -> bool:
        return bool(get_tags(self._inside()).estimator_type == "classifier")

    def _chosen_mechanism(self) -> AsItIs:
        return AsItIs(self._inside(), self._target == "needed")

    def _encoded(self, mechanism: AsItIs, given: Input, parameters: PrivacyParameters) -> tuple[Schema, Geometry]:
        return given.schema, mechanism.geometry(given.schema, given.schema)

    def _keep(self, result: FitResult[AsItIs, Schema, BaseEstimator]) -> None:
        self.model_ = result.fit

    # -- predicting --------------------------------------------------------------------------------

    def get_feature_names_out(self, input_features: object = None) -> NDArray[np.object_]:
        """Return the names of the columns that the model inside sees.

        Parameters
        ----------
        input_features : object, default=None
            Not used; it is here for scikit-learn's interface.

        Returns
        -------
        ndarray of object
            One name per encoded column.
        """
        check_is_fitted(self, "model_")
        return np.array(self._geometry.feature_names, dtype=object)

    @predicting
    def _design(self, X: TableLike) -> Floats:
        check_is_fitted(self, "model_")
        names = len(self._geometry.feature_names)
        design = linear_scores(predict_table(self, X), self.schema_, self._geometry, np.eye(names), np.zeros(names))
        place = 0
        for block in self._geometry.blocks:
            if isinstance(block.column, Numeric) and block.kind == "slope":
                design[:, place] = (design[:, place] - block.center) / block.unit
            place += len(block.labels)
        return np.asarray(design.reshape(-1, names), dtype=np.float64)

    def predict(self, X: TableLike) -> NDArray[Any]:
        """Predict with the model inside.

        Parameters
        ----------
        X : array-like, data frame, Arrow table or stream, DuckDB relation, str or Path
            The rows to predict for.

        Returns
        -------
        ndarray of shape (n_rows,)
            The predictions.
        """
        design = self._design(X)
        return np.asarray(self.model_.predict(design))

    def score(self, X: TableLike, y: ArrayLike | None = None, sample_weight: ArrayLike | None = None) -> float:
        """Return the score of the model inside: R^2, accuracy, or minus the sum of squared distances.

        Parameters
        ----------
        X : array-like, data frame, Arrow table or stream, DuckDB relation, str or Path
            The rows to predict for.
        y : array-like or None, default=None
            Their true targets.
        sample_weight : array-like or None, default=None
            Weights of the rows.

        Returns
        -------
        float
            The score; larger is better.
        """
        design = self._design(X)  # refuses a model that is not fitted
        return float(self.model_.score(design, y, sample_weight=sample_weight))

    @_can("predict_proba")
    def predict_proba(self, X: TableLike) -> Floats:
        """Predict the probability of each class for every row.

        Parameters
        ----------
        X : array-like, data frame, Arrow table or stream, DuckDB relation, str or Path
            The rows to predict for.

        Returns
        -------
        ndarray of shape (n_rows, n_classes)
            The probabilities, in the order of `classes_`.
        """
        design = self._design(X)
        return np.asarray(self.model_.predict_proba(design), dtype=np.float64)

    @_can("decision_function")
    def decision_function(self, X: TableLike) -> Floats:
        """Evaluate the decision function of the model inside.

        Parameters
        ----------
        X : array-like, data frame, Arrow table or stream, DuckDB relation, str or Path
            The rows to predict for.

        Returns
        -------
        ndarray of shape (n_rows,) or (n_rows, n_classes)
            The scores.
        """
        design = self._design(X)
        return np.asarray(self.model_.decision_function(design), dtype=np.float64)

    def __sklearn_tags__(self) -> Tags:
        tags, inside = super().__sklearn_tags__(), get_tags(self._inside())
        tags.estimator_type = inside.estimator_type
        tags.classifier_tags, tags.regressor_tags = inside.classifier_tags, inside.regressor_tags
        tags.target_tags.required = inside.target_tags.required
        return tags
