"""Private k-means: a noisy grid, many cells, or Lloyd's steps, and the public rule that chooses among them.

All of them release sums over the rows nearest to public centres, stage after stage; the next centres are made from what was released. How many stages there are, of what size, and what each may cost
follows from public facts, so the noise is asked for in the same order and shape whatever the rows are.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import uniform_filter

from privfit.mechanisms.centres import directions, projected, sphere_packing, spread_inside, weighted_centres
from privfit.mechanisms.release import Release
from privfit.mechanisms.stages import Facts, Plan, Stage
from privfit.privacy import Ledger, Noise, PrivacyError, Terms
from privfit.privacy.event import value_sd
from privfit.rows import Points, Rows, on_lattice, point_geometry
from privfit.rows.points import STEP
from privfit.schema import Geometry, Schema, SchemaError

Floats = NDArray[np.float64]

USUAL_ROWS = 20_000
"""Steers rules where the number of rows is private and no guess was given."""
MOST_CLUSTERS = 1000
MOST_CELLS = 1 << 16
HOPELESS, MANY_COLUMNS = 100.0, 5
HOPELESS_PER_CLUSTER = 10.0
FEW_COLUMNS, SOME_COLUMNS, FEW_ROWS = 4, 8, 1000.0
LEAST_WIDTH = 0.02


@dataclass(frozen=True)
class Clusters:
    """What is sought: so many centres."""

    n_clusters: int


@dataclass(frozen=True)
class ClusterFit:
    """Centres in [-1, 1], one row each, and lines for the report."""

    centres: Floats
    notes: tuple[str, ...] = ()


# -- what all share ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Clusterer:
    """What the mechanisms of k-means share: check, read, charge, then draw stage by stage.

    Guarantee: epsilon-DP, replace-one or add-remove, for persons with at most `rows_per_person` rows; docs/proofs/clustering.md, Theorem 1.
    """

    name: ClassVar[str] = ""

    def check(self) -> None:
        """Refuse parameters that mean nothing, before anything is read."""

    def geometry(self, schema: Schema, objective: Clusters) -> Geometry:
        """How rows are read: one number in [-1, 1] per column."""
        k: Any = objective.n_clusters
        if isinstance(k, bool) or not hasattr(k, "__index__") or not 1 <= int(k) <= MOST_CLUSTERS:
            raise PrivacyError(f"n_clusters={k!r} was given; it is a whole number from 1 to {MOST_CLUSTERS}. Write n_clusters=8.")
        return point_geometry(schema)

    def plan(self, facts: Facts) -> Plan:
        """The stages and their shares, from public facts."""
        raise NotImplementedError

    def _centres(self, points: Points, plan: Plan, noise: Noise) -> Floats:
        """Draw the stages of the plan, each once, and make centres of them."""
        raise NotImplementedError

    def chosen(self, facts: Facts) -> Clusterer:
        """The mechanism that does the work: this one, unless it is a rule."""
        return self

    def release(self, rows: Rows, terms: Terms, ledger: Ledger | None, noise: Noise, objective: Clusters) -> Release[ClusterFit]:
        """Read the rows, charge the ledger, then draw stage by stage."""
        points = Points(rows)
        if terms.adjacency == "replace-one" and rows.known_rows is None:
            points.read()
        public = rows.known_rows if terms.adjacency == "replace-one" else terms.expected_rows
        facts = Facts(len(rows.geometry.blocks), int(objective.n_clusters), int(public or USUAL_ROWS), terms)
        mechanism = self.chosen(facts)
        plan = mechanism.plan(facts)  # public facts only up to here
        if ledger is not None:
            ledger.check(plan.event)
        points.read()
        points.check_sums(plan.unit)
        if ledger is not None:
            ledger.charge(plan.event, dataset=rows.label)  # durable before any draw
        centres = mechanism._centres(points, plan, noise)
        return Release(ClusterFit(centres, notes_of(plan)), plan.event, noise.private)

    def solve(self, release: Release[ClusterFit], geometry: Geometry, objective: Clusters) -> ClusterFit:
        """The centres are what was released."""
        return release.value


def notes_of(plan: Plan) -> tuple[str, ...]:
    """Lines for the report: what epsilon was spent on, and whether that can be enough."""
    notes = [f"the parts of the release share epsilon: {plan.shares}"]
    facts = plan.facts
    many = facts.signal < HOPELESS and facts.columns >= MANY_COLUMNS
    if many or facts.signal < HOPELESS_PER_CLUSTER * facts.clusters:
        enough_for = f"{facts.columns} columns" if many else f"{facts.clusters} cluster{'s' * (facts.clusters != 1)}"
        notes.append(
            f"rows times epsilon are {facts.signal:.3g} times what one person can move, too few for {enough_for}: the centres are mostly noise. "
            "Use more rows, a larger epsilon, fewer columns or fewer clusters"
        )
    return tuple(notes)


def _block_stage(name: str, blocks: int, facts: Facts, share: Fraction) -> Stage:
    """Block sums: a count and one sum per column in a cube for every block, of which a row touches one."""
    return Stage(name, "linf", (facts.columns + 1,) * blocks, share)


def _block_sums(points: Points, plan: Plan, stage: Stage, noise: Noise, centres: Floats, widths: Floats) -> tuple[Floats, Floats]:
    """Noisy numbers of the points nearest to every centre, and noisy sums of how far they are from it, each cut at a width.

    Guarantee: docs/proofs/clustering.md, Lemma 2.
    """
    widths = np.broadcast_to(widths, centres.shape)
    drawn = plan.drawn(noise, stage, points.blocks(on_lattice(centres), widths, plan.unit))
    return drawn[:, 0], drawn[:, 1:] * widths


# -- a grid ------------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Grid(Clusterer):
    """Count the rows in the cells of a grid, with noise, and cluster the cells: for few columns.

    After EUGkM of Su, Cao, Li, Bertino and Jin (Differentially private k-means clustering, CODASPY 2016), with a finer grid, and cells kept only where they and their neighbours stand out of the noise.

    Guarantee: epsilon-DP, replace-one or add-remove, for persons with at most `rows_per_person` rows; docs/proofs/clustering.md, Lemma 3 and Theorem 1.
    """

    name = "grid"
    share: ClassVar[Fraction] = Fraction(1)
    fine, coarse, pooled_from = 5.0, 10.0, 5
    kept_from, stands_out, restarts = 0.5, 2.0, 20

    def geometry(self, schema: Schema, objective: Clusters) -> Geometry:
        """As all, for as many columns as a grid can have."""
        geometry = super().geometry(schema, objective)
        if 2**geometry.n_blocks > MOST_CELLS:
            raise SchemaError(
                f"A grid was asked for with {geometry.n_blocks} columns; two cells per column are more than {MOST_CELLS} in all. "
                "Use mechanism='cells', or list fewer columns. Nothing was charged."
            )
        return geometry

    def cells(self, facts: Facts) -> int:
        """Cells per column: more where there are more rows to fill them."""
        d, signal = facts.columns, facts.signal * float(self.share)
        most = max(2, int(MOST_CELLS ** (1 / d) + 1e-9))
        least = min(most, math.ceil((2 * facts.clusters) ** (1 / d) - 1e-9))

        def size(per_cell: float) -> int:
            return int(min(max(2, least, round((signal / per_cell) ** (2 / (d + 2)))), most))

        fine = size(self.fine)
        return fine if fine >= self.pooled_from else size(self.coarse)

    def plan(self, facts: Facts) -> Plan:
        """One stage: the counts."""
        cells = self.cells(facts)
        return Plan(f"k-means on a grid of {cells}^{facts.columns} cells", (self._counts(facts, cells),), facts)

    def _counts(self, facts: Facts, cells: int) -> Stage:
        return Stage("the grid", "laplace", (cells**facts.columns,), self.share)

    def _centres(self, points: Points, plan: Plan, noise: Noise) -> Floats:
        return self._from_grid(points, plan, noise)[0]

    def _from_grid(self, points: Points, plan: Plan, noise: Noise) -> tuple[Floats, Floats, Floats]:
        """Centres, and the cells that were kept with their weights: post-processing of the noisy counts."""
        facts, stage = plan.facts, plan.stages[0]
        cells, d, k = self.cells(facts), facts.columns, facts.clusters
        counts = plan.drawn(noise, stage, plan.unit * points.counts(cells))
        scale = plan.scale(stage) / plan.unit
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
class Hybrid(Grid):
    """A grid for three fifths of epsilon, then one step of Lloyd's for the rest, whose sums are cut at the width of each cluster.

    Su et al. take half each and cut at the bounds; cutting at a width that the grid tells makes the noise of the step far smaller.

    Guarantee: epsilon-DP, replace-one or add-remove, for persons with at most `rows_per_person` rows; docs/proofs/clustering.md, Lemmas 2 and 3 and Theorem 1.
    """

    name = "hybrid"
    share = Fraction(3, 5)
    shrunk = 0.5

    def plan(self, facts: Facts) -> Plan:
        """Two stages: the counts, and a block sum for every centre."""
        cells = self.cells(facts)
        step = _block_stage("one step", facts.clusters, facts, 1 - self.share)
        return Plan(f"k-means on a grid of {cells}^{facts.columns} cells, then one step", (self._counts(facts, cells), step), facts)

    def _centres(self, points: Points, plan: Plan, noise: Noise) -> Floats:
        centres, places, weights = self._from_grid(points, plan, noise)
        inside, spread = spread_inside(places, weights, centres)
        spread += (2 / self.cells(plan.facts)) ** 2 / 12
        usual = (spread * inside[:, None]).sum(axis=0) / inside.sum()
        widths = np.clip(np.sqrt(0.5 * spread + 0.5 * usual), LEAST_WIDTH, 1.0)
        sd = plan.sd(plan.stages[1])
        numbers, sums = _block_sums(points, plan, plan.stages[1], noise, centres, widths)
        sizes = np.maximum(0.5 * (numbers + inside), 2 * sd)[:, None]
        step, variance = sums / sizes, (widths * sd / sizes) ** 2
        kept = np.maximum(0.0, 1 - self.shrunk * variance.sum(axis=1) / np.maximum((step**2).sum(axis=1), 1e-12))  # James and Stein
        return np.asarray(np.clip(centres + kept[:, None] * step, -1.0, 1.0), dtype=np.float64)


# -- cells ---------------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Cells(Clusterer):
    """Many public directions around a noisy mean, the means of the rows nearest to each, clusters of those, then Lloyd's steps that remember: for many columns.

    Guarantee: epsilon-DP, replace-one or add-remove, for persons with at most `rows_per_person` rows; docs/proofs/clustering.md, Lemmas 2 and 4 and Theorem 1.
    """

    name = "cells"
    moments_share, cells_share, steps_share = Fraction(15, 100), Fraction(40, 100), Fraction(45, 100)
    noise_of_moments = 0.02
    per_cell, most_cells, radius = 0.35, 256, 0.5
    first_width, width = 1.0, 1.5
    noise_of_steps, most_steps, memory, restarts = 0.01, 6, 0.5, 10

    def plan(self, facts: Facts) -> Plan:
        """Moments, cells, and as many steps as their noise allows."""
        cells, steps = self.n_cells(facts), self.n_steps(facts)
        d, counted = facts.columns, 0 if facts.knows_rows else 1
        size = (d + 1 if self.pools(facts) else 2 * d) + counted
        stages = (
            Stage("moments", "linf", (size,), self.moments_share),
            _block_stage("cells", cells, facts, self.cells_share),
            *(_block_stage(f"step {t}", facts.clusters, facts, self.steps_share / steps) for t in range(1, steps + 1)),
        )
        return Plan(f"k-means in {cells} cells, then {steps} step{'s' * (steps > 1)}", stages, facts)

    def pools(self, facts: Facts) -> bool:
        """Whether columns share one variance, because noise on one each would be too large."""
        size = 2 * facts.columns + (0 if facts.knows_rows else 1)
        return value_sd("linf", size) / (facts.signal * float(self.moments_share)) / 2 >= self.noise_of_moments

    def n_cells(self, facts: Facts) -> int:
        """As many cells as can be told from noise."""
        wanted = self.per_cell * facts.signal * float(self.cells_share) / (value_sd("linf", facts.columns + 1) * self.first_width)
        return int(np.clip(wanted, 2 * facts.clusters, max(self.most_cells, 2 * facts.clusters)))

    def n_steps(self, facts: Facts) -> int:
        """As many steps as leave the noise of each small."""
        noise = facts.clusters * self.width * value_sd("linf", facts.columns + 1) * math.sqrt(3)
        wanted = facts.signal * float(self.steps_share) * math.sqrt(3 * self.noise_of_steps) / noise
        return int(np.clip(wanted, 1, self.most_steps))

    def _centres(self, points: Points, plan: Plan, noise: Noise) -> Floats:
        mean, variance = self._moments(points, plan, noise)
        centres, between = self._first_centres(points, plan, noise, mean, variance)
        widths = np.clip(self.width * np.sqrt(np.maximum(variance - between, 0.1 * variance)), LEAST_WIDTH, 1.0)
        weight, total = np.zeros(len(centres)), np.zeros(centres.shape)
        for stage in plan.stages[2:]:
            numbers, sums = _block_sums(points, plan, stage, noise, centres, widths)
            sizes = np.maximum(numbers, 2 * plan.sd(stage))
            weight = self.memory * weight + sizes
            total = self.memory * total + sizes[:, None] * centres + sums
            centres = np.clip(total / weight[:, None], -1.0, 1.0)
        return centres

    def _moments(self, points: Points, plan: Plan, noise: Noise) -> tuple[Floats, Floats]:
        """The mean and the variance of every column, pulled towards what is usual as far as they are noise."""
        facts, stage, pooled = plan.facts, plan.stages[0], self.pools(plan.facts)
        exact_sums = plan.unit // STEP * points.moments(pooled)
        drawn = plan.drawn(noise, stage, exact_sums[:-1] if facts.knows_rows else exact_sums)
        d, rows = facts.columns, float(facts.rows) if facts.knows_rows else max(drawn[-1], facts.rows / 4)
        sd = plan.sd(stage) / facts.rows
        mean = drawn[:d] / rows
        seen = max(0.0, float(np.mean(mean**2)) - sd**2)
        mean = np.clip(mean * seen / (seen + sd**2), -1.0, 1.0)
        variance = (drawn[d : d + (1 if pooled else d)] / rows + 1) / 2 - (np.mean(mean**2) if pooled else mean**2)
        of_all = (sd / 2) ** 2 / (1 if pooled else d)
        common = np.clip((np.mean(variance) / of_all + 0.15 / 0.01) / (1 / of_all + 1 / 0.01), 0.01, 0.5)  # 0.15 ± 0.1 is usual
        if pooled:
            return mean, np.full(d, common)
        off = variance - np.mean(variance)
        seen = max(0.0, float(np.mean(off**2)) - (sd / 2) ** 2)
        return mean, np.clip(common + seen / (seen + (sd / 2) ** 2) * off, 0.05 * common, 1.0)

    def _first_centres(self, points: Points, plan: Plan, noise: Noise, mean: Floats, variance: Floats) -> tuple[Floats, Floats]:
        """Clusters of the noisy means of the cells, and the variance between them."""
        stage, k, d = plan.stages[1], plan.facts.clusters, plan.facts.columns
        deviation, sd = np.sqrt(variance), plan.sd(stage)
        middles = np.clip(mean + deviation * math.sqrt(d) * self.radius * directions(len(stage.parts), d), -1.0, 1.0)
        numbers, sums = _block_sums(points, plan, stage, noise, middles, np.clip(self.first_width * deviation, LEAST_WIDTH, 1.0))
        found = np.clip(middles + sums / np.maximum(numbers, sd)[:, None], -1.0, 1.0)
        weights = np.where(numbers > sd, numbers, 0.0)
        if np.count_nonzero(weights) > k and 0 < k - 1 < d:
            found = np.clip(projected(found, weights, k - 1), -1.0, 1.0)
        centres = weighted_centres(found, weights, k, self.restarts)
        inside, _ = spread_inside(found, weights, centres)
        middle = inside @ centres / inside.sum()
        return centres, inside @ (centres - middle) ** 2 / inside.sum()


# -- Lloyd -----------------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Lloyd(Clusterer):
    """Lloyd's steps with Laplace noise from a public start: improved DPLloyd of Su, Cao, Li, Bertino and Jin (CODASPY 2016), for comparison.

    Guarantee: epsilon-DP, replace-one or add-remove, for persons with at most `rows_per_person` rows; docs/proofs/clustering.md, Lemma 5 and Theorem 1.
    """

    name = "lloyd"
    spread, least_steps, most_steps = 0.225, 2, 7

    def plan(self, facts: Facts) -> Plan:
        """Every step releases numbers and sums; the split and the number of steps are those of the paper."""
        d, k = facts.columns, facts.clusters
        weight = (4 * d * self.spread**2) ** (1 / 3)
        least = math.sqrt(500 * k**3 / facts.rows**2 * (d + weight) ** 3)
        steps = int(np.clip(facts.epsilon / facts.moved / least, self.least_steps, self.most_steps))
        part = Fraction(weight).limit_denominator(1000)
        numbers, sums = part / (part + d) / steps, d / (part + d) / steps
        stages = [
            stage
            for t in range(1, steps + 1)
            for stage in (
                Stage(f"numbers of step {t}", "laplace", (k,), numbers),
                Stage(f"sums of step {t}", "laplace", (k * d,), sums, most=d),
            )
        ]
        return Plan(f"k-means by {steps} steps of DPLloyd", tuple(stages), facts)

    def _centres(self, points: Points, plan: Plan, noise: Noise) -> Floats:
        centres = sphere_packing(plan.facts.clusters, plan.facts.columns)
        for first, second in zip(plan.stages[::2], plan.stages[1::2], strict=True):
            exact_sums = points.sums(on_lattice(centres), plan.unit)
            numbers = plan.drawn(noise, first, exact_sums[:, 0])[:, None]
            sums = plan.drawn(noise, second, exact_sums[:, 1:])
            centres = np.where(numbers > 1, np.clip(sums / np.maximum(numbers, 1.0), -1.0, 1.0), centres)
        return centres


# -- the rule --------------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class AutomaticClusterer(Clusterer):
    """A grid and one step where columns are few, or where there are some and rows are few; cells otherwise. From public facts alone.

    Guarantee: that of the mechanism chosen; docs/proofs/clustering.md, Theorem 1.
    """

    name = "auto"

    def chosen(self, facts: Facts) -> Clusterer:
        """The mechanism that suits these facts."""
        few = facts.columns <= FEW_COLUMNS or (facts.columns <= SOME_COLUMNS and facts.signal < FEW_ROWS)
        return Hybrid() if few else Cells()


NAMED_CLUSTERERS: dict[str, Clusterer] = {one.name: one for one in (AutomaticClusterer(), Hybrid(), Grid(), Cells(), Lloyd())}
"""What `pf.KMeans(mechanism=...)` knows by name. A mechanism that is added here can be asked for."""
ADAPTED_CLUSTERERS: dict[type, Callable[[Any], Clusterer]] = {}
"""How an instance of another class becomes a mechanism of k-means, by its class."""


def clusterer(given: Any) -> Clusterer:
    """The mechanism of that name, or the one given; checked."""
    found: Clusterer | None = None
    if isinstance(given, str):
        found = NAMED_CLUSTERERS.get(given)
    elif isinstance(given, Clusterer):
        found = given
    elif type(given) in ADAPTED_CLUSTERERS:
        found = ADAPTED_CLUSTERERS[type(given)](given)
    if found is None:
        shown = repr(given) if isinstance(given, str) else type(given).__name__
        raise PrivacyError(f"mechanism={shown} was given; k-means has {', '.join(map(repr, NAMED_CLUSTERERS))}. Use 'auto' if in doubt.")
    found.check()
    return found
