"""How strongly a column goes with a target: the distance between what was counted and independence."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from privfit.privacy import Adjacency

Integers = NDArray[np.int64]

UNIT = 1 << 12
"""Steps of a score per row: shares of classes are rounded to them. No command varies it."""


def class_shares(noisy: Integers) -> list[int]:
    """Shares of classes from noisy counts, in steps of one in UNIT, rounded down: they add up to at most UNIT."""
    counts = [max(int(count), 0) for count in noisy]
    total = max(sum(counts), 1)
    return [UNIT * count // total for count in counts]


def association_scores(tables: Sequence[Integers], shares: Sequence[int], rows: int) -> list[int]:
    """One whole score per table of counts, levels by classes, in UNITs of a row.

    The score is the sum over cells of |N(level, class) - share(class) N(level)|, less what sampling error
    alone gives a column of so many levels. That follows from public facts and from what was released before: `shares`
    and `rows`.
    With true shares it is the total variation between levels and classes on one side and independence on the other,
    twice as many rows as would have to change.

    Guarantee: docs/proofs/column-selection.md, Lemma 1.
    """
    parts = np.asarray(shares, dtype=np.int64)
    found = []
    for table in tables:
        gaps = np.abs(UNIT * table - parts * table.sum(axis=1, keepdims=True))
        found.append(int(gaps.sum()) - if_independent(len(table), shares, rows))
    return found


def if_independent(levels: int, shares: Sequence[int], rows: int) -> int:
    """What a column of so many even levels scores on average, where the target does not depend on it."""
    spread = sum(math.sqrt(share / UNIT * max(1 - share / UNIT, 0.0)) for share in shares)
    return round(UNIT * math.sqrt(2 / math.pi * levels * max(rows, 0)) * spread)


def association_sensitivity(adjacency: Adjacency) -> int:
    """The most by which one row changes the difference of two scores.

    Guarantee: docs/proofs/column-selection.md, Lemma 1.
    """
    return (8 if adjacency == "replace-one" else 4) * UNIT
