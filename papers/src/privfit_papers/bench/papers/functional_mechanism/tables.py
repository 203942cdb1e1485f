"""The tables of the functional-mechanism paper, or what stands in for them: tasks with 5, 8, 11 or 14 attributes,
incomes as numbers or as two classes.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal

import polars as pl

from privfit.datasets.census import HIGH_INCOME, INCOME, with_high_income
from privfit.schema import Category, Column, Numeric, Schema
from privfit_papers.bench.paper_census import IS_MARRIED, IS_SINGLE, STEPS, paper_columns, paper_schema
from privfit_papers.bench.sources import Loaded, Source

Kind = Literal["linear", "logistic"]
DEFAULT_D = 11
US_ROWS, BRAZIL_ROWS = 370_000, 38_000
"""As many people as the paper's US extract has, and as the Brazil extract that can be had."""
HIGH_WAGE, HIGH_WAGE_FROM = "high_wage", 400
"""The public threshold, in dollars a week: a round number near the middle of wages in 1980."""
HOURS, EDUCATION = "hours", "education"


@dataclass(frozen=True)
class Task:
    """Rows, and what is public about them; the target is a number or one of two classes."""

    frame: pl.DataFrame
    schema: Schema


@dataclass(frozen=True)
class Tasks:
    """A table as the experiments want it: by kind of regression, and by the number of attributes where there are
    several sets.
    """

    origin: str
    notice: str
    known: Mapping[tuple[Kind, int], Task]

    def task(self, kind: Kind, d: int = DEFAULT_D) -> Task:
        """The task of a kind with d attributes, the target included."""
        return self.known[kind, d]


# -- US --------------------------------------------------------------------------------------------


def men(source: Source) -> Tasks:
    """The 1980 census, which has one set of columns; it stands for the paper's default set."""
    loaded = source.census_1980()
    wages = loaded.schema.target
    assert isinstance(wages, Numeric)
    high = (
        pl.when(pl.col(wages.name) > math.log(HIGH_WAGE_FROM))
        .then(pl.lit("yes"))
        .otherwise(pl.lit("no"))
        .alias(HIGH_WAGE)
    )
    numbers = Task(loaded.frame, loaded.schema)
    classes = Task(
        loaded.frame.with_columns(high).drop(wages.name),
        Schema(loaded.schema.features, Category(HIGH_WAGE, ["no", "yes"])),
    )
    return Tasks(loaded.origin, loaded.notice, {("linear", DEFAULT_D): numbers, ("logistic", DEFAULT_D): classes})


def people(source: Source, rows: int = US_ROWS) -> Tasks:
    """The generated census with each of the paper's sets of attributes."""
    return _generated(source.generated_census(rows))


def _generated(loaded: Loaded) -> Tasks:
    classes = with_high_income(loaded.frame)
    known: dict[tuple[Kind, int], Task] = {}
    for d in STEPS:
        known["linear", d] = Task(loaded.frame.select(paper_columns(d)), paper_schema(d))
        known["logistic", d] = Task(classes.select(paper_columns(d, HIGH_INCOME)), paper_schema(d, HIGH_INCOME))  # type: ignore[arg-type]
    return Tasks(loaded.origin, loaded.notice, known)


# -- Brazil ----------------------------------------------------------------------------------------

BRAZIL = {
    "age": "column_12",
    "gender": "column_13",
    "family": "column_9",
    "nativity": "column_18",
    "dwelling": "column_5",
    "cars": "column_6",
    IS_SINGLE: "column_14",
    IS_MARRIED: "column_15",
    "children": "column_10",
    "disability": "column_50",
    HOURS: "column_49",
    "residence": "column_51",
    HIGH_INCOME: "column_52",
}
"""The paper's attributes among the columns of the extract, which have no names: recognised by their values, which may
be wrong.
"""
SCHOOLING = ("column_31", "column_32", "column_33", "column_34")
"""Of these four one is 1 in every row; together they look like four levels of education."""
INSTEAD_OF_INCOME = {HOURS: HIGH_INCOME, INCOME: HOURS}
"""The extract has the income in two classes only.

For linear regression the weekly hours take its place, and it takes theirs.
"""


def brazil(source: Source) -> Tasks:
    """The Brazil extract with the paper's sets of attributes. Without the file a generated census of its size."""
    loaded = source.brazil()
    if loaded.origin == "generated":
        made_up = _generated(source.generated_census(BRAZIL_ROWS, seed=BRAZIL_ROWS))
        return replace(made_up, notice=f"No data folder has the Brazil extract. {made_up.notice}")
    frame = loaded.frame.with_columns(
        sum((level * pl.col(name) for level, name in enumerate(SCHOOLING)), start=pl.lit(0)).alias(EDUCATION),
        *(pl.col(column).alias(name) for name, column in BRAZIL.items()),
    )
    known = {column.name: column for column in loaded.schema.columns}
    columns: dict[str, Column] = {EDUCATION: Numeric(EDUCATION, 0, len(SCHOOLING) - 1)}
    columns |= {name: replace(known[column], name=name) for name, column in BRAZIL.items()}
    tasks: dict[tuple[Kind, int], Task] = {}
    for d in STEPS:
        for kind, names in _brazil_columns(d).items():
            schema = Schema([columns[name] for name in names[:-1]], columns[names[-1]])
            tasks[kind, d] = Task(frame.select(names), schema)
    return Tasks(loaded.origin, loaded.notice, tasks)


def _brazil_columns(d: int) -> dict[Kind, list[str]]:
    """The names of a task's columns, the target last."""
    return {
        "linear": [INSTEAD_OF_INCOME.get(name, name) for name in paper_columns(d)],
        "logistic": paper_columns(d, HIGH_INCOME),  # type: ignore[arg-type]
    }
