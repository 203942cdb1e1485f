"""How pf.LogisticRegression fits three and more classes: each against the rest, or all by softmax, on generated tables.

    python papers/experiments/classes.py             some minutes of two cores: 24 tables for each number of classes
    python papers/experiments/classes.py --quick     a quarter of a minute: two small tables each, to see that it runs

Tables are made as for classifiers.py (5,000 to 50,000 rows), but every class has an effect of its own in every column.
Printed, in Markdown, by number of classes and epsilon: wrong classes in percent and log-loss in hundredths, means over
tables; of each against the rest also the log-loss where probabilities of classes are divided by their sum
("probabilities"), in place of a softmax of their log-odds ("odds"); and how much softmax differs from the first, with
its standard error over tables. Noise is seeded.
"""

from __future__ import annotations

import argparse
import os
import warnings
from concurrent.futures import ProcessPoolExecutor
from typing import Any

import numpy as np
import polars as pl
from generated import KINDS, TEST_ROWS, make_column, unit
from scipy.special import expit, logsumexp

import privfit as pf
from privfit.losses import tempered_logistic
from privfit.mechanisms.perturbation import problem as rules
from privfit.privacy import seeded_generator
from privfit.schema import Category, Column, Schema

CLASSES = (3, 4, 6, 10)
EPSILONS = (0.1, 0.4, 1.6)
FIRST_SEED = 5_000_000
LEAST_CHANCE = 1e-15


def make_table(seed: int, classes: int, most_rows: int) -> tuple[pl.DataFrame, pl.DataFrame, Schema]:
    """Rows to fit on and to test on, and what is public about them."""
    generator = seeded_generator(FIRST_SEED + 100 * seed + classes)
    kind = KINDS[seed % len(KINDS)]
    n = int(np.exp(generator.uniform(np.log(5_000), np.log(50_000)))) if most_rows >= 5_000 else most_rows
    k = (
        int(generator.integers(2, 5))
        if kind == "few straight numbers"
        else round(float(np.exp(generator.uniform(np.log(4), np.log(20)))))
    )
    rows = n + TEST_ROWS
    hidden = generator.standard_normal(rows)
    data: dict[str, np.ndarray] = {}
    features: list[Column] = []
    signals = np.zeros((rows, classes))
    for i in range(k):
        shared = generator.uniform(0, 0.7)
        latent = shared * hidden + np.sqrt(1 - shared**2) * generator.standard_normal(rows)
        values, column, effect = make_column(f"x{i}", kind, latent, generator)
        data[f"x{i}"] = values
        features.append(column)
        importance = generator.exponential()
        for c in range(classes):
            own = (
                generator.standard_normal(len(column.levels))[np.asarray(values, dtype=int)]
                if isinstance(column, Category)
                else generator.standard_normal() * effect
            )
            signals[:, c] += importance * (unit(own) if isinstance(column, Category) else own)
    signals *= generator.uniform(1.0, 2.5) / signals.std()
    signals += generator.normal(0, 0.7, classes)
    y = (signals + generator.gumbel(size=signals.shape)).argmax(axis=1)
    frame = pl.DataFrame({**data, "y": y})
    return frame[:n], frame[n:], Schema(features, target=Category("y", list(range(classes))))


def measured(job: tuple[int, int, int]) -> list[tuple[int, float, list[float]]]:
    """For each epsilon: errors and log-losses of one-vs-rest (odds, probabilities) and of softmax."""
    seed, classes, most_rows = job
    warnings.simplefilter("ignore")
    train, test, schema = make_table(seed, classes, most_rows)
    truth = test["y"].to_numpy()
    found = []
    for epsilon in EPSILONS:
        numbers: list[float] = []
        for softmax_from in (1000, 3):
            rules.SOFTMAX_FROM = softmax_from
            model = pf.LogisticRegression(epsilon, schema=schema, random_state=seed).fit(train)
            scores = model.decision_function(test)
            if softmax_from == 3:
                logs = [scores - logsumexp(scores, axis=1, keepdims=True)]
            else:
                odds = tempered_logistic(*model._slopes).log_odds(scores)
                chances = np.clip(expit(odds), LEAST_CHANCE, 1)
                logs = [
                    odds - logsumexp(odds, axis=1, keepdims=True),
                    np.log(chances / chances.sum(axis=1, keepdims=True)),
                ]
            numbers.append(100 * float(np.mean(scores.argmax(axis=1) != truth)))
            numbers += [
                -100 * float(np.mean(np.maximum(own[np.arange(len(truth)), truth], np.log(LEAST_CHANCE))))
                for own in logs
            ]
        found.append((classes, epsilon, numbers))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="two small tables for each number of classes")
    parser.add_argument("--tables", type=int, default=24, help="tables for each number of classes")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    given = parser.parse_args()
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    tables, most_rows = (2, 2_000) if given.quick else (given.tables, 50_000)
    jobs = [(seed, classes, most_rows) for classes in CLASSES for seed in range(tables)]
    found: dict[tuple[int, float], list[Any]] = {}
    with ProcessPoolExecutor(given.jobs) as pool:
        for rows in pool.map(measured, jobs):
            for classes, epsilon, numbers in rows:
                found.setdefault((classes, epsilon), []).append(numbers)
    print(
        "| classes | epsilon | errors, each against the rest | softmax | difference | log-loss, odds | probabilities | "
        "softmax | softmax less odds |"
    )
    print("|---|---|---|---|---|---|---|---|---|")
    for (classes, epsilon), lists in sorted(found.items()):
        errors, odds, chances, other, softmax = np.array(lists).T
        cells = [f"{errors.mean():.1f}", f"{other.mean():.1f}", apart(other - errors)]
        cells += [f"{own.mean():.1f}" for own in (odds, chances, softmax)] + [apart(softmax - odds)]
        print(f"| {classes} | {epsilon} | " + " | ".join(cells) + " |")


def apart(differences: np.ndarray) -> str:
    return f"{differences.mean():+.2f} ± {differences.std(ddof=1) / np.sqrt(len(differences)):.2f}"


if __name__ == "__main__":
    main()
