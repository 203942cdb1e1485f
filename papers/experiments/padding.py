"""What `pf.padded` costs, and what it leaves to see: fits of two tables that take different times, side by side.

    python papers/experiments/padding.py --fits 25 --period 2

The tables have as many rows and columns. In one of them all rows are alike, so that the solver has less to do.
"""

from __future__ import annotations

import argparse
import time

import numpy as np

import privfit as pf


def fit_seconds(rows: np.ndarray, classes: np.ndarray, period: float | None) -> float:
    """How long one fit takes, as somebody sees who waits for its end."""
    schema = pf.Schema.box(-1, 1, n_features=rows.shape[1], target=pf.Category("target", [0, 1]))
    model = pf.LogisticRegression(1.0, schema=schema, ledger=pf.Ledger(epsilon=2.0))
    start = time.perf_counter()
    if period is None:
        model.fit(rows, classes)
    else:
        with pf.padded(period):
            model.fit(rows, classes)
    return time.perf_counter() - start


def main() -> None:
    """Fit both tables in turn, with and without padding, and print times."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--fits", type=int, default=25, help="fits of each table")
    parser.add_argument("--period", type=float, default=2.0, help="seconds")
    options = parser.parse_args()
    rng = np.random.default_rng(0)
    classes = rng.integers(0, 2, 4000)
    tables = {"rows that differ": rng.uniform(-1, 1, (4000, 8)), "rows that are alike": np.zeros((4000, 8))}
    seen: dict[tuple[str, float | None], list[float]] = {}
    for _ in range(options.fits):
        for period in (None, options.period):
            for name, rows in tables.items():
                seen.setdefault((name, period), []).append(fit_seconds(rows, classes, period))
    for (name, period), times in seen.items():
        label = "as it is" if period is None else f"padded({period:g})"
        told = f"mean {np.mean(times):.3f} s, sd {np.std(times):.3f}, worst {np.max(times):.3f}"
        over = np.array(times) - (period or 0) * np.ceil(np.array(times) / period - 0.5) if period else np.zeros(1)
        print(
            f"{label:12} {name:20} {told}" + (f"; past the period: worst {1e3 * over.max():.1f} ms" if period else "")
        )
    by_periods = {
        name: np.round(np.array(seen[name, options.period]) / options.period) for name in tables
    }  # of times that end a little late
    for label, own in (
        ("as it is", {name: seen[name, None] for name in tables}),
        ("padded", {name: seen[name, options.period] for name in tables}),
        ("in periods", by_periods),
    ):
        differ, alike = (np.array(own[name]) for name in tables)
        right = (differ[:, None] > alike[None, :]).mean() + 0.5 * (differ[:, None] == alike[None, :]).mean()
        print(f"{label:12} which of two fits is of the rows that differ: {right:.1%} right")


if __name__ == "__main__":
    main()
