"""How much a ridge has shrunk each column's part in a fit, and noise spread it, told from the released weights and
public facts, and undone in part.

It costs nothing: no row is asked again.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from privfit.features import RowNorms
from privfit.mechanisms.perturbation.problem import ERMFit

Floats = NDArray[np.float64]

UNDONE = 0.5
LEAST_STRETCH = 0.6
MOST_STRETCH = 1.25


def debiased(fit: ERMFit, norms: RowNorms, has_intercept: bool, sd: float, n_rows: int) -> ERMFit:
    """The fit with every block of columns stretched about its middle, by the public rule of docs/classifiers.md; one
    linear predictor.

    Guarantee: post-processing of the released weights; docs/proofs/perturbation.md, after Theorem 3.
    """
    weights = fit.weights[:, 0].copy()
    slopes = [slice(column, column + 1) for column in norms.singles if not (has_intercept and column == 0)]
    blocks = [slice(*ends) for ends in norms.blocks]
    middles = [0.0 for _ in slopes] + [float(weights[block].mean()) for block in blocks]
    curvature = n_rows * _usual_curvature(fit, float(weights[0]) * has_intercept + sum(middles))
    stretches = []
    for block, middle in zip(slopes + blocks, middles, strict=True):
        own = weights[block] - middle
        stretches.append(_stretch(float(own @ own), len(own), fit.ridge, sd, curvature))
        weights[block] = middle + stretches[-1] * own
    return replace(fit, weights=weights[:, None], stretches=tuple(stretches))


def _stretch(square: float, width: int, ridge: float, sd: float, curvature: float) -> float:
    """By how much a block's scores are too small, or too large: part of what it would be if its levels were equally
    frequent, and independent of other columns.

    `square` is the squared length of its weights about their middle, `curvature` that of the loss over all rows. A
    minimum w of a quadratic with curvature H, ridge R and linear term b has H w* = (H + R) w + b, w* the minimum
    without both. The stretched t w is nearest to w*, measured by H, for t - 1 = (R |w|^2 + w'b) / (w'H w), and w'b is
    -sd^2 times the trace of 1 / (H + R) on average.
    """
    bend = curvature / width
    if not (math.isfinite(square) and bend * square > 0):
        return 1.0
    lost = ridge * square - sd**2 * max(width - 1, 1) / (bend + ridge)
    return min(max(1 + UNDONE * lost / (bend * square), LEAST_STRETCH), MOST_STRETCH)


def _usual_curvature(fit: ERMFit, middle: float) -> float:
    """The curvature of a row in the middle, whose class is as likely as its score says."""
    score = np.array([middle])
    chance = 1 / (1 + math.exp(-float(np.clip(fit.loss.log_odds(score)[0], -500, 500))))
    ends = [float(fit.loss.curvature(score, np.array([side]))[0]) for side in (1.0, -1.0)]
    return chance * ends[0] + (1 - chance) * ends[1]
