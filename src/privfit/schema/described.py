"""What a schema says of each column, as lines for people."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from privfit.schema.columns import Category, Column

if TYPE_CHECKING:
    from privfit.schema.schema import Schema

Line = tuple[str, str, str]
MOST_LEVELS = 20
"""Levels that a line for the screen names. Documents name all. Chosen, not measured."""


def described(schema: Schema, most_levels: int | None = None) -> Iterable[Line]:
    """Name, role and public values of every column; of a category the first `most_levels` levels."""
    if schema._box is not None:
        low, high = schema._box
        yield "any number of columns", "feature", f"{low:g} to {high:g}"
    for column in schema.features:
        yield column.name, "feature", _values(column, most_levels)
    if schema.target is not None:
        yield schema.target.name, "target", _values(schema.target, most_levels)
    if schema.person is not None:
        yield schema.person, "person", "whose row it is; identifiers are not kept"
    for one in schema.where:
        ends = ("any" if end is None else f"{end:g}" for end in (one.low, one.high))
        yield one.name, "row filter", ", ".join(map(str, one.levels)) if one.levels else " to ".join(ends)


def _values(column: Column, most_levels: int | None) -> str:
    if isinstance(column, Category):
        shown, left = column.levels[:most_levels], len(column.levels[:most_levels]) - len(column.levels)
        found = ", ".join(map(str, shown)) + (f" and {-left} more" if left else "")
    else:
        found = f"{column.low:g} to {column.high:g}"
    filled = f"{column.fill:g}" if isinstance(column.fill, float) else column.fill
    return found if filled is None else f"{found}; missing values: {filled}"
