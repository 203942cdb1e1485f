"""Regularised regressions on a noisy histogram: differentially private M-estimators (Lei, 2011), small but real.

For comparison only.

The bounds of the schema are cut into equal cells, rows are counted, every cell's count gets Laplace noise for two
counts that move by one, and regressions are fitted on the centres of the cells, weighed by what is positive. The
histogram is epsilon-DP as a mechanism (replace-one), but here its noise is seeded and the penalty is chosen by the test
error, as Dandekar, Basu and Bressan do in their Figure 1: NOT private.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import ElasticNet, Lasso, LinearRegression, Ridge

from privfit.privacy import Sampler, SeededNoise
from privfit.schema import Category, Column, Schema
from privfit_papers.bench.penalty import ALPHAS, Penalty, least_test_error, penalties, refuse_ledger
from privfit_papers.bench.split import Outcome, Part, Split, numeric_target, root_mean_square

Floats = NDArray[np.float64]

MOST_LISTED_CELLS = 10_000_000


@dataclass(frozen=True)
class HistogramFits:
    """Linear, ridge, lasso and elastic-net regression on one noisy histogram of all columns.

    NOT private, because of the penalty.

    `cells` is the number of cells along a numeric column; None takes Lei's rule, which needs the number of rows, public
    under replace-one. A category has one cell for each of its levels. A ledger is refused.
    """

    intercept: bool = True
    cells: int | None = None
    ledger: object = None

    def __post_init__(self) -> None:
        refuse_ledger("regressions on a noisy histogram", self.ledger)

    def outcomes(self, split: Split, epsilon: float | None, seed: int) -> dict[str, Outcome]:
        """One noisy histogram, four models."""
        return self.drawn(Counted(split, self.cells), epsilon, seed)

    def drawn(self, counted: Counted, epsilon: float | None, seed: int) -> dict[str, Outcome]:
        """The same for a split whose rows were counted before."""
        counts = counted.counts if epsilon is None else noisy_counts(counted.counts, epsilon, SeededNoise(seed))
        centres, means, weights = counted.grid.positive(counts)
        seen = counted.seen
        if not len(weights):  # nothing is left to fit on: predict the middle of the bounds
            return {f"DPME {model}": Outcome(seen.test_error(np.zeros(len(seen.test)))) for model in ALPHAS}

        def error(model: str, penalty: Penalty) -> float:
            regression = weighted_regression(model, penalty, float(weights.sum()), self.intercept)
            regression.fit(centres, means, sample_weight=weights)
            return seen.test_error(np.asarray(regression.predict(seen.test)))

        found = {}
        for model in ALPHAS:
            errors = {penalty: error(model, penalty) for penalty in penalties(model, float(weights.sum()))}
            found[f"DPME {model}"] = Outcome(errors[least_test_error(errors, errors.__getitem__)])
        return found


@dataclass(frozen=True)
class Grid:
    """Equal cells over the public bounds of every column, the target last."""

    columns: tuple[Column, ...]
    shape: tuple[int, ...]

    @classmethod
    def of(cls, schema: Schema, n_rows: int, cells: int | None = None) -> Grid:
        """The grid of a schema, with `cells` cells along every number, or as many as Lei's rule gives `n_rows` rows."""
        columns = (*schema.features, numeric_target(schema))
        along = cells_per_axis(n_rows, len(columns)) if cells is None else cells
        shape = tuple(len(column.levels) if isinstance(column, Category) else along for column in columns)
        if math.prod(shape) > MOST_LISTED_CELLS:
            raise ValueError(
                f"A histogram of {len(columns)} columns was asked for that has {math.prod(shape):,} cells; at most "
                f"{MOST_LISTED_CELLS:,} are counted. "
                "Choose fewer columns, as its authors do, or fewer cells."
            )
        return cls(columns, shape)

    def counts(self, part: Part) -> NDArray[np.int64]:
        """How many rows fall into each cell, all cells in one vector."""
        values = np.column_stack([part.features, part.target])
        places = [
            values[:, axis].astype(np.int64)
            if isinstance(column, Category)
            else _cell(values[:, axis], column.low, column.high, size)
            for axis, (column, size) in enumerate(zip(self.columns, self.shape, strict=True))
        ]
        return np.bincount(np.ravel_multi_index(places, self.shape), minlength=math.prod(self.shape)).astype(np.int64)

    def positive(self, counts: NDArray[np.int64]) -> tuple[Floats, Floats, Floats]:
        """What to fit on, on [-1, 1]: centres of feature cells, the mean of the target in each, and weights; negative
        counts count as zero.

        Cells that differ in the target alone are joined: squared errors see their weight and their mean, and a
        constant.
        """
        weights = np.maximum(counts, 0).reshape(-1, self.shape[-1]).astype(np.float64)
        total = weights.sum(axis=1)
        kept = np.flatnonzero(total)
        target = _centres(self.columns[-1], self.shape[-1])
        places = np.unravel_index(kept, self.shape[:-1])
        features = [
            _centres(column, size)[place] for column, size, place in zip(self.columns, self.shape, places, strict=False)
        ]
        return np.column_stack(features), weights[kept] @ target / total[kept], total[kept]


