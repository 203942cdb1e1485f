"""A penalty chosen by the data, privately: fit on most rows, choose on the others.

Algorithm 3 of Chaudhuri, Monteleoni and Sarwate (JMLR 2011) trains one model per candidate on a part of the rows of its
own and chooses by the mistakes on one more part. Here all candidates come from one release, because a penalty is
post-processing: four fifths of the rows serve all of them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from privfit.losses import QuadraticLoss
from privfit.mechanisms.base import Description, Mechanism, Numbers, PublicFacts, Release
from privfit.mechanisms.functional.functional import FunctionalMechanism
from privfit.mechanisms.functional.problem import ExactMoments, FunctionalPlan, LinearFit, QuadraticProblem
from privfit.privacy import Draws, Event, PrivacyError, exact
from privfit.privacy.parts import RandomBits, Selection
from privfit.rows import Rows
from privfit.schema import Geometry, Schema
from privfit.solvers import Penalty, Repair
from privfit.statistics import Moments, MomentValues

Floats = NDArray[np.float64]

CANDIDATE_STEP = 1 << 12
"""Lattice steps to a weight of 1: scores are then exact integers."""
SCORE_UNIT = 1 << 22
"""Lattice steps to a score of 1: rounding adds less than 2 steps to a sensitivity of millions."""
LARGEST_CANDIDATE_WEIGHT = 1 << 6
"""Candidates are clipped to it, so that their sensitivity is bounded; weights of encoded columns are far smaller."""
MOST_CANDIDATES = 100
"""Every candidate is a fit and a score; permute-and-flip is less accurate among more."""


@dataclass(frozen=True)
class SplitMoments:
    """Exact moments of the rows that fit, and raw sums over those that choose."""

    fitted: ExactMoments
    held_out: NDArray[np.int64]


@dataclass(frozen=True)
class SelectedMoments(MomentValues):
    """Noisy moments, and the place of the penalty that was chosen."""

    choice: int = 0

    @classmethod
    def of(cls, value: MomentValues, choice: int) -> SelectedMoments:
        """These moments, with a choice."""
        return cls(value.products, value.with_target, value.n_rows, value.target_square, choice)


@dataclass(frozen=True)
class PenaltySelection(Mechanism[QuadraticProblem, FunctionalPlan, SplitMoments, MomentValues]):
    """The functional mechanism on the rows whose random bit is 0, and a private choice among penalties by the rows
    whose bit is 1.

    Every row takes part in one of the two, so that both together cost what the dearer one costs.

    Guarantee: epsilon-DP, or (epsilon, delta)-DP with Gaussian noise, replace-one or add-remove, for persons with at
    most `rows_per_person` rows; docs/proofs/selection.md, Theorem 1.
    Domain: at least one row, no refused cell, no more rows than stated; docs/proofs/errors-and-stops.md.
    """

    functional: FunctionalMechanism
    penalties: tuple[Penalty, ...]

    name = "functional"
    solves = "moments"

    @property
    def repair(self) -> Repair:
        """How a noisy objective is made to have a minimum."""
        return self.functional.repair

    @property
    def calibration(self) -> Literal["tight", "paper", "paper-box"]:
        """How the noise is calibrated."""
        return self.functional.calibration

    @property
    def loss(self) -> QuadraticLoss | None:
        """A loss of the mechanism's own: none."""
        return self.functional.loss

    def check(self) -> None:
        """Refuse parameters that mean nothing, before anything is read."""
        self.functional.check()
        if (
            self.functional.repair == "rerun"
            or self.functional.loss is not None
            or self.functional.calibration == "paper"
        ):
            raise PrivacyError(
                f"alpha='select' was given with {self.functional}; it goes with the tight calibration of least squares "
                "and one draw of noise. "
                "Leave the mechanism out, or give alpha a number."
            )
        if len(self.penalties) > MOST_CANDIDATES:
            raise PrivacyError(
                f"{len(self.penalties)} alphas were given to select from; every one of them is compared with every "
                f"other, and {MOST_CANDIDATES} are the most. "
                "Give fewer: they can be far apart."
            )

    def settle(self, problem: QuadraticProblem) -> QuadraticProblem:
        """As the functional mechanism does."""
        return self.functional.settle(problem)

    def describe(self, fit: LinearFit, schema: Schema, geometry: Geometry) -> Description:
        """How the noisy quadratic was repaired."""
        return self.functional.describe(fit, schema, geometry)

    def geometry(self, schema: Schema, problem: QuadraticProblem, numeric: Numbers = "slope") -> Geometry:
        """How rows are encoded."""
        return self.functional.geometry(schema, problem, numeric)

    def statistic(self, geometry: Geometry, problem: QuadraticProblem, kind: str | None = None) -> Moments:
        """What is summed."""
        return self.functional.statistic(geometry, problem, kind)

    def plan(self, facts: PublicFacts, problem: QuadraticProblem) -> FunctionalPlan:
        """The moments of the rows that fit, and one choice by the others: disjoint rows, so each may spend all."""
        plan = self.functional.plan(facts, problem)
        moments = tuple(replace(part, epsilon=0.0, rho=0.0) for part in plan.event.parts)
        parts = (
            RandomBits(purpose="which rows choose the penalty"),
            *moments,
            Selection(rule="permute-and-flip", purpose="choice of the penalty"),
        )
        mechanism = f"{plan.event.mechanism}, penalty selected privately"
        return replace(plan, event=replace(plan.event, mechanism=mechanism, parts=parts))

    def read(self, rows: Rows, plan: FunctionalPlan, problem: QuadraticProblem, draws: Draws) -> SplitMoments:
        """The moments of both parts of the rows, summed exactly in one pass."""
        fitted, held, n_held = rows.split_sum(plan.moments, draws.random_bits())
        return SplitMoments(ExactMoments.of(plan, fitted, rows.n_rows - n_held), held)

    def draw(self, data: SplitMoments, plan: FunctionalPlan, draws: Draws) -> SelectedMoments:
        """Noise on the first part's moments, a fit for every penalty, and a choice by the second part."""
        geometry, parameters = plan.facts.geometry, plan.facts.parameters
        value = data.fitted.with_noise(plan, draws)
        candidates = [
            self._integer_weights(self._fit(Release(value, plan.event, True), geometry, plan.problem, choice), geometry)
            for choice in range(len(self.penalties))
        ]
        scores = [held_out_score(plan.moments, data.held_out, weights) for weights in candidates]
        sensitivity = score_range(candidates, geometry) * (2 if parameters.adjacency == "replace-one" else 1)
        rounded = (sensitivity * SCORE_UNIT + 2) * int(parameters.rows_per_person)
        scale = float(rounded / selection_epsilon(plan.event)) * (1 + 2.0**-50)
        return SelectedMoments.of(value, draws.select(scores, scale=scale))

    def _fit(
        self, release: Release[MomentValues], geometry: Geometry, problem: QuadraticProblem, choice: int
    ) -> LinearFit:
        return self.functional.solve(release, geometry, replace(problem, penalty=self.penalties[choice]))

    def _integer_weights(self, fit: LinearFit, geometry: Geometry) -> list[int]:
        weights = np.append(fit.intercept, fit.weights) if geometry.intercept else fit.weights
        held = np.clip(np.nan_to_num(weights), -LARGEST_CANDIDATE_WEIGHT, LARGEST_CANDIDATE_WEIGHT)
        return [int(weight) for weight in np.rint(held * CANDIDATE_STEP)]

    def solve(self, release: Release[MomentValues], geometry: Geometry, problem: QuadraticProblem) -> LinearFit:
        """The fit with the penalty that was chosen."""
        assert isinstance(release.value, SelectedMoments)
        return self._fit(release, geometry, problem, release.value.choice)


