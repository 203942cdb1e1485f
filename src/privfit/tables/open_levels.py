"""Columns whose levels nobody has listed: handed out as what stands in their cells, to be counted.

Texts come as a polars series of texts, everything else as one of floats; a missing value is null. What a cell is read
as depends on that cell and on the kind of the whole column, never on other cells.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import numpy as np
import polars as pl
from numpy.typing import NDArray

from privfit.tables.errors import DataError

if TYPE_CHECKING:
    from privfit.schema import Column
    from privfit.tables.table import Values


def open_array(values: NDArray[Any], column: Column) -> Values:
    """An array's column."""
    if values.dtype.kind in "biuf":
        return open_series(pl.Series(values), column)
    if values.dtype.kind not in "OUST":
        raise other_kind(column)
    cells = [None if _is_gap(value) else value for value in values.tolist()]
    if all(cell is None or isinstance(cell, str) for cell in cells):
        return open_series(pl.Series(cells, dtype=pl.String), column)
    if all(cell is None or isinstance(cell, bool | int | float | np.number | np.bool_) for cell in cells):
        numbers = [None if cell is None else float(cell) if abs(cell) < 2**53 else np.inf for cell in cells]
        return open_series(pl.Series(numbers, dtype=pl.Float64), column)
    raise other_kind(column)


def _is_gap(value: object) -> bool:
    return value is None or type(value).__name__ in ("NAType", "NaTType") or value != value


def open_series(series: pl.Series, column: Column) -> Values:
    """A polars column."""
    dtype = series.dtype
    if dtype == pl.String or isinstance(dtype, pl.Categorical | pl.Enum):
        return cast("Values", series.cast(pl.String))
    if dtype.is_numeric() or dtype == pl.Boolean:
        return cast("Values", series.cast(pl.Float64).fill_nan(None))
    if series.null_count() == len(series):  # nothing is there, and nothing is of every kind
        return cast("Values", series.cast(pl.String, strict=False))
    raise other_kind(column)


def counted_levels(values: Values) -> dict[str | float, int]:
    """How many cells each level has, missing ones left out."""
    found = cast(pl.Series, values).drop_nulls().alias("level").value_counts(name="rows")
    return dict(zip(found["level"].to_list(), found["rows"].to_list(), strict=True))


def other_kind(column: Column) -> DataError:
    """The error for cells that cannot be levels."""
    return DataError(
        f"Column {column.name!r} holds values that are neither all texts nor all numbers, and levels are one or the "
        "other. Convert the column. Nothing was charged."
    )
