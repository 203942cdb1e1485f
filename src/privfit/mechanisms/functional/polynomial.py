"""The functional mechanism for any loss of one linear predictor: Algorithm 2 of the paper, calibrated from the schema.

The loss is replaced by a polynomial in the predictor. If that is a loss of degree two which moments can fit, they do,
with their own tight calibration. Otherwise the sums over rows that its coefficients need are released once, with
Laplace noise.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from privfit.losses import PolynomialLoss, QuadraticLoss
from privfit.mechanisms.base import Description, Mechanism, Numbers, PublicFacts, Release, ReleasePlan
from privfit.mechanisms.functional.functional import FunctionalMechanism
from privfit.mechanisms.functional.problem import (
    ExactMoments,
    FunctionalPlan,
    LinearFit,
    QuadraticProblem,
    described_repair,
)
from privfit.privacy import Draws, Event, PrivacyError, PrivacyParameters
from privfit.rows import Rows
from privfit.schema import Block, Geometry, Schema, SchemaError
from privfit.solvers import Repair, Solution, consistent_sums, minimise_polynomial
from privfit.statistics import MomentValues, TargetLattice, WeightedMonomials

Floats = NDArray[np.float64]

FLAT = 1e-8
"""Relative curvature below which a direction counts as flat: far above rounding."""


@dataclass(frozen=True)
class PolynomialFit:
    """Weights of the encoded columns and the intercept of the linear predictor, and what it took to find them."""

    weights: Floats
    intercept: float
    solution: Solution
    at_edge: bool


@dataclass(frozen=True)
class PolynomialPlan(ReleasePlan):
    """What is summed: moments, by the functional mechanism's own plan, or weighted monomials."""

    inner: FunctionalPlan | WeightedMonomials


