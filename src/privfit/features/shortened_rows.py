"""Rows of numbers whose length is public: a gradient is no longer than its row."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from privfit.schema import RowNorms

Floats = NDArray[np.float64]

JUST_BELOW = 1 - 2.0**-40
"""Rows are shortened to a little less than they may have, for what rounding adds again."""


@dataclass(frozen=True)
class ShortenedRows:
    """Numbers as they are encoded, each row no longer than `radius` (Euclidean); longer ones are shortened to it.

    Where that is less than 1, all are stretched to a length of at most 1,
    so that they weigh as much as the constant, which may stand before them.

    Guarantee: no row is longer than `norms` say; docs/proofs/perturbation.md, Lemma 7.
    """

    columns: int
    radius: float
    constant: bool

    @property
    def unit(self) -> float:
        """What encoded numbers are divided by."""
        return min(self.radius, 1.0)

    @property
    def frequencies(self) -> Floats | None:
        """Rows are taken as they are."""
        return None

    @property
    def n_columns(self) -> int:
        """How many columns there are, the constant included."""
        return self.columns + self.constant

    @property
    def norms(self) -> RowNorms:
        """Entries are at most 1 in size, as everywhere; d numbers of length r have an L1 norm of at most r times the
        root of d.
        """
        one, root = float(self.constant), math.sqrt(self.columns)
        length = min(max(self.radius, 1.0), root)
        return RowNorms(min(length * root, float(self.columns)) + one, math.hypot(length, one), 1.0, self.n_columns)

    def __call__(self, turned: Floats) -> Floats:
        """The rows, shortened where they are too long. Each depends on itself alone."""
        assert turned.shape[1] == self.columns
        lengths = np.sqrt((np.ascontiguousarray(turned) ** 2).sum(axis=1))
        most = self.radius * JUST_BELOW
        shares = np.divide(most, lengths, out=np.ones_like(lengths), where=lengths > most) / self.unit
        shortened = turned * shares[:, None]
        return (
            np.column_stack([np.ones(len(turned)), shortened])
            if self.constant
            else np.asarray(shortened, dtype=np.float64)
        )
