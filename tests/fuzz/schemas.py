"""Schema files: any text, and TOML with odd facts at every place."""

from __future__ import annotations

import json
from typing import Any

import privfit as pf
from tests.fuzz.rules import attempt, attempt_reading
from tests.fuzz.source import Source

FIELDS = ("name", "type", "low", "high", "bins", "levels", "other", "fill", "?", "unit")
MOST_CELLS = 400_000
"""Columns of an encoded row that are still asked for: a schema may have as many as memory holds."""


def run(content: bytes) -> None:
    """Read a schema, and ask it for all that follows from it."""
    source = Source(content)
    text = source.rest().decode("utf-8", "replace") if source.flag(4) else document(source)
    schema, _ = attempt_reading(lambda: pf.Schema.from_toml(text))
    if schema is None:
        return
    again = pf.Schema.from_toml(schema.to_toml())
    assert again == schema
    assert hash(again) == hash(schema)
    repr(schema)
    schema._repr_html_()
    settled = schema.with_features(["x0", "x1"])
    if sum(width(column) for column in settled.columns) < MOST_CELLS:
        for numeric in ("slope", "bins", "splines"):
            attempt(lambda numeric=numeric: settled.geometry(numeric=numeric, several=True, gaps="spline"))


def width(column: Any) -> int:
    """About how many columns of an encoded row a column becomes."""
    if isinstance(column, pf.Category):
        return len(column.levels)
    return column.bins if isinstance(column.bins, int) else 8


def document(source: Source) -> str:
    """TOML of a few columns, most of them almost right."""
    parts = []
    if source.flag(6):
        parts.append(f"{source.pick(('person', 'where', 'box', 'feature', 'odd'))} = {said(source.value())}\n")
    if source.flag(6):
        parts.append(f"[box]\nlow = {said(source.number())}\nhigh = {said(source.number())}\n")
    if source.flag(5):
        parts.append("[where]\n" + "".join(f"{_key(source)} = {said(source.value())}\n" for _ in range(2)))
    if source.flag():
        parts.append(f"[target]\n{column(source, 't')}")
    parts.extend(f"[[feature]]\n{column(source, f'c{place}')}" for place in range(source.whole(0, 4)))
    return "".join(parts)


def column(source: Source, name: str) -> str:
    """The lines of a column."""
    facts: dict[str, Any] = {"name": name}
    if source.flag():
        facts |= {"type": "numeric", "low": source.whole(-9, 0), "high": source.whole(1, 90)}
    else:
        facts |= {"type": "category", "levels": source.pick((["a", "b"], [0, 1, 2], [True, False]))}
    for _ in range(source.whole(0, 3)):
        facts[source.pick(FIELDS)] = source.value()
    return "".join(f"{key if key.isalpha() else json.dumps(key)} = {said(value)}\n" for key, value in facts.items())


def said(value: Any) -> str:
    """A value as TOML, or as nearly."""
    if isinstance(value, str):
        return json.dumps(value)
    if isinstance(value, bool) or value is None:
        return {True: "true", False: "false", None: '"?"'}[value]
    if isinstance(value, list):
        return "[" + ", ".join(map(said, value)) + "]"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(key)} = {said(item)}" for key, item in value.items()) + "}"
    return repr(value)


def _key(source: Source) -> str:
    return json.dumps(source.text())
