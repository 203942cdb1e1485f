"""Sets of items that many rows hold together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from privfit.mechanisms.summaries.itemsets import ItemsetProblem, ItemsetSearch
from privfit.models.report import Report
from privfit.privacy import Adjacency, Ledger, Seed
from privfit.schema import Category, Column, Numeric, Schema, SchemaError
from privfit.summaries.figures import Figure
from privfit.summaries.release import Terms, refuse_no_columns, released
from privfit.tables import Table, TableLike, open_table


class FrequentItemsets(dict[tuple[str, ...], Figure]):
    """Numbers of rows by the set of items that they hold, in the order in which sets were chosen.

    It prints as a table; `found[("bread", "milk")]` is a number with an `interval`.

    Parameters
    ----------
    found : dict of tuple of str to Figure
        The noisy numbers of rows.
    report : Report
        What was guaranteed and what was drawn.

    Attributes
    ----------
    report : Report
        What was guaranteed and what was drawn.

    See Also
    --------
    frequent_itemsets : Finds them.

    Examples
    --------
    >>> import numpy as np, privfit as pf
    >>> found = pf.frequent_itemsets(np.tile([[1, 1, 0], [0, 0, 1]], (500, 1)), k=1, epsilon=1.0)
    >>> len(found)
    1
    """

    def __init__(self, found: Mapping[tuple[str, ...], Figure], report: Report) -> None:
        super().__init__(found)
        self.report = report

    def to_dict(self) -> dict[str, Any]:
        """Return the sets as plain values, ready for JSON.

        Returns
        -------
        dict
            A list of sets, each with its number of rows and the interval of that; and the report.
        """
        sets = [
            {"items": list(items), "rows": float(rows), "interval": list(rows.interval)} for items, rows in self.items()
        ]
        return {"itemsets": sets, "report": self.report.to_dict()}

    def __str__(self) -> str:
        rows = [("rows", "90% interval", "items")]
        for items, own in self.items():
            low, high = own.interval
            rows.append((f"{own:,.0f}", f"{low:,.0f} to {high:,.0f}", " + ".join(items)))
        widths = [max(len(row[place]) for row in rows) for place in range(2)]
        return "\n".join(f"{row[0]:>{widths[0]}}  {row[1]:<{widths[1]}}  {row[2]}" for row in rows)


def frequent_itemsets(
    table: TableLike,
    items: Sequence[str | Column] | Schema | None = None,
    *,
    k: int,
    epsilon: float,
    max_size: int = 5,
    ledger: Ledger | None = None,
    delta: float = 0.0,
    adjacency: Adjacency = "replace-one",
    rows_per_person: int = 1,
    expected_rows: int | None = None,
    random_state: Seed = None,
) -> FrequentItemsets:
    """Find the k sets of items that most rows hold, and how many rows hold each.

    Every row is a basket: which of some items it holds. Sets are chosen privately one after the other. One can be
    chosen once all of its parts are, so that few compete however many there are; then their numbers of rows are
    released together.

    Guarantee: epsilon-DP, or (epsilon, delta)-DP where a delta is spent, replace-one or add-remove, for persons with
    at most `rows_per_person` rows; docs/proofs/itemsets.md, Theorem 1.
    Domain: at least one row, no refused cell, no more rows than stated; docs/proofs/errors-and-stops.md.

    Parameters
    ----------
    table : array-like, data frame, Arrow table or stream, DuckDB relation, str or Path
        The private table, as in `fit`.
    items : list of str, Numeric and Category, Schema or None, default=None
        The columns. A name stands for a column of 0 and 1, which is one item. Every level of another category and
        every bin of a number is an item: 'sex_f', 'age_[30, 60)'. None is for arrays of 0 and 1, whose columns are
        called x0, x1, ... A schema may leave rows out (`person`, `where`).
    k : int
        How many sets. Each has a part of epsilon, so that fewer are found more reliably.
    epsilon : float
        Privacy budget: 70% for the choices, 30% for the numbers of rows.
    max_size : int, default=5
        The most items of a set.
    ledger : Ledger or None, default=None
        Budget that is charged before anything is drawn.
    delta : float, default=0.0
        Probability with which the guarantee may fail. Where k is large, it makes choices and numbers less noisy.
    adjacency : {'replace-one', 'add-remove'}, default='replace-one'
        Which tables are neighbours.
    rows_per_person : int, default=1
        Largest number of rows that one person can have.
    expected_rows : int or None, default=None
        Public guess of the number of rows where that is private ("add-remove"). Nothing depends on it here.
    random_state : int, Generator, RandomState or None, default=None
        None draws secret noise. A seed makes the result NOT private, and no ledger takes it.

    Returns
    -------
    FrequentItemsets
        A dict of numbers of rows, each with an `interval` that holds the table's own number nine times out of ten, by
        tuples of items; with a `report`.

    Raises
    ------
    DataError
        If the table does not fit the columns. Nothing is charged.
    BudgetExceeded
        If the ledger has less left than this costs. Nothing is charged and nothing is drawn.

    See Also
    --------
    crosstab : Counts of all cells of a few columns.
    SelectPrivate : Columns that go with a target.

    Examples
    --------
    >>> import numpy as np, privfit as pf
    >>> baskets = np.tile([[1, 1, 0], [1, 1, 1], [0, 1, 0]], (500, 1))
    >>> found = pf.frequent_itemsets(baskets, k=3, epsilon=1.0)
    >>> sorted(found)
    [('x0',), ('x0', 'x1'), ('x1',)]
    """
    declared = items if isinstance(items, Schema) else None
    opened = open_table(table)
    columns = _columns(opened, items if declared is None else declared.of_used_rows().columns)
    problem = ItemsetProblem(k, max_size)
    terms = Terms(epsilon, delta, adjacency, rows_per_person, expected_rows, ledger, random_state)
    answer = released("frequent_itemsets", ItemsetSearch(), problem, opened, columns, terms, declared)
    found = {one.labels: Figure(one.count, (one.low, one.high), answer.report) for one in answer.value}
    return FrequentItemsets(found, answer.report)


def _columns(opened: Table, items: Any) -> list[Column]:
    """The columns whose levels are items."""
    if items is None:
        if opened.names is not None:
            raise SchemaError(
                "frequent_itemsets was given a table with names and no items: names of columns are public only if you "
                "say so. List them: items=['bread', 'milk']. Nothing was charged."
            )
        items = [f"x{place}" for place in range(opened.width)]
    if isinstance(items, str | Numeric | Category):
        items = [items]
    columns = [_item_column(one) for one in items]
    refuse_no_columns("frequent_itemsets", columns)
    return columns


def _item_column(given: object) -> Column:
    if isinstance(given, str):
        return Category(given, [0, 1])
    if isinstance(given, Numeric):
        return given if given.bins is not None else replace(given, bins="auto")
    if isinstance(given, Category):
        return given
    raise SchemaError(
        f"frequent_itemsets was given an item of type {type(given).__name__}; items are names of columns of 0 and 1, "
        "or columns. Write items=['bread', pf.Category('sex', ['f', 'm'])]. Nothing was charged."
    )
