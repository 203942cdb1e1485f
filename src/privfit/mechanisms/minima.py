"""What is minimised, to what precision, and the minimum itself: shared by all that perturbs an objective or its minimum.

Nothing here draws. The precision is planned from public facts; a minimum that misses it is not handed out.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax

from privfit.losses import ConvexLoss
from privfit.losses.convex import Function
from privfit.mechanisms.rules import FOR_CERTIFICATE
from privfit.mechanisms.tilts import MOST_FINE, SAFE, Tilt
from privfit.privacy import Event, PrivacyError, Terms, exact
from privfit.privacy.event import laplace_scale
from privfit.rows import Features, KeptRows, SampledRows, one_blas_thread
from privfit.rows.dealt import quietly
from privfit.schema import AUTO_KNOTS, Geometry
from privfit.solvers import minimise_certified, newton_on_sample, solver_of
from privfit.statistics import Coupling, Gradients, RowNorms
from privfit.tables import DataError

Floats = NDArray[np.float64]

TOLERANCE = 1e-6
USUAL_LENGTH = 100.0
FEW_TIMES = 3
LONGEST = 1e4
LONG_TILT = 20.0
MANY_ROWS = 1 << 21
FEW_ROWS = 1 << 17
FAR_MORE_ROWS = 4
OUTPUT_STEPS = 64
COARSEST = 64


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
    slack: float
    """How large the L2 norm of the gradient may be where the solver stops, rounding included."""
    sd: float
    """The size of the noise, to compare kinds by."""
    tilt: Tilt | None = None
    output_scale: float = 0.0
    output_unit: int = 1


def minimised(plan: Plan, kept: KeptRows, tilt: Floats) -> Floats:
    """The minimum of the tilted objective, certified; an error, and no weights, where it is not."""
    gradients, ridge = plan.gradients, plan.ridge
    respond, bend = responses(gradients)
    start = np.zeros_like(tilt)
    sample = kept.sample()
    rough = kept.n_rows * gradients.of_one_row("l2") * (TOLERANCE if sample.weight == 1 else 0.01 * math.sqrt(sample.weight / kept.n_rows))

    def gradient(weights: Floats) -> Floats:
        return kept.pulled(weights, respond) + ridge * weights + tilt

    def solver(rows: KeptRows | SampledRows, weights: Floats) -> Callable[[Floats], Floats]:
        return solver_of(rows.curved(weights, bend), ridge, shifts_are_free=gradients.coupling == "softmax")

    found = None
    try:
        with quietly():  # a warning would tell of the rows
            with one_blas_thread():
                start, solve = newton_on_sample(
                    lambda w: sample.pulled(w, respond) + ridge * w + tilt, lambda w: solver(sample, w), start, rough
                )
            if kept.rows_for_curvature > sample.n_rows:
                solve = solver(kept, start)
            found = minimise_certified(gradient, plan.slack / 2, start, solve)
    except (DataError, PrivacyError, OSError, MemoryError):
        raise  # of reading: functions of the user's own raise none of these
    except Exception:
        pass  # it knows of the rows, and must not be told, in its chain neither
    if found is None or not found.gradient_norm + _rounded(plan, kept, found.weights, tilt) <= plan.slack:
        raise PrivacyError(
            f"The solver was given {kept.n_columns} columns and a ridge of {ridge:.3g} and did not reach the precision that privacy rests on. "
            "Nothing is released, and the charge stands. Use a larger ridge, or fewer columns."
        ) from None
    return found.weights


def _rounded(plan: Plan, kept: KeptRows, weights: Floats, tilt: Floats) -> float:
    """The most that rounding can have moved the gradient at these weights."""
    gradients = plan.gradients
    off = kept.rounding(weights, gradients.of_slopes("l2"), gradients.sharpest, gradients.loss.offset)
    return off + 2.0**-50 * float(plan.ridge * np.linalg.norm(weights) + np.linalg.norm(tilt))


def responses(gradients: Gradients) -> tuple[Callable[[Floats, Floats], Floats], Callable[[Floats, Floats], Floats]]:
    """The slopes and curvatures of rows, from predictors and targets."""
    loss = gradients.loss
    if gradients.coupling == "one":  # functions of the user's own may return one number for all rows
        return (lambda z, y: _quiet(loss.slope, z, y)), (lambda z, y: _quiet(loss.curvature, z, y))
    if gradients.coupling == "one-vs-rest":

        def sides(target: Floats) -> Floats:
            return np.asarray(2.0 * (target[:, None] == np.arange(gradients.classes)) - 1.0)

        return lambda scores, target: _quiet(loss.slope, scores, sides(target)), lambda scores, target: _quiet(
            loss.curvature, scores, sides(target)
        )

    def slopes(scores: Floats, target: Floats) -> Floats:
        chances = softmax(scores, axis=1)
        chances[np.arange(len(target)), target.astype(np.intp)] -= 1.0
        return np.asarray(chances)

    def bends(scores: Floats, target: Floats) -> Floats:
        chances = softmax(scores, axis=1)
        return np.asarray(chances * (1 - chances))

    return slopes, bends


def _quiet(function: Function, scores: Floats, target: Floats) -> Floats:
    """A function of the user's own for every row, in the thread that computes it: neither numpy's warnings nor errors of any kind get out, which would tell of a row."""
    try:
        with np.errstate(all="ignore"):
            return np.broadcast_to(function(scores, target), scores.shape)
    except Exception:
        raise ArithmeticError from None


def needed_precision(gradients: Gradients, terms: Terms, n_rows: int | None, sd: float, ridge: float = math.inf) -> float:
    """How precise a minimum must be, from public facts: far below the noise, and twice what rounding can do to a sum over so many rows and to a tilt of this size.

    Rounding is proportional to the length of the weights. That is planned to be usual, or, where noise over the ridge makes them longer, a few times that, within reason; and ten times as long as long as little precision is lost.
    """
    rows = n_rows if n_rows is not None and terms.adjacency == "replace-one" else _most_rows(terms)

    def rounding(length: float) -> float:
        sums = KeptRows.most_rounding(
            rows,
            gradients.norms.l2,
            gradients.norms.columns,
            length,
            gradients.of_slopes("l2"),
            gradients.sharpest,
            gradients.loss.offset,
        )
        return sums + 2.0**-50 * LONG_TILT * sd * math.sqrt(gradients.values)

    wanted = TOLERANCE * gradients.sensitivity("l2")
    length = max(USUAL_LENGTH, min(FEW_TIMES * sd * math.sqrt(gradients.values) / ridge, LONGEST))
    return 2 * max(wanted, rounding(length), min(rounding(10 * length), 2 * wanted))


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
    unit = 1 << min(max(0, math.ceil(math.log2(OUTPUT_STEPS * values / apart))), MOST_FINE)
    scale = laplace_scale(math.ceil(apart * unit / SAFE) + values, exact(terms.budget.epsilon) * exact(FOR_CERTIFICATE))
    return replace(plan, output_scale=scale, output_unit=unit)


def public_rows(n_rows: int, terms: Terms) -> int | None:
    """The number of rows as far as it is public."""
    return n_rows if terms.adjacency == "replace-one" else terms.expected_rows


def _most_rows(terms: Terms) -> int:
    """Where the number of rows is private: a public number that it must not exceed."""
    return MANY_ROWS if terms.expected_rows is None else max(FEW_ROWS, FAR_MORE_ROWS * terms.expected_rows)


def check_number(n_rows: int, terms: Terms) -> None:
    """Refuse more rows than the precision was planned for, where their number is private."""
    if terms.adjacency == "add-remove" and n_rows > _most_rows(terms):
        raise DataError(
            f"The table has more rows than the precision of this fit was planned for ({_most_rows(terms)}). Give a public guess{' that is nearer' * (terms.expected_rows is not None)}, expected_rows=.... Nothing was charged."
        )
