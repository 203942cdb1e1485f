"""A source that ends before its rows do is refused: no fit ever takes the first part of a table for the whole."""

from __future__ import annotations

import gzip
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pytest

import privfit as pf
from privfit.tables import DataError, open_table
from privfit.tables.polars_tables import query_batches
from tests.support.chains import assert_ours, told_by
from tests.support.early_ends import CHANGES, PANICS, ROWS, WORST, file, panicking, table

COLUMNS = [pf.Numeric("x", 0, 1), pf.Numeric("m", 1900, 2100, fill=2000)]


def count(source: Any, rows: int = 1 << 14) -> int:
    opened = open_table(source)
    positions = [(opened.names or ()).index(column.name) for column in COLUMNS]
    return sum(len(batch[0]) for batch in opened.batches(COLUMNS, positions, rows))


@pytest.mark.parametrize("expression", PANICS.values(), ids=PANICS.keys())
@pytest.mark.parametrize("kind", ["memory", "parquet", "filtered"])
def test_a_query_that_panics_on_one_row_is_refused_or_read_to_its_end(
    tmp_path: Path, expression: pl.Expr, kind: str
) -> None:
    query = panicking(expression)
    if kind == "parquet":
        table().write_parquet(tmp_path / "t.parquet", row_group_size=10_000)
        query = pl.scan_parquet(tmp_path / "t.parquet").with_columns(expression.alias("m")).drop("t")
    if kind == "filtered":
        query = query.filter(pl.col("x") >= 0)
    try:
        found = count(query)
    except DataError as error:
        assert_ours(error, str(WORST))
    else:
        assert found == ROWS


def test_some_query_does_panic() -> None:
    """Otherwise the test above shows nothing."""
    with pytest.raises(DataError, match="PanicException"):
        count(panicking(PANICS["truncate"]))


def test_a_query_with_a_function_that_raises_or_exits_is_refused() -> None:
    for error in (RuntimeError, SystemExit, KeyboardInterrupt):

        def fails(value: float, error: type[BaseException] = error) -> float:
            if value > 0.9:
                raise error("SECRET77")
            return 2000.0

        query = table().lazy().select("x", m=pl.col("x").map_elements(fails, return_dtype=pl.Float64))
        with pytest.raises(DataError, match=rf"cannot be read as the schema says \({error.__name__}\)") as caught:
            count(query)
        assert "SECRET77" not in told_by(caught.value)


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES.keys())
@pytest.mark.parametrize("ending", [".parquet", ".csv"])
def test_a_file_that_changes_while_it_is_read_is_refused(tmp_path: Path, ending: str, change: Any) -> None:
    path = file(tmp_path, ending)
    assert count(path) == ROWS
    opened = open_table(path)
    batches = opened.batches(COLUMNS, [(opened.names or ()).index(column.name) for column in COLUMNS], 1 << 12)
    next(batches)
    change(path)
    with pytest.raises(DataError, match=r"cut, replaced or written to|cannot be read as the schema says") as caught:
        list(batches)
    assert caught.value.__context__ is None


@pytest.mark.parametrize("ending", [".parquet", ".csv"])
def test_a_file_of_as_many_rows_put_in_place_of_the_one_that_was_opened_is_refused(tmp_path: Path, ending: str) -> None:
    """A second pass over other rows would not be the table that was charged for."""
    path = file(tmp_path, ending)
    opened = open_table(path)
    assert len(list(opened.batches(COLUMNS, [0, 3], ROWS))) >= 1
    CHANGES["replaced"](path)
    with pytest.raises(DataError, match="cut, replaced or written to after it was opened"):
        list(opened.batches(COLUMNS, [0, 3], ROWS))


def test_a_parquet_file_hands_out_as_many_rows_as_it_says(tmp_path: Path) -> None:
    path = file(tmp_path, ".parquet")
    opened: Any = open_table(path)
    opened.promised += 1
    with pytest.raises(DataError, match="not those of one table"):
        list(opened.batches(COLUMNS, [0, 3], 1 << 14))


