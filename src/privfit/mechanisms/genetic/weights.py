"""PrivGene as it is printed: a population of weight vectors, with selection, crossover and mutation.

Zhang, Xiao, Yang, Zhang, Winslett: PrivGene, SIGMOD 2013, Algorithms 1 and 2 and section 5. The dampening factor is the
range bound of the candidates, or the paper's own constants.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from privfit.losses.margins import GRAIN, PER_STEP, MarginLoss
from privfit.mechanisms.genetic.breeding import Breeding, scattered
from privfit.mechanisms.genetic.scores import Scorer, ScoreSensitivity
from privfit.privacy import PrivacyParameters
from privfit.privacy.samplers.norms import Source
from privfit.rows import CachedDesign, losses_of
from privfit.rows.fixed_point import SLOPE_BITS
from privfit.rows.margins import CANDIDATES_AT_ONCE
from privfit.schema import Geometry

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

FARTHEST = 5.0
"""The search box of the paper, section 6: weights from -5 to 5."""
CONSTANTS = 0.05
"""The share of first candidates that predict one class for all rows; as many predict the other."""
EXACT = 1 << 53
"""Sums of integers up to here are exact in floats, in any order."""
MOST_PENALTY = 2.0**62
"""Larger penalties count as this, so that a score, whose losses add up to no more than that, fits 64 bits: one that
wrapped round would be another's best because of one row.
"""
HINGE_WEIGHT = 10.0
"""C of the paper, section 6: how much a hinge loss weighs beside half the squared weights."""


@dataclass
class PrintedFactor:
    """The dampening factors that the paper prints, in units of C: equations 11, 13, 15 and 16.

    For a hinge with one parent the text after equation 16 has, from the second round on, "2C times the mutation scale",
    which is half of what it must be.
    """

    hinge: bool
    breeding: Breeding
    box: float = FARTHEST
    rounds: int = 0

    def __call__(self, weights: Floats, by_range: bool) -> float:
        change = 2 * float(np.abs(weights).sum(axis=1).max() + 1)
        self.rounds += 1
        if not by_range:
            return change
        if self.hinge and self.rounds > 1 and self.breeding.parents == 1:
            return min(change, 2 * self.breeding.step(self.rounds - 2) * 2 * self.box)
        apart = max(float(np.abs(weights - one).sum(axis=1).max()) for one in weights)
        return min(change, 2 * (apart + 1 / GRAIN))  # margins are rounded


class WeightScorer(Scorer):
    """Scores of weight vectors: minus the loss of all rows, and minus half the squared weights over C, where there is
    a C. The first weight, the constant, is not penalised.

    That is the paper's objective over C, whose dampening factor is the one here times C: the same choices.
    """

    def __init__(
        self,
        kept: CachedDesign,
        loss: MarginLoss,
        geometry: Geometry,
        C: float | None = None,
        printed: PrintedFactor | None = None,
    ) -> None:
        self._kept, self._loss, self._geometry = kept, loss, geometry
        self._C, self._printed = C, printed

    def sensitivity(self, candidates: Floats, parameters: PrivacyParameters, by_range: bool) -> ScoreSensitivity:
        """The most by which one row can change the difference of two scores, in units of the loss.

        Guarantee: docs/proofs/selection.md, Lemma 7; with the printed constants it holds for the logistic loss alone.
        """
        whole = on_lattice(candidates)
        if self._printed is not None:
            return ScoreSensitivity(self._printed(whole / GRAIN, by_range))
        replaced = parameters.adjacency == "replace-one"
        largest = min(int(largest_score(whole, self._geometry).max()) + 1, self._loss.reach)
        change = 2 * self._loss.change(largest, replaced) / self._loss.unit
        if not by_range:
            return ScoreSensitivity(change)
        steepest = float(np.max(-np.diff(self._loss.values)))
        apart = float(widest_apart(whole, self._geometry)) + 1  # margins are rounded
        spread = min(apart * steepest, float(self._loss.change(largest, True))) / self._loss.unit
        return ScoreSensitivity(min((2 if replaced else 1) * spread, change))

    def __call__(self, candidates: Floats, sensitivity: ScoreSensitivity) -> tuple[Integers, int]:
        whole = on_lattice(candidates)
        scores = -self._losses(whole)
        if self._C is not None:
            penalty = 0.5 * np.sum((whole[:, 1:] / GRAIN) ** 2, axis=1) / self._C
            scores = scores - np.rint(np.minimum(penalty * self._loss.unit, MOST_PENALTY)).astype(np.int64)
        return scores, int(np.ceil(sensitivity.most * self._loss.unit * (1 + 2.0**-40)))

    def _losses(self, whole: Integers) -> Integers:
        """The loss of every candidate over all rows: of each only once, and of those that move one level of the middle
        of all candidates, which is their parent where they have one, by what that changes.
        """
        distinct, places = np.unique(np.concatenate([middle_of(whole), whole]), axis=0, return_inverse=True)
        places = places.ravel()
        first = int(places[0])
        moves = distinct - distinct[first]
        column = np.argmax(moves != 0, axis=1)
        step = moves[np.arange(len(moves)), column]
        lone = ((moves != 0).sum(axis=1) == 1) & self._is_level[column]
        lone &= self._kept.n_rows * _largest_change(step) < EXACT and _largest_change(step) <= 1 << SLOPE_BITS
        losses = np.empty(len(distinct), dtype=np.int64)
        losses[~lone] = losses_of(self._kept, self._loss, distinct[~lone].T)
        losses[lone] = losses[first] + self._changes(distinct[first], column[lone], step[lone])
        return np.asarray(losses[places[1:]], dtype=np.int64)

    def _changes(self, parent: Integers, column: Integers, step: Integers) -> Integers:
        """What the loss of all rows changes by where one level of the parent moves: a row in it moves by the step, the
        others not at all. Sums of integers, exact in floats.
        """
        if not len(step):
            return step
        sizes, which = np.unique(step, return_inverse=True)
        few = [sizes[start : start + CANDIDATES_AT_ONCE] for start in range(0, len(sizes), CANDIDATES_AT_ONCE)]
        changes = np.concatenate([self._changed(parent, some) for some in few], axis=1)
        return np.asarray(np.rint(changes[column, which.ravel()]), dtype=np.int64)

    def _changed(self, parent: Integers, sizes: Integers) -> Floats:
        """For every level and every size of a step, what all rows of the level change by: (columns, sizes)."""
        weights = np.repeat(parent[:, None].astype(np.float64), len(sizes), axis=1)
        return self._kept.gradient(weights, LossChange(self._loss, sizes), float(_largest_change(sizes)))

    @cached_property
    def _is_level(self) -> NDArray[np.bool_]:
        """Which encoded columns are 1 for rows in a level, and 0 for all others."""
        found = np.zeros(self._geometry.n_columns, dtype=np.bool_)
        for block in self._geometry.blocks:
            found[block.start : block.stop] = block.kind == "levels"
        return found


@dataclass(frozen=True)
class LossChange:
    """What a row's loss changes by where its predictor moves by each of some steps."""

    loss: MarginLoss
    sizes: Integers

    def __call__(self, scores: Floats, target: Floats) -> Floats:
        steps, side = (self.sizes, target[:, None]) if scores.ndim == 2 else (self.sizes[0], target)
        return self._looked_up((scores + steps) * side) - self._looked_up(scores * side)

    def _looked_up(self, margins: Floats) -> Floats:
        reach = self.loss.reach
        places = np.clip(np.rint(margins).astype(np.int64), -reach, reach) + reach
        return np.asarray(self.loss.values.take(places), dtype=np.float64)


