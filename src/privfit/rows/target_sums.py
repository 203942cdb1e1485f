"""Exact sums over the targets of a cached design: how many are beyond a value, and what predictors leave of them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from privfit.rows.cached_design import CachedDesign

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


def count_up_to(design: CachedDesign, grid: Floats, centre: float | None = None) -> Integers:
    """How many rows have a target of at most each value of an ascending grid; with a centre, a distance from it of at
    most that. Targets are multiples of a power of two, and so is a centre: differences are exact.

    Parameters
    ----------
    design : CachedDesign
        The rows.
    grid : ndarray
        Values in ascending order.
    centre : float or None, default=None
        What distances are measured from.

    Returns
    -------
    ndarray of int
        One number of rows per value.
    """
    found = np.zeros(len(grid) + 1, dtype=np.int64)
    for chunk in design._every_chunk():
        values = chunk.target if centre is None else np.abs(chunk.target - centre)
        found += np.bincount(np.searchsorted(grid, values, side="left"), minlength=len(grid) + 1)
    return np.asarray(np.cumsum(found)[:-1], dtype=np.int64)


def sum_of_residuals(design: CachedDesign, weights: Floats, centre: float, width: float, bits: int) -> int:
    """The sum over rows of (target - centre) / width less the predictor, in steps of 2^-bits, each cut at 1 in size.

    Weights are integers, 2^bits to 1, few enough digits long that predictors are exact in floats: what a row adds
    depends on that row alone.

    Parameters
    ----------
    design : CachedDesign
        The rows.
    weights : ndarray of shape (n_columns, 1)
        The integer weights.
    centre : float
        What targets are measured from.
    width : float
        The unit of targets and predictors, and where residuals are cut.
    bits : int
        Logarithm of the steps to 1.

    Returns
    -------
    int
        The sum, in steps.
    """
    predictors, most, total = design._predictors(weights), 1 << bits, 0
    for chunk in design._every_chunk():
        predicted = np.floor(predictors(chunk)[:, 0])
        residuals = np.rint((chunk.target - centre) / width * most) - predicted
        total += int(np.clip(residuals, -most, most).astype(np.int64).sum())
    return total
