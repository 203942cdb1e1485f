"""A perturbed objective, and after it tables for a few pairs of columns: what the sum over columns misses, chosen and
measured privately.

Most of epsilon goes to the perturbed objective. Its weights tell every row's slope, that is, how far the fit misses it.
A pair of columns whose cells have slopes that do not cancel is chosen by permute-and-flip; then one Newton step is made
for every cell of it, from noisy sums of slopes and curvatures; and so on with the next pair. A number by itself, in
fine cells, is one more pair to choose from. Nori, Caruana, Bu, Shen and Kulkarni (ICML 2021) fit additive models to
noisy sums of residuals in this manner, without choosing pairs.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields, replace
from fractions import Fraction
from typing import Any, Literal

import numpy as np

from privfit.losses import LOGISTIC
from privfit.mechanisms.base import PublicFacts, Release
from privfit.mechanisms.perturbation.base import least_noise
from privfit.mechanisms.perturbation.calibration import (
    free_ridge,
    make_objective_noise,
    refuse_gaussian_without_delta,
)
from privfit.mechanisms.perturbation.defaults import automatic_pairs
from privfit.mechanisms.perturbation.interaction_terms import (
    MOST_CELLS,
    MOST_CHOICES,
    STEP_BITS,
    BudgetSplit,
    IntegerGradients,
    InteractionTerms,
    enough_rows,
    integer_weights,
    menu_of,
    sampled_of_256,
    score_bits,
)
from privfit.mechanisms.perturbation.objective import ObjectivePerturbation
from privfit.mechanisms.perturbation.objective_noise import ObjectiveNoise
from privfit.mechanisms.perturbation.plan import ERMPlan
from privfit.mechanisms.perturbation.problem import ERMFit, ERMProblem
from privfit.privacy import Budget, Draws, PrivacyError, exact
from privfit.rows import CachedDesign, Interactions, Pair, Rows, is_alone
from privfit.schema import Geometry
from privfit.statistics import Gradients

MOST_PAIRS = 20


@dataclass(frozen=True)
class PairedPlan(ERMPlan):
    """The plan of a perturbed objective, and that of the interaction terms beside it, if there are any."""

    terms: InteractionTerms | None = None


@dataclass(frozen=True)
class PairedPerturbation(ObjectivePerturbation):
    """A perturbed objective with tables for pairs of columns and numbers by themselves, for logistic regression with
    two classes.

    Parameters
    ----------
    ridge, noise, steepest : as for ObjectivePerturbation, which has the larger part of epsilon here (80% with one pair,
        76% with two); with Gaussian noise it is calibrated so that all steps together cost epsilon and delta.
    pairs : how many pairs are chosen. "auto" is none where rows that are looked at times epsilon (over
        `rows_per_person`) are below 20,000, one from there on, and two from 40,000 on; half as many rows will do where
        noise is Gaussian. It is none where there are more than 5,000 pairs.

    Guarantee: epsilon-DP, or (epsilon, delta)-DP with Gaussian noise, replace-one or add-remove, for persons with at
    most `rows_per_person` rows, in real arithmetic, up to a chance below 2^-64; docs/proofs/pairs.md, Theorems 1 and 2.
    Domain: at least one row, no refused cell, no more rows than stated; docs/proofs/errors-and-stops.md.
    """

    pairs: int | Literal["auto"] = "auto"

    def check(self) -> None:
        """Refuse parameters that mean nothing, before anything is read."""
        super().check()
        whole = isinstance(self.pairs, int | np.integer) and not isinstance(self.pairs, bool)
        if self.pairs != "auto" and not (whole and 0 <= self.pairs <= MOST_PAIRS):
            raise PrivacyError(
                f"interactions={self.pairs!r} was given; it is 'auto' or a whole number from 0 to {MOST_PAIRS}: how "
                "many pairs of columns, or numbers by themselves, get a table. Use 'auto' if in doubt."
            )

    @classmethod
    def of(cls, plain: ObjectivePerturbation, pairs: Any) -> PairedPerturbation:
        """The same perturbed objective, with tables."""
        return cls(**{field.name: getattr(plain, field.name) for field in fields(plain)}, pairs=pairs)

    def plan(self, facts: PublicFacts, problem: ERMProblem) -> PairedPlan:
        """The plan of the perturbed objective, and that of the tables beside it."""
        found = super().plan(facts, problem)
        assert isinstance(found, PairedPlan)
        return found

    def _planned(self, facts: PublicFacts, problem: ERMProblem) -> PairedPlan:
        """Where noise may be Gaussian, kinds are compared beside the tables that pure noise would have."""
        split = BudgetSplit.of(self.number(facts, problem), gaussian=False)
        plan = self._plan_beside(split, facts, problem)
        if plan.event.delta:
            split = BudgetSplit.of(self.number(facts, problem, gaussian=True), gaussian=True)
            plan = replace(self, noise="gaussian")._plan_beside(split, facts, problem)
        return self._with_terms(replace(plan, facts=facts), split)

    def _plan_beside(self, split: BudgetSplit, facts: PublicFacts, problem: ERMProblem) -> ERMPlan:
        """The plan beside this split: pure noise has what it leaves of epsilon, Gaussian noise is calibrated for
        everything together.

        Guarantee: docs/proofs/pairs.md, Theorems 1 and 2.
        """
        if not split.pairs:
            return super()._planned(facts, problem)
        budget, plans = facts.parameters.budget, []
        refuse_gaussian_without_delta(self.noise, budget.delta)
        if self.noise != "gaussian":
            pure = replace(facts.parameters, budget=_share(budget, split.weights))
            plans.append(super()._planned(replace(facts, parameters=pure), problem))
        if budget.delta > 0 and self.noise in ("auto", "gaussian"):
            beside = _WeightsBeside(self.ridge, "gaussian", self.steepest, split.steps(budget.epsilon))
            plans.append(beside._planned(facts, problem))
        return least_noise(plans)

    def _with_terms(self, plan: ERMPlan, split: BudgetSplit) -> PairedPlan:
        inherited = {field.name: getattr(plan, field.name) for field in fields(ERMPlan)}
        if not split.pairs:
            return PairedPlan(**inherited)
        facts, parameters, pairs = plan.facts, plan.facts.parameters, split.pairs
        changed = int(parameters.rows_per_person) * (2 if parameters.adjacency == "replace-one" else 1)
        interactions = Interactions(facts.geometry)
        terms = InteractionTerms(
            IntegerGradients(plan.gradients.loss, changed),
            interactions,
            exact(parameters.budget.epsilon),
            split,
            sampled_of_256(parameters, len(menu_of(interactions)), facts.n_rows),
        )
        event = replace(
            plan.event,
            mechanism=f"{plan.event.mechanism}, {pairs} table{'s' * (pairs > 1)} of columns chosen privately",
            epsilon=parameters.budget.epsilon,
            parts=(*plan.event.parts, *terms.parts()),
        )
        return PairedPlan(**{**inherited, "event": event}, terms=terms)

    def number(self, facts: PublicFacts, problem: ERMProblem, gaussian: bool = False) -> int:
        """How many tables there are, from public facts, beside pure or Gaussian noise."""
        there, parameters, n_rows = len(self._menu(facts.geometry, problem)), facts.parameters, facts.n_rows
        if self.pairs == "auto":
            looked_at = None if n_rows is None or not there else min(n_rows, enough_rows(parameters, there))
            return min(automatic_pairs(parameters, looked_at, gaussian), there)
        if self.pairs > there:
            raise PrivacyError(
                f"interactions={self.pairs!r} was given where {there} pairs of columns, and numbers by themselves, can "
                "have a table: two classes, no kernel, and columns with levels, bins or knots, "
                f"at most {MOST_CELLS} cells a table and {MOST_CHOICES} to choose from. Use 0, or 'auto'."
            )
        return int(self.pairs)

    def _menu(self, geometry: Geometry, problem: ERMProblem) -> list[Pair]:
        """What can have a table, from public facts."""
        fits = problem.loss == LOGISTIC and problem.coupling == "one" and problem.features is None
        if not fits or score_bits(geometry.n_columns) < STEP_BITS:
            return []
        menu = menu_of(Interactions(geometry))
        return menu if len(menu) <= MOST_CHOICES else []

    def _cached(self, rows: Rows, problem: ERMProblem) -> CachedDesign:
        return CachedDesign(rows, problem.features, fine=any(map(is_alone, self._menu(rows.geometry, problem))))

    def draw(self, data: CachedDesign, plan: ERMPlan, draws: Draws) -> ERMFit:
        """Draw the weights; then choose and measure tables by what they leave."""
        assert isinstance(plan, PairedPlan)
        fit, terms = super().draw(data, plan, draws), plan.terms
        if terms is None:
            return fit
        geometry = plan.facts.geometry
        fit, bits = self._solved(fit, plan.event, geometry, plan.problem), score_bits(geometry.n_columns)
        cells = terms.rows(data, draws).cells(integer_weights(fit.weights, bits))
        return replace(fit, pairs=terms.drawn(cells, bits, draws))

    def solve(self, release: Release[ERMFit], geometry: Geometry, problem: ERMProblem) -> ERMFit:
        """What was released; without tables, as for a perturbed objective alone."""
        return release.value if release.value.pairs else super().solve(release, geometry, problem)


@dataclass(frozen=True)
class _WeightsBeside(ObjectivePerturbation):
    """A perturbed objective with Gaussian noise in a release that goes on with pure steps of so many epsilons."""

    steps: tuple[float, ...] = ()

    def _noise(
        self, kind: str, gradients: Gradients, epsilon: float, delta: float, log_determinant: float | None
    ) -> ObjectiveNoise:
        return make_objective_noise(kind, gradients, epsilon, delta, log_determinant, self.steps)

    def _free_ridge(self, noise: ObjectiveNoise, gradients: Gradients, epsilon: float) -> float:
        return free_ridge(noise, gradients, epsilon - sum(self.steps))


def _share(budget: Budget, share: Fraction) -> Budget:
    """A part of epsilon, rounded down, and no delta."""
    part = float(exact(budget.epsilon) * share)
    return Budget(part if exact(part) <= exact(budget.epsilon) * share else math.nextafter(part, 0.0))
