"""Choosing one of several public candidates by private scores, and coins that decide which rows take part in what."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from privfit.privacy.shapes import Source

_MOST = 1 << 62


def permute_and_flip(scores: Sequence[int], scale: float, source: Source) -> int:
    """The place of one of the scores, larger ones more likely: in random order, take the i-th with probability exp(-(best - score_i) / scale).

    A geometric number is at least k with probability exp(-k / scale), so every step is exact for whole-number scores.

    Guarantee: epsilon-DP if one row changes no difference of two scores by more than epsilon * scale; docs/proofs/selection.md, Lemma 1.
    """
    best = max(scores)
    open_ = list(range(len(scores)))
    order = [open_.pop(int(place)) for place in source.below(np.arange(len(scores), 0, -1))]
    flips = source.geometric(len(scores), scale)  # all at once: how many are needed must not show
    taken = [place for place, flip in zip(order, flips.tolist(), strict=True) if flip >= min(best - scores[place], _MOST)]
    return taken[0]


@dataclass(frozen=True)
class KeyedCoins:
    """A coin for every row number, heads about one time in five, from a key: nobody who does not know the key can tell them."""

    key: bytes = field(repr=False)

    def heads(self, first: int, count: int) -> NDArray[np.bool_]:
        """Which of `count` rows from number `first` on show heads."""
        start = first // _BLOCK
        stop = (first + count + _BLOCK - 1) // _BLOCK
        stream = b"".join(hashlib.shake_256(self.key + block.to_bytes(8)).digest(_BLOCK) for block in range(start, stop))
        thrown = np.frombuffer(stream, dtype=np.uint8)[first - start * _BLOCK :][:count]
        return thrown < HEADS_OF_256


_BLOCK = 1 << 14
HEADS_OF_256 = 51
