"""Generated tables whose coefficients are known, for `coverage.py --models`: four columns, of which the first two are
correlated, and targets of many kinds.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

import privfit as pf
from privfit.privacy import seeded_generator

Floats = np.ndarray[Any, np.dtype[np.float64]]
Draw = Callable[[np.random.Generator, Floats], Floats]
SLOPES, CONSTANT = np.array([0.8, -0.5, 0.3, 0.0]), 0.5
CLASSES = pf.Schema.box(-1, 1, n_features=4, target=[0, 1])


def columns(generator: np.random.Generator, n_rows: int, correlation: float) -> Floats:
    """Four columns in [-1, 1]."""
    own = generator.standard_normal((n_rows, 4))
    own[:, 1] = correlation * own[:, 0] + np.sqrt(1 - correlation**2) * own[:, 1]
    return np.clip(own / 3, -1, 1)


def line(x: Floats) -> Floats:
    return x @ SLOPES + CONSTANT


def binary(generator: np.random.Generator, x: Floats) -> Floats:
    return (generator.uniform(size=len(x)) < 1 / (1 + np.exp(-line(x)))).astype(float)


def counts(generator: np.random.Generator, x: Floats) -> Floats:
    """Counts that hardly spread about their mean."""
    return generator.poisson(np.exp(line(x))).astype(float)


def bursts(generator: np.random.Generator, x: Floats) -> Floats:
    """Counts with much more spread than Poisson's, the more the larger the first column is."""
    shape = 1.5 - x[:, 0]
    return generator.poisson(np.exp(line(x)) * generator.gamma(shape, 1 / shape)).astype(float)


def costs(generator: np.random.Generator, x: Floats) -> Floats:
    """Skewed amounts whose spread depends on the first column."""
    shape = 1.5 - x[:, 0]
    return np.exp(line(x) + 5.5) * generator.gamma(shape, 1 / shape)


def shares(generator: np.random.Generator, x: Floats) -> Floats:
    mean = 1 / (1 + np.exp(-line(x)))
    return generator.beta(2 * mean, 2 * (1 - mean))


def skewed(generator: np.random.Generator, x: Floats) -> Floats:
    """A line with exponential errors, larger where the first column is."""
    return line(x) + (generator.exponential(1.0, len(x)) - 1) * (1 + 0.5 * x[:, 0])


@dataclass(frozen=True)
class Case:
    """A model, the bounds of its target, a table, and the coefficients of the population, the intercept last; None
    where they are the minimum of a loss over very many rows.
    """

    model: Callable[..., Any]
    draw: Draw
    bounds: tuple[float, float] | None
    truth: Floats | None

    @property
    def schema(self) -> pf.Schema:
        return CLASSES if self.bounds is None else pf.Schema.box(-1, 1, n_features=4, target=self.bounds)

    def table(self, n_rows: int, correlation: float, seed: int) -> tuple[Floats, Floats]:
        generator = seeded_generator(seed)
        x = columns(generator, n_rows, correlation)
        y = self.draw(generator, x)
        return x, y.astype(int) if self.bounds is None else y


STATED = np.append(SLOPES, CONSTANT)
SPREAD = np.array([0.5, 0, 0, 0, 1.0])  # of the size of the errors of `skewed`


def of_quantile(quantile: float) -> Case:
    truth = STATED + (-np.log(1 - quantile) - 1) * SPREAD
    return Case(partial(pf.QuantileRegressor, quantile=quantile), skewed, (-10, 30), truth)


CASES: dict[str, Case] = {
    "LogisticRegression": Case(pf.LogisticRegression, binary, None, STATED),
    "LinearSVC": Case(pf.LinearSVC, binary, None, None),
    "PoissonRegressor": Case(pf.PoissonRegressor, counts, (0, 100), STATED),
    "PoissonRegressor, bursts": Case(pf.PoissonRegressor, bursts, (0, 200), STATED),
    "GammaRegressor": Case(pf.GammaRegressor, costs, (0, 20_000), STATED + 5.5 * np.array([0, 0, 0, 0, 1])),
    "FractionalRegressor": Case(pf.FractionalRegressor, shares, (0, 1), STATED),
    "QuantileRegressor, .5": of_quantile(0.5),
    "QuantileRegressor, .9": of_quantile(0.9),
    "LinearRegression, objective": Case(partial(pf.LinearRegression, mechanism="objective"), skewed, (-10, 30), STATED),
    "LinearRegression, functional": Case(
        partial(pf.LinearRegression, mechanism="functional"), skewed, (-10, 30), STATED
    ),
}
"""Models by their names in the table."""
