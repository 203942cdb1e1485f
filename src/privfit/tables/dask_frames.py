"""Frames of Dask: partitions are pandas frames, worked on where Dask keeps or makes them.

Without a client of `dask.distributed` Dask runs everything in threads of this process, and the same code works.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, TypeVar

from privfit.tables.pandas_frames import PandasTable
from privfit.tables.partitioned import Answer, Block, KeptBlocks, Merge, PartitionedTable, PartTask, Pass
from privfit.tables.table import Batch

Made = TypeVar("Made")

TREE = 16
"""Answers that one task merges: fewer, and the tree is deeper; more, and one worker holds more answers at a time."""


def is_dask(table: Any) -> bool:
    """Whether this is a frame of Dask, found out without importing it."""
    kind = type(table)
    return kind.__module__.partition(".")[0] in ("dask", "dask_expr") and kind.__name__ == "DataFrame"


class DaskTable(PartitionedTable):
    """A frame of Dask. Its columns are asked for by name, so that no others are read."""

    label = "Dask frame"

    def __init__(self, frame: Any) -> None:
        self._frame, self._columns = frame, tuple(frame.columns)
        self.labels, self.names = self._columns, tuple(map(str, self._columns))
        self.n_rows = self.promised = _promised(frame)

    def everywhere(self, positions: Sequence[int], task: PartTask[Answer[Made]], merge: Merge[Made]) -> Answer[Made]:
        return _merged(self._made(positions, task), merge)

    def kept(self, positions: Sequence[int], task: PartTask[Iterator[Block]]) -> KeptBlocks:
        import dask

        return DaskBlocks(dask.persist(*self._made(positions, task)))

    def each(self, positions: Sequence[int], task: PartTask[Iterator[Block]]) -> Iterator[Block]:
        for made in self._made(positions, task):
            yield from made.compute()

    def _made(self, positions: Sequence[int], task: PartTask[Any]) -> list[Any]:
        """What a task makes of every partition, to be computed."""
        chosen = list(dict.fromkeys(positions))
        places = [chosen.index(position) for position in positions]
        frame = self._frame[[self._columns[position] for position in chosen]]
        sent = _sent(replace(task, places=places))
        return [_delayed(_on_partition)(sent, number, part) for number, part in enumerate(frame.to_delayed())]


def _promised(frame: Any) -> int | None:
    """How many rows the footers of Parquet files say that a frame has, where it is these files and nothing else."""
    with suppress(Exception):  # Dask's own names for what it reads, which may change: then nothing is promised
        read = frame.optimize(fuse=False).expr
        if type(read).__name__.startswith("ReadParquet") and not read.operand("filters"):
            return int(sum(read._get_lengths()))
    return None


class DaskBlocks(KeptBlocks):
    """Blocks that Dask keeps: it makes those of a lost worker anew, by the same tasks."""

    def __init__(self, parts: Sequence[Any]) -> None:
        self._parts = parts

    def everywhere(self, task: Pass[Made], merge: Merge[Made]) -> Answer[Made]:
        sent = _sent(task)
        return _merged([_delayed(_on_blocks)(sent, part) for part in self._parts], merge)

    def each(self) -> Iterator[Block]:
        for part in self._parts:
            yield from part.compute()

    def forget(self) -> None:
        self._parts = ()


def _delayed(function: Any) -> Any:
    import dask

    return dask.delayed(function, pure=False, traverse=False)


def _sent(task: object) -> Any:
    """A task as one piece of data that all workers share, made anew if the worker that holds it is lost."""
    import cloudpickle

    return _delayed(cloudpickle.dumps(task))


def _merged(answers: list[Any], merge: Merge[Made]) -> Answer[Made]:
    """The answers of all partitions, merged by workers in a tree."""
    sent = _sent(merge)
    while len(answers) > 1:
        groups = (answers[first : first + TREE] for first in range(0, len(answers), TREE))
        answers = [_delayed(_merge)(sent, *group) for group in groups]
    found: Answer[Made] = answers[0].compute()
    return found


# -- on workers ------------------------------------------------------------------------------------


def _on_partition(sent: bytes, number: int, frame: Any) -> Any:
    task: PartTask[Any] = pickle.loads(sent)
    made = task.task(number, _batches(task, frame))
    return list(made) if isinstance(made, Iterator) else made


def _batches(task: PartTask[Any], frame: Any) -> Iterator[Batch]:
    yield from PandasTable(frame).batches(task.columns, task.places, task.rows)


def _on_blocks(sent: bytes, blocks: list[Block]) -> Any:
    return pickle.loads(sent)(iter(blocks))


def _merge(sent: bytes, *answers: Any) -> Any:
    return pickle.loads(sent)(answers)
