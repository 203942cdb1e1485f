"""How close to its minimum the solver comes, for every table: planned from public facts, before anything is charged;
and the minimum, found as precisely as planned.

After the charge nothing may depend on rows but through noise: not even whether a solver converges. So the plan bounds
the length of every minimum that rows of this schema can have, what rounding does within that length, and how many
passes of accelerated gradient descent suffice whatever the rows are. A ridge that is too small for that is raised
(objective perturbation) or refused (output perturbation). Nothing here draws, and after the charge nothing here fails
by the rows.

Guarantee: docs/proofs/perturbation.md, Theorem 6.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from privfit.mechanisms.perturbation.absolute_penalty import AbsolutePenalty
from privfit.mechanisms.perturbation.defaults import FOR_CERTIFICATE, QUIET
from privfit.mechanisms.perturbation.objective_noise import MOST_FINE, SAFE, SAFELY, ObjectiveNoise
from privfit.mechanisms.perturbation.penalty_matrix import PenaltyMatrix
from privfit.mechanisms.perturbation.problem import ERMPlan, Gradients
from privfit.privacy import Budget, PrivacyError, PrivacyParameters, exact
from privfit.privacy.event import laplace_scale
from privfit.privacy.parts import CERTIFICATE, Laplace
from privfit.rows import CachedDesign, one_blas_thread
from privfit.rows.fixed_point import most_rounding
from privfit.solvers import Minimum, accelerated_descent, minimise_certified, newton_on_sample, solver_of
from privfit.tables import DataError

Floats = NDArray[np.float64]

OBJECTIVE_TOLERANCE = 1e-6
"""The gradient that may be left, as a share of its sensitivity. The noise that covers it has 0.5% of epsilon."""
OUTPUT_TOLERANCE = 1e-4
"""The same for output perturbation, where it lengthens the sensitivity by twice as much: 0.04% more noise."""
MOST_ACCELERATED = 1 << 17
"""Accelerated steps that the proof may count on: half a minute for a small table on which the usual solver, which takes
ten to fifty passes, does not converge. More of them would allow for smaller ridges, where weights are mostly noise."""
MOST_PLAIN = 1 << 22
"""Plain steps after them. No table is known that needs one: they are there because accelerated steps alone are proved
to reach less precision, which would need three times the ridge at two million rows (`privfit bench speed` has such a
table)."""
ROUNDING_STEPS = 128
"""Units in the last place that one accelerated step loses on iterates as long as three radii, times smoothness."""
STEEPEST_FIXED_POINT = 0.5
"""Rounding grows with the radius and the radius with rounding: refused where that would more than double it."""
BISECTIONS = 200
"""More than enough for two floats that are a factor of 2 apart."""
MANY_ROWS = 1 << 21
"""The most rows under add-remove where no expected number is given: more rounding is planned for with more rows."""
FEW_ROWS, FAR_MORE_ROWS = 1 << 17, 4
"""With an expected number: four times that, and at least 2^17. More would need more ridge (docs/classifiers.md)."""
OUTPUT_STEPS = 64
"""How many lattice steps two minima lie apart at least: rounding them adds about one in so many to their distance."""
LARGE_CERTIFICATE = 0.5
"""Noise for the solver's precision with a larger standard deviation, on weights that are mostly below 1, is warned of
where the user has chosen the ridge."""
COARSEST = 64
"""Weights whose lattice would need more than 2^52 steps to this share of the certificate are refused."""
MOST_BITS = 61
"""Weights on their lattice stay below 2^61, so that they are exact as 64-bit integers with noise on them."""
MOST_WEIGHTS = 5_000
"""Weights that a matrix of second derivatives is made for: with its factors it takes .8 GB at so many. Accelerated
steps take over for more, without one; tests/tables/test_wide.py."""
SAMPLE_TOLERANCE = 1e-6
"""The gradient at which Newton's method on all rows stops, as a share of the largest one; minimise_certified goes on
from there. It trades steps of the one for steps of the other and changes no release beyond the slack."""


@dataclass(frozen=True)
class Precision:
    """What the solver promises for every table.

    Parameters
    ----------
    ball : every minimum is at most this long, in L2, and so is what is released before noise.
    slack : the solver's point is within slack / ridge of the minimum, in L2, whatever the rows are; infinite where it
        only promises a point of the ball.
    radius : how long minima are planned to be; less than the ball for a loss that does not state its excess at zero.
    smoothness : a Lipschitz constant of the gradient, the ridge included.
    accelerated, plain : steps of accelerated and then of plain gradient descent that suffice for this.
    """

    ball: float
    slack: float
    radius: float = math.inf
    smoothness: float = math.inf
    accelerated: int = 0
    plain: int = 0

    @property
    def solves(self) -> bool:
        """Whether a minimum is promised, and not only a point of the ball."""
        return math.isfinite(self.slack)


def longest_minimum(gradients: Gradients, rows: int, ridge: float, noise: float, excess: float) -> float:
    """A bound of the length of every minimum over at most so many rows, with objective noise of at most this length.

    `excess` bounds the loss of a row at zero weights above its infimum.

    Guarantee: docs/proofs/perturbation.md, Lemma 8.
    """
    gradient = min(rows * gradients.gradient_norm["l2"], math.sqrt(2 * rows) * math.sqrt(excess * ridge))
    return (gradient + noise) / ridge * SAFELY


def precision_of(
    gradients: Gradients,
    rows: int,
    ridge: float,
    noise: float,
    tolerance: float,
    most_accelerated: int = MOST_ACCELERATED,
    penalty: PenaltyMatrix | None = None,
) -> Precision:
    """What the solver can promise for every table of at most so many rows and objective noise of at most this length.

    A penalty matrix stands beside the ridge, which is then the least eigenvalue of both.

    Accelerated steps with gradients that are off by rho end within 2 m rho / ridge of the minimum, where
    m^2 = sqrt(condition number) + 1.5. Plain steps after them come within 2 rho / ridge.

    Guarantee: docs/proofs/perturbation.md, Theorem 6.
    """
    ball = longest_minimum(gradients, rows, ridge, noise, gradients.excess_at_zero)
    shortest = longest_minimum(gradients, rows, ridge, noise, gradients.likely_excess)
    more, off = (0.0, 0.0) if penalty is None else (penalty.largest, penalty.rounding)
    at_zero_too = penalty.rounding_at_zero if isinstance(penalty, AbsolutePenalty) else 0.0
    condition = 1 + more / ridge + rows * gradients.smoothness * gradients.norms.l2**2 / ridge
    wanted = 2 * tolerance * gradients.sensitivity["l2"] / ridge
    amplified = math.sqrt(math.sqrt(condition) + 1.5)

    # Rounding over the ridge, as all lengths here, is fixed + growing * radius.
    norms, smoothness, classes = gradients.norms, gradients.smoothness, gradients.classes
    at_zero = most_rounding(
        rows, norms.l2, norms.entries, 0.0, gradients.slope_norm["linf"], smoothness, gradients.offset, classes
    )
    per_length = most_rounding(rows, norms.l2, norms.entries, 1.0, 0.0, smoothness)
    fixed = (at_zero + at_zero_too) / ridge + 2.0**-50 * noise / ridge
    growing = 3 * per_length / ridge + 3 * 2.0**-50 + 3 * off / ridge + ROUNDING_STEPS * 2.0**-53 * condition
    left = 1 - 8 * amplified * growing
    if not left >= 1 - STEEPEST_FIXED_POINT:
        return Precision(ball, math.inf)
    radius = max(shortest, 4 * wanted, 8 * amplified * fixed / left) * SAFELY
    rounding = fixed + growing * radius
    reached = 2 * amplified * rounding
    if not 4 * reached <= radius:
        return Precision(ball, math.inf)
    with_plain = (max(wanted, 2 * rounding), math.ceil(condition * math.log(2 * amplified)))
    for off, plain in (with_plain, (max(wanted, reached), 0)):
        accelerated = math.ceil(4 * math.sqrt(condition) * max(1.0, math.log(1.75 * (radius / off))))
        if accelerated <= most_accelerated and plain <= MOST_PLAIN and (off < reached or not plain):
            return Precision(max(ball, radius), off * ridge, radius, condition * ridge, accelerated, plain)
    return Precision(ball, math.inf)


def quiet_ridge(
    gradients: Gradients,
    rows: int,
    least: float,
    noise: ObjectiveNoise,
    epsilon: float,
    quiet: float = QUIET,
    tolerance: float = OBJECTIVE_TOLERANCE,
    penalty: PenaltyMatrix | None = None,
) -> float:
    """The smallest ridge, from `least` on, at which the noise that covers the solver's slack has at most the standard
    deviation `quiet` on a weight.
    """
    times = 2 * math.sqrt(2.0 * gradients.values)
    return smallest_ridge(
        least,
        lambda ridge: (
            times * precision_of(gradients, rows, ridge, noise.bound, tolerance, penalty=penalty).slack
            <= ridge * epsilon * FOR_CERTIFICATE * quiet
        ),
    )


def smallest_ridge(least: float, is_enough: Callable[[float], bool]) -> float:
    """The smallest ridge that is enough: a larger one means shorter minima and less rounding, so it is found by
    bisection.
    """
    low, high = least, least
    while not is_enough(high):
        low, high = high, 2 * high
        if not math.isfinite(high):
            raise PrivacyError(
                f"A ridge from {least:.3g} on was asked for; with noise of this size no ridge is large enough to "
                "compute with. Use a larger epsilon, or a loss and a target in smaller units. Nothing was charged."
            )
    for _ in range(BISECTIONS):
        if high / low <= SAFELY:
            break
        middle = math.sqrt(low) * math.sqrt(high)
        low, high = (low, middle) if is_enough(middle) else (middle, high)
    return high


# -- bounds of rows --------------------------------------------------------------------------------


def most_rows(parameters: PrivacyParameters, n_rows: int | None) -> int:
    """The public number of rows, or where that is private, a public number that it must not exceed."""
    if n_rows is not None and parameters.adjacency == "replace-one":
        return n_rows
    return MANY_ROWS if parameters.expected_rows is None else max(FEW_ROWS, FAR_MORE_ROWS * parameters.expected_rows)


def check_number(n_rows: int, parameters: PrivacyParameters) -> None:
    """Refuse more rows than the precision was planned for, where their number is private."""
    most = most_rows(parameters, None)
    if parameters.adjacency == "add-remove" and n_rows > most:
        nearer = " that is nearer" * (parameters.expected_rows is not None)
        raise DataError(
            f"The table has more rows than the precision of this fit was planned for ({most}). "
            f"Give a public guess{nearer}, expected_rows=.... Nothing was charged."
        )


# -- the lattice of the weights --------------------------------------------------------------------


def certificate_part(
    gradients: Gradients,
    ridge: float,
    precision: Precision,
    noise: ObjectiveNoise,
    budget: Budget,
    unit: int | None = None,
) -> Laplace:
    """The noise on the weights that covers what the solver and the lattice of the objective noise leave open; on a
    lattice of so many steps to 1, or one that is far finer than the noise.

    Two minima that are known up to a gradient of L2 norm g lie within 2 g / ridge of where they would be: at most
    sqrt(values) times that in L1, and a lattice step per value.
    """
    values = gradients.values
    apart = 2 * (precision.slack + noise.lattice_error) * math.sqrt(values) / ridge
    if unit is None:
        if not apart * COARSEST >= values * 2.0**-MOST_FINE:
            raise PrivacyError(
                f"A ridge of {ridge:.3g} was asked for; weights would be smaller than the lattice that they are "
                "released on. Use a smaller one, or 'auto'."
            )
        fine = min(math.ceil(math.log2(OUTPUT_STEPS * values / apart)), MOST_FINE, finest(precision))
        unit = 1 << max(0, fine)
    sensitivity = math.ceil(apart * unit / SAFE) + values
    return Laplace(
        size=values,
        scale=laplace_scale(sensitivity, budget.exact * exact(FOR_CERTIFICATE)),
        sensitivity=sensitivity,
        unit=unit,
        purpose=CERTIFICATE,
        epsilon=budget.epsilon * FOR_CERTIFICATE,
    )


def warning_of_ridge(ridge: float, sd: float) -> str:
    """What is said of a user's ridge where the certificate has noise of this size; nothing where that is small."""
    if sd <= LARGE_CERTIFICATE:
        return ""
    return (
        f"The ridge of {ridge:.3g} is so small that every weight has noise of about {sd:.3g} for the precision of the "
        "solver alone. Use a larger one, or 'auto'."
    )


