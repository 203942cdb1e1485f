"""How near private quantile regressions come to scikit-learn's on generated rows: the pinball loss over that of the
fit without privacy, on fresh rows, and the share of these below the predictions.

    python papers/experiments/quantiles.py [--rows 50000] [--runs 3]
"""

from __future__ import annotations

import argparse

import numpy as np
from sklearn.linear_model import QuantileRegressor
from sklearn.metrics import mean_pinball_loss

import privfit as pf

EPSILONS = (0.1, 0.5, 1.0)
QUANTILES = (0.1, 0.5, 0.9)
COLUMNS = 5
FITTED_ON = 5000
"""scikit-learn solves a linear program, so that it is given a part of the rows."""


def generated(rows: int, skewed: bool, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Columns in [-1, 1], a target in [-20, 20] with normal errors, or skewed ones that grow with the first column."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (rows, COLUMNS))
    error = (1 + 0.5 * X[:, 0]) * rng.exponential(1.0, rows) if skewed else rng.normal(0, 1, rows)
    return X, np.clip(X @ np.array([2.0, -1.0, 0.5, 0.0, 0.0]) + error, -20, 20)


def main() -> None:
    """Print a line per kind of error, quantile and epsilon."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=50_000)
    parser.add_argument("--runs", type=int, default=3)
    given = parser.parse_args()
    schema = pf.Schema.box(-1, 1, target=(-20, 20))
    for skewed in (False, True):
        X, y = generated(given.rows, skewed, 0)
        fresh = generated(20_000, skewed, 1)
        for quantile in QUANTILES:
            plain = QuantileRegressor(quantile=quantile, alpha=0.0).fit(X[:FITTED_ON], y[:FITTED_ON])
            best = mean_pinball_loss(fresh[1], plain.predict(fresh[0]), alpha=quantile)
            for epsilon in EPSILONS:
                ratios, shares = [], []
                for seed in range(given.runs):
                    model = pf.QuantileRegressor(epsilon, quantile=quantile, schema=schema, random_state=seed).fit(X, y)
                    found = model.predict(fresh[0])
                    ratios.append(mean_pinball_loss(fresh[1], found, alpha=quantile) / best)
                    shares.append(float(np.mean(fresh[1] <= found)))
                told = f"{'skewed' if skewed else 'normal'} errors, quantile {quantile}, epsilon {epsilon}"
                print(f"{told}: loss {np.mean(ratios):.4f} of scikit-learn's, {np.mean(shares):.3f} below", flush=True)


if __name__ == "__main__":
    main()
