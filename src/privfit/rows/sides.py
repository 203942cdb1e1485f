"""Rows of several classes as rows of two: one class against all others, for each in turn."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from privfit.rows.cached_design import CachedDesign
from privfit.rows.workers import Chunk, ChunkTask, Sums


class OneAgainstRest(CachedDesign):
    """The same rows, whose target is 1 for one class and -1 for all others.

    Codes and numbers are shared with the rows of all classes; only the target is new.
    """

    def __init__(self, kept: CachedDesign, place: int) -> None:
        self._share(kept)
        self._of_all, self._place = kept, place
        self._chunks = None if kept._chunks is None else [_sided(chunk, place) for chunk in kept._chunks]

    def total(self, task: ChunkTask[Chunk], side_by_side: bool = True) -> Sums:
        """As for the rows of all classes, which workers see as rows of two."""
        if self._kept is None:
            return super().total(task, side_by_side)
        return self._of_all.total(OfSides(task, self._place), side_by_side)

    def _every_chunk(self) -> Iterator[Chunk]:
        if self._chunks is not None:
            yield from self._chunks
            return
        for chunk in self._of_all._every_chunk():
            yield _sided(chunk, self._place)


@dataclass(frozen=True)
class OfSides:
    """A task on rows whose target is 1 for one class and -1 for all others."""

    task: ChunkTask[Chunk]
    place: int

    def __call__(self, first: int, chunk: Chunk) -> Sums:
        return self.task(first, _sided(chunk, self.place))


def _sided(chunk: Chunk, place: int) -> Chunk:
    return replace(chunk, target=np.where(chunk.target == place, 1.0, -1.0))


def one_against_rest(kept: CachedDesign, classes: int) -> Iterator[CachedDesign]:
    """The rows once for every class, which is the second of two there; of two classes, the rows as they are."""
    if classes == 1:
        yield kept
        return
    for place in range(classes):
        yield OneAgainstRest(kept, place)
