"""What models of two classes share: the classes in order, and the prediction of the one whose side a row is on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin

from privfit.models.base import PrivateLinearModel
from privfit.models.inputs import Input
from privfit.schema import Category, Level, SchemaError


class TwoClassModel(ClassifierMixin, PrivateLinearModel):  # type: ignore[misc]
    """A linear model of a target with two public classes: `classes_`, `decision_function` and `predict`."""

    def _prepared(self, given: Input) -> Input:
        target = given.schema.target
        assert isinstance(target, Category)
        if len(target.levels) != 2:
            raise SchemaError(
                f"{type(self).__name__} was given the target {target.name!r} with {len(target.levels)} classes; it fits two. "
                "Fit one class against the rest, or join classes in the schema."
            )
        levels = sorted(target.levels, key=lambda level: (isinstance(level, str), level))  # scikit-learn's scorers rely on it
        self.classes_ = _as_array(levels)
        return replace(given, schema=given.schema.with_target(replace(target, levels=levels)))

    def _restore(self, coef: NDArray[np.float64], intercept: NDArray[np.float64]) -> None:
        self.coef_, self.intercept_ = coef[None, :], intercept
        target = self.schema_.target
        assert isinstance(target, Category)
        self.classes_ = _as_array(target.levels)

    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """coef_'x + intercept_ for every row: positive for the second class."""
        return self._scores(X)

    def predict(self, X: Any) -> NDArray[Any]:
        """The second class where the decision function is positive, the first one elsewhere."""
        second = self._scores(X) > 0
        return self.classes_[second.astype(np.intp)]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        tags.classifier_tags.poor_score = True  # at epsilon 1 the few rows of scikit-learn's check are drowned, as they must be
        tags.target_tags.required = True
        return tags


def _as_array(levels: Sequence[Level]) -> NDArray[Any]:
    """Classes as an array that keeps numbers numbers, also beside the text "other"."""
    mixed = len({isinstance(level, str) for level in levels}) > 1
    return np.array(levels, dtype=object) if mixed else np.array(levels)
