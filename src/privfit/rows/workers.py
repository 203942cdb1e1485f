"""Sums over rows side by side, in threads of our own and on the workers of a cluster; and how much of the machine a fit
may use for that: threads and memory, which are public and change no bit of a fit.

What is sent to workers is pickled: functions, public facts, numbers of rows and released weights; nothing of a row.
"""

from __future__ import annotations

import os
import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import Context
from dataclasses import dataclass, replace
from functools import cache
from itertools import chain
from numbers import Integral, Real
from threading import RLock
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import ThreadpoolController

from privfit.privacy import PrivacyError
from privfit.tables import Batch, numbered_pieces

Chunks = TypeVar("Chunks")
Given = TypeVar("Given")
Made = TypeVar("Made")
Floats = NDArray[np.float64]
Codes = NDArray[np.int32] | NDArray[np.uint16]
"""Places in a table of codes, in 16 bits where it is short: more rows stay in memory."""
FineCells = NDArray[np.uint16]
Places = NDArray[np.int32]
Sums = list[Any]
"""Arrays of integers, to be added one by one."""
PieceTask = Callable[[tuple[int, Batch]], Sums]
"""From the number of a piece's first row and the piece to sums."""
ChunkTask = Callable[[int, Chunks], Sums]
"""From the number of a chunk's first row and the chunk to sums."""
USUAL_MEMORY = 1_000_000_000
"""Bytes of memory of a fit where nothing is said: more is faster for iterative fits of tens of millions of rows, whose
rows are otherwise read from a temporary file in every pass."""
WORKING_MEMORY = 600_000_000
"""Bytes of that for libraries and for the batches in work, whatever the number of rows: `privfit bench engines`."""
UNITS = {"": 1, "B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}
UNITS |= {"KIB": 1 << 10, "MIB": 1 << 20, "GIB": 1 << 30, "TIB": 1 << 40}


# -- threads and memory -----------------------------------------------------------------------------


def thread_count(n_jobs: object) -> int:
    """How many threads `n_jobs` stands for: None and -1 for all cores of the process, -2 for all but one."""
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    cores = usable or 1
    if n_jobs is None:
        return cores
    if not isinstance(n_jobs, Integral) or isinstance(n_jobs, bool) or n_jobs == 0:
        raise PrivacyError(
            f"n_jobs={n_jobs!r} was given; it is a number of threads, -1 for all cores, or None. Use None if in doubt."
        )
    jobs = int(n_jobs)
    return jobs if jobs > 0 else max(1, cores + 1 + jobs)


def memory_bytes(max_memory: object) -> int | None:
    """A limit of memory in bytes: of a number of bytes, or of a text such as "500MB"; None for the usual one."""
    if max_memory is None:
        return None
    found = None
    if isinstance(max_memory, str):
        match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([A-Za-z]*)\s*", max_memory)
        unit = UNITS.get(match[2].upper()) if match else None
        found = float(match[1]) * unit if match and unit else None
    elif isinstance(max_memory, Real) and not isinstance(max_memory, bool):
        found = float(max_memory)
    if found is None or not 1 <= found < 1 << 62:
        raise PrivacyError(
            f"max_memory={max_memory!r} was given; it is a number of bytes, a text such as '500MB' or '8GB', or None. "
            "Use None if in doubt."
        )
    return int(found)


def kept_bytes(max_memory: int | None) -> int:
    """Bytes of encoded rows that are kept in memory: what is left of the limit beside libraries and batches."""
    return max(0, (USUAL_MEMORY if max_memory is None else max_memory) - WORKING_MEMORY)


def _half_of_memory() -> int:
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2
    except (AttributeError, ValueError, OSError):
        return 1 << 32


HALF_OF_MEMORY = _half_of_memory()
"""Bytes of the machine's memory that rows may take which a function must see all at once: the rest is for the caller's
table.
"""


@cache
def _blas() -> ThreadpoolController:
    return ThreadpoolController()


_limit_lock = RLock()
_limits: list[Any] = []
"""Who wants a single thread of BLAS now; the first has set the limit, which the last to leave takes back."""
if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_limit_lock.acquire, after_in_parent=_limit_lock.release, after_in_child=_limit_lock.release
    )


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Our own threads share the cores; BLAS threads on top of them only get in each other's way.

    The limit is that of the process: it is counted, so that no thread takes it back while another relies on it.
    """
    with _limit_lock:
        _limits.append(_limits[0] if _limits else _blas().limit(limits=1, user_api="blas"))
    try:
        yield
    finally:
        with _limit_lock:
            limit = _limits.pop()
            if not _limits:
                limit.restore_original_limits()


def in_order(threads: int, task: Callable[[Given], Made], pieces: Iterator[Given], ahead: int) -> Iterator[Made]:
    """What a task makes of the pieces, in their order, in so many threads, with few of them in work at a time.

    Where the process has a single core, or there is a single piece, others would only wait for this thread: then it
    does the work, with numpy's errors as a new thread has them, whatever the caller has set.
    """
    broken: Exception | None = None
    if thread_count(None) > 1 and (first := next(pieces, None)) is not None:
        try:
            second = next(pieces, None)
        except Exception as error:  # what rows before it have to say comes first
            second, broken = None, error
        if second is not None:
            yield from _in_pool(threads, task, chain((first, second), pieces), ahead)
            return
        pieces = iter((first,))
    for piece in pieces:
        yield Context().run(task, piece)
    if broken is not None:
        raise broken


def _in_pool(threads: int, task: Callable[[Given], Made], pieces: Iterator[Given], ahead: int) -> Iterator[Made]:
    pending: deque[Future[Made]] = deque()
    broken: Exception | None = None
    with ThreadPoolExecutor(threads) as pool:
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


# -- rows that are kept here or on a worker, and sums over them ---------------------------------------


@dataclass(frozen=True)
class Chunk:
    """Some rows: their places in the table of codes, one a group of categories; one column per number; the target; and,
    where they are wanted, the fine cells of numbers with knots, in pieces one after the other. Where rows have weights,
    these are from 0 to 1.
    """

    codes: Codes
    numbers: Floats
    target: Floats
    fine: tuple[FineCells, ...] = ()
    weights: Floats | None = None

    def __len__(self) -> int:
        return len(self.target)

    def places(self) -> Places:
        """The codes of all rows, one row after the other, as sparse matrices have them."""
        return self.codes.astype(np.int32, copy=False).ravel()

    def parts(self, rows: int) -> list[Chunk]:
        """The same rows in parts of at most so many."""
        if len(self) <= rows:
            return [self]
        return [self.of(slice(start, start + rows)) for start in range(0, len(self), rows)]

    @property
    def nbytes(self) -> int:
        """How much memory they take."""
        held = self.numbers.nbytes + self.target.nbytes + self.codes.nbytes + sum(piece.nbytes for piece in self.fine)
        return held + (0 if self.weights is None else self.weights.nbytes)

    def of(self, rows: slice | NDArray[np.intp]) -> Chunk:
        """Some of these rows: a slice, whose fine cells are left out, or rising places."""
        fine = () if isinstance(rows, slice) else tuple(self._fine_at(rows))
        weights = None if self.weights is None else self.weights[rows]
        return Chunk(self.codes[rows], self.numbers[rows], self.target[rows], fine, weights)

    def _fine_at(self, places: NDArray[np.intp]) -> Iterator[FineCells]:
        ends = np.cumsum([len(piece) for piece in self.fine], dtype=np.intp)
        for piece, end, own in zip(self.fine, ends, np.split(places, np.searchsorted(places, ends[:-1])), strict=False):
            yield piece[own - (end - len(piece))]

    @classmethod
    def joined(cls, chunks: list[Chunk]) -> Chunk:
        """The rows of several, one after the other."""
        codes, numbers, target = (
            np.concatenate(parts)
            for parts in zip(*((one.codes, one.numbers, one.target) for one in chunks), strict=True)
        )
        weights = [one.weights for one in chunks if one.weights is not None]
        fine = tuple(piece for one in chunks for piece in one.fine)
        return cls(codes, numbers, target, fine, np.concatenate(weights) if weights else None)

    def weighed(self, by_class: Floats) -> Chunk:
        """The same rows, each also weighed as its class is: the place of a class, or -1 and 1 for two."""
        places = np.maximum(self.target, 0.0).astype(np.intp)
        own = by_class[places]
        return replace(self, weights=own if self.weights is None else own * self.weights)


def added(one: Sums, other: Sums) -> Sums:
    """The sums of two parts."""
    return [first + second for first, second in zip(one, other, strict=True)]


def added_up(parts: Iterable[Sums]) -> Sums | None:
    """The sums of all parts; None if there is none."""
    total: Sums | None = None
    for part in parts:
        total = part if total is None else added(total, part)
    return total


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
