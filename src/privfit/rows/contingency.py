"""Rows counted in the cells of a contingency table: numbers in the cells between public edges, categories by level.

Cells are numbered by integers of any size, and only those that hold a row are kept: a table may have 10^12 cells,
or 10^30.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import cached_property, partial
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privfit.rows.encoding import level_codes
from privfit.rows.rows import BATCH_ROWS, Rows
from privfit.schema import Block, Category, Geometry, Schema, make_block
from privfit.tables import Batch, numbered_pieces

Integers = NDArray[np.int64]

_MOST_DIGIT = 1 << 62
"""Numbers of cells are split into digits below this, so that 64 bits hold each."""


def cell_geometry(schema: Schema, cells: int) -> Geometry:
    """The cells of every column, the target last: `cells` equal ones between the bounds of a number without bins of its
    own, one per level of a category.
    """
    blocks: list[Block] = []
    for column in schema.columns:
        blocks.append(make_block(column, blocks[-1].stop if blocks else 0, bins=cells, whole=True))
    return Geometry(tuple(blocks), False) if schema.target is None else Geometry(tuple(blocks[:-1]), False, blocks[-1])


class CellGrid:
    """The cells of a geometry and their numbers, from 0 on: the cell of the last column turns fastest.

    Public facts only.
    """

    def __init__(self, geometry: Geometry) -> None:
        self.blocks = geometry.blocks if geometry.target is None else (*geometry.blocks, geometry.target)

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        """How many cells there are along every column."""
        return tuple(len(block.labels) for block in self.blocks)

    @property
    def n_cells(self) -> int:
        """How many cells there are."""
        return math.prod(self.sizes)

    @cached_property
    def digits(self) -> tuple[slice, ...]:
        """Neighbouring columns whose cells together can be numbered by 64 bits."""
        stops, held = [0], 1
        for place, size in enumerate(self.sizes):
            if held * size > _MOST_DIGIT:
                stops.append(place)
                held = 1
            held *= size
        return tuple(slice(start, stop) for start, stop in pairwise([*stops, len(self.sizes)]))

    def places(self, cells: Sequence[int]) -> list[Integers]:
        """Where numbered cells lie along every column."""
        found: list[Integers] = []
        left = np.array(cells, dtype=object if self.n_cells > _MOST_DIGIT else np.int64)
        for digit in reversed(self.digits):  # integers of any size only where they are needed
            base = math.prod(self.sizes[digit])
            rest = np.asarray(left % base).astype(np.int64)
            left = left // base
            for size in reversed(self.sizes[digit]):
                found.append(rest % size)
                rest = rest // size
        return found[::-1]

    def columns(self, cells: Sequence[int]) -> dict[str, NDArray[Any]]:
        """Numbered cells as a table: the middle of a number's cell, the level of a category, not a number for values
        that are missing.
        """
        places = self.places(cells)
        return {block.column.name: centres(block)[place] for block, place in zip(self.blocks, places, strict=True)}


def centres(block: Block) -> NDArray[Any]:
    """What stands for each cell of a column."""
    column = block.column
    if isinstance(column, Category):
        texts = any(isinstance(level, str) for level in column.levels)
        return np.array(column.levels, dtype=object) if texts else np.array(column.levels)
    middles = [low / 2 + high / 2 for low, high in pairwise((column.low, *block.edges, column.high))]
    return np.array([*middles, *[np.nan] * (len(block.labels) - len(middles))])


def count_cells(rows: Rows) -> dict[int, int]:
    """How many rows each cell has, by the number of the cell, rising; cells without rows are left out.

    The geometry's blocks are the last columns of the table: all of them, or its target alone. Every error that the
    table holds is met here.

    Guarantee: every row is in exactly one cell, which is a function of that row and of public numbers;
    docs/proofs/histograms.md, Lemma 1.
    """
    grid = CellGrid(rows.geometry)
    if rows.on_workers:
        counts = rows.run(partial(_partition_counts, grid), _joined) or {}
    else:
        counts = _batch_counts(grid, (batch for _, batch in rows.pieces(BATCH_ROWS)))
    return dict(sorted(counts.items()))


def _partition_counts(grid: CellGrid, _: int, batches: Iterator[Batch]) -> dict[int, int] | None:
    return _batch_counts(grid, (piece for _, piece in numbered_pieces(batches, BATCH_ROWS))) or None


def _batch_counts(grid: CellGrid, batches: Iterator[Batch]) -> dict[int, int]:
    counts: dict[int, int] = {}
    for batch in batches:
        counts = _joined(counts, dict(_counted(grid, batch[-len(grid.blocks) :])))
    return counts


def _joined(counts: dict[int, int], more: dict[int, int]) -> dict[int, int]:
    """The counts of both, written over the first."""
    for cell, count in more.items():
        counts[cell] = counts.get(cell, 0) + count
    return counts


def _counted(grid: CellGrid, batch: Batch) -> list[tuple[int, int]]:
    """The cells of a batch and how many of its rows each has."""
    digits = []
    for digit in grid.digits:
        number = np.zeros(len(batch[0]), dtype=np.int64)
        for block, values, size in zip(grid.blocks[digit], batch[digit], grid.sizes[digit], strict=True):
            number = number * size + level_codes(block, values)
        digits.append(number)
    if len(digits) == 1:
        found, held = np.unique(digits[0], return_counts=True)
        return list(zip(found.tolist(), held.tolist(), strict=True))
    several, held = np.unique(np.column_stack(digits), axis=0, return_counts=True)
    whole = several[:, 0].astype(object)
    for place, digit in enumerate(grid.digits[1:], start=1):
        whole = whole * math.prod(grid.sizes[digit]) + several[:, place].astype(object)
    return list(zip(whole.tolist(), held.tolist(), strict=True))
