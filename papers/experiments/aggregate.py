"""Sample and aggregate beside other mechanisms: classes of Adult, clusters of Lifesci and House, and the median of a
column.

    python papers/experiments/aggregate.py [repetitions] [classes] [noisy] [clusters] [medians]
        2 repetitions of all of them, where nothing is said; PRIVFIT_DATA names the folder with real data

Printed: wrong classes in percent by five-fold cross-validation, mean squared distances to the nearest centre (columns
scaled to [-1, 1]), and the root of the mean squared error of a median. Noise is seeded, and results are measured on the
rows themselves: nothing here is a private release.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np

from privfit import Aggregate, KMeans, LinearSVC, LogisticRegression, Numeric, SampleAndAggregate, Schema
from privfit_papers.bench.classes import adult
from privfit_papers.bench.clusters import cluster_spreads, house, lifesci, mean_distance
from privfit_papers.bench.data import data_folder
from privfit_papers.bench.genetic import fold_errors

EPSILONS = (0.1, 0.4, 1.6)
NO_NOISE = 1e6
MEDIANS, MORE = 50, 4


def by_folds(folder: Path, repetitions: int, methods: dict[str, tuple[type, Any, float | None]]) -> None:
    """Wrong classes of Adult, for models with a mechanism and, maybe, an epsilon of their own."""

    def maker(model: type, mechanism: Any, fixed: float | None) -> Any:
        return lambda epsilon, schema, seed: model(
            fixed or epsilon, schema=schema, mechanism=mechanism, random_state=seed
        )

    print(f"Adult, wrong classes in percent, {repetitions} x 5 folds; epsilon", *EPSILONS)
    found = fold_errors(
        "Adult", *adult(folder), {name: maker(*given) for name, given in methods.items()}, EPSILONS, repetitions
    )
    for name in dict.fromkeys(one.method for one in found):
        print(
            f"  {name:34}",
            *(f"{100 * one.mean:6.2f}±{100 * one.deviation:.2f}" for one in found if one.method == name),
            flush=True,
        )


def classes(folder: Path, repetitions: int) -> None:
    """The defaults and genetic search, and what averaging blocks costs without noise."""
    methods = {
        "logistic, default": (LogisticRegression, "auto", None),
        "logistic, genetic": (LogisticRegression, "genetic", None),
        "SVM, default": (LinearSVC, "auto", None),
        "logistic, blocks without noise": (LogisticRegression, SampleAndAggregate(), NO_NOISE),
    }
    by_folds(folder, repetitions, methods)


def noisy_classes(folder: Path, repetitions: int) -> None:
    """Sample and aggregate: single fits differ so much that it takes more of them."""
    methods = {
        "logistic, sample and aggregate": (LogisticRegression, SampleAndAggregate(), None),
        "  with Laplace noise, as printed": (LogisticRegression, SampleAndAggregate(noise="laplace"), None),
        "  weights within 1": (LogisticRegression, SampleAndAggregate(largest_weight=1.0, ridge=10.0), None),
        "SVM, sample and aggregate": (LinearSVC, SampleAndAggregate(), None),
    }
    by_folds(folder, MORE * repetitions, methods)


def clusters(folder: Path, repetitions: int) -> None:
    """Distances on Lifesci and House."""

    def maker(mechanism: Any, fixed: float | None = None) -> Any:
        return lambda k, epsilon, schema, seed: KMeans(
            k, fixed or epsilon, schema=schema, mechanism=mechanism, random_state=seed
        )

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
                print(
                    f"  {name:34}",
                    *(f"{one.distance:7.4f}±{one.deviation:.4f}" for one in found if one.method == name),
                    flush=True,
                )
            print(
                f"  {'all centres in the middle':34} "
                f"{mean_distance(table.scaled, np.zeros((1, table.scaled.shape[1]))):7.4f}"
            )


def medians(folder: Path, repetitions: int) -> None:
    """The median age of Adult, with bounds that fit and with bounds that are wide."""
    ages = adult(folder)[0].get_column("age").to_numpy().astype(np.float64)[:, None]
    truth = float(np.median(ages))
    print(
        f"The median age of Adult, {truth:g}: root mean squared error, {MEDIANS * repetitions} runs; epsilon", *EPSILONS
    )
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
                    Aggregate(
                        np.median,
                        low=low,
                        high=high,
                        epsilon=epsilon,
                        schema=schema,
                        mechanism=mechanism,
                        random_state=seed,
                    ).fit(ages)
                    for seed in range(MEDIANS * repetitions)
                ]
                errors.append(float(np.sqrt(np.mean([(one.estimate_[0] - truth) ** 2 for one in found]))))
            print(f"  {name:34} bounds {low:g} to {high:g}: ", *(f"{error:8.2f}" for error in errors), flush=True)


PARTS = {"classes": classes, "noisy": noisy_classes, "clusters": clusters, "medians": medians}

if __name__ == "__main__":
    asked = int(sys.argv[1]) if len(sys.argv) > 1 else 2
    for part in sys.argv[2:] or PARTS:
        PARTS[part](data_folder(), asked)
