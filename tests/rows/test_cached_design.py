"""Kept rows: sums over many passes are those of the dense design, whatever holds the table.

Encoded entries are whole multiples of 2^-16. With integer weights and responses every sum here is exact in
float64: most tests ask for equal numbers, not close ones.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privfit.features import FourierFeatures
from privfit.losses import LOGISTIC
from privfit.rows import CachedDesign, Encoder, Rows, on_progress
from privfit.rows.cached_design import CHUNK_ROWS, LARGEST_BLOCK, MANY_CHUNKS, PIECE_ROWS, SHORT_ROWS
from privfit.rows.fixed_point import on_lattice
from privfit.rows.layout import MOST_CODES, STEP, Layout
from privfit.schema import Category, Numeric, RowNorms, Schema
from privfit.tables import DataError, open_table
from tests.support.cached_tables import (
    FEATURES,
    TARGETS,
    by_hand,
    csv,
    dense_sums,
    kept_from,
    logistic_sums,
    mixed,
    parquet,
    schema_for,
    whole,
    whole_weights,
)

# -- the same sums as a dense design ---------------------------------------------------------------


@pytest.mark.parametrize("classes", [1, 3])
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("numeric", ["slope", "bins", "splines"])
def test_sums_equal_those_of_a_design_built_by_hand(classes: int, target: str, intercept: bool, numeric: Any) -> None:
    schema = Schema([column for column in FEATURES if numeric != "bins" or column.name != "age"], TARGETS[target])
    frame = mixed(300, target)
    geometry = schema.geometry(numeric=numeric, intercept=intercept, several=True)
    design, y = by_hand(frame, schema, geometry)
    kept = kept_from(frame, schema, geometry, batch_rows=77)
    weights = whole_weights(design.shape[1], classes)
    assert (kept.n_rows, kept.n_columns) == design.shape
    np.testing.assert_array_equal(kept.gradient(weights, whole, 64.0), dense_sums(design, y, weights, whole))


@pytest.mark.parametrize("intercept", [True, False])
def test_the_design_by_hand_is_the_one_that_exact_sums_are_taken_of(intercept: bool) -> None:
    """So that all of privfit reads one encoding."""
    schema, frame = schema_for(), mixed(200)
    geometry = schema.geometry(intercept=intercept)
    rows = Rows(open_table(frame), schema, geometry)
    (batch,) = rows.batches()
    encoded = Encoder(geometry, STEP, STEP).encode(batch).T / STEP
    np.testing.assert_array_equal(encoded, np.column_stack(by_hand(frame, schema, geometry)))


def test_numbers_measured_from_zero_are_summed_as_they_are_encoded() -> None:
    schema = Schema([Numeric("a", -1, 4), Category("c", [0, 1]), Numeric("b", 2, 8)], Numeric("y", 0, 10))
    geometry = schema.geometry(intercept=False, anchored="all")
    table = np.array([[-9.0, 0, 2, 5], [2, 1, 6, 20], [4, 1, 0, 0]])
    design = np.array([[-0.25, 1, 0, 0.25], [0.5, 0, 1, 0.75], [1, 0, 1, 0.25]])
    kept = kept_from(table, schema, geometry)
    weights = np.array([[3.0], [1], [2], [5]])
    np.testing.assert_array_equal(
        kept.gradient(weights, lambda z, t: z + 8 * t, 64.0), design.T @ (design @ weights + [[4.0], [8], [0]])
    )


def test_numbers_of_a_wide_range_have_their_knots_on_a_logarithm() -> None:
    """A value on a knot is that knot, whatever the scale; outside the bounds it is the last one."""
    schema = Schema([Numeric("a", 0, 1e6), Numeric("b", -1e4, 1e5), Numeric("c", 0, 1)])
    geometry = schema.geometry(numeric="splines", intercept=False, knots=5)
    table = np.column_stack([np.array(block.edges) for block in geometry.blocks])
    table[0], table[-1] = table[0] - 7, table[-1] * 3
    weights = whole_weights(15, 1)
    found = kept_from(table, schema, geometry).gradient(weights, lambda z, t: np.rint(z), 64.0)
    scores = weights.reshape(3, 5).sum(axis=0)
    np.testing.assert_array_equal(found, np.tile(scores, 3)[:, None])


column_kinds = st.sampled_from(["slope", "sign", "bins", 3, 17, 64, 70])


@given(
    st.lists(column_kinds, min_size=1, max_size=7),
    st.booleans(),
    st.sampled_from([1, 2, 4]),
    st.integers(1, 40),
    st.integers(0, 10**6),
)
@settings(max_examples=60)
def test_sums_equal_those_of_the_encoder_for_any_mixture_of_columns(
    kinds: list[Any], intercept: bool, classes: int, batch_rows: int, seed: int
) -> None:
    columns = [
        Numeric(f"x{i}", -2, 3) if kind == "slope"
        else Numeric(f"x{i}", -2, 3, bins=5) if kind == "bins"
        else Category(f"x{i}", list(range(2 if kind == "sign" else kind)))
        for i, kind in enumerate(kinds)
    ]  # fmt: skip
    schema = Schema(columns)
    geometry = schema.geometry(intercept=intercept)
    rng = np.random.default_rng(seed)
    table = np.column_stack(
        [
            rng.normal(0, 3, 50) if isinstance(column, Numeric) else rng.integers(0, len(column.levels), 50)
            for column in columns
        ]
    )
    rows = Rows(open_table(table), schema, geometry, threads=1)
    (batch,) = rows.batches()
    design = Encoder(geometry, STEP, STEP).encode(batch).T / STEP
    kept = kept_from(table, schema, geometry, threads=1, batch_rows=batch_rows)
    weights = whole_weights(geometry.n_columns, classes, seed)
    np.testing.assert_array_equal(kept.gradient(weights, whole, 64.0), dense_sums(design, np.zeros(50), weights, whole))


def test_rows_of_many_chunks_and_batches_lose_nothing() -> None:
    n = 3 * PIECE_ROWS + 1234
    schema, frame = schema_for("two classes"), mixed(n, "two classes")
    geometry = schema.geometry()
    batch = next(iter(Rows(open_table(frame), schema, geometry, batch_rows=n).batches()))
    encoded = Encoder(geometry, STEP, 1).encode(batch).T
    design, y = encoded[:, :-1] / STEP, encoded[:, -1]
    weights = whole_weights(geometry.n_columns, 1)
    wanted = dense_sums(design, y, weights, whole)
    for batch_rows in (1000, PIECE_ROWS, 20_000, 10**6):
        np.testing.assert_array_equal(
            kept_from(frame, schema, geometry, batch_rows=batch_rows).gradient(weights, whole, 64.0), wanted
        )


# -- groups of categories --------------------------------------------------------------------------


@given(st.lists(st.integers(2, 5000), min_size=1, max_size=12))
@settings(max_examples=30)
def test_categories_are_joined_in_order_while_they_have_few_codes(levels: list[int]) -> None:
    layout = Layout(Schema([Category(f"c{i}", list(range(count))) for i, count in enumerate(levels)]).geometry())
    assert [member.levels for group in layout.groups for member in group] == levels
    sizes = [math.prod(member.levels for member in group) for group in layout.groups]
    assert layout.sizes == sizes
    assert all(size <= MOST_CODES or len(group) == 1 for size, group in zip(sizes, layout.groups, strict=True))
    for size, following in zip(sizes[:-1], layout.groups[1:], strict=True):
        assert size * following[0].levels > MOST_CODES  # no group could have taken one more
    assert not layout.numbers


def test_the_largest_category_is_told_apart_to_its_last_level() -> None:
    schema = Schema([Category("c", list(range(LARGEST_BLOCK))), Category("d", [0, 1])])
    table = np.array([[0, 1], [LARGEST_BLOCK - 1, 0], [LARGEST_BLOCK - 1, 0], [256, 1]])
    kept = kept_from(table, schema, schema.geometry(intercept=False))
    sums = kept.gradient(np.zeros((LARGEST_BLOCK + 1, 1)), lambda z, t: np.ones_like(z), 1.0)
    assert {place: sums[place, 0] for place in np.flatnonzero(sums)} == {0: 1, 256: 1, LARGEST_BLOCK - 1: 2}
    assert sums[-1] == 0  # two of either sign


def test_a_category_of_too_many_levels_is_refused_before_a_row_is_read() -> None:
    schema = Schema([Category("c", list(range(LARGEST_BLOCK + 1)))])
    nothing_to_read = np.array([[-1.0]])  # not a level: reading it would be another error
    with pytest.raises(DataError, match=r"more than 65536 levels.*Join levels.*Nothing was charged\."):
        kept_from(nothing_to_read, schema, schema.geometry())


# -- every engine, kept or read again --------------------------------------------------------------


ENGINES: dict[str, Callable[[pd.DataFrame, Path], Any]] = {
    "numpy": lambda frame, _: frame[[column.name for column in schema_for().columns]].to_numpy(dtype=object),
    "pandas": lambda frame, _: frame,
    "polars": lambda frame, _: pl.from_pandas(frame),
    "polars, lazy": lambda frame, _: pl.from_pandas(frame).lazy(),
    "parquet": parquet,
    "csv": csv,
    "arrow stream": lambda frame, _: pa.Table.from_pandas(frame).to_reader(max_chunksize=64),
}


@pytest.mark.parametrize("target", ["number", "four classes"])
@pytest.mark.parametrize("engine", ENGINES)
def test_every_engine_gives_the_sums_of_the_design_by_hand(engine: str, target: str, tmp_path: Path) -> None:
    schema, frame = schema_for(target), mixed(400, target)
    geometry = schema.geometry(several=True)
    design, y = by_hand(frame, schema, geometry)
    kept = kept_from(ENGINES[engine](frame, tmp_path), schema, geometry, batch_rows=150)
    weights = whole_weights(geometry.n_columns, 3)
    for _ in range(2):  # a stream as well: it is kept
        np.testing.assert_array_equal(kept.gradient(weights, whole, 64.0), dense_sums(design, y, weights, whole))


@pytest.mark.parametrize("classes", [1, 3])
@pytest.mark.parametrize("engine", ENGINES)
def test_rows_in_a_file_give_the_bits_of_rows_in_memory(engine: str, classes: int, tmp_path: Path) -> None:
    schema, frame = schema_for("two classes"), mixed(700, "two classes")
    table = (
        ENGINES[engine](frame, tmp_path)
        if engine != "numpy"
        else frame[[column.name for column in schema.columns]].to_numpy(dtype=object)
    )
    other = ENGINES[engine](frame, tmp_path) if engine == "arrow stream" else table
    held = kept_from(table, schema, schema.geometry(), batch_rows=150)
    again = kept_from(other, schema, schema.geometry(), batch_rows=150, most_bytes=0)
    assert again._chunks is None
    for _ in range(2):
        np.testing.assert_array_equal(logistic_sums(again, classes), logistic_sums(held, classes))


def test_many_chunks_in_a_file_are_joined_as_in_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    schema, frame = schema_for("two classes"), mixed(5 * PIECE_ROWS, "two classes")
    held, spilled = (kept_from(frame, schema, schema.geometry(), most_bytes=most) for most in (None, 10**6))
    lengths = [[len(chunk.target) for chunk in kept._every_chunk()] for kept in (held, spilled)]
    assert (held._file, spilled._chunks) == (None, None)
    assert lengths[0] == lengths[1]
    np.testing.assert_array_equal(logistic_sums(spilled), logistic_sums(held))


def test_rows_go_to_a_file_where_they_take_more_than_is_allowed() -> None:
    schema, table = Schema([Numeric("a", -1, 1)]), np.ones((100, 1))
    for most, in_memory in ((100 * 24, True), (100 * 24 - 1, False)):
        kept = kept_from(table, schema, schema.geometry(), most_bytes=most)
        assert (kept._chunks is not None) == in_memory


def test_a_table_is_not_read_again_after_the_charge() -> None:
    schema = Schema([Numeric("a", -1, 1)])
    table = np.ones((100, 1))
    both = [kept_from(table, schema, schema.geometry(), most_bytes=most) for most in (None, 0)]
    table[:] = -1.0
    sums = [kept.gradient(np.zeros((2, 1)), lambda z, t: np.ones_like(z), 1.0)[1, 0] for kept in both]
    assert sums == [100, 100]


@pytest.mark.parametrize("most_bytes", [None, 0])
@pytest.mark.parametrize("classes", [1, 3])
def test_no_number_of_threads_changes_a_bit(most_bytes: int | None, classes: int) -> None:
    schema, frame = schema_for("two classes"), mixed(5 * PIECE_ROWS // 2, "two classes")
    sums = [
        logistic_sums(
            kept_from(frame, schema, schema.geometry(), threads=threads, batch_rows=12_000, most_bytes=most_bytes),
            classes,
        )
        for threads in (1, 2, 5)
    ]
    np.testing.assert_array_equal(sums[1], sums[0])
    np.testing.assert_array_equal(sums[2], sums[0])


def test_a_stream_is_counted_while_it_is_read_and_may_be_asked_for_its_rows_then() -> None:
    schema, frame = schema_for(), mixed(123)
    rows = Rows(open_table(pa.Table.from_pandas(frame).to_reader()), schema, schema.geometry())
    assert rows.known_rows is None
    assert CachedDesign(rows).n_rows == 123
    assert rows.n_rows == 123


def test_a_stream_that_does_not_fit_in_memory_goes_to_a_file() -> None:
    schema, frame = schema_for(), mixed(123)
    kept = kept_from(pa.Table.from_pandas(frame).to_reader(), schema, schema.geometry(), most_bytes=100)
    np.testing.assert_array_equal(logistic_sums(kept), logistic_sums(kept_from(frame, schema, schema.geometry())))


@pytest.mark.parametrize("n", [1, 5000, MANY_CHUNKS * PIECE_ROWS, MANY_CHUNKS * CHUNK_ROWS + 77])
@pytest.mark.parametrize("batch_rows", [900, 1 << 16, 10**7])
def test_chunks_are_few_and_never_longer_than_rounding_allows_for(n: int, batch_rows: int) -> None:
    schema = Schema([Numeric("a", 0, 1)])
    kept = kept_from(np.zeros((n, 1)), schema, schema.geometry(), batch_rows=batch_rows)
    lengths = [len(chunk.target) for chunk in kept._every_chunk()]
    assert sum(lengths) == n
    assert max(lengths) <= CHUNK_ROWS + SHORT_ROWS
    assert len(lengths) <= 2 * MANY_CHUNKS
    wide = Schema([Numeric(f"a{i}", 0, 1) for i in range(200)])
    rows = min(n, 3 * PIECE_ROWS)
    kept = kept_from(np.broadcast_to(0.0, (rows, 200)), wide, wide.geometry(), batch_rows=batch_rows)
    assert max(len(chunk.target) for chunk in kept._every_chunk()) <= PIECE_ROWS + SHORT_ROWS


def test_reading_tells_how_far_it_is() -> None:
    told: list[int] = []
    with on_progress(told.append):
        kept = kept_from(
            np.zeros((PIECE_ROWS + 300, 1)), Schema([Numeric("a", 0, 1)]), Schema([Numeric("a", 0, 1)]).geometry()
        )
        assert told == [PIECE_ROWS, PIECE_ROWS + 300]
        kept.sample()
    assert told == [PIECE_ROWS, PIECE_ROWS + 300]


# -- samples ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("classes", [1, 3])
def test_a_small_table_is_its_own_sample(classes: int) -> None:
    schema, frame = schema_for(), mixed(300)
    geometry = schema.geometry()
    design, y = by_hand(frame, schema, geometry)
    sample = kept_from(frame, schema, geometry, batch_rows=77).sample()
    weights = whole_weights(geometry.n_columns, classes)
    assert sample.weight == 1
    np.testing.assert_array_equal(sample.gradient(weights, whole), dense_sums(design, y, weights, whole))
    scores = design @ weights
    bends = whole(scores[:, 0], y)[:, None] if classes == 1 else whole(scores, y)
    expected = [design.T @ np.diag(bends[:, k]) @ design for k in range(classes)]
    np.testing.assert_array_equal(sample.hessian(weights, whole), expected)


@pytest.mark.parametrize("most_bytes", [None, 0])
@pytest.mark.parametrize("classes", [1, 3])
def test_curvature_is_estimated_from_a_thirty_second_of_the_rows(classes: int, most_bytes: int | None) -> None:
    """Every row stands thirty-two times after itself, so that the part is the whole."""
    schema = Schema([Numeric("a", -1, 1), Category("c", ["x", "y", "z"])], target=Numeric("t", -1, 1))
    rng = np.random.default_rng(0)
    few = pd.DataFrame(
        {
            "a": rng.choice([-1.0, -0.5, 0.25, 1.0], 500),
            "c": rng.choice(["x", "y", "z"], 500),
            "t": rng.choice([-1, 0.5], 500),
        }
    )
    geometry = schema.geometry()
    kept = kept_from(few.loc[few.index.repeat(32)], schema, geometry, batch_rows=901, most_bytes=most_bytes)
    assert kept.hessian_rows == 500
    weights = whole_weights(geometry.n_columns, classes)
    once = kept_from(few, schema, geometry).sample()
    assert once.n_rows == 500
    np.testing.assert_array_equal(kept.hessian(weights, whole), 32 * once.hessian(weights, whole))


@pytest.mark.parametrize(("batch_rows", "most_bytes"), [(5, None), (1000, 0), (50_000, None), (50_000, 0)])
def test_a_large_table_is_sampled_from_end_to_end_however_it_is_cut(batch_rows: int, most_bytes: int | None) -> None:
    levels, n = 723, 13_456
    schema = Schema([Category("c", list(range(levels)))], target=Numeric("y", -1, 1))
    table = np.column_stack([np.arange(n) % levels, np.linspace(-1, 1, n)])
    kept = kept_from(table, schema, schema.geometry(), batch_rows=batch_rows, most_bytes=most_bytes)
    sample = kept.sample()
    assert sample.n_rows == max((1 << 20) // (levels + 1), 8 * (levels + 1)) < n / 2
    assert sample.weight == n / sample.n_rows
    counts = sample.gradient(np.zeros((levels + 1, 1)), lambda z, t: np.ones_like(t))
    assert counts[0, 0] == pytest.approx(n)
    quarters = np.histogram(np.repeat(sample._target, sample._counts.astype(int)), 4, (-1, 1))[0] / sample.n_rows
    np.testing.assert_allclose(quarters, 0.25, atol=0.03)
    drawn = {(int(level), y) for level, y in zip(np.argmax(sample._design[:, 1:], axis=1), sample._target, strict=True)}
    assert drawn <= {(int(level), round(y * STEP) / STEP) for level, y in table.tolist()}


# -- features of rows ------------------------------------------------------------------------------


class Pairs:
    """Every product of two neighbouring columns: as exact as the columns."""

    def __init__(self, columns: int) -> None:
        self.n_columns = columns - 1
        self.norms = RowNorms(columns - 1.0, math.sqrt(columns - 1), 1.0, columns - 1)
        self.frequencies = np.eye(columns)

    def __call__(self, encoded: np.ndarray) -> np.ndarray:
        return encoded[:, 1:] * encoded[:, :-1]


@pytest.mark.parametrize("most_bytes", [None, 0])
@pytest.mark.parametrize("classes", [1, 3])
def test_features_take_the_place_of_encoded_rows(classes: int, most_bytes: int | None) -> None:
    schema, frame = schema_for("four classes"), mixed(300, "four classes")
    geometry = schema.geometry(several=True)
    design, y = by_hand(frame, schema, geometry)
    features = Pairs(geometry.n_columns)
    kept = kept_from(frame, schema, geometry, features=features, most_bytes=most_bytes, batch_rows=77)
    weights = whole_weights(features.n_columns, classes)
    wanted = dense_sums(features(design @ features.frequencies), y, weights, whole)
    assert kept.n_columns == geometry.n_columns - 1
    np.testing.assert_array_equal(kept.gradient(weights, whole, 64.0), wanted)
    np.testing.assert_allclose(kept.sample().gradient(weights, whole), wanted, rtol=1e-12)


def test_random_features_of_kept_rows_are_those_of_the_encoded_ones() -> None:
    schema, frame = schema_for("two classes"), mixed(500, "two classes")
    geometry = schema.geometry(intercept=False)
    features = FourierFeatures(geometry.n_columns, 20, 0.3, seed=5)
    design, y = by_hand(frame, schema, geometry)
    kept = kept_from(frame, schema, geometry, features=features, threads=2, batch_rows=90)
    weights = np.random.default_rng(1).normal(size=(40, 1))
    np.testing.assert_allclose(
        kept.gradient(weights, LOGISTIC.slope, 1.0),
        dense_sums(on_lattice(features(design @ features.frequencies)), y, weights, LOGISTIC.slope),
        rtol=1e-9,
    )
