"""Objective perturbation: a random linear term is added to what is minimised."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray

from privfit.losses import LOGISTIC, tempered_logistic
from privfit.losses.convex import is_positive
from privfit.mechanisms.base import PublicFacts, Release
from privfit.mechanisms.perturbation.base import Perturbation
from privfit.mechanisms.perturbation.calibration import free_ridge, make_objective_noise
from privfit.mechanisms.perturbation.certified_minimum import minimised
from privfit.mechanisms.perturbation.debiasing import debiased
from privfit.mechanisms.perturbation.defaults import FOR_CERTIFICATE, automatic_ridge
from privfit.mechanisms.perturbation.objective_noise import SAFE, ObjectiveNoise
from privfit.mechanisms.perturbation.plan import ERMPlan, with_certificate
from privfit.mechanisms.perturbation.precision import most_rows, objective_precision, quiet_ridge, solvable_ridge
from privfit.mechanisms.perturbation.problem import ERMFit, ERMProblem
from privfit.privacy import Draws, Event, PrivacyError
from privfit.rows import CachedDesign
from privfit.schema import Geometry
from privfit.statistics import Gradients

Floats = NDArray[np.float64]

FOR_GRADIENTS = 0.8
"""The share of epsilon that gradients have where the log-determinant term costs something; the ridge is raised until it
costs no more than the rest."""
AUTOMATIC_SLOPE = 0.5
"""The Lipschitz constant of the tempered logistic loss where nobody says: python papers/experiments/classifiers.py."""
MOST_TAPER = 50.0


@dataclass(frozen=True)
class ObjectivePerturbation(Perturbation):
    """Add a random linear term to the objective, and release its minimum.

    Parameters
    ----------
    ridge : float or 'auto', default='auto'
        Factor of half the squared weights, beside the sum of the loss over rows. "auto" follows a public rule: a share
        of the noise. For logistic regression with two classes it also debiases the weights of each column by half of
        the shrinkage that ridge and noise cause, as far as the released weights tell. A ridge below what privacy, or a
        solver that must not fail, needs is raised, and the report says so.
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

    See Also
    --------
    OutputPerturbation : Sampler on the minimum.
    LogisticRegression : Uses it by default.
    privfit.baselines.PrivateERM : The same with the constants of the paper.

    Notes
    -----
    Guarantee: epsilon-DP, or (epsilon, delta)-DP with Gaussian noise, replace-one or add-remove, for persons with at
    most `rows_per_person` rows, in real arithmetic, up to a probability below 2^-64; docs/proofs/perturbation.md,
    Theorems 1 to 3.
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

    name = "objective"
    takes_interactions = True

    def __init_subclass__(cls, **options: Any) -> None:
        """What is derived from it has noise of its own, of which interaction terms know nothing."""
        super().__init_subclass__(**options)
        cls.takes_interactions = cls.__dict__.get("takes_interactions", False)

    def check(self) -> None:
        """Refuse parameters that mean nothing, before anything is read."""
        super().check()
        if self.steepest != "auto" and not (is_positive(self.steepest) and self.steepest <= 1):
            raise PrivacyError(
                f"steepest={self.steepest!r} was given; it is 'auto' or above 0 and at most 1, the logistic loss. Use "
                "'auto' if in doubt."
            )

    def with_loss_as_given(self) -> Self:
        """With the largest slope of the loss itself, unless another was asked for."""
        return replace(self, steepest=1.0) if self.steepest == "auto" else self

    def _plan_of_kind(self, kind: str, gradients: Gradients, facts: PublicFacts, problem: ERMProblem) -> ERMPlan:
        budget = facts.parameters.budget
        epsilon, delta = budget.epsilon * (1 - FOR_CERTIFICATE) * SAFE, budget.delta
        if gradients.loss == LOGISTIC and gradients.coupling != "softmax" and self.steepest != 1:
            gradients = self._tempered(kind, gradients, epsilon, delta, facts.n_rows)
        if gradients.loss.most_curvature is None:
            raise PrivacyError(
                f"The {gradients.loss.name} states no most_curvature, and a perturbed objective is private only if "
                "curvature is bounded. "
                "State it, or use mechanism='output', which does not need it."
            )
        rows = most_rows(facts.parameters, facts.n_rows)
        noise = self._noise(kind, gradients, epsilon, delta, None)
        free = self._free_ridge(noise, gradients, epsilon)
        ridge = self._ridge(gradients, noise, facts.n_rows)
        if self.ridge == "auto":
            ridge = quiet_ridge(gradients, rows, max(ridge, free if math.isfinite(free) else 0.0), noise, epsilon)
        if ridge < free:
            ridge = max(ridge, gradients.forced_ridge((1 - FOR_GRADIENTS) * epsilon))
            noise = self._noise(kind, gradients, epsilon, delta, gradients.bend_cost(ridge))
            if self.ridge == "auto":  # more noise means longer minima; with a larger ridge curvature costs less
                ridge = quiet_ridge(gradients, rows, ridge, noise, epsilon)
        ridge = solvable_ridge(gradients, rows, ridge, noise)
        return objective_plan("objective perturbation", facts, problem, gradients, ridge, noise)

    def _noise(
        self, kind: str, gradients: Gradients, epsilon: float, delta: float, log_determinant: float | None
    ) -> ObjectiveNoise:
        return make_objective_noise(kind, gradients, epsilon, delta, log_determinant)

    def _free_ridge(self, noise: ObjectiveNoise, gradients: Gradients, epsilon: float) -> float:
        return free_ridge(noise, gradients, epsilon)

    def _ridge(self, gradients: Gradients, noise: ObjectiveNoise, n_rows: int | None) -> float:
        return automatic_ridge(gradients, noise.sd, n_rows) if self.ridge == "auto" else float(self.ridge)

    def _tempered(self, kind: str, gradients: Gradients, epsilon: float, delta: float, n_rows: int | None) -> Gradients:
        """The logistic loss with smaller slopes, curved as sharply as costs nothing."""
        steepest = AUTOMATIC_SLOPE if self.steepest == "auto" else float(self.steepest)
        gentle = replace(gradients, loss=tempered_logistic(steepest, 1.0))
        noise = self._noise(kind, gentle, epsilon, delta, None)
        ridge = self._ridge(gentle, noise, n_rows)
        taper = min(max(SAFE * ridge / self._free_ridge(noise, gentle, epsilon), 1.0), MOST_TAPER)
        return replace(gradients, loss=tempered_logistic(steepest, taper))

    def perturbed(self, kept: CachedDesign, plan: ERMPlan, draws: Draws) -> Floats:
        """The minimum of the perturbed objective, with the noise of its certificate."""
        assert plan.noise is not None
        assert plan.certificate is not None
        found, unit = minimised(plan, kept, plan.noise.drawn(draws)), plan.certificate.unit
        return np.asarray(draws.add(np.rint(found * unit).astype(np.int64)) / unit, dtype=np.float64)

    def solve(self, release: Release[ERMFit], geometry: Geometry, problem: ERMProblem) -> ERMFit:
        """The released weights, less shrunk where the ridge was left to the rule and probabilities are wanted."""
        return self._solved(release.value, release.event, geometry, problem)

    def _solved(self, fit: ERMFit, event: Event, geometry: Geometry, problem: ERMProblem) -> ERMFit:
        if self.ridge != "auto" or fit.n_rows is None or problem.features is not None:
            return fit
        if problem.loss != LOGISTIC or problem.coupling != "one":
            return fit
        return debiased(fit, problem.norms(geometry), geometry.intercept, event.usual_sd, fit.n_rows)


def objective_plan(
    mechanism: str,
    facts: PublicFacts,
    problem: ERMProblem,
    gradients: Gradients,
    ridge: float,
    noise: ObjectiveNoise,
) -> ERMPlan:
    """The plan of a perturbed objective with this noise and this ridge, which a solver can promise a minimum for."""
    parameters = facts.parameters
    event = Event(
        mechanism,
        parameters.budget.epsilon,
        noise.delta,
        adjacency=parameters.adjacency,
        rows_per_person=int(parameters.rows_per_person),
        parts=noise.parts(),
    )
    precision = objective_precision(gradients, most_rows(parameters, facts.n_rows), ridge, noise)
    return with_certificate(ERMPlan(event, facts, problem, gradients, ridge, precision, noise.sd, noise))
