"""How many rows each level of every column has together with each level of the target, in one pass."""

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
class PairedLevels:
    """How many of some rows are in each pair of a block's level and the target's; on workers, too."""

    blocks: tuple[Block, ...]
    target: Block

    def __call__(self, piece: tuple[int, Batch]) -> list[Integers]:
        *columns, goal = piece[1]
        classes, width = level_codes(self.target, goal), len(self.target.labels)
        found = []
        for block, values in zip(self.blocks, columns, strict=True):
            levels = len(block.labels)
            pairs = level_codes(block, values) * width + classes
            found.append(np.bincount(pairs, minlength=levels * width).astype(np.int64).reshape(levels, width))
        return found


def count_paired_levels(rows: Rows) -> list[Integers]:
    """For every block of the geometry a table of exact counts: its levels by those of the target.

    Guarantee: every row is in exactly one cell of every table, which is a function of that row and of public numbers;
    docs/proofs/column-selection.md.
    """
    assert rows.geometry.target is not None
    return rows.total(PairedLevels(rows.geometry.blocks, rows.geometry.target))
