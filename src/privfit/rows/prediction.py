"""Rows as a model sees them when it predicts: numbers in their own units, categories as 0 and 1 per level.

Used on whatever rows the user wants predictions for; nothing fitted ever passes through here. Each row's prediction is
computed by itself, column by column: in a matrix product the rows beside it could change how it is rounded.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from privfit.features import FeatureMap
from privfit.rows.encoding import absent_values, level_codes, on_knots
from privfit.rows.interactions import Interactions, Pair
from privfit.rows.layout import Layout, linear_splines
from privfit.rows.workers import Chunk
from privfit.schema import Block, Geometry, Numeric, Schema
from privfit.tables import Batch, Table, Values

PREDICT_ROWS = 1 << 15
"""Rows that are predicted for together: time against memory."""


def linear_scores(
    table: Table,
    schema: Schema,
    geometry: Geometry,
    coef: NDArray[np.float64],
    intercept: float | NDArray[np.float64],
    pairs: Sequence[Pair] = (),
) -> NDArray[np.float64]:
    """coef'x + intercept for every row, one coefficient per name in `geometry.feature_names`; or several at once, one
    column each.

    The cells of `pairs` of columns, of which every row has one each, are further coefficients.
    """
    interactions, parts = Interactions(geometry), []
    for batch in table.batches(schema.features, table.positions(schema.features), PREDICT_ROWS):
        scores, first = np.zeros((len(batch[0]), *coef.shape[1:])), 0
        for block, values in zip(geometry.blocks, batch, strict=True):
            scores += _share_of(block, values, coef[first : first + len(block.labels)])
            first += len(block.labels)
        scores += intercept
        for pair in pairs:
            scores += coef[first + interactions.numbers(pair, batch)]
            first += interactions.n_cells(pair)
        parts.append(scores)
    return np.concatenate(parts) if parts else np.empty(0)


def quadratic_scores(
    table: Table,
    schema: Schema,
    geometry: Geometry,
    constant: NDArray[np.float64],
    linear: NDArray[np.float64],
    quadratic: NDArray[np.float64],
) -> NDArray[np.float64]:
    """Several quadratic functions without mixed terms (one line of coefficients each) of encoded columns, one per name
    in `geometry.feature_names`: numbers are clipped to their bounds and scaled to [-1, 1].
    """
    parts = [np.empty((0, len(constant)))]
    numbers = [block for block in geometry.blocks if block.kind in ("slope", "slope-or-missing")]
    for _, design in _designs(table, schema, geometry):
        for block in numbers:
            design[:, block.start] = np.clip((design[:, block.start] - block.center) / block.unit, -1.0, 1.0)
        parts.append(_row_by_row(design, linear.T) + _row_by_row(np.square(design), quadratic.T) + constant)
    return np.concatenate(parts)


def feature_scores(
    table: Table,
    schema: Schema,
    geometry: Geometry,
    features: FeatureMap,
    coef: NDArray[np.float64],
    intercept: float | NDArray[np.float64],
) -> NDArray[np.float64]:
    """coef'f(x) + intercept for every row, where f maps encoded rows to features."""
    layout = Layout(geometry)
    positions = table.positions(schema.features)
    parts = []
    for batch in table.batches(schema.features, positions, PREDICT_ROWS):
        rows = len(batch[0])
        chunk = Chunk(*layout.chunk(batch), np.empty(rows))
        products = chunk.numbers if features.frequencies is None else layout.turned(chunk, features.frequencies)
        parts.append(_row_by_row(features(products), coef) + intercept)
    return np.concatenate(parts) if parts else np.empty(0)


def _designs(table: Table, schema: Schema, geometry: Geometry) -> Iterator[tuple[Batch, NDArray[np.float64]]]:
    """Batches, and their rows as columns of a design."""
    for batch in table.batches(schema.features, table.positions(schema.features), PREDICT_ROWS):
        columns = [_shown(block, values) for block, values in zip(geometry.blocks, batch, strict=True)]
        yield batch, np.column_stack(columns)


def _share_of(block: Block, values: Values, coef: NDArray[np.float64]) -> NDArray[np.float64]:
    """What a column adds to the scores of every row."""
    if block.kind in ("levels", "sign", "indicators"):
        return np.asarray(coef[level_codes(block, values)])
    return _row_by_row(_shown(block, values), coef)


def _row_by_row(design: NDArray[np.float64], coef: NDArray[np.float64]) -> NDArray[np.float64]:
    """The product of a design and coefficients, by the same operations in the same order for each row."""
    scores = np.zeros((len(design), *coef.shape[1:]))
    for column, own in zip(design.T, coef, strict=True):
        scores += column * own if coef.ndim == 1 else column[:, None] * own
    return scores


def _shown(block: Block, values: Values) -> NDArray[np.float64]:
    """A number in its own units, or as what splines make of it: one row each."""
    column = block.column
    if block.kind in ("slope", "share"):
        assert isinstance(column, Numeric)
        numbers = np.asarray(values, dtype=np.float64)
        absent = np.isnan(numbers)
        if absent.any():
            if column.fill is None:
                raise absent_values(column)
            numbers = np.where(absent, float(column.fill), numbers)
        return numbers[:, None]
    if block.kind.endswith("-or-missing"):
        return _shown_with_gaps(block, np.asarray(values, dtype=np.float64))
    if block.kind == "spline":
        return linear_splines(on_knots(block, np.asarray(values, dtype=np.float64)), block.width)
    return np.eye(len(block.labels))[level_codes(block, values)]


def _shown_with_gaps(block: Block, values: NDArray[np.float64]) -> NDArray[np.float64]:
    """A number and a 0; of a missing one, what is encoded as 0 and a 1."""
    column, absent = block.column, np.isnan(values)
    assert isinstance(column, Numeric)
    if block.kind == "slope-or-missing":
        return np.column_stack([np.where(absent, block.center, values), absent])
    line = linear_splines(on_knots(block, np.where(absent, column.low, values)), len(block.edges))
    line[absent] = 0.0
    return np.column_stack([line, absent])
