"""The functional mechanism: noise on the coefficients of the problem, then its minimum.

Zhang, Zhang, Xiao, Yang, Winslett: Functional Mechanism: Regression Analysis under Differential Privacy, VLDB 2012. The
coefficients of a loss of degree two are the second moments of the rows, so that is what is released; the noise is
calibrated from the schema.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from privfit.losses import QuadraticLoss
from privfit.mechanisms.base import Description, Mechanism, Numbers, PublicFacts, Release
from privfit.mechanisms.functional.defaults import (
    KIND_MARGIN,
    MOST_MOMENT_COLUMNS,
    SQUARE_WEIGHTS,
    USUAL_RERUNS,
    target_weight,
)
from privfit.mechanisms.functional.penalised import penalised_minimum
from privfit.mechanisms.functional.printed import CALIBRATIONS, Calibration, printed_sensitivity
from privfit.mechanisms.functional.problem import (
    NORMS,
    ExactMoments,
    FunctionalPlan,
    LinearFit,
    QuadraticProblem,
    described_repair,
    expected_error,
    moments_event,
    noise_kind,
    noise_level,
)
from privfit.privacy import Draws, Event, PrivacyError, PrivacyParameters
from privfit.privacy.parts import Repeat
from privfit.rows import Rows
from privfit.schema import Geometry, Schema, SchemaError
from privfit.solvers import (
    REPAIRS,
    Repair,
    calibrate,
    is_bounded,
    minimise,
    plausible_mean,
    plausible_means,
    reduce_quadratic,
)
from privfit.statistics import (
    STEP,
    WEIGHTED_STEP,
    Moments,
    MomentValues,
    WeightedMoments,
)

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

NoiseKind = Literal["auto", "laplace", "linf", "l2", "gaussian"]


@dataclass(frozen=True)
class FunctionalMechanism(Mechanism[QuadraticProblem, FunctionalPlan, ExactMoments, MomentValues]):
    """Release the moments of the encoded rows once, with noise; the fit is post-processing.

    Parameters
    ----------
    calibration : {'tight', 'paper', 'paper-box'}, default='tight'
        "tight" computes the noise from the geometry of the schema. "paper" uses the constants, the scaling and the
        encoding that the paper prints (footnote 1, no intercept): as private, with far more noise, for comparison.
        "paper-box" is what Dandekar, Basu and Bressan [2]_ print: columns in [-1, 1] by their bounds, the sensitivity
        2 (d + 1)^2, noise on all d^2 entries of the matrix, no intercept; with repair=None as in their experiments.
        Replace-one only.
    repair : {'floor', 'ridge', 'trim', 'rerun'} or None, default='floor'
        What gives the noisy objective a minimum. "floor" raises negative eigenvalues; "ridge" and "trim" are sections
        6.1 and 6.2 of the paper; "rerun" draws again at half of epsilon until there is a minimum (Lemma 5: the whole
        costs epsilon, but the number of draws can be observed by timing); None does nothing.
    loss : QuadraticLoss or None, default=None
        Another loss of degree two. None takes the estimator's own.
    interval : float or 'auto', default='auto'
        For logistic regression, the size of x'w on which the quadratic should follow the logistic loss best; it sets
        the scale of the coefficients. "auto" calibrates scale and intercept from the released moments. Paper mode
        always uses the Taylor expansion at zero.
    noise : {'auto', 'laplace', 'linf', 'l2', 'gaussian'}, default='auto'
        The distribution of the noise: Laplace noise for the L1 sensitivity, K-norm noise for the L-infinity or the L2
        sensitivity, which spend epsilon alone, or Gaussian noise, which needs a delta. "auto" takes the one with the
        smallest standard deviation for this schema ("l2", which never wins by much, left out): often "laplace" with
        categories, "linf" for numbers only, "gaussian" with a delta and many columns.

    See Also
    --------
    LinearRegression : Uses it by default.
    AdaSSP : Moments with an adaptive ridge.

    Notes
    -----
    Guarantee: epsilon-DP, or (epsilon, delta)-DP with Gaussian noise, replace-one or add-remove, for persons with at
    most `rows_per_person` rows; docs/proofs/moments.md, Theorems 1 to 6 ("l2" up to a probability below 2^-64;
    docs/proofs/k-norm.md). The guarantee of "rerun" is docs/proofs/rerun.md; with weights it is
    docs/proofs/sample-weights.md, Theorem 1.
    Domain: at least one row, no refused cell, no more rows than stated; docs/proofs/errors-and-stops.md.

    References
    ----------
    .. [1] J. Zhang, Z. Zhang, X. Xiao, Y. Yang and M. Winslett, "Functional mechanism: regression analysis under
       differential privacy", Proceedings of the VLDB Endowment 5(11), 2012.
    .. [2] A. Dandekar, D. Basu and S. Bressan, "Differential privacy for regularised linear regression", DEXA 2018.

    Examples
    --------
    >>> import numpy as np, privfit as pf
    >>> X = np.linspace(-1, 1, 20_000).reshape(-1, 1)
    >>> mechanism = pf.FunctionalMechanism(repair="trim", noise="laplace")
    >>> model = pf.LinearRegression(epsilon=1.0, mechanism=mechanism, schema=pf.Schema.box(-1, 1, target=(-1, 1)))
    >>> model.fit(X, 0.5 * X[:, 0]).report_.noise
    'discrete Laplace'
    """

    calibration: Calibration = "tight"
    repair: Repair = "floor"
    loss: QuadraticLoss | None = None
    interval: float | Literal["auto"] = "auto"
    noise: NoiseKind = "auto"

    name = "functional"
    solves = "moments"
    takes_weights = True

    def check(self) -> None:
        """Refuse parameters that mean nothing, before anything is read."""
        if self.calibration not in CALIBRATIONS:
            raise PrivacyError(
                f"calibration={self.calibration!r} was given; it is 'tight', 'paper' or 'paper-box'. Use 'tight' "
                "unless you compare with the papers."
            )
        if self.repair not in REPAIRS:
            raise PrivacyError(
                f"repair={self.repair!r} was given; it is one of {REPAIRS}. Use 'floor' unless you compare."
            )
        if self.loss is not None and not isinstance(self.loss, QuadraticLoss):
            raise PrivacyError(
                f"loss={self.loss!r} was given; it is a QuadraticLoss or None. Write QuadraticLoss(curvature=1, "
                "slope=2) for least squares."
            )
        if self.interval != "auto" and not (isinstance(self.interval, int | float) and 0 < self.interval <= 100):
            raise PrivacyError(
                f"interval={self.interval!r} was given; it is 'auto' or a positive number up to 100. Use 'auto' if in "
                "doubt."
            )
        if self.noise not in ("auto", *NORMS):
            raise PrivacyError(
                f"noise={self.noise!r} was given; it is one of {('auto', *NORMS)}. Use 'auto' if in doubt."
            )
        if self.noise == "gaussian" and self.repair == "rerun":
            raise PrivacyError(
                "repair='rerun' was given with noise='gaussian'; drawing again is proved for pure noise. Use "
                "repair='floor'."
            )
        if self._printed and self.noise not in ("auto", "laplace"):
            raise PrivacyError(
                f"noise={self.noise!r} was given with calibration={self.calibration!r}; the paper prints Laplace "
                "noise. Use 'laplace'."
            )

    @property
    def _printed(self) -> bool:
        return self.calibration != "tight"

    def settle(self, problem: QuadraticProblem) -> QuadraticProblem:
        """With the loss of the mechanism's own; the target's squares are bought for tight least squares only."""
        bought = problem.spread and not self._printed and self.loss is None and problem.max_weight is None
        return replace(problem, loss=self.loss or problem.loss, spread=bought)

    def geometry(self, schema: Schema, problem: QuadraticProblem, numeric: Numbers = "slope") -> Geometry:
        """How rows are encoded for this mechanism.

        A loss with an offset needs the sums of the columns, as an intercept does.
        """
        paper = self.calibration == "paper"
        intercept = problem.loss.offset != 0 or (problem.fit_intercept and not self._printed)
        anchored: Literal["no", "features", "all"] = (
            "no" if problem.fit_intercept else "features" if problem.loss.offset else "all"
        )
        geometry = schema.geometry(
            numeric=numeric,
            intercept=intercept,
            paper=paper,
            anchored="no" if self._printed else anchored,
            gaps="refused" if self._printed else "slope",
        )
        check_columns(geometry)
        return geometry

    def plan(self, facts: PublicFacts, problem: QuadraticProblem) -> FunctionalPlan:
        """What is summed and with which noise it is released, from public facts alone: the noise named, or the least
        there is.
        """
        plans: list[FunctionalPlan] = []
        kinds = self._kinds(facts.parameters.budget.delta)
        for kind in kinds:
            try:
                plans.append(self._plan_with(kind, facts, problem))
            except PrivacyError:  # more noise than this kind can hold
                if kind == kinds[-1] and not plans:
                    raise
        best = plans[0]
        for plan in plans[1:]:
            if expected_error(plan) < KIND_MARGIN * expected_error(best):
                best = plan
        return best

    def _kinds(self, delta: float) -> tuple[str, ...]:
        """The kinds of noise that are compared."""
        if self.noise != "auto":
            return (self.noise,)
        if self._printed:
            return ("laplace",)
        return ("laplace", "linf", "gaussian") if delta > 0 and self.repair != "rerun" else ("laplace", "linf")

    def _plan_with(self, kind: str, facts: PublicFacts, problem: QuadraticProblem) -> FunctionalPlan:
        moments = self.statistic(facts.geometry, problem, kind)
        event = self.event(moments, facts.parameters, problem.loss, kind)
        return FunctionalPlan(event, facts, moments, problem, every_entry=self.calibration == "paper-box")

    def read(self, rows: Rows, plan: FunctionalPlan, problem: QuadraticProblem, draws: Draws) -> ExactMoments:
        """The moments, summed exactly."""
        return ExactMoments.of(plan, rows.sum(plan.moments), rows.n_rows)

    def draw(self, data: ExactMoments, plan: FunctionalPlan, draws: Draws) -> MomentValues:
        """One draw of noise on all moments; with repair="rerun", again until the objective is bounded."""
        while True:
            value = data.with_noise(plan, draws)
            if self.repair != "rerun":
                return value
            reduced = reduce_quadratic(value, plan.facts.geometry, plan.problem.loss, plan.problem.fit_intercept)
            if is_bounded(reduced.matrix):
                draws.accept()
                return value
            if draws.gives_up():  # a Bernoulli trial and not a count: giving up is then as private as the rest
                raise PrivacyError(
                    f"repair='rerun' gave up; it tries about {USUAL_RERUNS} draws, and none gave a bounded problem: "
                    "the noise is far larger than the signal. The charge stands. Use repair='floor', or a larger "
                    "epsilon."
                )

    def statistic(self, geometry: Geometry, problem: QuadraticProblem, kind: str | None = None) -> Moments:
        """Return the moments that are released, with the target scaled by a public rule.

        Parameters
        ----------
        geometry : Geometry
            How rows are encoded.
        problem : QuadraticProblem
            What is minimised.
        kind : str or None, default=None
            The noise; None takes the mechanism's own.

        Returns
        -------
        Moments
            The statistic.
        """
        loss, kind = problem.loss, kind or self._usual_kind
        if self._printed:
            longest = math.sqrt(geometry.n_columns) if self.calibration == "paper" else 1.0
            weight = longest * abs(loss.slope) / loss.curvature
        else:
            weight = target_weight(geometry, kind)
        bought = problem.spread and self.calibration == "tight"
        if problem.max_weight is not None:
            units, needed = (
                max(1, round(weight * WEIGHTED_STEP)),
                problem.penalty is not None and not problem.penalty.ridge,
            )
            return WeightedMoments(geometry, units, WEIGHTED_STEP, 0, needed, problem.max_weight)
        square_units = round(STEP * math.sqrt(min(SQUARE_WEIGHTS[kind], weight))) if bought else 0
        needs_rows = bought or (problem.penalty is not None and not problem.penalty.ridge)
        return Moments(geometry, max(1, round(weight * STEP)), square_units=square_units, needs_rows=needs_rows)

    @property
    def _usual_kind(self) -> str:
        return "laplace" if self.noise == "auto" else self.noise

    def event(
        self, moments: Moments, parameters: PrivacyParameters, loss: QuadraticLoss, kind: str | None = None
    ) -> Event:
        """Return the event of one release, from public facts alone.

        Parameters
        ----------
        moments : Moments
            What is released.
        parameters : PrivacyParameters
            Budget, adjacency and rows per person.
        loss : QuadraticLoss
            The loss, whose printed sensitivity paper mode uses.
        kind : str or None, default=None
            The noise; None takes the mechanism's own.

        Returns
        -------
        Event
            The noise and its price.
        """
        kind = kind or self._usual_kind
        sensitivity = moments.row_sensitivity(parameters, NORMS[kind])
        if self._printed:
            sensitivity = printed_sensitivity(self.calibration, moments, parameters, loss, sensitivity)
        d = moments.geometry.n_columns
        event = moments_event(
            f"functional mechanism, {self.calibration} calibration",
            moments,
            parameters,
            kind,
            sensitivity=sensitivity,
            n_values=d * (d + 1) if self.calibration == "paper-box" else None,
            share=0.5 if self.repair == "rerun" else 1.0,
        )
        if self.repair != "rerun":
            return event
        return replace(event, parts=(Repeat(parts=event.parts, one_in=USUAL_RERUNS),))

    def solve(self, release: Release[MomentValues], geometry: Geometry, problem: QuadraticProblem) -> LinearFit:
        """The minimiser of the repaired noisy objective, as log-odds where those are wanted: post-processing."""
        fit = self._minimised(release, geometry, problem)
        if not (problem.probabilities and self.calibration == "tight" and self.loss is None):
            return fit
        centred = geometry.intercept and problem.fit_intercept
        length, intercept = calibrate(fit.weights, fit.intercept, fit.target_mean, fit.moments, centred, self.interval)
        return replace(fit, weights=fit.weights * length, intercept=intercept, length=length)

    def _minimised(self, release: Release[MomentValues], geometry: Geometry, problem: QuadraticProblem) -> LinearFit:
        loss, fit_intercept = problem.loss, problem.fit_intercept
        reduced = reduce_quadratic(release.value, geometry, loss, fit_intercept)
        moments = self.statistic(geometry, problem, noise_kind(release.event))
        shift = loss.offset / loss.slope
        noise = noise_level(moments, release.event, reduced.target_mean - shift)
        solution = minimise(reduced.matrix, reduced.vector, noise, self.repair)
        stretch = loss.slope / (2 * loss.curvature)
        weights, strengths, gap = reduced.basis @ solution.weights, None, 0.0
        if problem.penalty is not None:
            weights, strengths, gap = penalised_minimum(
                problem.penalty, solution, reduced, geometry, noise, release.value.n_rows, self.repair
            )
        weights = stretch * weights
        if not (fit_intercept and geometry.intercept):
            return LinearFit(weights, 0.0, 0.0, solution, release.value, strengths, gap)
        mean = plausible_mean(reduced.target_mean - shift, noise.vector / max(release.value.n_rows, 1.0))
        intercept = stretch * (mean + shift) - plausible_means(reduced.feature_means) @ weights
        return LinearFit(weights, float(intercept), mean, solution, release.value, strengths, gap)

    def describe(self, fit: LinearFit, schema: Schema, geometry: Geometry) -> Description:
        """How the noisy quadratic was repaired."""
        return described_repair(str(self.repair).lower(), fit.solution)


def check_columns(geometry: Geometry) -> None:
    """Refuse more encoded columns than moments are held for."""
    if geometry.n_columns > MOST_MOMENT_COLUMNS:
        widest = max(geometry.blocks, key=lambda block: block.width)
        raise SchemaError(
            f"The schema has {geometry.n_columns} encoded columns, {widest.width} of them for "
            f"{widest.column.name!r}; this mechanism releases about half their square and takes at most "
            f"{MOST_MOMENT_COLUMNS}. Join levels, or let rare ones fall into 'other'. Nothing was charged."
        )
