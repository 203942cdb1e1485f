"""Baskets: which items rows hold, and how many rows hold a whole set of them.

An item is a level of a column. Sets are tuples of rising places of items.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from privfit.schema import Category, Column, Geometry

Integers = NDArray[np.int64]
Itemset = tuple[int, ...]

AT_A_TIME = 1 << 14
"""Distinct rows that are unpacked at a time: memory against time; no command varies it."""


@dataclass(frozen=True)
class Item:
    """A level of a column, by their places and in words."""

    column: int
    level: int
    label: str


def is_flag(column: Column) -> bool:
    """Whether a column says with 1 that a row holds one item, and with 0 that it does not."""
    return isinstance(column, Category) and tuple(column.levels) == (0, 1)


def listed_items(geometry: Geometry) -> tuple[Item, ...]:
    """The items of all columns: the 1 of a column of 0 and 1; every level or bin of others."""
    found: list[Item] = []
    for place, block in enumerate(geometry.blocks):
        if is_flag(block.column):
            found.append(Item(place, 1, block.column.name))
        else:
            found += [Item(place, level, label) for level, label in enumerate(block.labels)]
    return tuple(found)


class _Grid(Protocol):
    """Numbered cells of a contingency table (`rows.CellGrid`)."""

    def places(self, cells: Sequence[int]) -> list[Integers]: ...


class Baskets:
    """Distinct rows, as bits per item, and how many rows are alike."""

    def __init__(self, grid: _Grid, cells: dict[int, int], items: Sequence[Item]) -> None:
        self._held = np.fromiter(cells.values(), dtype=np.int64, count=len(cells))
        self._bits = np.zeros((len(items), (len(cells) + 7) // 8), dtype=np.uint8)
        numbers = list(cells)
        for start in range(0, len(numbers), AT_A_TIME):
            places = grid.places(numbers[start : start + AT_A_TIME])
            bits = np.packbits([places[item.column] == item.level for item in items], axis=1)
            self._bits[:, start // 8 : start // 8 + bits.shape[1]] = bits

    def count(self, itemset: Itemset) -> int:
        """How many rows hold every item of a set.

        Guarantee: one row adds 0 or 1, and no less to a set than to a set that holds it; docs/proofs/itemsets.md,
        Lemma 1.
        """
        together = np.bitwise_and.reduce(self._bits[list(itemset)], axis=0)
        return int(self._held[np.unpackbits(together, count=len(self._held)).view(bool)].sum())


class Frontier:
    """Sets that can be chosen next: not chosen yet, while all sets with one item less are.

    A function of public facts and of what was chosen.
    """

    def __init__(self, items: Sequence[Item], max_size: int) -> None:
        self._items, self._max_size = items, max_size
        self._chosen: set[Itemset] = set()
        self.open: list[Itemset] = [(place,) for place in range(len(items))]

    def choose(self, place: int) -> tuple[Itemset, list[Itemset]]:
        """Take a set that is open; the set, and those that are open because of it, which are last now."""
        itemset = self.open.pop(place)
        self._chosen.add(itemset)
        new = sorted(set(self._grown(itemset))) if len(itemset) < self._max_size else []
        self.open += new
        return itemset, new

    def _grown(self, itemset: Itemset) -> Iterable[Itemset]:
        columns = {self._items[place].column for place in itemset}
        for place, item in enumerate(self._items):
            if item.column not in columns and (place,) in self._chosen:
                grown = tuple(sorted((*itemset, place)))
                if all(grown[:own] + grown[own + 1 :] in self._chosen for own in range(len(grown))):
                    yield grown


def itemset_numbers(items: Sequence[Item], max_size: int, enough: int) -> int:
    """How many sets there are of up to so many items, no two of one column; `enough` if there are as many or more."""
    by_column: dict[int, int] = {}
    for item in items:
        by_column[item.column] = by_column.get(item.column, 0) + 1
    sizes = [1, *[0] * max_size]
    for width in by_column.values():
        for size in range(max_size, 0, -1):
            sizes[size] = min(sizes[size] + width * sizes[size - 1], enough)
    return min(sum(sizes[1:]), enough)
