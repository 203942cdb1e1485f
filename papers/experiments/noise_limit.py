"""Where reports of classifiers say that noise dominates them, and whether they are right.

    python papers/experiments/noise_limit.py [number of tables] [fits per setting]

Fits on generated tables, and on Adult where a folder with real data is found, for 100 to 40,000 rows and epsilon from
0.001 to 1. What a fit is worth is (AUC - 1/2) / (best AUC - 1/2) on test rows, where the best is that of a fit with
next to no noise. Noise is lucky at times, so a setting (table, model, rows, epsilon) is judged by the mean of its fits:
useless below a quarter, good above 0.65. Printed for several limits of the relative noise: in how many fits of useless
settings the note would be (hits), in how many of those in between, and in how many of good ones (false alarms).
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from generated import make_table
from sklearn.metrics import roc_auc_score

from privfit.mechanisms.perturbation.defaults import NOISE_LIMIT
from privfit.models import LinearSVC, LogisticRegression
from privfit.schema import Category, Schema
from privfit_papers.bench.classes import adult
from privfit_papers.bench.data import NoData, data_folder

ROWS = (100, 300, 1_000, 3_000, 10_000, 40_000)
EPSILONS = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0)
NO_NOISE = 1e4
TEST_ROWS = 6_000
USELESS, GOOD = 0.25, 0.65
LIMITS = (0.1, 0.2, 0.25, NOISE_LIMIT, 0.4, 0.5, 1.0)
MODELS: dict[str, Any] = {
    "logistic": LogisticRegression(),
    "logistic, output": LogisticRegression(mechanism="output"),
    "svm": LinearSVC(),
    "logistic, delta": LogisticRegression(delta=1e-6),
}


@dataclass(frozen=True)
class Split:
    name: str
    train: pl.DataFrame
    test: pl.DataFrame
    schema: Schema

    def auc(self, model: Any) -> float:
        target = self.schema.target
        assert isinstance(target, Category)
        return float(
            roc_auc_score(self.test[target.name].to_numpy() == model.classes_[1], model.decision_function(self.test))
        )


def splits(tables: int) -> Iterator[Split]:
    for seed in range(tables):
        table = make_table(seed)
        yield Split(f"generated {seed}", table.train, table.test[:TEST_ROWS], table.schema)
    try:
        frame, schema = adult(data_folder())
    except NoData:
        return
    frame = frame.sample(fraction=1.0, shuffle=True, seed=1)
    yield Split("Adult", frame[:-TEST_ROWS], frame[-TEST_ROWS:], schema)


def fits(split: Split, repeats: int) -> Iterator[dict[str, Any]]:
    """One line per fit: the setting, what it is worth, and its relative noise."""
    seed = 0
    for kind, model in MODELS.items():
        best = split.auc(
            model.set_params(epsilon=NO_NOISE, schema=split.schema, random_state=0).fit(split.train[: max(ROWS)])
        )
        for rows in (n for n in ROWS if n <= len(split.train)):
            for epsilon in EPSILONS:
                for _ in range(repeats):
                    seed += 1
                    model.set_params(epsilon=epsilon, random_state=seed).fit(split.train[:rows])
                    worth = (split.auc(model) - 0.5) / (best - 0.5)
                    noise = model.report_.repairs["relative_noise"]
                    yield {
                        "table": split.name,
                        "model": kind,
                        "rows": rows,
                        "epsilon": epsilon,
                        "worth": worth,
                        "noise": noise,
                    }


def judged(found: pl.DataFrame) -> pl.DataFrame:
    setting = ["table", "model", "rows", "epsilon"]
    return found.with_columns(usual=pl.col("worth").mean().over(setting))


def show(title: str, found: pl.DataFrame) -> None:
    groups = {
        "useless": found.filter(pl.col("usual") < USELESS),
        "between": found.filter(pl.col("usual").is_between(USELESS, GOOD)),
        "good": found.filter(pl.col("usual") > GOOD),
    }
    print(f"\n{title}: fits " + ", ".join(f"{name} {group.height}" for name, group in groups.items()))
    for limit in LIMITS:
        noted = [
            float(np.mean(group["noise"].to_numpy() > limit)) if group.height else np.nan for group in groups.values()
        ]
        chosen = "  <- the limit in use" if limit == NOISE_LIMIT else ""
        hits, between, alarms = (f"{share:6.1%}" for share in noted)
        print(f"  limit {limit:4g}   hits {hits}   between {between}   false alarms {alarms}{chosen}")


def main() -> None:
    tables, repeats = (int(given) for given in (sys.argv[1:3] + ["12", "6"][len(sys.argv) - 1 :]))
    warnings.simplefilter("ignore")
    found = judged(pl.DataFrame([line for split in splits(tables) for line in fits(split, repeats)]))
    for kind in MODELS:
        show(kind, found.filter(pl.col("model") == kind))
    show("all", found)
    show("Adult alone", found.filter(pl.col("table") == "Adult"))


if __name__ == "__main__":
    main()
