"""Counts of events and censored times on a public grid, from which survival curves follow."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from privfit.mechanisms.base import Mechanism, Numbers, PublicFacts, Release, ReleasePlan
from privfit.mechanisms.histograms.noisy_histogram import count_sensitivity
from privfit.mechanisms.summaries.survival_bands import SurvivalRelease
from privfit.privacy import Draws, Event
from privfit.rows import CellGrid, Rows, cell_geometry, count_cells
from privfit.schema import Geometry, Numeric, Schema, SchemaError

Integers = NDArray[np.int64]

BINS = 20
"""Bins of a time that has none of its own: more show more and have more noise. python papers/experiments/survival.py
varies it."""
MOST_CELLS = 20_000
"""The most counts that are released: a bootstrap repeats them in memory."""


def survival_grid(time: Numeric) -> Numeric:
    """A time with its bins and one bin more: for those who leave the grid alive, at the upper bound or later."""
    edges = time.edges(BINS)
    last = time.high - edges[-1]
    return Numeric(time.name, time.low, time.high + last, bins=(*edges, time.high), fill=time.fill)


@dataclass(frozen=True)
class SurvivalCounts(Mechanism[None, ReleasePlan, Integers, Integers]):
    """Noisy counts of events and of censored times in every bin of a public grid, and of those who leave it alive, for
    every group.

    The columns are the time, as `survival_grid` makes it, the event, whose second level means that it happened, and, if
    there is one, the group. What happens after the grid is not counted apart.

    Guarantee: epsilon-DP, replace-one or add-remove, for persons with at most `rows_per_person` rows;
    docs/proofs/survival.md, Theorem 1.
    Domain: at least one row, no refused cell, no more rows than stated; docs/proofs/errors-and-stops.md.
    """

    name = "survival counts"

    def geometry(self, schema: Schema, problem: None, numeric: Numbers = "slope") -> Geometry:
        """The bins of the time, the levels of the event and the groups."""
        return cell_geometry(schema, cells=1)

    def plan(self, facts: PublicFacts, problem: None) -> ReleasePlan:
        """Noise on every count; more counts than a bootstrap repeats are refused."""
        bins, groups = grid_sizes(facts.geometry)
        cells = groups * (2 * bins + 1)
        if cells > MOST_CELLS:
            raise SchemaError(
                f"Survival was asked for with {bins} bins of time and {groups} groups, which have {cells:,} counts; at "
                f"most {MOST_CELLS:,} are released. Give fewer bins or groups. Nothing was charged."
            )
        event = Event.laplace(
            self.name,
            facts.parameters.budget,
            sensitivity=count_sensitivity(facts.parameters),
            adjacency=facts.parameters.adjacency,
            rows_per_person=int(facts.parameters.rows_per_person),
            n_values=cells,
        )
        return ReleasePlan(event, facts)

    def read(self, rows: Rows, plan: ReleasePlan, problem: None, draws: Draws) -> Integers:
        """How many rows each count has."""
        grid = CellGrid(rows.geometry)
        counts = np.zeros(grid.n_cells, dtype=np.int64)
        for cell, held in count_cells(rows).items():
            counts[cell] = held
        bins, groups = grid_sizes(rows.geometry)
        return joined(counts.reshape(bins + 1, 2, groups))

    def draw(self, data: Integers, plan: ReleasePlan, draws: Draws) -> Integers:
        """Noise on every count."""
        return draws.add(data)

    def solve(self, release: Release[Integers], geometry: Geometry, problem: None) -> SurvivalRelease:
        """The counts and the scale of their noise."""
        return SurvivalRelease(release.value.astype(np.float64), release.event.scale, grid_sizes(geometry)[0])


def grid_sizes(geometry: Geometry) -> tuple[int, int]:
    """How many bins there are before the one for those who leave, and how many groups."""
    sizes = CellGrid(geometry).sizes
    return sizes[0] - 1, sizes[2] if len(sizes) > 2 else 1


def joined(counts: Integers) -> Integers:
    """Counts by bin, event and group as one line: for each group events by bin, censored by bin, and those who left.

    Guarantee: every row is in one of them; docs/proofs/survival.md, Lemma 1.
    """
    events, censored, left = counts[:-1, 1], counts[:-1, 0], counts[-1:].sum(axis=1)
    return np.concatenate([events, censored, left]).T.ravel()
