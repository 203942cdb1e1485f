"""How well columns are selected privately: what a model of the selected columns reaches, and which they are.

    PRIVFIT_DATA=folder python papers/experiments/column_selection.py [--runs 20] [--epsilon 0.2]

The scores are those of a model without noise (epsilon 10,000, seeded) on the selected columns, on a test part; beside
them that of all columns, of the columns that are selected without noise, and of as many columns at random.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

import privfit as pf
from privfit.mechanisms.summaries import column_selection
from privfit_papers.bench.classes import adult, bank
from privfit_papers.bench.cps import cps_wages
from privfit_papers.bench.data import census_1980, data_folder

WITHOUT_NOISE = 10_000.0


def tables(folder: Path) -> dict[str, tuple[pl.DataFrame, pf.Schema, Any]]:
    """The real tables, with the model that judges a selection."""
    return {
        "Adult": (*adult(folder), pf.LogisticRegression),
        "Bank": (*bank(folder), pf.LogisticRegression),
        "census": (*census_1980(folder), pf.LinearRegression),
        "wages": (*cps_wages(folder), pf.LinearRegression),
    }


class Judge:
    """What models of selected columns reach on a table; each selection is judged once."""

    def __init__(self, frame: pl.DataFrame, schema: pf.Schema, model: Any) -> None:
        shuffled = frame.sample(fraction=1.0, shuffle=True, seed=1)
        test = np.arange(len(frame)) % 5 == 0
        self.train, self.test = shuffled.filter(pl.Series(~test)), shuffled.filter(pl.Series(test))
        self.schema, self.model = schema, model
        self._known: dict[tuple[str, ...], float] = {}

    def __call__(self, names: Any) -> float:
        key = tuple(sorted(names))
        if key not in self._known:
            kept = [column for column in self.schema.features if column.name in key]
            own = pf.Schema(kept, self.schema.target)
            fitted = self.model(epsilon=WITHOUT_NOISE, schema=own, random_state=0).fit(self.train)
            goal = self.schema.target.name
            self._known[key] = float(fitted.score(self.test.drop(goal), self.test[goal].to_numpy()))
        return self._known[key]


def main() -> None:
    """Print a line per table and number of cells."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--epsilon", type=float, default=0.2)
    parser.add_argument("--k", type=int, default=5)
    parser.add_argument("--cells", type=int, nargs="*", default=[8, 16, 32])
    given = parser.parse_args()
    rng = np.random.default_rng(0)
    for name, (frame, schema, model) in tables(data_folder()).items():
        judge, every = Judge(frame, schema, model), [column.name for column in schema.features]
        train = judge.train
        by_chance = [judge(rng.choice(every, given.k, replace=False).tolist()) for _ in range(5)]
        print(f"{name}: {len(train)} rows, all {len(every)} columns {judge(every):.4f}, {given.k} at random "
              f"{np.mean(by_chance):.4f}", flush=True)  # fmt: skip
        for cells in given.cells:
            column_selection.CELLS = cells
            best = pf.SelectPrivate(given.k, epsilon=WITHOUT_NOISE, schema=schema, random_state=0).fit(train)
            found, same = [], []
            for seed in range(given.runs):
                select = pf.SelectPrivate(given.k, epsilon=given.epsilon, schema=schema, random_state=seed).fit(train)
                found.append(judge(select.selected_.tolist()))
                same.append(len(set(select.selected_) & set(best.selected_)))
            print(
                f"  {cells} cells, epsilon {given.epsilon}: score {np.mean(found):.4f} (sd {np.std(found):.4f}, worst "
                f"{min(found):.4f}), without noise {judge(best.selected_.tolist()):.4f} {best.selected_.tolist()}; "
                f"{np.mean(same):.2f} of {given.k} the same",
                flush=True,
            )


if __name__ == "__main__":
    main()
