"""Columns of Arrow as numbers and positions of levels. Texts that are places in a dictionary are never spelt out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np
import polars as pl
import pyarrow as pa
from numpy.typing import NDArray

from privfit.schema import Category, Column
from privfit.tables.polars_tables import series_values, text_codes
from privfit.tables.table import ABSENT, UNKNOWN, Batch, Values

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
    levels = np.append(_entry_codes(array.dictionary, column), np.int32(ABSENT))
    places = array.indices
    if places.null_count:
        places = places.cast(pa.int32()).fill_null(len(array.dictionary))
    return np.asarray(levels.take(places.to_numpy(zero_copy_only=False)), dtype=np.int32)


def _entry_codes(entries: pa.Array, column: Category) -> NDArray[np.int32]:
    """Positions of a dictionary's entries among the levels."""
    if len(entries) + len(column.levels) > FEW_TEXTS or entries.null_count:
        return text_codes(pl.Series("", entries, pl.String), column)
    known = {level: place for place, level in enumerate(column.levels)}
    return np.array([known.get(entry, UNKNOWN) for entry in entries.to_pylist()], dtype=np.int32)
