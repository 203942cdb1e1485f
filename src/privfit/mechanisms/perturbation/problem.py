"""What is minimised (`ERMProblem`), how far a person can move its gradients (`Gradients`), what is decided before a row
is read (`ERMPlan`), and what a fit is (`ERMFit`): shared by all mechanisms that fit weights to a convex loss.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax

from privfit.features import FeatureMap
from privfit.losses import LOGISTIC, ConvexLoss
from privfit.mechanisms.base import ReleasePlan
from privfit.mechanisms.perturbation.defaults import LEAST_STRETCH, MOST_STRETCH, SOFTMAX_FROM, UNDONE
from privfit.privacy.guarded import guarded_values
from privfit.privacy.parts import Laplace
from privfit.schema import AUTO_KNOTS, Norm, RowNorms, Schema

if TYPE_CHECKING:
    from privfit.mechanisms.perturbation.certainty import Certainty
    from privfit.mechanisms.perturbation.interaction_terms import InteractionTerms
    from privfit.mechanisms.perturbation.objective_noise import ObjectiveNoise
    from privfit.mechanisms.perturbation.penalty_matrix import PenaltyMatrix
    from privfit.mechanisms.perturbation.precision import Precision

Floats = NDArray[np.float64]
Derivative = Callable[[Floats, Floats], Floats]
LARGEST_EXPONENT = 700.0
"""exp overflows beyond; a log-determinant term that may cost more than this needs hardly any ridge."""
UNSTATED = 2.0
"""A safety factor on a smoothness or an excess that a grid finds: it costs a factor of sqrt(2) in passes of a solver
that is hardly ever used (`solvers/accelerated.py`).
"""
Coupling = Literal["one", "softmax", "one-vs-rest"]


@dataclass(frozen=True)
class ERMProblem:
    """What is minimised: the sum of a loss over rows, with a ridge on every weight.

    `knots` is how many numbers have as splines. `classes` is 1 for one linear predictor, or the number of classes with
    a predictor each, which `coupling` joins. `features` maps encoded rows to others first.
    """

    loss: ConvexLoss
    fit_intercept: bool = True
    classes: int = 1
    coupling: Coupling = "one"
    features: FeatureMap | None = None
    knots: int = AUTO_KNOTS
    max_weight: float | None = None
    """The bound of rows' weights, where they have some."""
    class_weights: tuple[float, ...] = ()
    """What rows of each class count, where that is not the same: public, or released before."""

    @property
    def most_weight(self) -> float:
        """The most that a row can count. The fit measures weights in it: there every row counts from 0 to 1."""
        return (self.max_weight or 1.0) * max(self.class_weights, default=1.0)


