"""PrivGene as it is printed: the plan and the search of a population of weight vectors.

Zhang, Xiao, Yang, Zhang, Winslett: PrivGene, SIGMOD 2013, Algorithms 1 and 2 and section 5.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np

from privfit.losses import ConvexLoss
from privfit.losses.margins import GRAIN, MarginLoss
from privfit.mechanisms.base import PublicFacts, ReleasePlan
from privfit.mechanisms.genetic.breeding import Breeding
from privfit.mechanisms.genetic.rounds import SearchRounds
from privfit.mechanisms.genetic.weights import (
    FARTHEST,
    Floats,
    PrintedFactor,
    WeightScorer,
    first_candidates,
    on_lattice,
)
from privfit.mechanisms.perturbation.problem import ERMFit
from privfit.privacy import Draws, PrivacyError
from privfit.rows import CachedDesign, one_against_rest
from privfit.schema import Geometry
from privfit.tables import DataError

MOST_REACH = 1 << 22
"""The largest margin, in lattice steps, that a box wider than the paper's may lead to: a table of losses has two
entries for each.
"""

MOST_SUM = 1 << 62
"""Sums of losses stay below it, so that 64 bits hold them and their differences."""


@dataclass(frozen=True)
class Population:
    """What the paper's algorithm searches in, and what it makes small."""

    loss: MarginLoss
    box: float = FARTHEST
    """Weights lie between minus this and this."""
    C: float | None = None
    """How much the loss weighs beside half the squared weights; None leaves these out."""
    constants: bool = True
    """Whether the first set has candidates that predict one class for all rows."""
    printed: Literal["logistic", "hinge"] | None = None
    """For which loss the dampening factors are those that the paper prints; None for those that are computed."""

    def scorer(self, kept: CachedDesign, geometry: Geometry, breeding: Breeding) -> WeightScorer:
        """Scores on these rows, for one search."""
        printed = None if self.printed is None else PrintedFactor(self.printed == "hinge", breeding, self.box)
        return WeightScorer(kept, self.loss, geometry, self.C, printed)


@dataclass(frozen=True)
class PopulationPlan(ReleasePlan):
    """The rounds of the paper's algorithm; for more than two classes, a search for each against the rest.

    Guarantee: docs/proofs/selection.md, Theorem 3.
    """

    rounds: SearchRounds
    population: Population

    @classmethod
    def of(cls, facts: PublicFacts, rounds: SearchRounds, population: Population) -> PopulationPlan:
        """The plan for weights within a box; an epsilon too small for 64 bits is refused."""
        farthest = 2 * population.box * facts.geometry.n_columns + 4
        unit = population.loss.unit * int(facts.parameters.rows_per_person)
        rounds.choices.refuse_too_much_noise(math.ceil(farthest) * unit)
        return cls(rounds.event(), facts, rounds, population)

    @property
    def bounds(self) -> tuple[Floats, Floats]:
        """The search box."""
        high = np.full(self.facts.geometry.n_columns, self.population.box)
        return -high, high

    def check_sums(self, n_rows: int) -> None:
        """Refuse more rows than 64-bit sums of their losses hold."""
        most = MOST_SUM // max(1, int(self.population.loss.values[0]))
        if n_rows > most:
            raise DataError(
                f"The table has more than {most} rows, and 64-bit sums of their losses would overflow. Use a smaller "
                "box, or split the table. Nothing was charged."
            )

    def fit(self, kept: CachedDesign, draws: Draws) -> ERMFit:
        """Search, round by round."""
        searches = self.rounds.searches
        found = [self._search(own, place, draws) for place, own in enumerate(one_against_rest(kept, searches))]
        weights = on_lattice(np.stack(found, axis=1)) / GRAIN
        ridge = 0.0 if self.population.C is None else 1 / self.population.C
        return ERMFit(weights, ridge, self.population.loss.loss, "one" if searches == 1 else "one-vs-rest")

    def _search(self, kept: CachedDesign, place: int, draws: Draws) -> Floats:
        geometry, breeding, population = self.facts.geometry, self.rounds.breeding, self.population
        source = draws.random_integers()
        first, low, high = first_candidates(breeding.candidates, geometry, source, population.box, population.constants)
        return self.rounds.search(population.scorer(kept, geometry, breeding), low, high, draws, first, place)


def population_loss(loss: ConvexLoss, box: float, geometry: Geometry) -> MarginLoss:
    """The loss of all margins that weights in the box can have."""
    reach = math.ceil(box * GRAIN) * (geometry.n_blocks + 1) + 1
    if box > FARTHEST and reach > MOST_REACH:
        raise PrivacyError(
            f"box={box:g} was given for {geometry.n_blocks} columns, whose margins could be as large as "
            f"{reach // GRAIN}. Use a box of at most {MOST_REACH / GRAIN / (geometry.n_blocks + 1):.3g}."
        )
    return MarginLoss(loss, reach)
