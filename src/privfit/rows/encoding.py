"""From a batch of columns to bounded integers: fill, clip, scale, round.

Every encoded entry is an integer-valued float of at most `step` in size (the target: of at most `target_units`), so
that products and sums of them are exact in float64 and the same bits on every engine. Scaling happens element by
element in one fixed order of operations; no sum of floats that are not integers is ever taken.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from privfit.rows.row_weights import RowWeights
from privfit.schema import MISSING, OTHER, Block, Category, Column, Geometry, Level, Numeric
from privfit.schema.toml import value_text
from privfit.tables import ABSENT, UNKNOWN, Batch, DataError, MissingValues, Values

Floats = NDArray[np.float64]
MANY_COLUMNS = 8
"""Neighbouring columns from which on an array is read row by row: fewer are read column by column. No
command varies it.
"""
CACHED_VALUES = 1 << 16
"""Values that stay close to the processor while they are worked on. No command varies it."""


@dataclass(frozen=True)
class Encoder:
    """Encodes batches as the geometry says: one row of the result per encoded column, the target last.

    `step` is the integer that stands for 1 in a feature, `target_units` the one that stands for 1 in the target.
    """

    geometry: Geometry
    step: int
    target_units: int
    weights: RowWeights | None = None
    """How rows are weighed: a last line of the result, from the last column of a batch."""

    @property
    def height(self) -> int:
        """How many lines the result has: encoded columns, the target and the weights."""
        target = 0 if self.geometry.target is None else self.geometry.target.width
        return self.geometry.n_columns + target + (self.weights is not None)

    def encode(self, batch: Batch) -> Floats:
        """The rows of a batch as a (height, rows) array of integers."""
        encoded = np.empty((self.height, len(batch[0])))
        if self.geometry.intercept:
            encoded[0] = self.step
        for run in self.runs:
            self.encode_run(run, batch, encoded[run[0].start : run[-1].stop])
        if self.weights is not None:
            encoded[-1] = self.weights.encoded(batch[-1])
        return encoded

    def encode_run(self, run: list[Block], batch: Batch, out: Floats) -> None:
        """Write the encoded columns of one of `runs`."""
        kind, values = run[0].kind, [self.values(block, batch) for block in run]
        if kind in ("spline", "spline-or-missing"):
            raise TypeError(
                "Lines between knots are for gradients; the sums here are of integers, whose bounds know no such block."
            )
        if kind in ("slope", "share"):
            encode_numbers(run, values, out, self._units(run[0]))
        elif kind == "slope-or-missing":
            _encode_with_gaps(run[0], values[0], out, self._units(run[0]))
        else:
            self.spread_levels(run[0], level_codes(run[0], values[0]), out)

    def spread_levels(self, block: Block, codes: NDArray[np.intp], out: Floats) -> None:
        """Write the encoded columns of levels."""
        spread(block, codes, out, self._units(block))

    def values(self, block: Block, batch: Batch) -> Values:
        """A block's column in a batch."""
        return batch[self._position[block.start]]

    def _units(self, block: Block) -> int:
        return self.target_units if block is self.geometry.target else self.step

    @property
    def blocks(self) -> list[Block]:
        """All blocks, the target last."""
        return [block for run in self.runs for block in run]

    @cached_property
    def runs(self) -> list[list[Block]]:
        """Blocks in order, neighbouring numbers together: they are scaled, clipped and rounded in one stroke."""
        runs: list[list[Block]] = []
        for block in self.geometry.blocks:
            if runs and block.kind in ("slope", "share") and runs[-1][0].kind == block.kind:
                runs[-1].append(block)
            else:
                runs.append([block])
        return runs if self.geometry.target is None else [*runs, [self.geometry.target]]

    @cached_property
    def _position(self) -> dict[int, int]:
        """Where the column of the block that starts here stands in a batch."""
        return {block.start: place for place, block in enumerate(self.blocks)}


