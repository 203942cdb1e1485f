"""A Dask cluster and a Spark session on this machine, started when a test first needs them, one a process."""

from __future__ import annotations

import atexit
import os
import shutil
import subprocess
import sys
import tempfile
from functools import cache
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest

LEAST_JAVA = 17
PARTS = 3
"""Partitions of a frame of Dask; Spark makes as many as it has cores."""


@cache
def dask_client() -> Any:
    """A client of two workers, each a process with one thread."""
    distributed = pytest.importorskip("distributed", reason="Dask is not installed (pip install 'privfit[dask]')")
    folder = tempfile.mkdtemp(prefix="privfit-dask-")
    cluster = distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, dashboard_address=":0", local_directory=folder, silence_logs=True
    )
    client = distributed.Client(cluster)

    def stop() -> None:
        client.close()
        cluster.close()
        shutil.rmtree(folder, ignore_errors=True)

    atexit.register(stop)
    return client


def dask_frame(table: pa.Table, parts: int = PARTS) -> Any:
    """The table as a frame of Dask, in several partitions."""
    dask_client()
    import dask.dataframe as dd

    return dd.from_pandas(table.to_pandas(types_mapper=pd.ArrowDtype), npartitions=parts)


def skip_without_java() -> None:
    """Skip a test where there is no Java that Spark runs on."""
    if shutil.which("java") is None:
        pytest.skip("no Java is installed (Debian: apt-get install default-jre-headless)")
    told = subprocess.run(["java", "-version"], capture_output=True, text=True, check=False).stderr
    number = told.partition('"')[2].partition(".")[0].partition('"')[0]
    if not number.isdigit() or int(number) < LEAST_JAVA:
        pytest.skip(f"Java {number or 'of unknown version'} is installed, and Spark needs {LEAST_JAVA} or newer")


@cache
def spark_session() -> Any:
    """A session of Spark with two cores, which tries a failed task up to four times."""
    pytest.importorskip("pyspark", reason="Spark is not installed (pip install 'privfit[spark]')")
    skip_without_java()
    from pyspark.sql import SparkSession

    folder = tempfile.mkdtemp(prefix="privfit-spark-")
    os.environ["PYSPARK_PYTHON"] = sys.executable
    settings = {
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": "2",
        "spark.local.dir": folder,
        "spark.sql.warehouse.dir": f"{folder}/warehouse",
        "spark.driver.memory": "1g",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
        "spark.log.level": "ERROR",
    }
    builder = SparkSession.builder.master("local[2,4]").appName("privfit tests")
    for name, value in settings.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()

    def stop() -> None:
        session.stop()
        shutil.rmtree(folder, ignore_errors=True)

    atexit.register(stop)
    return session


def spark_frame(table: pa.Table) -> Any:
    """The table as a frame of Spark, in two partitions."""
    return spark_session().createDataFrame(table)
