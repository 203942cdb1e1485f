"""Noisy counts of cells, and figures that are functions of them: values with 90% intervals.

An interval is about the population that the rows are a sample of. Its variance adds up what the noise and what the
sample do, both by the figure's gradient; docs/proofs/evaluation.md says what it rests on.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from privfit.mechanisms.summaries.questions import NORMAL

Floats = NDArray[np.float64]

CLEAR = 3.0
"""Standard deviations of its noise that a number of rows must have before anything is divided by it: with fewer,
intervals hold too rarely; papers/experiments/evaluation.py."""


class Estimate(NamedTuple):
    """A figure and the ends of its interval; NaN where the noise leaves it open."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class NoisyCells:
    """Counts of cells with independent noise of standard deviation `sd`. Where the number of rows is public, what the
    counts miss of it is spread over all of them.
    """

    noisy: Floats
    sd: float
    n_rows: int | None

    @cached_property
    def counts(self) -> Floats:
        """The counts, in one line: unbiased, and some below zero."""
        missed = 0.0 if self.n_rows is None else (self.noisy.sum() - self.n_rows) / self.noisy.size
        return np.asarray(self.noisy - missed, dtype=np.float64)

    def noise_variance(self, weights: Floats) -> float:
        """The variance that noise gives to a weighted sum of the counts."""
        spread = 0.0 if self.n_rows is None else float(weights.sum()) ** 2 / self.noisy.size
        return self.sd**2 * max(float(weights @ weights) - spread, 0.0)

    def is_clear(self, among: Floats) -> bool:
        """Whether a number of rows is far enough above its noise to be divided by."""
        return float(among @ self.counts) > max(CLEAR * math.sqrt(self.noise_variance(among)), 1.0)

    def variance(self, gradient: Floats) -> float:
        """The variance of a figure: of its noise and of the sample."""
        rows = max(float(self.counts.sum()), 1.0)
        sample = float(gradient**2 @ self.counts) - float(gradient @ self.counts) ** 2 / rows
        return self.noise_variance(gradient) + max(sample, 0.0)

    def ratio(self, weights: Floats, among: Floats, unsure: float = 0.0) -> Estimate:
        """The mean of weights over the rows of some cells; `unsure` is a standard deviation to add."""
        least, most = float(weights[among > 0].min()), float(weights[among > 0].max())
        if not self.is_clear(among):
            return Estimate(math.nan, least, most)
        rows = float(among @ self.counts)
        value = float((weights * among) @ self.counts) / rows
        single = NORMAL * (most - least) / (2.0 * rows)  # so that an interval has a width where all rows agree
        error = math.sqrt(self.variance((weights - value) * among / rows) + unsure**2 + single**2)
        return around(value, error, least, most)

    def number(self, among: Floats) -> Estimate:
        """How many rows some cells have: the interval is about the table."""
        half = NORMAL * math.sqrt(self.noise_variance(among))
        value = float(among @ self.counts)
        return Estimate(max(value, 0.0), max(value - half, 0.0), max(value + half, 0.0))

    def proportion(self, part: Floats, among: Floats) -> Estimate:
        """The share of `part` in a few cells, which may hold hardly any rows: all shares that noise and sample allow
        (Fieller's interval).
        """
        shares = np.linspace(0.0, 1.0, SHARES)
        inside, rows = float(part @ self.counts), float(among @ self.counts)
        own, all_of_them = self.noise_variance(part), self.noise_variance(among)
        both = (own + all_of_them - self.noise_variance(among - part)) / 2  # their covariance
        noise = own - 2.0 * shares * both + shares**2 * all_of_them
        allowed = noise + max(rows, 0.0) * shares * (1.0 - shares)
        held = shares[(inside - shares * rows) ** 2 <= NORMAL**2 * allowed]
        value = min(max(inside / rows, 0.0), 1.0) if self.is_clear(among) else math.nan
        return Estimate(value, float(held.min(initial=1.0)), float(held.max(initial=0.0)))


EMPTY = 2.0
"""Cells at an end of the scores count as empty while they and all that are further out have fewer rows together than so
many standard deviations of their noise: the noise of cells without rows would else be most of AUC's and log-loss's;
papers/experiments/evaluation.py."""
HIDDEN = 0.5
"""How many standard deviations of their noise such cells may hold all the same, in the variance of a figure;
papers/experiments/evaluation.py."""


@dataclass(frozen=True)
class TrimmedCells(NoisyCells):
    """Counts of two classes by cells of scores, of which `low` and `high` cells at the ends count as empty."""

    low: int
    high: int

    @classmethod
    def of(cls, cells: NoisyCells) -> TrimmedCells:
        """The cells without empty ends, as the noisy counts of both classes together show them."""
        both = cells.noisy.reshape(2, -1).sum(axis=0)
        low, high = (_empty(side, math.sqrt(2) * cells.sd) for side in (both, both[::-1]))
        if low + high >= both.size:
            low, high = 0, 0
        return cls(cells.noisy, cells.sd, cells.n_rows, low, high)

    @cached_property
    def _held(self) -> NDArray[np.bool_]:
        """Which cells do not count as empty."""
        size = self.noisy.size // 2
        return np.tile((np.arange(size) >= self.low) & (np.arange(size) < size - self.high), 2)

    @cached_property
    def counts(self) -> Floats:
        """The counts, in one line: zero in cells that count as empty."""
        own = NoisyCells(self.noisy[self._held], self.sd, self.n_rows).counts
        found = np.zeros(self.noisy.size)
        found[self._held] = own
        return found

    def noise_variance(self, weights: Floats) -> float:
        """That of the cells which are counted, and what the others may hold."""
        own = NoisyCells(self.noisy[self._held], self.sd, self.n_rows).noise_variance(weights[self._held])
        sides = weights.reshape(2, -1)
        ends = (sides[:, : self.low], sides[:, sides.shape[1] - self.high :])
        return own + (HIDDEN * self.sd) ** 2 * sum(float(np.sum(end**2)) for end in ends)


def _empty(counts: Floats, sd: float) -> int:
    """How many cells from the first on do not stand out from noise."""
    limits = EMPTY * sd * np.sqrt(np.arange(1, counts.size + 1))
    clear = np.cumsum(counts) >= limits
    return int(np.argmax(clear)) if clear.any() else counts.size


SHARES = 501
"""Shares that are tried for the ends of an interval."""


def around(value: float, error: float, least: float, most: float) -> Estimate:
    """A value with its interval, within what it can be."""
    ends = (value, value - NORMAL * error, value + NORMAL * error)
    return Estimate(*(min(max(end, least), most) for end in ends))
