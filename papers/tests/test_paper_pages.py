"""docs/papers/ has a page per paper with the place of everything in it: names, parameters, tests, commands exist."""

from __future__ import annotations

import ast
import importlib
import itertools
import re
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

import privfit
from privfit.cli import app
from privfit_papers.bench.papers import MODULES, paper_named

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "docs" / "papers"
PLACED = ("Algorithms", "Theorems", "Baselines")
"""Sections with a table of four columns: in the paper, what it is, here, test."""
FIGURES = "Figures"
"""A section with a table of three columns: figure, what it shows, command."""
PACKAGES = {"pf": "privfit", "privfit": "privfit", "privfit_papers": "privfit_papers"}
WITHOUT_A_TEST = re.compile(r"none: \w+")
CODE = re.compile(r"`([^`]+)`")
LINK = re.compile(r"\[([^\]]+)\]\(([^)#\s]+)(?:#[^)]*)?\)")


def text_of(paper: str) -> str:
    return (FOLDER / f"{paper}.md").read_text(encoding="utf-8")


def section(paper: str, title: str) -> str:
    found = re.search(rf"^## {title}\n(.*?)(?=^## |\Z)", text_of(paper), flags=re.MULTILINE | re.DOTALL)
    assert found, f"docs/papers/{paper}.md has no section {title}"
    return found[1]


def rows(paper: str, title: str) -> list[list[str]]:
    """The rows of a section's table, without its head; a pipe within a cell is written with a backslash."""
    lines = [line for line in section(paper, title).splitlines() if line.startswith("|")]
    cells = [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in lines]
    return cells[2:]


def placed() -> list[Any]:
    return [
        pytest.param(paper, title, row, id=f"{paper}-{title}-{row[0]}"[:80])
        for paper in MODULES
        for title in PLACED
        for row in rows(paper, title)
    ]


def expressions() -> list[Any]:
    """Code on a page that names something of a package of ours."""
    found = {
        (paper, code)
        for paper in MODULES
        for code in CODE.findall(text_of(paper))
        if re.match(rf"({'|'.join(PACKAGES)})\.", code)
    }
    return [pytest.param(paper, code, id=f"{paper}-{code}"[:80]) for paper, code in sorted(found)]


def commands() -> list[tuple[str, str]]:
    return sorted({(paper, code) for paper in MODULES for code in CODE.findall(text_of(paper)) if "privfit " in code})


def resolved(name: str) -> Any:
    """What a dotted name stands for; modules on the way are imported."""
    first, *rest = name.split(".")
    path = PACKAGES[first]
    found: Any = importlib.import_module(path)
    for part in rest:
        path = f"{path}.{part}"
        found = getattr(found, part) if hasattr(found, part) else importlib.import_module(path)
    return found


def value(code: str) -> Any:
    """The value of a call, made with the arguments that the page has; parameters that do not exist are errors."""
    names = {node.id for node in ast.walk(ast.parse(code)) if isinstance(node, ast.Name)}
    return eval(code, {"pf": privfit, **{name: resolved(name) for name in names & {"privfit", "privfit_papers"}}})


@cache
def collected(path: Path) -> frozenset[str]:
    """Names of the tests that pytest collects from a file."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return frozenset(
        node.name for node in tree.body if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")
    )


@pytest.mark.parametrize("paper", MODULES)
def test_every_paper_has_a_page_with_its_title_and_a_link_to_what_is_wrong(paper: str) -> None:
    text = text_of(paper)
    assert text.startswith(f"# {paper_named(paper).title}\n")
    assert "](../papers.md" in text
    assert all(rows(paper, title) for title in (*PLACED, FIGURES))


@pytest.mark.parametrize(("paper", "title", "row"), placed())
def test_a_row_says_where_a_thing_is_and_which_test_shows_it(paper: str, title: str, row: list[str]) -> None:
    name, what, here, test = row
    assert name
    assert what
    assert CODE.search(here) or LINK.search(here), "name a class, a parameter or a proof"
    assert any(text.startswith("test_") for text, _ in LINK.findall(test)) or WITHOUT_A_TEST.match(test)


@pytest.mark.parametrize(("paper", "code"), expressions())
def test_named_things_can_be_imported_and_take_the_parameters_shown(paper: str, code: str) -> None:
    if "(" not in code:
        assert resolved(code) is not None
        return
    found = value(code)
    check = getattr(found, "check", None)
    if callable(check):
        check()


@pytest.mark.parametrize("paper", MODULES)
def test_links_lead_to_files_and_to_tests_that_are_collected(paper: str) -> None:
    for text, target in LINK.findall(text_of(paper)):
        if target.startswith("http"):
            continue
        path = (FOLDER / target).resolve()
        assert path.exists(), target
        if text.startswith("test_"):
            assert path.name.startswith("test_")
            assert text in collected(path), f"{text} is not in {target}"


@pytest.mark.parametrize("paper", MODULES)
def test_every_figure_has_its_command(paper: str) -> None:
    listed = {row[0]: row[2] for row in rows(paper, FIGURES)}
    for figure in paper_named(paper).figures:
        assert f"`privfit reproduce {paper} --figure {figure.number}`" in listed[figure.number]
    known = {figure.number for figure in paper_named(paper).figures}
    assert all(CODE.search(command) is None for number, command in listed.items() if number not in known)


@pytest.mark.parametrize(("paper", "command"), commands())
def test_commands_are_known(paper: str, command: str) -> None:
    words = command.split()
    assert words[0] == "privfit"
    known: Any = get_command(app)
    assert words[1] in known.list_commands(None)
    if words[1] == "reproduce":
        numbers = [number for option, number in itertools.pairwise(words) if option == "--figure"]
        assert all(paper_named(words[2]).figures_of(number) for number in numbers)


@pytest.mark.parametrize(
    ("code", "error"),
    [
        ("pf.LinearRegression(epsilons=1)", TypeError),
        ("pf.FunctionalMechanisms()", AttributeError),
        ("pf.FunctionalMechanism(calibration='paper').repairs", AttributeError),
    ],
)
def test_a_name_or_a_parameter_that_does_not_exist_is_found(code: str, error: type[Exception]) -> None:
    with pytest.raises(error):
        value(code)
