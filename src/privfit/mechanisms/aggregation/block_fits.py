"""Weights and centres by sample and aggregate: every block is fitted without noise, and the fits are averaged with
noise.

The baseline "GUPT" of Zhang, Xiao, Yang, Zhang and Winslett (PrivGene, SIGMOD 2013): weights within [-5, 5], centres
within the bounds of the columns.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from privfit.losses import ConvexLoss
from privfit.mechanisms.aggregation.block_plan import BlockAnswers, BlockPlan
from privfit.mechanisms.aggregation.sample_aggregate import SampleAndAggregate, notes_of
from privfit.mechanisms.base import Description, Mechanism, Numbers, PublicFacts, Release
from privfit.mechanisms.clustering.clustering import Clusterer, ClusterFit, Clusters
from privfit.mechanisms.perturbation.output import OutputPerturbation
from privfit.mechanisms.perturbation.problem import ERMFit, ERMProblem
from privfit.privacy import Draws, PrivacyError, seeded_generator
from privfit.rows import PartitionedRows, Rows
from privfit.rows.partition import BlockFunction
from privfit.schema import Geometry, Schema

Floats = NDArray[np.float64]

BLOCK_STEPS = 200
"""Steps of the solver for one block. Its answer need not be a minimum, so that this trades time for accuracy only. Not
measured."""
PUBLIC_SEED = 20_130_622
"""Public: where Lloyd's algorithm starts in a block depends on no row of another."""
RESTARTS, LLOYD_STEPS = 3, 20
"""Starts and steps of k-means in one block: more take longer. Not measured."""
ANY_ANSWERS = BlockAnswers(np.ravel, np.zeros(0), np.ones(0), of_user=False)
"""Whether sample and aggregate is private does not depend on what it averages."""


# -- weights ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class AggregatedWeights(Mechanism[ERMProblem, BlockPlan, PartitionedRows, Floats]):
    """The noisy mean of weights that were fitted block by block.

    Guarantee: epsilon-DP, or (epsilon, delta)-DP with Gaussian noise, replace-one or add-remove, for persons with at
    most `rows_per_person` rows; docs/proofs/aggregate.md, Theorem 1.
    Domain: at least one row, no refused cell, no more rows than stated; docs/proofs/errors-and-stops.md.
    """

    settings: SampleAndAggregate = field(default_factory=SampleAndAggregate)

    name: ClassVar[str] = SampleAndAggregate.name
    solves: ClassVar[str] = "weights"
    many_classes: ClassVar[bool] = True
    numeric: ClassVar[Numbers] = "splines"

    def numbers(self, asked: str, default: Numbers) -> Numbers:
        """How numbers enter: as slopes, because every weight makes the noise on all others larger."""
        return default if asked != "auto" else "slope"

    def describe(self, fit: ERMFit, schema: Schema, geometry: Geometry) -> Description:
        """What is averaged, and between which bounds."""
        largest = f"{self.settings.largest_weight:g}"
        told = (
            f"averages weights that minimise the {fit.loss.name} of a block each, between -{largest} and {largest}; "
            "noise is stated as a share of that range"
        )
        return Description(notes=(told,))

    def check(self) -> None:
        """Refuse parameters that mean nothing, before anything is read."""
        self.settings.check()

    def reasons_not_private(self, problem: ERMProblem) -> tuple[str, ...]:
        """As for any function."""
        return self.settings.reasons_not_private(ANY_ANSWERS)

    def geometry(self, schema: Schema, problem: ERMProblem, numeric: Numbers = "slope") -> Geometry:
        """How rows are encoded: as for perturbed objectives."""
        return OutputPerturbation().geometry(schema, problem, numeric)

    def plan(self, facts: PublicFacts, problem: ERMProblem) -> BlockPlan:
        """As for any function, with weights as its answers."""
        columns = facts.geometry.n_columns if problem.features is None else problem.features.n_columns
        largest, ridge = float(self.settings.largest_weight), float(self.settings.ridge)
        most = np.full(columns * problem.classes, largest)
        function = block_weights(problem.loss, problem.classes, ridge, largest)
        return self.settings.plan(facts, BlockAnswers(function, -most, most, of_user=False))

    def read(self, rows: Rows, plan: BlockPlan, problem: ERMProblem, draws: Draws) -> PartitionedRows:
        """Read encoded rows."""
        return self.settings.read_blocks(
            PartitionedRows(rows, encoded=True, features=problem.features), rows.geometry, plan
        )

    def draw(self, data: PartitionedRows, plan: BlockPlan, draws: Draws) -> Floats:
        """Fit every block and average."""
        return self.settings.draw(data, plan, draws)

    def solve(self, release: Release[Floats], geometry: Geometry, problem: ERMProblem) -> ERMFit:
        """The weights are what was released."""
        columns = geometry.n_columns if problem.features is None else problem.features.n_columns
        coupling = problem.coupling if problem.classes == 1 else "one-vs-rest"
        weights = release.value.reshape(columns, -1)
        return ERMFit(weights, float(self.settings.ridge), problem.loss, coupling, problem.features)


