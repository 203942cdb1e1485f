"""Kept rows: sums of floats stay within the bound that privacy rests on, and shared memory is safe."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

from privfit.features import FourierFeatures
from privfit.losses import robust
from privfit.rows import CachedDesign
from privfit.rows.cached_design import CHUNK_ROWS, MANY_CHUNKS, PIECE_ROWS
from privfit.rows.layout import Chunk, Layout
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
def test_rounding_bounds_the_distance_from_exact_sums(length: float, intercept: bool) -> None:
    schema, frame = schema_for(), mixed(700)
    geometry = schema.geometry(intercept=intercept)
    design, y = by_hand(frame, schema, geometry)
    threshold = 0.3 * length + 0.1
    weights = np.random.default_rng(2).normal(size=(geometry.n_columns, 1))
    weights *= length / np.linalg.norm(weights)
    kept = kept_from(frame, schema, geometry, batch_rows=200)
    off = distance(kept.gradient(weights, robust(threshold).slope), exact_sums(design, y, weights, threshold))
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
    assert abs(Fraction(float(kept.gradient(weights, loss.slope)[0, 0])) - exact) <= kept.rounding(
        weights, loss.most_slope, loss.most_curvature, loss.offset
    )


@pytest.mark.parametrize("n", [4 * PIECE_ROWS, MANY_CHUNKS * CHUNK_ROWS])
@pytest.mark.parametrize("kind", ["number", "level"])
def test_rounding_bounds_sums_whose_every_addition_is_rounded_the_same_way(kind: str, n: int) -> None:
    """Each row adds one, and just below half of the last place of half a usual chunk's sum: all that is lost."""
    schema = Schema([Numeric("a", -1, 1) if kind == "number" else Category("a", [0, 1, 2])])
    geometry = schema.geometry(intercept=False)
    kept = kept_from(np.ones((n, 1)), schema, geometry)
    value = 1 + 2.0**-41 - 2.0**-50
    weights = np.zeros((geometry.n_columns, 1))
    found = kept.gradient(weights, lambda z, t: np.full(len(z), value))
    off = abs(Fraction(float(found.max())) - n * Fraction(value))
    assert off <= kept.rounding(weights, value, 0.0)
    if kind == "level":
        assert off > kept.rounding(weights, value, 0.0) / 10**4  # it is no bound of nothing


def test_rounding_is_what_public_facts_allow_for() -> None:
    schema, frame = schema_for(), mixed(150)
    geometry = schema.geometry()
    kept = kept_from(frame, schema, geometry)
    weights = whole_weights(geometry.n_columns, 3)
    length = float(np.linalg.norm(weights))
    found = kept.rounding(weights, 0.5, 0.25)
    assert found == CachedDesign.most_rounding(150, geometry.l2, 1 + len(geometry.blocks), length, 0.5, 0.25)
    more: list[dict[str, float]] = [
        {"rows": 151},
        {"norm": 4.0},
        {"entries": 1000},
        {"length": 199.0},
        {"most_slope": 1},
        {"most_curvature": 1},
    ]
    usual = {
        "rows": 150,
        "norm": geometry.l2,
        "entries": 1 + len(geometry.blocks),
        "length": length,
        "most_slope": 0.5,
        "most_curvature": 0.25,
    }
    for change in more:
        assert CachedDesign.most_rounding(**(usual | change)) > found  # type: ignore[arg-type]


def test_features_have_the_rounding_of_their_own_norm() -> None:
    schema, frame = schema_for(), mixed(150)
    geometry = schema.geometry(intercept=False)
    features = FourierFeatures(geometry.n_columns, 10, 0.3)
    kept = kept_from(frame, schema, geometry, features=features)
    weights = whole_weights(20, 1)
    assert kept.rounding(weights, 1.0, 0.25) == CachedDesign.most_rounding(
        150, 1.0, 20, float(np.linalg.norm(weights)), 1.0, 0.25
    )


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
