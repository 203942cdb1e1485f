"""How far noise can have moved the curves of a regression: bands from the known noise, and from a noisy count of rows.

Noise b in an objective with Hessian H and penalty P moves its minimum by about (H + P)^-1 b. The covariance of b and P
are public; H is not. Without asking for more, it is taken as nothing, which holds for every table and gives wide bands.
Else the sums over rows of curvature times columns are bought, which bound H from below, column by column of the table.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from privfit.mechanisms.base import PublicFacts
from privfit.mechanisms.perturbation.problem import ERMPlan
from privfit.privacy.event import laplace_scale
from privfit.privacy.parts import Laplace
from privfit.rows import CachedDesign
from privfit.schema import Block, Geometry

Floats = NDArray[np.float64]

FOR_BANDS = Fraction(4, 100)
"""The share of epsilon for sums of curvatures, where bands are asked for: more narrows bands of rare levels and
of small tables, and leaves less for the weights. Chosen, not measured."""
EXPLAINED = 0.75
"""So much of a column's variance may be explained by the others: bands are wider by 4 sqrt(7/4), about 5, than for
columns that have nothing in common. With two thirds a column was covered 82% of the time where all have a correlation
of .9: python papers/experiments/bands.py."""
NORMAL = 1.645
"""Noise exceeds so many standard deviations once in ten times; Laplace noise does so a little less often."""
SUM_UNIT = 1 << 19
"""Steps to 1 of a sum: a curvature has three bits behind the point, a number 16."""
EIGHTHS = np.arange(8, -1, -1) / 8
"""Curvatures are rounded down to eighths."""


@dataclass(frozen=True)
class LeastCurvature:
    """The curvature of a tapered Huber loss, rounded down to eighths: by comparisons alone, so that it is the same bits
    wherever a row stands.
    """

    taper: float
    centre: float
    threshold: float

    def __call__(self, scores: Floats, target: Floats) -> Floats:
        """The curvature of every row at these predictors."""
        edges = 1 - 1 / self.taper + np.log(8 / np.arange(8, 0, -1)) / self.taper
        residuals = np.abs(scores - (target - self.centre) / self.threshold)
        return np.asarray(EIGHTHS[np.searchsorted(edges, residuals, side="left")], dtype=np.float64)


def curvature_part(facts: PublicFacts) -> Laplace:
    """Noise on the sums of curvatures times columns, one per encoded column.

    Guarantee: docs/proofs/regression-objective.md, Lemma 5.
    """
    parameters = facts.parameters
    epsilon, neighbours = parameters.budget.exact * FOR_BANDS, 2 if parameters.adjacency == "replace-one" else 1
    sensitivity = neighbours * int(parameters.rows_per_person) * round(facts.geometry.l1) * SUM_UNIT
    return Laplace(
        size=facts.geometry.n_columns,
        scale=laplace_scale(sensitivity, epsilon),
        sensitivity=sensitivity,
        unit=SUM_UNIT,
        purpose="bands of curves",
        epsilon=float(epsilon),
    )


def curvature_sums(design: CachedDesign, weights: Floats, curvature: LeastCurvature) -> NDArray[np.int64]:
    """The sums over rows of curvature times columns at released weights, in steps of 1 / SUM_UNIT: exact.

    Guarantee: docs/proofs/regression-objective.md, Lemma 5.
    """
    sums = np.nan_to_num(design.gradient(weights, curvature, 1.0)[:, 0])  # none for weights that are too long
    return np.asarray(np.rint(sums * SUM_UNIT), dtype=np.int64)


def half_widths(plan: ERMPlan, sums: Floats | None = None, sum_sd: float = 0.0) -> Floats:
    """Half the width of a 90% band for what every encoded column adds about the mean of its block, in the units of the
    weights: for curves without noise at the same threshold.

    `sums` are noisy sums of curvatures with noise of this standard deviation; without them every table is allowed for.
    """
    geometry, found = plan.facts.geometry, np.zeros(plan.facts.geometry.n_columns)
    for block in geometry.blocks:
        own = slice(block.start, block.stop)
        found[own] = _half(plan, block, np.zeros((block.width, block.width)), 1.0)
        if sums is not None:
            hessian = (1 - EXPLAINED) * least_hessian(block, sums, sum_sd, geometry)
            found[own] = np.minimum(found[own], _half(plan, block, hessian, 1 + EXPLAINED))
    return found


def _half(plan: ERMPlan, block: Block, hessian: Floats, more: float) -> Floats:
    """The same for a block whose weights have this Hessian, with so many times the variance of the noise."""
    assert plan.noise is not None
    assert plan.certificate is not None
    basis = contrasts(block)
    back = np.linalg.inv(basis.T @ hessian @ basis + (plan.ridge + _extra(plan, block)) * np.eye(basis.shape[1]))
    shown = centred(block) @ basis @ back @ basis.T * float(plan.noise.sds[block.start])
    return np.asarray(NORMAL * np.sqrt(more * np.sum(shown**2, axis=1) + plan.certificate.sd**2), dtype=np.float64)


def _extra(plan: ERMPlan, block: Block) -> float:
    """What the contrasts of a block are penalised by beside the ridge."""
    if plan.penalty is None:
        return 0.0
    norms = plan.penalty.norms
    if block.width == 1:
        return plan.penalty.on_singles[norms.singles.index(block.start)]
    return plan.penalty.on_blocks[norms.blocks.index((block.start, block.stop))]


def contrasts(block: Block) -> Floats:
    """An orthonormal basis of what a block's weights can be about their mean; of a single weight itself."""
    if block.width == 1:
        return np.ones((1, 1))
    centring = np.eye(block.width) - 1 / block.width
    return np.asarray(np.linalg.svd(centring)[0][:, :-1], dtype=np.float64)


