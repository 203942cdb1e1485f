"""k-means from the noisy means of many cells, by Lloyd's steps alone, and the public rule that chooses between cells
and a grid.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from privfit.mechanisms.clustering.centres import directions, projected, sphere_packing, spread_inside, weighted_centres
from privfit.mechanisms.clustering.clustering import LEAST_WIDTH, ScheduledClusterer, block_query, block_sums
from privfit.mechanisms.clustering.grid import HybridClusterer
from privfit.mechanisms.clustering.schedule import ClusteringFacts, Query, QuerySchedule
from privfit.privacy import Draws
from privfit.privacy.parts import KNorm
from privfit.rows import Points, on_lattice
from privfit.rows.layout import STEP

Floats = NDArray[np.float64]

FEW_COLUMNS, SOME_COLUMNS, FEW_ROWS = 4, 8, 1000.0
""""auto" takes a grid up to so many columns, or up to more where rows times epsilon are few: a grid has more cells with
every column, cell means have more noise with few rows. See docs/constants.md."""


@dataclass(frozen=True)
class CellClusterer(ScheduledClusterer):
    """Many public directions around a noisy mean, the means of the rows nearest to each, clusters of those, then
    Lloyd's steps that remember: for many columns.

    Guarantee: epsilon-DP, replace-one or add-remove, for persons with at most `rows_per_person` rows;
    docs/proofs/clustering.md, Lemmas 2 and 4 and Theorem 1.
    Domain: at least one row, no refused cell, no more rows than stated; docs/proofs/errors-and-stops.md.
    """

    name: ClassVar[str] = "cells"
    moments_share, cells_share, steps_share = Fraction(15, 100), Fraction(40, 100), Fraction(45, 100)
    noise_of_moments = 0.02
    per_cell, most_cells, radius = 0.35, 256, 0.5
    first_width, width = 1.0, 1.5
    noise_of_steps, most_steps, memory, restarts = 0.01, 6, 0.5, 10

    def schedule(self, facts: ClusteringFacts) -> QuerySchedule:
        """Moments, cells, and as many steps as their noise allows."""
        cells, steps = self.n_cells(facts), self.n_steps(facts)
        d, counted = facts.columns, 0 if facts.knows_rows else 1
        size = (d + 1 if self.pools(facts) else 2 * d) + counted
        queries = (
            Query("moments", "linf", (size,), self.moments_share),
            block_query("cells", cells, facts, self.cells_share),
            *(block_query(f"step {t}", facts.clusters, facts, self.steps_share / steps) for t in range(1, steps + 1)),
        )
        return QuerySchedule(f"k-means in {cells} cells, then {steps} step{'s' * (steps > 1)}", queries, facts)

    def pools(self, facts: ClusteringFacts) -> bool:
        """Whether columns share one variance, because noise on one each would be too large."""
        size = 2 * facts.columns + (0 if facts.knows_rows else 1)
        return _linf_sd(size) / (facts.signal * float(self.moments_share)) / 2 >= self.noise_of_moments

    def n_cells(self, facts: ClusteringFacts) -> int:
        """As many cells as can be distinguished from noise."""
        wanted = (
            self.per_cell * facts.signal * float(self.cells_share) / (_linf_sd(facts.columns + 1) * self.first_width)
        )
        return int(np.clip(wanted, 2 * facts.clusters, max(self.most_cells, 2 * facts.clusters)))

    def n_steps(self, facts: ClusteringFacts) -> int:
        """As many steps as leave the noise of each small."""
        noise = facts.clusters * self.width * _linf_sd(facts.columns + 1) * math.sqrt(3)
        wanted = facts.signal * float(self.steps_share) * math.sqrt(3 * self.noise_of_steps) / noise
        return int(np.clip(wanted, 1, self.most_steps))

    def centres(self, points: Points, schedule: QuerySchedule, draws: Draws) -> Floats:
        mean, variance = self._moments(points, schedule, draws)
        centres, between = self._first_centres(points, schedule, draws, mean, variance)
        widths = np.clip(self.width * np.sqrt(np.maximum(variance - between, 0.1 * variance)), LEAST_WIDTH, 1.0)
        weight, total = np.zeros(len(centres)), np.zeros(centres.shape)
        for query in schedule.queries[2:]:
            numbers, sums = block_sums(points, schedule, draws, centres, widths)
            sizes = np.maximum(numbers, 2 * schedule.sd(query))
            weight = self.memory * weight + sizes
            total = self.memory * total + sizes[:, None] * centres + sums
            centres = np.clip(total / weight[:, None], -1.0, 1.0)
        return centres

    def _moments(self, points: Points, schedule: QuerySchedule, draws: Draws) -> tuple[Floats, Floats]:
        """The mean and the variance of every column, shrunk towardswards what is usual as far as they are noise."""
        facts, query, pooled = schedule.facts, schedule.queries[0], self.pools(schedule.facts)
        exact_sums = schedule.unit // STEP * points.moments(pooled)
        drawn = schedule.drawn(draws, exact_sums[:-1] if facts.knows_rows else exact_sums)
        d, rows = facts.columns, float(facts.rows) if facts.knows_rows else max(drawn[-1], facts.rows / 4)
        sd = schedule.sd(query) / facts.rows
        mean = drawn[:d] / rows
        seen = max(0.0, float(np.mean(mean**2)) - sd**2)
        mean = np.clip(mean * seen / (seen + sd**2), -1.0, 1.0)
        variance = (drawn[d : d + (1 if pooled else d)] / rows + 1) / 2 - (np.mean(mean**2) if pooled else mean**2)
        of_all = (sd / 2) ** 2 / (1 if pooled else d)
        common = np.clip(
            (np.mean(variance) / of_all + 0.15 / 0.01) / (1 / of_all + 1 / 0.01), 0.01, 0.5
        )  # 0.15 ± 0.1 is usual
        if pooled:
            return mean, np.full(d, common)
        off = variance - np.mean(variance)
        seen = max(0.0, float(np.mean(off**2)) - (sd / 2) ** 2)
        return mean, np.clip(common + seen / (seen + (sd / 2) ** 2) * off, 0.05 * common, 1.0)

    def _first_centres(
        self, points: Points, schedule: QuerySchedule, draws: Draws, mean: Floats, variance: Floats
    ) -> tuple[Floats, Floats]:
        """Clusters of the noisy means of the cells, and the variance between them."""
        query, k, d = schedule.queries[1], schedule.facts.clusters, schedule.facts.columns
        deviation, sd = np.sqrt(variance), schedule.sd(query)
        middles = np.clip(mean + deviation * math.sqrt(d) * self.radius * directions(len(query.blocks), d), -1.0, 1.0)
        numbers, sums = block_sums(
            points, schedule, draws, middles, np.clip(self.first_width * deviation, LEAST_WIDTH, 1.0)
        )
        found = np.clip(middles + sums / np.maximum(numbers, sd)[:, None], -1.0, 1.0)
        weights = np.where(numbers > sd, numbers, 0.0)
        if np.count_nonzero(weights) > k and 0 < k - 1 < d:
            found = np.clip(projected(found, weights, k - 1), -1.0, 1.0)
        centres = weighted_centres(found, weights, k, self.restarts)
        inside, _ = spread_inside(found, weights, centres)
        middle = inside @ centres / inside.sum()
        return centres, inside @ (centres - middle) ** 2 / inside.sum()


@dataclass(frozen=True)
class LloydClusterer(ScheduledClusterer):
    """Lloyd's steps with Laplace noise from a public start: improved DPLloyd of Su, Cao, Li, Bertino and Jin (CODASPY
    2016), for comparison.

    Guarantee: epsilon-DP, replace-one or add-remove, for persons with at most `rows_per_person` rows;
    docs/proofs/clustering.md, Lemma 5 and Theorem 1.
    Domain: at least one row, no refused cell, no more rows than stated; docs/proofs/errors-and-stops.md.
    """

    name: ClassVar[str] = "lloyd"
    spread, least_steps, most_steps = 0.225, 2, 7

    def schedule(self, facts: ClusteringFacts) -> QuerySchedule:
        """Every step releases numbers and sums; the split and the number of steps are those of the paper."""
        d, k = facts.columns, facts.clusters
        weight = (4 * d * self.spread**2) ** (1 / 3)
        least = math.sqrt(500 * k**3 / facts.rows**2 * (d + weight) ** 3)
        steps = int(np.clip(facts.epsilon / facts.sensitivity / least, self.least_steps, self.most_steps))
        part = Fraction(weight).limit_denominator(1000)
        numbers, sums = part / (part + d) / steps, d / (part + d) / steps
        queries = [
            query
            for t in range(1, steps + 1)
            for query in (
                Query(f"numbers of step {t}", "laplace", (k,), numbers),
                Query(f"sums of step {t}", "laplace", (k * d,), sums, norm=d),
            )
        ]
        return QuerySchedule(f"k-means by {steps} steps of DPLloyd", tuple(queries), facts)

    def centres(self, points: Points, schedule: QuerySchedule, draws: Draws) -> Floats:
        centres = sphere_packing(schedule.facts.clusters, schedule.facts.columns)
        for _ in schedule.queries[::2]:
            exact_sums = points.sums(on_lattice(centres), schedule.unit)
            numbers = schedule.drawn(draws, exact_sums[:, 0])[:, None]
            sums = schedule.drawn(draws, exact_sums[:, 1:])
            centres = np.where(numbers > 1, np.clip(sums / np.maximum(numbers, 1.0), -1.0, 1.0), centres)
        return centres


@dataclass(frozen=True)
class AutomaticClusterer(ScheduledClusterer):
    """A grid and one step where columns are few, or where there are some and rows are few; cells otherwise.

    From public facts alone.

    Guarantee: that of the mechanism chosen; docs/proofs/clustering.md, Theorem 1.
    """

    name: ClassVar[str] = "auto"

    def chosen(self, facts: ClusteringFacts) -> ScheduledClusterer:
        """The mechanism that suits these facts."""
        few = facts.columns <= FEW_COLUMNS or (facts.columns <= SOME_COLUMNS and facts.signal < FEW_ROWS)
        return HybridClusterer() if few else CellClusterer()

    def schedule(self, facts: ClusteringFacts) -> QuerySchedule:
        """That of the mechanism chosen."""
        return self.chosen(facts).schedule(facts)

    def centres(self, points: Points, schedule: QuerySchedule, draws: Draws) -> Floats:
        """As the mechanism chosen makes them."""
        return self.chosen(schedule.facts).centres(points, schedule, draws)


def _linf_sd(size: int) -> float:
    """The standard deviation of one of so many values with L-infinity noise of scale 1."""
    return KNorm(norm="linf", size=size).unit_sd
