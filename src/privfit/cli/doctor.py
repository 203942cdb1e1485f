"""`privfit doctor`: which sources can be read here, a short check of each, and which other extras are installed."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import typer
from rich.table import Table as Lines
from scipy import sparse

from privfit.cli.console import hint, print_json, stdout
from privfit.cli.errors import FAILED
from privfit.schema import Numeric
from privfit.tables import DataError, open_table

ROWS = 100_000
"""Rows that a check reads: all checks together take a few seconds."""
COLUMN = Numeric("x", 0, 1)
LEAST_JAVA = 17
"""What Spark 4 runs on."""


@dataclass(frozen=True)
class Engine:
    """A kind of source, or a use of an extra: its distributions, and for a source how to make one for a check."""

    name: str
    needs: dict[str, str]
    """Modules, and the distributions that they come from."""
    extra: str = ""
    make: Callable[[pl.DataFrame, Path], Any] | None = None
    told: str = ""
    """What a check would need that is not here, a server; or what an extra is for."""
    machine: Callable[[], str] = str
    """What is missing of the machine, beside distributions; nothing if all is there."""


def _file(ending: str, write: Callable[[pl.DataFrame, Path], Any]) -> Callable[[pl.DataFrame, Path], Path]:
    def make(frame: pl.DataFrame, folder: Path) -> Path:
        write(frame, folder / f"people{ending}")
        return folder / f"people{ending}"

    return make


def _folder(frame: pl.DataFrame, folder: Path) -> Path:
    for part in range(2):
        within = folder / "folder" / f"part={part}"
        within.mkdir(parents=True)
        frame[part::2].write_parquet(within / "people.parquet")
    return folder / "folder"


def _dataset(frame: pl.DataFrame, folder: Path) -> Any:
    frame.write_parquet(folder / "dataset.parquet")
    return ds.dataset(folder / "dataset.parquet")


def _duckdb(frame: pl.DataFrame, folder: Path) -> str:
    import duckdb

    with duckdb.connect(str(folder / "people.db")) as connection:
        connection.register("given", frame.to_arrow())
        connection.execute("create table people as select * from given")
    return f"duckdb:///{folder / 'people.db'}?table=people"


def _fsspec(frame: pl.DataFrame, folder: Path) -> str:
    import fsspec

    address = f"memory://{folder.name}/people.parquet"
    frame.write_parquet(folder / "copy.parquet")
    with fsspec.open(address, "wb") as file:
        file.write((folder / "copy.parquet").read_bytes())
    return address


def _narwhals(frame: pl.DataFrame, folder: Path) -> Any:
    import narwhals

    return narwhals.from_native(frame)


def _dask(frame: pl.DataFrame, folder: Path) -> Any:
    """In threads of this process, as Dask works where nobody started a cluster."""
    import dask.dataframe as dd

    return dd.from_pandas(frame.to_pandas(), npartitions=2)


def _spark(frame: pl.DataFrame, folder: Path) -> Any:
    """In a session of this process, which ends with it, and whose settings ask for little."""
    from pyspark.sql import SparkSession

    small = {
        "spark.ui.enabled": "false",
        "spark.log.level": "OFF",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # of pandas, which the user did not choose for Spark
        builder = SparkSession.builder.master("local[2]").appName("privfit doctor")
        for name, value in small.items():
            builder = builder.config(name, value)
        return builder.getOrCreate().createDataFrame(frame.to_arrow())


def _java() -> str:
    """What is missing of the Java that Spark runs on; nothing if it is there."""
    home = os.environ.get("JAVA_HOME")
    found = shutil.which("java") if home is None else shutil.which("java", path=f"{home}/bin")
    if found is None:
        return "Java: apt-get install default-jre-headless"
    told = subprocess.run([found, "-version"], capture_output=True, text=True, check=False).stderr
    number = told.partition('"')[2].partition('"')[0].partition(".")[0]
    return "" if number.isdigit() and int(number) >= LEAST_JAVA else f"Java {LEAST_JAVA} or newer"


ENGINES = (
    Engine("numpy arrays", {"numpy": "numpy"}, make=lambda frame, _: frame.to_numpy()),
    Engine("scipy sparse", {"scipy": "scipy"}, make=lambda frame, _: sparse.csc_array(frame.to_numpy())),
    Engine("pandas frames", {"pandas": "pandas"}, "pandas", make=lambda frame, _: frame.to_pandas()),
    Engine("polars frames", {"polars": "polars"}, make=lambda frame, _: frame.lazy()),
    Engine("Arrow tables", {"pyarrow": "pyarrow"}, make=lambda frame, _: frame.to_arrow()),
    Engine("pyarrow datasets", {"pyarrow": "pyarrow"}, make=_dataset),
    Engine("narwhals frames", {"narwhals": "narwhals"}, make=_narwhals),
    Engine("Parquet files", {"polars": "polars"}, make=_file(".parquet", pl.DataFrame.write_parquet)),
    Engine("CSV files", {"polars": "polars"}, make=_file(".csv", pl.DataFrame.write_csv)),
    Engine("Arrow files", {"pyarrow": "pyarrow"}, make=_file(".arrow", pl.DataFrame.write_ipc)),
    Engine("folders", {"polars": "polars"}, make=_folder),
    Engine("DuckDB", {"duckdb": "duckdb"}, "duckdb", make=_duckdb),
    Engine(
        "PostgreSQL",
        {"adbc_driver_postgresql": "adbc-driver-postgresql", "adbc_driver_manager": "adbc-driver-manager"},
        "sql",
        told="needs a server",
    ),
    Engine("Dask frames", {"dask": "dask", "distributed": "distributed"}, "dask", make=_dask),
    Engine("Spark frames", {"pyspark": "pyspark"}, "spark", make=_spark, machine=_java),
    Engine("ledgers in PostgreSQL", {"psycopg": "psycopg"}, "postgres", told="needs a server"),
    Engine("s3://, gs://, az://", {"pyarrow": "pyarrow"}, told="needs a store"),
    Engine("https://", {"fsspec": "fsspec", "aiohttp": "aiohttp"}, "objects", told="needs a server"),
    Engine("fsspec addresses", {"fsspec": "fsspec"}, "objects", make=_fsspec),
    Engine("drawings", {"matplotlib": "matplotlib"}, "plots", told="for .plot() and --figure"),
    Engine("privfit explore", {"dash": "dash"}, "explore", told="a page on this machine"),
    Engine(
        "the site",
        {
            "sphinx": "sphinx",
            "pydata_sphinx_theme": "pydata-sphinx-theme",
            "myst_parser": "myst-parser",
            "numpydoc": "numpydoc",
            "sphinx_gallery": "sphinx-gallery",
            "sphinx_design": "sphinx-design",
            "sphinx_copybutton": "sphinx-copybutton",
            "matplotlib": "matplotlib",
        },
        "docs",
        told="for make docs",
    ),
)
"""Sources, and what the other extras are for."""


@dataclass(frozen=True)
class Finding:
    """What is known of an engine here."""

    engine: str
    state: str
    """works, installed, missing or fails."""
    detail: str


def doctor(as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False) -> None:
    """Say which sources can be read here, and check each; and which other extras are here.

    Every check makes a small table, reads it and compares sums. Sources that
    need a server are looked up and not tried. Exit code 1 means that something
    is installed and does not work.

    \b
    Examples:
      privfit doctor
      privfit doctor --json
    """
    findings = [examined(engine) for engine in ENGINES]
    if as_json:
        print_json({"engines": [finding.__dict__ for finding in findings]})
    else:
        lines = Lines("for", "state", "detail")
        for finding in findings:
            lines.add_row(finding.engine, finding.state, finding.detail)
        stdout().print(lines)
        if any(finding.state == "missing" for finding in findings):
            hint("What is missing is needed only for its own line.")
    if any(finding.state == "fails" for finding in findings):
        raise typer.Exit(FAILED)


def examined(engine: Engine) -> Finding:
    """Whether an engine is installed, and whether it reads what was written."""
    missing = [name for module, name in engine.needs.items() if find_spec(module) is None]
    if missing:
        cure = f"privfit[{engine.extra}]" if engine.extra else " ".join(missing)
        return Finding(engine.name, "missing", f"{', '.join(missing)}: pip install '{cure}'")
    if told := engine.machine():
        return Finding(engine.name, "missing", told)
    versions = ", ".join(f"{name} {_version(name)}" for name in engine.needs.values())
    if engine.make is None:
        return Finding(engine.name, "installed", f"{versions}; {engine.told}")
    return _checked(engine.name, engine.make, versions)


def _checked(name: str, make: Callable[[pl.DataFrame, Path], Any], versions: str) -> Finding:
    frame = pl.DataFrame({"x": np.arange(ROWS) / ROWS})
    try:
        with tempfile.TemporaryDirectory(prefix="privfit-doctor-") as folder:
            source = make(frame, Path(folder))
            start = time.perf_counter()
            right = _sum(source) == (ROWS, ROWS * (ROWS - 1) // 2)
            took = time.perf_counter() - start
    except (DataError, ImportError, OSError, ValueError, pa.ArrowException) as error:
        return Finding(name, "fails", f"{versions}; {type(error).__name__}")
    if not right:
        return Finding(name, "fails", f"{versions}; other rows were read than were written")
    return Finding(name, "works", f"{versions}; {ROWS / took / 1e6:.2g} million rows a second")


def _sum(source: Any) -> tuple[int, int]:
    """The number of rows, and the sum of their column in steps of one over the number of rows: exact."""
    table = open_table(source)
    rows = total = 0
    for batch in table.batches([COLUMN], table.positions([COLUMN]), 1 << 14):
        rows += len(batch[0])
        total += int(np.rint(batch[0] * ROWS).astype(np.int64).sum())
    return rows, total


def _version(distribution: str) -> str:
    try:
        return version(distribution)
    except PackageNotFoundError:
        return "of unknown version"
