"""One class for everybody: what any classifier should be seen beside."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from privfit.mechanisms.histograms.class_counts import ClassCounts
from privfit.models._docs import documented
from privfit.models.inputs import Input, predict_table, predicting
from privfit.models.private import FitResult, PrivateModel
from privfit.privacy import Ledger, PrivacyParameters, Seed
from privfit.rows import linear_scores
from privfit.schema import Geometry, Schema
from privfit.tables import TableLike


@documented
class Majority(ClassifierMixin, PrivateModel[ClassCounts, None, int]):  # type: ignore[misc]
    """Predict the same class for every row: the most frequent one of a private table, by noisy counts.

    A baseline that any classifier should beat.

    Parameters
    ----------
    delta : float
        Not needed and not spent: all noise here needs epsilon alone.
    expected_rows : int or None
        Not needed.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The public classes, sorted.
    majority_ : object
        The class that is predicted.

    See Also
    --------
    LogisticRegression : A classifier that looks at the columns.

    Notes
    -----
    The schema has a Category as target; other columns are not used.

    Guarantee: epsilon-DP, replace-one or add-remove, for persons with at most `rows_per_person` rows;
    docs/proofs/histograms.md, Theorem 4.
    Domain: at least one row, no refused cell, no more rows than stated; docs/proofs/errors-and-stops.md.

    Examples
    --------
    >>> import numpy as np, privfit as pf
    >>> X, y = np.zeros((4000, 1)), np.repeat(["no", "yes"], [3000, 1000])
    >>> model = pf.baselines.Majority(epsilon=1.0, schema=pf.Schema.box(0, 1, target=["no", "yes"])).fit(X, y)
    >>> str(model.majority_)
    'no'
    """

    _is_classifier = True

    def __init__(
        self,
        epsilon: float = 1.0,
        *,
        delta: float = 0.0,
        schema: Schema | str | Path | None = None,
        adjacency: str = "replace-one",
        rows_per_person: int = 1,
        expected_rows: int | None = None,
        ledger: Ledger | None = None,
        random_state: Seed = None,
        n_jobs: int | None = None,
        max_memory: int | str | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.schema = schema
        self.adjacency = adjacency
        self.rows_per_person = rows_per_person
        self.expected_rows = expected_rows
        self.ledger = ledger
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.max_memory = max_memory

    def _chosen_mechanism(self) -> ClassCounts:
        return ClassCounts()

    def _encoded(self, mechanism: ClassCounts, given: Input, parameters: PrivacyParameters) -> tuple[None, Geometry]:
        return None, mechanism.geometry(given.schema, None)

    def _keep(self, result: FitResult[ClassCounts, None, int]) -> None:
        self.majority_ = self.classes_[result.fit]

    @predicting
    def predict(self, X: TableLike) -> NDArray[Any]:
        """Predict the most frequent class for every row.

        Parameters
        ----------
        X : array-like, data frame, Arrow table or stream, DuckDB relation, str or Path
            The rows to predict for.

        Returns
        -------
        ndarray of shape (n_rows,)
            The same class for each row.
        """
        check_is_fitted(self)
        columns = self.schema_.geometry(numeric="bins", intercept=False, target=False)  # bins can be missing, too
        rows = len(
            linear_scores(predict_table(self, X), self.schema_, columns, np.zeros(len(columns.feature_names)), 0.0)
        )
        return np.full(rows, self.majority_, dtype=self.classes_.dtype)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.poor_score = True
        tags.classifier_tags.multi_class = False
        return tags
