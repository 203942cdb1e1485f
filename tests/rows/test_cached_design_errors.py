"""Kept rows: what is wrong with a table is told before the charge, or that the charge stands, and never with a value of
it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from threadpoolctl import threadpool_info

from privfit.schema import Numeric, Schema
from privfit.tables import DataError
from tests.support.cached_tables import csv, kept_from, logistic_sums, mixed, parquet, schema_for
from tests.support.chains import told_by


def spoilt(frame: pd.DataFrame, how: str) -> pd.DataFrame:
    changed = frame.copy()
    if how in ("fewer rows", "more rows"):
        return changed.iloc[:-1] if how == "fewer rows" else pd.concat([changed, changed.iloc[:1]])
    if how == "a missing number":
        changed.loc[60, "hours"] = np.nan
    if how == "an unknown level":
        changed.loc[60, "grade"] = "zebra"
    if how == "a missing target":
        changed.loc[60, "y"] = np.nan
    return changed


REFUSALS = {
    "a missing number": "'hours' contains NaN or missing values",
    "an unknown level": "'grade' contains a level that its schema does not list",
    "a missing target": "'y' contains NaN or missing values",
}


@pytest.mark.parametrize("most_bytes", [None, 0])
@pytest.mark.parametrize("how", REFUSALS)
def test_a_table_that_does_not_fit_its_schema_is_refused_at_the_first_reading(how: str, most_bytes: int | None) -> None:
    """Also where it is too large to be kept: what is met after the charge cannot be taken back."""
    schema, frame = schema_for(), spoilt(mixed(200), how)
    with pytest.raises(DataError, match=REFUSALS[how]) as refused:
        kept_from(frame, schema, schema.geometry(), batch_rows=30, most_bytes=most_bytes)
    assert str(refused.value).endswith("Nothing was charged.")
    assert "zebra" not in told_by(refused.value)


def test_a_table_without_rows_is_refused() -> None:
    schema = Schema([Numeric("a", 0, 1)])
    for empty in (np.empty((0, 1)), pa.table({"a": pa.array([], pa.float64())}).to_reader()):
        with pytest.raises(DataError, match=r"no rows.*Give a table with rows\. Nothing was charged\."):
            kept_from(empty, schema, schema.geometry())


@pytest.mark.parametrize("how", [*REFUSALS, "fewer rows", "more rows"])
@pytest.mark.parametrize("use", ["sums", "sample"])
def test_a_file_that_changed_before_it_is_read_again_is_refused_and_the_charge_stands(
    how: str, use: str, tmp_path: Path
) -> None:
    schema, frame = schema_for(), mixed(200)
    kept = kept_from(csv(frame, tmp_path), schema, schema.geometry(), batch_rows=30, most_bytes=0)
    csv(spoilt(frame, how), tmp_path)
    with pytest.raises(
        DataError, match=r"'t\.csv' was cut, replaced or written to after it was opened"
    ) as refused:  # whatever a row holds
        logistic_sums(kept) if use == "sums" else kept.sample()
    assert str(refused.value).endswith("The charge stands.")
    assert "Nothing was charged" not in str(refused.value)
    assert "zebra" not in told_by(refused.value)


@pytest.mark.parametrize("how", [*REFUSALS, "fewer rows", "more rows"])
def test_a_query_whose_file_changed_before_it_is_read_again_is_refused_and_the_charge_stands(
    how: str, tmp_path: Path
) -> None:
    """Nobody watches the files of a query, but its rows are counted and checked."""
    schema, frame = schema_for(), mixed(200)
    kept = kept_from(pl.scan_csv(csv(frame, tmp_path)), schema, schema.geometry(), batch_rows=30, most_bytes=0)
    csv(spoilt(frame, how), tmp_path)
    with pytest.raises(DataError, match=REFUSALS.get(how, "another number of rows")) as refused:
        logistic_sums(kept)
    assert str(refused.value).endswith("The charge stands.")
    assert "zebra" not in told_by(refused.value)


@pytest.mark.parametrize("write", [csv, parquet])
def test_a_file_that_is_gone_when_it_is_read_again_leaves_no_sum(
    write: Callable[[pd.DataFrame, Path], Path], tmp_path: Path
) -> None:
    schema, path = schema_for(), write(mixed(200), tmp_path)
    kept = kept_from(path, schema, schema.geometry(), most_bytes=0)
    path.unlink()
    with pytest.raises(
        DataError, match=r"cannot be read.*is not what it was at first\. The charge stands\.$"
    ) as refused:
        logistic_sums(kept)
    assert "Nothing was charged" not in str(refused.value)


def test_a_frame_that_changed_in_memory_is_refused_as_well() -> None:
    schema, frame = schema_for(), mixed(200)
    table = frame[[column.name for column in schema.columns]].to_numpy(dtype=object)
    kept = kept_from(table, schema, schema.geometry(), most_bytes=0)
    table[150, 3] = math.nan
    with pytest.raises(DataError, match=r"'hours' contains NaN.*The charge stands\.$"):
        logistic_sums(kept)


def test_a_file_that_was_kept_may_change_or_go(tmp_path: Path) -> None:
    schema, path = schema_for(), parquet(mixed(200), tmp_path)
    kept = kept_from(path, schema, schema.geometry())
    before = logistic_sums(kept)
    path.unlink()
    np.testing.assert_array_equal(logistic_sums(kept), before)


@pytest.mark.parametrize("threads", [1, 2, 8])
def test_the_first_error_of_a_table_is_told_however_far_ahead_is_read(threads: int, tmp_path: Path) -> None:
    """Reading meets a text in a late batch while the NaN of an early one waits to be encoded."""
    schema = Schema([Numeric("a", 0, 1), Numeric("b", 0, 1)])
    a: list[object] = [0.5] * 1000
    a[10], a[900] = math.nan, "zebra"
    table = np.array([a, [0.5] * 1000], dtype=object).T
    with pytest.raises(DataError, match="'a' contains NaN") as refused:
        kept_from(table, schema, schema.geometry(), batch_rows=100, threads=threads)
    assert "zebra" not in told_by(refused.value)


@pytest.mark.parametrize("most_bytes", [None, 0])
def test_a_refused_table_leaves_linear_algebra_as_it_was(most_bytes: int | None, tmp_path: Path) -> None:
    def blas_threads() -> list[int]:
        return [one["num_threads"] for one in threadpool_info() if one["user_api"] == "blas"]

    schema, frame = schema_for(), mixed(200)
    before = blas_threads()
    path = csv(frame, tmp_path)
    kept = kept_from(path, schema, schema.geometry(), batch_rows=30, most_bytes=most_bytes)
    csv(spoilt(frame, next(iter(REFUSALS))), tmp_path)
    refused: list[BaseException] = []
    for use in (
        lambda: kept_from(path, schema, schema.geometry(), batch_rows=30, most_bytes=most_bytes),
        kept.sample,
        lambda: logistic_sums(kept),
    ):
        try:
            use()
        except DataError as error:
            refused.append(error)
    assert len(refused) == (1 if most_bytes is None else 3)
    assert blas_threads() == before
