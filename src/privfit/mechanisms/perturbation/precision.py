"""How close to its minimum the solver comes, for every table: planned from public facts, before anything is charged.

After the charge nothing may depend on rows but through noise: not even whether a solver converges. So the plan bounds
the length of every minimum that rows of this schema can have, what rounding does within that length, and how many
passes of accelerated gradient descent suffice whatever the rows are. A ridge that is too small for that is raised
(objective perturbation) or refused here (output perturbation).

Guarantee: docs/proofs/perturbation.md, Theorem 6.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from privfit.mechanisms.perturbation.defaults import FOR_CERTIFICATE, QUIET
from privfit.mechanisms.perturbation.objective_noise import ObjectiveNoise
from privfit.privacy import PrivacyError, PrivacyParameters
from privfit.rows import CachedDesign
from privfit.statistics import Gradients

OBJECTIVE_TOLERANCE = 1e-6
"""The gradient that may be left, as a share of its sensitivity. The noise that covers it has 0.5% of epsilon."""
OUTPUT_TOLERANCE = 1e-4
"""The same for output perturbation, where it lengthens the sensitivity by twice as much: 0.04% more noise."""
MOST_ACCELERATED = 1 << 17
"""Accelerated steps that the proof may count on: half a minute for a small table on which the usual solver, which takes
ten
to fifty passes, does not converge. More of them would allow for smaller ridges, where weights are mostly noise."""
MOST_OUTPUT_ACCELERATED = 1 << 22
"""The same for output perturbation, whose tolerance is loose, so that the usual solver reaches it: fewer would refuse
settings that
papers compare with (PrivateSVM with C=10 beside a sum over rows)."""
MOST_PLAIN = 1 << 22
"""Plain steps after them.

