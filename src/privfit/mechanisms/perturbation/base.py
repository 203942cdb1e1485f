"""What objective and output perturbation share: regularised fits of any convex loss that states its Lipschitz constant
and its smoothness.

Chaudhuri and Monteleoni: Privacy-preserving logistic regression, NIPS 2008; Chaudhuri, Monteleoni and Sarwate, JMLR
2011. Here in sum form (the ridge belongs to the sum over rows, not to their mean, so that the number of rows is
nowhere), with the log-determinant term that the first paper forgot, noise in the norm that suits the schema, and a
certificate for what the solver leaves undone.
"""

from __future__ import annotations

import warnings
from abc import abstractmethod
from dataclasses import dataclass, replace
from typing import ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray

from privfit.features import RowNorms
from privfit.losses.convex import is_positive
from privfit.mechanisms.base import Description, Mechanism, Numbers, PublicFacts
from privfit.mechanisms.perturbation.calibration import KINDS, candidates, refuse_gaussian_without_delta
from privfit.mechanisms.perturbation.certified_minimum import check_number
from privfit.mechanisms.perturbation.noise_level import relative_noise
from privfit.mechanisms.perturbation.plan import ERMPlan
from privfit.mechanisms.perturbation.problem import ERMFit, ERMProblem
from privfit.privacy import Draws, Event, PrivacyError, PrivacyWarning, exact
from privfit.privacy.event import laplace_scale
from privfit.rows import CachedDesign, Rows
from privfit.schema import Geometry, Schema
from privfit.statistics import Gradients

Floats = NDArray[np.float64]
NoiseKind = Literal["auto", "laplace", "linf", "l2", "mixed", "gaussian"]

GAUSSIAN_MARGIN = 0.97
"""Gaussian noise is taken where it has at most 97% of the standard deviation of pure noise: less would not pay for a
delta."""
LARGE_CERTIFICATE = 0.5
"""A user's ridge so small that noise for the solver's precision has a standard deviation above this, on weights that
are mostly below 1, is warned of."""


