"""Support vector machines as Rubinstein, Bartlett, Huang and Taft print them: Learning in a Large Function Space, Journal of Privacy and Confidentiality 4 (2012), 65-100.

They minimise |w|^2 / 2 + (C / n) times the sum of the hinge loss, and add Laplace noise to the minimum. Times n / C that is the sum of the hinge loss plus n / C times half the squared weights: a ridge of n / C
beside a sum over rows.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from privfit.baselines.erm import public_rows
from privfit.losses import ConvexLoss, hinge
from privfit.losses.convex import is_positive
from privfit.mechanisms import OutputPerturbation, Risk
from privfit.mechanisms.minima import Plan
from privfit.mechanisms.perturbation import NoiseKind
from privfit.mechanisms.rules import Numbers
from privfit.models.classes import ClassModel
from privfit.models.perturbed import USUAL_PAIRS, PerturbedModel
from privfit.privacy import Ledger, PrivacyError, Terms
from privfit.schema import Geometry, Schema
from privfit.statistics import Gradients, Norm

CALIBRATIONS: dict[str, NoiseKind] = {"paper": "laplace", "tight": "l2"}
MULTIPLIES = ("mean", "sum")


@dataclass(frozen=True)
class PrintedGradients(Gradients):
    """The hinge's gradients with the sensitivity that the paper's bound comes to: 4 where 2 is enough, or 1 for a row that is added or removed."""

    def sensitivity(self, norm: Norm) -> float:
        """How far neighbours' sums of gradients are taken to lie apart."""
        return 4 * self.people * self.of_one_row(norm)


@dataclass(frozen=True)
class PrintedSVM(OutputPerturbation):
    """Noise on the minimum, K the length of a row and F the number of weights.

    "laplace" is the paper's: scale 4 C K sqrt(F) / (n epsilon) on every weight. "l2" is tighter: density proportional to exp(-n epsilon |b| / (2 C K)), or twice as steep for add-remove.

    Guarantee: epsilon-DP, replace-one or add-remove, for persons with at most `rows_per_person` rows, in real arithmetic, up to a chance below 2^-64: the printed constant is larger
    than needed. docs/proofs/baselines.md, Theorem 4.
    Domain: at least one row, no refused cell, no more rows than stated; docs/proofs/errors-and-stops.md.
    """

    noise: NoiseKind = "laplace"
    C: float = 10.0
    multiplies: Literal["mean", "sum"] = "mean"

    def check(self) -> None:
        """Refuse parameters that mean nothing, before anything is read."""
        if not is_positive(self.C):
            raise PrivacyError(
                f"C={self.C!r} was given to PrivateSVM; it is a positive number, and multiplies the hinge loss. Use 10.0 if in doubt."
            )
        if self.multiplies not in MULTIPLIES:
            raise PrivacyError(
                f"C_multiplies={self.multiplies!r} was given to PrivateSVM; it is one of {MULTIPLIES}. Use 'mean' if in doubt."
            )

    def _gradients(self, geometry: Geometry, terms: Terms, objective: Risk) -> Gradients:
        ours = super()._gradients(geometry, terms, objective)
        if self.noise != "laplace":
            return ours
        return PrintedGradients(ours.norms, ours.loss, ours.classes, ours.coupling, ours.people, ours.replace)

    def _plan_with(self, kind: str, gradients: Gradients, terms: Terms, n_rows: int | None) -> Plan:
        ours = OutputPerturbation(ridge=self._sum_ridge(terms, n_rows))
        plan = ours._plan_with(kind, gradients, terms, n_rows)
        return replace(plan, event=replace(plan.event, mechanism="PrivateSVM"))

    def _sum_ridge(self, terms: Terms, n_rows: int | None) -> float:
        if self.multiplies == "sum":
            return 1 / self.C
        return public_rows(n_rows, terms, instead=", or C_multiplies='sum'") / self.C


