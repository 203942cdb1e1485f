"""What each input column adds to a prediction of an additive model: curves and levels, from what was released."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from sklearn.isotonic import isotonic_regression

from privfit.privacy import PrivacyError
from privfit.schema import MISSING, Block, Geometry, Numeric, Schema

Floats = NDArray[np.float64]
Monotone = Mapping[str, int]


@dataclass(frozen=True)
class Shape:
    """What one column adds to the predictor.

    Parameters
    ----------
    grid : tuple
        Knots or bounds of a number, between which the curve is a line; or the names of levels or bins.
    values : ndarray
        What the column adds there, about a mean of zero over the grid.
    """

    grid: tuple[float | str, ...]
    values: Floats


def shapes_of(geometry: Geometry, coef: Floats) -> dict[str, Shape]:
    """The shape of every input column, from one coefficient per name in `geometry.feature_names`."""
    found, first = {}, 0
    for block in geometry.blocks:
        found[block.column.name] = _shape(block, coef[first : first + len(block.labels)])
        first += len(block.labels)
    return found


def _shape(block: Block, coef: Floats) -> Shape:
    if block.kind in ("slope", "share"):
        assert isinstance(block.column, Numeric)
        ends = (block.column.low, block.column.high)
        values = coef[0] * np.array(ends)
        return Shape(ends, values - values.mean())
    if block.kind == "spline":
        return Shape(block.edges, coef - coef.mean())
    if block.kind.endswith("-or-missing"):
        return _shape_with_gaps(block, coef)
    prefix = len(block.column.name) + 1
    return Shape(tuple(label[prefix:] for label in block.labels), coef - coef.mean())


def _shape_with_gaps(block: Block, coef: Floats) -> Shape:
    """The same, and what a missing value adds; the mean is that of values that are there."""
    assert isinstance(block.column, Numeric)
    grid, values, gap = block.edges, coef[:-1], coef[-1]
    if block.kind == "slope-or-missing":
        grid = (block.column.low, block.column.high)
        values, gap = coef[0] * np.array(grid), coef[0] * block.center + gap
    return Shape((*grid, MISSING), np.append(values, gap) - values.mean())


def check_monotone(monotone: Monotone | None, schema: Schema) -> None:
    """Refuse directions of columns that are no numbers, or that are neither up nor down."""
    numbers = {column.name for column in schema.features if isinstance(column, Numeric)}
    for name, direction in (monotone or {}).items():
        if name not in numbers or direction not in (-1, 1) or isinstance(direction, bool):
            raise PrivacyError(
                f"monotone={{{name!r}: {direction!r}}} was given; it maps names of numeric columns to 1 (rising) or -1 "
                "(falling). Leave out others."
            )


def made_monotone(geometry: Geometry, coef: Floats, monotone: Monotone) -> Floats:
    """The coefficients with the nearest curves that rise or fall as asked: post-processing, which costs nothing."""
    found, first = coef.copy(), 0
    for block in geometry.blocks:
        gap = isinstance(block.column, Numeric) and block.column.fill == MISSING  # the last label, no part of a curve
        own = slice(first, first + len(block.labels) - gap)
        first += len(block.labels)
        direction = monotone.get(block.column.name)
        if direction is None:
            continue
        if block.kind in ("slope", "share", "slope-or-missing"):
            found[own] = np.maximum(direction * found[own], 0.0) * direction
        else:
            found[own] = isotonic_regression(found[own], increasing=direction > 0)
    return found
