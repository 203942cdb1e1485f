"""Cox's proportional hazards regression under differential privacy."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from privfit.mechanisms.base import Numbers
from privfit.mechanisms.perturbation.cox import HazardProblem, ObjectiveHazards
from privfit.mechanisms.perturbation.hazard_fit import HazardFit
from privfit.models._docs import documented
from privfit.models.inputs import Input, predicting
from privfit.models.intervals import ModelWithIntervals, ShownCertainty
from privfit.models.private import FitResult, WeightedFit
from privfit.models.report import JSONObject
from privfit.models.survival_input import (
    columns_of,
    hazard_problem,
    schema_of,
    signed_input,
    survival_input,
)
from privfit.privacy import Ledger, PrivacyParameters, Seed
from privfit.schema import AUTO_KNOTS, Category, Geometry, Numeric, Schema
from privfit.tables import TableLike

Floats = NDArray[np.float64]
_Result = FitResult[ObjectiveHazards, HazardProblem, HazardFit]


@documented
class CoxRegression(WeightedFit, ModelWithIntervals):
    """Proportional hazards: how columns multiply the rate at which an event happens, fitted under differential privacy.

    The hazard of a person is that of somebody with average scores, times e^(coef'x + intercept). As in Cox's
    regression the baseline may have any shape; it is found on a public grid of time. Some people are censored: they
    were without an event when they were last seen.

    Parameters
    ----------
    time : Numeric or str
        The time to the event or to the end of observation, with public bounds, or the name of a number in the schema.
        Times from the upper bound on count as without an event. Its `bins` are those of the grid; without any there are
        20 equal ones.
    event : Category or str
        Whether the time is that of an event: a category whose second level means that it happened, or the name of one
        in the schema, or of a column of 0 and 1.
    numeric : {'auto', 'slope', 'bins', 'splines'}
        Encoding of numeric columns that have no bins of their own. "auto" is "slope".
    schema : Schema, str, Path or None
        Public facts about the table: a `pf.Schema`, or the path of a TOML file that has one. It lists the features, and
        may list the time and the event.

    Attributes
    ----------
    coef_ : ndarray of shape (n_columns,)
        Log hazard ratios: one per name in `get_feature_names_out()`, in the units of the table.
    hazard_ratios_ : ndarray of shape (n_columns,)
        Their exponentials.
    intercept_ : float
        What is added to a row's score, so that the log hazard of somebody with average scores is 0.
    times_ : ndarray of shape (n_bins + 1,)
        The beginning of the grid and the ends of its bins.
    score_spread_ : float
        The standard deviation of log hazards among the people of the table, from the release.
    baseline_hazard_ : ndarray of shape (n_bins + 1,)
        The cumulative hazard by these times where the log hazard is 0. NaN where noise leaves nobody clearly at risk.
    baseline_survival_ : ndarray of shape (n_bins + 1,)
        The share without an event by these times where the log hazard is 0.
    baseline_band_ : ndarray of shape (n_bins + 1, 2)
        Ends of a 90% band of the baseline survival: for the sampling and the noise of times, not of coefficients.

    See Also
    --------
    kaplan_meier : Survival curves without columns, or for groups.

    Notes
    -----
    There is no `alpha`: coefficients are shrunk by a public rule as far as privacy and noise need it, and then moved
    back as far as the release shows it. Where hazards are not proportional, early events count more than in Cox's
    partial likelihood.

    Guarantee: epsilon-DP, or (epsilon, delta)-DP with a delta, replace-one or add-remove;
    docs/proofs/cox-objective.md, Theorem 2.
    Domain: at least one row, no refused cell, no more rows than stated; docs/proofs/errors-and-stops.md.

    References
    ----------
    .. [1] D. R. Cox, "Regression models and life-tables", Journal of the Royal Statistical Society B 34, 1972.

    Examples
    --------
    >>> import numpy as np, privfit as pf
    >>> rng = np.random.default_rng(0)
    >>> age = rng.uniform(40, 80, 20_000)
    >>> lives, watched = rng.exponential(4 * np.exp(-0.05 * (age - 60))), rng.uniform(0, 6, 20_000)
    >>> table = np.column_stack([age, np.minimum(lives, watched), lives <= watched])
    >>> schema = pf.Schema([pf.Numeric("age", 40, 80)])
    >>> model = pf.CoxRegression(epsilon=1.0, schema=schema, time=pf.Numeric("years", 0, 5), event="died")
    >>> bool(abs(model.fit(table).coef_[0] - 0.05) < 0.01)
    True
    """

    fit_intercept = False  # no parameter: the constant is part of the baseline
    _target = "ignored"
    _input = staticmethod(survival_input)
    _choices: ClassVar[dict[str, tuple[object, ...]]] = {
        "numeric": ("auto", "slope", "bins", "splines"),
        "intervals": (False, True),
    }

    def __init__(
        self,
        epsilon: float = 1.0,
        *,
        delta: float = 0.0,
        schema: Schema | str | Path | None = None,
        time: Numeric | str = "time",
        event: Category | str = "event",
        adjacency: str = "replace-one",
        numeric: str = "auto",
        rows_per_person: int = 1,
        expected_rows: int | None = None,
        max_weight: float | None = None,
        intervals: bool = False,
        ledger: Ledger | None = None,
        random_state: Seed = None,
        n_jobs: int | None = None,
        max_memory: int | str | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.schema = schema
        self.time = time
        self.event = event
        self.adjacency = adjacency
        self.numeric = numeric
        self.rows_per_person = rows_per_person
        self.expected_rows = expected_rows
        self.max_weight = max_weight
        self.intervals = intervals
        self.ledger = ledger
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.max_memory = max_memory

    # -- for any rows ------------------------------------------------------------------------------

    @property
    def hazard_ratios_(self) -> Floats:
        """By what the hazard is multiplied where a column is larger by 1.

        Returns
        -------
        ndarray of shape (n_columns,)
            The exponentials of `coef_`.
        """
        check_is_fitted(self, "coef_")
        with np.errstate(over="ignore"):
            return np.asarray(np.exp(self.coef_))

    def predict(self, X: TableLike) -> Floats:
        """Predict the log hazard of every row, beside that of somebody with average scores.

        Parameters
        ----------
        X : array-like, data frame, Arrow table or stream, DuckDB relation, str or Path
            The rows to predict for.

        Returns
        -------
        ndarray of shape (n_rows,)
            The log hazards.
        """
        return self._scores(X)

    @predicting
    def predict_survival(self, X: TableLike, times: ArrayLike | None = None) -> Floats:
        """Predict for every row the probability of no event by some times.

        Parameters
        ----------
        X : array-like, data frame, Arrow table or stream, DuckDB relation, str or Path
            The rows to predict for.
        times : array-like or None, default=None
            The times; None is `times_`. Between the ends of bins the cumulative hazard goes by straight lines, and
            beyond the last one it is not known: NaN.

        Returns
        -------
        ndarray of shape (n_rows, n_times)
            The probabilities.
        """
        scores = self._scores(X)
        wanted = self.times_ if times is None else np.atleast_1d(np.asarray(times, dtype=np.float64))
        hazards = np.interp(wanted, self.times_, self.baseline_hazard_, right=np.nan)
        return np.asarray(np.exp(-np.exp(np.minimum(scores, 700.0))[:, None] * hazards))

    @property
    def evaluated_schema(self) -> Schema:
        """What `pf.evaluate` reads: features, the time and the event, in this order.

        Returns
        -------
        Schema
            The schema of the rows that the model is compared with.
        """
        time, event = self._columns(self.schema_)
        features = (*self.schema_.features, Numeric(time.name, time.low, time.high, fill=time.fill))
        return Schema(features, event, self.schema_.person, self.schema_.where)

    # -- wiring ------------------------------------------------------------------------------------

    def _chosen_mechanism(self) -> ObjectiveHazards:
        return ObjectiveHazards(intervals=bool(self.intervals))

    def _check_parameters(self, schema: Schema) -> None:
        super()._check_parameters(schema)
        columns_of(self.time, self.event, schema)

    def _settled(
        self, mechanism: ObjectiveHazards, given: Input, parameters: PrivacyParameters
    ) -> tuple[ObjectiveHazards, Input]:
        return mechanism, signed_input(given, *self._columns(given.schema))

    def _columns(self, schema: Schema) -> tuple[Numeric, Category]:
        return columns_of(self.time, self.event, schema)

    def _encoded(
        self, mechanism: ObjectiveHazards, given: Input, parameters: PrivacyParameters
    ) -> tuple[HazardProblem, Geometry]:
        self._numeric_used = cast("Numbers", "slope" if self.numeric == "auto" else self.numeric)
        self._knots_used = AUTO_KNOTS
        most = None if given.weights is None else given.weights.most
        problem = replace(hazard_problem(self._columns(schema_of(self))[0]), max_weight=most)
        return problem, mechanism.geometry(given.schema, problem, self._numeric_used)

    def _keep(self, result: _Result) -> None:
        fit, times = result.fit, np.array(result.problem.times)
        self.coef_, self.intercept_ = self._geometry.table_units(fit.weights, fit.intercept)
        time, event = self._columns(schema_of(self))
        self.schema_ = _stating(self.schema_, time)
        self._time_bins, self._event_column = time.bins, event
        self._keep_baseline(times, np.where(fit.clear, fit.baseline, np.nan), fit.band, fit.spread)
        if fit.certainty is not None:
            self._sure = about_the_mean(ShownCertainty.of(fit.certainty, self._geometry, centred=True))

    def _keep_baseline(self, times: Floats, hazards: Floats, band: Floats, spread: float) -> None:
        self.score_spread_ = spread
        self.times_, self.baseline_hazard_, self.baseline_band_ = times, hazards, band
        self.baseline_survival_ = np.exp(-hazards)

    def _public_facts(self) -> tuple[str, ...]:
        return (*super()._public_facts(), "levels of the event")

    def _ratio_name(self) -> str:
        return "hazard ratio"

    @property
    def _adds_to(self) -> str:
        return "adds to the log hazard"

    # -- saving ------------------------------------------------------------------------------------

    def _restore(self, coef: Floats, intercept: Floats) -> None:
        self.coef_, self.intercept_ = coef, float(intercept[0])

    def _facts(self) -> JSONObject:
        bins = self._time_bins
        return super()._facts() | {
            "bins": list(bins) if isinstance(bins, tuple) else bins,
            "event": {"name": self._event_column.name, "levels": list(self._event_column.levels)},
            "times": self.times_.tolist(),
            "hazards": [None if np.isnan(one) else float(one) for one in self.baseline_hazard_],
            "band": self.baseline_band_.tolist(),
            "spread": self.score_spread_,
        }

    def _restore_facts(self, facts: JSONObject) -> None:
        super()._restore_facts(facts)
        target = self.schema_.target
        assert isinstance(target, Numeric)
        bins = facts["bins"]
        self._time_bins = tuple(bins) if isinstance(bins, list) else bins
        self._event_column = Category(facts["event"]["name"], facts["event"]["levels"])
        self.time = Numeric(target.name, target.low, target.high, bins=self._time_bins, fill=target.fill)
        self.event = self._event_column
        hazards = [np.nan if one is None else one for one in facts["hazards"]]
        self._keep_baseline(
            np.array(facts["times"]), np.array(hazards), np.array(facts["band"]), float(facts["spread"])
        )


def _stating(schema: Schema, time: Numeric) -> Schema:
    """The schema with the time as its target, in place of the signed one."""
    target: Any = Numeric(time.name, time.low, time.high, fill=time.fill)
    return schema.with_target(target)


def about_the_mean(sure: ShownCertainty) -> ShownCertainty:
    """The same for log hazards beside that of somebody with average scores: how high the hazard is, is the baseline's,
    so that of the constant only what follows from the ratios is left.
    """
    whole = sure.whole
    ratios = whole[:-1, :-1]
    onto = np.linalg.pinv(ratios, hermitian=True) @ whole[:-1, -1] if np.isfinite(whole).all() else whole[:-1, -1] * 0
    move = np.vstack([np.eye(len(ratios)), onto])
    sampling, added = (move @ own[:-1, :-1] @ move.T for own in (sure.sampling, sure.added))
    return ShownCertainty(sampling, added, sure.identified)
