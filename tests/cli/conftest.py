"""A small private file, its schema, and a way to run commands in this process."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from typer.testing import CliRunner

from privfit.cli import app
from privfit.datasets.census import census_schema, generated_census, with_high_income

Run = Callable[..., Any]


@pytest.fixture
def run() -> Run:
    """Run `privfit` with these arguments; the result has exit_code, stdout and stderr apart."""

    def run(*arguments: object) -> Any:
        return CliRunner().invoke(app, [str(argument) for argument in arguments], prog_name="privfit")

    return run


@pytest.fixture(scope="session")
def people() -> pl.DataFrame:
    return generated_census(3_000, seed=1)


@pytest.fixture
def folder(tmp_path: Path, people: pl.DataFrame, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder with people.csv and linear.toml, high.parquet and logistic.toml."""
    people.write_csv(tmp_path / "people.csv")
    with_high_income(people).write_parquet(tmp_path / "high.parquet")
    census_schema("income").save(tmp_path / "linear.toml")
    census_schema("high_income").save(tmp_path / "logistic.toml")
    monkeypatch.chdir(tmp_path)
    return tmp_path
