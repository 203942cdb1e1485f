"""Linear B-splines: a number as two neighbouring shares that add up to one."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def linear_splines(places: Floats, knots: int) -> Floats:
    """The basis at every place, one row each: 1 at its knot, falling to 0 at the next ones.

    Places are counted in knots: 0 is the first, 1 the second. Weights at the knots are joined by straight lines.
    """
    return np.maximum(0.0, 1.0 - np.abs(places[:, None] - np.arange(knots)))
