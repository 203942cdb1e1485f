"""How private rows differ from public ones: a regularised logistic regression of the one against the other, with noise.

Ji and Elkan: Differential privacy based on importance weighting, Machine Learning 2013, Algorithm 1. Here in sum form
with a public number of rows, with the distance that two rows really can have, and with a certificate for what the
solver leaves undone.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from privfit.losses import LOGISTIC
from privfit.mechanisms.base import Mechanism, Numbers, PublicFacts, ReleasePlan
from privfit.mechanisms.perturbation.base import Perturbation
from privfit.mechanisms.perturbation.objective import ObjectivePerturbation
from privfit.mechanisms.perturbation.objective_noise import ObjectiveNoise
from privfit.mechanisms.perturbation.output import OutputPerturbation
from privfit.mechanisms.perturbation.precision import check_number, minimised
from privfit.mechanisms.perturbation.problem import ERMPlan, ERMProblem, Gradients
from privfit.mechanisms.reweighting.base import ReweightingFit, ReweightingProblem, tilted_weights
from privfit.mechanisms.reweighting.variances import curvature, regression_bound, regression_covariance
from privfit.privacy import Budget, Draws, Event, PrivacyError, PrivacyParameters
from privfit.rows import CachedDesign, PublicRows, Rows
from privfit.rows.cached_design import SampledDesign
from privfit.rows.fixed_point import RowResponse, most_rounding
from privfit.schema import Geometry, Schema
from privfit.tables import Table

Floats = NDArray[np.float64]

SAMPLE_VALUES = 1 << 20
"""Values of the sample that preconditions the solver: it trades time for passes, never the result."""
MOST_PUBLIC = 1 << 26
"""More public rows than this would be added up in longer sums than the proof counts."""
MORE_ROUNDING = 1.01
"""Rounding is counted for 1% more rows, which pays for joining the sums of private and public rows:
docs/proofs/weights.md, Theorem 1.
"""
PROBLEM = ERMProblem(LOGISTIC, fit_intercept=False)
PRINTED_ROWS = (
    "calibration='paper' under add-remove without expected_rows: the printed noise is made from the number of private "
    "rows, in which neighbours differ"
)


@dataclass(frozen=True)
class DensityRatioFit(ReweightingFit):
    """The coefficients of the regression, as released; the ridge on them in the sum over rows; and the number of rows
    that it was scaled by.
    """

    mechanism: DensityRatio
    event: Event
    ridge: float
    rows: int
    noise: ObjectiveNoise | None
    """The noise on the objective's gradient; None where noise is on the minimum."""

    @property
    def total(self) -> int:
        """By how many rows the objective is divided to have means in it, as the paper writes it."""
        return self.mechanism.total(self.problem.public.n_rows, self.rows)

    @property
    def alpha(self) -> float:
        """The ridge beside means: as it was given, or larger where privacy needs it."""
        return self.ridge / self.total

    def repairs(self) -> dict[str, float]:
        """The ridge beside a sum over rows."""
        return {"ridge": self.ridge}

    def notes(self) -> list[str]:
        """Whether the ridge was raised."""
        asked = float(self.mechanism.alpha)
        if self.alpha <= asked * (1 + 1e-9):
            return []
        return [
            f"alpha was raised from {asked:.3g} to {self.alpha:.3g}: noise in the objective is private with such a "
            "ridge only"
        ]

    def covariance(self) -> Floats:
        """Lemma 5 for the private sample; and that of the noise, times the inverse Hessian where it is in the
        objective.
        """
        weights, public = tilted_weights(self.design @ self.beta), self.problem.public.n_rows
        shares = (self.rows / self.total, self.mechanism.weight(public, self.rows) * public / self.total)
        sampling = regression_covariance(self.design, weights, self.beta, self.rows, self.alpha, *shares)
        if self.noise is None:
            return np.asarray(sampling + self.event.noise_sd**2 * np.eye(len(self.beta)), dtype=np.float64)
        inverse = np.linalg.inv(self.total * curvature(self.design, weights, self.beta, self.alpha, *shares))
        return np.asarray(sampling + inverse @ self.noise.covariance() @ inverse, dtype=np.float64)

    def variance_bound(self, gradient: Floats) -> float:
        """Theorem 2 of the paper with Lemma 7 corrected, at the released beta."""
        norm = self.geometry.l2 * self.rows / self.total
        bound = regression_bound(norm, self.rows, self.alpha, self._noise_variance())
        return float(bound * gradient @ gradient)

    def _noise_variance(self) -> float:
        """Of the noisiest entry of beta, to first order."""
        if self.noise is None:
            return float(self.event.noise_sd**2)
        return float(self.noise.largest_variance() / self.ridge**2)

    def without_noise(self, reference: Table, schema: Schema, parameters: PrivacyParameters) -> Floats:
        """The minimum for a reference: the paper's beta_0. NOT private for its rows."""
        return self.mechanism.without_noise(Rows(reference, schema, self.geometry), parameters, self.problem)


