"""From noisy moments to the quadratic that is solved: consistent, with the intercept solved for, without idle
directions.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import block_diag, helmert

from privfit.losses import QuadraticLoss
from privfit.schema import Geometry
from privfit.solvers.consistency import project
from privfit.statistics import Moments, MomentValues

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class ReducedQuadratic:
    """w'Mw - 2v'w  over the weights that matter: the intercept solved for, idle directions left out."""

    matrix: Floats
    vector: Floats
    basis: Floats
    feature_means: Floats
    target_mean: float


def consistent(moments: Moments, noisy: Floats, n_public: int | None) -> MomentValues:
    """Noisy lattice values as consistent moments; the number of rows is the public one, or the released one."""
    products, n_noisy, square = moments.unpack(noisy, "add-remove" if n_public is None else "replace-one")
    size = len(products)
    values = project(products if n_noisy is None else np.append(products, n_noisy), moments.geometry, n_public)
    n_rows = float(n_public) if n_public is not None else float(values[size]) if n_noisy is not None else math.nan
    return moments.assemble(values[:size], n_rows, square)


def reduce_quadratic(
    value: MomentValues, geometry: Geometry, loss: QuadraticLoss, fit_intercept: bool
) -> ReducedQuadratic:
    """Least squares on the target (shifted by the loss's offset) as a quadratic without intercept and without idle
    directions.

    The levels of a block sum to one in every row, so one direction per block does the intercept's work; leaving it out
    makes the levels' weights sum to zero. Without an intercept the first block keeps it.
    """
    matrix, vector = value.products, value.with_target
    if geometry.intercept:
        vector = vector + loss.offset / loss.slope * matrix[0]
    centred = geometry.intercept and fit_intercept
    basis = _contrasts(geometry, all_blocks=centred)
    if geometry.intercept:
        n = max(value.n_rows, 1.0)
        sums, total = matrix[0, 1:], float(vector[0])
        matrix, vector = matrix[1:, 1:], vector[1:]
    if not centred:
        return ReducedQuadratic(basis.T @ matrix @ basis, basis.T @ vector, basis, np.zeros(len(vector)), 0.0)
    matrix = matrix - np.outer(sums, sums) / n
    vector = vector - sums * (total / n)
    return ReducedQuadratic(basis.T @ matrix @ basis, basis.T @ vector, basis, sums / n, total / n)


def _contrasts(geometry: Geometry, all_blocks: bool) -> Floats:
    """An orthonormal basis of the weights whose levels sum to zero in every block (but the first, when it stands for
    the intercept).
    """
    parts = []
    keep_next = not all_blocks
    for block in geometry.blocks:
        whole = block.kind != "levels" or keep_next
        keep_next = keep_next and block.kind != "levels"
        parts.append(np.eye(block.width) if whole else helmert(block.width).T)
    return np.asarray(block_diag(*parts), dtype=np.float64)
