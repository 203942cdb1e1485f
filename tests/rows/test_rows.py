"""Rows are integers within their bounds, and their sums are exact: the same bits however the table is cut,
shuffled or typed.
"""

from __future__ import annotations

import math
import warnings
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from threadpoolctl import threadpool_info, threadpool_limits

from privfit.rows import Encoder, Rows, on_progress
from privfit.rows.rows import BATCH_ROWS
from privfit.schema import Category, Geometry, Numeric, Schema
from privfit.statistics import STEP, Moments
from privfit.tables import DataError, open_table
from tests.support.chains import told_by

any_float = st.floats(allow_nan=False, allow_infinity=True)
extreme = st.sampled_from(
    [
        math.inf,
        -math.inf,
        1e308,
        -1e308,
        1.7976931348623157e308,
        5e-324,
        -5e-324,
        2.2e-308,
        -0.0,
        0.0,
        float(2**63),
        -float(2**64),
        1e16,
    ]
)
BOUNDS = [
    (-1, 1),
    (0, 1),
    (100, 101),
    (1e9, 1e9 + 1),
    (-1e308, 7e307),
    (-8e307, 8e307),
    (0, 1e-280),
    (-5.5, 1e16),
    (1, 1 + 2**-52),
]

MIXED = Schema(
    [
        Numeric("a", -2, 3),
        Numeric("b", 100, 101),
        Category("c", ["u", "v", "w"]),
        Numeric("d", 0, 9, bins=[1, 4]),
        Category("e", [False, True]),
        Numeric("f", 1e9, 1e9 + 1),
    ],
    target=Numeric("y", 0, 10),
)


def mixed_table(n: int, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "a": rng.normal(0, 2, n),
            "b": 100 + rng.random(n),
            "c": rng.choice(["u", "v", "w"], n),
            "d": rng.integers(-1, 12, n),
            "e": rng.random(n) < 0.3,
            "f": 1e9 + rng.random(n),
            "y": rng.normal(5, 3, n),
        }
    )


def encoded(
    table: Any, schema: Schema, geometry: Geometry, step: int = STEP, target_units: int = STEP
) -> list[list[int]]:
    """The encoded rows as Python integers, one list per row; fails if an entry is not whole."""
    opened = open_table(table)
    columns = schema.columns if geometry.target is not None else schema.features
    positions = (
        list(range(len(columns))) if opened.names is None else [opened.names.index(column.name) for column in columns]
    )
    rows: list[list[int]] = []
    for batch in opened.batches(columns, positions, 10**9):
        matrix = Encoder(geometry, step, target_units).encode(batch)
        assert (matrix == np.rint(matrix)).all()
        rows += [[int(entry) for entry in row] for row in matrix.T.tolist()]
    return rows


def summed_by_hand(rows: list[list[int]], *, target: bool = True) -> list[list[int]]:
    """Every product of two columns, summed in Python's unlimited integers; but for the target's square, which nobody
    may use.
    """
    width = len(rows[0])
    sums = [[sum(row[i] * row[j] for row in rows) for j in range(width)] for i in range(width)]
    if target:
        sums[-1][-1] = 0
    return sums


def summed(
    table: Any, schema: Schema = MIXED, *, intercept: bool = True, target_units: int = STEP, **options: Any
) -> np.ndarray:
    geometry = schema.geometry(intercept=intercept)
    return Rows(open_table(table), schema, geometry, **options).sum(Moments(geometry, target_units=target_units))


# -- exact -----------------------------------------------------------------------------------------


@given(st.lists(st.tuples(any_float, any_float, any_float), min_size=1, max_size=30), st.booleans(), st.integers(1, 40))
@settings(max_examples=100, deadline=None)
def test_sums_are_exact_integers(cells: list[tuple[float, ...]], intercept: bool, batch_rows: int) -> None:
    schema = Schema([Numeric("a", -1, 1), Numeric("b", 100, 101)], Numeric("y", -3, 1e6))
    table = np.array(cells)
    geometry = schema.geometry(intercept=intercept)
    sums = summed(table, schema, intercept=intercept, batch_rows=batch_rows)
    assert sums.dtype == np.int64
    assert sums.tolist() == summed_by_hand(encoded(table, schema, geometry))


