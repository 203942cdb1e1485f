"""What bought matrices say about released weights: which directions are identified, and how errors come about.

Both matrices have noise. That on the Hessian counts three times: where it undoes the penalty, where it turns gradients
into weights, and where it decides which directions are identified at all.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_ndtr

from privfit.mechanisms.perturbation.bought_moments import free_directions
from privfit.schema import Geometry

Floats = NDArray[np.float64]

NOISE_SIZES = 0.75
"""A direction is identified where the bought Hessian is at least so many times as large as its noise can be (twice the
standard deviation of an entry times the root of the number of directions). More calls more coefficients unidentified,
less widens their intervals: python papers/experiments/coverage.py --models. With 1 in place of .75, least squares at
50,000 rows, a correlation of .9 and epsilon .5 identified two coefficients in 6 and not in 36 of 100 runs."""
OTHER_DIRECTIONS = 0.02
"""A coefficient is not identified where more than this share of its squared length lies along directions that are
not."""
EVEN_SHARE, SMALL_SHARE = 0.5, 0.05
"""A direction that is identified is taken to be so small that noise would make it appear as large as it does, or
larger, in this share of the releases in which it is identified: for how gradients move weights, and for how much of the
shrinkage may not have been undone. Less of the first widens intervals of all directions near the limit; less of the
second those of weights that were shrunk much. With .5 and .5 the median at 50,000 rows, a correlation of .9 and epsilon
1 covered two coefficients, identified in 13 of 100 runs, 54% and 62% of the time, with these 77% and 92%; other widths
grow by less than a percent: python papers/experiments/coverage.py --models."""
HALVINGS = 40
"""Of the interval in which such a size is sought: to a trillionth of it."""


@dataclass(frozen=True)
class Axes:
    """Directions that are identified: eigenvectors of the noisy Hessian of what is estimated.

    Parameters
    ----------
    along : the directions, over all encoded columns, one column each.
    sizes : the Hessian along each, with noise.
    sds : the standard deviation of that noise.
    least : what is larger counts as identified.
    """

    along: Floats
    sizes: Floats
    sds: Floats
    least: float

    def plausible(self, share: float) -> Floats:
        """How large the Hessian is along each, if noise makes it appear at least as large as here in this share of the
        releases in which it is identified; no less than the noise, and no more than it appears.
        """
        sds = np.maximum(self.sds, 1e-9 * self.sizes)
        low, high = np.minimum(sds, self.sizes), self.sizes
        for _ in range(HALVINGS):
            middle = (low + high) / 2
            found = log_ndtr((middle - self.sizes) / sds) - log_ndtr((middle - self.least) / sds)
            low, high = (
                np.where(found < math.log(share), middle, low),
                np.where(found < math.log(share), high, middle),
            )
        return np.asarray((low + high) / 2, dtype=np.float64)


@dataclass(frozen=True)
class Sandwich:
    """What bought matrices say about weights that a perturbed objective has released.

    Parameters
    ----------
    directions : the weights that a fit can have, one column each.
    bread : the Hessian of the loss over all rows, with noise, along the directions.
    noise : the standard deviation of the noise on an entry of it.
    wanted : the Hessian of a penalty that is part of what is estimated, along the directions, if there is one.
    """

    directions: Floats
    bread: Floats
    noise: float
    wanted: Floats | None = None

    @classmethod
    def of(cls, geometry: Geometry, matrix: Floats, noise: float, wanted: Floats | None = None) -> Sandwich:
        """From matrices over all columns."""
        directions = free_directions(geometry)
        along = None if wanted is None else directions.T @ wanted @ directions
        return cls(directions, directions.T @ matrix @ directions, noise, along)

    @property
    def whole(self) -> Floats:
        """The Hessian over all columns."""
        return np.asarray(self.directions @ self.bread @ self.directions.T, dtype=np.float64)

    def curvature_of(self, weights: Floats) -> float:
        """The sum over rows of the curvature times the square of what these weights predict."""
        along = self.directions.T @ weights
        return float(along @ self.bread @ along)

    @property
    def noise_size(self) -> float:
        """How large the noise on the Hessian can be in any direction."""
        return 2 * self.noise * math.sqrt(len(self.bread))

    def axes(self) -> tuple[Axes, Floats]:
        """Directions along which what is estimated is identified, and those along which it is not, one column each."""
        whole = self.bread if self.wanted is None else self.bread + self.wanted
        values, vectors = np.linalg.eigh((whole + whole.T) / 2)
        least = NOISE_SIZES * self.noise_size
        known, along = values > least, self.directions @ vectors
        sds = self.noise * np.sqrt(2 - np.sum(along**4, axis=0))  # of v'Ev, where entries of E have this noise
        return Axes(along[:, known], values[known], sds[known], least), along[:, ~known]

    def inverse(self) -> tuple[Floats, Floats]:
        """The inverse of the Hessian of what is estimated, over all columns, where it is identified; and which
        directions are not, one column each.
        """
        known, hidden = self.axes()
        return known.along / known.sizes @ known.along.T, hidden

    def typical_change(self, step: Floats) -> float:
        """How far a step of the weights moves the predictor of a row: the root of the mean square, rows counting by
        their curvature.
        """
        along = self.directions.T @ step
        rows = float(np.diag(self.bread).max(initial=self.noise))  # at least the largest mean square of a column
        return math.sqrt(max(float(along @ self.bread @ along), 0.0) / max(rows, np.finfo(float).tiny))

    def debiased(self, weights: Floats, penalised: Floats) -> Floats:
        """Weights without the penalty whose gradient at them is `penalised`: one Newton step, where the Hessian is
        identified.
        """
        return weights + self.inverse()[0] @ penalised

    def steadied(self, meat: Floats, noise: float) -> Floats:
        """Second moments of gradients, drawn towards a multiple of the Hessian as far as noise of this standard
        deviation on an entry explains how they differ: with small signals an eigenvalue is noise for the most part.
        """
        own = self.directions.T @ meat @ self.directions
        size = max(float(np.sum(own * self.bread)), 0.0) / max(float(np.sum(self.bread**2)), np.finfo(float).tiny)
        like = size * self.bread
        apart = float(np.sum((own - like) ** 2))
        explained = min(len(own) ** 2 * noise**2 / apart, 1.0) if apart > 0 else 1.0
        return np.asarray(self.directions @ (like + (1 - explained) * (own - like)) @ self.directions.T)

    def covariances(self, meat: Floats, noise: Floats, penalised: Floats) -> tuple[Floats, Floats]:
        """Covariances of debiased weights: of the rows being a sample, with this second moment of their gradients; and
        of all noise, which the objective has with this covariance, and the Hessian too, that undoes the penalty.

        Guarantee: post-processing; docs/proofs/bought-moments.md, Lemma 2.
        """
        known, _ = self.axes()
        along, sizes, step = known.along, known.sizes, known.along.T @ penalised / known.sizes
        back = along / known.plausible(EVEN_SHARE)
        missed = (1 - known.plausible(SMALL_SHARE) / sizes) * step
        sampling = back.T @ _not_negative(meat) @ back
        both = sampling + back.T @ noise @ back + np.outer(missed, missed)

        relative = self.noise**2 / np.outer(sizes, sizes)
        own, square = np.diag(relative), float(step @ step)
        each = own / (1 - own)
        total = (float(np.sum((np.diag(both) + own * step**2) / (1 - own))) + square * each.sum()) / (1 - each.sum())
        whole = (both + np.diag(own * (total + square)) + relative * np.outer(step, step)) / (1 - relative)
        return along @ sampling @ along.T, along @ (whole - sampling) @ along.T

    def identified(self, shown: Floats) -> NDArray[np.bool_]:
        """Whether each of these linear functions of weights, one per line, is identified."""
        _, hidden = self.axes()
        own = shown @ self.directions
        share = np.sum((shown @ hidden) ** 2, axis=1) / np.maximum(np.sum(own**2, axis=1), np.finfo(float).tiny)
        return np.asarray(share <= OTHER_DIRECTIONS)


def _not_negative(matrix: Floats) -> Floats:
    """A symmetric matrix without negative eigenvalues: those are noise."""
    values, vectors = np.linalg.eigh((matrix + matrix.T) / 2)
    return np.asarray((vectors * np.maximum(values, 0.0)) @ vectors.T, dtype=np.float64)
