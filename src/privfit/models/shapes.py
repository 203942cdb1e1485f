"""What each input column adds to a prediction of an additive model: curves and levels, from what was released."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.isotonic import isotonic_regression

from privfit.models.report import JSONObject
from privfit.privacy import PrivacyError
from privfit.schema import MISSING, Block, Geometry, Numeric, Schema

Floats = NDArray[np.float64]
Monotone = Mapping[str, int]
Bands = dict[str, tuple[Floats, Floats]]
"""Lower and upper ends over the grid of every input column."""


@dataclass(frozen=True)
class Shape:
    """What one column adds to the predictor.

    Parameters
    ----------
    grid : tuple
        Knots or bounds of a number, between which the curve is a line; or the names of levels or bins.
    values : ndarray
        What the column adds there, about a mean of zero over the grid.
    lower, upper : ndarray
        Ends of a 90% band for each value: where the curve would be without noise in the weights. NaN where nothing is
        known of the noise.
    """

    grid: tuple[float | str, ...]
    values: Floats
    lower: Floats
    upper: Floats


def shapes_of(geometry: Geometry, coef: Floats, bands: Bands | None = None) -> dict[str, Shape]:
    """The shape of every input column, from one coefficient per name in `geometry.feature_names`, and the bands."""
    found, first = {}, 0
    for block in geometry.blocks:
        name = block.column.name
        grid, values = _curve(block, coef[first : first + len(block.labels)])
        lower, upper = (np.full(len(values), np.nan),) * 2 if bands is None else bands[name]
        found[name] = Shape(grid, values, np.asarray(lower), np.asarray(upper))
        first += len(block.labels)
    return found


def bands_of(geometry: Geometry, coef: Floats, half: Floats, monotone: Monotone) -> Bands:
    """The bands of every input column about these coefficients, from half their widths per encoded column, the constant
    left out. Ends are made monotone as curves are: that keeps what lies between them there.
    """
    found: Bands = {}
    first = 0
    start = int(geometry.intercept)
    for block in geometry.blocks:
        _, values = _curve(block, coef[first : first + len(block.labels)])
        own = half[block.start - start : block.stop - start]
        reach = np.full(len(values), own[0]) if block.width == 1 else own
        ends = (values - reach, values + reach)
        direction = monotone.get(block.column.name)
        found[block.column.name] = (
            ends if direction is None else (_rising(block, ends[0], direction), _rising(block, ends[1], direction))
        )
        first += len(block.labels)
    return found


def _rising(block: Block, values: Floats, direction: int) -> Floats:
    """The nearest values on a curve that rise or fall; that of a missing value as it is."""
    there = len(values) - _has_gap(block)
    return np.append(isotonic_regression(values[:there], increasing=direction > 0), values[there:])


def _has_gap(block: Block) -> bool:
    """Whether the last value is that of missing ones, and no part of a curve."""
    return isinstance(block.column, Numeric) and block.column.fill == MISSING


def _curve(block: Block, coef: Floats) -> tuple[tuple[float | str, ...], Floats]:
    """The grid of a column, and what it adds there."""
    if block.kind in ("slope", "share"):
        assert isinstance(block.column, Numeric)
        ends = (block.column.low, block.column.high)
        values = coef[0] * np.array(ends)
        return ends, values - values.mean()
    if block.kind == "spline":
        return block.edges, coef - coef.mean()
    if block.kind.endswith("-or-missing"):
        return _curve_with_gaps(block, coef)
    prefix = len(block.column.name) + 1
    return tuple(label[prefix:] for label in block.labels), coef - coef.mean()


def _curve_with_gaps(block: Block, coef: Floats) -> tuple[tuple[float | str, ...], Floats]:
    """The same, and what a missing value adds; the mean is that of values that are there."""
    assert isinstance(block.column, Numeric)
    grid, values, gap = block.edges, coef[:-1], coef[-1]
    if block.kind == "slope-or-missing":
        grid = (block.column.low, block.column.high)
        values, gap = coef[0] * np.array(grid), coef[0] * block.center + gap
    return (*grid, MISSING), np.append(values, gap) - values.mean()


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
        own = slice(first, first + len(block.labels) - _has_gap(block))
        first += len(block.labels)
        direction = monotone.get(block.column.name)
        if direction is None:
            continue
        if block.kind in ("slope", "share", "slope-or-missing"):
            found[own] = np.maximum(direction * found[own], 0.0) * direction
        else:
            found[own] = isotonic_regression(found[own], increasing=direction > 0)
    return found


def plain_shapes(shapes: Mapping[str, Shape]) -> dict[str, dict[str, Any]]:
    """Shapes as plain values, for a drawing."""
    return {name: {**asdict(shape), "grid": list(shape.grid)} for name, shape in shapes.items()}


def band_facts(bands: Bands | None) -> JSONObject:
    """What a saved model holds of its bands."""
    return {} if bands is None else {"bands": {name: [end.tolist() for end in ends] for name, ends in bands.items()}}


def restored_bands(facts: JSONObject) -> Bands | None:
    """The bands of a saved model, if it has any."""
    if "bands" not in facts:
        return None
    return {name: (np.array(lower), np.array(upper)) for name, (lower, upper) in facts["bands"].items()}