def selection_epsilon(event: Event) -> Fraction:
    """What the choice may spend on its own rows: epsilon, or with Gaussian noise one that costs at most rho."""
    if not event.rho:
        return exact(event.epsilon)
    return Fraction(math.isqrt(int(2 * exact(event.rho) * 2**100)), 2**50)  # epsilon^2 / 2 <= rho


def held_out_score(moments: Moments, held: NDArray[np.int64], weights: list[int]) -> int:
    """Minus the sum of squared errors on the rows held out, but for the sum of the targets' squares, which all
    candidates share.

    Exact in integers up to the last step, which rounds down to a lattice of SCORE_UNIT steps to 1.
    """
    d = len(weights)
    w = np.array(weights, dtype=object)
    quadratic = int(w @ held[:d, :d].astype(object) @ w) * moments.target_units
    linear = int(held[:d, -1].astype(object) @ w) * CANDIDATE_STEP * moments.step
    unit = moments.unit * moments.target_units * CANDIDATE_STEP**2
    return (2 * linear - quadratic) * SCORE_UNIT // unit


def score_range(candidates: list[list[int]], geometry: Geometry) -> Fraction:
    """The most by which one row can change the difference of two candidates' scores, in units of 1.

    Guarantee: docs/proofs/selection.md, Lemma 2.
    """
    most = Fraction(0)
    for i, one in enumerate(candidates):
        for other in candidates[:i]:
            apart = largest_prediction([a - b for a, b in zip(one, other, strict=True)], geometry)
            together = largest_prediction([a + b for a, b in zip(one, other, strict=True)], geometry)
            most = max(most, apart * (together + 2))
    return most


def largest_prediction(weights: list[int], geometry: Geometry) -> Fraction:
    """The largest |x'w| of an encoded row: every block counts with its largest weight."""
    total = abs(weights[0]) if geometry.intercept else 0
    for block in geometry.blocks:
        total += max(abs(weight) for weight in weights[block.start : block.stop])
    return Fraction(total, CANDIDATE_STEP)
