"""How the constants of the functional mechanism's floor, of its target weight and of its mean do on generated tables.

    python papers/experiments/constants.py [number of tables]

Every table has its own size, columns, correlations, bounds and signal. Moments are summed once per table and noised
anew for every setting. Printed: the mean and the 90% quantile of the share lost of the variance that least squares
explains (cut at 3), and how often a fit was worse than predicting the mean.

Half of the tables have target bounds that fit (3 to 8 standard deviations to either side), half have wide ones (8 to
40). ARCHITECTURE.md says which constants this experiment alone decided and which were also compared on real files.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass

import numpy as np

from privfit.losses import SQUARED
from privfit.mechanisms import FunctionalMechanism, QuadraticProblem, Release
from privfit.mechanisms.base import PublicFacts
from privfit.mechanisms.functional import defaults
from privfit.privacy import Budget, PrivacyParameters, SeededNoise, noised, seeded_generator
from privfit.rows import Rows
from privfit.schema import Category, Geometry, Numeric, Schema
from privfit.solvers import Penalty, consistent, quadratic
from privfit.statistics import STEP, Moments
from privfit.tables import WithTarget, open_table

EPSILONS = (0.1, 0.4, 1.6)
OBJECTIVE = QuadraticProblem(SQUARED)
CHOSEN = {
    "EXPECTED_WEIGHT_NORM": 0.35,
    "EXPECTED_NORM": 0.5,
    "NORM_SPREAD": 2.0,
    "NOISE_SHARE": 0.7,
    "EXPECTED_MEAN": 0.5,
}
OTHERS = {
    "EXPECTED_WEIGHT_NORM": (0.2, 0.5, 1.0),
    "EXPECTED_NORM": (0.2, 1.0),
    "NORM_SPREAD": (0.5, 1.0, 4.0),
    "NOISE_SHARE": (0.4, 1.0),
    "EXPECTED_MEAN": (0.25, 1.0, 100.0),
}
PENALTIES = {
    "AUTO_L2": (Penalty("auto", 0.0, ridge=True), (0.0, 0.03, 0.1, 0.3, 1.0)),
    "AUTO_L1": (Penalty("auto", 1.0, ridge=False), (0.0, 0.1, 0.3, 1.0, 2.0)),
}


@dataclass(frozen=True)
class Problem:
    geometry: Geometry
    products: np.ndarray
    """All second moments in units of 1, the target's square included."""
    n_rows: int

    def error(self, weights: np.ndarray) -> float:
        all_weights = np.append(weights, -1.0)
        return float(all_weights @ self.products @ all_weights) / self.n_rows

    def least(self) -> float:
        return self.error(np.linalg.pinv(self.products[:-1, :-1]) @ self.products[:-1, -1])

    def mean(self) -> float:
        return self.products[-1, -1] / self.n_rows - (self.products[0, -1] / self.n_rows) ** 2


def problem(seed: int) -> Problem:
    generator = seeded_generator(seed)
    n_rows = int(10 ** generator.uniform(4, 5.5))
    factors = generator.standard_normal((n_rows, 2))
    columns, features, signal = [], [], np.zeros(n_rows)
    for i in range(generator.integers(1, 8)):
        x = factors @ generator.standard_normal(2) * generator.uniform() + generator.standard_normal(n_rows)
        middle, half = x.std() * generator.normal(0, 0.5), x.std() * generator.uniform(2, 8)
        columns.append(x)
        features.append(Numeric(f"number{i}", middle - half, middle + half))
        signal += x / x.std() * generator.standard_normal() * generator.uniform()
    for i in range(generator.integers(0, 5)):
        x = (
            factors @ generator.standard_normal(2) + generator.standard_normal(n_rows) > generator.uniform(0, 2)
        ).astype(float)
        columns.append(x)
        features.append(Category(f"sign{i}", [0, 1]))
        signal += x * generator.standard_normal()
    for i in range(generator.integers(0, 5)):
        size = int(generator.integers(3, 12))
        x = generator.choice(size, n_rows, p=generator.dirichlet(np.full(size, 2.0)))
        columns.append(x.astype(float))
        features.append(Category(f"levels{i}", list(range(size))))
        signal += generator.standard_normal(size)[x]
    explained = generator.uniform(0.05, 0.6)
    y = signal / signal.std() * np.sqrt(explained) + generator.standard_normal(n_rows) * np.sqrt(1 - explained)
    middle, half = generator.normal(0, 1.5), generator.uniform(3, 8) if seed % 2 else generator.uniform(8, 40)
    schema = Schema(features, Numeric("y", middle - half, middle + half))
    geometry = FunctionalMechanism().geometry(schema, OBJECTIVE)
    sums = Rows(WithTarget(open_table(np.column_stack(columns)), y), schema, geometry).sum(Moments(geometry)) / STEP**2
    sums[-1, -1] = np.sum(np.clip((y - middle) / half, -1, 1) ** 2)
    return Problem(geometry, sums, n_rows)


def lost(table: Problem, epsilon: float, seed: int, penalty: Penalty | None = None) -> float:
    mechanism = FunctionalMechanism()
    objective = QuadraticProblem(SQUARED, penalty=penalty)
    facts = PublicFacts(table.geometry, PrivacyParameters(Budget(epsilon)), table.n_rows)
    plan = mechanism.plan(facts, objective)
    moments, event = plan.moments, plan.event
    lattice = table.products * STEP**2
    lattice[:-1, -1] *= moments.target_weight
    values = moments.distinct(np.rint(lattice).astype(np.int64), table.n_rows, "replace-one")
    noisy = noised(SeededNoise(seed), values, event.flat()).astype(np.float64)
    release = Release(consistent(moments, noisy, table.n_rows), event, private=False)
    fit = mechanism.solve(release, table.geometry, objective)
    least = table.least()
    return (table.error(np.append(fit.intercept, fit.weights)) - least) / (table.mean() - least)


def measure(tables: list[Problem], setting: dict[str, float], penalty: Penalty | None = None) -> str:
    for name, value in setting.items():
        setattr(defaults if hasattr(defaults, name) else quadratic, name, value)
    parts = []
    for epsilon in EPSILONS:
        losses = np.array(
            [lost(table, epsilon, 100 * i + run, penalty) for i, table in enumerate(tables) for run in range(3)]
        )
        parts.append(f"{np.minimum(losses, 3).mean():.4f} {np.quantile(losses, 0.9):.3f} {np.mean(losses > 1):.3f}")
    return "   ".join(parts)


def main() -> None:
    tables = [problem(seed) for seed in range(int(sys.argv[1]) if len(sys.argv) > 1 else 60)]
    print(f"{'setting':<32}" + "   ".join(f"epsilon {epsilon:<10g}" for epsilon in EPSILONS))
    print(f"{'chosen':<32}{measure(tables, CHOSEN)}")
    for name, values in OTHERS.items():
        for value in values:
            print(f"{name + ' = ' + format(value, 'g'):<32}{measure(tables, {**CHOSEN, name: value})}")
    for name, (penalty, values) in PENALTIES.items():
        for value in values:
            print(f"{name + ' = ' + format(value, 'g'):<32}{measure(tables, {**CHOSEN, name: value}, penalty)}")


if __name__ == "__main__":
    main()
