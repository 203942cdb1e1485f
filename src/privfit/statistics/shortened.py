"""Rows of numbers whose length is public: no row pulls further than its length, however many columns it has."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from privfit.statistics.gradients import RowNorms

Floats = NDArray[np.float64]

JUST_BELOW = 1 - 2.0**-40
"""Rows are shortened to a little less than they may have, for what rounding adds again."""


@dataclass(frozen=True)
class ShortenedRows:
    """Numbers as they are encoded, each row no longer than `radius` (Euclidean); longer ones are shortened to it. With a constant, that stands first.

    Guarantee: no row is longer than `norms` say; docs/proofs/perturbation.md, Lemma 7.
    """

    columns: int
    radius: float
    constant: bool

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
        """Entries are at most 1 in size, as everywhere; a row of length r has an L1 norm of at most r times the root of its entries' number."""
        one = float(self.constant)
        sum_of_sizes = min(self.radius * math.sqrt(self.columns), float(self.columns))
        length = min(self.radius, math.sqrt(self.columns))
        return RowNorms(sum_of_sizes + one, math.hypot(length, one), max(min(self.radius, 1.0), one), self.n_columns)

    def __call__(self, turned: Floats) -> Floats:
        """The rows, shortened where they are too long. Each depends on itself alone."""
        lengths = np.sqrt((np.ascontiguousarray(turned) ** 2).sum(axis=1))
        most = self.radius * JUST_BELOW
        shares = np.divide(most, lengths, out=np.ones_like(lengths), where=lengths > most)
        shortened = turned * shares[:, None]
        return np.column_stack([np.ones(len(turned)), shortened]) if self.constant else np.asarray(shortened, dtype=np.float64)
