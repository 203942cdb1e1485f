"""Ranges of a number: public candidates on a grid, and how many rows lie outside each.

A grid has points p_1 < ... < p_K strictly between public bounds. A row is counted at the first point that is not below
its value, or behind the last: K + 1 levels. A candidate range runs from a point, or from the lower bound, to a point,
or to the upper bound; a bound cuts nothing off.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from privfit.privacy import Adjacency, PrivacyError
from privfit.schema import Block, Numeric

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Grid = Literal["auto", "log", "linear"]
Ends = Literal["auto", "far", "both"]

PER_OCTAVE = 4
"""Points of a logarithmic grid per factor of two: a bound is up to 19% too wide, and finer grids gain less than noise
loses; `privfit bench bounds`."""
OCTAVES = 40
"""Factors of two that a logarithmic grid spans: 10^12. A bound can be that much too generous."""
DIGITS = 3
"""Digits of the points of a logarithmic grid, which people will read: far finer than the grid."""
LINEAR_POINTS = 128
"""Steps of a linear grid."""
NONE = -1
"""Stands for an end at which nothing is cut off."""


@dataclass(frozen=True)
class Ranges:
    """The candidate ranges of one number, all public: points of the grid, and for every candidate the place of its
    lower and of its upper end among them (`NONE` where that is a bound of the column).

    `nested` says that of any two candidates one lies in the other.
    """

    column: Numeric
    points: Floats
    lower: Integers
    upper: Integers
    nested: bool

    def block(self, start: int) -> Block:
        """The column as levels, one per point and one behind them: how rows are encoded to be counted.

        A value that is a point is counted at it: edges lie directly above the points.
        """
        edges = tuple(np.nextafter(self.points, np.inf).tolist())
        return Block(self.column, "levels", start, len(edges) + 1, (self.column.name,), edges)

    def ends(self, place: int) -> tuple[float, float]:
        """The ends of one candidate."""
        low, high = int(self.lower[place]), int(self.upper[place])
        return (
            self.column.low if low == NONE else float(self.points[low]),
            self.column.high if high == NONE else float(self.points[high]),
        )

    @cached_property
    def octaves(self) -> Floats:
        """The width of every candidate, as factors of two above the narrowest."""
        lows, highs = np.append(self.points, self.column.low), np.append(self.points, self.column.high)
        widths = np.log2(highs[self.upper] - lows[self.lower])  # NONE is the last place
        return np.asarray(widths - widths.min())

    def outside(self, counts: Integers) -> Integers:
        """How many rows each candidate cuts off: those at or below its lower end, and those above its upper end."""
        up_to = np.cumsum(counts)
        below = np.where(self.lower == NONE, 0, up_to[self.lower])
        above = np.where(self.upper == NONE, 0, up_to[-1] - up_to[self.upper])
        return np.asarray(below + above)

    def sensitivity(self, adjacency: Adjacency) -> int:
        """How far one row can change the difference between the numbers of rows outside of two candidates.

        Guarantee: docs/proofs/bounds.md, Lemma 2.
        """
        return 1 if self.nested or adjacency == "add-remove" else 2


def candidate_ranges(column: Numeric, grid: Grid = "auto", ends: Ends = "auto") -> Ranges:
    """The candidates for a column.

    With ends="far", which "auto" stands for: from 0 on, or from the bound that is nearer to 0. Of a number with both
    signs that is one bound on its size. ends="both" moves both ends by themselves.
    """
    for name, given, known in (("grid", grid, get_args(Grid)), ("ends", ends, get_args(Ends))):
        if given not in known:
            raise PrivacyError(f"{name}={given!r} was given; it is one of {known}. Use 'auto' if in doubt.")
    logarithmic = grid == "log" or (grid == "auto" and (ends != "both" or column.is_wide))
    if ends == "both":
        return _pairs(column, logarithmic)
    return _sizes(column, logarithmic) if column.low < 0.0 < column.high else _one_end(column, logarithmic)


def _steps(width: float, logarithmic: bool) -> Floats:
    """Distances up to a width, rising, each a float of its own."""
    if logarithmic:
        exact = width * np.exp2(np.arange(-OCTAVES * PER_OCTAVE, 1) / PER_OCTAVE)
        steps = np.array([float(f"{step:.{DIGITS}g}") for step in exact])
    else:
        steps = width * (np.arange(1, LINEAR_POINTS + 1) / LINEAR_POINTS)
    return np.asarray(steps)


def _one_end(column: Numeric, logarithmic: bool) -> Ranges:
    """The bound that is nearer to zero stays; the other moves towards it."""
    low, high = column.low, column.high
    steps = _steps(high - low, logarithmic)[:-1]
    if low >= 0.0:
        points = _rising(low + steps, column)
        upper = np.append(np.arange(len(points)), NONE)
        return Ranges(column, points, np.full(len(upper), NONE), upper, nested=True)
    points = _rising(high - steps, column)
    lower = np.append(NONE, np.arange(len(points)))
    return Ranges(column, points, lower, np.full(len(lower), NONE), nested=True)


def _sizes(column: Numeric, logarithmic: bool) -> Ranges:
    """A number with both signs is cut at -b and b."""
    low, high = column.low, column.high
    sizes = _steps(max(-low, high), logarithmic)[:-1]
    points = _rising(np.concatenate([-sizes, sizes]), column)
    return sized(column, points, np.unique(np.abs(points)))


def _pairs(column: Numeric, logarithmic: bool) -> Ranges:
    """Every range between two points, or between a point and a bound."""
    low, high = column.low, column.high
    if low < 0.0 < high:
        steps = _steps(max(-low, high), logarithmic)
        points = _rising(np.concatenate([-steps, steps]), column)
    else:
        steps = _steps(high - low, logarithmic)
        points = _rising(low + steps if low >= 0.0 else high - steps, column)
    first, last = np.triu_indices(len(points) + 2, 1)
    kept = (first <= len(points)) & (last >= 1)
    lower, upper = first[kept] - 1, last[kept] - 1
    upper = np.where(upper == len(points), NONE, upper)
    return Ranges(column, points, lower, upper, nested=False)


def sized(column: Numeric, points: Floats, sizes: Floats) -> Ranges:
    """Ranges of a number with both signs, from -b to b for rising sizes b: from the last point that is not above -b to
    the first that is not below b.

    Ends move outwards as b grows, so that the ranges are nested.
    """
    lower = np.searchsorted(points, -sizes, side="right") - 1  # NONE where there is no such point
    upper = np.searchsorted(points, sizes, side="left")
    upper = np.where(upper == len(points), NONE, upper)
    return Ranges(column, points, np.append(lower, NONE), np.append(upper, NONE), nested=True)


def _rising(points: Floats, column: Numeric) -> Floats:
    """The points strictly between a column's bounds, rising, each once."""
    inside = np.unique(points)
    return inside[(inside > column.low) & (inside < column.high)]


