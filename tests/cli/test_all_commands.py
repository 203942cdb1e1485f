"""Every command, because it exists: its help, its options, its errors, its JSON, and how wide it prints."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.main import get_command

from privfit.cli import app
from tests.cli.conftest import Run

TERMINAL = 80


def all_commands() -> Iterator[tuple[tuple[str, ...], Any]]:
    """Our own commands and those in groups, with the words that call them."""
    top = get_command(app)
    for name, command in top.commands.items():  # type: ignore[attr-defined]
        yield (name,), command
        for inner, one in getattr(command, "commands", {}).items():
            yield (name, inner), one


COMMANDS = dict(all_commands())
NAMES = [" ".join(words) for words in COMMANDS]
LEAVES = {words: command for words, command in COMMANDS.items() if not hasattr(command, "commands")}


def help_of(run: Run, words: tuple[str, ...]) -> str:
    return run(*words, "--help").stdout


@pytest.fixture(autouse=True)
def narrow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", str(TERMINAL))
    monkeypatch.setenv("TERMINAL_WIDTH", str(TERMINAL))


# -- help ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("words", COMMANDS, ids=NAMES)
def test_help_has_an_example_and_fits_a_terminal(run: Run, words: tuple[str, ...]) -> None:
    shown = help_of(run, words)
    examples = shown.partition("Example")[2].partition("╭")[0].splitlines()
    calls = [line for line in examples if line.strip().startswith("privfit ")]
    assert any(line.split()[1] == words[0] for line in calls)
    assert [line for line in shown.splitlines() if len(line) > TERMINAL] == []
    written = (COMMANDS[words].help or "").partition("Example")[2].splitlines()[1:]
    assert [line for line in written if len(line) > TERMINAL - 2] == []  # longer ones would be wrapped
    said = [line for text in (COMMANDS[words].help or "").split("\n\n")[1:] for line in text.splitlines()]
    assert [line for line in said if len(line) > TERMINAL - 2] == []  # here too, with a word alone on the next line


@pytest.mark.parametrize("words", COMMANDS, ids=NAMES)
def test_examples_of_help_are_calls_that_exist(words: tuple[str, ...]) -> None:
    """Every option in an example is one of the command's."""
    written = (COMMANDS[words].help or "").partition("Example")[2].replace("\\\n", " ")
    for line in filter(lambda one: one.strip().startswith("privfit "), written.splitlines()):
        called = tuple(line.split()[1:3])
        command = COMMANDS.get(called) or COMMANDS.get(called[:1])
        assert command is not None, line
        if called[0] == "ledger" and called not in COMMANDS:
            command = COMMANDS["ledger", "show"]
        known = {flag for one in command.params for flag in (*one.opts, *one.secondary_opts)} | {"--help"}
        assert set(re.findall(r"(?<!\S)--?[a-z][\w-]*", line)) <= known, line


def test_help_has_the_exit_codes(run: Run) -> None:
    shown = " ".join(run("--help").stdout.split())
    for code in ("0 done", "1 an error", "2 a command that lacks something", "3 a budget that cannot pay"):
        assert code in shown


# -- options ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("words", LEAVES, ids=" ".join)
def test_every_command_prints_json(words: tuple[str, ...]) -> None:
    assert any("--json" in one.opts for one in LEAVES[words].params)


def test_a_flag_means_the_same_everywhere() -> None:
    """A short flag stands for one long one, and a long one has the same short flag and the same word for its value."""
    long_of, short_of, metavars = defaultdict(set), defaultdict(set), defaultdict(set)
    for command in LEAVES.values():
        for one in command.params:
            longs = [flag for flag in one.opts if flag.startswith("--")]
            shorts = [flag for flag in one.opts if flag.startswith("-") and not flag.startswith("--")]
            for flag in shorts:
                long_of[flag].update(longs)
            for flag in longs:
                short_of[flag].add(tuple(shorts))
                metavars[flag].add(one.metavar)
    assert {flag: longs for flag, longs in long_of.items() if len(longs) != 1} == {}
    assert {flag: shorts for flag, shorts in short_of.items() if len(shorts) > 1} == {}
    assert {flag: metavars[flag] for flag in ("--ledger", "--schema", "--figure", "--adjacency")} == {
        "--ledger": {"DB"},
        "--schema": {"TOML"},
        "--figure": {"FILE"},
        "--adjacency": {"KIND"},
    }


