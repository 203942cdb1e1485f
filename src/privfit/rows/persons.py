"""Which rows of each person are used: at most m, chosen by keyed hashes.

A row's tag is a hash of the person, of what the row holds and of how many rows of that person hold the same before it;
of each person the rows with the m smallest tags are used. The choice is a function of the person's own rows and a key
that is drawn for one fit, so that one person can change m rows that are used, whatever the table holds. It is the same
multiset of rows in every order of the table and on every engine.

Memory is bounded: beyond `HELD_BYTES` the hashes of rows wait in temporary files, one for each part of the persons,
that have no name and that only their owner could read.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import IO

import numpy as np
from numpy.typing import NDArray

from privfit.rows.workers import in_order
from privfit.tables import CACHE, Batch, Values

Words = NDArray[np.uint64]
Entries = NDArray[np.uint64]
"""One line per row."""

HELD_BYTES = 1 << 26
"""Bytes of hashes that wait in memory: 32 a row. More rows go to temporary files; no command varies it."""
PARTS = 64
"""Parts into which persons are divided by their hash: each is sorted by itself, in memory, and has a file beyond it."""
AHEAD = 4
"""Batches and parts that are in work at a time: time against memory. No command varies it."""
FIELDS = 4
"""What is kept of a row: both halves of its person's hash, a hash of its content, and its number (-1 if not fit)."""
ODD = np.uint64(0x9E3779B97F4A7C15)
"""2^64 over the golden ratio: multiplies words of a row into its hash."""
MIXED = tuple((np.uint64(s), np.uint64(f)) for s, f in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)))
"""Shifts and factors of SplitMix64 (Steele, Lea and Flood 2014)."""
NOT_FIT = np.uint64((1 << 64) - 1)
"""Stands for the number of a row that could not be used."""
FEW_ROWS = 1 << 13
"""Rows whose content is hashed together, so that they stay close to the processor. No command varies it."""


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

    def __init__(self, most: int) -> None:
        self._most = most
        self._held: list[list[Entries]] = [[] for _ in range(PARTS)]
        self._files: list[IO[bytes]] = []
        self._rows = self._bytes = 0

    def add(self, batch: Entries, ends: NDArray[np.intp]) -> None:
        """Take the next rows, as `entries` makes them of a batch."""
        number = batch[:, 3]
        np.add(number, np.uint64(self._rows), out=number, where=number != NOT_FIT)
        for held, own in zip(self._held, np.split(batch, ends), strict=True):
            held.append(own)
        self._rows += len(batch)
        self._bytes += batch.nbytes
        if self._bytes > HELD_BYTES:
            self._spill()

    def chosen(self, threads: int) -> ChosenRows:
        """The rows that are used, of all that were taken."""
        bits, persons = np.zeros(-(-self._rows // 8), dtype=np.uint8), 0
        choose = partial(_smallest, most=self._most)
        for rows, own in in_order(threads, choose, self._parts(), AHEAD):
            np.bitwise_or.at(bits, rows // 8, (0x80 >> (rows % 8)).astype(np.uint8))
            persons += own
        return ChosenRows(bits, persons, self._rows)

    def _parts(self) -> Iterator[Entries]:
        """The rows of some persons at a time; files are closed, and so are gone, as soon as they are read."""
        while self._held:
            own = [np.empty((0, FIELDS), dtype=np.uint64), *self._held.pop()]
            if self._files:
                with self._files.pop() as file:  # what came first stands first, wherever it was kept
                    file.seek(0)
                    own.insert(0, np.frombuffer(file.read(), dtype=np.uint64).reshape(-1, FIELDS))
            yield np.concatenate(own)

    def _spill(self) -> None:
        """Write what is held to the files, one for each part of the persons."""
        if not self._files:
            self._files = [tempfile.TemporaryFile(prefix="privfit-", dir=os.environ.get(CACHE)) for _ in range(PARTS)]  # noqa: SIM115
        for file, held in zip(self._files, self._held, strict=True):
            for lines in held:
                file.write(lines.data)
            held.clear()
        self._bytes = 0


def entries(
    persons: NDArray[np.void], batch: Batch, fit: NDArray[np.bool_], key: bytes
) -> tuple[Entries, NDArray[np.intp]]:
    """What is kept of the rows of a batch, part by part, and where parts end: whose they are, what they hold, and which
    of them could be used at all.

    Persons count, whether or not one of their rows could be used.
    """
    found = np.empty((len(persons), FIELDS), dtype=np.uint64)
    found[:, 0], found[:, 1] = persons["high"], persons["low"]
    found[:, 2] = content_hash(batch, key)
    found[:, 3] = np.where(fit, np.arange(len(persons), dtype=np.uint64), NOT_FIT)
    part = (found[:, 0] % np.uint64(PARTS)).astype(np.uint8)
    order = np.argsort(part, kind="stable")
    return found.take(order, axis=0), np.cumsum(np.bincount(part, minlength=PARTS))[:-1]


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


def _smallest(part: Entries, most: int) -> tuple[NDArray[np.int64], int]:
    """The numbers of the rows with the smallest tags of each person, and how many persons there are."""
    high, low, content, row = np.ascontiguousarray(part.T)
    if not len(row):
        return np.empty(0, dtype=np.int64), 0
    order = _by_person(high, low)
    person = np.cumsum(_differs(high[order]) | _differs(low[order])) - 1
    persons, fit = int(person[-1]) + 1, row[order] != NOT_FIT
    if not fit.all():
        order, person = order[fit], person[fit]
    few = np.bincount(person, minlength=persons)[person] <= most
    many, person = order[~few], person[~few]
    chosen = [row[order[few]], row[many[_least(person, high[many], content[many], most)]]]
    return np.concatenate(chosen).astype(np.int64), persons


def _least(person: NDArray[np.intp], high: Words, content: Words, most: int) -> NDArray[np.intp]:
    """The places of the rows with the smallest tags of each person, for rows in the order of their persons.

    All sorts are stable: where tags are equal, the order of that person's own rows decides, and no other person's.
    """
    tags = _tags(high, content, np.zeros(len(person), dtype=np.uint64))
    order = _ranked(person, tags)
    same = ~(_differs(person[order]) | _differs(tags[order]))
    if same.any():  # rows that hold the same: each has an occurrence number, and a tag of its own
        occurrence = np.empty(len(person), dtype=np.uint64)
        occurrence[order] = _place(~same)
        tags = _tags(high, content, occurrence)
        order = _ranked(person, tags)
    return order[_place(_differs(person[order])) < most]


def _by_person(high: Words, low: Words) -> NDArray[np.intp]:
    order = _stable_order(high)
    same = np.flatnonzero(~_differs(high[order]))
    if (low[order[same]] == low[order[same - 1]]).all():
        return order
    return np.lexsort((low, high))


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


def _ranked(person: NDArray[np.intp], tags: Words) -> NDArray[np.intp]:
    """The order of rows by person and tag, of which as many bits as there is space for decide in one sort."""
    space = np.uint64(64 - int(person[-1]).bit_length()) if len(person) else np.uint64(1)
    keys = (person.astype(np.uint64) << space) | (tags >> (np.uint64(64) - space)) if space < 64 else tags
    order = np.argsort(keys, kind="stable")
    same = np.flatnonzero(~_differs(keys[order]))
    if (tags[order[same]] == tags[order[same - 1]]).all():
        return order
    return np.lexsort((tags, person))


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
