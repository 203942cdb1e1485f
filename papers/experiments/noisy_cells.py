"""What the cells of interaction terms add to scores, from noisy sums: posterior means with several constants, and the
shortened Newton steps that they replaced, on generated tables of eight shapes.

    python papers/experiments/noisy_cells.py [--tables 6] [--first 0] [--shape "mostly zero" ...] [--setting ...]
        [--epsilon 1.6 --epsilon 4]

Tables are those of shaped.py. Printed, by shape and epsilon, then for all shapes: mean differences from what is in use
on the same tables, with their standard errors, of the share of wrong classes in percentage points and of the log-loss
in hundredths. Below 0 is better than what is in use. Every setting has the same chosen columns for its first table and
the same noise. Noise is seeded; nothing here is a private release.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from classifiers import Test, spread
from generated import Table
from shaped import SHAPES, shaped_table

from privfit import LogisticRegression
from privfit.mechanisms.perturbation import interaction_terms
from privfit.solvers import noisy_cells

EPSILONS = (1.6, 4.0)
SEED = 9_000_000
STEADY, FURTHEST = 3.0, 4.0


def newton_steps(slopes: np.ndarray, curvatures: np.ndarray, scales: tuple[float, float], in_order: bool) -> np.ndarray:
    """A Newton step for each cell by itself, held back where the curvature is below three standard deviations."""
    held = np.hypot(np.maximum(curvatures, 0.0), max(STEADY * np.sqrt(2.0) * scales[1], 1.0))
    return np.asarray(np.clip(-slopes / held, -FURTHEST, FURTHEST))


IN_USE, WITHOUT = "in use", "no interaction terms"
SETTINGS: dict[str, dict[str, Any]] = {
    IN_USE: {},
    WITHOUT: {},
    "shortened Newton steps": {"expected_steps": newton_steps},
    "FALLS 1": {"FALLS": 1.0},
    "FALLS 2": {"FALLS": 2.0},
    "NONE 0": {"NONE": 0.0},
    "NONE 1": {"NONE": 1.0},
    "CHANGES 0.1": {"CHANGES": 0.1},
    "CHANGES 0.4": {"CHANGES": 0.4},
    "every cell by itself": {"CHANGES": 1.0},
    "OF_SAMPLING 0.3": {"OF_SAMPLING": 0.3},
    "OF_SAMPLING 1.2": {"OF_SAMPLING": 1.2},
}


@contextmanager
def applied(values: dict[str, Any]) -> Iterator[None]:
    """The library with these values, and as it was afterwards."""
    places = [(interaction_terms if name == "expected_steps" else noisy_cells, name) for name in values]
    usual = [getattr(*place) for place in places]
    for place, value in zip(places, values.values(), strict=True):
        setattr(*place, value)
    try:
        yield
    finally:
        for place, value in zip(places, usual, strict=True):
            setattr(*place, value)


def scores(table: Table, test: Test, epsilon: float, name: str, seed: int) -> tuple[float, float]:
    """The share of wrong classes and the log-loss."""
    model = LogisticRegression(
        epsilon, schema=table.schema, interactions=0 if name == WITHOUT else "auto", random_state=SEED + seed
    )
    with applied(SETTINGS[name]):
        return test.scores(model.fit(table.train))


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--tables", type=int, default=6)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--shape", action="append", choices=SHAPES)
    parser.add_argument("--setting", action="append", choices=[name for name in SETTINGS if name != IN_USE])
    parser.add_argument("--epsilon", action="append", type=float)
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    epsilons, others = given.epsilon or EPSILONS, given.setting or [name for name in SETTINGS if name != IN_USE]
    found: dict[tuple[str, float, str], list[np.ndarray]] = {}
    for shape in given.shape or SHAPES:
        for seed in range(given.first, given.first + given.tables):
            table = shaped_table(shape, seed)
            test = Test(table)
            for epsilon in epsilons:
                usual = np.array(scores(table, test, epsilon, IN_USE, seed))
                for name in others:
                    gap = np.array(scores(table, test, epsilon, name, seed)) - usual
                    found.setdefault((shape, epsilon, name), []).append(gap)
        show(shape, [(epsilon, name, found[shape, epsilon, name]) for epsilon in epsilons for name in others])
    everything = [
        (
            epsilon,
            name,
            [gap for (_, own, what), gaps in found.items() if (own, what) == (epsilon, name) for gap in gaps],
        )
        for epsilon in epsilons
        for name in others
    ]
    show("all shapes", everything)


def show(title: str, lines: list[tuple[float, str, list[np.ndarray]]]) -> None:
    print(f"\n{title} ({len(lines[0][2])} tables)")
    for epsilon, name, gaps in lines:
        errors, losses = np.array(gaps).T.tolist()
        print(f"{epsilon:>5} {name:<24} errors {spread(errors)}   log-loss {spread(losses)}", flush=True)


if __name__ == "__main__":
    main()
