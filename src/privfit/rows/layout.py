"""How encoded rows lie in memory: levels as places in one table of codes, several categories together as one code; a
product with it is a few look-ups.

A row of fourteen columns in bins takes sixteen bytes. Read Chunk (some rows, in workers.py), Member (one column),
Layout (all of them).
"""

from __future__ import annotations

import math
from copy import copy
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import block_diag
from scipy.sparse import csc_array, csr_array

from privfit.rows.encoding import (
    absent_values,
    as_one_array,
    encode_numbers,
    few_rows,
    level_codes,
    on_unit,
    within_bounds,
)
from privfit.rows.workers import Chunk, Codes, FineCells, Places
from privfit.schema import Block, Geometry, Numeric, level_labels
from privfit.tables import Batch, Values

Floats = NDArray[np.float64]
Matrix = TypeVar("Matrix", csr_array, csc_array)

STEP = 1 << 16
"""The integer that stands for 1 in a number: numbers are rounded to so many steps."""
MOST_CODES = 1 << 12
"""Codes that joined categories have at most: fewer codes a row against longer look-up tables. The bound of rounding
counts so many additions. No command varies it."""
CODED = ("levels", "sign", "spline", "spline-or-missing")
"""Kinds of blocks that are held as codes; numbers with a slope are held as numbers."""
STEPS_PER_KNOT = 8
"""Steps in which a spline is followed between knots: more codes against values that are rounded to a step. No command
varies it."""
FINE_CELLS = 500
"""Cells in which a number is looked at by itself, equal steps of its scale: finer ones hold fewer rows each. Others
were tried with prototypes that are not kept: docs/classifiers.md."""


def fine_of(places: Floats, out: FineCells) -> FineCells:
    """The fine cells of numbers at these places between their bounds, from 0 to 1: the whole part of so many steps, of
    which the last ends just below the next integer.
    """
    return np.multiply(places, math.nextafter(FINE_CELLS, 0.0), out=out, casting="unsafe")


def linear_splines(places: Floats, knots: int) -> Floats:
    """The basis at every place, one row each: 1 at its knot, falling to 0 at the next ones.

    Places are counted in knots: 0 is the first, 1 the second. Weights at the knots are joined by straight lines.
    """
    return np.maximum(0.0, 1.0 - np.abs(places[:, None] - np.arange(knots)))


