"""Tables that hurt, made from a schema alone: corners, rows out of bounds, random rows; no private row is read."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import polars as pl

from privfit.privacy import Adjacency, SeededNoise
from privfit.schema import Category, Column, Numeric, Schema

Value = float | str | int | bool
Row = tuple[Value, ...]

CROWD = 12
"""Rows that both tables share: few, so that fits are quick and one row weighs much. Chosen, not measured."""
STEPS = 1 << 16
"""Places between two bounds at which random rows lie. Chosen, not measured."""


@dataclass(frozen=True)
class Neighbours:
    """Two tables that differ in the rows of one person."""

    name: str
    crowd: tuple[Row, ...]
    left: tuple[Row, ...]
    right: tuple[Row, ...]
    adjacency: Adjacency


class RowMaker:
    """Rows of a schema, at its corners, out of its bounds and at random."""

    def __init__(self, schema: Schema, seed: int) -> None:
        self.columns: tuple[Column, ...] = (*schema.features, *(() if schema.target is None else (schema.target,)))
        self.person = schema.person
        self._noise = SeededNoise(seed)

    def below(self, limit: int) -> int:
        """A random integer from 0 on."""
        return int(self._noise.below(np.array([limit], dtype=np.int64))[0])

    def frame(self, rows: tuple[Row, ...], cut: int = 0, own: int = 0) -> pl.DataFrame:
        """Rows as a table, the last `own` of one person and every other of a person of its own; with `cut`, in pieces
        of that many rows.
        """
        names = [column.name for column in self.columns]
        made = pl.DataFrame(list(rows), schema=names, orient="row", strict=False)
        if self.person is not None:
            persons = [min(place, len(rows) - own) for place in range(len(rows))]
            made = made.with_columns(pl.Series(self.person, persons, dtype=pl.Int64))
        pieces = [made.slice(start, cut) for start in range(0, len(made), cut)] if cut else [made]
        return pl.concat(pieces, rechunk=False)

    def extreme(self, column: Column, place: int) -> Value:
        """The lowest or highest value of a column, its middle, or one far out of its bounds."""
        if isinstance(column, Category):
            return column.levels[place % len(column.levels)]
        return (
            column.low,
            column.high,
            (column.low + column.high) / 2,
            column.high + 1e3 * (column.high - column.low),
        )[place % 4]

    def random_row(self) -> Row:
        """A row anywhere within the schema."""
        return tuple(
            column.low + (column.high - column.low) * self.below(STEPS) / STEPS
            if isinstance(column, Numeric)
            else column.levels[self.below(len(column.levels))]
            for column in self.columns
        )

    def corner(self, place: int) -> Row:
        """A row whose values are all the lowest, all the highest and so on."""
        return tuple(
            column.levels[-place if place < 2 else place % len(column.levels)]
            if isinstance(column, Category)
            else self.extreme(column, place)
            for column in self.columns
        )

    def mutated(self, row: Row) -> Row:
        """The row with another extreme value in one column."""
        place = self.below(len(row))
        value = self.extreme(self.columns[place], self.below(max(4, len(getattr(self.columns[place], "levels", ())))))
        return (*row[:place], value, *row[place + 1 :])

    def pairs(self, rows_per_person: int) -> Iterator[Neighbours]:
        """Built-in neighbours of both kinds: a person at one corner against one at another, or against nobody."""
        crowd = tuple(self.random_row() for _ in range(CROWD))
        low, high, outside = (self.corner(place) for place in (0, 1, 3))
        label = (*low[:-1], high[-1])
        for name, one, other in (
            ("corners", low, high),
            ("out of bounds", low, outside),
            ("target alone", low, label),
            ("random", self.random_row(), self.random_row()),
        ):
            left, right = (one,) * rows_per_person, (other,) * rows_per_person
            yield Neighbours(f"{name}, replaced", crowd, left, right, "replace-one")
            yield Neighbours(f"{name}, added", crowd, (), right, "add-remove")
        alike = (low,) * CROWD
        yield Neighbours("alone", alike, (low,) * rows_per_person, (high,) * rows_per_person, "replace-one")

    def lonely(self, rows_per_person: int) -> Iterator[Neighbours]:
        """Neighbours beside hardly anybody: there a person's curvature counts most."""
        middle, high = self.corner(2), self.corner(1)
        own = (high,) * rows_per_person
        yield Neighbours("hardly anybody, replaced", (middle,), own, (middle,) * rows_per_person, "replace-one")
        yield Neighbours("hardly anybody, added", (middle,), (), own, "add-remove")
