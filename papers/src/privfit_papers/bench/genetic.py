"""Genetic fits of two classes side by side: wrong classes by cross-validation, and what scoring costs.

None of these is a private release: noise is seeded, and test rows are looked at.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from privfit.mechanisms import PrivGene
from privfit.models import LinearSVC, LogisticRegression
from privfit.privacy import seeded_generator
from privfit.schema import Category, Schema
from privfit_papers.bench.classifiers import FIRST_SEED, Split
from privfit_papers.bench.speed import ADULT_ROWS, Ratio, adult_or_alike, alternate, bench_ledger, encoded_rows

Make = Callable[[float, Schema, int], Any]

FOLDS = 5
EPSILONS = (0.1, 0.4, 0.8, 1.0, 1.6)
ROUNDS, CANDIDATES = 60, 200


def _logistic(**settings: Any) -> Make:
    def make(epsilon: float, schema: Schema, seed: int) -> Any:
        return LogisticRegression(epsilon, schema=schema, mechanism=PrivGene(**settings), random_state=seed)

    return make


def _machine(loss: str, **settings: Any) -> Make:
    def make(epsilon: float, schema: Schema, seed: int) -> Any:
        return LinearSVC(epsilon, loss=loss, schema=schema, mechanism=PrivGene(**settings), random_state=seed)

    return make


METHODS: Mapping[str, Make] = {
    "all patterns": _logistic(),
    "200 patterns, permute-and-flip": _logistic(selection="permute-and-flip"),
    "200 patterns, enhanced": _logistic(selection="enhanced", candidates=CANDIDATES),
    "200 coordinates": _logistic(moves="coordinates"),
    "genes, permute-and-flip": _logistic(moves="genes", selection="permute-and-flip"),
    "genes, enhanced": _logistic(moves="genes", selection="enhanced"),
    "genes, exponential": _logistic(moves="genes", selection="exponential"),
    "SVM, all patterns": _machine("huber"),
    "SVM, hinge, all patterns": _machine("hinge"),
    "SVM, genes, enhanced": _machine("hinge", moves="genes", selection="enhanced"),
    "SVM, genes, exponential": _machine("hinge", moves="genes", selection="exponential"),
}
"""PrivGene as it comes, with listed candidates, and as in the paper ("genes"), by rule of selection."""


@dataclass(frozen=True)
class Errors:
    """The mean and the standard deviation over repetitions of a method's wrong classes, each the mean of all folds."""

    table: str
    method: str
    epsilon: float | None
    repetitions: int
    mean: float
    deviation: float

    def to_dict(self) -> dict[str, float | str | int | None]:
        """As plain values."""
        return asdict(self)


def folds_at_random(frame: pl.DataFrame, schema: Schema, seed: int) -> list[Split]:
    """Five parts, each tested on once. The same for the same seed."""
    part = seeded_generator(seed).permutation(frame.height) % FOLDS
    return [Split(frame.filter(part != fold), frame.filter(part == fold), schema) for fold in range(FOLDS)]


def fold_errors(
    table: str,
    frame: pl.DataFrame,
    schema: Schema,
    methods: Mapping[str, Make] = METHODS,
    epsilons: Sequence[float] = EPSILONS,
    repetitions: int = 20,
) -> list[Errors]:
    """The errors of every method and epsilon by five-fold cross-validation, and those of the majority class."""
    found: dict[tuple[str, float | None], list[float]] = {}
    for repetition in range(repetitions):
        folds = folds_at_random(frame, schema, repetition)
        found.setdefault(("majority class", None), []).append(
            float(np.mean([split.majority().error for split in folds]))
        )
        for name, make in methods.items():
            for epsilon in epsilons:
                wrong = [
                    _wrong(split, make(epsilon, schema, FIRST_SEED + FOLDS * repetition + fold))
                    for fold, split in enumerate(folds)
                ]
                found.setdefault((name, epsilon), []).append(float(np.mean(wrong)))
    return [
        Errors(table, name, epsilon, repetitions, float(np.mean(values)), float(np.std(values)))
        for (name, epsilon), values in found.items()
    ]


def _wrong(split: Split, model: Any) -> float:
    return float(np.mean((model.fit(split.train).decision_function(split.test) > 0) != split.is_second(split.test)))


def against_naive(repeats: int, folder: Path | None = None, rows: int = ADULT_ROWS) -> Ratio:
    """A whole fit by 60 rounds of 200 candidates, from the frame, against scoring as many candidates as products of the
    encoded rows and their weights.
    """
    what, (frame, schema) = adult_or_alike(folder, rows)
    mechanism = PrivGene(moves="coordinates", rounds=ROUNDS, candidates=CANDIDATES)
    model = LogisticRegression(schema=schema, mechanism=mechanism, ledger=bench_ledger())
    X = encoded_rows(frame, schema, schema.geometry(numeric="bins", intercept=False, whole=True))
    assert isinstance(schema.target, Category)
    side = np.where((frame.get_column(schema.target.name) == schema.target.levels[1]).to_numpy(), 1.0, -1.0)
    weights = seeded_generator(0).normal(0.0, 0.5, (CANDIDATES, X.shape[1]))

    def rescored() -> None:
        for _ in range(ROUNDS):
            np.logaddexp(0.0, -side[:, None] * (X @ weights.T)).sum(axis=0)

    ours, other = alternate(repeats, lambda: model.fit(frame), rescored)
    return Ratio(f"genetic, {what}", f"{ROUNDS} x {CANDIDATES} scores by X @ W'", ours, other, wanted=1 / 12)
