"""Columns of Arrow, which most engines hand out, as numbers and positions of levels.

Numbers without gaps are taken as they lie in memory, texts are looked up where they lie; those that are places in a
dictionary are never spelt out. What is left goes by way of polars.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TypeGuard

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from privfit.schema import Category, Column, Numeric, OpenCategory
from privfit.tables.errors import length_of_time
from privfit.tables.table import ABSENT, UNKNOWN, Batch, Values, series_values, text_codes

TEXTS = frozenset({pa.string(), pa.large_string()})
"""Types of texts."""
_SIGNED, _UNSIGNED = (pa.int8, pa.int16, pa.int32, pa.int64), (pa.uint8, pa.uint16, pa.uint32, pa.uint64)
PLAIN = frozenset(kind().id for kind in (pa.float64, pa.float32, *_SIGNED, *_UNSIGNED))
"""Types of numbers that numpy has too, by their numbers: a type itself is compared by its name, which is slow."""
FEW_TEXTS = 1000
"""Texts that are looked up one by one faster than an engine is started for them. No command varies it."""


def record_batches(
    reader: Iterable[pa.RecordBatch], columns: Sequence[Column], positions: Sequence[int], rows: int
) -> Iterator[Batch]:
    """The columns at these positions of every record batch, at most so many rows at a time."""
    for batch in short_batches(reader, rows):
        yield [arrow_values(batch.column(place), column) for column, place in zip(columns, positions, strict=True)]


def short_batches(reader: Iterable[pa.RecordBatch], rows: int) -> Iterator[pa.RecordBatch]:
    """The same rows, at most so many at a time."""
    for batch in reader:
        yield from (batch.slice(start, rows) for start in range(0, batch.num_rows, rows))


def arrow_values(array: pa.Array, column: Column) -> Values:
    """One column of a record batch as numbers or as positions of levels."""
    if type(column) is Numeric and array.type.id in PLAIN and not array.null_count:
        return np.asarray(array.to_numpy(), dtype=np.float64)
    if is_listed(column) and array.type in TEXTS:
        return _listed_texts(array, column)
    if is_listed(column) and isinstance(array, pa.DictionaryArray):
        if len(array.dictionary) <= len(array) and array.type.value_type in TEXTS:
            return _dictionary_codes(array, column)
        array = _spelt_out(array)
    if isinstance(array, pa.RunEndEncodedArray):
        array = pc.run_end_decode(array)
    check_interval(column.name, array.type)
    return series_values(pl.Series(column.name, array), column)


def check_interval(name: str, kind: pa.DataType) -> None:
    """Refuse a column of lengths of time by its name: polars, which takes none, would not say which it is."""
    if pa.types.is_interval(kind):
        raise length_of_time(name)


def is_listed(column: Column) -> TypeGuard[Category]:
    """Whether texts of this column are looked up among the levels of the schema."""
    return isinstance(column, Category) and column.is_text and not isinstance(column, OpenCategory)


def _listed_texts(array: pa.Array, column: Category) -> NDArray[np.int32]:
    """The level of every row: Arrow finds them in half the time of polars, which copies texts."""
    places = pc.index_in(array, value_set=pa.array(map(str, column.levels), array.type))
    if not places.null_count:
        return np.asarray(places.to_numpy(), dtype=np.int32)
    absent = array.is_null().to_numpy(zero_copy_only=False)
    return np.where(absent, np.int32(ABSENT), places.fill_null(UNKNOWN).to_numpy())


def _spelt_out(array: pa.DictionaryArray) -> pa.Array:
    """The entry of every row. Arrow decodes no dictionary of views of texts."""
    if array.type.value_type == pa.string_view():
        array = pa.DictionaryArray.from_arrays(array.indices, array.dictionary.cast(pa.large_string()))
    return array.dictionary_decode()


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
