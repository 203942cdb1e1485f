"""Real tables for the benchmarks, read from a folder that is never part of the package, each with its public schema.

Bounds and levels come from the documentation of the data, not from its rows.
"""

from __future__ import annotations

import os
from pathlib import Path

import polars as pl

from privfit.schema import Category, Column, Numeric, Schema

FOLDER_VARIABLE = "PRIVFIT_DATA"
_USUAL_PLACES = ("data", "../shared/data")
DIVISIONS = [
    "New England",
    "Mid Atlantic",
    "E N Central",
    "W N Central",
    "S Atlantic",
    "E S Central",
    "W S Central",
    "Mountain",
    "Pacific",
]
"""The nine divisions of the US Census Bureau, as the file spells them."""


class NoData(FileNotFoundError):
    """The folder with real data is not there."""


def data_folder(given: Path | None = None) -> Path:
    """The folder with real data: the one given, that of PRIVFIT_DATA, or a usual place beside the working directory."""
    named = given or (Path(os.environ[FOLDER_VARIABLE]) if os.environ.get(FOLDER_VARIABLE) else None)
    for folder in [named] if named is not None else [Path(place) for place in _USUAL_PLACES]:
        if folder.is_dir():
            return folder
    raise NoData(
        f"No folder with real data was found. Name one with --data or {FOLDER_VARIABLE}; the benchmarks read public "
        "files from it."
    )


def census_1980(folder: Path) -> tuple[pl.DataFrame, Schema]:
    """Men born 1930-39 in the 1980 US census; the target is the logarithm of the weekly wage, cut at [0, 8]."""
    path = folder / "census-1980-men.csv.gz"
    if not path.is_file():
        raise NoData(
            f"The folder has no {path.name}. Put it there, or point {FOLDER_VARIABLE} at a folder that has it."
        )
    schema = census_1980_schema()
    return pl.read_csv(path, columns=[column.name for column in schema.columns]), schema


def census_1980_schema() -> Schema:
    """What is public about the men of the 1980 census."""
    features: list[Column] = [
        Numeric("age", 40, 50),
        Numeric("education", 0, 20),
        Category("married", [0, 1]),
        Category("black", [0, 1]),
        Category("smsa", [0, 1]),
        Category("division", DIVISIONS),
    ]
    return Schema(features, target=Numeric("lwage", 0, 8))
