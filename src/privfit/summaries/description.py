"""A table described in one release: means and quantiles of numbers, counts of levels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

from privfit.mechanisms.summaries.cells import Cells
from privfit.mechanisms.summaries.numbers import Number
from privfit.mechanisms.summaries.questions import Figures as Drawn
from privfit.mechanisms.summaries.questions import Interval, Question, Summary, SummaryProblem
from privfit.models.report import Report
from privfit.privacy import Adjacency, Ledger, Seed
from privfit.report.notebook import folded, fragment, table
from privfit.schema import Category, Column, Numeric, Schema, SchemaError
from privfit.statistics.quantiles import checked_quantile, fine_grid
from privfit.summaries.asked_columns import cell_labels
from privfit.summaries.figures import Figure
from privfit.summaries.release import Terms, released
from privfit.tables import TableLike


class TableDescription(dict[str, dict[str, Figure]]):
    """Figures by column: for a number its mean and quantiles, for a category the counts of its levels.

    It prints as a table; `description["income"]["median"]` is a number with an `interval`.

    Parameters
    ----------
    found : dict of str to dict of str to Figure
        The figures by the name of the column and by what they are.
    report : Report
        What was guaranteed and what was drawn.

    Attributes
    ----------
    report : Report
        What was guaranteed and what was drawn.

    See Also
    --------
    describe : Makes one.

    Examples
    --------
    >>> import numpy as np, privfit as pf
    >>> ages = np.tile(np.arange(20.0, 70.0), 200).reshape(-1, 1)
    >>> described = pf.describe(ages, pf.Schema([pf.Numeric("age", 0, 120)]), epsilon=1.0)
    >>> list(described["age"])
    ['mean', 'median', '90%']
    """

    def __init__(self, found: Mapping[str, dict[str, Figure]], report: Report) -> None:
        super().__init__(found)
        self.report = report

    def to_dict(self) -> dict[str, Any]:
        """Return the figures as plain values, ready for JSON.

        Returns
        -------
        dict
            For every column a list of figures, each with its value and its interval; and the report.
        """
        columns = {
            name: [{"figure": key, "value": float(one), "interval": list(one.interval)} for key, one in figures.items()]
            for name, figures in self.items()
        }
        return {"columns": columns, "report": self.report.to_dict()}

    def plot(self, path: str | Path | None = None) -> Any:
        """Draw the figures with their intervals, one panel per column. Needs the extra `plots`.

        Parameters
        ----------
        path : str, Path or None, default=None
            Where to write a PNG, SVG or PDF file; None writes none.

        Returns
        -------
        matplotlib.figure.Figure
            The drawing.
        """
        from privfit.report.description import draw_description

        return draw_description(self.to_dict()["columns"], path)

    def _repr_html_(self) -> str:
        head, *lines = self._lines()
        return fragment(
            table("Description of a table", head, lines), folded("Privacy report", self.report._repr_html_())
        )

    def _lines(self) -> list[tuple[str, ...]]:
        rows: list[tuple[str, ...]] = [("column", "figure", "value", "90% interval")]
        for name, figures in self.items():
            for place, (key, one) in enumerate(figures.items()):
                low, high = one.interval
                rows.append((name if place == 0 else "", key, f"{one:,.6g}", f"{low:,.6g} to {high:,.6g}"))
        return rows

    def __str__(self) -> str:
        rows = self._lines()
        widths = [max(len(row[place]) for row in rows) for place in range(3)]
        return "\n".join(
            f"{row[0]:<{widths[0]}}  {row[1]:<{widths[1]}}  {row[2]:>{widths[2]}}  {row[3]}".rstrip() for row in rows
        )


def describe(
    table: TableLike,
    schema: Schema | str | Path,
    *,
    epsilon: float,
    ledger: Ledger | None = None,
    quantiles: Sequence[float] = (0.5, 0.9),
    adjacency: Adjacency = "replace-one",
    rows_per_person: int = 1,
    expected_rows: int | None = None,
    random_state: Seed = None,
) -> TableDescription:
    """Describe all columns of a table in one release.

    Every column has an equal part of epsilon. Of a number the mean and some quantiles are released, of a category, and
    of a number whose missing values are a level, the counts of levels or bins.

    Guarantee: epsilon-DP, replace-one or add-remove, for persons with at most `rows_per_person` rows;
    docs/proofs/description.md, Theorem 1.
    Domain: at least one row, no refused cell, no more rows than stated; docs/proofs/errors-and-stops.md.

    Parameters
    ----------
    table : array-like, data frame, Arrow table or stream, DuckDB relation, str or Path
        The private table, as in `fit`.
    schema : Schema, str or Path
        Public facts about the columns, or the path of a TOML file that has them; the target is described too. Bounds
        may be generous. Missing values follow `fill`, or are refused before anything is charged.
    epsilon : float
        Privacy budget of all columns together.
    ledger : Ledger or None, default=None
        Budget that is charged before anything is drawn.
    quantiles : sequence of float, default=(0.5, 0.9)
        Quantiles of numbers; each makes the others noisier.
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
    TableDescription
        Figures by column, each a number with an `interval`; it prints as a table.

    Raises
    ------
    DataError
        If the table does not fit the schema. Nothing is charged.
    BudgetExceeded
        If the ledger has less left than this costs. Nothing is charged and nothing is drawn.

    See Also
    --------
    quantile : Quantiles of one number.
    histogram : Counts of one column.
    bounds : Buys bounds where nobody knows them.

    Examples
    --------
    >>> import numpy as np, privfit as pf
    >>> ages = np.tile(np.arange(20.0, 70.0), 200).reshape(-1, 1)
    >>> described = pf.describe(ages, pf.Schema([pf.Numeric("age", 0, 120)]), epsilon=1.0)
    >>> 40 < described["age"]["median"] < 50
    True
    """
    declared = _settled(schema)
    columns = [_described(column) for column in declared.of_used_rows().columns]
    wanted = tuple(map(checked_quantile, quantiles))
    terms = Terms(epsilon, 0.0, adjacency, rows_per_person, expected_rows, ledger, random_state)

    def problem(rows: int) -> SummaryProblem:
        resolution = rows * epsilon / len(columns) / max(len(wanted), 1)
        questions = tuple(_question(column, wanted, resolution) for column in columns)
        return SummaryProblem(questions, (Fraction(1),) * len(columns))

    answer = released("describe", Summary(), problem, table, columns, terms, declared)
    names = [_quantile_name(one) for one in wanted]
    told = {
        column.name: _figures(column, names, found, answer.report)
        for column, found in zip(columns, answer.value, strict=True)
    }
    return TableDescription(told, answer.report)


def _settled(schema: object) -> Schema:
    settled = Schema.load(schema) if isinstance(schema, str | Path) else schema
    if not isinstance(settled, Schema):
        raise SchemaError(
            f"describe was given a schema of type {type(schema).__name__}; it is a pf.Schema, or the path of a TOML "
            "file. Write pf.Schema([pf.Numeric('age', 0, 120)])."
        )
    if settled.any_width:
        raise SchemaError(
            "describe was given a box of open width, which names no columns. Give the number of columns: "
            "pf.Schema.box(low, high, n_features=...)."
        )
    return settled


def _described(column: Column) -> Column:
    """The column as it is asked about: bins matter only where missing values are one of them."""
    if isinstance(column, Category) or not isinstance(column.fill, float | type(None)):
        return column
    return replace(column, bins=None)


def _question(column: Column, quantiles: tuple[Fraction, ...], resolution: float) -> Question:
    if isinstance(column, Numeric) and column.bins is None:
        return Number(fine_grid(column, resolution), quantiles)
    return Cells(column)


def _quantile_name(quantile: Fraction) -> str:
    return "median" if quantile == Fraction(1, 2) else f"{100 * float(quantile):g}%"


def _figures(column: Column, quantiles: list[str], found: Drawn, report: Report) -> dict[str, Figure]:
    if "counts" in found:
        labels = [label if isinstance(label, str) else _in_words(label) for label in cell_labels(column)]
        return dict(zip(labels, _each(found["counts"], report), strict=True))
    (mean,) = _each(found["mean"], report)
    own = _each(found["quantiles"], report) if quantiles else []
    return {"mean": mean, **dict(zip(quantiles, own, strict=True))}


def _each(own: Interval, report: Report) -> list[Figure]:
    ends = zip(own.value.tolist(), own.low.tolist(), own.high.tolist(), strict=True)
    return [Figure(value, (low, high), report) for value, low, high in ends]


def _in_words(label: Any) -> str:
    return f"{label[0]:g} to {label[1]:g}" if isinstance(label, tuple) else str(label)
