"""What models of classes share: the classes in order, and the prediction of the one whose side a row is on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_expit, logsumexp
from sklearn.base import ClassifierMixin

from privfit.mechanisms.base import AnyMechanism
from privfit.models.base import PrivateLinearModel
from privfit.models.inputs import Input
from privfit.privacy import PrivacyError
from privfit.schema import Category, Level, Schema, SchemaError

MOST_ODDS = 500.0
A_LITTLE = 1e-6


class ClassModel(ClassifierMixin, PrivateLinearModel):  # type: ignore[misc]
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

    def _fits_many(self, mechanism: AnyMechanism) -> bool:
        """Whether this mechanism fits more than two classes."""
        return False

    def _can_fit_many(self) -> bool:
        """Whether this estimator, as it is set, fits more than two classes."""
        try:
            return self._fits_many(self._chosen_mechanism())
        except (PrivacyError, ValueError, TypeError):  # parameters that mean nothing are refused by fit
            return False

    def _prepared(self, given: Input, mechanism: AnyMechanism) -> Input:
        target = given.schema.target
        assert isinstance(target, Category)
        if len(target.levels) != 2 and not (self._fits_many(mechanism) and len(target.levels) > 2):
            raise SchemaError(
                f"{type(self).__name__} was given the target {target.name!r} with {len(target.levels)} classes; it "
                "fits two with this mechanism. " + self._instead()
            )
        prepared, self.classes_ = with_sorted_classes(given)
        return prepared

    def _instead(self) -> str:
        return "Fit one class against the rest, or join classes in the schema."

    def _restore(self, coef: NDArray[np.float64], intercept: NDArray[np.float64]) -> None:
        self.coef_, self.intercept_ = coef.reshape(len(intercept), -1), intercept
        self.classes_ = public_classes(self.schema_)

    def decision_function(self, X: Any) -> NDArray[np.float64]:
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

    def predict(self, X: Any) -> NDArray[Any]:
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

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = self._can_fit_many()
        tags.classifier_tags.poor_score = (
            True  # at epsilon 1 the few rows of scikit-learn's check are drowned, as they must be
        )
        tags.target_tags.required = True
        return tags


def with_sorted_classes(given: Input) -> tuple[Input, NDArray[Any]]:
    """The input with its target's classes in order, as scikit-learn's scorers rely on, and the classes."""
    target = given.schema.target
    assert isinstance(target, Category)
    levels = sorted(target.levels, key=lambda level: (isinstance(level, str), level))
    if levels == list(target.levels):
        return given, _as_array(levels)
    return replace(given, schema=given.schema.with_target(replace(target, levels=levels))), _as_array(levels)


def public_classes(schema: Schema) -> NDArray[Any]:
    """The classes of a schema's target."""
    assert isinstance(schema.target, Category)
    return _as_array(schema.target.levels)


def predicted_class(scores: NDArray[np.float64], classes: NDArray[Any]) -> NDArray[Any]:
    """The class on whose side each row is."""
    return np.asarray(classes[(scores > 0).astype(np.intp) if scores.ndim == 1 else np.argmax(scores, axis=1)])


def log_chances(odds: NDArray[np.float64], scores: NDArray[np.float64]) -> NDArray[np.float64]:
    """The logarithm of the chance of every class, from log-odds of each against the rest: chances are divided by their
    sum.

    A hinge loss is certain beyond its corner, of several classes or of none; there the scores tell which is a little
    more likely.
    """
    logs = log_expit(np.clip(odds, -MOST_ODDS, MOST_ODDS)) + A_LITTLE * np.tanh(scores / A_LITTLE**-0.5)
    return np.asarray(logs - logsumexp(logs, axis=1, keepdims=True), dtype=np.float64)


def _as_array(levels: Sequence[Level]) -> NDArray[Any]:
    """Classes as an array that keeps numbers numbers, also beside the text "other"."""
    mixed = len({isinstance(level, str) for level in levels}) > 1
    return np.array(levels, dtype=object) if mixed else np.array(levels)
