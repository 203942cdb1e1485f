"""Rows for fits that read them many times: encoded once, kept small in memory, and summed pass after pass.

A linear predictor is a few look-ups, and a sum of columns a few counts: sparse products (layout.py). Sums are integers
(fixed_point.py): the same bits however rows are cut into batches and in whatever order they come. `rounding` bounds
what that leaves out.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from operator import attrgetter

import numpy as np
from numpy.typing import NDArray

from privfit.features import FeatureMap
from privfit.rows.cached_rows import CachedRows, CountedRows, RowHash, counted_rows
from privfit.rows.encoding import encode_numbers, level_codes
from privfit.rows.fixed_point import (
    LONGEST,
    GradientPass,
    Predictors,
    RowResponse,
    most_rounding,
    on_lattice,
    slope_unit,
)
from privfit.rows.interactions import InteractionCells
from privfit.rows.layout import STEP, Layout
from privfit.rows.rows import Rows
from privfit.rows.worker_cells import ChunkCells, Residuals, WorkerCells
from privfit.rows.workers import Chunk, ChunkTask, Sums, in_order, one_blas_thread
from privfit.tables import Arrays, Batch, DataError

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

CHUNK_ROWS = 1 << 17
"""Rows of the longest chunks: threads wait for each other between the steps of a chunk, so that few chunks are best.

