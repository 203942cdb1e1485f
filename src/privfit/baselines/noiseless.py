"""Models that are NOT private, to compare with: scikit-learn's own on the same encoding, and the functional mechanism's
objective without its noise.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_expit
from sklearn.base import BaseEstimator, clone
from sklearn.cluster import KMeans
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.svm import LinearSVC
from sklearn.utils import get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from privfit.losses import truncated_logistic
from privfit.mechanisms import FunctionalMechanism, LinearFit, QuadraticProblem, Release
from privfit.mechanisms.base import AnyMechanism, Mechanism, Numbers, PublicFacts, ReleasePlan
from privfit.mechanisms.functional.functional import ExactMoments, FunctionalPlan
from privfit.models._docs import documented
from privfit.models.base import PrivateLinearModel, original_units
from privfit.models.classes import ClassModel, public_classes, with_sorted_classes
from privfit.models.inputs import Input, predict_table, predicting
from privfit.models.private import PrivateModel
from privfit.models.report import Report
from privfit.privacy import Draws, Event, Ledger, PrivacyError, PrivacyParameters
from privfit.rows import PlainRows, Rows, linear_scores
from privfit.schema import Category, Geometry, Numeric, Schema
from privfit.solvers import Solution, consistent, reduce_quadratic
from privfit.statistics import MomentValues

Floats = NDArray[np.float64]

SAME = 1e-10
"""A direction whose share of the largest curvature is below this is one that columns have twice."""


class NotPrivate(PrivateModel):
    """What the two below share: they look at the rows as they are.

    A ledger is refused, the report says why, and nothing can be saved.
    """

    epsilon, delta, adjacency, rows_per_person = (
        1.0,
        0.0,
        "replace-one",
        1,
    )  # asked for on the way to a release; none is made, and nothing is spent
    expected_rows: int | None = None

    def _reasons_of(self, mechanism: Any) -> tuple[str, ...]:
        reasons: tuple[str, ...] = mechanism.reasons_not_private(None)
        return reasons

    def _report(self, mechanism: Any, release: Release[Any], fit: Any, reasons: tuple[str, ...]) -> Report:
        told = super()._report(mechanism, release, fit, reasons)
        return replace(
            told,
            epsilon=math.inf,
            sensitivity=math.inf,
            noise_scale=0.0,
            noise="none",
            noise_deviation=0.0,
            released_values=0,
            repairs={},
            event={},
        )

    def save(self, path: str | Path) -> None:
        """Refuse to write a file: saved models are for showing, and this one is not private.

        Parameters
        ----------
        path : str or Path
            Not used.

        Raises
        ------
        PrivacyError
            Always.
        """
        raise PrivacyError(
            f"{type(self).__name__} is not private, and what is saved may be shown. Fit a private model to save one."
        )


MODELS: dict[str, BaseEstimator] = {
    "linear": LinearRegression(),
    "logistic": LogisticRegression(max_iter=1000),
    "svm": LinearSVC(),
    "kmeans": KMeans(n_init=10),
}
"""scikit-learn's own, with its defaults; logistic regression with steps enough to arrive."""


@dataclass(frozen=True)
class AsItIs(Mechanism[Schema, ReleasePlan, BaseEstimator, BaseEstimator]):
    """scikit-learn's model on the encoded rows as they are. NOT private."""

    estimator: Any
    target: bool

    name = "none"

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


def without_noise(name: str, facts: PublicFacts) -> Event:
    """An event without parts: nothing is drawn, nothing is hidden, and no ledger takes it."""
    parameters = facts.parameters
    return Event(name, parameters.budget.epsilon, adjacency=parameters.adjacency)


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


def _can(name: str) -> Any:
    """Whether the model inside, fitted or not, has a method of this name."""

    def has(self: Any) -> bool:
        return hasattr(getattr(self, "model_", None) or self._inside(), name)

    return available_if(has)


