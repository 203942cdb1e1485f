"""Logistic regression under differential privacy."""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_expit, log_softmax

from privfit.losses import LOGISTIC, tempered_logistic
from privfit.mechanisms import ERMFit, ERMProblem
from privfit.mechanisms.base import AnyMechanism
from privfit.models._docs import documented
from privfit.models.base import WeighedClasses
from privfit.models.classes import ClassModel, log_probabilities
from privfit.models.features import USUAL_COMPONENTS
from privfit.models.inputs import predicting
from privfit.models.intervals import ClassesWithIntervals
from privfit.models.named import CLASSIFIERS, ERMMechanism
from privfit.models.perturbed import PerturbedModel
from privfit.models.report import JSONObject
from privfit.privacy import Ledger, Seed
from privfit.schema import Schema
from privfit.tables import TableLike

Floats = NDArray[np.float64]


@documented
class LogisticRegression(
    WeighedClasses,
    ClassesWithIntervals,
    ClassModel[ERMMechanism, ERMProblem, ERMFit],
    PerturbedModel[ERMMechanism, ERMFit],
):
    """Logistic regression for two or more classes, fitted under differential privacy.

    By default the objective is perturbed: a random linear term is added to it, and its minimum is the release.

    Parameters
    ----------
    delta : float
        Probability with which the guarantee may fail; 0 asks for pure epsilon-DP. With a delta above 0, Gaussian noise
        is used where its standard deviation is smaller by three percent or more.
    mechanism : str, ObjectivePerturbation, OutputPerturbation, FunctionalMechanism, PrivGene or SampleAndAggregate
        "auto" and "objective" perturb the objective, the most accurate way on every table that was measured. "output"
        perturbs the minimum. "functional" releases moments and fits a quadratic approximation of the loss, for two
        classes. "genetic" changes weights step by step by private selection. "sample-and-aggregate" averages the
        weights of many blocks of rows, for comparison.
    interactions : int or 'auto'
        Number of interaction terms beside the sum over columns. A term is a table with one score for every pair of
        levels, bins or eighths of the range of two columns, or for 500 fine steps of one number. They are selected
        privately, where the residuals of the rest of the fit are largest. "auto" is three where rows times epsilon
        (over rows_per_person) is 120,000 or more, two from 40,000 on, one from 20,000 on, and none below, where at most
        40,960 times rows_per_person rows (over epsilon, where that is below 1) count, so that three need an epsilon of
        about 3; half of these limits and at most two where a delta makes the noise Gaussian; and none where a mechanism
        is named, for more than two classes, for more than 5,000 candidates, or where the number of rows is not known
        beforehand. 0 keeps the model a sum over columns with 8 knots a number. A number can be given with
        mechanism="objective" too.

    See Also
    --------
    LinearSVC : Classification with the hinge loss.
    ERM : Any convex loss that states its constants.
    ObjectivePerturbation : The mechanism behind the default.
    privfit.baselines.PrivateERM : The same methods with the constants of the paper.

    Notes
    -----
    Guarantee: epsilon-DP, or (epsilon, delta)-DP with a delta, replace-one or add-remove; docs/proofs/perturbation.md,
    Theorems 1 to 4, docs/proofs/pairs.md, Theorems 1 and 2, for interactions, docs/proofs/moments.md, Theorem 3, for
    the functional mechanism, docs/proofs/selection.md, Theorem 3, for the genetic one, and docs/proofs/aggregate.md,
    Theorem 1, for sample and aggregate.
    Domain: at least one row, no refused cell, no more rows than stated; docs/proofs/errors-and-stops.md.

    References
    ----------
    .. [1] K. Chaudhuri and C. Monteleoni, "Privacy-preserving logistic regression", NIPS 2008.
    .. [2] K. Chaudhuri, C. Monteleoni and A. D. Sarwate, "Differentially private empirical risk minimization", Journal
       of Machine Learning Research 12, 2011.

    Examples
    --------
    >>> import numpy as np, privfit as pf
    >>> X = np.tile(np.linspace(-1, 1, 200), 50).reshape(-1, 1)
    >>> y = np.where(X[:, 0] > 0.2, "yes", "no")
    >>> schema = pf.Schema.box(-1, 1, target=["no", "yes"])
    >>> model = pf.LogisticRegression(epsilon=1.0, schema=schema).fit(X, y)
    >>> bool(model.score(X, y) > 0.85)
    True
    """

    _mechanisms = CLASSIFIERS
    _loss = LOGISTIC
    _choices: ClassVar[dict[str, tuple[object, ...]]] = PerturbedModel._choices | ClassesWithIntervals._choices

    def __init__(
        self,
        epsilon: float = 1.0,
        *,
        delta: float = 0.0,
        schema: Schema | str | Path | None = None,
        mechanism: str | AnyMechanism = "auto",
        adjacency: str = "replace-one",
        fit_intercept: bool = True,
        numeric: str = "auto",
        kernel: str = "linear",
        gamma: float | str = "auto",
        n_components: int = USUAL_COMPONENTS,
        row_norm: float | None = None,
        interactions: int | str = "auto",
        intervals: bool = False,
        rows_per_person: int = 1,
        expected_rows: int | None = None,
        max_weight: float | None = None,
        class_weight: dict[Any, float] | str | None = None,
        ledger: Ledger | None = None,
        random_state: Seed = None,
        n_jobs: int | None = None,
        max_memory: int | str | None = None,
    ) -> None:
        super().__init__(
            epsilon,
            delta=delta,
            schema=schema,
            mechanism=mechanism,
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
        self.max_weight = max_weight
        self.class_weight = class_weight
        self.kernel = kernel
        self.gamma = gamma
        self.n_components = n_components
        self.row_norm = row_norm
        self.interactions = interactions
        self.intervals = intervals

    def _instead(self) -> str:
        return "Use mechanism='objective', which fits any number of classes, or join classes in the schema."

    def _predicted(self, scores: Floats) -> Floats:
        return np.asarray(np.exp(self._log_probability(scores)), dtype=np.float64)

    def _ratio_name(self) -> str:
        return "odds ratio" if self._slopes is None else ""

    # -- probabilities -----------------------------------------------------------------------------

    def predict_proba(self, X: TableLike) -> Floats:
        """Predict the probability of each class for every row.

        Parameters
        ----------
        X : array-like, data frame, Arrow table or stream, DuckDB relation, str or Path
            The rows to predict for.

        Returns
        -------
        ndarray of shape (n_rows, n_classes)
            The probabilities, in the order of `classes_`.
        """
        return np.asarray(np.exp(self.predict_log_proba(X)), dtype=np.float64)

    @predicting
    def predict_log_proba(self, X: TableLike) -> Floats:
        """Predict the logarithm of the probability of each class for every row.

        Parameters
        ----------
        X : array-like, data frame, Arrow table or stream, DuckDB relation, str or Path
            The rows to predict for.

        Returns
        -------
        ndarray of shape (n_rows, n_classes)
            The logarithms of the probabilities, in the order of `classes_`.
        """
        scores = self._scores(X)
        if scores.ndim == 1:
            return np.column_stack([self._log_probability(-scores), self._log_probability(scores)])
        return (
            np.asarray(log_softmax(scores, axis=1), dtype=np.float64)
            if self._softmax
            else log_probabilities(self._log_odds(scores), scores)
        )

    def _log_probability(self, scores: Floats) -> Floats:
        """The logarithm of the probability that a score stands for."""
        return np.asarray(log_expit(self._log_odds(scores)), dtype=np.float64)

    def _log_odds(self, scores: Floats) -> Floats:
        """Scores as they would be for the logistic loss.

        A loss with smaller slopes has larger or smaller scores for the same probability.
        """
        if self._slopes is None:
            return scores
        return tempered_logistic(*self._slopes).log_odds(scores)

    def _facts(self) -> JSONObject:
        return super()._facts() | {"slopes": self._slopes, "softmax": self._softmax}

    def _restore_facts(self, facts: JSONObject) -> None:
        super()._restore_facts(facts)
        slopes = facts.get("slopes")
        self._slopes = None if slopes is None else (float(slopes[0]), float(slopes[1]))
        self._softmax = bool(facts.get("softmax", False))
