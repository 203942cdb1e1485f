"""Rows that anybody may see, as levels and numbers and as a sparse matrix. Nothing private ever passes through here."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from privfit.rows.plain import PlainRows
from privfit.rows.rows import Rows
from privfit.schema import Block, Geometry, Schema
from privfit.tables import Table

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Pairs = Sequence[tuple[int, int]]

PUBLIC_ROWS = 1 << 11
"""Rows that are added up together: so few that rounding is less than that of private sums, which are in fixed point
(docs/proofs/perturbation.md, Lemma 5)."""


class PublicRows:
    """Public rows in the encoding of a geometry that has levels, signs and shares only.

    `codes` has a column per block: places of levels, or numbers in their own units.
    """

    def __init__(self, codes: Integers | Floats, geometry: Geometry) -> None:
        self.codes, self.geometry = codes, geometry

    @classmethod
    def read(cls, tables: Sequence[Table], schema: Schema, geometry: Geometry) -> PublicRows:
        """The rows of one table after the other."""
        parts = []
        for table in tables:
            plain = PlainRows(Rows(table, schema, geometry))
            plain.read()
            parts.append(plain.every_row(lambda rows: rows))
        return cls(np.concatenate(parts), geometry)

    @property
    def n_rows(self) -> int:
        """How many there are."""
        return len(self.codes)

    @cached_property
    def design(self) -> sparse.csr_array:
        """The encoded rows: a sparse matrix, one column per encoded column."""
        blocks = self.geometry.blocks
        ones = [encoded(block, self.codes[:, place]) for place, block in enumerate(blocks)]
        columns = np.column_stack([block.start + place for block, (place, _) in zip(blocks, ones, strict=True)])
        return _sparse(columns, np.column_stack([value for _, value in ones]), self.geometry.n_columns)

    def products(self, pairs: Pairs) -> sparse.csr_array:
        """The products of encoded columns of these pairs of blocks: a sparse matrix, the columns of one pair after
        those of the other.
        """
        blocks, first, columns, values = self.geometry.blocks, 0, [], []
        for left, right in pairs:
            one, other = encoded(blocks[left], self.codes[:, left]), encoded(blocks[right], self.codes[:, right])
            columns.append(first + one[0] * blocks[right].width + other[0])
            values.append(one[1] * other[1])
            first += blocks[left].width * blocks[right].width
        return _sparse(np.column_stack(columns), np.column_stack(values), first)

    def gradient(self, weights: Floats, respond: Callable[[Floats], Floats]) -> Floats:
        """The sum over rows of x respond(x'weights), for weights of one column; in short chunks, whose sums are added
        two by two, so that rounding stays small.
        """
        sums = [np.zeros(self.geometry.n_columns)]
        for start in range(0, self.n_rows, PUBLIC_ROWS):
            part = self.design[start : start + PUBLIC_ROWS]
            sums.append(part.T @ respond(part @ weights[:, 0]))
        while len(sums) > 1:
            sums = [np.sum(sums[place : place + 2], axis=0) for place in range(0, len(sums), 2)]
        return np.asarray(sums[0][:, None], dtype=np.float64)


def encoded(block: Block, codes: Integers | Floats) -> tuple[Integers, Floats]:
    """Of every row, which of the block's columns is not zero, and its value there."""
    if block.kind == "levels":
        return codes.astype(np.int64), np.ones(len(codes))
    first = np.zeros(len(codes), dtype=np.int64)
    if block.kind == "share":
        return first, np.clip((codes - block.center) / block.unit, 0.0, 1.0)
    if block.kind != "sign":
        raise TypeError("Weights are made from levels, signs and shares; give a geometry with numbers in bins.")
    return first, np.asarray(2.0 * codes - 1.0, dtype=np.float64)


def _sparse(columns: Integers, values: Floats, width: int) -> sparse.csr_array:
    rows, each = columns.shape
    kind = np.int32 if max(rows * each, width) < 2**31 else np.int64
    ends = np.arange(0, rows * each + 1, each, dtype=kind)
    return sparse.csr_array((values.ravel(), columns.ravel().astype(kind), ends), shape=(rows, width))
