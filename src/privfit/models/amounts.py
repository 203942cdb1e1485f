"""Regressions of counts, positive amounts and proportions under differential privacy."""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit, xlogy
from sklearn.base import RegressorMixin
from sklearn.metrics import d2_tweedie_score
from sklearn.utils import Tags

from privfit.losses import SQUARED
from privfit.mechanisms import QuadraticProblem, RegressionFit
from privfit.mechanisms.base import AnyMechanism
from privfit.mechanisms.perturbation.amounts import ObjectiveAmounts, ObjectiveProportions
from privfit.mechanisms.perturbation.base import NoiseKind
from privfit.mechanisms.perturbation.regression import ObjectiveRegression
from privfit.mechanisms.perturbation.regression_intervals import RegressionIntervals
from privfit.models._docs import documented
from privfit.models.base import PrivateLinearModel
from privfit.models.inputs import Input
from privfit.models.intervals import ModelWithIntervals
from privfit.models.named import ADDITIVE
from privfit.models.private import FitResult, WeightedFit
from privfit.privacy import Ledger, PrivacyParameters, Seed
from privfit.schema import AUTO_KNOTS, Block, Geometry, Schema
from privfit.tables import TableLike

Floats = NDArray[np.float64]
Fits = ObjectiveRegression | RegressionIntervals
Result = FitResult[Fits, QuadraticProblem, RegressionFit]

LEAST_MEAN = 1e-12
"""Means are predicted as at least this share of the target's upper bound: a deviance needs positive ones."""


class GeneralisedLinearModel(
    WeightedFit,
    RegressorMixin,  # type: ignore[misc]
    ModelWithIntervals,
):
    """Base of the models whose mean is a function of the linear predictor.

    Parameters
    ----------
    mechanism : {'auto', 'objective'} or ObjectiveRegression
        "auto" is "objective". Of an `ObjectiveRegression` the kind of noise is taken.
    numeric : {'auto', 'slope', 'bins', 'splines'}
        Encoding of numeric columns that have no bins of their own. "auto" is "slope".
    intervals : bool
        Whether intervals of coefficients and predictions will be asked for. True spends a quarter of epsilon on two
        matrices that they are computed from, undoes the shrinkage of the coefficients where noise allows, and lets a
        log mean level off farther above what is usual: less bias and more noise.

    Attributes
    ----------
    coef_ : ndarray of shape (n_columns,)
        One coefficient per name in `get_feature_names_out()`: effects on the transformed mean, in the units of the
        columns.
    intercept_ : float
        The intercept of the transformed mean.
    """

    _choices: ClassVar[dict[str, tuple[object, ...]]] = PrivateLinearModel._choices | ModelWithIntervals._choices
    _mechanisms = ADDITIVE

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
        self.max_weight = max_weight
        self.intervals = intervals

    def _chosen_mechanism(self) -> Fits:
        fit = self._fitting(ADDITIVE.choose(self.mechanism, type(self).__name__).noise)
        return RegressionIntervals(fit.for_intervals()) if self.intervals else fit

    def _fitting(self, noise: NoiseKind) -> ObjectiveRegression:
        """How weights are fitted, with this kind of noise."""
        raise NotImplementedError

    def _encoded(
        self, mechanism: Fits, given: Input, parameters: PrivacyParameters
    ) -> tuple[QuadraticProblem, Geometry]:
        self._numeric_used = "slope" if self.numeric == "auto" else self.numeric  # type: ignore[assignment]
        self._knots_used = AUTO_KNOTS
        most = None if given.weights is None else given.weights.most
        problem = QuadraticProblem(SQUARED, bool(self.fit_intercept), max_weight=most)
        return problem, mechanism.geometry(given.schema, problem, self._numeric_used)

    def _keep(self, result: Result) -> None:
        coef, intercept = self._geometry.table_units(result.fit.weights, result.fit.intercept)
        self.coef_, self.intercept_ = coef, intercept
        self.__dict__.pop("_sure", None)  # of an earlier fit
        if result.fit.certainty is not None:
            self._keep_certainty(result.fit.certainty)

    def _restore(self, coef: Floats, intercept: Floats) -> None:
        self.coef_, self.intercept_ = coef, float(intercept[0])

    def _block(self) -> Block:
        """The target, as encoded."""
        assert self._geometry.target is not None
        return self._geometry.target

    def predict(self, X: TableLike) -> Floats:
        """Predict the mean of the target for every row.

        Parameters
        ----------
        X : array-like, data frame, Arrow table or stream, DuckDB relation, str or Path
            The rows to predict for.

        Returns
        -------
        ndarray of shape (n_rows,)
            The means, in the units of the target.
        """
        return self._means(self._scores(X))

    def _means(self, scores: Floats) -> Floats:
        raise NotImplementedError

    def _predicted(self, scores: Floats) -> Floats:
        return self._means(scores)

    def score(self, X: TableLike, y: ArrayLike, sample_weight: Any = None) -> float:
        """Return the share of the deviance of the mean that the predictions explain, D2.

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
        return self._explained(np.asarray(y, dtype=np.float64), self.predict(X), sample_weight)

    def _explained(self, y: Floats, means: Floats, sample_weight: Any) -> float:
        raise NotImplementedError

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.regressor_tags.poor_score = True  # at epsilon 1, noise dominates the 200 rows of scikit-learn's check
        return tags


class LogMeanRegressor(GeneralisedLinearModel):
    """Base of the models of a log mean."""

    _power: ClassVar[float]
    """What power of the mean the variance is in the deviance, as in scikit-learn's `d2_tweedie_score`."""

    _least_cap: ClassVar[float] = 0.0

    @property
    def _adds_to(self) -> str:
        return f"{super()._adds_to}, as a logarithm of its mean"

    def _fitting(self, noise: NoiseKind) -> ObjectiveRegression:
        return ObjectiveAmounts(noise=noise, least_cap=self._least_cap)

    def _ratio_name(self) -> str:
        return "rate ratio"

    def _keep(self, result: Result) -> None:
        super()._keep(result)
        if self.fit_intercept:
            self.intercept_ += float(np.log(self._block().unit))

    def _means(self, scores: Floats) -> Floats:
        block = self._block()
        most = block.center + block.unit
        with np.errstate(over="ignore"):
            return np.asarray(np.clip(np.exp(scores), LEAST_MEAN * most, most), dtype=np.float64)

    def _explained(self, y: Floats, means: Floats, sample_weight: Any) -> float:
        return float(d2_tweedie_score(y, means, sample_weight=sample_weight, power=self._power))

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.positive_only = True
        return tags


