"""Tables whose rows lie in numbered partitions somewhere else: a function is sent there, and small results come back.

Every partition answers with its number, how many rows it had, a mark of what it kept, and what was made of it. One
answer is kept for every number, so that tasks that were lost, retried or run twice change nothing. Passes must agree
about the rows of every partition. Workers never raise: an error of theirs might quote a cell in somebody's log.
"""

from __future__ import annotations

import copy
import pickle
import weakref
import zlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Generic, NamedTuple, TypeVar

from privfit.schema import Column
from privfit.tables.errors import DataError, changed_source
from privfit.tables.table import Batch, Table, quietly

Made = TypeVar("Made")
Work = Callable[[int, Iterator[Batch]], Made | None]
"""From the number of a partition and its batches to what is made of them; None of a partition without rows."""
Encode = Callable[[Iterator[Batch]], Iterator[Any]]
"""From batches to chunks that are kept where they are."""
Look = Callable[[int, Iterator[Any]], Made | None]
"""From the number of a partition and its chunks to what is made of them."""
Add = Callable[[Made, Made], Made]


class Seen(NamedTuple):
    """What is known of a partition: how many rows it has, and a mark of the chunks that are kept of it."""

    rows: int
    mark: int = 0


@dataclass(frozen=True)
class Answer(Generic[Made]):
    """What was made of some partitions, and what is known of each."""

    seen: dict[int, Seen]
    made: Made | None = None
    refusals: dict[int, DataError] = field(default_factory=dict)


@dataclass(frozen=True)
class Merge(Generic[Made]):
    """Answers of several workers as one."""

    add: Add[Made]
    label: str

    def __call__(self, answers: Iterable[Answer[Made]]) -> Answer[Made]:
        """One answer for every set of partitions is kept; sets that overlap otherwise cannot be added."""
        apart = {tuple(sorted(answer.seen)): answer for answer in answers}
        seen: dict[int, Seen] = {}
        refusals: dict[int, DataError] = {}
        made: Made | None = None
        for answer in apart.values():
            if seen.keys() & answer.seen.keys():
                refusals |= {number: changed_source(self.label) for number in answer.seen}
            seen |= answer.seen
            refusals |= answer.refusals
            if answer.made is not None:
                made = answer.made if made is None else self.add(made, answer.made)
        return Answer(seen, made, refusals)


class Counted:
    """Batches, counted as they pass by."""

    def __init__(self, batches: Iterator[Batch]) -> None:
        self._batches, self.rows, self.ended = batches, 0, False

    def __iter__(self) -> Iterator[Batch]:
        return self

    def __next__(self) -> Batch:
        try:
            batch = next(self._batches)
        except StopIteration:
            self.ended = True
            raise
        self.rows += len(batch[0])
        return batch


@dataclass(frozen=True)
class OnePass(Generic[Made]):
    """What a worker does with a partition that is read once."""

    work: Work[Made]
    label: str

    def __call__(self, number: int, batches: Iterator[Batch]) -> Answer[Made]:
        counted = Counted(batches)

        def task() -> Made | None:
            made = self.work(number, counted)
            if not counted.ended and next(counted, None) is not None:
                raise changed_source(self.label)
            return made

        made, refusal = answered(self.label, task)
        return Answer({number: Seen(counted.rows)}, made, {} if refusal is None else {number: refusal})


@dataclass(frozen=True)
class Block:
    """Some encoded rows of a partition; the last of a partition holds none, and says how many there were."""

    number: int
    rows: int
    mark: int
    chunk: Any = None
    refusal: DataError | None = None


@dataclass(frozen=True)
class Keep:
    """What a worker does with a partition that is kept encoded."""

    encode: Encode
    label: str

    def __call__(self, number: int, batches: Iterator[Batch]) -> Iterator[Block]:
        counted, mark = Counted(batches), 0
        chunks = self.encode(counted)
        while True:
            chunk, refusal = answered(self.label, lambda: next(chunks, None))
            if chunk is None:
                break
            mark = mark_of(chunk, mark)
            yield Block(number, counted.rows, mark, chunk)
        yield Block(number, counted.rows, mark, None, refusal)


