"""The functional mechanism for logistic regression: a quadratic in place of the logistic loss."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from privfit.losses import LOGISTIC, truncated_logistic
from privfit.mechanisms.base import Description, Mechanism, Numbers, PublicFacts, Release
from privfit.mechanisms.functional.functional import FunctionalMechanism
from privfit.mechanisms.functional.problem import ExactMoments, FunctionalPlan, LinearFit, QuadraticProblem
from privfit.mechanisms.perturbation.problem import ERMFit, ERMProblem
from privfit.privacy import Draws, PrivacyError
from privfit.rows import Rows
from privfit.schema import Geometry, Schema
from privfit.statistics import MomentValues


@dataclass(frozen=True)
class QuadraticFit(ERMFit):
    """The minimum of the noisy quadratic, as weights of a logistic regression."""

    quadratic: LinearFit = field(kw_only=True)


@dataclass(frozen=True)
class QuadraticLogistic(Mechanism[ERMProblem, FunctionalPlan, ExactMoments, MomentValues]):
    """Logistic regression for two classes by the functional mechanism, with a quadratic in place of the loss.

    Parameters
    ----------
    functional : FunctionalMechanism
        How the moments are released, and the quadratic minimised.

    Guarantee: epsilon-DP, or (epsilon, delta)-DP with Gaussian noise, replace-one or add-remove, for persons with at
    most `rows_per_person` rows: the release is that of the functional mechanism; docs/proofs/moments.md, Theorem 3.
    Domain: at least one row, no refused cell, no more rows than stated; docs/proofs/errors-and-stops.md.
    """

    functional: FunctionalMechanism = field(default_factory=FunctionalMechanism)

    name: ClassVar[str] = FunctionalMechanism.name
    solves: ClassVar[str] = "logistic"

    def check(self) -> None:
        """Refuse parameters that have no meaning."""
        self.functional.check()

    def reasons_not_private(self, problem: ERMProblem) -> tuple[str, ...]:
        """Those of the functional mechanism."""
        return self.functional.reasons_not_private(self._quadratic(problem))

    def numbers(self, asked: str, default: Numbers) -> Numbers:
        """Slopes or bins."""
        if asked == "splines":
            raise PrivacyError(
                "numeric='splines' was given with a mechanism that releases moments, for which splines need too many "
                "values. Use 'slope' or 'bins'."
            )
        return default

    def geometry(self, schema: Schema, problem: ERMProblem, numeric: Numbers = "slope") -> Geometry:
        """As for the functional mechanism, which has no features beside the columns."""
        if problem.features is not None:
            raise PrivacyError(
                "kernel='rbf' was given with the functional mechanism, which fits linear models. Use "
                "mechanism='objective'."
            )
        return self.functional.geometry(schema, self._quadratic(problem), numeric)

    def plan(self, facts: PublicFacts, problem: ERMProblem) -> FunctionalPlan:
        """Plan the release of the moments."""
        return self.functional.plan(facts, self._quadratic(problem))

    def read(self, rows: Rows, plan: FunctionalPlan, problem: ERMProblem, draws: Draws) -> ExactMoments:
        """Sum the moments."""
        return self.functional.read(rows, plan, plan.problem, draws)

    def draw(self, data: ExactMoments, plan: FunctionalPlan, draws: Draws) -> MomentValues:
        """Add noise to the moments."""
        return self.functional.draw(data, plan, draws)

    def solve(self, release: Release[MomentValues], geometry: Geometry, problem: ERMProblem) -> QuadraticFit:
        """Minimise the noisy quadratic: post-processing."""
        fit = self.functional.solve(release, geometry, self._quadratic(problem))
        weights = np.concatenate([[fit.intercept], fit.weights]) if geometry.intercept else fit.weights
        return QuadraticFit(weights[:, None], ridge=0.0, loss=LOGISTIC, quadratic=fit)

    def describe(self, fit: QuadraticFit, schema: Schema, geometry: Geometry) -> Description:
        """How the quadratic was repaired, and how its weights became log-odds."""
        described, length = self.functional.describe(fit.quadratic, schema, geometry), fit.quadratic.length
        if length == 1:
            return described
        rescaled = f"coefficients are rescaled by {length:.3g}, because a quadratic stands in for the logistic loss"
        return Description(described.repairs, (rescaled, *described.notes))

    def _quadratic(self, problem: ERMProblem) -> QuadraticProblem:
        stated = QuadraticProblem(truncated_logistic(), problem.fit_intercept, probabilities=True)
        return self.functional.settle(stated)
