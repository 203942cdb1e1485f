"""Which rows of each person are used: at most m, chosen by keyed hashes.

A row's tag is a hash of the person, of what the row holds and of how many rows of that person hold the same before it;
of each person the rows with the m smallest tags are used. The choice is a function of the person's own rows and a key
that is drawn for one fit, so that one person can change m rows that are used, whatever the table holds. It is the same
multiset of rows in every order of the table and on every engine.

Memory is bounded: beyond what a fit may take the hashes of rows wait in temporary files, one for each part of the
persons, that have no name and that only their owner could read.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import IO

import numpy as np
from numpy.typing import NDArray

from privfit.rows.workers import in_order
from privfit.tables import CACHE, Batch, Values

Words = NDArray[np.uint64]
Entries = NDArray[np.uint64]
"""One line for each of the fields, and one column per row."""

HELD_BYTES = 1 << 26
"""Bytes of hashes that may wait in memory in any case: 32 a row. A fit's `max_memory` may allow more, and other rows go
to temporary files: 10,000,000 rows need 320 MB, or some 30 ns more a row (`papers/experiments/rows_left_out.py persons
--rows 10000000 --persons 3000000`)."""
PARTS = 64
"""Parts into which persons are divided by their hash, a power of two: each is sorted by itself, in memory, and has a
file beyond it."""
AHEAD = 4
"""Batches and parts that are in work at a time: time against memory. No command varies it."""
FIELDS = 4
"""What is kept of a row: both halves of its person's hash, a hash of its content, and its number."""
ODD = np.uint64(0x9E3779B97F4A7C15)
"""2^64 over the golden ratio: multiplies words of a row into its hash."""
MIXED = tuple((np.uint64(s), np.uint64(f)) for s, f in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)))
"""Shifts and factors of SplitMix64 (Steele, Lea and Flood 2014)."""
NOT_FIT = np.uint64(1 << 63)
"""Is added to the number of a row that could not be used."""
FEW_ROWS = 1 << 14
"""Rows that are hashed and sorted together, so that they stay close to the processor. No command varies it."""


