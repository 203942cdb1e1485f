"""One Arrow table as every source that privfit reads by its name or by its type."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any
from urllib.parse import quote

import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

from tests.support.clusters import dask_frame, spark_frame
from tests.support.servers import fill_postgresql, object_address, object_store, postgresql, web_address

Source = Callable[[pa.Table, Path], Any]
ODD = 'odd "name"; drop table people --ü'
"""A name that SQL would run if it were not quoted."""
_numbers = count()


def thirds(table: pa.Table) -> list[pa.Table]:
    """The table in three parts; the columns of the second in another order."""
    parts = [table.slice(0, 3), table.slice(3, 2), table.slice(5)]
    return [parts[0], parts[1].select(parts[1].column_names[::-1]), parts[2]]


def arrow_file(table: pa.Table, path: Path, compression: str | None = None) -> Path:
    with pa.ipc.new_file(path, table.schema, options=pa.ipc.IpcWriteOptions(compression=compression)) as writer:
        writer.write_table(table, max_chunksize=3)
    return path


def csv_file(table: pa.Table, path: Path) -> Path:
    frame = pl.from_arrow(table)
    assert isinstance(frame, pl.DataFrame)
    frame.write_csv(path)
    return path


def parquet_file(table: pa.Table, path: Path) -> Path:
    pq.write_table(table, path, row_group_size=3)
    return path


def folder(table: pa.Table, path: Path, ending: str, write: Callable[[pa.Table, Path], Any]) -> Path:
    within = path / f"folder{ending}"
    for place, part in enumerate(thirds(table)):
        (within / f"p{place}").mkdir(parents=True, exist_ok=True)
        write(part, within / f"p{place}" / f"rows{ending}")
    (within / "_SUCCESS").write_bytes(b"")
    return within


def hive(table: pa.Table, path: Path) -> Path:
    """A folder per row, in their order, whose names hold the cities and codes; files have the other columns."""
    within = path / "hive"
    if not table.num_rows:
        (within / "part=0").mkdir(parents=True, exist_ok=True)
        pq.write_table(table, within / "part=0" / "r.parquet")
    for place in range(table.num_rows):
        row = table.slice(place, 1)
        names = [
            f"{name}={'__HIVE_DEFAULT_PARTITION__' if value is None else quote(str(value), safe='')}"
            for name in ("city", "code")
            if name in table.column_names
            for value in row.column(name).to_pylist()
        ]
        below = within / f"part={place}" / "/".join(names)
        below.mkdir(parents=True, exist_ok=True)
        pq.write_table(row.drop_columns([n for n in ("city", "code") if n in row.column_names]), below / "r.parquet")
    return within


def duckdb_file(table: pa.Table, path: Path, name: str) -> str:
    duckdb = pytest.importorskip("duckdb")
    file = path / f"people{next(_numbers)}.db"
    with duckdb.connect(str(file)) as connection:
        connection.register("given", table)
        quoted = name.replace('"', '""')
        connection.execute(f'create table "{quoted}" as select * from given')
    return f"duckdb:///{file}"


def in_postgresql(table: pa.Table) -> str:
    address, name = postgresql(), f"{ODD} {next(_numbers)}"
    plain = [values.cast(values.type.value_type) if pa.types.is_dictionary(values.type) else values for values in table]
    fill_postgresql(name, pa.table(dict(zip(table.column_names, plain, strict=True))))
    return f"{address}&table={quote(name)}"


def in_store(table: pa.Table, name: str, write: Callable[[pa.Table, Path], Any], path: Path) -> str:
    files, _ = object_store()
    copy = path / f"copy{Path(name).suffix}"
    write(table, copy)
    with files.open_output_stream(f"people/{name}") as out:
        out.write(copy.read_bytes())
    return object_address(name)


def on_web(table: pa.Table, name: str, write: Callable[[pa.Table, Path], Any], path: Path) -> str:
    in_store(table, name, write, path)
    return web_address(name)


def store_folder(table: pa.Table, path: Path) -> str:
    name = f"folder{next(_numbers)}"
    for place, part in enumerate(thirds(table)):
        in_store(part, f"{name}/part={place}/rows.parquet", parquet_file, path)
    return object_address(name)


def in_memory_store(table: pa.Table, path: Path) -> str:
    fsspec = pytest.importorskip("fsspec")
    name = f"memory://people/{next(_numbers)}.csv"
    with fsspec.open(name, "wb") as out:
        out.write(csv_file(table, path / "copy.csv").read_bytes())
    return name


def narwhals(native: Any) -> Any:
    return pytest.importorskip("narwhals").from_native(native)


SOURCES: dict[str, Source] = {
    "arrow file": lambda table, path: arrow_file(table, path / "t.arrow"),
    "feather file": lambda table, path: arrow_file(table, path / "t.feather", "lz4"),
    "dataset": lambda table, path: ds.dataset(folder(table, path, ".parquet", parquet_file), format="parquet"),
    "dataset in memory": lambda table, _: ds.dataset(table),
    "folder": lambda table, path: folder(table, path, ".parquet", parquet_file),
    "folder, arrow": lambda table, path: str(folder(table, path, ".arrow", arrow_file)),
    "pattern": lambda table, path: str(folder(table, path, ".parquet", parquet_file) / "*" / "rows.parquet"),
    "list": lambda table, path: sorted(folder(table, path, ".parquet", parquet_file).glob("*/*.parquet")),
    "duckdb table": lambda table, path: f"{duckdb_file(table, path, ODD)}?table={quote(ODD)}",
    "duckdb query": lambda table, path: f"{duckdb_file(table, path, 'p')}?query=select * from p where 1+1 = 2 & 2;",
    "postgresql table": lambda table, _: in_postgresql(table),
    "s3 file": lambda table, path: in_store(table, f"{next(_numbers)}.parquet", parquet_file, path),
    "s3 arrow file": lambda table, path: in_store(table, f"{next(_numbers)}.arrow", arrow_file, path),
    "s3 folder": store_folder,
    "web file": lambda table, path: on_web(table, f"{next(_numbers)}.parquet", parquet_file, path),
    "s3 pattern": lambda table, path: store_folder(table, path).replace("?", "/*/*.parquet?", 1),
    "dask": lambda table, _: dask_frame(table),
    "spark": lambda table, _: spark_frame(table),
    "narwhals": lambda table, _: narwhals(table),
    "narwhals, lazy": lambda table, _: narwhals(pl.from_arrow(table).lazy()),  # type: ignore[union-attr]
}
CSV_SOURCES: dict[str, Source] = {
    "hive folder": hive,  # what stands in the name of a folder is text, as in a CSV file
    "folder, csv": lambda table, path: folder(table, path, ".csv", csv_file),
    "fsspec csv": in_memory_store,
    "web csv": lambda table, path: on_web(table, f"{next(_numbers)}.csv", csv_file, path),
}
