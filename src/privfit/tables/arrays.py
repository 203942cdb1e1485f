"""numpy arrays, and anything numpy reads as one: columns are known by position."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privfit.schema import Category, Column, Numeric
from privfit.tables.table import ABSENT, UNKNOWN, Batch, DataError, Values, codes_of_numbers, wanted, wrong_type


class ArrayTable:
    """A two-dimensional array in memory."""

    label = "array"
    names: tuple[str, ...] | None = None

    def __init__(self, array: NDArray[Any]) -> None:
        self._array = array
        self.n_rows: int | None = array.shape[0]

    def batches(self, columns: Sequence[Column], positions: Sequence[int], rows: int) -> Iterator[Batch]:
        for start in range(0, len(self._array), rows):
            part = self._array[start : start + rows]
            yield [column_values(part[:, position], column) for column, position in zip(columns, positions, strict=True)]


def column_values(values: NDArray[Any], column: Column) -> Values:
    """One array column as numbers or as positions of levels."""
    if values.dtype.kind in "biuf":
        numbers = values.astype(np.float64, copy=False)
        if isinstance(column, Numeric):
            return numbers
        if column.is_text:
            raise wrong_type(column.name, "numbers", wanted(column))
        return codes_of_numbers(numbers, column)
    if values.dtype.kind in "OUST":
        objects = values.astype(object)
        return _object_numbers(objects, column) if isinstance(column, Numeric) else _object_codes(objects, column)
    raise wrong_type(column.name, f"values of type {values.dtype}", wanted(column))


def _is_absent(value: Any) -> bool:
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    return isinstance(value, float | np.floating) and bool(np.isnan(value))


def _object_numbers(objects: NDArray[Any], column: Numeric) -> NDArray[np.float64]:
    if any(isinstance(value, str | bytes | complex) for value in objects):
        raise wrong_type(column.name, "texts", wanted(column))
    try:
        return np.array([np.nan if _is_absent(value) else float(value) for value in objects], dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        raise DataError(
            f"Column {column.name!r} holds values that are not numbers of ordinary size. Convert the column to numbers. Nothing was charged."
        ) from None


def _object_codes(objects: NDArray[Any], column: Category) -> NDArray[np.int32]:
    places = {level: place for place, level in enumerate(column.levels)}
    if column.is_text and not any(isinstance(value, str) for value in objects) and not all(map(_is_absent, objects)):
        raise wrong_type(column.name, "values that are not texts", wanted(column))
    try:
        found = [ABSENT if _is_absent(value) else places.get(value, UNKNOWN) for value in objects]
    except TypeError:
        raise wrong_type(column.name, "values that are neither texts nor numbers", wanted(column)) from None
    return np.array(found, dtype=np.int32)
