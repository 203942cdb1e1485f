"""Support vector machines as Rubinstein, Bartlett, Huang and Taft print them: Learning in a Large Function Space,
Journal of Privacy and Confidentiality 4 (2012), 65-100. Their mechanism is in
privfit.mechanisms.perturbation.printed_svm.
"""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

from privfit.losses import ConvexLoss, hinge
from privfit.mechanisms.base import Description, Numbers
from privfit.mechanisms.perturbation.base import NoiseKind
from privfit.mechanisms.perturbation.printed_svm import PrintedSVM
from privfit.mechanisms.perturbation.problem import ERMFit, ERMProblem
from privfit.models._docs import documented
from privfit.models.classes import ClassModel
from privfit.models.features import USUAL_COMPONENTS
from privfit.models.inputs import Input
from privfit.models.perturbed import PerturbedModel
from privfit.models.private import FitResult
from privfit.privacy import Ledger, PrivacyParameters, Seed
from privfit.schema import AUTO_KNOTS, Schema

CALIBRATIONS: dict[str, NoiseKind] = {"paper": "laplace", "tight": "l2"}
"""The noise of each calibration."""


@documented
class PrivateSVM(ClassModel[PrintedSVM, ERMProblem, ERMFit], PerturbedModel[PrintedSVM, ERMFit]):
    """A private support vector machine for two classes as printed by Rubinstein et al. (2012), a baseline.

    The corner of the hinge is rounded over a thousandth, so that a gradient can certify a minimum.

    Parameters
    ----------
    C : float
        Factor of the hinge loss beside half the squared weights. The noise is proportional to it.
    C_multiplies : {'mean', 'sum'}
        "mean", as in the paper: C multiplies the mean of the loss over rows. "sum", as in PrivGene's comparison (with
        C=10) and in scikit-learn: that C is n times as large as here, and so is the noise.
    calibration : {'paper', 'tight'}
        "paper" is Laplace noise with the printed constant; "tight" is K-norm noise for the L2 norm, with the smallest
        constant that is proved.
    delta : float
        Not needed and not spent.
    numeric : {'auto', 'slope', 'bins'}
        Encoding of numeric columns that have no bins of their own; "auto" is "slope", a number scaled to [-1, 1], as in
        the paper.
    expected_rows : int or None
        Public guess of the number of rows. It is required under "add-remove" with C_multiplies="mean".

    See Also
    --------
    LinearSVC : The same model with less noise.
    PrivateERM : Another published classifier.

    Notes
    -----
    kernel="rbf" fits a linear machine to random Fourier features, as the paper does for translation-invariant kernels.

    Guarantee: epsilon-DP, replace-one or add-remove, by the printed constant, which is larger than it needs to be, or
    by the smaller one; docs/proofs/baselines.md, Theorem 4.
    Domain: at least one row, no refused cell, no more rows than stated; docs/proofs/errors-and-stops.md.

    References
    ----------
    .. [1] B. I. P. Rubinstein, P. L. Bartlett, L. Huang and N. Taft, "Learning in a large function space:
       privacy-preserving mechanisms for SVM learning", Journal of Privacy and Confidentiality 4(1), 2012.

    Examples
    --------
    >>> import numpy as np, privfit as pf
    >>> X = np.tile(np.linspace(-1, 1, 200), 50).reshape(-1, 1)
    >>> y = np.where(X[:, 0] > 0.2, "yes", "no")
    >>> schema = pf.Schema.box(-1, 1, target=["no", "yes"])
    >>> model = pf.baselines.PrivateSVM(epsilon=1.0, calibration="tight", schema=schema).fit(X, y)
    >>> bool(model.score(X, y) > 0.7)
    True
    """

    _choices: ClassVar[dict[str, tuple[object, ...]]] = PerturbedModel._choices | {"calibration": tuple(CALIBRATIONS)}

    def __init__(
        self,
        epsilon: float = 1.0,
        *,
        C: float = 10.0,
        C_multiplies: str = "mean",
        calibration: str = "paper",
        kernel: str = "linear",
        gamma: float | str = "auto",
        n_components: int = USUAL_COMPONENTS,
        delta: float = 0.0,
        schema: Schema | str | Path | None = None,
        adjacency: str = "replace-one",
        fit_intercept: bool = True,
        numeric: str = "auto",
        rows_per_person: int = 1,
        expected_rows: int | None = None,
        ledger: Ledger | None = None,
        random_state: Seed = None,
        n_jobs: int | None = None,
        max_memory: int | str | None = None,
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
            n_jobs=n_jobs,
            max_memory=max_memory,
        )
        self.C = C
        self.C_multiplies = C_multiplies
        self.calibration = calibration
        self.kernel = kernel
        self.gamma = gamma
        self.n_components = n_components

    def _chosen_mechanism(self) -> PrintedSVM:
        noise = CALIBRATIONS[self.calibration]
        chosen = PrintedSVM(noise=noise, C=self.C, multiplies=self.C_multiplies)  # type: ignore[arg-type]
        chosen.check()
        return chosen

    def _numbers(self, mechanism: PrintedSVM, given: Input, parameters: PrivacyParameters) -> tuple[Numbers, int]:
        usual = super()._numbers(mechanism, given, parameters)
        return ("slope", AUTO_KNOTS) if self.numeric == "auto" else usual

    def _convex_loss(self, schema: Schema) -> ConvexLoss:
        return hinge()

    def _described(self, result: FitResult[PrintedSVM, ERMProblem, ERMFit]) -> Description:
        described = super()._described(result)
        printed = ("the constant is the printed one, twice as large as needed",) * (self.calibration == "paper")
        return Description(described.repairs, (*printed, *described.notes))
