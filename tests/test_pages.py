"""Pages of the documentation: which of their code is run, in which order, and what is shown of it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.test_tools import tool

ROOT = Path(__file__).parents[1]
PAGES = sorted((ROOT / "docs").rglob("*.md"))
pages = tool("pages")

PAGE = """# A page

<!-- run:
hidden = 2
print("not shown")
-->

```python
from pathlib import Path

print("twice", 2 * hidden)
Path("made").write_text("x")
```

<!-- not run: it needs a server -->

```python
raise SystemExit
```

```python
Path("made").read_text(), hidden
```

```sh
privfit --version
```
"""


def printed(text: str, folder: Path) -> list[tuple[int, str]]:
    page = folder / "page.md"
    page.write_text(text, encoding="utf-8")
    return [(block.after, told) for block, told in pages.run_page(page)]


def test_blocks_run_in_order_in_one_namespace_and_folder_and_what_they_print_is_kept(tmp_path: Path) -> None:
    told = printed(PAGE, tmp_path)
    assert [text.split()[0] if text else "" for _, text in told] == ["", "twice", "('x',", "privfit"]
    assert told[1] == (13, "twice 4\n1")
    assert PAGE.splitlines()[told[1][0] - 1] == "```"
    assert list(tmp_path.iterdir()) == [tmp_path / "page.md"]


def test_no_page_has_the_name_of_one_that_sphinx_makes() -> None:
    """The search of the site took the place of a page of that name, and lists showed it as "Search Page"."""
    made = {"search", "genindex", "modindex"}
    assert [page for page in PAGES if page.parent == ROOT / "docs" and page.stem in made] == []


def test_a_page_can_be_left_out_with_a_reason() -> None:
    assert pages.blocks_of("<!-- page not run: a server -->\n\n" + PAGE) == []


@pytest.mark.parametrize(
    ("text", "line", "why"),
    [
        ("# A\n\n```python\nx = 1\nx / 0\n```\n", 5, "ZeroDivisionError: division by zero"),
        ("# A\n\n<!-- run:\nx = 1\ny\n-->\n", 5, "NameError"),
        ("# A\n\n```sh\nprivfit fit nothing.csv\n```\n", 4, "exit code"),
        ("# A\n\n```python\nx = (\n```\n", 4, "SyntaxError"),
    ],
)
def test_a_failure_names_its_line(tmp_path: Path, text: str, line: int, why: str) -> None:
    with pytest.raises(pages.PageError, match=why) as failed:
        printed(text, tmp_path)
    assert failed.value.line == line


def test_long_output_is_cut(tmp_path: Path) -> None:
    ((_, told),) = printed("```python\nfor i in range(1000):\n    print(i)\n```\n", tmp_path)
    assert told.splitlines()[-1] == "..."
    assert len(told.splitlines()) == pages.MOST_LINES


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_python_block_of_a_page_is_one_that_is_run(page: Path) -> None:
    """Blocks that are indented, or with words after `python`, would be passed over; the build runs all others."""
    text = page.read_text(encoding="utf-8")
    passed_over = re.findall(r"^(?:[ \t>]+(?:```|~~~)python.*|(?:~~~|````+)python.*|```python.+)$", text, re.MULTILINE)
    assert not passed_over
    assert all(reason.strip() for reason in re.findall(r"^<!-- (?:page )?not run:(.*?)-->", text, re.DOTALL | re.M))


def test_the_whole_way_of_the_readme_runs_in_ten_lines(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    code = (ROOT / "README.md").read_text(encoding="utf-8").split("## The whole way")[1].split("```python\n")[1]
    code = code.split("```")[0]
    monkeypatch.chdir(tmp_path)
    exec(compile(code, "README.md", "exec"), {})
    assert len([line for line in code.splitlines() if line and not line.startswith("import")]) <= 10
    printed = capsys.readouterr().out
    assert [part for part in ("without noise", "r2 ") if part not in printed] == []
    assert printed.endswith("} 1\n")
    assert (tmp_path / "income.html").is_file()
