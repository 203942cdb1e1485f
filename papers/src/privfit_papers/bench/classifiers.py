"""Private classifiers side by side: wrong classes, area under the curve and log-loss on test rows, mean and deviation
over splits.

Only fits with an epsilon are private methods, and none of these is a private release: noise is seeded, and test rows
are looked at.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray
from sklearn.metrics import roc_auc_score

from privfit.mechanisms import ObjectivePerturbation
from privfit.models import LogisticRegression
from privfit.privacy import seeded_generator
from privfit.schema import Category, Schema
from privfit_papers.bench.accuracy import TRAIN_SHARE
from privfit_papers.bench.speed import PeerClassifier, encoded_rows

Floats = NDArray[np.float64]
Make = Callable[[float, Schema, int], Any]
"""An unfitted classifier from an epsilon, a schema and a seed."""

EPSILONS = (0.1, 0.2, 0.4, 0.8, 1.6)
DELTA = 1e-6
FIRST_SEED = 1_000_000
"""Noise has seeds of its own, so that it does not repeat the draws that made the splits."""
LEAST_CHANCE = 1e-15
"""Where a method is sure and wrong, its log-loss is cut here, as scikit-learn's is."""
SO_MUCH_EPSILON, SMALL_RIDGE = 1e4, 1.0
"""How "no noise" is fitted: by the same code, with a noise of about k / 5000 on sums over thousands of rows, k columns,
and a ridge of 1.
"""

DEFAULT, NO_NOISE, MAJORITY, PEER, TUNED_PEER = (
    "privfit",
    "no noise",
    "majority class",
    "diffprivlib",
    "diffprivlib tuned",
)

PEER_CS = (1.0, 0.1, 0.01, 0.003, 0.001, 0.0003)
"""One over the ridge. 1 is diffprivlib's default; it knows no rule for noise, and on these tables far smaller ones do
better.
"""


def _maker(**parameters: Any) -> Make:
    def make(epsilon: float, schema: Schema, seed: int) -> LogisticRegression:
        given: dict[str, Any] = {"epsilon": epsilon, "schema": schema, "random_state": seed}
        return LogisticRegression(**(given | parameters))

    return make


METHODS: Mapping[str, Make] = {
    DEFAULT: _maker(),
    "8 knots": _maker(numeric="splines"),
    "no interactions": _maker(interactions=0),
    "delta 1e-6": _maker(delta=DELTA),
    "logistic loss": _maker(mechanism=ObjectivePerturbation(steepest=1.0)),
    "bins": _maker(numeric="bins"),
    "functional": _maker(mechanism="functional"),
    "output": _maker(mechanism="output"),
}
"""The default, and what differs from it in one choice.

"8 knots" has splines whatever the number of rows; "no interactions" is a sum over columns; "logistic loss" is the one
that is not tempered, a sum over columns too.
"""
WITHOUT_NOISE: Mapping[str, Make] = {
    NO_NOISE: _maker(
        epsilon=SO_MUCH_EPSILON, numeric="splines", mechanism=ObjectivePerturbation(ridge=SMALL_RIDGE, steepest=1.0)
    ),
}
MEASURES = ("error", "auc", "log_loss")


# -- results ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Score:
    """How one fit does on test rows: the share of wrong classes, the area under the curve, and the mean of minus the
    logarithm of the true class's probability.
    """

    error: float
    auc: float
    log_loss: float

    @classmethod
    def of(cls, log_odds: Floats, is_second: NDArray[np.bool_]) -> Score:
        """From the log-odds of the second class. What scores alike counts half in the area."""
        odds = np.clip(log_odds, np.log(LEAST_CHANCE), -np.log(LEAST_CHANCE))
        losses = np.logaddexp(0.0, np.where(is_second, -odds, odds))
        return cls(
            float(np.mean((log_odds > 0) != is_second)), float(roc_auc_score(is_second, odds)), float(losses.mean())
        )


@dataclass(frozen=True)
class Spread:
    """Means and standard deviations of a method's scores over random splits. Without an epsilon there was no noise."""

    table: str
    method: str
    epsilon: float | None
    runs: int
    error: float
    error_deviation: float
    auc: float
    auc_deviation: float
    log_loss: float
    log_loss_deviation: float

    @classmethod
    def of(cls, table: str, method: str, epsilon: float | None, scores: Sequence[Score]) -> Spread:
        """The spread of scores, one a split."""
        spread: dict[str, float] = {}
        for measure in MEASURES:
            values = [getattr(score, measure) for score in scores]
            spread |= {measure: float(np.mean(values)), f"{measure}_deviation": float(np.std(values))}
        return cls(table, method, epsilon, len(scores), **spread)

    def to_dict(self) -> dict[str, float | str | int | None]:
        """As plain values."""
        return asdict(self)


