"""Rows as points of a lattice, for clusters: numbers only, scaled by their public bounds to [-1, 1] and rounded to a
2^16th.

Differences and distances of points are integers far below 2^53. Floats hold them exactly, in whatever order they
are added, so what a row adds to a sum depends on that row alone, to the bit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privfit.rows.cached_rows import CachedRows
from privfit.rows.encoding import absent_values, encode_numbers
from privfit.rows.errors import too_many_rows
from privfit.rows.layout import STEP
from privfit.rows.prediction import PREDICT_ROWS
from privfit.rows.rows import EXACT_INT, Rows
from privfit.schema import Geometry, Numeric, Schema, SchemaError
from privfit.tables import Arrays, Batch, Table

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Lattice = NDArray[np.int32]
PointKernel = Callable[[Floats], Any]

MOST_DIMENSIONS = 1 << 14
"""Distances are then below 2^49."""
POINT_VALUES = 1 << 20
"""Values that are kept, or worked on, together."""
EXACT_VALUES = 1 << 19
"""Squared distances of so many values, each below 2^34, add up to less than 2^53."""
CACHED_ROWS = 1 << 13
"""Rows worked on together: it changes the time only."""


def point_geometry(schema: Schema) -> Geometry:
    """The shape of points: one number per column. Categories have no distances and are refused."""
    others = [column.name for column in schema.features if not isinstance(column, Numeric)]
    if others:
        raise SchemaError(
            f"The schema lists the categories {others}, and clusters are made of numbers, which have distances. "
            "Leave them out of the schema, or turn each level into a number, 0 or 1. Nothing was charged."
        )
    if len(schema.features) > MOST_DIMENSIONS:
        raise SchemaError(
            f"The schema has {len(schema.features)} columns; clusters take at most {MOST_DIMENSIONS}. List fewer."
        )
    return schema.geometry(numeric="slope", intercept=False, target=False)


def on_lattice(centres: Floats) -> Integers:
    """Centres in [-1, 1] as points of the lattice."""
    return np.rint(np.clip(centres, -1.0, 1.0) * STEP).astype(np.int64)


class Points(CachedRows[Lattice]):
    """The rows of a table as points. Hands out integer sums over rows, and the number of rows; never a row.

    Guarantee: every sum is exact, and a row's part in it is a function of that row and of public numbers;
    docs/proofs/clustering.md, Lemma 1.
    """

    def __init__(self, rows: Rows, most_bytes: int | None = None) -> None:
        super().__init__(rows, most_bytes)
        self._blocks = rows.geometry.blocks
        self.n_columns = len(self._blocks)
        self._piece_rows = max(1, POINT_VALUES // self.n_columns)

    def check_sums(self, largest: int) -> None:
        """Refuse more rows than 64-bit sums hold, if one row adds at most this much."""
        if self.n_rows > EXACT_INT // largest:
            raise too_many_rows(EXACT_INT // largest)

    def _encode(self, batches: Iterator[Batch]) -> Iterator[Lattice]:
        for batch in batches:
            encoded = np.empty((self.n_columns, len(batch[0])))
            encode_numbers(list(self._blocks), batch, encoded, STEP)
            yield encoded.astype(np.int32)

    def _arrays(self, chunk: Lattice) -> Arrays:
        return [chunk]

    def _chunk_of(self, arrays: Arrays) -> Lattice:
        return arrays[0]

    @staticmethod
    def _length(chunk: Lattice) -> int:
        return int(chunk.shape[1])

    def _sum(self, kernel: PointKernel, width: int, most: int = EXACT_VALUES) -> Any:
        """The sum over all points of what a kernel makes of a few of them, short enough for `width` values a row, and
        for exact sums in floats.
        """
        size = max(1, min(most, POINT_VALUES // width, EXACT_VALUES // self.n_columns))
        return self.total(partial(_chunk_sum, kernel, size), side_by_side=False)[0]

    # -- sums --------------------------------------------------------------------------------------

    def counts(self, cells: int) -> Integers:
        """How many points are in each cell of a grid with so many equal cells per column, the first column slowest."""
        return np.asarray(self._sum(partial(_counts, cells), 1), dtype=np.int64)

    def moments(self, pooled: bool) -> Integers:
        """In units of 1 / STEP: the sums of columns; of 2 x^2 - 1 for every column x, or of its mean over columns; and
        the number of rows, last.
        """
        return np.asarray(self._sum(partial(_moments, pooled), 1), dtype=np.int64)

    def blocks(self, centres: Integers, widths: Floats, unit: int) -> Integers:
        """For every centre, of the points nearest to it: their number, and the sums of (x - centre) / width cut at [-1,
        1]; in units of 1 / unit.

        `centres` are on the lattice, `widths` are in units of 1 for every centre and column. The first of several
        nearest centres counts.
        """
        stretch = unit / (np.broadcast_to(widths, centres.shape) * STEP)
        return np.asarray(self._sum(partial(_blocks, centres, stretch, unit), len(centres)), dtype=np.int64)

    def sums(self, centres: Integers, unit: int) -> Integers:
        """For every centre, of the points nearest to it: their number and the sums of their columns, in units of 1 /
        unit, a multiple of STEP.
        """
        return np.asarray(self._sum(partial(_sums, centres, unit), len(centres)), dtype=np.int64)

    def scores(self, candidates: Integers) -> list[int]:
        """For every set of centres on the lattice, (candidates, centres, columns): minus the sum of squared distances
        to the nearest one, in units of 1 / STEP^2.
        """
        m, k, d = candidates.shape
        flat = candidates.reshape(m * k, d).astype(np.float64)
        return list(self._sum(partial(_scores, flat, m), m * k))

    def changed_scores(self, parent: Integers, centre: Integers, column: Integers, value: Integers) -> list[int]:
        """The scores of candidates that differ from one parent in one column of one centre each: far cheaper than from
        anew.

        Candidate i has `value[i]` in `column[i]` of `centre[i]`. The parent's nearest and second nearest centres are
        computed once for each row.
        """
        moves = list(zip(centre.tolist(), column.tolist(), value.tolist(), strict=True))
        return list(self._sum(partial(_changed_scores, parent, moves), len(parent), CACHED_ROWS))


# -- what a few points add: one column each, sent to workers where rows are there ------------------


def _chunk_sum(kernel: PointKernel, size: int, _: int, chunk: Lattice) -> list[Any]:
    total: Any = 0
    for start in range(0, max(1, chunk.shape[1]), size):  # where all rows are left out, sums are zeros of their shape
        total = total + kernel(chunk[:, start : start + size].astype(np.float64))
    return [total]


def _counts(cells: int, part: Floats) -> Integers:
    places = np.minimum((part.astype(np.int64) + STEP) * cells // (2 * STEP), cells - 1)
    flat = np.zeros(part.shape[1], dtype=np.int64)
    for place in places:
        flat = flat * cells + place
    return np.asarray(np.bincount(flat, minlength=cells ** len(part)), dtype=np.int64)


def _moments(pooled: bool, part: Floats) -> Integers:
    squares = part * part
    if pooled:  # the mean of integers, divided once
        squares = squares.sum(axis=0, keepdims=True) / len(part)
    bent = np.rint(squares * (2.0 / STEP)) - STEP
    return np.array([*part.sum(axis=1), *bent.sum(axis=1), STEP * part.shape[1]], dtype=np.int64)


def _nearest(centres: Integers, part: Floats) -> NDArray[np.intp]:
    return np.asarray(np.argmin(_partial_distances(centres.astype(np.float64), part), axis=0))


def _blocks(centres: Integers, stretch: Floats, unit: int, part: Floats) -> Integers:
    nearest, k = _nearest(centres, part), len(centres)
    columns = [unit * np.bincount(nearest, minlength=k)]
    for j, values in enumerate(part):
        away = (values - centres[nearest, j]) * stretch[nearest, j]
        cut = np.rint(np.clip(away, -unit, unit))
        columns.append(np.bincount(nearest, cut, minlength=k).astype(np.int64))
    return np.stack(columns, axis=1)


def _sums(centres: Integers, unit: int, part: Floats) -> Integers:
    nearest, k = _nearest(centres, part), len(centres)
    columns = [unit * np.bincount(nearest, minlength=k)]
    for values in part:
        columns.append(unit // STEP * np.bincount(nearest, values, minlength=k).astype(np.int64))
    return np.stack(columns, axis=1)


def _scores(flat: Floats, m: int, part: Floats) -> NDArray[np.object_]:
    """Integers of any size: distances of many rows leave 64 bits."""
    own = (part * part).sum(axis=0)
    least = _partial_distances(flat, part).reshape(m, len(flat) // m, -1).min(axis=1) + own
    return np.array([-int(found) for found in least.sum(axis=1)], dtype=object)


def _changed_scores(parent: Integers, moves: list[tuple[int, int, int]], part: Floats) -> NDArray[np.object_]:
    distances = _partial_distances(parent.astype(np.float64), part) + (part * part).sum(axis=0)
    closest = np.argmin(distances, axis=0)
    first, second = _two_smallest(distances)
    total, others = [], dict[int, Floats]()
    for place, j, new in moves:
        if place not in others:
            others[place] = np.where(closest == place, second, first)
        old = int(parent[place, j])
        least = part[j] * (-2.0 * (new - old))
        least += distances[place]
        least += float(new * new - old * old)
        np.minimum(least, others[place], out=least)
        total.append(-int(least.sum()))
    return np.array(total, dtype=object)


def scaled_points(table: Table, schema: Schema, geometry: Geometry) -> Floats:
    """The rows of a table to predict for, in the units of clusters, not cut at the bounds.

    Nothing fitted ever passes through here.
    """
    parts = []
    for batch in table.batches(schema.features, table.positions(schema.features), PREDICT_ROWS):
        columns = []
        for block, values in zip(geometry.blocks, batch, strict=True):
            column = block.column
            assert isinstance(column, Numeric)
            numbers = np.asarray(values, dtype=np.float64)
            absent = np.isnan(numbers)
            if absent.any():
                if column.fill is None:
                    raise absent_values(column)
                numbers = np.where(absent, float(column.fill), numbers)
            columns.append((numbers - block.center) / block.unit)
        parts.append(np.column_stack(columns))
    return np.concatenate(parts) if parts else np.empty((0, len(geometry.blocks)))


def _partial_distances(centres: Floats, points: Floats) -> Floats:
    """Squared distances of all points (columns) to all centres (rows), less the points' squared lengths.

    Integers below 2^53, hence exact.
    """
    return np.asarray((centres * centres).sum(axis=1)[:, None] - 2.0 * (centres @ points), dtype=np.float64)


def _two_smallest(distances: Floats) -> tuple[Floats, Floats]:
    """The smallest and the second smallest of every column; the latter infinite where there is one row only."""
    if len(distances) == 1:
        return distances[0], np.full(distances.shape[1], np.inf)
    two = np.partition(distances, 1, axis=0)
    return two[0], two[1]
