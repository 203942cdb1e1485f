"""The tables that `bench engines` fits from: one generated table of people in the form that each engine has.

Fourteen features: five numbers to all their digits, two to one decimal, three integers and four texts; a number and a
class to predict. A hundred million rows take about 5 GB as Parquet.
"""

from __future__ import annotations

import glob
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from privfit.privacy import seeded_generator
from privfit.schema import Category, Column, Numeric, Schema

PART_ROWS = 1_000_000
SMALL_GROUP, LARGE_GROUP = 250_000, 5_000_000
FILES = 64
WIDE = 64
TEXTS = {
    "sex": ("female", "male"),
    "region": ("north", "east", "south", "west"),
    "education": ("none", "primary", "secondary", "bachelor", "master"),
    "work": ("public", "private", "own business", "farm", "home", "student", "retired"),
}
EXACT = tuple(f"exact{i}" for i in range(5))
ROUNDED = ("height", "weight")
COUNTS = ("age", "children", "hours")
FEATURES: tuple[Column, ...] = (
    *(Numeric(name, -1, 1) for name in EXACT),
    *(Numeric(name, 0, 200) for name in ROUNDED),
    *(Numeric(name, 0, 100) for name in COUNTS),
    *(Category(name, list(levels)) for name, levels in TEXTS.items()),
)
CLASSIFIERS = ("logistic", "functional logistic", "majority")
AMOUNT, GROUP = Numeric("amount", -1, 1), Category("group", ["no", "yes"])


def people(rows: int, seed: int) -> pl.DataFrame:
    """Generated people, some of them out of bounds."""
    generator = seeded_generator(seed)
    exact = {name: generator.uniform(-1.1, 1.1, rows) for name in EXACT}
    rounded = {name: np.round(generator.normal(100, 30, rows), 1) for name in ROUNDED}
    counts = {name: generator.integers(0, 101, rows, dtype=np.int32) for name in COUNTS}
    codes = {name: generator.integers(0, len(levels), rows, dtype=np.uint32) for name, levels in TEXTS.items()}
    score = exact["exact0"] * 0.4 - exact["exact1"] * 0.2 + (counts["age"] / 50 - 1) * 0.2 + (codes["sex"] - 0.5) * 0.2
    amount = np.clip(score + 0.2 * generator.standard_normal(rows), -1, 1)
    texts = {name: np.array(TEXTS[name], dtype=object)[code] for name, code in codes.items()}
    frame = pl.DataFrame({**exact, **rounded, **counts, **texts, "amount": amount})
    return frame.with_columns(pl.when(pl.col("amount") > 0).then(pl.lit("yes")).otherwise(pl.lit("no")).alias("group"))


def wide(rows: int, seed: int) -> pl.DataFrame:
    """Columns of single precision, and a number to predict."""
    generator = seeded_generator(seed)
    X = generator.uniform(-1.1, 1.1, (WIDE, rows)).astype(np.float32)
    return pl.DataFrame({**{f"x{i}": column for i, column in enumerate(X)}, "amount": X[0] * 0.5 + X[1] * 0.2})


def schema_of(kind: str) -> Schema:
    """What is public about a table: `wide`, or people for a model."""
    if kind == "wide":
        return Schema([Numeric(f"x{i}", -1, 1) for i in range(WIDE)], target=AMOUNT)
    return Schema(FEATURES, target=GROUP if kind in CLASSIFIERS else AMOUNT)


def parts(rows: int, wide_table: bool = False) -> Iterator[pl.DataFrame]:
    """The rows, a million at a time."""
    for seed, start in enumerate(range(0, rows, PART_ROWS)):
        yield (wide if wide_table else people)(min(PART_ROWS, rows - start), seed)


# -- one form per engine ---------------------------------------------------------------------------


