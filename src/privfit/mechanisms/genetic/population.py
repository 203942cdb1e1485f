"""PrivGene as it is printed: the plan and the search of a population of weight vectors.

Zhang, Xiao, Yang, Zhang, Winslett: PrivGene, SIGMOD 2013, Algorithms 1 and 2 and section 5.
"""

from __future__ import annotations

from dataclasses import dataclass

from privfit.losses import LOGISTIC
from privfit.losses.margins import GRAIN, MarginLoss
from privfit.mechanisms.base import PublicFacts, ReleasePlan
from privfit.mechanisms.genetic.rounds import SearchRounds
from privfit.mechanisms.genetic.weights import FARTHEST, WeightScorer, first_candidates, on_lattice
from privfit.mechanisms.perturbation.problem import ERMFit, ERMProblem
from privfit.privacy import Draws
from privfit.rows import CachedDesign


@dataclass(frozen=True)
class PopulationPlan(ReleasePlan):
    """The rounds of the paper's algorithm; `printed` is whether its dampening factors are those that the paper prints.

    Guarantee: docs/proofs/selection.md, Theorem 3.
    """

    rounds: SearchRounds
    loss: MarginLoss
    problem: ERMProblem
    printed: bool

    @classmethod
    def of(cls, facts: PublicFacts, rounds: SearchRounds, problem: ERMProblem, printed: bool) -> PopulationPlan:
        """The plan for weights within [-5, 5]; an epsilon too small for 64 bits is refused."""
        geometry = facts.geometry
        loss = MarginLoss(problem.loss, int(FARTHEST * GRAIN) * (geometry.n_blocks + 1) + 1)
        farthest = (2 * int(FARTHEST) * geometry.n_columns + 4) * loss.unit * int(facts.parameters.rows_per_person)
        rounds.choices.refuse_too_much_noise(farthest)
        return cls(rounds.event(), facts, rounds, loss, problem, printed)

    def fit(self, kept: CachedDesign, draws: Draws) -> ERMFit:
        """Search, round by round."""
        geometry, breeding = self.facts.geometry, self.rounds.breeding
        penalised = self.problem.loss != LOGISTIC
        scores = WeightScorer(kept, self.loss, geometry, self.printed, penalised, breeding)
        first, low, high = first_candidates(breeding.candidates, geometry, draws.random_integers())
        best = self.rounds.search(scores, low, high, draws, first)
        return ERMFit(on_lattice(best[None])[0][:, None] / GRAIN, 0.0, self.problem.loss)
