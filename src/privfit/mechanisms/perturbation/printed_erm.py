"""Empirical risk minimisation as Chaudhuri, Monteleoni and Sarwate print it: Differentially Private Empirical Risk
Minimization, JMLR 12 (2011), 1069-1109.

Algorithm 1 perturbs the output, Algorithm 2 the objective, Algorithm 3 tunes the regulariser. The paper's rows have
length 1 at most. Ours have length K at most, K^2 being the number of columns of the schema (and the intercept):
dividing rows by K is multiplying weights by it, so that its ridge n Lambda becomes n Lambda K^2 beside a sum over our
rows, and its noise K times as large.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from privfit.losses.checks import is_positive
from privfit.mechanisms.base import PublicFacts, Release
from privfit.mechanisms.perturbation.base import Calibration, NoiseKind, Perturbation
from privfit.mechanisms.perturbation.defaults import FOR_CERTIFICATE
from privfit.mechanisms.perturbation.objective import ObjectivePerturbation, objective_noise
from privfit.mechanisms.perturbation.objective_noise import SAFE, Price
from privfit.mechanisms.perturbation.output import OutputPerturbation
from privfit.mechanisms.perturbation.problem import ERMFit, ERMPlan, ERMProblem, Gradients
from privfit.mechanisms.perturbation.tuning import TunedPerturbation
from privfit.privacy import PrivacyError
from privfit.schema import Geometry

Floats = NDArray[np.float64]

IN_PRIVGENE = 1e-12
"""The regularisation factor with which PrivGene's authors compared (Zhang, Xiao, Yang, Zhang, Winslett, SIGMOD 2013,
section 6).
"""


PRINTED = "constants as printed in 2011, which are larger than needed"


@dataclass(frozen=True)
class PrintedFit(ERMFit):
    """The weights as released, and the Lambda that was asked for, or selected."""

    regularisation: float = 0.0


# -- Algorithms 1 and 2 ----------------------------------------------------------------------------


def printed_rule(gradients: Gradients, ridge: float, epsilon: float) -> tuple[float, float]:
    """The ridge beside a sum over rows, and what is left of epsilon for the random term: epsilon'.

    As printed: epsilon' = epsilon - 2 log(1 + c / (n Lambda)); where that is not positive, n (Lambda + Delta) = c /
    (e^(epsilon/4) - 1) and epsilon' = epsilon / 2.
    """
    left = epsilon - 2 * gradients.log_determinant_cost(ridge)
    return (ridge, left) if left > 0 else (gradients.ridge_for_cost(epsilon / 4), epsilon / 2)


def rows_of_mean(facts: PublicFacts, instead: str = "") -> int:
    """By how many rows a mean is taken: public, or a public guess."""
    if facts.n_rows is None:
        raise PrivacyError(
            "adjacency='add-remove' was given without expected_rows; the loss is a mean over rows here, and their "
            "number is private. "
            f"Give a public guess, such as expected_rows=40_000{instead}."
        )
    return facts.n_rows


@dataclass(frozen=True)
class PrintedERM(Perturbation):
    """What the two algorithms share: Lambda, and the paper's factor 2 in the noise, which serves either adjacency."""

    noise: NoiseKind = "l2"
    regularisation: float = IN_PRIVGENE
    share: float = 1.0
    """Which part of the rows is expected to take part in the fit."""

    many_classes: ClassVar[bool] = False
    fitted_rows: ClassVar[str] = "all rows"
    """Over which rows the loss is summed, for the report."""

    def check(self) -> None:
        """Refuse parameters that mean nothing, before anything is read."""
        if not is_positive(self.regularisation):
            raise PrivacyError(
                f"regularisation={self.regularisation!r} was given; it is a positive number, Lambda beside the mean "
                "over rows, or 'tune'. "
                "Use 1e-3 if in doubt; 1e-12 is what PrivGene's authors compared with."
            )

    def _gradients(self, facts: PublicFacts, problem: ERMProblem) -> Gradients:
        # adding or removing a row changes them half as much
        return replace(super()._gradients(facts, problem), replace=True)

    def solve(self, release: Release[ERMFit], geometry: Geometry, problem: ERMProblem) -> PrintedFit:
        """The weights are what was released: nothing is undone, as printed."""
        released = {field.name: getattr(release.value, field.name) for field in fields(ERMFit)}
        return PrintedFit(**released, regularisation=float(self.regularisation))

    def note(self, regularisation: float) -> str:
        """A line for the report, with the Lambda of the fit."""
        return f"Lambda {regularisation:g}; {PRINTED}"

    def _sum_ridge(self, gradients: Gradients, facts: PublicFacts) -> float:
        """n Lambda K^2: the ridge beside a sum over rows of length K."""
        return float(self.regularisation) * self.share * rows_of_mean(facts) * gradients.norms.l2**2


