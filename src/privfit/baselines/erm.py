"""Empirical risk minimisation as Chaudhuri, Monteleoni and Sarwate print it: Differentially Private Empirical Risk
Minimization, JMLR 12 (2011), 1069-1109. Its mechanisms are in privfit.mechanisms.perturbation.printed_erm.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_expit
from sklearn.utils.metaestimators import available_if

from privfit.losses import LOGISTIC, ConvexLoss, smooth_hinge
from privfit.mechanisms.base import Description, Numbers
from privfit.mechanisms.perturbation.printed_erm import IN_PRIVGENE, METHODS, PrintedERM, PrintedFit, Tuned
from privfit.mechanisms.perturbation.problem import ERMProblem
from privfit.models._docs import documented
from privfit.models.classes import ClassModel
from privfit.models.inputs import Input
from privfit.models.perturbed import PerturbedModel
from privfit.models.private import FitResult
from privfit.models.report import JSONObject
from privfit.privacy import Ledger, PrivacyParameters, Seed
from privfit.schema import AUTO_KNOTS, Schema
from privfit.tables import TableLike

Floats = NDArray[np.float64]

Printed = PrintedERM | Tuned
PrintedResult = FitResult[Printed, ERMProblem, PrintedFit]

HUBER_WIDTH = 0.5
"""The width h of the Huber loss in the paper's experiments."""
LOSSES: dict[str, ConvexLoss] = {"logistic": LOGISTIC, "huber": smooth_hinge(HUBER_WIDTH)}
CANDIDATES = (1e-5, 1e-4, 1e-3, 1e-2, 1e-1)
"""Values of Lambda for "tune": decades around those that the paper's experiments select."""


def _is_logistic(model: PrivateERM) -> bool:
    return bool(model.loss == "logistic")


