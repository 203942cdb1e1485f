"""What objective and output perturbation share: regularised fits of any convex loss that states its Lipschitz constant
and its smoothness.

Chaudhuri and Monteleoni: Privacy-preserving logistic regression, NIPS 2008; Chaudhuri, Monteleoni and Sarwate, JMLR
2011. Here in sum form (the ridge belongs to the sum over rows, not to their mean, so that the number of rows is
nowhere), with the log-determinant term that the first paper forgot, noise in the norm that suits the schema, and a
certificate for what the solver leaves undone.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, replace
from functools import partial
from typing import ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray

from privfit.losses import LOGISTIC
from privfit.losses.checks import is_positive
from privfit.mechanisms.base import Description, Mechanism, Numbers, PublicFacts
from privfit.mechanisms.perturbation.gaussian_noise import MANY_ROWS_PER_PERSON
from privfit.mechanisms.perturbation.objective_noise import PURE_KINDS, ObjectiveNoise
from privfit.mechanisms.perturbation.precision import check_number
from privfit.mechanisms.perturbation.problem import (
    ERMFit,
    ERMPlan,
    ERMProblem,
    Gradients,
    named_pairs,
    usual_curvature,
)
from privfit.privacy import Draws, Event, PrivacyError, PrivacyParameters
from privfit.privacy.event import MOST_SCALE, too_much_noise
from privfit.privacy.parts import Additive
from privfit.rows import CachedDesign, Rows
from privfit.schema import Gaps, Geometry, RowNorms, Schema

Floats = NDArray[np.float64]
NoiseKind = Literal["auto", "laplace", "linf", "l2", "mixed", "gaussian"]

GAUSSIAN_MARGIN = 0.97
"""Gaussian noise is taken where it has at most 97% of the standard deviation of pure noise: less would not pay for a
delta. See docs/constants.md."""
ROUNDED = 1e-9
"""A ridge that is larger by no more than this share was rounded and not raised."""


@dataclass(frozen=True)
class Calibration:
    """Noise of one kind for its price, and the ridge that goes with it: enough to compare kinds by."""

    gradients: Gradients
    ridge: float
    sd: float
    delta: float = 0.0
    noise: ObjectiveNoise | None = None
    """In the objective."""
    part: Additive | None = None
    """On the minimum."""


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
    kinds: ClassVar[tuple[str, ...]] = (*PURE_KINDS, "gaussian")
    perturbs_minimum: ClassVar[bool] = False
    """Whether noise is on the minimum, and not on the gradient."""
    covers_absent_rows: ClassVar[bool] = False
    """Whether the proof for replace-one holds where a row takes the place of none, or none that of a row."""
    has_own_loss: ClassVar[bool] = False
    """Whether it plans with a loss of its own, always the same: tests check what that states, and no plan does."""

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
        encoded = partial(schema.geometry, numeric=numeric, several=True, knots=problem.knots)
        gaps: Gaps = "spline" if problem.features is None else "refused"
        plain = encoded(intercept=False, anchored=anchored, gaps=gaps)
        carried = any(block.kind in ("levels", "spline", "spline-or-missing") for block in plain.blocks)
        if problem.fit_intercept and (problem.features is not None or not carried):
            return encoded(intercept=problem.features is None, gaps=gaps)
        return plain

    def for_rows_left_out(self, parameters: PrivacyParameters, slots: int | None) -> PrivacyParameters:
        """The same parameters where absent rows are covered: such a row has no gradient and no curvature, and
        `PublicFacts.n_rows` is the number of slots.

        Guarantee: docs/proofs/rows-left-out.md, Theorem 3.
        """
        return parameters if self.covers_absent_rows else super().for_rows_left_out(parameters, slots)

    # -- the plan, from public facts ---------------------------------------------------------------

    def plan(self, facts: PublicFacts, problem: ERMProblem) -> ERMPlan:
        """The least noise there is for this schema, and everything that goes with it.

        Where rows have weights, these are measured in the largest, and so is the ridge: then a row adds at most what it
        adds without one (docs/proofs/sample-weights.md, Theorem 2). A stand-in for a number of rows that is not known
        yet is no reason to refuse a fit: one row is asked the least precision of, and the plan is made again when rows
        are counted, before the charge.
        """
        own = self
        if problem.most_weight != 1.0 and self.ridge != "auto":
            own = self.with_ridge(self.ridge / problem.most_weight)
        try:
            return own._planned(facts, problem)
        except PrivacyError:
            if facts.counted:
                raise
            return own._planned(replace(facts, n_rows=1), problem)

    def _planned(self, facts: PublicFacts, problem: ERMProblem) -> ERMPlan:
        """The same, for this number of rows."""
        return self._least_noise(facts, problem, self.noise)

    def _least_noise(
        self, facts: PublicFacts, problem: ERMProblem, noise: NoiseKind, beside: tuple[float, ...] = ()
    ) -> ERMPlan:
        """The plan with this kind of noise, or with the kind that has the least and can be had; where it is Gaussian,
        with pure steps of so many epsilons `beside` it.

        Kinds are compared by their calibration; only the best one is planned in full.
        """
        budget = facts.parameters.budget
        if noise == "gaussian" and budget.delta <= 0:
            raise PrivacyError("noise='gaussian' was given with delta=0; it needs a small delta. Give one: delta=1e-6.")
        if budget.epsilon * MOST_SCALE < 1:
            raise too_much_noise(f"epsilon={budget.epsilon:.3g}")
        gradients = self._gradients(facts, problem)
        useless = {
            "mixed": not gradients.norms.blocks,
            "gaussian": budget.delta <= 0 or gradients.rows_per_person > MANY_ROWS_PER_PERSON,
        }
        kinds = [kind for kind in self.kinds if not useless.get(kind)] if noise == "auto" else [noise]
        found: dict[str, Calibration] = {}
        refused: dict[str, PrivacyError] = {}  # more noise, or other numbers, than a kind can hold
        with np.errstate(all="ignore"):
            for kind in kinds:
                try:
                    found[kind] = self._calibrated(kind, gradients, facts, beside)
                except (ArithmeticError, ValueError) as error:
                    refused[kind] = _refusal(error)
            for kind in sorted(found, key=lambda own: found[own].sd / (GAUSSIAN_MARGIN if found[own].delta else 1)):
                try:
                    return self._plan_with(found[kind], facts, problem)
                except (ArithmeticError, ValueError) as error:
                    refused[kind] = _refusal(error)
        raise refused[kinds[0]]

    def _gradients(self, facts: PublicFacts, problem: ERMProblem) -> Gradients:
        """The gradients of a loss that is checked here, and of the rows of one person.

        It is checked at every plan, because its functions may use what has changed since the last fit. Tests
        check the logistic loss, and those of mechanisms that always have the same.
        """
        loss, target = problem.loss, facts.geometry.target
        is_number = target is not None and target.kind == "slope"
        targets = np.linspace(-1.0, 1.0, 9) if is_number else np.array([-1.0, 1.0])
        if not self.has_own_loss and loss != LOGISTIC:  # equal in its functions and in all that it states
            loss.check(targets)
        if loss.excess_at_zero is None:
            loss = replace(loss, likely_excess=loss.found_excess(targets))
        if loss.most_curvature is None and loss.jumps:
            raise PrivacyError(
                f"The {loss.name} has a slope that jumps, so that no gradient certifies a minimum. Round the corner, "
                "as pf.losses.hinge() does. Nothing was charged."
            )
        parameters = facts.parameters
        norms = RowNorms.of(facts.geometry) if problem.features is None else problem.features.norms
        people, replaced = int(parameters.rows_per_person), parameters.adjacency == "replace-one"
        return Gradients(norms, loss, problem.classes, problem.coupling, people, replaced)

    @abstractmethod
    def _calibrated(
        self, kind: str, gradients: Gradients, facts: PublicFacts, beside: tuple[float, ...]
    ) -> Calibration:
        """How much noise of this kind the price needs, and with which ridge."""

    @abstractmethod
    def _plan_with(self, found: Calibration, facts: PublicFacts, problem: ERMProblem) -> ERMPlan:
        """The whole plan with noise that is calibrated."""

    # -- the release -------------------------------------------------------------------------------

    def read(self, rows: Rows, plan: ERMPlan, problem: ERMProblem, draws: Draws) -> CachedDesign:
        """A cached design of all rows."""
        weights = problem.class_weights
        by_class = np.array(weights) / max(weights) if weights else None
        design = CachedDesign(rows, problem.features, fine=plan.fine, by_class=by_class)
        if plan.facts.parameters.adjacency == "add-remove":
            check_number(design.n_rows, plan.facts.parameters)
        return design

    def describe(self, fit: ERMFit, schema: Schema, geometry: Geometry) -> Description:
        """What was minimised, what was chosen and what was done to the weights, in sentences for a report."""
        over = "over its part of the rows" if fit.setting else "over all rows"
        ridge = fit.ridge * fit.most_weight
        notes = [f"minimises the {fit.loss.name} {over}, plus {ridge:.4g} / 2 times the squared weights"]
        if fit.setting:
            notes.append(
                f"chosen privately, by mistakes on other rows: {fit.setting}; the noise stated is the largest of all "
                "candidates"
            )
        if fit.stretches:
            notes.append(
                f"weights were stretched {min(fit.stretches):.3g} to {max(fit.stretches):.3g} times, column by "
                "column, to undo half of what ridge and noise did to them; this costs nothing"
            )
        if fit.pairs:
            notes.append(
                "adds tables of scores, chosen privately where the rest of the fit misses most: "
                f"{named_pairs(fit.pairs, schema)}"
            )
        if isinstance(self.ridge, float | int) and ridge > self.ridge * (1 + ROUNDED):
            notes.append(
                f"the ridge was raised from {self.ridge:g}: below that, curvature would cost more than its share of "
                "epsilon, or no solver could promise a minimum for every table"
            )
        return Description({"kind": "ridge", "ridge": ridge}, tuple(notes))

    def relative_noise(self, fit: ERMFit, event: Event, geometry: Geometry) -> float | None:
        """The standard deviation of the noise on the score of a row, over what all rows together can say about it; None
        where the number of rows is not public.

        Where noise is large, so is the ridge, and weights are about minus (gradient at zero + noise) / ridge: the ridge
        cancels. Noise b with standard deviation s per weight changes the score of a row x by b'x, which has a standard
        deviation of s |x|. Each of n rows changes it by at most g |x|^2, g being the Lipschitz constant of the loss;
        but rows agree in few columns and have both classes, and what is left is nearer to g a row, whatever the number
        of columns (found on generated tables). Hence s |x| / (n g).

        Noise on the minimum is that on the gradient divided by the Hessian, so it is multiplied by ridge and usual
        curvature first.
        """
        lipschitz = fit.loss.most_slope
        if fit.n_rows is None or not lipschitz:
            return None
        sd, norms = event.summary.usual_sd, RowNorms.of(geometry) if fit.features is None else fit.features.norms
        if self.perturbs_minimum:
            sd *= fit.ridge + fit.n_rows * usual_curvature(fit.loss, fit.coupling) * norms.l2**2 / norms.columns
        return sd * norms.l2 / (fit.n_rows * lipschitz)

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


def least_noise(plans: list[ERMPlan]) -> ERMPlan:
    """The plan with the least noise; a Gaussian one only where it is clearly less."""
    return min(plans, key=lambda plan: plan.sd / (GAUSSIAN_MARGIN if plan.event.delta else 1))


def _refusal(error: Exception) -> PrivacyError:
    """The error itself, or one in words where numbers ran out of range."""
    if isinstance(error, PrivacyError):
        return error
    return PrivacyError(
        "The ridge, epsilon, the loss and the bounds that were given lead to numbers beyond all floats. "
        "Use units in which they are of usual size. Nothing was charged."
    )
