"""Sources on one machine: what each refuses, and that nothing of it is told."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from scipy import sparse

import privfit as pf
from privfit.rows import Rows
from privfit.schema import Numeric, Schema
from privfit.statistics import Moments
from privfit.tables import DataError, KeptColumn, open_table
from tests.support.chains import assert_ours, told_by
from tests.support.early_ends import CHANGES, file, table
from tests.support.servers import SECRET, object_address, object_store, postgresql, run_sql
from tests.support.sources import CSV_SOURCES, ODD, SOURCES, arrow_file, csv_file, duckdb_file, parquet_file

X = [Numeric("x", 0, 1)]
CELL = "SECRET77"


def numbers(source: Any, rows: int = 1 << 12) -> np.ndarray:
    """The column x of a source, in the order in which it comes."""
    opened = open_table(source)
    return np.concatenate([batch[0] for batch in opened.batches(X, opened.positions(X), rows)])


def people(rows: int = 9, first: float = 0.0) -> pa.Table:
    return pa.table({"x": first + np.arange(rows) / 1000, "id": [f"person {i}" for i in range(rows)]})


# -- sparse matrices -------------------------------------------------------------------------------


@pytest.mark.parametrize("form", ["csr", "csc", "coo", "lil", "dok", "bsr"])
@pytest.mark.parametrize("kind", ["array", "matrix"])
def test_a_sparse_matrix_gives_the_sums_of_the_dense_one(form: str, kind: str) -> None:
    dense = np.where(np.random.default_rng(1).random((500, 6)) < 0.2, np.random.default_rng(2).random((500, 6)), 0.0)
    dense[7, 3] = np.nan
    made = (sparse.coo_array if kind == "array" else sparse.coo_matrix)(dense).asformat(form)
    schema = Schema([Numeric(f"x{i}", -1, 1, fill=0.5) for i in range(6)])
    geometry = schema.geometry()
    sums = [Rows(open_table(given), schema, geometry).sum(Moments(geometry)) for given in (made, dense)]
    assert np.array_equal(*sums)


def test_entries_of_a_sparse_matrix_that_are_given_twice_are_added_up() -> None:
    twice = sparse.coo_array(([0.25, 0.5, 0.125], ([0, 0, 2], [0, 0, 0])), shape=(3, 1))
    assert numbers(twice).tolist() == [0.75, 0.0, 0.125]


def test_a_sparse_matrix_is_never_dense_but_for_a_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("privfit.tables.sparse.BATCH_VALUES", 10_000)
    wide = sparse.coo_array(([1.0], ([3], [5])), shape=(100_000, 5_000))  # 4 GB if it were dense
    columns = [Numeric(f"x{i}", 0, 1) for i in range(5_000)]
    batches = open_table(wide).batches(columns, range(5_000), 1 << 16)
    assert {len(next(batches)[0]) for _ in range(100)} == {2}


def test_a_sparse_matrix_takes_a_target_apart_and_predicts() -> None:
    rows = np.random.default_rng(3).random((2_000, 3)) * (np.random.default_rng(4).random((2_000, 3)) < 0.3)
    target = rows @ [1.0, -1.0, 0.5]
    schema = Schema.box(0, 1, target=(-1, 2))
    dense = pf.Ridge(5.0, schema=schema, random_state=1).fit(rows, target)
    made = pf.Ridge(5.0, schema=schema, random_state=1).fit(sparse.csc_matrix(rows), target)
    assert np.array_equal(made.coef_, dense.coef_)
    assert np.array_equal(made.predict(sparse.coo_array(rows)), dense.predict(rows))


# -- several files ---------------------------------------------------------------------------------


def test_a_folder_a_pattern_and_a_list_hold_every_row_in_order(tmp_path: Path) -> None:
    for name, first in (("b", 0.3), ("a", 0.1), ("c", 0.5)):
        parquet_file(people(9, first), tmp_path / f"{name}.parquet")
    (tmp_path / ".hidden.parquet").write_bytes(b"")
    expected = np.concatenate([first + np.arange(9) / 1000 for first in (0.1, 0.3, 0.5)])
    assert np.array_equal(numbers(tmp_path), expected)
    assert np.array_equal(numbers(f"{tmp_path}/*.parquet"), expected)
    listed = [tmp_path / "c.parquet", tmp_path / "a.parquet"]
    assert np.array_equal(numbers(listed), np.concatenate([expected[18:], expected[:9]]))


def test_what_stands_in_the_names_of_folders_is_a_column(tmp_path: Path) -> None:
    for year, city in ((2020, "S%C3%A3o%20Paulo"), (2021, "__HIVE_DEFAULT_PARTITION__")):
        folder = tmp_path / f"year={year}" / f"city={city}"
        folder.mkdir(parents=True)
        parquet_file(people(2), folder / "p.parquet")
    columns = [pf.Numeric("year", 2000, 2030), pf.Category("city", ["Oslo", "São Paulo"], fill="Oslo")]
    for source in (tmp_path, f"{tmp_path}/year=*/*/*.parquet", f"{tmp_path}/**/*.parquet"):
        opened = open_table(source)
        batches = list(opened.batches(columns, opened.positions(columns), 10))
        assert np.concatenate([batch[0] for batch in batches]).tolist() == [2020, 2020, 2021, 2021]
        assert np.concatenate([batch[1] for batch in batches]).tolist() == [1, 1, -2, -2]
    assert pf.Schema.from_public(tmp_path).features[-2].name == "year"


def refused_folders(path: Path) -> dict[str, tuple[Any, str]]:
    def made(name: str) -> Path:
        folder = path / name
        folder.mkdir()
        parquet_file(people(), folder / f"{CELL}-1.parquet")
        return folder

    other, mixed, twice, columns, delta, empty = map(made, ("other", "mixed", "twice", "columns", "delta", "empty"))
    (other / f"{CELL}.json").write_text("{}")
    csv_file(people(), mixed / f"{CELL}.csv")
    os.link(twice / f"{CELL}-1.parquet", twice / f"{CELL}-2.parquet")
    parquet_file(people().rename_columns(["x", CELL]), columns / f"{CELL}-2.parquet")
    (delta / "_delta_log").mkdir()
    (delta / "_delta_log" / "0.json").write_text("{}")
    (empty / f"{CELL}-1.parquet").unlink()
    loop = made("loop")
    (loop / "again").symlink_to(loop)
    return {
        "another ending": (other, "neither Parquet nor CSV nor Arrow"),
        "several kinds": (mixed, "several kinds"),
        "a link to one of them": (twice, "The same file was given twice"),
        "a list with one twice": ([other / f"{CELL}-1.parquet"] * 2, "The same file was given twice"),
        "other columns": (columns, "File 2 of 2 has other columns than the first"),
        "a table with versions": (delta, "table with versions"),
        "no files": (empty, "There is no file with rows"),
        "a folder in itself": (loop, "contains itself"),
        "a pattern that matches nothing": (f"{path}/*/{CELL}*.csv.gz", "no file that the pattern matches"),
    }


def test_files_that_could_lose_or_double_a_person_are_refused(tmp_path: Path) -> None:
    for source, says in refused_folders(tmp_path).values():
        with pytest.raises(DataError, match=says) as caught:
            open_table(source)
        assert_ours(caught.value, CELL)


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES.keys())
@pytest.mark.parametrize("ending", [".parquet", ".csv"])
def test_a_file_of_a_folder_that_changes_while_it_is_read_is_refused(tmp_path: Path, ending: str, change: Any) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    file(tmp_path / "a", ending)
    second = file(tmp_path / "b", ending)
    opened = open_table(f"{tmp_path}/*/people{ending}")
    batches = opened.batches(X, opened.positions(X), 1 << 12)
    next(batches)
    change(second)
    with pytest.raises(DataError, match=r"cut, replaced or written to|cannot be read as the schema says") as caught:
        list(batches)
    assert_ours(caught.value, str(tmp_path))


def test_every_file_of_a_folder_hands_out_as_many_rows_as_it_says(tmp_path: Path) -> None:
    for name in "ab":
        parquet_file(people(), tmp_path / f"{name}.parquet")
    opened: Any = open_table(tmp_path)
    opened._tables[0].promised += 1
    opened._tables[1].promised -= 1
    with pytest.raises(DataError, match="not those of one table"):
        list(opened.batches(X, [0], 100))


# -- Arrow files and datasets ----------------------------------------------------------------------


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES.keys())
def test_an_arrow_file_that_changes_while_it_is_read_is_refused(tmp_path: Path, change: Any) -> None:
    rows = table(200_000).drop("t").with_columns(m=pl.lit(2000)).to_arrow()
    path = tmp_path / "people.arrow"
    with pa.ipc.new_file(path, rows.schema) as writer:
        writer.write_table(rows, max_chunksize=10_000)
    opened = open_table(path)
    batches = opened.batches(X, [0], 1 << 12)
    next(batches)
    change(path)
    with pytest.raises(DataError, match=r"cut, replaced or written to|cannot be read as the schema says"):
        list(batches)


def test_a_cut_arrow_file_is_refused(tmp_path: Path) -> None:
    path = arrow_file(people(), tmp_path / "t.arrow")
    os.truncate(path, path.stat().st_size - 20)
    with pytest.raises(DataError, match="cannot be read"):
        open_table(path)


def test_a_dataset_whose_files_change_between_passes_is_refused(tmp_path: Path) -> None:
    for name in "ab":
        parquet_file(people(), tmp_path / f"{name}.parquet")
    opened = open_table(ds.dataset(tmp_path))
    assert opened.n_rows == 18
    assert len(list(opened.batches(X, [0], 100))) >= 1
    parquet_file(people(9, 0.5), tmp_path / "other")
    os.replace(tmp_path / "other", tmp_path / "b.parquet")
    with pytest.raises(DataError, match="pyarrow dataset changed after it was opened") as caught:
        list(opened.batches(X, [0], 100))
    assert_ours(caught.value, str(tmp_path))


def test_a_filtered_dataset_is_read_as_it_is_filtered(tmp_path: Path) -> None:
    parquet_file(people(), tmp_path / "a.parquet")
    filtered = ds.dataset(tmp_path).filter(ds.field("x") > 0.0045)
    assert numbers(filtered).tolist() == [0.005, 0.006, 0.007, 0.008]


# -- databases -------------------------------------------------------------------------------------

BAD_URLS = [
    "duckdb:///people.db",
    "duckdb:///people.db?table=",
    "duckdb:///people.db?query= ",
    "postgresql://me@host/db",
]


@pytest.mark.parametrize("url", BAD_URLS)
def test_an_address_names_a_table_or_a_query(url: str) -> None:
    with pytest.raises(DataError, match=r"End it with \?table=NAME"):
        open_table(url)


def test_a_duckdb_file_that_is_not_there_is_told_without_its_name(tmp_path: Path) -> None:
    pytest.importorskip("duckdb")
    with pytest.raises(DataError, match="There is no DuckDB file") as caught:
        open_table(f"duckdb:///{tmp_path}/{CELL}.db?table=people")
    assert_ours(caught.value, CELL)


def test_a_name_is_never_run_as_sql(tmp_path: Path) -> None:
    address = duckdb_file(people(), tmp_path, "people")
    for name in ('people"; drop table people; --', "people where 1=1", "(select * from people)", "read_csv('x')"):
        with pytest.raises(DataError, match="cannot be read") as caught:
            open_table(f"{address}?table={name}")
        assert_ours(caught.value, name)
    assert len(numbers(f"{address}?table=people")) == 9


def test_a_column_s_name_is_never_run_as_sql(tmp_path: Path) -> None:
    odd = people().rename_columns(["x", ODD])
    for source in (f"{duckdb_file(odd, tmp_path, 'p')}?table=p", SOURCES["postgresql table"](odd, tmp_path)):
        opened = open_table(source)
        kept: Any = [KeptColumn(ODD)]
        found = [one for batch in opened.batches(kept, [1], 100) for one in batch[0]]
        assert found == [f"person {i}" for i in range(9)]


def test_a_duckdb_file_cannot_be_written_to(tmp_path: Path) -> None:
    address = duckdb_file(people(), tmp_path, "people")
    for query in ("delete from people returning x", "insert into people select * from people", "drop table people"):
        with pytest.raises(DataError, match="cannot be read"):
            numbers(f"{address}?query={query}")
    assert len(numbers(f"{address}?table=people")) == 9


def test_a_duckdb_file_that_is_written_to_between_passes_is_refused(tmp_path: Path) -> None:
    duckdb = pytest.importorskip("duckdb")
    address = duckdb_file(people(), tmp_path, "people")
    opened = open_table(f"{address}?table=people")
    assert opened.n_rows == 9
    assert len(list(opened.batches(X, [0], 100))) == 1
    with duckdb.connect(address.removeprefix("duckdb:///")) as connection:
        with pytest.raises(DataError, match=r"open for writing.*give a relation"):
            list(open_table(f"{address}?table=people").batches(X, [0], 100))
        connection.execute("update people set x = 0.5")
    with pytest.raises(DataError, match="DuckDB table changed after it was opened") as caught:
        list(opened.batches(X, [0], 100))
    assert_ours(caught.value)


def test_views_and_queries_are_read_once_and_tables_again(tmp_path: Path) -> None:
    duckdb = pytest.importorskip("duckdb")
    address = duckdb_file(people(), tmp_path, "people")
    with duckdb.connect(address.removeprefix("duckdb:///")) as connection:
        connection.execute("create view seen as select * from people")
    assert not open_table(f"{address}?table=people").passes_once
    for end in ("table=seen", "query=select * from people"):
        opened = open_table(f"{address}?{end}")
        assert opened.passes_once
        list(opened.batches(X, [0], 100))
        with pytest.raises(DataError, match="read a second time"):
            list(opened.batches(X, [0], 100))


def test_a_query_that_fails_half_way_is_refused_without_quoting_it(tmp_path: Path) -> None:
    failing = f"select cast(case when i = 250000 then '{CELL}' else '0.5' end as double{{}}) as x from {{}}"
    sources = [
        f"{duckdb_file(people(), tmp_path, 'p')}?query={failing.format('', 'range(300000) t(i)')}",
        f"{postgresql()}&query={failing.format(' precision', 'generate_series(1, 300000) t(i)')}",
    ]
    for source in sources:
        with pytest.raises(DataError, match=r"query' cannot be read as the schema says \(\w+\)") as caught:
            numbers(source)
        assert_ours(caught.value, CELL, SECRET, "case when")


def test_postgresql_is_read_from_one_snapshot() -> None:
    address = SOURCES["postgresql table"](people(), Path())
    from urllib.parse import unquote

    name = unquote(address.partition("table=")[2]).replace('"', '""')
    opened = open_table(address)
    first = np.concatenate([batch[0] for batch in opened.batches(X, [0], 100)])
    run_sql(f'insert into "{name}" select x + 0.5, id from "{name}"', f'update "{name}" set x = 0 where x < 0.002')
    again = np.concatenate([batch[0] for batch in opened.batches(X, [0], 100)])
    assert np.array_equal(first, again)
    assert len(numbers(address)) == 18


def test_a_postgresql_server_that_ends_half_way_is_refused() -> None:
    run_sql(
        "drop table if exists many", "create table many as select i / 1e6 as x, i from generate_series(1, 999999) i"
    )
    opened: Any = open_table(f"{postgresql()}&table=many")
    assert opened.n_rows == 999_999
    batches = opened.batches(X, [0], 1 << 10)
    next(batches)
    run_sql(
        "select pg_terminate_backend(pid) from pg_stat_activity where pid <> pg_backend_pid() and datname is not null"
    )
    with pytest.raises(DataError, match=r"'PostgreSQL table' cannot be read") as caught:
        list(batches)
    assert_ours(caught.value, SECRET)
    opened = open_table(f"{postgresql()}&table=many")
    opened.n_rows += 1
    with pytest.raises(DataError, match="another number of rows than it said"):
        list(opened.batches(X, [0], 1 << 14))


def test_types_of_postgresql_mean_what_they_mean_there() -> None:
    run_sql(
        "drop table if exists kinds",
        "drop type if exists mood",
        "create type mood as enum ('fine', 'ill')",
        "create table kinds (n numeric(12, 3), m money, c char(5), e mood, s smallint, r real, v varchar(9))",
        "insert into kinds values (0.125, 0.25, 'ab', 'ill', 1, 0.5, 'ab'), (null, null, null, null, null, null, null)",
    )
    opened = open_table(f"{postgresql()}&table=kinds")
    columns = [
        *(pf.Numeric(name, 0, 1) for name in "nm"),
        pf.Category("c", ["ab", "cd"]),
        pf.Category("e", ["fine", "ill"]),
        *(pf.Numeric(name, 0, 1) for name in "sr"),
        pf.Category("v", ["ab", "cd"]),
    ]
    (batch,) = opened.batches(columns, opened.positions(columns), 10)
    assert [values[0] for values in batch] == [0.125, 0.25, 0, 1, 1.0, 0.5, 0]
    assert all(np.isnan(values[1]) if values.dtype == float else values[1] == -2 for values in batch)


def test_a_postgresql_query_cannot_write() -> None:
    run_sql("drop table if exists safe", "create table safe as select 0.5::float8 as x")
    for query in (
        "delete from safe returning x",
        "insert into safe values (1) returning x",
        "select 1 as x; drop table safe",
    ):
        with pytest.raises(DataError, match="cannot be read") as caught:
            numbers(f"{postgresql()}&query={query}")
        assert_ours(caught.value, query, SECRET)
    assert numbers(f"{postgresql()}&table=safe&schema=public").tolist() == [0.5]


def test_a_server_that_is_not_there_is_told_without_its_address() -> None:
    pytest.importorskip("adbc_driver_postgresql")
    with pytest.raises(DataError, match="server could not be reached") as caught:
        open_table(f"postgresql://me:{SECRET}@/{CELL}?host=/nowhere&table=people")
    assert_ours(caught.value, SECRET, CELL, "/nowhere")


# -- object stores ---------------------------------------------------------------------------------


def put(name: str, rows: pa.Table) -> None:
    with object_store()[0].open_output_stream(f"people/{name}") as out:
        pq.write_table(rows, out, compression="none", use_dictionary=False)


def test_an_object_that_is_replaced_or_removed_between_passes_is_refused() -> None:
    put("t.parquet", people())
    opened = open_table(object_address("t.parquet"))
    assert opened.n_rows == 9
    assert len(list(opened.batches(X, [0], 100))) == 1
    put("t.parquet", people(9, 0.5))  # as many rows and bytes, in the same second
    with pytest.raises(DataError, match=r"Parquet file \(s3\) changed after it was opened") as caught:
        list(opened.batches(X, [0], 100))
    assert_ours(caught.value, SECRET, "t.parquet")
    object_store()[0].delete_file("people/t.parquet")
    with pytest.raises(DataError) as caught:
        list(opened.batches(X, [0], 100))
    assert_ours(caught.value, SECRET, "t.parquet")


def test_addresses_that_lead_nowhere_are_told_without_their_password() -> None:
    object_store()
    for address in (object_address("nothing.parquet"), object_address("nothing"), object_address("a.xlsx")):
        with pytest.raises(DataError) as caught:
            open_table(address)
        assert_ours(caught.value, SECRET, "nothing")
    with pytest.raises(DataError, match="nobody here reads"):
        open_table(f"gopher://me:{SECRET}@host/t.parquet")


# -- what is told, and what is carried along -------------------------------------------------------

EVERY = SOURCES | CSV_SOURCES


@pytest.mark.parametrize("name", EVERY)
def test_no_label_ledger_report_or_model_tells_where_a_table_came_from(tmp_path: Path, name: str) -> None:
    share = np.linspace(0, 1, 60)
    rows = pa.table({"x": share, "y": share, CELL: ["a"] * 60})
    given = EVERY[name](rows, tmp_path)
    ledger = pf.Ledger(tmp_path / "ledger.db", epsilon=5.0)
    schema = Schema(X, Numeric("y", 0, 1))
    model = pf.LinearRegression(1.0, schema=schema, ledger=ledger).fit(given)
    model.save(tmp_path / "model.json")
    told = [(tmp_path / "model.json").read_text(), str(model.report_), json.dumps(model.report_.to_dict())]
    told += [repr(entry) for entry in ledger.entries()] + [str(vars(model)), open_table(given).label]
    hidden = [SECRET, CELL, ODD, "select", "endpoint", "folder.", "/*"]
    for text in told:
        assert not [one for one in hidden if one in text.replace(str(tmp_path / "ledger.db"), "")]


@pytest.mark.parametrize("name", EVERY)
def test_every_source_carries_columns_along_in_the_order_of_its_rows(tmp_path: Path, name: str) -> None:
    opened = open_table(EVERY[name](people(), tmp_path))
    kept: Any = [*X, KeptColumn("id"), KeptColumn("x")]
    asked = [opened.names.index(column.name) for column in kept]  # type: ignore[union-attr]
    batches = list(opened.batches(kept, asked, 2))
    assert [float(one) for batch in batches for one in batch[2]] == people().column("x").to_pylist()
    assert [one for batch in batches for one in batch[1]] == [f"person {i}" for i in range(9)]
    assert np.concatenate([batch[0] for batch in batches]).tolist() == people().column("x").to_pylist()


def test_errors_of_sources_drag_nothing_along(tmp_path: Path) -> None:
    (tmp_path / "t.arrow").write_bytes(CELL.encode() * 99)
    with pytest.raises(DataError) as caught:
        open_table(tmp_path / "t.arrow")
    assert CELL not in told_by(caught.value)


# -- tables that pass by once, kept ----------------------------------------------------------------


def test_what_passes_by_once_can_be_kept_and_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PRIVFIT_CACHE", str(tmp_path))
    columns = [*X, pf.Category("id", [f"person {i}" for i in range(4)], other=True)]
    opened = open_table(people().to_reader(max_chunksize=4))
    opened.keep(columns)
    assert (opened.n_rows, opened.passes_once) == (9, False)
    assert list(tmp_path.iterdir()) == []  # the file has no name
    for asked in (columns, columns[::-1], columns[:1], columns):
        batches = list(opened.batches(asked, opened.positions(asked), 3))
        assert max(len(batch[0]) for batch in batches) <= 3
        found = dict(
            zip([column.name for column in asked], map(np.concatenate, zip(*batches, strict=True)), strict=True)
        )
        assert found["x"].tolist() == people().column("x").to_pylist()
        if "id" in found:
            assert found["id"].tolist() == [0, 1, 2, 3, -1, -1, -1, -1, -1]
    with pytest.raises(DataError, match="a second time"):
        list(opened.batches([Numeric("id", 0, 1)], [1], 3))


def test_a_stream_that_fails_while_it_is_kept_is_refused_and_a_full_disk_too(monkeypatch: pytest.MonkeyPatch) -> None:
    def batches() -> Any:
        yield pa.RecordBatch.from_pydict({"x": [0.5]})
        raise RuntimeError(CELL)

    failing = pa.RecordBatchReader.from_batches(pa.schema([("x", pa.float64())]), batches())
    with pytest.raises(DataError, match="cannot be read") as caught:
        open_table(failing).keep(X)
    assert_ours(caught.value, CELL)
    monkeypatch.setenv("PRIVFIT_CACHE", f"/nowhere/{CELL}")
    with pytest.raises(DataError, match="could not be written") as caught:
        open_table(people().to_reader()).keep(X)
    assert_ours(caught.value, CELL)


@pytest.mark.parametrize("name", ["*", "^x.*$", "x.y", "[0]", "{x}", '"', "$1", "é", "x y"])
def test_a_name_stands_for_one_column_only(tmp_path: Path, name: str) -> None:
    rows = pa.table({"x0": [0.1, 0.2], name: [0.5, 0.25], "x1": [0.3, 0.4]})
    column = [Numeric(name, 0, 1)]
    for source in (SOURCES if '"' in name else EVERY).values():  # polars keeps doubled quotes in a CSV file's header
        opened = open_table(source(rows, tmp_path))
        batches = opened.batches(column, opened.positions(column), 10)
        assert np.concatenate([batch[0] for batch in batches]).tolist() == [0.5, 0.25]