No command varies the sizes here; they steer time and memory, and no sum.
"""
PIECE_ROWS = 1 << 15
"""Rows that are encoded at a time."""
MANY_CHUNKS = 16
"""Chunks that a table is kept in at least, unless they would be shorter than SHORT_ROWS."""
CHUNK_VALUES = 1 << 21
"""Values of a chunk: wide rows are kept in shorter chunks, because several wait in memory."""
SHORT_ROWS = 1 << 10
"""Rows of the shortest chunks; a stream may come in much smaller batches."""
LARGEST_BLOCK = 1 << 16
"""Levels of a column: a cell is kept in 16 bits."""
MOST_PLACES = (1 << 31) - 1
"""Places that sparse matrices count in 32 bits."""
SAMPLE_VALUES = 1 << 20
"""Values of the sample of rows that a solver starts from: a longer start against fewer passes over all rows."""
LEAST_SAMPLE = 8
"""Rows of that sample for every column, at least."""
LARGEST_SHARE = 32
"""A Hessian is estimated from at most one row in so many: its time against that of passes over all rows."""
VALUES_PER_PRODUCT = 100
"""Products of columns that a Hessian may take for every code that a pass looks up."""
NUMBERS_PER_CODE = 16
"""Numbers that are multiplied in the time that is counted for looking up one code."""
MOST_HESSIAN_ROWS = 1 << 18
"""Rows that it is estimated from at most: they are held in memory."""
PRODUCT_PARTS, ALIGNED = 4, 8
"""Parts of a Hessian's columns, of a multiple of so many each, as processors multiply them: two thirds of the time with
638 columns, nine tenths with 90 (`privfit bench engines -s Parquet -m logistic`)."""
EXACT_BITS = 36
"""Integer weights below 2^36 / columns times numbers in steps of 2^-16 add up exactly in floats, in any order."""


class CachedDesign(CachedRows[Chunk]):
    """The design matrix of a table, kept for several passes.

    Hands out sums over all rows, and sums over a part of them that their contents choose; never a row. With `fine`,
    `cells` has the fine cells of numbers too. Where rows have weights, or classes have (`by_class`, from 0 to 1), every
    sum is of rows times their weights.
    """

    def __init__(
        self,
        rows: Rows,
        features: FeatureMap | None = None,
        most_bytes: int | None = None,
        fine: bool = False,
        by_class: Floats | None = None,
    ) -> None:
        self._geometry, self._layout, self._features = rows.geometry, Layout(rows.geometry), features
        self._coded = self._layout if features is None else None
        """The layout of rows that have codes; None for rows of features."""
        self._dense = self._layout.dense if features is None else attrgetter("numbers")
        super().__init__(rows, most_bytes)
        self._smallest: CountedRows | None = None
        self._fine = fine and features is None
        self._weights, self._by_class = rows.weights, by_class
        self._changed = None if by_class is None else partial(Weighed, by_class)
        groups = len(self._layout.groups)
        self.n_columns = rows.geometry.n_columns if features is None else features.n_columns
        self._width = groups + len(self._layout.number_columns) if features is None else self.n_columns
        wide = CHUNK_VALUES // max(1, self._width)
        self._piece_rows = max(SHORT_ROWS, min(PIECE_ROWS, wide))  # several pieces wait in memory
        self._longest = max(SHORT_ROWS, min(CHUNK_ROWS - PIECE_ROWS, wide))  # such a chunk takes no further piece
        if any(size > LARGEST_BLOCK for size in self._layout.sizes):
            raise _too_many_levels()
        if max((self._longest + self._piece_rows + SHORT_ROWS) * groups, self._layout.n_codes) > MOST_PLACES:
            raise _too_wide(rows.geometry.n_columns)
        self.read()
        if self._chunks is not None:
            short = self._chunks[::-1]
            self._chunks = []
            taken = (short.pop() for _ in range(len(short)))  # each leaves memory as soon as it is used up
            self._chunks = list(_joined(taken, self._least_rows))

    def _share(self, kept: CachedDesign) -> None:
        """Look at the same rows in memory in another way: what was chosen by their hashes is chosen anew."""
        self.__dict__.update(kept.__dict__)
        self._smallest = None

    @property
    def _least_rows(self) -> int:
        """Rows of the shortest chunks: of a table whose number of rows is not known yet, the fewest."""
        return max(SHORT_ROWS, min(self._longest, (self.n_rows or self._rows.known_rows or 0) // MANY_CHUNKS))

    def _encode(self, batches: Iterator[Batch]) -> Iterator[Chunk]:
        return _joined(map(self._chunk, batches), self._longest)

    def _arrays(self, chunk: Chunk) -> Arrays:
        weights = [] if chunk.weights is None else [chunk.weights]
        return [chunk.codes, chunk.numbers, chunk.target, *weights, *chunk.fine]

    def _chunk_of(self, arrays: Arrays) -> Chunk:
        codes, numbers, target, *rest = arrays
        weights = None if self._weights is None else rest.pop(0)
        return Chunk(codes, numbers, target, tuple(rest), weights)

    def _spilled(self) -> Iterator[Chunk]:
        """Joined as in memory: sums are the same to the bit."""
        return _joined(super()._spilled(), self._least_rows)

    def _encoded(self) -> Iterator[Chunk]:
        threads = self._rows.threads
        pieces = self._rows.pieces(self._piece_rows)
        chunks = in_order(threads, lambda piece: self._chunk(piece[1]), pieces, 2 * threads)
        yield from _joined(chunks, self._least_rows)  # at once: all pieces and all chunks would take twice the memory

    def _chunk(self, batch: Batch) -> Chunk:
        """The rows of a batch, encoded."""
        rows = len(batch[0])
        fine = np.empty((rows, len(self._layout.splines)), dtype=np.uint16) if self._fine else None
        weights = None if self._weights is None else self._weights.shares(batch[-1])
        columns = batch if weights is None else batch[:-1]
        codes, numbers = self._layout.chunk(columns, fine)
        chunk = Chunk(codes, numbers, self._target(columns), () if fine is None else (fine,), weights)
        if self._features is None:
            return chunk
        frequencies = self._features.frequencies
        features = self._features(chunk.numbers if frequencies is None else self._layout.turned(chunk, frequencies))
        return Chunk(np.empty((rows, 0), dtype=np.int32), on_lattice(features), chunk.target, weights=weights)

    def _target(self, batch: Batch) -> Floats:
        """The target of these rows: a number in [-1, 1], a class as -1 or 1, or, of more classes, its place."""
        block = self._geometry.target
        if block is None:
            return np.zeros(len(batch[0]))
        values = batch[-1]
        if block.kind == "slope":
            scaled = np.empty((1, len(values)))
            encode_numbers([block], [values], scaled, STEP)
            return np.asarray(scaled[0] / STEP, dtype=np.float64)
        codes = level_codes(block, values).astype(np.float64)
        return np.asarray(codes if block.kind == "levels" else 2 * codes - 1, dtype=np.float64)

    # -- weights -----------------------------------------------------------------------------------

    @property
    def weighted(self) -> bool:
        """Whether rows count by weights."""
        return self._weights is not None or self._by_class is not None

    def with_class_weights(self, by_class: Floats) -> CachedDesign:
        """The same rows, those of every class weighed by a number from 0 to 1, the first class first."""
        made = object.__new__(type(self))
        made._share(self)
        made._by_class, made._changed = by_class, partial(Weighed, by_class)
        return made

    # -- sums --------------------------------------------------------------------------------------

    def gradient(self, weights: Floats, respond: RowResponse, most_slope: float) -> Floats:
        """The sum over all rows of x respond(x'weights, target)', of the shape of `weights`: (columns, classes).

        Responses are cut at `most_slope` in size. Weights that are no numbers, or too long, have no gradient: NaN.
        """
        if not float(np.abs(weights).max(initial=0.0)) <= LONGEST:
            return np.full(weights.shape, np.nan)
        with one_blas_thread():
            predictors, unit = Predictors.of(self._coded, weights), slope_unit(most_slope)
            one_pass = GradientPass(predictors, respond, most_slope, unit, self.n_rows)
            return one_pass.total(self.total(one_pass.on_chunk)[0])

    def _predictors(self, weights: Floats) -> Predictors:
        with one_blas_thread():
            return Predictors.of(self._coded, weights)

    def cells(self, weights: Floats, residuals: Residuals | None = None) -> InteractionCells:
        """The rows as cells of their columns, with the predictors of these weights: integers, few enough digits long
        that predictors are exact in floats (EXACT_BITS); where the target is a number, with what they exceed it by.
        """
        of_chunk = self._of_chunk(weights, residuals)
        if self._kept is not None:
            return WorkerCells(self, of_chunk)
        chunks = self._every_chunk()
        if (by_class := self._by_class) is not None:
            chunks = (chunk.weighed(by_class) for chunk in chunks)
        cells, scores, sides, fine, shares = zip(*map(of_chunk.arrays, chunks), strict=True)
        return InteractionCells(
            self._layout,
            np.concatenate(cells, axis=1),
            np.concatenate(scores),
            np.concatenate(sides),
            np.concatenate(fine) if self._fine else None,
            np.concatenate(shares) if self.weighted else None,
        )

    def _of_chunk(self, weights: Floats, residuals: Residuals | None) -> ChunkCells:
        return ChunkCells(self._layout, self._predictors(weights), self._fine, residuals)

    def sample(self) -> SampledDesign:
        """Rows of the whole table, as many as a solver can use to learn how the loss curves."""
        return self._sampled(self._counted(max(SAMPLE_VALUES // self.n_columns, LEAST_SAMPLE * self.n_columns)))

    def _counted(self, most: int) -> CountedRows:
        """At most so many different rows, which no order of rows changes: the first of those for a Hessian, which are
        chosen once.
        """
        held = self._smallest
        if held is None or held.most < most:
            hashed = RowHash.of(self._coded, len(self._layout.number_columns) if self._coded else self.n_columns)
            wanted = max(1, most, self.hessian_rows)
            held = counted_rows(lambda task: self.total(task)[0], self.n_rows, hashed, wanted)
            self._smallest = held
        return held.first(most)

    def _sampled(self, found: CountedRows) -> SampledDesign:
        counts, weights = found.counts.astype(np.float64), found.rows.weights
        rows, weighed = int(found.counts.sum()), counts if weights is None else counts * weights
        return SampledDesign(self._dense(found.rows), found.rows.target, weighed, self.n_rows / rows, rows)

    @property
    def hessian_rows(self) -> int:
        """From how many rows `hessian` estimates: as many as take no longer than a few passes over all of them.

        A number is multiplied far faster than a code is looked up.
        """
        codes = len(self._layout.groups) if self._features is None else 0
        looked_up = codes + (self._width - codes) / NUMBERS_PER_CODE
        by_time = int(VALUES_PER_PRODUCT * self.n_rows * looked_up) // self.n_columns**2
        return min(self.n_rows // LARGEST_SHARE, by_time, MOST_HESSIAN_ROWS)

    def hessian(self, weights: Floats, curvature: RowResponse) -> Floats:
        """As SampledDesign.hessian, from many more rows, which are not all in memory at once as they are multiplied."""
        found = self._counted(self.hessian_rows)

        def task(part: CountedRows) -> Floats:
            return replace(self._sampled(part), weight=1.0).hessian(weights, curvature)

        with one_blas_thread():
            pieces = found.pieces(max(SHORT_ROWS, CHUNK_VALUES // self.n_columns))
            products = in_order(self._rows.threads, task, pieces, 2 * self._rows.threads)
            total = next(products)
            for part in products:
                total += part
        return np.asarray(total * (self.n_rows / int(found.counts.sum())))

    def rounding(self, weights: Floats, most_slope: float, most_curvature: float, offset: float = 0.0) -> float:
        """The most that rounding can have moved a sum `gradient` with slopes of that size, in L2, for these weights."""
        geometry = self._geometry
        norm, entries = (
            (geometry.l2, geometry.intercept + len(geometry.blocks))
            if self._features is None
            else (self._features.norms.l2, self.n_columns)
        )
        length, classes = float(np.linalg.norm(weights)), weights.shape[1]
        return most_rounding(self.n_rows, norm, entries, length, most_slope, most_curvature, offset, classes)


@dataclass(frozen=True)
class SampledDesign:
    """A part of the rows, each standing for `weight` times as many as there are of it.

    Inside a fit only: nothing that leaves depends on which rows these are.
    """

    _design: Floats
    _target: Floats
    _counts: Floats
    weight: float
    n_rows: int
    """How many rows there are, equal ones counted."""

    def gradient(self, weights: Floats, respond: RowResponse) -> Floats:
        """As CachedDesign.gradient, estimated."""
        return self.weight * (self._design.T @ self._responses(weights, respond))

    def hessian(self, weights: Floats, curvature: RowResponse) -> Floats:
        """The sum over all rows of x x' curvature(x'weights, target), estimated, one matrix per class: (classes,
        columns, columns).
        """
        curvatures = self._responses(weights, curvature)
        return self.weight * np.stack(
            [_symmetric_product(self._design * column[:, None], self._design) for column in curvatures.T]
        )

    def _responses(self, weights: Floats, respond: RowResponse) -> Floats:
        """Responses, each as often as its row occurs: (rows, classes)."""
        scores = self._design @ weights
        found = respond(scores[:, 0], self._target)[:, None] if weights.shape[1] == 1 else respond(scores, self._target)
        return np.asarray(found * self._counts[:, None])


@dataclass(frozen=True)
class Weighed:
    """A task on rows that are weighed by their class."""

    by_class: Floats
    task: ChunkTask[Chunk]

    def __call__(self, first: int, chunk: Chunk) -> Sums:
        return self.task(first, chunk.weighed(self.by_class))


def _symmetric_product(left: Floats, right: Floats) -> Floats:
    """left'right, which is symmetric but for rounding: entries above the diagonal are those of one product to the bit,
    and of the others most are copied from there.
    """
    columns = left.shape[1]
    ends = [columns * part // PRODUCT_PARTS // ALIGNED * ALIGNED for part in range(PRODUCT_PARTS)] + [columns]
    product = np.empty((columns, columns))
    for start, end in pairwise(ends):
        product[start:end, start:] = left[:, start:end].T @ right[:, start:]
        product[end:, start:end] = product[start:end, end:].T
    return product


def _joined(chunks: Iterator[Chunk], least: int) -> Iterator[Chunk]:
    """The same rows with no chunk shorter than that but the last: a stream may come in very small batches."""
    short: list[Chunk] = []
    length = 0
    for chunk in chunks:
        short.append(chunk)
        length += len(chunk)
        if length >= least:
            yield short[0] if len(short) == 1 else Chunk.joined(short)
            short, length = [], 0
    if short:
        yield short[0] if len(short) == 1 else Chunk.joined(short)


def _too_many_levels() -> DataError:
    return DataError(
        f"A category with more than {LARGEST_BLOCK} levels was given. Join levels in the schema. Nothing was charged."
    )


def _too_wide(columns: int) -> DataError:
    return DataError(
        f"A table with {columns:,} encoded columns was given, more than 32-bit positions can address. Leave out "
        "columns or join levels. Nothing was charged."
    )
