"""A perturbed objective with what intervals need beside it: two matrices of products of columns, under one charge."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from privfit.losses.tabulated import TabulatedLoss
from privfit.mechanisms.base import Description, Mechanism, Numbers, PublicFacts, Release, ReleasePlan
from privfit.mechanisms.perturbation.base import Perturbation
from privfit.mechanisms.perturbation.bought_moments import FOR_BREAD, FOR_MEAT, BoughtMatrices
from privfit.mechanisms.perturbation.certainty import Certainty, Level
from privfit.mechanisms.perturbation.objective import ObjectivePerturbation
from privfit.mechanisms.perturbation.problem import ERMFit, ERMPlan, ERMProblem
from privfit.mechanisms.perturbation.regression_fit import rounded_down
from privfit.mechanisms.perturbation.sandwich import Sandwich
from privfit.privacy import Draws, Event, PrivacyError, PrivacyParameters
from privfit.rows import CachedDesign, Rows
from privfit.schema import Geometry, Schema

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class IntervalPlan(ReleasePlan):
    """The plan of the weights, and of what is bought after them."""

    weights: ERMPlan
    tables: TabulatedLoss
    matrices: BoughtMatrices


@dataclass(frozen=True)
class CertainFit:
    """Weights as released, and how sure they are."""

    fit: ERMFit
    certainty: Certainty


@dataclass(frozen=True)
class WithIntervals(Mechanism[ERMProblem, IntervalPlan, CachedDesign, CertainFit]):
    """A perturbed objective that buys what confidence intervals need.

    20% of epsilon buys the Hessian of the loss at the released weights, 5% the second moments of the gradients of rows.
    With them the ridge is undone, where noise has not hidden the Hessian, and the covariance of the weights is
    computed.

    Parameters
    ----------
    fit : ObjectivePerturbation
        How weights are fitted.

    Notes
    -----
    Guarantee: epsilon-DP, or (epsilon, delta)-DP with Gaussian noise, replace-one or add-remove, for persons with at
    most `rows_per_person` rows, in real arithmetic, up to a probability below 2^-64; docs/proofs/bought-moments.md,
    Theorem 2.
    Domain: at least one row, no refused cell, no more rows than stated; docs/proofs/errors-and-stops.md.
    """

    fit: Perturbation = field(default_factory=ObjectivePerturbation)

    name = "with intervals"
    solves = "erm"
    many_classes = True  # so that the plan says what intervals are for
    takes_weights = weighs_intervals = True

    def check(self) -> None:
        """Refuse what releases no minimum of a perturbed objective, before anything is read."""
        own = self.fit
        if type(own) is not ObjectivePerturbation or own.calibration != "tight" or own.interactions:
            raise PrivacyError(
                f"intervals=True was given with mechanism={own!r}; intervals need a perturbed objective with "
                "calibration='tight' and without interaction terms. Use mechanism='objective' and interactions=0. "
                "Nothing was charged."
            )
        own.check()

    def for_rows_left_out(self, parameters: PrivacyParameters, slots: int | None) -> PrivacyParameters:
        """As the fit does: noise on sums that is for a row in place of another covers one in place of none."""
        return self.fit.for_rows_left_out(parameters, slots)

    def geometry(self, schema: Schema, problem: ERMProblem, numeric: Numbers = "slope") -> Geometry:
        """How rows are encoded for the fit."""
        return self.fit.geometry(schema, problem, numeric)

    def plan(self, facts: PublicFacts, problem: ERMProblem) -> IntervalPlan:
        """The plan of the weights at 75% of epsilon, with noise on two matrices after them.

        Guarantee: docs/proofs/bought-moments.md, Theorem 2.
        """
        if problem.classes != 1 or problem.features is not None:
            raise PrivacyError(
                "intervals=True was given for more than two classes, a kernel or a bound of norms; intervals are for "
                "one linear predictor of the columns. Fit one class against the rest, or leave out `intervals`. "
                "Nothing was charged."
            )
        budget = facts.parameters.budget
        left = replace(facts.parameters, budget=rounded_down(budget, 1 - FOR_BREAD - FOR_MEAT))
        weights = self.fit.plan(replace(facts, parameters=left), problem)
        tables = TabulatedLoss.of(weights.gradients.loss)
        if tables is None:
            raise PrivacyError(
                f"intervals=True was given with the {problem.loss.name}; intervals are for losses of privfit with "
                "bounded curvature. Leave it out. Nothing was charged."
            )
        matrices = BoughtMatrices.planned(facts, tables.most_curvature, tables.most_square)
        event = Event(
            f"{weights.event.mechanism}, with intervals",
            budget.epsilon,
            weights.event.delta,
            adjacency=facts.parameters.adjacency,
            rows_per_person=int(facts.parameters.rows_per_person),
            parts=(*weights.event.parts, *matrices.parts),
        )
        return IntervalPlan(event, facts, weights, tables, matrices, warning=weights.warning)

    def read(self, rows: Rows, plan: IntervalPlan, problem: ERMProblem, draws: Draws) -> CachedDesign:
        """A cached design of all rows."""
        return self.fit.read(rows, plan.weights, problem, draws)

    def draw(self, data: CachedDesign, plan: IntervalPlan, draws: Draws) -> CertainFit:
        """Fit the weights, then buy both matrices at them."""
        fit = self.fit.draw(data, plan.weights, draws)
        found = plan.matrices.drawn(data, fit.weights, plan.tables.curvature, plan.tables.square, draws)
        return CertainFit(fit, certainty_of(plan.matrices, plan.weights, fit.weights[:, 0], found))

    def solve(self, release: Release[CertainFit], geometry: Geometry, problem: ERMProblem) -> ERMFit:
        """The released weights without the ridge, where that is known to have shrunk them."""
        found = release.value
        return replace(found.fit, weights=found.certainty.weights[:, None], certainty=found.certainty)

    def describe(self, fit: ERMFit, schema: Schema, geometry: Geometry) -> Description:
        """What the fit says, and what was bought."""
        own = self.fit.describe(fit, schema, geometry)
        assert fit.certainty is not None
        return Description(own.repairs, (*own.notes, *fit.certainty.notes()))

    def relative_noise(self, fit: ERMFit, event: Event, geometry: Geometry) -> float | None:
        """Not known: parts of this event are for matrices."""
        return None


def certainty_of(
    matrices: BoughtMatrices,
    weights: ERMPlan,
    released: Floats,
    found: tuple[Floats, Floats],
    wanted: Floats | None = None,
    level_of: Callable[[Sandwich], Level | None] = lambda _: None,
) -> Certainty:
    """How sure released weights are, from both matrices as they were drawn. The Hessian of a `wanted` penalty is part
    of what is estimated; `level_of` says how the intercept was moved after the weights.
    """
    noise, certificate, (bread, meat) = weights.noise, weights.certificate, found
    assert noise is not None
    assert certificate is not None
    sandwich = Sandwich.of(weights.facts.geometry, bread, matrices.bread.sd, wanted)
    penalised = weights.penalised(released[:, None])[:, 0]
    return Certainty.of(
        sandwich,
        released,
        penalised if wanted is None else penalised - wanted @ released,
        meat,
        matrices.meat.sd,
        noise.covariance(),
        certificate.sd,
        weights.penalty_hessian(released[:, None]),
        weights.gradients.loss.taper or 1.0,
        level_of(sandwich),
    )