@dataclass(frozen=True)
class Gradients:
    """The gradients of a loss over rows with these norms, of one linear predictor or of one per class.

    `coupling` says how several classes share a row: "softmax" is logistic regression for all of them together,
    "one-vs-rest" is the loss of every class against the others, added up. A person has at most `rows_per_person` rows
    that leave and, where neighbours replace rows, as many that enter.

    Guarantee: docs/proofs/perturbation.md, Lemmas 1 to 3.
    """

    norms: RowNorms
    loss: ConvexLoss
    classes: int = 1
    coupling: Coupling = "one"
    rows_per_person: int = 1
    replace: bool = True
    values: int = field(init=False, repr=False, compare=False)
    """How many weights there are."""
    slope_norm: dict[Norm, float] = field(init=False, repr=False, compare=False)
    """The largest norms of a row's slopes: the Lipschitz constant of the loss, times what classes add to it."""
    gradient_norm: dict[Norm, float] = field(init=False, repr=False, compare=False)
    """The largest norms of one row's gradient."""
    sensitivity: dict[Norm, float] = field(init=False, repr=False, compare=False)
    """The largest differences, in these norms, of neighbours' sums of gradients at the same weights."""
    smoothness: float = field(init=False, repr=False, compare=False)
    """A bound of the largest eigenvalue of a row's Hessian in its predictors; twice what a grid finds where the loss
    states none.
    """
    self_bound: float = field(init=False, repr=False, compare=False)
    """Over epsilon it is the least ridge at which noise that is calibrated to this epsilon for gradients alone covers
    the log-determinant term as well, if the slopes of several predictors add up in its norm: where the curvature is
    self-bounded (`ConvexLoss.taper`), a row with the largest slope has no curvature left. Infinite if there is none.
    """
    offset: float = field(init=False, repr=False, compare=False)
    """How far from zero the predictors of a row are computed, in L2."""
    excess_at_zero: float = field(init=False, repr=False, compare=False)
    """The most by which a row's loss at zero weights exceeds its infimum; infinite where the loss does not say."""
    likely_excess: float = field(init=False, repr=False, compare=False)
    """The same, or where it is not stated, twice what a grid finds: how long minima are planned to be."""
    row_slopes: Derivative = field(init=False, repr=False, compare=False)
    """The slopes of rows, from predictors and targets."""
    row_curvatures: Derivative = field(init=False, repr=False, compare=False)
    """Their curvatures in the same way."""

    def __post_init__(self) -> None:
        """Softmax slopes are probabilities less the indicator of the row's class: their positive part sums to at most
        1, and so does their negative part. The largest eigenvalue of diag(p) - pp' is a half.
        """
        loss, norms, classes, softmax = self.loss, self.norms, self.classes, self.coupling == "softmax"
        several: dict[str, tuple[float, float]] = {
            "one": (1.0, 1.0),
            "softmax": (2.0, math.sqrt(2.0)),
            "one-vs-rest": (float(classes), math.sqrt(classes)),
        }
        (l1, l2), lipschitz = several[self.coupling], loss.most_slope
        assert lipschitz is not None
        slopes: dict[Norm, float] = {"l1": lipschitz * l1, "l2": lipschitz * l2, "linf": lipschitz}
        largest: dict[Norm, float] = {"l1": norms.l1, "l2": norms.l2, "linf": norms.linf}
        gradients = {norm: slopes[norm] * largest[norm] for norm in slopes}
        neighbours = (2 if self.replace else 1) * self.rows_per_person
        curvature = loss.smoothness if loss.most_curvature is None else loss.most_curvature
        if curvature is None and not softmax:
            curvature = UNSTATED * loss.found_smoothness()
        free = math.inf
        if loss.taper is not None and not softmax:
            free = loss.taper * neighbours * classes * lipschitz * norms.l2**2
        excess = math.inf if loss.excess_at_zero is None else classes * loss.excess_at_zero
        excess = math.log(classes) if softmax else excess
        found = math.inf if loss.likely_excess is None else UNSTATED * classes * loss.likely_excess
        derived = {
            "values": norms.columns * classes,
            "slope_norm": slopes,
            "gradient_norm": gradients,
            "sensitivity": {norm: neighbours * gradients[norm] for norm in gradients},
            "smoothness": 0.5 if softmax else curvature,
            "self_bound": free,
            "offset": loss.offset * (math.sqrt(classes) if self.coupling == "one-vs-rest" else 1.0),
            "excess_at_zero": excess,
            "likely_excess": min(excess, found),
        }
        for name, value in derived.items():
            object.__setattr__(self, name, value)
        for name, derivative in zip(("row_slopes", "row_curvatures"), derivatives(self), strict=True):
            object.__setattr__(self, name, derivative)

    @property
    def corners(self) -> int:
        """How many corners, other than none at all, the set of a row's slopes has."""
        if self.coupling == "one":
            return 1 if self.loss.one_sided else 2
        return self.classes - 1 if self.coupling == "softmax" else 2**self.classes - self.loss.one_sided

    # -- second derivatives: what the log-determinant term costs -----------------------------------

    def log_determinant_cost(self, ridge: float) -> float:
        """The most by which the rows of one person change the log-determinant of the Hessian, with this ridge: an
        amount of epsilon.
        """
        directions, curvature = self._row_curvature
        return self.rows_per_person * directions * math.log1p(curvature * self.norms.l2**2 / ridge)

    def ridge_for_cost(self, cost: float) -> float:
        """The least ridge at which `log_determinant_cost` is at most this much."""
        directions, curvature = self._row_curvature
        share, row = cost / (self.rows_per_person * directions), curvature * self.norms.l2**2
        return row / math.expm1(share) if share < LARGEST_EXPONENT else row * math.exp(-LARGEST_EXPONENT)

    @property
    def _row_curvature(self) -> tuple[int, float]:
        """The rank of a row's Hessian in its predictors, and a bound of the mean of its eigenvalues."""
        if self.coupling == "softmax":  # the trace of diag(p) - p p' is at most 1 - 1 / classes
            return self.classes - 1, 1 / self.classes
        curvature = self.loss.most_curvature
        return self.classes, math.inf if curvature is None else curvature


