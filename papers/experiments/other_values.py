"""What other values of constants would do: each one at a time, on generated tables.

    python papers/experiments/other_values.py                 36 tables of each kind; about twenty minutes of two cores
    python papers/experiments/other_values.py --quick         four tables of each kind, to see that it runs
    python papers/experiments/other_values.py --only QUIET --only FLAT_ROWS

For constants that no other experiment varies. Each is set to other values, mostly half and twice its own, and the
estimator that it steers is fitted with the same seeds as before. Printed, in Markdown, for each epsilon: the mean
difference of the loss from that with the value in use, in thousandths, and its standard error over tables. A negative
number means that the other value is better. The loss is the share of wrong classes of a classifier, 1 - R2 (at most 1)
of a regression, and the mean squared distance over that of a single centre for clusters, on rows that were not fitted.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from functools import partial

import numpy as np
from generated import make_table
from scipy.special import expit

import privfit as pf
from privfit.privacy import seeded_generator

EPSILONS = (0.1, 0.4, 1.6)
FIRST_SEED = 5_000_000
TEST_ROWS = 10_000
Loss = Callable[[int, float], float]


@dataclass(frozen=True)
class Constant:
    """A constant by the module that states it, the fit that it steers, and other values for it."""

    module: str
    name: str
    loss: Loss
    others: tuple[object, ...]


def classified(
    seed: int,
    epsilon: float,
    *,
    delta: float = 0.0,
    pairs: bool = False,
    mechanism: object = "auto",
    **settings: object,
) -> float:
    """The share of wrong classes of a logistic regression."""
    table = make_table(seed, 100_000, pairs)
    model = pf.LogisticRegression(
        epsilon, delta=delta, schema=table.schema, mechanism=mechanism, random_state=seed, **settings
    ).fit(table.train)
    return float(np.mean(model.predict(table.test) != table.test["y"].to_numpy()))


def separated(seed: int, epsilon: float, *, delta: float = 0.0) -> float:
    """The share of wrong classes of a support vector machine, whose loss has a log-determinant term to pay for."""
    table = make_table(seed, 100_000)
    model = pf.LinearSVC(epsilon, delta=delta, schema=table.schema, random_state=seed).fit(table.train)
    return float(np.mean(model.predict(table.test) != table.test["y"].to_numpy()))


def regressed(seed: int, epsilon: float, estimator: str = "LinearRegression", **settings: object) -> float:
    """1 - R2 of a regression on correlated numbers and levels; bounds are 3 to 20 standard deviations wide."""
    generator = seeded_generator(seed)
    n = int(10 ** generator.uniform(3.7, 4.7)) + TEST_ROWS
    hidden = generator.standard_normal(n)
    columns, features, signal = [], [], np.zeros(n)
    for i in range(generator.integers(2, 8)):
        x = generator.uniform(0, 0.9) * hidden + generator.standard_normal(n)
        half = x.std() * generator.uniform(2, 8)
        columns.append(x)
        features.append(pf.Numeric(f"x{i}", -half, half))
        signal += x * generator.standard_normal()
    for i in range(generator.integers(1, 4)):
        size = int(generator.integers(2, 8))
        x = generator.choice(size, n, p=generator.dirichlet(np.full(size, 2.0)))
        columns.append(x.astype(float))
        features.append(pf.Category(f"c{i}", list(range(size))))
        signal += generator.standard_normal(size)[x]
    y = signal / signal.std() + generator.uniform(0.5, 2) * generator.standard_normal(n)
    half = y.std() * generator.uniform(3, 20)
    X, n = np.column_stack(columns), n - TEST_ROWS
    schema = pf.Schema(features, pf.Numeric("y", y.mean() - half, y.mean() + half))
    model = getattr(pf, estimator)(epsilon, schema=schema, random_state=seed, **settings).fit(X[:n], y[:n])
    return min(1.0, 1 - float(model.score(X[n:], y[n:])))


def of_degree_four(seed: int, epsilon: float) -> float:
    """The share of wrong classes of a polynomial of degree four of the logistic loss, on few numbers."""
    generator = seeded_generator(seed)
    n, d = int(10 ** generator.uniform(3.7, 4.7)) + TEST_ROWS, int(generator.integers(1, 5))
    X = generator.uniform(-1, 1, (n, d))
    steepness = generator.uniform(2, 6)
    y = generator.uniform(size=n) < expit(steepness * (X @ generator.standard_normal(d) / np.sqrt(d)))
    n -= TEST_ROWS
    model = pf.FunctionalClassifier(
        epsilon, loss=pf.losses.logistic(degree=4), schema=pf.Schema.box(target=[False, True]), random_state=seed
    ).fit(X[:n], y[:n])
    return float(np.mean(model.predict(X[n:]) != y[n:]))


def clustered(seed: int, epsilon: float) -> float:
    """The mean squared distance to the nearest centre, over that to the mean."""
    generator = seeded_generator(seed)
    n, d, k = int(10 ** generator.uniform(3, 4.7)), int(generator.integers(2, 13)), int(generator.integers(3, 9))
    centres = generator.uniform(-0.8, 0.8, (k, d))
    X = centres[generator.integers(k, size=n)] + generator.uniform(0.05, 0.25) * generator.standard_normal((n, d))
    X = np.clip(X, -1, 1)
    schema = pf.Schema.box(n_features=d)
    model = pf.KMeans(k, epsilon, schema=schema, random_state=seed).fit(X)
    squares = ((X[:, None] - model.cluster_centers_) ** 2).sum(axis=2).min(axis=1)
    return float(squares.mean() / ((X - X.mean(axis=0)) ** 2).sum(axis=1).mean())


PERTURBATION = "privfit.mechanisms.perturbation."
with_pairs = partial(classified, pairs=True)
with_delta = partial(classified, delta=1e-6)
genetic = partial(classified, mechanism="genetic")
functional = partial(regressed, mechanism="functional")
CONSTANTS = (
    Constant(PERTURBATION + "defaults", "FOR_CERTIFICATE", classified, (0.001, 0.0025, 0.01, 0.04)),
    Constant(PERTURBATION + "defaults", "FOR_GRADIENTS", separated, (0.5, 0.65, 0.9)),
    Constant(PERTURBATION + "defaults", "FLAT_ROWS", partial(separated, delta=1e-6), (0.25, 0.7, 0.9)),
    Constant(PERTURBATION + "defaults", "LEAST_RIDGE", classified, (0.002, 0.2)),
    Constant(PERTURBATION + "defaults", "QUIET", classified, (0.005, 0.01, 0.04, 0.1)),
    Constant(PERTURBATION + "defaults", "LEAST_STRETCH", classified, (0.3, 0.8)),
    Constant(PERTURBATION + "defaults", "MOST_STRETCH", classified, (1.0, 1.6)),
    Constant(PERTURBATION + "base", "GAUSSIAN_MARGIN", with_delta, (0.8, 0.9, 1.0)),
    Constant(PERTURBATION + "interaction_terms", "FOR_TABLES", with_pairs, (Fraction(4, 100), Fraction(16, 100))),
    Constant(PERTURBATION + "interaction_terms", "FOR_EACH_TABLE", with_pairs, (Fraction(2, 100), Fraction(8, 100))),
    Constant(
        PERTURBATION + "interaction_terms",
        "BESIDE_GAUSSIAN",
        partial(classified, pairs=True, delta=1e-6),
        (Fraction(1), Fraction(2)),
    ),
    Constant(PERTURBATION + "interaction_terms", "NOT_BY_CHANCE", with_pairs, (0.0, 0.3, 1.2)),
    Constant(PERTURBATION + "interaction_terms", "SOFT_COUNT", with_pairs, (5, 100)),
    Constant(PERTURBATION + "interaction_terms", "MOST_TIMES", with_pairs, (1, 5)),
    Constant(PERTURBATION + "interaction_terms", "MOST_CELLS", with_pairs, (100, 2000)),
    Constant(
        "privfit.mechanisms.functional.defaults", "STIFFEST", partial(functional, estimator="Lasso"), (1.0, 3.0, 30.0)
    ),
    Constant("privfit.mechanisms.functional.defaults", "LEAST_TARGET_WEIGHT", functional, (1 / 8, 1 / 512)),
    Constant("privfit.mechanisms.functional.defaults", "MOST_TARGET_WEIGHT", functional, (1.0, 32.0)),
    Constant("privfit.mechanisms.functional.defaults", "KIND_MARGIN", functional, (0.9, 1.0)),
    Constant("privfit.schema.columns", "AUTO_BINS", partial(functional, numeric="bins"), (4, 6, 12, 16)),
    Constant("privfit.statistics.weighted", "MOST_WEIGHT", of_degree_four, (2.0, 32.0)),
    Constant("privfit.statistics.weighted", "EXPECTED_SIZE", of_degree_four, (0.25, 1.0)),
    Constant("privfit.solvers.polynomial", "STIFFEST", of_degree_four, (1.0, 30.0)),
    Constant("privfit.mechanisms.clustering.cell_means", "FEW_COLUMNS", clustered, (2, 6)),
    Constant("privfit.mechanisms.clustering.cell_means", "SOME_COLUMNS", clustered, (4, 12)),
    Constant("privfit.mechanisms.clustering.cell_means", "FEW_ROWS", clustered, (250.0, 4000.0)),
    Constant("privfit.mechanisms.genetic.schedule", "LEAST_ROUNDS", genetic, (1, 8)),
    Constant("privfit.mechanisms.genetic.schedule", "MOST_AUTOMATIC_ROUNDS", genetic, (200, 1000)),
)


@contextmanager
def set_to(constant: Constant, value: object) -> Iterator[None]:
    """The constant has this value, in its own module and in all that took it from there."""
    own = getattr(sys.modules[constant.module], constant.name)
    users = [
        module
        for name, module in list(sys.modules.items())
        if name.startswith("privfit.") and getattr(module, constant.name, None) is own
    ]
    try:
        for module in users:
            setattr(module, constant.name, value)
        yield
    finally:
        for module in users:
            setattr(module, constant.name, own)


def losses(constant: Constant, seed: int) -> list[list[float]]:
    """For one table: by value (the one in use first) the loss at every epsilon."""
    warnings.simplefilter("ignore")
    own = getattr(sys.modules[constant.module], constant.name)
    found = []
    for value in (own, *constant.others):
        with set_to(constant, value):
            found.append([constant.loss(seed, epsilon) for epsilon in EPSILONS])
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--tables", type=int, default=36)
    parser.add_argument("--only", action="append", default=[])
    options = parser.parse_args()
    tables = 4 if options.quick else options.tables
    print("| constant | value | " + " | ".join(f"epsilon {epsilon:g}" for epsilon in EPSILONS) + " |")
    print("|---|---|" + "---|" * len(EPSILONS))
    with ProcessPoolExecutor() as pool:
        for place, constant in enumerate(CONSTANTS):
            if options.only and constant.name not in options.only:
                continue
            seeds = [FIRST_SEED + 1000 * place + i for i in range(tables)]
            found = np.array(list(pool.map(partial(losses, constant), seeds)))
            own = getattr(sys.modules[constant.module], constant.name)
            print(
                f"| {constant.name} | {float(own):g} (in use) | "
                + " | ".join(f"{v:.4f}" for v in found[:, 0].mean(0))
                + " |"
            )
            for k, value in enumerate(constant.others, 1):
                change = 1000 * (found[:, k] - found[:, 0])
                spread = change.std(axis=0, ddof=1) / np.sqrt(tables)
                cells = " | ".join(f"{m:+.2f} ± {s:.2f}" for m, s in zip(change.mean(0), spread, strict=True))
                print(f"| | {float(value):g} | {cells} |", flush=True)


if __name__ == "__main__":
    main()
