"""The gallery: every figure with its caption, and what became of every claim.

One page in Markdown for the docs, one in HTML to open.
"""

from __future__ import annotations

import html
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from privfit_papers.bench.grid import Figure, Paper, Verdict

WIDTH = 120  # of prose in Markdown, as tests/test_text.py asks of every page
MARKS = {"held": "✔", "held in part": "◐", "not held": "✘", "cannot be tested": "–"}
STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; color: #2b2b2b; max-width: 62rem; margin: 2rem auto; padding: 0 1rem; }
img { max-width: 100%; } figure { margin: 2rem 0; }
table { border-collapse: collapse; width: 100%; font-size: .9rem; margin: 1rem 0; }
th, td { text-align: left; vertical-align: top; padding: .35rem .6rem; border-bottom: 1px solid #e4e4e4; }
td:nth-child(2) { white-space: nowrap; } .note { color: #555; font-size: .9rem; }
.held { color: #1b7f4d; } .not { color: #b3261e; } .part { color: #9a6700; }
"""
COLOURS = {"held": "held", "held in part": "part", "not held": "not", "cannot be tested": ""}


@dataclass(frozen=True)
class Shown:
    """A figure that was drawn: its picture, the small print in it, and the verdict on each of its claims."""

    paper: Paper
    figure: Figure
    picture: Path
    note: str
    verdicts: Sequence[tuple[str, Verdict]]

    @property
    def heading(self) -> str:
        """The figure's number and title."""
        return f"Figure {self.figure.number}: {self.figure.title}"


def write_gallery(shown: Sequence[Shown], introduction: str, folder: Path, name: str = "gallery") -> tuple[Path, Path]:
    """Write a page in Markdown and in HTML into a folder that has the pictures in it or below it."""
    markdown, page = folder / f"{name}.md", folder / f"{name}.html"
    markdown.write_text(_markdown(shown, introduction, folder))
    page.write_text(_html(shown, introduction, folder))
    return markdown, page


def _by_paper(shown: Sequence[Shown]) -> dict[str, list[Shown]]:
    found: dict[str, list[Shown]] = {}
    for one in shown:
        found.setdefault(one.paper.name, []).append(one)
    return found


def tally(shown: Sequence[Shown]) -> dict[str, int]:
    """How many claims were held, held in part, not held, and not tested."""
    outcomes: list[str] = [verdict.outcome for one in shown for _, verdict in one.verdicts]
    return {outcome: outcomes.count(outcome) for outcome in MARKS}


def _markdown(shown: Sequence[Shown], introduction: str, folder: Path) -> str:
    lines = [
        "# The five papers, reproduced",
        "",
        wrapped(introduction),
        "",
        "| paper | " + " | ".join(MARKS) + " |",
        "|---" * (len(MARKS) + 1) + "|",
    ]
    for figures in _by_paper(shown).values():
        paper = figures[0].paper
        lines.append(
            f"| [{paper.title}](#{_anchor(paper.title)}) | "
            + " | ".join(str(count) for count in tally(figures).values())
            + " |"
        )
    for figures in _by_paper(shown).values():
        paper = figures[0].paper
        lines += ["", f"## {paper.title}", "", wrapped(paper.citation)]
        for one in figures:
            lines += [
                "",
                f"### {one.heading}",
                "",
                f"![{one.heading}]({one.picture.relative_to(folder).as_posix()})",
                "",
                wrapped(one.note),
                "",
            ]
            lines += [f"`privfit reproduce {paper.name} --figure {one.figure.number}`", ""]
            if one.verdicts:
                lines += ["| claim | outcome | the paper's number | our number |", "|---|---|---|---|"]
                lines += [_line(text, verdict) for text, verdict in one.verdicts]
    return "\n".join(lines) + "\n"


def _line(text: str, verdict: Verdict) -> str:
    outcome = f"{MARKS[verdict.outcome]} {verdict.outcome}"
    return f"| {_cell(text)} | {outcome} | {_cell(verdict.printed)} | {_cell(verdict.number)} |"


def wrapped(text: str) -> str:
    """A paragraph of a page, in lines of the usual length."""
    return textwrap.fill(text, WIDTH, break_long_words=False, break_on_hyphens=False)


def _anchor(title: str) -> str:
    return "".join(letter for letter in title.lower().replace(" ", "-") if letter.isalnum() or letter == "-")


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


def _with_code(text: str) -> str:
    """Text for a page, with what stands between backticks as code."""
    parts = html.escape(text).split("`")
    return "".join(f"<code>{part}</code>" if place % 2 else part for place, part in enumerate(parts))


def _html(shown: Sequence[Shown], introduction: str, folder: Path) -> str:
    parts = [
        "<!doctype html><html lang='en'><meta charset='utf-8'><title>The five papers, reproduced</title>",
        f"<style>{STYLE}</style>",
    ]
    parts.append(f"<h1>The five papers, reproduced</h1><p>{_with_code(introduction)}</p>")
    parts.append("<table><tr><th>paper</th>" + "".join(f"<th>{outcome}</th>" for outcome in MARKS) + "</tr>")
    for name, figures in _by_paper(shown).items():
        counts = "".join(f"<td>{count}</td>" for count in tally(figures).values())
        parts.append(f"<tr><td><a href='#{name}'>{html.escape(figures[0].paper.title)}</a></td>{counts}</tr>")
    parts.append("</table>")
    for name, figures in _by_paper(shown).items():
        parts.append(
            f"<h2 id='{name}'>{html.escape(figures[0].paper.title)}</h2><p>{html.escape(figures[0].paper.citation)}</p>"
        )
        for one in figures:
            source = html.escape(one.picture.relative_to(folder).as_posix())
            parts.append(
                f"<h3>{html.escape(one.heading)}</h3><figure><img src='{source}' "
                f"alt='{html.escape(one.heading)}'></figure>"
            )
            parts.append(f"<p class='note'>{html.escape(one.note)}</p>")
            if one.verdicts:
                heads = ("claim", "outcome", "the paper's number", "our number")
                parts.append("<table><tr>" + "".join(f"<th>{head}</th>" for head in heads) + "</tr>")
                for text, verdict in one.verdicts:
                    mark = f"<span class='{COLOURS[verdict.outcome]}'>{MARKS[verdict.outcome]} {verdict.outcome}</span>"
                    parts.append(
                        f"<tr><td>{html.escape(text)}</td><td>{mark}</td><td>{html.escape(verdict.printed)}</td>"
                        f"<td>{html.escape(verdict.number)}</td></tr>"
                    )
                parts.append("</table>")
    return "\n".join(parts) + "\n"
