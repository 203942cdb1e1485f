"""Products of columns with levels looked up: the integers of one product of matrices, whatever the columns are."""

from __future__ import annotations

import pickle
from functools import reduce

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privfit.rows import Encoder, Rows
from privfit.rows.kernels import Kernel, kernel_sum
from privfit.rows.product_sums import ProductSum, _looked_up
from privfit.rows.rows import EXACT_INT
from privfit.rows.workers import added
from privfit.schema import Category, Column, Geometry, Numeric, Schema
from privfit.statistics import Moments
from privfit.tables import ABSENT, UNKNOWN, Batch, DataError, open_table

COLUMNS: dict[str, Column] = {
    "number": Numeric("number", -2, 3),
    "filled": Numeric("filled", 100, 101, fill=100.5),
    "missing": Numeric("missing", 0, 1, fill="missing"),
    "bins": Numeric("bins", 0, 9, bins=[1, 4], fill="missing"),
    "two bins": Numeric("two bins", 0, 9, bins=[3]),
    "two": Category("two", ["no", "yes"]),
    "many": Category("many", ["a", "b", "c"], other=True, fill="b"),
    "truth": Category("truth", [False, True]),
}
TARGETS: dict[str, Column | None] = {
    "number": Numeric("y", -1, 4),
    "class": Category("y", ["n", "y"]),
    "classes": Category("y", ["u", "v", "w"]),
    "none": None,
}


def batch_of(columns: list[Column], rows: int, seed: int) -> Batch:
    """Values out of bounds, absent and unknown ones among them where the column allows it."""
    rng = np.random.default_rng(seed)
    batch: Batch = []
    for column in columns:
        if isinstance(column, Numeric):
            values = rng.uniform(column.low - 1, column.high + 1, rows)
            batch.append(np.where(rng.random(rows) < 0.2, np.nan, values) if column.fill is not None else values)
        else:
            codes = rng.integers(0, len(column.levels) - column.other, rows).astype(np.int32)
            codes[rng.random(rows) < 0.1] = ABSENT if column.fill is not None else 0
            codes[rng.random(rows) < 0.1] = UNKNOWN if column.other else 0
            batch.append(codes)
    return batch


def split(geometry: Geometry, moments: Moments, most_cells: int) -> ProductSum:
    encoder = Encoder(geometry, moments.step, moments.target_units)
    return ProductSum(encoder, moments, _looked_up(encoder.blocks, most_cells), 1 << 30)


@given(
    names=st.lists(st.sampled_from(list(COLUMNS)), min_size=1, unique=True),
    target=st.sampled_from(list(TARGETS)),
    intercept=st.booleans(),
    paper=st.booleans(),
    most_cells=st.sampled_from([1, 2, 6, 24, 1000]),
    square=st.booleans(),
    rows=st.integers(0, 60),
)
@settings(max_examples=150, deadline=None)
def test_the_sums_are_those_of_one_product_of_matrices(
    names: list[str], target: str, intercept: bool, paper: bool, most_cells: int, square: bool, rows: int
) -> None:
    if paper:
        names = [name for name in names if name not in ("missing", "bins")] or ["number"]
    schema = Schema([COLUMNS[name] for name in names], TARGETS[target])
    geometry = schema.geometry(intercept=intercept, paper=paper, several=True, gaps="slope")
    moments = Moments(geometry, 1000, square_units=77 if square else 0)
    task = pickle.loads(pickle.dumps(split(geometry, moments, most_cells)))
    pieces = [(0, batch_of(schema.columns, rows, 1)), (rows, batch_of(schema.columns, 7, 2))]
    found = task.assembled(reduce(added, map(task, pieces)))
    dense = [kernel_sum(moments, task.encoder.encode(piece), 0)[0] for _, piece in pieces]
    assert found.dtype == np.int64
    assert np.array_equal(found, sum(dense))


def test_it_is_taken_where_it_is_faster_and_refuses_what_the_encoder_refuses() -> None:
    levels = [Category(f"c{i}", list("abcdefgh")) for i in range(3)]
    wide, narrow = Schema([*levels, COLUMNS["number"]], TARGETS["number"]), Schema([COLUMNS["two"], COLUMNS["number"]])

    def made(schema: Schema, kernel: type[Kernel] = Moments) -> ProductSum | None:
        geometry = schema.geometry()
        return ProductSum.of(Encoder(geometry, 1 << 16, 1 << 16), kernel(geometry), 1 << 14, EXACT_INT)

    assert made(narrow) is None
    task = made(wide)
    assert task is not None
    assert task.cells == 8**3
    batch = batch_of(wide.columns, 50, 3)
    batch[1][7] = UNKNOWN
    with pytest.raises(DataError, match="'c1' contains a level that its schema does not list"):
        task((0, batch))
    with pytest.raises(DataError, match="rows"):
        ProductSum(task.encoder, task.kernel, task.looked_up, 40)((0, batch_of(wide.columns, 50, 3)))


def test_rows_of_a_table_are_summed_so(monkeypatch: pytest.MonkeyPatch) -> None:
    schema = Schema([Category(f"c{i}", list("abcdefgh")) for i in range(4)], TARGETS["number"])
    rng = np.random.default_rng(5)
    table = {f"c{i}": rng.choice(list("abcdefgh"), 40_000) for i in range(4)} | {"y": rng.uniform(-2, 5, 40_000)}
    rows = Rows(open_table(pl.DataFrame(table)), schema, schema.geometry())
    found = rows.sum(Moments(rows.geometry, 123, square_units=45))
    monkeypatch.setattr(ProductSum, "of", lambda *given: None)
    assert np.array_equal(found, rows.sum(Moments(rows.geometry, 123, square_units=45)))
