"""One table in every engine: the same bits in every sum, the same refusals, nothing of a cell in any of them."""

from __future__ import annotations

import gzip
from collections.abc import Callable, Iterable
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest

import privfit as pf
from privfit.rows import Rows
from privfit.schema import Category, Numeric, Schema
from privfit.statistics import Moments
from privfit.tables import DataError, open_table
from tests.support.chains import told_by
from tests.support.sources import CSV_SOURCES, SOURCES, Source

SCHEMA = Schema(
    [
        Numeric("age", 17, 90, fill=40),
        Category("city", ["Oslo", "São Paulo", "x, y; z"], fill="Oslo"),
        Numeric("hours", 0, 99),
        Category("code", [10, 20, 30], other=True, fill=30),
        Category("flag", [False, True], fill=True),
        Numeric("wage", -1.5, 60.25, bins=4, fill="missing"),
        Category("grade", ["a", "b"], other=True, fill="b"),
    ],
    target=Numeric("income", 0.1, 1000),
)
COLUMNS: dict[str, list[Any]] = {
    "age": [33.3, None, 17.0, 90.0, 120.5, -4.0, 41.7, 0.1],
    "city": ["Oslo", "São Paulo", None, "x, y; z", "Oslo", "São Paulo", "Oslo", "x, y; z"],
    "hours": [40, 0, 99, 150, -3, 38, 12, 7],
    "code": [10, 20, 30, 10, 77, None, 20, 10],
    "flag": [True, False, None, True, True, False, False, True],
    "wage": [0.1, 12.75, None, 60.25, 61.0, -7.0, 13.937500000000002, 29.375],
    "grade": ["a", "b", "zebra", None, "b", "other", "a", "b"],
    "income": [0.1, 333.3333333333333, 999.9, 1000.0, 5000.0, 1e-7, 123.456, 77.7],
}
TYPES = {
    "age": pa.float64(),
    "city": pa.string(),
    "hours": pa.int64(),
    "code": pa.int64(),
    "flag": pa.bool_(),
    "wage": pa.float64(),
    "grade": pa.string(),
    "income": pa.float64(),
}
Columns = dict[str, list[Any]]
Maker = Callable[[Columns, Path], Any]


def arrow(columns: Columns) -> pa.Table:
    """The columns as an Arrow table; a column of another kind than usual (a test's doing) keeps its own type."""
    arrays = {}
    for name, values in columns.items():
        try:
            arrays[name] = pa.array(values, TYPES.get(name))
        except (pa.ArrowInvalid, pa.ArrowTypeError):
            arrays[name] = pa.array(values)
    return pa.table(arrays)


def from_arrow(make: Source) -> Maker:
    return lambda columns, path: make(arrow(columns), path)


def written(columns: Columns, path: Path, write: Callable[[pl.DataFrame, Path], Any]) -> Path:
    write(pl.from_arrow(arrow(columns)), path)  # type: ignore[arg-type]
    return path


def gzipped(columns: Columns, path: Path) -> Path:
    path.write_bytes(gzip.compress(pl.from_arrow(arrow(columns)).write_csv().encode()))  # type: ignore[union-attr]
    return path


class OnlyTheProtocol:
    """Knows nothing but how to start an Arrow stream."""

    def __init__(self, table: pa.Table) -> None:
        self._table = table

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return self._table.__arrow_c_stream__(requested_schema)


def relation(table: pa.Table) -> Any:
    """The table as DuckDB sees it, through a query of its own."""
    duckdb = pytest.importorskip("duckdb")
    return duckdb.connect().from_arrow(table).filter("true")


def categorical_frame(columns: Columns) -> pd.DataFrame:
    frame = pd.DataFrame(columns)
    return frame.astype({name: "category" for name in ("city", "code", "flag", "grade") if name in frame})


def polars_categories(columns: Columns) -> pl.DataFrame:
    frame = pl.from_arrow(arrow(columns))
    assert isinstance(frame, pl.DataFrame)
    texts = [name for name in ("city", "grade") if frame.schema.get(name) == pl.String]
    return frame.with_columns(pl.col(name).cast(pl.Categorical) for name in texts)


