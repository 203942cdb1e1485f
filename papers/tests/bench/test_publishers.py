"""The comparison of publishers: tables of the paper's sizes, fits that are refused with a sentence, errors that mean
something.
"""

from __future__ import annotations

import json

import numpy as np
import polars as pl
import pytest
from typer.testing import CliRunner

import privfit as pf
from privfit.cli import app
from privfit_papers.bench.publishers import DIMENSIONS, Task, census_tasks, measured, trained


def test_attributes_are_counted_as_the_paper_counts_them() -> None:
    for task, d in zip(census_tasks(tuple(DIMENSIONS), people=100), (5, 8, 11, 14) * 2, strict=True):
        encoded = sum(2 if column.name == "marital" else 1 for column in task.schema.features)
        assert encoded + 1 == d
        assert f"d = {d}" in task.name


def test_every_method_fits_every_size() -> None:
    for task in census_tasks((5, 14), people=1500):
        found = measured(task, epsilons=(2.0,), runs=1)
        assert {one.method for one in found} >= {"privfit", "DPME", "Filter-Priority", "no privacy"}
        assert all(one.mean is not None and np.isfinite(one.mean) and not one.refused for one in found)
        errors = {one.method: one.mean for one in found}
        assert errors["no privacy"] < (0.5 if task.classifies else 1.0)


def test_a_method_that_refuses_says_why() -> None:
    rng = np.random.default_rng(0)
    frame = pl.DataFrame({f"x{i}": rng.uniform(0, 1, 60) for i in range(25)} | {"y": rng.uniform(0, 1, 60)})
    schema = pf.Schema([pf.Numeric(f"x{i}", 0, 1) for i in range(25)], target=pf.Numeric("y", 0, 1))
    found = {one.method: one for one in measured(Task("wide", frame, schema), epsilons=(1.0,), runs=1)}
    assert found["DPME"].mean is None
    assert "Use fewer columns" in found["DPME"].refused
    assert found["Filter-Priority"].mean is not None


def test_regressions_use_the_weights() -> None:
    schema = pf.Schema([pf.Numeric("x", 0, 1)], target=pf.Numeric("y", 0, 1))
    published = pl.DataFrame({"x": [0.0, 1.0, 0.0, 1.0], "y": [0.0, 1.0, 1.0, 0.0]})
    test = pl.DataFrame({"x": [0.25, 1.0]})
    np.testing.assert_allclose(trained(published, np.array([5.0, 5.0, 0.0, 0.0]), test, schema), [0.25, 1.0], atol=1e-9)
    np.testing.assert_allclose(trained(published, np.zeros(4), test, schema), 0.5)
    classes = schema.with_target(pf.Category("y", ["a", "b"]))
    letters = published.with_columns(pl.Series("y", ["a", "b", "b", "a"]))
    assert trained(letters, np.array([9.0, 0.0, 0.0, 2.0]), test, classes).tolist() == ["a", "a"]
    assert trained(letters, np.array([900.0, 900.0, 0.0, 0.0]), test, classes).tolist() == ["a", "b"]


def test_the_command_prints_json(monkeypatch) -> None:
    monkeypatch.setattr("privfit_papers.cli.publishers.FEW_PEOPLE", 600)
    result = CliRunner().invoke(app, ["bench", "publishers", "--quick", "--json"])
    assert result.exit_code == 0, result.output
    rows = json.loads(result.stdout)["publishers"]
    assert {row["table"] for row in rows} == {
        f"census, d = {d}, {target}" for d in (5, 14) for target in ("income", "high_income")
    }


@pytest.mark.parametrize("options", [["--table", "moon"]])
def test_unknown_tables_are_refused(options) -> None:
    assert CliRunner().invoke(app, ["bench", "publishers", *options]).exit_code == 2