def centred(block: Block) -> Floats:
    """What makes weights a shape: less their mean, that of a missing value apart."""
    if block.width == 1:
        return np.ones((1, 1))
    there = block.width - block.kind.endswith("-or-missing")
    mean = np.zeros(block.width)
    mean[:there] = 1 / there
    return np.asarray(np.eye(block.width) - mean, dtype=np.float64)


def least_hessian(block: Block, sums: Floats, sum_sd: float, geometry: Geometry) -> Floats:
    """A matrix that the Hessian of a block's weights probably exceeds, where the constant is fitted too: for levels
    exactly so, for curves where rows are spread evenly between knots; none for slopes.
    """
    own = np.maximum(sums[block.start : block.stop] - NORMAL * sum_sd, 0.0)
    if block.kind == "sign":
        total = _total(sums, geometry)
        most = min(abs(float(sums[block.start])) + NORMAL * sum_sd, total)
        return np.full((1, 1), max(total - NORMAL * sum_sd - most**2 / max(total, 1.0), 0.0))
    if block.width == 1:
        return np.zeros((1, 1))
    matrix = np.diag(own)
    if block.kind.startswith("spline"):
        matrix = _between_knots(own, len(block.edges))
    along = matrix.sum(axis=1)
    return np.asarray(matrix - np.outer(along, along) / max(float(along.sum()), 1.0), dtype=np.float64)


def _total(sums: Floats, geometry: Geometry) -> float:
    """The sum of all curvatures: what each wide block adds up to, or the constant's."""
    wide = [float(sums[block.start : block.stop].sum()) for block in geometry.blocks if block.width > 1]
    return max(float(np.mean(wide)) if wide else float(sums[0]) * geometry.intercept, 0.0)


def _between_knots(sums: Floats, knots: int) -> Floats:
    """Sums of products of linear B-splines, from sums of the splines, with rows spread evenly between knots."""
    share = np.ones(knots) / 2
    share[[0, -1]] = 1.0
    each = sums[:knots] * share
    matrix = np.diag(sums.astype(np.float64))
    matrix[:knots, :knots] = 0.0
    for place, rows in enumerate(each[:-1] + each[1:]):
        matrix[place : place + 2, place : place + 2] += rows * (np.eye(2) + 1) / 6
    return matrix
