"""Adult as the R package arules has it: every column cut into levels, income known for 32,561 people.

The rows come from the package's own items, or from UCI Adult by the cuts that the package documents for them; both give
the same table.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from privfit.schema import Category, Schema
from privfit_papers.bench.classes import ADULT_COLUMNS, ADULT_LEVELS, UNKNOWN
from privfit_papers.bench.data import NoData

FILE = "adult-arules-binary.npz"
WITH_INCOME = 32_561
SEX, COUNTRY, INCOME = "sex", "native-country", "income"
MISSING = "missing"
SMALL, LARGE = "small", "large"

CUTS: Mapping[str, tuple[tuple[float, ...], tuple[str, ...]]] = {
    "age": ((25, 45, 65), ("Young", "Middle-aged", "Senior", "Old")),
    "hours-per-week": ((25, 40, 60), ("Part-time", "Full-time", "Over-time", "Workaholic")),
}
"""Inner edges, each of which belongs to the level below it."""
MONEY = ("capital-gain", "capital-loss")
MONEY_LEVELS = ("None", "Low", "High")
"""Nothing; up to the median of those who have something; more."""
EDUCATION = (
    "Preschool 1st-4th 5th-6th 7th-8th 9th 10th 11th 12th HS-grad Prof-school Assoc-acdm Assoc-voc Some-college "
    "Bachelors Masters Doctorate"
)
COLUMNS = [name for name in ADULT_COLUMNS if name not in ("fnlwgt", "education-num", COUNTRY)]


def arules_baskets(folder: Path) -> tuple[pl.DataFrame, Schema]:
    """The package's rows, from its items. The table has sex, which is not in the schema: it decides who is private."""
    path = folder / FILE
    if not path.is_file():
        raise NoData(f"The folder has no {path.name}. Put it there, or name a folder that has it with --data.")
    held = np.load(path, allow_pickle=False)
    return _as_columns(held["indices"], held["indptr"], [str(label) for label in held["labels"]])


def derived_baskets(adult: pl.DataFrame, known: int = WITH_INCOME) -> tuple[pl.DataFrame, Schema]:
    """The same from UCI Adult, all its rows in the order of its two files; the first `known` are kept, and medians are
    those of all.
    """
    columns = [_cut(adult[name], *CUTS[name]) for name in CUTS]
    for name in MONEY:
        columns.append(_cut(adult[name], (0.0, _median(adult[name])), MONEY_LEVELS))
    columns.append(pl.Series(INCOME, np.where(adult[INCOME].to_numpy() == ">50K", LARGE, SMALL)))
    texts = pl.col([name for name in ADULT_LEVELS if name != COUNTRY]).replace(UNKNOWN, MISSING)
    frame = adult.with_columns(texts).with_columns(columns).select(COLUMNS)
    return frame.head(known), Schema([Category(name, _levels(name)) for name in COLUMNS if name != SEX])


def _median(values: pl.Series) -> float:
    return float(values.filter(values > 0).median())  # type: ignore[arg-type]


def _cut(values: pl.Series, edges: Sequence[float], levels: Sequence[str]) -> pl.Series:
    codes = np.searchsorted(np.asarray(edges), values.to_numpy(), side="left")
    return pl.Series(values.name, np.array(levels)[codes])


def _levels(name: str) -> list[str]:
    """The levels of a column in the package's order; a column that may be unknown has one more."""
    if name in CUTS:
        return list(CUTS[name][1])
    if name in MONEY:
        return list(MONEY_LEVELS)
    if name == INCOME:
        return [SMALL, LARGE]
    if name == "education":
        return EDUCATION.split()
    return [*sorted(ADULT_LEVELS[name].split()), *([MISSING] if name in ("workclass", "occupation") else [])]


def _as_columns(items: Any, ends: Any, labels: list[str]) -> tuple[pl.DataFrame, Schema]:
    """Baskets of items as a table of columns; a column without an item in a row is missing there."""
    names = list(dict.fromkeys(label.partition("=")[0] for label in labels))
    columns, features = {}, []
    owner = np.repeat(np.arange(WITH_INCOME), np.diff(ends[: WITH_INCOME + 1]))
    items = items[: len(owner)]
    for name in names:
        own = [place for place, label in enumerate(labels) if label.partition("=")[0] == name]
        levels = [labels[place].partition("=")[2] for place in own]
        codes = np.full(WITH_INCOME, len(own))
        mine = np.isin(items, own)
        codes[owner[mine]] = np.searchsorted(own, items[mine])
        if (codes == len(own)).any():
            levels.append(MISSING)
        columns[name] = np.array(levels, dtype=object)[codes].tolist()
        if name not in (SEX, COUNTRY):
            features.append(Category(name, levels))
    return pl.DataFrame(columns).drop(COUNTRY), Schema(features)
