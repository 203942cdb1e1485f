"""Regularised regressions side by side: privfit's, the functional mechanism of Dandekar et al. as printed, and fits on
a noisy histogram.

Only privfit's are private. The others choose their penalty by the test error and, as printed, scale by the data; they
live here to be compared with, and no ledger takes them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import polars as pl

from privfit.schema import Schema
from privfit_papers.bench.accuracy import EPSILONS, design_matrix
from privfit_papers.bench.penalty import refuse_ledger
from privfit_papers.bench.split import Comparison, Outcome, Split, random_split, root_mean_square

Make = Callable[[float, Schema, int], Any]
"""An unfitted estimator from an epsilon, a schema and a seed."""

MEAN = "mean of the target"
LEAST_SQUARES = "least squares"
FIRST_SEED = 1_000_000
"""Noise has seeds of its own, so that it does not repeat the draws that made the splits."""


@dataclass(frozen=True)
class Spread:
    """Root mean squared test errors of one method over random splits, in the units of the target: what a boxplot shows,
    and the mean.

    `low` and `high` are the 20% and 80% quantiles of the paper's Figure 3. `outliers` is the share of runs above the
    upper quartile by more than one and a half times the distance of the quartiles, `worse_than_mean` the share that
    predicting the mean would have beaten, `unbounded` the share whose noisy objective had no minimum. Without an
    epsilon there was no noise.
    """

    table: str
    method: str
    epsilon: float | None
    runs: int
    mean: float
    deviation: float
    low: float
    lower_quartile: float
    median: float
    upper_quartile: float
    high: float
    worst: float
    outliers: float
    worse_than_mean: float
    unbounded: float

    @classmethod
    def of(
        cls, table: str, method: str, epsilon: float | None, outcomes: Sequence[Outcome], mean_errors: Sequence[float]
    ) -> Spread:
        """The spread of outcomes, one a split, beside the errors of predicting the mean on the same splits."""
        errors = np.array([outcome.error for outcome in outcomes])
        low, first, median, third, high = np.quantile(errors, [0.2, 0.25, 0.5, 0.75, 0.8]).tolist()
        return cls(
            table,
            method,
            epsilon,
            len(errors),
            mean=float(errors.mean()),
            deviation=float(errors.std()),
            low=low,
            lower_quartile=first,
            median=median,
            upper_quartile=third,
            high=high,
            worst=float(errors.max()),
            outliers=float(np.mean(errors > third + 1.5 * (third - first))),
            worse_than_mean=float(np.mean(errors > np.array(mean_errors))),
            unbounded=float(np.mean([not outcome.bounded for outcome in outcomes])),
        )

    def to_dict(self) -> dict[str, float | str | int | None]:
        """As plain values."""
        return asdict(self)


@dataclass(frozen=True)
class Estimators:
    """privfit's own estimators, by name. Seeded, like everything that is compared."""

    makers: Mapping[str, Make]

    def outcomes(self, split: Split, epsilon: float | None, seed: int) -> dict[str, Outcome]:
        """One fit of each.

        Without an epsilon there is nothing to fit: `Baselines` has least squares on the same encoding.
        """
        if epsilon is None:
            return {}
        found = {}
        for name, make in self.makers.items():
            predicted = make(epsilon, split.schema, seed).fit(split.train.frame).predict(split.test.frame)
            found[name] = Outcome(root_mean_square(np.asarray(predicted) - split.test.target))
        return found


@dataclass(frozen=True)
class Baselines:
    """What no noise can beat by much, and what nothing should be worse than: least squares on privfit's encoding, and
    the mean.
    """

    def outcomes(self, split: Split, epsilon: float | None, seed: int) -> dict[str, Outcome]:
        """Both, without noise."""
        if epsilon is not None:
            return {}
        train, test = (design_matrix(part.frame, split.schema) for part in (split.train, split.test))
        weights = np.linalg.lstsq(train, split.train.target, rcond=None)[0]
        return {
            MEAN: Outcome(split.mean_error),
            LEAST_SQUARES: Outcome(root_mean_square(test @ weights - split.test.target)),
        }


def error_spreads(
    table: str,
    frame: pl.DataFrame,
    schema: Schema,
    ours: Mapping[str, Make],
    others: Sequence[Comparison] = (),
    epsilons: Sequence[float] = EPSILONS,
    runs: int = 50,
    *,
    ledger: object = None,
) -> list[Spread]:
    """The spread of test errors of every method: first without noise, then for every epsilon, over `runs` random 80/20
    splits.

    `ours` makes an estimator from epsilon, schema and seed. Run i has the same split and the same seed for every method
    and epsilon, so that they can be compared run by run. A ledger is refused: this looks at test rows without noise.
    """
    refuse_ledger("a comparison of test errors", ledger)
    methods: list[Comparison] = [Baselines(), Estimators(ours), *others]
    gathered: dict[tuple[float | None, str], list[Outcome]] = {}
    mean_errors = []
    for run in range(runs):
        split = random_split(frame, schema, run)
        mean_errors.append(split.mean_error)
        for epsilon in (None, *epsilons):
            for method in methods:
                for name, outcome in method.outcomes(split, epsilon, FIRST_SEED + run).items():
                    gathered.setdefault((epsilon, name), []).append(outcome)
    return [Spread.of(table, name, epsilon, outcomes, mean_errors) for (epsilon, name), outcomes in gathered.items()]
