"""How long additive models take to fit, beside LogisticRegression on the same rows: time of the processor, and memory.

    python papers/experiments/fit_time.py [--turns 5] [--epsilon 1.6] [--rows 50000]

The table is the generated census of `privfit demo`; classes are incomes above its threshold. Fits take turns in one
process. Printed: the least and the median seconds of the processor over turns, the largest memory that a further fit
allocates (tracemalloc), and both over those of LogisticRegression. Noise is seeded.
"""

from __future__ import annotations

import argparse
import time
import tracemalloc
from typing import Any

import numpy as np
import polars as pl

from privfit import AdditiveClassifier, AdditiveRegressor, LinearRegression, LogisticRegression
from privfit.datasets.census import census_schema, generated_census, with_high_income

CLASSES, NUMBERS = "classes", "numbers"
MODELS: dict[str, tuple[type[Any], str, dict[str, Any]]] = {
    "LogisticRegression": (LogisticRegression, CLASSES, {}),
    "LogisticRegression, no terms": (LogisticRegression, CLASSES, {"interactions": 0}),
    "AdditiveClassifier": (AdditiveClassifier, CLASSES, {}),
    "AdditiveRegressor": (AdditiveRegressor, NUMBERS, {}),
    "AdditiveRegressor, no terms": (AdditiveRegressor, NUMBERS, {"interactions": 0}),
    "LinearRegression": (LinearRegression, NUMBERS, {}),
}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--epsilon", type=float, default=1.6)
    parser.add_argument("--rows", type=int, default=50_000)
    given = parser.parse_args()
    people = generated_census(given.rows)
    tables: dict[str, tuple[pl.DataFrame, Any]] = {
        CLASSES: (with_high_income(people), census_schema("high_income")),
        NUMBERS: (people, census_schema()),
    }

    def fit(name: str, seed: int) -> float:
        kind, target, own = MODELS[name]
        frame, schema = tables[target]
        model = kind(given.epsilon, schema=schema, random_state=seed, **own)
        before = time.process_time()
        model.fit(frame)
        return time.process_time() - before

    seconds: dict[str, list[float]] = {name: [] for name in MODELS}
    for turn in range(given.turns + 1):
        for name in MODELS:
            taken = fit(name, turn)
            if turn:  # the first has what a process does once
                seconds[name].append(taken)
                print(f"turn {turn}: {name} {taken:.3f}", flush=True)
    reference = seconds["LogisticRegression"]
    first_memory = 0
    for name, found in seconds.items():
        tracemalloc.start()
        fit(name, 0)
        memory = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        first_memory = first_memory or memory
        least, median = min(found) / min(reference), np.median(found) / np.median(reference)
        print(
            f"{name:<30} {min(found):.3f} {np.median(found):.3f} s, {least:.2f} and {median:.2f} times; "
            f"{memory / 2**20:.0f} MiB, {memory / first_memory:.2f} times",
            flush=True,
        )


if __name__ == "__main__":
    main()