@dataclass(frozen=True)
class OneSided(Gradients):
    """Gradients of rows without negative entries, all of whose slopes have one sign: what leaves and what enters point
    into the same corner.

    With `printed` the sensitivity is the paper's sqrt(d), which is never smaller.

    Guarantee: docs/proofs/weights.md, Lemma 1.
    """

    printed: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "sensitivity", {**self.sensitivity, "l2": self._l2_sensitivity()})

    def _l2_sensitivity(self) -> float:
        """How far neighbours' sums of gradients can lie apart: a block of levels by the root of 2, a number in [0, 1]
        by 1, a row that has no counterpart by its own length.
        """
        if self.printed:
            return self.rows_per_person * self.slope_norm["linf"] * math.sqrt(self.norms.columns)
        if not self.replace:
            return self.sensitivity["l2"]
        numbers = len(self.norms.singles)
        if not numbers:
            return math.sqrt(2.0) * self.rows_per_person * self.gradient_norm["l2"]
        return self.rows_per_person * self.slope_norm["linf"] * math.sqrt(2 * len(self.norms.blocks) + numbers)


@dataclass(frozen=True)
class NoisyMinimum(OutputPerturbation):
    """Output perturbation for rows without negative entries.

    Guarantee: that of OutputPerturbation with the sensitivity of docs/proofs/weights.md, Lemma 1.
    """

    printed: bool = False

    def _gradients(self, facts: PublicFacts, problem: ERMProblem) -> Gradients:
        plain = super()._gradients(facts, problem)
        return OneSided(
            plain.norms, plain.loss, plain.classes, plain.coupling, plain.rows_per_person, plain.replace, self.printed
        )


@dataclass(frozen=True)
class DensityRatioPlan(ReleasePlan):
    """What is perturbed, how, and beside how many rows; all from public facts."""

    problem: ReweightingProblem
    mechanism: Perturbation
    fit: ERMPlan
    rows: int


