"""How far private classifiers are behind gradient boosting without privacy, split by split.

    python papers/experiments/gap.py [folder] [--splits 10] [--table adult --table bank --table brazil]
        [--epsilon 0.1 --epsilon 1.6 --epsilon 4]

Boosting is scikit-learn's HistGradientBoostingClassifier as it comes, categories by their codes. Printed, per table,
method and epsilon: the mean and the standard deviation over 80/20 splits of the share of wrong classes, of the area
under the curve, and of the difference of wrong classes from boosting on the same split. Noise is seeded. Nothing here
is a private release.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from sklearn.ensemble import HistGradientBoostingClassifier

from privfit import LogisticRegression
from privfit.schema import Category
from privfit_papers.bench.classifiers import FIRST_SEED, Score, Split, split_at_random
from privfit_papers.cli.classifiers import measured_tables

METHODS: dict[str, dict[str, Any]] = {
    "default": {},
    "default, delta 1e-6": {"delta": 1e-6},
    "no interactions": {"interactions": 0},
}


def numbers(split: Split, part: pl.DataFrame) -> np.ndarray:
    """Features as numbers: levels by their places."""
    found = []
    for column in split.schema.features:
        values = part.get_column(column.name)
        if isinstance(column, Category):
            places = {level: place for place, level in enumerate(column.levels)}
            found.append(np.array([places.get(value, -1) for value in values.to_list()], dtype=float))
        else:
            found.append(values.cast(pl.Float64).to_numpy())
    return np.column_stack(found)


def boosted(split: Split) -> Score:
    """How boosting without privacy does."""
    categories = [isinstance(column, Category) and len(column.levels) <= 255 for column in split.schema.features]
    model = HistGradientBoostingClassifier(categorical_features=categories, random_state=0)
    model.fit(numbers(split, split.train), split.is_second(split.train))
    chances = model.predict_proba(numbers(split, split.test))[:, 1]
    return Score.of(np.log(chances) - np.log1p(-chances), split.is_second(split.test))


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", nargs="?", type=Path)
    parser.add_argument("--splits", type=int, default=10)
    parser.add_argument("--table", action="append")
    parser.add_argument("--epsilon", action="append", type=float)
    parser.add_argument("--method", action="append", choices=list(METHODS))
    given = parser.parse_args()
    for name, (frame, schema) in measured_tables(given.folder, tuple(given.table or ("adult", "bank", "brazil")), 0):
        splits = [split_at_random(frame, schema, seed) for seed in range(given.splits)]
        peers = [boosted(split) for split in splits]
        wrong, areas = (np.array([getattr(score, key) for score in peers]) for key in ("error", "auc"))
        print(f"\n{name}: boosting {wrong.mean():.4f} ({wrong.std():.4f}), area {areas.mean():.4f}", flush=True)
        for method in given.method or METHODS:
            own = METHODS[method]
            for epsilon in given.epsilon or (0.1, 1.6, 4.0):
                found = [
                    split.score(LogisticRegression(epsilon, schema=schema, random_state=FIRST_SEED + k, **own))
                    for k, split in enumerate(splits)
                ]
                error, area = (np.array([getattr(score, key) for score in found]) for key in ("error", "auc"))
                gap = error - wrong
                print(
                    f"{method:<22} {epsilon:>4}: wrong {error.mean():.4f} ({error.std():.4f}), "
                    f"area {area.mean():.4f} ({area.std():.4f}), behind {gap.mean():.4f} ({gap.std():.4f})",
                    flush=True,
                )


if __name__ == "__main__":
    main()
