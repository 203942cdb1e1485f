"""Regressions with a log mean, for counts and positive amounts, and with a logit mean, for proportions; by a perturbed
objective.

One release of a log mean: a cap of amounts, the weights of a loss that levels off there, a far cap, and last the sum of
amounts up to that beside the sum of what the weights predict, which restores the mean. A proportion is bounded by
itself, so that weights are all that is released.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from privfit.losses import PROPORTION, ConvexLoss, capped_mean
from privfit.losses.amounts import START
from privfit.losses.tabulated import TabulatedLoss, tables_of
from privfit.mechanisms.base import USUAL_ROWS, Description, PublicFacts
from privfit.mechanisms.functional.problem import QuadraticProblem
from privfit.mechanisms.perturbation.interaction_terms import integer_weights
from privfit.mechanisms.perturbation.problem import ERMPlan
from privfit.mechanisms.perturbation.regression import ObjectiveRegression, RegressionPlan
from privfit.mechanisms.perturbation.regression_fit import RegressionFit
from privfit.mechanisms.perturbation.regression_weights import RegressionWeights
from privfit.mechanisms.perturbation.target_scale import (
    LEAST_THRESHOLD,
    AmountScale,
    ChosenScale,
    KnownScale,
    amount_scale,
    signal_of,
)
from privfit.privacy import Draws, PrivacyError
from privfit.privacy.event import laplace_scale
from privfit.privacy.parts import Laplace, Part
from privfit.rows import AMOUNT_STEPS, SCORE_UNIT, AmountSums, CachedDesign
from privfit.schema import Geometry, Schema

Floats = NDArray[np.float64]

FOR_CAP, FOR_FAR_CAP, FOR_MEAN = Fraction(2, 100), Fraction(2, 100), Fraction(10, 100)
"""Shares of epsilon beside the weights' 86%. `python papers/experiments/amounts.py` measures the whole."""
ABOVE_CAP = 0.05
"""The share of rows whose amounts may be above the cap: more means less noise and more bias of effects."""
SHARPNESS, MOST_SHARPNESS = 0.0015, 2.0
"""Means level off the more suddenly the more rows there are: the ridge that this needs is then at most 0.3% of the
rows. Sharper has less bias where amounts hardly spread about their mean, more where they do, and needs more ridge: at 4
and more, Poisson's deviance gains 3% and those of lognormal and rare targets lose 4% and 11%
(papers/experiments/amounts.py)."""
CAP_STRETCH, MOST_STRETCH = 0.0005, 4.0
"""The cap is a multiple of what is chosen where there are many rows: means are then far below it, and effects on
targets that hardly spread about their mean have less bias; noise grows with it. papers/experiments/amounts.py."""
COVERING_STRETCH, LEAST_COVERING_STRETCH = 0.06, 2.0
"""The same for intervals, times the root of that signal: the bias of effects falls with the square of the cap, and has
to stay below a noise that grows with it. With twice the cap at epsilon 2 and 50,000 rows, noise and bias of Poisson
effects were about .02 and .045, with four times .027 and .013, with eight times .04 and .007."""
ANSWERS_UP_TO = 2.0
"""Residuals and means count, for the second moments of gradients and for the Hessian, up to so many times the cap that
is chosen before it is stretched. Less means less noise on both; of the variance of exponential amounts 1% is beyond."""
FAR_STRETCH = 2.0
"""The far cap is so many times what is chosen, where as many rows are above as the choice can distinguish from none:
wider has less bias where amounts have a heavy tail, and more noise."""


@dataclass(frozen=True)
class AmountFit(RegressionFit):
    """Weights and intercept of the log mean, in units of half the target's range."""

    far_cap: float = 0.0
    shift_sd: float = 0.0
    """The standard deviation of the noise on the shift."""

    @property
    def unit(self) -> float:
        """Effects on a log mean have none."""
        return 1.0


@dataclass(frozen=True)
class AmountWeights(RegressionWeights):
    """The weights of a log mean, in units of the cap.

    Guarantee: docs/proofs/amount-objective.md, Lemma 1 and Theorem 1.
    """

    sharpness: float = 1.0
    """How suddenly means level off."""
    unit: float | None = None
    """The unit of amounts, where there is no intercept that could take it."""
    top: float = 1.0
    """The largest amount, in that unit."""

    has_own_loss = False

    def loss_at(self, centre: float, threshold: float) -> ConvexLoss:
        """The loss of a mean that levels off at the cap."""
        if self.unit is None:
            return capped_mean(centre, threshold, sharpness=self.sharpness)
        least, most = (math.log(cap) + math.log(self.unit) for cap in (self.top * LEAST_THRESHOLD, self.top))
        start = math.log(threshold) + math.log(self.unit)
        most_start = max(abs(least), abs(most), abs(start))
        return capped_mean(centre, threshold, sharpness=self.sharpness, start=start, most_start=most_start)


