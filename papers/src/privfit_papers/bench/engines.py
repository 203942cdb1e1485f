"""How long a fit takes from each engine, over the time in which that engine hands out the same columns.

The two sides have a process each, and take turns; the best time of each counts, because others use the machine too.
The peak of memory is that of the process that fits. An engine is a `Source`: how its table is written, how it is read
bare, and what a fit is given.
"""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa

from privfit.baselines import Majority
from privfit.models import Lasso, LinearRegression, LogisticRegression
from privfit.privacy import Ledger
from privfit_papers.bench import cluster_engines as clusters
from privfit_papers.bench import engine_tables as tables
from privfit_papers.bench.memory import peak_gigabytes

READ_ROWS = 1 << 16
"""Rows of a batch of the bare reads, as in a fit."""
ONE_PASS, ITERATIVE = "linear", "logistic"
MODELS: dict[str, Callable[..., Any]] = {
    ONE_PASS: partial(LinearRegression, mechanism="functional"),
    ITERATIVE: LogisticRegression,
    "lasso": partial(Lasso, mechanism="functional"),
    "adassp": partial(LinearRegression, delta=1e-9, mechanism="adassp"),
    "functional logistic": partial(LogisticRegression, mechanism="functional"),
    "majority": Majority,
}
ONE_PASS_MODELS = tuple(name for name in MODELS if name != ITERATIVE)
FEW_ROWS = 1000
"""Rows of the fit whose time does not count as time for rows."""


@dataclass(frozen=True)
class Source:
    """An engine: the name and the bare read that stand in the table, and what one process needs to do either.

    `write` makes the table at a place, from the Parquet file of the same rows; `read` hands out all rows of some
    columns and keeps none; `given` is what `fit` takes.
    """

    name: str
    against: str
    ending: str
    write: Callable[[Path, Path], None]
    read: Callable[[str, Sequence[str]], None]
    given: Callable[[str], Any] = str
    wanted: float = 1.3
    wanted_logistic: float = 3.0
    kind: str = "people"


@dataclass(frozen=True)
class EngineRatio:
    """One line of the table: the best times of both sides, and the peak of memory of the fit."""

    source: str
    model: str
    against: str
    rows: int
    fit: float
    read: float
    peak_gigabytes: float
    wanted: float
    fit_cpu: float = math.nan
    read_cpu: float = math.nan

    @property
    def ratio(self) -> float:
        return self.fit / self.read

    @property
    def cpu_ratio(self) -> float:
        """The same in time of the processor, in which others on the machine hardly show.

        That of a server and of Spark's workers is not in it.
        """
        return self.fit_cpu / self.read_cpu

    def to_dict(self) -> dict[str, float | str]:
        """As plain values."""
        return {**asdict(self), "ratio": self.ratio, "cpu_ratio": self.cpu_ratio}


# -- bare reads ------------------------------------------------------------------------------------


def read_parquet(path: str, columns: Sequence[str]) -> None:
    """The streaming engine of polars, batch after batch, in any order."""
    scan = pl.scan_parquet(path).select(columns)
    for _ in scan.collect_batches(chunk_size=READ_ROWS, maintain_order=False):
        pass


def read_folder(path: str, columns: Sequence[str]) -> None:
    """The same over all files of a folder."""
    read_parquet(f"{path}/*.parquet", columns)


def read_arrow(path: str, columns: Sequence[str]) -> None:
    """Arrow files are hardly decoded: the bar is the same columns as float64, and as int32 places of levels."""
    reader = pa.ipc.open_file(pa.OSFile(path))
    places = [reader.schema.get_field_index(name) for name in columns]
    chosen = pa.ipc.open_file(pa.OSFile(path), options=pa.ipc.IpcReadOptions(included_fields=sorted(places)))
    for number in range(chosen.num_record_batches):
        for column in chosen.get_batch(number).columns:
            _decoded(pl.Series("", column))


def _decoded(series: pl.Series) -> Any:
    if series.dtype == pl.String:
        return series.cast(pl.Categorical).to_physical().cast(pl.Int32).to_numpy()
    return series.cast(pl.Float64).to_numpy()


def read_duckdb(path: str, columns: Sequence[str]) -> None:
    """DuckDB's own record batches."""
    import duckdb

    with duckdb.connect(path, read_only=True) as connection:
        relation = connection.sql(f"SELECT {', '.join(_quoted(columns))} FROM people")
        for _ in relation.to_arrow_reader(READ_ROWS):
            pass


