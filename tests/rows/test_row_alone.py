"""Which step between knots a row is on depends on that row alone: by comparing, where the scale is a logarithm."""

from __future__ import annotations

import numpy as np
import pytest

from privfit.rows import Encoder
from privfit.rows.layout import STEPS_PER_KNOT, Layout
from privfit.schema import Numeric, Schema
from privfit.tables import DataError

WIDE = [Numeric("x", 0, 5_000), Numeric("x", -8_000, 100_000), Numeric("x", 1e6, 1e9)]


def codes(column: Numeric, values: np.ndarray) -> np.ndarray:
    (group,) = Layout(Schema([column]).geometry(numeric="splines", intercept=False)).groups
    return group[0].codes(values)


@pytest.mark.parametrize("column", WIDE, ids=str)
def test_steps_of_a_logarithm_are_found_by_comparing(column: Numeric) -> None:
    values = np.random.default_rng(0).uniform(column.low - 10, column.high + 10, 4001)
    found = codes(column, values)
    alone = [int(codes(column, values[i : i + 1])[0]) for i in range(0, 4001, 13)]
    assert found[::13].tolist() == alone
    exact = np.clip(column.on_scale(np.clip(values, column.low, column.high)), 0, 1) * 7 * STEPS_PER_KNOT
    assert np.abs(found - exact).max() <= 0.5 + 1e-9
    assert set(np.diff(codes(column, np.array(column.knots(8)))).tolist()) == {STEPS_PER_KNOT}


@pytest.mark.parametrize("column", WIDE, ids=str)
def test_no_logarithm_of_a_value_is_taken(monkeypatch, column: Numeric) -> None:
    def forbidden(values):
        raise AssertionError("a value's code may not rest on the last place of a logarithm")

    values = np.linspace(column.low, column.high, 50)
    wanted = codes(column, values)
    monkeypatch.setattr("privfit.schema.columns.np.log1p", forbidden)
    np.testing.assert_array_equal(codes(column, values), wanted)


def test_sums_of_whole_numbers_refuse_splines() -> None:
    """Their sensitivities know nothing of such blocks."""
    geometry = Schema([Numeric("x", 0, 1)]).geometry(numeric="splines")
    with pytest.raises(TypeError, match="for gradients"):
        Encoder(geometry, 1 << 16, 1).encode([np.zeros(3)])


def test_numbers_of_one_array_get_the_codes_that_each_column_gets_alone() -> None:
    """Ten columns of one array are encoded together, a few rows at a time; two arrays of five are not."""
    bounds = [(-1.0, 1.0), (0.0, 3.0), (-7.5, 0.1), (10.0, 99.0), (0.0, 1e-3)] * 2
    layout = Layout(
        Schema([Numeric(f"x{i}", *pair) for i, pair in enumerate(bounds)]).geometry(numeric="splines", intercept=False)
    )
    generator = np.random.default_rng(1)
    rows = np.column_stack([generator.uniform(low - 0.2, high + 0.2, 20_000) for low, high in bounds])
    rows[:4, :5] = [[-np.inf] * 5, [np.inf] * 5, [1e308] * 5, [low for low, _ in bounds[:5]]]
    fine = [np.empty((length, 10), dtype=np.uint16) for length in (len(rows), len(rows), 1)]
    together, _ = layout.chunk(list(rows.T), fine[0])
    apart, _ = layout.chunk([*np.ascontiguousarray(rows[:, :5]).T, *np.ascontiguousarray(rows[:, 5:]).T], fine[1])
    assert np.array_equal(together, apart)
    assert np.array_equal(fine[0], fine[1])
    alone, _ = layout.chunk(list(rows[11_111:11_112].T), fine[2])
    assert np.array_equal(together[11_111:11_112], alone)
    assert np.array_equal(fine[0][11_111:11_112], fine[2])
    assert np.array_equal(
        fine[0].T, [member.fine_cells(own) for member, own in zip(layout.members, rows.T, strict=True)]
    )
    assert (fine[0].min(), fine[0].max()) == (0, 499)
    rows[17, 3] = np.nan
    with pytest.raises(DataError, match="'x3'"):
        layout.chunk(list(rows.T))