def encode_numbers(blocks: list[Block], columns: Sequence[Values], out: Floats, units: int) -> None:
    """Numbers measured from their centres, `units` to a block's unit, clipped to the bounds and rounded."""
    centers = np.array([block.center for block in blocks])
    stretch = np.array([units / block.unit for block in blocks])
    reach = np.array([block.reach for block in blocks]) * float(units)
    least, most = reach[:, 0], reach[:, 1]
    together = as_one_array(blocks, columns)
    if together is None:
        for block, values, row in zip(blocks, columns, out, strict=True):
            column = block.column
            assert isinstance(column, Numeric)
            row[:] = values if column.fill is None else np.where(np.isnan(values), column.fill, values)
        found = _scaled(out, centers[:, None], stretch[:, None], least[:, None], most[:, None], out)
    else:
        few = few_rows(len(blocks))
        found = False
        for start in range(0, out.shape[1], few):  # a few rows at a time, as they lie in memory; then turned
            part = together[start : start + few]
            scaled = np.empty(part.shape)
            found |= _scaled(part, centers, stretch, least, most, scaled)
            out[:, start : start + few] = scaled.T
    if found:
        raise absent_values(next(block for block, row in zip(blocks, out, strict=True) if np.isnan(row).any()).column)


def _encode_with_gaps(block: Block, values: Values, out: Floats, units: int) -> None:
    """A number as others and a 0 beside it; a missing one as 0 and a 1 beside it."""
    absent = np.isnan(values)
    least, most = (np.array(end * units) for end in block.reach)
    numbers = np.where(absent, block.center, values)
    _scaled(numbers, np.array(block.center), np.array(units / block.unit), least, most, out[0])
    out[0][absent] = 0.0
    np.multiply(absent, units, out=out[1])


def _scaled(values: Floats, centers: Floats, stretch: Floats, least: Floats, most: Floats, out: Floats) -> bool:
    """Write (values - centers) * stretch, clipped and rounded, to `out`, and say whether a NaN is among them."""
    with np.errstate(over="ignore"):  # a warning would reveal a single huge value
        np.subtract(values, centers, out=out)
        np.multiply(out, stretch, out=out)
    np.clip(out, least, most, out=out)
    np.rint(out, out=out)
    return bool(np.isnan(np.max(out, initial=0.0)))  # a NaN is larger than all


def as_one_array(blocks: list[Block], columns: Sequence[Values]) -> Floats | None:
    """Neighbouring columns of one array as that part of it: far faster to read than column by column.

    None if they are not that.
    """
    first = columns[0]
    if (
        len(columns) < MANY_COLUMNS
        or first.base is None
        or any(isinstance(b.column, Numeric) and b.column.fill is not None for b in blocks)
    ):
        return None
    start = first.__array_interface__["data"][0]
    for place, column in enumerate(columns):
        same = (
            column.base is first.base
            and column.dtype == np.float64
            and column.strides == first.strides
            and column.shape == first.shape
        )
        if not same or column.__array_interface__["data"][0] != start + place * first.itemsize:
            return None
    return np.lib.stride_tricks.as_strided(
        first, (len(first), len(columns)), (first.strides[0], first.itemsize), writeable=False
    )


