"""Survival curves of a table: the share of people without an event by a time, with intervals and bands."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privfit.mechanisms.summaries.questions import Interval
from privfit.mechanisms.summaries.survival import SurvivalCounts, survival_grid
from privfit.mechanisms.summaries.survival_bands import Curves, crossing
from privfit.models.report import Report
from privfit.privacy import Adjacency, Ledger, Seed
from privfit.report.notebook import folded, fragment, table
from privfit.schema import Category, Column, Numeric, Schema, SchemaError
from privfit.summaries.asked_columns import as_binned, as_number, asked_columns, cell_labels
from privfit.summaries.figures import Figures, as_figures
from privfit.summaries.release import Terms, released
from privfit.tables import TableLike

Floats = NDArray[np.float64]


class SurvivalCurves:
    """Survival curves that were released, with 90% intervals, bands and their report.

    Parameters
    ----------
    times : ndarray of shape (n_bins + 1,)
        The beginning of the grid and the ends of its bins.
    survival : Figures
        The share of people without an event by each time: of shape (n_bins + 1,), or one line for each group.
    band : ndarray
        Ends of the 90% bands, along a last axis of length 2.
    at_risk : Figures
        How many people are there, without an event, at the beginning of every bin.
    groups : tuple
        The groups, if there are any.
    report : Report
        What was guaranteed and what was drawn.

    Attributes
    ----------
    times : ndarray
        The beginning of the grid and the ends of its bins.
    survival : Figures
        The share of people without an event by each time. An `interval` holds one value of the population nine times
        out of ten. Both are about the population that the rows are drawn from. NaN where noise leaves nobody clearly at
        risk.
    band : ndarray
        Ends of the 90% bands: a band holds the whole curve of a group nine times out of ten, as far as it is known.
    at_risk : Figures
        How many people are there, without an event, at the beginning of every bin; intervals are about the table.
    median : Figures
        When half of a group has had an event; infinite where that is later than the curve shows.
    groups : tuple
        The groups, if there are any.
    report : Report
        What was guaranteed and what was drawn.

    See Also
    --------
    kaplan_meier : Makes them.

    Examples
    --------
    >>> import numpy as np, privfit as pf
    >>> rng = np.random.default_rng(0)
    >>> table = np.column_stack([rng.exponential(2.0, 20_000), np.ones(20_000)])
    >>> curves = pf.kaplan_meier(table, pf.Numeric("years", 0, 5), "died", epsilon=1.0)
    >>> bool(abs(curves.at(2.0) - np.exp(-1)) < 0.05)
    True
    """

    def __init__(
        self,
        times: Floats,
        survival: Figures,
        band: Floats,
        at_risk: Figures,
        groups: tuple[Any, ...],
        report: Report,
    ) -> None:
        self.times, self.survival, self.band, self.at_risk = times, survival, band, at_risk
        self.groups, self.report = groups, report

    def _lines(self) -> tuple[Floats, Floats, Floats]:
        """Survival, intervals and bands, one line for each group."""
        many = len(self.times)
        assert self.survival.interval is not None
        intervals, bands = self.survival.interval.reshape(-1, many, 2), self.band.reshape(-1, many, 2)
        return np.asarray(self.survival).reshape(-1, many), intervals, bands

    @property
    def median(self) -> Figures:
        """When half of a group has had an event."""
        survival, intervals, _ = self._lines()
        lines = zip(survival, intervals, strict=True)
        found = [[crossing(self.times, own, 0.5) for own in (line, *ends.T)] for line, ends in lines]
        value, low, high = np.array(found).reshape(*(len(self.groups),) * bool(self.groups), 3).T
        return as_figures(Interval(value.T, low.T, high.T), self.report, (self.groups,) if self.groups else ())

    def at(self, times: Any) -> NDArray[np.float64]:
        """Return survival at times of the grid, by straight lines between the ends of bins.

        Parameters
        ----------
        times : float or array-like
            The times; beyond the grid survival is not known.

        Returns
        -------
        ndarray
            Survival, one line for each group.
        """
        wanted = np.asarray(times, dtype=np.float64)
        lines = [np.interp(wanted, self.times, line, right=np.nan) for line in self._lines()[0]]
        return np.array(lines) if self.groups else np.asarray(lines[0])

    def to_dict(self) -> dict[str, Any]:
        """Return the curves as plain values, ready for JSON.

        Returns
        -------
        dict
            The times; for every group survival, intervals, bands, numbers at risk and the median; and the report.
        """
        many, names = len(self.times), [_in_words(group) for group in self.groups] or ["all"]
        median, at_risk = np.atleast_1d(self.median), np.asarray(self.at_risk).reshape(-1, many - 1)
        curves = {}
        for place, (name, *own) in enumerate(zip(names, *self._lines(), strict=True)):
            survival, interval, band = own
            curves[name] = {
                "survival": [_plain(value) for value in survival],
                "interval": interval.tolist(),
                "band": band.tolist(),
                "at_risk": at_risk[place].tolist(),
                "median": _plain(median[place]),
            }
        return {"times": self.times.tolist(), "curves": curves, "report": self.report.to_dict()}

    def plot(self, path: str | Path | None = None) -> Any:
        """Draw the curves with their bands. Needs the extra `plots`.

        Parameters
        ----------
        path : str, Path or None, default=None
            Where to write a PNG, SVG or PDF file; None writes none.

        Returns
        -------
        matplotlib.figure.Figure
            The drawing.
        """
        from privfit.report.survival import draw_survival

        return draw_survival(self.to_dict(), path)

    def _rows(self) -> list[tuple[str, ...]]:
        """A head, and a line for each group and time."""
        told = self.to_dict()
        rows: list[tuple[str, ...]] = [("group", "time", "survival", "90% interval", "at risk")]
        for name, own in told["curves"].items():
            at_risk = [f"{value:,.0f}" for value in own["at_risk"]]
            lines = zip(told["times"], own["survival"], own["interval"], [*at_risk, ""], strict=True)
            for place, (time, value, (low, high), left) in enumerate(lines):
                shown = "" if value is None else f"{value:.4f}"
                rows.append((name if place == 0 else "", f"{time:,.6g}", shown, f"{low:.4f} to {high:.4f}", left))
        return rows if self.groups else [("", *row[1:]) for row in rows]

    def __str__(self) -> str:
        rows = self._rows()
        widths = [max(len(row[place]) for row in rows) for place in range(5)]
        return "\n".join(
            f"{row[0]:<{widths[0]}}  {row[1]:>{widths[1]}}  {row[2]:>{widths[2]}}  {row[3]:<{widths[3]}}  "
            f"{row[4]:>{widths[4]}}".strip()
            for row in rows
        )

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        head, *lines = self._rows()
        return fragment(table("Survival curves", head, lines), folded("Privacy report", self.report._repr_html_()))


def kaplan_meier(
    table: TableLike,
    time: Numeric | str,
    event: str | Category,
    *,
    by: Column | str | None = None,
    schema: Schema | str | Path | None = None,
    epsilon: float,
    ledger: Ledger | None = None,
    adjacency: Adjacency = "replace-one",
    rows_per_person: int = 1,
    expected_rows: int | None = None,
    random_state: Seed = None,
) -> SurvivalCurves:
    """Release survival curves: the share of people without an event by a time, some of whom are censored.

    Events and censored times are counted in the bins of a public grid, with noise; the curve is the life table of these
    counts, which is Kaplan and Meier's where bins are narrow.

    Guarantee: epsilon-DP, replace-one or add-remove, for persons with at most `rows_per_person` rows;
    docs/proofs/survival.md, Theorem 1.
    Domain: at least one row, no refused cell, no more rows than stated; docs/proofs/errors-and-stops.md.

    Parameters
    ----------
    table : array-like, data frame, Arrow table or stream, DuckDB relation, str or Path
        The private table, as in `fit`. Columns of an array are the time, the event and the group, in this order.
    time : Numeric or str
        The time to the event or to the end of observation, with the public ends of the curve. Times from the upper
        bound on count as without an event. Its `bins` are those of the grid; without any there are 20 equal ones. With
        a schema that lists it its name is enough.
    event : str or Category
        Whether the time is that of an event: the name of a column of 0 and 1, or a category, which the schema may list,
        whose second level means that it happened.
    by : Category, Numeric, str or None, default=None
        A column whose levels or bins have a curve each; with a schema that lists it its name is enough.
    schema : Schema, str, Path or None, default=None
        Which rows are used, by its person column, its filter and a target that drops rows; None uses all rows. It
        lists the time, the event and the group.
    epsilon : float
        Privacy budget of all curves together.
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
    SurvivalCurves
        The curves, with intervals, bands, medians and a report.

    Raises
    ------
    DataError
        If the table does not fit the columns. Nothing is charged.
    BudgetExceeded
        If the ledger has less left than this costs. Nothing is charged and nothing is drawn.

    See Also
    --------
    histogram : Counts of one column.

    Examples
    --------
    >>> import numpy as np, privfit as pf
    >>> rng = np.random.default_rng(0)
    >>> lives, watched = rng.exponential(2.0, 20_000), rng.uniform(0, 6, 20_000)
    >>> table = np.column_stack([np.minimum(lives, watched), lives <= watched])
    >>> curves = pf.kaplan_meier(table, pf.Numeric("years", 0, 5), "died", epsilon=1.0)
    >>> bool(1.3 < curves.median < 1.5)
    True
    """
    known, declared = asked_columns("kaplan_meier", [time, event, *([] if by is None else [by])], schema)
    happened = known[1] if isinstance(known[1], Category) else event
    grid = survival_grid(_time(known[0]))
    columns: list[Column] = [grid, event_column("kaplan_meier", happened)]
    if by is not None:
        columns.append(as_binned("kaplan_meier", known[2]))
    terms = Terms(epsilon, 0.0, adjacency, rows_per_person, expected_rows, ledger, random_state)
    answer = released("kaplan_meier", SurvivalCounts(), None, table, columns, terms, declared)
    groups = () if by is None else cell_labels(columns[2])
    times = np.array([grid.low, *grid.edges()])
    return _curves(times, answer.value.curves(answer.n_rows), groups, answer.report)


def _time(time: object) -> Numeric:
    """The time with its bins, and without a level for missing values."""
    own = as_number("kaplan_meier", time)
    assert isinstance(time, Numeric)
    return replace(own, bins=time.bins)


def event_column(function: str, event: object) -> Category:
    """The category whose second level means that the event happened."""
    if isinstance(event, str):
        return Category(event, [0, 1])
    if isinstance(event, Category) and len(event.levels) == 2:
        return event
    raise SchemaError(
        f"{function} was given the event {event!r}; it is the name of a column of 0 and 1, or a category of two "
        "levels, the second of which means that the event happened. Write pf.Category('status', ['alive', 'dead'])."
    )


def _curves(times: Floats, own: Curves, groups: tuple[Any, ...], report: Report) -> SurvivalCurves:
    """The curves with the beginning of the grid, where everybody is there."""
    labels = (groups,) if groups else ()
    low, high = (_from_one(ends, groups) for ends in (own.survival.low, own.survival.high))
    survival = as_figures(Interval(_from_one(own.survival.value, groups), low, high), report, labels)
    band = np.stack([_from_one(ends, groups) for ends in own.band], axis=-1)
    there = [ends if groups else ends[0] for ends in (own.at_risk.value, own.at_risk.low, own.at_risk.high)]
    return SurvivalCurves(times, survival, band, as_figures(Interval(*there), report, labels), groups, report)


def _from_one(lines: Floats, groups: tuple[Any, ...]) -> Floats:
    """Lines that begin with a 1; the only one where there are no groups."""
    whole = np.concatenate([np.ones((len(lines), 1)), lines], axis=1)
    return whole if groups else np.asarray(whole[0])


def _plain(value: Any) -> float | None:
    """A number, or None where it is not known."""
    return float(value) if np.isfinite(value) else None


def _in_words(label: Any) -> str:
    return f"{label[0]:g} to {label[1]:g}" if isinstance(label, tuple) else str(label)
