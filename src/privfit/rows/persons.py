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
from typing import IO

import numpy as np
from numpy.typing import NDArray

from privfit.tables import CACHE, HASH, Batch, siphash

Words = NDArray[np.uint64]
Entries = NDArray[np.void]

HELD_BYTES = 1 << 26
"""Bytes of hashes that wait in memory: 32 a row. More rows go to temporary files; no command varies it."""
PARTS = 64
"""Parts into which persons are divided by their hash where rows go to files: each is sorted by itself in memory."""
ENTRY = np.dtype([("person", HASH), ("content", np.uint64), ("row", np.int64)])
ODD = np.uint64(0x9E3779B97F4A7C15)
"""2^64 over the golden ratio: multiplies words of a row into its hash."""
NAN = np.float64(np.nan).view(np.uint64)


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

    def __init__(self, most: int, key: bytes) -> None:
        self._most, self._key = most, key
        self._held: list[Entries] = []
        self._files: list[IO[bytes]] = []
        self._rows = 0
        self._persons: list[Words] = []

    def add(self, persons: NDArray[np.void], batch: Batch, fit: NDArray[np.bool_]) -> None:
        """Take the next rows: whose they are, what they hold, and which of them could be used at all.

        Persons count, whether or not one of their rows could be used.
        """
        entries = np.empty(len(persons), dtype=ENTRY)
        entries["person"], entries["content"] = persons, content_hash(batch, self._key)
        entries["row"] = np.where(fit, np.arange(self._rows, self._rows + len(persons)), -1)
        self._rows += len(persons)
        self._held.append(entries)
        if sum(held.nbytes for held in self._held) > HELD_BYTES:
            self._spill()

    def chosen(self) -> ChosenRows:
        """The rows that are used, of all that were taken."""
        bits, persons = np.zeros(-(-self._rows // 8), dtype=np.uint8), 0
        for part in self._parts():
            rows, own = _smallest(part, self._most, self._key)
            np.bitwise_or.at(bits, rows // 8, (0x80 >> (rows % 8)).astype(np.uint8))
            persons += own
        return ChosenRows(bits, persons, self._rows)

    def _parts(self) -> Iterator[Entries]:
        """The rows of some persons at a time; files are closed, and so are gone, as soon as they are read."""
        if not self._files:
            yield np.concatenate([*self._held, np.empty(0, dtype=ENTRY)])
            return
        self._spill()
        while self._files:
            with self._files.pop() as file:
                file.seek(0)
                held = np.frombuffer(file.read(), dtype=ENTRY)
            yield held

    def _spill(self) -> None:
        """Write what is held to the files, each person's rows to one of them."""
        if not self._files:
            self._files = [tempfile.TemporaryFile(prefix="privfit-", dir=os.environ.get(CACHE)) for _ in range(PARTS)]  # noqa: SIM115
        if not self._held:
            return
        entries = np.concatenate(self._held)
        self._held = []
        part = (entries["person"]["high"] % np.uint64(PARTS)).astype(np.uint8)
        order = np.argsort(part, kind="stable")
        ends = np.searchsorted(part[order], np.arange(1, PARTS))
        for file, own in zip(self._files, np.split(order, ends), strict=True):
            file.write(entries[own].data)


def content_hash(batch: Batch, key: bytes) -> Words:
    """A hash of what each row holds: numbers bit by bit, with one zero and one NaN, and positions of levels."""
    found = np.full(len(batch[0]), np.frombuffer(key, dtype="<u8")[0])
    for values in batch:
        if values.dtype == np.float64:
            words = (values + 0.0).view(np.uint64)  # minus zero becomes zero
            words[np.isnan(values)] = NAN
        else:
            words = values.astype(np.int64).view(np.uint64)
        found ^= words
        found *= ODD
        found ^= found >> np.uint64(29)
    return found


def _smallest(part: Entries, most: int, key: bytes) -> tuple[NDArray[np.int64], int]:
    """The numbers of the rows with the smallest tags of each person, and how many persons there are."""
    if not len(part):
        return np.empty(0, dtype=np.int64), 0
    part = part[_by_person(part)]
    person = np.cumsum(_differs(part["person"])) - 1
    part, person, persons = part[part["row"] >= 0], person[part["row"] >= 0], int(person[-1]) + 1
    few = np.bincount(person, minlength=persons)[person] <= most
    rows = [part["row"][few]]
    part, person = part[~few], person[~few]
    order = np.lexsort((part["content"], person))
    part, person = part[order], person[order]
    tags = _tags(part, _place(_differs(person) | _differs(part["content"])), key)
    order = np.lexsort((tags, person))
    rows.append(part["row"][order[_place(_differs(person[order])) < most]])
    return np.concatenate(rows), persons


def _by_person(part: Entries) -> NDArray[np.intp]:
    high, low = part["person"]["high"], part["person"]["low"]
    order = np.argsort(high)
    same = high[order][1:] == high[order][:-1]
    if (low[order][1:][same] == low[order][:-1][same]).all():
        return order
    return np.lexsort((low, high))


def _differs(values: NDArray[np.generic]) -> NDArray[np.bool_]:
    """Where a value differs from the one before it; the first does."""
    found = np.ones(len(values), dtype=bool)
    found[1:] = values[1:] != values[:-1]
    return found


def _place(starts: NDArray[np.bool_]) -> NDArray[np.int64]:
    """How many rows before it each row has since the last start."""
    places = np.arange(len(starts))
    return places - np.maximum.accumulate(np.where(starts, places, 0))


def _tags(part: Entries, occurrence: NDArray[np.int64], key: bytes) -> Words:
    """The tags of rows: hashes of person, content and occurrence number."""
    last = np.full(len(part), np.uint64(32 << 56))  # 32 bytes
    person = part["person"]
    words = np.stack([person["high"], person["low"], part["content"], occurrence.astype(np.uint64), last])
    return np.asarray(siphash(words, key)["high"])
