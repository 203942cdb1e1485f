"""What a linear fit leaves of the target, cut at a bound: its products with the columns, and how large it is."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from privfit.privacy import Adjacency
from privfit.schema import Geometry, Norm
from privfit.statistics.moments import STEP

Floats = NDArray[np.float64]

WEIGHT_STEP = 1 << 15
"""Lattice steps to a weight of 1: predictors are then exact integers below 2^53."""
LARGEST_WEIGHT = 1 << 10
"""Weights are clipped to it, so that predictors stay exact; weights of encoded columns are far smaller."""
FINE = STEP * WEIGHT_STEP
"""The integer that stands for 1 in a residual before it is cut."""
CUT_BITS = 16
"""Bits of a residual that are summed: rounding is then far below the noise."""
_EXACT = 1 << 53
"""Floats hold integers up to this exactly."""


@dataclass(frozen=True)
class ResidualMoments:
    """The sums over rows of x r, where r = y - x'w is cut to [-bound, bound] and rounded, row by row.

    The weights w are integers, WEIGHT_STEP to 1 (the intercept's first, if there is one), so that x'w is an integer
    whatever the order of summation. They have been released, or are public.
    """

    geometry: Geometry
    weights: tuple[int, ...]
    bound: float = 1.0

    def __post_init__(self) -> None:
        largest = max(map(abs, self.weights), default=0)
        if (
            len(self.weights) != self.geometry.n_columns
            or int(self.geometry.l1) * largest * STEP + FINE > _EXACT
            or not 0 < self.bound <= 1
        ):
            raise ValueError(
                "Residuals take one weight of limited size per encoded column, and a bound above 0 and at most 1."
            )

    @property
    def step(self) -> int:
        """The integer that stands for 1 in a feature."""
        return STEP

    @property
    def target_units(self) -> int:
        """The integer that stands for 1 in the target."""
        return FINE

    @property
    def shift(self) -> int:
        """How many bits a residual loses in rounding: as many as leave CUT_BITS of the bound."""
        return max(0, self._whole.bit_length() - CUT_BITS)

    @property
    def cut(self) -> int:
        """The largest residual after rounding."""
        return self._whole >> self.shift

    @property
    def _whole(self) -> int:
        return max(1, math.floor(self.bound * FINE))

    @property
    def unit(self) -> int:
        """The integer that stands for 1 in a sum."""
        return STEP * (FINE >> self.shift)

    @property
    def largest(self) -> int:
        """The most that one row can add to a sum."""
        return STEP * self.cut

    def residuals(self, encoded: Floats) -> Floats:
        """One integer per row, of at most `cut` in size."""
        left = encoded[-1] - np.array(self.weights, dtype=np.float64) @ encoded[:-1]
        return np.asarray(np.clip(np.rint(left / (1 << self.shift)), -self.cut, self.cut), dtype=np.float64)

    def __call__(self, encoded: Floats) -> Floats:
        return np.asarray(encoded[:-1] @ self.residuals(encoded), dtype=np.float64)

    def sensitivity(self, adjacency: Adjacency, norm: Norm) -> int:
        """The largest change that one row makes to the sums, in lattice units and in L1 or L2, rounded up.

        Guarantee: docs/proofs/adassp.md, Lemma 2.
        """
        blocks = self.geometry.n_blocks + self.geometry.intercept
        reach = self.largest * (1 if adjacency == "add-remove" else 2)
        return blocks * reach if norm == "l1" else math.isqrt(blocks * reach**2 - 1) + 1


@dataclass(frozen=True)
class AbsoluteResidual(ResidualMoments):
    """The sum over rows of |r|: one value that says how large residuals are."""

    @property
    def unit(self) -> int:
        """The integer that stands for 1 in the sum."""
        return FINE >> self.shift

    @property
    def largest(self) -> int:
        """The most that one row can add to the sum."""
        return self.cut

    def __call__(self, encoded: Floats) -> Floats:
        return np.asarray([np.abs(self.residuals(encoded)).sum()], dtype=np.float64)

    def sensitivity(self, adjacency: Adjacency, norm: Norm) -> int:
        """The largest change that one row makes to the sum: |r| is between 0 and `cut`, under either adjacency.

        Guarantee: docs/proofs/adassp.md, Lemma 2.
        """
        return self.largest


def whole_weights(weights: Floats | Sequence[float]) -> tuple[int, ...]:
    """Weights on the lattice that residuals are computed on, held within LARGEST_WEIGHT."""
    held = np.clip(np.nan_to_num(np.asarray(weights, dtype=np.float64)), -LARGEST_WEIGHT, LARGEST_WEIGHT)
    return tuple(int(weight) for weight in np.rint(held * WEIGHT_STEP))
