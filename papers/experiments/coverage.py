"""How often 90% confidence intervals cover the truth, over a grid of rows, columns and epsilon, on generated tables.

    python papers/experiments/coverage.py [runs per cell]
    python papers/experiments/coverage.py --own [runs per cell]
    python papers/experiments/coverage.py --models [runs per cell] [model, ...]

Every run makes a new table and a new release. Counted: all coefficients of all runs that are identified; "identified"
is their share, "width" is of them. "kept" is the mean share of directions that shrinkage left standing.

With --own each coefficient is counted by itself, on three columns of which the first two have a correlation of 0 or .9,
with skewed errors that are larger where the first column is. The truth is the least squares of two million rows. Per
coefficient: the share of runs in which it is identified, and the share of those in which its own interval covers.

With --models each coefficient and the intercept of other models is counted by itself, on four columns of which the
first two have a correlation of 0 or .9. Shown are the least share of runs in which one is identified, and the least and
the largest coverage of those that are identified in at least ten runs; medians of half-widths and of the share of the
variance that is noise.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from itertools import product

import numpy as np

import privfit as pf
from privfit.privacy import seeded_generator

ROWS = (5_000, 50_000)
COLUMNS = ((3, 0), (4, 2), (12, 0))
EPSILONS, OWN_EPSILONS = (0.3, 1.0, 4.0), (0.5, 1.0, 4.0)
DELTAS = (0.0, 1e-6)
LEVELS = 4
Draw = Callable[[int, float, int], tuple[np.ndarray, np.ndarray]]


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


def binary(n_rows: int, correlation: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Four columns, and classes whose log-odds are linear in them."""
    generator = seeded_generator(seed)
    own = generator.standard_normal((n_rows, 4))
    own[:, 1] = correlation * own[:, 0] + np.sqrt(1 - correlation**2) * own[:, 1]
    x = np.clip(own / 3, -1, 1)
    probability = 1 / (1 + np.exp(-(x @ np.array([1.5, -1.0, 0.5, 0.0]) - 0.5)))
    return x, (generator.uniform(size=n_rows) < probability).astype(int)


def minimum(loss: pf.ConvexLoss, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """What a loss without penalty and noise has for these rows, by Newton's steps; the intercept last."""
    columns, weights = np.column_stack([x, np.ones(len(x))]), np.zeros(x.shape[1] + 1)
    for _ in range(40):
        scores = columns @ weights
        hessian = (columns * loss.curvature(scores, y)[:, None]).T @ columns
        weights -= 0.7 * np.linalg.solve(hessian + 1e-9 * np.eye(len(weights)), columns.T @ loss.slope(scores, y))
    return weights


CLASSES = pf.Schema.box(-1, 1, n_features=4, target=[0, 1])
MODELS: dict[str, tuple[type, pf.Schema, Draw, pf.ConvexLoss]] = {
    "LogisticRegression": (pf.LogisticRegression, CLASSES, binary, pf.losses.LOGISTIC),
    "LinearSVC": (pf.LinearSVC, CLASSES, binary, pf.losses.smooth_hinge(0.5)),
}
"""The model, its schema, a table, and the loss whose minimum over a million rows is the truth."""
TRUE_ROWS, MODEL_ROWS, MODEL_EPSILONS = 1_000_000, (5_000, 50_000), (0.2, 0.5, 1.0, 2.0)
LEAST_RUNS = 10


def coverage_of(name: str, correlation: float, n_rows: int, epsilon: float, runs: int, truth: np.ndarray) -> str:
    """A line of the table."""
    model, schema, draw, _ = MODELS[name]
    known, hits, widths, noise = [], [], [], []
    first = runs * (MODEL_ROWS.index(n_rows) * len(MODEL_EPSILONS) + MODEL_EPSILONS.index(epsilon))
    for seed in range(first, first + runs):  # lines share no tables
        fitted = model(epsilon, schema=schema, intervals=True, random_state=seed)
        fitted.fit(*draw(n_rows, correlation, seed))
        low, high = np.vstack([fitted.coef_interval_, fitted.intercept_interval_]).T
        known.append(np.isfinite(high))
        hits.append((low <= truth) & (truth <= high))
        widths.append(high - low)
        noise.append(fitted.summary().noise_share)
    found, covered, wide = np.array(known), np.array(hits), np.array(widths)
    each = [covered[found[:, j], j].mean() for j in range(len(truth)) if found[:, j].sum() >= LEAST_RUNS]
    worst = f"{min(each):.0%} to {max(each):.0%}" if each else "-"
    width = f"{np.median(wide[found]) / 2:.3g}" if found.any() else "-"
    share = f"{np.median(np.array(noise)[found]):.0%}" if found.any() else "-"
    least = f"{found.mean(axis=0).min():.0%}"
    return f"| {name} | {n_rows:,} | {correlation:g} | {epsilon:g} | {least} | {worst} | {width} | {share} |"


def model_coverage(runs: int, names: list[str]) -> None:
    """Print the coverage of each coefficient of other models."""
    print("| model | rows | correlation | epsilon | least identified | covered, each | half-width | noise |")
    print("|---|---|---|---|---|---|---|---|")
    for name, correlation in product(names or MODELS, (0.0, 0.9)):
        _, _, draw, loss = MODELS[name]
        x, y = draw(TRUE_ROWS, correlation, 10**6)
        truth = minimum(loss, x, 2 * y - 1)
        for n_rows, epsilon in product(MODEL_ROWS, MODEL_EPSILONS):
            print(coverage_of(name, correlation, n_rows, epsilon, runs, truth), flush=True)


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
    if sys.argv[1:2] == ["--models"]:
        model_coverage(int((sys.argv[2:] or ["60"])[0]), sys.argv[3:])
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
