"""`privfit predict`: the model's own predictions, in the file's order, in the format that was asked for."""

import pickle
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import privfit as pf
from tests.cli.conftest import Run


@pytest.fixture
def model(folder: Path, people: pl.DataFrame) -> pf.LinearRegression:
    fitted = pf.LinearRegression(2.0, schema="linear.toml", random_state=1).fit(people)
    fitted.save("model.json")
    return fitted


def test_csv_on_stdout(run: Run, model: pf.LinearRegression, people: pl.DataFrame) -> None:
    result = run("predict", "model.json", "people.csv")
    lines = result.stdout.splitlines()
    assert lines[0] == "prediction"
    np.testing.assert_array_equal(np.array(lines[1:], dtype=float), model.predict(people))
    assert result.stderr == ""


@pytest.mark.parametrize("name", ["out.csv", "out.parquet", "out.PQ"])
def test_files_by_their_ending(run: Run, model: pf.LinearRegression, people: pl.DataFrame, name: str) -> None:
    assert run("predict", "model.json", "people.csv", "-o", name).exit_code == 0
    written = pl.read_csv(name) if name.endswith("csv") else pl.read_parquet(name)
    np.testing.assert_array_equal(written["prediction"].to_numpy(), model.predict(people))


def test_predictions_keep_the_order_of_a_file_with_many_row_groups(
    run: Run, model: pf.LinearRegression, people: pl.DataFrame
) -> None:
    many = pl.concat([people] * 100).with_columns(age=pl.int_range(pl.len()) % 80 + 16)
    many.write_parquet("many.parquet", row_group_size=10_000)
    run("predict", "model.json", "many.parquet", "-o", "out.parquet")
    np.testing.assert_allclose(pl.read_parquet("out.parquet")["prediction"].to_numpy(), model.predict(many), rtol=1e-12)


def test_rows_without_the_target_can_be_predicted(run: Run, model: pf.LinearRegression, people: pl.DataFrame) -> None:
    people.drop("income").write_csv("unlabelled.csv")
    assert run("predict", "model.json", "unlabelled.csv").stdout == run("predict", "model.json", "people.csv").stdout


def test_an_unknown_ending_is_refused(run: Run, model: pf.LinearRegression) -> None:
    result = run("predict", "model.json", "people.csv", "-o", "out.xlsx")
    assert result.exit_code == 1
    assert not Path("out.xlsx").exists()


def test_the_table_is_not_overwritten(run: Run, model: pf.LinearRegression) -> None:
    before = Path("people.csv").read_bytes()
    assert run("predict", "model.json", "people.csv", "-o", "people.csv").exit_code == 1
    assert Path("people.csv").read_bytes() == before


def test_a_missing_column_or_file_is_named(run: Run, model: pf.LinearRegression, people: pl.DataFrame) -> None:
    people.drop("hours").write_csv("lazy.csv")
    result = run("predict", "model.json", "lazy.csv")
    assert (result.exit_code, result.stdout) == (1, "")
    assert "'hours'" in result.stderr
    assert "'nobody.csv'" in run("predict", "model.json", "nobody.csv").stderr
    assert "'nothing.json'" in run("predict", "nothing.json", "people.csv").stderr


def test_a_pickle_is_not_run(run: Run, folder: Path) -> None:
    class Trap:
        def __reduce__(self) -> tuple[object, tuple[str]]:
            return (Path.touch, (Path("sprung"),))  # type: ignore[return-value]

    Path("model.json").write_bytes(pickle.dumps(Trap()))
    result = run("predict", "model.json", "people.csv")
    assert result.exit_code == 1
    assert "not a model" in result.stderr
    assert not Path("sprung").exists()


@pytest.mark.parametrize(("column", "value"), [("age", None), ("marital", None), ("marital", "neither")])
def test_refused_rows_are_told_in_terms_of_a_model_whose_schema_is_fixed(
    run: Run, model, people: pl.DataFrame, column, value
) -> None:
    changed = people.with_columns(
        pl.when(pl.int_range(pl.len()) == 7).then(pl.lit(value)).otherwise(pl.col(column)).alias(column)
    )
    changed.write_csv("changed.csv")
    result = run("predict", "model.json", "changed.csv")
    assert result.exit_code == 1
    assert f"'{column}'" in result.stderr
    assert "Every row to predict for needs" in result.stderr
    for beside_the_point in ("charged", "fill=", "other="):
        assert beside_the_point not in result.stderr
