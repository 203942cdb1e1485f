"""Ridge, lasso and elastic net on a repaired quadratic: coordinate descent that proves how close it came.

Sees moments, never rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

TOLERANCE = 1e-10
"""The relative duality gap at which the search stops: far below any noise."""
MOST_ROUNDS = 2_000
"""Rounds of the search: it limits the time."""
NEWTON_STEPS = 20
"""Steps between two checks of the gap."""


@dataclass(frozen=True)
class Penalty:
    """A penalty as scikit-learn writes it:  alpha (l1_ratio |c|_1 + (1 - l1_ratio) |c|^2 / 2), or |c|^2 alone with
    `ridge`.

    `ridge` adds alpha |c|^2 to the sum of squared errors, as Ridge does; otherwise alpha goes with half their mean, as
    in Lasso and ElasticNet.
    """

    alpha: float | Literal["auto"] = "auto"
    l1_ratio: float = 0.0
    ridge: bool = True
    times: float = 1.0
    """What multiplies "auto"."""
    scaled: bool = False
    """Whether alpha is for coefficients of columns and a target that are scaled to [-1, 1]."""

    def strengths(self, n_rows: float, automatic: tuple[Floats, Floats]) -> tuple[Floats, Floats]:
        """What multiplies |c_j| and c_j^2 / 2 beside half the sum of squared errors; `automatic` is what "auto" stands
        for.
        """
        if self.alpha == "auto":
            return self.times * automatic[0] * self.l1_ratio, self.times * automatic[1] * (1 - self.l1_ratio)
        whole = np.full(len(automatic[0]), float(self.alpha) * (1.0 if self.ridge else n_rows))
        return whole * self.l1_ratio, whole * (1 - self.l1_ratio)

    def in_units(self, strengths: tuple[Floats, Floats], sizes: Floats, half: float) -> tuple[Floats, Floats]:
        """Strengths for coefficients in the table's units, with the encoded sizes of columns and of the target there.

        A scaled coefficient is the one in the table's units times sizes / half, and squared errors are half^2 times
        scaled ones.
        """
        if not self.scaled or self.alpha == "auto":
            return strengths
        return strengths[0] * half * sizes, strengths[1] * sizes**2


@dataclass(frozen=True)
class PenalisedSolution:
    """Coefficients, and by how much their objective can exceed the least one, as a share of what the fit explains."""

    coefficients: Floats
    gap: float


def minimise_penalised(matrix: Floats, start: Floats, l1: Floats, l2: Floats) -> PenalisedSolution:
    """The c that minimises  (c - s)'Q(c - s) / 2 + sum_j l1_j |c_j| + sum_j l2_j c_j^2 / 2  for a positive semidefinite
    Q.

    Up to a constant this is  c'Qc / 2 - (Qs)'c  and the penalty: s is a minimiser without it. Sweeps over coordinates
    find which are zero, Newton steps along the others finish. The gap is certified by Fenchel duality, so it holds
    whatever floating point did on the way; the search stops when it is below `TOLERANCE` of s'Qs / 2.
    """
    vector = matrix @ start
    curved = matrix + np.diag(l2)
    centre: Floats = np.asarray(np.linalg.lstsq(curved, vector, rcond=None)[0], dtype=np.float64) if l2.any() else start
    scale = float(vector @ start) / 2
    if not l1.any() or scale <= 0:
        return PenalisedSolution(centre if scale > 0 else np.zeros_like(start), 0.0)
    c = np.zeros_like(start)
    best = PenalisedSolution(c, duality_gap(curved, centre, l1, c) / scale)
    for _ in range(MOST_ROUNDS):
        if best.gap <= TOLERANCE:
            break
        c = _swept(curved, vector, l1, c)
        for _ in range(NEWTON_STEPS):
            moved = _newton(curved, vector, l1, c)
            done = np.array_equal(moved, c)
            c = moved
            if done:
                break
        gap = max(duality_gap(curved, centre, l1, c) / scale, 0.0)
        if gap < best.gap:
            best = PenalisedSolution(c, gap)
    return best


def _swept(curved: Floats, vector: Floats, l1: Floats, c: Floats) -> Floats:
    """Each coordinate in turn to its own minimum, twice over."""
    c = c.copy()
    slope = vector - curved @ c
    diagonal = np.diag(curved)
    for j in [*np.flatnonzero(diagonal > 0)] * 2:
        pull = slope[j] + diagonal[j] * c[j]
        moved = float(np.sign(pull) * max(abs(pull) - l1[j], 0.0) / diagonal[j]) - c[j]
        if moved:
            c[j] += moved
            slope -= moved * curved[j]
    return c


def _newton(curved: Floats, vector: Floats, l1: Floats, c: Floats) -> Floats:
    """The best point on the way to the minimum that the non-zero coordinates would have if their signs were right.

    The way is cut where a coordinate changes its sign; along each piece the objective is a parabola, so only its
    pieces' ends are tried.
    """
    active = np.flatnonzero(c)
    if not len(active):
        return c
    here, inner, weights = c[active], curved[np.ix_(active, active)], l1[active]
    there = np.linalg.lstsq(inner, vector[active] - weights * np.sign(here), rcond=None)[0]
    step = there - here
    with np.errstate(divide="ignore", invalid="ignore"):
        crossings = -here / step
    times = np.concatenate([[0.0, 1.0], crossings[(crossings > 0) & (crossings < 1)]])
    points = here + times[:, None] * step
    linear = float((inner @ here - vector[active]) @ step)
    values = times * linear + times**2 * float(step @ inner @ step) / 2 + np.abs(points) @ weights
    best = int(np.argmin(values))
    moved = points[best]
    moved[np.abs(moved) <= 1e-14 * np.abs(here)] = 0.0  # the coordinate that reached zero there
    result = np.zeros_like(c)
    result[active] = moved
    return result


def duality_gap(curved: Floats, centre: Floats, l1: Floats, c: Floats) -> float:
    """An upper bound on how far the objective at c lies above its minimum (Fenchel's dual at the residual, scaled to be
    feasible).
    """
    slope = curved @ (centre - c)
    energy = float((centre - c) @ slope)
    steep = np.abs(slope) > l1
    shrink = float(np.min(l1[steep] / np.abs(slope[steep]), initial=1.0))
    primal = energy / 2 + float(l1 @ np.abs(c))
    dual = shrink * float(centre @ slope) - shrink**2 * energy / 2
    return primal - dual
