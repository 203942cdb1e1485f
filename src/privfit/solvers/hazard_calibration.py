"""From log hazard ratios that were fitted beside a marginal hazard to those beside the hazard of one person.

The hazard of a whole table is that of a mixture: people at high risk leave first. Ratios that are fitted beside it are
too small by a common factor, which is found here for scores that are normal; and so is the baseline hazard.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from scipy.interpolate import PchipInterpolator

Floats = NDArray[np.float64]

NODES = 24
"""Points of the Gauss-Hermite rule for scores. Twice as many changed no factor by more than 2e-4 for fitted spreads up
to 1.3: tests/solvers/test_hazard_calibration.py."""
PARTS = 4
"""Parts of every bin of time, in whose middles hazards are taken."""
MOST_MEAN, LARGEST_SPREAD, MOST_FACTOR = 8.0, 4.0, 3.0
"""How far scores lie from 0 on average, how far they spread, and by what ratios are stretched, at most: e^8 is a hazard
of thousands of times the usual one, and a factor of 2 belongs to a spread of 2. Chosen, not measured."""
BISECTIONS = 32
"""Of every search: its interval divided by 2^32 is below what any figure shows."""
TINY = float(np.finfo(float).tiny)
"""Stands for 0 where a logarithm or a quotient is taken."""


def bisected(rises: Callable[[Floats], Floats], low: Floats, high: Floats) -> Floats:
    """Where increasing functions cross zero, between these ends, or the end that is nearest to it."""
    for _ in range(BISECTIONS):
        middle = (low + high) / 2
        below = rises(middle) < 0
        low, high = np.where(below, middle, low), np.where(below, high, middle)
    return np.asarray((low + high) / 2, dtype=np.float64)


def bisected_alone(rises: Callable[[float], float], low: float, high: float) -> float:
    """Where one increasing function crosses zero: the same bits in a third of the time."""
    for _ in range(BISECTIONS):
        middle = (low + high) / 2
        low, high = (middle, high) if rises(middle) < 0 else (low, middle)
    return (low + high) / 2


def smooth_hazard(ends: Floats, hazards: Floats, at: Floats) -> Floats:
    """A cumulative hazard between the ends of bins, by a cubic that rises wherever it may: where people at high risk
    leave within a bin, straight lines make ratios too large (by 2% with 20 bins and scores that spread by 1).
    """
    return np.asarray(PchipInterpolator(ends, hazards)(at), dtype=np.float64)


@dataclass(frozen=True)
class MarginalHazard:
    """The cumulative hazard of a table at the ends of bins of time, and the shares of its people who are at risk there;
    both begin with the beginning of the first bin.
    """

    hazards: Floats
    at_risk: Floats
    middles: Floats = field(init=False, repr=False)
    steps: Floats = field(init=False, repr=False)
    shares: Floats = field(init=False, repr=False)
    nodes: Floats = field(init=False, repr=False)
    masses: Floats = field(init=False, repr=False)

    def __post_init__(self) -> None:
        keep, last = object.__setattr__, len(self.hazards) - 1
        ends = np.linspace(0.0, last, last * PARTS + 1)
        fine = smooth_hazard(np.arange(last + 1.0), self.hazards, ends)
        nodes, masses = np.polynomial.hermite_e.hermegauss(NODES)
        keep(self, "middles", (fine[1:] + fine[:-1]) / 2)
        keep(self, "steps", np.diff(fine))
        keep(self, "shares", np.interp((ends[1:] + ends[:-1]) / 2, np.arange(last + 1), self.at_risk))
        keep(self, "nodes", nodes)
        keep(self, "masses", masses / masses.sum())

    def baseline(self, hazards: Floats, spread: float) -> Floats:
        """The cumulative hazard of a person whose score is the mean, where the marginal one is this and scores have
        this spread: the mean of exp(-A0 e^score) is exp(-A).
        """
        sizes = spread * self.nodes
        marginal = np.maximum(hazards, TINY)
        risks = np.exp(sizes)[:, None]

        def missed(log_baseline: Floats) -> Floats:
            alive = self.masses @ np.exp(-np.exp(log_baseline) * risks)
            return np.asarray(marginal + np.log(np.maximum(alive, TINY)))

        log = np.log(marginal)
        found = bisected(lambda at: -missed(at), log - sizes.max(), log - sizes.min())
        return np.asarray(np.where(hazards > 0, np.exp(found), 0.0))

    def slopes(self, spread: float, factor: float, beside: MarginalHazard | None = None) -> MeanSlopes:
        """The mean slopes of the loss for fitted scores of this spread whose true sizes are `factor` times as large;
        fitted beside this hazard, or `beside` another one, which has as many bins.
        """
        fitted = self if beside is None else beside
        true = np.exp(factor * spread * self.nodes)[:, None]
        own = self.baseline(self.middles, factor * spread)
        risks = true * np.exp(-np.minimum(own * true, 700.0))
        own_steps = self.steps * np.exp(-self.middles) / np.maximum(self.masses @ risks, TINY)
        alive = self.shares * np.exp(np.minimum(self.middles - own * true, 700.0))
        return MeanSlopes(fitted, spread, alive * fitted.steps, alive * own_steps * true)

    def mean(self, spread: float, factor: float = 1.0) -> float:
        """The mean of fitted scores of this spread at which the mean slope is 0, as at a minimum without a penalty."""
        return self.slopes(spread, factor).mean

    def spread(self, mean_square: float) -> float:
        """The spread of scores with this mean square, whose mean is that of `mean`."""

        def rises(spread: float) -> float:
            return spread**2 + self.mean(spread) ** 2 - mean_square

        return bisected_alone(rises, 1e-3, LARGEST_SPREAD)

    def factor(self, spread: float, shrinkage: float) -> float:
        """By what fitted scores of this spread have to be stretched: at the true size, the mean of slope times score is
        minus `shrinkage`, what penalty and noise add to it a row.
        """

        def falls(factor: float) -> float:
            slopes = self.slopes(spread, factor)
            return -slopes.at(slopes.mean)[1] - shrinkage

        return bisected_alone(falls, 0.0, MOST_FACTOR)


@dataclass(frozen=True)
class MeanSlopes:
    """Mean slopes of the loss, as functions of the mean of the fitted scores."""

    marginal: MarginalHazard
    spread: float
    fitted: Floats
    """What the fitted hazard adds for every node and step of time, but for the factor e^score."""
    true: Floats
    """What the true hazard takes away."""

    @property
    def mean(self) -> float:
        """The mean of the scores at which the mean slope is 0."""
        return bisected_alone(self.slope, -MOST_MEAN, MOST_MEAN)

    def slope(self, mean: float) -> float:
        """The mean slope, the first of what `at` has."""
        risks = np.exp(mean + self.spread * self.marginal.nodes)[:, None]
        stopped = 1.0 / (1.0 + self.marginal.middles * risks) ** 2
        slopes = (stopped * (self.fitted * risks - self.true)).sum(axis=1)
        return float(self.marginal.masses @ slopes)

    def at(self, mean: float) -> tuple[float, float, float]:
        """The means of the slope, of slope times score about its mean, and of the curvature."""
        own = self.marginal
        scores = self.spread * own.nodes
        risks = np.exp(mean + scores)[:, None]
        hazards = own.middles * risks
        stopped = 1.0 / (1.0 + hazards) ** 2
        slopes = (stopped * (self.fitted * risks - self.true)).sum(axis=1)
        gains = stopped * self.fitted * risks
        bends = gains - 2 * stopped * hazards / (1 + hazards) * (self.fitted * risks - self.true)
        curvature = float(own.masses @ bends.sum(axis=1))
        return float(own.masses @ slopes), float(own.masses @ (slopes * scores)), curvature
