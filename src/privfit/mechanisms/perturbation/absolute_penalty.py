"""A penalty on absolute values, rounded off at zero so that it has a gradient: what lasso and elastic net add to a
perturbed objective.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from privfit.mechanisms.perturbation.penalty_matrix import PenaltyMatrix

Floats = NDArray[np.float64]

SHARPNESS = 16.0
"""The curvature of the penalty at zero, as a multiple of the most that all rows together can have. The zero of a
coefficient is as wide as a sixteenth of what the penalty takes from any other, at most; a sharper one takes more steps
of the solver. Chosen, not measured."""
HALVINGS = 54
"""After so many, the interval that holds the centre of a block is as short as rounding of the largest weight."""
ZERO_WIDTHS, ZERO_SDS = 3.0, 3.0
"""A weight is zero within three widths of the rounded-off part, where the penalty balances up to 95% of its strength,
and three standard deviations of the noise for the solver's precision. Larger values hide small effects."""


@dataclass(frozen=True)
class SparseWeights:
    """Weights, the centre of each block, where its coefficients are zero, and the strength on each weight."""

    weights: Floats
    centres: tuple[float, ...]
    strengths: Floats
    squared: float
    """The largest factor of the quadratic penalty beside."""


@dataclass(frozen=True)
class AbsolutePenalty(PenaltyMatrix):
    """The sum of l (root(t^2 + a^2) - a), a = l / `curvature`, over single weights t, and over the weights of each
    block measured from the centre at which this is least; beside a quadratic penalty.

    The centre stands for the level that scikit-learn's lasso leaves at zero where the intercept is not penalised: a
    median of the block's weights.

    Guarantee: docs/proofs/regression-objective.md, Lemma 6.
    """

    absolute_on_blocks: tuple[float, ...]
    absolute_on_singles: tuple[float, ...]
    curvature: float
    """The largest second derivative."""

    @classmethod
    def beside(cls, quadratic: PenaltyMatrix, blocks: Floats, singles: Floats, curvature: float) -> AbsolutePenalty:
        """These strengths, beside a quadratic penalty."""
        strengths = tuple(blocks.tolist()), tuple(singles.tolist())
        return cls(quadratic.norms, quadratic.on_blocks, quadratic.on_singles, *strengths, curvature)

    def beyond(self, ridge: float) -> AbsolutePenalty:
        """The same with what is left of every quadratic factor beside a ridge on everything."""
        left = super().beyond(ridge)
        return replace(self, on_blocks=left.on_blocks, on_singles=left.on_singles)

    @property
    def largest(self) -> float:
        """A Lipschitz constant of the gradient."""
        return super().largest + self.curvature

    @property
    def rounding_at_zero(self) -> float:
        """How far rounding can move the gradient at any weights, beside what grows with their length."""
        widths = [stop - start for start, stop in self.norms.blocks]
        of_blocks = sum(width**2 * own for width, own in zip(widths, self.absolute_on_blocks, strict=True))
        return 2.0**-48 * (of_blocks + sum(self.absolute_on_singles))

    @property
    def rounding(self) -> float:
        """The same per length of the weights: a centre is known up to the rounding of the longest weight."""
        widest = max((stop - start for start, stop in self.norms.blocks), default=1)
        return (4 * widest + 12) * 2.0**-53 * self.largest

    def gradient(self, weights: Floats) -> Floats:
        """The gradient of the whole penalty: (columns, 1)."""
        found, (distances, strengths) = super().gradient(weights), self._distances(weights[:, 0])
        found[:, 0] += self._slopes(distances, strengths)
        return found

    def hessian(self, weights: Floats) -> Floats:
        """The second derivative of the whole penalty."""
        distances, strengths = self._distances(weights[:, 0])
        steep = np.divide(self.curvature * distances, strengths, out=np.zeros_like(distances), where=strengths > 0)
        curvatures = np.where(strengths > 0, self.curvature / (1 + steep**2) ** 1.5, 0.0)
        found: Floats = super().hessian(weights) + np.diag(curvatures)
        for start, stop in self.norms.blocks:
            own = curvatures[start:stop]
            if own.sum() > 0:  # the centre moves with the weights
                found[start:stop, start:stop] -= np.outer(own, own) / own.sum()
        return found

    def cut(self, weights: Floats, sd: float) -> SparseWeights:
        """Weights of which those are zero, or at the centre of their block, that noise of this size or a rounded-off
        zero may have kept from it.
        """
        distances, strengths = self._distances(weights)
        small = np.abs(distances) <= ZERO_WIDTHS * strengths / self.curvature + ZERO_SDS * sd
        small &= strengths > 0
        centres = tuple(self._centres(weights))
        return SparseWeights(np.where(small, weights - distances, weights), centres, strengths, super().largest)

    def _distances(self, weights: Floats) -> tuple[Floats, Floats]:
        """How far every weight is from zero, or from the centre of its block, and the strength on it."""
        distances, strengths = weights.copy(), np.zeros_like(weights)
        strengths[np.array(self.norms.singles, dtype=np.intp)] = self.absolute_on_singles
        blocks = zip(self.norms.blocks, self.absolute_on_blocks, self._centres(weights), strict=True)
        for (start, stop), own, centre in blocks:
            strengths[start:stop] = own
            distances[start:stop] -= centre
        return distances, strengths

    def _centres(self, weights: Floats) -> list[float]:
        """Where the slopes of each block's weights add up to zero, up to rounding."""
        blocks = zip(self.norms.blocks, self.absolute_on_blocks, strict=True)
        return [self._centre(weights[start:stop], own) for (start, stop), own in blocks]

    def _centre(self, weights: Floats, strength: float) -> float:
        """The same of one block, by halving an interval; the mean where nothing is penalised."""
        if strength <= 0:
            return float(weights.mean())
        low, high, strengths = float(weights.min()), float(weights.max()), np.full_like(weights, strength)
        with np.errstate(invalid="ignore"):
            for _ in range(HALVINGS):
                middle = low + (high - low) / 2
                bent = self.curvature * (weights - middle)
                if (strengths * (bent / np.hypot(bent, strengths))).sum() > 0:  # as `_slopes`, in few steps
                    low = middle
                else:
                    high = middle
        return low + (high - low) / 2

    def _slopes(self, distances: Floats, strengths: Floats) -> Floats:
        """The first derivatives: from minus to plus the strength."""
        bent = self.curvature * distances
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.asarray(np.where(strengths > 0, strengths * (bent / np.hypot(bent, strengths)), 0.0))
