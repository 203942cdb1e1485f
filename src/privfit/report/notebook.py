"""What notebooks show of a result: an HTML fragment without scripts, every text escaped.

Tables have captions and headings for rows and columns, and no colours of their own: contrast is that of the notebook.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

from privfit.report.document import shown

MOST_LINES = 50
"""Lines of a table that a notebook shows: about two screens. What has more says so. Chosen, not measured."""
LEFT = ' style="text-align:left"'
"""Notebooks put texts at the right of cells, where they are hard to read."""


def fragment(*parts: str) -> str:
    """Parts beneath each other."""
    return "<div>" + "".join(parts) + "</div>"


def paragraph(text: str, strong: bool = False) -> str:
    """A text."""
    return f"<p><strong>{escape(shown(text))}</strong></p>" if strong else f"<p>{escape(shown(text))}</p>"


def table(caption: str, head: Sequence[object], lines: Iterable[Sequence[object]]) -> str:
    """A table whose first column names its lines."""
    lines = list(lines)
    named = "".join(f'<th scope="col"{LEFT}>{_text(one)}</th>' for one in head)
    body = "".join(
        f'<tr><th scope="row"{LEFT}>{_text(first)}</th>'
        + "".join(f"<td{LEFT}>{_text(one)}</td>" for one in rest)
        + "</tr>"
        for first, *rest in lines[:MOST_LINES]
    )
    more = f"<p>{len(lines) - MOST_LINES:,} more are not shown.</p>" if len(lines) > MOST_LINES else ""
    return (
        f"<table><caption{LEFT}>{_text(caption)}</caption><thead><tr>{named}</tr></thead><tbody>{body}</tbody></table>"
        f"{more}"
    )


def folded(summary: str, *parts: str) -> str:
    """Parts that are shown when the reader asks for them."""
    return f"<details><summary>{_text(summary)}</summary>{''.join(parts)}</details>"


def _text(value: object) -> str:
    return escape(shown(value))
