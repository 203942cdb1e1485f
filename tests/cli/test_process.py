"""The command line as its own process: `python -m privfit`, its exit codes, and where it prints."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

import privfit as pf
from privfit.version import VERSION
from tests.cli.conftest import Run


def privfit(*arguments: object, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "privfit", *map(str, arguments)]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=120, check=False)


def test_version() -> None:
    result = privfit("--version")
    assert (result.returncode, result.stdout) == (0, f"privfit {VERSION}\n")


def test_help_names_every_command_and_the_first_steps(run: Run) -> None:
    result = run("--help")
    assert result.exit_code == 0
    for word in (
        "demo",
        "schema",
        "fit",
        "predict",
        "ledger",
        "privfit schema people.csv --target income -o schema.toml",
    ):
        assert word in result.stdout


def test_who_has_read_enough_of_what_is_printed_gets_no_error(folder: Path) -> None:
    schema = str(folder / "linear.toml")
    pf.LinearRegression(2.0, schema=schema, random_state=1).fit(folder / "people.csv").save(folder / "model.json")
    command = [sys.executable, "-m", "privfit", "predict", "model.json", "people.csv"]
    with subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == ""
    assert process.returncode == 1


def test_fit_predict_and_overdraft(folder: Path, run: Run) -> None:
    options = (
        "fit",
        "people.csv",
        "-s",
        "linear.toml",
        "-m",
        "linear",
        "-e",
        0.6,
        "-l",
        "budget.db",
        "--ledger-epsilon",
        1,
    )
    fitted = privfit(*options, "-o", "model.json", "--json", cwd=folder)
    assert fitted.returncode == 0, fitted.stderr
    assert json.loads(fitted.stdout)["ledger"]["remaining"]["epsilon"] == 0.4
    predicted = run("predict", "model.json", "people.csv")
    assert (predicted.exit_code, predicted.stderr) == (0, "")
    assert len(predicted.stdout.splitlines()) == 3_001
    refused = privfit(*options, "-o", "second.json", cwd=folder)
    assert refused.returncode == 3
    assert refused.stdout == ""
    assert "Traceback" not in refused.stderr
    assert not (folder / "second.json").exists()


def test_an_error_is_one_line_on_stderr(folder: Path) -> None:
    result = privfit("predict", "nothing.json", "people.csv", cwd=folder)
    assert (result.returncode, result.stdout, result.stderr.count("\n")) == (1, "", 1)


IN_TURN = """
import runpy, sys
for command in ARGUMENTS:
    sys.argv = ["privfit", *command]
    try:
        runpy.run_module("privfit", run_name="__main__")
    except SystemExit as end:
        sys.stdout.flush()
        sys.stdout.buffer.write(b"\\x00%d\\x00" % (end.code or 0))
"""
"""Commands one after the other, each as `python -m privfit` runs it: a process takes seconds to start."""


@pytest.mark.parametrize("encoding", ["ascii", "cp1252"])
def test_a_note_is_shown_where_stdout_is_not_utf_8(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, encoding: str
) -> None:
    note, ledger = "Größe 数 𝒳", "büdget数.db"
    pf.Ledger(tmp_path / ledger, epsilon=1.0).charge(0.1, note=note)
    monkeypatch.setenv("PYTHONIOENCODING", encoding)
    commands = [["ledger", "show", ledger, "--format", form] for form in ("table", "csv", "json")]
    commands += [["ledger", "export", ledger, "-o", "spent.csv"], ["ledger", "verify", ledger]]
    script = IN_TURN.replace("ARGUMENTS", ascii(commands))
    result = subprocess.run([sys.executable, "-c", script], cwd=tmp_path, capture_output=True, check=False)
    assert (result.returncode, b"Traceback" in result.stderr) == (0, False), result.stderr
    *told, end = result.stdout.split(b"\x00")
    texts, codes = [text.decode(encoding) for text in told[::2]], told[1::2]
    assert (codes, end) == ([b"0"] * 5, b"")
    assert json.loads(texts[2])["entries"][0]["note"] == note
    assert all("6570" in text and "U0001d4b3" in text for text in texts[:2])
    assert note in (tmp_path / "spent.csv").read_text(encoding="utf-8")
