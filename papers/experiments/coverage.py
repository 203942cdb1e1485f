"""How often 90% confidence intervals cover the truth, over a grid of rows, columns and epsilon, on generated tables.

    python papers/experiments/coverage.py [runs per cell]

Every run makes a new table and a new release. Counted: all coefficients of all runs. "kept" is the mean share of
directions that shrinkage left standing: where it is small, the fit is mostly the shrinkage's guess.
"""

from __future__ import annotations

import sys
from itertools import product

import numpy as np

import privfit as pf
from privfit.privacy import seeded_generator

ROWS = (5_000, 50_000)
COLUMNS = ((3, 0), (4, 2), (12, 0))
EPSILONS = (0.3, 1.0, 4.0)
DELTAS = (0.0, 1e-6)
LEVELS = 4


def table(
    n_rows: int, numbers: int, categories: int, seed: int
) -> tuple[np.ndarray, np.ndarray, pf.Schema, np.ndarray]:
    """Columns, target, schema and the coefficients that made the target; those of a category's levels sum to zero, as
    ours do.
    """
    generator = seeded_generator(seed)
    columns, features, truth = [], [], []
    signal = np.zeros(n_rows)
    for i in range(numbers):
        x = generator.uniform(-1, 1, n_rows) if i % 2 else np.clip(generator.normal(0, 0.4, n_rows), -1, 1)
        weight = generator.normal(0, 0.15)
        columns.append(x)
        features.append(pf.Numeric(f"number{i}", -1, 1))
        truth.append(weight)
        signal += weight * x
    for i in range(categories):
        x = generator.integers(0, LEVELS, n_rows)
        weights = generator.normal(0, 0.1, LEVELS)
        weights -= weights.mean()
        columns.append(x.astype(float))
        features.append(pf.Category(f"levels{i}", list(range(LEVELS))))
        truth.extend(weights)
        signal += weights[x]
    y = signal + generator.normal(0, 0.25, n_rows)
    return np.column_stack(columns), y, pf.Schema(features, pf.Numeric("y", -1.5, 1.5)), np.array(truth)


def cell(
    n_rows: int, numbers: int, categories: int, epsilon: float, delta: float, runs: int
) -> tuple[float, float, float]:
    """The share of intervals that cover, their mean width, and the mean share of directions kept."""
    hits, widths, kept = [], [], []
    for seed in range(runs):
        X, y, schema, truth = table(n_rows, numbers, categories, seed)
        model = pf.LinearRegression(epsilon, delta=delta, schema=schema, intervals=True, random_state=seed).fit(X, y)
        low, high = model.coef_interval_.T
        hits.append((low <= truth) & (truth <= high))
        widths.append(high - low)
        kept.append(model.report_.repairs["directions_kept"] / model.report_.repairs["directions"])
    return float(np.mean(hits)), float(np.mean(widths)), float(np.mean(kept))


def main() -> None:
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 60
    print(
        "| rows | numbers | categories | epsilon | delta | covered | width | kept |\n|---|---|---|---|---|---|---|---|"
    )
    for n_rows, (numbers, categories), epsilon, delta in product(ROWS, COLUMNS, EPSILONS, DELTAS):
        covered, width, kept = cell(n_rows, numbers, categories, epsilon, delta, runs)
        print(
            f"| {n_rows:,} | {numbers} | {categories} | {epsilon:g} | {delta:g} | {covered:.1%} | {width:.3f} | "
            f"{kept:.0%} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
