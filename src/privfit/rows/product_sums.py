"""Sums of the products of all encoded columns, with levels looked up: the same integers as by one product of matrices.

A row's levels together are one cell. Rows are counted by cell, and what is no level is summed by cell; each of the
products in which a level stands is a sum of those. What is no level is multiplied as before. With ten numbers and four
categories a row takes two thirds of the time, its encoding included (`privfit bench engines -s Parquet -m linear`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, hstack

from privfit.rows.encoding import Encoder, level_codes
from privfit.rows.errors import too_many_rows
from privfit.rows.kernels import Kernel
from privfit.rows.workers import Sums
from privfit.schema import Block
from privfit.tables import Batch

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
LEVELS = ("levels", "sign", "indicators")
"""Kinds of blocks that are looked up."""
ROWS_PER_CELL = 4
"""Rows of a piece for every cell, at least: sums by cell are handled once a piece. No command varies it."""
PRODUCTS_PER_LINE = 25
"""Products of two columns in the time in which a column is summed by cell: 1.2 ns against 1 ns for 20 products."""

ALIGNED = 4
"""Lines are multiplied in a multiple of so many, some of zeros: 12 take three quarters of the time of 11."""


@runtime_checkable
class ProductKernel(Kernel, Protocol):
    """A kernel that sums all products of two encoded columns; the square of the target on a lattice of its own."""

    def coarse_target(self, target: Floats) -> Floats:
        """The target on the lattice on which it is squared."""
        ...


@dataclass(frozen=True)
class LookedUp:
    """A block of levels, and how far apart these are among the cells."""

    block: Block
    stride: int

    @property
    def levels(self) -> int:
        """How many levels there are."""
        return len(self.block.labels)


@dataclass(frozen=True)
class ProductSum:
    """What is made of a piece: products of columns without levels, these columns' sums by cell, rows by cell, and the
    target's square.
    """

    encoder: Encoder
    kernel: ProductKernel
    looked_up: tuple[LookedUp, ...]
    most: int
    """Rows that 64-bit sums can hold."""

    @classmethod
    def of(cls, encoder: Encoder, kernel: Kernel, rows: int, most: int) -> ProductSum | None:
        """For pieces of so many rows; None where one product of matrices is faster, or rows have weights."""
        if encoder.weights is not None or not isinstance(kernel, ProductKernel):
            return None
        made = cls(encoder, kernel, _looked_up(encoder.blocks, rows // ROWS_PER_CELL), most)
        lines = len(made.lines)
        return made if encoder.height**2 - lines**2 > PRODUCTS_PER_LINE * (lines + 1) else None

    def __call__(self, piece: tuple[int, Batch]) -> Sums:
        first, batch = piece
        rows = len(batch[0])
        if first + rows > self.most:
            raise too_many_rows(self.most)
        height = len(self.lines)
        padded, cells = np.empty((-(-height // ALIGNED) * ALIGNED, rows)), np.zeros(rows, dtype=np.intp)
        padded[height:] = 0.0
        lines = padded[:height]
        strides, end = {one.block.start: one.stride for one in self.looked_up}, 0
        for run in self.encoder.runs:
            if (stride := strides.get(run[0].start)) is not None:
                codes = level_codes(run[0], self.encoder.values(run[0], batch))
                cells += codes if stride == 1 else codes * stride
            else:
                start, end = end, end + run[-1].stop - run[0].start
                self.encoder.encode_run(run, batch, lines[start:end])
        by_cell = np.empty((len(lines), self.cells))
        for line, out in zip(lines, by_cell, strict=True):
            out[:] = np.bincount(cells, line, self.cells)
        target = self.kernel.coarse_target(lines[-1]) if self._has_target_line else np.zeros(0)
        products = (padded @ padded.T)[:height, :height]
        floats = (products, by_cell, np.bincount(cells, minlength=self.cells), target @ target)
        return [np.asarray(found).astype(np.int64) for found in floats]

    def assembled(self, sums: Sums) -> Integers:
        """The products of all columns."""
        products, by_cell, counts, square = sums
        table = self._table
        total = np.empty((self.encoder.height, self.encoder.height), dtype=np.int64)
        total[np.ix_(self.lines, self.lines)] = products
        mixed = (table.T @ by_cell.T).astype(np.int64)
        total[np.ix_(self.others, self.lines)], total[np.ix_(self.lines, self.others)] = mixed, mixed.T
        counted = table.copy()
        counted.data *= np.repeat(counts, np.diff(table.indptr))
        total[np.ix_(self.others, self.others)] = (table.T @ counted).toarray()
        if self.encoder.geometry.target is not None:
            coarse = np.zeros(self.cells)
            if not self._has_target_line:
                coarse = self.kernel.coarse_target(table[:, [-1]].toarray()[:, 0].astype(np.float64))
            total[-1, -1] = square + counts @ (coarse * coarse).astype(np.int64)
        return total

    @cached_property
    def cells(self) -> int:
        """How many cells there are."""
        return int(np.prod([one.levels for one in self.looked_up], dtype=np.int64))

    @cached_property
    def others(self) -> NDArray[np.intp]:
        """Which encoded columns a cell knows: the constant, and those of levels."""
        own = [np.arange(one.block.start, one.block.stop) for one in self.looked_up]
        constant = np.arange(int(self.encoder.geometry.intercept))
        return np.concatenate([constant, *own]).astype(np.intp)

    @cached_property
    def lines(self) -> NDArray[np.intp]:
        """All other columns, the target among them where it is no level."""
        return np.setdiff1d(np.arange(self.encoder.height), self.others)

    @property
    def _has_target_line(self) -> bool:
        return self.encoder.geometry.target is not None and self.encoder.height - 1 in self.lines

    @cached_property
    def _table(self) -> csr_array:
        """The columns that a cell knows: (cells, columns), integers."""
        constant = csr_array(np.full((self.cells, int(self.encoder.geometry.intercept)), self.encoder.step))
        found = [constant.astype(np.int64)]
        every = np.arange(self.cells)
        for one in self.looked_up:
            found.append(self._levels(one)[every // one.stride % one.levels])
        return csr_array(hstack(found, format="csr"))

    def _levels(self, one: LookedUp) -> csr_array:
        """The encoded columns of every level of a block: (levels, columns)."""
        codes = np.arange(one.levels)
        out = np.empty((one.block.width, one.levels))
        self.encoder.spread_levels(one.block, codes, out)
        return csr_array(out.T.astype(np.int64))


def _looked_up(blocks: Sequence[Block], most: int) -> tuple[LookedUp, ...]:
    """Blocks of levels, in their order, while there are not too many cells."""
    found, cells = list[LookedUp](), 1
    for block in blocks:
        if block.kind in LEVELS and cells * len(block.labels) <= most:
            found.append(LookedUp(block, cells))
            cells *= len(block.labels)
    return tuple(found)
