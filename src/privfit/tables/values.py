"""Columns of Arrow and polars as numbers and positions of levels. Texts that are places in a dictionary are never spelt
out.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np
import polars as pl
import pyarrow as pa
from numpy.typing import NDArray

from privfit.schema import Category, Column, Numeric
from privfit.tables.errors import wrong_type
from privfit.tables.identifiers import PersonColumn, hashed_series
from privfit.tables.kept_columns import KeptColumn, kept_series
from privfit.tables.table import ABSENT, UNKNOWN, Batch, Values, codes_of_numbers, only_absent

FEW_TEXTS = 1000
"""Texts that are looked up one by one faster than an engine is started for them. No command varies it."""


def record_batches(
    reader: Iterable[pa.RecordBatch], columns: Sequence[Column], positions: Sequence[int], rows: int
) -> Iterator[Batch]:
    """The columns at these positions of every record batch, at most so many rows at a time."""
    for batch in reader:
        for start in range(0, batch.num_rows, rows):
            yield [
                arrow_values(batch.column(position).slice(start, rows), column)
                for column, position in zip(columns, positions, strict=True)
            ]


def arrow_values(array: pa.Array, column: Column) -> Values:
    """One column of a record batch as numbers or as positions of levels."""
    if isinstance(array, pa.DictionaryArray) and isinstance(column, Category) and column.is_text:
        if len(array.dictionary) <= len(array) and is_text(array.type.value_type):
            return _dictionary_codes(array, column)
        array = array.dictionary_decode()
    return series_values(pl.Series(column.name, array), column)


def is_text(kind: pa.DataType) -> bool:
    """Whether values of this type are texts."""
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def _dictionary_codes(array: pa.DictionaryArray, column: Category) -> NDArray[np.int32]:
    """The level of every row: the dictionary's entries are looked up once."""
    entries, places = array.dictionary, array.indices
    if len(entries) + len(column.levels) > FEW_TEXTS or entries.null_count:
        codes = text_codes(pl.Series("", entries, pl.String), column)
    else:
        known = {level: place for place, level in enumerate(column.levels)}
        codes = np.array([known.get(entry, UNKNOWN) for entry in entries.to_pylist()], dtype=np.int32)
    if places.null_count:
        places = places.cast(pa.int32()).fill_null(len(entries))
    levels = np.append(codes, np.int32(ABSENT))
    return np.asarray(levels.take(places.to_numpy(zero_copy_only=False)), dtype=np.int32)


def series_values(series: pl.Series, column: Column) -> Values:
    """One polars column as numbers or as positions of levels."""
    if isinstance(column, KeptColumn):
        return kept_series(series, column.name)
    if isinstance(column, PersonColumn):
        return hashed_series(series, column)
    dtype = series.dtype
    if series.null_count() == len(series):  # nothing is there, and nothing is of every kind
        return (
            np.full(len(series), np.nan)
            if isinstance(column, Numeric)
            else np.full(len(series), ABSENT, dtype=np.int32)
        )
    text = dtype == pl.String or isinstance(dtype, pl.Categorical | pl.Enum)
    number = dtype.is_numeric() or dtype == pl.Boolean
    if number:
        numbers = series.cast(pl.Float64).to_numpy()
        if isinstance(column, Numeric):
            return numbers
        return (
            only_absent(np.isnan(numbers), "numbers", column) if column.is_text else codes_of_numbers(numbers, column)
        )
    if text and isinstance(column, Category) and column.is_text:
        return text_codes(series.cast(pl.String), column)
    raise wrong_type(column, "texts" if text else f"values of type {type(dtype).__name__}")


def text_codes(strings: pl.Series, column: Category) -> NDArray[np.int32]:
    """Positions of texts among a category's levels."""
    places = strings.cast(pl.Enum(map(str, column.levels)), strict=False).to_physical().cast(pl.Int32)
    if not places.null_count():
        return places.to_numpy()
    codes = places.fill_null(UNKNOWN).to_numpy()
    return np.where(strings.is_null().to_numpy(), np.int32(ABSENT), codes)