@documented
class NoPrivacy(NotPrivate):
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
        random_state: Any = None,
    ) -> None:
        self.model = model
        self.schema = schema
        self.ledger = ledger
        self.random_state = random_state

    def _inside(self) -> Any:
        """The model of scikit-learn, not fitted."""
        if isinstance(self.model, str) and self.model in MODELS:
            inside = clone(MODELS[self.model])
        elif isinstance(self.model, BaseEstimator) and not isinstance(self.model, PrivateModel):
            inside = clone(self.model)
        else:
            raise PrivacyError(
                f"model={self.model!r} was given to NoPrivacy; it is one of {tuple(MODELS)} or an estimator of "
                "scikit-learn. Use 'logistic' for classes, 'linear' for numbers."
            )
        if self.random_state is not None and "random_state" in inside.get_params():
            inside.set_params(random_state=self.random_state)
        return inside

    @property
    def _target(self) -> Literal["needed", "ignored"]:  # type: ignore[override]
        return "needed" if get_tags(self._inside()).estimator_type in ("classifier", "regressor") else "ignored"

    def _reasons_not_private(self) -> tuple[str, ...]:
        return tuple(reason for reason in super()._reasons_not_private() if "random_state" not in reason)

    def _chosen_mechanism(self) -> AsItIs:
        return AsItIs(self._inside(), self._target == "needed")

    def _prepared(self, given: Input, mechanism: Any) -> Input:
        if not isinstance(given.schema.target, Category) or not mechanism.target:
            return given
        prepared, self.classes_ = with_sorted_classes(given)
        return prepared

    def _encoded(self, mechanism: AnyMechanism, given: Input, terms: PrivacyParameters) -> tuple[Schema, Geometry]:
        return given.schema, mechanism.geometry(given.schema, None)

    def _check_selector(self, mechanism: Any, given: Input, geometry: Geometry) -> None:
        """Nothing is charged here, and what a selector can read from the model inside is for scikit-learn to say."""

    def _keep(self, fit: Any, mechanism: Any) -> None:
        self.model_ = fit

    # -- predicting --------------------------------------------------------------------------------

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[Any]:
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
    def _design(self, X: Any) -> Floats:
        check_is_fitted(self, "model_")
        names = len(self._geometry.feature_names)
        design = linear_scores(predict_table(self, X), self.schema_, self._geometry, np.eye(names), np.zeros(names))
        place = 0
        for block in self._geometry.blocks:
            if isinstance(block.column, Numeric) and block.kind == "slope":
                design[:, place] = (design[:, place] - block.center) / block.unit
            place += len(block.labels)
        return np.asarray(design.reshape(-1, names), dtype=np.float64)

    def predict(self, X: Any) -> NDArray[Any]:
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

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
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

    @_can("predict_proba")  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> Floats:
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

    @_can("decision_function")  # type: ignore[untyped-decorator]
    def decision_function(self, X: Any) -> Floats:
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

    def __sklearn_tags__(self) -> Any:
        tags, inside = super().__sklearn_tags__(), get_tags(self._inside())
        tags.estimator_type = inside.estimator_type
        tags.classifier_tags, tags.regressor_tags = inside.classifier_tags, inside.regressor_tags
        tags.target_tags.required = inside.target_tags.required
        return tags


@dataclass(frozen=True)
class Noiseless(FunctionalMechanism):
    """The functional mechanism's objective without its noise. NOT private."""

    name = "none"

    def reasons_not_private(self, problem: QuadraticProblem | None) -> tuple[str, ...]:
        """Always the same."""
        return ("Truncated fits the rows as they are, without noise",)

    def plan(self, facts: PublicFacts, problem: QuadraticProblem) -> FunctionalPlan:
        """The same moments; nothing is drawn."""
        return replace(super().plan(facts, problem), event=without_noise(self.name, facts))

    def draw(self, data: ExactMoments, plan: FunctionalPlan, draws: Draws) -> MomentValues:
        """The moments as they are."""
        return consistent(plan.moments, data.values.astype(np.float64), data.n_rows)

    def solve(self, release: Release[MomentValues], geometry: Geometry, problem: QuadraticProblem) -> LinearFit:
        """The minimum itself; the shortest, where columns say the same."""
        loss = problem.loss
        reduced = reduce_quadratic(release.value, geometry, loss, problem.fit_intercept)
        values, directions = np.linalg.eigh(reduced.matrix)
        factors = np.divide(1.0, values, out=np.zeros(len(values)), where=values > SAME * values.max(initial=0.0))
        found = directions @ (factors * (directions.T @ reduced.vector))
        solution = Solution(found, 0.0, 0, float((factors > 0).sum()), True, directions, factors, factors * values, 0.0)
        stretch = loss.slope / (2 * loss.curvature)
        weights = stretch * (reduced.basis @ found)
        intercept = stretch * reduced.target_mean - reduced.feature_means @ weights if problem.fit_intercept else 0.0
        return LinearFit(weights, float(intercept), reduced.target_mean, solution, release.value)