def test_whoever_spends_has_all_options_of_privacy() -> None:
    spends = [
        command
        for words, command in LEAVES.items()
        if words[0] != "ledger"
        and {"--ledger-epsilon", "--epsilon"} <= {flag for one in command.params for flag in one.opts}
    ]
    wanted = {"--ledger", "--ledger-delta", "--note", "--rows-per-person", "--adjacency", "--expected-rows", "--seed"}
    assert len(spends) >= 7
    for command in spends:
        assert wanted <= {flag for one in command.params for flag in one.opts}, command.name


# -- errors ----------------------------------------------------------------------------------------

NOWHERE = "nothing-here/nothing"
ASKED: dict[str, tuple[str, ...]] = {
    "schema": (f"{NOWHERE}.csv",),
    "bounds": (f"{NOWHERE}.csv", "income=0:1e6", "--epsilon", "0.1"),
    "describe": (f"{NOWHERE}.csv", "--schema", "linear.toml", "--epsilon", "0.1"),
    "count": (f"{NOWHERE}.csv", "age=0:120", "--among", "18:65", "-e", "0.1"),
    "mean": (f"{NOWHERE}.csv", "age=0:120", "-e", "0.1"),
    "quantile": (f"{NOWHERE}.csv", "age=0:120", "-q", "0.9", "-e", "0.1"),
    "histogram": (f"{NOWHERE}.csv", "age=0:120:12", "-e", "0.1"),
    "crosstab": (f"{NOWHERE}.csv", "age=0:120:12", "sex=f,m", "-e", "0.1"),
    "search": (f"{NOWHERE}.csv", "-s", "linear.toml", "-m", "ridge", "--grid", "alpha=1,2", "-e", "1", "-o", "m.json"),
    "select": (f"{NOWHERE}.csv", "-s", "linear.toml", "-k", "2", "-e", "0.1"),
    "itemsets": (f"{NOWHERE}.csv", "--schema", "linear.toml", "--epsilon", "0.1", "-k", "2"),
    "kaplan-meier": (f"{NOWHERE}.csv", "-s", f"{NOWHERE}.toml", "--time", "a", "--event", "b", "-e", "1"),
    "plan": (f"{NOWHERE}.toml", "--rows", "100"),
    "explore": (f"{NOWHERE}.toml",),
    "fit": (f"{NOWHERE}.csv", "-s", "linear.toml", "-m", "linear", "-e", "1", "-o", "model.json"),
    "evaluate": (f"{NOWHERE}.json", "people.csv", "-e", "1"),
    "predict": (f"{NOWHERE}.json", "people.csv", "-o", "out.csv"),
    "report": (f"{NOWHERE}.json", "-o", "out.html"),
    "publish": (f"{NOWHERE}.csv", "-s", "linear.toml", "-e", "1", "-o", "out.csv"),
    "audit": ("--schema", f"{NOWHERE}.toml"),
    "ledger show": (f"{NOWHERE}.db",),
    "ledger create": (f"{NOWHERE}.db", "--epsilon", "1"),
    "ledger grant": (f"{NOWHERE}.db", "--reader", "bob"),
    "ledger verify": (f"{NOWHERE}.db",),
    "ledger export": (f"{NOWHERE}.db",),
}
"""What a newcomer gets wrong first: a file that is not there. Commands without a file are not here."""


@pytest.mark.parametrize("words", LEAVES, ids=" ".join)
def test_a_file_that_is_not_there_is_an_error_in_three_beats(run: Run, folder: Path, words: tuple[str, ...]) -> None:
    """What was given, what is needed, what to do: on stderr, in one line; with --json on stdout too, for scripts."""
    asked = ASKED.get(" ".join(words))
    if asked is None:
        pytest.skip("it takes no file, or is not listed above")
    before = sorted(folder.rglob("*"))
    found = run(*words, *asked, "--json")
    assert found.exit_code == 1, found.output
    assert found.stderr.startswith("Error: ")
    assert found.stderr.count("\n") == 1
    sentences = re.findall(r"[.;:!?](?:\s|$)", found.stderr.removeprefix("Error: "))
    assert len(sentences) >= 2, found.stderr
    assert "nothing" in found.stderr
    message = json.loads(found.stdout)
    assert set(message) == {"error", "message"}
    assert found.stderr == f"Error: {message['message']}\n"
    assert sorted(folder.rglob("*")) == before


