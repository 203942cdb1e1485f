"""Between encoded columns and the columns that a person sees: numbers in their own units, one column per level."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from privfit.schema import Geometry

Floats = NDArray[np.float64]


def shown_columns(geometry: Geometry) -> Floats:
    """The matrix that turns centred encoded columns (the intercept left out) into centred columns as `feature_names`
    lists them.

    A number is its unit times its encoded column; of a sign, the columns of the two levels are minus and plus a half of
    it; levels are themselves. The last level of the paper's indicators is shown as nothing.
    """
    offset = int(geometry.intercept)
    shown = np.zeros((len(geometry.feature_names), geometry.n_columns - offset))
    row = 0
    for block in geometry.blocks:
        start = block.start - offset
        if block.kind in ("slope", "share"):
            shown[row, start] = block.unit
        elif block.kind == "slope-or-missing":
            shown[row : row + 2, start : start + 2] = np.diag([block.unit, 1.0])
        elif block.kind == "sign":
            shown[row : row + 2, start] = (-0.5, 0.5)
        else:
            shown[row : row + block.width, start : start + block.width] = np.eye(block.width)
        row += len(block.labels)
    return shown