@dataclass(frozen=True)
class PolynomialMechanism(Mechanism[QuadraticProblem, PolynomialPlan, ExactMoments, Floats | MomentValues]):
    """Release what a polynomial loss needs to know of the rows, once, with noise; everything after that is free.

    Parameters
    ----------
    loss : a PolynomialLoss.
    functional : the mechanism for losses of degree two that moments can fit; its repair, noise and calibration count
        there. For all other losses it has to be the default: negative curvature is floored, the noise is Laplace's, the
        calibration is tight.
    class_weights : how much rows of each of two classes count, if not alike: public numbers. They are a part of the
        loss, as a function of the target.

    Guarantee: epsilon-DP, replace-one or add-remove, for persons with at most `rows_per_person` rows;
    docs/proofs/polynomial.md, Theorems 1 to 3, and with weights of rows Theorem 4. For losses that moments can fit,
    that of FunctionalMechanism; docs/proofs/moments.md.
    Domain: at least one row, no refused cell, no more rows than stated; docs/proofs/errors-and-stops.md.
    """

    loss: PolynomialLoss
    functional: FunctionalMechanism = field(default_factory=FunctionalMechanism)
    class_weights: tuple[float, ...] = ()

    name = "functional"
    solves = "moments"
    takes_weights = True

    @property
    def calibration(self) -> str:
        """How constants are calibrated: weights of rows need tight ones."""
        return self.functional.calibration

    @property
    def repair(self) -> Repair:
        """How a noisy objective is made to have a minimum."""
        return self.functional.repair

    def check(self) -> None:
        """Refuse parameters that mean nothing, before anything is read."""
        if not isinstance(self.loss, PolynomialLoss):
            raise PrivacyError(
                f"loss={self.loss!r} was given; it is a pf.PolynomialLoss. Write pf.PolynomialLoss.fit(lambda z, y: (y "
                "- z) ** 2), or use pf.losses.poisson()."
            )
        self.functional.check()
        if self.functional.loss is not None:
            raise PrivacyError(
                f"pf.FunctionalMechanism(loss={self.functional.loss!r}) was given beside the loss of the model; there "
                "is one loss. Leave it out of the mechanism."
            )

    def describe(self, fit: PolynomialFit | LinearFit, schema: Schema, geometry: Geometry) -> Description:
        """How far the polynomial is from the loss, and how the noisy objective was repaired."""
        repaired = described_repair(str(self.functional.repair).lower(), fit.solution)
        target, notes = _target(geometry), []
        low, high = self.settled_loss(target).bounds
        if error := self.approximation_error(target):
            notes.append(
                f"a polynomial of degree {self.loss.degree} stands in for the {self.loss.name}; it is off by at most "
                f"{error:.3g} where the linear predictor is in [{low:g}, {high:g}]"
            )
        if fit.at_edge:
            notes.append(
                "the fit lies at the edge of the weights that keep the linear predictor in that interval; a wider one "
                "may suit better"
            )
        return Description(repaired.repairs, (*notes, *repaired.notes))

    def quadratic(self, target: Block) -> QuadraticLoss | None:
        """The loss as one that moments can fit, if it is one for this target and all classes count alike."""
        if len(set(self.class_weights)) > 1:
            return None
        lattice = TargetLattice.of(target)
        points = slice(None, None, max(1, len(lattice.points) // 128))
        return self.settled_loss(target).as_quadratic(lattice.scaled[points], lattice.targets[points])

    def settled_loss(self, target: Block) -> PolynomialLoss:
        """The loss with its interval settled for this target."""
        return (
            self.loss.on_target(-1.0, 1.0)
            if target.kind == "sign"
            else self.loss.on_target(target.center - target.unit, target.center + target.unit)
        )

    def approximation_error(self, target: Block) -> float:
        """The largest distance between the loss and its polynomial, on the interval, within the target's bounds."""
        lattice = TargetLattice.of(target)
        return self.settled_loss(target).approximation_error(lattice.targets[:: max(1, len(lattice.points) // 128)])

    def geometry(self, schema: Schema, problem: QuadraticProblem, numeric: Numbers = "slope") -> Geometry:
        """How rows are encoded for this mechanism."""
        anchored: Literal["no", "features"] = "no" if problem.fit_intercept else "features"
        geometry = schema.geometry(numeric=numeric, intercept=problem.fit_intercept, anchored=anchored)
        self.approximation_error(_target(geometry))  # whatever the user's function may raise, it raises now
        quadratic = self.quadratic(_target(geometry))
        if quadratic is not None:
            return self.functional.geometry(schema, _for_moments(quadratic, problem), numeric)
        self._check_plain()
        self.statistic(geometry, problem.max_weight is not None)
        return geometry

    def _check_plain(self) -> None:
        plain = FunctionalMechanism()
        given = self.functional
        if (given.repair, given.calibration) != (plain.repair, plain.calibration) or given.noise not in (
            "auto",
            "laplace",
        ):
            raise PrivacyError(
                f"{given} was given for a loss that moments cannot fit ({self.loss}); such a loss takes "
                "repair='floor', calibration='tight' and Laplace noise. "
                "Leave the mechanism out."
            )

    def plan(self, facts: PublicFacts, problem: QuadraticProblem) -> PolynomialPlan:
        """The plan of the moments, where they can fit the loss; otherwise what the polynomial's coefficients need."""
        quadratic = self.quadratic(_target(facts.geometry))
        if quadratic is not None:
            inner = self.functional.plan(facts, _for_moments(quadratic, problem))
            return PolynomialPlan(inner.event, facts, inner)
        statistic = self.statistic(facts.geometry, problem.max_weight is not None)
        return PolynomialPlan(self.event(statistic, facts.parameters), facts, statistic)

    def read(self, rows: Rows, plan: PolynomialPlan, problem: QuadraticProblem, draws: Draws) -> ExactMoments:
        """The sums that are released, exactly."""
        if isinstance(plan.inner, FunctionalPlan):
            return self.functional.read(rows, plan.inner, plan.inner.problem, draws)
        adjacency = plan.facts.parameters.adjacency
        released = rows.sum(plan.inner)[plan.inner.released(adjacency)]
        return ExactMoments(released, rows.n_rows if adjacency == "replace-one" else None)

    def draw(self, data: ExactMoments, plan: PolynomialPlan, draws: Draws) -> Floats | MomentValues:
        """One draw of noise on all sums."""
        if isinstance(plan.inner, FunctionalPlan):
            return self.functional.draw(data, plan.inner, draws)
        statistic, adjacency = plan.inner, plan.facts.parameters.adjacency
        noisy = statistic.in_units_of_one(draws.add(data.values), data.n_rows or 0, adjacency)
        return consistent_sums(statistic, noisy, statistic.released(adjacency))

    def statistic(self, geometry: Geometry, weighed: bool = False) -> WeightedMonomials:
        """What is summed: the loss's coefficients as functions of the target, times products of columns."""
        lattice = TargetLattice.of(_target(geometry))
        middle, half = self._argument(geometry)
        coefficients = self.settled_loss(_target(geometry)).coefficients(lattice.targets, middle, half)[1:]
        if self.class_weights:
            coefficients = coefficients * (np.array(self.class_weights) / max(self.class_weights))
        if coefficients[1].max() <= FLAT * np.abs(coefficients).max():
            raise PrivacyError(
                f"{self.loss} was given, which does not curve upward for any target; a loss with a minimum does. Check "
                "its sign, or choose another interval."
            )
        return WeightedMonomials.of(geometry, lattice, coefficients, weighed=weighed)

    def _argument(self, geometry: Geometry) -> tuple[float, float]:
        """The middle and the half-width of the predictor's interval; without an intercept the predictor cannot be
        measured from a middle.
        """
        loss = self.settled_loss(_target(geometry))
        low, high = loss.bounds
        return (low / 2 + high / 2, high / 2 - low / 2) if geometry.intercept else (0.0, loss.reach)

    def event(self, statistic: WeightedMonomials, parameters: PrivacyParameters) -> Event:
        """The price and the noise, from public facts alone."""
        return Event.laplace(
            f"functional mechanism, degree {statistic.degree}",
            parameters.budget,
            sensitivity=statistic.row_sensitivity(parameters),
            adjacency=parameters.adjacency,
            rows_per_person=int(parameters.rows_per_person),
            unit=statistic.unit,
            n_values=len(statistic.released(parameters.adjacency)),
        )

    def solve(
        self, release: Release[Floats | MomentValues], geometry: Geometry, problem: QuadraticProblem
    ) -> PolynomialFit | LinearFit:
        """The minimiser of the repaired noisy problem: post-processing of the release."""
        if isinstance(release.value, MomentValues):
            quadratic = self.quadratic(_target(geometry))
            assert quadratic is not None
            moments = Release(release.value, release.event, release.private)
            fit = self.functional.solve(moments, geometry, _for_moments(quadratic, problem))
            return replace(fit, intercept=fit.intercept + _left_to_intercept(quadratic, problem))
        statistic = self.statistic(geometry, problem.max_weight is not None)
        noise_sd = release.event.noise_sd * statistic.unit / np.array(statistic.units, dtype=np.float64)
        found = minimise_polynomial(statistic, release.value, noise_sd)
        middle, half = self._argument(geometry)
        return PolynomialFit(half * found.weights, middle + half * found.intercept, found.solution, found.at_edge)


def _for_moments(quadratic: QuadraticLoss, problem: QuadraticProblem) -> QuadraticProblem:
    """The objective without its offset where an intercept can take it up: moments then need to know nothing of it."""
    loss = replace(quadratic, offset=0.0) if problem.fit_intercept else quadratic
    return QuadraticProblem(loss, problem.fit_intercept, max_weight=problem.max_weight)


def _left_to_intercept(quadratic: QuadraticLoss, problem: QuadraticProblem) -> float:
    """The minimum of  curvature z^2 - offset z  is at this z."""
    return quadratic.offset / (2 * quadratic.curvature) if problem.fit_intercept else 0.0


def _target(geometry: Geometry) -> Block:
    if geometry.target is None:
        raise SchemaError(
            "A schema without a target was given, and a loss compares with one. Give the schema a target."
        )
    return geometry.target
