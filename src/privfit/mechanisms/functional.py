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
from privfit.mechanisms.release import Release, check_ledger
from privfit.privacy import Event, Ledger, Noise, PrivacyError, Terms, noised
from privfit.rows import Rows
from privfit.schema import Geometry, Schema, SchemaError
from privfit.solvers import (
    REPAIRS,
    NoiseLevel,
    Penalty,
    ReducedQuadratic,
    Repair,
    Solution,
    consistent,
    is_bounded,
    minimise,
    minimise_penalised,
    plausible_mean,
    plausible_means,
    reduce_quadratic,
    shown_columns,
)
from privfit.statistics import STEP, Moments, MomentValues, Norm, distinct_sensitivity, linf_sensitivities, squared_l2_sensitivity

Floats = NDArray[np.float64]

EXPECTED_WEIGHT_NORM = 0.35
AUTO_L1 = 0.1
AUTO_L2 = 0.1
STIFFEST = 10.0
LEAST_TARGET_WEIGHT = 1 / 64
MOST_TARGET_WEIGHT = 8.0
USUAL_RERUNS = 1000
MOST_COLUMNS = 4000


NoiseKind = Literal["auto", "laplace", "linf", "l2", "gaussian"]
NORMS: dict[str, Norm] = {"laplace": "l1", "linf": "linf", "l2": "l2", "gaussian": "l2"}
CLEARLY = 0.98
SQUARE_WEIGHTS = {"laplace": 0.25, "l2": 0.5, "gaussian": 0.5, "linf": MOST_TARGET_WEIGHT}
"""How finely the target's square is bought for intervals: hardly felt by the other values, and in a cube not at all."""


@dataclass(frozen=True)
class Objective:
    """What is minimised: a loss of degree two, with or without an intercept, with or without a penalty on the coefficients.

    `spread` buys the sum of the target's squares besides, for intervals.
    """

    loss: QuadraticLoss
    fit_intercept: bool = True
    spread: bool = False
    penalty: Penalty | None = None


@dataclass(frozen=True)
class LinearFit:
    """Weights of the encoded columns, the intercept, and what it took to find them."""

    weights: Floats
    intercept: float
    target_mean: float
    solution: Solution
    moments: MomentValues
    penalty: tuple[Floats, Floats] | None = None
    """What multiplied |c_j| and c_j^2 / 2, per column shown, where there was a penalty."""
    gap: float = 0.0


