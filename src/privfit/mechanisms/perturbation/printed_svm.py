"""Support vector machines as Rubinstein, Bartlett, Huang and Taft print them: Learning in a Large Function Space,
Journal of Privacy and Confidentiality 4 (2012), 65-100.

They minimise |w|^2 / 2 + (C / n) times the sum of the hinge loss, and add Laplace noise to the minimum. Times n / C
that is the sum of the hinge loss plus n / C times half the squared weights: a ridge of n / C beside a sum over rows.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from privfit.losses.checks import is_positive
from privfit.mechanisms.base import PublicFacts
from privfit.mechanisms.perturbation.base import Calibration, NoiseKind
from privfit.mechanisms.perturbation.output import OutputPerturbation
from privfit.mechanisms.perturbation.printed_erm import rows_of_mean
from privfit.mechanisms.perturbation.problem import ERMPlan, ERMProblem, Gradients
from privfit.privacy import PrivacyError

MULTIPLIES = ("mean", "sum")


@dataclass(frozen=True)
class PrintedGradients(Gradients):
    """The hinge's gradients with the sensitivity that the paper's bound comes to: 4 where 2 is enough, or 1 for a row
    that is added or removed.
    """

    def __post_init__(self) -> None:
        super().__post_init__()
        printed = {norm: 4 * self.rows_per_person * largest for norm, largest in self.gradient_norm.items()}
        object.__setattr__(self, "sensitivity", printed)


@dataclass(frozen=True)
class PrintedSVM(OutputPerturbation):
    """Noise on the minimum, K the length of a row and F the number of weights.

    "laplace" is the paper's: scale 4 C K sqrt(F) / (n epsilon) on every weight. "l2" is tighter: density proportional
    to exp(-n epsilon |b| / (2 C K)), or twice as steep for add-remove.

    Guarantee: epsilon-DP, replace-one or add-remove, for persons with at most `rows_per_person` rows, in real
    arithmetic, up to a probability below 2^-64: the printed constant is larger than needed. docs/proofs/baselines.md,
    Theorem 4.
    Domain: at least one row, no refused cell, no more rows than stated; docs/proofs/errors-and-stops.md.
    """

    noise: NoiseKind = "laplace"
    C: float = 10.0
    multiplies: Literal["mean", "sum"] = "mean"

    many_classes = False

    def check(self) -> None:
        """Refuse parameters that mean nothing, before anything is read."""
        if not is_positive(self.C):
            raise PrivacyError(
                f"C={self.C!r} was given to PrivateSVM; it is a positive number, and multiplies the hinge loss. Use "
                "10.0 if in doubt."
            )
        if self.multiplies not in MULTIPLIES:
            raise PrivacyError(
                f"C_multiplies={self.multiplies!r} was given to PrivateSVM; it is one of {MULTIPLIES}. Use 'mean' if "
                "in doubt."
            )

    def _gradients(self, facts: PublicFacts, problem: ERMProblem) -> Gradients:
        ours = super()._gradients(facts, problem)
        if self.noise != "laplace":
            return ours
        return PrintedGradients(ours.norms, ours.loss, ours.classes, ours.coupling, ours.rows_per_person, ours.replace)

    def _calibrated(
        self, kind: str, gradients: Gradients, facts: PublicFacts, beside: tuple[float, ...]
    ) -> Calibration:
        ours = OutputPerturbation(ridge=self._sum_ridge(facts))
        return ours._calibrated(kind, gradients, facts, beside)

    def _plan_with(self, found: Calibration, facts: PublicFacts, problem: ERMProblem) -> ERMPlan:
        plan = super()._plan_with(found, facts, problem)
        return replace(plan, event=replace(plan.event, mechanism="PrivateSVM"))

    def _sum_ridge(self, facts: PublicFacts) -> float:
        if self.multiplies == "sum":
            return 1 / self.C
        return rows_of_mean(facts, instead=", or C_multiplies='sum'") / self.C
