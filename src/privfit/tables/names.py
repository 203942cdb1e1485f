"""Names of columns.

What the schema lists is public; any other name may be a value out of a row, and is used but never told.

A CSV file without a header has its first person's cells where names should be, and so has a frame that was read from
it. Names that the schema does not list therefore stay here: no error, attribute, model or report repeats them.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from numbers import Integral
from typing import Any

from privfit.schema import Column, Schema
from privfit.tables.table import Batch, DataError, Table

_NUMBER = re.compile(r"[-+]?([$€£]?[.,]?\d[\d.,']*(e[-+]?\d+)?[$€£%]?|inf(inity)?|nan)", re.IGNORECASE)
_DATE = re.compile(r"\d{1,4}[-/.]\d{1,2}[-/.]\d{1,4}(t[\d:.]+(z|[-+][\d:]+)?)?|\d{1,2}:\d{2}(:[\d.]+)?", re.IGNORECASE)
_NO_NAMES = ("", "na", "n/a", "nan", "nat", "none", "null", "<na>", "true", "false")


def column_positions(table: Table, columns: Sequence[Column]) -> list[int]:
    """Where the schema's columns stand in a table: by name in any order, or by position when there are no names."""
    if table.names is None:
        return list(range(len(columns)))
    missing = [column.name for column in columns if column.name not in table.names]
    if missing:
        raise _missing_columns(table, missing)
    twice = [column.name for column in columns if table.names.count(column.name) > 1]
    if twice:
        raise DataError(
            f"The table has more than one column called {', '.join(map(repr, twice))}. Rename or drop one of them. "
            "Nothing was charged."
        )
    return [table.names.index(column.name) for column in columns]


def _missing_columns(table: Table, missing: list[str]) -> DataError:
    """The error for columns that the schema lists and the table lacks.

    It says how many columns the table has, not how they are called.
    """
    names = table.names or ()
    alike = [name for name in missing if name.strip().casefold() in {own.strip().casefold() for own in names}]
    told = f"{', '.join(map(repr, alike))} is there in other letters or with spaces around it. " if alike else ""
    cure = "Rename the table's column or the schema's."
    if names_are_values(table):
        told, cure = (
            "Its first row seems to stand where the names should be. ",
            "Give its columns names: a CSV file begins with a line of them.",
        )
    fact = (
        f"The table has no column {', '.join(map(repr, missing))}, which the schema lists. It has {len(names)} "
        f"column{'s' * (len(names) != 1)}. {told}"
    )
    return DataError(
        f"{fact}{cure} Nothing was charged.",
        when_predicting=f"{fact}The schema is part of the model: add or rename the table's column.",
    )


def names_are_values(table: Table, listed: Collection[str] = ()) -> bool:
    """Whether names look like cells of a row: one of them is a number, a date, a truth value or nothing, and the schema
    lists none of them.

    Columns that are counted from 0 have no names but numbers, in a pandas frame and in what was made of one; a CSV file
    shows no difference between that and a row.
    """
    labels: Sequence[Any] = getattr(table, "labels", table.names or ())
    if any(label in listed for label in labels if isinstance(label, str)):
        return False
    if not getattr(table, "is_csv", False) and [str(label) for label in labels] == [
        str(place) for place in range(len(labels))
    ]:
        return False
    return any(_is_value(str(label)) for label in labels if not isinstance(label, Integral))


def refuse_values_as_names(table: Table, listed: Collection[str] = ()) -> None:
    """Refuse a table whose first row was taken for the names of its columns: that row would be missing from the fit."""
    if names_are_values(table, listed):
        raise DataError(
            f"The names of the columns of {table.label!r} are numbers, dates or nothing, as if a row stood where names "
            "should be. A CSV file begins "
            "with a line of names. Write one, or read the file yourself: polars.read_csv(path, has_header=False), "
            "pandas.read_csv(path, header=None). "
            "Columns that are called so must be renamed. Nothing was charged."
        )


def _is_value(name: str) -> bool:
    """Whether a name reads like a cell, or like a row of them (a file with another separator has one column)."""
    plain = name.strip().strip("\"'").casefold()
    tokens = re.split(r"[\s;|\t]+", plain)
    return plain in _NO_NAMES or all(_NUMBER.fullmatch(token) or _DATE.fullmatch(token) for token in tokens)


class ByPosition:
    """A table whose columns are called x0, x1, ... in their order, whatever names they carry; the target alone is found
    by its name.

    A box of open width says nothing about single columns, so that it knows them by position and their own names are not
    kept.
    """

    def __init__(self, table: Table, target: str | None) -> None:
        own = range(table.width) if table.names is None else table.names  # type: ignore[attr-defined]
        features = [place for place, name in enumerate(own) if table.names is None or name != target]
        called = {place: f"x{number}" for number, place in enumerate(features)}
        self._table, self.label, self.n_rows = table, table.label, table.n_rows
        self.names: tuple[str, ...] | None = tuple(called.get(place, str(target)) for place in range(len(own)))
        self.passes_once = bool(getattr(table, "passes_once", False))
        self.width = len(features)

    def batches(self, columns: Sequence[Column], positions: Sequence[int], rows: int) -> Iterator[Batch]:
        """The table's own batches: columns stand where they stood."""
        return self._table.batches(columns, positions, rows)


def settled_box(table: Table, schema: Schema) -> tuple[Table, Schema]:
    """A table under a box of open width: its columns called by position, and the box with as many columns."""
    target = None if schema.target is None else schema.target.name
    placed = ByPosition(table, target)
    if not placed.width:
        raise DataError(
            "The table has 0 feature(s), and a minimum of 1 is required. Add a column. Nothing was charged."
        )
    refuse_values_as_names(table, () if target is None else (target,))
    return (table if table.names is None else placed), schema.with_features(
        [f"x{place}" for place in range(placed.width)]
    )