Scores = dict[tuple[str, float | None], Score]
"""Of methods by name and epsilon; None where there is no noise."""


# -- methods ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Split:
    """Rows to fit on, rows to test on, and which of the latter are of the second class."""

    train: pl.DataFrame
    test: pl.DataFrame
    schema: Schema

    @property
    def target(self) -> Category:
        """The classes."""
        assert isinstance(self.schema.target, Category)
        return self.schema.target

    def is_second(self, part: pl.DataFrame) -> NDArray[np.bool_]:
        """Which rows are of the second of the sorted classes, as estimators count them."""
        return (part.get_column(self.target.name) == sorted(self.target.levels)[1]).to_numpy()

    def score(self, model: Any) -> Score:
        """How a classifier that is fitted here does."""
        logs = model.fit(self.train).predict_log_proba(self.test)
        return Score.of(logs[:, 1] - logs[:, 0], self.is_second(self.test))

    def majority(self) -> Score:
        """How the shares of the classes alone do."""
        share = float(self.is_second(self.train).mean())
        return Score.of(np.full(self.test.height, np.log(share / (1 - share))), self.is_second(self.test))


def split_at_random(frame: pl.DataFrame, schema: Schema, seed: int) -> Split:
    """Four fifths to fit on, one to test on. The same split for the same seed."""
    order = seeded_generator(seed).permutation(frame.height)
    cut = int(TRAIN_SHARE * frame.height)
    return Split(frame[order[:cut]], frame[order[cut:]], schema)


def peer_scores(peer: PeerClassifier, split: Split, epsilons: Sequence[float], seed: int) -> Scores:
    """diffprivlib's logistic regression on privfit's encoding with 8 knots, whose columns carry the constant: as it
    comes, and with the C that has the fewest test errors.

    The latter is no private method: it is as well as any rule for C among PEER_CS could do. The norm it is given is the
    largest that the schema allows.
    """
    geometry = split.schema.geometry(numeric="splines", intercept=False)
    test, truth = encoded_rows(split.test, split.schema, geometry), split.is_second(split.test)
    found: Scores = {}
    with tempfile.TemporaryDirectory() as folder:
        paths = Path(folder) / "X.npy", Path(folder) / "y.npy"
        np.save(paths[0], encoded_rows(split.train, split.schema, geometry))
        np.save(paths[1], split.is_second(split.train).astype(np.int64))
        for epsilon in epsilons:
            scores = []
            for inverse in PEER_CS:
                told = peer.fit(
                    *paths, epsilon=epsilon, data_norm=geometry.l2, fit_intercept=False, C=inverse, random_state=seed
                )
                scores.append(Score.of(test @ np.array(told["coef"]) + told["intercept"], truth))
            found[PEER, epsilon], found[TUNED_PEER, epsilon] = scores[0], min(scores, key=lambda score: score.error)
    return found


# -- the comparison --------------------------------------------------------------------------------


def class_spreads(
    table: str,
    frame: pl.DataFrame,
    schema: Schema,
    methods: Mapping[str, Make] = METHODS,
    epsilons: Sequence[float] = EPSILONS,
    runs: int = 20,
    peer: PeerClassifier | None = None,
) -> list[Spread]:
    """The scores of every method and epsilon over `runs` random 80/20 splits, beside the same fit without noise and the
    majority class.

    Run i has the same split and the same seed for every method and epsilon.
    """
    gathered: dict[tuple[str, float | None], list[Score]] = {}
    for run in range(runs):
        split, seed = split_at_random(frame, schema, run), FIRST_SEED + run
        scores: Scores = {
            (name, epsilon): split.score(make(epsilon, schema, seed))
            for name, make in methods.items()
            for epsilon in epsilons
        }
        if peer is not None:
            scores |= peer_scores(peer, split, epsilons, seed)
        scores |= {(name, None): split.score(make(1.0, schema, seed)) for name, make in WITHOUT_NOISE.items()}
        scores[MAJORITY, None] = split.majority()
        for key, score in scores.items():
            gathered.setdefault(key, []).append(score)
    return [Spread.of(table, name, epsilon, scores) for (name, epsilon), scores in gathered.items()]
