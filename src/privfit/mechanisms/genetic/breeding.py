"""How candidates beget candidates: crossover and mutation, which never see the data.

Zhang, Xiao, Yang, Zhang, Winslett: PrivGene, SIGMOD 2013, section 3.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from privfit.mechanisms.genetic.operators import Crossover, Mutate, Setting, crossed, mutated, try_operators
from privfit.privacy import PrivacyError
from privfit.privacy.samplers.norms import Source

Floats = NDArray[np.float64]

UNIFORM_STEPS = 1 << 30
"""Uniform numbers are integers up to this, divided by it: far finer than any step of a candidate."""


@dataclass(frozen=True)
class Breeding:
    """The settings of a genetic search.

    Parameters
    ----------
    candidates : how many candidates a round has (m in the paper).
    parents : how many of them are selected (m').
    mutation : how far a mutation moves a coordinate in the first round, as a share of its domain.
    decay : by what factor that shrinks from round to round.
    elitism : whether the parents stay among the candidates; in Algorithm 1 of the paper they do not.
    crossover, mutate : functions of the user's own in the place of those of the paper.
    """

    candidates: int = 200
    parents: int = 1
    mutation: float = 0.05
    decay: float = 0.95
    elitism: bool = True
    crossover: Crossover | None = None
    mutate: Mutate | None = None

    def check(self) -> None:
        """Refuse settings that mean nothing."""
        for name, value, least in (("candidates", self.candidates, 2), ("parents", self.parents, 1)):
            if isinstance(value, bool) or not hasattr(value, "__index__") or int(value) < least:
                raise PrivacyError(
                    f"{name}={value!r} was given; it is an integer of at least {least}. Leave it out if in doubt."
                )
        if self.parents >= self.candidates:
            raise PrivacyError(
                f"parents={self.parents} of candidates={self.candidates} were given; fewer are selected than there "
                "are. Use parents=1 if in doubt."
            )
        for name, number in (("mutation", self.mutation), ("decay", self.decay)):
            if isinstance(number, bool) or not isinstance(number, int | float) or not 0 < number <= 1:
                raise PrivacyError(
                    f"{name}={number!r} was given; it is above 0 and at most 1. Leave it out if in doubt."
                )
        if not isinstance(self.elitism, bool):
            raise PrivacyError(f"elitism={self.elitism!r} was given; it is True or False. Leave it out if in doubt.")
        for name, function in (("crossover", self.crossover), ("mutate", self.mutate)):
            if function is not None and not callable(function):
                raise PrivacyError(
                    f"{name}={type(function).__name__} was given; it is None or a function of candidates, such as "
                    f"pf.{name.capitalize()} describes. Leave it out if in doubt."
                )

    def step(self, breeding: int) -> float:
        """How far a mutation goes when candidates are bred for the n-th time, as a share of the domain."""
        return self.mutation * self.decay**breeding

    def rehearse(self, low: Floats, high: Floats) -> None:
        """Try the user's functions on made-up candidates, as many as a round has: what they raise is reported."""
        try_operators(self.crossover, self.mutate, self._wanted(self.parents), Setting(low, high, 0, self.step(0)))

    def offspring(self, parents: Floats, low: Floats, high: Floats, breeding: int, source: Source) -> Floats:
        """New candidates from the parents: two by two they swap their ends, then each moves in one coordinate.

        The parents themselves stay among them, unless there is no elitism.

        Every coordinate can be met by a mutation. (As printed in the paper the last one, which is the constant of a
        classifier, never is.)

        Guarantee: a function of the parents, public facts and random integers alone, of as many candidates as public
        facts say, all within the bounds; docs/proofs/selection.md, Lemma 9.
        """
        setting = Setting(low, high, breeding, self.step(breeding))
        children = self._mutated(self._crossed(parents, setting, source), setting, source)
        return np.concatenate([parents, children]) if self.elitism else children

    def _wanted(self, parents: int) -> int:
        return self.candidates - parents if self.elitism else self.candidates

    def _crossed(self, parents: Floats, setting: Setting, source: Source) -> Floats:
        wanted = self._wanted(len(parents))
        if self.crossover is None and len(parents) == 1:
            return np.repeat(parents, wanted, axis=0)
        first, second = _pairs(len(parents), -(-wanted // 2), source)
        one, other = parents[first], parents[second]
        if self.crossover is not None:
            return crossed(self.crossover, one, other, setting, source)[:wanted]
        width = parents.shape[1]
        cut = 1 + source.below(np.full(len(first), max(width - 1, 1), dtype=np.int64))
        head = np.arange(width) < cut[:, None]
        return np.concatenate([np.where(head, one, other), np.where(head, other, one)])[:wanted]

    def _mutated(self, children: Floats, setting: Setting, source: Source) -> Floats:
        if self.mutate is not None:
            return mutated(self.mutate, children, setting, source)
        wanted, width = children.shape
        place = source.below(np.full(wanted, width, dtype=np.int64))
        sign = 2 * source.below(np.full(wanted, 2, dtype=np.int64)) - 1
        children[np.arange(wanted), place] += sign * setting.step * (setting.high - setting.low)[place]
        return np.clip(children, setting.low, setting.high)


def _pairs(parents: int, pairs: int, source: Source) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The places of two parents for every pair: two different ones, where there are two."""
    if parents == 1:
        return np.zeros(pairs, dtype=np.int64), np.zeros(pairs, dtype=np.int64)
    first = source.below(np.full(pairs, parents, dtype=np.int64))
    second = (first + 1 + source.below(np.full(pairs, parents - 1, dtype=np.int64))) % parents
    return first, second


def scattered(count: int, low: Floats, high: Floats, source: Source) -> Floats:
    """Candidates anywhere in the domain, all places equally likely."""
    drawn = source.below(np.full(count * len(low), UNIFORM_STEPS + 1, dtype=np.int64)).reshape(count, len(low))
    return np.asarray(np.clip(low + (high - low) * (drawn / UNIFORM_STEPS), low, high), dtype=np.float64)
