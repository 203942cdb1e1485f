"""The rounds of a genetic search: private choices among candidates, and new candidates bred from those chosen."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from privfit.mechanisms.base import USUAL_ROWS
from privfit.mechanisms.genetic.breeding import Breeding
from privfit.mechanisms.genetic.scores import Scorer
from privfit.mechanisms.genetic.selections import Choices, SelectionRule, plan_choices
from privfit.privacy import Draws, Event, PrivacyError, PrivacyParameters
from privfit.privacy.parts import Part, RandomBits, Repeat

Floats = NDArray[np.float64]
NumberOfRounds = int | Literal["auto"]

ROUNDS_PER_ROW = 1.25e-3
"""The constant c of the paper, section 6: rounds for every row and unit of epsilon."""
MOST_ROUNDS = 10_000
"""Every round passes over the rows and has its share of epsilon; more would have none. The proof of PrivGene counts
with it."""
FIRST_CANDIDATES, OFFSPRING = "first candidates", "offspring"


@dataclass(frozen=True)
class SearchRounds:
    """How many rounds there are, and what their choices may spend, from public facts."""

    breeding: Breeding
    count: int
    choices: Choices
    searches: int = 1
    """How many searches are paid for, one after the other, each with so many rounds."""

    @property
    def choices_each(self) -> int:
        """How many choices a search makes."""
        return (self.count - 1) * self.breeding.parents + 1

    def event(self, first: int | None = None) -> Event:
        """All that is drawn: the first candidates, unless so many are given, then round by round the choice of parents
        and the random bits of their offspring, and the last choice.
        """
        return self.choices.event(part for _ in range(self.searches) for part in self._parts(first))

    def _parts(self, first: int | None) -> Iterator[Part]:
        parents, left = self.breeding.parents, self.count - 1
        if first is None:
            yield RandomBits(purpose=FIRST_CANDIDATES)
        elif left and first < parents:  # the first round has fewer candidates than parents are wanted
            yield self.choices.part(0, first)
            yield RandomBits(purpose=OFFSPRING)
            left -= 1
        if left:
            chosen = self.choices.part(0, parents)
            yield Repeat(
                parts=(chosen, RandomBits(purpose=OFFSPRING)),
                times=left,
                epsilon=left * chosen.epsilon,
                rho=left * chosen.rho,
            )
        yield self.choices.part((self.count - 1) * parents)

    def search(
        self, scores: Scorer, low: Floats, high: Floats, draws: Draws, candidates: Floats, place: int = 0
    ) -> Floats:
        """The winner of all rounds, from these candidates on; `place` is which search it is, of those that are paid
        for.
        """
        parents, first = self.breeding.parents, place * self.choices_each
        for number in range(self.count - 1):
            kept = self._selected(scores, candidates, min(parents, len(candidates)), first + number * parents, draws)
            candidates = self.breeding.offspring(candidates[kept], low, high, number, draws.random_integers())
        (best,) = self._selected(scores, candidates, 1, first + self.choices_each - 1, draws)
        return np.asarray(candidates[best], dtype=np.float64)

    def _selected(self, scores: Scorer, candidates: Floats, wanted: int, first: int, draws: Draws) -> list[int]:
        """The places of some candidates, taken one after the other from those that are left."""
        choices, parameters = self.choices, self.choices.parameters
        integers, sensitivity = scores(candidates, scores.sensitivity(candidates, parameters, choices.by_range))
        sensitivity *= int(parameters.rows_per_person)
        left, taken = list(range(len(candidates))), []
        for place in range(wanted):
            found = draws.select([int(integers[i]) for i in left], scale=choices.scale(first + place, sensitivity))
            taken.append(left.pop(found))
        return taken


def plan_rounds(
    parameters: PrivacyParameters,
    n_rows: int | None,
    selection: SelectionRule,
    breeding: Breeding,
    rounds: NumberOfRounds,
    searches: int = 1,
) -> SearchRounds:
    """The rounds of so many searches, each with the same share of the budget, which its parents share.

    Guarantee: searches on the same rows compose; their choices share one budget; docs/proofs/selection.md, Theorem 2.
    """
    parents = breeding.parents
    count = automatic_rounds(parameters, n_rows, parents, searches) if rounds == "auto" else int(rounds)
    shares = [Fraction(1, count * parents)] * ((count - 1) * parents) + [Fraction(1, count)]
    choices = plan_choices(name_of(count, searches), parameters, selection, shares * searches)
    return SearchRounds(breeding, count, choices, searches)


def name_of(rounds: int, classes: int = 1) -> str:
    """The name of a search in events and reports."""
    return f"genetic search, {rounds} round{'s' * (rounds > 1)}" + f" for each of {classes} classes" * (classes > 1)


def automatic_rounds(parameters: PrivacyParameters, n_rows: int | None, parents: int, searches: int = 1) -> int:
    """The paper's rule, with a public number of rows: c n epsilon / m', c = 1.25e-3, for the epsilon of one search; at
    least one.
    """
    told = ROUNDS_PER_ROW * (n_rows or USUAL_ROWS) * parameters.budget.epsilon / searches
    rounds = told / (parents * int(parameters.rows_per_person))
    return max(1, round(min(rounds, MOST_ROUNDS)))


def check_rounds(rounds: object) -> None:
    """Refuse a number of rounds that means nothing."""
    whole = hasattr(rounds, "__index__") and not isinstance(rounds, bool)
    if rounds != "auto" and not (whole and 1 <= int(rounds) <= MOST_ROUNDS):  # type: ignore[call-overload]
        raise PrivacyError(
            f"rounds={rounds!r} was given; it is 'auto' or an integer from 1 to {MOST_ROUNDS}, chosen without "
            "looking at the rows. Use 'auto' if in doubt."
        )