@documented
class PoissonRegressor(LogMeanRegressor):
    """A linear model of the log of a mean count, fitted under differential privacy.

    The mean is e^(coef'x + intercept); e^coef are rate ratios. Counts may be overdispersed: only the mean is modelled.
    Where rows differ in exposure, fit rates, counts over exposure, with `sample_weight=` the exposure and `max_weight=`
    its public bound: the same likelihood as with an offset, as in scikit-learn.
    `score` is D2, the share of Poisson's deviance that is explained, as in scikit-learn.

    See Also
    --------
    GammaRegressor : The same for positive amounts, scored by the deviance of gamma.
    FractionalRegressor : A mean between two bounds.

    Notes
    -----
    The target needs public bounds; a bound that is far too wide costs little, because a cap is chosen privately. Values
    below 0 count as 0. Predictions are at most the upper bound. There is no `alpha`: coefficients are shrunk by a
    public rule, as far as privacy and noise need it.

    Guarantee: epsilon-DP, or (epsilon, delta)-DP with a delta, replace-one or add-remove;
    docs/proofs/amount-objective.md, Theorem 2, and docs/proofs/bought-moments.md, Theorem 3, with intervals.
    Domain: at least one row, no refused cell, no more rows than stated; docs/proofs/errors-and-stops.md.

    Examples
    --------
    >>> import numpy as np, privfit as pf
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, (20_000, 1))
    >>> visits = rng.poisson(np.exp(1 + 0.8 * X[:, 0]))
    >>> schema = pf.Schema.box(-1, 1, target=(0, 100))
    >>> model = pf.PoissonRegressor(epsilon=1.0, schema=schema).fit(X, visits)
    >>> bool(abs(model.coef_[0] - 0.8) < 0.2)
    True
    """

    _power = 1.0
    _least_cap = 1.0