@dataclass(frozen=True)
class ProportionWeights(RegressionWeights):
    """The weights of a logit mean.

    Guarantee: docs/proofs/amount-objective.md, Lemma 3 and Theorem 1.
    """

    def loss_at(self, centre: float, threshold: float) -> ConvexLoss:
        """The logistic loss of a proportion."""
        return PROPORTION


@dataclass(frozen=True)
class ObjectiveAmounts(ObjectiveRegression):
    """A regression with a log mean by a perturbed objective.

    Four parts share epsilon: a cap that at most about 5% of amounts are above (2%), the weights (86%), a far cap (2%),
    and the sums of amounts and of what the weights predict (10%), whose ratio sets the intercept. Without an intercept
    there are the cap and the weights alone.

    Parameters
    ----------
    noise : {'auto', 'laplace', 'l2', 'linf', 'mixed', 'gaussian'}, default='auto'
        The distribution of the random term, as in `ObjectivePerturbation`.
    least_cap : float, default=0.0
        The least that a cap can be, in the units of the target: 1 for counts.
    covering : bool, default=False
        Whether means level off so far above what is usual that effects have little bias beside their noise, which is
        larger: for intervals.

    Notes
    -----
    Guarantee: epsilon-DP, or (epsilon, delta)-DP with Gaussian noise, replace-one or add-remove, for persons with at
    most `rows_per_person` rows; docs/proofs/amount-objective.md, Theorem 2.
    Domain: at least one row, no refused cell, no more rows than stated; docs/proofs/errors-and-stops.md.
    """

    least_cap: float = 0.0

    name = "objective log mean"
    _kind: ClassVar[str] = "a log mean"
    _has_bands: ClassVar[bool] = False
    _has_terms: ClassVar[bool] = False

    def _weights(self, problem: QuadraticProblem, facts: PublicFacts | None = None) -> RegressionWeights:
        if facts is None or facts.geometry.target is None:
            return AmountWeights(noise=self.noise)
        sharpness = min(max(round(4 * SHARPNESS * signal_of(facts)) / 4, 1.0), MOST_SHARPNESS)
        sharpness = MOST_SHARPNESS if self.covering else sharpness
        weights = AmountWeights(noise=self.noise, sharpness=sharpness)
        if problem.fit_intercept:
            return weights
        top = amount_scale(facts.geometry)[1] * (self._stretch(facts) if self.covering else 1.0)
        return replace(weights, unit=facts.geometry.target.unit, top=top)

    def _beside(self, problem: QuadraticProblem) -> tuple[Fraction, Fraction]:
        return FOR_CAP, FOR_FAR_CAP + FOR_MEAN if problem.fit_intercept else Fraction(0)

    def _scale(self, facts: PublicFacts, problem: QuadraticProblem, weights: ERMPlan) -> ChosenScale:
        rows = facts.n_rows or USUAL_ROWS
        if amount_scale(facts.geometry)[1] <= 0:
            raise PrivacyError(
                "A log mean was given a target whose upper bound is not above 0, and amounts are from 0 upwards. Give "
                "the target bounds such as 0 and 100. Nothing was charged."
            )
        chosen = AmountScale.planned(facts.parameters, rows, FOR_CAP, facts.geometry, ABOVE_CAP)
        return replace(chosen, least=self.least_cap, stretch=self._stretch(facts), beyond_top=self.covering)

    def _stretch(self, facts: PublicFacts) -> float:
        """What multiplies the cap that is chosen: a function of public facts."""
        if self.covering:
            return max(COVERING_STRETCH * math.sqrt(signal_of(facts)), LEAST_COVERING_STRETCH)
        return min(max(CAP_STRETCH * signal_of(facts), 1.0), MOST_STRETCH)

    def answers(self, loss: ConvexLoss, plan: RegressionPlan) -> TabulatedLoss:
        """With means and residuals cut at so many times what few amounts are above."""
        assert isinstance(plan.scale, AmountScale)
        return tables_of(loss).up_to(min(ANSWERS_UP_TO / plan.scale.stretch, 1.0), curvature=True)

    @staticmethod
    def _fit(weights: Floats, centre: float, threshold: float, ridge: float, contrast_ridge: float) -> RegressionFit:
        return AmountFit(weights[:, 0], 0.0, centre, threshold, ridge, contrast_ridge=contrast_ridge)

    def _last_parts(self, facts: PublicFacts, epsilon: Fraction, bits: int, unit: int) -> tuple[Part, ...]:
        """The choice of a far cap, and noise on both sums: either changes by at most 1 a row."""
        sensitivity = 2 * int(facts.parameters.rows_per_person) * AMOUNT_STEPS
        own = epsilon * FOR_MEAN / (FOR_FAR_CAP + FOR_MEAN)
        sums = Laplace(
            size=2,
            scale=laplace_scale(sensitivity, own),
            sensitivity=sensitivity,
            unit=AMOUNT_STEPS,
            purpose="mean of amounts",
            epsilon=float(own),
        )
        return (*self._far_cap(facts).parts(), sums)

    def _moved(
        self, fit: RegressionFit, weights: Floats, data: CachedDesign, plan: RegressionPlan, draws: Draws
    ) -> AmountFit:
        """The fit with the mean of the amounts up to the far cap."""
        _, far = self._far_cap(plan.facts).drawn(data, draws)
        level = math.log(fit.threshold) - START  # the log mean is that and the score
        top = round((math.log(far) - level) / SCORE_UNIT * (1 << plan.bits))
        sums = AmountSums(fit.centre, far, top, plan.bits)
        noisy = draws.add(sums.of(data, integer_weights(weights / SCORE_UNIT, plan.bits)))
        noise = plan.intercept[-1]
        assert isinstance(noise, Laplace)
        amounts, predicted = np.maximum(noisy / AMOUNT_STEPS, noise.sd)  # none smaller is believed
        shift = math.log(amounts / predicted)
        assert isinstance(fit, AmountFit)
        sd = noise.sd * math.hypot(1 / amounts, 1 / predicted)
        return replace(fit, intercept=level + shift, shift=shift, far_cap=far, shift_sd=sd)

    def noise_on_level(self, fit: RegressionFit, plan: RegressionPlan, rows: float) -> float:
        """That of both sums."""
        assert isinstance(fit, AmountFit)
        return fit.shift_sd

    def _far_cap(self, facts: PublicFacts) -> AmountScale:
        """The choice of the cap up to which amounts are added up."""
        chosen = AmountScale.planned(facts.parameters, facts.n_rows or USUAL_ROWS, FOR_FAR_CAP, facts.geometry, 0.0)
        least = FAR_STRETCH * self.least_cap
        return replace(chosen, purpose="far cap of amounts", stretch=FAR_STRETCH, least=least)

    def describe(self, fit: RegressionFit, schema: Schema, geometry: Geometry) -> Description:
        """The caps, and what was done after the weights."""
        target = geometry.target
        assert target is not None
        assert isinstance(fit, AmountFit)
        cap, far = (value * target.unit for value in (fit.threshold, fit.far_cap))
        notes = [f"means level off at about {cap:.4g}, a cap chosen privately, while effects are estimated"]
        if fit.far_cap:
            notes.append(
                f"then the intercept was set so that predictions have the target's noisy mean, up to about {far:.4g}"
            )
        return Description({"kind": "ridge", "ridge": fit.ridge, "cap": cap}, tuple(notes))


