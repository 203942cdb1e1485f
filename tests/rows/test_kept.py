"""Kept rows: sums over many passes are those of the dense design, whatever holds the table, and their rounding stays within its bound.

Encoded entries are whole multiples of 2^-16. With whole-number weights and responses every sum here is exact in float64: most tests ask for equal numbers, not close ones.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from threadpoolctl import threadpool_info

from privfit.losses import LOGISTIC, robust
from privfit.rows import Encoder, KeptRows, Rows, on_progress
from privfit.rows.kept import CHUNK_ROWS, LARGEST_BLOCK, MANY_CHUNKS, SHORT_ROWS, USUAL_ROWS
from privfit.rows.layout import MOST_CODES, STEP, STEPS_PER_KNOT, Chunk, Layout
from privfit.schema import MISSING, OTHER, Block, Category, Geometry, Numeric, Schema
from privfit.statistics import FourierFeatures, RowNorms
from privfit.tables import DataError, open_table
from tests.support.chains import told_by

CITIES = [f"town {k}" for k in range(60)]
FEATURES = [
    Numeric("age", 17, 90, fill=40),
    Category("city", CITIES, other=True, fill="town 3"),
    Category("flag", [False, True], fill=True),
    Numeric("hours", 0, 99),
    Numeric("wage", -1.5, 60.25, bins=4, fill="missing"),
    Numeric("half", 0, 10, bins=2),
    Category("code", list(range(90)), other=True),
    Numeric("depth", 0, 9, bins=[1, 4]),
    Category("grade", ["a", "b"]),
]
TARGETS = {
    "number": Numeric("y", -3, 5),
    "two classes": Category("y", ["low", "high"]),
    "four classes": Category("y", ["n", "e", "s", "w"], fill="s"),
    "none": None,
}


def mixed(n: int, target: str = "number", seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "depth": rng.choice([-1.0, 0.5, 1.0, 3.9, 4.0, 12.0], n),
            "age": np.where(rng.random(n) < 0.1, np.nan, rng.normal(50, 30, n)),
            "city": rng.choice([*CITIES, "elsewhere", None], n),
            "flag": rng.choice([True, False, None], n),
            "hours": rng.normal(40, 40, n),
            "wage": np.where(rng.random(n) < 0.2, np.nan, rng.normal(20, 30, n)),
            "half": rng.choice([-4.0, 2.0, 5.0, 11.0], n),
            "code": rng.integers(0, 95, n),
            "grade": rng.choice(["a", "b"], n),
        }
    )
    levels = {"two classes": ["low", "high"], "four classes": ["n", "e", "s", "w", None]}
    if target != "none":
        frame["y"] = rng.normal(1, 4, n) if target == "number" else rng.choice(levels[target], n)
    return frame


def schema_for(target: str = "number") -> Schema:
    return Schema(FEATURES, TARGETS[target])


def by_hand(frame: pd.DataFrame, schema: Schema, geometry: Geometry) -> tuple[np.ndarray, np.ndarray]:
    """The design and the target, cell by cell from the words of the schema."""
    rows = [[1.0] if geometry.intercept else [] for _ in range(len(frame))]
    for column, block in zip(schema.features, geometry.blocks, strict=True):
        for row, value in zip(rows, frame[column.name].tolist(), strict=True):
            row += cells(column, block, value)
    return np.array(rows), targets_by_hand(frame, schema.target)


def cells(column: Numeric | Category, block: Block, value: Any) -> list[float]:
    absent, edges = value is None or value != value, block.edges
    if isinstance(column, Numeric) and block.kind == "hats":
        return hats(column, block.width, column.fill if absent else value)
    if isinstance(column, Numeric) and not edges:
        return [number(column, column.fill if absent else value)]
    if isinstance(column, Category):
        level = column.fill if absent else value if value in column.levels else OTHER
        place, count = column.levels.index(level), len(column.levels)
    else:
        count = len(edges) + 1 + (column.fill == MISSING)
        place = count - 1 if absent else sum(value >= edge for edge in edges)
    return [2.0 * place - 1.0] if count == 2 else [float(k == place) for k in range(count)]


def hats(column: Numeric, knots: int, value: Any) -> list[float]:
    """Shares of the two nearest knots, in steps of a 32nd."""
    place = (min(max(value, column.low), column.high) - column.low) / (column.high - column.low) * (knots - 1)
    return [max(0.0, 1 - abs(round(place * STEPS_PER_KNOT) / STEPS_PER_KNOT - knot)) for knot in range(knots)]


def number(column: Numeric, value: Any) -> float:
    middle, half = (column.low + column.high) / 2, (column.high - column.low) / 2
    return round(min(max((value - middle) * (STEP / half), -STEP), STEP)) / STEP


def targets_by_hand(frame: pd.DataFrame, target: Numeric | Category | None) -> np.ndarray:
    if target is None:
        return np.zeros(len(frame))
    values = frame[target.name].tolist()
    if isinstance(target, Numeric):
        return np.array([number(target, value) for value in values])
    places = np.array([target.levels.index(target.fill if value is None or value != value else value) for value in values], dtype=float)
    return places if len(target.levels) > 2 else 2 * places - 1


def kept_from(table: Any, schema: Schema, geometry: Geometry, **options: Any) -> KeptRows:
    most_bytes, features = options.pop("most_bytes", None), options.pop("features", None)
    return KeptRows(Rows(open_table(table), schema, geometry, **options), features, most_bytes)


def whole_weights(columns: int, classes: int, seed: int = 1) -> np.ndarray:
    return np.random.default_rng(seed).integers(-9, 10, (columns, classes)).astype(float)


def whole(scores: np.ndarray, target: np.ndarray) -> np.ndarray:
    """A response that is a whole number, of the predictor and of the target."""
    known = np.rint(4 * target) if scores.ndim == 1 else np.rint(4 * target)[:, None] * np.arange(1, scores.shape[1] + 1)
    return np.floor(scores) % 7 - known


def dense_sums(design: np.ndarray, target: np.ndarray, weights: np.ndarray, respond: Callable[..., np.ndarray]) -> np.ndarray:
    scores = design @ weights
    pull = respond(scores[:, 0], target)[:, None] if weights.shape[1] == 1 else respond(scores, target)
    return design.T @ pull


# -- the same sums as a dense design ---------------------------------------------------------------------------------------


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
    np.testing.assert_array_equal(kept.pulled(weights, whole), dense_sums(design, y, weights, whole))


@pytest.mark.parametrize("intercept", [True, False])
def test_the_design_by_hand_is_the_one_that_exact_sums_are_taken_of(intercept: bool) -> None:
    """So that all of privfit reads one encoding."""
    schema, frame = schema_for(), mixed(200)
    geometry = schema.geometry(intercept=intercept)
    rows = Rows(open_table(frame), schema, geometry)
    (batch,) = rows.batches()
    encoded = Encoder(geometry, STEP, STEP).encode(batch, 0, len(frame)).T / STEP
    np.testing.assert_array_equal(encoded, np.column_stack(by_hand(frame, schema, geometry)))


def test_numbers_measured_from_zero_are_summed_as_they_are_encoded() -> None:
    schema = Schema([Numeric("a", -1, 4), Category("c", [0, 1]), Numeric("b", 2, 8)], Numeric("y", 0, 10))
    geometry = schema.geometry(intercept=False, anchored="all")
    table = np.array([[-9.0, 0, 2, 5], [2, 1, 6, 20], [4, 1, 0, 0]])
    design = np.array([[-0.25, 1, 0, 0.25], [0.5, 0, 1, 0.75], [1, 0, 1, 0.25]])
    kept = kept_from(table, schema, geometry)
    weights = np.array([[3.0], [1], [2], [5]])
    np.testing.assert_array_equal(kept.pulled(weights, lambda z, t: z + 8 * t), design.T @ (design @ weights + [[4.0], [8], [0]]))


def test_numbers_of_a_wide_range_have_their_knots_on_a_logarithm() -> None:
    """A value on a knot is that knot, whatever the scale; outside the bounds it is the last one."""
    schema = Schema([Numeric("a", 0, 1e6), Numeric("b", -1e4, 1e5), Numeric("c", 0, 1)])
    geometry = schema.geometry(numeric="splines", intercept=False, knots=5)
    table = np.column_stack([np.array(block.edges) for block in geometry.blocks])
    table[0], table[-1] = table[0] - 7, table[-1] * 3
    weights = whole_weights(15, 1)
    found = kept_from(table, schema, geometry).pulled(weights, lambda z, t: np.rint(z * 1e6) / 1e6)
    scores = weights.reshape(3, 5).sum(axis=0)
    np.testing.assert_array_equal(found, np.tile(scores, 3)[:, None])


column_kinds = st.sampled_from(["slope", "sign", "bins", 3, 17, 64, 70])


@given(st.lists(column_kinds, min_size=1, max_size=7), st.booleans(), st.sampled_from([1, 2, 4]), st.integers(1, 40), st.integers(0, 10**6))
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
        [rng.normal(0, 3, 50) if isinstance(column, Numeric) else rng.integers(0, len(column.levels), 50) for column in columns]
    )
    rows = Rows(open_table(table), schema, geometry, threads=1)
    (batch,) = rows.batches()
    design = Encoder(geometry, STEP, STEP).encode(batch, 0, 50).T / STEP
    kept = kept_from(table, schema, geometry, threads=1, batch_rows=batch_rows)
    weights = whole_weights(geometry.n_columns, classes, seed)
    np.testing.assert_array_equal(kept.pulled(weights, whole), dense_sums(design, np.zeros(50), weights, whole))


def test_rows_of_many_chunks_and_batches_lose_nothing() -> None:
    n = 3 * USUAL_ROWS + 1234
    schema, frame = schema_for("two classes"), mixed(n, "two classes")
    geometry = schema.geometry()
    batch = next(iter(Rows(open_table(frame), schema, geometry, batch_rows=n).batches()))
    encoded = Encoder(geometry, STEP, 1).encode(batch, 0, n).T
    design, y = encoded[:, :-1] / STEP, encoded[:, -1]
    weights = whole_weights(geometry.n_columns, 1)
    wanted = dense_sums(design, y, weights, whole)
    for batch_rows in (1000, USUAL_ROWS, 20_000, 10**6):
        np.testing.assert_array_equal(kept_from(frame, schema, geometry, batch_rows=batch_rows).pulled(weights, whole), wanted)


# -- groups of categories --------------------------------------------------------------------------------------------------


@given(st.lists(st.integers(2, 5000), min_size=1, max_size=12))
@settings(max_examples=30)
def test_categories_are_joined_in_order_while_they_have_few_codes(levels: list[int]) -> None:
    layout = Layout(Schema([Category(f"c{i}", list(range(count))) for i, count in enumerate(levels)]).geometry())
    assert [member.levels for group in layout.groups for member in group] == levels
    sizes = [math.prod(member.levels for member in group) for group in layout.groups]
    assert layout.sizes() == sizes
    assert all(size <= MOST_CODES or len(group) == 1 for size, group in zip(sizes, layout.groups, strict=True))
    for size, following in zip(sizes[:-1], layout.groups[1:], strict=True):
        assert size * following[0].levels > MOST_CODES  # no group could have taken one more
    assert not layout.numbers


def test_the_largest_category_is_told_apart_to_its_last_level() -> None:
    schema = Schema([Category("c", list(range(LARGEST_BLOCK))), Category("d", [0, 1])])
    table = np.array([[0, 1], [LARGEST_BLOCK - 1, 0], [LARGEST_BLOCK - 1, 0], [256, 1]])
    kept = kept_from(table, schema, schema.geometry(intercept=False))
    sums = kept.pulled(np.zeros((LARGEST_BLOCK + 1, 1)), lambda z, t: np.ones_like(z))
    assert {place: sums[place, 0] for place in np.flatnonzero(sums)} == {0: 1, 256: 1, LARGEST_BLOCK - 1: 2}
    assert sums[-1] == 0  # two of either sign


def test_a_category_of_too_many_levels_is_refused_before_a_row_is_read() -> None:
    schema = Schema([Category("c", list(range(LARGEST_BLOCK + 1)))])
    nothing_to_read = np.array([[-1.0]])  # not a level: reading it would be another error
    with pytest.raises(DataError, match=r"more than 65536 levels.*Join levels.*Nothing was charged\."):
        kept_from(nothing_to_read, schema, schema.geometry())


# -- every engine, kept or read again ----------------------------------------------------------------------------------------


def parquet(frame: pd.DataFrame, path: Path) -> Path:
    pl.from_pandas(frame).write_parquet(path / "t.parquet", row_group_size=100)
    return path / "t.parquet"


def csv(frame: pd.DataFrame, path: Path) -> Path:
    pl.from_pandas(frame).write_csv(path / "t.csv")
    return path / "t.csv"


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
        np.testing.assert_array_equal(kept.pulled(weights, whole), dense_sums(design, y, weights, whole))


def logistic_sums(kept: KeptRows, classes: int = 1) -> np.ndarray:
    """Sums that are rounded, so that the order of additions shows."""
    weights = np.random.default_rng(3).normal(size=(kept.n_columns, classes)) / 7
    return kept.pulled(weights, lambda z, t: LOGISTIC.slope(z, t if z.ndim == 1 else t[:, None]))


@pytest.mark.parametrize("classes", [1, 3])
@pytest.mark.parametrize("engine", [engine for engine in ENGINES if engine != "arrow stream"])
def test_a_table_that_is_read_again_gives_the_bits_of_one_that_is_kept(engine: str, classes: int, tmp_path: Path) -> None:
    schema, frame = schema_for("two classes"), mixed(700, "two classes")
    table = (
        ENGINES[engine](frame, tmp_path) if engine != "numpy" else frame[[column.name for column in schema.columns]].to_numpy(dtype=object)
    )
    held = kept_from(table, schema, schema.geometry(), batch_rows=150)
    again = kept_from(table, schema, schema.geometry(), batch_rows=150, most_bytes=0)
    for _ in range(2):
        np.testing.assert_array_equal(logistic_sums(again, classes), logistic_sums(held, classes))


def test_a_table_that_does_not_fit_is_seen_as_it_is_at_every_pass() -> None:
    """The way to know that it was not kept: it changes under our hands."""
    schema = Schema([Numeric("a", -1, 1)])
    table = np.ones((100, 1))
    held, again = (kept_from(table, schema, schema.geometry(), most_bytes=most) for most in (100 * 24, 100 * 24 - 1))
    table[:] = -1.0
    sums = [kept.pulled(np.zeros((2, 1)), lambda z, t: np.ones_like(z))[1, 0] for kept in (held, again)]
    assert sums == [100, -100]


@pytest.mark.parametrize("most_bytes", [None, 0])
@pytest.mark.parametrize("classes", [1, 3])
def test_no_number_of_threads_changes_a_bit(most_bytes: int | None, classes: int) -> None:
    schema, frame = schema_for("two classes"), mixed(5 * USUAL_ROWS // 2, "two classes")
    sums = [
        logistic_sums(kept_from(frame, schema, schema.geometry(), threads=threads, batch_rows=12_000, most_bytes=most_bytes), classes)
        for threads in (1, 2, 5)
    ]
    np.testing.assert_array_equal(sums[1], sums[0])
    np.testing.assert_array_equal(sums[2], sums[0])


def test_a_stream_is_counted_while_it_is_read_and_may_be_asked_for_its_rows_then() -> None:
    schema, frame = schema_for(), mixed(123)
    rows = Rows(open_table(pa.Table.from_pandas(frame).to_reader()), schema, schema.geometry())
    assert rows.known_rows is None
    assert KeptRows(rows).n_rows == 123
    assert rows.n_rows == 123


def test_a_stream_that_does_not_fit_is_refused_before_anything_is_charged() -> None:
    schema, frame = schema_for(), mixed(123)
    with pytest.raises(DataError, match=r"Arrow stream.*several passes.*does not fit in memory.*file or a table.*Nothing was charged\."):
        kept_from(pa.Table.from_pandas(frame).to_reader(), schema, schema.geometry(), most_bytes=100)


@pytest.mark.parametrize("n", [1, 5000, MANY_CHUNKS * USUAL_ROWS, MANY_CHUNKS * CHUNK_ROWS + 77])
@pytest.mark.parametrize("batch_rows", [900, 1 << 16, 10**7])
def test_chunks_are_few_and_never_longer_than_rounding_allows_for(n: int, batch_rows: int) -> None:
    schema = Schema([Numeric("a", 0, 1)])
    kept = kept_from(np.zeros((n, 1)), schema, schema.geometry(), batch_rows=batch_rows)
    lengths = [len(chunk.target) for chunk in kept._every_chunk()]
    assert sum(lengths) == n
    assert max(lengths) <= CHUNK_ROWS + SHORT_ROWS
    assert len(lengths) <= 2 * MANY_CHUNKS
    wide = Schema([Numeric(f"a{i}", 0, 1) for i in range(200)])
    rows = min(n, 3 * USUAL_ROWS)
    kept = kept_from(np.broadcast_to(0.0, (rows, 200)), wide, wide.geometry(), batch_rows=batch_rows)
    assert max(len(chunk.target) for chunk in kept._every_chunk()) <= USUAL_ROWS + SHORT_ROWS


def test_reading_tells_how_far_it_is() -> None:
    told: list[int] = []
    with on_progress(told.append):
        kept = kept_from(np.zeros((USUAL_ROWS + 300, 1)), Schema([Numeric("a", 0, 1)]), Schema([Numeric("a", 0, 1)]).geometry())
        assert told == [USUAL_ROWS, USUAL_ROWS + 300]
        kept.sample()
    assert told == [USUAL_ROWS, USUAL_ROWS + 300]


# -- what is wrong with a table, before the charge and after it ----------------------------------------------------------------


def spoilt(frame: pd.DataFrame, how: str) -> pd.DataFrame:
    changed = frame.copy()
    if how in ("fewer rows", "more rows"):
        return changed.iloc[:-1] if how == "fewer rows" else pd.concat([changed, changed.iloc[:1]])
    if how == "a missing number":
        changed.loc[60, "hours"] = np.nan
    if how == "an unknown level":
        changed.loc[60, "grade"] = "zebra"
    if how == "a missing target":
        changed.loc[60, "y"] = np.nan
    return changed


REFUSALS = {
    "a missing number": "'hours' contains NaN or missing values",
    "an unknown level": "'grade' contains a level that its schema does not list",
    "a missing target": "'y' contains NaN or missing values",
}


@pytest.mark.parametrize("most_bytes", [None, 0])
@pytest.mark.parametrize("how", REFUSALS)
def test_a_table_that_does_not_fit_its_schema_is_refused_at_the_first_reading(how: str, most_bytes: int | None) -> None:
    """Also where it is too large to be kept: what is met after the charge cannot be taken back."""
    schema, frame = schema_for(), spoilt(mixed(200), how)
    with pytest.raises(DataError, match=REFUSALS[how]) as refused:
        kept_from(frame, schema, schema.geometry(), batch_rows=30, most_bytes=most_bytes)
    assert str(refused.value).endswith("Nothing was charged.")
    assert "zebra" not in told_by(refused.value)


def test_a_table_without_rows_is_refused() -> None:
    schema = Schema([Numeric("a", 0, 1)])
    for empty in (np.empty((0, 1)), pa.table({"a": pa.array([], pa.float64())}).to_reader()):
        with pytest.raises(DataError, match=r"no rows.*Give a table with rows\. Nothing was charged\."):
            kept_from(empty, schema, schema.geometry())


@pytest.mark.parametrize("how", [*REFUSALS, "fewer rows", "more rows"])
@pytest.mark.parametrize("use", ["sums", "sample"])
def test_a_file_that_changed_before_it_is_read_again_is_refused_and_the_charge_stands(how: str, use: str, tmp_path: Path) -> None:
    schema, frame = schema_for(), mixed(200)
    kept = kept_from(csv(frame, tmp_path), schema, schema.geometry(), batch_rows=30, most_bytes=0)
    csv(spoilt(frame, how), tmp_path)
    with pytest.raises(DataError, match=REFUSALS.get(how, "another number of rows")) as refused:
        logistic_sums(kept) if use == "sums" else kept.sample()
    assert str(refused.value).endswith("The charge stands.")
    assert "Nothing was charged" not in str(refused.value)
    assert "zebra" not in told_by(refused.value)


@pytest.mark.parametrize("write", [csv, parquet])
def test_a_file_that_is_gone_when_it_is_read_again_leaves_no_sum(write: Callable[[pd.DataFrame, Path], Path], tmp_path: Path) -> None:
    schema, path = schema_for(), write(mixed(200), tmp_path)
    kept = kept_from(path, schema, schema.geometry(), most_bytes=0)
    path.unlink()
    with pytest.raises(DataError, match=r"cannot be read.*is not what it was at first\. The charge stands\.$") as refused:
        logistic_sums(kept)
    assert "Nothing was charged" not in str(refused.value)


def test_a_frame_that_changed_in_memory_is_refused_as_well() -> None:
    schema, frame = schema_for(), mixed(200)
    table = frame[[column.name for column in schema.columns]].to_numpy(dtype=object)
    kept = kept_from(table, schema, schema.geometry(), most_bytes=0)
    table[150, 3] = math.nan
    with pytest.raises(DataError, match=r"'hours' contains NaN.*The charge stands\.$"):
        logistic_sums(kept)


def test_a_file_that_was_kept_may_change_or_go(tmp_path: Path) -> None:
    schema, path = schema_for(), parquet(mixed(200), tmp_path)
    kept = kept_from(path, schema, schema.geometry())
    before = logistic_sums(kept)
    path.unlink()
    np.testing.assert_array_equal(logistic_sums(kept), before)


@pytest.mark.parametrize("threads", [1, 2, 8])
def test_the_first_error_of_a_table_is_told_however_far_ahead_is_read(threads: int, tmp_path: Path) -> None:
    """Reading meets a text in a late batch while the NaN of an early one waits to be encoded."""
    schema = Schema([Numeric("a", 0, 1), Numeric("b", 0, 1)])
    a: list[object] = [0.5] * 1000
    a[10], a[900] = math.nan, "zebra"
    table = np.array([a, [0.5] * 1000], dtype=object).T
    with pytest.raises(DataError, match="'a' contains NaN") as refused:
        kept_from(table, schema, schema.geometry(), batch_rows=100, threads=threads)
    assert "zebra" not in told_by(refused.value)


@pytest.mark.parametrize("most_bytes", [None, 0])
def test_a_refused_table_leaves_linear_algebra_as_it_was(most_bytes: int | None, tmp_path: Path) -> None:
    def blas_threads() -> list[int]:
        return [one["num_threads"] for one in threadpool_info() if one["user_api"] == "blas"]

    schema, frame = schema_for(), mixed(200)
    before = blas_threads()
    path = csv(frame, tmp_path)
    kept = kept_from(path, schema, schema.geometry(), batch_rows=30, most_bytes=most_bytes)
    csv(spoilt(frame, next(iter(REFUSALS))), tmp_path)
    refused: list[BaseException] = []
    for use in (
        lambda: kept_from(path, schema, schema.geometry(), batch_rows=30, most_bytes=most_bytes),
        kept.sample,
        lambda: logistic_sums(kept),
    ):
        try:
            use()
        except DataError as error:
            refused.append(error)
    assert len(refused) == (1 if most_bytes is None else 3)
    assert blas_threads() == before


# -- samples -------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("classes", [1, 3])
def test_a_small_table_is_its_own_sample(classes: int) -> None:
    schema, frame = schema_for(), mixed(300)
    geometry = schema.geometry()
    design, y = by_hand(frame, schema, geometry)
    sample = kept_from(frame, schema, geometry, batch_rows=77).sample()
    weights = whole_weights(geometry.n_columns, classes)
    assert sample.weight == 1
    np.testing.assert_array_equal(sample.pulled(weights, whole), dense_sums(design, y, weights, whole))
    scores = design @ weights
    bends = whole(scores[:, 0], y)[:, None] if classes == 1 else whole(scores, y)
    expected = [design.T @ np.diag(bends[:, k]) @ design for k in range(classes)]
    np.testing.assert_array_equal(sample.curved(weights, whole), expected)


@pytest.mark.parametrize("most_bytes", [None, 0])
@pytest.mark.parametrize("classes", [1, 3])
def test_curvature_is_estimated_from_a_sixteenth_of_the_rows(classes: int, most_bytes: int | None) -> None:
    """Every row stands sixteen times after itself, so that the part is the whole."""
    schema = Schema([Numeric("a", -1, 1), Category("c", ["x", "y", "z"])], target=Numeric("t", -1, 1))
    rng = np.random.default_rng(0)
    few = pd.DataFrame(
        {"a": rng.choice([-1.0, -0.5, 0.25, 1.0], 500), "c": rng.choice(["x", "y", "z"], 500), "t": rng.choice([-1, 0.5], 500)}
    )
    geometry = schema.geometry()
    kept = kept_from(few.loc[few.index.repeat(16)], schema, geometry, batch_rows=901, most_bytes=most_bytes)
    assert kept.rows_for_curvature == 500
    weights = whole_weights(geometry.n_columns, classes)
    once = kept_from(few, schema, geometry).sample()
    assert once.n_rows == 500
    np.testing.assert_array_equal(kept.curved(weights, whole), 16 * once.curved(weights, whole))


@pytest.mark.parametrize(("batch_rows", "most_bytes"), [(5, None), (1000, 0), (50_000, None), (50_000, 0)])
def test_a_large_table_is_sampled_evenly_however_it_is_cut(batch_rows: int, most_bytes: int | None) -> None:
    levels, n = 723, 13_456
    schema = Schema([Category("c", list(range(levels)))], target=Numeric("y", -1, 1))
    table = np.column_stack([np.arange(n) % levels, np.linspace(-1, 1, n)])
    kept = kept_from(table, schema, schema.geometry(), batch_rows=batch_rows, most_bytes=most_bytes)
    sample = kept.sample()
    step = next(step for step in range(2, 100) if math.isclose(sample.weight, n / len(table[::step]), rel_tol=1e-12))
    taken = table[::step]
    assert 0 < len(taken) * (levels + 1) <= max(1 << 22, 8 * (levels + 1) ** 2) < n * (levels + 1) / 2
    sums = sample.pulled(np.zeros((levels + 1, 1)), lambda z, t: t)
    places = np.bincount(taken[:, 0].astype(int), np.rint(taken[:, 1] * STEP) / STEP, minlength=levels)
    np.testing.assert_allclose(sums[1:, 0], sample.weight * places, rtol=1e-9, atol=1e-9)
    counts = sample.pulled(np.zeros((levels + 1, 1)), lambda z, t: np.ones_like(t))
    assert counts[0, 0] == pytest.approx(n)


# -- features of rows ------------------------------------------------------------------------------------------------------------


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
    np.testing.assert_array_equal(kept.pulled(weights, whole), wanted)
    np.testing.assert_array_equal(kept.sample().pulled(weights, whole), wanted)


def test_random_features_of_kept_rows_are_those_of_the_encoded_ones() -> None:
    schema, frame = schema_for("two classes"), mixed(500, "two classes")
    geometry = schema.geometry(intercept=False)
    features = FourierFeatures(geometry.n_columns, 20, 0.3, seed=5)
    design, y = by_hand(frame, schema, geometry)
    kept = kept_from(frame, schema, geometry, features=features, threads=2, batch_rows=90)
    weights = np.random.default_rng(1).normal(size=(40, 1))
    np.testing.assert_allclose(
        kept.pulled(weights, LOGISTIC.slope), dense_sums(features(design @ features.frequencies), y, weights, LOGISTIC.slope), rtol=1e-9
    )


# -- rounding ----------------------------------------------------------------------------------------------------------------------


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
    return math.sqrt(sum((Fraction(value) - sum_) ** 2 for value, sum_ in zip(found.ravel().tolist(), exact, strict=True)))


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
    off = distance(kept.pulled(weights, robust(threshold).slope), exact_sums(design, y, weights, threshold))
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
    assert abs(Fraction(float(kept.pulled(weights, loss.slope)[0, 0])) - exact) <= kept.rounding(
        weights, loss.most_slope, loss.most_curvature, loss.offset
    )


@pytest.mark.parametrize("n", [4 * USUAL_ROWS, MANY_CHUNKS * CHUNK_ROWS])
@pytest.mark.parametrize("kind", ["number", "level"])
def test_rounding_bounds_sums_whose_every_addition_is_rounded_the_same_way(kind: str, n: int) -> None:
    """Each row adds one, and a little less than half of the last place of half a usual chunk's sum: all that is lost."""
    schema = Schema([Numeric("a", -1, 1) if kind == "number" else Category("a", [0, 1, 2])])
    geometry = schema.geometry(intercept=False)
    kept = kept_from(np.ones((n, 1)), schema, geometry)
    value = 1 + 2.0**-41 - 2.0**-50
    weights = np.zeros((geometry.n_columns, 1))
    found = kept.pulled(weights, lambda z, t: np.full(len(z), value))
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
    assert found == KeptRows.most_rounding(150, geometry.l2, geometry.n_columns, length, 0.5, 0.25)
    more: list[dict[str, float]] = [
        {"rows": 151},
        {"norm": 4.0},
        {"columns": 1000},
        {"length": 199.0},
        {"most_slope": 1},
        {"most_curvature": 1},
    ]
    usual = {"rows": 150, "norm": geometry.l2, "columns": geometry.n_columns, "length": length, "most_slope": 0.5, "most_curvature": 0.25}
    for change in more:
        assert KeptRows.most_rounding(**(usual | change)) > found  # type: ignore[arg-type]


