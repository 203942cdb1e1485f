"""Folders named after values: every engine reads the same value from a name, or refuses it."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

from privfit.rows import Rows
from privfit.schema import Category, Numeric, Schema
from privfit.statistics import Moments
from privfit.tables import DataError, open_table
from tests.support.clusters import dask_client, spark_session

CITIES = ("São Paulo", "a/b", "a=b", "100%", "Łódź", "x+y", 'q"w', "007", None)
SCHEMA = Schema([Category("city", [city for city in CITIES if city], fill="007"), Numeric("x", 0, 10)])


def below(folder: Path, names: dict[str, float]) -> Path:
    """A folder with a file of one row in a folder of each name."""
    for name, x in names.items():
        (folder / name).mkdir(parents=True)
        pq.write_table(pa.table({"x": [x]}), folder / name / "r.parquet")
    return folder


def cities(folder: Path) -> Path:
    named = {
        "city=" + ("__HIVE_DEFAULT_PARTITION__" if c is None else quote(c, safe="")): i for i, c in enumerate(CITIES)
    }
    return below(folder, {name: float(x) for name, x in named.items()})


def sums(table: Any, schema: Schema = SCHEMA) -> np.ndarray:
    geometry = schema.geometry()
    return Rows(open_table(table), schema, geometry).sum(Moments(geometry))


def of_dask(folder: Path) -> Any:
    dask_client()
    import dask.dataframe as dd

    named = {"flavor": "hive", "schema": pa.schema({"city": pa.string()})}
    return dd.read_parquet(str(folder), dataset={"partitioning": named})


def of_duckdb(folder: Path) -> Any:
    duckdb = pytest.importorskip("duckdb")
    return duckdb.sql(
        f"select * from read_parquet('{folder}/*/*.parquet', hive_partitioning=true, hive_types={{'city': varchar}})"
    )


def of_pyarrow(folder: Path) -> Any:
    return ds.dataset(folder, partitioning=ds.HivePartitioning(pa.schema({"city": pa.string()})))


def of_polars(folder: Path) -> Any:
    return pl.scan_parquet(folder, hive_partitioning=True, hive_schema={"city": pl.String})


ENGINES: dict[str, Callable[[Path], Any]] = {
    "path": lambda folder: folder,
    "pattern": lambda folder: f"{folder}/*/*.parquet",
    "pyarrow": of_pyarrow,
    "polars": of_polars,
    "dask": of_dask,
    "duckdb": of_duckdb,
}


@pytest.mark.parametrize("engine", ENGINES)
def test_bytes_after_percent_signs_mean_the_same_to_every_engine(tmp_path: Path, engine: str) -> None:
    told = pa.table({"city": CITIES, "x": [float(i) for i in range(len(CITIES))]})
    assert np.array_equal(sums(ENGINES[engine](cities(tmp_path / "t"))), sums(told))


def test_bytes_that_are_not_utf_8_are_refused(tmp_path: Path) -> None:
    folder = below(tmp_path / "t", {"city=caf%E9": 1.0, "city=caf%E8": 2.0})
    for given in (folder, f"{folder}/*/*.parquet"):
        with pytest.raises(DataError, match=r"bytes after % that are not UTF-8.*Nothing was charged") as caught:
            open_table(given)
        assert "caf" not in str(caught.value)
        assert caught.value.__context__ is None


def test_a_path_that_names_a_column_twice_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="names a column twice"):
        open_table(below(tmp_path / "t", {"city=a/city=b": 1.0}))


def test_a_text_in_the_name_of_a_folder_is_never_missing(tmp_path: Path) -> None:
    schema = Schema([Category("city", ["a"], other=True, fill="a"), Numeric("x", 0, 10)])
    folder = below(tmp_path / "t", {"city=a": 1.0, "city=NA": 2.0, "city=": 3.0})
    assert np.array_equal(sums(folder, schema), sums(of_pyarrow(folder), schema))


def test_a_path_may_be_given_as_people_write_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    pq.write_table(pa.table({"x": [1.0, 2.0]}), tmp_path / "a b%20c.parquet")
    schema = Schema([Numeric("x", 0, 10)])
    told = sums(pa.table({"x": [1.0, 2.0]}), schema)
    plain = f"file://{tmp_path}/a b%20c.parquet"
    for given in ("~/a b%20c.parquet", ["~/*.parquet"], tmp_path / "*.parquet", plain, quote(plain, safe=":/")):
        assert np.array_equal(sums(given, schema), told)
    assert open_table("~/a b%20c.parquet").label == "a b%20c.parquet"


def test_a_csv_file_in_utf_16_is_refused_by_its_encoding(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_bytes("x\n1\n".encode("utf-16"))
    with pytest.raises(DataError, match="UTF-16"):
        open_table(tmp_path / "t.csv")


def test_spark_is_refused_where_it_reads_other_letters_than_were_written(tmp_path: Path) -> None:
    session = spark_session()
    session.conf.set("spark.sql.sources.partitionColumnTypeInference.enabled", "false")
    folder = cities(tmp_path / "t")
    frame = session.read.parquet(str(folder))
    frame.createOrReplaceTempView("misread")
    renamed = frame.selectExpr("city as town", "x").where("x >= 0")
    kept = session.read.parquet(str(folder)).cache()
    for wrong in (frame, renamed, session.sql("select * from misread"), kept):
        with pytest.raises(DataError, match=r"bytes after %, of which Spark makes other letters"):
            open_table(wrong)
    kept.unpersist()
    assert open_table(frame.select("x")).n_rows == len(CITIES)
    right = frame.selectExpr("decode(encode(city, 'ISO-8859-1'), 'UTF-8') as city", "x")
    assert np.array_equal(sums(right), sums(folder))
    session.conf.unset("spark.sql.sources.partitionColumnTypeInference.enabled")


def test_what_spark_writes_is_read_as_spark_reads_it(tmp_path: Path) -> None:
    session = spark_session()
    session.conf.set("spark.sql.sources.partitionColumnTypeInference.enabled", "false")
    rows = [(city, float(i)) for i, city in enumerate(CITIES)]
    session.createDataFrame(rows, "city string, x double").write.partitionBy("city").parquet(str(tmp_path / "t"))
    assert any("ã" in name for name in os.listdir(tmp_path / "t"))
    frame = session.read.parquet(str(tmp_path / "t"))
    assert np.array_equal(sums(frame), sums(tmp_path / "t"))
    session.conf.unset("spark.sql.sources.partitionColumnTypeInference.enabled")
