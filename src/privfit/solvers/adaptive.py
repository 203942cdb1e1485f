"""Ridge regression with a ridge that adapts to the noise and to how far the columns are from collinear.

Wang: Revisiting differentially private linear regression, UAI 2018 (AdaSSP). The ridge makes up for what the smallest
eigenvalue lacks of the size that the noise in the matrix is expected to have; columns that are far from collinear are
not shrunk at all.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import block_diag

from privfit.losses import SQUARED
from privfit.schema import Geometry
from privfit.solvers.quadratic import Solution, plausible_means
from privfit.solvers.reduction import ReducedQuadratic, _contrasts, reduce_quadratic
from privfit.statistics import MomentValues

Floats = NDArray[np.float64]

RARELY = 0.05
"""How often the noise may be larger than the ridge expects."""
LEAST_SHARE = 0.5
"""No direction is trusted with less than this share of the size that the noise is expected to have."""


def whole_basis(geometry: Geometry) -> Floats:
    """An orthonormal basis of the weights that matter, the intercept's included: idle directions are left out."""
    contrasts = _contrasts(geometry, all_blocks=geometry.intercept)
    return np.asarray(block_diag(np.eye(1), contrasts), dtype=np.float64) if geometry.intercept else contrasts


@dataclass(frozen=True)
class Step:
    """Weights of all encoded columns, the intercept's first if there is one; the mean of what was fitted; and how they
    were found.
    """

    weights: Floats
    target_mean: float
    solution: Solution


@dataclass(frozen=True)
class AdaptiveRidge:
    """The inverse of noisy moments plus a ridge, to be applied to one vector after the other.

    The intercept is not shrunk.

    `smallest` is the noisy smallest eigenvalue, `noise_sd` the standard deviation of the noise on an entry of the
    matrix.
    """

    moments: MomentValues
    geometry: Geometry
    smallest: float
    noise_sd: float

    @property
    def noise_size(self) -> float:
        """The size that the noise matrix has, or less but for one time in twenty (Wang 2018, from a bound on Gaussian
        matrices).
        """
        d = len(self._directions[0]) + self.geometry.intercept
        return self.noise_sd * math.sqrt(d * math.log(2 * d * d / RARELY))

    @property
    def ridge(self) -> float:
        """What is added to every eigenvalue."""
        return max(0.0, self.noise_size - self.smallest)

    @cached_property
    def _directions(self) -> tuple[Floats, Floats]:
        matrix = self._quadratic(self.moments.with_target).matrix
        values, vectors = np.linalg.eigh((matrix + matrix.T) / 2)
        return values, vectors

    @property
    def _factors(self) -> Floats:
        """What a vector is multiplied by along each direction."""
        return 1.0 / np.maximum(np.maximum(self._directions[0], 0.0) + self.ridge, LEAST_SHARE * self.noise_size)

    def error_in_predictions(self, vector_sd: float) -> float:
        """The root of the mean squared error, over rows, that noise of this size on the entries of a vector makes in
        predictions.
        """
        n = max(self.moments.n_rows, 1.0)
        squares = np.maximum(self._directions[0], 0.0) @ self._factors**2 + self.geometry.intercept / n
        return float(vector_sd * math.sqrt(squares / n))

    def _quadratic(self, with_target: Floats) -> ReducedQuadratic:
        value = MomentValues(self.moments.products, with_target, self.moments.n_rows)
        return reduce_quadratic(value, self.geometry, SQUARED, self.geometry.intercept)

    def step(self, with_target: Floats) -> Step:
        """The ridge fit to a target with these products."""
        reduced = self._quadratic(with_target)
        values, vectors = self._directions
        factors = self._factors
        found = vectors @ (factors * (vectors.T @ reduced.vector))
        kept = factors * np.maximum(values, 0.0)
        changed = int(np.count_nonzero(values < 0))
        solution = Solution(found, self.ridge, changed, float(kept.sum()), True, vectors, factors, kept, 0.0)
        weights = reduced.basis @ found
        if not self.geometry.intercept:
            return Step(weights, 0.0, solution)
        intercept = reduced.target_mean - plausible_means(reduced.feature_means) @ weights
        return Step(np.append(intercept, weights), reduced.target_mean, solution)
