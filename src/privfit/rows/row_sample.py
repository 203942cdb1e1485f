"""Rows that a solver starts from, chosen by a hash of what they hold: the same ones in whatever order rows come.

Of all different rows, those with the smallest hashes are taken, with the number of times that each occurs. So rows that
are equal are taken together, and a table of few different rows is taken whole. They steer time and nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from privfit.rows.fixed_point import FEATURE_BITS, FLOAT_BITS, NUMBER_BITS
from privfit.rows.layout import STEP, Layout
from privfit.rows.workers import Chunk, Codes, Sums

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
