"""One of exponentially many candidates, by the exponential mechanism, without listing them.

A candidate changes the weights of one column, each level up or down. What it gains is a sum of terms of one level's
sign, or of two neighbouring ones, so that the weights of all patterns of a column add up by a recursion from level to
level, and signs are drawn one after the other.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal, localcontext

import numpy as np
from numpy.typing import NDArray

from privfit.privacy.samplers.norms import Source

Integers = NDArray[np.int64]

DOWN, UP = 0, 1
"""The two directions in which a level moves."""
_DIGITS = Context(prec=70, Emin=MIN_EMIN, Emax=MAX_EMAX)  # ten digits more than 200 bits: rounding below 2^-150 in all
_DRAWS, _DRAW_BITS = 4, 50  # a uniform number of 200 bits: the law is off by less than 2^-150
_ALL = 1 << (_DRAWS * _DRAW_BITS)
"""A uniform number of all draws' bits is below it."""


@dataclass(frozen=True)
class Chain:
    """What moving the levels of one column gains: of every level alone (levels, 2), and of every two neighbours (levels
    - 1, 2, 2), by signs DOWN and UP.
    """

    alone: Integers
    linked: Integers | None = None

    @property
    def levels(self) -> int:
        """How many levels the column has."""
        return len(self.alone)

    def gain(self, signs: Sequence[int]) -> int:
        """What one pattern gains."""
        total = sum(int(self.alone[level, sign]) for level, sign in enumerate(signs))
        if self.linked is not None:
            total += sum(int(link[signs[level], signs[level + 1]]) for level, link in enumerate(self.linked))
        return total


def choose_pattern(chains: Sequence[Chain], scale: float, source: Source) -> tuple[int, tuple[int, ...]]:
    """A column and a sign for each of its levels, with probability proportional to exp(gain / scale) times the column's
    share: all columns, and all patterns of a column, have the same.

    Guarantee: epsilon-DP (and epsilon-bounded range) if one row changes no difference of two gains by more than epsilon
    * scale, up to a probability below 2^-150; docs/proofs/selection.md, Lemma 5.
    """
    with localcontext(_DIGITS):
        rate = 1 / (Decimal(scale) * (1 + Decimal(2) ** -50))  # more noise than asked, by far more than rounding takes
        tails = [_tails(chain, rate) for chain in chains]
        column = _drawn([tail[0] for tail in tails], source)
        chain, signs = chains[column], list[int]()
        for level in range(chain.levels):
            weights = list(tails[column][1][level])
            if level and chain.linked is not None:
                weights = [
                    weight * _exp(chain.linked[level - 1][signs[-1], sign], rate) for sign, weight in enumerate(weights)
                ]
            signs.append(_drawn(weights, source))
    return column, tuple(signs)


def _tails(chain: Chain, rate: Decimal) -> tuple[Decimal, list[tuple[Decimal, Decimal]]]:
    """The weight of all patterns together, and for every level and sign that of all patterns of the levels from there
    on, each sign weighing a half.
    """
    after = (Decimal(1), Decimal(1))
    found: list[tuple[Decimal, Decimal]] = []
    for level in reversed(range(chain.levels)):
        if level + 1 < chain.levels:
            after = _through(chain, level, found[-1], rate)
        down, up = (_exp(chain.alone[level, sign], rate) * after[sign] / 2 for sign in (DOWN, UP))
        found.append((down, up))
    return found[-1][DOWN] + found[-1][UP], found[::-1]


def _through(chain: Chain, level: int, after: tuple[Decimal, Decimal], rate: Decimal) -> tuple[Decimal, Decimal]:
    """What follows a level, for each of its signs."""
    if chain.linked is None:
        total = after[DOWN] + after[UP]
        return total, total
    link = chain.linked[level]
    down, up = (
        sum((_exp(link[sign, then], rate) * after[then] for then in (DOWN, UP)), Decimal(0)) for sign in (DOWN, UP)
    )
    return down, up


def _exp(gain: int, rate: Decimal) -> Decimal:
    return (int(gain) * rate).exp()


def _drawn(weights: Sequence[Decimal], source: Source) -> int:
    """A place with probability proportional to its weight."""
    whole = 0
    for part in source.below(np.full(_DRAWS, 1 << _DRAW_BITS, dtype=np.int64)).tolist():
        whole = whole << _DRAW_BITS | part
    left = sum(weights, Decimal(0)) * whole / _ALL
    for place, weight in enumerate(weights):
        if left < weight:
            return place
        left -= weight
    return len(weights) - 1
