"""The second moments of encoded rows: every distinct product of two columns once, and every product with the target.

They are all that least squares, or any other loss of degree two, needs to know of a table.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from privfit.privacy import Adjacency, PrivacyParameters
from privfit.schema import CONSTANT, Geometry, Norm
from privfit.statistics.sensitivity import distinct_sensitivity, linf_sensitivities, squared_l2_sensitivity

STEP = 1 << 16
"""Lattice steps to 1 in a feature: rounding is 2^-17 of a column's half range, far below any noise, and products fit 64
bits."""


@dataclass(frozen=True)
class MomentValues:
    """Moments in the units of the encoded columns, exact or noisy: the matrix X'X and the vector X't."""

    products: NDArray[np.float64]
    with_target: NDArray[np.float64]
    n_rows: float
    target_square: float | None = None
    """The sum of t^2, where it was bought."""


@dataclass(frozen=True)
class Moments:
    """The distinct second moments of a geometry, on one lattice.

    Features live on integers of at most `step`, the target on integers of at most `target_units`. The ratio
    of the two weighs the target's moments against the others: all of them receive the same noise, so a finer target
    means a less noisy one.
    """

    geometry: Geometry
    target_units: int = STEP
    step: int = STEP
    square_units: int = 0
    """The integer that stands for 1 in the target when its square is summed; 0 leaves the square out."""
    needs_rows: bool = False
    """Whether the number of rows is needed although no product is constant."""

    @property
    def unit(self) -> int:
        """The integer that stands for 1 in a product of two features."""
        return self.step * self.step

    @property
    def target_weight(self) -> float:
        """How much finer the target's lattice is than that of the features."""
        return self.target_units / self.step

    @property
    def scale(self) -> float:
        """What a row counts at most."""
        return 1.0

    @property
    def largest(self) -> int:
        """The most that one row can add to a product that is released."""
        return max(self.unit, self.step * self.target_units, self.square_units**2)

    def __call__(self, encoded: NDArray[np.float64]) -> NDArray[np.float64]:
        """All products of two encoded columns, summed over rows.

        The square of the target is taken on its own, coarser lattice, or not at all.
        """
        products = encoded @ encoded.T
        if self.geometry.target is not None:
            coarse = self.coarse_target(encoded[-1])
            products[-1, -1] = coarse @ coarse
        return products

    def coarse_target(self, target: NDArray[np.float64]) -> NDArray[np.float64]:
        """The target on the lattice on which it is squared: all zeros, where it is not."""
        return np.rint(target * (self.square_units / self.target_units))

    @cached_property
    def _places(self) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """Where each distinct product stands in the table of all products, in the order of its number."""
        numbers, first = np.unique(self.geometry.products, return_index=True)
        rows, columns = np.unravel_index(first[numbers >= 0], self.geometry.products.shape)
        return rows, columns

    def counts_rows(self, adjacency: Adjacency) -> bool:
        """Whether the number of rows is one of the released values: it is needed, and it is not public."""
        return adjacency == "add-remove" and (self.needs_rows or self._has_constant)

    @cached_property
    def _has_constant(self) -> bool:
        return bool((self.geometry.products == CONSTANT).any())

    @property
    def squares_target(self) -> bool:
        """Whether the sum of the target's squares is one of the released values.

        Of a sign it is the number of rows: nothing to release.
        """
        target = self.geometry.target
        return self.square_units > 0 and target is not None and target.kind == "slope"

    def parts(self, adjacency: Adjacency) -> tuple[int, ...]:
        """How many released values are about features (the number of rows included), and how many about the target."""
        features = self._n_features + self.counts_rows(adjacency)
        target = self.geometry.n_products - self._n_features + self.squares_target
        return tuple(size for size in (features, target) if size)

    def n_values(self, adjacency: Adjacency) -> int:
        """How many values are released."""
        return sum(self.parts(adjacency))

    @cached_property
    def _n_features(self) -> int:
        d = self.geometry.n_columns
        return int(self.geometry.products[:d, :d].max(initial=-1)) + 1

    def distinct(self, sums: NDArray[np.int64], n_rows: int, adjacency: Adjacency) -> NDArray[np.int64]:
        """The values to release, as one vector of integers: products of features, the number of rows if it is one
        of the
        values, products with the target, and the target's square if it is one."""
        values = sums[self._places]
        rows = [n_rows * self.unit] if self.counts_rows(adjacency) else []
        square = [int(sums[-1, -1])] if self.squares_target else []
        ordered = [values[: self._n_features], rows, values[self._n_features :], square]
        return np.concatenate([np.asarray(part, dtype=np.int64) for part in ordered])

    def unpack(
        self, values: NDArray[np.float64], adjacency: Adjacency
    ) -> tuple[NDArray[np.float64], float | None, float | None]:
        """The products, the number of rows and the target's square of a vector in the order of `distinct`, in units of
        1.
        """
        counted = self.counts_rows(adjacency)
        square = float(values[-1]) / self.square_units**2 if self.squares_target else None
        products = np.delete(values, self._n_features) if counted else values
        n_rows = float(values[self._n_features]) / self.unit if counted else None
        return products[: self.geometry.n_products] / self.unit, n_rows, square

    def assemble(
        self, products: NDArray[np.float64], n_rows: float, target_square: float | None = None
    ) -> MomentValues:
        """The matrix and the vector that distinct products, in units of 1, stand for."""
        d = self.geometry.n_columns
        table = np.concatenate([products, [n_rows, 0.0]])[self.geometry.products]  # CONSTANT = -2, ZERO = -1
        return MomentValues(table[:d, :d], table[:d, -1] * (self.step / self.target_units), n_rows, target_square)

    def row_sensitivity(self, parameters: PrivacyParameters, norm: Norm = "l1") -> int:
        """The largest change per row that changes, to be multiplied by `rows_per_person`.

        Where rows are left out, 2 m rows are those of m slots. What happens to a slot changes the values by no more
        than the larger of the two sensitivities; half of it counts per row.

        Guarantee: docs/proofs/rows-left-out.md, Theorem 2.
        """
        if parameters.promise is None:
            return self.sensitivity(parameters.adjacency, norm)
        return -(-max(self.sensitivity("replace-one", norm), self.sensitivity("add-remove", norm)) // 2)

    def sensitivity(self, adjacency: Adjacency, norm: Norm = "l1") -> int:
        """The largest change that one row makes to the released values, in lattice units and in this norm, rounded up.

        In L-infinity it is the sum of the largest changes of the two parts, features and target.

        Guarantee: holds for every pair of neighbouring tables of this geometry; docs/proofs/moments.md, Theorems 1, 2,
        4 and 5.
        """
        weight = Fraction(self.target_units, self.step)
        square = Fraction(self.square_units**2, self.unit) if self.squares_target else Fraction(0)
        counted = int(
            self.counts_rows(adjacency) and not self._has_constant
        )  # the formulas count the rows where a product is constant
        if norm == "l2":
            squared = (squared_l2_sensitivity(self.geometry, weight, adjacency) + square**2 + counted) * self.unit**2
            return math.isqrt(max(math.ceil(squared), 1) - 1) + 1
        if norm == "linf":
            features, target = linf_sensitivities(self.geometry, weight, adjacency)
            released = self._n_features + self.counts_rows(adjacency) > 0
            return math.ceil((features * released + max(target, square)) * self.unit)
        return math.ceil((distinct_sensitivity(self.geometry, weight, adjacency) + square + counted) * self.unit)
