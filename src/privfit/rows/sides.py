"""Rows of several classes as rows of two: one class against all others, for each in turn."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from privfit.rows.cached_design import CachedDesign
from privfit.rows.layout import Chunk


class OneAgainstRest(CachedDesign):
    """The same rows, whose target is 1 for one class and -1 for all others.

    Codes and numbers are shared with the rows of all classes; only the target is new.
    """

    def __init__(self, kept: CachedDesign, place: int) -> None:
        self.__dict__.update(kept.__dict__)
        self._of_all, self._place = kept, place
        self._chunks = None if kept._chunks is None else [self._sided(chunk) for chunk in kept._chunks]

    def _sided(self, chunk: Chunk) -> Chunk:
        return replace(chunk, target=np.where(chunk.target == self._place, 1.0, -1.0))

    def _every_chunk(self) -> Iterator[Chunk]:
        if self._chunks is not None:
            yield from self._chunks
            return
        for chunk in self._of_all._every_chunk():
            yield self._sided(chunk)


def one_against_rest(kept: CachedDesign, classes: int) -> Iterator[CachedDesign]:
    """The rows once for every class, which is the second of two there; of two classes, the rows as they are."""
    if classes == 1:
        yield kept
        return
    for place in range(classes):
        yield OneAgainstRest(kept, place)
