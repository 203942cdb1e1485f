"""Answers: a number, or an array of them, with intervals and the report of what they cost."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from privfit.mechanisms.summaries.questions import Interval
from privfit.models.report import Report

Floats = NDArray[np.float64]


class Figure(float):
    """A number that was released, with a 90% interval and its report.

    It acts as a float: whatever is computed from it is a plain number.

    Parameters
    ----------
    value : float
        The number.
    interval : tuple of float
        Ends of the 90% interval.
    report : Report or None, default=None
        What was guaranteed and what was drawn.

    Attributes
    ----------
    interval : tuple of float
        Ends of the 90% interval.
    report : Report or None
        What was guaranteed and what was drawn.

    See Also
    --------
    Figures : Several numbers.
    quantile : Releases one.

    Examples
    --------
    >>> import privfit as pf
    >>> half = pf.Figure(0.5, (0.4, 0.6))
    >>> half + 1, half.interval
    (1.5, (0.4, 0.6))
    """

    interval: tuple[float, float]
    report: Report | None

    def __new__(cls, value: float, interval: tuple[float, float], report: Report | None = None) -> Self:
        made = super().__new__(cls, value)
        made.interval, made.report = (float(interval[0]), float(interval[1])), report
        return made

    def __getnewargs__(self) -> tuple[Any, ...]:
        return float(self), self.interval, self.report

    def __str__(self) -> str:
        low, high = self.interval
        return f"{float(self):.6g} ({low:.6g} to {high:.6g})"


class Figures(np.ndarray[Any, np.dtype[np.float64]]):
    """Numbers that were released, with 90% intervals and their report.

    They act as an array; what is computed from them is an array without intervals.

    Parameters
    ----------
    values : array-like
        The numbers.
    interval : array-like
        Ends of the 90% intervals, along a last axis of length 2.
    report : Report or None, default=None
        What was guaranteed and what was drawn.
    labels : tuple, default=()
        What the numbers belong to: for every axis the bins or levels.

    Attributes
    ----------
    interval : ndarray
        Ends of the 90% intervals.
    report : Report or None
        What was guaranteed and what was drawn.
    labels : tuple
        What the numbers belong to.

    See Also
    --------
    Figure : One number.
    histogram : Releases several.

    Examples
    --------
    >>> import privfit as pf
    >>> counts = pf.Figures([10, 20], [[8, 12], [18, 22]])
    >>> float(counts.sum()), counts.interval[0].tolist()
    (30.0, [8.0, 12.0])
    """

    interval: Floats | None
    report: Report | None
    labels: tuple[Any, ...]

    def __new__(cls, values: Any, interval: Any, report: Report | None = None, labels: tuple[Any, ...] = ()) -> Self:
        made = np.asarray(values, dtype=np.float64).view(cls)
        made.interval, made.report, made.labels = np.asarray(interval, dtype=np.float64), report, labels
        return made

    def __array_finalize__(self, of: object) -> None:
        """What is made of figures has no interval."""
        self.interval, self.report, self.labels = None, None, ()

    def __array_wrap__(self, array: Any, context: Any = None, return_scalar: bool = False) -> Any:
        """Results of computations are plain arrays and numbers."""
        return array[()] if return_scalar else np.asarray(array)

    def __deepcopy__(self, memo: object) -> Self:
        return type(self)(np.array(self), self.interval, self.report, self.labels)

    def __reduce__(self) -> tuple[Any, ...]:
        """Copies and pickles keep the intervals."""
        return Figures, (np.asarray(self), self.interval, self.report, self.labels)


def as_figure(own: Interval, report: Report) -> Figure:
    """One number."""
    return Figure(float(own.value[0]), (float(own.low[0]), float(own.high[0])), report)


def as_figures(own: Interval, report: Report, labels: tuple[Any, ...] = ()) -> Figures:
    """Several numbers."""
    return Figures(own.value, np.stack([own.low, own.high], axis=-1), report, labels)
