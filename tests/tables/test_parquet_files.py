"""Parquet files: the values of every encoding, and little memory however large a row group is."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from privfit.schema import Category, Numeric
from privfit.tables import DataError, open_table
from privfit.tables.arrow_columns import FEW_TEXTS, arrow_values

COLUMNS = [Category("city", ["Oslo", "Rome", "other"]), Numeric("age", 0, 100), Category("kind", [1, 2, 3])]
TABLE = pa.table(
    {
        "age": pa.array([1, None, 3, 4, 5], pa.int16()),
        "city": ["Rome", None, "Oslo", "elsewhere", "Rome"],
        "kind": [3, 1, None, 7, 2],
    }
)


def values(path: Path, columns=COLUMNS, rows: int = 2) -> list[list[float]]:
    table = open_table(path)
    batches = list(table.batches(columns, table.positions(columns), rows))
    return [np.concatenate(parts).tolist() for parts in zip(*batches, strict=True)]


@pytest.mark.parametrize("group", [1, 2, 5])
@pytest.mark.parametrize("dictionary", [True, False])
def test_values_do_not_depend_on_how_they_are_encoded(group, dictionary, tmp_path) -> None:
    pq.write_table(TABLE, tmp_path / "t.parquet", row_group_size=group, use_dictionary=dictionary)
    city, age, kind = values(tmp_path / "t.parquet")
    assert city == [1, -2, 0, -1, 1]
    np.testing.assert_array_equal(age, [1, np.nan, 3, 4, 5])
    assert kind == [2, 0, -2, -1, 1]


def test_a_text_among_numbers_is_an_error_that_does_not_quote_it(tmp_path) -> None:
    pq.write_table(pa.table({"age": ["hunter2", "3"]}), tmp_path / "t.parquet")
    with pytest.raises(DataError, match="'age'") as refused:
        values(tmp_path / "t.parquet", [Numeric("age", 0, 100)])
    assert "hunter2" not in str(refused.value)


def test_categories_and_enumerations_of_polars_are_texts(tmp_path) -> None:
    frame = pl.DataFrame({"city": ["Rome", None, "Oslo", "elsewhere"]})
    for kind in (pl.Categorical, pl.Enum(["elsewhere", "Oslo", "Rome"])):
        frame.cast({"city": kind}).write_parquet(tmp_path / "t.parquet")
        assert values(tmp_path / "t.parquet", COLUMNS[:1]) == [[1, -2, 0, -1]]


def test_a_file_with_fewer_rows_than_its_footer_says_is_refused(tmp_path) -> None:
    pq.write_table(TABLE, tmp_path / "t.parquet")
    table = open_table(tmp_path / "t.parquet")
    table.promised = 6
    with pytest.raises(DataError, match="was cut, replaced or written to"):
        list(table.batches(COLUMNS, table.positions(COLUMNS), 2))


@pytest.mark.parametrize("entries", [3, FEW_TEXTS + 5])
@pytest.mark.parametrize("index", [pa.int8(), pa.int32()])
def test_a_dictionary_is_looked_up_once_and_means_the_same_as_its_texts(entries, index) -> None:
    texts = ["Rome", "Oslo", "elsewhere", *(f"text {i}" for i in range(entries - 3))]
    places = pa.array([0, 1, None, 2, 1, 0] * 400, index)
    array = pa.DictionaryArray.from_arrays(places, pa.array(texts))
    wanted = arrow_values(array.dictionary_decode(), COLUMNS[0])
    for found in (array, array.slice(1, 1700)):
        start = 0 if len(found) == len(array) else 1
        np.testing.assert_array_equal(arrow_values(found, COLUMNS[0]), wanted[start : start + len(found)])
    assert wanted[:6].tolist() == [1, 0, -2, -1, 0, 1]


def test_a_dictionary_may_hold_a_missing_text_or_be_longer_than_the_rows() -> None:
    with_null = pa.DictionaryArray.from_arrays(pa.array([0, 1, None]), pa.array(["Rome", None]))
    assert arrow_values(with_null, COLUMNS[0]).tolist() == [1, -2, -2]
    long = pa.DictionaryArray.from_arrays(pa.array([2]), pa.array(["a", "b", "Oslo"]))
    assert arrow_values(long, COLUMNS[0]).tolist() == [0]


ROWS = 2_000_000
_SLOWLY = """
import sys, time
from pathlib import Path
from privfit.schema import Numeric
from privfit.tables import open_table

def peak():
    status = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in status if line.startswith("VmHWM")) / 1024

table = open_table(sys.argv[1])
columns = [Numeric(f"x{i}", 0, 1) for i in range(4)]
before = peak()
for place, batch in enumerate(table.batches(columns, table.positions(columns), 1 << 16)):
    if place < 5:
        time.sleep(0.05)
print(peak() - before)
"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="the peak of memory is asked of Linux")
@pytest.mark.parametrize("group", [pytest.param(250_000, marks=pytest.mark.slow), ROWS])
def test_memory_stays_small_for_a_slow_consumer_and_large_row_groups(group, tmp_path) -> None:
    """All rows take 64 MB; a reader that runs ahead, or decodes a row group of all rows, takes as much."""
    generator = np.random.default_rng(0)
    table = pa.table({f"x{i}": generator.random(ROWS) for i in range(4)})
    pq.write_table(table, tmp_path / "t.parquet", row_group_size=group, use_dictionary=False, compression="none")
    done = subprocess.run(
        [sys.executable, "-c", _SLOWLY, str(tmp_path / "t.parquet")], capture_output=True, text=True, check=True
    )
    assert float(done.stdout) < 45