def few_rows(columns: int) -> int:
    """How many rows of so many columns are worked on at a time, so that they stay close to the processor."""
    return max(CACHED_VALUES // columns, 1)


def spread(block: Block, codes: NDArray[np.intp], out: Floats, units: float) -> None:
    """Write levels as signs, or as a `units` among zeros."""
    if block.kind == "sign":
        np.multiply(codes * 2 - 1, units, out=out[0])
        return
    out[:] = 0.0
    rows = np.arange(len(codes))
    if block.kind == "indicators":  # its last level is all zeros
        rows = np.flatnonzero(codes < block.width)
        codes = codes[rows]
    places = codes * out.shape[1]
    places += rows
    out.reshape(-1)[places] = units  # a view: rows of encoded columns lie one after the other


def level_codes(block: Block, values: Values) -> NDArray[np.intp]:
    """The level of every row: bins for a number, listed levels for a category; absent and unknown ones as the schema
    says.
    """
    column = block.column
    if isinstance(column, Numeric):
        return _bin_codes(block, column, values)
    codes = np.asarray(values, dtype=np.intp)
    if values.min(initial=0) >= 0:  # as nearly always: neither absent nor unknown
        return codes
    codes = _replaced(codes, ABSENT, column.fill, column, absent_values(column))
    return _replaced(codes, UNKNOWN, OTHER if column.other else None, column, unknown_levels(column))


def _bin_codes(block: Block, column: Numeric, values: Values) -> NDArray[np.intp]:
    absent = np.isnan(values)
    if absent.any():
        if column.fill is None:
            raise absent_values(column)
        if column.fill == MISSING:
            return np.where(absent, len(block.edges) + 1, np.searchsorted(block.edges, values, side="right"))
        values = np.where(absent, column.fill, values)
    return np.searchsorted(block.edges, values, side="right")


def on_knots(block: Block, values: Values) -> Floats:
    """Where values lie among a block's knots: 0 at the first, 1 at the second, and so on; clipped to the bounds."""
    assert isinstance(block.column, Numeric)
    places = on_unit(block.column, values)
    places *= len(block.edges) - 1
    return places


def on_unit(column: Numeric, values: Values) -> Floats:
    """Where values lie on a column's scale between its bounds: from 0 to 1, in an array of its own."""
    places = within_bounds(column, values)
    if column.is_wide:
        return np.clip(column.on_scale(places), 0.0, 1.0)
    places -= column.low  # as `on_scale`, in place: rounding is monotone, so that no place is beyond 0 and 1
    places /= column.high - column.low
    return places


def within_bounds(column: Numeric, values: Values) -> Floats:
    """A copy of values, clipped to a column's bounds, absent ones as the schema says."""
    own = np.clip(np.asarray(values, dtype=np.float64), column.low, column.high)
    if np.isnan(np.max(own, initial=-np.inf)):  # a NaN is larger than all
        if column.fill is None:
            raise absent_values(column)
        own[np.isnan(own)] = np.clip(column.fill, column.low, column.high)
    return own


def _replaced(
    codes: NDArray[np.intp], mark: int, level: Level | None, column: Category, refusal: DataError
) -> NDArray[np.intp]:
    marked = codes == mark
    if not marked.any():
        return codes
    if level is None:
        raise refusal
    return np.where(marked, column.levels.index(level), codes)


def absent_values(column: Column) -> MissingValues:
    """The error for missing values that the schema has no fill for."""
    fact = f"Column {column.name!r} contains NaN or missing values"
    needed = "a number" if isinstance(column, Numeric) else "one of the levels of the model's schema"
    cause = f"{fact}, and its schema has no public value for them."
    return MissingValues(
        f"{cause} Give one: {type(column).__name__}({column.name!r}, ..., fill=...). Nothing was charged.",
        column=column.name,
        for_toml=f"{cause} Choose one and write it under name = {value_text(column.name)}: fill = ... Nothing was "
        "charged.",
        when_predicting=f"{fact}, and the model was fitted without a public value for them. "
        f"Every row to predict for needs {needed} in this column. Fill it in, or leave such rows out.",
    )


def unknown_levels(column: Column) -> DataError:
    """The error for levels that the schema does not list."""
    cause = (
        f"Column {column.name!r} contains a level that its schema does not list. List every level that can occur, or "
        "let the rest fall into one:"
    )
    return DataError(
        f"{cause} Category({column.name!r}, [...], other=True). Nothing was charged.",
        for_toml=f"{cause} write other = true under name = {value_text(column.name)}. Nothing was charged.",
        when_predicting=f"Column {column.name!r} contains a level that the model was not fitted with. "
        "Every row to predict for needs one of the levels of the model's schema in this column. "
        "Write levels as the schema does, or leave such rows out.",
    )
