"""Kept rows: what is wrong with a table is told before the charge, and never with a value of it."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from threadpoolctl import threadpool_info

from privfit.schema import Numeric, Schema
from privfit.tables import DataError
from tests.support.cached_tables import csv, kept_from, logistic_sums, mixed, parquet, schema_for
from tests.support.chains import told_by


def spoilt(frame: pd.DataFrame, how: str) -> pd.DataFrame:
    changed = frame.copy()
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


@pytest.mark.parametrize("most_bytes", [None, 0])
@pytest.mark.parametrize("write", [csv, parquet])
def test_a_file_that_was_read_may_change_or_go(
    write: Callable[[pd.DataFrame, Path], Path], most_bytes: int | None, tmp_path: Path
) -> None:
    """Nothing that happens to the table after the charge can be seen in a sum, or as an error."""
    schema, path = schema_for(), write(mixed(200), tmp_path)
    kept = kept_from(path, schema, schema.geometry(), most_bytes=most_bytes)
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
    assert len(refused) == 1
    assert blas_threads() == before


@pytest.mark.parametrize("at", ["opening", "writing"])
def test_a_full_disk_is_met_before_the_charge(at: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    schema, frame = schema_for(), mixed(200)
    if at == "opening":
        monkeypatch.setenv("PRIVFIT_CACHE", str(tmp_path / "zebra"))
    else:
        monkeypatch.setattr("privfit.tables.array_file.tempfile.TemporaryFile", lambda **_: open("/dev/full", "wb+", 0))  # noqa: SIM115
    with pytest.raises(DataError, match=r"could not be written.*PRIVFIT_CACHE.*Nothing was charged\.$") as refused:
        kept_from(frame, schema, schema.geometry(), most_bytes=0)
    assert "zebra" not in told_by(refused.value)
