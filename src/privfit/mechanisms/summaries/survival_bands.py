"""Survival curves with intervals and bands, from noisy counts: post-processing of a release."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from privfit.mechanisms.summaries.questions import LEVEL, NORMAL, Interval
from privfit.privacy import SeededNoise, seeded_generator
from privfit.solvers.life_table import LifeTable

Floats = NDArray[np.float64]

DRAWS = 400
"""Of the bootstrap of bands: more make their ends steadier and take longer. Chosen, not measured."""
BANDS_SEED = 20281987404
"""No secret: the release is all there is. Long, so that it is nobody's random_state."""
MOST_ROWS = 2.0**53
"""Of the bootstrap: a noisy number of people can be larger than integers that are drawn."""
CLEAR = 3.0
"""Curves end where the number of people at risk is below so many standard deviations of its noise, as other figures
that are divided by a noisy count."""


@dataclass(frozen=True)
class Curves:
    """Survival by the end of every bin, one line for each group, with intervals and bands."""

    survival: Interval
    band: tuple[Floats, Floats]
    at_risk: Interval


@dataclass(frozen=True)
class SurvivalRelease:
    """Noisy counts in one line, the scale of their noise, and how many bins the grid has."""

    noisy: Floats
    scale: float
    bins: int

    @property
    def sd(self) -> float:
        """The standard deviation of the noise on a count."""
        return float(np.sqrt(2.0 * np.exp(-1.0 / self.scale)) / -np.expm1(-1.0 / self.scale))

    def spread(self, noisy: Floats, n_rows: int | None) -> Floats:
        """Counts with what they miss of a public number of rows spread over all of them: at-risk numbers are then the
        best mean of sums from the beginning and from the end.
        """
        if n_rows is None:
            return noisy
        missed = noisy.sum(axis=-1, keepdims=True) - n_rows
        return np.asarray(noisy - missed / noisy.shape[-1], dtype=np.float64)

    def table(self, n_rows: int | None) -> LifeTable:
        """The counts as life tables, one for each group."""
        return LifeTable.of_cells(self.spread(self.noisy, n_rows), self.bins)

    def at_risk_sd(self, n_rows: int | None) -> Floats:
        """The standard deviation of the noise on the number at risk at the beginning of every bin."""
        summed, cells = 2.0 * np.arange(self.bins, 0, -1) + 1, self.noisy.size
        return np.asarray(self.sd * np.sqrt(summed * (1.0 - (summed / cells if n_rows is not None else 0.0))))

    def curves(self, n_rows: int | None) -> Curves:
        """Survival with intervals and bands; NaN from where the noise leaves nobody clearly at risk."""
        table, least = self.table(n_rows), max(self.sd, 1.0)
        survival, noise = table.survival(least), self.at_risk_sd(n_rows)
        clear = np.logical_and.accumulate(table.at_risk > np.maximum(CLEAR * noise, 1.0), axis=-1)
        errors = self._errors(n_rows, least)
        low, high = _pointwise(survival, errors)
        low, high = np.where(clear, low, 0.0), np.where(clear, high, 1.0)
        high = np.where(clear, high, np.minimum.accumulate(high, axis=-1))
        half = NORMAL * noise
        at_risk = Interval(table.at_risk, table.at_risk - half, table.at_risk + half)
        return Curves(
            Interval(np.where(clear, survival, np.nan), low, high), _simultaneous(survival, errors, clear), at_risk
        )

    def _errors(self, n_rows: int | None, least: float) -> Floats:
        """How far curves fall from the truth that they are made of, one line a draw: people are drawn from what the
        release makes plausible, and noise as it was drawn.
        """
        plausible = on_simplex(self.noisy, min(max(float(n_rows or self.noisy.sum()), 1.0), MOST_ROWS))
        rows = max(round(float(plausible.sum())), 1)
        generator = seeded_generator(BANDS_SEED)
        drawn = generator.multinomial(rows, plausible / plausible.sum(), size=DRAWS)
        noisy = SeededNoise(generator).laplace(drawn, self.scale).astype(np.float64)
        again = LifeTable.of_cells(self.spread(noisy, n_rows), self.bins).survival(least)
        return np.asarray(again - LifeTable.of_cells(plausible, self.bins).survival(least))


def _pointwise(survival: Floats, errors: Floats) -> tuple[Floats, Floats]:
    """The ends that hold every single value in LEVEL of the draws."""
    ends = np.quantile(errors, [(1 + LEVEL) / 2, (1 - LEVEL) / 2], axis=0)
    return np.clip(survival - ends[0], 0.0, 1.0), np.clip(survival - ends[1], 0.0, 1.0)


def _simultaneous(survival: Floats, errors: Floats, clear: NDArray[np.bool_]) -> tuple[Floats, Floats]:
    """The ends that hold the whole curve of a group, as far as it is clear, in LEVEL of the draws."""
    spread = np.maximum(errors.std(axis=0), np.finfo(float).tiny)
    largest = np.where(clear, np.abs(errors) / spread, 0.0).max(axis=-1)
    reach = np.quantile(largest, LEVEL, axis=0)[..., None] * spread
    low = np.where(clear, np.clip(survival - reach, 0.0, 1.0), 0.0)
    high = np.where(clear, np.clip(survival + reach, 0.0, 1.0), 1.0)
    low = np.maximum.accumulate(low[..., ::-1], axis=-1)[..., ::-1]  # survival never rises
    return low, np.minimum.accumulate(high, axis=-1)


def on_simplex(counts: Floats, total: float) -> Floats:
    """The counts that are not negative, add up to a total, and are nearest to these; never fails.

    They are measured from the largest: noise can be so large that a total is lost in its rounding.
    """
    below = counts - counts.max()
    ordered = np.sort(below)[::-1]
    excess = (np.cumsum(ordered) - total) / np.arange(1, len(ordered) + 1)
    kept = int(np.flatnonzero(ordered > excess)[-1])
    return np.asarray(np.maximum(below - excess[kept], 0.0), dtype=np.float64)


def crossing(times: Floats, survival: Floats, share: float) -> float:
    """When a curve first falls to a share, by straight lines between the times; infinite where it does not."""
    for (start, stop), (before, after) in zip(pairwise(times), pairwise(survival), strict=True):
        if after <= share:
            return float(stop if before <= after else start + (stop - start) * (before - share) / (before - after))
    return float("inf")
