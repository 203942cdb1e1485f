"""The command line as its own process: `python -m privfit`, its exit codes, and where it prints."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

import privfit as pf
from privfit.version import VERSION


def privfit(*arguments: object, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "privfit", *map(str, arguments)]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=120, check=False)


def test_version() -> None:
    result = privfit("--version")
    assert (result.returncode, result.stdout) == (0, f"privfit {VERSION}\n")


def test_help_names_every_command_and_the_first_steps() -> None:
    result = privfit("--help")
    assert result.returncode == 0
    for word in ("demo", "schema", "fit", "predict", "ledger", "privfit schema people.csv --target income -o schema.toml"):
        assert word in result.stdout


def test_fit_predict_and_overdraft(folder: Path) -> None:
    options = ("fit", "people.csv", "-s", "linear.toml", "-m", "linear", "-e", 0.6, "-l", "budget.db", "--ledger-epsilon", 1)
    fitted = privfit(*options, "-o", "model.json", "--json", cwd=folder)
    assert fitted.returncode == 0, fitted.stderr
    assert json.loads(fitted.stdout)["ledger"]["remaining"]["epsilon"] == 0.4
    predicted = privfit("predict", "model.json", "people.csv", cwd=folder)
    assert (predicted.returncode, predicted.stderr) == (0, "")
    assert len(predicted.stdout.splitlines()) == 3_001
    refused = privfit(*options, "-o", "second.json", cwd=folder)
    assert refused.returncode == 3
    assert refused.stdout == ""
    assert "Traceback" not in refused.stderr
    assert not (folder / "second.json").exists()


def test_an_error_is_one_line_on_stderr(folder: Path) -> None:
    result = privfit("predict", "nothing.json", "people.csv", cwd=folder)
    assert (result.returncode, result.stdout, result.stderr.count("\n")) == (1, "", 1)


@pytest.mark.parametrize("form", ["table", "csv", "json"])
@pytest.mark.parametrize("encoding", ["ascii", "cp1252"])
def test_a_note_is_shown_where_stdout_is_not_utf_8(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, encoding: str, form: str) -> None:
    note = "Größe 数 𝒳"
    pf.Ledger(tmp_path / "büdget数.db", epsilon=1.0).charge(0.1, note=note)
    monkeypatch.setenv("PYTHONIOENCODING", encoding)
    for command in (("show", "büdget数.db", "--format", form), ("export", "büdget数.db", "-o", "spent.csv"), ("verify", "büdget数.db")):
        result = subprocess.run([sys.executable, "-m", "privfit", "ledger", *command], cwd=tmp_path, capture_output=True, check=False)
        assert (result.returncode, b"Traceback" in result.stderr) == (0, False), result.stderr
        if "show" in command:
            text = result.stdout.decode(encoding)
    assert (json.loads(text)["entries"][0]["note"] == note) if form == "json" else ("6570" in text and "U0001d4b3" in text)
    assert note in (tmp_path / "spent.csv").read_text(encoding="utf-8")