def derivatives(gradients: Gradients) -> tuple[Derivative, Derivative]:
    """The slopes and curvatures of rows, from predictors and targets.

    Neither raises: ready-made ones keep to what the loss states, others are called with a guard.
    """
    if gradients.coupling == "softmax":
        return _softmax_slopes, _softmax_curvatures
    loss, steepest = gradients.loss, gradients.slope_norm["linf"]
    (slope, curvature), (own_slope, own_curvature) = (loss.slope, loss.curvature), loss.own_derivatives
    if not own_slope:
        slope = partial(guarded_values, loss.slope, low=-steepest, high=steepest)
    if not own_curvature:
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


@dataclass(frozen=True)
class ERMPlan(ReleasePlan):
    """All that is decided before a row is read, and its price."""

    problem: ERMProblem
    gradients: Gradients
    ridge: float
    precision: Precision
    """How near its minimum the solver comes, whatever the rows are."""
    sd: float
    """The size of the noise, to compare kinds by."""
    noise: ObjectiveNoise | None = None
    """The random linear term; None where noise is on the minimum."""
    certificate: Laplace | None = None
    """The noise on the weights that covers what the solver leaves open; None where noise is on the minimum."""
    terms: InteractionTerms | None = None
    """Interaction terms beside the weights, if there are any."""
    fine: bool = False
    """Whether the cached design keeps fine cells of numbers, because interaction terms may ask for them."""
    penalty: PenaltyMatrix | None = None
    """What is penalised more than by the ridge, which is then the least eigenvalue of the penalty."""

    def penalised(self, weights: Floats) -> Floats:
        """The gradient of the penalty at these weights."""
        shrunk = self.ridge * weights
        return shrunk if self.penalty is None else shrunk + self.penalty.gradient(weights)

    def penalty_hessian(self, weights: Floats) -> Floats:
        """The second derivative of the penalty at these weights."""
        ridge = self.ridge * np.eye(len(weights))
        return ridge if self.penalty is None else ridge + self.penalty.hessian(weights)


@dataclass(frozen=True)
class PairTable:
    """An interaction term: a pair of columns, by their places among the schema's features, and what each of its cells
    adds to a row's score, the cell of the second turning fastest. A column twice is a number by itself, in fine cells.
    """

    columns: tuple[int, int]
    scores: Floats


def named_pairs(pairs: Sequence[PairTable], schema: Schema) -> str:
    """The columns of interaction terms, in words."""
    names = [column.name for column in schema.features]
    told = [(table.columns, [names[place] for place in table.columns]) for table in pairs]
    return ", ".join(f"{both[0]} in fine steps" if pair[0] == pair[1] else " x ".join(both) for pair, both in told)


