"""Drafting a schema: from a table that is itself public, or from column names and types alone."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import polars as pl
import pyarrow as pa

from privfit.schema import Category, Column, Numeric, Schema, SchemaError
from privfit.schema.toml import value_text
from privfit.tables.arrays import is_absent, plain_array
from privfit.tables.datasets import is_dataset
from privfit.tables.errors import DataError
from privfit.tables.kinds import table_frame, table_kinds
from privfit.tables.locations import is_location
from privfit.tables.narwhals_frames import is_narwhals, native_table
from privfit.tables.opening import is_named, open_table
from privfit.tables.pandas_frames import is_pandas
from privfit.tables.sparse import is_sparse
from privfit.tables.table import TableLike, quietly

if TYPE_CHECKING:
    import pandas as pd

NUMBER_OF_A_DATE = (
    "Turn it into a number, such as days since a date: (pl.col(name) - pl.date(2000, 1, 1)).dt.total_days()"
)
DATE_TEXT = r"^\s*(\d{4}[-/.]\d{1,2}[-/.]\d{1,2}|\d{1,2}[-/.]\d{1,2}[-/.]\d{4})([ T]\d{1,2}:\d{2}.*)?\s*$"


def public_schema(table: TableLike, target: str | None = None) -> Schema:
    """A schema whose bounds and levels are read off a table that the user declares public."""
    frame = whole_frame(table)
    if target is not None and target not in frame.columns:
        raise SchemaError(
            f"The public table has no column {target!r} to be the target. Name one of its columns: {frame.columns}."
        )
    columns = {name: public_column(name, frame.get_column(name)) for name in frame.columns}
    goal = columns.pop(target) if target is not None else None
    return Schema(columns.values(), goal)


def whole_frame(table: TableLike) -> pl.DataFrame:
    """All of a public table as one frame."""
    return quietly("public table", lambda: _whole(table))


def _whole(table: TableLike) -> pl.DataFrame:
    if isinstance(table, pl.DataFrame):
        return table
    if isinstance(table, pl.LazyFrame):
        return table.collect()
    if is_location(table) or is_dataset(table):
        opened = open_table(table)
        _refuse_twins(opened.names or ())
        return table_frame(opened)
    if is_narwhals(table):
        return _whole(native_table(table))
    if is_sparse(table):
        return _whole(table.toarray())
    if is_pandas(table):
        return _frame(
            [str(name) for name in table.columns], [_pandas_series(table.iloc[:, i]) for i in range(table.shape[1])]
        )
    if is_named(table):
        arrow = pa.Table.from_batches([table]) if isinstance(table, pa.RecordBatch) else table
        frame = pl.from_arrow(
            arrow if isinstance(arrow, pa.Table) else pa.RecordBatchReader.from_stream(arrow).read_all()
        )
        assert isinstance(frame, pl.DataFrame)
        return frame
    array = plain_array(table)
    return pl.DataFrame({f"x{i}": array[:, i] for i in range(array.shape[1])})


def _frame(names: list[str], columns: list[pl.Series]) -> pl.DataFrame:
    _refuse_twins(names)
    return pl.DataFrame(dict(zip(names, columns, strict=True)))


def _refuse_twins(names: Sequence[str]) -> None:
    if len(set(names)) < len(names):
        raise DataError(
            "A table has more than one column of one name, and a schema knows columns by name. Rename one of them."
        )


def _pandas_series(series: pd.Series) -> pl.Series:
    if isinstance(series.dtype, np.dtype) and series.dtype.kind in "biuf":
        return pl.Series(series.to_numpy())
    return pl.Series([None if is_absent(value) else value for value in series.tolist()], strict=False)


def public_column(name: str, series: pl.Series) -> Column:
    """One column's bounds or levels, read off its values."""
    if holds_dates(series):
        raise SchemaError(
            f"Column {name!r} of the public table holds dates or times, and a schema knows numbers and categories. "
            f"{NUMBER_OF_A_DATE}, or drop it."
        )
    if series.dtype.is_numeric():
        numbers = series.cast(pl.Float64)
        finite = numbers.filter(numbers.is_finite())
        low, high = (float(finite.min() or 0.0), float(finite.max() or 0.0)) if len(finite) else (0.0, 0.0)  # type: ignore[arg-type]
        return Numeric(name, *_apart(low, high))
    kind = pl.Boolean if series.dtype == pl.Boolean else pl.String
    levels = series.drop_nulls().cast(kind).unique().sort().to_list()
    return Category(name, levels, other=len(levels) < 2)


