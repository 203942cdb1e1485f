"""How near released survival curves come to the truth, and how often their intervals and bands hold it.

python papers/experiments/survival.py [--runs 200]
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

import privfit as pf

Floats = NDArray[np.float64]
HORIZON = 3.0
SETTINGS = (
    (1_000, 1.0, 20),
    (5_000, 0.1, 10),
    (5_000, 0.1, 20),
    (5_000, 0.1, 40),
    (5_000, 1.0, 10),
    (5_000, 1.0, 20),
    (5_000, 1.0, 40),
    (50_000, 0.1, 20),
    (50_000, 1.0, 20),
)
"""Rows, epsilon and bins."""


@dataclass(frozen=True)
class Table:
    """Times and whether they are those of events."""

    times: Floats
    events: NDArray[np.bool_]

    @classmethod
    def drawn(cls, rows: int, generator: np.random.Generator) -> Table:
        """Weibull times, watched for up to five years."""
        lives, watched = 2 * generator.weibull(1.3, rows), generator.uniform(0, 5, rows)
        return cls(np.minimum(lives, watched), lives <= watched)

    def kaplan_meier(self, at: Floats) -> Floats:
        """Kaplan and Meier's curve at these times."""
        order = np.argsort(self.times, kind="stable")
        times, events = self.times[order], self.events[order]
        left = np.cumprod(1 - events / np.arange(len(times), 0, -1))
        return np.asarray(np.append(1.0, left)[np.searchsorted(times, at)])


def main() -> None:
    """Print a line of a table for each setting."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--runs", type=int, default=200)
    given = parser.parse_args()
    print("| rows | epsilon | bins | worst error | without privacy | intervals | bands |")
    print("|---|---|---|---|---|---|---|")
    for rows, epsilon, bins in SETTINGS:
        generator, found = np.random.default_rng(1), []
        for seed in range(given.runs):
            table = Table.drawn(rows, generator)
            both = np.column_stack([table.times, table.events])
            time = pf.Numeric("time", 0, HORIZON, bins=bins)
            curves = pf.kaplan_meier(both, time, "event", epsilon=epsilon, random_state=seed)
            at = curves.times[1:]
            truth, own = np.exp(-((at / 2) ** 1.3)), np.asarray(curves.survival)[1:]
            plain = np.abs(table.kaplan_meier(at) - truth).max()
            low, high = curves.survival.interval[1:].T
            below, above = curves.band[1:].T
            held = ((low <= truth) & (truth <= high)).mean()
            band = ((below <= truth) & (truth <= above)).all()
            found.append((np.nanmax(np.abs(own - truth)), plain, held, band))
        error, plain, held, band = np.mean(found, axis=0)
        print(f"| {rows:,} | {epsilon:g} | {bins} | {error:.4f} | {plain:.4f} | {held:.0%} | {band:.0%} |", flush=True)


if __name__ == "__main__":
    main()
