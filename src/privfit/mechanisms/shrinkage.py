"""How much a ridge and noise have shrunk a fit, told from the released weights and public facts, and undone in part. It costs nothing: no row is asked again."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from privfit.mechanisms.minima import RiskFit
from privfit.statistics import RowNorms

Floats = NDArray[np.float64]

UNDONE = 0.5
LEAST_STRETCH = 1.0
MOST_STRETCH = 2.0


def unshrunk(fit: RiskFit, norms: RowNorms, has_intercept: bool, sd: float, n_rows: int) -> RiskFit:
    """The fit with its scores stretched about their middle, by the public rule of docs/classifiers.md; one linear predictor.

    Guarantee: post-processing of the released weights.
    """
    blocks = [slice(*ends) for ends in norms.blocks]
    slopes = np.array([column for column in norms.singles if not (has_intercept and column == 0)], dtype=np.intp)
    weights = fit.weights[:, 0].copy()
    middles = [float(weights[block].mean()) for block in blocks]
    middle = float(weights[0]) * has_intercept + sum(middles)
    for block, own in zip(blocks, middles, strict=True):
        weights[block] -= own
    widths = [1.0] * len(slopes) + [float(block.stop - block.start) for block in blocks]
    squares = [*(weights[slopes] ** 2).tolist(), *(float(weights[block] @ weights[block]) for block in blocks)]
    stretch = _stretch(np.array(squares), np.array(widths), fit.ridge, sd, n_rows * _usual_curvature(fit, middle))
    weights[slopes] *= stretch
    for block, own in zip(blocks, middles, strict=True):
        weights[block] = own + stretch * weights[block]
    return replace(fit, weights=weights[:, None], stretch=stretch)


def _stretch(squares: Floats, widths: Floats, ridge: float, sd: float, curvature: float) -> float:
    """By how much scores are too small: part of what it would be if the levels of a block were equally frequent, and blocks independent.

    `squares` are the squared lengths of the blocks' weights, `widths` their numbers of levels, `curvature` that of the loss over all rows. A minimum w of a quadratic with curvature H, ridge R and
    tilt b has H w* = (H + R) w + b, w* the minimum without both. The stretched t w is nearest to w*, measured by H, for t - 1 = (R |w|^2 + w'b) / (w'H w), and w'b is -sd^2 times the trace of 1 / (H + R) on average.
    """
    bends = curvature / widths
    free = np.maximum(widths - 1, 1)
    seen = float((bends * squares).sum())
    if not (math.isfinite(seen) and seen > 0):
        return 1.0
    lost = float((ridge * squares - sd**2 * free / (bends + ridge)).sum())
    return min(max(1 + UNDONE * lost / seen, LEAST_STRETCH), MOST_STRETCH)


def _usual_curvature(fit: RiskFit, middle: float) -> float:
    """The curvature of a row in the middle, whose class is as likely as its score says."""
    score = np.array([middle])
    chance = 1 / (1 + math.exp(-float(np.clip(fit.loss.log_odds(score)[0], -500, 500))))
    ends = [float(fit.loss.curvature(score, np.array([side]))[0]) for side in (1.0, -1.0)]
    return chance * ends[0] + (1 - chance) * ends[1]