def cells_per_axis(n_rows: int, axes: int) -> int:
    """The number of cells along an axis whose side shrinks at the best rate, (sqrt(log n) / n)^(2 / (2 + axes)); at
    least 2.
    """
    if n_rows < 2:
        return 2
    rate: float = (n_rows / math.sqrt(math.log(n_rows))) ** (2 / (2 + axes))
    return max(2, math.floor(rate))


def noisy_counts(counts: NDArray[np.int64], epsilon: float, noise: Sampler) -> NDArray[np.int64]:
    """Counts with discrete Laplace noise of scale 2 / epsilon: a row that is replaced leaves one cell and enters
    another.
    """
    return noise.laplace(counts, 2 / epsilon)


def weighted_regression(model: str, penalty: Penalty, total_weight: float, intercept: bool) -> Any:
    """The scikit-learn regression whose weighted objective is the paper's.

    It scales weights to a mean of one, so their sum stands for n.
    """
    if model == "linear":
        return LinearRegression(fit_intercept=intercept)
    if model == "ridge":
        return Ridge(alpha=penalty.ridge, fit_intercept=intercept)
    settings = penalty.in_sklearn(total_weight)
    if model == "lasso":
        return Lasso(alpha=settings["alpha"], fit_intercept=intercept)
    return ElasticNet(**settings, fit_intercept=intercept)


def _cell(values: Floats, low: float, high: float, size: int) -> NDArray[np.int64]:
    return np.clip((values - low) / (high - low) * size, 0, size - 1).astype(np.int64)


def _centres(column: Column, size: int) -> Floats:
    """The centres of the cells of one column; a level of a category is a point."""
    if isinstance(column, Category):
        return np.linspace(-1.0, 1.0, size)
    return (2 * np.arange(size) + 1) / size - 1


class Counted:
    """A split whose rows to fit on were counted, cell by cell, without noise."""

    def __init__(self, split: Split, cells: int | None = None) -> None:
        self.grid = Grid.of(split.schema, len(split.train.target), cells)
        self.counts = self.grid.counts(split.train)
        self.seen = _PublicScale(split)


class _PublicScale:
    """The test rows on [-1, 1] by the bounds of the schema, and errors in the units of the target."""

    def __init__(self, split: Split) -> None:
        bounds = np.array([_bounds(column) for column in split.schema.features])
        self.test = 2 * (split.test.features - bounds[:, 0]) / (bounds[:, 1] - bounds[:, 0]) - 1
        self._target, self._truth = numeric_target(split.schema), split.test.target

    def test_error(self, predicted: Floats) -> float:
        """The root mean squared test error of predictions on [-1, 1]."""
        low, high = self._target.low, self._target.high
        return root_mean_square((predicted + 1) / 2 * (high - low) + low - self._truth)


def _bounds(column: Column) -> tuple[float, float]:
    return (0.0, len(column.levels) - 1.0) if isinstance(column, Category) else (column.low, column.high)
