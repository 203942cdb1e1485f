"""What every map of encoded rows to design columns offers."""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from privfit.schema import RowNorms

Floats = NDArray[np.float64]


class FeatureMap(Protocol):
    """A public map of encoded rows to bounded features."""

    @property
    def n_columns(self) -> int:
        """How many features there are."""
        ...

    @property
    def norms(self) -> RowNorms:
        """The largest norms of a row of them."""
        ...

    @property
    def frequencies(self) -> Floats | None:
        """What encoded rows are multiplied by first: (columns, frequencies).

        None where rows of numbers are taken as they are.
        """
        ...

    def __call__(self, turned: Floats) -> Floats:
        """The features of rows with these products, one row each."""
        ...
