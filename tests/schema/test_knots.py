"""Knots of a number: evenly spaced on its own scale, from the bounds alone, with lines between them that share every
row.
"""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from privfit.rows.encoding import on_knots
from privfit.rows.layout import linear_splines
from privfit.schema import Category, Numeric, Schema
from privfit.tables import DataError

narrow = st.tuples(st.floats(-1e4, 1e4), st.floats(1e-3, 999)).map(
    lambda pair: Numeric("x", pair[0], pair[0] + pair[1])
)
one_sided = st.tuples(st.floats(0, 1e6), st.floats(1001, 1e9), st.booleans()).map(
    lambda given_: (
        Numeric("x", -given_[0] - given_[1], -given_[0])
        if given_[2]
        else Numeric("x", given_[0], given_[0] + given_[1])
    )
)
across = st.tuples(st.floats(0.5, 1e9), st.floats(1001, 1e9)).map(lambda pair: Numeric("x", -pair[0], pair[1]))
columns = st.one_of(narrow, one_sided, across)
counts = st.integers(2, 20)


def block_of(column: Numeric, knots: int = 8):
    return Schema([column]).geometry(numeric="splines", intercept=False, knots=knots).blocks[0]


# -- where knots are -------------------------------------------------------------------------------


@given(columns, counts)
def test_knots_rise_from_one_bound_to_the_other(column: Numeric, count: int) -> None:
    knots = column.knots(count)
    assert len(knots) == count
    assert (knots[0], knots[-1]) == (column.low, column.high)
    assert all(a < b for a, b in pairwise(knots))


@given(columns, counts)
def test_knots_are_evenly_spaced_on_their_scale(column: Numeric, count: int) -> None:
    places = column.on_scale(np.array(column.knots(count)))
    assert np.allclose(places, np.linspace(0, 1, count), atol=1e-6)


@given(narrow, counts)
def test_a_narrow_range_has_equal_steps(column: Numeric, count: int) -> None:
    assert np.allclose(np.diff(column.knots(count)), (column.high - column.low) / (count - 1), rtol=1e-6)


@given(one_sided, counts)
def test_a_wide_range_on_one_side_of_zero_has_steps_of_a_logarithm_from_low(column: Numeric, count: int) -> None:
    assume(column.high - column.low > 1e-3 * max(abs(column.low), abs(column.high)))
    places = [math.log1p(knot - column.low) for knot in column.knots(count)]
    assert np.allclose(np.diff(places), math.log1p(column.high - column.low) / (count - 1), rtol=1e-3)


@given(across, counts)
def test_a_wide_range_across_zero_has_steps_of_a_signed_logarithm(column: Numeric, count: int) -> None:
    places = [math.copysign(math.log1p(abs(knot)), knot) for knot in column.knots(count)]
    assert np.allclose(np.diff(places), (places[-1] - places[0]) / (count - 1), rtol=1e-6)


def test_a_symmetric_wide_range_has_symmetric_knots_and_one_at_zero() -> None:
    knots = np.array(Numeric("balance", -1e5, 1e5).knots(9))
    assert np.allclose(knots, -knots[::-1])
    assert knots[4] == 0
    assert np.diff(knots).min() == pytest.approx(np.diff(knots)[3])  # finest at zero


@given(columns, counts, st.lists(st.floats(0, 1), min_size=1, max_size=9))
def test_a_scale_and_its_inverse_undo_each_other(column: Numeric, count: int, shares: list[float]) -> None:
    values = np.unique(np.clip(column.low + np.array(shares) * (column.high - column.low), column.low, column.high))
    start, stop = column._on_scale(column.low), column._on_scale(column.high)
    places = column.on_scale(values)
    assert ((places >= -1e-12) & (places <= 1 + 1e-12)).all()
    assert (np.diff(places) >= 0).all()
    back = np.array([column._off_scale(start + float(place) * (stop - start)) for place in places])
    assert np.allclose(back, values, rtol=1e-6, atol=1e-6 * (column.high - column.low))


