"""How well frequent sets of items are found privately, against noisy counts of all sets.

    PRIVFIT_DATA=folder python papers/experiments/itemsets.py [--runs 20] [--shares] [--rules]

A line per table, number of sets, epsilon and method: which share of the k most frequent sets (of up to five items) is
found, and the median relative error of their numbers of rows. "counts of up to s items" adds Laplace noise to the
number of rows of every set of at most s items, and takes the k largest. --shares varies the part of epsilon that finds
sets; --rules compares how they are chosen, at add-remove, where the enhanced exponential mechanism has half of the
usual one's noise.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from fractions import Fraction
from itertools import combinations
from math import comb
from typing import Any

import numpy as np
import polars as pl

import privfit as pf
from privfit.mechanisms import ItemsetSearch
from privfit.mechanisms.summaries import itemsets
from privfit.privacy import Budget, PrivacyParameters, noise_source
from privfit.rows import CellGrid, Rows, cell_geometry, count_cells
from privfit.statistics.itemsets import Baskets, Frontier, listed_items
from privfit.tables import open_table
from privfit_papers.bench.baskets import arules_baskets
from privfit_papers.bench.data import data_folder

SETS = (20, 50, 100)
EPSILONS = (0.1, 0.4, 1.6)
MAX_SIZE = 5


def shop(rows: int = 20_000, items: int = 100) -> tuple[pl.DataFrame, pf.Schema]:
    """Generated baskets: items of very different popularity, and groups that are bought together."""
    rng = np.random.default_rng(0)
    popularity = np.minimum(0.5, 0.8 / np.arange(1, items + 1) ** 0.7)
    held = rng.random((rows, items)) < popularity
    for first in range(0, 40, 4):
        together = rng.random(rows) < 0.25 / (1 + first / 8)
        held[:, first : first + 4] |= together[:, None] & (rng.random((rows, 4)) < 0.8)
    names = [f"item {place}" for place in range(items)]
    frame = pl.DataFrame(held.astype(np.int64), schema=names)
    return frame, pf.Schema([pf.Category(name, [0, 1]) for name in names])


class Table:
    """A table whose sets can be counted without noise."""

    def __init__(self, frame: pl.DataFrame, schema: pf.Schema, one_level_each: bool) -> None:
        self.frame, self.schema, self.one_level_each = frame, schema, one_level_each
        geometry = cell_geometry(schema, cells=1)
        self.items = listed_items(geometry)
        rows = Rows(open_table(frame), schema, geometry)
        self.baskets = Baskets(CellGrid(geometry), count_cells(rows), self.items)
        self.rows = rows.n_rows
        self._counts: dict[tuple[int, ...], int] = {}
        self._all: dict[int, tuple[list[tuple[int, ...]], Any]] = {}

    def count(self, itemset: tuple[int, ...]) -> int:
        """How many rows hold a set."""
        if itemset not in self._counts:
            self._counts[itemset] = self.baskets.count(itemset)
        return self._counts[itemset]

    def best(self, k: int) -> list[tuple[int, ...]]:
        """The k most frequent sets."""
        frontier, found = Frontier(self.items, MAX_SIZE), []
        for _ in range(k):
            scores = [self.count(itemset) for itemset in frontier.open]
            found.append(frontier.choose(int(np.argmax(scores)))[0])
        return found

    def labels(self, itemset: tuple[int, ...]) -> tuple[str, ...]:
        """A set in words."""
        return tuple(self.items[place].label for place in itemset)

    def all_sets(self, size: int) -> tuple[list[tuple[int, ...]], Any]:
        """All sets of at most so many items of different columns, with their counts."""
        if size not in self._all:
            sets = [
                one
                for width in range(1, size + 1)
                for one in combinations(range(len(self.items)), width)
                if len({self.items[place].column for place in one}) == width
            ]
            self._all[size] = sets, np.array([self.count(one) for one in sets])
        return self._all[size]

    def most_changed(self, size: int) -> int:
        """How many counts of sets of at most so many items one row that is replaced can change."""
        columns = len(self.schema.columns)
        held = sum(comb(columns, width) for width in range(1, size + 1))
        return 2 * held if self.one_level_each else held


Found = dict[tuple[str, ...], float]


def by_choices(table: Table, k: int, epsilon: float, seed: int, **more: Any) -> Found:
    """What the library does."""
    got = pf.frequent_itemsets(
        table.frame, table.schema, k=k, epsilon=epsilon, max_size=MAX_SIZE, random_state=seed, **more
    )
    return {items: float(count) for items, count in got.items()}


def by_counts(table: Table, k: int, epsilon: float, seed: int, size: int) -> Found:
    """The largest of all noisy counts."""
    sets, counts = table.all_sets(size)
    noisy = counts + np.random.default_rng(seed).laplace(0.0, table.most_changed(size) / epsilon, len(counts))
    return {table.labels(sets[place]): float(noisy[place]) for place in np.argsort(-noisy)[:k]}


def by_rule(table: Table, k: int, epsilon: float, seed: int, rule: Any, delta: float = 0.0) -> Found:
    """The library's mechanism under add-remove with a rule of selection."""
    mechanism, problem = ItemsetSearch(selection=rule), itemsets.ItemsetProblem(k, MAX_SIZE)
    parameters = PrivacyParameters(Budget(epsilon, delta), "add-remove")
    rows = Rows(open_table(table.frame), table.schema, mechanism.geometry(table.schema, problem))
    release = mechanism.release(rows, parameters, None, noise_source(seed), problem)
    return {one.labels: one.count for one in mechanism.solve(release, rows.geometry, problem)}


