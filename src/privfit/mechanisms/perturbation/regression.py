"""Linear regression by a perturbed objective: a loss of bounded slope, at a threshold that is chosen privately.

Moments pay for the products of all columns and for the whole range of the target; a gradient pays for the columns, and
for a residual up to the threshold. One release: the target's centre, the threshold, the weights, and last the mean of
what they leave, so that predictions have the right mean where errors are skewed.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from privfit.losses import ConvexLoss
from privfit.losses.tabulated import TabulatedLoss, tables_of
from privfit.mechanisms.base import USUAL_ROWS, Description, Mechanism, Numbers, PublicFacts, Release, ReleasePlan
from privfit.mechanisms.functional.problem import QuadraticProblem
from privfit.mechanisms.perturbation.absolute_penalty import AbsolutePenalty
from privfit.mechanisms.perturbation.base import NoiseKind
from privfit.mechanisms.perturbation.interaction_terms import integer_weights, score_bits
from privfit.mechanisms.perturbation.number_terms import NumberTerms, in_steps, planned_number_terms
from privfit.mechanisms.perturbation.precision import minimised
from privfit.mechanisms.perturbation.problem import ERMPlan, ERMProblem, named_pairs
from privfit.mechanisms.perturbation.regression_fit import RegressionFit, check_rows, rounded_down, with_shown_penalty
from privfit.mechanisms.perturbation.regression_weights import TAPER, RegressionWeights
from privfit.mechanisms.perturbation.shape_bands import (
    FOR_BANDS,
    SUM_UNIT,
    LeastCurvature,
    curvature_part,
    curvature_sums,
    half_widths,
)
from privfit.mechanisms.perturbation.target_scale import (
    COVERING_BEYOND,
    LEAST_STRETCH,
    ChosenScale,
    TargetScale,
    covering_stretch,
)
from privfit.privacy import Budget, Draws, Event, PrivacyError, PrivacyParameters, exact
from privfit.privacy.event import laplace_scale
from privfit.privacy.parts import Laplace, Part
from privfit.rows import COUNT_UNIT, CachedDesign, Rows, is_alone, sum_of_residuals, weighed_rows
from privfit.schema import Geometry, RowNorms, Schema

Floats = NDArray[np.float64]

FOR_CENTRE, FOR_THRESHOLD, FOR_INTERCEPT = Fraction(2, 100), Fraction(3, 100), Fraction(5, 100)
"""Shares of epsilon beside the weights. The intercept's is worth more than anything else where errors are skewed:
papers/experiments/regression.py."""
INTERCEPT_WIDTH = 3.0
"""Residuals are cut at so many thresholds for their mean, at most at half the target's range: wider has less bias and
more noise. papers/experiments/regression.py."""
LARGEST_STEP = 2.0**61
"""Weights on their lattice are cut here, so that they are 64-bit integers with noise on them."""
COUNT_SHARE = 4
"""Where the number of rows is private, one in so many parts of the intercept's noise is for a count."""


@dataclass(frozen=True)
class RegressionPlan(ReleasePlan):
    """All that is decided before a row is read: the choices, the weights in units of the threshold, the intercept."""

    scale: ChosenScale
    steps: RegressionWeights
    weights: ERMPlan
    intercept: tuple[Part, ...]
    """What is drawn after the weights."""
    bits: int
    """Steps of the residuals whose mean is the intercept: 2^bits to the width at which they are cut."""
    bands: Laplace | None = None
    """Of sums of curvatures, where bands of curves are asked for."""
    terms: NumberTerms | None = None
    """Interaction terms after the weights, if there are any."""