IN_MEMORY: dict[str, Maker] = {
    "pandas": lambda columns, _: pd.DataFrame(columns),
    "pandas, objects": lambda columns, _: pd.DataFrame(columns, dtype=object),
    "pandas, nullable": lambda columns, _: pd.DataFrame(columns).convert_dtypes(),
    "pandas, category": lambda columns, _: categorical_frame(columns),
    "pandas, pyarrow": lambda columns, _: pd.DataFrame(columns, dtype=object).convert_dtypes(dtype_backend="pyarrow"),
    "pandas, odd index": lambda columns, _: pd.DataFrame(columns).set_index(
        pd.Index([7] * len(next(iter(columns.values()))))
    ),
    "polars": lambda columns, _: pl.from_arrow(arrow(columns)),
    "polars, categories": lambda columns, _: polars_categories(columns),
    "arrow": lambda columns, _: arrow(columns),
    "arrow, dictionaries": lambda columns, _: pa.table(
        {
            name: values.dictionary_encode() if values.type == pa.string() else values
            for name, values in arrow_items(columns)
        }
    ),
    "arrow, chunks": lambda columns, _: pa.concat_tables([arrow(columns).slice(0, 3), arrow(columns).slice(3)]),
    "arrow batch": lambda columns, _: pa.RecordBatch.from_arrays(
        [values.combine_chunks() for _, values in arrow_items(columns)], names=list(columns)
    ),
}
STREAMED: dict[str, Maker] = {
    "polars, lazy": lambda columns, _: pl.from_arrow(arrow(columns)).lazy(),  # type: ignore[union-attr]
    "arrow reader": lambda columns, _: arrow(columns).to_reader(max_chunksize=3),
    "arrow protocol": lambda columns, _: OnlyTheProtocol(arrow(columns)),
    "duckdb": lambda columns, _: relation(arrow(columns)),
    "parquet": lambda columns, path: written(
        columns, path / "t.parquet", lambda frame, to: frame.write_parquet(to, row_group_size=3)
    ),
}
CSV: dict[str, Maker] = {
    "csv": lambda columns, path: written(columns, path / "t.csv", pl.DataFrame.write_csv),
    "csv, path as text": lambda columns, path: str(written(columns, path / "t.csv", pl.DataFrame.write_csv)),
    "csv, by pandas": lambda columns, path: (
        path / "t.csv" if pd.DataFrame(columns).to_csv(path / "t.csv", index=False) is None else None
    ),
    "csv, NA": lambda columns, path: written(
        columns, path / "t.csv", lambda frame, to: frame.write_csv(to, null_value="NA")
    ),
    "csv, NaN": lambda columns, path: written(
        columns, path / "t.csv", lambda frame, to: frame.write_csv(to, null_value="NaN")
    ),
    "csv, gzip": lambda columns, path: gzipped(columns, path / "t.csv.gz"),
    "csv, semicolons": lambda columns, path: written(
        columns, path / "t.csv", lambda frame, to: frame.write_csv(to, separator=";")
    ),
    "tsv": lambda columns, path: written(
        columns, path / "t.tsv", lambda frame, to: frame.write_csv(to, separator="\t")
    ),
}
STREAMED |= {name: from_arrow(make) for name, make in SOURCES.items()}
CSV |= {name: from_arrow(make) for name, make in CSV_SOURCES.items()}
NAMED = IN_MEMORY | STREAMED | CSV
NAMELESS: dict[str, Maker] = {
    "numpy, objects": lambda columns, _: np.array(list(zip(*columns.values(), strict=True)), dtype=object),
    "lists": lambda columns, _: [list(row) for row in zip(*columns.values(), strict=True)],
}
ENGINES = NAMED | NAMELESS


def arrow_items(columns: Columns) -> list[tuple[str, Any]]:
    table = arrow(columns)
    return [(name, table.column(name)) for name in table.column_names]


