"""`privfit bench classifiers`: every method with its spread, for people and for scripts, with or without real data and
the peer.
"""

import json
from typing import Any

import pytest

from privfit.datasets.census import generated_census
from privfit_papers.bench.classifiers import METHODS
from privfit_papers.cli import classifiers
from tests.cli.conftest import Run


@pytest.fixture(autouse=True)
def few_people(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(classifiers, "generated_census", lambda rows, seed: generated_census(min(rows, 1_500), seed))


def told(result: Any) -> list[dict]:
    assert result.exit_code == 0, result.stderr
    return json.loads(result.stdout)["classifiers"]


def test_json_has_every_method_and_epsilon(run: Run, tmp_path) -> None:
    rows = told(run("bench", "classifiers", "--data", tmp_path, "--runs", 2, "-e", 1, "-e", 4, "--no-peer", "--json"))
    assert {(row["method"], row["epsilon"]) for row in rows} == {
        *((name, epsilon) for name in METHODS for epsilon in (1.0, 4.0)),
        ("no noise", None),
        ("majority class", None),
    }
    assert all(row["runs"] == 2 and 0 < row["error"] < 1 and row["log_loss_deviation"] >= 0 for row in rows)


def test_quick_is_one_generated_table_for_people(run: Run, tmp_path) -> None:
    result = run("bench", "classifiers", "--quick", "--work", tmp_path)
    assert result.exit_code == 0, result.stderr
    for said in (
        "Wrong classes",
        "Area under the curve",
        "Log-loss",
        "2 runs",
        "0.4",
        "1.6",
        *METHODS,
        "no noise",
        "majority class",
    ):
        assert said in result.stdout
    assert "diffprivlib" not in result.stdout
    assert "diffprivlib is not installed" in result.stderr
    assert result.stdout.count("±") == 3 * 2 * (len(METHODS) + 2)


def test_missing_tables_are_told_by_name(run: Run, tmp_path) -> None:
    result = run(
        "bench", "classifiers", "--data", tmp_path, "-t", "generated", "-t", "bank", "--runs", 1, "-e", 1, "--no-peer"
    )
    assert result.exit_code == 0, result.stderr
    assert "bank is not measured" in result.stderr
    assert "bank-full.csv.gz" in result.stderr
    assert "adult" not in result.stderr
    assert "generated census" in result.stdout


def test_the_peer_is_measured_where_it_is_installed(run: Run, tmp_path, monkeypatch) -> None:
    (tmp_path / "peer").mkdir()
    (tmp_path / "peer" / "ready").touch()
    started: list[Any] = []

    class StandIn:
        def __init__(self, python: Any) -> None:
            started.append(python)

        def __enter__(self) -> "StandIn":
            return self

        def __exit__(self, *error: object) -> None:
            started.append("ended")

        def fit(self, X: Any, y: Any, **parameters: Any) -> dict[str, Any]:
            import numpy as np

            return {"coef": [0.0] * np.load(X).shape[1], "intercept": -1.0}

    monkeypatch.setattr(classifiers, "PeerClassifier", StandIn)
    rows = told(run("bench", "classifiers", "--quick", "--work", tmp_path, "--json"))
    assert started == [tmp_path / "peer" / "bin" / "python", "ended"]
    mine = [row for row in rows if row["method"].startswith("diffprivlib")]
    assert [(row["method"], row["epsilon"]) for row in mine] == [
        (name, epsilon) for epsilon in (0.4, 1.6) for name in ("diffprivlib", "diffprivlib tuned")
    ]
    majority = next(row for row in rows if row["method"] == "majority class")
    assert all(row["auc"] == 0.5 and row["error"] == majority["error"] for row in mine)


@pytest.mark.parametrize(("option", "bad"), [("--runs", "0"), ("--table", "adults")])
def test_what_means_nothing_is_refused(run: Run, option: str, bad: str) -> None:
    result = run("bench", "classifiers", option, bad)
    assert result.exit_code == 2
    assert option in result.stderr
