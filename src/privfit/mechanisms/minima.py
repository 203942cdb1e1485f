"""What is minimised, and a point as near its minimum as the plan says: shared by all that perturbs an objective or its minimum.

Nothing here draws, and after the charge nothing here fails by the rows: precision.py plans for every table.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax

from privfit.losses import ConvexLoss, is_ready_made
from privfit.losses.convex import Function
from privfit.mechanisms.precision import OUTPUT_TOLERANCE, Precision, most_rows
from privfit.mechanisms.rules import FOR_CERTIFICATE
from privfit.mechanisms.tilts import MOST_FINE, SAFE, Tilt
from privfit.privacy import Event, Ledger, PrivacyError, Terms, exact
from privfit.privacy.event import laplace_scale
from privfit.privacy.guarded import guarded_values, quietly
from privfit.rows import Features, KeptRows, Rows, SampledRows, one_blas_thread
from privfit.schema import AUTO_KNOTS, Geometry
from privfit.solvers import Minimum, accelerated_descent, minimise_certified, newton_on_sample, solver_of
from privfit.statistics import Coupling, Gradients, RowNorms
from privfit.tables import DataError

Floats = NDArray[np.float64]

SAMPLE_TOLERANCE = 1e-6
"""The gradient at which Newton's method on all rows stops, as a share of the largest one; minimise_certified goes on from there."""
OUTPUT_STEPS = 64
COARSEST = 64
MOST_BITS = 61
"""Weights on their lattice stay below 2^61, so that they are exact as 64-bit integers with noise on them."""


@dataclass(frozen=True)
class Risk:
    """What is minimised: the sum of a loss over rows, with a ridge on every weight.

    `knots` is how many numbers have as splines. `classes` is 1 for one linear predictor, or the number of classes with a predictor each, which `coupling` joins. `features` maps encoded rows to others first.
    """

    loss: ConvexLoss
    fit_intercept: bool = True
    classes: int = 1
    coupling: Coupling = "one"
    features: Features | None = None
    knots: int = AUTO_KNOTS

    def norms(self, geometry: Geometry) -> RowNorms:
        """The largest norms of a row."""
        return RowNorms.of(geometry) if self.features is None else self.features.norms


@dataclass(frozen=True)
class PairTable:
    """A pair of columns, by their places among the schema's features, and what each of its cells adds to a row's score, the cell of the second turning fastest. A column twice is a number by itself, in fine cells."""

    columns: tuple[int, int]
    scores: Floats


@dataclass(frozen=True)
class RiskFit:
    """Weights per encoded column and class, as released or less shrunk; the ridge; and the loss that they minimise."""

    weights: Floats
    ridge: float
    loss: ConvexLoss
    coupling: Coupling = "one"
    features: Features | None = None
    setting: str = ""
    """Which setting was chosen, where there was a choice."""
    n_rows: int | None = None
    """How many rows there were, as far as that is public."""
    stretches: tuple[float, ...] = ()
    """By what the weights of each column of the table were stretched about their middle afterwards."""
    pairs: tuple[PairTable, ...] = ()
    """Tables of pairs of columns that count beside the weights."""


@dataclass(frozen=True)
class Plan:
    """All that is decided before a row is read, and its price."""

    gradients: Gradients
    ridge: float
    event: Event
    precision: Precision
    """How near its minimum the solver comes, whatever the rows are."""
    sd: float
    """The size of the noise, to compare kinds by."""
    tilt: Tilt | None = None
    output_scale: float = 0.0
    output_unit: int = 1

    @property
    def slack(self) -> float:
        """How large the L2 norm of the gradient may be where the solver stops, rounding included."""
        return self.precision.slack


