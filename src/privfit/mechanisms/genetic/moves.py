"""Weights that move round by round: every level of one column, up or down, by a private choice among all patterns, or
among candidates that are listed.

A row is in one level of a column, so that moving all levels costs no more than moving one of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby
from typing import Literal, cast

import numpy as np
from numpy.typing import NDArray

from privfit.losses.margins import GRAIN, PER_STEP, MarginLoss
from privfit.mechanisms.base import ReleasePlan
from privfit.mechanisms.genetic.selections import Choices
from privfit.mechanisms.perturbation.problem import ERMFit
from privfit.privacy import Draws, Event, PrivacyParameters
from privfit.privacy.parts import Part, RandomBits, Repeat, Selection
from privfit.privacy.samplers.norms import Source
from privfit.privacy.samplers.patterns import Chain
from privfit.rows import CachedDesign, MarginRows, one_against_rest

Integers = NDArray[np.int64]

Moves = Literal["columns", "coordinates", "genes"]
Move = tuple[int, tuple[int | None, ...]]
"""A column, and for each of its levels 1 (up), 0 (down) or None (it stays)."""


@dataclass(frozen=True)
class MoveSchedule:
    """The steps of the rounds, in lattice steps, the loss that is scored, and what the choices may spend."""

    steps: tuple[int, ...]
    loss: MarginLoss
    choices: Choices
    C: float | None = None
    """How much the loss weighs beside half the squared weights of levels and knots; None leaves these out."""
    classes: int = 1
    """How many predictors are searched, one after the other; 1 for two classes."""

    def within(self, place: int) -> int:
        """The largest margin that any row can have before a round: the sum of all earlier steps."""
        return sum(self.steps[:place])

    def sensitivity(self, place: int, parameters: PrivacyParameters) -> int:
        """The most by which one person can change the difference of two candidates' scores in a round.

        Guarantee: docs/proofs/selection.md, Lemma 6.
        """
        replaced, rows = parameters.adjacency == "replace-one", int(parameters.rows_per_person)
        if self.choices.by_range:
            return self.loss.spread(self.within(place), self.steps[place]) * (2 if replaced else 1) * rows
        return 2 * self.loss.change(self.within(place) + self.steps[place], replaced) * rows

    def event(self, listed: int) -> Event:
        """All that is drawn; `listed` is how many candidates are listed in a round, 0 for all patterns.

        An epsilon too small for 64 bits is refused.
        """
        parameters = self.choices.parameters
        rounds = len(self.steps)
        selections = [
            self.choices.part(number * rounds + place, sensitivity=self.sensitivity(place, parameters))
            for number in range(self.classes)
            for place in range(rounds)
        ]
        return self.choices.event(_in_short(selections, listed > 0))


def _in_short(selections: list[Selection], listed: bool) -> Iterator[Part]:
    """Choices one after the other, with the random bits that list candidates; equal ones together."""
    for part, equal in groupby(selections):
        times = len(list(equal))
        own: tuple[Part, ...] = (RandomBits(purpose="listed candidates"), part) if listed else (part,)
        if times > 1:
            yield Repeat(parts=own, times=times, epsilon=times * part.epsilon, rho=times * part.rho)
        else:
            yield from own


@dataclass(frozen=True)
class MovesPlan(ReleasePlan):
    """All that is decided before a row is read. `listed` is how many candidates a round has, 0 for all patterns."""

    schedule: MoveSchedule
    moves: Moves
    listed: int

    def fit(self, kept: CachedDesign, draws: Draws) -> ERMFit:
        """Let the weights move, round by round."""
        classes = self.schedule.classes
        weights = np.stack([self._moved(own, draws) for own in one_against_rest(kept, classes)], axis=1)
        ridge = 0.0 if self.schedule.C is None else 1 / self.schedule.C
        return ERMFit(weights / GRAIN, ridge, self.schedule.loss.loss, "one" if classes == 1 else "one-vs-rest")

    def _moved(self, kept: CachedDesign, draws: Draws) -> Integers:
        """The weights of one predictor after all rounds."""
        margins = MarginRows(kept, self.schedule.loss)
        for step in self.schedule.steps:
            column, signs = self._chosen(self._chains(margins, step), draws)
            margins.move(column, signs, step)
        return margins.weights

    def _chains(self, margins: MarginRows, step: int) -> list[Chain]:
        """What moves gain on the rows, less what they add to half the squared weights over C: a function of weights
        that were chosen privately.
        """
        C, first, chains = self.schedule.C, 0, []
        for alone, linked in margins.gains(step):
            weights = margins.weights[first : first + len(alone)]
            first += len(alone)
            chains.append(Chain(alone if C is None else alone - penalties(weights, step, C), linked))
        return chains

    def _chosen(self, chains: list[Chain], draws: Draws) -> Move:
        if not self.listed:
            return draws.pattern(chains)
        candidates = self._candidates(chains, draws.random_integers())
        scores = [0 if move is None else _gain(chains[move[0]], move[1]) for move in candidates]
        return candidates[draws.select(scores)] or (0, (None,) * chains[0].levels)

    def _candidates(self, chains: list[Chain], source: Source) -> list[Move | None]:
        """Candidates at random, and first of all the parent itself."""
        wanted = self.listed - 1
        levels = np.array([chain.levels for chain in chains])
        if self.moves == "columns":
            columns = source.below(np.full(wanted, len(chains), dtype=np.int64))
            signs = iter(source.below(np.full(int(levels[columns].sum()), 2, dtype=np.int64)).tolist())
            return [None, *((int(column), tuple(next(signs) for _ in range(levels[column]))) for column in columns)]
        ends = np.cumsum(levels)
        places = source.below(np.full(wanted, ends[-1], dtype=np.int64))
        columns = np.searchsorted(ends, places, side="right")
        signs_ = source.below(np.full(wanted, 2, dtype=np.int64)).tolist()
        found: list[Move | None] = [None]
        for column, place, sign in zip(columns.tolist(), places.tolist(), signs_, strict=True):
            own = place - int(ends[column] - levels[column])
            found.append((column, tuple(sign if level == own else None for level in range(levels[column]))))
        return found


def penalties(weights: Integers, step: int, C: float) -> Integers:
    """What half the squared weights over C grow by where a level moves down or up by a step: (levels, 2).

    Weights and steps are in lattice steps, the result is in units of the loss.
    """
    grown = (weights[:, None] + step * np.array([-1, 1])) ** 2 - weights[:, None] ** 2
    return np.asarray(np.rint(grown * (PER_STEP / (2 * GRAIN * C))), dtype=np.int64)


def _gain(chain: Chain, signs: tuple[int | None, ...]) -> int:
    """What a pattern gains in which levels may stay.

    A knot that moves alone is no such pattern: its neighbours' rows move by shares of their own.
    """
    if None not in signs:
        return chain.gain(cast(tuple[int, ...], signs))
    assert chain.linked is None
    return sum(int(chain.alone[level, sign]) for level, sign in enumerate(signs) if sign is not None)
