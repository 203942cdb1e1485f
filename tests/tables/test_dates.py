"""Dates are neither numbers nor categories: drafts leave them out, and say what to do."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

import privfit as pf
from privfit.tables import draft_schema

DAYS = [dt.date(2001, 2, 3), dt.date(1990, 12, 31), None]
FRAME = pl.DataFrame({"age": [30, 40, 50], "born": DAYS, "income": [5.0, 6.0, 7.0]})


def written(folder: Path, ending: str) -> Path:
    path = folder / f"t{ending}"
    FRAME.write_csv(path) if ending == ".csv" else FRAME.write_parquet(path)
    return path


@pytest.mark.parametrize("ending", [".csv", ".parquet"])
def test_a_draft_leaves_dates_out_and_says_why(tmp_path: Path, ending: str) -> None:
    draft = draft_schema(written(tmp_path, ending), "income")
    assert '# Left out: "born" holds dates or times. Turn it into a number, such as days since a date' in draft
    assert 'name = "born"' not in draft
    assert "1990" not in draft
    for name, low in (("age", 0), ("income", 0)):
        assert f'name = "{name}"' in draft
        draft = draft.replace('low = "?"\nhigh = "?"', f"low = {low}\nhigh = 99", 1)
    assert [column.name for column in pf.Schema.from_toml(draft).columns] == ["age", "income"]


def test_a_date_is_no_target(tmp_path: Path) -> None:
    with pytest.raises(pf.SchemaError, match=r"target 'born' holds dates or times.*Turn it into a number"):
        draft_schema(written(tmp_path, ".parquet"), "born")


@pytest.mark.parametrize(
    "table",
    [
        FRAME,
        FRAME.to_pandas(),
        FRAME.to_arrow(),
        FRAME.lazy(),
        FRAME.with_columns(pl.col("born").cast(pl.String)),
        FRAME.with_columns(pl.col("born").dt.strftime("%d.%m.%Y")),
        FRAME.with_columns(pl.col("born").cast(pl.Datetime).dt.to_string("%Y-%m-%d %H:%M")),
        FRAME.with_columns(pl.col("born").cast(pl.Datetime)),
        FRAME.with_columns(pl.col("born").cast(pl.Datetime) - pl.datetime(2000, 1, 1)),
        pd.DataFrame({"born": pd.to_datetime(["2020-01-01"])}),
        np.array([["2020-01-01"], ["2020-01-02"]]),
    ],
    ids=lambda table: type(table).__name__,
)
def test_a_public_table_with_dates_is_refused_with_the_cure(table: Any) -> None:
    with pytest.raises(
        pf.SchemaError,
        match=r"Column '(born|x0)' of the public table holds dates or times.*Turn it into a number.*or drop it",
    ):
        pf.Schema.from_public(table)


def test_the_cure_works() -> None:
    cured = FRAME.drop_nulls().with_columns((pl.col("born") - pl.date(2000, 1, 1)).dt.total_days())
    assert pf.Schema.from_public(cured).features[1] == pf.Numeric("born", -3288, 399)


def test_categories_with_a_few_digits_stay_categories() -> None:
    schema = pf.Schema.from_public(pl.DataFrame({"code": ["2020-01", "12-34-5", "a"], "size": ["1/2", "3/4", None]}))
    assert all(isinstance(column, pf.Category) for column in schema.features)
