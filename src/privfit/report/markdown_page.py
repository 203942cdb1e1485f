"""A document as Markdown, with every text escaped."""

from __future__ import annotations

import re

from privfit.report.document import Facts, Grid, Section, sections, title

_MARKUP = re.compile(r"([\\`*_\[\]<>|#&!~])")


def markdown(facts: Facts) -> str:
    """The document of a release."""
    parts = [f"# {_plain(title(facts))}"]
    for one in sections(facts):
        parts += _section(one)
    return "\n\n".join(parts) + "\n"


def _plain(text: str) -> str:
    return _MARKUP.sub(r"\\\1", text)


def _section(one: Section) -> list[str]:
    parts = [f"## {one.heading}", *map(_plain, one.paragraphs)]
    if one.formula:
        parts.append(f"    {one.formula}")
    if one.points:
        parts.append("\n".join(f"- {_plain(text)}" for text in one.points))
    return [*parts, _table(one.grid)] if one.grid is not None else parts


def _table(grid: Grid) -> str:
    lines = [grid.head, ("---",) * len(grid.head), *(tuple(map(_plain, line)) for line in grid.lines)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
