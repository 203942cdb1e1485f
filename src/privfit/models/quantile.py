"""Quantile regression under differential privacy."""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import RegressorMixin
from sklearn.metrics import d2_pinball_score
from sklearn.utils import Tags

from privfit.losses import SQUARED
from privfit.losses.checks import is_positive
from privfit.mechanisms import QuadraticProblem, RegressionFit
from privfit.mechanisms.base import AnyMechanism
from privfit.mechanisms.perturbation.quantile import QuantileObjective
from privfit.mechanisms.perturbation.regression_intervals import RegressionIntervals
from privfit.models._docs import documented
from privfit.models.base import PrivateLinearModel
from privfit.models.inputs import Input
from privfit.models.intervals import ModelWithIntervals
from privfit.models.named import ADDITIVE
from privfit.models.private import FitResult, WeightedFit
from privfit.privacy import Ledger, PrivacyError, PrivacyParameters, Seed
from privfit.schema import AUTO_KNOTS, Geometry, Schema
from privfit.tables import TableLike

Floats = NDArray[np.float64]
Fits = QuantileObjective | RegressionIntervals
QuantileResult = FitResult[Fits, QuadraticProblem, RegressionFit]


@documented
class QuantileRegressor(
    WeightedFit,
    RegressorMixin,  # type: ignore[misc]
    ModelWithIntervals,
):
    """A linear model of a quantile, fitted under differential privacy.

    The coefficients minimise a perturbed sum of pinball losses whose corners are rounded; then the intercept is moved
    by a private quantile of what they leave. `score` is scikit-learn's `d2_pinball_score`.

    Parameters
    ----------
    quantile : float
        The quantile to predict, above 0 and below 1. 0.5 is the median.
    mechanism : {'auto', 'objective'} or ObjectiveRegression
        "auto" is "objective". Of an `ObjectiveRegression` the kind of noise is taken.
    numeric : {'auto', 'slope', 'bins', 'splines'}
        Encoding of numeric columns that have no bins of their own. "auto" is "slope".
    intervals : bool
        Whether intervals of coefficients and predictions will be asked for. True spends a quarter of epsilon on two
        matrices that they are computed from, and undoes the shrinkage of the coefficients where noise allows.

    See Also
    --------
    LinearRegression : The mean.
    AdditiveRegressor : The mean, with a curve per number.

    Notes
    -----
    There is no `alpha`: coefficients are shrunk by a public rule, as far as privacy and noise need it.

    Guarantee: epsilon-DP, or (epsilon, delta)-DP with a delta, replace-one or add-remove;
    docs/proofs/quantile-objective.md, Theorem 1, and docs/proofs/bought-moments.md, Theorem 3, with intervals.
    Domain: at least one row, no refused cell, no more rows than stated; docs/proofs/errors-and-stops.md.

    Examples
    --------
    >>> import numpy as np, privfit as pf
    >>> X = np.tile(np.linspace(-1, 1, 200), 100).reshape(-1, 1)
    >>> y = 0.5 * X[:, 0] + np.repeat(np.linspace(-0.4, 0.4, 100), 200)
    >>> schema = pf.Schema.box(-1, 1, target=(-1, 1))
    >>> model = pf.QuantileRegressor(epsilon=1.0, quantile=0.9, schema=schema).fit(X, y)
    >>> bool(0.85 < np.mean(y <= model.predict(X)) < 0.95)
    True
    """

    _choices: ClassVar[dict[str, tuple[object, ...]]] = PrivateLinearModel._choices | ModelWithIntervals._choices
    _mechanisms = ADDITIVE

    def __init__(
        self,
        epsilon: float = 1.0,
        *,
        quantile: float = 0.5,
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
        self.max_weight = max_weight
        self.quantile = quantile
        self.intervals = intervals

    def _chosen_mechanism(self) -> Fits:
        if not (is_positive(self.quantile) and self.quantile < 1):
            raise PrivacyError(
                f"quantile={self.quantile!r} was given; it is a number above 0 and below 1. Use 0.5 for the median."
            )
        chosen = ADDITIVE.choose(self.mechanism, type(self).__name__)
        fit = QuantileObjective(noise=chosen.noise, quantile=float(self.quantile))
        return RegressionIntervals(fit.for_intervals()) if self.intervals else fit

    def _encoded(
        self, mechanism: Fits, given: Input, parameters: PrivacyParameters
    ) -> tuple[QuadraticProblem, Geometry]:
        self._numeric_used = "slope" if self.numeric == "auto" else self.numeric  # type: ignore[assignment]
        self._knots_used = AUTO_KNOTS
        most = None if given.weights is None else given.weights.most
        problem = QuadraticProblem(SQUARED, bool(self.fit_intercept), max_weight=most)
        return problem, mechanism.geometry(given.schema, problem, self._numeric_used)

    def _keep(self, result: QuantileResult) -> None:
        coef, intercept = self._geometry.table_units(result.fit.weights, result.fit.intercept)
        block = self._geometry.target
        assert block is not None
        self.coef_ = coef * block.unit
        self.intercept_ = intercept * block.unit + block.center
        self.__dict__.pop("_sure", None)  # of an earlier fit
        if result.fit.certainty is not None:
            self._keep_certainty(result.fit.certainty, block.unit * result.fit.threshold)

    def _restore(self, coef: Floats, intercept: Floats) -> None:
        self.coef_, self.intercept_ = coef, float(intercept[0])

    def predict(self, X: TableLike) -> Floats:
        """Predict the quantile of the target, coef_'x + intercept_, for every row.

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

    def score(self, X: TableLike, y: ArrayLike, sample_weight: Any = None) -> float:
        """Return the share of the pinball loss of the best constant that the predictions explain.

        Parameters
        ----------
        X : array-like, data frame, Arrow table or stream, DuckDB relation, str or Path
            The rows to predict for.
        y : array-like of shape (n_rows,)
            Their targets.
        sample_weight : array-like of shape (n_rows,) or None, default=None
            Weights of the rows.

        Returns
        -------
        float
            The score, at most 1; it is no private figure of these rows.
        """
        return float(d2_pinball_score(y, self.predict(X), sample_weight=sample_weight, alpha=self.quantile))

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.regressor_tags.poor_score = True  # at epsilon 1, noise dominates the 200 rows of scikit-learn's check
        return tags
