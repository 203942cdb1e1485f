"""Dask and Spark in `bench engines`: two workers, or two cores, of this machine.

Dask is measured against a fit in one process, Spark against a `mapInArrow` that only iterates over the same batches.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow as pa

from privfit.models import LinearRegression, LogisticRegression
from privfit_papers.bench import engine_tables as tables
from privfit_papers.bench.speed import bench_ledger

BATCH_ROWS = 1 << 18
"""Rows of an Arrow batch, as in a fit."""
KEPT = 1 << 28
"""Bytes of free memory that a worker of Dask keeps, as docs/engines.md advises: by itself 64 KB, and three times as
slow."""


def as_written(path: Path, source: Path) -> None:
    """The Parquet file itself."""
    os.link(source, path)


def one_process(path: str, columns: Sequence[str]) -> None:
    """The same fit from the same file, in one process."""
    if tables.GROUP.name in columns:
        LogisticRegression(schema=tables.schema_of("logistic"), ledger=bench_ledger()).fit(path)
    else:
        schema = tables.schema_of("linear")
        LinearRegression(mechanism="functional", schema=schema, ledger=bench_ledger()).fit(path)


@cache
def _client() -> Any:
    import dask
    from distributed import Client, LocalCluster

    dask.config.set(
        {f"distributed.nanny.pre-spawn-environ.MALLOC_{what}_THRESHOLD_": KEPT for what in ("TRIM", "MMAP")}
    )
    return Client(LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0"))


def workers_cpu() -> float:
    """Seconds of the processor that Dask's workers have taken so far; Spark's are not counted."""
    return sum(_client().run(time.process_time).values()) if _client.cache_info().currsize else 0.0


def dask_frame(path: str) -> Any:
    """A partition for every row group."""
    import dask.dataframe as dd

    _client()
    return dd.read_parquet(path, split_row_groups=True)


@cache
def _session() -> Any:
    from pyspark.sql import SparkSession

    settings = {"spark.ui.enabled": "false", "spark.driver.memory": "3g", "spark.log.level": "ERROR"}
    builder = SparkSession.builder.master("local[2,4]")
    for name, value in settings.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def spark_frame(path: str) -> Any:
    """A frame that nobody has read yet: of one that was, Spark may keep something."""
    return _session().read.parquet(path)


def iterated(path: str, columns: Sequence[str]) -> None:
    """A `mapInArrow` that only counts rows."""

    def counted(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield pa.record_batch([pa.array([sum(batch.num_rows for batch in batches)])], names=["rows"])

    _session().conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", str(BATCH_ROWS))
    spark_frame(path).select(*columns).mapInArrow(counted, "rows long").collect()
