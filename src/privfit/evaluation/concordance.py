"""Survival models: how often those to whom an event happens first have the higher log hazard."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from privfit.evaluation.cells import CLEAR, Estimate, NoisyCells, around
from privfit.evaluation.predictor import Predictor
from privfit.evaluation.subject import Asked, Found, Subject
from privfit.mechanisms.summaries.cells import Cells
from privfit.privacy.parts import Laplace
from privfit.rows import within_bounds
from privfit.schema import Category, Numeric
from privfit.summaries.release import Answer
from privfit.tables import Batch, DecodedTable

Floats = NDArray[np.float64]

FEWEST_TIMES, MOST_TIMES = 3, 12
"""Bins of time: more have fewer pairs within them, and hold more noise. tests/evaluation/test_concordance.py has what
few of them leave out."""
FEWEST_SCORES, MOST_SCORES = 6, 16
"""Cells of scores, in the same way. Chosen, not measured."""
UNSURE = 0.15
"""How much of what pairs within a bin of time change counts as a standard deviation. Chosen, not measured."""


@dataclass(frozen=True)
class PairGrid:
    """Bins of time, by their inner edges, and cells of scores by theirs."""

    times: Floats
    scores: Floats

    @classmethod
    def of(cls, model: Any, rows: float, epsilon: float, changed: int) -> PairGrid:
        """The grid for so many rows, epsilon, and counts that one person changes: bins of time in which as many events
        are expected, and cells with as many scores, as far as the released model says.
        """
        signal = max(rows * epsilon / changed, 1.0)
        times = int(np.clip(round(signal**0.25), FEWEST_TIMES, MOST_TIMES))
        scores = int(np.clip(round(signal ** (1 / 3)), FEWEST_SCORES, MOST_SCORES))
        alive = np.nan_to_num(model.baseline_survival_, nan=float(np.nanmin(model.baseline_survival_)))
        falls = 1.0 - alive + 1e-9 * np.arange(len(alive))  # strictly rising
        shares = np.arange(1, times) / times
        edges = np.interp(shares * falls[-1], falls, model.times_)
        spread = max(float(model.score_spread_), 1e-6)
        return cls(np.asarray(edges), spread * ndtri(np.arange(1, scores) / scores))

    @property
    def sizes(self) -> tuple[int, int]:
        """How many bins of time there are, and how many cells of scores."""
        return len(self.times) + 1, len(self.scores) + 1

    @property
    def cells(self) -> int:
        """How many counts there are: events and censored times by bin, and those who leave the grid, by score."""
        times, scores = self.sizes
        return (2 * times + 1) * scores

    def cells_of(self, times: Floats, happened: NDArray[np.bool_], left: NDArray[np.bool_], scores: Floats) -> Any:
        """The cell of every row."""
        bins, many = np.searchsorted(self.times, times, side="right"), len(self.times) + 1
        lines = np.where(left, 2 * many, bins + many * ~happened)
        return lines * self.sizes[1] + np.searchsorted(self.scores, scores, side="right")


@dataclass(frozen=True)
class Survivals(Subject):
    """A model of log hazards. The predictor's schema has the time as its last feature, and the event as its target."""

    predictor: Predictor
    grid: PairGrid

    @property
    def names(self) -> tuple[str, ...]:
        """One figure."""
        return ("concordance",)

    @property
    def columns(self) -> tuple[Category, ...]:
        """One level for every cell."""
        return (Category("cell", range(self.grid.cells)),)

    def compute(self, batch: Batch) -> Batch:
        """The cell of every row."""
        if not len(batch[0]):
            return [np.empty(0, dtype=np.int32)]
        time = self.predictor.schema.features[-1]
        assert isinstance(time, Numeric)
        times = within_bounds(time, batch[len(self.predictor.schema.features) - 1])
        left, happened = times >= time.high, self.predictor.classes(batch) == 1
        scores = np.nan_to_num(self.predictor.predicted(batch, _log_hazard))
        return [self.grid.cells_of(times, happened, left, scores).astype(np.int32)]

    def questions(self) -> Asked:
        """One count."""
        return ((Cells(self.columns[0]), 1),)

    def found(self, answer: Answer) -> Found:
        """The figure, of the count."""
        noise = answer.event.parts[0]
        assert isinstance(noise, Laplace)
        cells = NoisyCells(answer.value[0]["counts"].value, noise.sd, answer.n_rows)
        return Found({"concordance": Pairs(cells, *self.grid.sizes).concordance})