@dataclass(frozen=True)
class ObjectiveRegression(Mechanism[QuadraticProblem, RegressionPlan, CachedDesign, RegressionFit]):
    """Least squares by a perturbed objective, with residuals of bounded influence.

    Four parts share epsilon: the target's centre (2%), a threshold of residuals (3%), the weights (90%) and the mean of
    what these leave (5%). The weights minimise half the squared residual up to half the threshold and a linear loss far
    beyond it, so that the noise is proportional to the threshold and not to the bounds of the target. The last part
    moves the intercept so that predictions have the mean of the target.

    Parameters
    ----------
    noise : {'auto', 'laplace', 'l2', 'linf', 'mixed', 'gaussian'}, default='auto'
        The distribution of the random term, as in `ObjectivePerturbation`.
    bands : bool or None, default=None
        Whether sums of curvatures are bought with 4% of epsilon, taken from the weights, so that bands of curves are
        narrower. None computes no bands, for models that show no curves.
    covering : bool, default=False
        Whether residuals count up to so much more that clipping them leaves little bias beside the noise, which is
        larger: for intervals.

    See Also
    --------
    LinearRegression : Takes it as mechanism="objective".
    FunctionalMechanism : Noise on the moments, with intervals.
    ObjectivePerturbation : The same for classes, and for other losses.

    Notes
    -----
    Guarantee: epsilon-DP, or (epsilon, delta)-DP with Gaussian noise, replace-one or add-remove, for persons with at
    most `rows_per_person` rows; docs/proofs/regression-objective.md, Theorem 2.
    Domain: at least one row, no refused cell, no more rows than stated; docs/proofs/errors-and-stops.md.

    Examples
    --------
    >>> import numpy as np, privfit as pf
    >>> X = np.linspace(-1, 1, 20_000).reshape(-1, 1)
    >>> schema = pf.Schema.box(-1, 1, target=(-1000, 1000))  # far wider than the target is
    >>> model = pf.LinearRegression(epsilon=1.0, mechanism=pf.ObjectiveRegression(), schema=schema)
    >>> bool(abs(model.fit(X, 0.5 * X[:, 0]).coef_[0] - 0.5) < 0.1)
    True
    """

    noise: NoiseKind = "auto"
    bands: bool | None = None
    covering: bool = False

    name = "objective regression"
    solves = "regression"
    takes_splines = takes_weights = True
    _for_intercept: ClassVar[Fraction] = FOR_INTERCEPT
    _kind: ClassVar[str] = "a regression"
    _has_bands: ClassVar[bool] = True
    _has_terms: ClassVar[bool] = True

    def check(self) -> None:
        """Refuse parameters that mean nothing, before anything is read."""
        RegressionWeights(noise=self.noise).check()
        if not isinstance(self.bands, bool | np.bool_ | None) or (self.bands and not self._has_bands):
            raise PrivacyError(
                f"bands={self.bands!r} was given; it is True, False or None; quantiles have none. Use None if in doubt."
            )

    def _weights(self, problem: QuadraticProblem, facts: PublicFacts | None = None) -> RegressionWeights:
        """The mechanism of the weights; without facts, one with the same encoding."""
        penalty = problem.penalty
        stretch = covering_stretch(facts) if self.covering and facts is not None else 1.0
        own = RegressionWeights(noise=self.noise, stretch=stretch)
        if penalty is None or penalty.alpha == "auto":
            return replace(own, l1_ratio=0.0 if penalty is None else penalty.l1_ratio)
        rows = 1.0 if facts is None or penalty.ridge else float(facts.n_rows or 0)
        alpha = float(penalty.alpha) * rows / (problem.max_weight or 1.0)  # rows count from 0 to 1 in the fit
        absolute, squared = alpha * penalty.l1_ratio, alpha * (1 - penalty.l1_ratio)
        return replace(own, alpha=squared, scaled=penalty.scaled, absolute=absolute)

    def _erm(self, problem: QuadraticProblem, facts: PublicFacts | None = None) -> ERMProblem:
        """The problem of the weights, in units of a threshold that is not chosen yet."""
        return ERMProblem(self._weights(problem, facts).loss_at(0.0, 1.0), problem.fit_intercept)

    def settle(self, problem: QuadraticProblem) -> QuadraticProblem:
        """Without the target's squares, which are not bought: there are no intervals."""
        return replace(problem, spread=False)

    def geometry(self, schema: Schema, problem: QuadraticProblem, numeric: Numbers = "slope") -> Geometry:
        """How rows are encoded: as for perturbed objectives of other losses."""
        return self._weights(problem).geometry(schema, self._erm(problem), numeric)

    def for_rows_left_out(self, parameters: PrivacyParameters, slots: int | None) -> PrivacyParameters:
        """Without delta: nothing is proved here of Gaussian noise in the objective where rows are left out."""
        planned = super().for_rows_left_out(parameters, slots)
        return planned if planned.promise is None else replace(planned, budget=Budget(planned.budget.epsilon))

    # -- the plan ----------------------------------------------------------------------------------

    def plan(self, facts: PublicFacts, problem: QuadraticProblem) -> RegressionPlan:
        """Noise for the weights in units of a threshold that is not known yet, and what is bought beside them."""
        if problem.penalty is not None:
            check_rows(problem.penalty, facts, problem)
        if self.bands and problem.max_weight is not None:
            raise PrivacyError(
                "bands=True was given with weights of rows; bands are bought without weights only. Leave one of them "
                "out. Nothing was charged."
            )
        bands = curvature_part(facts) if self.bands else None
        parameters, (first, last) = facts.parameters, self._beside(problem)
        terms = planned_number_terms(facts, problem) if self._has_terms and problem.interactions != 0 else None
        beside = first + last + (FOR_BANDS if self.bands else 0) + (0 if terms is None else terms.share)
        left = replace(parameters, budget=rounded_down(parameters.budget, 1 - beside))
        own, steps = replace(facts, parameters=left), self._weights(problem, facts)
        weights = steps.plan(own, self._erm(problem, facts))
        if terms is not None:
            weights = replace(weights, fine=any(map(is_alone, terms.menu)))
        scale = self._scale(facts, problem, weights)
        bits = score_bits(weights.gradients.norms.columns)
        if last and bits < 1:
            raise PrivacyError("A regression has too many encoded columns for exact residuals. Leave out columns.")
        unit = 1 if problem.max_weight is None else COUNT_UNIT
        intercept = self._last_parts(facts, exact(parameters.budget.epsilon) * last, bits, unit) if last else ()
        event = Event(
            f"objective perturbation of {self._kind}",
            parameters.budget.epsilon,
            weights.event.delta,
            adjacency=parameters.adjacency,
            rows_per_person=int(parameters.rows_per_person),
            parts=(
                *scale.parts(),
                *weights.event.parts,
                *(() if terms is None else terms.parts()),
                *intercept,
                *(() if bands is None else (bands,)),
            ),
        )
        return RegressionPlan(event, facts, scale, steps, replace(weights, facts=own), intercept, bits, bands, terms)

    def _beside(self, problem: QuadraticProblem) -> tuple[Fraction, Fraction]:
        """The shares of epsilon for what comes before the weights, and after them."""
        if not problem.fit_intercept:
            return FOR_THRESHOLD, Fraction(0)
        return FOR_CENTRE + FOR_THRESHOLD, self._for_intercept

    def _scale(self, facts: PublicFacts, problem: QuadraticProblem, weights: ERMPlan) -> ChosenScale:
        """What is chosen before the weights: where the target lies, and its unit."""
        rows, centre = facts.n_rows or USUAL_ROWS, FOR_CENTRE if problem.fit_intercept else Fraction(0)
        noise = self._noise_on_predictions(weights.sd, weights.gradients.norms, rows)
        chosen = TargetScale.planned(facts.parameters, rows, noise, centre, FOR_THRESHOLD)
        return replace(chosen, stretch=covering_stretch(facts)) if self.covering else chosen

    def _noise_on_predictions(self, sd: float, norms: RowNorms, rows: int) -> float:
        """Per unit of threshold: what clipping is weighed against."""
        return COVERING_BEYOND if self.covering else sd * norms.columns / (math.sqrt(norms.entries) * rows)

    def _last_parts(self, facts: PublicFacts, epsilon: Fraction, bits: int, unit: int) -> tuple[Part, ...]:
        """Noise on the sum of residuals; and on the number of rows, or the sum of weights, where that is private."""
        parameters, most = facts.parameters, 1 << bits
        counted = parameters.adjacency == "add-remove"
        each = most + -(-most // COUNT_SHARE) if counted else 2 * most
        sensitivity = each * int(parameters.rows_per_person)
        noise = Laplace(
            size=1 + counted,
            scale=laplace_scale(sensitivity, epsilon),
            sensitivity=sensitivity,
            unit=most,
            purpose="intercept",
            epsilon=float(epsilon),
        )
        return (noise,)

    # -- the release -------------------------------------------------------------------------------

    def read(self, rows: Rows, plan: RegressionPlan, problem: QuadraticProblem, draws: Draws) -> CachedDesign:
        """A cached design of all rows."""
        return plan.steps.read(rows, plan.weights, plan.weights.problem, draws)

    def draw(self, data: CachedDesign, plan: RegressionPlan, draws: Draws) -> RegressionFit:
        """Choose centre and threshold, minimise the perturbed objective at these, and measure what is left."""
        centre, threshold = plan.scale.drawn(data, draws)
        assert plan.weights.certificate is not None
        own = plan.steps.at(plan.weights, centre, threshold, plan.weights.certificate.unit)
        noise, certificate = own.noise, own.certificate
        assert noise is not None
        assert certificate is not None
        term = noise.by_column(draws.add(np.zeros(own.gradients.values, dtype=np.int64)))
        weights = minimised(own, data, term)
        steps = np.rint(np.clip(weights * certificate.unit, -LARGEST_STEP, LARGEST_STEP)).astype(np.int64)
        weights = np.asarray(draws.add(steps, scale=certificate.scale) / certificate.unit, dtype=np.float64)
        contrasts, sparse = own.ridge, None
        if isinstance(own.penalty, AbsolutePenalty):
            sparse = own.penalty.cut(weights[:, 0], certificate.sd)
            contrasts, weights = contrasts + sparse.squared, sparse.weights[:, None]
        elif own.penalty is not None:
            contrasts += own.penalty.largest
        fit = replace(
            self._fit(weights, centre, threshold, own.ridge, contrasts),
            sparse=sparse,
            rows=float(plan.facts.n_rows or 0),
        )
        if plan.terms is not None:
            pairs = plan.terms.at(centre, threshold).tables(data, weights * threshold, draws)
            fit = replace(fit, pairs=pairs)
        if plan.intercept:
            fit = self._moved(fit, weights, data, plan, draws)
        if self.bands is None or not self._has_bands:
            return fit
        return replace(fit, bands=threshold * self._half_widths(own, weights, data, plan, draws, fit))

    @staticmethod
    def _fit(weights: Floats, centre: float, threshold: float, ridge: float, contrast_ridge: float) -> RegressionFit:
        """The fit with weights in units of the target."""
        return RegressionFit(weights[:, 0] * threshold, centre, centre, threshold, ridge, contrast_ridge=contrast_ridge)

    def _half_widths(
        self, own: ERMPlan, weights: Floats, data: CachedDesign, plan: RegressionPlan, draws: Draws, fit: RegressionFit
    ) -> Floats:
        """Half the widths of bands, in units of the threshold: from noisy sums of curvatures, if they are bought."""
        if plan.bands is None:
            return half_widths(own)
        sums = draws.add(curvature_sums(data, weights, LeastCurvature(TAPER, fit.centre, fit.threshold)))
        return half_widths(own, sums / SUM_UNIT, plan.bands.sd)

    def _moved(
        self, fit: RegressionFit, weights: Floats, data: CachedDesign, plan: RegressionPlan, draws: Draws
    ) -> RegressionFit:
        """The fit moved by the noisy mean of the residuals it leaves."""
        width, most = min(INTERCEPT_WIDTH * fit.threshold, 1.0), 1 << plan.bits
        whole = integer_weights(weights * (fit.threshold / width), plan.bits)
        added = in_steps(fit.pairs, width, most) if fit.pairs else []
        sums = [sum_of_residuals(data, whole, fit.centre, width, plan.bits, added)]
        if plan.facts.parameters.adjacency == "add-remove":
            sums.append(weighed_rows(data, -(-most // COUNT_SHARE)))
        noisy = draws.add(np.array(sums, dtype=np.int64))
        rows = float(plan.facts.n_rows or 0) if len(noisy) == 1 else float(noisy[1]) / -(-most // COUNT_SHARE)
        shift = width * float(np.clip(noisy[0] / (most * max(rows, 1.0)), -1.0, 1.0))
        return replace(fit, shift=shift, intercept=fit.centre + shift)

    def for_intervals(self) -> Self:
        """Return the form that intervals are bought for: with less bias and more noise.

        Returns
        -------
        Self
            The mechanism.
        """
        return replace(self, covering=True)

    def answers(self, loss: ConvexLoss, plan: RegressionPlan) -> TabulatedLoss:
        """Return what rows count in the Hessian and in the second moments of gradients.

        Parameters
        ----------
        loss : ConvexLoss
            The loss that weights were fitted to.
        plan : RegressionPlan
            The plan of the fit.

        Returns
        -------
        TabulatedLoss
            Curvatures and squared slopes.
        """
        return tables_of(loss).up_to(min(LEAST_STRETCH / plan.scale.stretch, 1.0))

    def noise_on_level(self, fit: RegressionFit, plan: RegressionPlan, rows: float) -> float:
        """Return the standard deviation of the noise on the move of the intercept, in units of the weights.

        Parameters
        ----------
        fit : RegressionFit
            The fit.
        plan : RegressionPlan
            Its plan.
        rows : float
            How much rows count together by their curvature.

        Returns
        -------
        float
            The standard deviation.
        """
        noise = plan.intercept[-1]
        assert isinstance(noise, Laplace)
        return min(INTERCEPT_WIDTH, 1 / fit.threshold) * noise.sd / float(plan.facts.n_rows or max(rows, 1.0))

    def solve(self, release: Release[RegressionFit], geometry: Geometry, problem: QuadraticProblem) -> RegressionFit:
        """The released weights, with what the levels and splines have in common in the intercept."""
        fit, weights = release.value, release.value.weights.copy()
        if problem.penalty is not None:
            fit = with_shown_penalty(fit, geometry, problem.penalty, problem.max_weight or 1.0)
        intercept, sparse = fit.intercept, fit.sparse
        if geometry.intercept:
            bands = None if fit.bands is None else fit.bands[1:]
            return replace(fit, weights=weights[1:], intercept=intercept + float(weights[0]), bands=bands)
        for place, (start, stop) in enumerate(RowNorms.of(geometry).blocks if problem.fit_intercept else ()):
            mean = float(weights[start:stop].mean())
            if sparse is not None:
                mean = fit.threshold * sparse.centres[place]
            weights[start:stop] -= mean
            intercept += mean
        return replace(fit, weights=weights, intercept=intercept)

    def describe(self, fit: RegressionFit, schema: Schema, geometry: Geometry) -> Description:
        """The threshold, and what was done after the weights."""
        target = geometry.target
        assert target is not None
        notes = [
            f"residuals beyond about {fit.threshold * target.unit:.4g}, a threshold chosen privately, have gradients "
            "of the same size, so that noise does not depend on the bounds of the target"
        ]
        if fit.intercept:
            notes.append(
                "the intercept was moved by the noisy mean of what the weights leave, so that predictions have the "
                "target's mean"
            )
        if fit.pairs:
            notes.append(f"adds interaction terms, chosen privately by residuals: {named_pairs(fit.pairs, schema)}")
        return Description(
            {"kind": "ridge", "ridge": fit.ridge, "threshold": fit.threshold * target.unit}, tuple(notes)
        )
