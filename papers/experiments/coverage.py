"""How often 90% confidence intervals cover the truth, over a grid of rows, columns and epsilon, on generated tables.

    python papers/experiments/coverage.py [runs per cell]
    python papers/experiments/coverage.py --own [runs per cell]
    python papers/experiments/coverage.py --models [runs per cell] [rows,rows] [model ...]
    python papers/experiments/coverage.py --line model rows correlation epsilon runs [first seed]

Every run makes a new table and a new release. Counted: all coefficients of all runs that are identified; "identified"
is their share, "width" is of them. "kept" is the mean share of directions that shrinkage left standing.

With --own each coefficient is counted by itself, on three columns of which the first two have a correlation of 0 or .9,
with skewed errors that are larger where the first column is. The truth is the least squares of two million rows. Per
coefficient: the share of runs in which it is identified, and the share of those in which its own interval covers.

With --models each coefficient and the intercept of other models is counted by itself, on four columns of which the
first two have a correlation of 0 or .9. Shown are the least share of runs in which one is identified, and the least and
the largest coverage of those that are identified in at least ten runs; medians of half-widths and of the share of the
variance that is noise. With --line it is one line of that table, of tables with other seeds.
"""

from __future__ import annotations

import math
import sys
from functools import cache
from itertools import product

import numpy as np
from coverage_tables import CASES

import privfit as pf
from privfit.privacy import seeded_generator

ROWS = (5_000, 50_000)
COLUMNS = ((3, 0), (4, 2), (12, 0))
EPSILONS, OWN_EPSILONS = (0.3, 1.0, 4.0), (0.5, 1.0, 4.0)
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


