"""Regression and classification with a loss of the user's own, under differential privacy."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit
from sklearn.base import RegressorMixin
from sklearn.utils import Tags
from sklearn.utils.metaestimators import available_if

from privfit.losses import LINKS, SQUARED, PolynomialLoss, logistic, squared
from privfit.mechanisms import LinearFit, PolynomialFit, PolynomialMechanism, QuadraticProblem
from privfit.mechanisms.base import AnyMechanism
from privfit.models._docs import documented
from privfit.models.base import MomentModel, WeighedClasses
from privfit.models.classes import ClassModel
from privfit.models.inputs import Input, predicting
from privfit.models.named import MOMENTS
from privfit.models.private import FitResult, WeightedFit
from privfit.models.report import JSONObject
from privfit.models.weights import class_weights_of
from privfit.privacy import Ledger, PrivacyError, PrivacyParameters, Seed
from privfit.schema import Schema
from privfit.tables import TableLike

Floats = NDArray[np.float64]
FunctionalResult = FitResult[PolynomialMechanism, QuadraticProblem, PolynomialFit | LinearFit]


class _FunctionalModel(MomentModel[PolynomialMechanism, PolynomialFit | LinearFit]):
    """What the two models share: a loss that is a parameter, and what is kept of it.

    Parameters
    ----------
    mechanism : {'auto', 'functional'} or FunctionalMechanism
        How the sums are released. The settings of a FunctionalMechanism apply to losses that moments of degree two can
        fit.
    fit_intercept : bool
        Whether to fit an intercept. Without one, the linear predictor is zero where every number is.

    Attributes
    ----------
    link_ : {'identity', 'exp', 'logistic'}
        How a prediction follows from the linear predictor.
    approximation_error_ : float
        Largest distance between the loss and its polynomial on the loss's interval, over the bounds of the target.
    """

    def __init__(
        self,
        epsilon: float = 1.0,
        *,
        loss: PolynomialLoss | None = None,
        delta: float = 0.0,
        schema: Schema | str | Path | None = None,
        mechanism: str | AnyMechanism = "auto",
        adjacency: str = "replace-one",
        fit_intercept: bool = True,
        numeric: str = "auto",
        rows_per_person: int = 1,
        expected_rows: int | None = None,
        ledger: Ledger | None = None,
        random_state: Seed = None,
        n_jobs: int | None = None,
        max_memory: int | str | None = None,
        max_weight: float | None = None,
    ) -> None:
        super().__init__(
            epsilon,
            delta=delta,
            schema=schema,
            mechanism=mechanism,
            adjacency=adjacency,
            fit_intercept=fit_intercept,
            numeric=numeric,
            rows_per_person=rows_per_person,
            expected_rows=expected_rows,
            ledger=ledger,
            random_state=random_state,
            n_jobs=n_jobs,
            max_memory=max_memory,
        )
        self.loss = loss
        self.max_weight = max_weight

    _loss = SQUARED  # the loss that counts is the mechanism's own
    _loss_not_kept = False

    def _default_loss(self) -> PolynomialLoss:
        raise NotImplementedError

    def _chosen_mechanism(self) -> PolynomialMechanism:
        if self.loss is None and self._loss_not_kept:
            raise PrivacyError(
                f"This {type(self).__name__} was loaded from a file, which does not keep the loss it was fitted with. "
                "Set it before fitting again: set_params(loss=...)."
            )
        loss = self._default_loss() if self.loss is None else self.loss
        return PolynomialMechanism(loss, MOMENTS.choose(self.mechanism, type(self).__name__))

    def _keep(self, result: FunctionalResult) -> None:
        fit, target = result.fit, self._geometry.target
        assert target is not None
        self._keep_coefficients(*self._geometry.table_units(fit.weights, fit.intercept))
        self.link_: str = result.mechanism.loss.link
        self.approximation_error_ = result.mechanism.approximation_error(target)

    def _keep_coefficients(self, coef: Floats, intercept: float) -> None:
        """Set coef_ and intercept_."""
        raise NotImplementedError

    # -- saving ------------------------------------------------------------------------------------

    def _facts(self) -> JSONObject:
        """What a saved model carries besides coefficients, schema and report."""
        return {"link": self.link_, "approximation_error": self.approximation_error_}

    def _restore_facts(self, facts: JSONObject) -> None:
        if facts["link"] not in LINKS:
            raise TypeError("a saved link is one of those that exist")
        self.link_ = facts["link"]
        self.approximation_error_ = float(facts["approximation_error"])
        self._loss_not_kept = True


@documented
class FunctionalRegressor(RegressorMixin, WeightedFit, _FunctionalModel):  # type: ignore[misc]
    """Regression with any loss of the linear predictor, fitted under differential privacy.

    The loss f(z, y) of the linear predictor z = coef_'x + intercept_ is replaced by a polynomial in z, so that sums
    over rows suffice to fit it (Algorithm 2 of the paper [1]_). What that costs in accuracy is computed and reported;
    it does not affect the guarantee.

    Parameters
    ----------
    loss : PolynomialLoss or None
        The loss. `pf.losses` has `squared()`, `poisson(...)` and `huber(...)`; None is least squares. It is public:
        choose it without looking at the rows.

    Attributes
    ----------
    coef_ : ndarray of shape (n_columns,)
        One coefficient of z per name in `get_feature_names_out()`, in the units of the table.
    intercept_ : float
        The intercept of z.

    See Also
    --------
    FunctionalClassifier : The same for two classes.
    PolynomialLoss : A loss and the polynomial in its place.
    LinearRegression : Least squares, with confidence intervals.

    Notes
    -----
    The schema has a Numeric target.

    Guarantee: epsilon-DP, replace-one or add-remove; docs/proofs/polynomial.md, Theorems 3 and 4.
    Domain: at least one row, no refused cell, no more rows than stated; docs/proofs/errors-and-stops.md.

    References
    ----------
    .. [1] J. Zhang, Z. Zhang, X. Xiao, Y. Yang and M. Winslett, "Functional mechanism: regression analysis under
       differential privacy", Proceedings of the VLDB Endowment 5(11), 2012.

    Examples
    --------
    >>> import numpy as np, privfit as pf
    >>> X = np.tile(np.linspace(-1, 1, 100), 500).reshape(-1, 1)
    >>> counts = np.rint(np.exp(0.8 * X[:, 0]) + np.tile([-0.5, 0.5], 25_000))
    >>> schema = pf.Schema.box(-1, 1, target=(0, 10))
    >>> model = pf.FunctionalRegressor(epsilon=2.0, loss=pf.losses.poisson(interval=1.5), schema=schema)
    >>> bool(abs(model.fit(X, counts).coef_[0] - 0.8) < 0.2)
    True
    """

    def _default_loss(self) -> PolynomialLoss:
        return squared()

    def _keep_coefficients(self, coef: Floats, intercept: float) -> None:
        self.coef_, self.intercept_ = coef, intercept

    def _restore(self, coef: Floats, intercept: Floats) -> None:
        self.coef_, self.intercept_ = coef, float(intercept[0])

    def linear_predictor(self, X: TableLike) -> Floats:
        """Evaluate the linear predictor, z = coef_'x + intercept_, for every row.

        Parameters
        ----------
        X : array-like, data frame, Arrow table or stream, DuckDB relation, str or Path
            The rows to predict for.

        Returns
        -------
        ndarray of shape (n_rows,)
            The linear predictor.
        """
        return self._scores(X)

    @predicting
    def predict(self, X: TableLike) -> Floats:
        """Predict the target of every row: z, e^z or 1 / (1 + e^-z), as `link_` says.

        Parameters
        ----------
        X : array-like, data frame, Arrow table or stream, DuckDB relation, str or Path
            The rows to predict for.

        Returns
        -------
        ndarray of shape (n_rows,)
            The predictions.
        """
        scores = self._scores(X)
        if self.link_ == "identity":
            return scores
        return np.asarray(np.exp(scores) if self.link_ == "exp" else expit(scores))

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.regressor_tags.poor_score = True  # at epsilon 1, noise dominates the 200 rows of scikit-learn's check
        return tags


def _has_probabilities(model: FunctionalClassifier) -> bool:
    link = getattr(model, "link_", None) or (model._default_loss() if model.loss is None else model.loss).link
    return bool(link == "logistic")


@documented
class FunctionalClassifier(
    WeighedClasses, ClassModel[PolynomialMechanism, QuadraticProblem, PolynomialFit | LinearFit], _FunctionalModel
):
    """Classification into two classes with any loss of the linear predictor, under differential privacy.

    As `FunctionalRegressor`, for a loss f(z, y) with y = -1 for the first and y = 1 for the second class. The predicted
    class is the second one where z is positive.

    Parameters
    ----------
    loss : PolynomialLoss or None
        The loss. None is `pf.losses.logistic()`: the logistic loss by a polynomial of degree two that follows it on
        [-4, 4]. It is public: choose it without looking at the rows.
    class_weight : dict or None
        How much rows of each class count: public numbers by class, where a class that is not named counts 1. Weights of
        rows multiply it.

    See Also
    --------
    FunctionalRegressor : The same for numbers.
    LogisticRegression : The logistic loss itself, usually more accurate.

    Notes
    -----
    The schema has a Category of two classes as target.

    Guarantee: epsilon-DP, replace-one or add-remove; docs/proofs/polynomial.md, Theorems 3 and 4.
    Domain: at least one row, no refused cell, no more rows than stated; docs/proofs/errors-and-stops.md.

    References
    ----------
    .. [1] J. Zhang, Z. Zhang, X. Xiao, Y. Yang and M. Winslett, "Functional mechanism: regression analysis under
       differential privacy", Proceedings of the VLDB Endowment 5(11), 2012.

    Examples
    --------
    >>> import numpy as np, privfit as pf
    >>> X = np.tile(np.linspace(-1, 1, 200), 100).reshape(-1, 1)
    >>> y = np.where(X[:, 0] > 0.2, "yes", "no")
    >>> model = pf.FunctionalClassifier(epsilon=1.0, schema=pf.Schema.box(-1, 1, target=["no", "yes"])).fit(X, y)
    >>> bool(model.score(X, y) > 0.8)
    True
    """

    def __init__(
        self,
        epsilon: float = 1.0,
        *,
        loss: PolynomialLoss | None = None,
        delta: float = 0.0,
        schema: Schema | str | Path | None = None,
        mechanism: str | AnyMechanism = "auto",
        adjacency: str = "replace-one",
        fit_intercept: bool = True,
        numeric: str = "auto",
        rows_per_person: int = 1,
        expected_rows: int | None = None,
        ledger: Ledger | None = None,
        random_state: Seed = None,
        n_jobs: int | None = None,
        max_memory: int | str | None = None,
        max_weight: float | None = None,
        class_weight: dict[Any, float] | None = None,
    ) -> None:
        super().__init__(
            epsilon,
            loss=loss,
            delta=delta,
            schema=schema,
            mechanism=mechanism,
            adjacency=adjacency,
            fit_intercept=fit_intercept,
            numeric=numeric,
            rows_per_person=rows_per_person,
            expected_rows=expected_rows,
            ledger=ledger,
            random_state=random_state,
            n_jobs=n_jobs,
            max_memory=max_memory,
            max_weight=max_weight,
        )
        self.class_weight = class_weight

    def _settled(
        self, mechanism: PolynomialMechanism, given: Input, parameters: PrivacyParameters
    ) -> tuple[PolynomialMechanism, Input]:
        """With the weights of classes, which are a part of the loss."""
        if self.class_weight is None:
            return mechanism, given
        weights = class_weights_of(self, self.class_weight, mechanism, given.schema)
        if not weights:
            raise PrivacyError(
                "class_weight='balanced' was given to FunctionalClassifier, whose mechanism buys no counts of classes. "
                "Give public numbers, such as {'no': 1.0, 'yes': 5.0}, or use LogisticRegression. Nothing was charged."
            )
        return replace(mechanism, class_weights=weights), given

    def _default_loss(self) -> PolynomialLoss:
        return logistic()

    def _keep_coefficients(self, coef: Floats, intercept: float) -> None:
        self.coef_, self.intercept_ = coef[None, :], np.array([intercept])

    @available_if(_has_probabilities)  # type: ignore[untyped-decorator]
    def predict_proba(self, X: TableLike) -> Floats:
        """Predict the probability of each class for every row; only for losses with the logistic link.

        Parameters
        ----------
        X : array-like, data frame, Arrow table or stream, DuckDB relation, str or Path
            The rows to predict for.

        Returns
        -------
        ndarray of shape (n_rows, 2)
            The probabilities, in the order of `classes_`.
        """
        second = expit(self._scores(X))
        return np.column_stack([1.0 - second, second])
