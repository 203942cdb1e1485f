"""Least squares under differential privacy."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import RegressorMixin
from sklearn.utils import Tags

from privfit.losses import SQUARED
from privfit.mechanisms import (
    FunctionalMechanism,
    LinearFit,
    ObjectiveRegression,
    QuadraticProblem,
    RegressionFit,
    RegressionIntervals,
)
from privfit.mechanisms.base import AnyMechanism
from privfit.mechanisms.perturbation.regression_fit import perturbs_objective
from privfit.models._docs import documented
from privfit.models.base import MomentModel
from privfit.models.inputs import Input
from privfit.models.least_squares_intervals import LeastSquaresIntervals
from privfit.models.left_out import public_rows
from privfit.models.named import LEAST_SQUARES, MomentMechanism
from privfit.models.private import FitResult, WeightedFit
from privfit.privacy import Ledger, PrivacyError, PrivacyParameters, Seed
from privfit.schema import Schema
from privfit.tables import TableLike

Floats = NDArray[np.float64]
LinearResult = FitResult[MomentMechanism, QuadraticProblem, LinearFit | RegressionFit]


@documented
class LinearRegression(
    WeightedFit,
    RegressorMixin,  # type: ignore[misc]
    LeastSquaresIntervals,
    MomentModel[MomentMechanism, LinearFit | RegressionFit],
):
    """Ordinary least squares, fitted under differential privacy.

    The coefficients minimise a perturbed objective, in which residuals count up to a threshold that is chosen privately
    ("objective"); or the moments X'X and X'y are released, with noise, and the coefficients are computed from them
    ("functional").

    Parameters
    ----------
    mechanism : {'auto', 'functional', 'objective', 'adassp', 'boosted-adassp'}, or an instance
        "auto" is "functional" with `intervals`, where rows times epsilon (over `rows_per_person`) are below 1,000 or
        so many that noise is negligible, and where the number of rows is not known ("add-remove" without
        `expected_rows`); "objective" elsewhere. An instance is a `FunctionalMechanism`, `ObjectiveRegression` or
        `AdaSSP`.
    numeric : {'auto', 'slope', 'bins', 'splines'}
        Encoding of numeric columns that have no bins of their own: one slope, one indicator per bin, or, with a
        perturbed objective, linear B-splines. "auto" is "slope".
    intervals : bool
        Whether intervals will be asked for. True takes the functional mechanism unless another is named: they are
        computed from what it releases, and coefficients have more noise. With "objective" a quarter of epsilon buys two
        matrices that they are computed from, and residuals count farther.

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
        return self._with_intervals(super()._chosen_mechanism()) if self.intervals else super()._chosen_mechanism()

    def _with_intervals(self, chosen: MomentMechanism) -> MomentMechanism:
        """The form of a mechanism from whose release intervals can be computed."""
        if isinstance(chosen, FunctionalMechanism):
            return chosen
        if type(chosen) is ObjectiveRegression:
            return RegressionIntervals(chosen.for_intervals())
        raise PrivacyError(
            f"intervals=True was given with mechanism={self.mechanism!r}, which releases nothing that intervals can be "
            "computed from. Use mechanism='functional', or 'auto', which takes it then, or 'objective', which buys "
            "what they need."
        )

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
        self._keep_errors(result)

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

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.regressor_tags.poor_score = True  # at epsilon 1, noise dominates the 200 rows of scikit-learn's check
        return tags
