"""Bounds of columns, bought from a public range that is far too wide."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Literal

from privfit.mechanisms.summaries.bounds import BoundsProblem, SelectedBounds
from privfit.models.report import Report
from privfit.privacy import Adjacency, Ledger, Seed
from privfit.schema import Numeric, SchemaError
from privfit.statistics.ranges import candidate_ranges
from privfit.summaries.release import Terms, refuse_no_columns, released
from privfit.tables import TableLike


class BoughtBounds(dict[str, tuple[float, float]]):
    """Bounds by the names of columns, with the report of what they cost.

    Parameters
    ----------
    found : dict of str to tuple of float
        The lower and the upper bound of every column.
    report : Report
        What was guaranteed and what was drawn.

    See Also
    --------
    bounds : Buys them.
    Schema.with_bounds : A schema with these bounds.

    Examples
    --------
    >>> import numpy as np, privfit as pf
    >>> bought = pf.bounds(np.full((5000, 1), 40.0), {"age": (0, 1000)}, epsilon=1.0)
    >>> bought.report.epsilon
    1.0
    """

    def __init__(self, found: Mapping[str, tuple[float, float]], report: Report) -> None:
        super().__init__(found)
        self.report = report


def bounds(
    table: TableLike,
    columns: Mapping[str, tuple[float, float] | Numeric],
    *,
    epsilon: float,
    ledger: Ledger | None = None,
    share: float = 0.99,
    grid: Literal["auto", "log", "linear"] = "auto",
    ends: Literal["auto", "far", "both"] = "auto",
    delta: float = 0.0,
    adjacency: Adjacency = "replace-one",
    rows_per_person: int = 1,
    expected_rows: int | None = None,
    random_state: Seed = None,
) -> BoughtBounds:
    """Buy bounds for numbers of which only a generous range is known.

    For every column one range is selected privately from a public grid within the range given: the narrowest that
    holds about `share` of the values. Values outside the bounds are clipped by every later fit. Noise of a fit grows
    with the width of its bounds, so that a small part of the budget spent here is often saved several times over.

    Guarantee: epsilon-DP, or (epsilon, delta)-DP where a delta is spent, replace-one or add-remove, for persons with
    at most `rows_per_person` rows; docs/proofs/bounds.md, Theorem 1.
    Domain: at least one row, no refused cell, no more rows than stated; docs/proofs/errors-and-stops.md.

    Parameters
    ----------
    table : array-like, data frame, Arrow table or stream, DuckDB relation, str or Path
        The private table, as in `fit`.
    columns : dict of str to tuple of float or Numeric
        For every column a range that surely holds its values: public knowledge, and generous. A `pf.Numeric` can say
        what stands for missing values (`fill`).
    epsilon : float
        Privacy budget of all columns together; each takes an equal part.
    ledger : Ledger or None, default=None
        Budget that is charged before anything is drawn.
    share : float, default=0.99
        Share of the rows that the bounds shall hold, about. With little epsilon they hold less, and a warning says so.
    grid : {'auto', 'log', 'linear'}, default='auto'
        Candidates in equal factors (4 per factor of two) or in equal steps (128). "auto" is "log", but for
        ends="both" of a range below 1,000.
    ends : {'auto', 'far', 'both'}, default='auto'
        "far", the meaning of "auto", moves the bound that is further from zero, and of a number with both signs the
        bound of its size: -b and b. "both" moves both bounds by themselves, at twice the noise under replace-one.
    delta : float, default=0.0
        Probability with which the guarantee may fail. With several columns a delta makes every selection less noisy.
    adjacency : {'replace-one', 'add-remove'}, default='replace-one'
        Which tables are neighbours.
    rows_per_person : int, default=1
        Largest number of rows that one person can have.
    expected_rows : int or None, default=None
        Public guess of the number of rows, needed under "add-remove".
    random_state : int, Generator, RandomState or None, default=None
        None draws secret noise. A seed makes the result NOT private, and no ledger takes it.

    Returns
    -------
    BoughtBounds
        A dict of (low, high) by column, with a `report`.

    Raises
    ------
    DataError
        If the table does not fit the columns. Nothing is charged.
    BudgetExceeded
        If the ledger has less left than this costs. Nothing is charged and nothing is drawn.

    See Also
    --------
    Schema.with_bounds : A schema with the bounds that were bought.

    Examples
    --------
    >>> import numpy as np, privfit as pf
    >>> incomes = {"income": np.exp(np.random.default_rng(0).normal(10.3, 0.8, 20_000))}
    >>> import polars as pl
    >>> bought = pf.bounds(pl.DataFrame(incomes), {"income": (0, 10_000_000)}, epsilon=0.1)
    >>> low, high = bought["income"]
    >>> low, 100_000 < high < 1_000_000
    (0.0, True)
    """
    wanted = [_numeric(name, given) for name, given in _entries(columns).items()]
    refuse_no_columns("bounds", wanted)
    terms = Terms(epsilon, delta, adjacency, rows_per_person, expected_rows, ledger, random_state)
    problem = BoundsProblem(tuple(candidate_ranges(column, grid, ends) for column in wanted))
    answer = released("bounds", SelectedBounds(share), problem, table, wanted, terms)
    return BoughtBounds(answer.value, answer.report)


def _entries(columns: Mapping[str, tuple[float, float] | Numeric]) -> dict[str, tuple[float, float] | Numeric]:
    if not isinstance(columns, Mapping):
        raise SchemaError(
            f"bounds was given columns of type {type(columns).__name__}; it is a dict of generous public ranges. "
            "Write {'income': (0, 10_000_000)}."
        )
    return dict(columns)


def _numeric(name: str, given: object) -> Numeric:
    """The column with its generous range; bins of its own do not matter here."""
    if isinstance(given, Numeric):
        fill = given.fill if isinstance(given.fill, float) else None
        return replace(given, name=name, bins=None, fill=fill)
    if not isinstance(given, tuple | list) or len(given) != 2:
        raise SchemaError(
            f"Column {name!r} was given the range {given!r}; it is a pair of numbers, or a pf.Numeric. Write "
            f"{{{name!r}: (0, 10_000_000)}}."
        )
    return Numeric(name, *given)