def each_of(engines: Iterable[str]) -> list[Any]:
    """Engines as parameters: Spark takes seconds for what others do at once, and runs in `make audit`; what it does
    in `make test` is in test_clusters.py.
    """
    return [pytest.param(name, marks=pytest.mark.slow) if name == "spark" else name for name in engines]


@pytest.fixture(params=each_of(ENGINES))
def engine(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[Columns], Any]:
    """Turns columns into a table of one engine."""
    return lambda columns: ENGINES[request.param](columns, tmp_path)


@pytest.fixture(params=each_of(NAMED))
def named_engine(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[Columns], Any]:
    return lambda columns: NAMED[request.param](columns, tmp_path)


def by_hand(columns: Columns, intercept: bool = True) -> list[list[int]]:
    """Every row encoded without privfit, in exact arithmetic: integers, 2^16 to one."""

    def number(value: float | None, low: str, high: str, fill: float | None = None) -> int:
        given = fill if value is None else value
        assert given is not None
        middle, half = (Fraction(low) + Fraction(high)) / 2, (Fraction(high) - Fraction(low)) / 2
        return round(max(Fraction(-1), min(Fraction(1), (Fraction(float(given)) - middle) / half)) * 2**16)

    def levels(place: int, count: int) -> list[int]:
        return [2**16 * (i == place) for i in range(count)]

    rows = []
    for age, city, hours, code, flag, wage, grade, income in zip(
        *(columns[column.name] for column in SCHEMA.columns), strict=True
    ):
        rows.append(
            [2**16] * intercept
            + [number(age, "17", "90", 40)]
            + levels({"Oslo": 0, "São Paulo": 1, "x, y; z": 2, None: 0}[city], 3)
            + [number(hours, "0", "99")]
            + levels({10: 0, 20: 1, 30: 2, None: 2}.get(code, 3), 4)
            + [2**16 if flag in (True, None) else -(2**16)]
            + levels(4 if wage is None else sum(wage >= -1.5 + 61.75 * i / 4 for i in (1, 2, 3)), 5)
            + levels({"a": 0, "b": 1, None: 1}.get(grade, 2), 3)
            + [number(income, "0.1", "1000")]
        )
    return rows


def moments_by_hand(columns: Columns) -> list[list[int]]:
    """Every product of two columns, summed; but for the target's square, which nobody may use."""
    rows = by_hand(columns)
    sums = [[sum(row[i] * row[j] for row in rows) for j in range(len(rows[0]))] for i in range(len(rows[0]))]
    sums[-1][-1] = 0
    return sums


def summed(table: Any, schema: Schema = SCHEMA, **options: Any) -> np.ndarray:
    geometry = schema.geometry()
    return Rows(open_table(table), schema, geometry, **options).sum(Moments(geometry))


def test_every_engine_gives_the_sums_that_exact_arithmetic_gives(engine: Callable[[Columns], Any]) -> None:
    sums = summed(engine(COLUMNS))
    assert sums.dtype == np.int64
    assert sums.tolist() == moments_by_hand(COLUMNS)


@pytest.mark.parametrize("rows", [1, 2, 3, 7, 8, 1000])
def test_no_engine_s_sums_depend_on_the_batch(engine: Callable[[Columns], Any], rows: int) -> None:
    assert summed(engine(COLUMNS), batch_rows=rows).tolist() == moments_by_hand(COLUMNS)


def test_named_columns_are_found_in_any_order_and_others_are_ignored(named_engine: Callable[[Columns], Any]) -> None:
    mixed = {"before": ["?"] * 8, **{name: COLUMNS[name] for name in reversed(COLUMNS)}, "zz": [1.5] * 8}
    assert summed(named_engine(mixed)).tolist() == moments_by_hand(COLUMNS)


@pytest.mark.parametrize("make", IN_MEMORY.values(), ids=IN_MEMORY.keys())
def test_reading_changes_no_table_in_memory(make: Maker, tmp_path: Path) -> None:
    table, twin = make(COLUMNS, tmp_path), make(COLUMNS, tmp_path)
    summed(table)
    assert table.equals(twin)


