"""How many rows each level of every column has, in one pass and in memory for the counts alone."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from privfit.rows.encoding import level_codes
from privfit.rows.rows import Rows
from privfit.schema import Block
from privfit.tables import Batch

Integers = NDArray[np.int64]


@dataclass(frozen=True)
class CountedLevels:
    """How many of some rows each level of every block has; on workers, too."""

    blocks: tuple[Block, ...]

    def __call__(self, piece: tuple[int, Batch]) -> list[Integers]:
        return [
            np.bincount(level_codes(block, values), minlength=block.width).astype(np.int64)
            for block, values in zip(self.blocks, piece[1], strict=True)
        ]


def count_levels(rows: Rows) -> list[Integers]:
    """For every block of the geometry, which stands for one column each, how many rows each of its levels has.

    The counts are exact: the same for every engine, batch size, row order and number of threads. Every error that the
    table holds is met here.

    Guarantee: every row is in exactly one level of every block, which is a function of that row and of public numbers;
    docs/proofs/bounds.md, Lemma 1.
    """
    return rows.total(CountedLevels(rows.geometry.blocks))
