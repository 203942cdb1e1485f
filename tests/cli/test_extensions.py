"""Commands of other distributions: found by entry points, never in the way of privfit's own, and missed in words."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from importlib.metadata import EntryPoints
from pathlib import Path

import pytest

from privfit.cli import extensions
from tests.cli.conftest import Run
from tests.support.beats import assert_told_in_order

Install = Callable[..., None]

GREETING = """
import typer
app = typer.Typer(add_completion=False)
@app.command()
def greet(name: str) -> None:
    '''Say hello.'''
    print(f"Hello {name}")
"""
GROUP = (
    GREETING
    + """
@app.command()
def part(name: str) -> None:
    '''Say goodbye.'''
    print(f"Goodbye {name}")
"""
)


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Install:
    """Install a distribution "others" that has one module and declares commands."""

    def install(source: str | None, *commands: str, name: str = "app") -> None:
        details = tmp_path / "others-1.0.dist-info"
        details.mkdir()
        (details / "METADATA").write_text("Metadata-Version: 2.1\nName: others\nVersion: 1.0\n")
        points = "".join(f"{command} = others_commands:{name}\n" for command in commands)
        (details / "entry_points.txt").write_text(f"[{extensions.GROUP}]\n{points}")
        if source is not None:
            (tmp_path / "others_commands.py").write_text(source)
        monkeypatch.syspath_prepend(tmp_path)
        monkeypatch.delitem(sys.modules, "others_commands", raising=False)

    return install


@pytest.fixture
def alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """privfit, with no other distribution that adds commands."""
    monkeypatch.setattr(extensions, "entry_points", lambda **asked: EntryPoints(()))


@pytest.mark.usefixtures("alone")
@pytest.mark.parametrize("command", ["reproduce", "bench"])
@pytest.mark.parametrize("more", [(), ("--help",), ("all", "--quick"), ("accuracy", "--splits", 2)])
def test_without_privfit_papers_its_commands_say_how_to_get_them(run: Run, command: str, more: tuple) -> None:
    result = run(command, *more)
    assert (result.exit_code, result.stdout, result.stderr.count("\n")) == (1, "", 1)
    assert_told_in_order(
        result.stderr,
        [f"'{command}' was given", "needs privfit-papers", "not on any package index", "pip install ./papers"],
    )


@pytest.mark.usefixtures("alone")
def test_scripts_are_told_the_same_as_json(run: Run) -> None:
    result = run("bench", "accuracy", "--json")
    assert result.exit_code == 1
    assert "pip install ./papers" in json.loads(result.stdout)["message"]


@pytest.mark.usefixtures("alone")
def test_what_nobody_has_is_an_unknown_command_and_help_lists_our_own_alone(run: Run) -> None:
    result = run("nonsense")
    assert result.exit_code == 2
    assert "No such command 'nonsense'" in result.stderr
    shown = run("--help").stdout
    assert "demo" in shown
    assert "reproduce" not in shown


def test_a_single_command_is_found_listed_and_run(run: Run, install: Install) -> None:
    install(GREETING, "hello")
    assert run("hello", "Ann").stdout == "Hello Ann\n"
    assert "Say hello." in run("--help").stdout
    assert "privfit hello" in run("hello", "-h").stdout


def test_several_commands_are_a_group(run: Run, install: Install) -> None:
    install(GROUP, "hello")
    assert run("hello", "part", "Ann").stdout == "Goodbye Ann\n"
    assert "Say goodbye." in run("hello", "--help").stdout


def test_a_command_of_our_own_is_not_replaced(run: Run, install: Install) -> None:
    install("raise SystemExit('loaded')", "fit", "ledger")
    assert "Fit a private model" in run("fit", "--help").stdout
    assert run("--help").stdout.count("Fit a private model") == 1


@pytest.mark.parametrize(
    ("source", "name", "reason"),
    [
        (None, "app", "ModuleNotFoundError: No module named 'others_commands'"),
        ("import nothing_of_that_name", "app", "ModuleNotFoundError: No module named 'nothing_of_that_name'"),
        ("raise OSError('a\\n\\x1b[31mb')", "app", "OSError: a \\x1b[31mb"),
        ("this is no Python", "app", "SyntaxError"),
        ("", "app", "AttributeError"),
        ("app = 3", "app", "TypeError: others_commands:app is of type int"),
        ("import typer\napp = typer.Typer()", "app", "RuntimeError"),
    ],
)
def test_a_command_that_cannot_be_loaded_says_why_and_leaves_the_others_alone(
    run: Run, install: Install, source: str | None, name: str, reason: str
) -> None:
    install(source, "hello", name=name)
    result = run("hello", "Ann", "--loud")
    assert (result.exit_code, result.stdout, result.stderr.count("\n")) == (1, "", 1)
    assert_told_in_order(
        result.stderr, ["'hello' of others was given", "cannot be loaded", reason, "It needs", "Install others again"]
    )
    assert result.exception is None or isinstance(result.exception, SystemExit)
    shown = run("--help")
    assert shown.exit_code == 0
    assert "Cannot be loaded" in shown.stdout
    assert run("fit", "--help").exit_code == 0
    assert run("--version").exit_code == 0


def test_our_own_commands_load_nothing_of_others(run: Run, install: Install) -> None:
    install("raise AssertionError('loaded')", "hello")
    assert run("schema", "--help").exit_code == 0
    assert "others_commands" not in sys.modules
