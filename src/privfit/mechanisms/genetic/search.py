"""A genetic search for the parameters that fit best, by private choices: PrivGene for any fitting function.

Zhang, Xiao, Yang, Zhang, Winslett: PrivGene, SIGMOD 2013, Algorithms 1 and 2.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from privfit.mechanisms.aggregation.trials import try_fitness
from privfit.mechanisms.base import Mechanism, Numbers, PublicFacts, ReleasePlan
from privfit.mechanisms.genetic.breeding import Breeding, scattered
from privfit.mechanisms.genetic.rounds import NumberOfRounds, SearchRounds, check_rounds, plan_rounds
from privfit.mechanisms.genetic.scores import STEP_BITS, Scorer, scorer_of
from privfit.mechanisms.genetic.selections import SelectionRule
from privfit.privacy import Draws, PrivacyError
from privfit.rows import PlainRows, Rows
from privfit.schema import Geometry, Schema
from privfit.statistics import RowFitness, TableFitness

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Search:
    """What is searched: the best parameters between `low` and `high`, one entry per parameter.

    `start` are candidates to begin with, from public knowledge.
    """

    fitness: RowFitness | TableFitness
    low: Floats
    high: Floats
    start: Floats | None = None


@dataclass(frozen=True)
class SearchPlan(ReleasePlan):
    """All that is decided about a search before a row is read."""

    rounds: SearchRounds
    problem: Search


@dataclass(frozen=True)
class GeneticMechanism(Mechanism[Search, SearchPlan, Scorer, Floats]):
    """Select the best candidates privately, let them beget others, and go on.

    Guarantee: epsilon-DP, or (epsilon, delta)-DP where the exponential rule is charged in zCDP, replace-one or
    add-remove, for persons with at most `rows_per_person` rows; docs/proofs/selection.md, Theorem 2. For a TableFitness
    it rests on the sensitivity that it states.
    Domain: at least one row, no refused cell, no more rows than stated; docs/proofs/errors-and-stops.md.
    """

    selection: SelectionRule = "auto"
    breeding: Breeding = field(default_factory=Breeding)
    rounds: NumberOfRounds = "auto"

    name: ClassVar[str] = "genetic"

    def check(self) -> None:
        """Refuse parameters that mean nothing, before anything is read."""
        self.breeding.check()
        check_rounds(self.rounds)

    def geometry(self, schema: Schema, problem: Search, numeric: Numbers = "slope") -> Geometry:
        """How rows are read: numbers as they are, categories by their places."""
        return schema.geometry(numeric="slope", intercept=False, several=True)

    def plan(self, facts: PublicFacts, problem: Search) -> SearchPlan:
        """How many rounds there are and what each may spend."""
        selection, parameters = self.selection, facts.parameters
        if isinstance(problem.fitness, TableFitness):
            selection = "exponential" if selection == "enhanced" else selection
            if parameters.promise is not None:
                raise PrivacyError(
                    "A TableFitness was given with a schema that leaves rows out (person, where, or a target with "
                    "fill='drop'), under replace-one. Its sensitivity is stated for tables of equal length, and the "
                    "number of rows that are used is private. Use a RowFitness, or adjacency='add-remove' with a "
                    "sensitivity for one row more or less. Nothing was charged."
                )
        rounds = plan_rounds(parameters, facts.n_rows, selection, self.breeding, self.rounds)
        rounds.choices.refuse_too_much_noise(int(parameters.rows_per_person) << (STEP_BITS + 2))
        event = rounds.event(None if problem.start is None else len(problem.start))
        return SearchPlan(event, facts, rounds, problem)

    def read(self, rows: Rows, plan: SearchPlan, problem: Search, draws: Draws) -> Scorer:
        """Try the fitness on made-up rows and the operators on made-up candidates, then read: the last words of a
        user's function are reported before a row is read.
        """
        plan.rounds.breeding.rehearse(problem.low, problem.high)
        plain, parameters = PlainRows(rows), plan.facts.parameters
        scores = scorer_of(problem.fitness, plain, parameters.adjacency)
        tried = try_fitness(scores.rehearsed, rows.geometry, problem.low, problem.high)
        scores.sensitivity(tried, parameters, plan.rounds.choices.by_range)
        plain.read()
        scores.prepare()
        return scores

    def draw(self, data: Scorer, plan: SearchPlan, draws: Draws) -> Floats:
        """Search, round by round."""
        problem = plan.problem
        if problem.start is None:
            first = scattered(self.breeding.candidates, problem.low, problem.high, draws.random_integers())
        else:
            first = np.clip(problem.start, problem.low, problem.high)
        return plan.rounds.search(data, problem.low, problem.high, draws, first)
