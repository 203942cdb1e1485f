"""Public tables to be handed back with weights: read whole, put together, given a column, drawn from, written."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import polars as pl
from numpy.typing import NDArray

from privfit.tables.drafts import whole_frame
from privfit.tables.errors import DataError
from privfit.tables.opening import is_frame, is_named
from privfit.tables.pandas_frames import is_pandas
from privfit.tables.parquet_files import ParquetTable

if TYPE_CHECKING:
    import pandas as pd

    Frame: TypeAlias = pl.DataFrame | pd.DataFrame
else:
    Frame = object
"""A frame in memory that is handed back: of pandas where the user's own is, of polars otherwise."""


def in_memory(table: Any) -> Any:
    """The table as the user gave it, or, of a file, a query or a stream, what it holds as a polars frame."""
    if is_named(table) and not is_frame(table):
        return whole_frame(table)
    return table


def several_tables(given: Any) -> list[Any]:
    """A list of tables, which may be a list of one. Nested lists of numbers are one table."""
    if (
        isinstance(given, list | tuple)
        and given
        and all(is_named(one) or getattr(one, "ndim", 0) == 2 for one in given)
    ):
        return list(given)
    return [given]


def joined(tables: Sequence[Any], names: Sequence[str]) -> Any:
    """The rows of all tables in one frame: of pandas if all are, else of polars.

    Columns of arrays have these names; columns that a table lacks are empty there.
    """
    if all(is_pandas(table) for table in tables):
        if len(tables) == 1:
            return tables[0]
        import pandas as pd  # the user has it: the tables are made of it

        return pd.concat(tables, ignore_index=True)
    frames = [
        whole_frame(table) if is_named(table) else pl.DataFrame(np.asarray(table), schema=list(names))
        for table in tables
    ]
    return pl.concat(frames, how="diagonal_relaxed") if len(frames) > 1 else frames[0]


def with_column(frame: Any, name: str, values: NDArray[Any]) -> Any:
    """The frame with one more column."""
    if name in list(frame.columns):
        raise DataError(
            f"The public table has a column {name!r} already. Rename it, or choose another name for the weights."
        )
    return frame.assign(**{name: values}) if is_pandas(frame) else frame.with_columns(pl.Series(name, values))


def taken(frame: Any, places: NDArray[np.int64]) -> Any:
    """The rows in these places, in their order."""
    return frame.iloc[places].reset_index(drop=True) if is_pandas(frame) else frame[places]


def column_numbers(frame: Any, name: str) -> NDArray[np.float64]:
    """A column of numbers or truth values."""
    if name not in list(frame.columns):
        raise DataError(
            f"The public table has no column {name!r}. Name one of its columns, or give a function of the table."
        )
    values = np.asarray(frame[name].to_numpy())
    if values.dtype.kind not in "biuf":
        raise DataError(
            f"Column {name!r} holds no numbers, and an estimate is a mean of numbers. Give a function: lambda table: "
            f"table[{name!r}] == 'level'."
        )
    return values.astype(np.float64)


def refuse_nested(sources: Iterable[Path], output: Path) -> None:
    """Refuse Parquet files with lists or structs that are to be written as CSV, before anything is charged."""
    if output.suffix.lower() in ParquetTable.endings:
        return
    for source in (one for one in sources if one.suffix.lower() in ParquetTable.endings):
        nested = [name for name, kind in pl.scan_parquet(source).collect_schema().items() if kind.is_nested()]
        if nested:
            raise DataError(
                f"The public file {source.name!r} has lists or structs in {nested}, and CSV cannot hold them. Write "
                ".parquet, or drop these columns. Nothing was charged."
            )


def write_frame(frame: Any, path: Path) -> None:
    """Write a frame as the ending of the path says."""
    shown = pl.from_pandas(frame) if is_pandas(frame) else frame
    if path.suffix.lower() in ParquetTable.endings:
        shown.write_parquet(path)
    else:
        shown.write_csv(path)


def columns_to_frame(columns: dict[str, NDArray[np.generic]]) -> pl.DataFrame:
    """Columns as a polars frame; objects are texts or numbers, whichever they all are."""
    return pl.DataFrame(
        {name: values.tolist() if values.dtype == object else values for name, values in columns.items()}
    )