def _apart(low: float, high: float) -> tuple[float, float]:
    """Bounds that differ, around a column that does not."""
    if low < high:
        return low, high
    width = max(1.0, abs(low))
    return low - width, high + width


def holds_dates(series: pl.Series) -> bool:
    """Whether a column holds dates or times, also such as were written out as text."""
    if series.dtype != pl.String:
        return series.dtype.is_temporal()
    present = series.drop_nulls()
    return len(present) > 0 and present.str.contains(DATE_TEXT).all()


def _alike(asked: str, names: Collection[str]) -> str:
    """Which columns may have been meant; the draft names all of them."""
    written = {name.casefold(): name for name in names}
    near = [own for name, own in written.items() if asked.casefold() in name]
    near += [written[name] for name in get_close_matches(asked.casefold(), written)]
    return f"Did you mean {' or '.join(map(repr, dict.fromkeys(near)))}? " if near else ""


def draft_schema(path: str | Path, target: str | None = None) -> str:
    """TOML with a table's column names and types, and question marks where public facts must be filled in.

    No bound or level enters the draft: only names, and whether a column is read as numbers, as dates or as something
    else. (Of a CSV file the first rows show that: a draft is for the data owner.) Names that look like a row are
    refused: a file without a header would have its first person drafted.
    """
    table = open_table(path)
    table.refuse_values_as_names(() if target is None else (target,))
    _refuse_twins(table.names or ())
    kinds = table_kinds(table)
    if target is not None and target not in kinds:
        raise SchemaError(
            f"The table {table.label!r} has no column {target!r} to be the target. It has {len(kinds)} columns. "
            f"{_alike(target, kinds)}Name one of them, as the table calls it."
        )
    if target is not None and kinds[target].is_temporal():
        raise SchemaError(
            f"The target {target!r} holds dates or times, and a target is a number or a class. {NUMBER_OF_A_DATE}."
        )
    lines = [
        '# Drafted from column names and types alone. Replace every "?" by a public fact: what could be in the column,',
        '# known without looking at anybody\'s row. A level called "other" receives every level that is not listed.',
        "# Delete the columns that the model should not use: names and numbers of people.",
        '# A class that is written as a number: type = "category" and levels = [0, 1], in place of low and high.',
        '# Where values can be missing, add what stands for them: fill = 40. To cut a number into bins: bins = "auto".',
        *(
            f"# Left out: {value_text(name)} holds dates or times. {NUMBER_OF_A_DATE}."
            for name in kinds
            if kinds[name].is_temporal()
        ),
        "",
    ]
    for name in sorted((name for name in kinds if not kinds[name].is_temporal()), key=lambda name: name != target):
        lines.append("[target]" if name == target else "[[feature]]")
        lines.extend(_draft(name, kinds[name]))
    return "\n".join(lines) + "\n"


def _draft(name: str, kind: pl.DataType) -> Sequence[str]:
    levels = "[false, true]" if kind == pl.Boolean else '["?"]'
    facts = (
        ['type = "numeric"', 'low = "?"', 'high = "?"']
        if kind.is_numeric()
        else ['type = "category"', f"levels = {levels}"]
    )
    return [f"name = {value_text(name)}", *facts, ""]


Schema._read_public = public_schema
