"""Runs the code of documentation pages in the order of the page, and keeps what it prints.

    python tools/pages.py docs/guide.md ...
    python tools/pages.py --json docs/guide.md

Every ```python block runs, in one namespace, and every line of a ```sh block that begins with `privfit`, in an empty
folder of the page's own. `make docs` runs all pages so and shows beneath each block what it printed. In HTML comments,
which readers do not see, a page says what else there is:

    <!-- run: code that the examples need -->     python, run in its place and not shown
    <!-- not run: why -->                         the next block is left out
    <!-- page not run: why -->                    no block of the page is run here

A block that fails ends its page: the line, the error, exit code 1.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import io
import json
import os
import re
import shlex
import sys
import tempfile
import traceback
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

PART = re.compile(
    r"^<!-- (?P<kind>run|not run|page not run):(?P<said>.*?)-->$|^```(?P<language>python|sh)\n(?P<code>.*?)^```$",
    re.DOTALL | re.MULTILINE,
)
WIDTH = "88"  # of tables that commands and reports print: what a column of a page holds
MOST_LINES = 60
"""Of the output of a block that are shown; enough for a report, and a page stays readable. Chosen, not measured."""


@dataclass(frozen=True)
class Block:
    """Code of a page: its language, its first line there, and the line after it."""

    language: str
    code: str
    line: int
    after: int
    shown: bool = True


class PageError(Exception):
    """A block of a page failed."""

    def __init__(self, line: int, why: str) -> None:
        super().__init__(why)
        self.line = line


def blocks_of(text: str) -> list[Block]:
    """The blocks that are run, in the order of the page."""
    found: list[Block] = []
    left_out = False
    for part in PART.finditer(text):
        kind, line = part["kind"], text.count("\n", 0, part.start()) + 1
        after = text.count("\n", 0, part.end()) + 1
        if kind == "page not run":
            return []
        if kind == "run":
            found.append(Block("python", part["said"], line, after, shown=False))
        elif kind is None and not left_out:
            found.append(Block(part["language"], part["code"], line + 1, after))
        left_out = kind == "not run"
    return found


def run_page(page: Path) -> list[tuple[Block, str]]:
    """Run the blocks of a page in an empty folder: each with what it printed."""
    names: dict[str, Any] = {"__name__": "__main__"}
    before = Path.cwd()
    blocks = blocks_of(page.read_text(encoding="utf-8"))
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            return [(block, _shortened(_run(block, names))) for block in blocks]
        finally:
            os.chdir(before)


def _run(block: Block, names: dict[str, Any]) -> str:
    printed = io.StringIO()
    try:
        with contextlib.redirect_stdout(printed), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            if block.language == "sh":
                printed.write(_commands(block.code))
            else:
                _python(block.code, names)
    except Exception as error:
        last = traceback.extract_tb(error.__traceback__)
        inside = [frame.lineno or 1 for frame in last if frame.filename == "<page>"]
        inside += [error.lineno or 1] if isinstance(error, SyntaxError) else []
        raise PageError(block.line + (inside[-1] - 1 if inside else 0), f"{type(error).__name__}: {error}") from error
    return printed.getvalue() if block.shown else ""


def _python(code: str, names: dict[str, Any]) -> None:
    """Run code and print the value of an expression at its end, as a notebook does, but no estimator."""
    tree = ast.parse(code)
    value: Any = None
    if tree.body and isinstance(tree.body[-1], ast.Expr):
        last = ast.Expression(tree.body.pop().value)  # type: ignore[attr-defined]
        exec(compile(tree, "<page>", "exec"), names)
        value = eval(compile(last, "<page>", "eval"), names)
    else:
        exec(compile(tree, "<page>", "exec"), names)
    if value is not None and not hasattr(value, "get_params"):
        print(repr(value))


def _commands(code: str) -> str:
    """What the `privfit` commands of a block print; lines that end in a backslash go on in the next one."""
    from typer.testing import CliRunner

    from privfit.cli import app

    printed = ""
    for line in code.replace("\\\n", " ").splitlines():
        if not line.startswith("privfit"):
            continue
        done = CliRunner().invoke(app, shlex.split(line)[1:])
        if done.exit_code:
            raise RuntimeError(f"`{line}` ended with exit code {done.exit_code}: {done.output}")
        printed += done.stdout
    return printed


def _environment() -> dict[str, str]:
    here = str(Path(sys.executable).parent)
    path = here + os.pathsep + os.environ.get("PATH", "")
    return {**os.environ, "PATH": path, "COLUMNS": WIDTH, "NO_COLOR": "1", "PYTHONWARNINGS": "ignore"}


def _shortened(printed: str) -> str:
    lines = [line.rstrip() for line in printed.strip("\n").splitlines()]
    return "\n".join(lines if len(lines) <= MOST_LINES else [*lines[: MOST_LINES - 1], "..."])


def main(given: list[str] | None = None) -> int:
    """Run pages; 1 if a block failed."""
    parser = argparse.ArgumentParser(description="Run the code of documentation pages.")
    parser.add_argument("pages", nargs="+", type=Path)
    parser.add_argument("--json", action="store_true", help="what each block printed, and the line after the block")
    asked = parser.parse_args(given)
    os.environ.update(_environment())
    failed = False
    for page in asked.pages:
        try:
            printed = run_page(page)
        except PageError as error:
            failed = True
            print(f"{page}:{error.line}: {error}", file=sys.stderr)
            continue
        if asked.json:
            print(json.dumps([{"after": block.after, "printed": text} for block, text in printed]))
        else:
            print(f"{page}: {len(printed)} blocks ran")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
