"""How much each input column counts in a linear model: post-processing of coefficients and public bounds."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from privfit.rows import Interactions, Pair
from privfit.schema import Block, Geometry, Numeric

Floats = NDArray[np.float64]


def column_importances(geometry: Geometry, coef: Floats, pairs: Sequence[Pair] = ()) -> Floats:
    """One number per input column: the standard deviation of its part of the linear predictor, for even values.

    Even means: a number is uniform between its public bounds (where it is a spline, on the scale of its knots), and
    every level or bin is equally frequent; missing numbers do not count. So columns in different units, and with
    different numbers of levels, are comparable, and no row is needed. A table for a pair of columns gives half of its
    variance to each of the two. With several predictors, one per class, it is the root of their mean square.

    `coef` has one row per predictor, with an entry per name in `geometry.feature_names`, followed by the cells of
    `pairs`.
    """
    variances = np.zeros(len(geometry.blocks))
    first = 0
    for place, block in enumerate(geometry.blocks):
        own = coef[:, first : first + len(block.labels)]
        variances[place] = np.mean(_even_variance(block, own))
        first += len(block.labels)
    interactions = Interactions(geometry) if pairs else None
    for pair in pairs:
        assert interactions is not None
        cells = interactions.n_cells(pair)
        variances[list(pair)] += np.mean(np.var(coef[:, first : first + cells], axis=1)) / len(set(pair))
        first += cells
    return np.asarray(np.sqrt(variances))


def _even_variance(block: Block, coef: Floats) -> Floats:
    """The variance of one column's part, of every predictor."""
    if block.kind in ("slope", "share", "slope-or-missing"):
        assert isinstance(block.column, Numeric)
        return np.asarray((coef[:, 0] * (block.column.high - block.column.low)) ** 2 / 12)
    if block.kind in ("spline", "spline-or-missing"):
        return _variance_between_knots(coef[:, : len(block.edges)])
    return np.asarray(np.var(coef, axis=1))


def _variance_between_knots(values: Floats) -> Floats:
    """The variance of a function that is linear between evenly spaced knots, at a uniform point."""
    left, right = values[:, :-1], values[:, 1:]
    squares = np.mean((left**2 + left * right + right**2) / 3, axis=1)
    return np.asarray(np.maximum(squares - np.mean((left + right) / 2, axis=1) ** 2, 0.0))