@dataclass(frozen=True)
class PrintedObjective(PrintedERM, ObjectivePerturbation):
    """Algorithm 2: the objective has a linear term b of density proportional to exp(-epsilon' |b| / 2), for rows of
    length 1.

    Guarantee: epsilon-DP, replace-one or add-remove, for persons with at most `rows_per_person` rows, in real
    arithmetic, up to a probability below 2^-64: the printed constants are larger than needed. docs/proofs/baselines.md,
    Theorem 1.
    Domain: at least one row, no refused cell, no more rows than stated; docs/proofs/errors-and-stops.md.
    """

    def _calibrated(
        self, kind: str, gradients: Gradients, facts: PublicFacts, beside: tuple[float, ...]
    ) -> Calibration:
        epsilon = facts.parameters.budget.epsilon * (1 - FOR_CERTIFICATE) * SAFE
        ridge, left = printed_rule(gradients, self._sum_ridge(gradients, facts), epsilon)
        noise = objective_noise(kind, gradients, Price(epsilon), epsilon - left)
        return Calibration(gradients, ridge, noise.sd, noise=noise)

    def _plan_with(self, found: Calibration, facts: PublicFacts, problem: ERMProblem) -> ERMPlan:
        plan = super()._plan_with(found, facts, problem)
        raised = ", Lambda raised" if plan.ridge > self._sum_ridge(found.gradients, facts) else ""
        return replace(plan, event=replace(plan.event, mechanism=f"PrivateERM, objective{raised}"))


@dataclass(frozen=True)
class PrintedOutput(PrintedERM, OutputPerturbation):
    """Algorithm 1: noise of density proportional to exp(-n Lambda epsilon |b| / 2) on the minimum, for rows of
    length 1.

    Guarantee: epsilon-DP, replace-one or add-remove, for persons with at most `rows_per_person` rows, in real
    arithmetic, up to a probability below 2^-64; docs/proofs/baselines.md, Theorem 2.
    Domain: at least one row, no refused cell, no more rows than stated; docs/proofs/errors-and-stops.md.
    """

    def _calibrated(
        self, kind: str, gradients: Gradients, facts: PublicFacts, beside: tuple[float, ...]
    ) -> Calibration:
        ours = OutputPerturbation(ridge=self._sum_ridge(gradients, facts))
        return ours._calibrated(kind, gradients, facts, beside)

    def _plan_with(self, found: Calibration, facts: PublicFacts, problem: ERMProblem) -> ERMPlan:
        plan = super()._plan_with(found, facts, problem)
        return replace(plan, event=replace(plan.event, mechanism="PrivateERM, output"))


METHODS: dict[str, type[PrintedERM]] = {"objective": PrintedObjective, "output": PrintedOutput}


# -- Algorithm 3 -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Tuned(TunedPerturbation):
    """Algorithm 3 of the paper, for its own mechanisms.

    Guarantee: epsilon-DP, replace-one or add-remove, for persons with at most `rows_per_person` rows, in real
    arithmetic, up to a probability below 2^-64; docs/proofs/baselines.md, Theorem 3.
    Domain: at least one row, no refused cell, no more rows than stated; docs/proofs/errors-and-stops.md.
    """

    candidates: tuple[PrintedERM, ...] = ()

    many_classes: ClassVar[bool] = False
    what: ClassVar[str] = "values of Lambda"
    fitted_rows: ClassVar[str] = "its part of the rows"
    """Over which rows the loss is summed, for the report."""

    def note(self, regularisation: float) -> str:
        """A line for the report, with the Lambda that was chosen."""
        given = ", ".join(f"{candidate.regularisation:g}" for candidate in self.candidates)
        return (
            f"Lambda {regularisation:g} was chosen among {given} by mistakes on other rows; the noise stated is the "
            f"largest of all of them; {PRINTED}"
        )

    def _chosen(self, choice: int, fit: ERMFit) -> PrintedFit:
        """The fit, with the Lambda that was chosen."""
        released = {field.name: getattr(fit, field.name) for field in fields(ERMFit)}
        return PrintedFit(**{**released, "n_rows": None}, regularisation=self.candidates[choice].regularisation)