def read_postgresql(address: str, columns: Sequence[str]) -> None:
    """The record batches of PostgreSQL's ADBC driver."""
    from adbc_driver_postgresql import dbapi  # type: ignore[import-untyped]

    with dbapi.connect(address) as connection, connection.cursor() as cursor:
        cursor.execute(f"SELECT {', '.join(_quoted(columns))} FROM people")
        for _ in cursor.fetch_record_batch():
            pass


def _quoted(columns: Sequence[str]) -> list[str]:
    return [f'"{name}"' for name in columns]


def _query(columns: Sequence[str]) -> str:
    return f"SELECT {', '.join(_quoted(columns))} FROM people"


def _duckdb_query(path: str) -> str:
    from urllib.parse import quote

    query = quote(_query([column.name for column in (*tables.FEATURES, tables.AMOUNT, tables.GROUP)]))
    return f"duckdb:///{path}?query={query}"


# -- engines ---------------------------------------------------------------------------------------


def _as_written(path: Path, source: Path) -> None:
    os.link(source, path)


def _large_groups(path: Path, source: Path) -> None:
    import pyarrow.parquet as pq

    tables.write_parquet(path, pq.ParquetFile(source).metadata.num_rows, tables.LARGE_GROUP)


def _wide(path: Path, source: Path) -> None:
    import pyarrow.parquet as pq

    tables.write_parquet(path, pq.ParquetFile(source).metadata.num_rows, tables.SMALL_GROUP, wide_table=True)


POLARS = "polars"
SOURCES: dict[str, Source] = {
    source.name: source
    for source in (
        Source("Parquet", POLARS, ".parquet", _as_written, read_parquet),
        Source("Parquet, 64 files", POLARS, "", tables.write_files, read_folder),
        Source("Parquet, 5M groups", POLARS, ".parquet", _large_groups, read_parquet, wanted=4.0),
        Source("Parquet, 64 float32", POLARS, ".parquet", _wide, read_parquet, wanted=1.5, kind="wide"),
        Source("Arrow file", "decoding", ".arrow", tables.write_arrow, read_arrow),
        Source(
            "DuckDB", "DuckDB", ".db", tables.write_duckdb, read_duckdb, lambda path: f"duckdb:///{path}?table=people"
        ),
        Source("DuckDB query", "DuckDB", ".db", tables.write_duckdb, read_duckdb, _duckdb_query),
        Source(
            "PostgreSQL",
            "ADBC",
            "postgresql",
            lambda path, source: None,
            read_postgresql,
            lambda address: f"{address}&table=people",
        ),
    )
}
CLUSTERS: dict[str, Source] = {
    source.name: source
    for source in (
        Source(
            "Dask",
            "one process",
            ".parquet",
            clusters.as_written,
            clusters.one_process,
            clusters.dask_frame,
            wanted=1.5,
            wanted_logistic=1.5,
        ),
        Source(
            "Spark",
            "mapInArrow",
            ".parquet",
            clusters.as_written,
            clusters.iterated,
            clusters.spark_frame,
            kind="one pass",
        ),
    )
}
"""Engines that are measured where they are asked for by name: each starts workers of its own."""
KNOWN = SOURCES | CLUSTERS


# -- two sides, a process each ---------------------------------------------------------------------


class Side:
    """A process that fits, or reads, as often as it is asked."""

    def __init__(self, side: str, source: str, model: str, place: str) -> None:
        command = [sys.executable, "-m", "privfit_papers.bench.engines", side, source, model, place]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def __enter__(self) -> Side:
        return self

    def __exit__(self, *error: object) -> None:
        self._process.communicate()  # no more questions: it ends

    def measured(self) -> dict[str, float]:
        """The seconds of one more turn, and the peak of memory so far in GB."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print(file=self._process.stdin, flush=True)
        answer = self._process.stdout.readline()
        if not answer:
            raise RuntimeError("A process of the bench ended without an answer; what it said stands above.")
        told: dict[str, float] = json.loads(answer)
        return told


def side_by_side(source: Source, model: str, place: str, rows: int, repeats: int) -> EngineRatio:
    """The best of so many turns of each side, after one that warms up the page cache."""
    with Side("read", source.name, model, place) as read, Side("fit", source.name, model, place) as fit:
        read.measured()
        turns = [(fit.measured(), read.measured()) for _ in range(repeats)]
    return EngineRatio(
        source.name,
        model,
        source.against,
        rows,
        min(ours["seconds"] for ours, _ in turns),
        min(theirs["seconds"] for _, theirs in turns),
        max(ours["gigabytes"] for ours, _ in turns),
        source.wanted_logistic if model == ITERATIVE else source.wanted,
        min(ours["cpu"] for ours, _ in turns),
        min(theirs["cpu"] for _, theirs in turns),
    )


def written(source: Source, folder: Path, rows: int) -> str:
    """Where the source's table of so many rows is; it is written when it is asked for first."""
    plain = folder / f"people-{rows}.parquet"
    if not plain.exists():
        _unfinished(plain, lambda path: tables.write_parquet(path, rows, tables.SMALL_GROUP))
    name = "-".join(part for part in source.name.replace(",", "").lower().split())
    place = folder / f"{name}-{rows}{source.ending}"
    if not place.exists():
        _unfinished(place, lambda path: source.write(path, plain))
    return str(place)