def test_reading_changes_no_file_and_no_array(tmp_path: Path) -> None:
    for name in ("parquet", "csv", "csv, gzip"):
        path = NAMED[name](COLUMNS, tmp_path)
        before = path.read_bytes()
        summed(path)
        assert path.read_bytes() == before
    array = NAMELESS["numpy, objects"](COLUMNS, tmp_path)
    twin = array.copy()
    summed(array)
    assert (array == twin).all()


def test_a_column_with_nothing_in_it_is_filled_in_every_engine(engine: Callable[[Columns], Any]) -> None:
    empty = COLUMNS | {name: [None] * 8 for name in ("age", "city", "code", "flag", "wage", "grade")}
    assert summed(engine(empty)).tolist() == moments_by_hand(empty)


@pytest.mark.parametrize("column", ["city", "hours", "income"])
def test_a_missing_value_without_a_fill_is_refused_in_every_engine(
    engine: Callable[[Columns], Any], column: str
) -> None:
    without_fill = Schema(
        [replace(known, fill=None) if known.name == column else known for known in SCHEMA.features], SCHEMA.target
    )
    broken = COLUMNS | {column: [COLUMNS[column][0], None, *COLUMNS[column][2:]]}
    with pytest.raises(DataError, match=rf"'{column}' contains NaN or missing values.*fill=.*Nothing was charged"):
        summed(engine(broken), without_fill)


def test_an_unknown_level_is_refused_in_every_engine_and_not_quoted(engine: Callable[[Columns], Any]) -> None:
    broken = COLUMNS | {"city": ["Oslo", "SECRET77", *COLUMNS["city"][2:]]}
    with pytest.raises(
        DataError, match=r"'city' contains a level that its schema does not list.*other=True.*Nothing was charged"
    ) as caught:
        summed(engine(broken))
    assert "SECRET77" not in told_by(caught.value)


@pytest.mark.parametrize("column", ["age", "hours", "wage", "income"])
def test_a_text_among_numbers_is_refused_in_every_engine_and_not_quoted(
    engine: Callable[[Columns], Any], column: str
) -> None:
    broken = COLUMNS | {column: [str(value) for value in COLUMNS[column][:-1]] + ["SECRET77"]}
    with pytest.raises(DataError, match=r"holds texts|cannot be read as the schema says") as caught:
        summed(engine(broken))
    assert "SECRET77" not in told_by(caught.value)


IN_MEMORY_OR_TYPED = each_of(name for name in ENGINES if name not in CSV)


@pytest.mark.parametrize("name", IN_MEMORY_OR_TYPED)
def test_texts_that_look_like_numeric_levels_are_refused_alike_by_every_engine_with_types(
    name: str, tmp_path: Path
) -> None:
    broken = COLUMNS | {"code": ["10", "20", "30", "10", "SECRET77", None, "20", "10"]}
    with pytest.raises(DataError, match=r"'code' holds .*the schema says it holds levels that are numbers") as caught:
        summed(ENGINES[name](broken, tmp_path))
    assert "SECRET77" not in told_by(caught.value)


@pytest.mark.parametrize("name", IN_MEMORY_OR_TYPED)
def test_numbers_where_texts_are_listed_are_refused_alike_by_every_engine_with_types(name: str, tmp_path: Path) -> None:
    broken = COLUMNS | {"grade": [1234577, 2, 3, None, 4, 5, 6, 7]}
    with pytest.raises(DataError, match=r"'grade' holds .*the schema says it holds levels that are texts") as caught:
        summed(ENGINES[name](broken, tmp_path))
    assert "1234577" not in told_by(caught.value)


@pytest.mark.parametrize("rows", [1, 2, 3])
def test_a_mixed_column_is_refused_whatever_the_batch(rows: int) -> None:
    schema = Schema([Category("c", ["a", "b"], other=True), Numeric("x", 0, 1)])
    with pytest.raises(DataError, match=r"'c' holds values that are not texts"):
        summed(np.array([["a", 0.0], [7, 0.0], [8, 0.0]], dtype=object), schema, batch_rows=rows)


