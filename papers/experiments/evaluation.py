"""How close `pf.evaluate` comes to figures without noise, and how often its intervals hold what they are about.

    python papers/experiments/evaluation.py [--runs 50] [--cases classes,numbers]

Every case draws a population, a model of it that stays the same, and for every run fresh rows. Errors are measured
against the figures of the run's own rows; intervals against those of 400,000 other rows.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from sklearn import metrics

import privfit as pf

POPULATION = 400_000
SIZES = ((10_000, 0.1), (10_000, 0.4), (2_000, 0.5))
"""Numbers of rows, and epsilon."""
Draw = Callable[[np.random.Generator, int], pl.DataFrame]


@dataclass(frozen=True)
class Case:
    """A population and the model that is evaluated on it."""

    name: str
    draw: Draw
    model: Any
    truth: Callable[[Any, pl.DataFrame], dict[str, float]]


def two_classes(shift: float, spread: float, noise: float, levels: bool = False) -> Draw:
    """Classes by a logistic curve of two numbers, or of one that takes few values."""

    def draw(generator: np.random.Generator, rows: int) -> pl.DataFrame:
        first, second = np.clip(generator.normal(0, 1, (2, rows)), -3, 3)
        if levels:
            first, second = np.sign(first), np.rint(second)
        chance = 1 / (1 + np.exp(-(shift + spread * first - spread / 2 * second)))
        ill = np.where(generator.random(rows) < noise / 2 + (1 - noise) * chance, "yes", "no")
        return pl.DataFrame({"a": first, "b": second, "y": ill})

    return draw


CLASSES = pf.Schema([pf.Numeric("a", -3, 3), pf.Numeric("b", -3, 3)], pf.Category("y", ["no", "yes"]))


def class_truth(model: Any, rows: pl.DataFrame) -> dict[str, float]:
    """Figures of scikit-learn."""
    true, shares, predicted = (rows["y"] == "yes").to_numpy(), model.predict_proba(rows)[:, 1], model.predict(rows)
    return {
        "accuracy": metrics.accuracy_score(true, predicted == "yes"),
        "balanced_accuracy": metrics.balanced_accuracy_score(true, predicted == "yes"),
        "auc": metrics.roc_auc_score(true, shares),
        "log_loss": metrics.log_loss(true, shares),
        "brier": metrics.brier_score_loss(true, shares),
    }


def numbers(slope: float, noise: Callable[[np.random.Generator, int], np.ndarray], power: bool = False) -> Draw:
    """A number by a line and noise, or by the exponential of both."""

    def draw(generator: np.random.Generator, rows: int) -> pl.DataFrame:
        first, second = np.clip(generator.normal(0, 1, (2, rows)), -3, 3)
        line = slope * first - slope / 2 * second + noise(generator, rows)
        return pl.DataFrame({"a": first, "b": second, "y": np.exp(line) if power else 20 + line})

    return draw


def normal(deviation: float) -> Callable[[np.random.Generator, int], np.ndarray]:
    """Normal noise."""
    return lambda generator, rows: generator.normal(0, deviation, rows)


def number_truth(model: Any, rows: pl.DataFrame) -> dict[str, float]:
    """The same for numbers."""
    low, high = model.schema_.target.low, model.schema_.target.high
    true, predicted = rows["y"].to_numpy().clip(low, high), model.predict(rows)
    return {
        "r2": metrics.r2_score(true, predicted),
        "rmse": metrics.root_mean_squared_error(true, predicted),
        "mae": metrics.mean_absolute_error(true, predicted),
    }


def cases(kinds: list[str]) -> Iterator[Case]:
    """The populations, each with a model that was fitted to other rows of it."""
    if "classes" in kinds:
        for name, own in {
            "easy": two_classes(0.0, 2.0, 0.0),
            "hard": two_classes(-0.5, 0.4, 0.0),
            "one in ten": two_classes(-3.0, 1.2, 0.0),
            "sharp": two_classes(0.0, 6.0, 0.05),
            "levels": two_classes(0.3, 1.0, 0.0, levels=True),
        }.items():
            rows = own(np.random.default_rng(7), 5_000)
            model = pf.LogisticRegression(epsilon=2.0, schema=CLASSES, random_state=0).fit(rows)
            yield Case(name, own, model, class_truth)
    if "numbers" in kinds:
        for name, own, high in (
            ("light", numbers(1.0, normal(1.0)), 100.0),
            ("little R2", numbers(0.5, normal(1.0)), 100.0),
            ("much R2", numbers(2.0, normal(0.7)), 100.0),
            ("heavy, t4", numbers(1.0, lambda generator, rows: 0.7 * generator.standard_t(4, rows)), 100.0),
            ("heavy, lognormal", numbers(0.6, normal(0.5), power=True), 1000.0),
        ):
            rows = own(np.random.default_rng(7), 5_000)
            schema = pf.Schema(CLASSES.features, pf.Numeric("y", 0, high))
            model = pf.LinearRegression(epsilon=4.0, schema=schema, random_state=0).fit(rows)
            yield Case(name, own, model, number_truth)


def measured(case: Case, rows: int, epsilon: float, runs: int) -> None:
    """Print the median error and the share of intervals that hold, of every figure."""
    population = case.truth(case.model, case.draw(np.random.default_rng(1), POPULATION))
    errors: dict[str, list[float]] = {name: [] for name in population}
    held: dict[str, list[bool]] = {name: [] for name in population}
    for run in range(runs):
        table = case.draw(np.random.default_rng(1000 + run), rows)
        found = pf.evaluate(case.model, table, epsilon=epsilon, random_state=run).figures
        exact = case.truth(case.model, table)
        for name, value in population.items():
            low, high = found[name].interval
            errors[name].append(float(found[name]) - exact[name])
            held[name].append(low <= value <= high)
    told = [
        f"{name} {np.nanmedian(np.abs(own)):.4f} ({np.nanmean(own):+.4f}, spread {np.nanstd(own):.4f}) "
        f"{np.mean(held[name]):.2f}"
        for name, own in errors.items()
    ]
    print(f"{case.name:>14} {rows:>7} {epsilon:>5} | " + " | ".join(told), flush=True)


def main() -> None:
    """Measure all cases."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=50)
    parser.add_argument("--cases", default="classes")
    given = parser.parse_args()
    print("case, rows, epsilon | figure: median error (bias, spread), share of 90% intervals that hold")
    for case in cases(given.cases.split(",")):
        for rows, epsilon in SIZES:
            measured(case, rows, epsilon, given.runs)


if __name__ == "__main__":
    main()
