"""A quadratic penalty beside the ridge: more on what distinguishes the columns of a block, and on single columns."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from privfit.schema import Geometry, RowNorms

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class PenaltyMatrix:
    """Half of w'Qw, beside the ridge: a factor per block on the weights of the block about their mean, and a factor per
    single column; none is negative.

    Q maps vectors whose blocks have equal sums to such vectors: what it adds to a block has the sum zero.

    Guarantee: docs/proofs/regression-objective.md, Theorem 1.
    """

    norms: RowNorms
    on_blocks: tuple[float, ...]
    on_singles: tuple[float, ...]

    @classmethod
    def even(cls, norms: RowNorms, factor: float, has_intercept: bool) -> PenaltyMatrix:
        """One factor for everything but the intercept."""
        singles = tuple(0.0 if has_intercept and column == 0 else factor for column in norms.singles)
        return cls(norms, (factor,) * len(norms.blocks), singles)

    @classmethod
    def of_coefficients(cls, geometry: Geometry, alpha: float, scaled: bool) -> PenaltyMatrix:
        """Half of alpha times the squared coefficients in the units of the table, or of scaled columns, beside half the
        sum of squared errors; without the intercept, so that the coefficients of a block have the mean zero.
        """
        norms = RowNorms.of(geometry)
        singles = [0.0] * geometry.intercept
        for block in geometry.blocks:
            if block.kind == "sign":  # two coefficients of opposite sign
                singles.append(2 * alpha)
            elif block.width == 1:
                singles.append(alpha if scaled else alpha / block.unit**2)
        return cls(norms, (alpha,) * len(norms.blocks), tuple(singles))

    def beyond(self, ridge: float) -> PenaltyMatrix:
        """What is left of every factor beside a ridge on everything."""
        blocks, singles = (tuple(max(own - ridge, 0.0) for own in each) for each in (self.on_blocks, self.on_singles))
        return PenaltyMatrix(self.norms, blocks, singles)

    @property
    def largest(self) -> float:
        """A Lipschitz constant of the gradient: the largest eigenvalue of Q, because contrasts of blocks and single
        columns do not depend on each other.
        """
        return max((*self.on_blocks, *self.on_singles), default=0.0)

    @property
    def rounding(self) -> float:
        """How far, per length of the weights, rounding can move what `gradient` computes: a mean adds up as many
        numbers as the widest block has.
        """
        widest = max((stop - start for start, stop in self.norms.blocks), default=1)
        return (widest + 12) * 2.0**-53 * self.largest

    def gradient(self, weights: Floats) -> Floats:
        """Q times the weights: (columns, predictors)."""
        found = np.zeros_like(weights)
        singles = np.array(self.norms.singles, dtype=np.intp)
        found[singles] = np.array(self.on_singles)[:, None] * weights[singles]
        for (start, stop), factor in zip(self.norms.blocks, self.on_blocks, strict=True):
            own = weights[start:stop]
            found[start:stop] = factor * (own - own.mean(axis=0))
        return found

    def hessian(self, weights: Floats) -> Floats:
        """The second derivative at these weights: Q, wherever they are."""
        return PenaltyMatrix.gradient(self, np.eye(self.norms.columns))
