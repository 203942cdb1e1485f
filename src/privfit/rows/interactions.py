"""Rows as cells of pairs of columns: integer sums over the cells of a pair, and what tables of cells add to a
score.

A column's cells are the levels of a category; a number with knots has as many equal cells between its bounds as it has
knots. Numbers that enter as slopes have none. A number with knots can also be looked at by itself, in many fine cells:
it is written as a pair of the column with itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations, pairwise

import numpy as np
from numpy.typing import NDArray

from privfit.rows.layout import CODED, FINE_CELLS, Layout, Member
from privfit.schema import Geometry, Numeric, level_labels
from privfit.tables import Batch

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
FEW_CELLS = 1 << 24
"""Cells that are held in 64 bits, which are counted faster, and not in 16, which take a quarter of the memory."""
COUNTED, MOST_COUNTED = 1 << 34, 1 << 18
"""A row counts as COUNTED beside its response, so that one sum holds both: exact for fewer rows than MOST_COUNTED, with
responses of at most 2^14.
"""
COUNT_UNIT = 1 << 12
"""A row of the largest weight counts so much in a cell, and less by its weight."""
Pair = tuple[int, int]
"""Two columns, by their places among the schema's features; a column twice stands for a number by itself."""


def is_alone(pair: Pair) -> bool:
    """Whether this is a number by itself."""
    return pair[0] == pair[1]


@dataclass(frozen=True)
class Interactions:
    """Which pairs of columns there are, and the cells of each: the cell of the second column turns fastest.

    From public facts.
    """

    geometry: Geometry

    @cached_property
    def _sizes(self) -> dict[int, int]:
        """How many cells each column has that has cells."""
        blocks = enumerate(self.geometry.blocks)
        return {place: len(block.labels) for place, block in blocks if block.kind in CODED}

    def pairs(self, most_cells: int) -> list[Pair]:
        """All pairs of columns with at most so many cells."""
        return [pair for pair in combinations(self._sizes, 2) if self.n_cells(pair) <= most_cells]

    def alone(self) -> list[Pair]:
        """All numbers that can be looked at by themselves."""
        return [(place, place) for place, block in enumerate(self.geometry.blocks) if block.kind == "spline"]

    def n_cells(self, pair: Pair) -> int:
        """How many cells a pair has."""
        return FINE_CELLS if is_alone(pair) else self._sizes[pair[0]] * self._sizes[pair[1]]

    @cached_property
    def _members(self) -> dict[int, Member]:
        """The columns that have cells, by their places among all."""
        return dict(zip(self._sizes, Layout(self.geometry).members, strict=True))

    def names(self, pair: Pair) -> list[str]:
        """A name for each of its cells."""
        if is_alone(pair):
            member = self._members[pair[0]]
            labels = level_labels(member.block.column, member.fine_edges)
            return (
                list(labels) if len(set(labels)) == len(labels) else [f"{label} #{i}" for i, label in enumerate(labels)]
            )
        first, second = (self._members[column].cell_names for column in pair)
        return [f"{one} x {other}" for one in first for other in second]

    def axes(self, pair: Pair) -> tuple[list[str], list[str]]:
        """Short names of the cells along each of two columns."""
        first, second = (_short_names(self._members[column]) for column in pair)
        return first, second

    def fine_middles(self, pair: Pair) -> Floats:
        """The middles of the cells of a number by itself, in the units of the table."""
        column = self.geometry.blocks[pair[0]].column
        assert isinstance(column, Numeric)
        edges = np.array([column.low, *self._members[pair[0]].fine_edges, column.high])
        return np.asarray((edges[:-1] + edges[1:]) / 2)

    def numbers(self, pair: Pair, batch: Batch) -> Integers:
        """The number of each row's cell, from the columns of a table."""
        if is_alone(pair):
            return np.asarray(self._members[pair[0]].fine_cells(batch[pair[0]]), dtype=np.int64)
        first, second = (self._members[column].cells(self._members[column].codes(batch[column])) for column in pair)
        return self.joined(pair, first, second)

    def joined(self, pair: Pair, first: Integers, second: NDArray[np.integer]) -> Integers:
        """The numbers of a pair's cells, from those of its two columns."""
        return np.asarray(first * self._sizes[pair[1]] + second, dtype=np.int64)