@dataclass(frozen=True)
class DensityRatio(Mechanism[ReweightingProblem, DensityRatioPlan, CachedDesign, DensityRatioFit]):
    """Logistic regression of private against public rows; noise on the minimum ("output", the paper's Algorithm 1) or
    in the objective ("objective").

    Parameters
    ----------
    alpha : the paper's lambda, the ridge beside mean losses.
    perturbation : "output" or "objective".
    balanced : whether the public rows count as much as the private ones, all together; otherwise every row counts the
        same (the paper's footnote 2).
    encoding : how numbers without bins of their own enter: "bins", or "slope", scaled to [0, 1] as in the paper.
    calibration : "tight", or "paper" for the printed sqrt(d) in the noise on the minimum, which is larger.
    rows : "public", or "printed" to take the number of private rows as it is also where neighbours differ in it, as
        the paper does: NOT private, and refused by ledgers.

    Guarantee: epsilon-DP, or (epsilon, delta)-DP with Gaussian noise, replace-one or add-remove, for persons with at
    most `rows_per_person` rows, in real arithmetic, up to a probability below 2^-64; docs/proofs/weights.md, Theorem 1.
    The number of rows is public, or a public guess stands for it. None with rows="printed".
    Domain: at least one row, no refused cell, no more rows than stated; docs/proofs/errors-and-stops.md.
    """

    alpha: float = 0.1
    perturbation: Literal["output", "objective"] = "output"
    balanced: bool = True
    encoding: Literal["bins", "slope"] = "bins"
    calibration: Literal["tight", "paper"] = "tight"
    rows: Literal["public", "printed"] = "public"

    name = "density-ratio"

    def check(self) -> None:
        """Refuse parameters that mean nothing, before anything is read."""
        number = isinstance(self.alpha, int | float) and not isinstance(self.alpha, bool)
        if not number or not 0 < self.alpha < math.inf:
            raise PrivacyError(
                f"alpha={self.alpha!r} was given; it is a positive number, the ridge beside mean losses, and is chosen "
                "without looking at the rows. The paper uses 0.1."
            )
        if self.encoding not in ("bins", "slope"):
            raise PrivacyError(
                f"numeric={self.encoding!r} was given; it is 'bins' or 'slope', a number scaled to [0, 1]. Use 'bins' "
                "if in doubt."
            )
        if self.calibration not in ("tight", "paper"):
            raise PrivacyError(
                f"calibration={self.calibration!r} was given; it is 'tight' or 'paper'. Use 'tight' unless you compare "
                "with the paper."
            )
        if self.rows not in ("public", "printed"):
            raise PrivacyError(
                f"rows={self.rows!r} was given; it is 'public' or 'printed'. Use 'public' unless you compare with the "
                "paper."
            )
        if self.calibration == "paper" and self.perturbation != "output":
            raise PrivacyError(
                "calibration='paper' was given with noise in the objective, for which the paper prints none. Use "
                "method='paper', or calibration='tight'."
            )

    def reasons_not_private(self, problem: ReweightingProblem | None = None) -> tuple[str, ...]:
        """The paper's noise knows a private number of rows."""
        return (PRINTED_ROWS,) if self.rows == "printed" else ()

    def for_rows_left_out(self, parameters: PrivacyParameters, slots: int | None) -> PrivacyParameters:
        """Without delta: nothing is proved here of Gaussian noise in the objective where rows are left out."""
        planned = super().for_rows_left_out(parameters, slots)
        if planned.promise is None or self.perturbation != "objective":
            return planned
        return replace(planned, budget=Budget(planned.budget.epsilon))

    def geometry(
        self, schema: Schema, problem: ReweightingProblem | None = None, numeric: Numbers = "bins"
    ) -> Geometry:
        """How rows are encoded: one column per level, numbers in bins or from 0 to 1, nothing negative."""
        return schema.geometry(numeric=self.encoding, intercept=False, target=False, whole=True, shares=True)

    def weight(self, public: int, rows: int) -> float:
        """How much a public row counts beside a private one."""
        return rows / public if self.balanced else 1.0

    def total(self, public: int, rows: int) -> int:
        """By how many rows the objective is divided to have means in it."""
        return rows if self.balanced else rows + public

    def plan(self, facts: PublicFacts, problem: ReweightingProblem) -> DensityRatioPlan:
        """Ridge, noise and price, from public facts."""
        public = problem.public.n_rows
        n_rows = problem.printed_rows if self.reasons_not_private(problem) else facts.n_rows
        if n_rows is None:
            raise PrivacyError(
                "The density ratio was asked for under add-remove without expected_rows; it divides by the number of "
                "rows, which is private there. "
                'Give a public guess, expected_rows=20_000, or use method="tilting", which needs none. Nothing was '
                "charged."
            )
        n_rows = max(n_rows, 1)  # a table without rows is refused when it is read
        if public > MOST_PUBLIC:
            raise PrivacyError(
                f"{public} public rows were given; the precision is planned for at most "
                f"{MOST_PUBLIC}. Give a part of them. Nothing was charged."
            )
        n_rows = max(n_rows, 1)  # a table without rows is refused when it is read
        both = math.ceil(MORE_ROUNDING * (n_rows + self.others(public, n_rows)))  # rounding adds up over both
        wide = replace(facts, parameters=replace(facts.parameters, expected_rows=both), n_rows=both)
        mechanism = self._perturbation(problem, n_rows)
        fit = mechanism.plan(wide, PROBLEM)
        return DensityRatioPlan(fit.event, facts, problem, mechanism, fit, n_rows)

    def others(self, public: int, rows: int) -> int:
        """As how many rows the public ones count."""
        return math.ceil(self.weight(public, rows) * public)

    def _perturbation(self, problem: ReweightingProblem, n_rows: int) -> Perturbation:
        ridge = float(self.alpha) * self.total(problem.public.n_rows, n_rows)
        if self.perturbation == "objective":
            return ObjectivePerturbation(ridge=ridge, steepest=1)
        if self.calibration == "paper":
            return NoisyMinimum(ridge=ridge, noise="l2", printed=True)
        return NoisyMinimum(ridge=ridge)

    def read(self, rows: Rows, plan: DensityRatioPlan, problem: ReweightingProblem, draws: Draws) -> CachedDesign:
        """A cached design of the private rows."""
        kept, expected = CachedDesign(rows), plan.rows
        others = self.others(problem.public.n_rows, expected)
        wide = replace(plan.facts.parameters, expected_rows=expected + others)
        check_number(math.ceil(MORE_ROUNDING * (kept.n_rows + others)), wide)
        return kept

    def draw(self, data: CachedDesign, plan: DensityRatioPlan, draws: Draws) -> DensityRatioFit:
        """Draw, and minimise over both kinds of rows until the gradient is certified."""
        public = plan.problem.public
        both = BesidePublic(data, public, self.weight(public.n_rows, plan.rows))
        beta = plan.mechanism.draw(both, plan.fit, draws).weights[:, 0]
        return DensityRatioFit(
            plan.problem, beta, public.design, self, plan.event, plan.fit.ridge, plan.rows, plan.fit.noise
        )

    def without_noise(self, rows: Rows, parameters: PrivacyParameters, problem: ReweightingProblem) -> Floats:
        """The minimum itself, for rows that may be read by whoever asks: the paper's beta_0 for a reference."""
        kept = CachedDesign(rows)
        facts = PublicFacts(rows.geometry, replace(parameters, adjacency="replace-one"), kept.n_rows)
        both = BesidePublic(kept, problem.public, self.weight(problem.public.n_rows, kept.n_rows))
        return minimised(self.plan(facts, problem).fit, both, np.zeros((kept.n_columns, 1)))[:, 0]


