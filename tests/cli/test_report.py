"""`privfit report`: formats by ending, and what is refused."""

from __future__ import annotations

import json
from hashlib import sha256
from pathlib import Path

import pytest

from tests.cli.conftest import Run

FIT = ("fit", "people.csv", "--schema", "linear.toml", "--model", "linear", "--epsilon", 0.5, "-o", "model.json")


@pytest.mark.parametrize("ending", ["html", "md", "json", "yaml"])
def test_the_ending_chooses_the_format(run: Run, folder: Path, ending: str) -> None:
    assert run(*FIT, "--ledger", "people.db", "--ledger-epsilon", 1).exit_code == 0
    result = run("report", "model.json", "--ledger", "people.db", "-o", f"release.{ending}")
    assert result.exit_code == 0, result.stderr
    text = Path(f"release.{ending}").read_text(encoding="utf-8")
    assert "people.csv" not in text
    if ending != "yaml":
        assert sha256(Path("model.json").read_bytes()).hexdigest() in text
    if ending == "json":
        assert json.loads(text)["ledger"]["spent"] == [0.5, 0.0]


def test_another_ending_and_an_input_are_refused(run: Run, folder: Path) -> None:
    assert run(*FIT).exit_code == 0
    before = Path("model.json").read_bytes()
    assert run("report", "model.json", "-o", "release.pdf").exit_code == 1
    assert run("report", "model.json", "-o", "model.json").exit_code == 1
    assert Path("model.json").read_bytes() == before
