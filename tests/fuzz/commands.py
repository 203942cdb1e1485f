"""Command lines: every command with options that exist, values that may not, and files of every kind."""

from __future__ import annotations

import functools
import os
import shutil
import tempfile
import warnings
from contextlib import chdir
from pathlib import Path
from typing import Any

import click
import polars as pl
import typer
from typer.testing import CliRunner

import privfit as pf
from privfit.cli import app
from tests.fuzz.rules import MARKED_NUMBER, MARKED_TEXT, check_hidden
from tests.fuzz.source import Source

LONG = ("audit", "demo", "doctor", "plan")
"""Commands that take minutes, or look for other programs: only what they refuse is tried."""
FILES = (
    "people.csv", "people.parquet", "public.csv", "s.toml", "model.json", "budget.db", "odd.csv", "odd.parquet",
    "none.csv", "folder", "s.json", "empty.csv", "new.json", "new.db", "new.toml", "new.csv", ".", "http://127.0.0.1:1/x",
    "postgresql://127.0.0.1:1/x?table=t", "postgresql://127.0.0.1:1/x?ledger=l", "s3://none/x.parquet", "duckdb:x",
)  # fmt: skip
VALUES = (
    "0.1", "1", "0", "-1", "nan", "inf", "1e999", "1e-300", "a", "y", "t", "n", "n=0:1", "n=1:0", "t=x,y", "linear",
    "logistic", "additive", "naive-bayes", "pca", "kmeans", "bins", "auto", "add-remove", "replace-one", "json", "text",
    "0.5", "2", "10", "1000000000", "", "--", "-", "n,t", "[red]x", "\x1b[31m", "é", "a" * 400, "%s", "{0}", "balanced",
)  # fmt: skip
STARTS: tuple[tuple[str, ...], ...] = (
    ("fit", "people.csv", "--schema", "s.toml", "--model", "logistic", "--epsilon", "0.1", "--ledger", "budget.db"),
    ("fit", "people.parquet", "-s", "s.toml", "-m", "naive-bayes", "-e", "0.1", "-l", "budget.db", "-o", "new.json"),
    ("predict", "model.json", "people.csv"),
    ("schema", "people.csv"),
    ("schema", "--check", "s.toml", "people.csv"),
    ("bounds", "people.csv", "n=0:100", "--epsilon", "0.1", "--ledger", "budget.db"),
    ("describe", "people.csv", "--schema", "s.toml", "--epsilon", "0.1", "--ledger", "budget.db"),
    ("count", "people.csv", "n=0:100", "--among", "3:20", "--epsilon", "0.1", "--ledger", "budget.db"),
    ("mean", "people.parquet", "n", "-s", "s.toml", "--epsilon", "0.1", "--ledger", "budget.db"),
    ("quantile", "people.csv", "n=0:30", "-q", "0.5", "--epsilon", "0.1", "--ledger", "budget.db"),
    ("histogram", "people.csv", "t=x,y,other", "--epsilon", "0.1", "--ledger", "budget.db"),
    ("crosstab", "people.csv", "n", "t", "--schema", "s.toml", "--epsilon", "0.1", "--ledger", "budget.db"),
    ("select", "people.csv", "--schema", "s.toml", "-k", "1", "--epsilon", "0.1", "--ledger", "budget.db"),
    ("evaluate", "model.json", "people.csv", "--epsilon", "0.1", "--ledger", "budget.db"),
    ("report", "model.json"),
    ("ledger", "budget.db"),
    ("ledger", "verify", "budget.db", "--against", "model.json"),
    ("ledger", "export", "budget.db"),
    ("ledger", "create", "new.db", "--epsilon", "1"),
    ("itemsets", "people.csv", "--epsilon", "0.1", "--ledger", "budget.db"),
    ("kaplan-meier", "people.csv", "--epsilon", "0.1", "--ledger", "budget.db"),
    ("publish", "public.csv", "people.csv", "--schema", "s.toml", "--epsilon", "0.1", "--ledger", "budget.db"),
)


