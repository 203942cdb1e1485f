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
th,td{text-align:left;vertical-align:top;padding:.35rem .5rem;border-bottom:1px solid #bbb;overflow-wrap:anywhere}
thead th{border-bottom:2px solid #555}
td.number{white-space:nowrap}
.refused{border:3px solid #a00000;padding:.6rem;font-weight:700}
@media (max-width:30rem){body{font-size:15px;padding:.6rem}th,td{padding:.3rem .25rem}}
@media print{@page{size:A4;margin:18mm}body{font-size:10.5pt;max-width:none;padding:0}h2{break-after:avoid}
tr{break-inside:avoid}}
"""


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


def _cell(text: str) -> str:
    """A cell; a number is never broken over two lines."""
    number = text.removeprefix("-").replace(".", "", 1).isdecimal()
    return f'<td class="number">{escape(text)}</td>' if number else f"<td>{escape(text)}</td>"


def _table(grid: Grid) -> str:
    head = "".join(f'<th scope="col">{escape(name)}</th>' for name in grid.head)
    lines = "\n".join(
        f'<tr><th scope="row">{escape(first)}</th>' + "".join(map(_cell, rest)) + "</tr>" for first, *rest in grid.lines
    )
    caption = f"<caption>{escape(grid.caption)}</caption>"
    return f"<table>{caption}<thead><tr>{head}</tr></thead><tbody>\n{lines}\n</tbody></table>"
