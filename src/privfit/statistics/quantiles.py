"""Quantiles and means of a number that is counted on a fine public grid.

A fine grid has points between a column's bounds, as in ranges.py, many to a factor of two where the range is wide and
in equal steps where it is not. All that is asked of a column is a function of its counts at these points.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from privfit.privacy import Adjacency, PrivacyError
from privfit.schema import Block, Numeric
from privfit.statistics.ranges import NONE, PER_OCTAVE, Ranges, sized

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

OCTAVES = 20
"""Factors of two that a fine grid spans: a million. What is nearer to zero counts as zero."""
LEAST_PER_OCTAVE, MOST_PER_OCTAVE = 64, 4096
"""Points of a fine grid per factor of two: 1% to 0.02% apart. More points than noise can resolve cost time only."""
LEAST_POINTS, MOST_POINTS = 1 << 10, 1 << 16
"""Points of a fine grid in equal steps."""
MOST_DENOMINATOR = 1000
"""Quantiles are rounded to fractions with such denominators, so that scores are integers."""
SCORE_STEPS = 1 << 10
"""Steps of scores: scales of selections are rounded up to integers, which are drawn faster."""
STEP = 1 << 20
"""The integer that stands for the width of the range that values are clipped to, in sums."""


@dataclass(frozen=True)
class FineGrid:
    """The points of one column, all public; `per_octave` is 0 for equal steps."""

    column: Numeric
    points: Floats
    per_octave: int

    def block(self, start: int) -> Block:
        """The column as levels, one per point and one behind them."""
        edges = tuple(np.nextafter(self.points, np.inf).tolist())
        return Block(self.column, "levels", start, len(edges) + 1, (self.column.name,), edges)

    @cached_property
    def values(self) -> Floats:
        """What a row counts as that is counted at each level: the middle between a point and the one before."""
        ends = np.concatenate([[self.column.low], self.points, [self.column.high]])
        return np.asarray(ends[:-1] / 2 + ends[1:] / 2)

    @cached_property
    def upper_ends(self) -> Floats:
        """The upper end of each level: the candidates for a quantile."""
        return np.append(self.points, self.column.high)

    def at(self, places: Floats) -> Floats:
        """The values at places between levels; those beyond the first and last are the bounds."""
        levels = np.arange(-1, len(self.upper_ends))
        return np.asarray(np.interp(places, levels, np.concatenate([[self.column.low], self.upper_ends])))

    @property
    def octave(self) -> int:
        """How many levels are a factor of two; for equal steps, an eighth of the range."""
        return self.per_octave or max(len(self.points) // 8, 1)

    def ranges(self) -> Ranges:
        """Nested ranges that end at some of the points: four to a factor of two, or 128 in all."""
        points, column = self.points, self.column
        every = max(self.per_octave // PER_OCTAVE if self.per_octave else len(points) // 128, 1)
        places = np.arange(len(points) - 1, -1, -every)[::-1]
        if column.low >= 0.0:
            upper = np.append(places, NONE)
            return Ranges(column, points, np.full(len(upper), NONE), upper, nested=True)
        if column.high <= 0.0:
            lower = np.append(np.arange(0, len(points), every)[::-1], NONE)
            return Ranges(column, points, lower, np.full(len(lower), NONE), nested=True)
        sizes = np.unique(np.abs(points[points != 0.0]))[::-1]
        return sized(column, points, sizes[::every][::-1])


def fine_grid(column: Numeric, resolution: float) -> FineGrid:
    """The fine grid of a column: as many points per factor of two as `resolution` says, or four times as many equal
    steps, within limits. The number of steps is a multiple of the width of the range where that is an integer, so
    that integers are points.
    """
    low, high = column.low, column.high
    if not column.is_wide:
        steps = min(max(math.ceil(4 * resolution), LEAST_POINTS), MOST_POINTS)
        width = high - low
        if width == round(width) >= 1:
            steps = math.ceil(steps / round(width)) * round(width)
        points = low + np.arange(1, steps) * width / steps
        return FineGrid(column, _inside(points, column), 0)
    per_octave = min(max(1 << math.ceil(math.log2(max(resolution, 1.0))), LEAST_PER_OCTAVE), MOST_PER_OCTAVE)
    shares = np.exp2(np.arange(-OCTAVES * per_octave, 0) / per_octave)
    if low < 0.0 < high:
        sizes = max(-low, high) * np.append(shares, 1.0)
        points = np.concatenate([-sizes, sizes])
    else:
        points = low + (high - low) * shares if low >= 0.0 else high - (high - low) * shares
    return FineGrid(column, _inside(points, column), per_octave)


def _inside(points: Floats, column: Numeric) -> Floats:
    own = np.unique(points)
    return own[(own > column.low) & (own < column.high)]


# -- quantiles -------------------------------------------------------------------------------------


def checked_quantile(quantile: object) -> Fraction:
    """The quantile as a fraction, if it is one."""
    if not isinstance(quantile, float | np.floating) or not 0.0 < quantile < 1.0:
        raise PrivacyError(f"quantile={quantile!r} was given; it is above 0 and below 1. Write 0.5 for the median.")
    fraction = Fraction(repr(float(quantile))).limit_denominator(MOST_DENOMINATOR)
    return min(max(fraction, Fraction(1, MOST_DENOMINATOR)), 1 - Fraction(1, MOST_DENOMINATOR))


def quantile_sensitivity(quantile: Fraction, adjacency: Adjacency) -> int:
    """How far one row can change the difference of two scores, in the steps of `quantile_scores`.

    Guarantee: docs/proofs/description.md, Lemma 1.
    """
    part, whole = quantile.numerator, quantile.denominator
    return SCORE_STEPS * (2 * whole if adjacency == "replace-one" else 2 * max(part, whole - part))


def quantile_scores(counts: Integers, quantile: Fraction) -> list[int]:
    """For every level minus the distance of the wanted rank from the ranks of its rows, in steps of one over
    SCORE_STEPS times the quantile's denominator.

    A level that holds the wanted rank has score 0, however many rows it has.

    Guarantee: one row changes differences of scores by at most `quantile_sensitivity`; docs/proofs/description.md,
    Lemma 1.
    """
    up_to = np.cumsum(counts).tolist()
    part, whole = SCORE_STEPS * quantile.numerator, SCORE_STEPS * quantile.denominator
    wanted, last = part * up_to[-1], [whole * rank for rank in up_to]
    return [-max(wanted - high, low - wanted, 0) for low, high in zip([0, *last[:-1]], last, strict=True)]


def window_counts(counts: Integers, place: int, widths: list[int]) -> Integers:
    """How many rows lie up to so many levels from a level, for every width.

    Guarantee: one row changes each by at most one, and all in one direction; docs/proofs/description.md, Lemma 2.
    """
    up_to = np.concatenate([[0], np.cumsum(counts)])
    last = len(counts)
    return np.array([up_to[min(place + width + 1, last)] - up_to[max(place - width, 0)] for width in widths])


# -- means -----------------------------------------------------------------------------------------


def clipped_values(grid: FineGrid, low: float, high: float) -> Integers:
    """What a row of each level adds to a sum: its value, clipped, from 0 at `low` to STEP at `high`."""
    shares = (np.clip(grid.values, low, high) - low) / (high - low)
    return np.rint(STEP * np.clip(shares, 0.0, 1.0)).astype(np.int64)
