"""The regularised functional mechanism as Dandekar, Basu and Bressan print it (2018). NOT private; for comparison only.

Their settings: every column scaled to [-1, 1] by its smallest and largest value, Laplace noise for the sensitivity 2
(d^2 + 2 d + 1) on all d^2 entries of the matrix and on the d linear coefficients, no repair of the noisy objective, and
the penalty chosen by the test error.

What is not printed is read in their favour. The matrix loses its symmetry, but w'Mw sees its symmetric part only, so
nothing is lost. When the noisy objective has no minimum (a penalty with |w|_1 does not give it one) the text does not
say what the solver returned; here it is a local minimum, if coordinate descent from zero finds one, or else a point
where the slope vanishes: finite, and no step on the way to minus infinity.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import lars_path_gram

from privfit.privacy import SeededNoise
from privfit.solvers import stationary_point
from privfit_papers.bench.penalty import ALPHAS, Penalty, least_test_error, penalties, refuse_ledger
from privfit_papers.bench.split import Outcome, Split, root_mean_square

Floats = NDArray[np.float64]

LATTICE = 1 << 20
"""Steps of the noise's lattice in 1."""


@dataclass(frozen=True)
class PrintedFunctional:
    """Linear, ridge, lasso and elastic-net regression from one noisy objective. NOT private.

    Parameters
    ----------
    intercept : a column of ones that counts as one of the d. The paper's models have none; with it the method does
        better.
    tuned_on : whose test error chooses the penalty: that of the "noisy" fit itself, or that of the "exact" fit without
        noise, whose penalty then knows nothing of the noise. The paper can be read either way; only in the latter are
        all four models as unstable as it says.
    ledger : refused.
    """

    intercept: bool = True
    tuned_on: Literal["noisy", "exact"] = "noisy"
    ledger: object = None

    def __post_init__(self) -> None:
        refuse_ledger("the printed functional mechanism", self.ledger)

    def outcomes(self, split: Split, epsilon: float | None, seed: int) -> dict[str, Outcome]:
        """One draw of noise, four models."""
        return self.drawn(Scaled(split, self.intercept), epsilon, seed)

    def drawn(self, scaled: Scaled, epsilon: float | None, seed: int) -> dict[str, Outcome]:
        """The same for a split that was scaled before, with an intercept or without: its sums are noised again, and not
        summed again.
        """
        noisy = scaled.exact if epsilon is None else scaled.exact.noised(epsilon, SeededNoise(seed))
        found = {}
        for model in ALPHAS:
            chosen = scaled.best(model, noisy) if self.tuned_on == "noisy" else scaled.best_without_noise[model]
            weights, bounded = noisy.stationary(chosen)
            found[f"printed {model}"] = Outcome(scaled.test_error(weights), bounded)
        return found


@dataclass(frozen=True)
class Quadratic:
    """w'Mw - 2v'w, exact or noisy."""

    matrix: Floats
    vector: Floats

    def noised(self, epsilon: float, noise: SeededNoise) -> Quadratic:
        """Laplace noise on every entry of M and on the coefficients 2v of w, for the printed sensitivity."""
        scale = printed_sensitivity(len(self.vector)) / epsilon
        matrix = self.matrix + noise.laplace(np.zeros(self.matrix.shape, dtype=np.int64), scale * LATTICE) / LATTICE
        vector = self.vector + noise.laplace(np.zeros(self.vector.shape, dtype=np.int64), scale * LATTICE) / LATTICE / 2
        return Quadratic(matrix, vector)

    def stationary(self, penalty: Penalty) -> tuple[Floats, bool]:
        """The minimiser with the penalty and True; or, where there is no minimum, a local one or a point without slope,
        and False.
        """
        matrix = (self.matrix + self.matrix.T) / 2 + penalty.ridge * np.eye(len(self.vector))
        bounded = bool(np.linalg.eigvalsh(matrix)[0] > 0)
        if penalty.lasso == 0:
            return _solved(matrix, self.vector), bounded
        if not bounded:
            half = np.full(len(self.vector), penalty.lasso / 2)
            return stationary_point(matrix, self.vector, half, np.zeros(len(half))).coefficients, False
        path = lars_path_gram(self.vector, matrix, n_samples=1, alpha_min=penalty.lasso / 2, method="lasso")[2]
        return np.asarray(path[:, -1], dtype=np.float64), True


def printed_sensitivity(d: int) -> int:
    """The L1 sensitivity that the paper prints for d columns in [-1, 1]."""
    return 2 * (d**2 + 2 * d + 1)


def _solved(matrix: Floats, vector: Floats) -> Floats:
    """Where  w'Mw - 2v'w  has no slope; the shortest such point, if there are several."""
    return np.asarray(np.linalg.lstsq(matrix, vector, rcond=None)[0], dtype=np.float64)


class Scaled:
    """A split with every column brought to [-1, 1] by the extremes of the rows to fit on, as the paper does.

    This reads private bounds.
    """

    def __init__(self, split: Split, intercept: bool) -> None:
        low, high = split.train.features.min(axis=0), split.train.features.max(axis=0)
        self.train, self._test = (_within(part.features, low, high, intercept) for part in (split.train, split.test))
        self._low, self._high = float(split.train.target.min()), float(split.train.target.max())
        self.target = 2 * (split.train.target - self._low) / (self._high - self._low) - 1
        self._truth = split.test.target

    @cached_property
    def exact(self) -> Quadratic:
        """The objective without noise."""
        return Quadratic(self.train.T @ self.train, self.train.T @ self.target)

    def best(self, model: str, quadratic: Quadratic) -> Penalty:
        """The penalty of one of the four models with the least test error on an objective."""
        return least_test_error(
            penalties(model, len(self.target)), lambda penalty: self.test_error(quadratic.stationary(penalty)[0])
        )

    @cached_property
    def best_without_noise(self) -> dict[str, Penalty]:
        """The same on the objective without noise, for each of the four models."""
        return {model: self.best(model, self.exact) for model in ALPHAS}

    def test_error(self, weights: Floats) -> float:
        """The root mean squared test error, in the units of the target."""
        predicted = (self._test @ weights + 1) / 2 * (self._high - self._low) + self._low
        return root_mean_square(predicted - self._truth)


def _within(features: Floats, low: Floats, high: Floats, intercept: bool) -> Floats:
    scaled = 2 * (features - low) / np.where(high > low, high - low, 1.0) - 1
    return np.column_stack([scaled, np.ones(len(scaled))]) if intercept else scaled
