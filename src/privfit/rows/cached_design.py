"""Rows for fits that read them many times: encoded once, kept small in memory, and summed pass after pass.

A linear predictor is a few look-ups, and a sum of columns a few counts: sparse products (layout.py). The sums here are
real numbers, added in a fixed order; `rounding` bounds their error.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from privfit.features import FeatureMap
from privfit.rows.encoding import encode_numbers, level_codes
from privfit.rows.interactions import InteractionCells
from privfit.rows.layout import MOST_CODES, STEP, Chunk, Layout
from privfit.rows.memory import half_of_memory, other_rows, read_again, read_once
from privfit.rows.passes import added_in_place, in_order, pairwise_sum
from privfit.rows.rows import Rows, one_blas_thread
from privfit.tables import Batch, DataError

Floats = NDArray[np.float64]
Piece = TypeVar("Piece")
Made = TypeVar("Made")
RowResponse = Callable[[Floats, Floats], Floats]
"""From predictors (rows, or rows by classes) and targets to what each row adds, times its columns; one value per
predictor.
"""

CHUNK_ROWS = 1 << 17
USUAL_ROWS = 1 << 15
MANY_CHUNKS = 16
CHUNK_VALUES = 1 << 21
SHORT_ROWS = 1 << 10
LARGEST_BLOCK = 1 << 16
MOST_PLACES = (1 << 31) - 1
SAMPLE_VALUES = 1 << 20
LEAST_SAMPLE = 8
LARGEST_SHARE = 32
VALUES_PER_PRODUCT = 100
NUMBERS_PER_CODE = 16
UNIT_ROUNDOFF = 2.0**-53
EXACT_BITS = 36
"""Whole-number weights below 2^36 / columns times numbers in steps of 2^-16 add up exactly in floats, in any order."""


class CachedDesign:
    """The rows of a table for several passes.

    Hands out sums over all rows, and sums over an evenly spread part of them; never a row. With `fine`, `cells` has the
    fine cells of numbers too.
    """

    def __init__(
        self, rows: Rows, features: FeatureMap | None = None, most_bytes: int | None = None, fine: bool = False
    ) -> None:
        self._rows = rows
        self._layout = Layout(rows.geometry)
        self._fine = fine and features is None
        self._features = features
        self.n_columns = features.n_columns if features is not None else rows.geometry.n_columns
        self._most_bytes = most_bytes if most_bytes is not None else half_of_memory()
        if any(size > LARGEST_BLOCK for size in self._layout.sizes()):
            raise DataError(
                f"A category with more than {LARGEST_BLOCK} levels was given. Join levels in the schema. Nothing was "
                "charged."
            )
        if (
            max((self._longest + self._piece_rows + SHORT_ROWS) * len(self._layout.groups), self._layout.n_codes)
            > MOST_PLACES
        ):
            raise DataError(
                f"A table with {rows.geometry.n_columns:,} encoded columns was given, more than places in 32 bits can "
                "tell. Leave out columns or join levels. "
                "Nothing was charged."
            )
        self._chunks: list[Chunk] | None = None
        self._first_pass()

    def _first_pass(self) -> None:
        """Read everything once: keep it if it fits, count it in any case, and meet every error that the table holds
        before anything is charged.
        """
        with one_blas_thread():
            chunks, self.n_rows = read_once(
                _joined(self._encoded(), SHORT_ROWS),
                self._rows,
                self._most_bytes,
                lambda chunk: len(chunk.target),
                lambda chunk: chunk.nbytes,
            )
        self._chunks = (
            None if chunks is None else list(_joined(_taken(chunks), min(self._longest, self.n_rows // MANY_CHUNKS)))
        )

    def _encoded(self) -> Iterator[Chunk]:
        def pieces() -> Iterator[tuple[Batch, int, int]]:
            for batch in self._rows.batches():
                length = len(batch[0])
                for start in range(0, length, self._piece_rows):
                    yield batch, start, min(start + self._piece_rows, length)

        with ThreadPoolExecutor(self._rows.threads) as pool:
            yield from in_order(pool, lambda piece: self._encode(*piece), pieces(), 2 * self._rows.threads)

    @property
    def _piece_rows(self) -> int:
        """How many rows are encoded at a time: fewer of wide ones, because several pieces wait in memory."""
        return max(SHORT_ROWS, min(USUAL_ROWS, CHUNK_VALUES // max(1, self._width)))

    @property
    def _longest(self) -> int:
        """From how many rows on a chunk takes no further piece: threads wait for each other between the steps of a
        chunk, so that few chunks are best.
        """
        return max(SHORT_ROWS, min(CHUNK_ROWS - USUAL_ROWS, CHUNK_VALUES // max(1, self._width)))

    @property
    def _width(self) -> int:
        """How many values a kept row has."""
        return len(self._layout.groups) + len(self._layout.number_columns) if self._features is None else self.n_columns

    def _encode(self, batch: Batch, start: int, stop: int) -> Chunk:
        fine = np.empty((stop - start, len(self._layout.with_knots)), dtype=np.uint16) if self._fine else None
        chunk = Chunk(
            *self._layout.chunk(batch, start, stop, fine),
            self._target(batch, start, stop),
            () if fine is None else (fine,),
        )
        if self._features is None:
            return chunk
        frequencies = self._features.frequencies
        features = self._features(chunk.numbers if frequencies is None else self._layout.turned(chunk, frequencies))
        return Chunk(np.empty((stop - start, 0), dtype=np.int32), features, chunk.target)

    def _target(self, batch: Batch, start: int, stop: int) -> Floats:
        """The target of these rows: a number in [-1, 1], a class as -1 or 1, or, of more classes, its place."""
        block = self._rows.geometry.target
        if block is None:
            return np.zeros(stop - start)
        values = batch[-1][start:stop]
        if block.kind == "slope":
            scaled = np.empty((1, stop - start))
            encode_numbers([block], [values], scaled, STEP)
            return np.asarray(scaled[0] / STEP, dtype=np.float64)
        codes = level_codes(block, values).astype(np.float64)
        return np.asarray(codes if block.kind == "levels" else 2 * codes - 1, dtype=np.float64)

    def _every_chunk(self) -> Iterator[Chunk]:
        if self._chunks is not None:
            yield from self._chunks
            return
        yield from read_again(_joined(self._encoded(), SHORT_ROWS), self.n_rows, lambda chunk: len(chunk.target))

    # -- sums --------------------------------------------------------------------------------------

    def gradient(self, weights: Floats, respond: RowResponse) -> Floats:
        """The sum over all rows of x respond(x'weights, target)', of the shape of `weights`: (columns, classes)."""
        table = self._table(weights)

        def task(chunk: Chunk) -> list[Floats]:
            return self._pull(chunk, table, weights, respond)

        with one_blas_thread(), ThreadPoolExecutor(self._rows.threads) as pool:
            totals = pairwise_sum(in_order(pool, task, self._every_chunk(), 4 * self._rows.threads))
        counts, numbers = totals
        return numbers if self._features is not None else self._layout.gather(counts, numbers)

    def _table(self, weights: Floats) -> Floats:
        """What every code adds to the predictors. Rows of features have no codes."""
        return self._layout.look_up(weights) if self._features is None else np.empty((0, weights.shape[1]))

    def _pull(self, chunk: Chunk, table: Floats, weights: Floats, respond: RowResponse) -> list[Floats]:
        indicators = self._layout.indicators(chunk)
        scores = self._scores(chunk, table, weights, indicators)
        if weights.shape[1] > 1:
            return self._gathered(chunk, respond(scores, chunk.target))
        counts, numbers = self._gathered(
            chunk, respond(scores[:, 0], chunk.target)
        )  # a vector is multiplied faster than a column
        return [counts[:, None], numbers[:, None]]

    def _gathered(self, chunk: Chunk, pull: Floats) -> list[Floats]:
        """What rows add, summed per code and per number column: few rows at a time, so that rounding grows with their
        number only.
        """
        total: list[Floats] = []
        first = 0
        for part in chunk.parts(USUAL_ROWS):
            own = pull[first : first + len(part.target)]
            first += len(part.target)
            sums = [self._layout.transposed(part) @ own, part.numbers.T @ own]
            total = added_in_place(total, sums) if total else sums
        return total

    def _scores(self, chunk: Chunk, table: Floats, weights: Floats, indicators: Any = None) -> Floats:
        own = weights if self._features is not None else weights[self._layout.number_columns]
        indicators = self._layout.indicators(chunk) if indicators is None else indicators
        scores = indicators @ table if table.shape[1] > 1 else (indicators @ table[:, 0])[:, None]
        return np.asarray(scores + chunk.numbers @ own if len(own) else scores, dtype=np.float64)

    def cells(self, weights: Floats) -> InteractionCells:
        """The rows as cells of their columns, with the predictors of these weights: whole numbers, few enough digits
        long that predictors are exact in floats (EXACT_BITS).
        """
        table, parts = self._table(weights), []
        for chunk in self._every_chunk():
            whole = np.floor(self._scores(chunk, table, weights)[:, 0]).astype(np.int64)
            parts.append((self._layout.cells(chunk), whole, chunk.target > 0, chunk.fine))
        cells, scores, sides, fine = zip(*parts, strict=True)
        return InteractionCells(
            self._layout,
            np.concatenate(cells, axis=1),
            np.concatenate(scores),
            np.concatenate(sides),
            np.concatenate([piece for pieces in fine for piece in pieces]) if self._fine else None,
        )

    def sample(self) -> SampledDesign:
        """Rows spread evenly over the table, as many as a solver can use to learn how the loss curves."""
        most = max(SAMPLE_VALUES // self.n_columns, LEAST_SAMPLE * self.n_columns)
        with one_blas_thread():
            parts = [(self._dense(part), part.target) for part in self._spread(most)]
        design, target = np.concatenate([part[0] for part in parts]), np.concatenate([part[1] for part in parts])
        return SampledDesign(design, target, self.n_rows / len(target))

    def _spread(self, most: int) -> Iterator[Chunk]:
        """At most so many rows, spread evenly over the table."""
        step = max(1, -(-self.n_rows // max(1, most)))
        first = 0
        for chunk in self._every_chunk():
            yield chunk.of(slice(first, None, step))
            first = (first - len(chunk.target)) % step

    def _dense(self, chunk: Chunk) -> Floats:
        return chunk.numbers if self._features is not None else self._layout.dense(chunk)

    @property
    def hessian_rows(self) -> int:
        """From how many rows `hessian` estimates: as many as take no longer than a few passes over all of them.

        A number is multiplied far faster than a code is looked up.
        """
        codes = len(self._layout.groups) if self._features is None else 0
        looked_up = codes + (self._width - codes) / NUMBERS_PER_CODE
        return min(self.n_rows // LARGEST_SHARE, int(VALUES_PER_PRODUCT * self.n_rows * looked_up) // self.n_columns**2)

    def hessian(self, weights: Floats, bend: RowResponse) -> Floats:
        """As SampledDesign.hessian, from many more rows, of which none is kept."""

        def task(part: Chunk) -> list[Floats]:
            return [
                np.array(float(len(part.target))),
                SampledDesign(self._dense(part), part.target, 1.0).hessian(weights, bend),
            ]

        with one_blas_thread(), ThreadPoolExecutor(self._rows.threads) as pool:
            rows, products = pairwise_sum(in_order(pool, task, self._spread(self.hessian_rows), 2 * self._rows.threads))
        return np.asarray(products * (self.n_rows / rows))

    def rounding(self, weights: Floats, most_slope: float, most_curvature: float, offset: float = 0.0) -> float:
        """The most that rounding in floats can have moved a sum `gradient` with slopes of that size, in L2, for these
        weights.

        Per row: the predictor (as many additions as blocks, and an offset it is computed at), the slope itself, and its
        place in a sum over a chunk and over chunks.
        """
        geometry = self._rows.geometry
        norm, entries = (
            (geometry.l2, geometry.intercept + len(geometry.blocks))
            if self._features is None
            else (self._features.norms.l2, self.n_columns)
        )
        return self.most_rounding(
            self.n_rows, norm, entries, float(np.linalg.norm(weights)), most_slope, most_curvature, offset
        )

    @staticmethod
    def most_rounding(
        rows: int,
        norm: float,
        entries: int,
        length: float,
        most_slope: float,
        most_curvature: float,
        offset: float = 0.0,
    ) -> float:
        """The same from public facts: for this many rows of this length with so many blocks or dense columns, and
        weights of this length.

        Guarantee: docs/proofs/perturbation.md, Lemma 5.
        """
        additions = USUAL_ROWS + SHORT_ROWS + 2 * math.log2(rows + 2) + MOST_CODES
        predictor = (entries + 8) * norm * length + 4 * offset
        return 2 * UNIT_ROUNDOFF * rows * norm * ((additions + 16) * most_slope + most_curvature * predictor)


class DesignSubset(CachedDesign):
    """The rows that were dealt to one part. Chunks are those of all rows with the others left out."""

    def __init__(self, kept: CachedDesign, mine: NDArray[np.bool_]) -> None:
        self.__dict__.update(kept.__dict__)
        self._all, self._mine = kept, mine
        self.n_rows = int(mine.sum())

    def _every_chunk(self) -> Iterator[Chunk]:
        first = 0
        for chunk in self._all._every_chunk():
            mine = self._mine[first : first + len(chunk.target)]
            first += len(chunk.target)
            if len(mine) < len(chunk.target):
                raise other_rows()
            yield chunk.of(np.flatnonzero(mine))  # places, which are taken faster than a mask is gone through

    def sample(self) -> SampledDesign:
        """Rows spread evenly over the part; none, if it has none."""
        return super().sample() if self.n_rows else SampledDesign(np.zeros((0, self.n_columns)), np.zeros(0), 1.0)

    def rounding(self, weights: Floats, most_slope: float, most_curvature: float, offset: float = 0.0) -> float:
        """As for all rows, whose number of chunks a part has."""
        return self._all.rounding(weights, most_slope, most_curvature, offset)

    def mistakes(self, weights: Floats) -> int:
        """How many rows are not in the class that these weights give them.

        Weights are rounded to whole numbers so that sums over columns are exact: a row's side then depends on that row
        alone, whatever the order of sums. Features of a kernel are no whole numbers; for them a row's side is computed
        row by row.
        """
        largest = float(np.abs(weights).max()) or 1.0
        whole = np.rint(weights / largest * 2.0 ** (EXACT_BITS - self.n_columns.bit_length()))
        table = self._table(whole)
        return sum(int(np.sum(self._is_wrong(chunk, table, whole))) for chunk in self._every_chunk())

    def _is_wrong(self, chunk: Chunk, table: Floats, weights: Floats) -> NDArray[np.bool_]:
        if self._features is not None:  # not by a matrix product, in which one row could change how another is rounded
            scores = np.stack([(chunk.numbers * column).sum(axis=1) for column in weights.T], axis=1)
        else:
            scores = self._scores(chunk, table, weights)
        if scores.shape[1] == 1:
            return np.asarray((scores[:, 0] > 0) != (chunk.target > 0))
        return np.asarray(np.argmax(scores, axis=1) != chunk.target.astype(np.intp))


@dataclass(frozen=True)
class SampledDesign:
    """A part of the rows, each standing for `weight` of them.

    Inside a fit only: nothing that leaves depends on which rows these are.
    """

    _design: Floats
    _target: Floats
    weight: float

    @property
    def n_rows(self) -> int:
        """How many they are."""
        return len(self._target)

    def gradient(self, weights: Floats, respond: RowResponse) -> Floats:
        """As CachedDesign.gradient, estimated."""
        scores = self._design @ weights
        pull = respond(scores[:, 0], self._target)[:, None] if weights.shape[1] == 1 else respond(scores, self._target)
        return self.weight * (self._design.T @ pull)

    def hessian(self, weights: Floats, bend: RowResponse) -> Floats:
        """The sum over all rows of x x' bend(x'weights, target), estimated, one matrix per class: (classes, columns,
        columns).
        """
        scores = self._design @ weights
        bends = bend(scores[:, 0], self._target)[:, None] if weights.shape[1] == 1 else bend(scores, self._target)
        return self.weight * np.stack(
            [(self._design * bends[:, k, None]).T @ self._design for k in range(bends.shape[1])]
        )


def _joined(chunks: Iterator[Chunk], least: int) -> Iterator[Chunk]:
    """The same rows with no chunk shorter than that but the last: a stream may come in very small batches."""
    short: list[Chunk] = []
    length = 0
    for chunk in chunks:
        short.append(chunk)
        length += len(chunk.target)
        if length >= least:
            yield Chunk.joined(short)
            short, length = [], 0
    if short:
        yield Chunk.joined(short)


def _taken(chunks: list[Chunk]) -> Iterator[Chunk]:
    """The chunks, each of which leaves the list, and memory, as soon as it is used up."""
    chunks.reverse()
    while chunks:
        yield chunks.pop()