def run(content: bytes) -> None:
    """Run a command; what it prints besides its result holds no cell, and what fails is not charged."""
    source = Source(content)
    with tempfile.TemporaryDirectory(prefix="privfit-fuzz-") as folder:
        shutil.copytree(originals(), folder, dirs_exist_ok=True)
        with chdir(folder):
            if source.flag(3):
                _damage(source)
            arguments = line(source)
            before = _spent()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                result = CliRunner().invoke(app, arguments, prog_name="privfit")
            if result.exception is not None and not isinstance(result.exception, SystemExit):
                raise result.exception
            assert result.exit_code in (0, 1, 2, 3), result.exit_code
            assert "Traceback" not in result.stdout + result.stderr
            check_hidden(result.stderr)
            if result.exit_code:
                check_hidden(result.stdout)
                assert _spent() == before, (arguments, result.stderr)


def line(source: Source) -> list[str]:
    """Arguments: a line that works, with some changed, added and left out, or anything."""
    if source.flag(4):
        known = sorted(commands())
        name = source.pick(known)
        arguments = [*name.split(), *(_value(source, name) for _ in range(source.whole(0, 6)))]
    else:
        arguments = list(source.pick(STARTS))
        name = " ".join(arguments[: 1 + (" ".join(arguments[:2]) in commands())])
        for _ in range(source.whole(0, 4)):
            place = source.whole(1, len(arguments))
            kind = source.whole(0, 2)
            if kind == 0:
                arguments[place:place] = [_value(source, name), _value(source, name)][: source.whole(1, 2)]
            elif kind == 1 and place < len(arguments):
                arguments[place] = _value(source, name)
            else:
                del arguments[place : place + source.whole(1, 2)]
    return [*arguments, "--help"] if name in LONG else arguments


def _value(source: Source, name: str) -> str:
    kind = source.whole(0, 7)
    if kind < 3 and commands()[name]:
        return source.pick(commands()[name])
    if kind < 5:
        return source.pick(FILES)
    return source.pick(VALUES) if kind < 7 else source.text().replace("\0", "").replace("/", "")


@functools.cache
def commands() -> dict[str, list[str]]:
    """The options of every command, and of every command of a group."""
    found: dict[str, list[str]] = {}

    def add(name: str, command: click.Command) -> None:
        inner: dict[str, click.Command] = getattr(command, "commands", {})
        found[name] = sorted(option for one in command.params for option in one.opts if option.startswith("-"))
        for own, one in inner.items():
            add(f"{name} {own}".strip(), one)

    for own, command in typer.main.get_command(app).commands.items():  # type: ignore[attr-defined]
        add(own, command)
    return found


def _spent() -> Any:
    try:
        return pf.Ledger("budget.db").spent
    except pf.LedgerError:
        return None


def _damage(source: Source) -> None:
    path = Path(source.pick(("people.csv", "people.parquet", "s.toml", "model.json", "public.csv")))
    content = bytearray(path.read_bytes())
    for _ in range(source.whole(1, 5)):
        content[source.whole(0, len(content) - 1)] = source.whole(0, 255)
    path.write_bytes(content)


@functools.cache
def originals() -> Path:
    """A folder with a small private table, and all that commands make of it."""
    kept = tempfile.TemporaryDirectory(prefix="privfit-fuzz-", ignore_cleanup_errors=True)
    _kept.append(kept)
    folder = Path(kept.name)
    numbers = [float(place) for place in range(28)] + [MARKED_NUMBER] * 2
    texts = ["x", "y"] * 14 + [MARKED_TEXT] * 2
    people = pl.DataFrame({"n": numbers, "t": texts, "y": ["no", "yes"] * 15})
    people.write_csv(folder / "people.csv")
    people.write_parquet(folder / "people.parquet")
    people.head(20).write_csv(folder / "public.csv")
    people.with_columns(y=pl.lit(None), z=pl.lit(MARKED_TEXT)).write_csv(folder / "odd.csv")
    pl.DataFrame({"n": [[1.0], [MARKED_NUMBER]]}).write_parquet(folder / "odd.parquet")
    (folder / "empty.csv").write_bytes(b"")
    (folder / "folder").mkdir()
    schema = pf.Schema(
        [pf.Numeric("n", 0, 30), pf.Category("t", ["x", "y"], other=True)], target=pf.Category("y", ["no", "yes"])
    )
    schema.save(folder / "s.toml")
    ledger = pf.Ledger(folder / "budget.db", epsilon=1.0)
    pf.LogisticRegression(0.25, schema=schema, ledger=ledger).fit(people).save(folder / "model.json")
    shutil.copy(folder / "s.toml", folder / "s.json")
    os.environ.setdefault("COLUMNS", "200")
    return folder


_kept: list[tempfile.TemporaryDirectory[str]] = []
