"""What is minimised (`ERMProblem`), what is decided before a row is read (`ERMPlan`), and what a fit is (`ERMFit`):
shared by all mechanisms that fit weights to a convex loss.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from privfit.features import FeatureMap
from privfit.losses import LOGISTIC, ConvexLoss
from privfit.mechanisms.base import ReleasePlan
from privfit.mechanisms.perturbation.defaults import LEAST_STRETCH, MOST_STRETCH, SOFTMAX_FROM, UNDONE
from privfit.privacy.parts import Laplace
from privfit.schema import AUTO_KNOTS, RowNorms
from privfit.statistics import Coupling, Gradients

if TYPE_CHECKING:
    from privfit.mechanisms.perturbation.interaction_terms import InteractionTerms
    from privfit.mechanisms.perturbation.objective_noise import ObjectiveNoise
    from privfit.mechanisms.perturbation.penalty_matrix import PenaltyMatrix
    from privfit.mechanisms.perturbation.precision import Precision

Floats = NDArray[np.float64]


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


@dataclass(frozen=True)
class PairTable:
    """An interaction term: a pair of columns, by their places among the schema's features, and what each of its cells
    adds to a row's score, the cell of the second turning fastest. A column twice is a number by itself, in fine cells.
    """

    columns: tuple[int, int]
    scores: Floats


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
