"""What all commands print alike: results on stdout, everything else on stderr, JSON for scripts."""

from __future__ import annotations

import json
import math
import re
import sys
import textwrap
import unicodedata
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Protocol

import typer
from rich.console import Console
from rich.progress import (
    Progress,
    ProgressColumn,
    SpinnerColumn,
    Task,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.text import Text

from privfit.cli.options import shown_source
from privfit.models import Report
from privfit.privacy import Ledger
from privfit.rows import on_progress

_UNSEEN = ("Cc", "Cf", "Cs", "Zl", "Zp")  # controls, formats (also bidi overrides), surrogates, ends of lines
_JOINERS = "\u200c\u200d"  # formats that words and emoji are written with
_REPORT_LINE = re.compile(r"  (\S.*?)?  +(?=\S)")


def stdout() -> Console:
    """Where results go."""
    return Console(highlight=False)


def stderr() -> Console:
    """Where progress, hints and errors go."""
    return Console(stderr=True, highlight=False)


def hint(text: str) -> None:
    """A line for the person at the terminal that is not part of the result."""
    stderr().print(text, style="dim", markup=False, soft_wrap=True)


def print_json(value: dict[str, Any]) -> None:
    """A result for a script, on stdout."""
    typer.echo(json_text(value))


def json_text(value: dict[str, Any]) -> str:
    """JSON as people read it; in ASCII alone, which says the same, where a character could not be shown."""
    text = json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False)
    characters = text.replace("\n", "")
    return text if encodable(visible(characters)) == characters else json.dumps(value, indent=2, allow_nan=False)


def visible(text: str) -> str:
    """A text of others, with characters that a terminal obeys instead of showing them written as \\x1b or \\u202e."""
    return "".join(
        character.encode("unicode_escape").decode()
        if unicodedata.category(character) in _UNSEEN and character not in _JOINERS
        else character
        for character in text
    )


def encodable(text: str) -> str:
    """A text for stdout, with characters that its encoding does not have written as \\xe9."""
    encoding = sys.stdout.encoding or "utf-8"
    return text.encode(encoding, "backslashreplace").decode(encoding)


@contextmanager
def counting_rows(what: str, total: int | None = None) -> Iterator[None]:
    """While this is open, a terminal shows how many rows were read so far, how many in a second and, where the table
    says how many it has, the time that is left. A pipe or a file shows nothing.
    """
    console = stderr()
    if not console.is_terminal:  # before 14.3, rich ends a display that it does not show with an empty line
        yield
        return
    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}"),
        TextColumn("{task.completed:,} rows"),
        RowsPerSecond(),
        TimeElapsedColumn(),
        *((TextColumn("left"), TimeRemainingColumn()) if total else ()),
    )
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task(what, total=total)
        with on_progress(lambda rows: progress.update(task, completed=rows)):
            yield


@contextmanager
def reading(table: str) -> Iterator[None]:
    """While this is open, rows are counted; afterwards warnings are shown as hints."""
    with warnings.catch_warnings(record=True) as told, counting_rows(f"Reading {shown_source(table)}"):
        warnings.simplefilter("always", UserWarning)
        yield
    for one in told:
        hint(str(one.message))


class RowsPerSecond(ProgressColumn):
    """How many rows are read in a second."""

    def render(self, task: Task) -> Text:
        """The speed of late."""
        return Text("" if task.speed is None else f"{task.speed:,.0f} rows/s")


def print_report(report: Report) -> None:
    """The privacy report, with long lines folded under their own text."""
    console = stdout()
    for line in str(report).splitlines():
        label = _REPORT_LINE.match(line)
        indent = " " * (label.end() if label else 0)
        console.print(
            textwrap.fill(line, max(console.width, 60), subsequent_indent=indent), markup=False, soft_wrap=True
        )


def ledger_facts(ledger: Ledger) -> dict[str, Any]:
    """A ledger's budget, what is spent and what is left, for JSON; null: no limit, or a total above all floats."""
    return {
        "path": str(ledger.path),
        "epsilon": _finite(ledger.epsilon),
        "delta": ledger.delta,
        "spent": {"epsilon": _finite(ledger.spent.epsilon), "delta": ledger.spent.delta},
        "remaining": {"epsilon": _finite(ledger.remaining.epsilon), "delta": ledger.remaining.delta},
    }


def ledger_sentence(ledger: Ledger) -> str:
    """A ledger's state in words."""
    spent, left, name = ledger.spent, ledger.remaining, encodable(visible(ledger.name))
    if math.isinf(ledger.epsilon):
        return f"The ledger {name} has spent epsilon {spent.epsilon:.6g} and has no limit."
    delta = f" Of delta {ledger.delta:.3g}, {left.delta:.3g} is left." if ledger.delta else ""
    return (
        f"The ledger {name} has spent epsilon {spent.epsilon:.6g} of {ledger.epsilon:.6g}; {left.epsilon:.6g} is "
        f"left.{delta}"
    )


def counted(entries: int) -> str:
    """So many entries, in words."""
    return f"{entries:,} {'entry' if entries == 1 else 'entries'}"


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


class Printed(Protocol):
    """Figures that print as a table and have a report."""

    report: Report

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain values."""
        ...


def print_answer(found: Printed, ledger: Ledger | None, as_json: bool) -> None:
    """Figures, their report, and what is left of the ledger; or all of it as JSON."""
    if as_json:
        print_json({**found.to_dict(), "ledger": None if ledger is None else ledger_facts(ledger)})
        return
    console = stdout()
    console.print(str(found), markup=False, soft_wrap=True)
    console.print()
    print_report(found.report)
    if ledger is not None:
        console.print(ledger_sentence(ledger), markup=False, soft_wrap=True)
