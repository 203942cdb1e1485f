"""Rules and constants of the functional mechanism that steer accuracy, never privacy; from public facts alone."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from privfit.schema import Geometry
from privfit.solvers import (
    NoiseLevel,
)
from privfit.statistics import (
    Moments,
    distinct_sensitivity,
    linf_sensitivities,
    squared_l2_sensitivity,
)

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

EXPECTED_WEIGHT_NORM = 0.35
"""The length of the weights that the noise on features and on the target is balanced for: too small a guess buys the
target too finely, too large a one the features: python papers/experiments/constants.py."""
AUTO_L1 = AUTO_L2 = 0.1
"""Automatic penalties, as a share of the noise in the gradient (L1) and of the noise matrix (L2): larger ones help at
small epsilons and hurt at larger ones: python papers/experiments/constants.py."""
STIFFEST = 10.0
"""Directions that the repair pins have at most so many times the largest curvature that is known: more would only
condition the penalised problem worse. See docs/constants.md."""
LEAST_TARGET_WEIGHT, MOST_TARGET_WEIGHT = 1 / 64, 8.0
"""Limits of how much finer the target's lattice is than the others'. See docs/constants.md."""
USUAL_RERUNS = 1000
"""How many draws `repair="rerun"` makes on average before it gives up. Chosen, not measured."""
MOST_MOMENT_COLUMNS = 4000
"""More encoded columns are refused: about half their square is released and held in memory."""
KIND_MARGIN = 0.98
"""Another kind of noise than the first is taken where its expected error is below this share. See docs/constants.md."""
SQUARE_WEIGHTS = {"laplace": 0.25, "l2": 0.5, "gaussian": 0.5, "linf": MOST_TARGET_WEIGHT}
"""How finely the target's square is bought for intervals: it hardly changes the noise of the other values,
and L-infinity noise not at all."""


def automatic_penalty(sizes: Floats, half: float, noise: NoiseLevel) -> tuple[Floats, Floats]:
    """The penalty that "auto" stands for, from public facts: the noise's level and the columns' units.

    For |c_j|: a share of the standard deviation of the noise in the gradient, so that coefficients which noise alone
    would explain go to zero. For c_j^2 / 2: a share of the size of the noise matrix, as encoded columns feel it. Both
    shares were chosen on generated data.
    """
    gradient = math.hypot(noise.vector, noise.matrix * math.hypot(EXPECTED_WEIGHT_NORM, 0.5))
    return AUTO_L1 * gradient * half * sizes, AUTO_L2 * noise.matrix * math.sqrt(len(sizes)) * sizes**2


def target_weight(geometry: Geometry, kind: str = "laplace") -> float:
    """How much finer the target's lattice is than the others', by a public rule.

    An error e in X't moves the weights as e does, an error E in X'X as E w does. With the target's moments at weight t,
    Laplace noise is proportional to D_x + t D_t in both, and the sum of squares (D_x + t D_t)^2 (1 / t^2 + |w|^2) is
    least at t^3 = D_x / (D_t |w|^2). In L2 it is (D_x^2 + t^2 D_t^2) (1 / t^2 + |w|^2), least at t^4 = D_x^2 / (D_t^2
    |w|^2). L-infinity noise of p_x and p_t values has a standard deviation proportional to their numbers:
    (D_x + t D_t)^2 (p_t^2 / t^2 + p_x^2 |w|^2), least at t^3 = D_x p_t^2 / (D_t p_x^2 |w|^2). The norm of w, unknown
    and private, is replaced by a constant chosen on generated data.
    """
    if kind == "linf":
        features, target = linf_sensitivities(geometry, Fraction(1), "replace-one")
        sizes = Moments(geometry).parts("replace-one")
        ratio = float(features / target) * (sizes[-1] / sizes[0]) ** 2 if len(sizes) > 1 and target > 0 else 1.0
        return float(min(max((ratio / EXPECTED_WEIGHT_NORM**2) ** (1 / 3), LEAST_TARGET_WEIGHT), MOST_TARGET_WEIGHT))
    sensitivity = distinct_sensitivity if kind == "laplace" else squared_l2_sensitivity
    features = sensitivity(geometry, Fraction(0), "replace-one")
    target = sensitivity(geometry, Fraction(1), "replace-one") - features
    if features <= 0 or target <= 0:
        return 1.0
    best = float(features / target) / EXPECTED_WEIGHT_NORM**2
    return float(min(max(best ** (1 / 3 if kind == "laplace" else 1 / 4), 1.0), MOST_TARGET_WEIGHT))
