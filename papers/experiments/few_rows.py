"""How many knots a number should have where rows times epsilon per column are few: generated and real tables.

    python papers/experiments/few_rows.py [--tables 60] [--first 144]
        generated tables of classifiers.py: differences from 8 knots, by rows times epsilon per column
    python papers/experiments/few_rows.py --real bank --rows 30000 --epsilon 0.1 [--splits 12] [--model LinearSVC]
        a real table, or so many of its rows: wrong classes, area under the curve, log-loss

Printed: means with standard errors over tables, in percentage points and hundredths; of a real table means and standard
deviations over 80/20 splits. Noise is seeded. Nothing here is a private release.
"""

from __future__ import annotations

import argparse
import warnings
from itertools import pairwise
from typing import Any

import classifiers
import numpy as np
from classifiers import DEFAULT, KINDS, Result, measure, spread

import privfit as pf
from privfit.models import perturbed
from privfit_papers.bench.classifiers import Score, split_at_random
from privfit_papers.cli.classifiers import measured_tables

EPSILONS, MOST_ROWS = (0.03, 0.1, 0.2, 0.4), 60_000
BANDS = (0, 15, 30, 60, 100, 200, 400, 800, 2000)
SETTINGS = ("3 knots", "5 knots", "numbers as slope")
ENCODINGS = (("slope", 8), ("splines", 2), ("splines", 3), ("splines", 4), ("splines", 5), ("splines", 8))
FIRST_SPLIT, SAMPLE_SEED, NOISE_SEED = 40, 100, 5_000_000


def generated(first: int, tables: int) -> None:
    classifiers.EPSILONS = EPSILONS
    found: dict[tuple[str, int, float], Result] = {}
    for seed in range(first, first + tables):
        for result in measure(seed, MOST_ROWS, False, (DEFAULT, *SETTINGS)):
            if KINDS[seed % len(KINDS)] != "categories":
                found[result.setting, result.table, result.epsilon] = result
    for what in ("error", "loss"):
        print(f"\n{what}: differences from 8 knots by n epsilon / k (tables)")
        for low, high in pairwise(BANDS):
            cells = []
            for name in SETTINGS:
                by_table: dict[int, list[float]] = {}
                for (setting, table, epsilon), one in found.items():
                    if setting == name and low <= one.density < high:
                        usual = found[DEFAULT, table, epsilon]
                        by_table.setdefault(table, []).append(getattr(one, what) - getattr(usual, what))
                means = [float(np.mean(values)) for values in by_table.values()]
                cells.append(f"{name} {spread(means)} ({len(means)})")
            print(f"{low:>5} to {high:<5} {'   '.join(cells)}", flush=True)


def real(name: str, rows: int | None, epsilon: float, splits: int, kind: str) -> None:
    ((title, (frame, schema)),) = measured_tables(None, (name,), 0)
    most = frame.height if rows is None else min(rows, frame.height)
    places = range(FIRST_SPLIT, FIRST_SPLIT + splits)
    parts = [
        split_at_random(frame.sample(most, seed=SAMPLE_SEED + place, shuffle=True), schema, place) for place in places
    ]
    density = parts[0].train.height * epsilon / len(schema.features)
    print(f"\n{title}, {most:,} used, {kind}, epsilon {epsilon:g}, n epsilon / k {density:.0f}")
    usual: Any = perturbed.automatic_numbers
    for encoding in ENCODINGS:
        perturbed.automatic_numbers = lambda *_, own=encoding: own  # type: ignore[assignment]
        found = []
        for place, split in enumerate(parts):
            seed = NOISE_SEED + 1000 * encoding[1] + place
            model = getattr(pf, kind)(epsilon, schema=schema, random_state=seed)
            if kind == "LinearSVC":  # the log-loss of its scores means little
                score = Score.of(model.fit(split.train).decision_function(split.test), split.is_second(split.test))
            else:
                score = split.score(model)
            found.append((score.error, score.auc, score.log_loss))
        means, deviations = np.mean(found, axis=0), np.std(found, axis=0)
        both = ", ".join(f"{mean:.4f} ({deviation:.4f})" for mean, deviation in zip(means, deviations, strict=True))
        print(f"{encoding[0] if encoding[0] == 'slope' else f'{encoding[1]} knots':<8} {both}", flush=True)
    perturbed.automatic_numbers = usual


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--tables", type=int, default=60)
    parser.add_argument("--first", type=int, default=144)
    parser.add_argument("--real", choices=("adult", "bank", "brazil"))
    parser.add_argument("--rows", type=int)
    parser.add_argument("--epsilon", type=float, default=0.1)
    parser.add_argument("--splits", type=int, default=12)
    parser.add_argument("--model", default="LogisticRegression", choices=("LogisticRegression", "LinearSVC"))
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    if given.real:
        real(given.real, given.rows, given.epsilon, given.splits, given.model)
    else:
        generated(given.first, given.tables)


if __name__ == "__main__":
    main()
