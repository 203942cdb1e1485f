"""What is sent to the workers of a cluster: sums over the pieces of a partition, and over chunks that are kept there.

Everything here is pickled: functions, public facts, numbers of rows and released weights; nothing of a row.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from privfit.rows.threads import one_blas_thread
from privfit.tables import Batch

Chunks = TypeVar("Chunks")
Sums = list[Any]
"""Arrays of integers, to be added one by one."""
PieceTask = Callable[[tuple[int, Batch]], Sums]
"""From the number of a piece's first row and the piece to sums."""
ChunkTask = Callable[[int, Chunks], Sums]
"""From the number of a chunk's first row and the chunk to sums."""


def added(one: Sums, other: Sums) -> Sums:
    """The sums of two parts."""
    return [first + second for first, second in zip(one, other, strict=True)]


def added_up(parts: Iterable[Sums]) -> Sums | None:
    """The sums of all parts; None if there is none."""
    total: Sums | None = None
    for part in parts:
        total = part if total is None else added(total, part)
    return total


def summed(parts: Iterable[Sums]) -> Sums:
    """The sums of all parts, of which there is one at least: a table without rows is refused when it is read."""
    total = added_up(parts)
    assert total is not None
    return total


def numbered_pieces(batches: Iterator[Batch], size: int, first: int = 0) -> Iterator[tuple[int, Batch]]:
    """Pieces of at most so many rows, each with the number of its first row."""
    for batch in batches:
        for start in range(0, len(batch[0]), size):
            yield first + start, [column[start : start + size] for column in batch]
        first += len(batch[0])


@dataclass(frozen=True)
class PartitionSum:
    """The sum over a partition that is read once, piece by piece."""

    task: PieceTask
    size: int
    firsts: Sequence[int] | None = None
    """The number of every partition's first row, where numbers matter."""

    def __call__(self, number: int, batches: Iterator[Batch]) -> Sums | None:
        first = 0 if self.firsts is None else self.firsts[number]
        with one_blas_thread():
            return added_up(map(self.task, numbered_pieces(batches, self.size, first)))


@dataclass(frozen=True)
class KeptSum(Generic[Chunks]):
    """The sum over the chunks that are kept of a partition."""

    task: ChunkTask[Chunks]
    length: Callable[[Chunks], int]
    firsts: Sequence[int]

    def __call__(self, number: int, chunks: Iterator[Chunks]) -> Sums | None:
        with one_blas_thread():
            return added_up(self._parts(self.firsts[number], chunks))

    def _parts(self, first: int, chunks: Iterator[Chunks]) -> Iterator[Sums]:
        for chunk in chunks:
            yield self.task(first, chunk)
            first += self.length(chunk)


@dataclass(frozen=True)
class KnownBits:
    """Random bits of all rows, eight to a byte, to be sent to workers."""

    packed: NDArray[np.uint8]

    @classmethod
    def of(cls, bits: NDArray[np.bool_]) -> KnownBits:
        """These bits."""
        return cls(np.packbits(bits))

    def ones(self, first: int, count: int) -> NDArray[np.bool_]:
        """Which of `count` rows from number `first` on have a 1."""
        begin = first // 8
        held = np.unpackbits(self.packed[begin : (first + count + 7) // 8])
        return held[first - 8 * begin :][:count].astype(np.bool_)