@dataclass(frozen=True)
class Member:
    """A block of a group: how many levels it has, and how far apart they are among the group's codes."""

    block: Block
    levels: int
    stride: int

    @cached_property
    def basis(self) -> Floats | None:
        """The encoded columns of each level, (levels, width); None for one-hot levels, whose basis is the identity.

        Splines are followed in small steps between knots.
        """
        if self.block.kind == "levels":
            return None
        if self.block.kind == "sign":
            return np.array([[-1.0], [1.0]])
        line = linear_splines(np.arange(self._steps) / STEPS_PER_KNOT, len(self.block.edges))
        return line if self.block.kind == "spline" else np.asarray(block_diag(line, np.ones((1, 1))))

    @property
    def _steps(self) -> int:
        """The levels of a number that is not missing."""
        return self.levels - (self.block.kind == "spline-or-missing")

    def codes(self, values: Values, fine: FineCells | None = None) -> NDArray[np.intp] | Floats:
        """The level of every row, in an array of its own: a function of that row alone, to the bit. Where `fine` is
        given, it is filled with the fine cells of a number with knots.

        A logarithm's last place may depend on where in memory a value stands; comparing does not.
        """
        column = self.block.column
        if self.block.kind == "spline-or-missing":
            assert isinstance(column, Numeric)
            absent = np.isnan(values)
            return np.where(absent, self._steps, self._line_codes(np.where(absent, column.low, values)))
        return self._line_codes(values, fine) if self.block.kind == "spline" else level_codes(self.block, values)

    def _line_codes(self, values: Values, fine: FineCells | None = None) -> NDArray[np.intp] | Floats:
        column = self.block.column
        assert isinstance(column, Numeric)
        if column.is_wide:
            if fine is not None:
                fine[:] = self.fine_cells(values)
            return np.searchsorted(self._halves, within_bounds(column, values), side="right")
        places = on_unit(column, values)
        if fine is not None:
            fine_of(places, fine)
        places *= len(self.block.edges) - 1
        places *= STEPS_PER_KNOT
        return np.rint(places, out=places)

    @cached_property
    def _halves(self) -> Floats:
        assert isinstance(self.block.column, Numeric)
        return np.array(self.block.column.between(self._steps - 1))

    @cached_property
    def cell_edges(self) -> tuple[float, ...]:
        """Between the cells of a number with knots."""
        assert isinstance(self.block.column, Numeric)
        halves = self.block.column.between(self._steps - 1)
        count = len(self.block.edges)
        firsts = [-(-cell * self._steps // count) for cell in range(1, count)]  # the first level of each
        return tuple(halves[first - 1] for first in firsts)

    @cached_property
    def has_knots(self) -> bool:
        """Whether it is a number with knots."""
        return self.block.kind in ("spline", "spline-or-missing")

    @cached_property
    def cell_names(self) -> tuple[str, ...]:
        """A name for each cell: of a number, its ends."""
        return level_labels(self.block.column, self.cell_edges) if self.has_knots else self.block.labels

    def cells(self, levels: NDArray[np.intp] | Floats) -> NDArray[np.int64]:
        """The cell of rows at these levels: a level of a category; of a number, one of as many equal cells as it has
        knots, whose edges are not where knots are.
        """
        whole = np.asarray(levels, dtype=np.int64)
        if self.block.kind not in ("spline", "spline-or-missing"):
            return whole
        cells = whole * len(self.block.edges) // self._steps
        return np.where(whole == self._steps, len(self.block.edges), cells)

    @cached_property
    def fine_edges(self) -> tuple[float, ...]:
        """Between the fine cells of a number. Half a step wide at either end, where the scale is a logarithm."""
        column = self.block.column
        assert isinstance(column, Numeric)
        if column.is_wide:
            return column.between(FINE_CELLS - 1)
        return tuple(column.low + (column.high - column.low) * i / FINE_CELLS for i in range(1, FINE_CELLS))

    def fine_cells(self, values: Values) -> NDArray[np.intp] | FineCells:
        """The fine cell of every row: as for codes, a function of that row alone, to the bit."""
        column = self.block.column
        assert isinstance(column, Numeric)
        if column.is_wide:
            return np.searchsorted(self.fine_edges, within_bounds(column, values), side="right")
        return fine_of(on_unit(column, values), np.empty(len(values), dtype=np.uint16))


class Layout:
    """Where encoded columns are in a chunk. From public facts."""

    def __init__(self, geometry: Geometry) -> None:
        self.geometry = geometry
        self.numbers = tuple(block for block in geometry.blocks if block.kind in ("slope", "share"))
        places = [*[0] * geometry.intercept, *(block.start for block in self.numbers)]
        self.number_columns = np.array(places, dtype=np.intp)
        """Where numbers are among the encoded columns, the intercept among them."""
        self.groups = _grouped(geometry)
        """Blocks of levels, joined while all their levels together have few codes."""
        self.members = tuple(member for group in self.groups for member in group)
        self.sizes = [group[-1].stride * group[-1].levels for group in self.groups]
        self.firsts: tuple[int, ...] = (0, *np.cumsum(self.sizes, dtype=np.int64).tolist())
        """Where each group's codes begin in the table of all codes; last, how long it is."""
        self.n_codes = self.firsts[-1]
        self.splines = tuple(place for place, member in enumerate(self.members) if member.block.kind == "spline")
        self._shared: dict[int, tuple[Floats, NDArray[np.int32]]] = {}

    def __getstate__(self) -> dict[str, Any]:
        """What is sent elsewhere: without what matrices share, which is as long as a chunk."""
        return {**self.__dict__, "_shared": {}}

    def chunk(self, batch: Batch, fine: FineCells | None = None) -> tuple[Codes, Floats]:
        """The rows of a batch: codes and numbers.

        Where `fine` is given, a column for every spline, it is filled with their fine cells.
        """
        rows = len(batch[0])
        place = {block.start: position for position, block in enumerate(self.geometry.blocks)}
        codes = self._codes([batch[place[member.block.start]] for member in self.members], rows, fine)
        numbers = np.empty((len(self.number_columns), rows))
        if self.geometry.intercept:
            numbers[0] = STEP
        if self.numbers:
            values = [batch[place[block.start]] for block in self.numbers]
            encode_numbers(list(self.numbers), values, numbers[int(self.geometry.intercept) :], STEP)
        return codes, numbers.T / STEP  # a column's numbers stay side by side: few columns are multiplied faster so

    def _codes(self, columns: Batch, rows: int, fine: FineCells | None) -> Codes:
        """The places of rows in the table of codes.

        Many numbers of one array are worked on together, a few rows at a time, as they lie in memory.
        """
        codes: Codes = np.empty((rows, len(self.groups)), dtype="u2" if self.n_codes <= 1 << 16 else "i4")
        together = as_one_array([member.block for member in self.members], columns) if self._all_narrow else None
        if together is not None:
            few = 2 * few_rows(len(columns))
            widths = np.array([member.block.width - 1 for member in self.members], dtype=np.float64)
            for begin in range(0, rows, few):  # integers far below 2^53: the product is exact
                places = self._narrow_places(together[begin : begin + few])
                if fine is not None:
                    fine_of(places, fine[begin : begin + few])
                places *= widths
                places *= STEPS_PER_KNOT
                np.rint(places, out=places)  # as Member.codes, for all columns at once
                codes[begin : begin + few] = places @ self._strides + self.firsts[:-1]
            return codes
        lines = dict(zip(self.splines, [] if fine is None else fine.T, strict=False))
        levels = (
            member.codes(values, lines.get(place))
            for place, (member, values) in enumerate(zip(self.members, columns, strict=True))
        )
        for position, (group, first) in enumerate(zip(self.groups, self.firsts, strict=False)):
            joined = next(levels).astype(np.float64, copy=False)  # of the first member, whose stride is 1
            joined += first
            for member in group[1:]:
                own = next(levels)
                joined += np.multiply(own, member.stride, out=own)
            codes[:, position] = joined
        return codes

    @cached_property
    def _strides(self) -> Floats:
        """What a member's levels count in its group's codes: (members, groups)."""
        own = [np.array([[member.stride] for member in group], dtype=np.float64) for group in self.groups]
        return np.asarray(block_diag(*own))

    @cached_property
    def _all_narrow(self) -> bool:
        """Whether all codes are those of numbers on a scale without a logarithm."""
        return bool(self.members) and all(
            member.block.kind == "spline"
            and isinstance(member.block.column, Numeric)
            and not member.block.column.is_wide
            for member in self.members
        )

    def _narrow_places(self, values: Floats) -> Floats:
        """Where values are between their bounds, from 0 to 1, by the same operations on every value as column by
        column.
        """
        columns = [member.block.column for member in self.members]
        low = np.array([column.low for column in columns if isinstance(column, Numeric)])
        high = np.array([column.high for column in columns if isinstance(column, Numeric)])
        with np.errstate(over="ignore"):  # a warning would reveal a single huge value
            places: Floats = values - low
            places /= high - low
        np.clip(places, 0.0, 1.0, out=places)
        if np.isnan(np.max(places, initial=0.0)):  # a NaN is larger than all
            raise absent_values(columns[int(np.argmax(np.isnan(places).any(axis=0)))])
        return places

    def look_up(self, weights: Floats) -> Floats:
        """What every code of every group adds to the predictors, for weights of shape (columns, classes): (codes,
        classes).
        """
        tables = [np.empty((0, weights.shape[1]))]
        for group in self.groups:
            table = np.zeros((1, weights.shape[1]))
            for member in group:
                own = weights[member.block.start : member.block.stop]
                values = own if member.basis is None else member.basis @ own
                table = (values[:, None, :] + table[None, :, :]).reshape(-1, weights.shape[1])
            tables.append(table)
        return np.concatenate(tables)

    def gather(self, counts: Floats, numbers: Floats) -> Floats:
        """Sums per code, and of the number columns, as sums per encoded column."""
        total = np.empty((self.geometry.n_columns, numbers.shape[1]))
        total[self.number_columns] = numbers
        for group, first, end in zip(self.groups, self.firsts, self.firsts[1:], strict=False):
            sums = counts[first:end]
            for member in group:
                apart = sums.reshape(-1, member.levels, member.stride, sums.shape[-1]).sum(axis=(0, 2))
                own = apart if member.basis is None else member.basis.T @ apart
                total[member.block.start : member.block.stop] = own
        return total

    def indicators(self, chunk: Chunk, places: Places | None = None) -> csr_array:
        """The sparse matrix with a 1 at each row's places: products with it run outside of Python's lock, and take a
        row's places in their order.
        """
        rows, groups = chunk.codes.shape
        return self._filled(csr_array, (rows, self.n_codes if groups else 0), chunk, places)

    def transposed(self, chunk: Chunk, places: Places | None = None) -> csc_array:
        """The same matrix, to sum rows with."""
        rows, groups = chunk.codes.shape
        return self._filled(csc_array, (self.n_codes if groups else 0, rows), chunk, places)

    def _filled(self, kind: type[Matrix], shape: tuple[int, int], chunk: Chunk, places: Places | None) -> Matrix:
        """A copy of an empty matrix of this shape, with the places of these rows.

        A constructor would look through all of them, and copy those of a part of a longer chunk.
        """
        matrix = copy(_empty(kind, shape))  # type: ignore[arg-type]  # a class can be hashed
        matrix.data, matrix.indptr = self._ones_and_ends(*chunk.codes.shape)
        matrix.indices = chunk.places() if places is None else places
        return matrix

    def _ones_and_ends(self, rows: int, groups: int) -> tuple[Floats, NDArray[np.int32]]:
        """What the matrices of all chunks share, as long as the longest chunk so far.

        Read-only: a matrix that changed them would change all.
        """
        found = self._shared.get(groups)
        if found is None or len(found[1]) <= rows:
            found = (np.ones(rows * groups), np.arange(rows + 1, dtype=np.int32) * np.int32(groups))
            for array in found:
                array.flags.writeable = False
            self._shared[groups] = found
        return found[0][: rows * groups], found[1][: rows + 1]

    def turned(self, chunk: Chunk, frequencies: Floats) -> Floats:
        """The products of encoded rows with some columns, each row's by itself: in a matrix product other rows could
        change how one is rounded.
        """
        products = np.asarray(self.indicators(chunk) @ self.look_up(frequencies))
        for place, column in enumerate(self.number_columns):
            products += chunk.numbers[:, place, None] * frequencies[column]
        return products

    def dense(self, chunk: Chunk) -> Floats:
        """The encoded rows themselves."""
        rows = np.zeros((len(chunk.target), self.geometry.n_columns))
        rows[:, self.number_columns] = chunk.numbers
        every = np.arange(len(rows))
        for group, codes, first in zip(self.groups, chunk.codes.T, self.firsts, strict=False):
            for member in group:
                level = (codes.astype(np.intp) - first) // member.stride % member.levels
                if member.basis is None:
                    rows[every, member.block.start + level] = 1.0
                else:
                    rows[:, member.block.start : member.block.stop] = member.basis[level]
        return rows

    def cells(self, chunk: Chunk) -> NDArray[np.uint16]:
        """The cell of every member in every row: (members, rows)."""
        found = np.empty((len(self.members), len(chunk.target)), dtype=np.uint16)
        lines = iter(found)
        for tables, codes, first in zip(self._cell_tables, chunk.codes.T, self.firsts, strict=False):
            own = codes - first
            for table in tables:
                np.take(table, own, out=next(lines))
        return found

    @cached_property
    def _cell_tables(self) -> list[list[NDArray[np.uint16]]]:
        """For every code of a group, the cell of each of its members.

        No block has more levels than 16 bits can address (LARGEST_BLOCK).
        """
        return [
            [member.cells(np.arange(size) // member.stride % member.levels).astype(np.uint16) for member in group]
            for group, size in zip(self.groups, self.sizes, strict=True)
        ]


@lru_cache(maxsize=16)
def _empty(kind: type[Matrix], shape: tuple[int, int]) -> Matrix:
    """To be copied: a constructor takes half as long as a product, and most chunks of a table are equally long."""
    return kind(shape)


def _grouped(geometry: Geometry) -> tuple[tuple[Member, ...], ...]:
    """Blocks of levels in their order, in one group while all their levels together have few codes."""
    groups, size = list[list[Member]](), MOST_CODES + 1
    for block in geometry.blocks:
        if block.kind not in CODED:
            continue
        levels = len(block.labels)
        if block.kind in ("spline", "spline-or-missing"):
            levels = (len(block.edges) - 1) * STEPS_PER_KNOT + 1 + (block.kind == "spline-or-missing")
        if size * levels > MOST_CODES:
            groups, size = [*groups, []], 1
        groups[-1].append(Member(block, levels, size))
        size *= levels
    return tuple(map(tuple, groups))
