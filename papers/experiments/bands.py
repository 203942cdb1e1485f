"""How often bands of curves hold the curve without noise, curve by curve, on generated tables.

    python papers/experiments/bands.py [runs per line]

Four columns: two numbers, of which the second is skewed, and two categories, one of six levels with a rare one and one
of two levels. "alone" draws them independently; ".9" draws all four from normal columns with that correlation. Errors
are skewed and larger where the first number is. Every run makes a new release of the same table; the curve without
noise has the threshold of that release. Per column: the mean share of the grid that a 90% band holds, then the mean
half-width of bands over the standard deviation of the curve without noise. "free" are bands without sums of
curvatures, at epsilon 1 only.
"""

from __future__ import annotations

import sys
from itertools import product

import numpy as np
import polars as pl
from scipy.stats import norm

import privfit as pf
from privfit.losses import SQUARED
from privfit.mechanisms import ObjectiveRegression, QuadraticProblem
from privfit.mechanisms.base import PublicFacts
from privfit.mechanisms.perturbation.precision import minimised
from privfit.mechanisms.perturbation.shape_bands import centred
from privfit.privacy import Budget, PrivacyParameters, SeededNoise, seeded_generator
from privfit.rows import CachedDesign, Rows
from privfit.tables import open_table

ROWS, EPSILONS, CORRELATIONS = (5_000, 50_000), (0.4, 1.0, 4.0), (0.0, 0.9)
PROBLEM = QuadraticProblem(SQUARED)
SCHEMA = pf.Schema(
    [
        pf.Numeric("even", 0, 1),
        pf.Numeric("skewed", 0, 1),
        pf.Category("six", list("abcdef")),
        pf.Category("two", ["u", "v"]),
    ],
    pf.Numeric("y", -10, 10),
)


def table(n_rows: int, correlation: float) -> pl.DataFrame:
    generator = seeded_generator(7)
    shared = generator.standard_normal(n_rows)
    own = generator.standard_normal((n_rows, 4))
    ranks = norm.cdf(np.sqrt(correlation) * shared[:, None] + np.sqrt(1 - correlation) * own)
    even, skewed = ranks[:, 0], ranks[:, 1] ** 3
    six = np.searchsorted(np.cumsum([0.4, 0.3, 0.15, 0.1, 0.04]), ranks[:, 2])
    two = (ranks[:, 3] > 0.5).astype(int)
    signal = 2 * even**2 + skewed + np.array([0, 0.5, -0.5, 0.2, 0.1, 1.0])[six] + 0.3 * two
    y = signal + (0.5 + even) * (generator.exponential(1.0, n_rows) - 1)
    return pl.DataFrame(
        {"even": even, "skewed": skewed, "six": np.array(list("abcdef"))[six], "two": np.array(["u", "v"])[two], "y": y}
    )


def coverage(frame: pl.DataFrame, epsilon: float, bands: bool, runs: int) -> list[tuple[float, float]]:
    """The share held and the relative width, column by column."""
    mechanism = ObjectiveRegression(bands=bands)
    geometry = mechanism.geometry(SCHEMA, PROBLEM, "splines")
    rows = Rows(open_table(frame), SCHEMA, geometry)
    parameters, design = PrivacyParameters(Budget(epsilon)), CachedDesign(rows)
    plan = mechanism.plan(PublicFacts(geometry, parameters, frame.height), PROBLEM)
    assert plan.weights.certificate is not None
    held, widths = [], []
    for seed in range(runs):
        fit = mechanism.release(rows, parameters, None, SeededNoise(seed), PROBLEM).value
        own = plan.steps.at(plan.weights, fit.centre, fit.threshold, plan.weights.certificate.unit)
        assert fit.bands is not None
        calm = minimised(own, design, np.zeros((geometry.n_columns, 1)))[:, 0] * fit.threshold
        held.append([])
        widths.append([])
        for block in geometry.blocks:
            shown = [centred(block) @ weights[block.start : block.stop] for weights in (calm, fit.weights)]
            half = fit.bands[block.start : block.stop]
            held[-1].append(np.mean(np.abs(shown[1] - shown[0]) <= half))
            widths[-1].append(np.mean(half) / max(float(np.sqrt(np.mean(shown[0] ** 2))), 1e-12))
    return list(zip(np.mean(held, axis=0), np.mean(widths, axis=0), strict=True))


def main() -> None:
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 40
    names = [column.name for column in SCHEMA.features]
    print(f"| rows | correlation | epsilon | bands | {' | '.join(names)} |\n|{'---|' * (4 + len(names))}")
    for n_rows, correlation, epsilon in product(ROWS, CORRELATIONS, EPSILONS):
        frame = table(n_rows, correlation)
        for bands in (True, False) if epsilon == 1 else (True,):
            cells = coverage(frame, epsilon, bands, runs)
            told = " | ".join(f"{share:.1%}, {width:.2g}" for share, width in cells)
            print(
                f"| {n_rows:,} | {correlation:g} | {epsilon:g} | {'bought' if bands else 'free'} | {told} |", flush=True
            )


if __name__ == "__main__":
    main()