@documented
class GammaRegressor(LogMeanRegressor):
    """A linear model of the log of a mean amount, such as a cost, fitted under differential privacy.

    The mean is e^(coef'x + intercept). It is fitted as a `PoissonRegressor` is, because the slope of gamma's own loss
    has no bound: large means count more than in scikit-learn's fit. `score` is D2 by the deviance of gamma, which needs
    positive targets.

    See Also
    --------
    PoissonRegressor : Counts.
    LinearRegression : A mean that is itself linear.

    Notes
    -----
    The target needs public bounds; a bound that is far too wide costs little, because a cap is chosen privately. Values
    below 0 count as 0. Predictions are at most the upper bound. There is no `alpha`: coefficients are shrunk by a
    public rule, as far as privacy and noise need it.

    Guarantee: epsilon-DP, or (epsilon, delta)-DP with a delta, replace-one or add-remove;
    docs/proofs/amount-objective.md, Theorem 2, and docs/proofs/bought-moments.md, Theorem 3, with intervals.
    Domain: at least one row, no refused cell, no more rows than stated; docs/proofs/errors-and-stops.md.

    Examples
    --------
    >>> import numpy as np, privfit as pf
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, (20_000, 1))
    >>> cost = rng.gamma(2, np.exp(6 + 0.8 * X[:, 0]) / 2)
    >>> schema = pf.Schema.box(-1, 1, target=(0, 50_000))
    >>> model = pf.GammaRegressor(epsilon=1.0, schema=schema).fit(X, cost)
    >>> bool(abs(model.coef_[0] - 0.8) < 0.2)
    True
    """

    _power = 2.0


@documented
class FractionalRegressor(GeneralisedLinearModel):
    """A linear model of the logit of a mean proportion, fitted under differential privacy.

    Where the target lies between its public bounds is a proportion p of the way: a share from 0 to 1, a percentage from
    0 to 100, a rating from 1 to 5. The mean of p is 1 / (1 + e^-(coef'x + intercept)), so that predictions are between
    the bounds. Statisticians call it fractional logit or quasi-binomial regression. `score` is D2, the share of the
    binomial deviance that is explained.

    See Also
    --------
    LogisticRegression : The same for a target of two classes.
    PoissonRegressor : Counts without a natural upper bound.

    Notes
    -----
    There is no `alpha`: coefficients are shrunk by a public rule, as far as privacy and noise need it.

    Guarantee: epsilon-DP, or (epsilon, delta)-DP with a delta, replace-one or add-remove;
    docs/proofs/amount-objective.md, Theorem 2, and docs/proofs/bought-moments.md, Theorem 3, with intervals.
    Domain: at least one row, no refused cell, no more rows than stated; docs/proofs/errors-and-stops.md.

    References
    ----------
    .. [1] L. E. Papke and J. M. Wooldridge, "Econometric methods for fractional response variables with an application
       to 401(k) plan participation rates", Journal of Applied Econometrics 11, 1996.

    Examples
    --------
    >>> import numpy as np, privfit as pf
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, (20_000, 1))
    >>> share = rng.beta(2, 2 * np.exp(-X[:, 0]))
    >>> schema = pf.Schema.box(-1, 1, target=(0, 1))
    >>> model = pf.FractionalRegressor(epsilon=1.0, schema=schema).fit(X, share)
    >>> bool(abs(model.coef_[0] - 1) < 0.2)
    True
    """

    @property
    def _adds_to(self) -> str:
        return f"{super()._adds_to}, as log-odds of its mean"

    def _fitting(self, noise: NoiseKind) -> ObjectiveRegression:
        return ObjectiveProportions(noise=noise)

    def _ratio_name(self) -> str:
        return "odds ratio"

    def _means(self, scores: Floats) -> Floats:
        block = self._block()
        return np.asarray(block.center + block.unit * (2 * expit(scores) - 1), dtype=np.float64)

    def _explained(self, y: Floats, means: Floats, sample_weight: Any) -> float:
        block = self._block()
        given, told = (np.clip((values - block.center) / (2 * block.unit) + 0.5, 0.0, 1.0) for values in (y, means))
        average = np.average(given, weights=sample_weight)
        left, most = (np.average(_deviance(given, mean), weights=sample_weight) for mean in (told, average))
        return float(1 - left / most) if most > 0 else float(left == 0)


def _deviance(given: Floats, means: Any) -> Floats:
    """Half the binomial deviance of every row; a mean of exactly 0 or 1 counts as next to it."""
    held = np.clip(means, LEAST_MEAN, 1 - LEAST_MEAN)
    full = xlogy(given, given) + xlogy(1 - given, 1 - given)
    return np.asarray(full - xlogy(given, held) - xlogy(1 - given, 1 - held), dtype=np.float64)
