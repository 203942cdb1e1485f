"""PrivGene for k-means: sets of centres, with selection, crossover and mutation.

Zhang, Xiao, Yang, Zhang, Winslett: PrivGene, SIGMOD 2013, section 5.3. The paper finds no useful bound on how far a row
can change the difference of two sets' scores; there is one, far smaller than the bound on a score.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from privfit.mechanisms.base import PublicFacts, ReleasePlan
from privfit.mechanisms.clustering.centres import sphere_packing
from privfit.mechanisms.clustering.clustering import Clusterer, ClusterFit, Clusters
from privfit.mechanisms.genetic.breeding import scattered
from privfit.mechanisms.genetic.privgene import PrivGene
from privfit.mechanisms.genetic.rounds import SearchRounds, plan_rounds
from privfit.mechanisms.genetic.scores import Scorer, ScoreSensitivity
from privfit.mechanisms.genetic.selections import SelectionRule
from privfit.privacy import Draws, PrivacyError, PrivacyParameters
from privfit.privacy.samplers.norms import Source
from privfit.rows import Points, Rows, on_lattice
from privfit.rows.layout import STEP

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

MUTATION = 0.15
"""How far the first mutations go, as a share of the box, where nobody says: three times the paper's, because the search
starts from one set of centres.
"""


class CentreScorer(Scorer):
    """Scores of sets of centres: minus the squared distances of all points to their nearest centre, on the lattice."""

    def __init__(self, points: Points, clusters: int, printed: bool) -> None:
        self._points, self._clusters, self._printed = points, clusters, printed

    def _sets(self, candidates: Floats) -> Integers:
        return on_lattice(candidates).reshape(len(candidates), self._clusters, -1)

    def sensitivity(self, candidates: Floats, parameters: PrivacyParameters, by_range: bool) -> ScoreSensitivity:
        """The most by which one row can change the difference of two scores, in squared lattice steps.

        Guarantee: docs/proofs/selection.md, Lemma 8; the printed constant is half of it, and not private.
        """
        sets = self._sets(candidates)
        farthest = farthest_point(sets)
        if self._printed:
            return ScoreSensitivity(float(farthest))
        if not by_range:
            return ScoreSensitivity(float(2 * farthest))
        ahead, replaced = told_apart(sets), parameters.adjacency == "replace-one"
        both = ahead + ahead.T if replaced else ahead
        return ScoreSensitivity(float(min(int(both.max()), 2 * farthest if replaced else farthest)))

    def __call__(self, candidates: Floats, sensitivity: ScoreSensitivity) -> tuple[list[int], int]:
        sets = self._sets(candidates)
        parent = np.sort(sets, axis=0)[len(sets) // 2]  # if all differ from one in one coordinate, it is the median
        moved = (sets != parent).reshape(len(sets), -1)
        if len(sets) > 1 and moved.sum(axis=1).max() <= 1:
            place = moved.argmax(axis=1)  # the first coordinate, unmoved, for the parent itself
            centre, column = np.divmod(place, sets.shape[2])
            value = sets[np.arange(len(sets)), centre, column]
            return self._points.changed_scores(parent, centre, column, value), int(sensitivity.most)
        return self._points.scores(sets), int(sensitivity.most)


def farthest_point(sets: Integers) -> int:
    """The largest squared distance of a point of the box to its nearest centre, or more: that to the centre whose
    farthest corner is nearest.
    """
    return int(((STEP + np.abs(sets)) ** 2).sum(axis=2).min(axis=1).max())


def told_apart(sets: Integers) -> Integers:
    """By how much a point of the box can find the one set better than the other, at most; one line per better set."""
    lengths = (sets**2).sum(axis=2)
    found = np.zeros((len(sets), len(sets)), dtype=np.int64)
    for place, (one, length) in enumerate(zip(sets, lengths, strict=True)):
        gap = 2 * STEP * np.abs(one - sets).sum(axis=2) + lengths - length
        found[place] = gap.max(axis=1)
    return found


@dataclass(frozen=True)
class CentresPlan(ReleasePlan):
    """The rounds of a search for so many centres."""

    rounds: SearchRounds
    n_clusters: int


@dataclass(frozen=True)
class GeneticCentres(Clusterer[CentresPlan, Points]):
    """k-means by a genetic search.

    Guarantee: epsilon-DP, or (epsilon, delta)-DP with a delta, replace-one or add-remove, for persons with at most
    `rows_per_person` rows, but for the paper's constants, which are not private; docs/proofs/selection.md, Lemma 8 and
    Theorem 2.
    Domain: at least one row, no refused cell, no more rows than stated; docs/proofs/errors-and-stops.md.
    """

    gene: PrivGene = field(default_factory=lambda: PrivGene(moves="genes", mutation=MUTATION))

    name: ClassVar[str] = "genetic"

    @classmethod
    def of(cls, gene: PrivGene) -> GeneticCentres:
        """The search with these settings; centres are bred, whatever moves weights have."""
        return cls(gene if gene.bred else replace(gene, moves="genes", mutation=MUTATION))

    def check(self) -> None:
        """Refuse parameters that mean nothing, before anything is read."""
        self.gene.check()
        if self.gene.moves == "coordinates" or self.gene.candidates == "all":
            raise PrivacyError(
                f"{self.gene} was given to k-means, where a set of centres has no columns to move at once. Write "
                "pf.PrivGene(moves='genes')."
            )
        if self.gene.C != "auto" or self.gene.steepest != "auto":
            raise PrivacyError(
                f"C={self.gene.C!r} and steepest={self.gene.steepest!r} were given to k-means, which has no loss of "
                "classes. Leave them out."
            )
        if self._box > 1:
            raise PrivacyError(
                f"box={self.gene.box!r} was given to k-means, whose centres lie within the bounds of their columns, "
                "scaled to [-1, 1]. Use a box of at most 1, or leave it out."
            )

    @property
    def _box(self) -> float:
        return 1.0 if self.gene.box == "auto" else float(self.gene.box)

    @property
    def _scatters(self) -> bool:
        """Whether first candidates lie anywhere, as in the paper."""
        return self.printed or self.gene.start == "scattered"

    @property
    def printed(self) -> bool:
        """Whether the paper's constant is used, which is not private."""
        return self.gene.calibration == "paper"

    def reasons_not_private(self, problem: Clusters) -> tuple[str, ...]:
        """The paper's constant: docs/proofs/selection.md, Theorem 3."""
        if not self.printed:
            return ()
        return (
            "calibration='paper' of PrivGene for k-means: the paper prints half of what its dampening factor must be",
        )

    def plan(self, facts: PublicFacts, problem: Clusters) -> CentresPlan:
        """How many rounds there are and what each may spend; what no noise can serve is refused."""
        gene, parameters = self.gene, facts.parameters
        selection: SelectionRule = "exponential" if gene.selection == "auto" and self.printed else gene.selection
        rounds = plan_rounds(parameters, facts.n_rows, selection, gene.breeding, gene.rounds)
        farthest = 2 * 4 * len(facts.geometry.blocks) * STEP**2
        rounds.choices.refuse_too_much_noise(farthest * int(parameters.rows_per_person))
        return CentresPlan(rounds.event(), facts, rounds, int(problem.n_clusters))

    def read(self, rows: Rows, plan: CentresPlan, problem: Clusters, draws: Draws) -> Points:
        """Read the rows once, and keep them where they fit; functions of the user's own are tried before."""
        self.gene.breeding.rehearse(*self._bounds(plan.n_clusters, len(plan.facts.geometry.blocks)))
        points = Points(rows)
        points.read()
        points.check_sums(4 * points.n_columns * STEP**2)
        return points

    def draw(self, data: Points, plan: CentresPlan, draws: Draws) -> ClusterFit:
        """Search, round by round."""
        k = plan.n_clusters
        low, high = self._bounds(k, data.n_columns)
        first = self._first_candidates(k, data.n_columns, low, high, draws.random_integers())
        best = plan.rounds.search(CentreScorer(data, k, self.printed), low, high, draws, first)
        return ClusterFit(best.reshape(k, -1))

    def _bounds(self, clusters: int, columns: int) -> tuple[Floats, Floats]:
        high = np.full(clusters * columns, self._box)
        return -high, high

    def _first_candidates(self, clusters: int, columns: int, low: Floats, high: Floats, source: Source) -> Floats:
        """The offspring of centres that are spread evenly; in the paper candidates are scattered, and the first choice
        among them is a poor one.
        """
        breeding = self.gene.breeding
        if self._scatters:
            return scattered(breeding.candidates, low, high, source)
        spread = np.clip(sphere_packing(clusters, columns).reshape(1, -1), low, high)
        return breeding.offspring(spread, low, high, 0, source)