@pytest.mark.parametrize("words", COMMANDS, ids=NAMES)
def test_an_option_that_does_not_exist_is_a_wrong_call(run: Run, words: tuple[str, ...]) -> None:
    found = run(*words, "--no-such-option")
    assert (found.exit_code, "Traceback" in found.output) == (2, False)
    assert found.stdout == ""


# -- completion and colours ------------------------------------------------------------------------


@pytest.fixture
def completing(monkeypatch: pytest.MonkeyPatch, run: Run) -> Callable[..., str]:
    """What the command line prints where a shell asks it to complete a line, or for the script that asks."""
    monkeypatch.setenv("_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION", "1")

    def asked(instruction: str, line: str = "") -> str:
        monkeypatch.setenv("_PRIVFIT_COMPLETE", instruction)
        monkeypatch.setenv("COMP_WORDS", line)
        monkeypatch.setenv("COMP_CWORD", str(line.count(" ")))
        found = run()
        assert found.exit_code == 0, found.output
        return found.stdout

    return asked


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_can_be_shown(shell: str, completing: Callable[..., str]) -> None:
    assert "_PRIVFIT_COMPLETE" in completing(f"source_{shell}")


def test_completion_knows_commands_options_and_models(completing: Callable[..., str]) -> None:
    assert completing("complete_bash", "privfit ex").split() == ["explore"]
    assert {"linear", "lasso", "logistic"} <= set(completing("complete_bash", "privfit fit --model l").split())


@pytest.mark.parametrize(("name", "coloured"), [("NO_COLOR", False), ("FORCE_COLOR", True)])
def test_no_color_takes_colours_away(run: Run, monkeypatch: pytest.MonkeyPatch, name: str, coloured: bool) -> None:
    for key in ("NO_COLOR", "FORCE_COLOR"):
        monkeypatch.delenv(key, raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv(name, "1")
    found = run("ledger", "no-such.db")
    assert found.exit_code == 1
    assert ("\x1b[" in found.stderr) is coloured


# -- how wide it prints ----------------------------------------------------------------------------


def test_tables_fit_a_terminal(run: Run, folder: Path) -> None:
    calls = [
        "demo --rows 500 --epsilon 1",
        "ledger create budget.db --epsilon 50",
        "bounds people.csv income=0:10000000 age=0:150 --epsilon 1 --ledger budget.db",
        "describe people.csv --schema linear.toml --epsilon 1 --ledger budget.db",
        "itemsets people.csv --schema linear.toml -k 5 --epsilon 1 --ledger budget.db",
        "count people.csv age --schema linear.toml --among 18:65 --epsilon 1 --ledger budget.db",
        "quantile people.csv income=0:1e6 -q 0.5 -q 0.9 --epsilon 1 --ledger budget.db",
        "crosstab people.csv age=0:120:40,65 income=0:1e6 --epsilon 1 --ledger budget.db",
        "select people.csv --schema linear.toml -k 2 --epsilon 1 --ledger budget.db",
        "plan linear.toml --rows 500 --model linear --epsilon 1 --repetitions 1 --mechanism auto",
        "fit people.csv -s linear.toml -m linear -e 1 -l budget.db -o model.json --note a-note",
        "evaluate model.json people.csv --epsilon 1 --ledger budget.db",
        "ledger budget.db",
        "ledger verify budget.db --against model.json",
    ]
    wide: list[str] = []
    for call in calls:
        found = run(*call.split())
        assert found.exit_code == 0, found.output
        rows = [line for line in found.stdout.splitlines() if re.search(r"\S {2,}\S", line) or set("─━│┃") & set(line)]
        wide += [f"{call}: {line}" for line in rows if len(line) > TERMINAL]
    assert wide == []


def test_the_walk_finds_what_exists() -> None:
    assert {("fit",), ("explore",), ("ledger", "verify")} <= set(COMMANDS)
    assert isinstance(app, typer.Typer)
    assert {" ".join(words) for words in LEAVES} - set(ASKED) <= {"demo", "doctor"}, "name what a new command is given"
