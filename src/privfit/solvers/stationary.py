"""A penalised quadratic that may have no minimum, taken as it is: for noisy objectives without any repair."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from privfit.solvers.penalised import PenalisedSolution, minimise_penalised

Floats = NDArray[np.float64]

MOST_SWEEPS = 500
"""Sweeps of coordinate descent on an objective that may have no minimum: it limits the time."""
FARTHEST = 1e3
"""Times as far as a coefficient is from zero where its curvature is the largest: on its way to infinity."""


def stationary_point(matrix: Floats, vector: Floats, l1: Floats, l2: Floats) -> PenalisedSolution:
    """The minimum of  c'Qc / 2 - q'c + sum_j l1_j |c_j| + sum_j l2_j c_j^2 / 2  for any symmetric Q.

    Where there is none, a local one, if coordinate descent from zero finds it, or else a point without slope. Its gap
    is then infinite.
    """
    curved = matrix + np.diag(l2)
    if np.linalg.eigvalsh(curved).min(initial=np.inf) > 0:
        return minimise_penalised(curved, _solved(curved, vector), l1, np.zeros_like(l1))
    local = local_minimum(curved, vector, l1) if l1.any() else None
    return PenalisedSolution(without_slope(curved, vector, l1) if local is None else local, math.inf)


def local_minimum(matrix: Floats, vector: Floats, l1: Floats) -> Floats | None:
    """Where coordinate descent from zero comes to rest, or None if it runs away."""
    c = np.zeros(len(vector))
    farthest = FARTHEST * np.abs(vector).max(initial=0.0) / max(float(np.abs(matrix).max(initial=0.0)), 1e-300)
    for _ in range(MOST_SWEEPS):
        before = c.copy()
        for j, bend in enumerate(matrix.diagonal()):
            slope = vector[j] - matrix[j] @ c + bend * c[j]
            if bend <= 0 and abs(slope) > l1[j]:
                return None
            c[j] = np.sign(slope) * max(abs(slope) - l1[j], 0.0) / bend if bend > 0 else 0.0
        if np.abs(c).max() > farthest:
            return None
        if np.abs(c - before).max() <= 1e-9 * max(float(np.abs(c).max()), 1e-300):
            return c
    return None


def without_slope(matrix: Floats, vector: Floats, l1: Floats) -> Floats:
    """A point without slope along its non-zero coordinates.

    Signs are those of the point without the L1 term; coordinates that would change theirs become zero, and the others
    are solved again.
    """
    c = _solved(matrix, vector)
    signs = np.sign(c)
    active = signs != 0
    while active.any():
        c = np.zeros(len(vector))
        c[active] = _solved(matrix[np.ix_(active, active)], vector[active] - (l1 * signs)[active])
        crossed = active & (c * signs <= 0)
        if not crossed.any():
            return c
        active &= ~crossed
    return np.zeros(len(vector))


def _solved(matrix: Floats, vector: Floats) -> Floats:
    """Where  c'Qc / 2 - q'c  has no slope; the shortest such point, if there are several."""
    return np.asarray(np.linalg.lstsq(matrix, vector, rcond=None)[0], dtype=np.float64)