No table is known that needs one: they are there because accelerated steps alone are proved to reach
less precision, which would need three times the ridge at two million rows (`privfit bench speed` has such a table)."""
NOISE_BITS = 80
"""Objective noise is longer than planned with a probability of at most 2^-80: part of the stated 2^-64."""
NORMAL_TAIL = 10.6
"""exp(-10.6^2 / 2) < 2^-81."""
ROUNDING_STEPS = 128
"""Units in the last place that one accelerated step loses on iterates as long as three radii, times smoothness."""
STEEPEST_FIXED_POINT = 0.5
"""Rounding grows with the radius and the radius with rounding: refused where that would more than double it."""
WORST_OUTPUT = 2.0
"""Output perturbation is refused where its sensitivity would be more than twice that of exact minima."""
SAFELY = 1 + 1e-9

BISECTIONS = 200
"""More than enough for two floats that are a factor of 2 apart."""
AUTOMATIC_OUTPUT = 1.1
"""An automatic ridge of output perturbation is raised until precision costs at most 10% more noise: with a sharp loss
and many rows.
"""

MANY_ROWS = 1 << 21
"""The most rows under add-remove where no expected number is given: more rounding is planned for with more rows."""
FEW_ROWS = 1 << 17
FAR_MORE_ROWS = 4
"""With an expected number: four times that, and at least 2^17. More would need more ridge (docs/classifiers.md)."""


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
    gradient = min(rows * gradients.of_one_row("l2"), math.sqrt(2 * rows) * math.sqrt(excess * ridge))
    return (gradient + noise) / ridge * SAFELY


def precision_of(
    gradients: Gradients,
    rows: int,
    ridge: float,
    noise: float,
    tolerance: float,
    most_accelerated: int = MOST_ACCELERATED,
) -> Precision:
    """What the solver can promise for every table of at most so many rows and objective noise of at most this length.

    Accelerated steps with gradients that are off by rho end within 2 m rho / ridge of the minimum, where
    m^2 = sqrt(condition number) + 1.5. Plain steps after them come within 2 rho / ridge.

    Guarantee: docs/proofs/perturbation.md, Theorem 6.
    """
    ball = longest_minimum(gradients, rows, ridge, noise, gradients.excess_at_zero)
    shortest = longest_minimum(gradients, rows, ridge, noise, gradients.likely_excess)
    condition = 1 + rows * gradients.smoothness * gradients.norms.l2**2 / ridge
    wanted = 2 * tolerance * gradients.sensitivity("l2") / ridge
    amplified = math.sqrt(math.sqrt(condition) + 1.5)

    # Rounding over the ridge, as all lengths here, is fixed + growing * radius.
    fixed = _rounding(gradients, rows, 0.0) / ridge + 2.0**-50 * noise / ridge
    growing = 3 * _rounding_of_length(gradients, rows) / ridge + 3 * 2.0**-50 + ROUNDING_STEPS * 2.0**-53 * condition
    left = 1 - 8 * amplified * growing
    if not left >= 1 - STEEPEST_FIXED_POINT:
        return Precision(ball, math.inf)
    radius = max(shortest, 4 * wanted, 8 * amplified * fixed / left) * SAFELY
    rounding = fixed + growing * radius
    least, reached = 2 * rounding, 2 * amplified * rounding
    if not 4 * reached <= radius:
        return Precision(ball, math.inf)
    off, plain = max(wanted, least), math.ceil(condition * math.log(2 * amplified))
    if off >= reached or _accelerated_steps(condition, radius / off) > most_accelerated or plain > MOST_PLAIN:
        off, plain = max(wanted, reached), 0
    accelerated = _accelerated_steps(condition, radius / off)
    if accelerated > most_accelerated:
        return Precision(ball, math.inf)
    return Precision(max(ball, radius), off * ridge, radius, condition * ridge, accelerated, plain)


def _accelerated_steps(condition: float, ratio: float) -> int:
    return math.ceil(4 * math.sqrt(condition) * max(1.0, math.log(1.75 * ratio)))


def _rounding(gradients: Gradients, rows: int, length: float) -> float:
    """The most that rounding moves a sum of gradients at weights of this length."""
    norms = gradients.norms
    return CachedDesign.most_rounding(
        rows, norms.l2, norms.entries, length, gradients.of_slopes("l2"), gradients.smoothness, gradients.offset
    )


def _rounding_of_length(gradients: Gradients, rows: int) -> float:
    """By how much that grows with the length of the weights. (A difference of two roundings would drown where slopes or
    offsets are huge.)
    """
    return CachedDesign.most_rounding(rows, gradients.norms.l2, gradients.norms.entries, 1.0, 0.0, gradients.smoothness)


def objective_precision(gradients: Gradients, rows: int, ridge: float, noise: ObjectiveNoise) -> Precision:
    """The precision of a perturbed objective, whose ridge is one of `solvable_ridge`."""
    found = precision_of(gradients, rows, ridge, noise_bound(noise), OBJECTIVE_TOLERANCE)
    assert found.solves
    return found


def output_precision(gradients: Gradients, rows: int, ridge: float) -> tuple[Precision, float]:
    """The precision of a perturbed minimum, and how far apart the solver's points for neighbours are at most, in L2.

    Certified minima are as far apart as exact ones and twice the slack over the ridge; two points of the ball of all
    minima are twice its radius apart. Whichever is less.
    """
    found, apart = _output_precision(gradients, rows, ridge)
    if not apart <= WORST_OUTPUT * gradients.sensitivity("l2") / ridge:
        raise PrivacyError(
            f"A ridge of {ridge:.3g} was asked for with up to {rows:,} rows; with so small a one no solver can "
            "promise, for every such table, "
            "weights that are precise beside the noise. Use a larger one, or 'auto'. Nothing was charged."
        )
    return found, apart


def _output_precision(gradients: Gradients, rows: int, ridge: float) -> tuple[Precision, float]:
    found = precision_of(gradients, rows, ridge, 0.0, OUTPUT_TOLERANCE, MOST_OUTPUT_ACCELERATED)
    ball = longest_minimum(gradients, rows, ridge, 0.0, gradients.excess_at_zero)
    certified = (gradients.sensitivity("l2") + 2 * found.slack) / ridge
    return (Precision(ball, math.inf), 2 * ball) if 2 * ball < certified else (found, certified)


def precise_ridge(gradients: Gradients, rows: int, least: float) -> float:
    """The smallest ridge, from `least` on, at which precision hardly adds to the noise of output perturbation."""

    def is_precise(ridge: float) -> bool:
        return _output_precision(gradients, rows, ridge)[1] <= AUTOMATIC_OUTPUT * gradients.sensitivity("l2") / ridge

    return _smallest(least, is_precise)


def solvable_ridge(gradients: Gradients, rows: int, least: float, noise: ObjectiveNoise) -> float:
    """The smallest ridge, from `least` on, with which a solver can promise a minimum for every table.

    A larger ridge than asked for makes a perturbed objective no less private: curvature costs less of epsilon.
    """
    bound = noise_bound(noise)
    return _smallest(least, lambda ridge: precision_of(gradients, rows, ridge, bound, OBJECTIVE_TOLERANCE).solves)


def quiet_ridge(gradients: Gradients, rows: int, least: float, noise: ObjectiveNoise, epsilon: float) -> float:
    """The smallest ridge, from `least` on, at which the noise that covers the solver's slack is small everywhere."""
    bound = noise_bound(noise)

    def is_quiet(ridge: float) -> bool:
        slack = precision_of(gradients, rows, ridge, bound, OBJECTIVE_TOLERANCE).slack
        return 2 * math.sqrt(2.0 * gradients.values) * slack <= ridge * epsilon * FOR_CERTIFICATE * QUIET

    return _smallest(least, is_quiet)


