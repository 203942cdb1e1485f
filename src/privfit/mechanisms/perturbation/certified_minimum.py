"""A point as near the minimum of a perturbed objective as the plan says, whatever the rows are.

Nothing here draws, and after the charge nothing here fails by the rows: precision.py plans for every table.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax

from privfit.losses import is_ready_made
from privfit.losses.convex import Function
from privfit.mechanisms.perturbation.plan import ERMPlan
from privfit.mechanisms.perturbation.precision import OUTPUT_TOLERANCE, most_rows
from privfit.privacy import PrivacyError, PrivacyParameters
from privfit.privacy.guarded import guarded_values, quietly
from privfit.rows import CachedDesign, SampledDesign, one_blas_thread
from privfit.solvers import Minimum, accelerated_descent, minimise_certified, newton_on_sample, solver_of
from privfit.statistics import Gradients
from privfit.tables import DataError

Floats = NDArray[np.float64]

SAMPLE_TOLERANCE = 1e-6
"""The gradient at which Newton's method on all rows stops, as a share of the largest one; minimise_certified goes on
from there.
"""


def minimised(plan: ERMPlan, kept: CachedDesign, term: Floats) -> Floats:
    """A point within slack / ridge of the minimum of the perturbed objective, or, if the plan says so, any point of the
    ball.

    The usual solver finds it; where it does not, accelerated gradient descent does, in a public number of steps. Which
    of them it was shows in the time taken only.

    Guarantee: docs/proofs/perturbation.md, Theorem 6.
    """
    with quietly():  # a warning would tell of the rows
        found = _usual_minimum(plan, kept, term)
        if plan.precision.solves and (
            found is None or not found.gradient_norm + _rounded(plan, kept, found.weights, term) <= plan.slack
        ):
            return _in_ball(_descended(plan, kept, term, found), plan.precision.ball)
        return _in_ball(np.zeros_like(term) if found is None else found.weights, plan.precision.ball)


def _usual_minimum(plan: ERMPlan, kept: CachedDesign, term: Floats) -> Minimum | None:
    """The best point of a fast solver, that promises nothing."""
    gradients, ridge = plan.gradients, plan.ridge
    respond, bend = responses(gradients)
    wanted = plan.slack / 2 if plan.precision.solves else OUTPUT_TOLERANCE * gradients.sensitivity("l2")

    def solver(rows: CachedDesign | SampledDesign, weights: Floats) -> Callable[[Floats], Floats]:
        return solver_of(rows.hessian(weights, bend), ridge, shifts_are_free=gradients.coupling == "softmax")

    try:
        sample = kept.sample()
        share = SAMPLE_TOLERANCE if sample.weight == 1 else 0.01 * math.sqrt(sample.weight / kept.n_rows)
        rough = kept.n_rows * gradients.of_one_row("l2") * share
        with one_blas_thread():
            start, solve = newton_on_sample(
                lambda w: sample.gradient(w, respond) + ridge * w + term,
                lambda w: solver(sample, w),
                np.zeros_like(term),
                rough,
            )
        if kept.hessian_rows > sample.n_rows:
            solve = solver(kept, start)
        return minimise_certified(_gradient(plan, kept, term), wanted, start, solve)
    except (DataError, PrivacyError, OSError):
        raise  # of reading: functions of the user's own raise none of these
    except Exception:
        return None  # it knows of the rows, and must not be told; nor how much memory a dense sample of them takes


def _gradient(plan: ERMPlan, kept: CachedDesign, term: Floats) -> Callable[[Floats], Floats]:
    """The gradient of the perturbed objective over all rows."""
    respond, _ = responses(plan.gradients)
    return lambda weights: kept.gradient(weights, respond) + plan.ridge * weights + term


def _descended(plan: ERMPlan, kept: CachedDesign, term: Floats, found: Minimum | None) -> Floats:
    """The same by accelerated gradient descent, from where the usual solver came to if that is no worse than zero."""
    precision = plan.precision

    def bound(weights: Floats, gradient: Floats) -> float:
        return float(np.linalg.norm(gradient)) + _rounded(plan, kept, weights, term)

    gradient, start = _gradient(plan, kept, term), np.zeros_like(term)
    if found is not None and bound(found.weights, gradient(found.weights)) <= plan.ridge * precision.radius / 2:
        start = found.weights
    return accelerated_descent(
        gradient,
        lambda weights, slope: bound(weights, slope) <= precision.slack,
        start,
        ridge=plan.ridge,
        smoothness=precision.smoothness,
        accelerated=precision.accelerated,
        plain=precision.plain,
    )


def _in_ball(weights: Floats, radius: float) -> Floats:
    """The nearest point of the ball that every minimum is in: no farther from any of them.

    Zero where there is no number.
    """
    length = float(np.linalg.norm(weights))
    if not math.isfinite(length):
        return np.zeros_like(weights)
    return weights if length <= radius else weights * (radius * (1 - (weights.size + 8) * 2.0**-52) / length)


def _rounded(plan: ERMPlan, kept: CachedDesign, weights: Floats, term: Floats) -> float:
    """The most that rounding can have moved the gradient at these weights."""
    gradients = plan.gradients
    off = kept.rounding(weights, gradients.of_slopes("l2"), gradients.smoothness, gradients.offset)
    return off + 2.0**-50 * float(plan.ridge * np.linalg.norm(weights) + np.linalg.norm(term))


def responses(gradients: Gradients) -> tuple[Callable[[Floats, Floats], Floats], Callable[[Floats, Floats], Floats]]:
    """The slopes and curvatures of rows, from predictors and targets.

    Neither raises, whatever a loss of the user's own does.
    """
    loss = gradients.loss
    if gradients.coupling == "softmax":
        return _softmax_slopes, _softmax_curvatures
    slope = _held_to(loss.slope, -gradients.most_slope, gradients.most_slope)
    curvature = _held_to(loss.curvature, 0.0, gradients.smoothness)
    if gradients.coupling == "one":
        return slope, curvature

    def sides(target: Floats) -> Floats:
        return np.asarray(2.0 * (target[:, None] == np.arange(gradients.classes)) - 1.0)

    return lambda scores, target: slope(scores, sides(target)), lambda scores, target: curvature(scores, sides(target))


def _held_to(function: Function, low: float, high: float) -> Callable[[Floats, Floats], Floats]:
    """A function of a loss for every row, kept to the bounds that the loss states; 0 for a row for which it fails.

    Ready-made ones keep to them by themselves.
    """

    def ready_made(scores: Floats, target: Floats) -> Floats:
        with np.errstate(all="ignore"):
            return np.asarray(function(scores, target), dtype=np.float64)

    def guarded(scores: Floats, target: Floats) -> Floats:
        return guarded_values(function, scores, target, low=low, high=high)

    return ready_made if is_ready_made(function) else guarded


def _softmax_slopes(scores: Floats, target: Floats) -> Floats:
    probabilities = softmax(scores, axis=1)
    probabilities[np.arange(len(target)), target.astype(np.intp)] -= 1.0
    return np.asarray(probabilities)


def _softmax_curvatures(scores: Floats, target: Floats) -> Floats:
    probabilities = softmax(scores, axis=1)
    return np.asarray(probabilities * (1 - probabilities))


def public_rows(n_rows: int, terms: PrivacyParameters) -> int | None:
    """The number of rows as far as it is public."""
    return n_rows if terms.adjacency == "replace-one" else terms.expected_rows


def check_number(n_rows: int, parameters: PrivacyParameters) -> None:
    """Refuse more rows than the precision was planned for, where their number is private."""
    most = most_rows(parameters, None)
    if parameters.adjacency == "add-remove" and n_rows > most:
        nearer = " that is nearer" * (parameters.expected_rows is not None)
        raise DataError(
            f"The table has more rows than the precision of this fit was planned for ({most}). "
            f"Give a public guess{nearer}, expected_rows=.... Nothing was charged."
        )
