"""Kept rows: sums in fixed point stay within the bound that privacy rests on, and shared memory is safe."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pytest

from privfit.features import FourierFeatures
from privfit.losses import robust
from privfit.rows.cached_design import PIECE_ROWS
from privfit.rows.fixed_point import most_rounding, slope_unit
from privfit.rows.layout import Layout
from privfit.rows.workers import Chunk
from privfit.schema import Category, Numeric, Schema
from privfit.tables import DataError
from tests.support.cached_tables import by_hand, kept_from, mixed, number, schema_for, whole_weights


def exact_sums(design: np.ndarray, target: np.ndarray, weights: np.ndarray, threshold: float) -> list[Fraction]:
    """The gradient of Huber's loss in fractions."""
    most = Fraction(threshold)
    sums = [Fraction(0)] * design.shape[1]
    exact_weights = [Fraction(weight) for weight in weights[:, 0].tolist()]
    for row, y in zip(design.tolist(), target.tolist(), strict=True):
        shown = [(place, Fraction(entry)) for place, entry in enumerate(row) if entry]
        slope = sum(entry * exact_weights[place] for place, entry in shown) - Fraction(y)
        slope = min(max(slope, -most), most)
        for place, entry in shown:
            sums[place] += entry * slope
    return sums


def distance(found: np.ndarray, exact: list[Fraction]) -> float:
    return math.sqrt(
        sum((Fraction(value) - sum_) ** 2 for value, sum_ in zip(found.ravel().tolist(), exact, strict=True))
    )


@pytest.mark.parametrize("length", [1e-3, 1.0, 1e6])
@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("numeric", ["slope", "splines"])
def test_rounding_bounds_the_distance_from_exact_sums(length: float, intercept: bool, numeric: Any) -> None:
    schema, frame = schema_for(), mixed(700)
    geometry = schema.geometry(intercept=intercept, numeric=numeric)
    design, y = by_hand(frame, schema, geometry)
    threshold = 0.3 * length + 0.1
    weights = np.random.default_rng(2).normal(size=(geometry.n_columns, 1))
    weights *= length / np.linalg.norm(weights)
    kept = kept_from(frame, schema, geometry, batch_rows=200)
    loss = robust(threshold)
    off = distance(kept.gradient(weights, loss.slope, threshold), exact_sums(design, y, weights, threshold))
    assert 0 < off <= kept.rounding(weights, threshold, 1.0)


@pytest.mark.parametrize(("low", "high", "threshold"), [(1e9, 1e9 + 1, 0.1), (1.7e9, 1.7e9 + 3600, 1.0)])
def test_rounding_bounds_sums_of_a_target_far_from_zero(low: float, high: float, threshold: float) -> None:
    schema = Schema([Numeric("a", -1, 1)], Numeric("y", low, high))
    middle, half = (low + high) / 2, (high - low) / 2
    loss = robust(threshold).scaled(middle, half)
    table = np.column_stack([np.ones(500), np.full(500, low + 0.53 * (high - low))])
    kept = kept_from(table, schema, schema.geometry(intercept=False))
    target = number(Numeric("y", low, high), table[0, 1])
    weights = np.array([[target + 0.37 * threshold / half]])
    exact = 500 * Fraction(half) ** 2 * (Fraction(float(weights[0, 0])) - Fraction(target))
    assert loss.most_slope is not None
    assert loss.most_curvature is not None
    found = Fraction(float(kept.gradient(weights, loss.slope, loss.most_slope)[0, 0]))
    assert abs(found - exact) <= kept.rounding(weights, loss.most_slope, loss.most_curvature, loss.offset)


@pytest.mark.parametrize("classes", [1, 3])
@pytest.mark.parametrize("steepest", [1.0, 0.75, 1 + 2.0**-40])
@pytest.mark.parametrize("kind", ["number", "level"])
def test_slopes_that_are_all_rounded_the_same_way_come_close_to_the_bound(
    kind: str, steepest: float, classes: int
) -> None:
    """Half a step is lost of every slope of every row. A bound of less than 0.9 times as much would be wrong."""
    n = 3 * PIECE_ROWS + 123
    schema = Schema([Numeric("a", -1, 1) if kind == "number" else Category("a", [0, 1, 2])])
    geometry = schema.geometry(intercept=False)
    kept = kept_from(np.ones((n, 1)), schema, geometry)
    step = slope_unit(steepest)
    value = math.nextafter((math.floor(0.6 * steepest / step) + 0.5) * step, 0.0)
    weights = np.zeros((geometry.n_columns, classes))
    found = kept.gradient(weights, lambda z, t: np.full(z.shape, value), steepest)
    off = math.sqrt(classes) * abs(Fraction(float(np.abs(found).max())) - n * Fraction(value))
    bound = kept.rounding(weights, steepest, 0.0)
    assert 0.9 * bound < off <= bound


