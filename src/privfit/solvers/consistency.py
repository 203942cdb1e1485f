"""Noisy moments made consistent: what must add up in every table adds up again.

For every block of levels, the entries of a column with the block's levels sum to that column's own total, because each
row has exactly one level. The nearest consistent moments are a projection: post-processing, which costs no privacy and
averages noise away.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array, csr_array
from scipy.sparse.linalg import lsqr

from privfit.schema import ZERO, Geometry


def project(values: NDArray[np.float64], geometry: Geometry, n_rows: float | None) -> NDArray[np.float64]:
    """The nearest values (least squares; all have equal noise) that could be the distinct products of some table.

    `values` are in units of 1 on one lattice, as `Moments.distinct` orders them. `n_rows` is the public number of rows,
    or None when the last of the values is a noisy one.
    """
    constraints, totals = _constraints(geometry, len(values), n_rows)
    if constraints.shape[0] == 0:
        return values
    excess = constraints @ values - totals
    correction: NDArray[np.float64] = lsqr(constraints, excess, atol=1e-12, btol=1e-12, iter_lim=10_000)[0]
    return values - correction


def _constraints(geometry: Geometry, size: int, n_rows: float | None) -> tuple[csr_array, NDArray[np.float64]]:
    """Rows of  sum of a block's entries - own total = right-hand side."""
    table = geometry.products
    rows: list[int] = []
    columns: list[int] = []
    signs: list[float] = []
    totals: list[float] = []
    blocks = [block for block in geometry.blocks if block.kind == "levels"]

    def add(plus: list[int], minus: list[int], total: float) -> None:
        rows.extend([len(totals)] * (len(plus) + len(minus)))
        columns.extend([*plus, *minus])
        signs.extend([1.0] * len(plus) + [-1.0] * len(minus))
        totals.append(total)

    for block in blocks:
        levels = np.arange(block.start, block.stop)
        counts = table[levels, levels].tolist()
        if n_rows is not None:
            add(counts, [], n_rows)
        elif size > geometry.n_products:
            add(counts, [size - 1], 0.0)
        for column in range(int(geometry.intercept), len(table)):
            own = _own_total(geometry, table, column, blocks)
            if own and not block.start <= column < block.stop:
                entries = table[levels, column].tolist()
                if sorted(entries) != sorted(own):
                    add(entries, own, 0.0)
    shape = (len(totals), size)
    return coo_array((signs, (rows, columns)), shape=shape).tocsr(), np.array(totals)


def _own_total(geometry: Geometry, table: NDArray[np.int64], column: int, blocks: list) -> list[int]:  # type: ignore[type-arg]
    """The products that give the sum of a column over all rows, or nothing when none does."""
    if geometry.intercept:
        return [int(table[0, column])]
    for block in blocks:
        if block.start <= column < block.stop:
            return [int(table[column, column])]
    first = blocks[0]
    entries = table[first.start : first.stop, column]
    return [int(entry) for entry in entries if entry != ZERO]
