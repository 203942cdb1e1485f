"""How much of what least squares explains does the private fit lose? Means and spreads over splits and runs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from privfit.mechanisms import FunctionalMechanism
from privfit.models import LinearRegression
from privfit.privacy import seeded_generator
from privfit.schema import Numeric, Schema

EPSILONS = (0.1, 0.2, 0.4, 0.8, 1.6, 3.2)
TRAIN_SHARE = 0.8


@dataclass(frozen=True)
class Share:
    """The share that is lost of the variance that least squares explains on the same split.

    Above 1: worse than predicting the mean.

    `low`, `median` and `high` are the 10%, 50% and 90% quantiles over runs.
    """

    table: str
    method: str
    epsilon: float
    runs: int
    mean: float
    deviation: float
    low: float
    median: float
    high: float
    worst: float

    def to_dict(self) -> dict[str, float | str | int]:
        """As plain values."""
        return asdict(self)


def design_matrix(frame: pl.DataFrame, schema: Schema) -> NDArray[np.float64]:
    """The same encoding as the model's, without privacy: numbers clipped to their bounds, a column per level, an
    intercept.
    """
    columns = [np.ones(frame.height)]
    for column in schema.features:
        values = frame.get_column(column.name)
        if isinstance(column, Numeric):
            columns.append(np.clip(values.cast(pl.Float64).to_numpy(), column.low, column.high))
        else:
            columns.extend((values == level).to_numpy().astype(np.float64) for level in column.levels)
    return np.column_stack(columns)


def lost_shares(
    name: str,
    frame: pl.DataFrame,
    schema: Schema,
    mechanisms: dict[str, FunctionalMechanism],
    epsilons: tuple[float, ...],
    splits: int,
    runs: int,
) -> Iterator[Share]:
    """Fit `runs` times on each of `splits` random 80/20 splits and compare test errors with least squares and with the
    mean.
    """
    target = schema.target
    assert isinstance(target, Numeric)
    y = np.clip(frame.get_column(target.name).cast(pl.Float64).to_numpy(), target.low, target.high)
    X = design_matrix(frame, schema)
    parts = [_split(frame, X, y, seed) for seed in range(splits)]
    for method, mechanism in mechanisms.items():
        for epsilon in epsilons:
            losses = [
                part.lost(LinearRegression(epsilon, schema=schema, mechanism=mechanism, random_state=1000 * seed + run))
                for seed, part in enumerate(parts)
                for run in range(runs)
            ]
            yield Share(
                name,
                method,
                epsilon,
                len(losses),
                float(np.mean(losses)),
                float(np.std(losses)),
                float(np.quantile(losses, 0.1)),
                float(np.median(losses)),
                float(np.quantile(losses, 0.9)),
                float(np.max(losses)),
            )


@dataclass(frozen=True)
class _Part:
    train: pl.DataFrame
    test: pl.DataFrame
    y: NDArray[np.float64]
    least: float
    mean: float

    def lost(self, model: LinearRegression) -> float:
        error = float(np.mean((model.fit(self.train).predict(self.test) - self.y) ** 2))
        return (error - self.least) / (self.mean - self.least)


def _split(frame: pl.DataFrame, X: NDArray[np.float64], y: NDArray[np.float64], seed: int) -> _Part:
    order = seeded_generator(seed).permutation(len(y))
    cut = int(TRAIN_SHARE * len(y))
    train, test = order[:cut], order[cut:]
    weights = np.linalg.lstsq(X[train], y[train], rcond=None)[0]
    least = float(np.mean((X[test] @ weights - y[test]) ** 2))
    return _Part(frame[train], frame[test], y[test], least, float(y[test].var()))
