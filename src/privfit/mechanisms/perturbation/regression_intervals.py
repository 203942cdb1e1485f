"""A regression by a perturbed objective with what intervals need beside it: two matrices of products of columns, under
one charge.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from privfit.mechanisms.base import Description, Mechanism, Numbers, PublicFacts, Release, ReleasePlan
from privfit.mechanisms.functional.problem import QuadraticProblem
from privfit.mechanisms.perturbation.bought_moments import FOR_BREAD, FOR_MEAT, BoughtMatrices
from privfit.mechanisms.perturbation.certainty import Level
from privfit.mechanisms.perturbation.regression import ObjectiveRegression, RegressionPlan
from privfit.mechanisms.perturbation.regression_fit import RegressionFit, rounded_down
from privfit.mechanisms.perturbation.sandwich import Sandwich
from privfit.mechanisms.perturbation.with_intervals import certainty_of
from privfit.privacy import Draws, Event, PrivacyError, PrivacyParameters
from privfit.rows import CachedDesign, Rows
from privfit.schema import Geometry, Schema

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class RegressionIntervalPlan(ReleasePlan):
    """The plan of the fit, and of what is bought after it."""

    fit: RegressionPlan
    matrices: BoughtMatrices
    wanted: Floats | None
    """The Hessian of the penalty that was asked for, which is part of what is estimated; None where it follows a public
    rule, and is undone."""


@dataclass(frozen=True)
class RegressionIntervals(Mechanism[QuadraticProblem, RegressionIntervalPlan, CachedDesign, RegressionFit]):
    """A regression by a perturbed objective that buys what confidence intervals need.

    20% of epsilon buys the Hessian of the loss at the released weights, 5% the second moments of the gradients of rows;
    the rest is for the fit. With them the penalty is undone, where noise has not hidden the Hessian, and the covariance
    of the weights is computed.

    Parameters
    ----------
    fit : ObjectiveRegression
        How weights are fitted.

    Notes
    -----
    Guarantee: epsilon-DP, or (epsilon, delta)-DP with Gaussian noise, replace-one or add-remove, for persons with at
    most `rows_per_person` rows, in real arithmetic, up to a probability below 2^-64; docs/proofs/bought-moments.md,
    Theorem 3.
    Domain: at least one row, no refused cell, no more rows than stated; docs/proofs/errors-and-stops.md.
    """

    fit: ObjectiveRegression = field(default_factory=ObjectiveRegression)

    name = "regression with intervals"
    solves = "regression with intervals"
    takes_splines = takes_weights = weighs_intervals = True

    def check(self) -> None:
        """Refuse what releases more than weights, before anything is read."""
        if not isinstance(self.fit, ObjectiveRegression) or self.fit.bands:
            raise PrivacyError(
                f"intervals=True was given with mechanism={self.fit!r}; intervals need a perturbed objective without "
                "bands. Use mechanism='objective'. Nothing was charged."
            )
        self.fit.check()

    def settle(self, problem: QuadraticProblem) -> QuadraticProblem:
        """As the fit takes it."""
        return self.fit.settle(problem)

    def for_rows_left_out(self, parameters: PrivacyParameters, slots: int | None) -> PrivacyParameters:
        """As the fit does: noise on sums that is for a row in place of another covers one in place of none."""
        return self.fit.for_rows_left_out(parameters, slots)

    def geometry(self, schema: Schema, problem: QuadraticProblem, numeric: Numbers = "slope") -> Geometry:
        """How rows are encoded for the fit."""
        return self.fit.geometry(schema, problem, numeric)

    def plan(self, facts: PublicFacts, problem: QuadraticProblem) -> RegressionIntervalPlan:
        """The plan of the fit at 75% of epsilon, with noise on two matrices after it.

        Guarantee: docs/proofs/bought-moments.md, Theorem 3.
        """
        if problem.penalty is not None and problem.penalty.l1_ratio:
            raise PrivacyError(
                "intervals=True was given with mechanism='objective' and a penalty on absolute values, which decides "
                "which coefficients are zero; intervals of those are not known. Use Ridge, or mechanism='functional'. "
                "Nothing was charged."
            )
        budget = facts.parameters.budget
        left = replace(facts.parameters, budget=rounded_down(budget, 1 - FOR_BREAD - FOR_MEAT))
        fit = self.fit.plan(replace(facts, parameters=left), problem)
        tables = self.fit.answers(fit.weights.gradients.loss, fit)
        matrices = BoughtMatrices.planned(facts, tables.most_curvature, tables.most_square)
        event = Event(
            f"{fit.event.mechanism}, with intervals",
            budget.epsilon,
            fit.event.delta,
            adjacency=facts.parameters.adjacency,
            rows_per_person=int(facts.parameters.rows_per_person),
            parts=(*fit.event.parts, *matrices.parts),
        )
        wanted = fit.steps.wanted(facts.geometry)
        return RegressionIntervalPlan(event, facts, fit, matrices, wanted, warning=fit.warning)

    def read(self, rows: Rows, plan: RegressionIntervalPlan, problem: QuadraticProblem, draws: Draws) -> CachedDesign:
        """A cached design of all rows."""
        return self.fit.read(rows, plan.fit, problem, draws)

    def draw(self, data: CachedDesign, plan: RegressionIntervalPlan, draws: Draws) -> RegressionFit:
        """Fit, then buy both matrices at the released weights."""
        fit = self.fit.draw(data, plan.fit, draws)
        first = plan.fit.weights
        assert first.certificate is not None
        own = plan.fit.steps.at(first, fit.centre, fit.threshold, first.certificate.unit)
        tables, released = self.fit.answers(own.gradients.loss, plan.fit), fit.weights / fit.unit
        found = plan.matrices.drawn(data, released[:, None], tables.curvature, tables.square, draws)

        def level_of(sandwich: Sandwich) -> Level | None:
            if not plan.fit.intercept:
                return None
            return Level.of(plan.facts.geometry, sandwich, lambda rows: self.fit.noise_on_level(fit, plan.fit, rows))

        return replace(fit, certainty=certainty_of(plan.matrices, own, released, found, plan.wanted, level_of))

    def solve(self, release: Release[RegressionFit], geometry: Geometry, problem: QuadraticProblem) -> RegressionFit:
        """The released weights without the penalty, where that is known to have shrunk them."""
        fit = release.value
        assert fit.certainty is not None
        own = replace(fit, weights=fit.certainty.weights * fit.unit)
        return self.fit.solve(replace(release, value=own), geometry, problem)

    def describe(self, fit: RegressionFit, schema: Schema, geometry: Geometry) -> Description:
        """What the fit says, and what was bought."""
        own = self.fit.describe(fit, schema, geometry)
        assert fit.certainty is not None
        return Description(own.repairs, (*own.notes, *fit.certainty.notes()))
