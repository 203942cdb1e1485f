"""One column of the schema among the codes of a row: its levels, what each is encoded as, and its cells."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import block_diag

from privfit.rows.encoding import level_codes, on_knots, within_bounds
from privfit.schema import Block, Numeric, level_labels
from privfit.tables import Values

Floats = NDArray[np.float64]
FineCells = NDArray[np.uint16]

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

    def codes(self, values: Values) -> NDArray[np.intp] | Floats:
        """The level of every row: a function of that row alone, to the bit.

        A logarithm's last place may depend on where in memory a value stands; comparing does not.
        """
        column = self.block.column
        if self.block.kind == "spline-or-missing":
            assert isinstance(column, Numeric)
            absent = np.isnan(values)
            return np.where(absent, self._steps, self._line_codes(np.where(absent, column.low, values)))
        return self._line_codes(values) if self.block.kind == "spline" else level_codes(self.block, values)

    def _line_codes(self, values: Values) -> NDArray[np.intp] | Floats:
        column = self.block.column
        assert isinstance(column, Numeric)
        if column.is_wide:
            return np.searchsorted(self._halves, within_bounds(column, values), side="right")
        places = on_knots(self.block, values)
        places *= STEPS_PER_KNOT
        return np.rint(places, out=places)

    @cached_property
    def _halves(self) -> Floats:
        assert isinstance(self.block.column, Numeric)
        return np.array(self.block.column.between(self._steps - 1))

    @cached_property
    def cell_names(self) -> tuple[str, ...]:
        """A name for each cell: of a number, its ends."""
        column = self.block.column
        if self.block.kind not in ("spline", "spline-or-missing"):
            return self.block.labels
        assert isinstance(column, Numeric)
        halves = column.between(self._steps - 1)
        count = len(self.block.edges)
        firsts = [-(-cell * self._steps // count) for cell in range(1, count)]  # the first level of each
        return level_labels(column, tuple(halves[first - 1] for first in firsts))

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
        own = within_bounds(column, values)
        if column.is_wide:
            return np.searchsorted(self.fine_edges, own, side="right")
        return fine_of(np.clip(column.on_scale(own), 0.0, 1.0), np.empty(len(own), dtype=np.uint16))
