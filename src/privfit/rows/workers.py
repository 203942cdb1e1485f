"""Sums over rows side by side: in threads of our own, and on the workers of a cluster.

What is sent to workers is pickled: functions, public facts, numbers of rows and released weights; nothing of a row.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache, reduce
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import ThreadpoolController

from privfit.tables import Batch

Chunks = TypeVar("Chunks")
Given = TypeVar("Given")
Made = TypeVar("Made")
Sums = list[Any]
"""Arrays of integers, to be added one by one."""
PieceTask = Callable[[tuple[int, Batch]], Sums]
"""From the number of a piece's first row and the piece to sums."""
ChunkTask = Callable[[int, Chunks], Sums]
"""From the number of a chunk's first row and the chunk to sums."""


@cache
def _blas() -> ThreadpoolController:
    return ThreadpoolController()


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Our own threads share the cores; BLAS threads on top of them only get in each other's way."""
    with _blas().limit(limits=1, user_api="blas"):
        yield


def in_order(
    pool: ThreadPoolExecutor, task: Callable[[Given], Made], pieces: Iterator[Given], ahead: int
) -> Iterator[Made]:
    """What a task makes of the pieces, in their order, with few of them in work at a time."""
    pending: deque[Future[Made]] = deque()
    broken: Exception | None = None
    while True:
        try:
            piece = next(pieces)
        except StopIteration:
            break
        except Exception as error:  # what rows before it have to say comes first, however far ahead was read
            broken = error
            break
        pending.append(pool.submit(task, piece))
        if len(pending) > ahead:
            yield pending.popleft().result()
    while pending:
        yield pending.popleft().result()
    if broken is not None:
        raise broken


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
    return reduce(added, parts)


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