def _short_names(member: Member) -> list[str]:
    """The names of a column's cells without that of the column; ends of a number with three digits."""
    column = member.block.column
    names = [name[len(column.name) + 1 :] for name in member.cell_names]
    if not (member.has_knots and isinstance(column, Numeric)):
        return names
    ends = [f"{low:.3g} to {high:.3g}" for low, high in pairwise((column.low, *member.cell_edges, column.high))]
    return [*ends, *names[len(ends) :]]


class InteractionCells:
    """Some of the rows of a table, as cells, each with a integer score.

    Hands out integer sums over the cells of pairs; never a row.

    Guarantee: a row's cells and score depend on that row and on released numbers alone, to the bit;
    docs/proofs/pairs.md, Lemma 1.
    """

    def __init__(
        self,
        layout: Layout,
        cells: NDArray[np.uint16],
        scores: Integers,
        sides: NDArray[np.bool_],
        fine: NDArray[np.uint16] | None = None,
        weights: Floats | None = None,
    ) -> None:
        self._interactions = Interactions(layout.geometry)
        coded = [place for place, block in enumerate(layout.geometry.blocks) if block.kind in CODED]
        held: NDArray[np.integer] = cells.astype(np.int64) if cells.size <= FEW_CELLS else cells  # quicker to count by
        self._cells = dict(zip(coded, held, strict=True))
        self._fine = {} if fine is None else dict(zip([coded[place] for place in layout.splines], fine.T, strict=True))
        self._scores, self._sides, self._weights = scores, sides.astype(np.int64), weights

    def add(self, pair: Pair, table: Integers) -> None:
        """Let every row's score grow by what its cell has in a table."""
        self._scores = self._scores + table[self._numbers(pair)]

    def sum_of_scores(self, most: int) -> int:
        """The sum over rows of their scores, each cut at `most` in size; of a row with a weight, the whole part of
        weight times that.
        """
        steps = np.clip(self._scores, -most, most)
        return int((steps if self._weights is None else np.trunc(steps * self._weights).astype(np.int64)).sum())

    def sums(self, pairs: Sequence[Pair], responses: Integers, shift: int) -> list[Integers]:
        """For every pair, the sum over the rows of each of its cells of a response: integers, exact below 2^53.

        Of a row with a weight, the whole part of weight times response: no larger than the response.

        `responses` has a line for either class, the first for rows on the negative side, or one line where the target
        is a number, and a column for each step of
        2^shift of the score, the middle one for those from 0 on.
        """
        steps = np.clip((self._scores >> shift) + responses.shape[1] // 2, 0, responses.shape[1] - 1)
        values = responses[self._sides, steps].astype(np.float64)
        if self._weights is not None:
            values = np.trunc(values * self._weights)
        found = [
            np.bincount(self._numbers(pair), weights=values, minlength=self._interactions.n_cells(pair))
            for pair in pairs
        ]
        return [np.rint(sums).astype(np.int64) for sums in found]

    def sums_and_counts(
        self, pairs: Sequence[Pair], responses: Integers, shift: int
    ) -> list[tuple[Integers, Integers]]:
        """The same, and how many rows each cell has: of rows with weights, the whole part of how much they count."""
        both, unit = self.sums_and_parts(pairs, responses, shift), 1 if self._weights is None else COUNT_UNIT
        return [(sums, parts // unit) for sums, parts in both]

    def sums_and_parts(self, pairs: Sequence[Pair], responses: Integers, shift: int) -> list[tuple[Integers, Integers]]:
        """The same, with rows of the largest weight counted COUNT_UNIT times where rows have weights: counted together
        with responses where that is exact, because it takes half the time. Responses are at most 2^14.
        """
        if self._weights is not None:
            parts = self.sums(pairs, np.full_like(responses, COUNT_UNIT), shift)
            return list(zip(self.sums(pairs, responses, shift), parts, strict=True))
        if len(self._scores) >= MOST_COUNTED:
            counts_alone = self.sums(pairs, np.ones_like(responses), shift)
            return list(zip(self.sums(pairs, responses, shift), counts_alone, strict=True))
        found = []
        for both in self.sums(pairs, responses + COUNTED, shift):
            counts = (both + COUNTED // 2) // COUNTED
            found.append((both - counts * COUNTED, counts))
        return found

    def _numbers(self, pair: Pair) -> Integers:
        if is_alone(pair):
            return np.asarray(self._fine[pair[0]], dtype=np.int64)
        first, second = (self._cells[column] for column in pair)
        return self._interactions.joined(pair, first.astype(np.int64, copy=False), second)