@dataclass(frozen=True)
class Perturbation(Mechanism[ERMProblem, ERMPlan, CachedDesign, ERMFit]):
    """What both mechanisms share.

    Guarantee: that of the mechanism; docs/proofs/perturbation.md.
    """

    ridge: float | Literal["auto"] = "auto"
    noise: NoiseKind = "auto"

    name = "perturbation"
    solves = "erm"
    chooses_encoding = True
    many_classes = True
    numeric: ClassVar[Numbers] = "splines"
    kinds: ClassVar[tuple[str, ...]] = KINDS
    perturbs_minimum: ClassVar[bool] = False
    """Whether noise is on the minimum, and not on the gradient."""

    def check(self) -> None:
        """Refuse parameters that mean nothing, before anything is read."""
        if self.ridge != "auto" and not is_positive(self.ridge):
            raise PrivacyError(
                f"ridge={self.ridge!r} was given; it is 'auto' or a positive number, and multiplies half the squared "
                "weights beside a sum over rows. Use 'auto' if in doubt."
            )
        if self.noise not in ("auto", *self.kinds):
            raise PrivacyError(
                f"noise={self.noise!r} was given; it is one of {('auto', *self.kinds)}. Use 'auto' if in doubt."
            )

    def geometry(self, schema: Schema, problem: ERMProblem, numeric: Numbers = "slope") -> Geometry:
        """How rows are encoded: without an intercept column where a category carries the constant already, because
        every column counts.
        """
        anchored: Literal["no", "all"] = "no" if problem.fit_intercept else "all"
        plain = schema.geometry(numeric=numeric, intercept=False, several=True, anchored=anchored, knots=problem.knots)
        if problem.fit_intercept and (
            problem.features is not None or plain.count("levels") + plain.count("spline") == 0
        ):
            return schema.geometry(
                numeric=numeric, intercept=problem.features is None, several=True, knots=problem.knots
            )
        return plain

    # -- the plan, from public facts ---------------------------------------------------------------

    def plan(self, facts: PublicFacts, problem: ERMProblem) -> ERMPlan:
        """The least noise there is for this schema, and everything that goes with it.

        A stand-in for a number of rows that is not known yet is no reason to refuse a fit: one row is asked the least
        precision of, and the plan is made again when rows are counted, before the charge.
        """
        try:
            return self._planned(facts, problem)
        except PrivacyError:
            if facts.counted:
                raise
            return self._planned(replace(facts, n_rows=1), problem)

    def _planned(self, facts: PublicFacts, problem: ERMProblem) -> ERMPlan:
        """The same, for this number of rows: the least noise of all kinds that can be had."""
        budget = facts.parameters.budget
        refuse_gaussian_without_delta(self.noise, budget.delta)
        laplace_scale(1, exact(budget.epsilon))  # refuses an epsilon that no noise can serve
        gradients = self._gradients(facts, problem)
        kinds = (
            (self.noise,)
            if self.noise != "auto"
            else tuple(kind for kind in candidates(gradients, budget.delta) if kind in self.kinds)
        )
        plans: list[ERMPlan] = []
        refusals: list[PrivacyError] = []
        for kind in kinds:
            try:
                with np.errstate(all="ignore"):
                    plans.append(self._plan_of_kind(kind, gradients, facts, problem))
            except PrivacyError as error:  # more noise than this kind can hold
                refusals.append(error)
            except (ArithmeticError, ValueError):
                refusals.append(_beyond_floats())
        if not plans:
            raise refusals[0]
        return least_noise(plans)

    @abstractmethod
    def _plan_of_kind(self, kind: str, gradients: Gradients, facts: PublicFacts, problem: ERMProblem) -> ERMPlan:
        """The plan with noise of one kind."""

    def _gradients(self, facts: PublicFacts, problem: ERMProblem) -> Gradients:
        loss, targets = problem.loss, _targets(facts.geometry)
        loss.check(targets)
        if loss.excess_at_zero is None:
            loss = replace(loss, likely_excess=loss.found_excess(targets))
        if loss.most_curvature is None and loss.jumps:
            raise PrivacyError(
                f"The {loss.name} has a slope that jumps, so that no gradient certifies a minimum. Round the corner, "
                "as pf.losses.hinge() does. Nothing was charged."
            )
        parameters = facts.parameters
        rows_per_person, replaced = int(parameters.rows_per_person), parameters.adjacency == "replace-one"
        return Gradients(
            problem.norms(facts.geometry), loss, problem.classes, problem.coupling, rows_per_person, replaced
        )

    # -- the release -------------------------------------------------------------------------------

    def read(self, rows: Rows, plan: ERMPlan, problem: ERMProblem, draws: Draws) -> CachedDesign:
        """A cached design of all rows."""
        kept = self._cached(rows, problem)
        check_number(kept.n_rows, plan.facts.parameters)
        return kept

    def _cached(self, rows: Rows, problem: ERMProblem) -> CachedDesign:
        return CachedDesign(rows, problem.features)

    def warn(self, plan: ERMPlan) -> None:
        """Warn where noise for the solver's precision will be larger than the weights."""
        certificate = plan.certificate
        if self.ridge != "auto" and certificate is not None and certificate.sd > LARGE_CERTIFICATE:
            warnings.warn(
                f"The ridge of {plan.ridge:.3g} is so small that every weight has noise of about "
                f"{certificate.sd:.3g} for the precision of the solver alone. Use a larger one, or 'auto'.",
                PrivacyWarning,
                stacklevel=2,
            )

    def draw(self, data: CachedDesign, plan: ERMPlan, draws: Draws) -> ERMFit:
        """Draw, and minimise until the gradient is certified."""
        problem = plan.problem
        return ERMFit(
            self.perturbed(data, plan, draws),
            plan.ridge,
            plan.gradients.loss,
            problem.coupling,
            problem.features,
            n_rows=plan.facts.n_rows,
        )

    def describe(self, fit: ERMFit, schema: Schema, geometry: Geometry) -> Description:
        """What was minimised, and what was done to the weights afterwards."""
        notes = fit.described(schema)
        if isinstance(self.ridge, float | int) and fit.ridge > self.ridge:
            notes.append(
                f"the ridge was raised from {self.ridge:g}: below that, curvature would cost more than its share of "
                "epsilon, or no solver could promise a minimum for every table"
            )
        return Description({"kind": "ridge", "ridge": fit.ridge}, tuple(notes))

    def relative_noise(self, fit: ERMFit, event: Event, geometry: Geometry) -> float | None:
        """The noise on the gradient beside the largest sum of gradients that rows can have."""
        norms = RowNorms.of(geometry) if fit.features is None else fit.features.norms
        return relative_noise(fit, event, norms, on_minimum=self.perturbs_minimum)

    def with_ridge(self, ridge: float) -> Self:
        """Return the same mechanism with this ridge, checked.

        Parameters
        ----------
        ridge : float
            Factor of half the squared weights.

        Returns
        -------
        Self
            The new mechanism.

        Raises
        ------
        PrivacyError
            If the ridge has no meaning.
        """
        made = replace(self, ridge=ridge)
        made.check()
        return made

    def with_loss_as_given(self) -> Self:
        """Return the same mechanism for a loss that is not to be replaced by one with smaller slopes.

        Returns
        -------
        Self
            The mechanism.
        """
        return self

    @abstractmethod
    def perturbed(self, kept: CachedDesign, plan: ERMPlan, draws: Draws) -> Floats:
        """Return the noisy weights.

        Parameters
        ----------
        kept : CachedDesign
            The cached rows.
        plan : ERMPlan
            The plan.
        draws : Draws
            Hands out the parts of the event.

        Returns
        -------
        ndarray of shape (n_columns, n_classes)
            The weights.
        """


def least_noise(plans: list[ERMPlan]) -> ERMPlan:
    """The plan with the least noise; a Gaussian one only where it is clearly less."""
    return min(plans, key=lambda plan: plan.sd / GAUSSIAN_MARGIN if plan.event.delta else plan.sd)


def _beyond_floats() -> PrivacyError:
    return PrivacyError(
        "The ridge, epsilon, the loss and the bounds that were given lead to numbers beyond all floats. "
        "Use units in which they are of usual size. Nothing was charged."
    )


def _targets(geometry: Geometry) -> Floats:
    """Targets to check a loss at."""
    target = geometry.target
    return np.linspace(-1.0, 1.0, 9) if target is not None and target.kind == "slope" else np.array([-1.0, 1.0])