def test_a_missing_column_is_named_in_every_engine(named_engine: Callable[[Columns], Any]) -> None:
    table = named_engine({name: values for name, values in COLUMNS.items() if name not in ("code", "grade")})
    with pytest.raises(
        DataError,
        match=r"no column 'code', 'grade', which the schema lists.*It has [67] columns.*Rename.*Nothing was charged",
    ):
        summed(table)


def test_a_table_without_rows_is_refused_in_every_engine(engine: Callable[[Columns], Any]) -> None:
    table = engine({name: [] for name in COLUMNS})
    with pytest.raises(DataError, match=r"no rows|1 dimension"):
        summed(table)


def test_two_columns_of_one_name_are_refused(tmp_path: Path) -> None:
    schema = Schema([Numeric("a", 0, 1)], Numeric("y", 0, 1))
    names = ["a", "a", "y"]
    arrays = [pa.array([0.5]), pa.array([0.25]), pa.array([0.5])]
    (tmp_path / "t.csv").write_text("a,a,y\n0.5,0.25,0.5\n")
    tables = {
        "pandas": pd.DataFrame([[0.5, 0.25, 0.5]], columns=names),
        "arrow": pa.table(arrays, names=names),
        "batch": pa.RecordBatch.from_arrays(arrays, names=names),
        "reader": pa.table(arrays, names=names).to_reader(),
        "csv": tmp_path / "t.csv",
    }
    for engine_name, table in tables.items():
        with pytest.raises(DataError, match=r"columns? of one name|more than one column called 'a'"):
            summed(table, schema)
        assert engine_name


def test_twins_that_the_schema_does_not_name_do_no_harm_in_a_pandas_frame() -> None:
    schema = Schema([Numeric("a", 0, 1)], Numeric("y", 0, 1))
    frame = pd.DataFrame([[0.5, 1, 2, 0.5]], columns=["a", "b", "b", "y"])
    assert summed(frame, schema).tolist() == summed(frame[["a", "y"]], schema).tolist()


def test_an_arrow_stream_is_read_once_and_says_so() -> None:
    geometry = SCHEMA.geometry()
    rows = Rows(open_table(arrow(COLUMNS).to_reader()), SCHEMA, geometry)
    with pytest.raises(DataError, match="known after it was read once"):
        _ = rows.n_rows
    rows.sum(Moments(geometry))
    assert rows.n_rows == 8
    with pytest.raises(DataError, match=r"a second time.*passes by once.*Give a table or a file"):
        rows.sum(Moments(geometry))


def test_a_table_or_file_can_be_read_again(tmp_path: Path) -> None:
    geometry = SCHEMA.geometry()
    for name in set(ENGINES) - {"arrow reader", "arrow protocol", "duckdb", "duckdb query", "spark"}:
        rows = Rows(open_table(ENGINES[name](COLUMNS, tmp_path)), SCHEMA, geometry)
        assert (rows.sum(Moments(geometry)) == rows.sum(Moments(geometry))).all(), name
        assert rows.n_rows == 8


# -- CSV -------------------------------------------------------------------------------------------


def csv_codes(tmp_path: Path, column: Category, cells: list[str], name: str = "t.csv") -> list[int]:
    (tmp_path / name).write_text("c\n" + "\n".join(cells) + "\n", encoding="utf-8")
    table = open_table(tmp_path / name)
    return [int(code) for batch in table.batches([column], [0], 100) for code in batch[0]]


def test_a_text_for_missing_is_a_level_when_the_schema_lists_it(tmp_path: Path) -> None:
    cells = ["NA", "NaN", "nan", "b", '""']
    assert csv_codes(tmp_path, Category("c", ["b", "NA"]), cells) == [1, -2, -2, 0, -2]
    assert csv_codes(tmp_path, Category("c", ["b", "nan", "NaN"]), cells) == [-2, 2, 1, 0, -2]
    assert csv_codes(tmp_path, Category("c", ["b", "x"]), cells) == [-2, -2, -2, 0, -2]


