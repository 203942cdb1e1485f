"""Columns that a prediction carries along: handed out as the table has them, neither encoded nor checked.

Nothing that is fitted reads them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import polars as pl
from numpy.typing import NDArray

from privfit.tables.errors import DataError

if TYPE_CHECKING:
    from privfit.tables.table import Table, Values


@dataclass(frozen=True)
class KeptColumn:
    """A column that is handed out as a polars series; of a CSV file, as the texts that stand in it."""

    name: str


def kept_array(values: NDArray[Any], name: str) -> Values:
    """An array's column as it is."""
    if values.dtype.kind in "biufMm":
        return kept_series(pl.Series(name, values), name)
    return kept_series(pl.Series(name, values.tolist(), strict=False), name)


def kept_series(series: pl.Series, name: str) -> Values:
    """A series in the place of what a schema's column is handed out as."""
    return cast("Values", series.alias(name))


def kept_positions(table: Table, keep: Sequence[str]) -> list[int]:
    """Where the columns that are kept stand in a table."""
    if keep and table.names is None:
        raise DataError(
            "Columns to keep were named, and the columns of this table have no names. Give a table whose columns have."
        )
    names = table.names or ()
    missing = [name for name in keep if names.count(name) != 1]
    if missing:
        raise DataError(
            f"The columns to keep include {', '.join(map(repr, missing))}, which the table does not have exactly once. "
            f"It has {len(names)} column{'s' * (len(names) != 1)}. Name columns as the table calls them."
        )
    return [names.index(name) for name in keep]
