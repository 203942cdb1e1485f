"""Rows for several passes: encoded once, kept in memory where they fit and in a temporary file where they do not; and a
sample of them, from which a solver starts.

The sample is chosen by a hash of what rows hold: the same rows in whatever order they come. Of all different rows,
those with the smallest hashes are taken, with the number of times that each occurs. So rows that are equal are taken
together, and a table of few different rows is taken whole. They steer time and nothing else.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sized
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any, Generic, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from privfit.rows.errors import read_again
from privfit.rows.fixed_point import FEATURE_BITS, FLOAT_BITS, NUMBER_BITS
from privfit.rows.layout import STEP, Layout
from privfit.rows.rows import Rows
from privfit.rows.workers import (
    Chunk,
    ChunkTask,
    Codes,
    KeptSum,
    Sums,
    added,
    in_order,
    kept_bytes,
    one_blas_thread,
)
from privfit.tables import NOT_CHARGED, ArrayFile, Arrays, Batch, DataError, Persisted, numbered_pieces

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Hashes = NDArray[np.uint64]

LARGEST_HASH = 2**64 - 1
"""All rows have a hash of at most this."""
LOOKED_AT = 1.25
"""Times as many rows are looked at as are wanted: more would take longer, of fewer too few might be different."""
AT_LEAST_MORE = 64
"""Rows more than wanted that are looked at, at least: few are drawn less evenly."""
MOST_HELD = 4
"""Times as many rows are held as are wanted, at most: they are sorted when there are more."""
OF_TARGET, OF_NUMBERS = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xD1B54A32D192ED03)
"""Odd numbers by which parts of a row are multiplied before they are added, modulo 2^64."""
STAYS_HERE = ("_rows", "_chunks", "_file", "_kept", "_smallest")
"""What is not sent to workers of rows that are read many times."""


class Kept(Sized, Protocol):
    """Some encoded rows in memory."""

    @property
    def nbytes(self) -> int:
        """How much memory they take."""
        ...


Chunks = TypeVar("Chunks", bound=Kept)


class CachedRows(ABC, Generic[Chunks]):
    """The rows of a table for several passes: kept in memory, or in a temporary file where they take more than
    `most_bytes`; on the workers of a cluster where the table is there.

    The table is read once, before the charge. What comes after it never meets the table again, and so no error of it.
    (Workers that were lost read their partitions again.) Subclasses say how rows are encoded, and hand out sums over
    them; never a row.
    """

    _piece_rows: int
    """Rows that are encoded at a time."""
    _length: Callable[[Chunks], int] = staticmethod(len)
    """How many rows a chunk has."""
    _changed: Callable[[ChunkTask[Chunks]], ChunkTask[Chunks]] | None = None
    """What is made of every task: one on rows that are weighed."""

    def __init__(self, rows: Rows, most_bytes: int | None = None) -> None:
        self._rows = rows
        self._most_bytes = most_bytes
        self._chunks: list[Chunks] | None = None
        self._file: ArrayFile | None = None
        self._kept: Persisted | None = None
        self.n_rows = 0

    def __getstate__(self) -> dict[str, Any]:
        """What is sent to workers: how rows are encoded and summed, and no row."""
        return {name: value for name, value in self.__dict__.items() if name not in STAYS_HERE}

    @abstractmethod
    def _encode(self, batches: Iterator[Batch]) -> Iterator[Chunks]:
        """Batches of at most so many rows, encoded: here, or on a worker."""

    def _encoded(self) -> Iterator[Chunks]:
        """All rows, encoded, in one pass over the table."""
        return self._encode(piece for _, piece in self._rows.pieces(self._piece_rows))

    def _encode_all(self, batches: Iterator[Batch]) -> Iterator[Chunks]:
        """The batches of a partition, encoded on a worker."""
        with one_blas_thread():
            yield from self._encode(piece for _, piece in numbered_pieces(batches, self._piece_rows))

    @abstractmethod
    def _arrays(self, chunk: Chunks) -> Arrays:
        """The arrays that a chunk is made of."""

    @abstractmethod
    def _chunk_of(self, arrays: Arrays) -> Chunks:
        """The chunk that is made of these arrays."""

    def read(self) -> None:
        """Read everything once, keep it, and meet every error that the table or a full disk holds before anything is
        charged. A second call does nothing.
        """
        if self.n_rows:
            return
        if self._rows.on_workers:
            self._kept = self._rows.persist(self._encode_all)
            self.n_rows = self._rows.n_rows
            return
        most = kept_bytes(self._rows.max_memory) if self._most_bytes is None else self._most_bytes
        chunks: list[Chunks] = []
        held = 0
        with one_blas_thread():
            for chunk in self._encoded():
                chunks.append(chunk)
                held += chunk.nbytes
                if held > most:
                    self._spill(chunks)
        if self._file is not None:
            self._file.close_for_writing()
        self._chunks, self.n_rows = None if self._file is not None else chunks, self._rows.known_rows or 0

    def _spill(self, chunks: list[Chunks]) -> None:
        """Move chunks from memory to the end of the temporary file."""
        if self._file is None:
            self._file = ArrayFile()
        for chunk in chunks:
            self._file.append(self._arrays(chunk))
        chunks.clear()

    def _spilled(self) -> Iterator[Chunks]:
        """The rows from the temporary file, in the order in which they were read."""
        assert self._file is not None
        for number in range(len(self._file)):
            yield self._chunk_of(self._file.group(number))

    def _every_chunk(self) -> Iterator[Chunks]:
        """The rows from memory, from the temporary file or from workers.

        On workers a partition may be read again after the charge, where no error may depend on a row. What a row can do
        to a reader (a cell of the wrong kind, a query that panics on a value), it did in the first pass, before the
        charge: engines read the same bytes the same way twice. What fails here and did not then was changed from
        outside: a file was replaced, a disk failed.
        """
        if self._kept is None:
            yield from self._spilled() if self._chunks is None else self._chunks
            return
        try:
            yield from self._kept.chunks()
        except DataError as error:
            told = str(error).replace(NOT_CHARGED, "")
        else:
            return
        raise read_again(told)

    def total(self, task: ChunkTask[Chunks], side_by_side: bool = True) -> Sums:
        """The sums over all chunks of what a task makes of them and of the number of their first row: integers, so that
        neither chunks nor their order matter. Where rows are on workers, the task is sent there; here it runs in
        threads, or in this one, as functions of the user's own and what takes much memory do.
        """
        task = task if self._changed is None else self._changed(task)
        if self._kept is not None:
            return self._total_on_workers(task, self._kept)
        with one_blas_thread():
            if not side_by_side:
                return reduce(added, (task(first, chunk) for first, chunk in self._numbered()))
            threads = self._rows.threads
            return reduce(added, in_order(threads, lambda numbered: task(*numbered), self._numbered(), 4 * threads))

    def _numbered(self) -> Iterator[tuple[int, Chunks]]:
        """Every chunk with the number of its first row."""
        first = 0
        for chunk in self._every_chunk():
            yield first, chunk
            first += self._length(chunk)

    def _total_on_workers(self, task: ChunkTask[Chunks], kept: Persisted) -> Sums:
        if not kept.firsts[-1]:  # all rows are left out: nobody needs to be asked
            return task(0, next(self._encode(iter([self._rows._no_rows()]))))
        try:
            found = kept.run(KeptSum(task, self._length, kept.firsts), added)
        except DataError as error:
            told = str(error).replace(NOT_CHARGED, "")
        else:
            assert found is not None
            return found
        raise read_again(told)


# -- a sample by hashes ----------------------------------------------------------------------------


@dataclass(frozen=True)
class RowHash:
    """A hash of the codes, numbers, target and weight of every row of a chunk.

    Sums of integers below 2^53, so that no order of additions changes it. Two different rows may share a hash.
    """

    layout: Layout | None
    codes: Floats
    """What every code adds."""
    numbers: Floats
    """What numbers are multiplied by."""

    @classmethod
    def of(cls, layout: Layout | None, n_numbers: int) -> RowHash:
        """For rows in this layout, or, without one, for so many features."""
        bits = FEATURE_BITS if layout is None else NUMBER_BITS
        numbers = _mixed(np.arange(n_numbers, dtype=np.uint64)) >> np.uint64(
            64 - FLOAT_BITS + bits + n_numbers.bit_length()
        )
        n_codes, groups = (0, 0) if layout is None else (layout.n_codes, len(layout.groups))
        codes = _mixed(np.arange(n_codes, dtype=np.uint64)) >> np.uint64(64 - FLOAT_BITS + groups.bit_length())
        return cls(layout, codes.astype(np.float64), numbers.astype(np.float64) * 2.0**bits)

    def __call__(self, chunk: Chunk) -> Hashes:
        total = _modulo(chunk.target * STEP) * OF_TARGET
        if self.layout is not None and self.layout.groups:
            total += _modulo(self.layout.indicators(chunk) @ self.codes)
        if chunk.numbers.shape[1]:
            total += _modulo(chunk.numbers @ self.numbers) * OF_NUMBERS
        if chunk.weights is not None:
            total += np.ascontiguousarray(chunk.weights).view(np.uint64) * OF_NUMBERS
        return _mixed(total)


@dataclass(frozen=True)
class CountedRows:
    """Rows and how often each occurs: different ones in the order of their hashes, once `smallest` was asked for."""

    hashes: Hashes
    rows: Chunk
    counts: Integers
    most: int
    """How many of them are wanted: those with the smallest hashes."""

    @classmethod
    def of(cls, chunk: Chunk, hashes: Hashes, most: int, largest: int = LARGEST_HASH) -> CountedRows:
        """The rows of a chunk whose hash is not larger."""
        found = cls(hashes, chunk, np.ones(len(hashes), dtype=np.int64), most)
        return found if largest >= LARGEST_HASH else found._at(np.flatnonzero(hashes <= np.uint64(largest)))

    def __add__(self, other: CountedRows) -> CountedRows:
        joined = CountedRows(
            np.concatenate([self.hashes, other.hashes]),
            Chunk.joined([self.rows, other.rows]),
            np.concatenate([self.counts, other.counts]),
            self.most,
        )
        return joined.smallest() if len(joined.counts) > MOST_HELD * self.most else joined

    def smallest(self) -> CountedRows:
        """No more than are wanted, sorted, and equal ones counted as one."""
        found = self._at(np.argsort(self.hashes))
        alike, equal = found._neighbours()
        if not np.array_equal(alike, equal):  # different rows of one hash: their order must not be that of the table
            weights = [] if self.rows.weights is None else [self.rows.weights]
            columns = (self.hashes, *self.rows.codes.T, *self.rows.numbers.T, self.rows.target, *weights)
            found = self._at(np.lexsort(columns[::-1]))
            equal = found._neighbours()[1]
        if equal.any():
            firsts = np.flatnonzero(np.concatenate([[True], ~equal]))
            found = replace(found._at(firsts), counts=np.add.reduceat(found.counts, firsts))
        return found._at(slice(0, self.most))

    def first(self, rows: int) -> CountedRows:
        """Of rows in their order no more than so many."""
        return self if rows >= len(self.counts) else self._at(slice(0, max(1, rows)))

    def pieces(self, rows: int) -> Iterator[CountedRows]:
        """The same in pieces of at most so many different rows."""
        for start in range(0, len(self.counts), rows):
            yield self._at(slice(start, start + rows))

    def _neighbours(self) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """Which rows have the hash of the row before them, and which are equal to it."""
        alike = self.hashes[1:] == self.hashes[:-1]
        equal, places = alike.copy(), np.flatnonzero(alike)
        values: Floats | Codes
        weights = () if self.rows.weights is None else (self.rows.weights[:, None],)
        for values in (self.rows.codes, self.rows.numbers, self.rows.target[:, None], *weights):
            equal[places] &= (values[places] == values[places + 1]).all(axis=1)
        return alike, equal

    def _at(self, places: NDArray[np.intp] | slice) -> CountedRows:
        """These rows, without their fine cells."""
        held = self.rows
        weights = None if held.weights is None else held.weights[places]
        rows = Chunk(held.codes[places], held.numbers[places], held.target[places], weights=weights)
        return CountedRows(self.hashes[places], rows, self.counts[places], self.most)


@dataclass(frozen=True)
class SmallestHashes:
    """A task of `CachedRows.total`: the rows of a chunk with the smallest hashes. Adding merges them."""

    hashed: RowHash
    most: int
    largest: int

    def __call__(self, first: int, chunk: Chunk) -> Sums:
        found = CountedRows.of(chunk, self.hashed(chunk), self.most, self.largest)
        return [found.smallest() if len(found.counts) > self.most else found]


def counted_rows(
    total: Callable[[SmallestHashes], CountedRows], n_rows: int, hashed: RowHash, most: int
) -> CountedRows:
    """At most so many different rows of all chunks, those with the smallest hashes; `total` adds up what a task makes
    of all chunks.

    Where most rows are different, few of them have a hash as small as that: looking at a few more is enough. Where that
    leaves too few, the rows are gone through again.
    """
    likely = min(LARGEST_HASH, LARGEST_HASH * (int(LOOKED_AT * most) + AT_LEAST_MORE) // max(1, n_rows))
    found = total(SmallestHashes(hashed, most, likely)).smallest()
    enough = len(found.counts) == most or likely == LARGEST_HASH
    return found if enough else total(SmallestHashes(hashed, most, LARGEST_HASH)).smallest()


def _modulo(whole: Floats) -> Hashes:
    """Integers modulo 2^64."""
    return whole.astype(np.int64).view(np.uint64)


def _mixed(values: Hashes) -> Hashes:
    """A one-to-one function of 64 bits whose results look random (SplitMix64: Steele, Lea and Flood 2014)."""
    mixed = values + OF_TARGET
    mixed ^= mixed >> np.uint64(30)
    mixed *= np.uint64(0xBF58476D1CE4E5B9)
    mixed ^= mixed >> np.uint64(27)
    mixed *= np.uint64(0x94D049BB133111EB)
    mixed ^= mixed >> np.uint64(31)
    return mixed