def test_numeric_and_truth_levels_are_read_out_of_texts(tmp_path: Path) -> None:
    assert csv_codes(tmp_path, Category("c", [1, 2.5], other=True), ["1", "1.0", " 1", "2.50", "1e0", "x", "NA"]) == [
        0,
        0,
        0,
        1,
        0,
        -1,
        -2,
    ]
    for levels in ([False, True], [0, 1]):
        assert csv_codes(tmp_path, Category("c", levels), ["true", "True", "FALSE", "1", "0", "yes"]) == [
            1,
            1,
            0,
            1,
            0,
            -1,
        ]
    assert csv_codes(tmp_path, Category("c", ["1", "01"]), ["1", "01", "1.0"]) == [0, 1, -1]  # texts stay texts


@pytest.mark.parametrize(
    "name", ["d[1].csv", "d*.csv", "d?.csv", "d{1}.csv", "a b.csv", "d[1].parquet", "year=2020.parquet"]
)
def test_a_file_is_the_one_that_was_named_not_what_its_name_matches(tmp_path: Path, name: str) -> None:
    schema = Schema([Numeric("a", 0, 1)], Numeric("y", 0, 1))
    right, wrong = pl.DataFrame({"a": [0.5], "y": [1.0]}), pl.DataFrame({"a": [0.25], "y": [0.0]})
    write = pl.DataFrame.write_parquet if name.endswith("parquet") else pl.DataFrame.write_csv
    for decoy in ("d1", "d12", "dx"):
        write(wrong, tmp_path / f"{decoy}{Path(name).suffix}")
    write(right, tmp_path / name)
    assert summed(tmp_path / name, schema).tolist() == summed(right, schema).tolist()


UNREADABLE = {
    "t.parquet": b"SECRET77 " * 50,
    "cut.parquet": b"PAR1SECRET77",
    "t.csv": b"a,y\n0.5,0.5\nSECRET77,0.1\n",
    "ragged.csv": b"a,y\n0.5,0.5,SECRET77\n",
    "bytes.csv": b"a,y\n0.5,0.5\n\xff\xfeSECRET77,0.1\n",
    "empty.csv": b"",
    "cut.csv.gz": gzip.compress(b"a,y\n0.5,SECRET77\n" * 99)[:25],
    "not.csv.gz": b"\x1f\x8bSECRET77",
}