@given(columns)
def test_the_bounds_are_the_ends_of_the_scale(column: Numeric) -> None:
    assert column.on_scale(np.array([column.low, column.high])) == pytest.approx([0, 1], abs=1e-12)


# -- labels ----------------------------------------------------------------------------------------


@given(columns, counts)
def test_every_knot_has_a_label_of_its_own_that_names_it(column: Numeric, count: int) -> None:
    block = block_of(column, count)
    assert block.kind == "spline"
    assert block.width == len(block.labels) == len(set(block.labels)) == count
    assert block.edges == column.knots(count)
    told = [float(label.removeprefix("x_at_")) for label in block.labels]
    assert np.allclose(told, block.edges, rtol=1e-5, atol=1e-5 * (column.high - column.low))


def test_knots_are_kept_apart_where_floats_are_coarse() -> None:
    block = block_of(Numeric("x", 1e16, 1e16 + 8))
    assert len(set(block.labels)) == block.width


def test_a_column_with_bins_of_its_own_keeps_them_and_categories_are_left_alone() -> None:
    schema = Schema([Numeric("a", 0, 9, bins=3), Numeric("b", 0, 9), Category("c", ["p", "q", "r"])])
    assert [block.kind for block in schema.geometry(numeric="splines").blocks] == ["levels", "spline", "levels"]
    assert schema.geometry(numeric="splines").n_columns == 1 + 3 + 8 + 3


# -- splines ---------------------------------------------------------------------------------------


@given(columns, counts, st.lists(st.floats(-0.5, 1.5), min_size=1, max_size=9))
def test_shares_are_not_negative_and_add_up_to_one_over_two_neighbours(
    column: Numeric, count: int, shares: list[float]
) -> None:
    values = column.low + np.array(shares) * (column.high - column.low)
    rows = linear_splines(on_knots(block_of(column, count), values), count)
    assert rows.shape == (len(values), count)
    assert (rows >= 0).all()
    assert np.allclose(rows.sum(axis=1), 1, atol=1e-12)
    for row in rows:
        held = np.flatnonzero(row)
        assert len(held) <= 2
        assert held[-1] - held[0] <= 1


@given(columns, counts)
def test_a_knot_is_its_own_share(column: Numeric, count: int) -> None:
    rows = linear_splines(on_knots(block_of(column, count), np.array(column.knots(count))), count)
    assert np.allclose(rows, np.eye(count), atol=1e-4)


@given(columns, st.floats(1e-3, 1e3))
@example(Numeric("x", -1.0, 838523965.7703724), 1.0)  # two functions for one logarithm differed in the last place
@example(Numeric("x", -838523965.7703724, 1001.0), 1.0)
def test_values_beyond_the_bounds_are_at_the_bounds(column: Numeric, further: float) -> None:
    block = block_of(column)
    assert on_knots(block, np.array([column.low - further, -np.inf])).tolist() == [0.0, 0.0]
    assert on_knots(block, np.array([column.high + further, np.inf])).tolist() == [7.0, 7.0]


def test_a_missing_value_is_at_the_fill_and_without_one_refused() -> None:
    filled = on_knots(block_of(Numeric("x", 0, 7, fill=3.0)), np.array([np.nan, 3.0, 1.0]))
    assert filled.tolist() == [3.0, 3.0, 1.0]
    with pytest.raises(DataError, match="'x' contains NaN"):
        on_knots(block_of(Numeric("x", 0, 7)), np.array([np.nan]))


def test_weights_at_knots_are_joined_by_lines() -> None:
    column, weights = Numeric("x", 0, 10), np.array([0.0, 5.0, -1.0])
    values = np.array([0, 2.5, 5, 7.5, 10])
    assert (linear_splines(on_knots(block_of(column, 3), values), 3) @ weights).tolist() == [0, 2.5, 5, 2, -1]