def block_weights(loss: ConvexLoss, classes: int, ridge: float, most: float) -> BlockFunction:
    """A function from encoded rows with their class to the weights, (columns, predictors), that fit them best; zero
    where all rows are of one side.
    """

    def function(rows: Floats) -> Floats:
        design, target = rows[:, :-1], rows[:, -1]
        sides = [target] if classes == 1 else [np.where(target == place, 1.0, -1.0) for place in range(classes)]
        return np.column_stack([_fitted(loss, design, side, ridge, most) for side in sides])

    return function


def _fitted(loss: ConvexLoss, design: Floats, side: Floats, ridge: float, most: float) -> Floats:
    columns = design.shape[1]
    if (side > 0).all() or (side < 0).all():
        return np.zeros(columns)
    value = loss.value
    assert value is not None

    def risk(weights: Floats) -> tuple[float, Floats]:
        scores = design @ weights
        slopes = np.asarray(loss.slope(scores, side))
        return float(np.sum(value(scores, side)) + ridge / 2 * weights @ weights), design.T @ slopes + ridge * weights

    found = minimize(
        risk,
        np.zeros(columns),
        jac=True,
        method="L-BFGS-B",
        bounds=[(-most, most)] * columns,
        options={"maxiter": BLOCK_STEPS},
    )
    return np.asarray(found.x, dtype=np.float64)


# -- centres ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class AggregatedCentres(Clusterer[BlockPlan, PartitionedRows]):
    """The noisy mean of centres that were found block by block, sorted by their first column so that like is averaged
    with like.

    Guarantee: epsilon-DP, or (epsilon, delta)-DP with Gaussian noise, replace-one or add-remove, for persons with at
    most `rows_per_person` rows; docs/proofs/aggregate.md, Theorem 1.
    Domain: at least one row, no refused cell, no more rows than stated; docs/proofs/errors-and-stops.md.
    """

    settings: SampleAndAggregate = field(default_factory=SampleAndAggregate)

    name: ClassVar[str] = SampleAndAggregate.name

    def check(self) -> None:
        """Refuse parameters that mean nothing, before anything is read."""
        self.settings.check()

    def reasons_not_private(self, problem: Clusters) -> tuple[str, ...]:
        """As for any function."""
        return self.settings.reasons_not_private(ANY_ANSWERS)

    def plan(self, facts: PublicFacts, problem: Clusters) -> BlockPlan:
        """As for any function, with centres as its answers."""
        k = int(problem.n_clusters)
        most = np.ones(k * len(facts.geometry.blocks))
        return self.settings.plan(facts, BlockAnswers(block_centres(k), -most, most, of_user=False))

    def read(self, rows: Rows, plan: BlockPlan, problem: Clusters, draws: Draws) -> PartitionedRows:
        """Read points."""
        return self.settings.read_blocks(PartitionedRows(rows, encoded=True), rows.geometry, plan)

    def draw(self, data: PartitionedRows, plan: BlockPlan, draws: Draws) -> ClusterFit:
        """Cluster every block and average."""
        centres = self.settings.draw(data, plan, draws).reshape(-1, len(plan.facts.geometry.blocks))
        notes = ("averages the centres of blocks, sorted by their first column", *notes_of(plan.event))
        return ClusterFit(centres, notes)


def block_centres(k: int) -> BlockFunction:
    """A function from points to k centres, sorted by their first column. Fewer points than centres are no answer."""

    def function(points: Floats) -> Floats:
        if len(points) < k:
            raise PrivacyError("A block has fewer points than centres.")  # counts as a failed block; nobody sees it
        generator = seeded_generator(PUBLIC_SEED)
        tried = [_lloyd(points, _far_apart(points, generator.uniform(size=k))) for _ in range(RESTARTS)]
        centres = min(tried, key=lambda found: found[0])[1]
        return np.asarray(centres[np.lexsort(centres.T[::-1])], dtype=np.float64)

    return function


def _far_apart(points: Floats, coins: Floats) -> Floats:
    """Points to start from, each likely to be far from those before (Arthur and Vassilvitskii 2007)."""
    taken: list[Floats] = []
    weights = np.ones(len(points))
    for coin in coins:
        sums = np.cumsum(weights)
        taken.append(points[min(int(np.searchsorted(sums, coin * sums[-1], side="right")), len(points) - 1)])
        away = ((points - taken[-1]) ** 2).sum(axis=1)
        weights = away if len(taken) == 1 else np.minimum(weights, away)
    return np.array(taken)


def _lloyd(points: Floats, centres: Floats) -> tuple[float, Floats]:
    """Lloyd's steps from these centres: the sum of squared distances, less the points' squared lengths, and the
    centres.
    """
    for _ in range(LLOYD_STEPS):
        away = (centres**2).sum(axis=1) - 2 * points @ centres.T
        own = np.argmin(away, axis=1)
        sizes = np.bincount(own, minlength=len(centres))
        sums = np.stack([np.bincount(own, column, len(centres)) for column in points.T], axis=1)
        centres = np.where(sizes[:, None] > 0, sums / np.maximum(sizes, 1)[:, None], centres)
    away = (centres**2).sum(axis=1) - 2 * points @ centres.T
    return float(away.min(axis=1).sum()), centres