def test_rounding_is_what_public_facts_allow_for() -> None:
    schema, frame = schema_for(), mixed(150)
    geometry = schema.geometry()
    kept = kept_from(frame, schema, geometry)
    weights = whole_weights(geometry.n_columns, 3)
    length = float(np.linalg.norm(weights))
    found = kept.rounding(weights, 0.5, 0.25)
    assert found == most_rounding(150, geometry.l2, 1 + len(geometry.blocks), length, 0.5, 0.25, 0.0, 3)
    more: list[dict[str, float]] = [
        {"rows": 151},
        {"norm": 4.0},
        {"entries": 1000},
        {"length": 199.0},
        {"most_slope": 1},
        {"most_curvature": 1},
        {"offset": 9.0},
        {"classes": 4},
    ]
    usual = {
        "rows": 150,
        "norm": geometry.l2,
        "entries": 1 + len(geometry.blocks),
        "length": length,
        "most_slope": 0.5,
        "most_curvature": 0.25,
        "classes": 3,
    }
    for change in more:
        assert most_rounding(**(usual | change)) > found  # type: ignore[arg-type]


def test_features_have_the_rounding_of_their_own_norm() -> None:
    schema, frame = schema_for(), mixed(150)
    geometry = schema.geometry(intercept=False)
    features = FourierFeatures(geometry.n_columns, 10, 0.3)
    kept = kept_from(frame, schema, geometry, features=features)
    weights = whole_weights(20, 1)
    length = float(np.linalg.norm(weights))
    assert kept.rounding(weights, 1.0, 0.25) == most_rounding(150, 1.0, 20, length, 1.0, 0.25)
    design = kept._dense(Chunk.joined(list(kept._every_chunk())))
    assert np.array_equal(design * 2.0**22, np.rint(design * 2.0**22))
    target = np.concatenate([chunk.target for chunk in kept._every_chunk()])
    off = distance(kept.gradient(weights / 9, robust(0.7).slope, 0.7), exact_sums(design, target, weights / 9, 0.7))
    assert 0 < off <= kept.rounding(weights / 9, 0.7, 1.0)


def test_what_all_matrices_share_cannot_be_written_and_is_no_longer_than_a_chunk() -> None:
    layout = Layout(Schema([Category("a", list(range(90))), Category("b", list(range(90)))]).geometry())
    codes = np.zeros((300, len(layout.groups)), dtype=np.int32)
    long, short = (layout.indicators(Chunk(codes[:rows], np.empty((rows, 0)), np.zeros(rows))) for rows in (300, 200))
    assert np.shares_memory(long.data, short.data)
    for matrix in (long, short):
        with pytest.raises(ValueError, match="read-only"):
            matrix.data[0] = 2.0
    assert short.shape == (200, layout.n_codes)


def test_matrices_of_a_part_of_a_chunk_copy_nothing() -> None:
    """A copy of every part in work would be as large as the rows, and no limit counts it."""
    layout = Layout(Schema([Category("a", list(range(90))), Category("b", list(range(90)))]).geometry())
    chunk = Chunk(np.zeros((1000, len(layout.groups)), dtype=np.int32), np.empty((1000, 0)), np.zeros(1000))
    whole = layout.indicators(chunk)
    parts = chunk.parts(300)
    assert [len(part.target) for part in parts] == [300, 300, 300, 100]
    for part in parts:
        for matrix in (layout.indicators(part), layout.transposed(part)):
            assert np.shares_memory(matrix.indices, chunk.codes)
            assert np.shares_memory(matrix.data, whole.data)
            assert not matrix.data.flags.writeable
    pull = np.arange(1000.0)
    np.testing.assert_array_equal(layout.transposed(chunk) @ pull, whole.T @ pull)


def test_more_columns_than_32_bits_address_are_refused_before_a_row_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("privfit.rows.cached_design.MOST_PLACES", 100)
    schema = Schema([Category("a", list(range(90))), Category("b", list(range(90)))])
    with pytest.raises(DataError, match="32-bit"):
        kept_from(pd.DataFrame({"a": [0], "b": [0]}), schema, schema.geometry())
