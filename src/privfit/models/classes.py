"""What classifiers share: the classes in order, decision function and predicted class."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_expit, logsumexp
from sklearn.base import ClassifierMixin
from sklearn.utils import Tags

from privfit.models.base import PrivateLinearModel
from privfit.models.inputs import levels_array
from privfit.models.private import FitT, MechanismT, ProblemT
from privfit.privacy import PrivacyError
from privfit.schema import Category, Schema
from privfit.tables import TableLike

MOST_LOG_ODDS = 500.0
"""Log-odds are clipped here, so that no logarithm of a probability overflows."""
TIE_BREAK = 1e-6
"""How much scores add to log-probabilities: enough to order classes with equal odds, too little to matter otherwise."""


class ClassModel(ClassifierMixin, PrivateLinearModel[MechanismT, ProblemT, FitT]):  # type: ignore[misc]
    """A model of a target with public classes: `classes_`, `decision_function` and `predict`.

    Two classes have one linear predictor, more have one each.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The public classes, sorted.
    coef_ : ndarray of shape (1, n_columns) or (n_classes, n_columns)
        One row for two classes, one per class for more; one coefficient per name in `get_feature_names_out()`, in the
        units of the table.
    intercept_ : ndarray of shape (1,) or (n_classes,)
        The intercepts.
    """

    _is_classifier = True

    def _restore(self, coef: NDArray[np.float64], intercept: NDArray[np.float64]) -> None:
        self.coef_, self.intercept_ = coef.reshape(len(intercept), -1), intercept
        self.classes_ = public_classes(self.schema_)

    def decision_function(self, X: TableLike) -> NDArray[np.float64]:
        """Evaluate the linear predictor, coef_'x + intercept_, for every row.

        Parameters
        ----------
        X : array-like, data frame, Arrow table or stream, DuckDB relation, str or Path
            The rows to predict for.

        Returns
        -------
        ndarray of shape (n_rows,) or (n_rows, n_classes)
            Positive for the second of two classes; one column per class for more.
        """
        return self._scores(X)

    def predict(self, X: TableLike) -> NDArray[Any]:
        """Predict the class of every row.

        Parameters
        ----------
        X : array-like, data frame, Arrow table or stream, DuckDB relation, str or Path
            The rows to predict for.

        Returns
        -------
        ndarray of shape (n_rows,)
            Of two classes the second one where the decision function is positive; of more, the one with the largest.
        """
        return predicted_class(self._scores(X), self.classes_)

    def _fits_many_classes(self) -> bool:
        """Whether more than two classes can be fitted with these parameters."""
        try:
            return self._chosen_mechanism().many_classes
        except (PrivacyError, ValueError, TypeError):  # parameters that mean nothing are refused by fit
            return False

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = self._fits_many_classes()
        tags.classifier_tags.poor_score = True  # at epsilon 1, noise dominates the few rows of scikit-learn's check
        tags.target_tags.required = True
        return tags


def public_classes(schema: Schema) -> NDArray[Any]:
    """The classes of a schema's target."""
    assert isinstance(schema.target, Category)
    return levels_array(schema.target.levels)


def predicted_class(scores: NDArray[np.float64], classes: NDArray[Any]) -> NDArray[Any]:
    """The class on whose side each row is."""
    return np.asarray(classes[(scores > 0).astype(np.intp) if scores.ndim == 1 else np.argmax(scores, axis=1)])


def log_probabilities(odds: NDArray[np.float64], scores: NDArray[np.float64]) -> NDArray[np.float64]:
    """The logarithm of the probability of every class, from log-odds of each against the rest, scaled to sum to 1.

    Beyond the corner of a hinge loss several classes, or none, have probability 1; there scores break the tie.
    """
    logs = log_expit(np.clip(odds, -MOST_LOG_ODDS, MOST_LOG_ODDS)) + TIE_BREAK * np.tanh(scores / TIE_BREAK**-0.5)
    return np.asarray(logs - logsumexp(logs, axis=1, keepdims=True), dtype=np.float64)
