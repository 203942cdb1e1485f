"""Weights and centres by sample and aggregate: every block is fitted without noise, and the fits are averaged with noise.

The baseline "GUPT" of Zhang, Xiao, Yang, Zhang and Winslett (PrivGene, SIGMOD 2013): weights within [-5, 5], centres within the bounds of the columns.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from privfit.losses import ConvexLoss
from privfit.mechanisms.aggregate import BlockAnswers, SampleAndAggregate, notes_of
from privfit.mechanisms.clustering import ADAPTED_CLUSTERERS, NAMED_CLUSTERERS, Clusterer, ClusterFit, Clusters
from privfit.mechanisms.minima import Risk, RiskFit
from privfit.mechanisms.perturbation import OutputPerturbation
from privfit.mechanisms.release import Release
from privfit.mechanisms.rules import Numbers
from privfit.privacy import Ledger, Noise, PrivacyError, Terms, seeded_generator
from privfit.rows import DealtRows, Rows
from privfit.rows.dealt import BlockFunction
from privfit.schema import Geometry, Schema

Floats = NDArray[np.float64]

MOST_STEPS = 200
PUBLIC_SEED = 20_130_622
RESTARTS, LLOYD_STEPS = 3, 20


# -- weights -----------------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class AggregatedWeights:
    """The noisy mean of weights that were fitted block by block.

    Guarantee: epsilon-DP, or (epsilon, delta)-DP with Gaussian noise, replace-one or add-remove, for persons with at most `rows_per_person` rows; docs/proofs/aggregate.md, Theorem 1.
    Domain: at least one row, no refused cell, no more rows than stated; docs/proofs/errors-and-stops.md.
    """

    settings: SampleAndAggregate = field(default_factory=SampleAndAggregate)

    name: ClassVar[str] = SampleAndAggregate.name
    numeric: ClassVar[Numbers] = "splines"

    def numbers(self, asked: str, usual: Numbers) -> Numbers:
        """How numbers enter: as slopes, because every weight makes the noise on all others larger."""
        return usual if asked != "auto" else "slope"

    def geometry(self, schema: Schema, numeric: Numbers, objective: Risk) -> Geometry:
        """How rows are encoded: as for perturbed objectives."""
        return OutputPerturbation().geometry(schema, numeric, objective)

    def release(self, rows: Rows, terms: Terms, ledger: Ledger | None, noise: Noise, objective: Risk) -> Release[RiskFit]:
        """Read the rows, charge the ledger, fit every block and average."""
        columns = rows.geometry.n_columns if objective.features is None else objective.features.n_columns
        most = np.full(columns * objective.classes, float(self.settings.largest_weight))
        function = block_weights(objective.loss, objective.classes, float(self.settings.ridge), float(self.settings.largest_weight))
        dealt = DealtRows(rows, encoded=True, features=objective.features)
        release = self.settings.aggregated(dealt, rows.label, terms, ledger, noise, BlockAnswers(function, -most, most))
        coupling = objective.coupling if objective.classes == 1 else "one-vs-rest"
        fit = RiskFit(release.value.reshape(columns, -1), float(self.settings.ridge), objective.loss, coupling, objective.features)
        return Release(fit, release.event, release.private)

    def solve(self, release: Release[RiskFit], geometry: Geometry, objective: Risk) -> RiskFit:
        """The weights are what was released."""
        return release.value


def block_weights(loss: ConvexLoss, classes: int, ridge: float, most: float) -> BlockFunction:
    """A function from encoded rows with their class to the weights, (columns, predictors), that fit them best; zero where all rows are of one side."""

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
        risk, np.zeros(columns), jac=True, method="L-BFGS-B", bounds=[(-most, most)] * columns, options={"maxiter": MOST_STEPS}
    )
    return np.asarray(found.x, dtype=np.float64)


# -- centres -----------------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class AggregatedCentres(Clusterer):
    """The noisy mean of centres that were found block by block, sorted by their first column so that like is averaged with like.

    Guarantee: epsilon-DP, or (epsilon, delta)-DP with Gaussian noise, replace-one or add-remove, for persons with at most `rows_per_person` rows; docs/proofs/aggregate.md, Theorem 1.
    Domain: at least one row, no refused cell, no more rows than stated; docs/proofs/errors-and-stops.md.
    """

    settings: SampleAndAggregate = field(default_factory=SampleAndAggregate)

    name: ClassVar[str] = SampleAndAggregate.name

    def check(self) -> None:
        """Refuse parameters that mean nothing, before anything is read."""
        self.settings.check()

    def release(self, rows: Rows, terms: Terms, ledger: Ledger | None, noise: Noise, objective: Clusters) -> Release[ClusterFit]:
        """Read the rows, charge the ledger, cluster every block and average."""
        k, d = int(objective.n_clusters), len(rows.geometry.blocks)
        most = np.ones(k * d)
        answers = BlockAnswers(block_centres(k), -most, most)
        release = self.settings.aggregated(DealtRows(rows, encoded=True), rows.label, terms, ledger, noise, answers)
        notes = ("averages the centres of blocks, sorted by their first column", *notes_of(release.event))
        return Release(ClusterFit(release.value.reshape(k, d), notes), release.event, release.private)


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
    """Lloyd's steps from these centres: the sum of squared distances, less the points' squared lengths, and the centres."""
    for _ in range(LLOYD_STEPS):
        away = (centres**2).sum(axis=1) - 2 * points @ centres.T
        own = np.argmin(away, axis=1)
        sizes = np.bincount(own, minlength=len(centres))
        sums = np.stack([np.bincount(own, column, len(centres)) for column in points.T], axis=1)
        centres = np.where(sizes[:, None] > 0, sums / np.maximum(sizes, 1)[:, None], centres)
    away = (centres**2).sum(axis=1) - 2 * points @ centres.T
    return float(away.min(axis=1).sum()), centres


NAMED_CLUSTERERS[AggregatedCentres.name] = AggregatedCentres()
ADAPTED_CLUSTERERS[SampleAndAggregate] = AggregatedCentres
