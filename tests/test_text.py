"""Markdown that can be read in any editor: prose wraps at 120 characters, as code does. Each page is on the site."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
WIDTH = 120
FENCE = re.compile(r"\s*(```|~~~)")
ONE_LINK = re.compile(r"[\s>*-]*\(?!?\[[^\]]*\]\([^)\s]*\)[).,;:]*")
BUILT = {"build", "_build", "dist", "node_modules", "site"}
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


# -- the site --------------------------------------------------------------------------------------

DOCS = ROOT / "docs"
TOCTREE = re.compile(r"^```\{toctree\}\n(.*?)^```$", re.DOTALL | re.MULTILINE)


def listed_by(page: Path) -> Iterator[Path]:
    """The pages that the toctrees of a page list."""
    for tree in TOCTREE.findall(page.read_text(encoding="utf-8")):
        names = [line for line in tree.splitlines() if line and not line.startswith(":")]
        for name in names:
            name = name.rpartition("<")[2].removesuffix(">")
            yield from page.parent.glob(f"{name}.md") if "*" in name else [(page.parent / f"{name}.md").resolve()]


def test_every_page_of_docs_is_listed_in_a_toctree() -> None:
    pages = [page for page in PAGES if page.is_relative_to(DOCS) and page != DOCS / "index.md"]
    listed = {path for page in PAGES if page.is_relative_to(DOCS) for path in listed_by(page)}
    missing = [str(page.relative_to(ROOT)) for page in pages if page not in listed]
    assert not missing, (
        f"{missing} cannot be found on the site. Add each to the toctree that fits: what one does in "
        "docs/howto/index.md, how it works and how accurate it is in docs/explanation/index.md, lists of facts in "
        "docs/reference/index.md, papers in docs/papers.md. `make docs` builds the site."
    )


def test_a_list_of_pages_is_read(tmp_path: Path) -> None:
    (tmp_path / "other.md").write_text("# Other\n", encoding="utf-8")
    page = tmp_path / "index.md"
    page.write_text("```{toctree}\n:hidden:\n\none\nThe second <../two>\noth*\n```\n", encoding="utf-8")
    assert list(listed_by(page)) == [tmp_path / "one.md", tmp_path.parent / "two.md", tmp_path / "other.md"]


# -- the README ------------------------------------------------------------------------------------

README = (ROOT / "README.md").read_text(encoding="utf-8")


def sentences(page: str) -> Iterator[str]:
    """Sentences of the prose of a page: not of its code, nor of the cells of its tables. Links count as their words."""
    prose = re.sub(r"^```.*?^```$|^    .*?$|^\|.*?$", "\n", page, flags=re.DOTALL | re.MULTILINE)
    prose = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", prose)
    for paragraph in re.split(r"\n\s*\n|\n(?=[-#])", prose):
        yield from filter(None, re.split(r"(?<=[.:!?])[\s*]+(?=[A-Z*])", " ".join(paragraph.split())))


def test_no_sentence_of_the_readme_is_longer_than_two_lines() -> None:
    assert len(list(sentences(README))) > 25
    assert [one for one in sentences(README) if len(one) > 2 * WIDTH] == []
    assert [len(one) > 2 * WIDTH for one in sentences("word " * 50 + "end. Another one.")] == [True, False]


def test_figures_of_the_readme_are_rounded() -> None:
    """No more than two digits that count, outside of code."""
    prose = re.sub(r"^```.*?^```$|^    .*?$|`[^`]*`", "", README, flags=re.DOTALL | re.MULTILINE)
    figures = re.findall(r"(?<![\w.,])\d[\d,]*\.?\d*(?=%| times| /)", prose)
    assert len(figures) > 8
    assert [one for one in figures if len(one.replace(",", "").replace(".", "").strip("0")) > 2] == []


def test_rows_of_the_readmes_comparison_name_a_command() -> None:
    table = README.split("## What it is good at")[1].split("\n\n")[1].splitlines()[2:]
    assert len(table) >= 4
    assert [row for row in table if "`privfit bench " not in row.split("|")[-2]] == []
