"""Sparse matrices of scipy: never made dense but for a batch of rows. Columns are known by position."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, TypeGuard

import numpy as np
from scipy import sparse

from privfit.schema import Column
from privfit.tables.arrays import column_values
from privfit.tables.errors import DataError
from privfit.tables.table import Batch, Table, TableLike

BATCH_VALUES = 1 << 23
"""Cells of a dense batch at most, 64 MB: wide rows come in shorter batches."""


def is_sparse(table: TableLike) -> TypeGuard[sparse.spmatrix]:
    """Whether this is a sparse matrix or array of scipy."""
    return bool(sparse.issparse(table))


class SparseTable(Table):
    """A sparse matrix in memory: CSR as it is, other formats as a copy in CSR, which is as sparse.

    Entries that are given twice are added up, as scipy does. What is not stored is 0.
    """

    label = "sparse matrix"
    in_memory = True

    def __init__(self, matrix: Any) -> None:
        if len(matrix.shape) != 2:
            raise DataError(
                f"A sparse array with {len(matrix.shape)} dimension(s) was given; a table has two, rows and columns. "
                "Reshape it. Nothing was charged."
            )
        if matrix.dtype.kind not in "biuf":
            raise DataError("A sparse matrix that holds no real numbers was given. Convert it. Nothing was charged.")
        self._rows = matrix.tocsr()
        self.n_rows = matrix.shape[0]
        self.width = matrix.shape[1]

    def read(self, columns: Sequence[Column], positions: Sequence[int], rows: int) -> Iterator[Batch]:
        chosen = self._rows if list(positions) == list(range(self.width)) else self._rows[:, list(positions)]
        size = max(1, min(rows, BATCH_VALUES // max(1, len(positions))))
        for start in range(0, self._rows.shape[0], size):
            dense = np.asfortranarray(chosen[start : start + size].toarray())
            yield [column_values(dense[:, place], column) for place, column in enumerate(columns)]
