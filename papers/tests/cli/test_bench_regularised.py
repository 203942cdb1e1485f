"""`privfit bench regularised`: every method told with its spread, for people and for scripts, with or without real
data.
"""

import json

import pytest

from privfit.datasets.census import generated_census
from privfit.models import ESTIMATORS
from privfit_papers.cli import regularised
from tests.cli.conftest import Run

PUBLISHED = [f"{kind} {model}" for kind in ("printed", "DPME") for model in ("linear", "ridge", "lasso", "elastic net")]


@pytest.fixture(autouse=True)
def few_people(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(regularised, "generated_census", lambda rows, seed: generated_census(2_000, seed))


def told(result) -> list[dict]:
    assert result.exit_code == 0, result.stderr
    return json.loads(result.stdout)["regularised"]


def test_json_has_every_method_and_epsilon(run: Run, tmp_path) -> None:
    rows = told(run("bench", "regularised", "--data", tmp_path, "--runs", 2, "-e", 1, "-e", 4, "--json"))
    assert {row["epsilon"] for row in rows} == {None, 1.0, 4.0}
    methods = [row["method"] for row in rows if row["epsilon"] == 4.0]
    assert methods[-8:] == PUBLISHED
    names = {estimator.__name__ for estimator in ESTIMATORS}
    assert methods[:-8] == [
        f"privfit {name}" for name in ("LinearRegression", "Ridge", "Lasso", "ElasticNet") if name in names
    ]
    assert all(row["runs"] == 2 and row["mean"] > 0 for row in rows)


def test_a_folder_without_files_is_told_and_the_generated_table_measured(run: Run, tmp_path) -> None:
    result = run("bench", "regularised", "--data", tmp_path, "--runs", 1, "-e", 1)
    assert result.exit_code == 0, result.stderr
    assert "Some tables are not measured" in result.stderr
    assert "census-1980-men.csv.gz" in result.stderr
    for said in ("without noise", "epsilon 1", "printed elastic net", "DPME lasso", "worse than", "least squares"):
        assert said in result.stdout


def test_all_predictors_leave_out_the_histograms(run: Run, tmp_path) -> None:
    rows = told(run("bench", "regularised", "--data", tmp_path, "--runs", 1, "-e", 1, "--all", "--json"))
    assert not any(row["method"].startswith("DPME") for row in rows)
    assert any(row["method"] == "printed ridge" for row in rows)


def test_options_reach_the_printed_methods(run: Run, tmp_path) -> None:
    def errors(*options: str) -> dict[str, float]:
        rows = told(run("bench", "regularised", "--data", tmp_path, "--runs", 1, "-e", 0.5, "--json", *options))
        return {row["method"]: row["mean"] for row in rows if row["epsilon"] == 0.5}

    plain, blind, without = errors(), errors("--tuned-without-noise"), errors("--no-intercept")
    assert blind["printed linear"] == plain["printed linear"]
    assert blind["printed ridge"] > plain["printed ridge"]
    assert blind["DPME ridge"] == plain["DPME ridge"]
    assert without["printed ridge"] != plain["printed ridge"]
    assert without["DPME ridge"] != plain["DPME ridge"]
    assert without["privfit LinearRegression"] == plain["privfit LinearRegression"]


@pytest.mark.parametrize("bad", ["0", "-1"])
def test_no_runs_are_refused(run: Run, bad: str) -> None:
    result = run("bench", "regularised", "--runs", bad)
    assert result.exit_code == 2
    assert "--runs" in result.stderr