def _unfinished(place: Path, write: Callable[[Path], None]) -> None:
    """A file has its name once it is complete."""
    half = place.with_name(f"half-{place.name}")
    write(half)
    half.rename(place)


def engine_ratios(
    names: Sequence[str], models: Sequence[str], folder: Path, rows: int, repeats: int, postgresql: str | None = None
) -> Iterator[EngineRatio]:
    """The lines of the table, one by one. A table of numbers alone has no classes, and is fitted by one pass."""
    for source in (KNOWN[name] for name in names):
        if source.ending != "postgresql":
            place = written(source, folder, rows)
        elif postgresql is not None:
            plain = written(SOURCES["Parquet"], folder, rows)
            tables.write_postgresql(postgresql, Path(plain))
            place = postgresql
        else:
            continue
        for model in models if source.kind == "people" else (ONE_PASS,):
            yield side_by_side(source, model, place, rows, repeats)


@dataclass(frozen=True)
class Growth:
    """Time of the processor for the rows of a fit: the best one, less that of a fit of FEW_ROWS, because planning,
    ledger, noise and solver take as long for any number of rows. And the exponent of it in the number of rows.
    """

    model: str
    rows: int
    seconds: float
    peak_gigabytes: float
    exponent: float | None = None

    def to_dict(self) -> dict[str, float | str | None]:
        """As plain values."""
        return asdict(self)


def growth(model: str, sizes: Sequence[int], folder: Path, repeats: int) -> list[Growth]:
    """How the time of a fit from Parquet and its memory grow with the number of rows."""
    found: list[Growth] = []
    fixed = _best_fit(model, FEW_ROWS, folder, repeats)["cpu"]
    for rows in sizes:
        best = _best_fit(model, rows, folder, repeats)
        seconds = max(best["cpu"] - fixed, 1e-9)
        exponent = math.log(seconds / found[0].seconds) / math.log(rows / found[0].rows) if found else None
        found.append(Growth(model, rows, seconds, best["gigabytes"], exponent))
    return found


def _best_fit(model: str, rows: int, folder: Path, repeats: int) -> dict[str, float]:
    """The least time of the processor, and the peak of memory."""
    place = written(SOURCES["Parquet"], folder, rows)
    with Side("fit", "Parquet", model, place) as fit:
        fit.measured()
        turns = [fit.measured() for _ in range(repeats)]
    return {"cpu": min(turn["cpu"] for turn in turns), "gigabytes": max(turn["gigabytes"] for turn in turns)}


def _turn(side: str, source: Source, model: str, place: str) -> None:
    schema = tables.schema_of("wide" if source.kind == "wide" else model)
    if side == "read":
        source.read(place, [column.name for column in schema.columns])
        return
    ledger = Ledger(epsilon=1000.0, delta=0.01)  # pays for every turn: charging it is part of what is timed
    MODELS[model](schema=schema, ledger=ledger).fit(source.given(place))


def _answer(side: str, name: str, model: str, place: str) -> None:
    for _ in sys.stdin:
        start, begun = time.perf_counter(), time.process_time() + clusters.workers_cpu()
        _turn(side, KNOWN[name], model, place)
        spent = {"seconds": time.perf_counter() - start}
        spent["cpu"] = time.process_time() + clusters.workers_cpu() - begun
        print(json.dumps({**spent, "gigabytes": peak_gigabytes()}), flush=True)


if __name__ == "__main__":
    _answer(*sys.argv[1:])
