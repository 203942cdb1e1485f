"""Row filters: which rows of a table a schema is about, in a form that is public and can be written down.

A filter is a list of conditions, one per column, that all hold for a row that is used. It is data, never code: a range
of a number, or a list of levels. A condition reads its own row only, and no row with a missing value meets one.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from privfit.schema.columns import Category, Column, Level, Numeric
from privfit.schema.errors import SchemaError, shown

EXAMPLE = 'where={"age": (18, None), "status": ["employed", "retired"]}'


@dataclass(frozen=True)
class Condition:
    """What one column must be in a row that is used: a number between two bounds, both included, or one of some levels.

    `column` is how the column is read for it.
    """

    name: str
    low: float | None = None
    high: float | None = None
    levels: tuple[Level, ...] = ()
    column: Column = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.levels:
            column: Column = Category(self.name, self.levels, other=True)
        else:
            for bound in (self.low, self.high):
                if bound is not None and not _is_bound(bound):
                    raise _no_condition(self.name, (self.low, self.high))
            if self.low is None and self.high is None:
                raise _no_condition(self.name, (self.low, self.high))
            if self.low is not None and self.high is not None and self.low > self.high:
                raise SchemaError(
                    f"The filter of column {self.name!r} has the bounds {self.low!r} and {self.high!r}, between which "
                    "nothing is. Write the smaller one first."
                )
            column = Numeric(self.name, -1.0, 1.0)  # values are read as they are; bounds play no part
        object.__setattr__(self, "column", column)

    def __str__(self) -> str:
        if self.levels:
            return f"{self.name} is {' or '.join(map(str, self.levels))}"
        bounds = [f"at least {self.low:g}"] * (self.low is not None) + [f"at most {self.high:g}"] * (
            self.high is not None
        )
        return f"{self.name} is {' and '.join(bounds)}"


def conditions(where: object) -> tuple[Condition, ...]:
    """The conditions of a filter as a user writes it: a mapping from names of columns to (low, high), a list of levels,
    or one level.
    """
    if where is None:
        return ()
    if isinstance(where, tuple) and all(isinstance(one, Condition) for one in where):
        return where
    if not isinstance(where, Mapping):
        raise SchemaError(
            f"A schema was given where={type(where).__name__}; a filter is a mapping from names of columns to what "
            f"they must be, and never a function: it is public and saved with the model. Write, for example, {EXAMPLE}."
        )
    return tuple(_condition(name, asked) for name, asked in where.items())


def _condition(name: object, asked: Any) -> Condition:
    if not isinstance(name, str) or not name:
        raise SchemaError(
            f"A filter names the column {shown(name)}; a name is a non-empty text. Write, for example, {EXAMPLE}."
        )
    if isinstance(asked, Mapping):
        if not asked or set(asked) - {"low", "high"}:
            raise _no_condition(name, dict(asked))
        return Condition(name, asked.get("low"), asked.get("high"))
    if isinstance(asked, tuple) and len(asked) == 2 and all(bound is None or _is_bound(bound) for bound in asked):
        return Condition(name, *asked)
    if isinstance(asked, str | int | float):
        return Condition(name, levels=(asked,))
    if isinstance(asked, Sequence) and not isinstance(asked, tuple) and asked:
        return Condition(name, levels=tuple(asked))
    raise _no_condition(name, asked)


def _is_bound(bound: object) -> bool:
    return isinstance(bound, int | float) and not isinstance(bound, bool) and _is_comparable(bound)


def _is_comparable(bound: float) -> bool:
    try:
        return not math.isnan(bound)
    except OverflowError:  # an integer beyond every float
        return False


def _no_condition(name: str, asked: object) -> SchemaError:
    return SchemaError(
        f"The filter of column {name!r} is {shown(asked)}; it is a pair (low, high) of numbers, of which one may be "
        f"None, or a list of levels. Write, for example, {EXAMPLE}."
    )