@dataclass(frozen=True)
class Pass(Generic[Made]):
    """What a worker does with blocks that are kept, in every pass."""

    look: Look[Made]
    label: str

    def __call__(self, blocks: Iterator[Block]) -> Answer[Made]:
        last: list[Block] = []

        def chunks() -> Iterator[Any]:
            for block in blocks:
                last[:] = [block]
                if block.chunk is not None:
                    yield block.chunk

        first = next(blocks, None)
        if first is None:
            return Answer({})
        blocks = _again(first, blocks)
        made, refusal = answered(self.label, lambda: self.look(first.number, chunks()))
        end = last[0] if last else first
        if refusal is None:
            refusal = changed_source(self.label) if end.chunk is not None else end.refusal
        return Answer(
            {first.number: Seen(end.rows, end.mark)}, made, {} if refusal is None else {first.number: refusal}
        )


def _again(first: Block, others: Iterator[Block]) -> Iterator[Block]:
    yield first
    yield from others


def mark_of(chunk: object, before: int = 0) -> int:
    """A checksum of what a chunk holds: computed when it is encoded, and kept with it. A partition that is encoded
    anew, because a worker was lost, has the same one or is not the same.
    """
    held: list[pickle.PickleBuffer] = []
    mark = zlib.crc32(pickle.dumps(chunk, protocol=5, buffer_callback=held.append), before)
    for buffer in held:
        mark = zlib.crc32(buffer.raw(), mark)
    return mark


def answered(label: str, task: Callable[[], Made]) -> tuple[Made | None, DataError | None]:
    """What a task makes, or the error that is to be raised where the fit runs, without the rows that it saw."""
    try:
        return quietly(label, task), None
    except DataError as error:
        return None, copy.copy(error)


class PartitionedTable(Table):
    """A table in partitions. An engine sets the attributes and fills in `everywhere`, `kept` and `each`."""

    promised: int | None = None
    """How many rows the footers of its files say that it has."""
    _seen: dict[int, Seen] | None = None

    @property
    def cluster(self) -> PartitionedTable:  # type: ignore[override]
        """The table itself."""
        return self

    @abstractmethod
    def everywhere(self, positions: Sequence[int], task: PartTask[Answer[Made]], merge: Merge[Made]) -> Answer[Made]:
        """What a task makes of every partition, merged in a tree."""

    @abstractmethod
    def kept(self, positions: Sequence[int], task: PartTask[Iterator[Block]]) -> KeptBlocks:
        """The blocks that a task makes of every partition, kept where they are made."""

    @abstractmethod
    def each(self, positions: Sequence[int], task: PartTask[Iterator[Block]]) -> Iterator[Block]:
        """The blocks that a task makes of every partition, in their order; one partition at a time comes here."""

    def run(
        self, columns: Sequence[Column], positions: Sequence[int], rows: int, work: Work[Made], add: Add[Made]
    ) -> Made | None:
        """One pass: the sum of what is made of all partitions; None of a table without rows."""
        task = PartTask(tuple(columns), rows, OnePass(work, self.label))
        answer = quietly(self.label, lambda: self.everywhere(positions, task, Merge(add, self.label)))
        return self._checked(answer)

    def persist(self, columns: Sequence[Column], positions: Sequence[int], rows: int, encode: Encode) -> Persisted:
        """Encode every partition where it lies, and keep that there. Every error that the table holds is met here."""
        task = PartTask(tuple(columns), rows, Keep(encode, self.label))
        return Persisted(quietly(self.label, lambda: self.kept(positions, task)), self)

    def read(self, columns: Sequence[Column], positions: Sequence[int], rows: int) -> Iterator[Batch]:
        """All rows, of which one partition at a time is here."""
        seen: dict[int, Seen] = {}
        for block in self.each(positions, PartTask(tuple(columns), rows, Keep(iter, self.label))):
            if block.refusal is not None:
                raise block.refusal
            seen[block.number] = Seen(block.rows)
            if block.chunk is not None:
                yield block.chunk
        self._checked(Answer(seen))

    def counts(self, columns: Sequence[Column], positions: Sequence[int]) -> list[int]:
        """How many rows each partition has."""
        if self._seen is None:
            self.run(columns[:1], positions[:1], COUNTED_ROWS, _used_up, _first)
        assert self._seen is not None
        return [seen.rows for _, seen in sorted(self._seen.items())]

    def _checked(self, answer: Answer[Made]) -> Made | None:
        """What was made, if all partitions answered, none refused, and all have the rows that they had before."""
        if answer.refusals:
            raise answer.refusals[min(answer.refusals)]
        counts = {number: Seen(seen.rows) for number, seen in answer.seen.items()}
        if self._seen is None and self.promised in (None, sum(seen.rows for seen in counts.values())):
            self._seen = counts
        if self._seen != counts or sorted(counts) != list(range(len(counts))):
            raise changed_source(self.label)
        self.n_rows = sum(seen.rows for seen in counts.values())
        return answer.made


