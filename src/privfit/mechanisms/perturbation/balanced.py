"""Classes that weigh alike: their counts are bought first, and a perturbed fit weighs rows by what was released."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from privfit.mechanisms.base import Description, PublicFacts, Release
from privfit.mechanisms.perturbation.base import Calibration, Perturbation
from privfit.mechanisms.perturbation.problem import ERMFit, ERMPlan, ERMProblem, Gradients
from privfit.mechanisms.perturbation.regression_fit import rounded_down
from privfit.privacy import Draws, Event, PrivacyParameters, exact
from privfit.privacy.event import laplace_scale
from privfit.privacy.parts import Laplace
from privfit.rows import COUNT_UNIT, CachedDesign, weights_of_classes
from privfit.schema import Geometry, Schema

Floats = NDArray[np.float64]

FOR_COUNTS = Fraction(3, 100)
"""The share of epsilon for the counts of classes: more finds the weights of rare classes more exactly, and leaves less
for the fit. Chosen, not measured: at 2% to 5% counts of thousands are exact enough from an epsilon of .1 on."""
LEAST_COUNTS = 2.0
"""A class counts at least as so many standard deviations of the noise: an empty one gets no weight without bound."""


@dataclass(frozen=True)
class BalancedPlan(ERMPlan):
    """The plan of the fit, with the event of both, and that plan by itself."""

    inner: ERMPlan | None = None


@dataclass(frozen=True)
class BalancedPerturbation(Perturbation):
    """A perturbed fit whose classes weigh alike.

    3% of epsilon buys noisy counts of the classes (of rows with weights, their sums). A row of the rarest class then
    counts 1, and one of any other class less, in proportion to the counts.

    Parameters
    ----------
    ridge : float or 'auto', default='auto'
        Leave it out: the fit has its own.
    noise : str, default='auto'
        Leave it out: the fit has its own.
    fit : ObjectivePerturbation, OutputPerturbation or TunedPerturbation
        How weights are fitted once classes have theirs. Its ridge is beside a sum in which rows of the rarest class
        count 1.

    Notes
    -----
    Guarantee: epsilon-DP, or (epsilon, delta)-DP with Gaussian noise, replace-one or add-remove, for persons with at
    most `rows_per_person` rows, in real arithmetic, up to a probability below 2^-64; docs/proofs/sample-weights.md,
    Theorem 3.
    Domain: at least one row, no refused cell, no more rows than stated; docs/proofs/errors-and-stops.md.
    """

    fit: Perturbation | None = None

    name = "balanced"
    takes_weights = True

    @property
    def _fit(self) -> Perturbation:
        assert self.fit is not None
        return self.fit

    def check(self) -> None:
        """Refuse parameters that mean nothing, before anything is read."""
        self._fit.check()

    def for_rows_left_out(self, parameters: PrivacyParameters, slots: int | None) -> PrivacyParameters:
        """As the fit does: counts are noised for a row in place of another, which covers one in place of none."""
        return self._fit.for_rows_left_out(parameters, slots)

    def reasons_not_private(self, problem: ERMProblem) -> tuple[str, ...]:
        """Those of the fit."""
        return self._fit.reasons_not_private(problem)

    def plan(self, facts: PublicFacts, problem: ERMProblem) -> BalancedPlan:
        """The plan of the fit at 97% of epsilon, with noisy counts before it."""
        budget, epsilon = facts.parameters.budget, exact(facts.parameters.budget.epsilon) * FOR_COUNTS
        left = replace(facts.parameters, budget=rounded_down(budget, 1 - FOR_COUNTS))
        inner = self._fit.plan(replace(facts, parameters=left), problem)
        counts = _counts(facts, max(problem.classes, 2), epsilon)
        event = replace(
            inner.event,
            mechanism=f"{inner.event.mechanism}, classes weighed by noisy counts",
            epsilon=budget.epsilon,
            parts=(counts, *inner.event.parts),
        )
        held = {own.name: getattr(inner, own.name) for own in fields(ERMPlan)}
        return BalancedPlan(**{**held, "event": event, "facts": facts}, inner=inner)

    def draw(self, data: CachedDesign, plan: ERMPlan, draws: Draws) -> ERMFit:
        """Buy the counts, and fit by them."""
        assert isinstance(plan, BalancedPlan)
        assert plan.inner is not None
        counts = plan.event.parts[0]
        assert isinstance(counts, Laplace)
        noisy = draws.add(weights_of_classes(data, counts.size, COUNT_UNIT)) / COUNT_UNIT
        shares = balanced_weights(noisy, LEAST_COUNTS * counts.sd)
        fit = self._fit.draw(data.with_class_weights(shares), plan.inner, draws)
        return replace(fit, class_weights=tuple(shares.tolist()))

    def solve(self, release: Release[ERMFit], geometry: Geometry, problem: ERMProblem) -> ERMFit:
        """As the fit does."""
        found: ERMFit = self._fit.solve(release, geometry, problem)
        return found

    def describe(self, fit: ERMFit, schema: Schema, geometry: Geometry) -> Description:
        """What the fit says, and what rows of each class count."""
        own, target = self._fit.describe(fit, schema, geometry), schema.target
        levels = getattr(target, "levels", ())
        told = ", ".join(f"{level} {share:.3g}" for level, share in zip(levels, fit.class_weights, strict=True))
        note = f"rows count by class, so that classes weigh alike: {told}; noisy counts had 3% of epsilon"
        return Description(own.repairs, (*own.notes, note))

    def relative_noise(self, fit: ERMFit, event: Event, geometry: Geometry) -> float | None:
        """As that of the fit."""
        return self._fit.relative_noise(fit, event, geometry)

    def _calibrated(
        self, kind: str, gradients: Gradients, facts: PublicFacts, beside: tuple[float, ...]
    ) -> Calibration:
        raise NotImplementedError  # the fit has its own

    def _plan_with(self, found: Calibration, facts: PublicFacts, problem: ERMProblem) -> ERMPlan:
        raise NotImplementedError  # the fit has its own


def _counts(facts: PublicFacts, classes: int, epsilon: Fraction) -> Laplace:
    """Noise on how many rows there are of each class, a row of the largest weight being COUNT_UNIT."""
    parameters = facts.parameters
    changed = (2 if parameters.adjacency == "replace-one" else 1) * int(parameters.rows_per_person)
    return Laplace(
        size=classes,
        scale=laplace_scale(changed * COUNT_UNIT, epsilon),
        sensitivity=changed * COUNT_UNIT,
        unit=COUNT_UNIT,
        purpose="counts of classes",
        epsilon=float(epsilon),
    )


def balanced_weights(counts: Floats, least: float) -> Floats:
    """What a row of each class counts: 1 in the smallest, in proportion to one over the count elsewhere."""
    held = np.maximum(counts, max(least, 1.0))
    return np.asarray(held.min() / held, dtype=np.float64)
