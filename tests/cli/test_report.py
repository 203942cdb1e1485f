"""`privfit report`: formats by ending, and what is refused."""

from __future__ import annotations

import json
from hashlib import sha256
from pathlib import Path

import numpy as np
import pytest

import privfit as pf
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


def test_coefficients_that_are_not_identified_are_called_so(run: Run, folder: Path) -> None:
    rng = np.random.default_rng(0)
    x = rng.uniform(-1, 1, (2000, 2))
    x[:, 1] = np.clip(x[:, 0] + rng.normal(0, 0.02, 2000), -1, 1)
    schema = pf.Schema.box(-1, 1, target=(-1, 1))
    model = pf.LinearRegression(1.0, schema=schema, intervals=True, random_state=3)
    model.fit(x, 0.5 * x[:, 0]).save("twins.json")
    result = run("report", "twins.json", "-o", "twins.release.json")
    assert result.exit_code == 0, result.stderr
    text = Path("twins.release.json").read_text(encoding="utf-8")
    assert "Infinity" not in text
    assert text.count('"not identified"') == 4


def test_what_other_commands_printed_is_in_the_document(run: Run, folder: Path) -> None:
    assert run(*FIT).exit_code == 0
    found = run("evaluate", "model.json", "people.csv", "--epsilon", 0.5, "--json")
    Path("found.json").write_text(found.stdout, encoding="utf-8")
    result = run("report", "model.json", "--evaluation", "found.json", "--publisher", "City", "-o", "r.md", "--json")
    assert json.loads(result.stdout) == {"output": "r.md", "format": "md"}
    text = Path("r.md").read_text(encoding="utf-8")
    assert "| Released by | City |" in text
    assert "Evaluated on private rows, with epsilon 0.5" in text
    wrong = run("report", "model.json", "--audit", "found.json", "-o", "other.md")
    assert wrong.exit_code == 1
    assert "privfit audit --json" in wrong.stderr
    assert not Path("other.md").exists()
