"""`privfit audit`: what it prints, and its exit code."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import privfit as pf
from privfit.privacy.parts import Laplace
from tests.cli.conftest import Run


def test_a_schema_is_audited(run: Run, tmp_path: Path) -> None:
    pf.Schema([pf.Numeric("age", 0, 90)], target=pf.Numeric("income", 0, 9)).save(tmp_path / "linear.toml")
    result = run("audit", "--schema", tmp_path / "linear.toml", "--model", "LinearRegression", "--json")
    assert result.exit_code == 0, result.stderr
    found = json.loads(result.stdout)
    assert not found["violated"]
    assert {line["attack"] for line in found["findings"]} == {
        "black box",
        "density",
        "replay",
        "worst rows",
        "order",
        "precision",
        "ledger",
    }


def test_a_violation_is_exit_code_1(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Laplace, "added", lambda self, sampler, values, scale: sampler.laplace(values, scale / 2))
    result = run("audit", "--model", "mean")
    assert result.exit_code == 1
    assert "violated" in result.stdout


def test_an_estimator_for_another_target_is_refused(run: Run, folder: Path) -> None:
    result = run("audit", "--schema", "linear.toml", "--model", "LogisticRegression")
    assert result.exit_code == 1
    assert "LinearRegression" in result.stderr
