"""Generated tables with the columns of real ones, for machines that have neither the files nor a network.

No number here was fitted to the real tables: only their public schemas, their sizes and the share of the rarer class
are the same. Experiments run on them, and orders of methods can be seen; figures for the real tables cannot.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from privfit.datasets.census import INCOME, generated_census
from privfit.privacy import seeded_generator
from privfit.schema import Category, Column, Numeric, Schema
from privfit_papers.bench.classes import ADULT_NUMBERS, adult_schema, bank_schema
from privfit_papers.bench.cps import HIGHEST_WAGE, STATES, WAGES, cps_schema
from privfit_papers.bench.data import DIVISIONS, census_1980_schema

Floats = NDArray[np.float64]
Table = tuple[pl.DataFrame, Schema]

PEOPLE = 40_000
SEED = 7
DOLLARS_OF_1980 = 0.4
"""What the generated census pays with a dollar, in dollars of 1980, more or less."""
LUCK = 0.6
"""The standard deviation of the part of the class's score that no column explains; that of the explained part is
one."""


# -- tables with classes ---------------------------------------------------------------------------


def adult(rows: int = 48_842) -> Table:
    """As many rows as Adult, 24% of them in the second class."""
    schema = adult_schema()
    return labelled(schema, rows, 0.24, SEED).with_columns(pl.col(list(ADULT_NUMBERS)).cast(pl.Float64)), schema


def bank(rows: int = 45_211) -> Table:
    """As many rows as Bank marketing, 12% of them in the second class."""
    schema = bank_schema()
    return labelled(schema, rows, 0.12, SEED + 1), schema


def brazil(rows: int = 38_000) -> Table:
    """As many rows as the Brazil extract: 44 columns of two levels, 8 numeric, half of the rows in the second class."""
    features: list[Column] = [Category(f"column_{i}", [0, 1]) for i in range(44)]
    features += [Numeric(f"column_{i}", 0, 10 if i % 2 else 100) for i in range(44, 52)]
    schema = Schema(features, Category("column_52", [0, 1]))
    return labelled(schema, rows, 0.5, SEED + 2), schema


def labelled(schema: Schema, rows: int, share: float, seed: int) -> pl.DataFrame:
    """Integers and levels that fit a schema, tied together by a hidden trait, and a class that follows from all of
    them.

    Levels are not equally common; of two levels the second favours the second class, which has so large a share of
    the rows.
    """
    generator = seeded_generator(seed)
    trait = generator.standard_normal(rows)
    columns: dict[str, Any] = {}
    score = np.zeros(rows)
    for column in schema.features:
        strength = generator.exponential()
        if isinstance(column, Numeric):
            place = np.clip(generator.beta(1.5, 4.0, rows) + 0.04 * trait, 0, 1)
            columns[column.name] = np.rint(column.low + (column.high - column.low) * place).astype(np.int64)
            score += strength * (place - place.mean()) / place.std()
        else:
            codes = _codes(len(column.levels), trait, generator)
            columns[column.name] = np.array(column.levels, dtype=object)[codes].tolist()
            pull = np.array([0.0, 2.0]) if len(column.levels) == 2 else generator.standard_normal(len(column.levels))
            score += strength * pull[codes]
    score = score / score.std() + LUCK * generator.standard_normal(rows)
    second = score > np.quantile(score, 1 - share)
    assert isinstance(schema.target, Category)
    columns[schema.target.name] = np.array(schema.target.levels, dtype=object)[second.astype(int)].tolist()
    return pl.DataFrame(columns)


def _codes(levels: int, trait: Floats, generator: Any) -> NDArray[np.intp]:
    """Levels of unequal shares that lean with the trait, by the largest of noisy leanings."""
    leaning = np.log(generator.dirichlet(np.full(levels, 3.0))) + 0.4 * trait[:, None] * generator.standard_normal(
        levels
    )
    return np.asarray(np.argmax(leaning + generator.gumbel(size=leaning.shape), axis=1))


# -- tables with incomes ---------------------------------------------------------------------------


def men_of_1980(rows: int = PEOPLE) -> Table:
    """Working men of 40 to 50 out of the generated census, with a race, a city and a division made up; their weekly
    wage follows from the yearly income.
    """
    generator = seeded_generator(SEED + 3)
    people = generated_census(15 * rows, SEED + 3)
    men = people.filter((pl.col("gender") == "male") & pl.col("age").is_between(40, 50) & (pl.col("hours") > 0)).head(
        rows
    )
    city, black = generator.random(men.height) < 0.7, generator.random(men.height) < 0.1
    division = generator.integers(len(DIVISIONS), size=men.height)
    wage = (
        np.log(np.maximum(DOLLARS_OF_1980 * men[INCOME].to_numpy() / 52, 1))
        + 0.15 * city
        - 0.2 * black
        + np.linspace(-0.1, 0.1, len(DIVISIONS))[division]
    )
    frame = pl.DataFrame(
        {
            "age": men["age"].cast(pl.Float64),
            "education": men["education"],
            "married": (men["marital"] == "married").cast(pl.Int64),
            "black": black.astype(np.int64),
            "smsa": city.astype(np.int64),
            "division": np.array(DIVISIONS)[division],
            "lwage": wage,
        }
    )
    return frame, census_1980_schema()


def tax_units(highest: float = HIGHEST_WAGE, rows: int = PEOPLE) -> Table:
    """People of the generated census as heads of tax units, in states made up; who works has wages."""
    generator = seeded_generator(SEED + 4)
    people = generated_census(rows, SEED + 4)
    married, parent = (people["marital"] == "married").to_numpy(), (people["children"] > 0).to_numpy()
    separate = generator.random(rows) < 0.04
    shares = generator.dirichlet(np.full(len(STATES), 2.0))
    frame = pl.DataFrame(
        {
            "age_head": people["age"].clip(16, 85),
            "MARS": np.where(married, np.where(separate, 3, 2), np.where(parent, 4, 1)),
            "XTOT": people["family"],
            "nu18": people["children"],
            "fips": np.array(STATES)[generator.choice(len(STATES), rows, p=shares)],
            WAGES: np.where((people["hours"] > 0).to_numpy(), people[INCOME].to_numpy(), 0),
        }
    )
    return frame, cps_schema(highest)


# -- tables of points ------------------------------------------------------------------------------


def lifesci(rows: int = 26_733) -> Table:
    """Five round clusters in ten columns."""
    schema = Schema.box(-10, 10, 10)
    return mixture(schema, rows, 5, SEED + 5), schema


def house(rows: int = 33_925) -> Table:
    """Fifteen round clusters of colours, in integers."""
    schema = colour_schema()
    return mixture(schema, rows, 15, SEED + 6).select(pl.all().round(0)), schema


def colour_schema() -> Schema:
    """Three numbers of one byte each."""
    return Schema.box(0, 255, 3)


def mixture(schema: Schema, rows: int, clusters: int, seed: int) -> pl.DataFrame:
    """Round clusters of different sizes and widths between the bounds of a schema of numbers."""
    generator = seeded_generator(seed)
    width = len(schema.features)
    centres, spreads = generator.uniform(-0.7, 0.7, (clusters, width)), generator.uniform(0.05, 0.15, clusters)
    own = generator.choice(clusters, rows, p=generator.dirichlet(np.full(clusters, 5.0)))
    points = np.clip(centres[own] + spreads[own, None] * generator.standard_normal((rows, width)), -1, 1)
    low, high = (np.array([getattr(column, side) for column in schema.features]) for side in ("low", "high"))
    return named(low + (points + 1) / 2 * (high - low), schema)


def named(points: Floats, schema: Schema) -> pl.DataFrame:
    """Points as a table with the names of a schema."""
    return pl.DataFrame(points, schema=[column.name for column in schema.features], orient="row")
