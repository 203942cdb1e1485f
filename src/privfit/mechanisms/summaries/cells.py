"""Counts of the levels of a category, or of the bins of a number."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from privfit.mechanisms.summaries.questions import LEVEL, Figures, Interval, Question, Share
from privfit.privacy import Draws
from privfit.privacy.parts import Laplace, Part
from privfit.schema import Block, Column, make_block

Integers = NDArray[np.int64]


@dataclass(frozen=True)
class Cells(Question):
    """How many rows each level or bin has, with discrete Laplace noise.

    Guarantee: docs/proofs/description.md, Lemma 5.
    """

    column: Column

    def block(self, start: int) -> Block:
        return make_block(self.column, start, whole=True)

    def parts(self, share: Share) -> tuple[Part, ...]:
        return (self._noise(share),)

    def draw(self, counts: Integers, share: Share, draws: Draws) -> Integers:
        return draws.add(counts)

    def figures(self, drawn: Integers, share: Share) -> Figures:
        return {"counts": around(drawn, self._noise(share).scale)}

    def _noise(self, share: Share) -> Laplace:
        return share.laplace(self.block(0).width, 2 if share.adjacency == "replace-one" else 1)


@dataclass(frozen=True)
class RowsWithin(Question):
    """How many rows are at some of the levels or bins of a column.

    Guarantee: docs/proofs/description.md, Lemma 5.
    """

    column: Column
    wanted: tuple[int, ...]

    def block(self, start: int) -> Block:
        return make_block(self.column, start, whole=True)

    def parts(self, share: Share) -> tuple[Part, ...]:
        return (share.laplace(1, 1),)

    def draw(self, counts: Integers, share: Share, draws: Draws) -> Integers:
        return draws.add(counts[list(self.wanted)].sum(keepdims=True))

    def figures(self, drawn: Integers, share: Share) -> Figures:
        return {"count": around(drawn, share.scale(1))}


def around(noisy: Integers, scale: float) -> Interval:
    """Noisy counts, with the least whole distance that discrete Laplace noise keeps with probability LEVEL."""
    keep = math.exp(-1.0 / scale)
    half = max(math.ceil(-scale * math.log((1.0 - LEVEL) * (1.0 + keep) / 2.0)) - 1, 0) if keep > 0 else 0
    value = noisy.astype(np.float64)
    return Interval(value, value - half, value + half)
