"""How encoded rows lie in memory: levels as positions, several categories together as one number; look-ups and counts instead of products.

A row of fourteen columns in bins takes eight bytes.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privfit.rows.encoding import encode_numbers, hats, level_codes, on_knots, within_bounds
from privfit.schema import Block, Geometry, Numeric
from privfit.tables import Batch

Floats = NDArray[np.float64]
Codes = NDArray[np.uint16]

STEP = 1 << 16
MOST_CODES = 1 << 12
STEPS_PER_KNOT = 8


@dataclass(frozen=True)
class Chunk:
    """Some rows: one array of codes per group of categories, one column per number, and the target."""

    codes: tuple[Codes, ...]
    numbers: Floats
    target: Floats

    @property
    def nbytes(self) -> int:
        """How much memory they take."""
        return self.numbers.nbytes + self.target.nbytes + sum(code.nbytes for code in self.codes)

    def every(self, step: int, first: int) -> Chunk:
        """Every step-th of these rows, from the one in place `first` on."""
        return Chunk(tuple(code[first::step] for code in self.codes), self.numbers[first::step], self.target[first::step])


@dataclass(frozen=True)
class Member:
    """A block of a group: how many levels it has, and how far apart they are among the group's codes."""

    block: Block
    levels: int
    stride: int

    @cached_property
    def columns(self) -> Floats:
        """The encoded columns of each level: (levels, width). Hats are followed in small steps between knots."""
        if self.block.kind == "levels":
            return np.eye(self.levels)
        if self.block.kind == "sign":
            return np.array([[-1.0], [1.0]])
        return hats(np.arange(self.levels) / STEPS_PER_KNOT, self.block.width)

    def codes(self, values: Any) -> NDArray[np.intp]:
        """The level of every row: a function of that row alone, to the bit. A logarithm's last place may depend on where in memory a value stands; comparing does not."""
        column = self.block.column
        if self.block.kind != "hats":
            return level_codes(self.block, values)
        assert isinstance(column, Numeric)
        if column.is_wide:
            return np.searchsorted(self._halves, within_bounds(column, values), side="right")
        return np.rint(on_knots(self.block, values) * STEPS_PER_KNOT).astype(np.intp)

    @cached_property
    def _halves(self) -> tuple[float, ...]:
        assert isinstance(self.block.column, Numeric)
        return self.block.column.between(self.levels - 1)

    def values(self, weights: Floats) -> Floats:
        """What each level adds to the predictor, for the block's own weights: (levels, classes)."""
        return weights if self.block.kind == "levels" else self.columns @ weights

    def gathered(self, sums: Floats) -> Floats:
        """The other way round: sums per level to sums per encoded column."""
        return sums if self.block.kind == "levels" else self.columns.T @ sums


@dataclass(frozen=True)
class Layout:
    """Where encoded columns are in a chunk. From public facts."""

    geometry: Geometry

    @cached_property
    def numbers(self) -> tuple[Block, ...]:
        """The blocks that are numbers."""
        return tuple(block for block in self.geometry.blocks if block.kind == "slope")

    @cached_property
    def number_columns(self) -> NDArray[np.intp]:
        """Where numbers are among the encoded columns, the intercept among them."""
        places = [0] if self.geometry.intercept else []
        return np.array([*places, *(block.start for block in self.numbers)], dtype=np.intp)

    @cached_property
    def groups(self) -> tuple[tuple[Member, ...], ...]:
        """Blocks of levels, joined while all their levels together have few codes."""
        groups: list[list[Member]] = []
        size = MOST_CODES + 1
        for block in self.geometry.blocks:
            if block.kind not in ("levels", "sign", "hats"):
                continue
            levels = (block.width - 1) * STEPS_PER_KNOT + 1 if block.kind == "hats" else len(block.labels)
            if size * levels > MOST_CODES:
                groups.append([])
                size = 1
            groups[-1].append(Member(block, levels, size))
            size *= levels
        return tuple(map(tuple, groups))

    def sizes(self) -> list[int]:
        """How many codes each group has."""
        return [group[-1].stride * group[-1].levels for group in self.groups]

    def chunk(self, batch: Batch, start: int, stop: int) -> tuple[tuple[Codes, ...], Floats]:
        """Rows start..stop of a batch."""
        place = {block.start: position for position, block in enumerate(self.geometry.blocks)}
        codes = []
        for group in self.groups:
            joined = np.zeros(stop - start, dtype=np.intp)
            for member in group:
                joined += member.codes(batch[place[member.block.start]][start:stop]) * member.stride
            codes.append(joined.astype(np.uint16))
        numbers = np.empty((len(self.number_columns), stop - start))
        if self.geometry.intercept:
            numbers[0] = STEP
        if self.numbers:
            values = [batch[place[block.start]][start:stop] for block in self.numbers]
            encode_numbers(list(self.numbers), values, numbers[int(self.geometry.intercept) :], STEP)
        return tuple(codes), np.ascontiguousarray(numbers.T) / STEP

    def look_up(self, weights: Floats) -> list[Floats]:
        """What every code of every group adds to the predictors, for weights of shape (columns, classes)."""
        tables = []
        for group in self.groups:
            table = np.zeros((1, weights.shape[1]))
            for member in group:
                values = member.values(weights[member.block.start : member.block.stop])
                table = (values[:, None, :] + table[None, :, :]).reshape(-1, weights.shape[1])
            tables.append(np.asfortranarray(table))
        return tables

    def gather(self, counts: list[Floats], numbers: Floats) -> Floats:
        """Sums per code of every group, and of the number columns, as sums per encoded column."""
        total = np.empty((self.geometry.n_columns, numbers.shape[1]))
        total[self.number_columns] = numbers
        for group, sums in zip(self.groups, counts, strict=True):
            for member in group:
                apart = sums.reshape(-1, member.levels, member.stride, sums.shape[-1]).sum(axis=(0, 2))
                total[member.block.start : member.block.stop] = member.gathered(apart)
        return total

    def turned(self, chunk: Chunk, frequencies: Floats) -> Floats:
        """The products of encoded rows with some columns, each row's by itself: in a matrix product other rows could change how one is rounded."""
        products = np.zeros((len(chunk.target), frequencies.shape[1]))
        for code, table in zip(chunk.codes, self.look_up(frequencies), strict=True):
            products += table[code]
        for place, column in enumerate(self.number_columns):
            products += chunk.numbers[:, place, None] * frequencies[column]
        return products

    def dense(self, chunk: Chunk) -> Floats:
        """The encoded rows themselves."""
        rows = np.zeros((len(chunk.target), self.geometry.n_columns))
        rows[:, self.number_columns] = chunk.numbers
        every = np.arange(len(rows))
        for group, code in zip(self.groups, chunk.codes, strict=True):
            for member in group:
                level = code.astype(np.intp) // member.stride % member.levels
                if member.block.kind == "levels":
                    rows[every, member.block.start + level] = 1.0
                else:
                    rows[:, member.block.start : member.block.stop] = member.columns[level]
        return rows
