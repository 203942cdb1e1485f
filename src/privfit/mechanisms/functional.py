"""The functional mechanism: noise on the coefficients of the objective, then its minimum.

Zhang, Zhang, Xiao, Yang, Winslett: Functional Mechanism: Regression Analysis under Differential Privacy, VLDB 2012. The coefficients
of a loss of degree two are the second moments of the rows, so that is what is released; the noise is calibrated from the schema.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from privfit.losses import QuadraticLoss
from privfit.mechanisms.release import Release
from privfit.privacy import Event, Ledger, Noise, PrivacyError, Terms
from privfit.rows import Rows
from privfit.schema import Geometry, Schema, SchemaError
from privfit.solvers import (
    REPAIRS,
    NoiseLevel,
    Repair,
    Solution,
    consistent,
    is_bounded,
    minimise,
    plausible_mean,
    plausible_means,
    reduce_quadratic,
)
from privfit.statistics import STEP, Moments, MomentValues, distinct_sensitivity

Floats = NDArray[np.float64]

EXPECTED_WEIGHT_NORM = 0.35
MOST_TARGET_WEIGHT = 8.0
USUAL_RERUNS = 1000
MOST_COLUMNS = 4000


@dataclass(frozen=True)
class Objective:
    """What is minimised: a loss of degree two, with or without an intercept."""

    loss: QuadraticLoss
    fit_intercept: bool = True


@dataclass(frozen=True)
class LinearFit:
    """Weights of the encoded columns, the intercept, and what it took to find them."""

    weights: Floats
    intercept: float
    target_mean: float
    solution: Solution
    moments: MomentValues


@dataclass(frozen=True)
class FunctionalMechanism:
    """Release the moments of the encoded rows once, with Laplace noise; everything after that is free.

    Parameters
    ----------
    calibration : "tight" computes the noise from the schema's geometry. "paper" uses the constants, the scaling and the encoding
        that the paper prints (footnote 1, no intercept): as private, with far more noise, for comparison.
    repair : what makes the noisy objective have a minimum. "floor" raises negative eigenvalues (the default); "ridge" and "trim"
        are the paper's sections 6.1 and 6.2; "rerun" draws again at half of epsilon until there is a minimum (its Lemma 5: the whole
        costs epsilon, but the number of draws can be seen from outside by timing); None does nothing.
    loss : another loss of degree two (a QuadraticLoss). None takes the estimator's own.
    interval : for logistic regression, the size of x'w on which the quadratic should follow the logistic loss best; it sets the
        length of the coefficients. "auto" calibrates length and intercept from the released moments. Paper mode always uses Taylor's
        expansion at zero.

    Guarantee: epsilon-DP, replace-one or add-remove, for persons with at most `rows_per_person` rows; docs/proofs/moments.md,
    Theorems 1 to 3. The guarantee of "rerun" is docs/proofs/rerun.md.
    """

    calibration: Literal["tight", "paper"] = "tight"
    repair: Repair = "floor"
    loss: QuadraticLoss | None = None
    interval: float | Literal["auto"] = "auto"

    name = "functional"

    def check(self) -> None:
        """Refuse parameters that mean nothing, before anything is read."""
        if self.calibration not in ("tight", "paper"):
            raise PrivacyError(
                f"calibration={self.calibration!r} was given; it is 'tight' or 'paper'. Use 'tight' unless you compare with the paper."
            )
        if self.repair not in REPAIRS:
            raise PrivacyError(f"repair={self.repair!r} was given; it is one of {REPAIRS}. Use 'floor' unless you compare.")
        if self.loss is not None and not isinstance(self.loss, QuadraticLoss):
            raise PrivacyError(
                f"loss={self.loss!r} was given; it is a QuadraticLoss or None. Write QuadraticLoss(curvature=1, slope=2) for least squares."
            )
        if self.interval != "auto" and not (isinstance(self.interval, int | float) and 0 < self.interval <= 100):
            raise PrivacyError(
                f"interval={self.interval!r} was given; it is 'auto' or a positive number up to 100. Use 'auto' if in doubt."
            )

    def geometry(self, schema: Schema, numeric: Literal["slope", "bins"], objective: Objective) -> Geometry:
        """How rows are encoded for this mechanism. A loss with an offset needs the sums of the columns, as an intercept does."""
        paper = self.calibration == "paper"
        intercept = objective.loss.offset != 0 or (objective.fit_intercept and not paper)
        geometry = schema.geometry(numeric=numeric, intercept=intercept, paper=paper)
        if geometry.n_columns > MOST_COLUMNS:
            widest = max(geometry.blocks, key=lambda block: block.width)
            raise SchemaError(
                f"The schema has {geometry.n_columns} encoded columns, {widest.width} of them for {widest.column.name!r}; this mechanism releases about "
                f"half their square and takes at most {MOST_COLUMNS}. Join levels, or let rare ones fall into 'other'. Nothing was charged."
            )
        return geometry

    def release(self, rows: Rows, terms: Terms, ledger: Ledger | None, noise: Noise, objective: Objective) -> Release[MomentValues]:
        """Sum the moments exactly, charge the ledger, then add noise."""
        moments = self.statistic(rows.geometry, objective.loss)
        event = self.event(moments, terms, objective.loss)  # public facts only up to here
        if ledger is not None:
            ledger.check(event)
        exact = rows.sum(moments)
        values = moments.distinct(exact, rows.n_rows, terms.adjacency)
        n_public = rows.n_rows if terms.adjacency == "replace-one" else None
        if ledger is not None:
            ledger.charge(event, dataset=rows.label)  # durable before any draw

        def draw() -> MomentValues:
            noisy = noise.laplace(values, event.scale).astype(np.float64)
            return consistent(moments, noisy, n_public)

        value = self._until_bounded(draw, noise, rows.geometry, objective) if self.repair == "rerun" else draw()
        return Release(value, event, noise.private)

    def statistic(self, geometry: Geometry, loss: QuadraticLoss) -> Moments:
        """The moments with the target weighed by a public rule."""
        if self.calibration == "paper":
            weight = math.sqrt(geometry.n_columns) * abs(loss.slope) / loss.curvature
        else:
            weight = target_weight(geometry)
        return Moments(geometry, target_units=max(1, round(weight * STEP)))

    def event(self, moments: Moments, terms: Terms, loss: QuadraticLoss) -> Event:
        """The price and the noise, from public facts alone."""
        sensitivity = moments.sensitivity(terms.adjacency)
        if self.calibration == "paper":
            d = moments.geometry.n_columns
            printed = loss.printed_sensitivity(d) * d / loss.curvature  # of the coefficients that footnote 1 scales by 1 / sqrt(d)
            sensitivity = max(sensitivity, math.ceil(printed * moments.unit))
        return Event.laplace(
            f"functional mechanism, {self.calibration} calibration",
            terms.budget,
            sensitivity=sensitivity,
            adjacency=terms.adjacency,
            rows_per_person=int(terms.rows_per_person),
            unit=moments.unit,
            n_values=moments.n_values(terms.adjacency),
            share=0.5 if self.repair == "rerun" else 1.0,
        )

    def _until_bounded(self, draw: Callable[[], MomentValues], noise: Noise, geometry: Geometry, objective: Objective) -> MomentValues:
        while True:
            value = draw()
            reduced = reduce_quadratic(value, geometry, objective.loss, objective.fit_intercept)
            if is_bounded(reduced.matrix):
                return value
            if noise.one_in(USUAL_RERUNS):  # a coin and not a count: giving up is then as private as the rest
                raise PrivacyError(
                    f"repair='rerun' gave up; it tries about {USUAL_RERUNS} draws, and none gave a bounded objective: the noise is far larger "
                    "than the signal. The charge stands. Use repair='floor', or a larger epsilon."
                )

    def solve(self, release: Release[MomentValues], geometry: Geometry, objective: Objective) -> LinearFit:
        """The minimiser of the repaired noisy objective: post-processing of the release."""
        loss, fit_intercept = objective.loss, objective.fit_intercept
        reduced = reduce_quadratic(release.value, geometry, loss, fit_intercept)
        noise_sd = release.event.noise_sd
        weight = self.statistic(geometry, loss).target_weight
        noise = NoiseLevel(noise_sd, noise_sd / weight, reduced.target_mean)
        solution = minimise(reduced.matrix, reduced.vector, noise, self.repair)
        stretch = loss.slope / (2 * loss.curvature)
        weights = stretch * (reduced.basis @ solution.weights)
        if not (fit_intercept and geometry.intercept):
            return LinearFit(weights, 0.0, 0.0, solution, release.value)
        shift = loss.offset / loss.slope
        mean = plausible_mean(reduced.target_mean - shift, noise.vector / max(release.value.n_rows, 1.0))
        intercept = stretch * (mean + shift) - plausible_means(reduced.feature_means) @ weights
        return LinearFit(weights, float(intercept), mean, solution, release.value)


def target_weight(geometry: Geometry) -> float:
    """How much finer the target's lattice is than the others', by a public rule.

    An error e in X't moves the weights as e does, an error E in X'X as E w does. With the target's moments at weight t, the noise
    in both is proportional to D_x + t D_t, and the sum of squares (D_x + t D_t)^2 (1 / t^2 + |w|^2) is least at
    t^3 = D_x / (D_t |w|^2). The norm of w, unknown and private, is replaced by a constant chosen on generated data.
    """
    whole = distinct_sensitivity(geometry, Fraction(1), "replace-one")
    features = distinct_sensitivity(geometry, Fraction(0), "replace-one")
    target = whole - features
    if features <= 0 or target <= 0:
        return 1.0
    best = float(features / target) / EXPECTED_WEIGHT_NORM**2
    return float(min(max(best ** (1 / 3), 1.0), MOST_TARGET_WEIGHT))
