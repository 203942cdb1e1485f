"""Points: integer sums that are exact, the same in any order and any batches, and made of what each row adds
alone.
"""

from __future__ import annotations

import itertools

import numpy as np
import polars as pl
import pytest

import privfit as pf
from privfit.rows import Points, Rows, on_lattice, point_geometry, scaled_points
from privfit.rows.layout import STEP
from privfit.tables import open_table

SCHEMA = pf.Schema([pf.Numeric("a", 0, 10), pf.Numeric("b", 100, 101), pf.Numeric("c", -3, 5)])
UNIT = 1 << 20
RNG = np.random.default_rng(5)
TABLE = np.column_stack([RNG.uniform(-1, 11, 311), RNG.uniform(99.9, 101.1, 311), RNG.normal(1, 2, 311)])
CENTRES = on_lattice(RNG.uniform(-1, 1, (4, 3)))
WIDTHS = RNG.uniform(0.02, 1, (4, 3))
CANDIDATES = np.stack([on_lattice(RNG.uniform(-1, 1, (4, 3))) for _ in range(5)])
CHANGES = np.array([0, 3, 1, 1, 2]), np.array([0, 2, 1, 1, 0]), np.array([-STEP, STEP, 17, -4000, 0])


def points(table, schema: pf.Schema = SCHEMA, batch_rows: int = 1 << 16, most_bytes: int | None = None) -> Points:
    found = Points(Rows(open_table(table), schema, point_geometry(schema), batch_rows=batch_rows), most_bytes)
    found.read()
    return found


SUMS = {
    "counts": lambda p: p.counts(4),
    "moments": lambda p: p.moments(pooled=False),
    "pooled moments": lambda p: p.moments(pooled=True),
    "blocks": lambda p: p.blocks(CENTRES, WIDTHS, UNIT),
    "sums": lambda p: p.sums(CENTRES, UNIT),
    "scores": lambda p: np.array(p.scores(CANDIDATES)),
    "changed scores": lambda p: np.array(p.changed_scores(CENTRES, *CHANGES)),
}
each_sum = pytest.mark.parametrize("total", SUMS.values(), ids=SUMS.keys())


@each_sum
def test_order_batches_and_memory_change_no_bit(total, monkeypatch) -> None:
    wanted = total(points(TABLE))
    shuffled = np.random.default_rng(1).permutation(TABLE)
    np.testing.assert_array_equal(total(points(shuffled)), wanted)
    np.testing.assert_array_equal(total(points(TABLE, batch_rows=7)), wanted)
    np.testing.assert_array_equal(total(points(TABLE, most_bytes=0)), wanted)
    np.testing.assert_array_equal(total(points(pl.DataFrame(TABLE, schema=["a", "b", "c"]))), wanted)
    monkeypatch.setattr("privfit.rows.points.POINT_VALUES", 50)
    np.testing.assert_array_equal(total(points(TABLE)), wanted)


@each_sum
def test_a_sum_is_the_sum_of_what_each_row_adds_alone(total) -> None:
    few = TABLE[:40]
    np.testing.assert_array_equal(sum(total(points(row[None])) for row in few), total(points(few)))


def lattice(table: np.ndarray) -> list[list[int]]:
    """The definition, in Python's integers."""
    found = []
    for row in table.tolist():
        scaled = [
            (value - (c.high + c.low) / 2) / ((c.high - c.low) / 2)
            for value, c in zip(row, SCHEMA.features, strict=True)
        ]
        found.append([round(min(max(value * STEP, -STEP), STEP)) for value in scaled])
    return found


def squared(x, c) -> int:
    return sum((int(a) - int(b)) ** 2 for a, b in zip(x, c, strict=True))


def test_scores_are_those_of_whole_numbers() -> None:
    rows = lattice(TABLE)
    wanted = [-sum(min(squared(x, c) for c in candidate) for x in rows) for candidate in CANDIDATES]
    assert points(TABLE).scores(CANDIDATES) == wanted


def test_blocks_are_those_of_whole_numbers() -> None:
    wanted = np.zeros((4, 4), dtype=np.int64)
    for x in lattice(TABLE):
        j = min(range(4), key=lambda j: squared(x, CENTRES[j]))
        wanted[j, 0] += UNIT
        for column in range(3):
            moved = (x[column] - int(CENTRES[j, column])) * (UNIT / (WIDTHS[j, column] * STEP))
            wanted[j, column + 1] += round(min(max(moved, -UNIT), UNIT))
    np.testing.assert_array_equal(points(TABLE).blocks(CENTRES, WIDTHS, UNIT), wanted)
    assert (np.abs(wanted[:, 1:]) <= wanted[:, :1]).all()


