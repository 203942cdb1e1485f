"""What sample and aggregate decides before a row is read, and how answers are put together."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from privfit.mechanisms.base import ReleasePlan
from privfit.privacy import Draws, PrivacyError
from privfit.privacy.guarded import attempted, real_numbers
from privfit.privacy.samplers.norms import Source
from privfit.rows.partition import BlockFunction, GridColumn
from privfit.schema import Geometry, Numeric

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Ranges = Literal["given", "percentiles", "inputs"]
Bounds = tuple[Floats, Floats]
Translate = Callable[[Floats, Floats], Any]
"""From the lower and upper ends of the input columns, as bought, to those of the answers."""

PERCENTILE_GRID = 256
"""Percentiles are chosen among so many evenly spaced points of the range, and its lower end.

Every lattice has a multiple of it.
"""
ASSIGNED_AT_ONCE = 1 << 20
"""Rows that are assigned to blocks at once: a few megabytes of random bits."""
SORTED_BY = 1 << 40
"""Rows are put in a random order by numbers below this; ties go by position, which depends on no row either."""


@dataclass(frozen=True)
class BlockAnswers:
    """What is aggregated: a function of the rows of a block, and the public range of every number that it returns.

    `of_user` is whether the function is the user's own: it is tried on made-up rows first, and not run in threads.
    """

    function: BlockFunction
    low: Floats
    high: Floats
    of_user: bool = True


@dataclass(frozen=True)
class BlockFit:
    """The noisy means of answers, and lines for the report."""

    values: Floats
    notes: tuple[str, ...]


# -- what is planned from public facts -------------------------------------------------------------


@dataclass(frozen=True)
class BlockPlan(ReleasePlan):
    """All that is decided before a row is read, and its price.

    Guarantee: dealing rows into `blocks` blocks, `copies` times each, and `combined` with the answers, keep the promise
    of `event`; docs/proofs/aggregate.md, Theorem 1.
    """

    answers: BlockAnswers
    blocks: int
    copies: int
    moved: int
    """How many answers one person can change."""
    unit: int
    """Lattice steps to the whole range of an answer."""
    ranges: Ranges = "given"
    equal: bool = False
    """Whether blocks have the same number of rows, but for one."""
    cut: bool = True
    """Whether noisy means are cut at their ranges."""

    def places(self, rows: int, source: Source) -> Integers:
        """The blocks of every row, one line each: `copies` different ones, all such sets as likely, whatever the other
        rows got.
        """
        if self.equal:
            return self._equal_places(rows, source)
        limits = np.arange(self.blocks, self.blocks - self.copies, -1, dtype=np.int64)
        sizes = [min(ASSIGNED_AT_ONCE, rows - first) for first in range(0, max(rows, 1), ASSIGNED_AT_ONCE)]
        drawn = np.concatenate([source.below(np.tile(limits, size)) for size in sizes]).reshape(rows, self.copies)
        for place in range(1, self.copies):
            for taken in np.sort(drawn[:, :place], axis=1).T:  # skip those that the row has
                drawn[:, place] += drawn[:, place] >= taken
        return drawn

    def _equal_places(self, rows: int, source: Source) -> Integers:
        """The block of every row: the table in a random order, cut in parts of equal length."""
        order = np.argsort(source.below(np.full(rows, SORTED_BY, dtype=np.int64)), kind="stable")
        places = np.empty(rows, dtype=np.int64)
        places[order] = np.arange(rows) % self.blocks
        return places[:, None]

    def bought_ranges(self, counts: Integers, translate: Translate, columns: InputColumns, draws: Draws) -> Bounds:
        """The ranges of answers that a user's function makes of quartiles of the inputs, chosen privately.

        It sees these quartiles alone. What it cannot say, and what is beyond the bounds given, is as given.
        """
        menus = [menu for own in counts for menu in scores_of_counts(own, int(own.sum()))]
        first, width = _between(np.array(draws.select_each(menus)).reshape(-1, 2))
        return translated(
            translate, *columns.within(first / PERCENTILE_GRID, (first + width) / PERCENTILE_GRID), self.answers
        )

    def combined(self, found: Floats, draws: Draws, bounds: Bounds | None = None) -> Floats:
        """The noisy means of what blocks have found, cut at their ranges (those given, or `bounds`). Blocks without an
        answer (NaN) count with the middle.
        """
        low, high = (self.answers.low, self.answers.high) if bounds is None else bounds
        steps = self._on_lattice(found, low, high)
        first, width = np.zeros(len(low)), np.full(len(low), float(PERCENTILE_GRID))
        if self.ranges == "percentiles":
            first, width = self._quartiles(steps, draws)
            steps = self._cut(steps, first, width)
        means = draws.add(steps.sum(axis=0)) / (self.blocks * self.unit)
        share = (first + width * (np.clip(means, 0.0, 1.0) if self.cut else means)) / PERCENTILE_GRID
        estimate = low * (1 - share) + high * share
        return np.clip(estimate, low, high) if self.cut else np.asarray(estimate, dtype=np.float64)

    def _on_lattice(self, answers: Floats, low: Floats, high: Floats) -> Integers:
        """Answers as integers from 0, at the lower end of their range, to `unit`."""
        with np.errstate(all="ignore"):
            share = np.clip((answers - low) / (high - low), 0.0, 1.0)
        return np.asarray(np.rint(np.where(np.isnan(share), 0.5, share) * self.unit), dtype=np.int64)

    def _quartiles(self, steps: Integers, draws: Draws) -> tuple[Floats, Floats]:
        """For every answer the lower end and the width of what lies between its quartiles, chosen privately, in grid
        points. Widths are at least one.
        """
        near = (2 * PERCENTILE_GRID * steps + self.unit) // (2 * self.unit)
        menus = [menu for column in near.T for menu in quartile_scores(column, self.blocks)]
        return _between(np.array(draws.select_each(menus)).reshape(-1, 2))

    def _cut(self, steps: Integers, first: Floats, width: Floats) -> Integers:
        """Answers cut at the ranges that were chosen, each stretched to all of the lattice."""
        point = self.unit // PERCENTILE_GRID
        inside = np.clip(steps - first * point, 0.0, width * point)
        return np.rint(inside * PERCENTILE_GRID / width).astype(np.int64)


def quartile_sensitivity(moved: int, size: int) -> int:
    """The most by which a person who changes so many answers (or rows) of this size can change the difference of two
    scores, added up over all menus of percentiles, in quarters of a block (or a row).

    Guarantee: docs/proofs/aggregate.md, Lemma 3.
    """
    return 8 * moved * 2 * size


def quartile_scores(near: Integers, blocks: int) -> tuple[list[int], list[int]]:
    """How well each grid point serves as the first and as the third quartile: minus the answers, in quarters, by which
    it misses.

    Guarantee: docs/proofs/aggregate.md, Lemma 3.
    """
    return scores_of_counts(np.bincount(near, minlength=PERCENTILE_GRID + 1), blocks)


def scores_of_counts(counts: Integers, total: int) -> tuple[list[int], list[int]]:
    """The same from the number of answers, or of rows, at every grid point."""
    up_to = 4 * np.cumsum(counts)
    below = up_to - 4 * counts

    def scores(wanted: int) -> list[int]:
        return (-np.maximum(0, np.maximum(below - wanted, wanted - up_to))).tolist()  # type: ignore[no-any-return]

    return scores(total), scores(3 * total)


def _between(chosen: Integers) -> Bounds:
    """The lower ends and the widths between two grid points each; widths are at least one."""
    lower = np.minimum(chosen.min(axis=1), PERCENTILE_GRID - 1)
    return lower.astype(np.float64), np.maximum(chosen.max(axis=1) - lower, 1).astype(np.float64)


# -- ranges of answers from ranges of inputs -------------------------------------------------------


@dataclass(frozen=True)
class InputColumns:
    """The columns that a function sees, with their public bounds; percentiles are bought for numbers."""

    low: Floats
    high: Floats
    numbers: tuple[int, ...]

    @classmethod
    def of(cls, geometry: Geometry) -> InputColumns:
        """Those of plain rows: numbers in their units, categories by the places of their levels, the target last."""
        blocks = geometry.blocks if geometry.target is None else (*geometry.blocks, geometry.target)
        bounds, numbers = [], []
        for place, block in enumerate(blocks):
            column = block.column
            if isinstance(column, Numeric) and block.kind == "slope":
                numbers.append(place)
                bounds.append((column.low, column.high))
            else:
                bounds.append((0.0, len(block.labels) - 1.0))
        low, high = np.array(bounds).T
        return cls(low, high, tuple(numbers))

    @property
    def grids(self) -> list[GridColumn]:
        """The grid that percentiles of each number are chosen on."""
        return [
            GridColumn(place, float(self.low[place]), float(self.high[place]), PERCENTILE_GRID)
            for place in self.numbers
        ]

    def within(self, first: Floats, last: Floats) -> Bounds:
        """The bounds of all columns, with those of numbers at these shares of them."""
        low, high, own = self.low.copy(), self.high.copy(), list(self.numbers)
        low[own] = self.low[own] * (1 - first) + self.high[own] * first
        high[own] = self.low[own] * (1 - last) + self.high[own] * last
        return low, high


def translated(translate: Translate, low: Floats, high: Floats, answers: BlockAnswers) -> Bounds:
    """The ranges of answers for these ranges of inputs; as given, where the function has none that make sense."""
    found = attempted(lambda: _said(translate, low, high, len(answers.low)))
    if found is None:
        return answers.low, answers.high
    with np.errstate(all="ignore"):
        lower, upper = np.maximum(found[0], answers.low), np.minimum(found[1], answers.high)
        sound = lower < upper  # False for NaN
    return np.where(sound, lower, answers.low), np.where(sound, upper, answers.high)


def check_translation(translate: Translate, columns: InputColumns, answers: BlockAnswers) -> None:
    """Refuse a function that fails on the public bounds, before anything is charged."""
    try:
        _said(translate, columns.low.copy(), columns.high.copy(), len(answers.low))
    except Exception as error:
        raise PrivacyError(
            f"translate failed on the bounds of the schema, with {type(error).__name__}: {error}. It takes the lower "
            "and the upper ends of the columns and returns those of the answers, one each. Correct it. Nothing was "
            "charged."
        ) from error


def _said(translate: Translate, low: Floats, high: Floats, size: int) -> Floats:
    lower, upper = translate(low, high)
    return np.stack([np.broadcast_to(real_numbers(end).ravel(), (size,)) for end in (lower, upper)])