def _smallest(least: float, is_enough: Callable[[float], bool]) -> float:
    """The smallest ridge that is enough: a larger one means shorter minima and less rounding, so it is found by
    bisection.
    """
    low, high = least, least
    while not is_enough(high):
        low, high = high, 2 * high
        if not math.isfinite(high):
            raise PrivacyError(
                f"A ridge from {least:.3g} on was asked for; with noise of this size no ridge is large enough to "
                "compute with. "
                "Use a larger epsilon, or a loss and a target in smaller units. Nothing was charged."
            )
    for _ in range(BISECTIONS):
        if high / low <= SAFELY:
            break
        middle = math.sqrt(low) * math.sqrt(high)
        low, high = (low, middle) if is_enough(middle) else (middle, high)
    return high


# -- bounds of noise and of rows -------------------------------------------------------------------


def noise_bound(noise: ObjectiveNoise) -> float:
    """A length that the noise of a perturbed objective exceeds, in L2, with a probability of at most 2^-80.

    Guarantee: docs/proofs/perturbation.md, Lemma 9.
    """
    if noise.delta:
        sd = math.sqrt(noise.largest_variance())
        return sd * (math.sqrt(noise.values) + NORMAL_TAIL) + noise.lattice_error
    nats = (NOISE_BITS + math.log2(len(noise.groups))) * math.log(2.0)
    squares = 0.0
    for group in noise.groups:
        size, steps = len(group.columns) * noise.classes, group.steps(noise.classes)
        lattice = steps / (group.scale * noise.unit)
        tail = nats + 2 * lattice
        norm = size + math.sqrt(2 * size * tail) + tail + lattice  # in the group's own norm, in scales
        blocks = {"linf": size, "blocks": len(group.blocks)}.get(group.kind, 1)
        squares += blocks * (norm * group.scale * (1 + steps / (group.sensitivity * noise.unit))) ** 2
    return math.sqrt(squares) * SAFELY + noise.lattice_error


def most_rows(parameters: PrivacyParameters, n_rows: int | None) -> int:
    """The public number of rows, or where that is private, a public number that it must not exceed."""
    if n_rows is not None and parameters.adjacency == "replace-one":
        return n_rows
    return MANY_ROWS if parameters.expected_rows is None else max(FEW_ROWS, FAR_MORE_ROWS * parameters.expected_rows)
