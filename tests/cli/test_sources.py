"""Every source by its name or address on the command line: schema, fit, predict, doctor."""

from __future__ import annotations

import json
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import privfit as pf
from privfit.models import prediction_batches
from tests.cli.conftest import Run
from tests.support.servers import SECRET, fill_postgresql, postgresql


@pytest.fixture
def parts(folder: Path, people: pl.DataFrame) -> pl.DataFrame:
    """data/part-0.parquet and so on, and data.db with a table of the same people, who have numbers."""
    duckdb = pytest.importorskip("duckdb")
    numbered = people.with_row_index("patient_id").with_columns(pl.format("00{}", "patient_id").alias("code"))
    Path("data").mkdir()
    for place, start in enumerate(range(0, people.height, 1000)):
        numbered[start : start + 1000].write_parquet(f"data/part-{place}.parquet")
    with duckdb.connect("data.db") as connection:
        connection.register("given", numbered.to_arrow())
        connection.execute("create table people as select * from given")
    return numbered


@pytest.fixture
def model(parts: pl.DataFrame) -> pf.LinearRegression:
    fitted = pf.LinearRegression(2.0, schema="linear.toml", random_state=1).fit(parts)
    fitted.save("model.json")
    return fitted


SOURCES = ["data", "data/*.parquet", "duckdb:///data.db?table=people", "duckdb:///data.db?query=select * from people"]


@pytest.mark.parametrize("source", SOURCES)
def test_fit_schema_and_predict_take_every_source(
    run: Run, model: pf.LinearRegression, parts: pl.DataFrame, source: str
) -> None:
    options = ("--schema", "linear.toml", "--model", "linear", "--epsilon", 2, "--seed", 1, "-o", "other.json")
    assert run("fit", source, *options).exit_code == 0
    assert np.array_equal(pf.load_model("other.json").coef_, model.coef_)
    assert run("schema", "--check", "linear.toml", source).exit_code == 0
    assert 'name = "age"' in run("schema", source).stdout
    result = run("predict", "model.json", source, "--keep", "patient_id", "--keep", "code", "-o", "out.parquet")
    assert result.exit_code == 0, result.stderr
    written = pl.read_parquet("out.parquet")
    assert written.columns[:3] == ["patient_id", "code", "prediction"]
    np.testing.assert_allclose(written["prediction"].to_numpy(), model.predict(parts), rtol=1e-12)
    assert written["code"].to_list() == parts["code"].to_list()


def test_a_table_in_postgresql_is_fitted_and_its_password_told_nowhere(run: Run, parts: pl.DataFrame) -> None:
    address = f"{postgresql()}&table=zzcensus"
    fill_postgresql("zzcensus", parts.with_columns(pl.col("patient_id").cast(pl.Int64)).to_arrow())
    options = ("--schema", "linear.toml", "--model", "linear", "--epsilon", 1)
    result = run("fit", address, *options, "-l", "budget.db", "--ledger-epsilon", 2, "-o", "m.json")
    assert result.exit_code == 0, result.stderr
    shown = run("ledger", "budget.db").stdout
    wrong = run("fit", address.replace("zzcensus", "zzcensus2"), *options, "-o", "m2.json")
    assert wrong.exit_code == 1
    for text in (result.stdout, result.stderr, shown, wrong.stderr, Path("m.json").read_text()):
        assert SECRET not in text
        assert "zzcensus" not in text


@pytest.mark.parametrize("form", ["parquet", "csv"])
def test_a_folder_of_predictions_keeps_order_and_ids(
    run: Run, model: pf.LinearRegression, parts: pl.DataFrame, monkeypatch: pytest.MonkeyPatch, form: str
) -> None:
    monkeypatch.setattr("privfit.cli.prediction_files.FILE_ROWS", 1000)
    result = run("predict", "model.json", "data/*.parquet", "--keep", "patient_id", "-o", "out/", "--format", form)
    assert result.exit_code == 0, result.stderr
    files = sorted(Path("out").iterdir())
    assert [file.name for file in files] == [f"predictions-{i:05d}.{form}" for i in range(3)]
    read = pl.read_parquet if form == "parquet" else pl.read_csv
    written = pl.concat([read(file) for file in files])
    assert written["patient_id"].to_list() == parts["patient_id"].to_list()
    np.testing.assert_allclose(written["prediction"].to_numpy(), model.predict(parts), rtol=1e-12)


def test_ids_of_a_csv_file_are_kept_as_they_are_written(
    run: Run, model: pf.LinearRegression, parts: pl.DataFrame
) -> None:
    parts.write_csv("numbered.csv")
    lines = run("predict", "model.json", "numbered.csv", "--keep", "code").stdout.splitlines()
    assert lines[:3:2] == ["code,prediction", lines[2]]
    assert lines[1].startswith("000,")


