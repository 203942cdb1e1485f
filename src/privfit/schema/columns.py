"""The two kinds of column a schema knows: numbers with bounds, and categories with levels."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import accumulate, pairwise
from numbers import Real
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from privfit.schema.edges import equal_edges, log_edges
from privfit.schema.errors import SchemaError, shown

Level = str | int | float | bool
Bins = None | int | tuple[float, ...] | Literal["auto"]

OTHER = "other"
"""The level that receives all that are not listed."""
MISSING = "missing"
"""The level that missing values have where they have one of their own."""
DROP = "drop"
"""The fill of a target whose rows are left out where it is missing."""
AUTO_BINS = 8
"""Bins of a number that has none of its own: finer steps against more noisy coefficients. See docs/constants.md."""
AUTO_KNOTS = 8
"""Knots of a spline, in the same way: papers/experiments/classifiers.py, table in docs/classifiers.md."""
LOG_SCALE_FROM = 1000.0
"""Ranges wider than this are divided on a logarithmic scale. No command varies it."""
LEAST_DISTANCE = 1e-290
"""Bounds that are closer could not be divided by their distance in floats."""
MOST_BINS = 65_536
"""Bins of a number: so many take 0.1 seconds and a few MB, a billion would take all memory. No command varies it."""
EXACT_WHOLE = 1 << 53
"""Numbers of this size are no longer distinguished exactly in floats."""


def checked_name(name: object) -> str:
    """A column's name, if it can be one."""
    if not isinstance(name, str) or not name:
        raise SchemaError(
            f"A column was given the name {shown(name)}; a name is a non-empty text. Write, for example, "
            "Numeric('age', low=0, high=120)."
        )
    return name


def _is_number(value: object) -> bool:
    if not isinstance(value, Real) or isinstance(value, bool):
        return False
    try:
        return math.isfinite(value)
    except OverflowError:  # an integer beyond every float
        return False


def _plain(value: object) -> Any:
    """A numpy scalar or array as the Python value or list it stands for; other values unchanged."""
    to_list = getattr(value, "tolist", None)
    return to_list() if callable(to_list) else value