def _largest_change(steps: Integers) -> int:
    """What one row's loss can change by where its margin moves by such steps: one that is rounded moves by one more."""
    return (int(np.abs(steps).max(initial=0)) + 1) * PER_STEP


def on_lattice(candidates: Floats) -> Integers:
    """Weights in lattice steps."""
    return np.asarray(np.rint(candidates * GRAIN), dtype=np.int64)


def middle_of(candidates: Integers) -> Integers:
    """The median of every coordinate, as one candidate: the parent of candidates that differ from it in one coordinate
    each, whether it is among them or not.
    """
    return np.asarray(np.sort(candidates, axis=0)[len(candidates) // 2][None], dtype=np.int64)


def largest_score(weights: Integers, geometry: Geometry) -> Integers:
    """The largest |x'w| of an encoded row, for each line of weights: every block counts with its largest weight."""
    total = np.abs(weights[:, 0]) if geometry.intercept else np.zeros(len(weights), dtype=np.int64)
    for block in geometry.blocks:
        total = total + np.abs(weights[:, block.start : block.stop]).max(axis=1)
    return np.asarray(total, dtype=np.int64)


def widest_apart(weights: Integers, geometry: Geometry) -> int:
    """The largest |x'(w - w')| of an encoded row and two candidates: every block counts with the level in which they
    differ most.
    """
    distinct = np.unique(weights, axis=0)
    total = np.zeros((len(distinct), len(distinct)), dtype=np.int64)
    spans = [(0, 1)] if geometry.intercept else []
    for start, stop in [*spans, *((block.start, block.stop) for block in geometry.blocks)]:
        widest = np.zeros_like(total)
        for column in distinct[:, start:stop].T:
            if column.min() < column.max():
                np.maximum(widest, np.abs(column[:, None] - column), out=widest)
        total += widest
    return int(total.max())


def first_candidates(
    count: int, geometry: Geometry, source: Source, box: float = FARTHEST, constants: bool = True
) -> tuple[Floats, Floats, Floats]:
    """The first set, and the bounds of weights: candidates anywhere in the box (Algorithm 1, line 1); with `constants`,
    the paper's heuristic, some that predict the one or the other class for all rows (section 5.4).
    """
    low, high = np.full(geometry.n_columns, -box), np.full(geometry.n_columns, box)
    found = scattered(count, low, high, source)
    if constants:
        many = round(CONSTANTS * count)
        found[: 2 * many, 1:] = 0.0
        sizes = scattered(2 * many, np.full(1, 1 / GRAIN), np.full(1, box), source)[:, 0]
        found[: 2 * many, 0] = np.where(np.arange(2 * many) < many, sizes, -sizes)
    return found, low, high
