"""Sample and aggregate beside other mechanisms: classes of Adult, clusters of Lifesci and House, and the median of a column.

    python experiments/aggregate.py [repetitions] [folder with real data]

Printed: wrong classes in percent by five-fold cross-validation, mean squared distances to the nearest centre (columns scaled to [-1, 1]), and the root of the mean squared error of a median.
Noise is seeded, and results are measured on the rows themselves: nothing here is a private release.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np

from privfit import Aggregate, KMeans, LinearSVC, LogisticRegression, Numeric, SampleAndAggregate, Schema
from privfit.bench.classes import adult
from privfit.bench.clusters import cluster_spreads, house, lifesci, mean_distance
from privfit.bench.data import data_folder
from privfit.bench.genetic import fold_errors

EPSILONS = (0.1, 0.4, 1.6)
NO_NOISE = 1e6
MEDIANS = 50


def classes(folder: Path, repetitions: int) -> None:
    """Wrong classes of Adult."""
    frame, schema = adult(folder)
    aggregate, rooms = SampleAndAggregate(), SampleAndAggregate(noise="laplace")

    def maker(model: type, mechanism: Any, fixed: float | None = None) -> Any:
        return lambda epsilon, schema, seed: model(fixed or epsilon, schema=schema, mechanism=mechanism, random_state=seed)

    methods = {
        "logistic, default": maker(LogisticRegression, "auto"),
        "logistic, genetic": maker(LogisticRegression, "genetic"),
        "logistic, sample and aggregate": maker(LogisticRegression, aggregate),
        "  with Laplace noise, as printed": maker(LogisticRegression, rooms),
        "  weights within 1": maker(LogisticRegression, SampleAndAggregate(largest_weight=1.0, ridge=10.0)),
        "  without noise": maker(LogisticRegression, aggregate, NO_NOISE),
        "SVM, default": maker(LinearSVC, "auto"),
        "SVM, sample and aggregate": maker(LinearSVC, aggregate),
    }
    print(f"Adult, wrong classes in percent, {repetitions} x 5 folds; epsilon", *EPSILONS)
    found = fold_errors("Adult", frame, schema, methods, EPSILONS, repetitions)
    for name in dict.fromkeys(one.method for one in found):
        print(f"  {name:34}", *(f"{100 * one.mean:6.2f}±{100 * one.deviation:.2f}" for one in found if one.method == name), flush=True)


def clusters(folder: Path, repetitions: int) -> None:
    """Distances on Lifesci and House."""

    def maker(mechanism: Any, fixed: float | None = None) -> Any:
        return lambda k, epsilon, schema, seed: KMeans(k, fixed or epsilon, schema=schema, mechanism=mechanism, random_state=seed)

    methods = {
        "default": maker("auto"),
        "DPLloyd": maker("lloyd"),
        "genetic": maker("genetic"),
        "sample and aggregate": maker("sample-and-aggregate"),
        "  without noise": maker("sample-and-aggregate", NO_NOISE),
    }
    for table in (lifesci(folder), house(folder)):
        for k in table.clusters:
            print(f"{table.name}, k = {k}, mean squared distance, {repetitions} runs; epsilon", *EPSILONS)
            found = cluster_spreads(table, k, methods, EPSILONS, repetitions)
            for name in dict.fromkeys(one.method for one in found):
                print(f"  {name:34}", *(f"{one.distance:7.4f}±{one.deviation:.4f}" for one in found if one.method == name), flush=True)
            print(f"  {'all centres in the middle':34} {mean_distance(table.scaled, np.zeros((1, table.scaled.shape[1]))):7.4f}")


def medians(folder: Path) -> None:
    """The median age of Adult, with bounds that fit and with bounds that are wide."""
    ages = adult(folder)[0].get_column("age").to_numpy().astype(np.float64)[:, None]
    truth = float(np.median(ages))
    print(f"The median age of Adult, {truth:g}: root mean squared error, {MEDIANS} runs; epsilon", *EPSILONS)
    for low, high in ((17.0, 90.0), (0.0, 1000.0)):
        schema = Schema([Numeric("age", low, high)])
        for name, mechanism in {
            "ranges given": SampleAndAggregate(),
            "ranges given, 3 blocks a row": SampleAndAggregate(resampling=3),
            "percentiles": SampleAndAggregate(ranges="percentiles"),
            "percentiles, 1000 blocks": SampleAndAggregate(1000, ranges="percentiles"),
            "ranges given, 1000 blocks": SampleAndAggregate(1000),
        }.items():
            errors = []
            for epsilon in EPSILONS:
                found = [
                    Aggregate(np.median, low=low, high=high, epsilon=epsilon, schema=schema, mechanism=mechanism, random_state=seed).fit(
                        ages
                    )
                    for seed in range(MEDIANS)
                ]
                errors.append(float(np.sqrt(np.mean([(one.estimate_[0] - truth) ** 2 for one in found]))))
            print(f"  {name:34} bounds {low:g} to {high:g}: ", *(f"{error:8.2f}" for error in errors), flush=True)


if __name__ == "__main__":
    asked = int(sys.argv[1]) if len(sys.argv) > 1 else 3
    data = data_folder(Path(sys.argv[2]) if len(sys.argv) > 2 else None)
    medians(data)
    clusters(data, asked)
    classes(data, asked)
