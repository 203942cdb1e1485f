"""`privfit bench weights`: a table for people, JSON for scripts, and the file that it wants."""

from __future__ import annotations

import json
from pathlib import Path

from tests.cli.conftest import Run


def test_the_benchmark_prints_a_table_and_json(run: Run) -> None:
    result = run("bench", "weights", "--quick", "--svm-runs", 1)
    assert result.exit_code == 0, result.stderr
    for said in ("tilting", "paper", "objective", "SVM distance", "3 bootstraps", "Asked for directly"):
        assert said in " ".join(result.stdout.split())
    told = json.loads(run("bench", "weights", "--quick", "--svm-runs", 0, "-m", "tilting", "--json").stdout)
    assert [one["method"] for one in told["weights"]] == ["tilting"]
    assert told["direct_deviation"] > 0
    assert run("bench", "weights", "-m", "magic").exit_code == 2


def test_the_benchmark_without_its_file_says_which(run: Run, tmp_path: Path) -> None:
    result = run("bench", "weights", "--data", tmp_path)
    assert result.exit_code != 0
    assert "adult-arules-binary.npz" in result.stderr
