"""A document as one HTML page: no script, nothing from a network, every text escaped."""

from __future__ import annotations

import base64
import hashlib
from html import escape

from privfit.report.document import Facts, Grid, Section, sections, title

STYLE = """
:root{color-scheme:light}
body{font:16px/1.5 system-ui,sans-serif;color:#1a1a1a;background:#fff;max-width:52rem;margin:0 auto;padding:1rem}
h1{font-size:1.6rem;line-height:1.25;overflow-wrap:anywhere}
h2{font-size:1.2rem;margin-top:2rem;border-bottom:2px solid #0b5394;padding-bottom:.2rem}
.formula{font-family:ui-monospace,monospace;background:#f2f5f9;padding:.6rem;overflow-wrap:anywhere}
table{border-collapse:collapse;width:100%;margin:.8rem 0}
caption{text-align:left;font-weight:600;padding:.3rem 0}
th,td{text-align:left;vertical-align:top;padding:.35rem .5rem;border-bottom:1px solid #bbb}
.long{overflow-wrap:anywhere}
.wide{overflow-x:auto}
thead th{border-bottom:2px solid #555}
.number{white-space:nowrap}
.refused{border:3px solid #a00000;padding:.6rem;font-weight:700}
@media (max-width:30rem){body{font-size:15px;padding:.6rem}table{font-size:.87rem}th,td{padding:.3rem .25rem}}
@media print{@page{size:A4;margin:18mm}body{font-size:10.5pt;max-width:none;padding:0}
h2,caption,thead{break-after:avoid}tr,li,.formula{break-inside:avoid}.wide{overflow:visible}}
"""


ROW = ' scope="row"'
LONGEST_WORD = 18
"""Characters of a word that is never broken: two such columns fit a phone. Longer ones, such as digests, may break
anywhere. Chosen on pages at 360 pixels, not measured."""


def page(facts: Facts) -> str:
    """The page of a release."""
    digest = base64.b64encode(hashlib.sha256(STYLE.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    name = escape(title(facts))
    body = "\n".join(_section(place, one) for place, one in enumerate(sections(facts), start=1))
    warning = "" if facts["report"]["private"] else '<p class="refused" role="note">This release is NOT private.</p>\n'
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{escape(policy)}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{name}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n<main>\n<h1>{name}</h1>\n{warning}{body}\n"
        "</main>\n</body>\n</html>\n"
    )


def _section(place: int, one: Section) -> str:
    parts = [f'<section aria-labelledby="s{place}">', f'<h2 id="s{place}">{escape(one.heading)}</h2>']
    parts += [f"<p>{escape(text)}</p>" for text in one.paragraphs]
    if one.formula:
        parts.append(f'<p class="formula">{escape(one.formula)}</p>')
    if one.points:
        parts.append("<ul>" + "".join(f"<li>{escape(text)}</li>" for text in one.points) + "</ul>")
    if one.grid is not None:
        parts.append(_table(one.grid))
    return "\n".join([*parts, "</section>"])


def _cell(text: str, tag: str = "td", more: str = "") -> str:
    """A cell. A number is never broken over two lines, and a word only if it is very long."""
    number = text.removeprefix("-").replace(".", "", 1).isdecimal()
    long = any(len(word) > LONGEST_WORD for word in text.split())
    look = ' class="number"' if number else ' class="long"' if long else ""
    return f"<{tag}{more}{look}>{escape(text)}</{tag}>"


def _table(grid: Grid) -> str:
    """A table, which scrolls by itself where it is wider than the page."""
    head = "".join(f'<th scope="col">{escape(name)}</th>' for name in grid.head)
    lines = "\n".join(
        f"<tr>{_cell(first, 'th', ROW)}" + "".join(map(_cell, rest)) + "</tr>" for first, *rest in grid.lines
    )
    name = escape(grid.caption)
    return (
        f'<div class="wide" role="region" tabindex="0" aria-label="{name}"><table><caption>{name}</caption>'
        f"<thead><tr>{head}</tr></thead><tbody>\n{lines}\n</tbody></table></div>"
    )
