"""How good predictions are, and whether one method is ahead of another."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy.stats import t as student
from sklearn.metrics import roc_auc_score

from privfit_papers.bench.board.cells import TRAIN_SHARE

Floats = NDArray[np.float64]
Verdict = Literal["ahead", "level", "behind"]

LEAST_CHANCE = 1e-15
"""Where a method is sure and wrong, its log-loss is cut here, as scikit-learn's is."""
LEVEL = 0.05
"""A difference counts where its probability between methods that are equally good is below this."""
MEASURES: dict[str, dict[str, bool]] = {
    "classes": {"error": False, "auc": True, "log_loss": False},
    "numbers": {"r2": True, "rmse": False},
}
"""The measures of each task, the most important first, and whether more is better."""
TITLES = {
    "error": "wrong classes",
    "auc": "area under the curve",
    "log_loss": "log-loss",
    "r2": "R2",
    "rmse": "root mean squared error",
}


def scores(task: str, predicted: Floats, truth: Floats) -> dict[str, float]:
    """All measures of predictions: probabilities of the second class, or numbers."""
    if task == "numbers":
        mean_square = float(np.mean((predicted - truth) ** 2))
        return {"r2": 1.0 - mean_square / float(truth.var()), "rmse": mean_square**0.5}
    held = np.clip(predicted, LEAST_CHANCE, 1.0 - LEAST_CHANCE)
    return {
        "error": float(np.mean((predicted > 0.5) != (truth > 0.5))),
        "auc": float(roc_auc_score(truth > 0.5, predicted)),
        "log_loss": float(-np.mean(np.log(np.where(truth > 0.5, held, 1.0 - held)))),
    }


@dataclass(frozen=True)
class Spread:
    """The mean, the standard deviation and the worst over splits, and how many there are."""

    mean: float
    deviation: float
    worst: float
    splits: int

    @classmethod
    def of(cls, values: Sequence[float], more_is_better: bool) -> Spread:
        """Of one score a split."""
        return cls(
            float(np.mean(values)),
            float(np.std(values)),
            float(min(values) if more_is_better else max(values)),
            len(values),
        )


@dataclass(frozen=True)
class Difference:
    """The mean of paired differences over splits, above 0 where the first is better, and the probability of one as
    large between methods that are equally good.

    Splits share rows, so that their differences are not independent: the variance is that of Nadeau and Bengio
    (Machine Learning 52, 2003), (1 / splits + test rows / rows to fit on) times that of one difference.
    """

    mean: float
    p_value: float
    splits: int

    @classmethod
    def of(cls, first: Sequence[float], second: Sequence[float], more_is_better: bool) -> Difference:
        """Of the scores of two methods on the same splits."""
        gains = (1.0 if more_is_better else -1.0) * (np.asarray(first) - np.asarray(second))
        if len(gains) < 2:
            return cls(float(gains.mean()), 1.0, len(gains))
        spread = float(gains.std(ddof=1)) * (1 / len(gains) + (1 - TRAIN_SHARE) / TRAIN_SHARE) ** 0.5
        if spread == 0.0:
            return cls(float(gains.mean()), float(gains.mean() == 0.0), len(gains))
        return cls(float(gains.mean()), 2.0 * float(student.sf(abs(gains.mean()) / spread, len(gains) - 1)), len(gains))

    @property
    def verdict(self) -> Verdict:
        """Whether the first is ahead of the second."""
        if self.p_value >= LEVEL:
            return "level"
        return "ahead" if self.mean > 0 else "behind"
