"""A private choice among releases: the best of a few, or the best of a random number of random ones."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from privfit.mechanisms.base import Mechanism, Numbers, PublicFacts, ReleasePlan
from privfit.privacy import Draws, Event, PrivacyError, exact
from privfit.privacy.event import laplace_scale
from privfit.privacy.parts import Laplace, Part, RandomBits, Repeat, Selection
from privfit.rows import Rows
from privfit.schema import Geometry, Schema, make_block

MOST_COMPOSED = 3
"""Up to so many candidates share epsilon: each of four would get a quarter, and random stopping gives a third."""
DRAWS_PER_CANDIDATE = 4
"""Random stopping draws so many times the number of other candidates on average: more miss the best less often and take
longer. Chosen, not measured."""
MOST_CANDIDATES = 1000
"""More would take longer than anybody waits. Chosen, not measured."""


class Trials(ABC):
    """What is chosen among: candidates are fitted on one part of the rows and scored on the other."""

    number: int
    """How many candidates there are."""
    unit: int
    """The most that one row can change a score."""

    def reasons_not_private(self) -> tuple[str, ...]:
        """Why fits of candidates are not private; empty where all are."""
        return ()

    @abstractmethod
    def divide(self, key: bytes) -> int:
        """Divide the rows by a key, and meet every error that they hold; how many rows there are."""

    @abstractmethod
    def run(self, place: int, epsilon: float, seed: int) -> tuple[Any, int]:
        """A candidate fitted at this epsilon, and its whole score on the other rows. It never fails."""


@dataclass(frozen=True)
class ChoicePlan(ReleasePlan):
    """The epsilon of each fit, and the scale of noise on scores, or of the choice."""

    each: float
    scale: float
    repeats: bool


@dataclass(frozen=True)
class BestOf(Mechanism[Trials, ChoicePlan, Trials, tuple[int, Any]]):
    """The best of several candidates, each fitted on some rows and scored on the others.

    Up to three share epsilon, and one of them is chosen by permute-and-flip. Of more, random ones are fitted and scored
    at a third of epsilon until a random stop, and the best is kept.

    Guarantee: epsilon-DP, replace-one or add-remove, for one row per person; docs/proofs/search.md, Theorem 2. The
    number of fits is hidden, as far as time does not show it.
    Domain: at least one row, no refused cell, no more rows than stated; docs/proofs/errors-and-stops.md.
    """

    name = "private search"
    many_classes = True

    def reasons_not_private(self, problem: Trials) -> tuple[str, ...]:
        """Those of every candidate: a choice among fits that are not private is none."""
        return problem.reasons_not_private()

    def geometry(self, schema: Schema, problem: Trials, numeric: Numbers = "slope") -> Geometry:
        """The target alone: fits encode rows themselves."""
        assert schema.target is not None
        return Geometry((), False, make_block(schema.target, 0, whole=True))

    def plan(self, facts: PublicFacts, problem: Trials) -> ChoicePlan:
        """The choice, from the number of candidates."""
        parameters, few = facts.parameters, problem.number <= MOST_COMPOSED
        if int(parameters.rows_per_person) != 1 or parameters.budget.delta:
            raise PrivacyError(
                "A private search was asked for with a delta or with several rows per person, for which its price is "
                "not proved. Use delta=0 and one row per person. Nothing was charged."
            )
        epsilon = exact(parameters.budget.epsilon)
        each, score = (epsilon / problem.number, epsilon) if few else (epsilon / 3, epsilon / 3)
        sensitivity = problem.unit * (2 if few and parameters.adjacency == "replace-one" else 1)
        scale, spent = laplace_scale(sensitivity, score), float(score)
        bits = RandomBits(purpose="which rows choose")
        choice: Part = Selection(rule="permute-and-flip", scale=scale, sensitivity=sensitivity, epsilon=spent)
        if not few:
            noise = Laplace(size=1, scale=scale, sensitivity=sensitivity, unit=problem.unit, epsilon=spent)
            stop = DRAWS_PER_CANDIDATE * (problem.number - 1)
            one = (RandomBits(purpose="a candidate, which is fitted"), noise)
            choice = Repeat(parts=one, one_in=stop, epsilon=float(epsilon))
        event = Event(
            f"{self.name} among {problem.number}",
            parameters.budget.epsilon,
            adjacency=parameters.adjacency,
            parts=(bits, RandomBits(purpose="seeds"), choice) if few else (bits, choice),
        )
        return ChoicePlan(event, facts, _rounded_down(each), scale, not few)

    def read(self, rows: Rows, plan: ChoicePlan, problem: Trials, draws: Draws) -> Trials:
        """Divide the rows, and meet every error that they hold."""
        rows.was_counted(problem.divide(np.packbits(draws.random_bits().ones(0, 256, 128)).tobytes()))
        return problem

    def draw(self, data: Trials, plan: ChoicePlan, draws: Draws) -> tuple[int, Any]:
        """The place of the best candidate, and its fit."""
        if not plan.repeats:
            seeds = draws.random_integers().below(np.full(data.number, 1 << 31, dtype=np.int64))
            runs = [data.run(place, plan.each, int(seed)) for place, seed in enumerate(seeds)]
            chosen = draws.select([score for _, score in runs])
            return chosen, runs[chosen][0]
        best: tuple[int, Any] | None = None
        most = 0
        while True:
            place, seed = draws.random_integers().below(np.array([data.number, 1 << 31], dtype=np.int64)).tolist()
            fit, score = data.run(place, plan.each, seed)
            noisy = int(draws.add(np.array([score], dtype=np.int64))[0])
            if best is None or noisy > most:
                best, most = (place, fit), noisy
            if draws.stops():
                return best


def _rounded_down(epsilon: Fraction) -> float:
    """A float that costs no more: so many of them together are not above the price."""
    part = float(epsilon)
    return part if exact(part) <= epsilon else math.nextafter(part, 0.0)
