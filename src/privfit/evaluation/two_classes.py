"""Two classes: one noisy count for every class and cell of predicted scores, and all figures that follow from it."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privfit.evaluation.cells import Estimate, NoisyCells, TrimmedCells, around
from privfit.evaluation.predictor import Predictor, probability, score_scale, second_class, squashed
from privfit.evaluation.score_grid import ScoreGrid, WithinCells, crowded
from privfit.evaluation.subject import Asked, Found, Subject
from privfit.mechanisms.summaries.cells import Cells
from privfit.privacy.parts import Laplace
from privfit.schema import Category
from privfit.summaries.release import Answer
from privfit.tables import Batch, DecodedTable

Floats = NDArray[np.float64]

CROWDED = 4.0
"""Standard deviations of its noise that the outermost cells must hold before scores are taken to crowd at the ends. No
command varies it."""
GROUPS = 10
"""Points that a calibration curve has at most: with more, each has fewer rows. A convention, not measured."""
TIES = 0.75
"""How much of what ties within a cell could change AUC counts as a standard deviation: rows of a cell may all have one
score, as where all columns are levels; papers/experiments/evaluation.py."""
SIMPLE = ("accuracy", "balanced_accuracy", "confusion")
"""Figures that need no more than the predicted class."""


@dataclass(frozen=True)
class TwoClasses(Subject):
    """A classifier of two classes, by cells of its scores.

    `score` is what rows are sorted by; `probable` whether that is a probability.
    """

    predictor: Predictor
    grid: ScoreGrid
    score: Callable[[Any, DecodedTable], Floats]
    probable: bool
    ranked: bool = True

    @classmethod
    def of(cls, predictor: Predictor, grid: ScoreGrid, asked: tuple[str, ...] | None) -> TwoClasses:
        """By probabilities, or by scores, or by predicted classes, whichever the model has."""
        model, simple = predictor.model, asked is not None and set(asked) <= set(SIMPLE)
        if simple or not (hasattr(model, "predict_proba") or hasattr(model, "coef_")):
            return cls(predictor, ScoreGrid(2), second_class, probable=False, ranked=False)
        if hasattr(model, "predict_proba"):
            return cls(predictor, grid, probability, probable=True)
        return cls(predictor, grid, partial(squashed, score_scale(model)), probable=False)

    @property
    def names(self) -> tuple[str, ...]:
        """More where rows are ranked, and most where scores are probabilities."""
        ranked = ("auc", "roc") if self.ranked else ()
        return (*SIMPLE, *ranked, *(("log_loss", "brier", "calibration") if self.probable else ()))

    @property
    def columns(self) -> tuple[Category, ...]:
        """One level for every class and cell."""
        return (Category("cell", range(2 * self.grid.cells)),)

    def compute(self, batch: Batch) -> Batch:
        """The class and cell of every row."""
        classes = self.predictor.classes(batch)
        if not len(classes):
            return [np.empty(0, dtype=np.int32)]
        cells = self.grid.cells_of(self.predictor.predicted(batch, self.score))
        return [(classes * self.grid.cells + cells).astype(np.int32)]

    def questions(self) -> Asked:
        """One count."""
        return ((Cells(self.columns[0]), 1),)

    def found(self, answer: Answer) -> Found:
        """All figures, of the one count."""
        noise = answer.event.parts[0]
        assert isinstance(noise, Laplace)
        cells = NoisyCells(answer.value[0]["counts"].value, noise.sd, answer.n_rows)
        held = TwoClassFigures(cells, self.grid, tuple(self.predictor.schema.target.levels))  # type: ignore[union-attr]
        figures = {"accuracy": held.accuracy, "balanced_accuracy": held.balanced_accuracy}
        curves: dict[str, Any] = {"confusion": held.confusion(0.5)}
        if self.ranked:
            figures["auc"] = held.auc
            curves["roc"] = held.roc
        if self.probable:
            figures |= {"log_loss": held.log_loss, "brier": held.brier}
            curves["calibration"] = held.calibration
        return Found(figures, curves, held.confusion if self.ranked else None)


@dataclass(frozen=True)
class TwoClassFigures:
    """Figures of noisy counts by class and cell of scores: all cells of the first class, then those of the second."""

    cells: NoisyCells
    grid: ScoreGrid
    labels: tuple[Any, ...]

    @cached_property
    def _size(self) -> int:
        return self.grid.cells

    def _of_class(self, place: int, weights: Floats) -> Floats:
        """Weights of the cells of one class."""
        found = np.zeros(2 * self._size)
        found[place * self._size : (place + 1) * self._size] = weights
        return found

    @cached_property
    def _classes(self) -> tuple[Floats, Floats]:
        ones = np.ones(self._size)
        return self._of_class(0, ones), self._of_class(1, ones)

    @cached_property
    def _above(self) -> Floats:
        return np.asarray(np.arange(self._size) >= self._size // 2, dtype=np.float64)

    # -- what follows from the predicted class -----------------------------------------------------

    @property
    def accuracy(self) -> Estimate:
        """The share of rows whose class is predicted."""
        return self.cells.ratio(np.concatenate([1 - self._above, self._above]), np.ones(2 * self._size))

    @property
    def balanced_accuracy(self) -> Estimate:
        """The mean of the shares of both classes that are predicted."""
        none, one = self._classes
        if not (self.cells.is_clear(none) and self.cells.is_clear(one)):
            return Estimate(math.nan, 0.0, 1.0)
        counts, right = self.cells.counts, np.concatenate([1 - self._above, self._above])
        rows = none @ counts, one @ counts
        shares = (right * none) @ counts / rows[0], (right * one) @ counts / rows[1]
        gradient = (right - shares[0]) * none / rows[0] + (right - shares[1]) * one / rows[1]
        error = math.sqrt(self.cells.variance(gradient / 2) + (1.0 / min(rows)) ** 2)
        return around(float(sum(shares)) / 2, error, 0.0, 1.0)

    def confusion(self, threshold: float) -> tuple[list[list[Estimate]], tuple[tuple[Any, ...], ...], float]:
        """Rows by true and predicted class, for the edge of the grid that is nearest to a threshold."""
        place = int(np.argmin(np.abs(self.grid.edges - threshold)))
        above = (np.arange(self._size) >= place).astype(np.float64)
        table = [[self.cells.number(self._of_class(true, side)) for side in (1 - above, above)] for true in (0, 1)]
        return table, (self.labels, self.labels), float(self.grid.edges[place])

    # -- what follows from the order of scores -----------------------------------------------------

    @property
    def roc(self) -> dict[str, list[Estimate]]:
        """Rates of true and false positives for every edge of the grid, from the highest threshold on."""
        rates: dict[str, list[Estimate]] = {"thresholds": [], "false_positive_rate": [], "true_positive_rate": []}
        for place in range(self._size, -1, -1):
            above = (np.arange(self._size) >= place).astype(np.float64)
            edge = float(self.grid.edges[place])
            rates["thresholds"].append(Estimate(edge, edge, edge))
            for name, own in zip(("false_positive_rate", "true_positive_rate"), (0, 1), strict=True):
                among = self._classes[own]
                if place in (0, self._size):
                    rates[name].append(Estimate(*[float(place == 0)] * 3))
                else:
                    rates[name].append(self.cells.ratio(self._of_class(own, above), among))
        return rates

    @cached_property
    def _trimmed(self) -> TrimmedCells:
        """The cells between the lowest and the highest score that stand out from noise."""
        return TrimmedCells.of(self.cells)

    @cached_property
    def _halves(self) -> tuple[Floats, Floats]:
        return self._trimmed.counts[: self._size], self._trimmed.counts[self._size :]

    @cached_property
    def _densities(self) -> tuple[WithinCells, WithinCells]:
        """Two accounts of where rows are within cells: as on a grid, and crowded at the ends."""
        none, one = self._halves
        clear = CROWDED * self.cells.sd * math.sqrt(2)
        points = crowded(self.grid.points, self.grid.edges, none + one, clear)
        return WithinCells.fitted(self.grid.points, none, one), WithinCells.fitted(points, none, one)

    @property
    def auc(self) -> Estimate:
        """The probability that a row of the second class has a higher score than one of the first; ties count half."""
        is_clear = all(map(self._trimmed.is_clear, self._classes))
        if not is_clear:
            return Estimate(math.nan, 0.0, 1.0)
        none, one = self._halves
        rows = none.sum(), one.sum()
        ordered = (self._densities[0].ordered + self._densities[1].ordered) / 2
        wins = np.tri(self._size, k=-1) + np.diag(ordered)
        of_one, of_none = wins @ none / rows[0], wins.T @ one / rows[1]
        value = float(one @ of_one / rows[1])
        gradient = np.concatenate([(of_none - value) / rows[0], (of_one - value) / rows[1]])
        tied = TIES * float(one @ ((ordered - 0.5) * none)) / (rows[0] * rows[1])
        return around(value, math.sqrt(self._trimmed.variance(gradient) + tied**2), 0.0, 1.0)

    # -- what follows from probabilities -----------------------------------------------------------

    def _mean_of(self, of_none: Callable[[Floats], Floats], of_one: Callable[[Floats], Floats]) -> Estimate:
        """The mean over all rows of a function of the predicted probability, one for each class."""
        every, counts = np.ones(2 * self._size), self._trimmed.counts
        alike = [WithinCells.even(own.points) for own in self._densities]
        accounts = [own.means(of_none(own.points), of_one(own.points)) for own in (*self._densities, *alike)]
        means = [float(account @ counts) / max(float(counts.sum()), 1.0) for account in accounts]
        return self._trimmed.ratio((accounts[0] + accounts[1]) / 2, every, (max(means) - min(means)) / 2)

    @property
    def log_loss(self) -> Estimate:
        """The mean of -log of the probability that was predicted for the true class."""
        return self._mean_of(lambda share: -np.log1p(-share), lambda share: -np.log(share))

    @property
    def brier(self) -> Estimate:
        """The mean squared difference between the predicted probability and the class."""
        return self._mean_of(lambda share: share**2, lambda share: (1 - share) ** 2)

    @property
    def calibration(self) -> dict[str, list[Estimate]]:
        """For groups of neighbouring cells the mean predicted probability and the share of the second class."""
        return calibration_of(self.cells, self.grid)


def calibration_of(cells: NoisyCells, grid: ScoreGrid) -> dict[str, list[Estimate]]:
    """For groups of neighbouring cells the mean score and the share of the second half of counts."""
    found: dict[str, list[Estimate]] = {"predicted": [], "observed": []}
    size = grid.cells
    for group in np.array_split(np.arange(size), min(GROUPS, size)):
        here = np.isin(np.arange(size), group).astype(np.float64)
        among, middles = np.tile(here, 2), np.tile(grid.points.mean(axis=1), 2)
        low, high = float(grid.edges[group[0]]), float(grid.edges[group[-1] + 1])
        middle = float(middles[group].mean())
        if cells.is_clear(among):
            middle = min(max(float((middles * among) @ cells.counts) / float(among @ cells.counts), low), high)
        found["predicted"].append(Estimate(middle, low, high))
        found["observed"].append(cells.proportion(np.concatenate([np.zeros(size), here]), among))
    return found
