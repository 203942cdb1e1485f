"""The generated census with the attributes of the functional-mechanism paper (Zhang et al., VLDB 2012, section 7): 14
of them, and its smaller sets.

The paper turns marital status into two attributes, "is single" and "is married", and counts the income as one.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import polars as pl

from privfit.datasets.census import (
    DEFAULT_SEED,
    HIGH_INCOME,
    MARITAL,
    census_schema,
    generated_census,
    with_high_income,
)
from privfit.schema import Category, Schema

Target = Literal["income", "high_income"]

IS_SINGLE, IS_MARRIED = "is_single", "is_married"
STEPS: Mapping[int, tuple[str, ...]] = {
    5: ("age", "gender", "education", "family"),
    8: ("nativity", "dwelling", "cars"),
    11: (IS_SINGLE, IS_MARRIED, "children"),
    14: ("disability", "hours", "residence"),
}
"""The features that each step adds; the target is the fifth attribute of the first."""


def paper_columns(d: int, target: Target = "income") -> list[str]:
    """The paper's set of d attributes (5, 8, 11 or 14), the target last."""
    if d not in STEPS:
        raise ValueError(f"The paper has no set of {d} attributes; it has {list(STEPS)}. Choose one of them.")
    return [*(name for step, names in STEPS.items() if step <= d for name in names), target]


def paper_census(
    n_rows: int, d: int = 14, target: Target = "income", seed: int = DEFAULT_SEED
) -> tuple[pl.DataFrame, Schema]:
    """Generated people with the paper's set of d attributes, and what is public about them.

    "high_income" is whether the income is high.
    """
    people = generated_census(n_rows, seed)
    single, married = (
        pl.when(pl.col("marital") == status).then(pl.lit("yes")).otherwise(pl.lit("no")).alias(name)
        for status, name in ((MARITAL[0], IS_SINGLE), (MARITAL[1], IS_MARRIED))
    )
    people = people.with_columns(single, married)
    frame = people.select(paper_columns(d))
    return (with_high_income(frame) if target == HIGH_INCOME else frame), paper_schema(d, target)


def paper_schema(d: int = 14, target: Target = "income") -> Schema:
    """Bounds and levels of the paper's set of d attributes."""
    known = {column.name: column for column in census_schema(target).features}
    known |= {name: Category(name, ["no", "yes"]) for name in (IS_SINGLE, IS_MARRIED)}
    return Schema([known[name] for name in paper_columns(d, target)[:-1]], census_schema(target).target)
