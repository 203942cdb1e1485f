"""Levels of a category, bought from a public list of candidates, or with a delta from the table itself."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace
from fractions import Fraction
from typing import Self

from privfit.mechanisms.histograms.open_levels import OpenLevels
from privfit.mechanisms.summaries.cells import Cells
from privfit.mechanisms.summaries.questions import Summary, SummaryProblem
from privfit.models.report import Report
from privfit.privacy import Adjacency, Ledger, Seed
from privfit.privacy.parts import Laplace
from privfit.schema import OTHER, Category, Level, OpenCategory, SchemaError
from privfit.summaries.release import Terms, released
from privfit.tables import TableLike

FALSE_LEVELS = 0.05
"""The probability that any level without rows is bought: a smaller one loses more levels with few rows. A convention,
not measured."""


class BoughtLevels(tuple[Level, ...]):
    """Levels that occur often enough, with the report of what they cost.

    Parameters
    ----------
    found : iterable of str, int, float or bool
        The levels.
    report : Report
        What was guaranteed and what was drawn.

    See Also
    --------
    levels : Buys them.

    Examples
    --------
    >>> import numpy as np, privfit as pf
    >>> codes = np.repeat([1.0, 2.0], 500).reshape(-1, 1)
    >>> bought = pf.levels(codes, pf.Category("code", [1, 2, 3]), epsilon=1.0)
    >>> pf.Category("code", bought, other=True).levels[:2], bought.report.epsilon
    ((1, 2), 1.0)
    """

    report: Report

    def __new__(cls, found: Iterable[Level], report: Report) -> Self:
        made = super().__new__(cls, tuple(found))
        made.report = report
        return made

    def __getnewargs__(self) -> tuple[tuple[Level, ...], Report]:
        return tuple(self), self.report


def levels(
    table: TableLike,
    candidates: Category | str,
    *,
    epsilon: float,
    delta: float = 0.0,
    ledger: Ledger | None = None,
    adjacency: Adjacency = "replace-one",
    rows_per_person: int = 1,
    expected_rows: int | None = None,
    random_state: Seed = None,
) -> BoughtLevels:
    """Buy the levels of a category that occur often enough: of a public list of candidates, or of those in the table.

    A long public list, such as all codes of a classification, makes a model with a coefficient for each of them. Levels
    are kept whose noisy count is so large that no level without rows is kept, but for a probability of 5%.

    Where there is no list, the name of the column is given, and a delta: levels of the table are kept whose noisy count
    is so large that one that a single person has is kept with a probability of at most delta. Rows without a value
    count for no level.

    Guarantee: epsilon-DP for a list, docs/proofs/description.md, Theorem 1; (epsilon, delta)-DP without one,
    docs/proofs/open-levels.md, Theorem 1; replace-one or add-remove, for persons with at most `rows_per_person` rows.
    Domain: at least one row, no refused cell, no more rows than stated; docs/proofs/errors-and-stops.md.

    Parameters
    ----------
    table : array-like, data frame, Arrow table or stream, DuckDB relation, str or Path
        The private table, as in `fit`.
    candidates : Category or str
        The column with all levels that could occur; what is not listed counts as "other". Or the column's name, where
        nobody has a list.
    epsilon : float
        Privacy budget.
    delta : float, default=0.0
        Probability with which the guarantee may fail. Needed where there is no list, and far below one over the number
        of rows; with a list it is not spent.
    ledger : Ledger or None, default=None
        Budget that is charged before anything is drawn.
    adjacency : {'replace-one', 'add-remove'}, default='replace-one'
        Which tables are neighbours.
    rows_per_person : int, default=1
        Largest number of rows that one person can have.
    expected_rows : int or None, default=None
        Public guess of the number of rows where that is private ("add-remove").
    random_state : int, Generator, RandomState or None, default=None
        None draws secret noise. A seed makes the result NOT private, and no ledger takes it.

    Returns
    -------
    BoughtLevels
        The levels in the order of the list, without "other", or sorted; with a `report`.

    See Also
    --------
    histogram : The noisy counts of all levels.
    bounds : Bounds of numbers.

    Examples
    --------
    >>> import numpy as np, privfit as pf
    >>> codes = np.repeat([1.0, 2.0], 500).reshape(-1, 1)
    >>> pf.levels(codes, pf.Category("code", range(1, 50)), epsilon=1.0)[:2]
    (1, 2)
    >>> pf.levels(codes, "code", epsilon=1.0, delta=1e-6)[:2]
    (1, 2)
    """
    terms = Terms(epsilon, delta, adjacency, rows_per_person, expected_rows, ledger, random_state)
    if isinstance(candidates, str):
        found = released("levels", OpenLevels(), None, table, [OpenCategory(candidates)], terms)
        return BoughtLevels(map(_plain, found.value), found.report)
    if not isinstance(candidates, Category):
        raise SchemaError(
            f"levels was given candidates of type {type(candidates).__name__}; it is a category with a public list of "
            "levels, or the name of a column. Write pf.Category('code', ['A01', 'A02']), or 'code' with a delta. "
            "Nothing was charged."
        )
    column = replace(candidates, other=True)
    problem = SummaryProblem((Cells(column),), (Fraction(1),))
    answer = released("levels", Summary(), problem, table, [column], terms)
    (noise,) = (part for part in answer.event.parts if isinstance(part, Laplace))
    least = noise.scale * math.log(len(column.levels) / (2 * FALSE_LEVELS))
    counts = zip(column.levels, answer.value[0]["counts"].value.tolist(), strict=True)
    return BoughtLevels((level for level, count in counts if count >= least and level != OTHER), answer.report)


def _plain(level: str | float) -> Level:
    """A level as one writes it: numbers of the table come as floats."""
    return int(level) if isinstance(level, float) and level.is_integer() else level
