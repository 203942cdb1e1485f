"""Frequent sets of items: private choices one after the other, then noisy counts of what was chosen."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.special import gammaincc

from privfit.mechanisms.base import Mechanism, Numbers, PublicFacts, Release, ReleasePlan
from privfit.mechanisms.genetic.selections import Choices, SelectionRule, plan_choices
from privfit.mechanisms.summaries.questions import LEVEL, NORMAL
from privfit.privacy import Draws, PrivacyError, PrivacyParameters, exact
from privfit.privacy.budget import settle
from privfit.privacy.event import gaussian_scale, laplace_scale
from privfit.privacy.parts import Additive, DiscreteGaussian, KNorm, Part
from privfit.privacy.samplers.norms import check_fits
from privfit.rows import CellGrid, Rows, cell_geometry, count_cells
from privfit.schema import Geometry, Schema
from privfit.statistics.itemsets import Baskets, Frontier, Item, Itemset, itemset_numbers, listed_items

Integers = NDArray[np.int64]

FOR_CHOICES = Fraction(7, 10)
"""The part of epsilon, or of rho, that finds the sets: counts have the rest. `python papers/experiments/itemsets.py
--shares` varies it."""
UNIT = 1 << 20
"""Lattice steps per row in counts: noise on them is then nearly continuous, also at an epsilon of thousands."""

MOST_SETS, MOST_ITEMS = 10_000, 1_000
"""More sets, or larger ones, than anybody reads. Chosen, not measured."""


@dataclass(frozen=True)
class ItemsetProblem:
    """How many sets are wanted, of at most how many items."""

    k: int
    max_size: int

    def __post_init__(self) -> None:
        for name, most in (("k", MOST_SETS), ("max_size", MOST_ITEMS)):
            wanted = f"it is an integer from 1 to {most}, and public. Write, for example, {name}=5"
            settle(self, name, "integer", least=1, below=most + 1, wanted=wanted)


@dataclass(frozen=True)
class ItemsetPlan(ReleasePlan):
    """What is wanted, and the items, all public."""

    k: int
    max_size: int
    items: tuple[Item, ...]


@dataclass(frozen=True)
class FoundItemset:
    """A set of items, by their labels, with how many rows hold it."""

    labels: tuple[str, ...]
    count: float
    low: float
    high: float


@dataclass(frozen=True)
class ItemsetSearch(Mechanism[ItemsetProblem, ItemsetPlan, Baskets, tuple[list[Itemset], Integers]]):
    """The k sets of items that most rows hold, by k private choices; then how many rows hold each.

    A set can be chosen once all sets with one item less are: no rows hold a set that do not hold its parts. Permute and
    flip, or the exponential mechanism, chooses by how far one row can change differences of scores (the enhanced
    exponential mechanism of PrivGene).

    Guarantee: epsilon-DP, or (epsilon, delta)-DP where a delta is spent, replace-one or add-remove, for persons with
    at most `rows_per_person` rows; docs/proofs/itemsets.md, Theorem 1.
    Domain: at least one row, no refused cell, no more rows than stated; docs/proofs/errors-and-stops.md.
    """

    selection: SelectionRule = "auto"

    name = "frequent itemsets"

    def geometry(self, schema: Schema, problem: ItemsetProblem, numeric: Numbers = "slope") -> Geometry:
        """The levels of every column."""
        return cell_geometry(schema, cells=1)

    def plan(self, facts: PublicFacts, problem: ItemsetProblem) -> ItemsetPlan:
        """The choices, and the noise on the counts of what will be chosen."""
        items = listed_items(facts.geometry)
        possible = itemset_numbers(items, problem.max_size, enough=problem.k)
        if possible < problem.k:
            raise PrivacyError(
                f"k={problem.k} sets were asked for, and {len(items)} items make {possible} of at most "
                f"{problem.max_size} items. Ask for fewer, or for larger ones with max_size. Nothing was charged."
            )
        parameters = facts.parameters
        choices, people = self._choices(parameters, problem.k), int(parameters.rows_per_person)
        one_sided = parameters.adjacency == "add-remove" and choices.by_range
        selection = choices.part(0, problem.k, people if one_sided else 2 * people)
        event = choices.event([selection, _noise(parameters, problem.k, choices.rho)])
        return ItemsetPlan(event, facts, problem.k, problem.max_size, items)

    def _choices(self, parameters: PrivacyParameters, k: int) -> Choices:
        """k choices with equal shares of their part of the price: in zCDP where that lets each spend clearly more."""
        budget = parameters.budget
        pure = plan_choices(self.name, parameters, self.selection, [Fraction(1)] * k)
        each = budget.exact * FOR_CHOICES / k
        if not pure.rho:
            return replace(pure, each=(each,) * k)
        root = Fraction(math.isqrt(int(FOR_CHOICES * 4**40)), 2**40)  # rounded down
        return replace(pure, each=tuple(one * root for one in pure.each))

    def read(self, rows: Rows, plan: ItemsetPlan, problem: ItemsetProblem, draws: Draws) -> Baskets:
        """The rows that differ, as bits, and how many are alike."""
        return Baskets(CellGrid(rows.geometry), count_cells(rows), plan.items)

    def draw(self, data: Baskets, plan: ItemsetPlan, draws: Draws) -> tuple[list[Itemset], Integers]:
        """The sets in the order in which they were chosen, and their noisy counts."""
        frontier = Frontier(plan.items, plan.max_size)
        scores, found = [data.count(itemset) for itemset in frontier.open], list[Itemset]()
        for _ in range(plan.k):
            place = draws.select(scores)
            del scores[place]
            itemset, new = frontier.choose(place)
            scores += [data.count(grown) for grown in new]
            found.append(itemset)
        counts = np.array([data.count(itemset) for itemset in found], dtype=np.int64)
        return found, draws.add(UNIT * counts)

    def solve(
        self, release: Release[tuple[list[Itemset], Integers]], geometry: Geometry, problem: ItemsetProblem
    ) -> list[FoundItemset]:
        """The sets in words, with intervals of their counts."""
        items, half = listed_items(geometry), _half_width(release.event.parts[-1])
        found = []
        for itemset, count in zip(release.value[0], (release.value[1] / UNIT).tolist(), strict=True):
            labels = tuple(items[place].label for place in itemset)
            found.append(FoundItemset(labels, count, count - half, count + half))
        return found


def _noise(parameters: PrivacyParameters, k: int, rho: float) -> Additive:
    """The noise on k counts: one row changes each by at most one."""
    people, purpose = int(parameters.rows_per_person), "counts of what was chosen"
    if rho:
        own = exact(rho) * (1 - FOR_CHOICES)
        squared = UNIT**2 * people**2 * k
        sensitivity = math.isqrt(squared - 1) + 1
        scale = gaussian_scale(sensitivity, own)
        return DiscreteGaussian(
            size=k, scale=scale, sensitivity=sensitivity, unit=UNIT, rho=float(own), purpose=purpose
        )
    epsilon = parameters.budget.exact * (1 - FOR_CHOICES)
    scale = laplace_scale(UNIT * people, epsilon)
    check_fits("linf", k, scale)
    return KNorm(
        norm="linf",
        size=k,
        scale=scale,
        sensitivity=UNIT * people,
        unit=UNIT,
        epsilon=float(epsilon),
        purpose=purpose,
    )


def _half_width(part: Part) -> float:
    """How far a noisy count is from the count with probability LEVEL at most."""
    assert isinstance(part, KNorm | DiscreteGaussian)
    scale = part.scale / part.unit
    if isinstance(part, DiscreteGaussian):
        return NORMAL * scale
    size = part.size

    def beyond(half: float) -> float:
        """The probability of noise beyond this many scales: a radius of gamma law, times an even number."""
        return float(gammaincc(size + 1, half) - half / size * gammaincc(size, half)) - (1.0 - LEVEL)

    return scale * float(brentq(beyond, 0.0, size + 40.0))
