"""Generated census people: data that anybody may see, shaped like data that nobody may.

The thirteen attributes are those of the functional-mechanism paper (Zhang et al., VLDB 2012, section 7). The people are
made up: each attribute is drawn given the ones before it, in the order of a life, so that age, schooling, work, family
and home hang together, and the income really depends on them, mostly but not only along straight lines. No number here
was fitted to a census.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
import polars as pl
from numpy.typing import NDArray

from privfit.privacy import seeded_generator
from privfit.schema import Category, Column, Numeric, Schema

DEFAULT_ROWS = 50_000
"""About as many as Adult has."""
DEFAULT_SEED = 1980
"""Public: the generated census is the same everywhere."""
INCOME = "income"
HIGH_INCOME = "high_income"
HIGH_INCOME_FROM = 35_000
"""The public threshold, in dollars a year, above which an income counts as high."""

MARITAL = ("single", "married", "divorced/widowed")

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]


def census_schema(target: Literal["income", "high_income"] = "income") -> Schema:
    """Public facts about the generated people, from knowledge of the world and not from the rows.

    Parameters
    ----------
    target : {'income', 'high_income'}, default='income'
        What is predicted: a number of dollars a year, or "no" or "yes".

    Returns
    -------
    Schema
        Bounds and levels of the columns, and the target.

    See Also
    --------
    load_census : 20,000 such people and this schema.

    Examples
    --------
    >>> import privfit as pf
    >>> pf.datasets.census_schema().target.name
    'income'
    """
    goals: dict[str, Column] = {INCOME: Numeric(INCOME, 0, 150_000), HIGH_INCOME: Category(HIGH_INCOME, ["no", "yes"])}
    if target not in goals:
        raise ValueError(f"The census has no target {target!r}; it has {list(goals)}. Choose one of them.")
    features: list[Column] = [
        Numeric("age", 16, 95),
        Category("gender", ["female", "male"]),
        Category("marital", list(MARITAL)),
        Numeric("education", 0, 20),
        Category("disability", ["no", "yes"]),
        Category("nativity", ["foreign", "native"]),
        Numeric("hours", 0, 80),
        Numeric("residence", 0, 60),
        Category("dwelling", ["rented", "owned"]),
        Numeric("family", 1, 10),
        Numeric("children", 0, 8),
        Numeric("cars", 0, 5),
    ]
    return Schema(features, goals[target])


def generated_census(n_rows: int = DEFAULT_ROWS, seed: int = DEFAULT_SEED) -> pl.DataFrame:
    """Generate census-like people, one a row, the same for the same seed.

    Parameters
    ----------
    n_rows : int, default=50000
        How many people.
    seed : int, default=1980
        Which people.

    Returns
    -------
    polars.DataFrame
        The people, with the columns below.

    See Also
    --------
    load_census : 20,000 such people with their schema.

    Notes
    -----
    ========== ======================================
    age        years
    gender     female, male
    marital    single, married, divorced/widowed
    education  years of schooling
    disability no, yes
    nativity   foreign, native
    hours      working hours per week
    residence  years residing in the current location
    dwelling   rented, owned
    family     family size, the person included
    children   number of children
    cars       number of automobiles
    income     dollars a year
    ========== ======================================

    Examples
    --------
    >>> import privfit as pf
    >>> pf.datasets.generated_census(100).height
    100
    """
    if n_rows < 1:
        raise ValueError(
            f"n_rows={n_rows} was given; a census has at least one person. Write, for example, n_rows=50_000."
        )
    return _People(n_rows, seed).frame()


def with_high_income(people: pl.DataFrame) -> pl.DataFrame:
    """Replace "income" by "high_income", whether the income lies above the public threshold of 35,000 dollars.

    Parameters
    ----------
    people : polars.DataFrame
        People with an income.

    Returns
    -------
    polars.DataFrame
        The same people with "yes" or "no".

    See Also
    --------
    generated_census : Such people.

    Examples
    --------
    >>> import privfit as pf
    >>> "high_income" in pf.datasets.with_high_income(pf.datasets.generated_census(100)).columns
    True
    """
    high = pl.when(pl.col(INCOME) > HIGH_INCOME_FROM).then(pl.lit("yes")).otherwise(pl.lit("no")).alias(HIGH_INCOME)
    return people.with_columns(high).drop(INCOME)


class _People:
    """One draw of people, attribute by attribute; each attribute may look at those above it."""

    def __init__(self, n_rows: int, seed: int) -> None:
        self._n = n_rows
        self._generator = seeded_generator(seed)
        self.age = np.floor(np.clip(16 + 79 * self._generator.beta(1.15, 1.9, n_rows), 16, 95))
        self.male = self._chance(np.full(n_rows, 0.49))
        self.native = self._chance(np.full(n_rows, 0.87))
        self.education = self._education()
        self.married, self.parted = self._marriage()
        self.children = self._children()
        self.family = self._family()
        self.disabled = self._chance(_logistic(-4.6 + 0.045 * self.age - 0.09 * (self.education - 12)))
        self.hours = self._hours()
        self.income = self._income()
        self.owned = self._chance(
            _logistic(
                -3.0
                + 0.035 * self.age
                + 0.9 * self.married
                + 0.6 * self.native
                + self.income / 40_000
                - 0.3 * self.parted
            )
        )
        self.residence = self._residence()
        self.cars = self._cars()

    def frame(self) -> pl.DataFrame:
        """The people as a table."""
        marital = np.where(self.married, MARITAL[1], np.where(self.parted, MARITAL[2], MARITAL[0]))
        return pl.DataFrame(
            {
                "age": self.age.astype(np.int64),
                "gender": np.where(self.male, "male", "female"),
                "marital": marital,
                "education": self.education.astype(np.int64),
                "disability": np.where(self.disabled, "yes", "no"),
                "nativity": np.where(self.native, "native", "foreign"),
                "hours": self.hours.astype(np.int64),
                "residence": self.residence.astype(np.int64),
                "dwelling": np.where(self.owned, "owned", "rented"),
                "family": self.family.astype(np.int64),
                "children": self.children.astype(np.int64),
                "cars": self.cars.astype(np.int64),
                INCOME: self.income.astype(np.int64),
            }
        )

    def _chance(self, probability: Floats) -> Flags:
        return self._generator.random(self._n) < probability

    def _normal(self, spread: float) -> Floats:
        return self._generator.normal(0.0, spread, self._n)

    def _education(self) -> Floats:
        """Later generations went to school for longer; nobody has more years of it than their age allows."""
        years: Floats = 13.6 - 0.045 * np.maximum(self.age - 30, 0) - 1.3 * ~self.native + self._normal(2.7)
        most: Floats = np.minimum(20, self.age - 5)
        return np.clip(np.rint(years), 0, most)

    def _marriage(self) -> tuple[Flags, Flags]:
        """Most people marry between twenty and thirty-five; with age, more marriages have ended."""
        ever = self._chance(0.9 * _logistic((self.age - 26.5) / 4.0) * (self.age >= 18))
        over = self._chance(0.1 + 0.45 * _logistic((self.age - 72) / 7.0) + 0.05 * ~self.male)
        return ever & ~over, ever & over

    def _children(self) -> Floats:
        """Children at home: most for the married around forty, fewer for the long-schooled."""
        at_home: Floats = np.exp(-(((self.age - 39) / 11.0) ** 2)) * (self.age >= 18)
        mean = (0.25 + 1.75 * self.married + 0.75 * self.parted) * at_home * np.exp(-0.04 * (self.education - 12))
        return np.minimum(self._generator.poisson(mean), 8).astype(np.float64)

    def _family(self) -> Floats:
        """Oneself, a spouse, the children, and for the young and the foreign-born more often parents or kin."""
        with_parents = self._chance(0.75 * _logistic((23.5 - self.age) / 2.0))
        kin = self._generator.poisson(0.12 + 1.9 * with_parents + 0.25 * ~self.native)
        return np.clip(1 + self.married + self.children + kin, 1, 10)

    def _hours(self) -> Floats:
        """Nobody works, or people work around forty hours: less when young, old, disabled, or a mother of small
        children.
        """
        mother = ~self.male * np.minimum(self.children, 3)
        leaning = 2.0 + 0.10 * (self.education - 12) - 2.2 * self.disabled - 0.45 * mother
        working = self._chance(
            _logistic(leaning) * _logistic((self.age - 17.5) / 1.5) * _logistic((65 - self.age) / 2.5)
        )
        usual = (
            40 + 2.5 * self.male - 2.0 * mother + 0.3 * (self.education - 12) - 12 * (self.age < 21) - 5 * self.disabled
        )
        return np.where(working, np.clip(np.rint(usual + self._normal(7.5)), 4, 80), 0.0)

    def _income(self) -> Floats:
        """Pay for hours worked, a pension for the old, and a little from capital: a product, a hump in age, and skewed
        noise.
        """
        career = np.clip(self.age - self.education - 6, 0, 45)
        log_wage = (
            2.28
            + 0.075 * (self.education - 12)
            + 0.034 * career
            - 0.00055 * career**2
            + 0.17 * self.male
            + 0.06 * self.married * self.male
            - 0.15 * self.disabled
            + 0.07 * self.native
            + self._normal(0.46)
        )
        pay = 50 * self.hours * np.exp(log_wage)
        pension = (
            (self.age >= 62) * (self.hours == 0) * np.maximum(0, 9_000 + 800 * self.education + self._normal(5_000))
        )
        capital = self._generator.exponential(60 * np.maximum(self.age - 16, 1))
        whole: Floats = np.round(pay + pension + capital, -2)
        return whole

    def _residence(self) -> Floats:
        """Owners and the old stay; nobody has lived anywhere for longer than they have lived."""
        mean = 2.5 + 0.13 * (self.age - 16) + 6.5 * self.owned
        return np.floor(np.minimum(self._generator.exponential(mean), np.minimum(self.age, 60)))

    def _cars(self) -> Floats:
        """One a grown-up, more or less, and more where there is money and a house."""
        adults = np.maximum(self.family - self.children, 1)
        mean = 0.25 + 0.45 * np.minimum(adults, 3) + 0.35 * self.owned + np.minimum(self.income, 120_000) / 90_000
        return np.minimum(self._generator.binomial(5, np.minimum(mean / 5, 0.95)), 5).astype(np.float64)


def _logistic(value: Floats) -> Floats:
    return np.asarray(1.0 / (1.0 + np.exp(-value)), dtype=np.float64)
