"""k-means on a noisy grid: for few columns."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import uniform_filter

from privfit.mechanisms.base import Numbers
from privfit.mechanisms.clustering.centres import spread_inside, weighted_centres
from privfit.mechanisms.clustering.clustering import (
    LEAST_WIDTH,
    Clusters,
    ScheduledClusterer,
    block_query,
    block_sums,
)
from privfit.mechanisms.clustering.schedule import ClusteringFacts, Query, QuerySchedule
from privfit.privacy import Draws
from privfit.rows import Points
from privfit.schema import Geometry, Schema, SchemaError

Floats = NDArray[np.float64]

MOST_GRID_CELLS = 1 << 16
"""The most cells of a grid: it bounds memory and time. Not measured."""


@dataclass(frozen=True)
class GridClusterer(ScheduledClusterer):
    """Count the rows in the cells of a grid, with noise, and cluster the cells: for few columns.

    After EUGkM of Su, Cao, Li, Bertino and Jin (Differentially private k-means clustering, CODASPY 2016), with a finer
    grid, and cells kept only where they and their neighbours stand out of the noise.

    Guarantee: epsilon-DP, replace-one or add-remove, for persons with at most `rows_per_person` rows;
    docs/proofs/clustering.md, Lemma 3 and Theorem 1.
    Domain: at least one row, no refused cell, no more rows than stated; docs/proofs/errors-and-stops.md.
    """

    name: ClassVar[str] = "grid"
    share: ClassVar[Fraction] = Fraction(1)
    fine, coarse, pooled_from = 5.0, 10.0, 5
    kept_from, stands_out, restarts = 0.5, 2.0, 20

    def geometry(self, schema: Schema, problem: Clusters, numeric: Numbers = "slope") -> Geometry:
        """As all, for as many columns as a grid can have."""
        geometry = super().geometry(schema, problem, numeric)
        if 2**geometry.n_blocks > MOST_GRID_CELLS:
            raise SchemaError(
                f"A grid was asked for with {geometry.n_blocks} columns; two cells per column are more than "
                f"{MOST_GRID_CELLS} in all. "
                "Use mechanism='cells', or list fewer columns. Nothing was charged."
            )
        return geometry

    def cells(self, facts: ClusteringFacts) -> int:
        """Cells per column: more where there are more rows to fill them."""
        d, signal = facts.columns, facts.signal * float(self.share)
        most = max(2, int(MOST_GRID_CELLS ** (1 / d) + 1e-9))
        least = min(most, math.ceil((2 * facts.clusters) ** (1 / d) - 1e-9))

        def size(per_cell: float) -> int:
            return int(min(max(2, least, round((signal / per_cell) ** (2 / (d + 2)))), most))

        fine = size(self.fine)
        return fine if fine >= self.pooled_from else size(self.coarse)

    def schedule(self, facts: ClusteringFacts) -> QuerySchedule:
        """One query: the counts."""
        cells = self.cells(facts)
        return QuerySchedule(
            f"k-means on a grid of {cells}^{facts.columns} cells", (self._counts(facts, cells),), facts
        )

    def _counts(self, facts: ClusteringFacts, cells: int) -> Query:
        return Query("the grid", "laplace", (cells**facts.columns,), self.share)

    def centres(self, points: Points, schedule: QuerySchedule, draws: Draws) -> Floats:
        return self._from_grid(points, schedule, draws)[0]

    def _from_grid(self, points: Points, schedule: QuerySchedule, draws: Draws) -> tuple[Floats, Floats, Floats]:
        """Centres, and the cells that were kept with their weights: post-processing of the noisy counts."""
        facts, query = schedule.facts, schedule.queries[0]
        cells, d, k = self.cells(facts), facts.columns, facts.clusters
        counts = schedule.drawn(draws, schedule.unit * points.counts(cells))
        scale = schedule.scale(query) / schedule.unit
        if cells >= self.pooled_from:
            around = uniform_filter(counts.reshape((cells,) * d), 3, mode="constant").ravel()
            kept = np.flatnonzero((around > self.stands_out * scale * math.sqrt(2 / 3**d)) & (counts > scale))
        else:
            kept = np.flatnonzero(counts > self.kept_from * scale * math.log(len(counts)))
        if len(kept) < 2 * k:
            kept = np.sort(np.argsort(-counts, kind="stable")[: 2 * k])
        places = (np.stack(np.unravel_index(kept, (cells,) * d), axis=1) + 0.5) / cells * 2 - 1
        weights = np.maximum(counts[kept], scale)
        return weighted_centres(places, weights, k, self.restarts), places, weights


@dataclass(frozen=True)
class HybridClusterer(GridClusterer):
    """A grid for three fifths of epsilon, then one step of Lloyd's for the rest, whose sums are cut at the width of
    each cluster.

    Su et al. take half each and cut at the bounds; cutting at a width estimated from the grid makes the noise of the
    step far smaller.

    Guarantee: epsilon-DP, replace-one or add-remove, for persons with at most `rows_per_person` rows;
    docs/proofs/clustering.md, Lemmas 2 and 3 and Theorem 1.
    Domain: at least one row, no refused cell, no more rows than stated; docs/proofs/errors-and-stops.md.
    """

    name: ClassVar[str] = "hybrid"
    share = Fraction(3, 5)
    shrunk = 0.5

    def schedule(self, facts: ClusteringFacts) -> QuerySchedule:
        """Two queries: the counts, and a block sum for every centre."""
        cells = self.cells(facts)
        step = block_query("one step", facts.clusters, facts, 1 - self.share)
        return QuerySchedule(
            f"k-means on a grid of {cells}^{facts.columns} cells, then one step",
            (self._counts(facts, cells), step),
            facts,
        )

    def centres(self, points: Points, schedule: QuerySchedule, draws: Draws) -> Floats:
        centres, places, weights = self._from_grid(points, schedule, draws)
        inside, spread = spread_inside(places, weights, centres)
        spread += (2 / self.cells(schedule.facts)) ** 2 / 12
        usual = (spread * inside[:, None]).sum(axis=0) / inside.sum()
        widths = np.clip(np.sqrt(0.5 * spread + 0.5 * usual), LEAST_WIDTH, 1.0)
        sd = schedule.sd(schedule.queries[1])
        numbers, sums = block_sums(points, schedule, draws, centres, widths)
        sizes = np.maximum(0.5 * (numbers + inside), 2 * sd)[:, None]
        step, variance = sums / sizes, (widths * sd / sizes) ** 2
        kept = np.maximum(
            0.0, 1 - self.shrunk * variance.sum(axis=1) / np.maximum((step**2).sum(axis=1), 1e-12)
        )  # James and Stein
        return np.asarray(np.clip(centres + kept[:, None] * step, -1.0, 1.0), dtype=np.float64)
