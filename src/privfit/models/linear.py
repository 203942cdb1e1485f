"""Least squares under differential privacy."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar, Literal, cast

import numpy as np
from numpy.typing import NDArray
from scipy.stats import norm
from sklearn.base import RegressorMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from privfit.losses import SQUARED
from privfit.mechanisms import (
    FunctionalMechanism,
    LinearFit,
    ObjectiveRegression,
    QuadraticProblem,
    RegressionFit,
    bootstrap,
)
from privfit.mechanisms.base import AnyMechanism
from privfit.mechanisms.functional.intervals import Bootstrap
from privfit.mechanisms.perturbation.regression import perturbs_objective
from privfit.models._docs import documented
from privfit.models.base import MomentModel, public_rows
from privfit.models.inputs import Input, predict_table, predicting
from privfit.models.named import LEAST_SQUARES, MomentMechanism
from privfit.models.private import FitResult, WeightedFit
from privfit.models.report import JSONObject
from privfit.privacy import Ledger, PrivacyError, PrivacyParameters, Seed
from privfit.rows import linear_scores
from privfit.schema import Schema
from privfit.tables import TableLike

Floats = NDArray[np.float64]
LinearResult = FitResult[MomentMechanism, QuadraticProblem, LinearFit | RegressionFit]
USUAL_CONFIDENCE = 0.9
"""Of intervals where none is given: a convention, common in reports."""
MOST_SAVED_INTERVALS = 200
"""Models with more coefficients are saved without intervals, so that saving does not wait for their bootstrap."""
MOST_SAVED_DRAWS = 50
"""Models with more coefficients are saved without the draws that intervals of predictions are made from: 200 numbers of
8 digits per coefficient.
"""


@documented
class LinearRegression(WeightedFit, RegressorMixin, MomentModel[MomentMechanism, LinearFit | RegressionFit]):  # type: ignore[misc]
    """Ordinary least squares, fitted under differential privacy.

    The coefficients minimise a perturbed objective, in which residuals count up to a threshold that is chosen privately
    ("objective"); or the moments X'X and X'y are released, with noise, and the coefficients are computed from them
    ("functional"), which gives intervals too.

    Parameters
    ----------
    mechanism : {'auto', 'functional', 'objective', 'adassp', 'boosted-adassp'}, or an instance
        "auto" is "functional" with `intervals`, where rows times epsilon (over `rows_per_person`) are below 1,000 or
        so many that noise is negligible, and where the number of rows is not known (a stream, or "add-remove", without
        `expected_rows`); "objective" elsewhere. An instance is a `FunctionalMechanism`, `ObjectiveRegression` or
        `AdaSSP`.
    numeric : {'auto', 'slope', 'bins', 'splines'}
        Encoding of numeric columns that have no bins of their own: one slope, one indicator per bin, or, with a
        perturbed objective, linear B-splines. "auto" is "slope".
    intervals : bool
        Whether intervals will be asked for. True takes the functional mechanism, whose release they can be computed
        from; coefficients have more noise then.

    Attributes
    ----------
    coef_interval_ : ndarray of shape (n_columns, 2)
        90% confidence intervals of the coefficients, computed when asked for; with `intervals=True`. From minus to plus
        infinity for a coefficient that is not identified at this epsilon.
    intercept_interval_ : ndarray of shape (2,)
        90% confidence interval of the intercept.

    See Also
    --------
    Ridge : Least squares with an L2 penalty.
    Lasso : Least squares with an L1 penalty.
    ObjectiveRegression : The mechanism behind "objective".
    AdaSSP : The adaptive mechanism behind "adassp".
    FunctionalRegressor : Regression with other losses.

    Notes
    -----
    Guarantee: epsilon-DP, or (epsilon, delta)-DP with a delta, replace-one or add-remove; docs/proofs/moments.md,
    Theorem 3, for "objective" docs/proofs/regression-objective.md, Theorem 2, and for AdaSSP docs/proofs/adassp.md,
    Theorem 1.
    Domain: at least one row, no refused cell, no more rows than stated; docs/proofs/errors-and-stops.md.

    References
    ----------
    .. [1] J. Zhang, Z. Zhang, X. Xiao, Y. Yang and M. Winslett, "Functional mechanism: regression analysis under
       differential privacy", Proceedings of the VLDB Endowment 5(11), 2012.

    Examples
    --------
    >>> import numpy as np, privfit as pf
    >>> X = np.linspace(-1, 1, 20_000).reshape(-1, 1)
    >>> schema = pf.Schema.box(-1, 1, target=(-1, 1))
    >>> model = pf.LinearRegression(epsilon=1.0, schema=schema).fit(X, 0.5 * X[:, 0])
    >>> bool(abs(model.coef_[0] - 0.5) < 0.1)
    True
    >>> model = pf.LinearRegression(epsilon=1.0, schema=schema, intervals=True).fit(X, 0.5 * X[:, 0])
    >>> bool(np.diff(model.coef_interval_[0])[0] > 0)
    True
    """

    _loss = SQUARED
    _mechanisms = LEAST_SQUARES
    _choices: ClassVar[dict[str, tuple[object, ...]]] = {**MomentModel._choices, "intervals": (False, True)}
    _result: LinearResult | None = None
    """What intervals are computed from; None for a model from a file."""
    _bootstrap: Bootstrap | None = None
    _saved_intervals: tuple[Floats, Floats] | None = None

    def __init__(
        self,
        epsilon: float = 1.0,
        *,
        delta: float = 0.0,
        schema: Schema | str | Path | None = None,
        mechanism: str | AnyMechanism = "auto",
        adjacency: str = "replace-one",
        fit_intercept: bool = True,
        numeric: str = "auto",
        intervals: bool = False,
        rows_per_person: int = 1,
        expected_rows: int | None = None,
        max_weight: float | None = None,
        ledger: Ledger | None = None,
        random_state: Seed = None,
        n_jobs: int | None = None,
        max_memory: int | str | None = None,
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
        self.intervals = intervals
        self.max_weight = max_weight

    def _chosen_mechanism(self) -> MomentMechanism:
        chosen = super()._chosen_mechanism()
        if self.intervals and not isinstance(chosen, FunctionalMechanism):
            raise PrivacyError(
                f"intervals=True was given with mechanism={self.mechanism!r}, which releases nothing that intervals "
                "can be computed from. Use mechanism='functional', or 'auto', which takes it then."
            )
        return chosen

    def _settled(
        self, mechanism: MomentMechanism, given: Input, parameters: PrivacyParameters
    ) -> tuple[MomentMechanism, Input]:
        """By the number of rows, where "auto" was asked for."""
        automatic = isinstance(self.mechanism, str) and self.mechanism == "auto"
        if not automatic or self.intervals:
            return mechanism, given
        if self.numeric == "splines":
            return ObjectiveRegression(), given
        geometry = mechanism.geometry(given.schema, self._problem())
        enough = perturbs_objective(parameters, public_rows(given, parameters), geometry)
        return (ObjectiveRegression() if enough else mechanism), given

    def _problem(self) -> QuadraticProblem:
        return QuadraticProblem(self._loss, bool(self.fit_intercept), spread=True)

    def _keep(self, result: LinearResult) -> None:
        coef, intercept = self._geometry.table_units(result.fit.weights, result.fit.intercept)
        block = self._geometry.target
        assert block is not None
        self.coef_ = coef * block.unit
        self.intercept_ = intercept * block.unit + block.center
        self._result, self._bootstrap, self._saved_intervals = result, None, None

    def _restore(self, coef: Floats, intercept: Floats) -> None:
        self.coef_, self.intercept_ = coef, float(intercept[0])

    def predict(self, X: TableLike) -> Floats:
        """Predict the target, coef_'x + intercept_, for every row.

        Parameters
        ----------
        X : array-like, data frame, Arrow table or stream, DuckDB relation, str or Path
            The rows to predict for.

        Returns
        -------
        ndarray of shape (n_rows,)
            The predictions, in the units of the target.
        """
        return self._scores(X)

    # -- how sure ----------------------------------------------------------------------------------

    @property
    def coef_interval_(self) -> Floats:
        """90% confidence intervals of the coefficients.

        Returns
        -------
        ndarray of shape (n_columns, 2)
            Lower and upper ends.
        """
        return self.confidence_intervals()[0]

    @property
    def intercept_interval_(self) -> Floats:
        """90% confidence interval of the intercept.

        Returns
        -------
        ndarray of shape (2,)
            Lower and upper end.
        """
        return self.confidence_intervals()[1]

    def confidence_intervals(self, confidence: float = USUAL_CONFIDENCE) -> tuple[Floats, Floats]:
        """Compute confidence intervals of the coefficients and of the intercept.

        A parametric bootstrap on the release, which costs no privacy. The intervals cover both the noise and the
        sampling of people. A coefficient is not identified at this epsilon where noise has hidden so much of what
        distinguishes its column from others that shrinkage decides it: its interval is infinite.

        Parameters
        ----------
        confidence : float, default=0.9
            Probability with which an interval covers the true value, between 0 and 1.

        Returns
        -------
        coef : ndarray of shape (n_columns, 2)
            Intervals of the coefficients.
        intercept : ndarray of shape (2,)
            Interval of the intercept.

        Raises
        ------
        AttributeError
            If the model was loaded from a file without intervals, or its mechanism has none.
        """
        if self._saved_intervals is not None and confidence == USUAL_CONFIDENCE:
            return self._saved_intervals
        coefs, intercepts = self._errors()
        reach = np.quantile(np.abs(np.column_stack([coefs, intercepts])), _checked(confidence), axis=0)
        reach[:-1][~self._bootstrapped().identified] = np.inf
        coef = np.column_stack([self.coef_ - reach[:-1], self.coef_ + reach[:-1]])
        return coef, np.array([self.intercept_ - reach[-1], self.intercept_ + reach[-1]])

    def _drawn_intervals(self) -> Floats | None:
        try:
            return self.confidence_intervals()[0]
        except AttributeError:
            return None

    @predicting
    def predict_interval(
        self, X: TableLike, confidence: float = USUAL_CONFIDENCE, of: Literal["mean", "target"] = "mean"
    ) -> Floats:
        """Compute an interval for the prediction of every row.

        Parameters
        ----------
        X : array-like, data frame, Arrow table or stream, DuckDB relation, str or Path
            The rows to predict for.
        confidence : float, default=0.9
            Probability with which an interval covers the true value, between 0 and 1.
        of : {'mean', 'target'}, default='mean'
            Whether the interval is for the mean of the target of such a row, or for the target itself.

        Returns
        -------
        ndarray of shape (n_rows, 2)
            Lower and upper ends.

        Raises
        ------
        AttributeError
            If its mechanism has no intervals, or the model was loaded from a file that has none.
        """
        if of not in ("mean", "target"):
            raise PrivacyError(
                f"of={of!r} was given; it is 'mean' or 'target'. Use 'mean' for the prediction's own uncertainty."
            )
        coefs, intercepts = self._errors()
        table = predict_table(self, X)
        errors = np.asarray(linear_scores(table, self.schema_, self._geometry, coefs.T, intercepts))
        predicted = self.predict(X)
        if of == "target":
            spread = self._spread()
            reach = _normal_quantile(confidence) * np.sqrt(np.mean(errors**2, axis=1) + spread)
        else:
            reach = np.quantile(np.abs(errors), _checked(confidence), axis=1)
        return np.column_stack([predicted - reach, predicted + reach])

    # -- saving ------------------------------------------------------------------------------------

    def _facts(self) -> JSONObject:
        """The 90% intervals, where they are quickly computed."""
        if len(self.coef_) > MOST_SAVED_INTERVALS or self._result is None:
            return {}
        try:
            coef, intercept = self.confidence_intervals()
        except AttributeError:
            return {}
        ends = [[float(low), float(high)] if np.isfinite(high - low) else None for low, high in coef]
        facts: JSONObject = {"coef_interval": ends, "intercept_interval": intercept.tolist()}
        if len(self.coef_) <= MOST_SAVED_DRAWS:
            made = self._bootstrapped()
            draws = np.column_stack([made.weights, made.intercepts]).tolist()
            facts["bootstrap"] = {
                "draws": [[_short(value) for value in draw] for draw in draws],
                "variance": made.residual_variance,
                "identified": made.identified.tolist(),
            }
        return facts

    def _restore_facts(self, facts: JSONObject) -> None:
        if "coef_interval" in facts:
            ends = [[-np.inf, np.inf] if own is None else own for own in facts["coef_interval"]]
            self._saved_intervals = (
                np.array(ends, dtype=np.float64).reshape(len(self.coef_), 2),
                np.array(facts["intercept_interval"], dtype=np.float64).reshape(2),
            )
        if "bootstrap" in facts:
            own = facts["bootstrap"]
            draws = np.array(own["draws"], dtype=np.float64)
            known = np.array(own.get("identified", [True] * len(self.coef_)), dtype=np.bool_)
            self._bootstrap = Bootstrap(draws[:, :-1], draws[:, -1], float(own["variance"]), known)

    def _errors(self) -> tuple[Floats, Floats]:
        """Bootstrap errors of the coefficients (one row per draw) and of the intercepts, in the units of the table."""
        check_is_fitted(self)
        made = self._bootstrapped()
        shown = [self._geometry.table_units(w, float(b)) for w, b in zip(made.weights, made.intercepts, strict=True)]
        return self._half() * np.array([coef for coef, _ in shown]), self._half() * np.array(
            [intercept for _, intercept in shown]
        )

    def _bootstrapped(self) -> Bootstrap:
        if self._bootstrap is not None:
            return self._bootstrap
        result = self._result
        if result is None or getattr(result.released.value, "target_square", None) is None:
            raise AttributeError(
                f"Intervals were asked of a {type(self).__name__} that has none: it perturbs an objective, was loaded "
                "from a file, or its mechanism has a loss, calibration or release of its own. "
                "Fit it with intervals=True, and ask before saving."
            )
        functional = cast("FunctionalMechanism", result.mechanism)  # the only one that releases the target's square
        fit = cast("LinearFit", result.fit)
        self._bootstrap = bootstrap(functional, result.released, fit, self._geometry, result.problem)
        return self._bootstrap

    def _spread(self) -> float:
        return self._half() ** 2 * self._bootstrapped().residual_variance

    def _half(self) -> float:
        block = self._geometry.target
        assert block is not None
        return block.unit

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.regressor_tags.poor_score = True  # at epsilon 1, noise dominates the 200 rows of scikit-learn's check
        return tags


def _short(value: float) -> float:
    """A number with as many digits as an interval needs."""
    return float(f"{value:.8g}")


def _checked(confidence: float) -> float:
    if not (isinstance(confidence, int | float) and 0 < confidence < 1):
        raise PrivacyError(
            f"confidence={confidence!r} was given; it is between 0 and 1. Use 0.9 for intervals that cover nine times "
            "in ten."
        )
    return float(confidence)


def _normal_quantile(confidence: float) -> float:
    return float(norm.ppf((1 + _checked(confidence)) / 2))
