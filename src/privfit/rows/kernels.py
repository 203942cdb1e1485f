"""What is summed over rows: kernels, and the sums that they make of pieces of a table."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from privfit.rows.encoding import Encoder
from privfit.rows.errors import too_many_rows
from privfit.rows.workers import Sums
from privfit.tables import Batch


class Kernel(Protocol):
    """What is summed over rows."""

    @property
    def step(self) -> int:
        """The integer that stands for 1 in a feature."""
        ...

    @property
    def target_units(self) -> int:
        """The integer that stands for 1 in the target."""
        ...

    @property
    def largest(self) -> int:
        """The most that one row can add to any entry that is used."""
        ...

    def __call__(self, encoded: NDArray[np.float64]) -> NDArray[np.float64]:
        """The sum over these rows (one column of `encoded` per row): integers, exact in float64."""
        ...


class RowBits(Protocol):
    """A random bit per row, drawn without looking at it."""

    def ones(self, first: int, count: int) -> NDArray[np.bool_]:
        """Which of `count` rows from number `first` on have a 1. The same answer whenever asked."""
        ...


PieceSum = Callable[[NDArray[np.float64], int], Sums]
"""From encoded rows and the number of the first of them to sums over them."""


@dataclass(frozen=True)
class EncodedSum:
    """What is made of a piece: it is encoded, and summed."""

    encoder: Encoder
    piece_sum: PieceSum
    most: int
    """Rows that 64-bit sums can hold."""

    def __call__(self, piece: tuple[int, Batch]) -> Sums:
        first, batch = piece
        if first + len(batch[0]) > self.most:
            raise too_many_rows(self.most)
        return self.piece_sum(self.encoder.encode(batch), first)


def kernel_sum(kernel: Kernel, encoded: NDArray[np.float64], first: int) -> Sums:
    """The sum over all rows."""
    return [kernel(encoded).astype(np.int64)]


def kernel_sums(kernel: Kernel, bits: RowBits, encoded: NDArray[np.float64], first: int) -> Sums:
    """The sums over rows whose bit is 0 and over those whose bit is 1, and how many have a 1."""
    ones = bits.ones(first, encoded.shape[1])
    sums = [kernel(encoded[:, chosen]).astype(np.int64) for chosen in (~ones, ones)]
    return [*sums, np.asarray(ones.sum(), dtype=np.int64)]
