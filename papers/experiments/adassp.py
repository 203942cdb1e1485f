"""AdaSSP and its boosted form beside the functional mechanism, and how the boosted form's constants do.

    python papers/experiments/adassp.py [number of tables]
        generated tables: the methods, then other settings of the boosted form's constants
    python papers/experiments/adassp.py --real [folder]
        the same methods on the 1980 census and on CPS wages, with bounds that fit and with wide ones

Printed: the mean and the worst share lost of the variance that least squares explains (cut at 3). Generated tables come
in four kinds, in equal numbers: target bounds that are wide (8 to 40 standard deviations to either side) or fit (3 to
8), and errors that are normal, or have long tails (to one side or to both) and are larger where the target is high. On
them the constants were chosen. The form of the cut rule and the number of rounds were settled after a first look at the
real files, so these are not unseen data for them.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from pathlib import Path

import numpy as np
import polars as pl

from privfit import AdaSSP, FunctionalMechanism, LinearRegression, Numeric, Schema
from privfit.mechanisms.functional import adassp, boosting
from privfit.privacy import seeded_generator
from privfit.schema import Category
from privfit.solvers import adaptive
from privfit_papers.bench.accuracy import design_matrix
from privfit_papers.bench.cps import cps_wages
from privfit_papers.bench.data import census_1980, data_folder

DELTA = 1e-6
RUNS = 5
BOOSTED = AdaSSP(rounds=adassp.BOOSTED_ROUNDS)
METHODS = {
    "functional, no delta": (FunctionalMechanism(), 0.0),
    "functional, Gaussian": (FunctionalMechanism(noise="gaussian"), DELTA),
    "AdaSSP": (AdaSSP(), DELTA),
    "boosted": (BOOSTED, DELTA),
    "boosted, bound 1/4": (AdaSSP(rounds=BOOSTED.rounds, residual_bound=0.25), DELTA),
    "AdaSSP, no delta": (AdaSSP(), 0.0),
    "boosted, no delta": (BOOSTED, 0.0),
}
SETTINGS: dict[str, tuple[object, str, tuple[object, ...]]] = {
    "growth": (adassp, "GROWTH", (Fraction(1), Fraction(2))),
    "least cut": (boosting, "LEAST_CUT", (1.0, 2.5)),
    "cut": (boosting, "CUT", (0.2, 0.3, 0.6)),
    "spread margin": (boosting, "SPREAD_MARGIN", (0.5, 3.0)),
    "least share": (adaptive, "LEAST_SHARE", (0.1, 1.0)),
    "share of the moments": (
        adassp,
        "BOOSTED_SHARES",
        tuple({"the moments of features": Fraction(share, 20)} for share in (2, 8)),
    ),
    "share of the eigenvalue": (
        adassp,
        "BOOSTED_SHARES",
        tuple({"the smallest eigenvalue": Fraction(share, 40)} for share in (1, 4)),
    ),
}


@dataclass(frozen=True)
class Data:
    frame: pl.DataFrame
    schema: Schema
    test: pl.DataFrame

    def target_of(self, frame: pl.DataFrame) -> np.ndarray:
        target = self.schema.target
        assert isinstance(target, Numeric)
        return np.clip(frame[target.name].to_numpy(), target.low, target.high)

    @cached_property
    def least(self) -> float:
        """The test error of least squares, fitted on the same rows."""
        weights = np.linalg.lstsq(design_matrix(self.frame, self.schema), self.target_of(self.frame), rcond=None)[0]
        return float(np.mean((design_matrix(self.test, self.schema) @ weights - self.target_of(self.test)) ** 2))

    def lost(self, model: LinearRegression) -> float:
        """The share lost of what least squares explains of the test rows."""
        y = self.target_of(self.test)
        error = np.mean((model.fit(self.frame).predict(self.test) - y) ** 2)
        return float(min((error - self.least) / (y.var() - self.least), 3.0))


def generated(seed: int) -> Data:
    generator = seeded_generator(seed)
    n_rows = int(10 ** generator.uniform(4, 5))
    factors = generator.standard_normal((n_rows, 2))
    columns: dict[str, np.ndarray] = {}
    features: list[Numeric | Category] = []
    signal = np.zeros(n_rows)
    for i in range(generator.integers(1, 8)):
        x = factors @ generator.standard_normal(2) * generator.uniform() + generator.standard_normal(n_rows)
        middle, half = x.std() * generator.normal(0, 0.5), x.std() * generator.uniform(2, 8)
        columns[f"number{i}"] = x = np.clip(x, middle - half, middle + half)
        features.append(Numeric(f"number{i}", middle - half, middle + half))
        signal += x / x.std() * generator.standard_normal() * generator.uniform()
    for i in range(generator.integers(0, 8)):
        size = int(generator.integers(2, 12))
        x = generator.choice(size, n_rows, p=generator.dirichlet(np.full(size, 2.0)))
        columns[f"levels{i}"] = x
        features.append(Category(f"levels{i}", list(range(size))))
        signal += generator.standard_normal(size)[x]
    signal = signal / signal.std()
    explained = generator.uniform(0.05, 0.6)
    errors = generator.standard_normal(n_rows)
    if seed // 2 % 2:
        errors = np.exp(generator.uniform(0.5, 1.1) * errors) if seed // 4 % 2 else generator.standard_t(4, n_rows)
        errors = (errors - errors.mean()) / errors.std() * np.exp(0.3 * signal)
    y = signal * np.sqrt(explained) + errors * np.sqrt(1 - explained)
    middle, half = generator.normal(0, 1.5), generator.uniform(3, 8) if seed % 2 else generator.uniform(8, 40)
    frame = pl.DataFrame({**columns, "y": y})
    return Data(frame, Schema(features, Numeric("y", middle - half, middle + half)), frame)


def split(frame: pl.DataFrame, schema: Schema, seed: int) -> Data:
    order = seeded_generator(seed).permutation(frame.height)
    cut = int(0.8 * frame.height)
    return Data(frame[order[:cut]], schema, frame[order[cut:]])


def line(
    name: str, data: list[Data], model: Callable[[float, int], LinearRegression], epsilons: tuple[float, ...]
) -> None:
    cells = []
    for epsilon in epsilons:
        losses = [each.lost(model(epsilon, seed)) for seed, each in enumerate(data)]
        cells.append(f"{np.mean(losses):7.4f} {np.max(losses):6.3f}")
    print(f"{name:<34}" + "  ".join(cells), flush=True)


def compare(title: str, data: list[Data], epsilons: tuple[float, ...]) -> None:
    print(f"\n{title:<34}" + "  ".join(f"{epsilon:7g} {'worst':>6}" for epsilon in epsilons))
    for name, (mechanism, delta) in METHODS.items():

        def model(epsilon: float, seed: int, mechanism: object = mechanism, delta: float = delta) -> LinearRegression:
            schema = data[seed].schema
            return LinearRegression(epsilon, delta=delta, schema=schema, mechanism=mechanism, random_state=seed)

        line(name, data, model, epsilons)


def settings(data: list[Data], epsilons: tuple[float, ...]) -> None:
    def boosted(epsilon: float, seed: int, rounds: int = BOOSTED.rounds) -> LinearRegression:
        schema = data[seed].schema
        return LinearRegression(epsilon, delta=DELTA, schema=schema, mechanism=AdaSSP(rounds=rounds), random_state=seed)

    print("\nother settings, boosted")
    for rounds in (2, 3, 6):
        line(f"rounds = {rounds}", data, lambda epsilon, seed, rounds=rounds: boosted(epsilon, seed, rounds), epsilons)
    for name, (module, constant, values) in SETTINGS.items():
        chosen = getattr(module, constant)
        for value in values:
            setattr(module, constant, {**chosen, **value} if isinstance(value, dict) else value)
            shown = next(iter(value.values())) if isinstance(value, dict) else value
            line(f"{name} = {shown}", data, boosted, epsilons)
        setattr(module, constant, chosen)


def main() -> None:
    if sys.argv[1:2] == ["--real"]:
        folder = data_folder(Path(sys.argv[2]) if len(sys.argv) > 2 else None)
        tables = {"census 1980": census_1980(folder)}
        tables |= {f"CPS wages to {highest:,}": cps_wages(folder, highest) for highest in (300_000, 1_000_000)}
        for title, (frame, schema) in tables.items():
            compare(title, [split(frame, schema, seed) for seed in range(RUNS)], (0.1, 0.2, 0.4, 0.8, 1.6))
        return
    data = [generated(seed) for seed in range(int(sys.argv[1]) if len(sys.argv) > 1 else 24)]
    for kind, title in enumerate(
        ("wide bounds", "bounds that fit", "wide bounds, long tails", "bounds that fit, long tails")
    ):
        compare(title, data[kind::4], (0.1, 0.4, 1.6, 6.4))
    settings(data, (0.1, 0.4, 1.6, 6.4))


if __name__ == "__main__":
    main()