@dataclass(frozen=True)
class ObjectiveProportions(ObjectiveRegression):
    """A regression with a logit mean by a perturbed objective: all of epsilon is for the weights.

    Parameters
    ----------
    noise : {'auto', 'laplace', 'l2', 'linf', 'mixed', 'gaussian'}, default='auto'
        The distribution of the random term, as in `ObjectivePerturbation`.

    Notes
    -----
    Guarantee: epsilon-DP, or (epsilon, delta)-DP with Gaussian noise, replace-one or add-remove, for persons with at
    most `rows_per_person` rows; docs/proofs/amount-objective.md, Theorem 2.
    Domain: at least one row, no refused cell, no more rows than stated; docs/proofs/errors-and-stops.md.
    """

    name = "objective proportion"
    _kind: ClassVar[str] = "a logit mean"
    _has_bands: ClassVar[bool] = False
    _has_terms: ClassVar[bool] = False

    def _weights(self, problem: QuadraticProblem, facts: PublicFacts | None = None) -> RegressionWeights:
        return ProportionWeights(noise=self.noise)

    def _beside(self, problem: QuadraticProblem) -> tuple[Fraction, Fraction]:
        return Fraction(0), Fraction(0)

    def _scale(self, facts: PublicFacts, problem: QuadraticProblem, weights: ERMPlan) -> ChosenScale:
        return KnownScale()

    def describe(self, fit: RegressionFit, schema: Schema, geometry: Geometry) -> Description:
        """The ridge."""
        return Description({"kind": "ridge", "ridge": fit.ridge})