@dataclass(frozen=True)
class ERMFit:
    """Weights per encoded column and class, as released or debiased; the ridge; and the loss that they minimise."""

    weights: Floats
    ridge: float
    loss: ConvexLoss
    coupling: Coupling = "one"
    features: FeatureMap | None = None
    setting: str = ""
    """Which setting was chosen, where there was a choice."""
    n_rows: int | None = None
    """How many rows there were, as far as that is public."""
    stretches: tuple[float, ...] = ()
    """By what the weights of each column of the table were stretched about their mean afterwards."""
    pairs: tuple[PairTable, ...] = ()
    """Interaction terms that count beside the weights."""
    class_weights: tuple[float, ...] = ()
    """What rows of each class counted, where that was bought."""
    most_weight: float = 1.0
    """The most that a row could count; `ridge` is beside a sum of rows that count at most 1."""
    certainty: Certainty | None = None
    """How sure the weights are, where that was bought."""

    def debiased(self, norms: RowNorms, has_intercept: bool, sd: float) -> ERMFit:
        """The fit with every block of columns stretched about its mean: undoes part of what ridge and noise did to it,
        by the public rule of docs/classifiers.md; for one linear predictor and a public number of rows.

        Guarantee: post-processing of the released weights; docs/proofs/perturbation.md, after Theorem 3.
        """
        assert self.n_rows is not None
        weights = self.weights[:, 0].copy()
        slopes = [slice(column, column + 1) for column in norms.singles if not (has_intercept and column == 0)]
        blocks = [slice(*ends) for ends in norms.blocks]
        means = [0.0 for _ in slopes] + [float(weights[block].mean()) for block in blocks]
        score = np.array([float(weights[0]) * has_intercept + sum(means)])  # of a row in the middle
        probability = 1 / (1 + math.exp(-float(np.clip(self.loss.log_odds(score)[0], -500, 500))))
        ends = [float(self.loss.curvature(score, np.array([side]))[0]) for side in (1.0, -1.0)]
        curvature = self.n_rows * (probability * ends[0] + (1 - probability) * ends[1])
        stretches = []
        for block, mean in zip(slopes + blocks, means, strict=True):
            own = weights[block] - mean
            stretches.append(stretch(float(own @ own), len(own), self.ridge, sd, curvature))
            weights[block] = mean + stretches[-1] * own
        return replace(self, weights=weights[:, None], stretches=tuple(stretches))


def stretch(square: float, width: int, ridge: float, sd: float, curvature: float) -> float:
    """By how much a block's scores are too small, or too large: part of what it would be if its levels were equally
    frequent, and independent of other columns.

    `square` is the squared length of its weights about their mean, `curvature` that of the loss over all rows. A
    minimum w of a quadratic with Hessian H, ridge R and linear term b has H w* = (H + R) w + b, w* the minimum without
    both. The stretched t w is nearest to w*, measured by H, for t - 1 = (R |w|^2 + w'b) / (w'H w), and w'b is -sd^2
    times the trace of 1 / (H + R) on average.
    """
    own = curvature / width
    if not (math.isfinite(square) and own * square > 0):
        return 1.0
    lost = ridge * square - sd**2 * max(width - 1, 1) / (own + ridge)
    return min(max(1 + UNDONE * lost / (own * square), LEAST_STRETCH), MOST_STRETCH)


def usual_curvature(loss: ConvexLoss, coupling: Coupling) -> float:
    """A row's usual curvature, guessed from the smoothness and the Lipschitz constant: a tenth for the logistic loss.

    It scales as the loss does in other units.
    """
    assert loss.most_slope is not None
    return 0.1 if coupling == "softmax" else math.sqrt(0.4 * loss.sharpest * 0.1 * loss.most_slope)


def coupling_for(loss: ConvexLoss, classes: int) -> Coupling:
    """How several classes share a row: by softmax for the logistic loss, each against the rest for others."""
    if classes == 1:
        return "one"
    return "softmax" if loss == LOGISTIC and classes >= SOFTMAX_FROM else "one-vs-rest"