def minimised(plan: Plan, kept: KeptRows, tilt: Floats) -> Floats:
    """A point within slack / ridge of the minimum of the tilted objective, or, if the plan says so, any point of the ball.

    The usual solver finds it; where it does not, accelerated gradient descent does, in a public number of steps. Which
    of them it was shows in the time taken only.

    Guarantee: docs/proofs/perturbation.md, Theorem 6.
    """
    with quietly():  # a warning would tell of the rows
        found = _usual_minimum(plan, kept, tilt)
        if plan.precision.solves and (found is None or not found.gradient_norm + _rounded(plan, kept, found.weights, tilt) <= plan.slack):
            return _in_ball(_descended(plan, kept, tilt, found), plan.precision.ball)
        return _in_ball(np.zeros_like(tilt) if found is None else found.weights, plan.precision.ball)


def _usual_minimum(plan: Plan, kept: KeptRows, tilt: Floats) -> Minimum | None:
    """The best point of a fast solver, that promises nothing."""
    gradients, ridge = plan.gradients, plan.ridge
    respond, bend = responses(gradients)
    wanted = plan.slack / 2 if plan.precision.solves else OUTPUT_TOLERANCE * gradients.sensitivity("l2")

    def solver(rows: KeptRows | SampledRows, weights: Floats) -> Callable[[Floats], Floats]:
        return solver_of(rows.curved(weights, bend), ridge, shifts_are_free=gradients.coupling == "softmax")

    try:
        sample = kept.sample()
        share = SAMPLE_TOLERANCE if sample.weight == 1 else 0.01 * math.sqrt(sample.weight / kept.n_rows)
        rough = kept.n_rows * gradients.of_one_row("l2") * share
        with one_blas_thread():
            start, solve = newton_on_sample(
                lambda w: sample.pulled(w, respond) + ridge * w + tilt, lambda w: solver(sample, w), np.zeros_like(tilt), rough
            )
        if kept.rows_for_curvature > sample.n_rows:
            solve = solver(kept, start)
        return minimise_certified(_gradient(plan, kept, tilt), wanted, start, solve)
    except (DataError, PrivacyError, OSError):
        raise  # of reading: functions of the user's own raise none of these
    except Exception:
        return None  # it knows of the rows, and must not be told; nor how much memory a dense sample of them takes


def _gradient(plan: Plan, kept: KeptRows, tilt: Floats) -> Callable[[Floats], Floats]:
    """The gradient of the tilted objective over all rows."""
    respond, _ = responses(plan.gradients)
    return lambda weights: kept.pulled(weights, respond) + plan.ridge * weights + tilt


def _descended(plan: Plan, kept: KeptRows, tilt: Floats, found: Minimum | None) -> Floats:
    """The same by accelerated gradient descent, from where the usual solver came to if that is no worse than zero."""
    precision = plan.precision

    def bound(weights: Floats, gradient: Floats) -> float:
        return float(np.linalg.norm(gradient)) + _rounded(plan, kept, weights, tilt)

    gradient, start = _gradient(plan, kept, tilt), np.zeros_like(tilt)
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
    """The nearest point of the ball that every minimum is in: no farther from any of them. Zero where there is no number."""
    length = float(np.linalg.norm(weights))
    if not math.isfinite(length):
        return np.zeros_like(weights)
    return weights if length <= radius else weights * (radius * (1 - (weights.size + 8) * 2.0**-52) / length)


def _rounded(plan: Plan, kept: KeptRows, weights: Floats, tilt: Floats) -> float:
    """The most that rounding can have moved the gradient at these weights."""
    gradients = plan.gradients
    off = kept.rounding(weights, gradients.of_slopes("l2"), gradients.smoothness, gradients.offset)
    return off + 2.0**-50 * float(plan.ridge * np.linalg.norm(weights) + np.linalg.norm(tilt))


