"""Objective perturbation: a random linear term is added to what is minimised."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Literal, Self

import numpy as np
from numpy.typing import NDArray

from privfit.losses import LOGISTIC, tempered_logistic
from privfit.losses.checks import is_positive
from privfit.mechanisms.base import PublicFacts, Release
from privfit.mechanisms.perturbation.base import Calibration, Perturbation, least_noise
from privfit.mechanisms.perturbation.defaults import (
    AUTOMATIC_SLOPE,
    FOR_CERTIFICATE,
    FOR_GRADIENTS,
    MOST_BESIDE_GAUSSIAN,
    MOST_TAPER,
    TERMS_FROM,
    WORTH_BESIDE_GAUSSIAN,
)
from privfit.mechanisms.perturbation.gaussian_noise import gaussian_noise
from privfit.mechanisms.perturbation.interaction_terms import (
    MOST_CELLS,
    MOST_CHOICES,
    BudgetSplit,
    check_interactions,
    enough_rows,
    menu_for,
    planned_terms,
)
from privfit.mechanisms.perturbation.objective_noise import (
    SAFE,
    ObjectiveNoise,
    Price,
    automatic_ridge,
    pure_noise,
)
from privfit.mechanisms.perturbation.precision import (
    OBJECTIVE_TOLERANCE,
    certificate_part,
    minimised,
    most_rows,
    precision_of,
    quiet_ridge,
    smallest_ridge,
    warning_of_ridge,
)
from privfit.mechanisms.perturbation.problem import ERMFit, ERMPlan, ERMProblem, Gradients
from privfit.privacy import Draws, Event, PrivacyError, PrivacyParameters
from privfit.privacy.parts import Part
from privfit.rows import CachedDesign, is_alone
from privfit.schema import Geometry, RowNorms

Floats = NDArray[np.float64]
CALIBRATIONS = ("tight", "paper")
PRINTED_2008 = (
    "calibration='paper' of objective perturbation: the proof of 2008 leaves out the curvature of one row, and the "
    "true epsilon can be many times the stated one where the ridge is small"
)


@dataclass(frozen=True)
class ObjectivePerturbation(Perturbation):
    """Add a random linear term to the objective, and release its minimum.

    Parameters
    ----------
    ridge : float or 'auto', default='auto'
        Factor of half the squared weights, beside the sum of the loss over rows. "auto" follows a public rule: a share
        of the noise. For logistic regression with two classes it also debiases the weights of each column by half of
        the shrinkage that ridge and noise cause, as far as the released weights show it. A ridge below what privacy, or
        a solver that must not fail, needs is raised, and the report says so.
    noise : {'auto', 'laplace', 'l2', 'linf', 'mixed', 'gaussian'}, default='auto'
        The distribution of the random term. "laplace", "l2" and "linf" protect the L1, L2 and L-infinity norm of a
        gradient. "mixed" is K-norm noise with a block norm: blocks of columns (the levels of a category, the knots of a
        number) of about the same width are protected together, against the largest gradient on one of them, with shares
        of epsilon by size. "gaussian" needs a delta. "auto" takes the one with the smallest standard deviation for this
        schema.
    steepest : float or 'auto', default='auto'
        For logistic regression, the Lipschitz constant of the loss. At 1 it is the logistic loss. "auto" is a half:
        rows on the wrong side have gradients no larger than rows at the boundary, which halves the noise; probabilities
        follow from the slopes and stay calibrated.
    interactions : int or 'auto', default=0
        For logistic regression with two classes, how many interaction terms are chosen privately and measured after the
        weights: tables of scores for pairs of columns, and for numbers in fine steps. The weights then have about half
        of epsilon or more, from 80% with one term to 48% with three where rows are many; with Gaussian noise all steps
        are calibrated together. "auto" is none where rows that are looked at times epsilon (over `rows_per_person`) are
        below 20,000, one from there on, two from 40,000 on, and three from 120,000 on; where noise is Gaussian half as
        many rows will do, and two is the most. It is none where there are more than 5,000 candidates.
    calibration : {'tight', 'paper'}, default='tight'
        "paper" is Algorithm 2 of [1]_ as printed, for comparison: noise of density proportional to exp(-epsilon |b| /
        2) for rows of norm 1, whatever the ridge, and a minimum that is taken to be exact. It is NOT private, and a
        ledger is refused. It needs a ridge, n times the paper's lambda, and takes the loss as it is, "l2" noise and no
        interactions.

    See Also
    --------
    OutputPerturbation : Noise on the minimum.
    LogisticRegression : Uses it by default.
    privfit.baselines.PrivateERM : The same with the constants of the paper.

    Notes
    -----
    Guarantee: epsilon-DP, or (epsilon, delta)-DP with Gaussian noise, replace-one or add-remove, for persons with at
    most `rows_per_person` rows, in real arithmetic, up to a probability below 2^-64; docs/proofs/perturbation.md,
    Theorems 1 to 3, and docs/proofs/pairs.md, Theorems 1 and 2, with interaction terms. None with calibration="paper".
    Domain: at least one row, no refused cell, no more rows than stated; docs/proofs/errors-and-stops.md.

    References
    ----------
    .. [1] K. Chaudhuri and C. Monteleoni, "Privacy-preserving logistic regression", NIPS 2008.
    .. [2] K. Chaudhuri, C. Monteleoni and A. D. Sarwate, "Differentially private empirical risk minimization", Journal
       of Machine Learning Research 12, 2011.

    Examples
    --------
    >>> import numpy as np, privfit as pf
    >>> X = np.tile(np.linspace(-1, 1, 200), 50).reshape(-1, 1)
    >>> y = np.where(X[:, 0] > 0.2, "yes", "no")
    >>> mechanism = pf.ObjectivePerturbation(ridge=10.0, noise="l2")
    >>> model = pf.LogisticRegression(mechanism=mechanism, schema=pf.Schema.box(-1, 1, target=["no", "yes"]))
    >>> bool(model.fit(X, y).score(X, y) > 0.8)
    True
    """

    steepest: float | Literal["auto"] = "auto"
    interactions: int | str = field(default=0, repr=False)
    calibration: Literal["tight", "paper"] = "tight"

    name = "objective"
    takes_interactions = takes_weights = covers_absent_rows = True
    _automatic_ridge = staticmethod(automatic_ridge)

    def __init_subclass__(cls, **options: object) -> None:
        """What is derived from it has noise of its own, of which interaction terms and weights of rows know nothing,
        unless it says so.
        """
        super().__init_subclass__(**options)
        cls.takes_interactions = cls.__dict__.get("takes_interactions", False)
        cls.takes_weights = cls.__dict__.get("takes_weights", False)

    def check(self) -> None:
        """Refuse parameters that mean nothing, before anything is read."""
        super().check()
        if self.steepest != "auto" and not (is_positive(self.steepest) and self.steepest <= 1):
            raise PrivacyError(
                f"steepest={self.steepest!r} was given; it is 'auto' or above 0 and at most 1, the logistic loss. Use "
                "'auto' if in doubt."
            )
        if self.interactions not in ("auto", 0):
            check_interactions(self.interactions)
        if self.calibration not in CALIBRATIONS:
            raise PrivacyError(
                f"calibration={self.calibration!r} was given; it is one of {CALIBRATIONS}. Use 'tight' if in doubt."
            )
        if self.calibration == "paper":
            self._check_printed()

    def _check_printed(self) -> None:
        """Refuse what Algorithm 2 of 2008 does not have."""
        if self.ridge == "auto":
            raise PrivacyError(
                "calibration='paper' was given with ridge='auto'; the paper has no rule for it. Give the number of "
                "rows times the paper's lambda, such as ridge=140.0."
            )
        if self.noise not in ("auto", "l2") or self.steepest not in ("auto", 1) or self.interactions != 0:
            raise PrivacyError(
                f"calibration='paper' was given with noise={self.noise!r}, steepest={self.steepest!r} and "
                f"interactions={self.interactions!r}; the paper has noise 'l2', the loss as it is and no interactions. "
                "Leave them out."
            )

    def reasons_not_private(self, problem: ERMProblem) -> tuple[str, ...]:
        """Why its releases are not private, if they are not: the proof of 2008 leaves out the log-determinant term;
        docs/papers.md, b1.
        """
        return (PRINTED_2008,) if self.calibration == "paper" else ()

    def with_loss_as_given(self) -> Self:
        """With the Lipschitz constant of the loss itself, unless another was asked for."""
        return replace(self, steepest=1.0) if self.steepest == "auto" else self

    def with_interactions(self, number: int | str) -> Self:
        """With so many interaction terms after the weights."""
        return replace(self, interactions=number)

    # -- the plan of the weights -------------------------------------------------------------------

    def _calibrated(
        self, kind: str, gradients: Gradients, facts: PublicFacts, beside: tuple[float, ...]
    ) -> Calibration:
        if self.calibration == "paper":
            return self._as_printed(gradients, facts.parameters.budget.epsilon)
        budget, n_rows = facts.parameters.budget, facts.n_rows
        price = Price(budget.epsilon * (1 - FOR_CERTIFICATE) * SAFE, budget.delta, beside)
        if gradients.loss == LOGISTIC and gradients.coupling != "softmax" and self.steepest != 1:
            gradients = self._tempered(kind, gradients, price, n_rows)
        if gradients.loss.most_curvature is None:
            raise PrivacyError(
                f"The {gradients.loss.name} states no most_curvature, and a perturbed objective is private only if "
                "curvature is bounded. State it, or use mechanism='output', which does not need it."
            )
        noise = objective_noise(kind, gradients, price)
        free = noise.ridge_without_cost(gradients, price.epsilon - sum(beside))
        rows = most_rows(facts.parameters, n_rows)
        if self.ridge == "auto":
            least = max(self._automatic_ridge(gradients, noise.sd, n_rows), free if math.isfinite(free) else 0.0)
            ridge = quiet_ridge(gradients, rows, least, noise, price.epsilon)
        else:
            ridge = float(self.ridge)
        if ridge < free:
            ridge = max(ridge, gradients.ridge_for_cost((1 - FOR_GRADIENTS) * price.epsilon))
            noise = objective_noise(kind, gradients, price, gradients.log_determinant_cost(ridge))
            if self.ridge == "auto":  # more noise means longer minima; with a larger ridge curvature costs less
                ridge = quiet_ridge(gradients, rows, ridge, noise, price.epsilon)
        return Calibration(gradients, ridge, noise.sd, noise.delta, noise)

    def _as_printed(self, gradients: Gradients, epsilon: float) -> Calibration:
        """All of epsilon for the linear term, nothing for curvature and the solver, the ridge as it is. NOT private.

        The paper's tables have as many rows: its factor 2 serves add-remove too.
        """
        noise = pure_noise("l2", replace(gradients, replace=True), epsilon)
        return Calibration(gradients, float(self.ridge), noise.sd, noise=noise)

    def _tempered(self, kind: str, gradients: Gradients, price: Price, n_rows: int | None) -> Gradients:
        """The logistic loss with smaller slopes, its curvature falling as quickly as costs nothing."""
        steepest = AUTOMATIC_SLOPE if self.steepest == "auto" else float(self.steepest)
        gentle = replace(gradients, loss=tempered_logistic(steepest, 1.0))
        noise = objective_noise(kind, gentle, price)
        free = noise.ridge_without_cost(gentle, price.epsilon - sum(price.beside))
        ridge = self._automatic_ridge(gentle, noise.sd, n_rows) if self.ridge == "auto" else float(self.ridge)
        taper = min(max(SAFE * ridge / free, 1.0), MOST_TAPER)
        return replace(gradients, loss=tempered_logistic(steepest, taper))

    def _plan_with(self, found: Calibration, facts: PublicFacts, problem: ERMProblem) -> ERMPlan:
        parameters, gradients, noise = facts.parameters, found.gradients, found.noise
        assert noise is not None
        parts: tuple[Part, ...] = noise.parts()
        rows = most_rows(parameters, facts.n_rows)
        precise = partial(precision_of, gradients, rows, noise=noise.bound, tolerance=OBJECTIVE_TOLERANCE)
        ridge = smallest_ridge(found.ridge, lambda ridge: precise(ridge=ridge).solves)  # a larger one costs no more
        precision = precise(ridge=ridge)
        certificate, told, warning = None, ", as printed in 2008", ""
        if self.calibration != "paper":
            certificate, told = certificate_part(gradients, ridge, precision, noise, parameters.budget), ""
            parts = (*parts, certificate)
            warning = "" if self.ridge == "auto" else warning_of_ridge(ridge, certificate.sd)
        event = Event(
            f"objective perturbation{told}",
            parameters.budget.epsilon,
            noise.delta,
            adjacency=parameters.adjacency,
            rows_per_person=int(parameters.rows_per_person),
            parts=parts,
        )
        return ERMPlan(
            event, facts, problem, gradients, ridge, precision, noise.sd, noise, certificate, warning=warning
        )

    # -- the plan of interaction terms -------------------------------------------------------------

    def _planned(self, facts: PublicFacts, problem: ERMProblem) -> ERMPlan:
        number = self._n_interactions(facts, problem)
        if number or (facts.parameters.budget.delta and self._n_interactions(facts, problem, gaussian=True)):
            plan = self._with_interactions(number, facts, problem)
        else:
            plan = self._least_noise(facts, problem, "l2" if self.calibration == "paper" else self.noise)
        if plan.terms is None and (facts.counted or not self.interactions):
            return plan
        return replace(plan, fine=any(map(is_alone, menu_for(facts.geometry, problem))))

    def _with_interactions(self, number: int, facts: PublicFacts, problem: ERMProblem) -> ERMPlan:
        """Where noise may be Gaussian, kinds are compared beside the terms that pure noise would have."""
        signal = self._signal(facts, problem)
        split = BudgetSplit.of(number, gaussian=False, signal=signal)
        plan = self._plan_beside(split, facts, problem)
        if plan.event.delta:
            split = BudgetSplit.of(self._n_interactions(facts, problem, gaussian=True), gaussian=True, signal=signal)
            plan = replace(self, noise="gaussian")._plan_beside(split, facts, problem)
        return planned_terms(replace(plan, facts=facts), split)

    def _plan_beside(self, split: BudgetSplit, facts: PublicFacts, problem: ERMProblem) -> ERMPlan:
        """The plan of the weights beside this split: pure noise has what it leaves of epsilon, Gaussian noise is
        calibrated for everything together.

        Guarantee: docs/proofs/pairs.md, Theorems 1 and 2.
        """
        budget, plans = facts.parameters.budget, []
        if not split.pairs:
            return self._least_noise(facts, problem, self.noise)
        if self.noise != "gaussian":
            pure = replace(facts.parameters, budget=split.left_of(budget))
            plans.append(self._least_noise(replace(facts, parameters=pure), problem, self.noise))
        if self.noise == "gaussian" or (self.noise == "auto" and budget.delta > 0):
            plans.append(self._least_noise(facts, problem, "gaussian", split.steps(budget.epsilon)))
        return least_noise(plans)

    def _n_interactions(self, facts: PublicFacts, problem: ERMProblem, gaussian: bool = False) -> int:
        """How many interaction terms there are, from public facts, beside pure or Gaussian noise; more than there are
        candidates are refused.
        """
        parameters, n_rows = facts.parameters, facts.n_rows
        if not self.interactions:
            return 0
        if self.interactions == "auto" and not automatic_interactions(parameters, n_rows, gaussian):
            return 0  # fewer rows than all may be looked at, never more
        there = len(menu_for(facts.geometry, problem))
        if self.interactions == "auto":
            looked_at = None if n_rows is None or not there else min(n_rows, enough_rows(parameters, there))
            return min(automatic_interactions(parameters, looked_at, gaussian), there)
        if int(self.interactions) > there:
            raise PrivacyError(
                f"interactions={self.interactions!r} was given where {there} pairs of columns, and numbers by "
                "themselves, can have a table: two classes, no kernel, and columns with levels, bins or knots, "
                f"at most {MOST_CELLS} cells a table and {MOST_CHOICES} to choose from. Use 0, or 'auto'."
            )
        return int(self.interactions)

    def _signal(self, facts: PublicFacts, problem: ERMProblem) -> float:
        """Rows that are looked at times epsilon, over rows per person; 0 where the number of rows is not known."""
        there = len(menu_for(facts.geometry, problem))
        if facts.n_rows is None or not there:
            return 0.0
        return signal_of(facts.parameters, min(facts.n_rows, enough_rows(facts.parameters, there)))

    # -- the release -------------------------------------------------------------------------------

    def draw(self, data: CachedDesign, plan: ERMPlan, draws: Draws) -> ERMFit:
        """Draw the linear term, minimise, and add the noise of the certificate; then choose and measure interaction
        terms by the gradients that are left.
        """
        noise, certificate, problem = plan.noise, plan.certificate, plan.problem
        assert noise is not None
        term = noise.by_column(draws.add(np.zeros(plan.gradients.values, dtype=np.int64)))
        weights = minimised(plan, data, term)
        if certificate is not None:
            steps = np.rint(weights * certificate.unit).astype(np.int64)
            weights = np.asarray(draws.add(steps) / certificate.unit, dtype=np.float64)
        loss, n_rows = plan.gradients.loss, plan.facts.n_rows
        told = (problem.coupling, problem.features)
        fit = ERMFit(weights, plan.ridge, loss, *told, n_rows=n_rows, most_weight=problem.most_weight)
        if plan.terms is None:
            return fit
        fit = self._debiased(fit, plan.event, plan.facts.geometry, problem)
        return replace(fit, pairs=plan.terms.drawn(data, fit.weights, draws))

    def solve(self, release: Release[ERMFit], geometry: Geometry, problem: ERMProblem) -> ERMFit:
        """The released weights, debiased unless interaction terms were measured by them."""
        fit = release.value
        return fit if fit.pairs else self._debiased(fit, release.event, geometry, problem)

    def _debiased(self, fit: ERMFit, event: Event, geometry: Geometry, problem: ERMProblem) -> ERMFit:
        """The weights less shrunk, where the ridge was left to the rule and probabilities are wanted."""
        if self.ridge != "auto" or fit.n_rows is None or problem.features is not None:
            return fit
        if problem.loss != LOGISTIC or problem.coupling != "one":
            return fit
        return fit.debiased(RowNorms.of(geometry), geometry.intercept, event.summary.usual_sd)


def objective_noise(
    kind: str, gradients: Gradients, price: Price, log_determinant: float | None = None
) -> ObjectiveNoise:
    """The noise of this kind that costs so much together with the log-determinant term: where that costs this much, or
    nothing if None.

    Guarantee: docs/proofs/perturbation.md, Theorems 1 to 3; docs/proofs/pairs.md, Theorem 2, for steps beside.
    """
    if kind == "gaussian":
        return gaussian_noise(gradients, price.epsilon, price.delta, log_determinant, price.beside)
    return pure_noise(kind, gradients, (price.epsilon - (log_determinant or 0.0)) * SAFE)


# -- what is done where nobody says ------------------------------------------------------------------


def automatic_interactions(parameters: PrivacyParameters, n_rows: int | None, gaussian: bool = False) -> int:
    """How many interaction terms there are where nobody says: none where the number of rows is not known, or too small
    at this epsilon. Beside Gaussian noise they cost less, and there are two at most.
    """
    signal = 0.0 if n_rows is None else signal_of(parameters, n_rows)
    if gaussian:
        return min(sum(WORTH_BESIDE_GAUSSIAN * signal >= least for least in TERMS_FROM), MOST_BESIDE_GAUSSIAN)
    return sum(signal >= least for least in TERMS_FROM)


def signal_of(parameters: PrivacyParameters, n_rows: int) -> float:
    """Rows times epsilon, over rows per person."""
    return n_rows * parameters.budget.epsilon / parameters.rows_per_person