@dataclass(frozen=True)
class ChosenRows:
    """The rows that are used, by their place in the table, and how many persons there are."""

    bits: NDArray[np.uint8]
    persons: int
    rows: int
    """How many rows the table has."""

    def used(self, first: int, count: int) -> NDArray[np.bool_]:
        """Which of `count` rows from number `first` on are used."""
        start = first // 8
        own = np.unpackbits(self.bits[start : -(-(first + count) // 8)])
        return own[first - 8 * start :][:count].astype(bool)


class PersonRows:
    """Takes the rows of a table batch by batch, and chooses at most `most` of each person.

    Guarantee: the rows that are chosen of a person depend on that person's rows and the key alone, and are at most
    `most`; docs/proofs/persons.md, Theorem 1.
    """

    def __init__(self, most: int, held_bytes: int = 0) -> None:
        self._most, self._held_bytes = most, held_bytes
        self._held: list[list[Entries]] = [[] for _ in range(PARTS)]
        self._files: list[IO[bytes]] = []
        self._lengths: list[list[int]] = [[] for _ in range(PARTS)]
        self._rows = self._bytes = 0

    def add(self, batch: Entries, ends: NDArray[np.intp]) -> None:
        """Take the next rows, as `entries` makes them of a batch."""
        batch[3] += np.uint64(self._rows)
        for held, own in zip(self._held, np.split(batch, ends, axis=1), strict=True):
            held.append(own)
        self._rows += batch.shape[1]
        self._bytes += batch.nbytes
        if self._bytes > max(self._held_bytes, HELD_BYTES):
            self._spill()

    def chosen(self, threads: int) -> ChosenRows:
        """The rows that are used, of all that were taken."""
        bits, persons = np.full(-(-self._rows // 8), 0xFF, dtype=np.uint8), 0
        choose = partial(_left_out, most=self._most)
        for rows, own in in_order(threads, choose, self._parts(), AHEAD):
            np.bitwise_and.at(bits, rows // 8, (~(0x80 >> (rows % 8))).astype(np.uint8))
            persons += own
        return ChosenRows(bits, persons, self._rows)

    def _parts(self) -> Iterator[Entries]:
        """The rows of some persons at a time; files are closed, and so are gone, as soon as they are read."""
        while self._held:
            own, lengths = self._held.pop(), self._lengths.pop()
            if self._files:
                with self._files.pop() as file:  # what came first stands first, wherever it was kept
                    file.seek(0)
                    words = np.frombuffer(file.read(), dtype=np.uint64)
                blocks = np.split(words, np.cumsum(lengths)[:-1] * FIELDS)
                own = [*(block.reshape(FIELDS, -1) for block in blocks), *own]
            yield np.concatenate(own, axis=1) if own else np.empty((FIELDS, 0), dtype=np.uint64)

    def _spill(self) -> None:
        """Write what is held to the files, one for each part of the persons."""
        if not self._files:
            self._files = [tempfile.TemporaryFile(prefix="privfit-", dir=os.environ.get(CACHE)) for _ in range(PARTS)]  # noqa: SIM115
        for file, held, lengths in zip(self._files, self._held, self._lengths, strict=True):
            block = np.concatenate(held, axis=1)
            file.write(block.data)
            lengths.append(block.shape[1])
            held.clear()
        self._bytes = 0


def entries(
    persons: NDArray[np.void], batch: Batch, fit: NDArray[np.bool_], key: bytes
) -> tuple[Entries, NDArray[np.intp]]:
    """What is kept of the rows of a batch, part by part, and where parts end: whose they are, what they hold, and which
    of them could be used at all.

    Persons count, whether or not one of their rows could be used.
    """
    part = (persons["high"] & np.uint64(PARTS - 1)).astype(np.uint8)
    order = np.argsort(part, kind="stable")
    found = np.empty((FIELDS, len(order)), dtype=np.uint64)
    for line, words in zip(found, (persons["high"], persons["low"], content_hash(batch, key)), strict=False):
        np.take(words, order, out=line, mode="clip")  # the way without a copy
    found[3] = order
    if not fit.all():
        found[3, ~fit[order]] |= NOT_FIT
    return found, np.cumsum(np.bincount(part, minlength=PARTS))[:-1]


def content_hash(batch: Batch, key: bytes) -> Words:
    """A hash of what each row holds: numbers bit by bit, with one zero and one NaN, and positions of levels."""
    found = np.full(len(batch[0]), np.frombuffer(key, dtype="<u8")[0])
    for start in range(0, len(found), FEW_ROWS):
        own = found[start : start + FEW_ROWS]
        for values in batch:
            own ^= _words(values[start : start + FEW_ROWS])
            own *= ODD
            own ^= own >> np.uint64(29)
    return found


def _words(values: Values) -> Words:
    if values.dtype != np.float64:
        return values.astype(np.int64).view(np.uint64)
    numbers = values + 0.0  # minus zero becomes zero
    absent = np.isnan(numbers)
    if absent.any():
        numbers[absent] = np.nan
    return numbers.view(np.uint64)


def _left_out(part: Entries, most: int) -> tuple[NDArray[np.int64], int]:
    """The numbers of the rows that are not used, and how many persons there are.

    Of each person those with the smallest tags are used.
    """
    high, low, content, row = part
    if not len(row):
        return np.empty(0, dtype=np.int64), 0
    order, first = _by_person(high, low)
    starts, not_fit = np.flatnonzero(first), np.flatnonzero(row >= NOT_FIT)
    sizes = np.diff(starts, append=len(row))
    if len(not_fit):
        fit = (row < NOT_FIT)[order]
        sizes, order = np.add.reduceat(fit, starts, dtype=np.intp), order[fit]
    many = sizes > most
    order, sizes = order.take(np.flatnonzero(np.repeat(many, sizes))), sizes[many]
    found = [row[not_fit] ^ NOT_FIT]
    for rows, persons in _few_at_a_time(sizes):
        own = order[rows]
        found.append(row[own[_beyond(sizes[persons], high[own], content[own], most)]])
    return np.concatenate(found).astype(np.int64), len(starts)


def _few_at_a_time(sizes: NDArray[np.intp]) -> Iterator[tuple[slice, slice]]:
    """Rows and their persons, of whom each has so many, in pieces of about `FEW_ROWS` rows."""
    ends = np.append(0, np.cumsum(sizes))
    cuts = np.searchsorted(ends, np.arange(0, ends[-1] + FEW_ROWS, FEW_ROWS)).clip(max=len(sizes))
    for first, last in pairwise(cuts.tolist()):
        yield slice(ends[first], ends[last]), slice(first, last)


def _beyond(sizes: NDArray[np.intp], high: Words, content: Words, most: int) -> NDArray[np.intp]:
    """The places of the rows without the smallest tags of each person, for rows in the order of their persons, of whom
    each has so many.

    All sorts are stable: where tags are equal, the order of that person's own rows decides, and no other person's.
    """
    person = np.repeat(np.arange(len(sizes)), sizes)
    tags = _tags(high, content, np.zeros(len(person), dtype=np.uint64))
    order, first = _ranked(person, tags)
    if not first.all():  # rows that hold the same: each has an occurrence number, and a tag of its own
        occurrence = np.empty(len(person), dtype=np.uint64)
        occurrence[order] = _place(first)
        order, _ = _ranked(person, _tags(high, content, occurrence))
    before = np.repeat(np.cumsum(sizes) - sizes, sizes)
    return order.take(np.flatnonzero(np.arange(len(order)) - before >= most))


def _by_person(high: Words, low: Words) -> tuple[NDArray[np.intp], NDArray[np.bool_]]:
    """The order of rows by person, and where in it a person begins."""
    order = _stable_order(high)
    first = _differs(high[order])
    same = np.flatnonzero(~first)
    if (low[order[same]] == low[order[same - 1]]).all():
        return order, first
    order = np.lexsort((low, high))
    return order, _differs(high[order]) | _differs(low[order])


def _stable_order(words: Words) -> NDArray[np.intp]:
    """What a stable `argsort` gives: for random words in about a fifth of its time, on a processor with AVX-512.

    Numbers are sorted that hold the first bits of each word and, below these, its place. Where other bits decide, a
    stable sort of what is nearly in order does the rest.
    """
    places = np.uint64((1 << len(words).bit_length()) - 1)
    keys = (words & ~places) | np.arange(len(words), dtype=np.uint64)
    keys.sort()
    order = (keys & places).astype(np.intp)
    found = words[order]
    return order if (found[1:] >= found[:-1]).all() else order[np.argsort(found, kind="stable")]


def _ranked(person: NDArray[np.intp], tags: Words) -> tuple[NDArray[np.intp], NDArray[np.bool_]]:
    """The order of rows by person and tag, and where in it a tag differs from the one before it.

    Numbers are sorted that hold the person, the first bits of the tag and, below these, the row's place. Where other
    bits would decide, all of them do.
    """
    low = len(person).bit_length()
    high = int(person[-1]).bit_length() if len(person) else 0
    taken, below = np.uint64(low + high), np.uint64(low)
    keys = (tags >> taken << below) | np.arange(len(tags), dtype=np.uint64)
    if high:
        keys |= person.astype(np.uint64) << np.uint64(64 - high)
    keys.sort()
    first = _differs(keys >> below)
    if first.all():
        return (keys & ((np.uint64(1) << below) - np.uint64(1))).astype(np.intp), first
    order = np.lexsort((tags, person))
    return order, _differs(person[order]) | _differs(tags[order])


def _differs(values: NDArray[np.generic]) -> NDArray[np.bool_]:
    """Where a value differs from the one before it; the first does."""
    found = np.ones(len(values), dtype=bool)
    found[1:] = values[1:] != values[:-1]
    return found


def _place(starts: NDArray[np.bool_]) -> NDArray[np.int64]:
    """How many rows before it each row has since the last start."""
    places = np.arange(len(starts))
    return places - np.maximum.accumulate(np.where(starts, places, 0))


def _tags(high: Words, content: Words, occurrence: Words) -> Words:
    """The tags of rows: person, content and occurrence number, mixed as in SplitMix64, which is one to one.

    The person's hash is secret and looks random, and so do the tags.
    """
    found = (content ^ high) + occurrence * ODD
    for shift, factor in MIXED:
        found ^= found >> shift
        found *= factor
    found ^= found >> np.uint64(31)
    return found
