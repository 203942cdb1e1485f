"""The weights of a regression by a perturbed objective, in units of a threshold that is chosen privately."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from privfit.losses import ConvexLoss, tapered_huber
from privfit.mechanisms.base import PublicFacts
from privfit.mechanisms.perturbation.absolute_penalty import SHARPNESS, AbsolutePenalty
from privfit.mechanisms.perturbation.base import Calibration
from privfit.mechanisms.perturbation.objective import ObjectivePerturbation
from privfit.mechanisms.perturbation.objective_noise import ObjectiveNoise
from privfit.mechanisms.perturbation.penalty_matrix import PenaltyMatrix
from privfit.mechanisms.perturbation.precision import (
    certificate_part,
    finest,
    most_rows,
    precision_of,
    quiet_ridge,
)
from privfit.mechanisms.perturbation.problem import ERMPlan, ERMProblem, Gradients
from privfit.mechanisms.perturbation.target_scale import LEAST_THRESHOLD
from privfit.schema import Geometry

Floats = NDArray[np.float64]

TAPER = 2.0
"""The self-bound of the loss: a larger one keeps more of the square and needs more ridge. Chosen in ALGORITHMS' recipe,
where 1.3 and 4 were worse."""
CONTRAST_RIDGE = 0.7
"""The penalty on contrasts and single columns, in units of the noise times the root of the number of blocks: more
shrinks effects, less keeps noise. papers/experiments/regression.py."""
CONTRAST_ABSOLUTE = 1.0
"""The automatic penalty on absolute values, in standard deviations of the noise on a weight's gradient: more makes more
coefficients zero and explains less, less keeps noise: papers/experiments/regression.py."""
QUIET_WEIGHTS, QUIET_SHARE = 1e-3, 0.2
"""The ridge is raised until the noise for the solver's precision has at most this standard deviation on a weight, in
units of the threshold, or a fifth of what the objective noise has over the number of rows. Less noise, more shrinkage:
papers/experiments/regression.py."""
ABSOLUTE_ENOUGH = 2.0
"""A penalty of so many times the most that rows and noise can weigh against it is no stronger than a larger one."""
TOLERANCE = 1e-7
"""The gradient that may be left, as a share of its sensitivity: effects in units of the threshold are smaller than
those of classes, and less needs less ridge; more passes."""


@dataclass(frozen=True)
class RegressionWeights(ObjectivePerturbation):
    """The weights of a regression by a perturbed objective, in units of the threshold.

    It is planned with a threshold of 1. What another threshold changes follows from it alone, once it is released: how
    long minima can be, how near them a solver comes, the ridge that this needs, and the noise of the certificate.

    Guarantee: docs/proofs/regression-objective.md, Theorem 1.
    """

    alpha: float | None = None
    """The user's penalty on squared coefficients; None follows a public rule."""
    scaled: bool = False
    """Whether that is for columns scaled to [-1, 1]."""
    absolute: float | None = None
    """What multiplies absolute coefficients beside half the sum of squared errors; None follows a public rule."""
    l1_ratio: float = 0.0
    """Where the public rule is followed, the share of it that is on absolute values."""
    stretch: float = 1.0
    """What multiplies the threshold that is chosen; the noise for the solver's precision is as much smaller."""

    has_own_loss = True

    def loss_at(self, centre: float, threshold: float) -> ConvexLoss:
        """The loss of predictors that are measured from this centre, in units of this threshold."""
        return tapered_huber(TAPER, centre, threshold)

    @staticmethod
    def _automatic_ridge(gradients: Gradients, sd: float, n_rows: int | None) -> float:
        """No more than privacy and the solver need: effects are shrunk by the penalty matrix."""
        return gradients.norms.l2**2

    def _plan_with(self, found: Calibration, facts: PublicFacts, problem: ERMProblem) -> ERMPlan:
        plan = super()._plan_with(found, facts, problem)
        best, worst = (self.at(plan, 0.0, threshold) for threshold in (1.0, LEAST_THRESHOLD))
        assert best.certificate is not None
        unit = min(best.certificate.unit, 1 << max(0, finest(worst.precision)))
        certificate = replace(best.certificate, unit=unit, scale=0.0, sensitivity=0)
        event = replace(plan.event, parts=(*plan.event.parts[:-1], certificate))
        return replace(plan, event=event, certificate=certificate)

    def at(self, plan: ERMPlan, centre: float, threshold: float, unit: int | None = None) -> ERMPlan:
        """The plan at this threshold: nothing in it depends on rows but through the threshold and the centre.

        Parameters
        ----------
        plan : ERMPlan
            The plan of the weights.
        centre : float
            The released centre.
        threshold : float
            The released threshold.
        unit : int or None, default=None
            Steps to 1 of the lattice that weights are released on; None chooses it.

        Returns
        -------
        ERMPlan
            The same noise, with the loss, ridge, penalty, precision and certificate of this threshold.
        """
        noise, facts, budget = plan.noise, plan.facts, plan.facts.parameters.budget
        assert noise is not None
        gradients = replace(plan.gradients, loss=self.loss_at(centre, threshold))
        rows, norms = max(most_rows(facts.parameters, facts.n_rows), 1), gradients.norms
        quiet = max(QUIET_WEIGHTS / self.stretch, QUIET_SHARE * noise.sd / rows)
        if self.alpha is None:
            wanted = (1 - self.l1_ratio) * CONTRAST_RIDGE * math.sqrt(norms.entries) * noise.sd
            most = PenaltyMatrix.even(norms, wanted, facts.geometry.intercept)
        else:
            most = PenaltyMatrix.of_coefficients(facts.geometry, self.alpha, self.scaled)
        if self.l1_ratio or self.absolute:
            most = self._with_absolute(most, facts.geometry, noise, threshold, rows)
        ridge = quiet_ridge(gradients, rows, plan.ridge, noise, budget.epsilon, quiet, TOLERANCE, most)
        penalty = most.beyond(ridge)
        precision = precision_of(gradients, rows, ridge, noise.bound, TOLERANCE, penalty=penalty)
        certificate = certificate_part(gradients, ridge, precision, noise, budget, unit)
        return replace(
            plan, gradients=gradients, ridge=ridge, penalty=penalty, precision=precision, certificate=certificate
        )

    def wanted(self, geometry: Geometry) -> Floats | None:
        """The Hessian of the penalty that the user has asked for, if that is on squares alone."""
        if not self.alpha:
            return None
        matrix = PenaltyMatrix.of_coefficients(geometry, self.alpha, self.scaled)
        return matrix.hessian(np.zeros((geometry.n_columns, 1)))

    def _with_absolute(
        self, quadratic: PenaltyMatrix, geometry: Geometry, noise: ObjectiveNoise, threshold: float, rows: int
    ) -> PenaltyMatrix:
        """The penalty with that on absolute values, if there is one; no stronger than the most that can count, beyond
        which every weight is zero.
        """
        norms = quadratic.norms
        if self.alpha is None:
            strengths = np.full(norms.columns, self.l1_ratio * CONTRAST_ABSOLUTE) * noise.sds
            strengths[: geometry.intercept] = 0.0
        else:
            strengths = (self.absolute or 0.0) * absolute_units(geometry, threshold, self.scaled)
        strengths = np.minimum(strengths, ABSOLUTE_ENOUGH * (rows + noise.bound))
        if not strengths.any():
            return quadratic
        blocks = np.array([strengths[start] for start, _ in norms.blocks])
        curvature = SHARPNESS * rows * norms.l2**2
        singles = strengths[np.array(norms.singles, dtype=np.intp)]
        return AbsolutePenalty.beside(quadratic, blocks, singles, curvature)


def absolute_units(geometry: Geometry, threshold: float, scaled: bool) -> Floats:
    """What a penalty on absolute coefficients, in the units of the table or of scaled columns and target, is on weights
    in units of the threshold, beside half the sum of squared errors in its units: by encoded column.
    """
    found = np.zeros(geometry.n_columns)
    half = 1.0 if scaled or geometry.target is None else geometry.target.unit
    for block in geometry.blocks:
        unit = 1.0 if scaled or block.width > 1 or block.kind == "sign" else block.unit
        twice = 2.0 if block.kind == "sign" and not scaled else 1.0  # two coefficients of opposite sign
        found[block.start : block.stop] = twice / (unit * half * threshold)
    return found