@dataclass(frozen=True)
class FunctionalMechanism:
    """Release the moments of the encoded rows once, with noise; everything after that is free.

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
    noise : the shape of the noise. "laplace" protects against the sum of all moves that a row can make, "linf" (a cube) against the largest,
        "l2" (a ball) against their length; these spend epsilon alone. "gaussian" needs a delta. "auto" takes whichever is
        least for this schema ("l2", which never is by much, left out): often "laplace" with categories, "linf" for numbers only, "gaussian" with a delta
        and many columns.

    Guarantee: epsilon-DP, or (epsilon, delta)-DP with Gaussian noise, replace-one or add-remove, for persons with at most `rows_per_person`
    rows; docs/proofs/moments.md, Theorems 1 to 5 ("l2" up to a chance below 2^-64; docs/proofs/shapes.md). The guarantee of "rerun" is
    docs/proofs/rerun.md.
    Domain: at least one row, no refused cell, no more rows than stated; docs/proofs/errors-and-stops.md.
    """

    calibration: Literal["tight", "paper"] = "tight"
    repair: Repair = "floor"
    loss: QuadraticLoss | None = None
    interval: float | Literal["auto"] = "auto"
    noise: NoiseKind = "auto"

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
        if self.noise not in ("auto", *NORMS):
            raise PrivacyError(f"noise={self.noise!r} was given; it is one of {('auto', *NORMS)}. Use 'auto' if in doubt.")
        if self.noise == "gaussian" and self.repair == "rerun":
            raise PrivacyError(
                "repair='rerun' was given with noise='gaussian'; drawing again is proved for pure noise. Use repair='floor'."
            )
        if self.calibration == "paper" and self.noise not in ("auto", "laplace"):
            raise PrivacyError(f"noise={self.noise!r} was given with calibration='paper'; the paper prints Laplace noise. Use 'laplace'.")

    def geometry(self, schema: Schema, numeric: Literal["slope", "bins", "splines"], objective: Objective) -> Geometry:
        """How rows are encoded for this mechanism. A loss with an offset needs the sums of the columns, as an intercept does."""
        paper = self.calibration == "paper"
        intercept = objective.loss.offset != 0 or (objective.fit_intercept and not paper)
        anchored: Literal["no", "features", "all"] = "no" if objective.fit_intercept else "features" if objective.loss.offset else "all"
        geometry = schema.geometry(numeric=numeric, intercept=intercept, paper=paper, anchored="no" if paper else anchored)
        if geometry.n_columns > MOST_COLUMNS:
            widest = max(geometry.blocks, key=lambda block: block.width)
            raise SchemaError(
                f"The schema has {geometry.n_columns} encoded columns, {widest.width} of them for {widest.column.name!r}; this mechanism releases about "
                f"half their square and takes at most {MOST_COLUMNS}. Join levels, or let rare ones fall into 'other'. Nothing was charged."
            )
        return geometry

    def release(self, rows: Rows, terms: Terms, ledger: Ledger | None, noise: Noise, objective: Objective) -> Release[MomentValues]:
        """Sum the moments exactly, charge the ledger, then add noise."""
        check_ledger(ledger, noise)
        moments, event = self.plan(rows.geometry, terms, objective)  # public facts only up to here
        if ledger is not None:
            ledger.check(event)
        exact = rows.sum(moments)
        values = moments.distinct(exact, rows.n_rows, terms.adjacency)
        n_public = rows.n_rows if terms.adjacency == "replace-one" else None
        if ledger is not None:
            ledger.charge(event, dataset=rows.label)  # durable before any draw

        def draw() -> MomentValues:
            return consistent(moments, noised(noise, values, event).astype(np.float64), n_public)

        value = self._until_bounded(draw, noise, rows.geometry, objective) if self.repair == "rerun" else draw()
        return Release(value, event, noise.private)

    def plan(self, geometry: Geometry, terms: Terms, objective: Objective) -> tuple[Moments, Event]:
        """What is summed and with which noise it is released, from public facts alone: the noise named, or the least there is."""
        if self.noise != "auto":
            kinds: tuple[str, ...] = (self.noise,)
        elif self.calibration == "paper":
            kinds = ("laplace",)
        else:
            kinds = ("laplace", "linf", "gaussian") if terms.budget.delta > 0 and self.repair != "rerun" else ("laplace", "linf")
        plans: list[tuple[Moments, Event]] = []
        for kind in kinds:
            try:
                plans.append(self._plan_with(kind, geometry, terms, objective))
            except PrivacyError:  # more noise than this kind can hold
                if kind == kinds[-1] and not plans:
                    raise
        best = plans[0]
        for plan in plans[1:]:
            if _expected_error(*plan) < CLEARLY * _expected_error(*best):
                best = plan
        return best

    def _plan_with(self, kind: str, geometry: Geometry, terms: Terms, objective: Objective) -> tuple[Moments, Event]:
        moments = self.statistic(geometry, objective, kind)
        return moments, self.event(moments, terms, objective.loss, kind)

    def statistic(self, geometry: Geometry, objective: Objective, kind: str | None = None) -> Moments:
        """The moments with the target weighed by a public rule; for the noise named, or the mechanism's own."""
        loss, kind = objective.loss, kind or self._usual_kind
        if self.calibration == "paper":
            weight = math.sqrt(geometry.n_columns) * abs(loss.slope) / loss.curvature
        else:
            weight = target_weight(geometry, kind)
        bought = objective.spread and self.calibration == "tight"
        square_units = round(STEP * math.sqrt(min(SQUARE_WEIGHTS[kind], weight))) if bought else 0
        needs_rows = bought or (objective.penalty is not None and not objective.penalty.ridge)
        return Moments(geometry, max(1, round(weight * STEP)), square_units=square_units, needs_rows=needs_rows)

    @property
    def _usual_kind(self) -> str:
        return "laplace" if self.noise == "auto" else self.noise

    def event(self, moments: Moments, terms: Terms, loss: QuadraticLoss, kind: str | None = None) -> Event:
        """The price and the noise, from public facts alone."""
        kind = kind or self._usual_kind
        sensitivity = moments.sensitivity(terms.adjacency, NORMS[kind])
        if self.calibration == "paper":
            d = moments.geometry.n_columns
            printed = loss.printed_sensitivity(d) * d / loss.curvature  # of the coefficients that footnote 1 scales by 1 / sqrt(d)
            sensitivity = max(sensitivity, math.ceil(printed * moments.unit))
        mechanism = f"functional mechanism, {self.calibration} calibration"
        rows_per_person, n_values = int(terms.rows_per_person), moments.n_values(terms.adjacency)
        parts = moments.parts(terms.adjacency) if kind == "linf" else ()
        if kind == "gaussian":
            return Event.gaussian(
                mechanism,
                terms.budget,
                sensitivity=sensitivity,
                adjacency=terms.adjacency,
                rows_per_person=rows_per_person,
                unit=moments.unit,
                n_values=n_values,
            )
        return Event.pure(
            mechanism,
            terms.budget,
            noise=kind,
            sensitivity=sensitivity,
            adjacency=terms.adjacency,
            rows_per_person=rows_per_person,
            unit=moments.unit,
            n_values=n_values,
            parts=parts,
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
        moments = self.statistic(geometry, objective, release.event.noise)
        shift = loss.offset / loss.slope
        noise = noise_level(moments, release.event, reduced.target_mean - shift)
        solution = minimise(reduced.matrix, reduced.vector, noise, self.repair)
        stretch = loss.slope / (2 * loss.curvature)
        weights, strengths, gap = reduced.basis @ solution.weights, None, 0.0
        if objective.penalty is not None:
            weights, strengths, gap = self._penalised(objective.penalty, solution, reduced, geometry, noise, release.value.n_rows)
        weights = stretch * weights
        if not (fit_intercept and geometry.intercept):
            return LinearFit(weights, 0.0, 0.0, solution, release.value, strengths, gap)
        mean = plausible_mean(reduced.target_mean - shift, noise.vector / max(release.value.n_rows, 1.0))
        intercept = stretch * (mean + shift) - plausible_means(reduced.feature_means) @ weights
        return LinearFit(weights, float(intercept), mean, solution, release.value, strengths, gap)

    def _penalised(
        self, penalty: Penalty, solution: Solution, reduced: ReducedQuadratic, geometry: Geometry, noise: NoiseLevel, n_rows: float
    ) -> tuple[Floats, tuple[Floats, Floats], float]:
        """The penalised minimum in the units that a person sees, as encoded weights; the penalty used; and the certified gap."""
        target = geometry.target
        half = target.unit if target is not None and target.kind == "slope" else 1.0
        columns = shown_columns(geometry)
        shown = columns @ reduced.basis
        sizes = np.sqrt(np.sum(columns**2, axis=1))
        directions = shown @ solution.directions
        known = float(
            np.max(np.divide(solution.kept, solution.factors, out=np.zeros_like(solution.kept), where=solution.factors > 0), initial=0.0)
        )
        curvature = np.minimum(1 / np.maximum(solution.factors, 1e-300), STIFFEST * known)  # pinned directions need no more than that
        matrix = (directions * curvature) @ directions.T
        start = half * np.asarray(np.linalg.lstsq(shown.T, solution.weights, rcond=None)[0], dtype=np.float64)
        strengths = penalty.strengths(max(n_rows, 1.0), automatic_penalty(sizes, half, noise))
        found = minimise_penalised(matrix, start, *strengths)
        return columns.T @ found.coefficients / half, strengths, found.gap


def automatic_penalty(sizes: Floats, half: float, noise: NoiseLevel) -> tuple[Floats, Floats]:
    """The penalty that "auto" stands for, from public facts: the noise's level and the columns' units.

    For |c_j|: a share of the standard deviation of the noise in the gradient, so that coefficients which noise alone would explain go to zero. For
    c_j^2 / 2: a share of the size of the noise matrix, as encoded columns feel it. Both shares were chosen on generated data.
    """
    gradient = math.hypot(noise.vector, noise.matrix * math.hypot(EXPECTED_WEIGHT_NORM, 0.5))
    return AUTO_L1 * gradient * half * sizes, AUTO_L2 * noise.matrix * math.sqrt(len(sizes)) * sizes**2


def noise_level(moments: Moments, event: Event, target_mean: float = 0.0) -> NoiseLevel:
    """The standard deviations of the noise on the matrix's and the vector's entries, in units of 1."""
    return NoiseLevel(event.part_sd(0), event.part_sd(-1) / moments.target_weight, target_mean)


def _expected_error(moments: Moments, event: Event) -> float:
    """The variance that `target_weight` makes small: what noise does to weights of the usual size."""
    noise = noise_level(moments, event)
    return noise.vector**2 + (noise.matrix * EXPECTED_WEIGHT_NORM) ** 2


def target_weight(geometry: Geometry, kind: str = "laplace") -> float:
    """How much finer the target's lattice is than the others', by a public rule.

    An error e in X't moves the weights as e does, an error E in X'X as E w does. With the target's moments at weight t, Laplace noise is
    proportional to D_x + t D_t in both, and the sum of squares (D_x + t D_t)^2 (1 / t^2 + |w|^2) is least at
    t^3 = D_x / (D_t |w|^2). In L2 it is (D_x^2 + t^2 D_t^2) (1 / t^2 + |w|^2), least at t^4 = D_x^2 / (D_t^2 |w|^2). Cubes of p_x and p_t values have
    noise proportional to their sizes: (D_x + t D_t)^2 (p_t^2 / t^2 + p_x^2 |w|^2), least at t^3 = D_x p_t^2 / (D_t p_x^2 |w|^2).
    The norm of w, unknown and private, is replaced by a constant chosen on generated data.
    """
    if kind == "linf":
        features, target = linf_sensitivities(geometry, Fraction(1), "replace-one")
        sizes = Moments(geometry).parts("replace-one")
        ratio = float(features / target) * (sizes[-1] / sizes[0]) ** 2 if len(sizes) > 1 and target > 0 else 1.0
        return float(min(max((ratio / EXPECTED_WEIGHT_NORM**2) ** (1 / 3), LEAST_TARGET_WEIGHT), MOST_TARGET_WEIGHT))
    sensitivity = distinct_sensitivity if kind == "laplace" else squared_l2_sensitivity
    features = sensitivity(geometry, Fraction(0), "replace-one")
    target = sensitivity(geometry, Fraction(1), "replace-one") - features
    if features <= 0 or target <= 0:
        return 1.0
    best = float(features / target) / EXPECTED_WEIGHT_NORM**2
    return float(min(max(best ** (1 / 3 if kind == "laplace" else 1 / 4), 1.0), MOST_TARGET_WEIGHT))