@documented
class PrivateERM(ClassModel[Printed, ERMProblem, PrintedFit], PerturbedModel[Printed, PrintedFit]):
    """Private empirical risk minimisation for two classes as printed by Chaudhuri et al. (2011), a baseline.

    Parameters
    ----------
    loss : {'logistic', 'huber'}
        "huber" is the hinge loss with its corner rounded over a half to either side.
    method : {'objective', 'output'}
        "objective" adds a random linear term to the objective (Algorithm 2); "output" adds noise to the minimum
        (Algorithm 1).
    regularisation : float or 'tune'
        Lambda, the factor of half the squared weights beside the mean of the loss over rows of norm 1; "tune" selects
        it privately among `candidates` (Algorithm 3). The default is what PrivGene's authors compared with. It is for
        "objective", which raises it to what privacy needs; "output" needs far more, such as 0.01.
    candidates : sequence of float
        For "tune", the values to choose from. Each is fitted on a part of the rows of its own.
    delta : float
        Not needed and not spent.
    numeric : {'auto', 'slope', 'bins'}
        Encoding of numeric columns that have no bins of their own; "auto" is "slope", a number scaled to [-1, 1], as in
        the paper.
    expected_rows : int or None
        Public guess of the number of rows. It is required under "add-remove", because Lambda belongs to a mean over
        rows.

    Attributes
    ----------
    regularisation_ : float
        The Lambda that was asked for, or selected.

    See Also
    --------
    LogisticRegression : The same methods with smaller constants.
    LinearSVC : The rounded hinge loss with smaller constants.
    PrivateSVM : Another published classifier.

    Notes
    -----
    Guarantee: epsilon-DP, replace-one or add-remove, by the printed constants, which are larger than they need to be
    (pf.LogisticRegression and pf.LinearSVC have smaller ones); half a percent of epsilon pays for the error that a
    solver leaves. docs/proofs/baselines.md, Theorems 1 to 3.
    Domain: at least one row, no refused cell, no more rows than stated; docs/proofs/errors-and-stops.md.

    References
    ----------
    .. [1] K. Chaudhuri, C. Monteleoni and A. D. Sarwate, "Differentially private empirical risk minimization", Journal
       of Machine Learning Research 12, 2011.

    Examples
    --------
    >>> import numpy as np, privfit as pf
    >>> X = np.tile(np.linspace(-1, 1, 200), 50).reshape(-1, 1)
    >>> y = np.where(X[:, 0] > 0.2, "yes", "no")
    >>> model = pf.baselines.PrivateERM(epsilon=1.0, schema=pf.Schema.box(-1, 1, target=["no", "yes"])).fit(X, y)
    >>> bool(model.score(X, y) > 0.85)
    True
    """

    _choices: ClassVar[dict[str, tuple[object, ...]]] = PerturbedModel._choices | {
        "loss": tuple(LOSSES),
        "method": tuple(METHODS),
    }

    def __init__(
        self,
        epsilon: float = 1.0,
        *,
        loss: str = "logistic",
        method: str = "objective",
        regularisation: float | str = IN_PRIVGENE,
        candidates: Sequence[float] = CANDIDATES,
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
        self.loss = loss
        self.method = method
        self.regularisation = regularisation
        self.candidates = candidates

    def _chosen_mechanism(self) -> Printed:
        kind = METHODS[self.method]
        chosen: Printed
        if isinstance(self.regularisation, str) and self.regularisation == "tune":
            values = tuple(np.ravel(self.candidates).tolist())
            chosen = Tuned(
                candidates=tuple(kind(regularisation=value, share=1 / (len(values) + 1)) for value in values)
            )
        else:
            chosen = kind(regularisation=self.regularisation)  # type: ignore[arg-type]
        chosen.check()
        return chosen

    def _numbers(self, mechanism: Printed, given: Input, parameters: PrivacyParameters) -> tuple[Numbers, int]:
        usual = super()._numbers(mechanism, given, parameters)
        return ("slope", AUTO_KNOTS) if self.numeric == "auto" else usual

    def _convex_loss(self, schema: Schema) -> ConvexLoss:
        return LOSSES[self.loss]

    def _keep(self, result: PrintedResult) -> None:
        super()._keep(result)
        self.regularisation_ = result.fit.regularisation

    def _described(self, result: PrintedResult) -> Description:
        described, mechanism = super()._described(result), result.mechanism
        over = [note.replace("over all rows", f"over {mechanism.fitted_rows}") for note in described.notes]
        return Description(described.repairs, (mechanism.note(result.fit.regularisation), *over))

    @available_if(_is_logistic)  # type: ignore[untyped-decorator]
    def predict_proba(self, X: TableLike) -> Floats:
        """Predict the probability of each class for every row; for the logistic loss only.

        Parameters
        ----------
        X : array-like, data frame, Arrow table or stream, DuckDB relation, str or Path
            The rows to predict for.

        Returns
        -------
        ndarray of shape (n_rows, 2)
            The probabilities, in the order of `classes_`.
        """
        return np.asarray(np.exp(self.predict_log_proba(X)), dtype=np.float64)

    @available_if(_is_logistic)  # type: ignore[untyped-decorator]
    def predict_log_proba(self, X: TableLike) -> Floats:
        """Predict the logarithm of the probability of each class for every row; for the logistic loss only.

        Parameters
        ----------
        X : array-like, data frame, Arrow table or stream, DuckDB relation, str or Path
            The rows to predict for.

        Returns
        -------
        ndarray of shape (n_rows, 2)
            The logarithms of the probabilities, in the order of `classes_`.
        """
        scores = self._scores(X)
        return np.asarray(np.column_stack([log_expit(-scores), log_expit(scores)]), dtype=np.float64)

    def _facts(self) -> JSONObject:
        return super()._facts() | {"loss": self.loss, "method": self.method, "regularisation": self.regularisation_}

    def _restore_facts(self, facts: JSONObject) -> None:
        super()._restore_facts(facts)
        self.loss, self.method = str(facts["loss"]), str(facts["method"])
        self.regularisation = self.regularisation_ = float(facts["regularisation"])