def test_features_have_the_rounding_of_their_own_norm() -> None:
    schema, frame = schema_for(), mixed(150)
    geometry = schema.geometry(intercept=False)
    features = FourierFeatures(geometry.n_columns, 10, 0.3)
    kept = kept_from(frame, schema, geometry, features=features)
    weights = whole_weights(20, 1)
    assert kept.rounding(weights, 1.0, 0.25) == KeptRows.most_rounding(150, 1.0, 20, float(np.linalg.norm(weights)), 1.0, 0.25)


def test_what_all_matrices_share_cannot_be_written_and_is_no_longer_than_a_chunk() -> None:
    layout = Layout(Schema([Category("a", list(range(90))), Category("b", list(range(90)))]).geometry())
    codes = np.zeros((300, len(layout.groups)), dtype=np.int32)
    long, short = (layout.indicators(Chunk(codes[:rows], np.empty((rows, 0)), np.zeros(rows))) for rows in (300, 200))
    assert np.shares_memory(long.data, short.data)
    for matrix in (long, short):
        with pytest.raises(ValueError, match="read-only"):
            matrix.data[0] = 2.0
    assert short.shape == (200, layout.n_codes)


def test_more_places_than_32_bits_tell_are_refused_before_a_row_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("privfit.rows.kept.MOST_PLACES", 100)
    schema = Schema([Category("a", list(range(90))), Category("b", list(range(90)))])
    with pytest.raises(DataError, match="32 bits"):
        kept_from(pd.DataFrame({"a": [0], "b": [0]}), schema, schema.geometry())
