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

from privfit.privacy import Adjacency
from privfit.schema import CONSTANT, Geometry

STEP = 1 << 16


@dataclass(frozen=True)
class MomentValues:
    """Moments in the units of the encoded columns, exact or noisy: the matrix X'X and the vector X't."""

    products: NDArray[np.float64]
    with_target: NDArray[np.float64]
    n_rows: float


@dataclass(frozen=True)
class Moments:
    """The distinct second moments of a geometry, on one lattice.

    Features live on whole numbers of at most `step`, the target on whole numbers of at most `target_units`. The ratio of the two
    weighs the target's moments against the others: all of them receive the same noise, so a finer target means a less noisy one.
    """

    geometry: Geometry
    target_units: int = STEP
    step: int = STEP

    @property
    def unit(self) -> int:
        """The whole number that stands for 1 in a product of two features."""
        return self.step * self.step

    @property
    def target_weight(self) -> float:
        """How much finer the target's lattice is than that of the features."""
        return self.target_units / self.step

    @property
    def largest(self) -> int:
        """The most that one row can add to a product that is released."""
        return self.step * max(self.step, self.target_units)

    def __call__(self, encoded: NDArray[np.float64]) -> NDArray[np.float64]:
        """All products of two encoded columns, summed over rows, but for the square of the target, which nobody may use."""
        products = encoded @ encoded.T
        if self.geometry.target is not None:
            products[-1, -1] = 0.0
        return products

    @cached_property
    def _places(self) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """Where each distinct product stands in the table of all products, in the order of its number."""
        numbers, first = np.unique(self.geometry.products, return_index=True)
        rows, columns = np.unravel_index(first[numbers >= 0], self.geometry.products.shape)
        return rows, columns

    def counts_rows(self, adjacency: Adjacency) -> bool:
        """Whether the number of rows is one of the released values: it is needed, and it is not public."""
        return adjacency == "add-remove" and bool((self.geometry.products == CONSTANT).any())

    def n_values(self, adjacency: Adjacency) -> int:
        """How many values are released."""
        return self.geometry.n_products + self.counts_rows(adjacency)

    def distinct(self, sums: NDArray[np.int64], n_rows: int, adjacency: Adjacency) -> NDArray[np.int64]:
        """The values to release, as one vector of whole numbers: distinct products, then the number of rows if it is one of them."""
        values = sums[self._places]
        return np.append(values, n_rows * self.unit) if self.counts_rows(adjacency) else values

    def assemble(self, values: NDArray[np.float64], n_rows: float) -> MomentValues:
        """The matrix and the vector that a vector of distinct products stands for."""
        d = self.geometry.n_columns
        table = np.concatenate([values / self.unit, [n_rows, 0.0]])[self.geometry.products]  # CONSTANT = -2, ZERO = -1
        return MomentValues(table[:d, :d], table[:d, -1] * (self.step / self.target_units), n_rows)

    def sensitivity(self, adjacency: Adjacency) -> int:
        """The largest L1 change that one row makes to the released values, in lattice units.

        Guarantee: holds for every pair of neighbouring tables of this geometry; docs/proofs/moments.md, Theorems 1 and 2.
        """
        weight = Fraction(self.target_units, self.step)
        bound = distinct_sensitivity(self.geometry, weight, adjacency)
        return math.ceil(bound * self.unit)


def distinct_sensitivity(geometry: Geometry, target_weight: Fraction, adjacency: Adjacency) -> Fraction:
    """The L1 sensitivity of the distinct products, the target's weighted by `target_weight`, in units of 1.

    With k blocks of levels, s signs, q slopes (m = s + q), c = 1 for an intercept and w the target's weight:

    add-remove     [1 if the number of rows is released] + k(k+1)/2 + k m + c m + m(m-1)/2 + q + w (c + k + m)
    replace-one    k(k+1) + 2k(m + w) + max over f in 0..m of [2f(m+c-f) + 2w max(f, m+c-f)], and q/4 more when k = 1,
                   and q more when k = 0, or ((c + m + w)^2 + q) / 2 if that is less

    Shares and indicators (the paper's encoding) have no structure to use: twice the add-remove norm bounds both.

    Guarantee: docs/proofs/moments.md, Theorem 1 (add-remove) and Theorem 2 (replace-one).
    """
    c = int(geometry.intercept)
    w = target_weight if geometry.target is not None else Fraction(0)
    if geometry.count("share") or geometry.count("indicators"):
        blocks = c + geometry.n_blocks
        norm = Fraction(blocks * (blocks + 1), 2) + w * blocks
        return norm if adjacency == "add-remove" else 2 * norm
    k, s, q = geometry.count("levels"), geometry.count("sign"), geometry.count("slope")
    m = s + q
    if adjacency == "add-remove":
        counted = int(c or s > 0)
        return counted + Fraction(k * (k + 1), 2) + k * m + c * m + Fraction(m * (m - 1), 2) + q + w * (c + k + m)
    corner = max(2 * f * (m + c - f) + 2 * w * max(f, m + c - f) for f in range(m + 1))
    bound = k * (k + 1) + 2 * k * (m + w) + corner
    if k == 1:
        return bound + Fraction(q, 4)
    if k == 0:
        return min(bound + q, ((c + m + w) ** 2 + q) / 2) if q else bound
    return bound
