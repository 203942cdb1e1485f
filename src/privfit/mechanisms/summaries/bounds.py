"""Bounds of numbers, bought: the narrowest range of a public grid that holds about a stated share of the rows."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from privfit.mechanisms.base import Mechanism, Numbers, PublicFacts, Release, ReleasePlan
from privfit.mechanisms.genetic.selections import plan_choices
from privfit.privacy import Draws, PrivacyError
from privfit.privacy.parts import Selection
from privfit.rows import Rows, count_levels
from privfit.schema import Geometry, Schema
from privfit.statistics.ranges import Ranges, check_share, octave_price, range_scores, tolerated

Integers = NDArray[np.int64]

UNIT = 1 << 10
"""Steps of a score per row. Prices of widths are rounded to them; no command varies it."""


@dataclass(frozen=True)
class BoundsProblem:
    """The candidates of every column, all public."""

    candidates: tuple[Ranges, ...]


@dataclass(frozen=True)
class BoundsPlan(ReleasePlan):
    """For every column its candidates, how many rows a range may cut off, and how many rows a factor of two in width is
    worth.
    """

    candidates: tuple[Ranges, ...]
    allowed: tuple[float, ...]
    prices: tuple[float, ...]


@dataclass(frozen=True)
class SelectedBounds(Mechanism[BoundsProblem, BoundsPlan, list[Integers], list[int]]):
    """Ranges that hold about `share` of the values, one private selection per column.

    The score of a range is minus the rows outside of it beyond those that it may cut off, minus a price per factor of
    two in width. One row moves the counts of nested ranges in one direction only, so that noise for one row is enough
    under either adjacency.

    Guarantee: epsilon-DP, or (epsilon, delta)-DP where a delta is spent, replace-one or add-remove, for persons with
    at most `rows_per_person` rows; docs/proofs/bounds.md, Theorem 1.
    Domain: at least one row, no refused cell, no more rows than stated; docs/proofs/errors-and-stops.md.
    """

    share: float = 0.99

    name = "bounds"

    def check(self) -> None:
        """Refuse a share that means nothing."""
        check_share(self.share)

    def geometry(self, schema: Schema, problem: BoundsProblem, numeric: Numbers = "slope") -> Geometry:
        """Every column as levels, one per point of its grid."""
        return candidate_geometry(problem.candidates)

    def plan(self, facts: PublicFacts, problem: BoundsProblem) -> BoundsPlan:
        """One selection per column, with equal shares of the budget."""
        n_rows, parameters = stated_rows(facts, "bounds"), facts.parameters
        choices = plan_choices(self.name, parameters, "auto", [Fraction(1)] * len(problem.candidates))
        parts: list[Selection] = []
        allowed, prices = [], []
        for place, own in enumerate(problem.candidates):
            sensitivity = UNIT * own.sensitivity(parameters.adjacency) * int(parameters.rows_per_person)
            parts.append(choices.part(place, sensitivity=sensitivity))
            allowed.append(tolerated(self.share, n_rows, parts[-1].scale / UNIT))
            prices.append(octave_price(allowed[-1], n_rows, float(own.octaves.max())))
        held, warning = 1.0 - max(allowed) / n_rows, ""
        if held < self.share - (1.0 - self.share):
            warning = (
                f"Bounds were asked for that hold {self.share:.4g} of {n_rows} rows. With this epsilon, noise makes "
                f"them hold about {held:.2g}. Give a larger epsilon, or fewer columns at a time."
            )
        return BoundsPlan(
            choices.event(parts), facts, problem.candidates, tuple(allowed), tuple(prices), warning=warning
        )

    def read(self, rows: Rows, plan: BoundsPlan, problem: BoundsProblem, draws: Draws) -> list[Integers]:
        """How many rows each level of every grid has."""
        return count_levels(rows)

    def draw(self, data: list[Integers], plan: BoundsPlan, draws: Draws) -> list[int]:
        """A place among the candidates of every column."""
        each = zip(plan.candidates, data, plan.allowed, plan.prices, strict=True)
        return [draws.select(range_scores(*own, UNIT)) for own in each]

    def solve(
        self, release: Release[list[int]], geometry: Geometry, problem: BoundsProblem
    ) -> dict[str, tuple[float, float]]:
        """The ends of the ranges that were selected, by the names of their columns."""
        return {own.column.name: own.ends(place) for own, place in zip(problem.candidates, release.value, strict=True)}


def candidate_geometry(candidates: tuple[Ranges, ...]) -> Geometry:
    """One block of levels per column."""
    blocks, start = [], 0
    for own in candidates:
        blocks.append(own.block(start))
        start = blocks[-1].stop
    return Geometry(tuple(blocks), False)


def stated_rows(facts: PublicFacts, what: str) -> int:
    """The number of rows as far as it is public, or a refusal."""
    if facts.n_rows is None:
        raise PrivacyError(
            f"{what} under adjacency='add-remove' needs a number of rows, which is private there. Give a public guess: "
            "expected_rows=20_000. Nothing was charged."
        )
    return facts.n_rows