def finest(precision: Precision) -> int:
    """The logarithm of the finest lattice on which every point of the ball is a 64-bit integer, with room for noise.

    A ball that no lattice of integers can hold is refused, from public facts.
    """
    if not precision.ball < 2.0**MOST_BITS:
        raise PrivacyError(
            f"The weights that this ridge and this noise allow are up to {precision.ball:.3g} long, beyond all 64-bit "
            "integers. Use a larger ridge or epsilon. Nothing was charged."
        )
    return MOST_BITS - math.ceil(math.log2(max(precision.ball, 1e-300)))


# -- the minimum itself ----------------------------------------------------------------------------


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
    """The best point of a fast solver, that promises nothing; None without one, as where there are too many weights."""
    if term.size > MOST_WEIGHTS:
        return None
    gradients, ridge, precision, penalty = plan.gradients, plan.ridge, plan.precision, plan.penalty
    slopes, curvatures = gradients.row_slopes, gradients.row_curvatures
    tolerance = precision.slack / 2 if precision.solves else OUTPUT_TOLERANCE * gradients.sensitivity["l2"]
    softmax = gradients.coupling == "softmax"
    more: Callable[[Floats], Floats | float] = (lambda w: 0.0) if penalty is None else penalty.hessian
    try:
        many, sample = rows.hessian_rows, rows.sample()
        share = SAMPLE_TOLERANCE if sample.weight == 1 else 0.01 * math.sqrt(sample.weight / max(rows.n_rows, 1))
        rough = rows.n_rows * gradients.gradient_norm["l2"] * share
        start, solve = newton_on_sample(
            lambda w: sample.gradient(w, slopes) + plan.penalised(w) + term,
            lambda w: solver_of(sample.hessian(w, curvatures) + more(w), ridge, shifts_are_free=softmax),
            np.zeros_like(term),
            rough,
        )
        if many > sample.n_rows:
            solve = solver_of(rows.hessian(start, curvatures) + more(start), ridge, shifts_are_free=softmax)
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
    precision, slopes = plan.precision, plan.gradients.row_slopes

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
    of_penalty = 0.0 if penalty is None else penalty.rounding * length
    if isinstance(penalty, AbsolutePenalty):
        of_penalty += penalty.rounding_at_zero
    return off + 2.0**-50 * (plan.ridge * length) + of_penalty + 2.0**-50 * float(np.linalg.norm(term))
