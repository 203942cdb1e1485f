"""numpy arrays, and anything numpy reads as one: columns are known by position."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from decimal import Decimal
from numbers import Real

import numpy as np
from numpy.typing import NDArray

from privfit.schema import Category, Column, Numeric, OpenCategory
from privfit.tables.errors import DataError, wrong_type
from privfit.tables.identifiers import PersonColumn, hashed_array
from privfit.tables.kept_columns import KeptColumn, kept_array
from privfit.tables.open_levels import open_array
from privfit.tables.table import (
    ABSENT,
    UNKNOWN,
    Batch,
    Table,
    TableLike,
    Values,
    codes_of_numbers,
    only_absent,
    quietly,
)

Array = NDArray[np.generic]

_MISFIT = -3
"""The code of a cell that is no level, no fill and not missing."""
_NUMBERS = (float, int, np.bool_, Real, Decimal)
"""Cells that are numbers. What comes first is found at once: most cells are floats."""


class ArrayTable(Table):
    """A two-dimensional array in memory."""

    label = "array"
    in_memory = True

    def __init__(self, table: TableLike) -> None:
        self._array = plain_array(table)
        self.n_rows, self.width = self._array.shape

    def read(self, columns: Sequence[Column], positions: Sequence[int], rows: int) -> Iterator[Batch]:
        for start in range(0, len(self._array), rows):
            part = self._array[start : start + rows]
            yield [
                column_values(part[:, position], column) for column, position in zip(columns, positions, strict=True)
            ]


def plain_array(table: TableLike) -> Array:
    """A table without names as a two-dimensional array of whatever it holds."""
    refuse_masked(table)
    array = quietly("array", lambda: as_given(table))
    if array.ndim != 2:
        raise DataError(
            f"A table with {array.ndim} dimension(s) was given (a {type(table).__name__}); a table has two, rows and "
            "columns. "
            "Reshape your data, for example with X.reshape(-1, 1) for a single column. Nothing was charged."
        )
    return array


def refuse_masked(values: object) -> None:
    """Refuse a masked array: numpy would hand out what is under the mask."""
    if isinstance(values, np.ma.MaskedArray):
        raise DataError(
            "A masked array was given, and what is under its mask would be read. Missing values are NaN or None. "
            "Write X.filled(np.nan). Nothing was charged."
        )


def as_given(values: object) -> Array:
    """Values as an array that keeps every cell as it is.

    Of a list with one text numpy makes texts of all its numbers, a missing one included: one row would change how all
    others are read.
    """
    array = np.asarray(values)
    if array.dtype.kind in "US" and not isinstance(values, np.ndarray):
        return np.asarray(values, dtype=object)
    return array


def column_values(values: Array, column: Column) -> Values:
    """One array column as numbers or as positions of levels."""
    if isinstance(column, KeptColumn):
        return kept_array(values, column.name)
    if isinstance(column, PersonColumn):
        return hashed_array(values, column)
    if isinstance(column, OpenCategory):
        return open_array(values, column)
    if values.dtype.kind in "biuf":
        with np.errstate(over="ignore"):  # a warning would reveal a single huge value
            numbers = values.astype(np.float64, copy=False)
        if isinstance(column, Numeric):
            return numbers
        return (
            only_absent(np.isnan(numbers), "numbers", column) if column.is_text else codes_of_numbers(numbers, column)
        )
    if values.dtype.kind in "OUST":
        objects = values.astype(object)
        return _object_numbers(objects, column) if isinstance(column, Numeric) else _object_codes(objects, column)
    raise wrong_type(column, f"values of type {values.dtype.type.__name__}")  # of a structure, not its fields' names


def is_absent(value: object) -> bool:
    """Whether a cell is missing: None, NaN, or what pandas writes for them."""
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    if isinstance(value, np.datetime64 | np.timedelta64):
        return bool(np.isnat(value))
    if isinstance(value, Decimal):
        return value.is_qnan()  # a signalling NaN is no number and no gap
    return isinstance(value, float | np.floating) and bool(np.isnan(value))


def _object_numbers(objects: NDArray[np.object_], column: Numeric) -> NDArray[np.float64]:
    numbers = [_number(value) for value in objects]
    if any(number is None for number in numbers):
        texts = any(isinstance(value, str | bytes) for value in objects)
        raise wrong_type(column, "texts" if texts else "values that are not numbers of ordinary size")
    return np.array(numbers, dtype=np.float64)


def _number(value: object) -> float | None:
    """A cell as a number, NaN if it is missing, None if it is not a number. No method of any other object is called."""
    if is_absent(value):
        return np.nan
    if not isinstance(value, _NUMBERS):
        return None
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):  # an integer too large, a signalling NaN
        return None


def _object_codes(objects: NDArray[np.object_], column: Category) -> NDArray[np.int32]:
    places: dict[object, int] = {level: place for place, level in enumerate(column.levels)}
    codes = np.array([_code(value, places, column.is_text) for value in objects], dtype=np.int32)
    if (codes == _MISFIT).any():
        raise wrong_type(column, "values that are not texts" if column.is_text else "values that are not numbers")
    return codes


def _code(value: object, places: dict[object, int], is_text: bool) -> int:
    """Judged cell by cell, so that no cell's code depends on the batch it comes in."""
    if is_absent(value):
        return ABSENT
    if not isinstance(value, (str, *_NUMBERS)):
        return _MISFIT
    try:
        place = places.get(value, UNKNOWN)
    except TypeError:  # a signalling NaN cannot be looked up
        return _MISFIT
    return _MISFIT if place == UNKNOWN and isinstance(value, str) != is_text else place