@documented
class Truncated(ClassModel, NotPrivate, PrivateLinearModel):
    """Logistic regression with the loss cut after its second-order term, without noise. NOT private.

    What the functional mechanism loses before any noise: section 5 of the paper [1]_. The quadratic is the Taylor
    expansion at zero, and coefficients are not rescaled afterwards.

    Parameters
    ----------
    schema : Schema, str, Path or None
        Public facts about the table, with a Category of two classes as target.
    ledger : Ledger or None
        A ledger is refused.
    random_state : object
        Not used: nothing is drawn.

    Attributes
    ----------
    report_ : Report
        Says that it is not private, and why.

    See Also
    --------
    NoPrivacy : The logistic loss itself, without noise.
    LogisticRegression : The private model.

    References
    ----------
    .. [1] J. Zhang, Z. Zhang, X. Xiao, Y. Yang and M. Winslett, "Functional mechanism: regression analysis under
       differential privacy", Proceedings of the VLDB Endowment 5(11), 2012.

    Examples
    --------
    >>> import numpy as np, privfit as pf
    >>> X = np.linspace(-1, 1, 200).reshape(-1, 1)
    >>> y = np.where(X[:, 0] > 0.0, "yes", "no")
    >>> model = pf.baselines.Truncated(schema=pf.Schema.box(-1, 1, target=["no", "yes"])).fit(X, y)
    >>> bool(model.score(X, y) > 0.95), model.report_.private
    (True, False)
    """

    _loss = truncated_logistic()

    def __init__(
        self,
        *,
        schema: Schema | str | Path | None = None,
        fit_intercept: bool = True,
        numeric: str = "auto",
        ledger: Ledger | None = None,
        random_state: Any = None,
    ) -> None:
        self.schema = schema
        self.fit_intercept = fit_intercept
        self.numeric = numeric
        self.ledger = ledger
        self.random_state = random_state

    def _chosen_mechanism(self) -> FunctionalMechanism:
        return Noiseless(repair=None, noise="laplace")

    def _reasons_not_private(self) -> tuple[str, ...]:
        return tuple(reason for reason in super()._reasons_not_private() if "random_state" not in reason)

    def _kept_for_later(self, mechanism: Any, release: Any, fit: Any, objective: Any) -> Any:
        return None

    def _described(self, mechanism: Any, fit: Any) -> tuple[dict[str, Any], list[str]]:
        return {}, ["minimises Taylor's quadratic of the logistic loss over all rows"]

    def _keep(self, fit: LinearFit, mechanism: Any) -> None:
        coef, intercept = original_units(fit, self._geometry)
        self.coef_, self.intercept_ = coef[None, :], np.array([intercept])

    def predict_proba(self, X: Any) -> Floats:
        """Predict the probability of each class for every row, as if the loss had not been cut.

        Parameters
        ----------
        X : array-like, data frame, Arrow table or stream, DuckDB relation, str or Path
            The rows to predict for.

        Returns
        -------
        ndarray of shape (n_rows, 2)
            The probabilities, in the order of `classes_`.
        """
        scores = self._scores(X)
        return np.asarray(np.exp(np.column_stack([log_expit(-scores), log_expit(scores)])), dtype=np.float64)
