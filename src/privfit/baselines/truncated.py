"""The functional mechanism's objective for logistic regression without its noise, NOT private."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_expit

from privfit.baselines.not_private import NotPrivate, without_noise
from privfit.losses import truncated_logistic
from privfit.mechanisms import FunctionalMechanism, LinearFit, QuadraticProblem, Release
from privfit.mechanisms.base import Description, PublicFacts
from privfit.mechanisms.functional.problem import ExactMoments, FunctionalPlan
from privfit.models._docs import documented
from privfit.models.base import MomentModel
from privfit.models.classes import ClassModel
from privfit.models.private import FitResult
from privfit.privacy import Draws, Ledger, Seed
from privfit.schema import Geometry, Schema
from privfit.solvers import Solution, consistent, reduce_quadratic
from privfit.statistics import MomentValues
from privfit.tables import TableLike

Floats = NDArray[np.float64]

SAME = 1e-10
"""A direction whose share of the largest curvature is below this is one that columns have twice."""


@dataclass(frozen=True)
class Noiseless(FunctionalMechanism):
    """The functional mechanism's objective without its noise. NOT private."""

    name = "none"

    def reasons_not_private(self, problem: QuadraticProblem | None) -> tuple[str, ...]:
        """Always the same."""
        return ("Truncated fits the rows as they are, without noise",)

    def plan(self, facts: PublicFacts, problem: QuadraticProblem) -> FunctionalPlan:
        """The same moments; nothing is drawn."""
        return replace(super().plan(facts, problem), event=without_noise(self.name, facts))

    def draw(self, data: ExactMoments, plan: FunctionalPlan, draws: Draws) -> MomentValues:
        """The moments as they are."""
        return consistent(plan.moments, data.values.astype(np.float64), data.n_rows)

    def solve(self, release: Release[MomentValues], geometry: Geometry, problem: QuadraticProblem) -> LinearFit:
        """The minimum itself; the shortest, where columns say the same."""
        loss = problem.loss
        reduced = reduce_quadratic(release.value, geometry, loss, problem.fit_intercept)
        values, directions = np.linalg.eigh(reduced.matrix)
        factors = np.divide(1.0, values, out=np.zeros(len(values)), where=values > SAME * values.max(initial=0.0))
        found = directions @ (factors * (directions.T @ reduced.vector))
        solution = Solution(found, 0.0, 0, float((factors > 0).sum()), True, directions, factors, factors * values, 0.0)
        stretch = loss.slope / (2 * loss.curvature)
        weights = stretch * (reduced.basis @ found)
        intercept = stretch * reduced.target_mean - reduced.feature_means @ weights if problem.fit_intercept else 0.0
        return LinearFit(weights, float(intercept), reduced.target_mean, solution, release.value)


@documented
class Truncated(
    ClassModel[Noiseless, QuadraticProblem, LinearFit],
    NotPrivate[Noiseless, QuadraticProblem, LinearFit],
    MomentModel[Noiseless, LinearFit],
):
    """Logistic regression with the loss cut after its second-order term, without noise. NOT private.

    What the functional mechanism loses before any noise: section 5 of the paper [1]_. The quadratic is the Taylor
    expansion at zero, and coefficients are not rescaled afterwards.

    Parameters
    ----------
    schema : Schema, str, Path or None
        Public facts about the table, with a Category of two classes as target.
    ledger : Ledger or None
        A ledger is refused.
    random_state : object
        Not used: nothing is drawn.

    Attributes
    ----------
    report_ : Report
        Says that it is not private, and why.

    See Also
    --------
    NoPrivacy : The logistic loss itself, without noise.
    LogisticRegression : The private model.

    References
    ----------
    .. [1] J. Zhang, Z. Zhang, X. Xiao, Y. Yang and M. Winslett, "Functional mechanism: regression analysis under
       differential privacy", Proceedings of the VLDB Endowment 5(11), 2012.

    Examples
    --------
    >>> import numpy as np, privfit as pf
    >>> X = np.linspace(-1, 1, 200).reshape(-1, 1)
    >>> y = np.where(X[:, 0] > 0.0, "yes", "no")
    >>> model = pf.baselines.Truncated(schema=pf.Schema.box(-1, 1, target=["no", "yes"])).fit(X, y)
    >>> bool(model.score(X, y) > 0.95), model.report_.private
    (True, False)
    """

    _loss = truncated_logistic()

    def __init__(
        self,
        *,
        schema: Schema | str | Path | None = None,
        fit_intercept: bool = True,
        numeric: str = "auto",
        ledger: Ledger | None = None,
        random_state: Seed = None,
        n_jobs: int | None = None,
        max_memory: int | str | None = None,
    ) -> None:
        self.schema = schema
        self.fit_intercept = fit_intercept
        self.numeric = numeric
        self.ledger = ledger
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.max_memory = max_memory

    def _chosen_mechanism(self) -> Noiseless:
        return Noiseless(repair=None, noise="laplace")

    def _keep(self, result: FitResult[Noiseless, QuadraticProblem, LinearFit]) -> None:
        coef, intercept = self._geometry.table_units(result.fit.weights, result.fit.intercept)
        self.coef_, self.intercept_ = coef[None, :], np.array([intercept])

    def _described(self, result: FitResult[Noiseless, QuadraticProblem, LinearFit]) -> Description:
        return Description(notes=("minimises Taylor's quadratic of the logistic loss over all rows",))

    def predict_proba(self, X: TableLike) -> Floats:
        """Predict the probability of each class for every row, as if the loss had not been cut.

        Parameters
        ----------
        X : array-like, data frame, Arrow table or stream, DuckDB relation, str or Path
            The rows to predict for.

        Returns
        -------
        ndarray of shape (n_rows, 2)
            The probabilities, in the order of `classes_`.
        """
        scores = self._scores(X)
        return np.asarray(np.exp(np.column_stack([log_expit(-scores), log_expit(scores)])), dtype=np.float64)