@dataclass(frozen=True)
class Numeric:
    """A numeric column whose smallest and largest possible values are public.

    Values outside the bounds are clipped, so a bound that is too tight costs accuracy, never privacy.

    Parameters
    ----------
    name : str
        The column's name in the table.
    low : float, default=None
        Public lower bound. It comes from knowledge about the world, never from the data, and has to be given.
    high : float, default=None
        Public upper bound, in the same way.
    bins : int, sequence of float, 'auto' or None, default=None
        None for the public default of the estimator; a number of equal bins; the edges between bins; or "auto", which
        depends on the bounds only: 8 bins of equal width, or equal in a signed logarithm when the range is wide.
    fill : float, 'missing', 'drop' or None, default=None
        The public value that replaces a missing one. "missing" gives missing values a coefficient of their own. None
        makes a missing value an error. For a target, "drop" leaves out rows without one; no number is right for it,
        because a made-up target changes what is estimated.

    See Also
    --------
    Category : A column with public levels.
    Schema : All columns of a table.

    Examples
    --------
    >>> import privfit as pf
    >>> pf.Numeric("age", 0, 120, bins=[18, 65]).edges()
    (18.0, 65.0)
    """

    name: str
    low: float = None  # type: ignore[assignment]  # absent bounds are refused below with a cure
    high: float = None  # type: ignore[assignment]
    bins: Bins | Sequence[float] = None
    fill: float | Literal["missing", "drop"] | None = None
    is_wide: bool = field(init=False, repr=False, compare=False)
    """Whether this column's scale is a logarithm: its range has several orders of magnitude."""
    auto_knots: tuple[float, ...] = field(init=False, repr=False, compare=False)
    """The knots of this column as splines where nobody says how many."""

    def __post_init__(self) -> None:
        checked_name(self.name)
        self._check_bounds()
        object.__setattr__(self, "low", float(self.low))
        object.__setattr__(self, "high", float(self.high))
        object.__setattr__(self, "is_wide", self.high - self.low > LOG_SCALE_FROM)
        object.__setattr__(self, "auto_knots", self.knots(AUTO_KNOTS))
        object.__setattr__(self, "bins", self._checked_bins())
        self._check_fill()
        if _is_number(self.fill):
            object.__setattr__(self, "fill", float(self.fill))  # type: ignore[arg-type]

    def _check_bounds(self) -> None:
        given: tuple[object, object] = (self.low, self.high)
        if None in given or "?" in given:
            raise SchemaError(
                f"Column {self.name!r} has no bounds, and bounds cannot be taken from private data. "
                f"Give them in the schema: Numeric({self.name!r}, low=0, high=120). If only a far too wide range is "
                f"known, buy them: pf.bounds(table, {{{self.name!r}: (0, 10_000_000)}}, epsilon=0.05)."
            )
        if not (_is_number(self.low) and _is_number(self.high)) or not float(self.low) < float(self.high):
            raise SchemaError(
                f"Column {self.name!r} has the bounds {shown(self.low)} and {shown(self.high)}; low and high are "
                "finite numbers with low < high. "
                "Write the smallest and the largest value that can occur."
            )
        if not math.isfinite(float(self.high) - float(self.low)):
            raise SchemaError(
                f"Column {self.name!r} has bounds whose distance is not a finite number. "
                "Clipping to so wide a range protects nobody. Give bounds that values can reach."
            )
        if float(self.high) - float(self.low) < LEAST_DISTANCE:
            raise SchemaError(
                f"Column {self.name!r} has the bounds {shown(self.low)} and {shown(self.high)}, which are too close "
                "to divide by their distance. "
                f"Bounds are at least {LEAST_DISTANCE:g} apart. Give the column in a smaller unit."
            )

    def _checked_bins(self) -> Bins:
        bins = _plain(self.bins)
        if bins is None:
            return None
        if isinstance(bins, str):
            if bins == "auto":
                return "auto"
        elif isinstance(bins, int):
            if 2 <= bins <= MOST_BINS and not isinstance(bins, bool):
                return bins
        elif isinstance(bins, Sequence) and len(bins) < MOST_BINS and all(_is_number(edge) for edge in bins):
            edges = tuple(float(edge) for edge in bins)
            inner = tuple(edge for edge in edges if self.low < edge < self.high)
            rising = all(a < b for a, b in pairwise(edges))
            if inner and rising and self.low <= edges[0] and edges[-1] <= self.high:
                return inner
        raise SchemaError(
            f"Column {self.name!r} has bins={shown(self.bins)}; bins is None, a number from 2 to {MOST_BINS:,}, "
            f"'auto', or fewer rising edges between {self.low:g} and {self.high:g}. Write, for example, bins=10 or "
            "bins=[20, 40, 65]."
        )

    def _check_fill(self) -> None:
        if self.fill is None or _is_number(self.fill):
            return
        if isinstance(self.fill, str) and self.fill in (DROP, MISSING):
            return
        raise SchemaError(
            f"Column {self.name!r} has fill={shown(self.fill)}; fill is a public number, 'missing' for a coefficient "
            "of its own, or 'drop' for a target. "
            "Write a number that is sound for everybody who has none, such as fill=40, or leave it out to refuse "
            "missing ones."
        )

    @property
    def drops(self) -> bool:
        """Whether rows are left out where this column, a target, is missing."""
        return self.fill == DROP

    def edges(self, bins: Bins = None, scaled: bool = False) -> tuple[float, ...]:
        """Return the inner edges of this column's bins: its own, or those of `bins` when it has none.

        Parameters
        ----------
        bins : int, sequence of float, 'auto' or None, default=None
            Bins for a column that has none of its own.
        scaled : bool, default=False
            Whether a number of bins is meant on the column's own scale, as "auto" is: a logarithm where it is wide.

        Returns
        -------
        tuple of float
            The edges, ascending.
        """
        own = self.bins if self.bins is not None else bins
        if isinstance(own, tuple):
            return own
        if own is None:
            raise SchemaError(
                f"Column {self.name!r} has no bins. Give it some: Numeric({self.name!r}, ..., bins='auto')."
            )
        wide = (own == "auto" or scaled) and self.is_wide
        count = AUTO_BINS if own == "auto" else int(own)  # type: ignore[arg-type]
        return log_edges(self.low, self.high, count) if wide else equal_edges(self.low, self.high, count)

    # -- knots -------------------------------------------------------------------------------------

    def knots(self, count: int) -> tuple[float, ...]:
        """Return points from the lower to the upper bound, evenly spaced on this column's scale.

        The scale is linear, or a signed logarithm when the range is wide.

        Parameters
        ----------
        count : int
            Number of knots.

        Returns
        -------
        tuple of float
            The knots, ascending.
        """
        start, stop = (self._on_scale(self.low), self._on_scale(self.high)) if self.is_wide else (self.low, self.high)
        steps = [start + (stop - start) * i / (count - 1) for i in range(1, count - 1)]
        return (self.low, *(map(self._off_scale, steps) if self.is_wide else steps), self.high)

    def between(self, steps: int) -> tuple[float, ...]:
        """Return the values halfway between this many even steps on this column's scale.

        The step of a value is found by comparison, without a logarithm of the value.

        Parameters
        ----------
        steps : int
            Number of steps.

        Returns
        -------
        tuple of float
            The values, ascending.
        """
        start, stop = self._on_scale(self.low), self._on_scale(self.high)
        halves = [self._off_scale(start + (stop - start) * (i + 0.5) / steps) for i in range(steps)]
        return tuple(accumulate(halves, max))

    def on_scale(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Map values between the bounds to this column's scale, from 0 to 1.

        Parameters
        ----------
        values : ndarray
            Values between the bounds.

        Returns
        -------
        ndarray
            Their positions.
        """
        if not self.is_wide:
            return np.asarray((values - self.low) / (self.high - self.low))
        ends = np.array([self.low, self.high])  # by the same functions as the values, so that the bounds are at 0 and 1
        if self.low < 0.0 < self.high:
            start, stop = np.copysign(np.log1p(np.abs(ends)), ends)
            return np.asarray((np.copysign(np.log1p(np.abs(values)), values) - start) / (stop - start))
        return np.asarray(np.log1p(values - self.low) / np.log1p(ends - self.low)[1])

    def _on_scale(self, value: float) -> float:
        if not self.is_wide:
            return value
        if self.low < 0.0 < self.high:
            return math.copysign(math.log1p(abs(value)), value)
        return math.log1p(value - self.low)

    def _off_scale(self, step: float) -> float:
        if not self.is_wide:
            return step
        if self.low < 0.0 < self.high:
            return math.copysign(math.expm1(abs(step)), step)
        return self.low + math.expm1(step)


@dataclass(frozen=True)
class Category:
    """A column whose possible levels are public.

    Parameters
    ----------
    name : str
        The column's name in the table.
    levels : sequence of str, int, float or bool, default=()
        The levels that can occur: all texts, or all numbers (truth values count as numbers). A level called "other"
        receives every level that is not listed; without it an unknown level is an error.
    other : bool, default=False
        Whether to add the level "other" when the list does not have it.
    fill : str, int, float, bool or None, default=None
        The level that replaces a missing value. "missing" is a level of its own, which is added to the list. For a
        target, "drop" leaves out rows without one. None makes a missing value an error.

    See Also
    --------
    Numeric : A column with public bounds.
    Schema : All columns of a table.

    Examples
    --------
    >>> import privfit as pf
    >>> pf.Category("sex", ["Female", "Male"], other=True).levels
    ('Female', 'Male', 'other')
    """

    name: str
    levels: Sequence[Level] = ()
    other: bool = False
    fill: Level | None = None
    is_text: bool = field(init=False, repr=False, compare=False)
    """Whether the levels are texts; otherwise they are numbers."""

    def __post_init__(self) -> None:
        checked_name(self.name)
        levels = self._checked_levels()
        if self.other and OTHER not in levels:
            levels = (*levels, OTHER)
        if isinstance(self.fill, str) and self.fill == MISSING and MISSING not in levels:
            levels = (*levels, MISSING)
        object.__setattr__(self, "levels", levels)
        object.__setattr__(self, "is_text", all(isinstance(level, str) for level in levels))
        object.__setattr__(self, "other", OTHER in levels)
        object.__setattr__(self, "fill", _plain(self.fill))
        if len(levels) < 2:
            raise SchemaError(
                f"Column {self.name!r} has a single level, {shown(levels[0])}, and says nothing about anybody. "
                "Leave it out, or list every level that can occur."
            )
        if self.fill is not None and self.fill not in levels and not self.drops:
            raise SchemaError(
                f"Column {self.name!r} has fill={shown(self.fill)}, which is not one of its levels. "
                f"Choose one of {shown(list(levels))}, or fill='missing' for a level of its own."
            )

    @property
    def drops(self) -> bool:
        """Whether rows are left out where this column, a target, is missing."""
        return isinstance(self.fill, str) and self.fill == DROP and DROP not in self.levels

    def _checked_levels(self) -> tuple[Level, ...]:
        given = _plain(self.levels)
        if isinstance(given, str) or not isinstance(given, Sequence):
            raise SchemaError(
                f"Column {self.name!r} was given levels of type {type(given).__name__}; levels are a list, in the "
                "order they are to have. "
                f"Write, for example, Category({self.name!r}, ['no', 'yes'])."
            )
        if len(given) == 0 or tuple(given) == ("?",):
            raise SchemaError(
                f"Column {self.name!r} has no levels, and levels cannot be taken from private data. "
                f"Give them in the schema: Category({self.name!r}, ['no', 'yes'])."
            )
        levels = tuple(_plain(level) for level in given)
        listed = [level for level in levels if level not in (OTHER, MISSING)]
        texts = [isinstance(level, str) for level in listed]
        numbers = [
            isinstance(level, int | float) and (isinstance(level, bool) or _is_number(level)) for level in listed
        ]
        if not (all(texts) or all(numbers)):
            raise SchemaError(
                f"Column {self.name!r} mixes kinds of levels; levels are all texts or all finite numbers. "
                "Write numbers without quotation marks, or put all of them in quotation marks."
            )
        if any(not isinstance(level, str) and abs(level) >= EXACT_WHOLE for level in listed):
            raise SchemaError(
                f"Column {self.name!r} lists a level of 2^53 or more in size, where numbers are no longer "
                "distinguished exactly. "
                "Hold such codes as texts, in the table and in the schema."
            )
        if len(set(levels)) != len(levels):
            raise SchemaError(
                f"Column {self.name!r} lists a level twice. Each level stands for one thing: list it once."
            )
        return levels


Column = Numeric | Category
