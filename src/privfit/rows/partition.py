"""Rows that are partitioned into blocks, each of which one function sees: for answers that are made block by block.

A row may be in several blocks. What is made of a block depends on the rows of that block alone, so that a row can
change the answers of its own blocks only.
"""

from __future__ import annotations

import faulthandler
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Any

import joblib
import numpy as np
from numpy.typing import NDArray

from privfit.features import FeatureMap
from privfit.privacy.draws import quietly
from privfit.privacy.guarded import attempted, in_own_thread, real_numbers
from privfit.rows.cached_design import CachedDesign
from privfit.rows.layout import Layout
from privfit.rows.plain import PlainRows
from privfit.rows.rows import Rows
from privfit.rows.timed import in_time
from privfit.rows.workers import HALF_OF_MEMORY, Chunk, KnownBits, kept_bytes, one_blas_thread
from privfit.tables import DataError

Floats = NDArray[np.float64]
Places = NDArray[np.int64]
BlockFunction = Callable[[Floats], Any]
"""From the rows of a block, one line each and the target last, to numbers."""
FETCHED_ROWS = 1 << 18
"""Rows of blocks that come from workers together: memory against the number of passes over what they keep."""


@dataclass(frozen=True)
class GridColumn:
    """A column of plain rows, and evenly spaced points from its lower to its upper bound to round it to."""

    place: int
    low: float
    high: float
    steps: int


class PartitionedRows:
    """The rows of a table for one function that sees them block by block.

    Hands out what the function makes of the blocks, and the number of rows; never a row.

    Rows are plain values as in PlainRows, or, `encoded`, as linear models see them: one entry per encoded column, a
    class as -1 or 1, or as its place if there are more than two.

    Guarantee: the answer of a block is a function of the rows assigned to it, in their order; docs/proofs/aggregate.md,
    Lemma 1.
    """

    def __init__(
        self, rows: Rows, *, encoded: bool = False, features: FeatureMap | None = None, most_bytes: int | None = None
    ) -> None:
        self._rows = rows
        self._encoded = encoded
        self._features = features
        allowed = HALF_OF_MEMORY // 2 if rows.max_memory is None else kept_bytes(rows.max_memory)
        self._most_bytes = allowed if most_bytes is None else most_bytes
        self._taken: Callable[[Places], Floats] | None = None
        self._on_workers: WorkersRows | None = None
        self.n_rows = 0

    def read(self) -> None:
        """Read everything once, keep it, and meet every error that the table holds. A second call does nothing."""
        if self._taken is not None:
            return
        kept: CachedDesign | PlainRows
        if self._encoded:
            kept = CachedDesign(self._rows, self._features, self._most_bytes)
        else:
            kept = PlainRows(self._rows, self._most_bytes)
            kept.read()
        self.n_rows = kept.n_rows
        if self._rows.on_workers:
            self._on_workers = WorkersRows(kept, self._encoded, self._features is not None, self._has_target)
            self._taken = self._on_workers.taken
        elif isinstance(kept, CachedDesign):
            self._taken = self._from_encoded(kept, self._held(kept._chunks))
        else:
            whole = np.concatenate(self._held(kept._chunks))
            self._taken = lambda mine: whole[mine]

    @property
    def _has_target(self) -> bool:
        return self._rows.geometry.target is not None

    def _held(self, chunks: list[Any] | None) -> list[Any]:
        if chunks is None:
            raise DataError(
                "The table does not fit in a quarter of the memory, and blocks are made of all rows at once. "
                "Give fewer rows or columns, or fit with another mechanism. Nothing was charged."
            )
        return chunks

    def _from_encoded(self, kept: CachedDesign, chunks: list[Chunk]) -> Callable[[Places], Floats]:
        whole = Chunk.joined(chunks)
        layout = None if self._features is not None else kept._layout
        return lambda mine: _rows_of(layout, self._has_target, whole.of(mine))

    def counts(self, columns: Sequence[GridColumn]) -> Places:
        """How many rows are nearest to every grid point of these columns: one line each."""
        assert self._taken is not None
        if self._on_workers is not None:
            return self._on_workers.total(partial(_grid_counts, columns))
        return _grid_counts(columns, self._taken(np.arange(self.n_rows)))

    def answers(
        self,
        places: Places,
        blocks: int,
        function: BlockFunction,
        size: int,
        processes: bool = False,
        *,
        side_by_side: bool = True,
        time_limit: float | None = None,
    ) -> Floats:
        """What the function makes of every block: (blocks, size).

        A block without rows, or without such an answer, has NaN in all places.

        Line i of `places` names the blocks of row i, each once. As many blocks as there are cores run at the same time,
        in threads or in other processes; or one after the other. With a `time_limit` each has a process of its own, for
        exactly so many seconds.
        """
        assert self._taken is not None
        flat = places.ravel()
        order = np.argsort(flat, kind="stable") // places.shape[1]
        members = np.split(order, np.cumsum(np.bincount(flat, minlength=blocks))[:-1])
        found: list[Floats] = []
        for few in [members] if self._on_workers is None else self._on_workers.few(members):
            take = self._taken if self._on_workers is None else self._on_workers.fetched(few)
            found += self._answers(few, take, function, size, processes, side_by_side, time_limit)
        return np.array(found).reshape(blocks, size)

    def _answers(
        self,
        members: list[Places],
        take: Callable[[Places], Floats],
        function: BlockFunction,
        size: int,
        processes: bool,
        side_by_side: bool,
        time_limit: float | None,
    ) -> list[Floats]:
        """The answers of blocks with these members."""
        blocks = len(members)

        def rows_of(block: int) -> Floats:
            return take(members[block])

        def answer_of(block: int) -> Floats:
            return answered(function, partial(rows_of, block), size)

        if time_limit is not None:
            return in_time(function, rows_of, blocks, size, time_limit)
        if processes:
            return _in_processes(rows_of, blocks, function, size, self._rows.threads)
        with one_blas_thread():
            if not side_by_side:
                return in_own_thread(lambda waited_for: [answer_of(block) for block in range(blocks) if waited_for()])
            with ThreadPoolExecutor(self._rows.threads) as pool:
                return list(pool.map(answer_of, range(blocks)))


