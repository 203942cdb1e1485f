"""One question about one column each: count, mean, quantile, histogram; and crosstab, about several.

Parameters
----------
table : array-like, data frame, Arrow table or stream, DuckDB relation, str or Path
    The private table, as in `fit`.
epsilon : float
    Privacy budget.
ledger : Ledger or None
    Budget that is charged before anything is drawn.
adjacency : {'replace-one', 'add-remove'}
    Which tables are neighbours.
rows_per_person : int
    Largest number of rows that one person can have.
expected_rows : int or None
    Public guess of the number of rows where that is private ("add-remove").
random_state : int, Generator, RandomState or None
    None draws secret noise. A seed makes the result NOT private, and no ledger takes it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np

from privfit.mechanisms.summaries.cells import Cells, RowsWithin, around
from privfit.mechanisms.summaries.crosstab import CrossCounts
from privfit.mechanisms.summaries.means import Mean
from privfit.mechanisms.summaries.quantiles import Quantiles
from privfit.mechanisms.summaries.questions import Question, Summary, SummaryProblem
from privfit.models._docs import documented
from privfit.privacy import Adjacency, Ledger, PrivacyError, Seed
from privfit.schema import Category, Column, Level, Numeric, SchemaError, make_block
from privfit.statistics.quantiles import checked_quantile, fine_grid
from privfit.summaries.figures import Figure, Figures, as_figure, as_figures
from privfit.summaries.release import Answer, Terms, refuse_no_columns, released
from privfit.tables import TableLike


@documented
def count(
    table: TableLike,
    column: Column,
    among: Level | Sequence[Level] | tuple[float, float],
    *,
    epsilon: float,
    ledger: Ledger | None = None,
    adjacency: Adjacency = "replace-one",
    rows_per_person: int = 1,
    expected_rows: int | None = None,
    random_state: Seed = None,
) -> Figure:
    """Count rows: those at some levels of a category, or with a number in a range.

    Guarantee: epsilon-DP, replace-one or add-remove, for persons with at most `rows_per_person` rows;
    docs/proofs/description.md, Theorem 1.
    Domain: at least one row, no refused cell, no more rows than stated; docs/proofs/errors-and-stops.md.

    Parameters
    ----------
    column : Numeric or Category
        The column.
    among : level, list of levels or tuple of float
        The levels that are counted, or (low, high): numbers from `low` on and below `high`. A range that ends at the
        column's upper bound includes it and what lies above.

    Returns
    -------
    Figure
        The noisy number; its `interval` holds the table's own count nine times out of ten.

    See Also
    --------
    histogram : All levels or bins at once.

    Examples
    --------
    >>> import numpy as np, privfit as pf
    >>> ages = np.tile(np.arange(20.0, 70.0), 200).reshape(-1, 1)
    >>> working = pf.count(ages, pf.Numeric("age", 0, 120), (18, 65), epsilon=1.0)
    >>> 8900 < working < 9100
    True
    """
    column, wanted = _levels_within(column, among)
    terms = Terms(epsilon, 0.0, adjacency, rows_per_person, expected_rows, ledger, random_state)
    answer = _asked("count", RowsWithin(column, wanted), table, column, terms)
    return as_figure(answer.value[0]["count"], answer.report)


@documented
def mean(
    table: TableLike,
    column: Numeric,
    *,
    epsilon: float,
    ledger: Ledger | None = None,
    adjacency: Adjacency = "replace-one",
    rows_per_person: int = 1,
    expected_rows: int | None = None,
    random_state: Seed = None,
) -> Figure:
    """Release the mean of a number.

    The bounds may be generous: a quarter of epsilon buys narrower ones, to which values are clipped.

    Guarantee: epsilon-DP, replace-one or add-remove, for persons with at most `rows_per_person` rows;
    docs/proofs/description.md, Theorem 1.
    Domain: at least one row, no refused cell, no more rows than stated; docs/proofs/errors-and-stops.md.

    Parameters
    ----------
    column : Numeric
        The number, with its public bounds.

    Returns
    -------
    Figure
        The noisy mean; its `interval` is about the mean of the population that the rows are drawn from.

    See Also
    --------
    quantile : The median and others: less noise for skewed numbers.

    Examples
    --------
    >>> import numpy as np, privfit as pf
    >>> ages = np.tile(np.arange(20.0, 70.0), 200).reshape(-1, 1)
    >>> 44 < pf.mean(ages, pf.Numeric("age", 0, 120), epsilon=1.0) < 45
    True
    """
    column = _number("mean", column)
    terms = Terms(epsilon, 0.0, adjacency, rows_per_person, expected_rows, ledger, random_state)
    answer = _asked("mean", lambda rows: Mean(fine_grid(column, rows * epsilon)), table, column, terms)
    return as_figure(answer.value[0]["mean"], answer.report)


@documented
def quantile(
    table: TableLike,
    column: Numeric,
    quantiles: float | Sequence[float] = 0.5,
    *,
    epsilon: float,
    ledger: Ledger | None = None,
    intervals: bool = True,
    adjacency: Adjacency = "replace-one",
    rows_per_person: int = 1,
    expected_rows: int | None = None,
    random_state: Seed = None,
) -> Figure | Figures:
    """Release quantiles of a number: the median, or others, several at one price.

    Guarantee: epsilon-DP, replace-one or add-remove, for persons with at most `rows_per_person` rows;
    docs/proofs/description.md, Theorem 1.
    Domain: at least one row, no refused cell, no more rows than stated; docs/proofs/errors-and-stops.md.

    Parameters
    ----------
    column : Numeric
        The number, with its public bounds, which may be generous.
    quantiles : float or list of float
        Which quantiles, each above 0 and below 1. Several share epsilon; quantiles that are far from the median get
        a larger part of it.
    intervals : bool
        Whether a part of epsilon (8%, or 11% for several quantiles) is spent on intervals. Without them the whole
        epsilon goes into the quantiles, and `interval` is the column's bounds.

    Returns
    -------
    Figure or Figures
        One number or several; an `interval` is about the quantile of the population that the rows are drawn from.

    See Also
    --------
    mean : The mean of a number.
    histogram : Counts between public edges.

    Examples
    --------
    >>> import numpy as np, privfit as pf
    >>> ages = np.tile(np.arange(20.0, 70.0), 200).reshape(-1, 1)
    >>> median = pf.quantile(ages, pf.Numeric("age", 0, 120), 0.5, epsilon=1.0)
    >>> 40 < median < 50
    True
    """
    column = _number("quantile", column)
    listed = quantiles if isinstance(quantiles, Sequence | np.ndarray) else None
    wanted = tuple(map(checked_quantile, [quantiles] if listed is None else listed))
    if not wanted:
        raise PrivacyError("quantile was given no quantiles. Write, for example, [0.1, 0.5, 0.9].")
    terms = Terms(epsilon, 0.0, adjacency, rows_per_person, expected_rows, ledger, random_state)

    def question(rows: int) -> Question:
        return Quantiles(fine_grid(column, rows * epsilon / len(wanted)), wanted, bool(intervals))

    answer = _asked("quantile", question, table, column, terms)
    found = answer.value[0]["quantiles"]
    if listed is not None:
        return as_figures(found, answer.report, (tuple(float(one) for one in wanted),))
    return as_figure(found, answer.report)


@documented
def histogram(
    table: TableLike,
    column: Column,
    *,
    epsilon: float,
    ledger: Ledger | None = None,
    adjacency: Adjacency = "replace-one",
    rows_per_person: int = 1,
    expected_rows: int | None = None,
    random_state: Seed = None,
) -> Figures:
    """Count the rows in the public bins of a number, or at the levels of a category.

    Counts are not changed to be positive or to add up: figures that are computed from them would be biased. Clip them
    for display.

    Guarantee: epsilon-DP, replace-one or add-remove, for persons with at most `rows_per_person` rows;
    docs/proofs/description.md, Theorem 1.
    Domain: at least one row, no refused cell, no more rows than stated; docs/proofs/errors-and-stops.md.

    Parameters
    ----------
    column : Numeric or Category
        The column; a number without bins has eight.

    Returns
    -------
    Figures
        A noisy count per bin or level, which `labels` name; an `interval` is about the table's own count.

    See Also
    --------
    crosstab : Counts for several columns together.

    Examples
    --------
    >>> import numpy as np, privfit as pf
    >>> ages = np.tile(np.arange(20.0, 70.0), 200).reshape(-1, 1)
    >>> counts = pf.histogram(ages, pf.Numeric("age", 0, 120, bins=[30, 60]), epsilon=1.0)
    >>> np.round(counts, -3).tolist()
    [2000.0, 6000.0, 2000.0]
    """
    column = _binned("histogram", column)
    terms = Terms(epsilon, 0.0, adjacency, rows_per_person, expected_rows, ledger, random_state)
    answer = _asked("histogram", Cells(column), table, column, terms)
    return as_figures(answer.value[0]["counts"], answer.report, (cell_labels(column),))


@documented
def crosstab(
    table: TableLike,
    columns: Sequence[Column],
    *,
    epsilon: float,
    ledger: Ledger | None = None,
    adjacency: Adjacency = "replace-one",
    rows_per_person: int = 1,
    expected_rows: int | None = None,
    random_state: Seed = None,
) -> Figures:
    """Count rows by the levels and bins of several columns together.

    Every margin is a sum of the cells, at no further cost.

    Guarantee: epsilon-DP, replace-one or add-remove, for persons with at most `rows_per_person` rows;
    docs/proofs/description.md, Theorem 1.
    Domain: at least one row, no refused cell, no more rows than stated; docs/proofs/errors-and-stops.md.

    Parameters
    ----------
    columns : list of Numeric and Category
        The columns, one per axis; numbers without bins have eight.

    Returns
    -------
    Figures
        An array of noisy counts with one axis per column, which `labels` name; an `interval` is about the table's own
        count.

    See Also
    --------
    histogram : Counts for one column.

    Examples
    --------
    >>> import numpy as np, privfit as pf
    >>> rows = np.repeat([[0.0, 0.0], [1.0, 1.0]], 540, axis=0)
    >>> counts = pf.crosstab(rows, [pf.Category("a", [0, 1]), pf.Category("b", [0, 1])], epsilon=1.0)
    >>> bool(500 < counts[0, 0] < 580 and -40 < counts[0, 1] < 40)
    True
    """
    wanted = [_binned("crosstab", column) for column in columns]
    refuse_no_columns("crosstab", wanted)
    terms = Terms(epsilon, 0.0, adjacency, rows_per_person, expected_rows, ledger, random_state)
    answer = released("crosstab", CrossCounts(), lambda _: None, table, wanted, terms)
    noisy, scale = answer.value
    return as_figures(around(noisy, scale), answer.report, tuple(cell_labels(column) for column in wanted))


# -- columns ---------------------------------------------------------------------------------------


def _asked(function: str, question: Any, table: TableLike, column: Column, terms: Terms) -> Answer:
    """The answer to one question, which may depend on the number of rows."""

    def problem(rows: int) -> SummaryProblem:
        return SummaryProblem((question if isinstance(question, Question) else question(rows),), (Fraction(1),))

    return released(function, Summary(), problem, table, [column], terms)


def _number(function: str, column: object) -> Numeric:
    if not isinstance(column, Numeric):
        raise SchemaError(
            f"{function} was given a column of type {type(column).__name__}; it is a number with public bounds. Write "
            "pf.Numeric('income', 0, 1_000_000)."
        )
    return replace(column, bins=None, fill=column.fill if isinstance(column.fill, float) else None)


def _binned(function: str, column: object) -> Column:
    if isinstance(column, Numeric):
        return column if column.bins is not None else replace(column, bins="auto")
    if isinstance(column, Category):
        return column
    raise SchemaError(
        f"{function} was given a column of type {type(column).__name__}; columns are Numeric or Category. Write "
        "pf.Category('sex', ['f', 'm']) or pf.Numeric('age', 0, 120, bins=12)."
    )


def cell_labels(column: Column) -> tuple[Any, ...]:
    """The levels of a category; (low, high) for every bin of a number, and "missing" where missing values have one."""
    if isinstance(column, Category):
        return tuple(column.levels)
    ends = (column.low, *column.edges(), column.high)
    return (*pairwise(ends), *(["missing"] if column.fill == "missing" else []))


def _levels_within(column: Column, among: Any) -> tuple[Column, tuple[int, ...]]:
    """The column with the levels or bins that answer the question, and which of them are counted."""
    if isinstance(column, Category):
        listed = [among] if isinstance(among, str | int | float | bool) else list(among)
        unknown = [level for level in listed if level not in column.levels]
        if unknown or not listed:
            raise SchemaError(
                f"count was given {among!r} for column {column.name!r}, whose levels are {list(column.levels)!r}. Give "
                "some of them."
            )
        return column, tuple(sorted({column.levels.index(level) for level in listed}))
    number = _number("count", column)
    try:
        low, high = (float(end) for end in among)
    except (TypeError, ValueError):
        low, high = 1.0, 0.0
    if not (low < high and (low > number.low or high < number.high) and low < number.high and high > number.low):
        raise SchemaError(
            f"count was given the range {among!r} for column {column.name!r}; it is a pair (low, high) that is part of "
            f"{number.low:g} to {number.high:g}, and not all of it. Write, for example, (18, 65)."
        )
    edges = [edge for edge in (low, high) if number.low < edge < number.high]
    cells = len(make_block(replace(number, bins=edges), 0, whole=True).labels)
    first = int(low > number.low)
    return replace(number, bins=edges), tuple(range(first, cells - int(high < number.high)))
