"""Interaction terms of AdditiveRegressor on generated tables: how many, at what share of epsilon, at what threshold.

    python papers/experiments/terms.py [number of tables] [first table] [--plain]

Tables are those of generated.py with a number as target, in which two pairs of columns interact (with --plain none do).
Printed, by rows times epsilon: the mean over tables of the R2 on 20,000 test rows without terms; then of every setting
the mean difference from that, in hundredths, with its standard error. Noise is seeded.
"""

from __future__ import annotations

import argparse
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
from generated import Table, make_table

from privfit import AdditiveRegressor
from privfit.mechanisms.perturbation import number_terms

EPSILONS = (0.5, 1.5, 4.0)
BANDS = (0, 20_000, 60_000, 150_000, 10**9)
DENSITIES = (0, 1_000, 3_000, 10_000, 10**9)
SEED = 3_000_000
Setting = tuple[int | str, dict[str, Any]]
SETTINGS: dict[str, Setting] = {
    "2 terms": (2, {}),
    "4 terms": (4, {}),
    "4 terms, 6% each": (4, {"FOR_EACH_TABLE": Fraction(6, 100)}),
    "4 terms, 2% each": (4, {"FOR_EACH_TABLE": Fraction(2, 100)}),
    "4 terms, the whole threshold": (4, {"OF_THRESHOLD": 1.0}),
}


def score(table: Table, epsilon: float, setting: Setting, seed: int) -> float:
    asked, values = setting
    kept = {name: getattr(number_terms, name) for name in values}
    try:
        for name, value in values.items():
            setattr(number_terms, name, value)
        model = AdditiveRegressor(
            epsilon, schema=table.schema, interactions=asked, numeric="splines", random_state=seed
        )
        return float(model.fit(table.train).score(table.test.drop("y"), table.test["y"].to_numpy()))
    finally:
        for name, value in kept.items():
            setattr(number_terms, name, value)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("tables", nargs="?", type=int, default=30)
    parser.add_argument("first", nargs="?", type=int, default=0)
    parser.add_argument("--plain", action="store_true")
    given = parser.parse_args()
    found: list[tuple[float, int, list[float]]] = []
    for seed in range(given.first, given.first + given.tables):
        table = make_table(seed, pairs=not given.plain, number=True)
        menu = number_terms.menu_size(table.schema)
        for epsilon in EPSILONS:
            scores = [score(table, epsilon, (0, {}), SEED + seed)]
            for asked, values in SETTINGS.values():
                most = asked if isinstance(asked, str) else min(asked, menu)
                scores.append(score(table, epsilon, (most, values), SEED + seed))
            found.append((table.train.height * epsilon, table.columns, scores))
    show("rows x epsilon", BANDS, [(signal, scores) for signal, _, scores in found])
    show("rows x epsilon / columns", DENSITIES, [(signal / columns, scores) for signal, columns, scores in found])


def show(title: str, bands: tuple[float, ...], found: list[tuple[float, list[float]]]) -> None:
    for low, high in pairwise(bands):
        own = np.array([scores for signal, scores in found if low <= signal < high])
        if not len(own):
            continue
        print(f"\n{title} {low:,} to {high:,} ({len(own)}): without {own[:, 0].mean():.4f}")
        for place, name in enumerate(SETTINGS, 1):
            gain = 100 * (own[:, place] - own[:, 0])
            print(f"  {name:<28} {gain.mean():7.3f} ({gain.std() / np.sqrt(len(gain)):.3f}), worst {gain.min():.2f}")


if __name__ == "__main__":
    main()
