"""PrivGene for k-means: sets of centres, selected, crossed over and mutated.

Zhang, Xiao, Yang, Zhang, Winslett: PrivGene, SIGMOD 2013, section 5.3. The paper finds no useful bound on how far a row can tell two sets of centres apart; there is one, far smaller than the bound on a score.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import ClassVar, cast

import numpy as np
from numpy.typing import NDArray

from privfit.mechanisms.breeding import scattered
from privfit.mechanisms.centres import sphere_packing
from privfit.mechanisms.choices import Choices, Selection
from privfit.mechanisms.clustering import ADAPTED_CLUSTERERS, NAMED_CLUSTERERS, Clusterer, ClusterFit, Clusters
from privfit.mechanisms.genetic import PrivGene
from privfit.mechanisms.minima import public_rows
from privfit.mechanisms.release import Release, check_ledger
from privfit.mechanisms.search import GeneticMechanism, Reach, Scorer
from privfit.privacy import Ledger, Noise, PrivacyError, Terms
from privfit.privacy.shapes import Source
from privfit.rows import Points, Rows, on_lattice
from privfit.rows.points import STEP

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

MUTATION = 0.15
"""How far the first mutations go, as a share of the box, where nobody says: three times the paper's, because the search starts from one set of centres."""


class CentreScorer(Scorer):
    """Scores of sets of centres: minus the squared distances of all points to their nearest centre, on the lattice."""

    def __init__(self, points: Points, clusters: int, printed: bool) -> None:
        self._points, self._clusters, self._printed = points, clusters, printed

    def _sets(self, candidates: Floats) -> Integers:
        return on_lattice(candidates).reshape(len(candidates), self._clusters, -1)

    def reach(self, candidates: Floats, terms: Terms, by_range: bool) -> Reach:
        """The most by which one row can change the difference of two scores, in squared lattice steps.

        Guarantee: docs/proofs/selection.md, Lemma 8; the printed constant is half of it, and not private.
        """
        sets = self._sets(candidates)
        farthest = farthest_point(sets)
        if self._printed:
            return Reach(float(farthest))
        if not by_range:
            return Reach(float(2 * farthest))
        ahead = told_apart(sets)
        both = ahead + ahead.T if terms.adjacency == "replace-one" else ahead
        return Reach(float(min(int(both.max()), 2 * farthest if terms.adjacency == "replace-one" else farthest)))

    def __call__(self, candidates: Floats, reach: Reach) -> tuple[list[int], int]:
        sets = self._sets(candidates)
        moved = sets != sets[0]
        if len(sets) > 1 and moved.reshape(len(sets), -1).sum(axis=1).max() <= 1:
            place = moved.reshape(len(sets), -1).argmax(axis=1)  # the first coordinate, unmoved, for the parent itself
            centre, column = np.divmod(place, sets.shape[2])
            value = sets[np.arange(len(sets)), centre, column]
            return self._points.changed_scores(sets[0], centre, column, value), int(reach.most)
        return self._points.scores(sets), int(reach.most)


def farthest_point(sets: Integers) -> int:
    """The largest squared distance of a point of the box to its nearest centre, or more: that to the centre whose farthest corner is nearest."""
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
class GeneticCentres(Clusterer):
    """k-means by a genetic search.

    Guarantee: epsilon-DP, or (epsilon, delta)-DP with a delta, replace-one or add-remove, for persons with at most `rows_per_person` rows, but for the paper's constants, which are not
    private; docs/proofs/selection.md, Lemma 8 and Theorem 2.
    Domain: at least one row, no refused cell, no more rows than stated; docs/proofs/errors-and-stops.md.
    """

    gene: PrivGene = field(default_factory=lambda: PrivGene(moves="genes", mutation=MUTATION))

    name: ClassVar[str] = "genetic"

    def check(self) -> None:
        """Refuse parameters that mean nothing, before anything is read."""
        self.gene.check()
        if self.gene.moves == "coordinates" or self.gene.candidates == "all":
            raise PrivacyError(
                f"{self.gene} was given to k-means, where a set of centres has no columns to move at once. Write pf.PrivGene(moves='genes')."
            )

    @property
    def printed(self) -> bool:
        """Whether the paper's constant is used, which is not private."""
        return self.gene.calibration == "paper"

    def reasons_not_private(self, objective: Clusters) -> tuple[str, ...]:
        """The paper's constant: docs/proofs/selection.md, Theorem 3."""
        if not self.printed:
            return ()
        return ("calibration='paper' of PrivGene for k-means: the paper prints half of what its dampening factor must be",)

    @property
    def _algorithm(self) -> GeneticMechanism:
        selection: Selection = "exponential" if self.gene.selection == "auto" and self.printed else self.gene.selection
        return GeneticMechanism(selection, self.gene.breeding, self.gene.rounds)

    def price(self, terms: Terms, n_rows: int | None) -> Choices:
        """How many choices there are and what each may spend, from public facts."""
        return self._algorithm.plan(None, terms, n_rows)

    def release(self, rows: Rows, terms: Terms, ledger: Ledger | None, noise: Noise, objective: Clusters) -> Release[ClusterFit]:
        """Read the rows, charge the ledger, and search. With the paper's constant it is not private, and a ledger is refused."""
        reasons = self.reasons_not_private(objective)
        check_ledger(ledger, noise, reasons)
        if ledger is not None:
            ledger.check(self.price(terms, None).event)
        points = Points(rows)
        points.read()
        points.check_sums(4 * points.n_columns * STEP**2)
        choices = self.price(terms, public_rows(points.n_rows, terms))  # public facts only
        most = 2 * 4 * points.n_columns * STEP**2 * int(terms.rows_per_person)
        choices.scale(choices.each.index(min(choices.each)), most)  # refuses what no noise can serve, before the charge
        if ledger is not None:
            ledger.charge(choices.event, dataset=rows.label)  # durable before any draw
        k, size = int(objective.n_clusters), int(objective.n_clusters) * points.n_columns
        low, high = np.full(size, -1.0), np.full(size, 1.0)
        first = self._first(k, points.n_columns, low, high, cast(Source, noise))
        best = self._algorithm.searched(CentreScorer(points, k, self.printed), low, high, terms, choices, noise, first)
        return Release(ClusterFit(best.reshape(k, -1)), choices.event, noise.private and not reasons)

    def _first(self, clusters: int, columns: int, low: Floats, high: Floats, source: Source) -> Floats:
        """The offspring of centres that are spread evenly; in the paper candidates are scattered, and the first choice among them is a poor one."""
        breeding = self.gene.breeding
        if self.printed:
            return scattered(breeding.candidates, low, high, source)
        return breeding.offspring(sphere_packing(clusters, columns).reshape(1, -1), low, high, 0, source)


NAMED_CLUSTERERS[GeneticCentres.name] = GeneticCentres()
ADAPTED_CLUSTERERS[PrivGene] = lambda gene: GeneticCentres(gene if gene.bred else replace(gene, moves="genes", mutation=MUTATION))