def _log_hazard(model: Any, table: DecodedTable) -> Floats:
    return np.asarray(model.predict(table), dtype=np.float64)


@dataclass(frozen=True)
class Pairs:
    """Pairs of people of whom one has an event while the other is still there, from noisy counts by bin and score.

    Guarantee: post-processing; docs/proofs/evaluation.md, Theorem 1.
    """

    cells: NoisyCells
    times: int
    scores: int

    @cached_property
    def _lines(self) -> tuple[Floats, Floats, Floats]:
        """Counts of events, of censored times and of those who left: (bins, scores)."""
        lines = self.cells.counts.reshape(2 * self.times + 1, self.scores)
        return lines[: self.times], lines[self.times : -1], lines[-1:]

    @cached_property
    def _later(self) -> Floats:
        """Who is there after the end of each bin, by score."""
        events, censored, left = self._lines
        leaving = np.concatenate([events + censored, left])
        return np.asarray(np.cumsum(leaving[::-1], axis=0)[::-1][1:])

    @cached_property
    def _below(self) -> Floats:
        """How a pair of scores counts: 1 where the first is higher, 1/2 where they tie."""
        return np.tri(self.scores, k=-1) + 0.5 * np.eye(self.scores)

    @property
    def concordance(self) -> Estimate:
        """The share of pairs in which the one with the event has the higher log hazard; ties count half."""
        ordered, pairs = self._sums(self._later)
        rows = max(float(self.cells.counts.sum()), 1.0)
        if not pairs > CLEAR * self.cells.sd * rows:  # about the noise on a sum of pairs
            return Estimate(math.nan, 0.0, 1.0)
        inside, within = self._within
        value = (ordered + inside) / (pairs + within)
        gradient = self._gradient(value) / (pairs + within)
        moved = UNSURE * abs(inside - value * within) / (pairs + within)
        stretched = 0.5 + (value - 0.5) / (1 - 1 / self.scores**2)  # for pairs within a cell of scores
        return around(stretched, math.hypot(math.sqrt(self.cells.variance(gradient)), moved), 0.0, 1.0)

    @property
    def _within(self) -> tuple[float, float]:
        """The same for pairs within a bin of time.

        Who of two people with events that are near each other had theirs first is even, whatever the scores are, and
        the further apart the events are, the less so: a third as far as in neighbouring bins. Those who are censored
        within a bin are as those who are censored in the next.
        """
        events, censored, left = self._lines
        close, near = self._sums(np.concatenate([events[1:], 0 * left]))
        stay, there = self._sums(np.concatenate([censored[1:], 0 * left]))
        both = max(float((events.sum(axis=1) ** 2).sum()) / 2, 0.0)
        one = max(float((events.sum(axis=1) * censored.sum(axis=1)).sum()) / 2, 0.0)
        of_both = 0.5 + (_share(close, near) - 0.5) / 3
        return both * of_both + one * _share(stay, there), both + one

    def _sums(self, others: Floats) -> tuple[float, float]:
        """The sum of what pairs of events and these others count, and their number."""
        events = self._lines[0]
        return float((events @ self._below * others).sum()), float((events.sum(axis=1) * others.sum(axis=1)).sum())

    def _gradient(self, value: float) -> Floats:
        """How every count moves what pairs count above this value, by cell."""
        events = self._lines[0]
        of_events = self._later @ (self._below - value).T
        before = np.cumsum(np.vstack([np.zeros(self.scores), events]), axis=0)
        of_others = before @ (self._below - value)
        return np.concatenate([of_events + of_others[:-1], of_others[:-1], of_others[-1:]]).ravel()


def _share(part: float, whole: float) -> float:
    """A share of noisy pairs; a half where there are hardly any."""
    return float(np.clip(part / whole, 0.0, 1.0)) if whole > 1.0 else 0.5
