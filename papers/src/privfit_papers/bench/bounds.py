"""What bought bounds are worth: a regression whose target has a bound that is far too wide, with one part of the budget
spent on a better one.

Noise is seeded and fits are scored on rows as they are, so nothing here is a private release.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from privfit.models import LinearRegression
from privfit.privacy import PublicGenerator, seeded_generator
from privfit.schema import Numeric, Schema
from privfit.summaries import bounds

Floats = NDArray[np.float64]

ROWS, COLUMNS = 20_000, 6
TOTAL, SPENT = 0.5, 0.05
GENEROUS = 20.0
"""How many times the bound that is known lies above the 99% point."""
SHAPES: dict[str, Callable[[PublicGenerator, int], Floats]] = {
    "log-normal": lambda rng, n: np.exp(0.5 * rng.standard_normal(n)),
    "gamma": lambda rng, n: rng.gamma(2.0, 0.5, n),
    "Pareto": lambda rng, n: rng.pareto(4.0, n) + 1.0,
}
"""Errors that multiply incomes, from light tails to heavy ones."""


@dataclass(frozen=True)
class Gain:
    """One way to bound the target: the variance that is explained, over tables, and the bound over the 99% point."""

    shape: str
    bounds: str
    mean: float
    sd: float
    worst: float
    relative_bound: float

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def generated_incomes(shape: str, seed: int, rows: int = ROWS) -> tuple[pl.DataFrame, float]:
    """Columns from -1 to 1 and an income that grows with them; and a bound 20 times above its 99% point."""
    rng = seeded_generator(seed)
    X = rng.uniform(-1, 1, (rows, COLUMNS))
    errors = SHAPES[shape](rng, rows)
    income = 30_000 * np.exp(X @ np.linspace(0.6, 0.1, COLUMNS)) * errors / errors.mean()
    names = {f"x{place}": X[:, place] for place in range(COLUMNS)}
    return pl.DataFrame({**names, "income": income}), GENEROUS * float(np.quantile(income, 0.99))


def explained(table: pl.DataFrame, high: float, epsilon: float, seed: int) -> float:
    """The share of the variance of incomes that a fit with this bound explains."""
    schema = Schema([Numeric(f"x{place}", -1, 1) for place in range(COLUMNS)], Numeric("income", 0, high))
    model = LinearRegression(epsilon, mechanism="functional", schema=schema, random_state=seed).fit(table)
    y = table["income"].to_numpy()
    left = y - model.predict(table)
    return 1.0 - float(left @ left) / float(np.sum((y - y.mean()) ** 2))


def gains(shape: str, runs: int, rows: int = ROWS) -> Iterator[Gain]:
    """Known, bought and generous bounds on the same tables."""
    found: dict[str, list[tuple[float, float]]] = {"known": [], "bought": [], "generous": []}
    for seed in range(runs):
        table, generous = generated_incomes(shape, seed, rows)
        point = generous / GENEROUS
        bought = bounds(table, {"income": (0, generous)}, epsilon=SPENT, random_state=seed)["income"][1]
        for name, high, epsilon in (
            ("known", point, TOTAL),
            ("bought", bought, TOTAL - SPENT),
            ("generous", generous, TOTAL),
        ):
            found[name].append((explained(table, high, epsilon, 1000 + seed), high / point))
    for name, each in found.items():
        scores, relative = np.array(each).T
        yield Gain(
            shape,
            name,
            float(scores.mean()),
            float(scores.std()),
            float(scores.min()),
            math.exp(np.log(relative).mean()),
        )
