"""A public grid of scores between 0 and 1, such as predicted probabilities, and how rows lie within its cells."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit

Floats = NDArray[np.float64]

FEWEST, MOST = 8, 64
"""Cells per class. More cells follow the scores closer and hold more noise; papers/experiments/evaluation.py."""
FINER_ENDS = 0.4
"""How far edges lean from equal steps to steps of the arcsine of the root, which are finer at 0 and 1: at 1
log-loss of overconfident models is more accurate, and AUC of models that hardly separate classes less;
papers/experiments/evaluation.py."""
POINTS = 8
"""Points that stand for the rows of a cell. No command varies it."""
SHARPEST = 0.12
"""The smallest power by which scores may crowd towards 0 or 1 within the outermost cell. No command varies it."""


@dataclass(frozen=True)
class ScoreGrid:
    """Cells of scores, as many below 1/2 as above. A score that is an edge belongs to the cell below."""

    cells: int

    @classmethod
    def of(cls, rows: float, epsilon: float, changed: int) -> ScoreGrid:
        """The grid for so many rows, epsilon, and counts that one person changes."""
        wanted = (2.0 * rows * epsilon / changed) ** (1 / 3)
        return cls(min(max(2 * round(wanted / 2), FEWEST), MOST))

    @cached_property
    def edges(self) -> Floats:
        """The ends of all cells, from 0 to 1."""
        edges = _leaning(np.arange(self.cells + 1) / self.cells)
        edges[self.cells // 2] = 0.5
        return edges

    @cached_property
    def points(self) -> Floats:
        """Points within every cell, (cells, points)."""
        return _leaning((np.arange(self.cells)[:, None] + (np.arange(POINTS) + 0.5) / POINTS) / self.cells)

    def cells_of(self, scores: Floats) -> NDArray[np.intp]:
        """The cell of every score."""
        return np.searchsorted(self.edges[1:-1], scores, side="left")


def _leaning(share: Floats) -> Floats:
    return np.asarray((1 - FINER_ENDS) * share + FINER_ENDS * np.sin(np.pi * share / 2) ** 2)


@dataclass(frozen=True)
class WithinCells:
    """Where the rows of each class are taken to be within the cells of a grid, (cells, points) each.

    Points are weighed by a logistic curve of the score, which is fitted to the noisy counts.
    """

    points: Floats
    none: Floats
    one: Floats

    @classmethod
    def fitted(cls, points: Floats, none: Floats, one: Floats) -> WithinCells:
        """From the noisy counts of the two classes."""
        scores = logit(np.clip(points, 1e-9, 1 - 1e-9))
        shift, slope = _logistic_curve(none, one, scores.mean(axis=1))
        share = expit(shift + slope * scores)
        other = expit(-shift - slope * scores)
        return cls(points, other / other.sum(axis=1)[:, None], share / share.sum(axis=1)[:, None])

    @classmethod
    def even(cls, points: Floats) -> WithinCells:
        """Both classes alike."""
        share = np.full(points.shape, 1.0 / points.shape[1])
        return cls(points, share, share)

    def means(self, of_none: Floats, of_one: Floats) -> Floats:
        """What values at the points of either class are on average in each cell: those of class 0, then of class 1."""
        return np.concatenate([(self.none * of_none).sum(axis=1), (self.one * of_one).sum(axis=1)])

    @property
    def ordered(self) -> Floats:
        """For every cell the probability that a row of class 1 in it has a higher score than one of class 0; ties count
        half.
        """
        above = np.tri(self.points.shape[1], k=-1) + 0.5 * np.eye(self.points.shape[1])
        return np.asarray(np.einsum("ci,ij,cj->c", self.one, above, self.none))


def _logistic_curve(none: Floats, one: Floats, scores: Floats) -> tuple[float, float]:
    """Shift and slope of P(class 1) = expit(shift + slope score), by Newton's steps on the noisy counts; 0 and 1 where
    noise leaves no curve.
    """
    found = np.array([0.0, 1.0])
    design = np.column_stack([np.ones(len(scores)), scores])
    for _ in range(NEWTON_STEPS):
        share = expit(design @ found)
        slope = design.T @ (one - (none + one) * share)
        curvature = (design * ((none + one) * share * (1 - share))[:, None]).T @ design
        if not np.all(np.isfinite(curvature)) or np.linalg.det(curvature) <= 1e-9:
            return 0.0, 1.0
        step = np.clip(np.linalg.solve(curvature, slope), -1.0, 1.0)
        found = found + step
        if np.abs(step).max() < 1e-8:
            break
    shift, steep = map(float, found)
    return (shift, steep) if abs(shift) < 5.0 and 0.0 < steep < 5.0 else (0.0, 1.0)


NEWTON_STEPS = 30
"""Steps after which a curve is given up."""


def crowded(points: Floats, edges: Floats, counts: Floats, clear: float) -> Floats:
    """The points, where scores of the outermost cells crowd towards 0 and 1 as the next cells make it likely: by a
    power law. Cells with fewer rows than `clear` stay as they are.
    """
    moved, power = points.copy(), (np.arange(points.shape[1]) + 0.5) / points.shape[1]
    low = _power(counts[0], counts[1], edges[2] / edges[1], clear)
    high = _power(counts[-1], counts[-2], (1 - edges[-3]) / (1 - edges[-2]), clear)
    if low < 1.0:
        moved[0] = edges[1] * power ** (1 / low)
    if high < 1.0:
        moved[-1] = (1 - (1 - edges[-2]) * power ** (1 / high))[::-1]
    return moved


def _power(outermost: float, second: float, wider: float, clear: float) -> float:
    if outermost < clear:
        return 1.0
    growth = max((outermost + second) / outermost, 1.0)
    return min(max(math.log(growth) / math.log(wider), SHARPEST), 1.0)