class WorkersRows:
    """Rows that workers of a cluster keep, of which those of a few blocks at a time come here."""

    def __init__(self, kept: CachedDesign | PlainRows, encoded: bool, features: bool, target: bool) -> None:
        self._kept = kept
        layout = kept._layout if isinstance(kept, CachedDesign) and not features else None
        self._rows_of = partial(_rows_of, layout, target) if encoded else _plain_rows

    def total(self, task: Callable[[Floats], Places]) -> Places:
        """The sum over all rows of what a task makes of some of them."""
        return np.asarray(self._kept.total(partial(_on_rows, self._rows_of, task))[0], dtype=np.int64)

    def taken(self, mine: Places) -> Floats:
        """The rows of these numbers, which ascend."""
        wanted = np.zeros(self._kept.n_rows, dtype=np.bool_)
        wanted[mine] = True
        parts = self._kept.total(partial(_chosen_rows, self._rows_of, KnownBits.of(wanted), self._kept._length))[0]
        return np.concatenate([rows for _, rows in sorted(parts, key=lambda part: int(part[0]))])

    def few(self, members: list[Places]) -> Iterator[list[Places]]:
        """Blocks in their order, so many at a time that their rows are not too many, but one at least."""
        few: list[Places] = []
        for own in members:
            if few and sum(map(len, few)) + len(own) > FETCHED_ROWS:
                yield few
                few = []
            few.append(own)
        yield few

    def fetched(self, members: list[Places]) -> Callable[[Places], Floats]:
        """What takes the rows of these blocks, which are here now."""
        numbers = np.unique(np.concatenate(members))
        rows = self.taken(numbers) if len(numbers) else np.empty((0, 0))
        return lambda mine: rows[np.searchsorted(numbers, mine)]


def _rows_of(layout: Layout | None, with_target: bool, chunk: Chunk) -> Floats:
    """Rows as linear models see them: of features, where there is no layout."""
    rows = chunk.numbers if layout is None else layout.dense(chunk)
    return np.column_stack([rows, chunk.target]) if with_target else rows


def _plain_rows(chunk: Floats) -> Floats:
    return chunk


def _on_rows(rows_of: Callable[[Any], Floats], task: Callable[[Floats], Places], _: int, chunk: Any) -> list[Places]:
    return [task(rows_of(chunk))]


def _chosen_rows(
    rows_of: Callable[[Any], Floats], wanted: KnownBits, length: Callable[[Any], int], first: int, chunk: Any
) -> list[list[tuple[int, Floats]]]:
    """Some rows of a chunk, with its place among all: lists, which are added by joining them."""
    return [[(first, rows_of(chunk)[wanted.ones(first, length(chunk))])]]


def _grid_counts(columns: Sequence[GridColumn], rows: Floats) -> Places:
    found = []
    for one in columns:
        share = np.clip((rows[:, one.place] - one.low) / (one.high - one.low), 0.0, 1.0)
        found.append(np.bincount(np.rint(share * one.steps).astype(np.int64), minlength=one.steps + 1))
    return np.array(found, dtype=np.int64)


def answered(function: BlockFunction, block: Floats | Callable[[], Floats], size: int) -> Floats:
    """So many numbers from a function, or NaN in all places if there are no rows or it fails in any way: how would
    reveal something about its rows.
    """

    def call() -> Floats:
        rows = block() if callable(block) else block
        return real_numbers(function(rows)).ravel() if len(rows) else np.empty(0)

    found = attempted(call)
    return (
        found if found is not None and found.shape == (size,) and not np.isnan(found).any() else np.full(size, np.nan)
    )


def answered_apart(function: BlockFunction, rows: Floats, size: int) -> Floats:
    """The same in another process, which has a report of crashes of its own: that would reveal something about rows."""
    faulthandler.disable()
    return answered(function, rows, size)


def run_apart(function: BlockFunction, rows: Floats) -> object:
    """What a function returns in another process."""
    return _pool(2)([joblib.delayed(function)(rows)])[0]


def _pool(workers: int) -> joblib.Parallel:
    """Other processes, to which rows are sent in memory and not by files."""
    return joblib.Parallel(n_jobs=max(workers, 2), backend="loky", max_nbytes=None, verbose=0)


def _in_processes(
    rows_of: Callable[[int], Floats], blocks: int, function: BlockFunction, size: int, workers: int
) -> list[Floats]:
    """The answers of all blocks from other processes.

    If one of these dies, every block is run anew and alone: a block must not take others with it.
    """
    tasks = (joblib.delayed(answered_apart)(function, rows_of(block), size) for block in range(blocks))
    with quietly():  # of processes that died one is warned
        try:
            return list(_pool(workers)(tasks))
        except Exception:  # a process that died; all else is an answer
            found = []
            for block in range(blocks):
                try:
                    found.append(
                        np.asarray(
                            run_apart(partial(answered_apart, function, size=size), rows_of(block)), dtype=np.float64
                        )
                    )
                except Exception:
                    found.append(np.full(size, np.nan))
            return found
