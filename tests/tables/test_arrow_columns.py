"""Columns of Arrow and of DuckDB mean the same as those of polars, whatever is in them."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pytest

from privfit.schema import Category, Column, Numeric
from privfit.tables import DataError, open_table, table
from privfit.tables.arrow_columns import arrow_values
from privfit.tables.table import series_values

TEXTS = ["it's", '"quoted"', "a;--", "", " ", "Ångström", "😀", "tab\t", "line\n", "A", "a"]
OTHERS = [None, "a ", "nobody", "a\0b", "\0", "ångström"]
LEVELS = {
    "odd": TEXTS,
    "two": ["a", "b"],
    "two hundred and fifty-six": [*TEXTS, *(f"level {i}" for i in range(256 - len(TEXTS)))],
    "with NUL": [*TEXTS, "a\0b"],
    "many": [*TEXTS, *(f"level {i}" for i in range(1500))],
}


def by_polars(array: pa.Array, column: Column) -> Any:
    return series_values(pl.Series("", array), column)


def by_duckdb(array: pa.Array, column: Column) -> Any:
    relation = pytest.importorskip("duckdb").connect().from_arrow(pa.table({'a "b"': array, "other": array}))
    table = open_table(relation)
    return np.concatenate([batch[0] for batch in table.read([column], [0], 7)])


@pytest.mark.parametrize("levels", LEVELS.values(), ids=LEVELS.keys())
def test_few_texts_have_the_levels_that_many_have(levels: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    column = Category("c", levels)
    found = {}
    for few in (0, 10**6):
        monkeypatch.setattr(table, "FEW_TEXTS", few)
        found[few] = series_values(pl.Series("c", [*TEXTS, *OTHERS]), column)
    assert found[0].dtype == found[10**6].dtype == np.int32
    np.testing.assert_array_equal(found[0], found[10**6])
    assert {table.ABSENT, table.UNKNOWN} < set(found[0].tolist())


@pytest.mark.parametrize("levels", LEVELS.values(), ids=LEVELS.keys())
@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.string_view()])
def test_texts_have_the_same_levels_wherever_they_are_looked_up(levels, kind) -> None:
    column = Category("x", levels)
    texts = [*TEXTS, *OTHERS, *reversed(levels)]
    places = {level: place for place, level in enumerate(levels)}
    wanted = [-2 if text is None else places.get(text, -1) for text in texts]
    array = pa.array(texts, kind)
    assert arrow_values(array, column).tolist() == wanted
    assert arrow_values(array[2:].slice(1), column).tolist() == wanted[3:]
    assert by_polars(array, column).tolist() == wanted
    assert by_duckdb(array, column).tolist() == wanted


@pytest.mark.parametrize("texts", [[], [None, None], ["nobody"], ["a"]])
def test_columns_of_nothing_and_of_nothing_that_is_listed(texts) -> None:
    array, column = pa.array(texts, pa.string()), Category("x", ["a", "b"])
    wanted = by_polars(array, column)
    assert arrow_values(array, column).tolist() == wanted.tolist()
    assert arrow_values(array, column).dtype == wanted.dtype
    if texts:
        assert by_duckdb(array, column).tolist() == wanted.tolist()


KINDS = [pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64()]
NUMBERS = {
    **{str(kind): pa.array([0, 1, 127, 5], kind) for kind in KINDS},
    "large integers": pa.array([2**53 + 1, 2**63 - 1, -(2**63), 2**53 + 3], pa.int64()),
    "large naturals": pa.array([2**53 + 1, 2**64 - 1, 2**63 + 1025, 2**63 + 1024], pa.uint64()),
    "single": pa.array([0.1, np.inf, np.nan, -1e-45], pa.float32()),
    "half": pa.array(np.array([0.1, np.inf, np.nan], np.float16), pa.float16()),
    "double": pa.array([0.1, -np.inf, np.nan, 5e-324]),
    "truths": pa.array([True, False, True]),
    "nothing": pa.array([], pa.int32()),
}


@pytest.mark.parametrize("gap", [False, True])
@pytest.mark.parametrize("array", NUMBERS.values(), ids=NUMBERS.keys())
def test_numbers_are_the_same_to_the_bit(array, gap) -> None:
    array = pa.concat_arrays([array, pa.nulls(1, array.type)]) if gap else array
    column = Numeric("x", 0, 1)
    for part in (array, array.slice(1), array.slice(len(array))):
        found, wanted = arrow_values(part, column), by_polars(part, column)
        assert found.dtype == wanted.dtype == np.float64
        assert found.tobytes() == wanted.tobytes()


@pytest.mark.parametrize("values", [["a"], [1]])
def test_what_is_of_the_wrong_kind_is_refused_by_duckdb_too(values) -> None:
    column: Column = Numeric("x", 0, 1) if values == ["a"] else Category("x", ["a", "b"])
    for read in (arrow_values, by_duckdb):
        with pytest.raises(DataError, match="'x'"):
            read(pa.array(values), column)


def test_runs_and_views_of_texts_are_read_as_what_they_stand_for() -> None:
    runs = pa.RunEndEncodedArray.from_arrays(pa.array([2, 3], pa.int32()), pa.array([0.5, 0.25]))
    assert arrow_values(runs, Numeric("x", 0, 1)).tolist() == [0.5, 0.5, 0.25]
    views = pa.DictionaryArray.from_arrays(pa.array([1, None, 0]), pa.array(["a", "b"], pa.string_view()))
    assert arrow_values(views, Category("c", ["a", "b"])).tolist() == [1, -2, 0]