COUNTED_ROWS = 1 << 18
"""Rows of a batch that is only counted."""


def _used_up(_: int, batches: Iterator[Batch]) -> None:
    for _batch in batches:
        pass


def _first(one: Made, _: Made) -> Made:
    return one


@dataclass(frozen=True)
class PartTask(Generic[Made]):
    """What is sent to workers: the columns that are read of a partition, how many rows at a time, what is done, and
    where the columns stand in what the engine hands out.
    """

    columns: tuple[Column, ...]
    rows: int
    task: Callable[[int, Iterator[Batch]], Made]
    places: Sequence[int] = ()


class KeptBlocks(ABC):
    """Blocks that an engine keeps on its workers."""

    @abstractmethod
    def everywhere(self, task: Pass[Made], merge: Merge[Made]) -> Answer[Made]:
        """What a task makes of the blocks of every partition, merged in a tree."""

    @abstractmethod
    def each(self) -> Iterator[Block]:
        """All blocks, those of one partition after those of the other."""

    @abstractmethod
    def forget(self) -> None:
        """Let workers forget them."""


class Persisted:
    """A table that is kept encoded on its workers, for several passes."""

    def __init__(self, blocks: KeptBlocks, table: PartitionedTable) -> None:
        self._blocks, self._table = blocks, table
        weakref.finalize(self, _forget, blocks).atexit = False
        self._marks: dict[int, Seen] | None = None
        self.run(_nothing, _first)
        assert self._marks is not None
        self.firsts: list[int] = []
        """The number of the first row of every partition; last, the number of rows."""
        total = 0
        for number in range(len(self._marks)):
            self.firsts.append(total)
            total += self._marks[number].rows
        self.firsts.append(total)

    def run(self, look: Look[Made], add: Add[Made]) -> Made | None:
        """One pass over what is kept."""
        label = self._table.label
        answer = quietly(label, lambda: self._blocks.everywhere(Pass(look, label), Merge(add, label)))
        made = self._table._checked(answer)
        if self._marks is None:
            self._marks = answer.seen
        if self._marks != answer.seen:
            raise changed_source(label)
        return made

    def chunks(self) -> Iterator[Any]:
        """All chunks in their order; those of one partition at a time are here."""
        blocks, seen = self._blocks.each(), dict[int, Seen]()
        while (block := quietly(self._table.label, lambda: next(blocks, None))) is not None:
            seen[block.number] = Seen(block.rows, block.mark)
            if block.chunk is not None:
                yield block.chunk
        if seen != self._marks:
            raise changed_source(self._table.label)


def _forget(blocks: KeptBlocks) -> None:
    with suppress(Exception):  # the cluster may be gone before the fit is
        blocks.forget()


def _nothing(_: int, chunks: Iterator[Any]) -> None:
    for _chunk in chunks:
        pass