def responses(gradients: Gradients) -> tuple[Callable[[Floats, Floats], Floats], Callable[[Floats, Floats], Floats]]:
    """The slopes and curvatures of rows, from predictors and targets. Neither raises, whatever a loss of the user's own does."""
    loss = gradients.loss
    if gradients.coupling == "softmax":
        return _softmax_slopes, _softmax_curvatures
    slope = _kept_to(loss.slope, -gradients.most_slope, gradients.most_slope)
    curvature = _kept_to(loss.curvature, 0.0, gradients.smoothness)
    if gradients.coupling == "one":
        return slope, curvature

    def sides(target: Floats) -> Floats:
        return np.asarray(2.0 * (target[:, None] == np.arange(gradients.classes)) - 1.0)

    return lambda scores, target: slope(scores, sides(target)), lambda scores, target: curvature(scores, sides(target))


def _kept_to(function: Function, low: float, high: float) -> Callable[[Floats, Floats], Floats]:
    """A function of a loss for every row, kept to the bounds that the loss states; 0 for a row for which it fails. Ready-made ones keep to them by themselves."""

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


def finest(precision: Precision) -> int:
    """The logarithm of the finest lattice on which every point of the ball is a 64-bit integer, with room for noise.

    A ball that no lattice of integers can hold is refused, from public facts.
    """
    if not precision.ball < 2.0**MOST_BITS:
        raise PrivacyError(
            f"The weights that this ridge and this noise allow are up to {precision.ball:.3g} long, beyond all 64-bit integers. "
            "Use a larger ridge or epsilon. Nothing was charged."
        )
    return MOST_BITS - math.ceil(math.log2(max(precision.ball, 1e-300)))


def with_output_noise(plan: Plan, terms: Terms) -> Plan:
    """The plan with the noise on the output that covers what the solver and the lattice of the tilt leave open.

    Two minima that are known up to a gradient of L2 norm g lie within 2 g / ridge of where they would be: at most sqrt(values) times that in L1, and a lattice step per value.
    """
    values = plan.gradients.values
    assert plan.tilt is not None
    certified = plan.slack + plan.tilt.blur
    apart = 2 * certified * math.sqrt(values) / plan.ridge
    if not apart * COARSEST >= values * 2.0**-MOST_FINE:
        raise PrivacyError(
            f"A ridge of {plan.ridge:.3g} was asked for; weights would be smaller than the lattice that they are released on. Use a smaller one, or 'auto'."
        )
    fine = min(math.ceil(math.log2(OUTPUT_STEPS * values / apart)), MOST_FINE, finest(plan.precision))
    unit = 1 << max(0, fine)
    scale = laplace_scale(math.ceil(apart * unit / SAFE) + values, exact(terms.budget.epsilon) * exact(FOR_CERTIFICATE))
    return replace(plan, output_scale=scale, output_unit=unit)


def public_rows(n_rows: int, terms: Terms) -> int | None:
    """The number of rows as far as it is public."""
    return n_rows if terms.adjacency == "replace-one" else terms.expected_rows


def check_price(ledger: Ledger | None, rows: Rows, terms: Terms, event_for: Callable[[int | None], Event]) -> None:
    """Ask the ledger, before a long reading, whether it could pay for the event that follows from a public number of rows.

    Where that number is not known yet, a plan that is refused for lack of it says nothing: it is made again after the rows were counted, before the charge.
    """
    if ledger is None:
        return
    unread = terms.adjacency == "replace-one" and rows.known_rows is None
    try:
        event = event_for(rows.known_rows if terms.adjacency == "replace-one" else terms.expected_rows)
    except PrivacyError:
        if unread:
            return
        raise
    ledger.check(event)


def check_number(n_rows: int, terms: Terms) -> None:
    """Refuse more rows than the precision was planned for, where their number is private."""
    most = most_rows(terms, None)
    if terms.adjacency == "add-remove" and n_rows > most:
        nearer = " that is nearer" * (terms.expected_rows is not None)
        raise DataError(
            f"The table has more rows than the precision of this fit was planned for ({most}). "
            f"Give a public guess{nearer}, expected_rows=.... Nothing was charged."
        )