class PrivateSVM(ClassModel, PerturbedModel):
    """A private support vector machine for two classes as Rubinstein, Bartlett, Huang and Taft print it (2012): a baseline.

    Parameters
    ----------
    epsilon : the privacy budget of one fit; smaller is more private and noisier.
    C : what multiplies the hinge loss beside half the squared weights. Noise is proportional to it.
    C_multiplies : "mean", as in the paper, where C multiplies the mean of the loss over rows; or "sum", as in PrivGene's comparison (which has C=10) and in scikit-learn: C there
        is n times as large here, and so is the noise.
    calibration : "paper" is Laplace noise with the printed constant; "tight" is noise that depends on its length, with the smallest constant there is a proof of.
    kernel, gamma, n_components : as in LogisticRegression: "rbf" fits a linear machine to random Fourier features, as the paper does for kernels that only depend on differences.
    delta : not needed, and not spent.
    numeric : how numeric columns without bins of their own enter; "auto" is "slope", a number scaled to [-1, 1], as in the papers.
    expected_rows : a public guess of the number of rows. With adjacency="add-remove" and C_multiplies="mean" it has to be given.
    schema, adjacency, fit_intercept, rows_per_person, ledger, random_state : as in LogisticRegression.

    The corner of the hinge is rounded over a thousandth, so that a gradient can certify a minimum.

    Attributes
    ----------
    classes_, coef_, intercept_, report_, schema_, n_features_in_, feature_names_in_ : as in LogisticRegression.

    Guarantee: epsilon-DP, replace-one or add-remove, by the printed constant, which is larger than it needs to be, or by the smaller one; docs/proofs/baselines.md, Theorem 4.
    Domain: at least one row, no refused cell, no more rows than stated; docs/proofs/errors-and-stops.md.
    """

    def __init__(
        self,
        epsilon: float = 1.0,
        *,
        C: float = 10.0,
        C_multiplies: str = "mean",
        calibration: str = "paper",
        kernel: str = "linear",
        gamma: float | str = "auto",
        n_components: int = 2 * USUAL_PAIRS,
        delta: float = 0.0,
        schema: Schema | str | Path | None = None,
        adjacency: str = "replace-one",
        fit_intercept: bool = True,
        numeric: str = "auto",
        rows_per_person: int = 1,
        expected_rows: int | None = None,
        ledger: Ledger | None = None,
        random_state: Any = None,
    ) -> None:
        super().__init__(
            epsilon,
            delta=delta,
            schema=schema,
            adjacency=adjacency,
            fit_intercept=fit_intercept,
            numeric=numeric,
            rows_per_person=rows_per_person,
            expected_rows=expected_rows,
            ledger=ledger,
            random_state=random_state,
        )
        self.C = C
        self.C_multiplies = C_multiplies
        self.calibration = calibration
        self.kernel = kernel
        self.gamma = gamma
        self.n_components = n_components

    def _chosen_mechanism(self) -> Any:
        if self.calibration not in tuple(CALIBRATIONS):
            raise PrivacyError(
                f"calibration={self.calibration!r} was given to PrivateSVM; it is one of {tuple(CALIBRATIONS)}. Use 'paper' to compare with the paper."
            )
        chosen = PrintedSVM(noise=CALIBRATIONS[self.calibration], C=self.C, multiplies=self.C_multiplies)  # type: ignore[arg-type]
        chosen.check()
        return chosen

    def _numeric_style(self, mechanism: Any) -> Numbers:
        return "slope" if self.numeric == "auto" else super()._numeric_style(mechanism)

    def _convex_loss(self, schema: Schema) -> ConvexLoss:
        return hinge()

    def _objective(self, mechanism: Any, schema: Schema) -> Risk:
        return self._risk(mechanism, schema)

    def _keep(self, fit: Any, mechanism: Any) -> None:
        self._keep_weights(fit)

    def _notes(self, mechanism: Any) -> tuple[str, ...]:
        return ("the constant is the printed one, twice as large as needed",) if self.calibration == "paper" else ()
