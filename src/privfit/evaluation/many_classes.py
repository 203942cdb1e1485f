"""More than two classes: counts by true and predicted class, and by confidence and whether the prediction is right."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privfit.evaluation.cells import Estimate, NoisyCells, around
from privfit.evaluation.predictor import Predictor
from privfit.evaluation.score_grid import ScoreGrid
from privfit.evaluation.subject import Asked, Found, Subject
from privfit.evaluation.two_classes import SIMPLE, calibration_of
from privfit.mechanisms.summaries.cells import Cells
from privfit.privacy.parts import Laplace
from privfit.schema import Category
from privfit.summaries.release import Answer
from privfit.tables import Batch, DecodedTable

Floats = NDArray[np.float64]
SHARES = (2, 3)
"""Shares of the price: 40% to the confusion matrix, 60% to confidence. Not measured: no other split was tried."""


@dataclass(frozen=True)
class ManyClasses(Subject):
    """A classifier of several classes; `probable` is whether it has probabilities and calibration is wanted."""

    predictor: Predictor
    grid: ScoreGrid
    probable: bool

    @classmethod
    def of(cls, predictor: Predictor, grid: ScoreGrid, asked: tuple[str, ...] | None) -> ManyClasses:
        """With confidence where the model has probabilities and more is asked for than the predicted class gives."""
        simple = asked is not None and set(asked) <= set(SIMPLE)
        return cls(predictor, grid, hasattr(predictor.model, "predict_proba") and not simple)

    @property
    def _labels(self) -> tuple[Any, ...]:
        target = self.predictor.schema.target
        assert isinstance(target, Category)
        return tuple(target.levels)

    @property
    def names(self) -> tuple[str, ...]:
        """Calibration only where there are probabilities."""
        return (*SIMPLE, "calibration") if self.probable else SIMPLE

    @property
    def columns(self) -> tuple[Category, ...]:
        """A level for every pair of classes, and one for confidence by whether it is right."""
        pairs = Category("classes", range(len(self._labels) ** 2))
        return (pairs, Category("confidence", range(2 * self.grid.cells))) if self.probable else (pairs,)

    def compute(self, batch: Batch) -> Batch:
        """Both levels of every row."""
        true = self.predictor.classes(batch)
        if not len(true):
            return [np.empty(0, dtype=np.int32) for _ in self.columns]
        said = self.predictor.predicted(batch, _said)
        predicted = np.searchsorted(np.arange(len(self._labels)), said[:, 0])
        made: Batch = [(true * len(self._labels) + predicted).astype(np.int32)]
        if self.probable:
            cells = self.grid.cells_of(np.ascontiguousarray(said[:, 1]))
            made.append(((true == predicted) * self.grid.cells + cells).astype(np.int32))
        return made

    def questions(self) -> Asked:
        """A count for each."""
        return tuple((Cells(column), share) for column, share in zip(self.columns, SHARES, strict=False))

    def found(self, answer: Answer) -> Found:
        """The figures of both counts."""
        held = []
        for own, noise in zip(answer.value, answer.event.parts, strict=True):
            assert isinstance(noise, Laplace)
            held.append(NoisyCells(own["counts"].value, noise.sd, answer.n_rows))
        size, curves = len(self._labels), dict[str, Any]()
        eye, every = np.eye(size).ravel(), np.ones(size**2)
        balanced = [held[0].is_clear(np.repeat(np.eye(size)[place], size)) for place in range(size)]
        matrix = [[held[0].number(one.ravel()) for one in _single(size, true)] for true in range(size)]
        curves["confusion"] = (matrix, (self._labels, self._labels), 0.5)
        if self.probable:
            curves["calibration"] = calibration_of(held[1], self.grid)
        recalls = _mean_recall(held[0], size) if all(balanced) else Estimate(float("nan"), 0.0, 1.0)
        return Found({"accuracy": held[0].ratio(eye, every), "balanced_accuracy": recalls}, curves)


def _single(size: int, true: int) -> list[Floats]:
    """For every predicted class the matrix with a single 1."""
    found = []
    for predicted in range(size):
        one = np.zeros((size, size))
        one[true, predicted] = 1.0
        found.append(one)
    return found


def _mean_recall(cells: NoisyCells, size: int) -> Estimate:
    """The mean over classes of the share that is predicted rightly."""
    counts = cells.counts.reshape(size, size)
    rows = counts.sum(axis=1)
    shares = np.diag(counts) / rows
    gradient = (np.eye(size) - shares[:, None]) / rows[:, None] / size
    error = float(np.sqrt(cells.variance(gradient.ravel())))
    return around(float(shares.mean()), error, 0.0, 1.0)


def _said(model: Any, table: DecodedTable) -> Floats:
    """The place of the predicted class, and its probability."""
    places = {label: place for place, label in enumerate(model.classes_.tolist())}
    predicted = np.array([places[label] for label in model.predict(table).tolist()], dtype=np.float64)
    if not hasattr(model, "predict_proba"):
        return np.column_stack([predicted, predicted])
    return np.column_stack([predicted, model.predict_proba(table).max(axis=1)])