def test_a_gzipped_file_that_was_cut_is_refused(tmp_path: Path) -> None:
    whole = gzip.compress(table(20_000).drop("t").with_columns(m=pl.lit(2000)).write_csv().encode())
    (tmp_path / "t.csv.gz").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(DataError, match="cannot be read as the schema says"):
        count(tmp_path / "t.csv.gz")


@pytest.mark.parametrize("error", [RuntimeError, SystemExit, GeneratorExit])
def test_a_stream_whose_maker_fails_is_refused(error: type[BaseException]) -> None:
    def batches() -> Iterator[pa.RecordBatch]:
        yield pa.RecordBatch.from_pydict({"x": [0.5], "m": [2000.0]})
        raise error("SECRET77")

    schema = pa.schema([("x", pa.float64()), ("m", pa.float64())])
    with pytest.raises(DataError, match="cannot be read as the schema says") as caught:
        count(pa.RecordBatchReader.from_batches(schema, batches()))
    assert "SECRET77" not in told_by(caught.value)


def test_a_cut_arrow_file_read_as_a_stream_is_refused(tmp_path: Path) -> None:
    arrow = table(20_000).select("x", m=pl.lit(2000.0)).to_arrow()
    with pa.ipc.new_stream(tmp_path / "t.arrows", arrow.schema) as writer:
        writer.write_table(arrow, max_chunksize=1000)
    assert count(pa.ipc.open_stream((tmp_path / "t.arrows").open("rb"))) == 20_000
    os.truncate(tmp_path / "t.arrows", 100_001)
    with pytest.raises(DataError, match="cannot be read as the schema says"):
        count(pa.ipc.open_stream((tmp_path / "t.arrows").open("rb")))


def test_what_collect_batches_returns_is_refused_because_nobody_could_tell_where_it_ends() -> None:
    with pytest.raises(DataError, match=r"ends without an error.*Give the LazyFrame itself.*Nothing was charged"):
        open_table(table(100).lazy().collect_batches())


def test_a_relation_that_fails_half_way_is_refused_and_the_connection_is_free_again() -> None:
    duckdb = pytest.importorskip("duckdb")
    connection = duckdb.connect()
    text = "cast(case when i = 250000 then 'SECRET77' else '2000' end as double)"
    with pytest.raises(DataError, match=r"'DuckDB relation' cannot be read as the schema says \(\w+\)") as caught:
        count(connection.sql(f"select 0.5 as x, {text} as m from range(300000) t(i)"))
    assert "SECRET77" not in told_by(caught.value)
    assert count(connection.sql("select 0.5 as x, 2000 as m from range(300000) t(i)")) == 300_000


# -- the thread behind a query ---------------------------------------------------------------------


def readers() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "privfit-query"]


def test_batches_come_in_order_and_hold_every_row() -> None:
    query = table().lazy().select("x")
    frames = list(query_batches(query, 1000, "query"))
    assert np.array_equal(pl.concat(frames)["x"].to_numpy(), table()["x"].to_numpy())
    assert not readers()


def test_a_reader_that_is_left_early_ends_its_query() -> None:
    batches = query_batches(table().lazy().select("x"), 1000, "query")
    next(batches)
    assert readers()
    batches.close()  # type: ignore[attr-defined]
    assert not readers()


def test_a_program_that_ends_while_a_query_is_being_read_ends(tmp_path: Path) -> None:
    """A reader that somebody still holds, as a traceback does, keeps no program from ending."""
    script = (
        "import polars as pl\n"
        "from privfit.tables.polars_tables import query_batches\n"
        "held = query_batches(pl.LazyFrame({'x': list(range(300_000))}), 1000, 'query')\n"
        "next(held)\n"
        "raise SystemExit(7)\n"
    )
    ended = subprocess.run([sys.executable, "-c", script], timeout=120, capture_output=True, check=False)
    assert (ended.returncode, ended.stderr) == (7, b"")