@pytest.mark.parametrize("target_units", [1, 3 * STEP // 2, 8 * STEP])
@pytest.mark.parametrize("intercept", [False, True])
def test_sums_of_a_mixed_table_are_exact_for_every_weight_of_the_target(target_units: int, intercept: bool) -> None:
    table = mixed_table(200)
    geometry = MIXED.geometry(intercept=intercept)
    expected = summed_by_hand(encoded(table, MIXED, geometry, target_units=target_units))
    assert summed(table, intercept=intercept, target_units=target_units).tolist() == expected


def test_sums_stay_exact_where_a_chunk_of_the_usual_size_would_be_rounded() -> None:
    schema = Schema([Numeric("a", 0, 1), Numeric("b", 0, 1)])
    geometry = schema.geometry(intercept=False)
    table = np.random.default_rng(0).random((1000, 2))
    moments = Moments(geometry, step=2**26, target_units=2**26)
    rows = encoded(table, schema, geometry, step=2**26)
    exact = summed_by_hand(rows, target=False)
    assert Rows(open_table(table), schema, geometry).sum(moments).tolist() == exact
    matrix = np.array(rows, dtype=float).T
    assert (matrix @ matrix.T).astype(np.int64).tolist() != exact  # so the chunks were needed


def test_a_table_whose_sums_would_not_fit_64_bits_is_refused() -> None:
    schema = Schema([Numeric("a", 0, 1)])
    geometry = schema.geometry(intercept=False)
    moments = Moments(geometry, step=2**26, target_units=2**26)
    fits = Rows(open_table(np.ones((1024, 1))), schema, geometry).sum(moments)
    assert fits.tolist() == [[2**62]]
    with pytest.raises(DataError, match=r"more than 1024 rows, and 64-bit sums would overflow.*Split the table"):
        Rows(open_table(np.ones((1025, 1))), schema, geometry, batch_rows=100).sum(moments)


def test_more_rows_than_a_batch_holds_lose_nothing() -> None:
    n = BATCH_ROWS + 12_345
    rng = np.random.default_rng(1)
    table = rng.normal(0, 1, (n, 4))
    schema = Schema.box(-1, 1, 3, target=(-1, 1))
    clipped = np.rint(np.clip(table, -1, 1) * STEP).astype(np.int64)
    whole = np.column_stack([np.full(n, STEP, dtype=np.int64), clipped])
    rows = Rows(open_table(table), schema, schema.geometry())
    exact = whole.T @ whole  # integers: numpy's product of them is exact
    exact[-1, -1] = 0
    assert (rows.sum(Moments(schema.geometry())) == exact).all()
    assert rows.n_rows == n
    ends = np.full((n, 4), 1e300)
    assert summed(ends, schema).ravel().tolist() == [n * STEP**2] * 24 + [0]


# -- the same bits ---------------------------------------------------------------------------------


@pytest.mark.parametrize("batch_rows", [1, 2, 3, 64, 255, 256, 257, 10_000])
def test_no_batch_size_changes_a_bit(batch_rows: int) -> None:
    table = mixed_table(256)
    assert (summed(table, batch_rows=batch_rows) == summed(table)).all()


@given(st.permutations(list(range(40))))
@settings(max_examples=25, deadline=None)
def test_no_order_of_the_rows_changes_a_bit(order: list[int]) -> None:
    table = mixed_table(40)
    assert (summed(table.iloc[order]) == summed(table)).all()


@pytest.mark.parametrize("threads", [1, 2, 3, 16])
def test_no_number_of_threads_changes_a_bit(threads: int) -> None:
    table = mixed_table(50_000)  # several chunks
    assert (summed(table, threads=threads, batch_rows=20_000) == summed(table.iloc[::-1], threads=1)).all()


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8", ">f8", "i1", "i2", "i4", "i8", "u1", "u8", "O", "longdouble"])
def test_no_type_of_the_same_numbers_changes_a_bit(dtype: str) -> None:
    whole = np.random.default_rng(2).integers(0, 100, (300, 4))
    schema = Schema(
        [Numeric("a", -3, 80.5), Numeric("b", 10, 11), Category("c", list(range(100)))], Numeric("y", 0, 99)
    )
    assert (summed(whole.astype(dtype), schema) == summed(whole.astype(float), schema)).all()


def test_no_type_of_the_same_truth_values_changes_a_bit() -> None:
    truth = np.random.default_rng(3).random((100, 3)) < 0.5
    schema = Schema([Numeric("a", 0, 1), Category("c", [False, True])], Numeric("y", -1, 1))
    sums = [summed(truth.astype(dtype), schema).tolist() for dtype in (bool, int, float, object)]
    assert sums[1:] == sums[:1] * 3


def test_no_layout_in_memory_changes_a_bit() -> None:
    table = np.random.default_rng(4).normal(0, 1, (501, 6))
    schema = Schema.box(-1, 1, 5, target=(-1, 1))
    wide = np.zeros((1002, 12))
    wide[::2, ::2] = table
    frozen = table.copy()
    frozen.flags.writeable = False
    layouts = [np.asfortranarray(table), wide[::2, ::2], table[::-1], frozen, table.view(np.matrix), table.tolist()]
    for layout in layouts:
        assert (summed(layout, schema) == summed(table, schema)).all()


# -- within bounds ---------------------------------------------------------------------------------


@pytest.mark.parametrize("bounds", BOUNDS)
@pytest.mark.parametrize("paper", [False, True])
def test_no_value_makes_an_entry_larger_than_its_bound(bounds: tuple[float, float], paper: bool) -> None:
    low, high = bounds

    @given(
        st.lists(st.one_of(any_float, extreme, st.floats(low, high)), min_size=1, max_size=20), st.integers(1, 8 * STEP)
    )
    @settings(max_examples=60, deadline=None)
    def check(values: list[float], target_units: int) -> None:
        schema = Schema([Numeric("a", low, high)], Numeric("y", low, high))
        geometry = schema.geometry(paper=paper)
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # a warning about a value would tell of it
            rows = encoded(np.column_stack([values, values]), schema, geometry, target_units=target_units)
        for value, (constant, entry, target) in zip(values, rows, strict=True):
            assert constant == STEP
            assert (0 if paper else -STEP) <= entry <= STEP
            assert abs(target) <= target_units
            if (
                high - low > 2**-50
            ):  # between neighbouring floats there is no middle to measure from; the bound holds all the same
                assert value < high or (entry, target) == (STEP, target_units)
                assert value > low or entry == (0 if paper else -STEP)

    check()


@given(st.lists(st.integers(-(2**70), 2**70), min_size=1, max_size=10))
@example([2**63, -(2**63), 2**64, 10**300, -(10**308)])
@settings(max_examples=50, deadline=None)
def test_huge_whole_numbers_are_clipped_like_any_other(values: list[int]) -> None:
    schema = Schema([Numeric("a", -5, 10**17)])
    geometry = schema.geometry(intercept=False)
    entries = [entry for (entry,) in encoded(np.array([[value] for value in values], dtype=object), schema, geometry)]
    assert all(abs(entry) <= STEP for entry in entries)
    assert all(entry == STEP for entry, value in zip(entries, values, strict=True) if value >= 10**17)


@pytest.mark.parametrize("value", [10**400, -(10**400)])
def test_whole_numbers_beyond_every_float_are_refused(value: int) -> None:
    schema = Schema([Numeric("a", 0, 1)])
    with pytest.raises(DataError, match=r"'a' holds values that are not numbers of ordinary size.*Convert the column"):
        summed(np.array([[value]], dtype=object), schema)


@given(st.sampled_from(BOUNDS[:4]), st.lists(st.floats(0, 1), min_size=1, max_size=20))
@settings(max_examples=100, deadline=None)
def test_a_value_within_bounds_is_rounded_to_the_nearest_step(bounds: tuple[float, float], places: list[float]) -> None:
    low, high = bounds
    values = [min(max(low + (high - low) * place, low), high) for place in places]
    schema = Schema([Numeric("a", low, high)])
    middle, half = (Fraction(low) + Fraction(high)) / 2, (Fraction(high) - Fraction(low)) / 2
    rows = encoded(np.array(values)[:, None], schema, schema.geometry(intercept=False))
    for value, (entry,) in zip(values, rows, strict=True):
        assert abs(entry - (Fraction(value) - middle) / half * STEP) <= Fraction(1, 2) + Fraction(1, 10**6)


@pytest.mark.parametrize(("low", "high"), [(100, 101), (1e9, 1e9 + 1), (-1e9 - 1, -1e9), (2.0**52, 2.0**52 + 2)])
def test_bounds_far_from_zero_use_their_whole_range(low: float, high: float) -> None:
    schema = Schema([Numeric("a", low, high)])
    quarters = np.array([[low - 1], [low], [(low + high) / 2], [high], [high + 1]])
    entries = [entry for (entry,) in encoded(quarters, schema, schema.geometry(intercept=False))]
    assert entries == [-STEP, -STEP, 0, STEP, STEP]


@pytest.mark.parametrize("kind", ["levels", "bins"])
def test_levels_are_a_single_one_among_zeros_and_two_of_them_a_sign(kind: str) -> None:
    column = Category("c", [0, 1, 2]) if kind == "levels" else Numeric("c", -0.5, 2.5, bins=3)
    pair = Category("d", [0, 1]) if kind == "levels" else Numeric("d", -0.5, 1.5, bins=2)
    schema = Schema([column, pair])
    rows = encoded(np.array([[0, 1], [2, 0], [1, 1]]), schema, schema.geometry())
    assert rows == [[STEP, STEP, 0, 0, STEP], [STEP, 0, 0, STEP, -STEP], [STEP, 0, STEP, 0, STEP]]
    paper = encoded(np.array([[0, 1], [2, 0], [1, 1]]), schema, schema.geometry(intercept=False, paper=True))
    assert paper == [[STEP, 0, 0], [0, 0, STEP], [0, STEP, 0]]  # the last level is all zeros


def test_an_edge_belongs_to_the_bin_above_it_and_outside_values_to_the_outer_bins() -> None:
    schema = Schema([Numeric("a", 0, 9, bins=[1, 4])])
    values = [-math.inf, -5, 0, np.nextafter(1, 0), 1, np.nextafter(4, 0), 4, 9, 10, math.inf]
    rows = encoded(np.array(values)[:, None], schema, schema.geometry(intercept=False))
    assert [row.index(STEP) for row in rows] == [0, 0, 0, 0, 1, 1, 2, 2, 2, 2]
    assert all(sum(row) == STEP for row in rows)


# -- missing values --------------------------------------------------------------------------------


@pytest.mark.parametrize(("fill", "entry"), [(3, 0), (-1e300, -STEP), (5, STEP), (4.0, STEP // 2)])
def test_a_missing_number_becomes_the_clipped_fill(fill: float, entry: int) -> None:
    schema = Schema([Numeric("a", 1, 5, fill=fill)])
    assert encoded(np.array([[math.nan]]), schema, schema.geometry(intercept=False)) == [[entry]]


def test_missing_levels_and_bins_become_their_fill() -> None:
    schema = Schema(
        [
            Numeric("a", 0, 9, bins=[3, 6], fill=7),
            Numeric("b", 0, 9, bins=[3, 6], fill="missing"),
            Category("c", [1, 2, 3], fill=2),
            Category("d", [1, 2, 3], other=True, fill="other"),
        ]
    )
    (row,) = encoded(np.full((1, 4), math.nan), schema, schema.geometry(intercept=False))
    assert row == [*(0, 0, STEP), *(0, 0, 0, STEP), *(0, STEP, 0), *(0, 0, 0, STEP)]


@pytest.mark.parametrize("column", MIXED.columns, ids=lambda column: column.name)
@pytest.mark.parametrize("batch_rows", [1, 1000])
def test_a_missing_value_without_fill_names_its_column_and_no_cell(column: Any, batch_rows: int) -> None:
    table = mixed_table(30).astype(object)
    table.loc[:, ["a", "y"]] = 7.13579
    table.loc[29, column.name] = math.nan
    with pytest.raises(
        DataError, match=rf"Column '{column.name}' contains NaN or missing values.*fill=.*Nothing was charged"
    ) as caught:
        summed(table, batch_rows=batch_rows)
    told = told_by(caught.value)
    assert "7.13579" not in told
    assert not any(f"'{other.name}'" in told for other in MIXED.columns if other.name != column.name)


def test_a_missing_value_in_the_last_of_many_batches_is_found() -> None:
    table = np.zeros((70_000, 2))
    table[-1, 0] = math.nan
    with pytest.raises(DataError, match="'x0' contains NaN"):
        summed(table, Schema.box(-1, 1, 1, target=(-1, 1)), batch_rows=1000)


# -- small tables, unchanged tables ----------------------------------------------------------------


@pytest.mark.parametrize("table", [mixed_table(0), np.empty((0, 7)), np.empty((0, 7), dtype=object)])
def test_an_empty_table_is_refused(table: Any) -> None:
    with pytest.raises(
        DataError, match=r"no rows \(0 sample.*a minimum of 1.*Give a table with rows.*Nothing was charged"
    ):
        summed(table)


def test_one_row_is_its_own_outer_product() -> None:
    table = mixed_table(1)
    rows = encoded(table, MIXED, MIXED.geometry())
    assert len(rows) == 1
    assert summed(table).tolist() == summed_by_hand(rows)


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", ["f8", "f4", "i8", "O"])
def test_reading_changes_nothing_in_the_table(order: str, dtype: str) -> None:
    table = np.array(np.random.default_rng(5).normal(0, 50, (300, 3)), order=order).astype(dtype)  # type: ignore[call-overload]
    twin = table.copy()
    schema = Schema([Numeric("a", -1, 1, fill=0), Numeric("b", 0, 9, bins=3)], Numeric("y", -1, 1))
    first = summed(table, schema)
    assert (table == twin).all()
    assert (summed(table, schema) == first).all()


def test_a_sum_does_not_share_memory_with_the_next() -> None:
    table = mixed_table(10)
    rows = Rows(open_table(table), MIXED, MIXED.geometry())
    first = rows.sum(Moments(MIXED.geometry()))
    kept = first.copy()
    first[:] = -1
    assert (rows.sum(Moments(MIXED.geometry())) == kept).all()


def test_progress_counts_every_row_once() -> None:
    counts: list[int] = []
    with on_progress(counts.append):
        summed(mixed_table(1000), batch_rows=300)
    assert counts == [300, 600, 900, 1000]
    summed(mixed_table(1000))
    assert len(counts) == 4  # closed again


def test_blas_has_its_threads_back_after_a_sum() -> None:
    def blas() -> list[int]:
        return [library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"]

    with threadpool_limits(2, user_api="blas"):
        before = blas()
        summed(mixed_table(1000))
        assert blas() == before == [2] * len(before)