@pytest.mark.parametrize("name", UNREADABLE)
def test_a_file_that_cannot_be_read_is_refused_without_quoting_it(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(UNREADABLE[name])
    own = {
        "t.csv": "Column 'a' holds texts that are not numbers",
        "ragged.csv": "another number of fields than its header",
    }
    told = own.get(name, rf"'{name}' cannot be read as the schema says \(\w+\)")
    with pytest.raises(DataError, match=rf"{told}.*Nothing was charged") as caught:
        summed(tmp_path / name, Schema([Numeric("a", 0, 1)], Numeric("y", 0, 1)))
    assert "SECRET77" not in told_by(caught.value)
    assert caught.value.__context__ is None


def test_a_file_is_known_by_its_ending(tmp_path: Path) -> None:
    (tmp_path / "t.xlsx").write_bytes(b"")
    with pytest.raises(DataError, match=r"'t.xlsx' is neither Parquet nor CSV nor Arrow by its ending.*Use one of"):
        open_table(tmp_path / "t.xlsx")
    with pytest.raises(DataError, match=r"a file among those in the folder that is neither.*Nothing was charged"):
        open_table(tmp_path)
    (tmp_path / "empty").mkdir()
    for path in (tmp_path / "nowhere.csv", tmp_path / "empty", ""):
        with pytest.raises(DataError, match=r"There is no file.*Give the path"):
            open_table(path)


# -- engines that fail while they are read ---------------------------------------------------------


def failing_tables(tmp_path: Path) -> dict[str, Any]:
    lines = "a,y\n" + "0.5,0.5\n" * 20_000 + "SECRET77,0.1\n"
    (tmp_path / "late.csv").write_text(lines)
    arrow_csv = pyarrow.csv.open_csv(
        tmp_path / "late.csv",
        read_options=pyarrow.csv.ReadOptions(block_size=4096),
        convert_options=pyarrow.csv.ConvertOptions(column_types={"a": pa.float64()}),
    )
    query = pl.LazyFrame({"a": ["0.5", "SECRET77"], "y": [0.1, 0.2]}).with_columns(pl.col("a").cast(pl.Float64))

    def batches() -> Any:
        yield pa.RecordBatch.from_pydict({"a": [0.5], "y": [0.5]})
        raise RuntimeError("SECRET77")

    schema = pa.schema([("a", pa.float64()), ("y", pa.float64())])
    return {
        "arrow csv": arrow_csv,
        "polars query": query,
        "late csv": tmp_path / "late.csv",
        "generator": pa.RecordBatchReader.from_batches(schema, batches()),
    }


@pytest.mark.parametrize("name", ["arrow csv", "polars query", "late csv", "generator"])
def test_an_engine_that_fails_half_way_is_refused_without_quoting_it(tmp_path: Path, name: str) -> None:
    with pytest.raises(
        DataError, match=r"cannot be read as the schema says|Column 'a' holds texts that are not numbers"
    ) as caught:
        summed(failing_tables(tmp_path)[name], Schema([Numeric("a", 0, 1)], Numeric("y", 0, 1)))
    assert "SECRET77" not in told_by(caught.value)


@pytest.mark.parametrize(
    "table",
    [
        pd.Series([1.0, 2.0]),
        pl.Series([1.0, 2.0]),
        pa.chunked_array([[1.0, 2.0]]),
        np.ones(3),
        np.ones((2, 2, 2)),
        None,
        7,
        {"a": [1.0]},
        [1.0, 2.0],
        [{"a": 1.0}],
    ],
    ids=lambda table: type(table).__name__,
)
def test_what_is_no_table_is_refused(table: Any) -> None:
    with pytest.raises(DataError, match=r"A table with \d dimension|cannot be read"):
        open_table(table)


# -- predictions -----------------------------------------------------------------------------------


def test_every_engine_gives_the_same_predictions_in_the_order_of_the_rows(engine: Callable[[Columns], Any]) -> None:
    model = pf.LinearRegression(epsilon=1e6, schema=SCHEMA, random_state=0).fit(arrow(COLUMNS))
    features = {name: COLUMNS[name] for name in COLUMNS if name != "income"}
    assert model.predict(engine(features)) == pytest.approx(model.predict(arrow(features)), rel=1e-12)


def test_predictions_for_a_file_of_many_batches_keep_the_order_of_its_rows(tmp_path: Path) -> None:
    """The first row group takes longest, so that a reader which hands out batches as they come is caught."""
    kinds = pa.schema([("x", pa.float64()), ("c", pa.string())])
    start = 0
    with pyarrow.parquet.ParquetWriter(tmp_path / "t.parquet", kinds, compression="zstd") as writer:
        for count in (60_000, *(2_000,) * 30):
            x = np.arange(start, start + count, dtype=float)
            writer.write_table(pa.table({"x": x, "c": ["a" if v % 2 else "b" for v in x]}, schema=kinds))
            start += count
    schema = Schema([Numeric("x", 0, 120_000), Category("c", ["a", "b"])], Numeric("y", 0, 120_000))
    frame = pl.DataFrame({"x": np.linspace(0, 120_000, 500), "c": ["a", "b"] * 250, "y": np.linspace(0, 120_000, 500)})
    model = pf.LinearRegression(epsilon=1e6, schema=schema, random_state=0).fit(frame)
    expected = model.predict(pl.read_parquet(tmp_path / "t.parquet"))
    for _ in range(4):
        assert np.array_equal(model.predict(tmp_path / "t.parquet"), expected)
