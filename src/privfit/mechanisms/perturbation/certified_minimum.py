"""A point as near the minimum of a perturbed objective as the plan says, whatever the rows are.

Nothing here draws, and after the charge nothing here fails by the rows: precision.py plans for every table.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax

from privfit.losses import is_ready_made
from privfit.mechanisms.perturbation.precision import OUTPUT_TOLERANCE
from privfit.mechanisms.perturbation.problem import ERMPlan, Gradients
from privfit.privacy import PrivacyError
from privfit.privacy.guarded import guarded_values
from privfit.rows import CachedDesign, one_blas_thread
from privfit.solvers import Minimum, accelerated_descent, minimise_certified, newton_on_sample, solver_of
from privfit.tables import DataError

Floats = NDArray[np.float64]
Derivative = Callable[[Floats, Floats], Floats]

SAMPLE_TOLERANCE = 1e-6
"""The gradient at which Newton's method on all rows stops, as a share of the largest one; minimise_certified goes on
from there. It trades steps of the one for steps of the other and changes no release beyond the slack."""


def minimised(plan: ERMPlan, rows: CachedDesign, term: Floats) -> Floats:
    """A point within slack / ridge of the minimum of the objective with this linear term, or, if the plan says so, any
    point of the ball.

    The usual solver finds it; where it does not, accelerated gradient descent does, in a public number of steps. Which
    of them it was shows in the time taken only.

    Guarantee: docs/proofs/perturbation.md, Theorem 6.
    """
    precision = plan.precision
    with one_blas_thread():  # threads would change bits
        found = _usual_minimum(plan, rows, term)
        weights = np.zeros_like(term) if found is None else found.weights
        if precision.solves and (
            found is None or not found.gradient_norm + _rounding(plan, rows, weights, term) <= precision.slack
        ):
            weights = _descended(plan, rows, term, found)
        length = float(np.linalg.norm(weights))
        if not math.isfinite(length):
            return np.zeros_like(term)
        if length <= precision.ball:
            return weights
        # the nearest point of the ball that every minimum is in: no farther from any of them
        return weights * (precision.ball * (1 - (weights.size + 8) * 2.0**-52) / length)


def _usual_minimum(plan: ERMPlan, rows: CachedDesign, term: Floats) -> Minimum | None:
    """The best point of a fast solver, that promises nothing."""
    gradients, ridge, precision, penalty = plan.gradients, plan.ridge, plan.precision, plan.penalty
    slopes, curvatures = derivatives(gradients)
    tolerance = precision.slack / 2 if precision.solves else OUTPUT_TOLERANCE * gradients.sensitivity["l2"]
    softmax = gradients.coupling == "softmax"
    more = 0.0 if penalty is None else penalty.matrix
    try:
        many, sample = rows.hessian_rows, rows.sample()
        share = SAMPLE_TOLERANCE if sample.weight == 1 else 0.01 * math.sqrt(sample.weight / max(rows.n_rows, 1))
        rough = rows.n_rows * gradients.gradient_norm["l2"] * share
        start, solve = newton_on_sample(
            lambda w: sample.gradient(w, slopes) + plan.penalised(w) + term,
            lambda w: solver_of(sample.hessian(w, curvatures) + more, ridge, shifts_are_free=softmax),
            np.zeros_like(term),
            rough,
        )
        if many > sample.n_rows:
            solve = solver_of(rows.hessian(start, curvatures) + more, ridge, shifts_are_free=softmax)
        return minimise_certified(
            lambda w: rows.gradient(w, slopes, gradients.slope_norm["linf"]) + plan.penalised(w) + term,
            tolerance,
            start,
            solve,
        )
    except (DataError, PrivacyError, OSError):
        raise  # of reading: functions of the user's own raise none of these
    except Exception:
        return None  # it knows of the rows, and must not be shown; nor how much memory a dense sample of them takes


def _descended(plan: ERMPlan, rows: CachedDesign, term: Floats, found: Minimum | None) -> Floats:
    """The same by accelerated gradient descent, from where the usual solver came to if that is no worse than zero."""
    precision, (slopes, _) = plan.precision, derivatives(plan.gradients)

    def gradient(weights: Floats) -> Floats:
        return rows.gradient(weights, slopes, plan.gradients.slope_norm["linf"]) + plan.penalised(weights) + term

    def bound(weights: Floats, at: Floats) -> float:
        return float(np.linalg.norm(at)) + _rounding(plan, rows, weights, term)

    start = np.zeros_like(term)
    if found is not None and bound(found.weights, gradient(found.weights)) <= plan.ridge * precision.radius / 2:
        start = found.weights
    return accelerated_descent(
        gradient,
        lambda weights, at: bound(weights, at) <= precision.slack,
        start,
        ridge=plan.ridge,
        smoothness=precision.smoothness,
        accelerated=precision.accelerated,
        plain=precision.plain,
    )


def _rounding(plan: ERMPlan, rows: CachedDesign, weights: Floats, term: Floats) -> float:
    """The most by which rounding can have changed the gradient at these weights, with that of the penalty."""
    gradients, penalty = plan.gradients, plan.penalty
    off = rows.rounding(weights, gradients.slope_norm["linf"], gradients.smoothness, gradients.offset)
    length = float(np.linalg.norm(weights))
    of_penalty = 2.0**-50 * (plan.ridge * length) + (0.0 if penalty is None else penalty.rounding * length)
    return off + of_penalty + 2.0**-50 * float(np.linalg.norm(term))


def derivatives(gradients: Gradients) -> tuple[Derivative, Derivative]:
    """The slopes and curvatures of rows, from predictors and targets.

    Neither raises: ready-made ones keep to what the loss states, others are called with a guard.
    """
    if gradients.coupling == "softmax":
        return _softmax_slopes, _softmax_curvatures
    loss, steepest = gradients.loss, gradients.slope_norm["linf"]
    slope, curvature = loss.slope, loss.curvature
    if not is_ready_made(slope):
        slope = partial(guarded_values, loss.slope, low=-steepest, high=steepest)
    if not is_ready_made(curvature):
        curvature = partial(guarded_values, loss.curvature, low=0.0, high=gradients.smoothness)
    if gradients.coupling == "one":
        return slope, curvature
    return OneVsRest(slope, gradients.classes), OneVsRest(curvature, gradients.classes)


@dataclass(frozen=True)
class OneVsRest:
    """A derivative of every class against the others, from the place of each row's class."""

    derivative: Derivative
    classes: int

    def __call__(self, scores: Floats, target: Floats) -> Floats:
        return self.derivative(scores, 2.0 * (target[:, None] == np.arange(self.classes)) - 1.0)


def _softmax_slopes(scores: Floats, target: Floats) -> Floats:
    probabilities = softmax(scores, axis=1)
    probabilities[np.arange(len(target)), target.astype(np.intp)] -= 1.0
    return np.asarray(probabilities)


def _softmax_curvatures(scores: Floats, target: Floats) -> Floats:
    probabilities = softmax(scores, axis=1)
    return np.asarray(probabilities * (1 - probabilities))
