"""docs/papers.md names a test for every erratum: it exists, and every erratum of the table has its paragraph."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "papers.md").read_text()
NAMED = re.findall(r"\[(test_\w+)\]\(\.\./((?:papers/)?tests/[\w/]+\.py)\)", PAGE)
ROWS = re.findall(r"^\| ([a-g]\d*) \|(.*)\|$", PAGE, flags=re.MULTILINE)
WITHOUT_A_TEST = {"c8"}
"""A choice that was made by looking at the data leaves no trace that a test could find."""


@pytest.mark.parametrize(("name", "path"), sorted(set(NAMED)))
def test_a_named_test_exists(name: str, path: str) -> None:
    assert re.search(rf"^def {name}\(", (ROOT / path).read_text(), flags=re.MULTILINE)


@pytest.mark.parametrize("path", sorted(path.name for path in Path(__file__).parent.glob("test_errata_*.py")))
def test_every_counterexample_is_on_the_page(path: str) -> None:
    written = re.findall(r"^def (test_\w+)\(", (Path(__file__).parent / path).read_text(), flags=re.MULTILINE)
    assert written
    assert {name for name in written if (name, f"papers/tests/bench/{path}") not in NAMED} == set()


def test_every_erratum_has_a_row_a_test_and_a_paragraph() -> None:
    names = [name for name, _ in ROWS]
    assert len(names) == len(set(names)) > 40
    assert {name for name, row in ROWS if "test_" not in row} == WITHOUT_A_TEST
    assert set(re.findall(r"^\*\*([a-g]\d*)\b", PAGE, flags=re.MULTILINE)) == set(names)