def test_nothing_is_written_when_a_row_is_refused_half_way(
    run: Run, model: pf.LinearRegression, parts: pl.DataFrame
) -> None:
    broken = parts.with_columns(pl.when(pl.col("patient_id") == 2500).then(None).otherwise(pl.col("age")).alias("age"))
    broken[2000:].write_parquet("data/part-2.parquet")
    for output in ("out/", "out.csv", "out.parquet", None):
        result = run("predict", "model.json", "data", *(() if output is None else ("-o", output)))
        assert (result.exit_code, result.stdout) == (1, "")
        assert "'age'" in result.stderr
        assert output is None or not Path(output).exists()
    assert not list(Path().glob(".privfit*"))


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (("data", "--keep", "nobody"), "'nobody'"),
        (("data", "-o", "data/out.parquet"), "also an input"),
        (("data/*.parquet", "-o", "data/part-1.parquet"), "also an input"),
        (("duckdb:///data.db?table=people", "-o", "full/"), "has files in it"),
        (("data", "-o", "nowhere/out/"), "does not exist"),
    ],
)
def test_places_and_columns_that_make_no_sense_are_refused(
    run: Run, model: pf.LinearRegression, options: tuple[str, ...], says: str
) -> None:
    Path("full").mkdir()
    Path("full/x.parquet").write_bytes(b"")
    before = Path("data/part-1.parquet").read_bytes()
    result = run("predict", "model.json", *options)
    assert result.exit_code == 1
    assert says in result.stderr.replace("\n", " ")
    assert Path("data/part-1.parquet").read_bytes() == before


def test_a_table_without_rows_has_no_predictions(run: Run, model: pf.LinearRegression, parts: pl.DataFrame) -> None:
    parts.head(0).write_parquet("empty.parquet")
    assert run("predict", "model.json", "empty.parquet", "--keep", "code").stdout == "code,prediction\n"


def test_a_model_with_intervals_adds_their_ends(run: Run, parts: pl.DataFrame) -> None:
    model = pf.LinearRegression(2.0, schema="linear.toml", intervals=True, random_state=1).fit(parts)
    batches = list(prediction_batches(model, "data", rows=700, intervals=True))
    assert len(batches) > 3
    ends = model.predict_interval(parts)
    model.save("model.json")
    assert run("predict", "model.json", "data", "--intervals", "-o", "out.parquet").exit_code == 0
    written = pl.read_parquet("out.parquet")
    for name, expected in (("lower", ends[:, 0]), ("upper", ends[:, 1])):
        np.testing.assert_allclose(np.concatenate([batch[name] for batch in batches]), expected, rtol=1e-9)
        np.testing.assert_allclose(written[name].to_numpy(), expected, rtol=1e-5, atol=0.01)


def test_intervals_that_a_model_does_not_have_are_refused(run: Run, parts: pl.DataFrame) -> None:
    clusters = pf.KMeans(2, epsilon=1.0, schema=pf.Schema([pf.Numeric("age", 0, 99)]), random_state=1).fit(parts)
    clusters.save("clusters.json")
    result = run("predict", "clusters.json", "data", "--intervals")
    assert (result.exit_code, result.stdout) == (1, "")
    assert "asked of a KMeans that has none" in result.stderr


def test_predictions_take_little_memory_at_a_time(model: pf.LinearRegression) -> None:
    sizes = [len(batch["prediction"]) for batch in prediction_batches(model, "data", rows=256)]
    assert sum(sizes) == 3_000
    assert max(sizes) <= 512


# -- doctor ----------------------------------------------------------------------------------------


def without_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    """The check of Spark starts Java, which takes seconds: tests/tables/test_clusters.py runs it."""
    module = sys.modules["privfit.cli.doctor"]
    monkeypatch.setattr(module, "ENGINES", [one for one in module.ENGINES if one.name != "Spark frames"])


def test_doctor_reads_every_engine_that_needs_no_server(
    run: Run, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    without_spark(monkeypatch)
    result = run("doctor", "--json")
    assert result.exit_code == 0, result.stdout
    states = {one["engine"]: one["state"] for one in json.loads(result.stdout)["engines"]}
    assert states["Parquet files"] == states["scipy sparse"] == states["folders"] == "works"
    assert states["Dask frames"] == ("works" if find_spec("distributed") else "missing")
    assert states["PostgreSQL"] == ("installed" if find_spec("adbc_driver_postgresql") else "missing")
    for extra, module in (("drawings", "matplotlib"), ("privfit explore", "dash"), ("the site", "sphinx_gallery")):
        assert states[extra] == ("installed" if find_spec(module) else "missing")
    assert "works" in run("doctor").stdout


def test_doctor_says_what_to_install_and_what_fails(run: Run, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    module = sys.modules["privfit.cli.doctor"]  # the package has a function of that name

    def broken(frame: pl.DataFrame, path: Path) -> Any:
        raise OSError("SECRET77")

    engines = (
        module.Engine("nothing", {"no_such_module": "no-such-thing"}, "sql"),
        module.Engine("short", {"numpy": "numpy"}, make=lambda frame, _: frame.head(7).to_numpy()),
        module.Engine("broken", {"numpy": "numpy"}, make=broken),
    )
    monkeypatch.setattr(module, "ENGINES", engines)
    result = run("doctor", "--json")
    assert result.exit_code == 1
    nothing, short, fails = json.loads(result.stdout)["engines"]
    assert (nothing["state"], short["state"], fails["state"]) == ("missing", "fails", "fails")
    assert "pip install 'privfit[sql]'" in nothing["detail"]
    assert "other rows" in short["detail"]
    assert "SECRET77" not in result.stdout
