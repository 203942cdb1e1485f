"""Output perturbation: noise on the minimum."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from privfit.mechanisms.base import PublicFacts
from privfit.mechanisms.perturbation.base import Calibration, Perturbation
from privfit.mechanisms.perturbation.defaults import USUAL_ROWS
from privfit.mechanisms.perturbation.objective_noise import SAFE, Kind, additive
from privfit.mechanisms.perturbation.precision import (
    OUTPUT_STEPS,
    OUTPUT_TOLERANCE,
    Precision,
    finest,
    longest_minimum,
    minimised,
    most_rows,
    precision_of,
    smallest_ridge,
)
from privfit.mechanisms.perturbation.problem import ERMFit, ERMPlan, ERMProblem, Gradients, usual_curvature
from privfit.privacy import Budget, Draws, Event, PrivacyError
from privfit.privacy.event import laplace_scale
from privfit.privacy.gaussian import gaussian_delta, least_scale
from privfit.rows import CachedDesign

DRAWN: dict[str, Kind] = {"laplace": "laplace", "linf": "linf", "l2": "l2", "gaussian": "gaussian"}
SMALLEST_DISTANCE = 1e-200
"""Minima of neighbours that are nearer than this, or farther apart than one over it, leave no room in floats."""
MOST_OUTPUT_ACCELERATED = 1 << 22
"""The same for output perturbation, whose tolerance is loose, so that the usual solver reaches it: fewer would refuse
settings that papers compare with (PrivateSVM with C=10 beside a sum over rows)."""
WORST_OUTPUT = 2.0
"""Output perturbation is refused where its sensitivity would be more than twice that of exact minima."""
AUTOMATIC_OUTPUT = 1.1
"""An automatic ridge of output perturbation is raised until precision costs at most 10% more noise: with a sharp loss
and many rows."""


@dataclass(frozen=True)
class OutputPerturbation(Perturbation):
    """Minimise, and add noise to the minimum.

    The loss needs a bounded slope that does not jump, and nothing else: the hinge loss qualifies with its corner
    rounded (pf.losses.hinge()). The noise is far larger than that of a perturbed objective.

    Parameters
    ----------
    ridge : float or 'auto', default='auto'
        Factor of half the squared weights, beside the sum of the loss over rows. "auto" balances what noise and what
        the ridge do to the loss, by a public rule.
    noise : {'auto', 'l2', 'laplace', 'linf', 'gaussian'}, default='auto'
        The distribution of the noise: K-norm noise for the L2 norm (the default without a delta), Laplace noise, K-norm
        noise for the L-infinity norm, or Gaussian noise, which needs a delta.

    See Also
    --------
    ObjectivePerturbation : Less noise for losses with bounded curvature.
    LinearSVC : Takes it as a mechanism.

    Notes
    -----
    Guarantee: epsilon-DP, or (epsilon, delta)-DP with Gaussian noise, replace-one or add-remove, for persons with at
    most `rows_per_person` rows, in real arithmetic, up to a probability below 2^-64; docs/proofs/perturbation.md,
    Theorem 4.
    Domain: at least one row, no refused cell, no more rows than stated; docs/proofs/errors-and-stops.md.

    References
    ----------
    .. [1] K. Chaudhuri, C. Monteleoni and A. D. Sarwate, "Differentially private empirical risk minimization", Journal
       of Machine Learning Research 12, 2011.

    Examples
    --------
    >>> import numpy as np, privfit as pf
    >>> X = np.tile(np.linspace(-1, 1, 200), 50).reshape(-1, 1)
    >>> y = np.where(X[:, 0] > 0.2, "yes", "no")
    >>> mechanism = pf.OutputPerturbation(ridge=100.0)
    >>> model = pf.LinearSVC(epsilon=2.0, mechanism=mechanism, schema=pf.Schema.box(-1, 1, target=["no", "yes"]))
    >>> bool(model.fit(X, y).score(X, y) > 0.7)
    True
    """

    name = "output"
    perturbs_minimum = takes_weights = covers_absent_rows = True
    kinds: ClassVar[tuple[str, ...]] = ("laplace", "linf", "l2", "gaussian")

    def __init_subclass__(cls, **options: object) -> None:
        """What is derived from it takes no weights of rows unless it says so."""
        super().__init_subclass__(**options)
        cls.takes_weights = cls.__dict__.get("takes_weights", False)

    def _calibrated(
        self, kind: str, gradients: Gradients, facts: PublicFacts, beside: tuple[float, ...]
    ) -> Calibration:
        budget, values, ridge = facts.parameters.budget, gradients.values, self._ridge(gradients, facts)
        precision, apart = output_precision(gradients, most_rows(facts.parameters, facts.n_rows), ridge)
        apart /= SAFE
        fine = math.ceil(math.log2(OUTPUT_STEPS * max(1.0, budget.epsilon) * math.sqrt(values) / apart))
        unit = 1 << max(0, min(fine, finest(precision)))
        rounded = math.ceil(apart * unit) + math.ceil(math.sqrt(values))  # of two roundings, in L2
        sensitivity = math.ceil(rounded * (math.sqrt(values) if kind == "laplace" else 1.0))
        scale = _scale(kind, sensitivity, budget)
        part = additive(DRAWN[kind], values, scale, sensitivity, unit)
        return Calibration(gradients, ridge, part.sd, budget.delta if kind == "gaussian" else 0.0, part=part)

    def _plan_with(self, found: Calibration, facts: PublicFacts, problem: ERMProblem) -> ERMPlan:
        parameters, part = facts.parameters, found.part
        assert part is not None
        precision, _ = output_precision(found.gradients, most_rows(parameters, facts.n_rows), found.ridge)
        event = Event(
            "output perturbation",
            parameters.budget.epsilon,
            found.delta,
            adjacency=parameters.adjacency,
            rows_per_person=int(parameters.rows_per_person),
            parts=(part,),
        )
        return ERMPlan(event, facts, problem, found.gradients, found.ridge, precision, part.sd)

    def _ridge(self, gradients: Gradients, facts: PublicFacts) -> float:
        """The ridge that was asked for, or that of the public rule."""
        parameters, n_rows = facts.parameters, facts.n_rows
        if self.ridge == "auto":
            least = automatic_output_ridge(gradients, parameters.budget.epsilon, n_rows)
            ridge = precise_ridge(gradients, most_rows(parameters, n_rows), least)
        else:
            ridge = float(self.ridge)
        apart = gradients.sensitivity["l2"] / ridge
        if not SMALLEST_DISTANCE <= apart <= 1 / SMALLEST_DISTANCE:
            raise PrivacyError(
                f"A ridge of {ridge:.3g} was asked for; it leaves no weights, or nothing but noise. Use a "
                f"{'larger' if apart > 1 else 'smaller'} one, or 'auto'."
            )
        return ridge

    def draw(self, data: CachedDesign, plan: ERMPlan, draws: Draws) -> ERMFit:
        """Minimise until the gradient is certified, and add noise."""
        problem, unit = plan.problem, plan.event.unit
        found = minimised(plan, data, np.zeros((data.n_columns, plan.gradients.classes)))
        weights = np.asarray(draws.add(np.rint(found * unit).astype(np.int64)) / unit, dtype=np.float64)
        loss, n_rows = plan.gradients.loss, plan.facts.n_rows
        return ERMFit(
            weights,
            plan.ridge,
            loss,
            problem.coupling,
            problem.features,
            n_rows=n_rows,
            most_weight=problem.most_weight,
        )


def automatic_output_ridge(gradients: Gradients, epsilon: float, n_rows: int | None) -> float:
    """The ridge of output perturbation.

    Noise of length d S / (ridge epsilon), S the sensitivity of the gradient, costs about its square times the curvature
    of the loss over all rows; the ridge costs about half of itself. The sum is least where the cube of the ridge is as
    below.
    """
    rows = n_rows or USUAL_ROWS
    noise = gradients.values * gradients.sensitivity["l2"] / epsilon
    usual = usual_curvature(gradients.loss, gradients.coupling)
    curvature = usual * rows * gradients.norms.l2**2 / gradients.norms.columns
    return float((2 * curvature * noise**2) ** (1 / 3))


def _scale(kind: str, sensitivity: int, budget: Budget) -> float:
    """The scale of noise of this kind for a change of at most so many lattice steps in its norm."""
    if kind != "gaussian":
        return laplace_scale(sensitivity, budget.exact)
    per_shift = least_scale(
        lambda sd: gaussian_delta(budget.epsilon * SAFE, 1 / sd), budget.delta * SAFE, 1 / budget.epsilon
    )
    return sensitivity * per_shift / SAFE


# -- how near its minimum the solver comes -----------------------------------------------------------


def output_precision(gradients: Gradients, rows: int, ridge: float) -> tuple[Precision, float]:
    """The precision of a perturbed minimum, and how far apart the solver's points for neighbours are at most, in L2.

    Certified minima are as far apart as exact ones and twice the slack over the ridge; two points of the ball of all
    minima are twice its radius apart. Whichever is less.
    """
    found, apart = _output_precision(gradients, rows, ridge)
    if not apart <= WORST_OUTPUT * gradients.sensitivity["l2"] / ridge:
        raise PrivacyError(
            f"A ridge of {ridge:.3g} was asked for with up to {rows:,} rows; with so small a one no solver can "
            "promise, for every such table, weights that are precise beside the noise. Use a larger one, or 'auto'. "
            "Nothing was charged."
        )
    return found, apart


def _output_precision(gradients: Gradients, rows: int, ridge: float) -> tuple[Precision, float]:
    found = precision_of(gradients, rows, ridge, 0.0, OUTPUT_TOLERANCE, MOST_OUTPUT_ACCELERATED)
    ball = longest_minimum(gradients, rows, ridge, 0.0, gradients.excess_at_zero)
    certified = (gradients.sensitivity["l2"] + 2 * found.slack) / ridge
    return (Precision(ball, math.inf), 2 * ball) if 2 * ball < certified else (found, certified)


def precise_ridge(gradients: Gradients, rows: int, least: float) -> float:
    """The smallest ridge, from `least` on, at which precision hardly adds to the noise of output perturbation."""

    def is_precise(ridge: float) -> bool:
        return _output_precision(gradients, rows, ridge)[1] <= AUTOMATIC_OUTPUT * gradients.sensitivity["l2"] / ridge

    return smallest_ridge(least, is_precise)
