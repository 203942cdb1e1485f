"""How many rows each level of every column has, in one pass and in memory for the counts alone."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
from numpy.typing import NDArray

from privfit.rows.encoding import level_codes
from privfit.rows.rows import SUM_ROWS, Rows, in_order, one_blas_thread
from privfit.tables import Batch

Integers = NDArray[np.int64]


def count_levels(rows: Rows) -> list[Integers]:
    """For every block of the geometry, which stands for one column each, how many rows each of its levels has.

    The counts are exact: the same for every engine, batch size, row order and number of threads. Every error that the
    table holds is met here.

    Guarantee: every row is in exactly one level of every block, which is a function of that row and of public numbers;
    docs/proofs/bounds.md, Lemma 1.
    """
    blocks = rows.geometry.blocks

    def counted(piece: tuple[int, Batch]) -> list[Integers]:
        return [
            np.bincount(level_codes(block, values), minlength=block.width).astype(np.int64)
            for block, values in zip(blocks, piece[1], strict=True)
        ]

    with one_blas_thread(), ThreadPoolExecutor(rows.threads) as pool:
        parts = in_order(pool, counted, rows.pieces(SUM_ROWS), 4 * rows.threads)
        totals = next(parts)
        for part in parts:
            for total, more in zip(totals, part, strict=True):
                total += more
    return totals
