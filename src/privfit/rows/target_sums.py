"""Exact sums over the targets of a cached design: how many are beyond a value, and what predictors leave of them."""

from __future__ import annotations

from functools import partial

import numpy as np
from numpy.typing import NDArray

from privfit.rows.cached_design import CachedDesign
from privfit.rows.fixed_point import Predictors
from privfit.rows.workers import Chunk, Sums

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
    found = design.total(partial(_counts, grid, centre))[0]
    return np.asarray(np.cumsum(found)[:-1], dtype=np.int64)


def _counts(grid: Floats, centre: float | None, _: int, chunk: Chunk) -> Sums:
    values = chunk.target if centre is None else np.abs(chunk.target - centre)
    counts = np.bincount(np.searchsorted(grid, values, side="left"), minlength=len(grid) + 1)
    return [counts.astype(np.int64)]


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
    return int(design.total(partial(_residuals, design._predictors(weights), centre, width, 1 << bits))[0])


def count_residuals_up_to(
    design: CachedDesign, weights: Floats, centre: float, width: float, bits: int, grid: Floats
) -> Integers:
    """How many rows have a residual, (target - centre) / width less the predictor, of at most each value of a grid.

    Residuals are whole steps of 2^-bits, as in `sum_of_residuals`: a row's depends on that row alone.

    Parameters
    ----------
    design : CachedDesign
        The rows.
    weights : ndarray of shape (n_columns, 1)
        The integer weights.
    centre : float
        What targets are measured from.
    width : float
        The unit of targets and predictors.
    bits : int
        Logarithm of the steps to 1.
    grid : ndarray
        Values in ascending order, where the width is 1.

    Returns
    -------
    ndarray of int
        One number of rows per value.
    """
    most = 1 << bits
    found = design.total(partial(_places, design._predictors(weights), centre, width, most, grid * most))[0]
    return np.asarray(np.cumsum(found)[:-1], dtype=np.int64)


def _places(predictors: Predictors, centre: float, width: float, most: int, grid: Floats, _: int, chunk: Chunk) -> Sums:
    residuals = _in_steps(predictors, centre, width, most, chunk)
    counts = np.bincount(np.searchsorted(grid, residuals, side="left"), minlength=len(grid) + 1)
    return [counts.astype(np.int64)]


def _in_steps(predictors: Predictors, centre: float, width: float, most: int, chunk: Chunk) -> Floats:
    predicted = np.floor(predictors(chunk)[:, 0])
    return np.asarray(np.rint((chunk.target - centre) / width * most) - predicted, dtype=np.float64)


def _residuals(predictors: Predictors, centre: float, width: float, most: int, _: int, chunk: Chunk) -> Sums:
    return [np.clip(_in_steps(predictors, centre, width, most, chunk), -most, most).astype(np.int64).sum()]
