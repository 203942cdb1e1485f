"""What a drawing of a linear model holds: coefficients, curves and tables of pairs as plain values, from what was
released and the schema."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privfit.models.report import JSONObject
from privfit.models.shapes import Shape, plain_shapes, shapes_of
from privfit.report.models import draw_coefficients
from privfit.report.shapes import draw_shapes
from privfit.rows import Interactions, Pair, is_alone
from privfit.schema import Block, Geometry, Numeric

Floats = NDArray[np.float64]
LINES = ("slope", "share", "slope-or-missing")
"""Kinds of blocks of a number with one slope."""


def draw_linear(
    geometry: Geometry,
    coef: Floats,
    intervals: Floats | None,
    titles: Sequence[str],
    adds_to: str,
    pairs: Sequence[Pair],
    path: str | Path | None,
) -> Any:
    """Draw a model with one row of `coef` for each title: its coefficients, or curves where a number has one."""
    straight = all(block.kind in (*LINES, "sign", "levels") for block in geometry.blocks)
    without_bins = all(isinstance(block.column, Numeric) <= (block.kind in LINES) for block in geometry.blocks)
    if straight and without_bins and not pairs:
        return draw_coefficients(_coefficients(geometry, coef, intervals, titles), adds_to, path)
    first = len(geometry.feature_names)
    curves = {
        name: drawn_shapes(geometry, own, pairs, shapes_of(geometry, own[:first]))
        for name, own in zip(titles, coef, strict=True)
    }
    return draw_shapes(curves, adds_to, path, maps_of(geometry, coef[-1], pairs))


def _coefficients(
    geometry: Geometry, coef: Floats, intervals: Floats | None, titles: Sequence[str]
) -> list[JSONObject]:
    """Sets of coefficients; that of a number counts over its whole public range, so that columns are comparable."""
    parts = [part for block in geometry.blocks for part in _named(block)]
    names, ranges = [name for name, _ in parts], np.array([width for _, width in parts])
    return [
        {
            "title": title if len(titles) > 1 else "",
            "names": names,
            "values": (own * ranges).tolist(),
            "intervals": None if intervals is None else (intervals * ranges[:, None]).tolist(),
        }
        for title, own in zip(titles, coef, strict=True)
    ]


def _named(block: Block) -> list[tuple[str, float]]:
    """A name for every coefficient of a column, and what it is multiplied with."""
    column, labels = block.column, list(block.labels)
    if isinstance(column, Numeric):
        slope = (f"{column.name}: {column.low:g} to {column.high:g}", column.high - column.low)
        return [slope, *((label, 1.0) for label in labels[1:])]
    start = len(column.name) + 1
    return [(f"{column.name}: {label[start:]}", 1.0) for label in labels]


def maps_of(geometry: Geometry, coef: Floats, pairs: Sequence[Pair]) -> list[JSONObject]:
    """The tables of pairs of columns, whose cells follow the encoded columns; a number by itself is in its curve."""
    found: list[JSONObject] = []
    first, interactions = len(geometry.feature_names), Interactions(geometry)
    for pair in pairs:
        cells = coef[first : first + interactions.n_cells(pair)]
        first += len(cells)
        if is_alone(pair):
            continue
        down, across = interactions.axes(pair)
        one, other = (geometry.blocks[place].column.name for place in pair)
        table = cells.reshape(len(down), len(across)).tolist()
        found.append({"title": f"{one} by {other}", "down": list(down), "across": list(across), "values": table})
    return found


def _with_fine_curves(
    geometry: Geometry, coef: Floats, pairs: Sequence[Pair], shapes: dict[str, Shape]
) -> dict[str, Shape]:
    """The shapes, with what a number by itself adds in fine cells; bands are not for these."""
    found, interactions, first = dict(shapes), Interactions(geometry), len(geometry.feature_names)
    for pair in pairs:
        cells = coef[first : first + interactions.n_cells(pair)]
        first += len(cells)
        column = geometry.blocks[pair[0]].column
        if not (is_alone(pair) and isinstance(column, Numeric)):
            continue
        knots = np.array(shapes[column.name].grid, dtype=np.float64)
        fine = interactions.fine_middles(pair)
        values = np.interp(column.on_scale(fine), column.on_scale(knots), shapes[column.name].values) + cells
        unknown = np.full(len(values), np.nan)
        found[column.name] = Shape(tuple(fine.tolist()), values, unknown, unknown)
    return found


def drawn_shapes(
    geometry: Geometry, coef: Floats, pairs: Sequence[Pair], shapes: dict[str, Shape]
) -> dict[str, dict[str, Any]]:
    """Shapes as plain values, with all that a column adds by itself."""
    return plain_shapes(_with_fine_curves(geometry, coef, pairs, shapes))