def write_parquet(path: Path, rows: int, group: int, wide_table: bool = False) -> None:
    """One file with row groups of so many rows."""
    writer: pq.ParquetWriter | None = None
    waiting: list[pa.Table] = []
    for frame in parts(rows, wide_table):
        waiting.append(_arrow(frame))
        writer = writer or pq.ParquetWriter(path, waiting[0].schema, compression="zstd")
        if sum(table.num_rows for table in waiting) >= group:
            writer.write_table(pa.concat_tables(waiting), row_group_size=group)
            waiting = []
    assert writer is not None
    if waiting:
        writer.write_table(pa.concat_tables(waiting), row_group_size=group)
    writer.close()


def write_files(folder: Path, source: Path) -> None:
    """The same rows in many Parquet files."""
    folder.mkdir()
    rows = pq.ParquetFile(source).metadata.num_rows
    for place in range(FILES):
        first, last = rows * place // FILES, rows * (place + 1) // FILES
        part = pl.scan_parquet(source).slice(first, last - first).collect()
        pq.write_table(
            _arrow(part), folder / f"part-{place:02}.parquet", compression="zstd", row_group_size=SMALL_GROUP
        )


def write_arrow(path: Path, source: Path) -> None:
    """The same rows in an Arrow file."""
    file = pq.ParquetFile(source)
    with pa.ipc.new_file(path, file.schema_arrow) as writer:
        for batch in file.iter_batches(batch_size=SMALL_GROUP):
            writer.write_batch(batch)


def write_duckdb(path: Path, source: Path) -> None:
    """The same rows in a DuckDB file."""
    import duckdb

    with duckdb.connect(str(path)) as connection:
        connection.execute("CREATE TABLE people AS SELECT * FROM read_parquet(?)", [str(source)])


def write_postgresql(address: str, source: Path) -> None:
    """The same rows in a table of a PostgreSQL server."""
    from adbc_driver_postgresql import dbapi  # type: ignore[import-untyped]

    with dbapi.connect(address) as connection, connection.cursor() as cursor:
        cursor.adbc_ingest("people", pq.ParquetFile(source).iter_batches(), mode="replace")
        connection.commit()


def _arrow(frame: pl.DataFrame) -> pa.Table:
    """With texts of the type that every engine writes."""
    table = frame.to_arrow()
    plain = [pa.field(f.name, pa.string() if pa.types.is_large_string(f.type) else f.type) for f in table.schema]
    return table.cast(pa.schema(plain))


@contextmanager
def postgresql_server() -> Iterator[str | None]:
    """The address of a server of our own, on a socket in a temporary folder; None where none is installed."""
    found = shutil.which("initdb") or next(iter(sorted(glob.glob("/usr/lib/postgresql/*/bin/initdb"))[-1:]), None)
    if found is None:
        yield None
        return
    binaries, folder = Path(found).parent, tempfile.mkdtemp(prefix="privfit-bench-")
    as_user: list[str] = []
    if os.geteuid() == 0:  # the server refuses to run as root
        user = "postgres" if subprocess.run(["id", "postgres"], capture_output=True).returncode == 0 else "nobody"
        shutil.chown(folder, user)
        as_user = ["runuser", "-u", user, "--"]

    def run(program: str, *arguments: str) -> None:
        subprocess.run([*as_user, str(binaries / program), *arguments], check=True, capture_output=True, cwd=folder)

    run("initdb", "-D", f"{folder}/data", "-A", "trust", "-U", "people", "-E", "UTF8", "--locale=C", "--no-sync")
    options = f"-c listen_addresses='' -c unix_socket_directories={folder} -c fsync=off -c max_wal_size=8GB"
    run("pg_ctl", "-D", f"{folder}/data", "-w", "-o", options, "-l", f"{folder}/log", "start")
    try:
        yield f"postgresql://people@/postgres?host={folder}"
    finally:
        run("pg_ctl", "-D", f"{folder}/data", "-m", "immediate", "stop")
        shutil.rmtree(folder, ignore_errors=True)