def skewed(n_rows: int, correlation: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Columns and a target with skewed errors of different sizes."""
    generator = seeded_generator(seed)
    own = generator.standard_normal((n_rows, 3))
    own[:, 1] = correlation * own[:, 0] + np.sqrt(1 - correlation**2) * own[:, 1]
    x = np.clip(own / 3, -1, 1)
    errors = (generator.exponential(1.0, n_rows) - 1) * (0.06 + 0.15 * (x[:, 0] + 1))
    return x, np.clip(x @ np.array([0.3, -0.2, 0.1]) + errors, -1.5, 2.5)


def own_coverage(runs: int) -> None:
    """Print the share identified, and own coverage, of each coefficient."""
    schema = pf.Schema.box(-1, 1, n_features=3, target=(-1.5, 2.5))
    print("| rows | correlation | epsilon | first | second | third |\n|---|---|---|---|---|---|")
    for correlation in (0.0, 0.9):
        x, y = skewed(2_000_000, correlation, 10**6)
        truth = np.linalg.lstsq(np.column_stack([x, np.ones(len(x))]), y, rcond=None)[0][:3]
        for n_rows, epsilon in product(ROWS, OWN_EPSILONS):
            known, hits = [], []
            for seed in range(runs):
                model = pf.LinearRegression(epsilon, schema=schema, intervals=True, random_state=seed)
                low, high = model.fit(*skewed(n_rows, correlation, seed)).coef_interval_.T
                known.append(np.isfinite(high))
                hits.append((low <= truth) & (truth <= high))
            found, covered = np.array(known), np.array(hits)
            cells = [
                f"{found[:, j].mean():.0%}, {covered[found[:, j], j].mean():.0%}" if found[:, j].any() else "0%, -"
                for j in range(3)
            ]
            print(f"| {n_rows:,} | {correlation:g} | {epsilon:g} | {' | '.join(cells)} |", flush=True)


def minimum(loss: pf.ConvexLoss, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """What a loss without penalty and noise has for these rows, by Newton's steps that are halved until the loss falls;
    the intercept last.
    """
    assert loss.value is not None
    columns, weights = np.column_stack([x, np.ones(len(x))]), np.zeros(x.shape[1] + 1)
    for _ in range(100):
        scores = columns @ weights
        slope = columns.T @ loss.slope(scores, y)
        hessian = (columns * loss.curvature(scores, y)[:, None]).T @ columns + 1e-3 * len(x) * np.eye(len(weights))
        step, now = np.linalg.solve(hessian, slope), loss.value(scores, y).sum()
        while (
            loss.value(columns @ (weights - step), y).sum() > now - 0.1 * (slope @ step) and np.abs(step).max() > 1e-9
        ):
            step = step / 2
        weights = weights - step
        if np.abs(step).max() < 1e-7:
            break
    return weights


TRUE_ROWS, MODEL_EPSILONS = 4_000_000, (0.2, 0.5, 1.0, 2.0)
LEAST_RUNS = 10


@cache
def truth_of(name: str, correlation: float) -> np.ndarray:
    """The coefficients of the population, the intercept last."""
    case = CASES[name]
    if case.truth is not None:
        return case.truth
    x, y = case.table(TRUE_ROWS, correlation, 10**6)
    return minimum(pf.losses.smooth_hinge(0.5), x, 2 * y - 1)


def coverage_of(name: str, correlation: float, n_rows: int, epsilon: float, seeds: range) -> str:
    """A line of the table."""
    case, known, hits, widths, noise = CASES[name], [], [], [], []
    truth = truth_of(name, correlation)
    for seed in seeds:
        fitted = case.model(epsilon, schema=case.schema, intervals=True, random_state=seed)
        fitted.fit(*case.table(n_rows, correlation, seed))
        low, high = np.vstack([fitted.coef_interval_, fitted.intercept_interval_]).T
        known.append(np.isfinite(high))
        hits.append((low <= truth) & (truth <= high))
        widths.append(high - low)
        noise.append(fitted.summary().noise_share)
    found, covered, wide = np.array(known), np.array(hits), np.array(widths)
    each = [covered[found[:, j], j].mean() for j in range(len(truth)) if found[:, j].sum() >= LEAST_RUNS]
    worst = f"{min(each):.0%} to {max(each):.0%}" if each else "-"
    width = f"{np.median(wide[found]) / 2:.3g}" if found.any() else "-"
    share = f"{np.nanmedian(np.array(noise)[found]):.0%}" if found.any() else "-"
    least = f"{found.mean(axis=0).min():.0%}"
    return f"| {name} | {n_rows:,} | {correlation:g} | {epsilon:g} | {least} | {worst} | {width} | {share} |"


def model_coverage(runs: int, n_rows: list[int], names: list[str]) -> None:
    """Print the coverage of each coefficient of other models; lines share no tables."""
    print("| model | rows | correlation | epsilon | least identified | covered, each | half-width | noise |")
    print("|---|---|---|---|---|---|---|---|")
    first = 0
    for name, correlation, rows, epsilon in product(names or CASES, (0.0, 0.9), n_rows, MODEL_EPSILONS):
        print(coverage_of(name, correlation, rows, epsilon, range(first, first + runs)), flush=True)
        first += runs


def cell(
    n_rows: int, numbers: int, categories: int, epsilon: float, delta: float, runs: int
) -> tuple[float, float, float, float]:
    """The share of intervals that cover, their mean width, that of coefficients identified, and that of directions
    kept.
    """
    hits, widths, known, kept = [], [], [], []
    for seed in range(runs):
        X, y, schema, truth = table(n_rows, numbers, categories, seed)
        model = pf.LinearRegression(epsilon, delta=delta, schema=schema, intervals=True, random_state=seed).fit(X, y)
        low, high = model.coef_interval_.T
        finite = np.isfinite(high)
        known.extend(finite)
        hits.extend(((low <= truth) & (truth <= high))[finite])
        widths.extend((high - low)[finite])
        kept.append(model.report_.repairs["directions_kept"] / model.report_.repairs["directions"])
    if not hits:
        return math.nan, math.nan, 0.0, float(np.mean(kept))
    return float(np.mean(hits)), float(np.mean(widths)), float(np.mean(known)), float(np.mean(kept))


def main() -> None:
    if sys.argv[1:2] == ["--own"]:
        own_coverage(int((sys.argv[2:] or ["60"])[0]))
        return
    if sys.argv[1:2] == ["--line"]:
        name, n_rows, correlation, epsilon, number, *first = sys.argv[2:]
        start = int((first or ["0"])[0])
        print(coverage_of(name, float(correlation), int(n_rows), float(epsilon), range(start, start + int(number))))
        return
    if sys.argv[1:2] == ["--models"]:
        rows = [int(number) for number in (sys.argv[3:4] or ["5000,50000"])[0].split(",")]
        model_coverage(int((sys.argv[2:] or ["40"])[0]), rows, sys.argv[4:])
        return
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 60
    print("| rows | numbers | categories | epsilon | delta | covered | width | identified | kept |")
    print("|---|---|---|---|---|---|---|---|---|")
    for n_rows, (numbers, categories), epsilon, delta in product(ROWS, COLUMNS, EPSILONS, DELTAS):
        covered, width, known, kept = cell(n_rows, numbers, categories, epsilon, delta, runs)
        print(
            f"| {n_rows:,} | {numbers} | {categories} | {epsilon:g} | {delta:g} | {covered:.1%} | {width:.3f} | "
            f"{known:.0%} | {kept:.0%} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
