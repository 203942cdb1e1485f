"""Choosing one of several public candidates by private scores, and random bits for every row."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from privfit.privacy.samplers.norms import GeometricSource

Rule = Literal["permute-and-flip", "exponential"]

_MOST = 1 << 62  # larger gaps between two scores count as this one: geometric numbers are held in 64 bits


def select_each(menus: Sequence[Sequence[int]], scale: float, rule: Rule, source: GeometricSource) -> list[int]:
    """For every menu of integer scores the place of one of them, larger ones more likely, independently of the
    other menus.

    Guarantee: epsilon-DP if the changes that one row makes to differences of two scores, the largest of each menu, add
    up to at most epsilon * scale; docs/proofs/selection.md, Lemmas 1 and 3.
    """
    return permute_and_flip(menus, scale, source) if rule == "permute-and-flip" else exponential(menus, scale, source)


def permute_and_flip(menus: Sequence[Sequence[int]], scale: float, source: GeometricSource) -> list[int]:
    """In random order, take the i-th score of a menu with probability exp(-(best - score_i) / scale).

    A geometric number is at least k with probability exp(-k / scale), so every step is exact for integer scores.

    Guarantee: docs/proofs/selection.md, Lemma 1.
    """
    sizes = [len(menu) for menu in menus]
    drawn = source.below(np.concatenate([np.arange(size, 0, -1) for size in sizes])).tolist()
    flips = source.geometric(sum(sizes), scale).tolist()  # all at once: how many are needed must not show
    chosen, first = [], 0
    for menu, size in zip(menus, sizes, strict=True):
        open_ = list(range(size))
        order = [open_.pop(place) for place in drawn[first : first + size]]
        best = max(menu)
        taken = [
            place
            for place, flip in zip(order, flips[first : first + size], strict=True)
            if flip >= min(best - menu[place], _MOST)
        ]
        chosen.append(taken[0])
        first += size
    return chosen


def exponential(menus: Sequence[Sequence[int]], scale: float, source: GeometricSource) -> list[int]:
    """Take a score of a menu with probability proportional to exp(score / scale).

    A place at random is kept with probability exp(-(best - score) / scale), and another is tried otherwise: exact, as
    above. Tries are made as many at a time as the menu is long; how often more are needed depends on the scores.

    Guarantee: docs/proofs/selection.md, Lemma 3.
    """
    chosen = [-1] * len(menus)
    open_ = list(range(len(menus)))
    while open_:
        limits = np.concatenate([np.full(len(menus[menu]), len(menus[menu]), dtype=np.int64) for menu in open_])
        places, flips = source.below(limits).tolist(), source.geometric(len(limits), scale).tolist()
        first, still = 0, []
        for number in open_:
            menu = menus[number]
            best, last = max(menu), first + len(menu)
            kept = (
                place
                for place, flip in zip(places[first:last], flips[first:last], strict=True)
                if flip >= min(best - menu[place], _MOST)
            )
            chosen[number] = next(kept, -1)
            if chosen[number] < 0:
                still.append(number)
            first = last
        open_ = still
    return chosen


_BLOCK = 1 << 14
"""Rows whose bits one hash yields: few calls for long tables, and little that is hashed in vain for a batch."""
ONES_OF_256 = 51
"""How many of 256 rows choose between candidates that the others fit, where nobody says: about one in five. Fewer make
choices noisier, more make fits so."""


@dataclass(frozen=True)
class KeyedBits:
    """A random bit for every row number, one about one time in five or as often as asked, from a key: nobody who does
    not know the key can predict them.
    """

    key: bytes = field(repr=False)

    def ones(self, first: int, count: int, of_256: int = ONES_OF_256) -> NDArray[np.bool_]:
        """Which of `count` rows from number `first` on have a one: each with probability `of_256` / 256."""
        start = first // _BLOCK
        stop = (first + count + _BLOCK - 1) // _BLOCK
        stream = b"".join(
            hashlib.shake_256(self.key + block.to_bytes(8)).digest(_BLOCK) for block in range(start, stop)
        )
        drawn = np.frombuffer(stream, dtype=np.uint8)[first - start * _BLOCK :][:count]
        return drawn < of_256
