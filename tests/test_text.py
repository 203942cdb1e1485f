"""Markdown that can be read in any editor: prose wraps at 120 characters, as code does."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
WIDTH = 120
FENCE = re.compile(r"\s*(```|~~~)")
ONE_LINK = re.compile(r"[\s>*-]*\(?!?\[[^\]]*\]\([^)\s]*\)[).,;:]*")
BUILT = {"build", "dist", "node_modules", "site"}
PAGES = [
    path
    for path in sorted(ROOT.rglob("*.md"))
    if not any(part.startswith(".") or part in BUILT for part in path.relative_to(ROOT).parts[:-1])
]


def long_lines(text: str) -> Iterator[int]:
    """Numbers of the prose lines that are too long: not those of tables, code, or one link that cannot be broken."""
    fenced = False
    for number, line in enumerate(text.splitlines(), start=1):
        if FENCE.match(line):
            fenced = not fenced
        exempt = fenced or line.startswith(("    ", "|")) or ONE_LINK.fullmatch(line)
        if len(line) > WIDTH and not exempt:
            yield number


@pytest.mark.parametrize("path", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_prose_wraps(path: Path) -> None:
    assert list(long_lines(path.read_text(encoding="utf-8"))) == []


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("word " * 30, [1]),
        ("short\n\n" + "- " + "word " * 30, [3]),
        ("| " + "cell | " * 30, []),
        ("    " + "code " * 30, []),
        ("```\n" + "code " * 30 + "\n```\n" + "word " * 30, [4]),
        (f"([{'a' * 100}](page/{'b' * 40}.md)),", []),
        (f"see [{'a' * 100}](page/{'b' * 40}.md)", [1]),
        ("x" * 120, []),
    ],
)
def test_what_counts_as_prose(text: str, found: list[int]) -> None:
    assert list(long_lines(text)) == found
