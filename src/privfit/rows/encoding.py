"""From a batch of columns to bounded whole numbers: fill, clip, scale, round.

Every encoded entry is an integer-valued float of at most 2^bits in size (the target: of at most `target_units`), so that products
and sums of them are exact in float64 and the same bits on every engine. Scaling happens element by element in one fixed order of
operations; no sum of floats that are not whole numbers is ever taken.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privfit.schema import MISSING, OTHER, Block, Category, Geometry, Numeric
from privfit.tables import ABSENT, UNKNOWN, Batch, DataError

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Encoder:
    """Encodes batches as the geometry says: one row of the result per encoded column, the target last.

    `step` is the whole number that stands for 1 in a feature, `target_units` the one that stands for 1 in the target.
    """

    geometry: Geometry
    step: int
    target_units: int

    @property
    def height(self) -> int:
        """How many encoded columns there are, the target included."""
        return self.geometry.n_columns + (self.geometry.target is not None)

    def encode(self, batch: Batch, start: int, stop: int) -> Floats:
        """Rows start..stop of a batch as a (height, rows) array of whole numbers."""
        encoded = np.empty((self.height, stop - start))
        if self.geometry.intercept:
            encoded[0] = self.step
        blocks = list(self.geometry.blocks)
        if self.geometry.target is not None:
            blocks.append(self.geometry.target)
        for block, values in zip(blocks, batch, strict=True):
            units = self.target_units if block is self.geometry.target else self.step
            _encode_block(block, values[start:stop], encoded[block.start : block.stop], units)
        return encoded


def _encode_block(block: Block, values: Any, out: Floats, units: int) -> None:
    if block.kind in ("slope", "share"):
        scale(block, values, out[0], units)
        np.clip(out[0], 0.0 if block.kind == "share" else -units, units, out=out[0])
        np.rint(out[0], out=out[0])
        if np.isnan(out[0] @ out[0]):
            raise _absent(block)
    else:
        spread(block, level_codes(block, values), out, units)


def scale(block: Block, values: Floats, out: Floats, units: float) -> None:
    """Measure numbers from the block's centre, `units` to the block's unit, without clipping."""
    column = block.column
    assert isinstance(column, Numeric)
    if column.fill is not None:
        values = np.where(np.isnan(values), float(column.fill), values)
    with np.errstate(over="ignore"):
        np.subtract(values, block.center, out=out)
        np.multiply(out, units / block.unit, out=out)


def spread(block: Block, codes: NDArray[np.intp], out: Floats, units: float) -> None:
    """Write levels as signs, or as a `units` among zeros."""
    if block.kind == "sign":
        np.multiply(codes * 2 - 1, units, out=out[0])
        return
    out[:] = 0.0
    shown = codes < block.width  # the last level of an `indicators` block is all zeros
    out[codes[shown], np.flatnonzero(shown)] = units


def level_codes(block: Block, values: Any) -> NDArray[np.intp]:
    """The level of every row: bins for a number, listed levels for a category; absent and unknown ones as the schema says."""
    column = block.column
    if isinstance(column, Numeric):
        return _bin_codes(block, column, values)
    codes = np.asarray(values, dtype=np.intp)
    codes = _replaced(codes, ABSENT, column.fill, column, _absent(block))
    return _replaced(codes, UNKNOWN, OTHER if column.other else None, column, _unknown(block))


def _bin_codes(block: Block, column: Numeric, values: Floats) -> NDArray[np.intp]:
    absent = np.isnan(values)
    if absent.any():
        if column.fill is None:
            raise _absent(block)
        if column.fill == MISSING:
            return np.where(absent, len(block.edges) + 1, np.searchsorted(block.edges, values, side="right"))
        values = np.where(absent, column.fill, values)
    return np.searchsorted(block.edges, values, side="right")


def _replaced(codes: NDArray[np.intp], mark: int, level: Any, column: Category, refusal: DataError) -> NDArray[np.intp]:
    marked = codes == mark
    if not marked.any():
        return codes
    if level is None:
        raise refusal
    return np.where(marked, column.levels.index(level), codes)


def _absent(block: Block) -> DataError:
    name = block.column.name
    return DataError(
        f"Column {name!r} contains NaN or missing values, and its schema has no public value for them. "
        f"Give one: {type(block.column).__name__}({name!r}, ..., fill=...). Nothing was charged."
    )


def _unknown(block: Block) -> DataError:
    name = block.column.name
    return DataError(
        f"Column {name!r} contains a level that its schema does not list. List every level that can occur, "
        f"or let the rest fall into one: Category({name!r}, [...], other=True). Nothing was charged."
    )
