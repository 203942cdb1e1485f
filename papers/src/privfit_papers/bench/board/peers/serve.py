"""What every peer's script does: load a split, fit what it is asked for, and save what it predicts for the test rows.

One line of JSON is asked, one is answered. Predictions are probabilities of the second class, or numbers.
"""

from __future__ import annotations

import json
import sys
import time
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Column:
    """What is public about a column: the bounds of a number, or how many levels a category has."""

    name: str
    low: float = 0.0
    high: float = 1.0
    levels: int = 0

    def lines(self, values: Floats) -> Floats:
        """A number from -1 to 1, or one column for each level."""
        if self.levels:
            return np.asarray(values[:, None] == np.arange(self.levels), dtype=np.float64)
        return np.asarray(2.0 * (values[:, None] - self.low) / (self.high - self.low) - 1.0, dtype=np.float64)


@dataclass(frozen=True)
class Split:
    """Rows to fit on and rows to test on: one number a column, levels by their places, within public bounds.

    `target` is 0 or 1 for classes, else a number from `bounds`. `truth` is that of the test rows: what looks at it is
    not private.
    """

    columns: tuple[Column, ...]
    bounds: tuple[float, float] | None
    train: Floats
    target: Floats
    test: Floats
    truth: Floats

    @classmethod
    def load(cls, folder: Path) -> Split:
        """The split in a folder."""
        facts = json.loads((folder / "facts.json").read_text(encoding="utf-8"))
        arrays = [np.load(folder / f"{name}.npy") for name in ("train", "target", "test", "truth")]
        bounds = facts["bounds"]
        return cls(tuple(Column(**one) for one in facts["columns"]), bounds and (bounds[0], bounds[1]), *arrays)

    def lines(self, part: Floats) -> Floats:
        """Numbers from -1 to 1, and a column for each level."""
        return np.hstack([column.lines(part[:, place]) for place, column in enumerate(self.columns)])

    @property
    def row_norm(self) -> float:
        """How long a row of `lines` can be."""
        return float(np.sqrt(len(self.columns)))

    def scaled_target(self) -> Floats:
        """The target from -1 to 1."""
        low, high = self.bounds or (0.0, 1.0)
        return np.asarray(2.0 * (self.target - low) / (high - low) - 1.0, dtype=np.float64)

    def unscaled(self, predicted: Floats) -> Floats:
        """Predictions of `scaled_target` in the target's units, within its bounds."""
        low, high = self.bounds or (0.0, 1.0)
        return np.asarray(low + (np.clip(predicted, -1.0, 1.0) + 1.0) / 2.0 * (high - low), dtype=np.float64)


@dataclass(frozen=True)
class Ask:
    """What to fit: a method of this peer, at this price. Methods without privacy have an epsilon of 0."""

    method: str
    epsilon: float
    delta: float
    seed: int
    answer: str


Fit = Callable[[Split, Ask], Floats]


def serve(methods: Mapping[str, Fit]) -> None:
    """Answer lines of standard input until there are no more."""
    warnings.simplefilter("ignore")
    split, answers = Split.load(Path(sys.argv[1])), sys.stdout
    sys.stdout = sys.stderr  # what a peer prints is no answer
    for line in sys.stdin:
        ask = Ask(**json.loads(line))
        print(json.dumps(_answered(methods, split, ask)), file=answers, flush=True)


def _answered(methods: Mapping[str, Fit], split: Split, ask: Ask) -> dict[str, Any]:
    start = time.perf_counter()
    try:
        predicted = np.asarray(methods[ask.method](split, ask), dtype=np.float64)
    except Exception as error:
        return {"failed": f"{type(error).__name__}: {error}"[:300]}
    if predicted.shape != split.truth.shape or not np.isfinite(predicted).all():
        return {"failed": "predictions are not one finite number a row"}
    np.save(ask.answer, predicted)
    return {"seconds": round(time.perf_counter() - start, 3)}
