"""Rows counted in cells: every row once, in the cell that its values name, for tables of any size."""

from __future__ import annotations

import itertools
from collections import Counter

import numpy as np
import polars as pl
import pytest

import privfit as pf
from privfit.rows import CellGrid, Rows, cell_geometry, count_cells
from privfit.tables import open_table

SCHEMA = pf.Schema(
    [pf.Numeric("x", 0, 10), pf.Category("c", ["a", "b", "other"]), pf.Numeric("z", -1, 1, bins=[0.5], fill="missing")],
    target=pf.Category("y", [0, 1]),
)


def counted(table, schema: pf.Schema, cells: int, batch_rows: int = 1 << 16) -> dict[int, int]:
    rows = Rows(open_table(table), schema, cell_geometry(schema, cells), batch_rows=batch_rows)
    return count_cells(rows)


def test_every_row_is_in_the_cell_that_its_values_name() -> None:
    rng = np.random.default_rng(0)
    n = 500
    frame = pl.DataFrame(
        {
            "x": rng.uniform(-2, 12, n),
            "c": rng.choice(["a", "b", "what", "other"], n),
            "z": np.where(rng.random(n) < 0.2, np.nan, rng.uniform(-2, 2, n)),
            "y": rng.integers(0, 2, n),
        }
    )
    wanted: Counter = Counter()
    for x, c, z, y in frame.iter_rows():
        along_x = min(max(int(x // 2.5), 0), 3)
        along_c = {"a": 0, "b": 1}.get(c, 2)
        along_z = 2 if np.isnan(z) else int(z >= 0.5)
        wanted[((along_x * 3 + along_c) * 3 + along_z) * 2 + y] += 1
    found = counted(frame, SCHEMA, 4)
    assert found == dict(wanted)
    assert list(found) == sorted(found)


def test_numbers_of_cells_and_their_centres_go_both_ways() -> None:
    grid = CellGrid(cell_geometry(SCHEMA, 4))
    assert grid.sizes == (4, 3, 3, 2)
    assert grid.n_cells == 72
    columns = grid.columns(range(72))
    assert columns["x"][::18].tolist() == [1.25, 3.75, 6.25, 8.75]
    assert columns["c"][:18:6].tolist() == ["a", "b", "other"]
    np.testing.assert_array_equal(columns["z"][:6:2], [-0.25, 0.75, np.nan])
    assert columns["y"][:2].tolist() == [0, 1]
    rows = set(
        zip(
            *(
                np.where(values != values, None, values) if values.dtype == float else values
                for values in columns.values()
            ),
            strict=True,
        )
    )
    assert len(rows) == 72


def test_centres_are_counted_in_their_own_cells() -> None:
    schema = pf.Schema([pf.Numeric("x", -3, 7), pf.Category("c", ["a", "b"]), pf.Numeric("w", 0, 1e6, bins="auto")])
    grid = CellGrid(cell_geometry(schema, 7))
    frame = pl.DataFrame({name: values.tolist() for name, values in grid.columns(range(grid.n_cells)).items()})
    assert counted(frame, schema, 7) == dict.fromkeys(range(grid.n_cells), 1)


@pytest.mark.parametrize(("columns", "cells"), [(3, 4), (9, 100), (12, 10), (20, 1000), (40, 7)])
def test_cells_of_any_number(columns, cells) -> None:
    """Up to 10^60 cells: numbered by exact integers, and found again."""
    rng = np.random.default_rng(columns)
    places = rng.integers(0, cells, (50, columns))
    places[:10] = places[0]
    table = (places + 0.5) / cells
    schema = pf.Schema.box(0, 1, columns)
    found = counted(table, schema, cells)
    wanted: Counter = Counter()
    for row in places.tolist():
        number = 0
        for place in row:
            number = number * cells + place
        wanted[number] += 1
    assert found == dict(wanted)
    grid = CellGrid(cell_geometry(schema, cells))
    assert grid.n_cells == cells**columns
    back = np.column_stack(grid.places(list(found)))
    assert sorted(map(tuple, back.tolist())) == sorted(set(map(tuple, places.tolist())))


@pytest.mark.parametrize("columns", [2, 30])
def test_batches_and_order_do_not_matter(columns) -> None:
    rng = np.random.default_rng(1)
    table = rng.uniform(0, 1, (300, columns)).round(1)
    schema = pf.Schema.box(0, 1, columns)
    whole = counted(table, schema, 9)
    assert counted(table, schema, 9, batch_rows=7) == whole
    assert counted(table[::-1], schema, 9) == whole


def test_the_target_alone() -> None:
    from privfit.mechanisms.histograms.class_counts import ClassCounts

    rows = Rows(
        open_table(np.array([[0.0, 1.0], [np.nan, 0.0], [0.5, 1.0]])),
        pf.Schema.box(0, 1, 1, target=[0, 1]),
        ClassCounts().geometry(pf.Schema.box(0, 1, 1, target=[0, 1])),
    )
    assert count_cells(rows) == {0: 1, 1: 2}
    assert rows.n_rows == 3


def test_what_a_row_can_move() -> None:
    """Brute force over all tables of up to two rows at corners: counts of neighbours are 1 apart, or 2 where a row is
    replaced, and sometimes as much.
    """
    schema = pf.Schema([pf.Numeric("x", 0, 1), pf.Category("c", [0, 1, 2])])
    corners = list(itertools.product((0.0, 0.3, 1.0, 5.0), (0, 1, 2)))
    one = {row: Counter(counted(np.array([row]), schema, 2)) for row in corners}
    assert all(sum(counts.values()) == 1 for counts in one.values())
    apart = [sum(((one[a] - one[b]) + (one[b] - one[a])).values()) for a, b in itertools.product(corners, repeat=2)]
    assert max(apart) == 2


@pytest.mark.parametrize("table", [np.empty((0, 2)), np.array([[np.nan, 0.0]]), np.array([[0.0, 7.0]])])
def test_bad_rows_are_told_before_anything_is_charged(table) -> None:
    schema = pf.Schema([pf.Numeric("x", 0, 1), pf.Category("c", [0, 1, 2])])
    with pytest.raises(pf.DataError, match="Nothing was charged"):
        counted(table, schema, 2)