def judged(table: Table, k: int, runs: int, find: Callable[[int], Found]) -> str:
    """The share of the best sets that is found, and the error of counts."""
    best = {table.labels(one): table.count(one) for one in table.best(k)}
    places = {item.label: place for place, item in enumerate(table.items)}
    shares, errors = [], []
    for seed in range(runs):
        found = find(seed)
        shares.append(len(best.keys() & found.keys()) / k)
        true = {one: table.count(tuple(sorted(places[label] for label in one))) for one in found}
        errors.append(np.median([abs(count - true[one]) / max(true[one], 1) for one, count in found.items()]))
    return f"found {np.mean(shares):.3f} (sd {np.std(shares):.3f}), error of counts {np.median(errors):.4f}"


def main() -> None:
    """Print a line per setting."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--shares", action="store_true")
    parser.add_argument("--rules", action="store_true")
    given = parser.parse_args()
    tables = {"Adult": Table(*arules_baskets(data_folder()), True), "shop": Table(*shop(), False)}
    for name, table in tables.items():
        print(f"{name}: {table.rows} rows, {len(table.items)} items", flush=True)
        for k in SETS:
            for epsilon in EPSILONS:
                methods = _methods(table, k, epsilon, given.shares, given.rules)
                for method, find in methods.items():
                    print(f"  k {k} epsilon {epsilon} {method}: {judged(table, k, given.runs, find)}", flush=True)


def _methods(table: Table, k: int, epsilon: float, shares: bool, rules: bool) -> dict[str, Callable[[int], Found]]:
    if shares:
        return {f"share {part}": _with_share(table, k, epsilon, part) for part in (3, 5, 6, 7, 8, 9)}
    if rules:
        own = {rule: _ruled(table, k, epsilon, rule) for rule in ("permute-and-flip", "enhanced", "exponential")}
        return own | {"delta 1e-6": lambda seed: by_rule(table, k, epsilon, seed, "auto", 1e-6)}
    size = {2: _counted(table, k, epsilon, 2), 3: _counted(table, k, epsilon, 3)}
    own = {"choices": lambda seed: by_choices(table, k, epsilon, seed)}
    return own | {f"counts of up to {most} items": find for most, find in size.items()}


def _counted(table: Table, k: int, epsilon: float, size: int) -> Callable[[int], Found]:
    return lambda seed: by_counts(table, k, epsilon, seed, size)


def _ruled(table: Table, k: int, epsilon: float, rule: str) -> Callable[[int], Found]:
    return lambda seed: by_rule(table, k, epsilon, seed, rule)


def _with_share(table: Table, k: int, epsilon: float, tenths: int) -> Callable[[int], Found]:
    def find(seed: int) -> Found:
        itemsets.FOR_CHOICES = Fraction(tenths, 10)
        return by_choices(table, k, epsilon, seed)

    return find


if __name__ == "__main__":
    main()
