"""Cells of rows that workers of a cluster keep: made there anew in every pass, from what is kept and released."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from privfit.rows.fixed_point import Predictors
from privfit.rows.interactions import COUNT_UNIT, InteractionCells, Pair
from privfit.rows.layout import Layout
from privfit.rows.workers import Chunk, Sums

if TYPE_CHECKING:
    from privfit.rows.cached_design import CachedDesign

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


@dataclass(frozen=True)
class Residuals:
    """What predictors are compared with where the target is a number: (target - centre) / width, in `most` steps to 1.

    A row's depends on that row alone: it is rounded to a whole step.
    """

    centre: float
    width: float
    most: int

    def steps(self, target: Floats) -> Floats:
        """The targets of rows, in whole steps."""
        return np.asarray(np.rint((target - self.centre) / self.width * self.most), dtype=np.float64)


@dataclass(frozen=True)
class ChunkCells:
    """From a chunk to the cells of its rows, with the predictors of released weights; or, where the target is a number,
    with what predictors exceed it by, and all rows on one side.
    """

    layout: Layout
    predictors: Predictors
    fine: bool
    residuals: Residuals | None = None

    def arrays(
        self, chunk: Chunk
    ) -> tuple[NDArray[np.uint16], Integers, NDArray[np.bool_], NDArray[np.uint16] | None, Floats | None]:
        """Cells, scores, sides, fine cells and weights of the rows."""
        scores, sides = np.floor(self.predictors(chunk)[:, 0]), chunk.target > 0
        if self.residuals is not None:
            scores, sides = scores - self.residuals.steps(chunk.target), np.zeros_like(sides)
        fine = np.concatenate(chunk.fine) if self.fine else None
        return self.layout.cells(chunk), scores.astype(np.int64), sides, fine, chunk.weights

    def __call__(self, chunk: Chunk, added: Sequence[tuple[Pair, Integers]]) -> InteractionCells:
        cells = InteractionCells(self.layout, *self.arrays(chunk))
        for pair, table in added:
            cells.add(pair, table)
        return cells


class WorkerCells(InteractionCells):
    """As InteractionCells, of rows that are on workers. What was added to scores is sent to them."""

    def __init__(self, design: CachedDesign, cells: ChunkCells) -> None:
        self._design, self._of_chunk = design, cells
        self._added: list[tuple[Pair, Integers]] = []

    def add(self, pair: Pair, table: Integers) -> None:
        self._added.append((pair, table))

    def sums(self, pairs: Sequence[Pair], responses: Integers, shift: int) -> list[Integers]:
        task = partial(_sums, self._of_chunk, self._added, pairs, responses, shift)
        return self._design.total(task)

    def sums_and_counts(
        self, pairs: Sequence[Pair], responses: Integers, shift: int
    ) -> list[tuple[Integers, Integers]]:
        task = partial(_sums_and_counts, self._of_chunk, self._added, pairs, responses, shift)
        found = self._design.total(task)
        unit = COUNT_UNIT if self._design.weighted else 1
        return [(sums, counts // unit) for sums, counts in zip(found[::2], found[1::2], strict=True)]


Added = Sequence[tuple[Pair, Integers]]


def _sums(
    of_chunk: ChunkCells, added: Added, pairs: Sequence[Pair], responses: Integers, shift: int, _: int, chunk: Chunk
) -> Sums:
    return list(of_chunk(chunk, added).sums(pairs, responses, shift))


def _sums_and_counts(
    of_chunk: ChunkCells, added: Added, pairs: Sequence[Pair], responses: Integers, shift: int, _: int, chunk: Chunk
) -> Sums:
    both = of_chunk(chunk, added).sums_and_parts(pairs, responses, shift)
    return [sums for pair in both for sums in pair]
