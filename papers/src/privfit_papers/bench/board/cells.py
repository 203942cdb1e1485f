"""One cell of the board, and what is known of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from privfit_papers.bench.board.methods import DELTA, Method

TRAIN_SHARE = 0.8
"""Of the rows of a split; the others are tested on."""
FIRST_SEED = 1_000_000
"""Noise has seeds of its own, so that it does not repeat the draws that made the splits."""


@dataclass(frozen=True)
class Cell:
    """One fit: a method on a split of a table at an epsilon, which is 0 where there is no privacy."""

    table: str
    task: str
    method: Method
    epsilon: float
    split: int

    @property
    def path(self) -> Path:
        """Where its result is, below the folder of cells."""
        return Path(self.table) / f"{self.method.file_name}_{self.epsilon:g}_{self.split}.json"

    @property
    def ask(self) -> dict[str, Any]:
        """What its peer is asked."""
        delta = DELTA if self.method.promise == "delta" else 0.0
        return {"method": self.method.asked, "epsilon": self.epsilon, "delta": delta, "seed": FIRST_SEED + self.split}


@dataclass(frozen=True)
class Result:
    """The scores of a cell, or why it has none."""

    cell: Cell
    scores: Mapping[str, float]
    seconds: float = 0.0
    failed: str = ""
