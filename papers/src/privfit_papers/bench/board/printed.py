"""Two private linear regressions as their papers print them. For comparison only: no ledger, seeded noise.

Both are (epsilon, delta)-DP where rows are added or removed, in real arithmetic.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.stats import norm

from privfit.privacy import PublicGenerator

Floats = NDArray[np.float64]


def gaussian_shift(epsilon: float, delta: float) -> float:
    """The largest mu such that mu-Gaussian differential privacy is (epsilon, delta)-DP."""

    def excess(mu: float) -> float:
        first, second = norm.cdf(mu / 2 - epsilon / mu), math.exp(epsilon) * norm.cdf(-mu / 2 - epsilon / mu)
        return float(first - second - delta)

    return float(brentq(excess, 1e-6, 100.0, xtol=1e-12))


@dataclass(frozen=True)
class BoostedAdaSSP:
    """Boosted AdaSSP of Tang et al. (arXiv 2303.03451), for rows of length 1 at most and targets from -1 to 1.

    A third of the squared shift each for the moments of features, their least eigenvalue and all rounds together;
    residuals are cut at 1.
    """

    epsilon: float
    delta: float
    generator: PublicGenerator
    rounds: int = 100
    clip: float = 1.0
    failure: float = 0.05
    """The ridge holds noise down but for so small a probability."""

    def fit(self, rows: Floats, target: Floats) -> Floats:
        """The weights."""
        width, draw = rows.shape[1], self.generator.standard_normal
        sd = math.sqrt(3.0) / gaussian_shift(self.epsilon, self.delta)
        moments = rows.T @ rows
        noise = np.triu(draw((width, width)))
        noisy = moments + sd * (noise + np.triu(noise, 1).T)
        smallest = float(np.linalg.eigvalsh(moments)[0]) + sd * (float(draw()) - norm.ppf(1 - self.failure / 2))
        ridge = sd * math.sqrt(width * math.log(2 * width**2 / self.failure)) - max(smallest, 0.0)
        solve = np.linalg.pinv(noisy + max(ridge, 0.0) * np.eye(width))
        weights = np.zeros(width)
        for _ in range(self.rounds):
            left = np.clip(target - rows @ weights, -self.clip, self.clip)
            weights = weights + solve @ (rows.T @ left + sd * self.clip * math.sqrt(self.rounds) * draw(width))
        return weights


class Abstained(Exception):
    """TukeyEM gives no answer where its test finds models too far apart, or where rows are too few for its models."""


@dataclass(frozen=True)
class TukeyEM:
    """TukeyEM of Amin, Joseph, Ribero and Vassilvitskii (arXiv 2208.07353): a deep point among many small fits.

    Half of epsilon is for the test whether a deep point is safe to release, half for the point. The paper has 1,000
    fits at an epsilon of log(3); here their number is in proportion to 1 / epsilon.
    """

    epsilon: float
    delta: float
    generator: PublicGenerator

    @property
    def fits(self) -> int:
        """How many disjoint parts there are, each fitted by itself."""
        return round(1000 * math.log(3) / self.epsilon)

    def fit(self, rows: Floats, target: Floats) -> Floats:
        """The weights, or `Abstained`."""
        many = self.fits
        if len(rows) < many * rows.shape[1]:
            raise Abstained(f"{many} fits of {rows.shape[1]} weights need more than {len(rows)} rows")
        parts = np.array_split(self.generator.permutation(len(rows)), many)
        sorted_models = np.sort([np.linalg.lstsq(rows[part], target[part], rcond=None)[0] for part in parts], axis=0)
        sorted_models = sorted_models + 1e-10 * np.arange(many)[:, None]  # ties would be regions without volume
        half, least_depth = self.epsilon / 2, many // 4
        distance = self._distance(sorted_models, half, least_depth) + self.generator.laplace(scale=1 / half)
        if distance <= math.log(1 / (2 * self.delta)) / half:
            raise Abstained("its test for a safe point failed")
        return self._deep_point(sorted_models, half, least_depth)

    def _distance(self, models: Floats, epsilon: float, depth: int) -> int:
        """A lower bound on how many rows must change until a deep point is unsafe: their Lemma 3.6."""
        volumes = log_volumes(models)  # of regions of depth 1, 2, ...
        limit = math.log(self.delta / 8) - epsilon
        for rows in range(depth - 1):
            outer, inner = volumes[depth - rows - 2], volumes[depth + rows + 1 :]
            if not len(inner) or np.min(outer - inner - epsilon / 2 * np.arange(1, len(inner) + 1)) > limit:
                return rows - 1
        return depth - 2

    def _deep_point(self, models: Floats, epsilon: float, least: int) -> Floats:
        """A point of at least this depth, by the exponential mechanism."""
        volumes = log_volumes(models)[least - 1 :]
        gaps = np.append(-np.expm1(np.diff(volumes)), 1.0)
        scores = volumes + np.log(np.maximum(gaps, 1e-300)) + epsilon * np.arange(len(volumes))
        depth = least + int(np.argmax(scores + self.generator.gumbel(size=len(scores))))
        return self._of_depth(models, depth)

    def _of_depth(self, models: Floats, depth: int) -> Floats:
        """A uniform point of exactly this depth: of a box without the next smaller one, by the first coordinate that is
        outside of that.
        """
        low, high = models[depth - 1], models[-depth]
        if 2 * (depth + 1) > len(models):
            return np.asarray(self.generator.uniform(low, high))
        inner_low, inner_high = models[depth], models[-depth - 1]
        inner, outer = np.log(inner_high - inner_low), np.log(high - low)
        shell = np.log(np.maximum(-np.expm1(inner - outer), 1e-300)) + outer
        before, after = np.cumsum(inner) - inner, np.cumsum(outer[::-1])[::-1] - outer
        first = int(np.argmax(before + shell + after + self.generator.gumbel(size=len(low))))
        point = np.asarray(self.generator.uniform(low, high))
        point[:first] = self.generator.uniform(inner_low[:first], inner_high[:first])
        step = self.generator.uniform(0, (inner_low - low + high - inner_high)[first])
        below = float((inner_low - low)[first])
        point[first] = low[first] + step if step < below else inner_high[first] + step - below
        return point


def log_volumes(models: Floats) -> Floats:
    """The logarithms of the volumes of boxes of depth 1, 2, ...: between the i-th models from below and above, column
    by column.
    """
    depths = len(models) // 2
    widths = models[::-1][:depths] - models[:depths]
    return np.asarray(np.log(np.maximum(widths, 1e-300)).sum(axis=1))
