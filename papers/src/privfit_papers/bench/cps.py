"""Wages of US tax units, the second real table for the benchmarks.

Bounds and levels come from what is printed about the survey and the tax forms, not from the rows: filing statuses are
the five boxes of form 1040, states are the Census Bureau's codes, and the survey reports every age from 85 on as 85.
Families beyond the bounds are clipped.
"""

from __future__ import annotations

from pathlib import Path

import polars as pl

from privfit.schema import Category, Column, Numeric, Schema
from privfit_papers.bench.data import FOLDER_VARIABLE, NoData

WAGES = "e00200p"
HIGHEST_WAGE = 300_000
YOUNGEST = 16
FILING_STATUSES = [1, 2, 3, 4, 5]
"""Single, joint, separate, head of household, widowed: the boxes of form 1040."""
STATES = [code for code in range(1, 57) if code not in (3, 7, 14, 43, 52)]
"""The codes of the fifty states and the District of Columbia (FIPS 5-2); five numbers were never given to a state."""


def cps_wages(folder: Path, highest: float = HIGHEST_WAGE) -> tuple[pl.DataFrame, Schema]:
    """Heads of US tax units of 16 years or more, 2012 to 2014; the target is their wages, cut at [0, highest] dollars a
    year.
    """
    path = folder / "cps-tax-units.csv.gz"
    if not path.is_file():
        raise NoData(
            f"The folder has no {path.name}. Put it there, or point {FOLDER_VARIABLE} at a folder that has it."
        )
    schema = cps_schema(highest)
    frame = pl.read_csv(path, columns=[column.name for column in schema.columns])
    return frame.filter(pl.col("age_head") >= YOUNGEST), schema


def cps_schema(highest: float = HIGHEST_WAGE) -> Schema:
    """What is public about the tax units."""
    features: list[Column] = [
        Numeric("age_head", YOUNGEST, 85),
        Category("MARS", FILING_STATUSES),
        Numeric("XTOT", 1, 10),
        Numeric("nu18", 0, 8),
        Category("fips", STATES),
    ]
    return Schema(features, target=Numeric(WAGES, 0, highest))