def test_sums_and_moments_are_those_of_whole_numbers() -> None:
    rows = np.array(lattice(TABLE), dtype=np.int64)
    found = points(TABLE)
    np.testing.assert_array_equal(found.sums(CENTRES, UNIT)[:, 1:].sum(axis=0), UNIT // STEP * rows.sum(axis=0))
    bent = np.rint(rows**2 * 2 / STEP).astype(np.int64) - STEP
    np.testing.assert_array_equal(found.moments(pooled=False), [*rows.sum(axis=0), *bent.sum(axis=0), STEP * len(rows)])
    mean = np.rint((rows**2).sum(axis=1) / 3 * 2 / STEP).astype(np.int64) - STEP
    np.testing.assert_array_equal(found.moments(pooled=True), [*rows.sum(axis=0), mean.sum(), STEP * len(rows)])


@pytest.mark.parametrize("k", [1, 2, 6])
def test_changed_scores_are_scores(k: int) -> None:
    rng = np.random.default_rng(k)
    parent = on_lattice(rng.uniform(-1, 1, (k, 3)))
    parent[-1] = parent[0]  # a tie
    centre, column = rng.integers(k, size=30), rng.integers(3, size=30)
    value = rng.integers(-STEP, STEP + 1, 30)
    value[0] = parent[centre[0], column[0]]  # no change at all
    candidates = np.repeat(parent[None], 30, axis=0)
    candidates[np.arange(30), centre, column] = value
    found = points(TABLE)
    assert found.changed_scores(parent, centre, column, value) == found.scores(candidates)


def test_cells_are_equal_and_hold_the_bounds() -> None:
    box = pf.Schema.box(0, 8, 1)
    assert points(np.array([[0.0], [1.99], [2.01], [7.9], [8.0], [99.0], [-np.inf]]), box).counts(4).tolist() == [
        3,
        1,
        0,
        3,
    ]
    corners = np.array(list(itertools.product([0.0, 8.0], repeat=2)))
    assert points(corners, pf.Schema.box(0, 8, 2)).counts(3).reshape(3, 3).tolist() == [[1, 0, 1], [0, 0, 0], [1, 0, 1]]


def test_the_first_of_two_nearest_centres_counts() -> None:
    centres = on_lattice(np.array([[0.5], [-0.5], [0.5]]))
    found = points(np.array([[0.0], [0.5]]), pf.Schema.box(-1, 1, 1)).sums(centres, UNIT)
    assert found[:, 0].tolist() == [2 * UNIT, 0, 0]


def test_extremes_stay_exact() -> None:
    """The largest distances there are, in many columns."""
    wide = pf.Schema.box(-1, 1, 1000)
    candidates = np.full((1, 1, 1000), -STEP, dtype=np.int64)
    assert points(np.ones((300, 1000)), wide).scores(candidates) == [-300 * 1000 * 4 * STEP**2]
    assert points(np.ones((3, 1000)), wide).moments(pooled=True)[-2] == 3 * STEP


def test_what_cannot_be_a_point_is_refused() -> None:
    with pytest.raises(pf.SchemaError, match=r"categories \['sex'\].*Leave them out"):
        point_geometry(pf.Schema([pf.Numeric("a", 0, 1), pf.Category("sex", ["f", "m"])]))
    with pytest.raises(pf.DataError, match="no rows"):
        points(np.empty((0, 3)))
    bad = TABLE.copy()
    bad[300, 1] = np.nan
    with pytest.raises(pf.DataError, match=r"'b' contains NaN.*Nothing was charged"):
        points(bad)
    filled = pf.Schema([pf.Numeric("a", 0, 10), pf.Numeric("b", 100, 101, fill=100.5), pf.Numeric("c", -3, 5)])
    assert points(bad, filled).n_rows == len(bad)


def test_too_many_rows_for_64_bits_are_refused() -> None:
    found = points(TABLE)
    found.check_sums(1 << 50)
    with pytest.raises(pf.DataError, match="overflow"):
        found.check_sums(1 << 55)


def test_a_large_stream_goes_to_a_file_and_gives_the_same_sums() -> None:
    frame = pl.DataFrame(TABLE, schema=["a", "b", "c"])
    kept = points(frame.to_arrow().to_reader(), most_bytes=0)
    for _ in range(2):
        np.testing.assert_array_equal(kept.counts(4), points(TABLE).counts(4))


def test_predicting_scales_and_does_not_clip() -> None:
    found = scaled_points(open_table(np.array([[20.0, 100.5, 1.0]])), SCHEMA, point_geometry(SCHEMA))
    np.testing.assert_allclose(found, [[3.0, 0.0, 0.0]])