def tolerated(share: float, n_rows: int, noise: float) -> float:
    """How many rows a range may cut off at no loss of score: those that need not be held, and at least as many as four
    scales of the noise, but no more than half of all.

    Fewer than four would let a few values far out decide; `privfit bench bounds` measures it.
    """
    return min(max((1.0 - share) * n_rows, 4.0 * noise), n_rows / 2.0)


def octave_price(allowed: float, n_rows: int, span: float) -> float:
    """How many rows outside a range is worth, per factor of two that it is narrower."""
    return min(allowed / 2.0, n_rows / (4.0 * max(span, 1.0)))


def range_scores(candidates: Ranges, counts: Integers, allowed: float, price: float, unit: int) -> list[int]:
    """Integer scores, `unit` to a row: fewer rows outside and narrower ranges are better.

    Guarantee: one row changes differences of scores by at most `unit` times the candidates' sensitivity;
    docs/proofs/bounds.md, Lemma 3.
    """
    free = round(unit * allowed)
    widths = [round(unit * price * octave) for octave in candidates.octaves.tolist()]
    outside = candidates.outside(counts).tolist()
    return [-max(unit * held - free, 0) - width for held, width in zip(outside, widths, strict=True)]


def check_share(share: float) -> None:
    """Refuse a share of rows that means nothing."""
    number = not isinstance(share, bool) and isinstance(share, int | float | np.floating) and math.isfinite(share)
    if not number or not 0.5 <= share < 1.0:
        raise PrivacyError(
            f"share={share!r} was given; it is the share of rows that the bounds shall hold, at least 0.5 and below 1. "
            "Write share=0.99."
        )
