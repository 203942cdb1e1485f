"""One question about one column each: count, mean, quantile, histogram; and crosstab, about several.

Parameters
----------
table : array-like, data frame, Arrow table or stream, DuckDB relation, str or Path
    The private table, as in `fit`.
schema : Schema, str, Path or None
    Which rows are used, by its person column, its filter and a target that drops rows; None uses all rows. Columns can
    then be given by name.
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
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from privfit.mechanisms.summaries.cells import Cells, RowsWithin, around
from privfit.mechanisms.summaries.crosstab import CrossCounts
from privfit.mechanisms.summaries.means import Mean
from privfit.mechanisms.summaries.quantiles import Quantiles
from privfit.mechanisms.summaries.questions import Question, Summary, SummaryProblem
from privfit.models._docs import documented
from privfit.privacy import Adjacency, Ledger, PrivacyError, Seed
from privfit.schema import Column, Level, Numeric, Schema
from privfit.statistics.quantiles import checked_quantile, fine_grid
from privfit.summaries.asked_columns import as_binned, as_number, asked_columns, cell_labels, levels_within
from privfit.summaries.figures import Figure, Figures, as_figure, as_figures
from privfit.summaries.release import Answer, Terms, refuse_no_columns, released
from privfit.tables import TableLike


@documented
def count(
    table: TableLike,
    column: Column | str,
    among: Level | Sequence[Level] | tuple[float, float],
    *,
    schema: Schema | str | Path | None = None,
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
    column : Numeric, Category or str
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
    (given,), declared = asked_columns("count", [column], schema)
    counted, wanted = levels_within(given, among)
    terms = Terms(epsilon, 0.0, adjacency, rows_per_person, expected_rows, ledger, random_state)
    answer = _asked("count", RowsWithin(counted, wanted), table, counted, terms, declared)
    return as_figure(answer.value[0]["count"], answer.report)


@documented
def mean(
    table: TableLike,
    column: Numeric | str,
    *,
    schema: Schema | str | Path | None = None,
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
    column : Numeric or str
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
    (given,), declared = asked_columns("mean", [column], schema)
    number = as_number("mean", given)
    terms = Terms(epsilon, 0.0, adjacency, rows_per_person, expected_rows, ledger, random_state)
    answer = _asked("mean", lambda rows: Mean(fine_grid(number, rows * epsilon)), table, number, terms, declared)
    return as_figure(answer.value[0]["mean"], answer.report)


@documented
def quantile(
    table: TableLike,
    column: Numeric | str,
    quantiles: float | Sequence[float] = 0.5,
    *,
    schema: Schema | str | Path | None = None,
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
    column : Numeric or str
        The number, with its public bounds, which may be generous.
    quantiles : float or list of float
        Which quantiles, each above 0 and below 1. Several share epsilon equally.
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
    (given,), declared = asked_columns("quantile", [column], schema)
    number = as_number("quantile", given)
    listed = quantiles if isinstance(quantiles, Sequence | np.ndarray) else None
    wanted = tuple(map(checked_quantile, [quantiles] if listed is None else listed))
    if not wanted:
        raise PrivacyError("quantile was given no quantiles. Write, for example, [0.1, 0.5, 0.9].")
    terms = Terms(epsilon, 0.0, adjacency, rows_per_person, expected_rows, ledger, random_state)

    def question(rows: int) -> Question:
        return Quantiles(fine_grid(number, rows * epsilon / len(wanted)), wanted, bool(intervals))

    answer = _asked("quantile", question, table, number, terms, declared)
    found = answer.value[0]["quantiles"]
    if listed is not None:
        return as_figures(found, answer.report, (tuple(float(one) for one in wanted),))
    return as_figure(found, answer.report)


@documented
def histogram(
    table: TableLike,
    column: Column | str,
    *,
    schema: Schema | str | Path | None = None,
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
    column : Numeric, Category or str
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
    (given,), declared = asked_columns("histogram", [column], schema)
    binned = as_binned("histogram", given)
    terms = Terms(epsilon, 0.0, adjacency, rows_per_person, expected_rows, ledger, random_state)
    answer = _asked("histogram", Cells(binned), table, binned, terms, declared)
    return as_figures(answer.value[0]["counts"], answer.report, (cell_labels(binned),))


@documented
def crosstab(
    table: TableLike,
    columns: Sequence[Column | str],
    *,
    schema: Schema | str | Path | None = None,
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
    columns : list of Numeric, Category and str
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
    listed, declared = asked_columns("crosstab", columns, schema)
    wanted = [as_binned("crosstab", column) for column in listed]
    refuse_no_columns("crosstab", wanted)
    terms = Terms(epsilon, 0.0, adjacency, rows_per_person, expected_rows, ledger, random_state)
    answer = released("crosstab", CrossCounts(), None, table, wanted, terms, declared)
    noisy, scale = answer.value
    return as_figures(around(noisy, scale), answer.report, tuple(cell_labels(column) for column in wanted))


# -- what is asked -----------------------------------------------------------------------------------


def _asked(
    function: str, question: Any, table: TableLike, column: Column, terms: Terms, declared: Schema | None
) -> Answer:
    """The answer to one question, or to one that is made of the number of rows."""

    def problem(own: Question) -> SummaryProblem:
        return SummaryProblem((own,), (Fraction(1),))

    asked = problem(question) if isinstance(question, Question) else lambda rows: problem(question(rows))
    return released(function, Summary(), asked, table, [column], terms, declared)