class BesidePublic(CachedDesign):
    """Private rows, with the label 1, and public ones, with the label -1, which count `weight` each."""

    def __init__(self, kept: CachedDesign, public: PublicRows, weight: float) -> None:
        self._share(kept)
        self._public, self._weight = public, weight

    def gradient(self, weights: Floats, respond: RowResponse, most_slope: float) -> Floats:
        """The sum over rows of both kinds."""
        private = super().gradient(weights, partial(_as_private, respond), most_slope)
        return private + self._weight * self._public.gradient(
            weights, lambda scores: respond(scores, -np.ones_like(scores))
        )

    def sample(self) -> SampledDesign:
        """Rows of both kinds; public ones spread evenly."""
        own = super().sample()
        step = max(1, self._public.n_rows * self.n_columns // SAMPLE_VALUES)
        public = self._public.design[::step]
        ones = np.ones(len(own._counts))
        return SampledBoth(own._design, ones, own._counts, own.weight, own.n_rows, public, step * self._weight)

    @property
    def hessian_rows(self) -> int:
        """None: the sample knows the curvature of both kinds."""
        return 0

    def rounding(self, weights: Floats, most_slope: float, most_curvature: float, offset: float = 0.0) -> float:
        """What rounding can do to the sums of both kinds."""
        length, norm = float(np.linalg.norm(weights)), self._public.geometry.l2
        public = most_rounding(
            self._public.n_rows, norm, len(self._public.geometry.blocks), length, most_slope, most_curvature, offset
        )
        return super().rounding(weights, most_slope, most_curvature, offset) + self._weight * public


def _as_private(respond: RowResponse, scores: Floats, _: Floats) -> Floats:
    return respond(scores, np.ones_like(scores))


@dataclass(frozen=True)
class SampledBoth(SampledDesign):
    """A part of the private rows, and public ones that stand for `public_weight` each."""

    public: Any
    public_weight: float

    def gradient(self, weights: Floats, respond: RowResponse) -> Floats:
        """As BesidePublic.gradient, estimated."""
        scores = self.public @ weights[:, 0]
        others = self.public.T @ respond(scores, -np.ones_like(scores))
        return np.asarray(super().gradient(weights, respond) + self.public_weight * others[:, None], dtype=np.float64)

    def hessian(self, weights: Floats, bend: RowResponse) -> Floats:
        """The curvature of both kinds, estimated."""
        scores = self.public @ weights[:, 0]
        bends = bend(scores, -np.ones_like(scores))
        others = (self.public.T @ self.public.multiply(bends[:, None]).tocsr()).toarray()
        return np.asarray(super().hessian(weights, bend) + self.public_weight * others[None], dtype=np.float64)
