"""Weights of rows as integers: cut at a public bound, in equal steps."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from privfit.schema import Numeric
from privfit.tables import DataError, Values

SHARE_STEPS = 1 << 20
"""Steps of a weight that multiplies what a row adds to a gradient: finer than any survey's. No command varies it."""


@dataclass(frozen=True)
class RowWeights:
    """The column of weights, the public bound at which they are cut, and the integer that stands for the bound."""

    column: Numeric
    most: float
    levels: int

    def shares(self, values: Values) -> NDArray[np.float64]:
        """Weights as shares of the bound, in steps of 2^-20."""
        return replace(self, levels=SHARE_STEPS).encoded(values) / SHARE_STEPS

    def encoded(self, values: Values) -> NDArray[np.float64]:
        """Weights as integers from 0 to `levels`; a weight that is negative or missing is refused, and not quoted."""
        if not bool((values >= 0).all()):  # neither is a NaN
            raise DataError(
                f"The weights {self.column.name!r} contain a value that is negative, NaN or missing, and a row counts "
                "zero times or more. Give every row a weight of at least 0. Nothing was charged."
            )
        return np.asarray(np.rint(np.minimum(values, self.most) / self.most * self.levels), dtype=np.float64)
