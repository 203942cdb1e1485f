"""Second moments in which every row has a weight: sums of min(w, W) times what a row adds without one."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from privfit.privacy import Adjacency, PrivacyParameters
from privfit.schema import Norm
from privfit.statistics.moments import Moments, MomentValues

WEIGHTED_STEP = 1 << 12
"""Lattice steps to 1 in a feature where rows have weights: coarser than without, so that sums of 2^26 rows fit 64 bits;
chosen, not measured."""
WEIGHT_LEVELS = 1 << 12
"""The integer that stands for the largest weight; chosen as `WEIGHTED_STEP` is."""


@dataclass(frozen=True)
class WeightedMoments(Moments):
    """The distinct second moments of rows with weights from 0 to `max_weight`, in steps of max_weight / WEIGHT_LEVELS.

    A row of the weight 0 adds nothing, as one that is left out. The sum of weights stands where the number of rows
    stands without them: it is never public.
    """

    max_weight: float = 1.0

    @property
    def unit(self) -> int:
        """The integer that stands for 1 in a product of two features of a row of the largest weight."""
        return self.step * self.step * WEIGHT_LEVELS

    @property
    def largest(self) -> int:
        """The most that one row can add to a product that is released."""
        return WEIGHT_LEVELS * self.step * max(self.step, self.target_units)

    @property
    def scale(self) -> float:
        """What a row of the largest weight counts."""
        return self.max_weight

    def __call__(self, encoded: NDArray[np.float64]) -> NDArray[np.float64]:
        """All products of two encoded columns, times the weights (the last line), and last the weights' sum."""
        rows, weights = encoded[:-1], encoded[-1]
        sums = np.zeros((len(encoded), len(encoded)))
        sums[:-1, :-1] = (rows * weights) @ rows.T
        sums[-1, -1] = weights.sum() * self.step**2
        return sums

    def distinct(self, sums: NDArray[np.int64], n_rows: int, adjacency: Adjacency) -> NDArray[np.int64]:
        """The values to release: the sum of weights in place of the number of rows."""
        values = sums[self._places]
        total = [int(sums[-1, -1])] if self.counts_rows(adjacency) else []
        ordered = [values[: self._n_features], total, values[self._n_features :]]
        return np.concatenate([np.asarray(part, dtype=np.int64) for part in ordered])

    def assemble(
        self, products: NDArray[np.float64], n_rows: float, target_square: float | None = None
    ) -> MomentValues:
        """The matrix and the vector that distinct products stand for, in units of a weight of 1."""
        found = super().assemble(products, n_rows)
        return MomentValues(found.products * self.scale, found.with_target * self.scale, found.n_rows * self.scale)

    def row_sensitivity(self, parameters: PrivacyParameters, norm: Norm = "l1") -> int:
        """The largest change per row that changes, to be multiplied by `rows_per_person`, in lattice units.

        Guarantee: holds for every pair of neighbouring tables, weights included; docs/proofs/sample-weights.md,
        Theorem 1.
        """
        assert parameters.adjacency == "add-remove"  # the sum of weights is private under replace-one, too
        return super().row_sensitivity(parameters, norm)
