"""Columns that a question is about, as its function takes them, and the schema that says which rows are used."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

from privfit.schema import Category, Column, Numeric, Schema, SchemaError, make_block


def asked_columns(function: str, columns: Sequence[Any], schema: object) -> tuple[list[Any], Schema | None]:
    """The columns, of which the schema knows those that are given by name, and the schema, if there is one.

    Rows of a person are chosen by what the schema lists, so that it lists what is asked about.
    """
    declared = settled_schema(function, schema)
    if declared is None:
        return list(columns), None
    listed = {column.name: column for column in declared.of_used_rows().columns}
    for name in [column if isinstance(column, str) else getattr(column, "name", None) for column in columns]:
        if isinstance(name, str) and name not in listed:
            raise SchemaError(
                f"{function} was given a schema without the column {name!r}, which it reads. It has "
                f"{', '.join(listed)}. Name one of these, or list {name!r} in the schema. Nothing was charged."
            )
    return [listed[column] if isinstance(column, str) else column for column in columns], declared


def settled_schema(function: str, schema: object) -> Schema | None:
    """The schema, read from its file where a path is given."""
    settled = Schema.load(schema) if isinstance(schema, str | Path) else schema
    if settled is None:
        return None
    if not isinstance(settled, Schema):
        raise SchemaError(
            f"{function} was given schema={type(schema).__name__}; it is a pf.Schema, whose person column and filter "
            "say which rows are used, or the path of a TOML file, or None. Write schema=pf.Schema(columns, "
            "person='id'). Nothing was charged."
        )
    if settled.any_width:
        raise SchemaError(
            f"{function} was given a box of open width, which names no columns. Give the number of columns: "
            "pf.Schema.box(low, high, n_features=...)."
        )
    return settled


def as_number(function: str, column: object) -> Numeric:
    """A number without bins, whose missing values have no level of their own."""
    if not isinstance(column, Numeric):
        raise SchemaError(
            f"{function} was given a column of type {type(column).__name__}; it is a number with public bounds. Write "
            "pf.Numeric('income', 0, 1_000_000)."
        )
    return replace(column, bins=None, fill=column.fill if isinstance(column.fill, float) else None)


def as_binned(function: str, column: object) -> Column:
    """A category, or a number with bins."""
    if isinstance(column, Numeric):
        return column if column.bins is not None else replace(column, bins="auto")
    if isinstance(column, Category):
        return column
    raise SchemaError(
        f"{function} was given a column of type {type(column).__name__}; columns are Numeric or Category. Write "
        "pf.Category('sex', ['f', 'm']) or pf.Numeric('age', 0, 120, bins=12)."
    )


def cell_labels(column: Column) -> tuple[Any, ...]:
    """The levels of a category; (low, high) for every bin of a number, and "missing" where missing values have one."""
    if isinstance(column, Category):
        return tuple(column.levels)
    ends = (column.low, *column.edges(), column.high)
    return (*pairwise(ends), *(["missing"] if column.fill == "missing" else []))


def levels_within(column: Column, among: Any) -> tuple[Column, tuple[int, ...]]:
    """The column with the levels or bins that answer the question, and which of them are counted."""
    if isinstance(column, Category):
        listed = [among] if isinstance(among, str | int | float | bool) else list(among)
        unknown = [level for level in listed if level not in column.levels]
        if unknown or not listed:
            raise SchemaError(
                f"count was given {among!r} for column {column.name!r}, whose levels are {list(column.levels)!r}. Give "
                "some of them."
            )
        return column, tuple(sorted({column.levels.index(level) for level in listed}))
    number = as_number("count", column)
    try:
        low, high = (float(end) for end in among)
    except (TypeError, ValueError):
        low, high = 1.0, 0.0
    if not (low < high and (low > number.low or high < number.high) and low < number.high and high > number.low):
        raise SchemaError(
            f"count was given the range {among!r} for column {column.name!r}; it is a pair (low, high) that is part of "
            f"{number.low:g} to {number.high:g}, and not all of it. Write, for example, (18, 65)."
        )
    edges = [edge for edge in (low, high) if number.low < edge < number.high]
    cells = len(make_block(replace(number, bins=edges), 0, whole=True).labels)
    first = int(low > number.low)
    return replace(number, bins=edges), tuple(range(first, cells - int(high < number.high)))
