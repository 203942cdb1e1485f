"""Plain rows: what a user's function sees is bounded and the same whatever holds the table, kept or read again."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from privfit.rows import PlainRows, Rows, on_progress, plain
from privfit.schema import Category, Numeric, Schema
from privfit.tables import DataError, WithTarget, open_table

SCHEMA = Schema(
    [
        Numeric("age", 0, 100, fill=40),
        Category("city", ["a", "b", "c"], other=True, fill="b"),
        Category("member", ["no", "yes"]),
    ],
    target=Numeric("income", -5, 5),
)
GEOMETRY = SCHEMA.geometry(numeric="slope", intercept=False, several=True)
FRAME = pd.DataFrame(
    {
        "income": [0.5, -7.0, 99.0, 1.25, 5.0],
        "member": ["no", "yes", "yes", "no", "no"],
        "city": ["c", "a", None, "elsewhere", "b"],
        "age": [20.5, -3.0, 1e9, np.nan, 100.0],
    }
)
OTHER_PLACE = float(
    SCHEMA.features[1].levels.index(next(level for level in SCHEMA.features[1].levels if level not in ("a", "b", "c")))
)
WANTED = np.array(
    [
        [20.5, 2.0, 0.0, 0.5],
        [0.0, 0.0, 1.0, -5.0],
        [100.0, 1.0, 1.0, 5.0],
        [40.0, OTHER_PLACE, 0.0, 1.25],
        [100.0, 1.0, 0.0, 5.0],
    ]
)


def rows_of(table, **options) -> Rows:
    return Rows(open_table(table), SCHEMA, GEOMETRY, **options)


def read(table, most_bytes: int | None = None, **options) -> PlainRows:
    rows = PlainRows(rows_of(table, **options), most_bytes)
    rows.read()
    return rows


def stream(frame: pd.DataFrame = FRAME) -> pa.RecordBatchReader:
    return pa.Table.from_pandas(frame, preserve_index=False).to_reader(max_chunksize=2)


def parquet(tmp_path, frame: pd.DataFrame = FRAME):
    path = tmp_path / "rows.parquet"
    pl.from_pandas(frame).write_parquet(path)
    return path


def everything(rows: PlainRows) -> np.ndarray:
    return rows.every_row(lambda seen: seen)


HOLDERS = {
    "pandas": lambda tmp_path: FRAME,
    "polars": lambda tmp_path: pl.from_pandas(FRAME),
    "arrow": lambda tmp_path: pa.Table.from_pandas(FRAME, preserve_index=False),
    "stream": lambda tmp_path: stream(),
    "parquet": parquet,
}


@pytest.mark.parametrize("holder", HOLDERS)
def test_numbers_are_clipped_categories_are_places_and_the_target_is_last(holder, tmp_path) -> None:
    rows = read(HOLDERS[holder](tmp_path))
    np.testing.assert_array_equal(everything(rows), WANTED)
    assert rows.n_rows == 5


@pytest.mark.parametrize(
    "most_bytes", [None, 0, 40], ids=["in memory", "in a file", "in part in memory, then in a file"]
)
@pytest.mark.parametrize("batch_rows", [1, 2, 100])
def test_sums_are_the_same_from_memory_and_from_a_file(most_bytes, batch_rows, tmp_path) -> None:
    rows = read(parquet(tmp_path), most_bytes, batch_rows=batch_rows)
    for _ in range(2):
        total = rows.sum(lambda seen: np.rint(seen * 8).astype(np.int64))
        np.testing.assert_array_equal(total, (WANTED * 8).sum(axis=0))
        assert total.dtype == np.int64
    np.testing.assert_array_equal(everything(rows), WANTED)


@pytest.mark.parametrize("most_bytes", [None, 0])
def test_a_table_is_read_once(monkeypatch, most_bytes) -> None:
    opened = []
    batches = Rows.batches
    monkeypatch.setattr(Rows, "batches", lambda self: opened.append(1) or batches(self))
    rows = read(FRAME, most_bytes)
    for _ in range(2):
        rows.sum(lambda seen: seen.astype(np.int64))
    assert len(opened) == 1


def test_long_batches_are_cut_into_chunks(monkeypatch) -> None:
    monkeypatch.setattr(plain, "PLAIN_VALUES", 8)
    sizes = []
    read(FRAME).sum(lambda seen: sizes.append(len(seen)) or seen.astype(np.int64))
    assert sizes == [2, 2, 1]


@pytest.mark.parametrize("most_bytes", [None, 10])
def test_a_stream_is_kept_in_memory_or_in_a_file(most_bytes) -> None:
    rows = read(stream(), most_bytes)
    assert rows.sum(lambda seen: np.ones((len(seen), 1), dtype=np.int64)).tolist() == [5]


def test_the_table_then_knows_its_number_of_rows(tmp_path) -> None:
    rows = rows_of(stream())
    assert rows.known_rows is None
    PlainRows(rows).read()
    assert rows.n_rows == 5


def test_an_empty_table_is_refused() -> None:
    with pytest.raises(DataError, match=r"no rows.*Nothing was charged"):
        read(FRAME[:0])


@pytest.mark.parametrize(
    ("column", "value", "words"),
    [("income", np.nan, "'income' contains NaN or missing"), ("member", "maybe", "'member' contains a level")],
)
def test_what_the_schema_has_no_place_for_is_refused_when_read(column, value, words) -> None:
    with pytest.raises(DataError, match=f"{words}.*Nothing was charged") as caught:
        read(FRAME.assign(**{column: [*FRAME[column][:-1], value]}))
    assert "maybe" not in str(caught.value)


def test_a_table_that_changes_later_is_not_looked_at(tmp_path) -> None:
    path = tmp_path / "rows.csv"
    FRAME.to_csv(path, index=False)
    rows, asked = read(path, most_bytes=0), read(pl.scan_csv(path), most_bytes=0)
    FRAME[:4].to_csv(path, index=False)
    np.testing.assert_array_equal(everything(rows), WANTED)
    np.testing.assert_array_equal(everything(asked), WANTED)


def test_a_target_given_apart_comes_last_too() -> None:
    table = WithTarget(open_table(FRAME.drop(columns="income")), FRAME["income"].to_numpy())
    rows = PlainRows(Rows(table, SCHEMA, GEOMETRY))
    rows.read()
    np.testing.assert_array_equal(everything(rows), WANTED)


def test_without_a_target_rows_are_their_features_and_bins_are_places() -> None:
    schema = Schema([Numeric("age", 0, 100, bins=4, fill="missing"), Numeric("weight", 0, 10)])
    table = pd.DataFrame({"age": [10.0, 99.0, np.nan], "weight": [1.0, 20.0, 3.0]})
    rows = PlainRows(Rows(open_table(table), schema, schema.geometry(numeric="slope", intercept=False, several=True)))
    rows.read()
    np.testing.assert_array_equal(everything(rows), [[0.0, 1.0], [3.0, 10.0], [4.0, 3.0]])


def test_a_target_of_many_classes_is_its_place() -> None:
    schema = Schema([Numeric("x", 0, 1)], target=Category("kind", ["p", "q", "r"]))
    table = pd.DataFrame({"kind": ["r", "p"], "x": [0.5, 2.0]})
    rows = PlainRows(Rows(open_table(table), schema, schema.geometry(numeric="slope", intercept=False, several=True)))
    rows.read()
    np.testing.assert_array_equal(everything(rows), [[0.5, 2.0], [1.0, 0.0]])


def test_the_users_own_array_is_not_what_a_function_gets() -> None:
    table = np.arange(4.0)[:, None]
    schema = Schema.box(0, 10).with_features(["x"])
    rows = PlainRows(Rows(open_table(table), schema, schema.geometry(numeric="slope", intercept=False)))
    rows.read()
    assert rows.sum(lambda seen: np.full((len(seen), 1), np.shares_memory(seen, table), dtype=np.int64)).tolist() == [0]


def test_progress_is_told() -> None:
    told: list[int] = []
    with on_progress(told.append):
        read(FRAME, batch_rows=2)
    assert told[-1] == 5
    assert told == sorted(told)
