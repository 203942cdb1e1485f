"""Without privacy, for comparison: scikit-learn's least squares, logistic regression and gradient boosting."""

from __future__ import annotations

import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.linear_model import LogisticRegression

from .serve import Ask, Floats, Split, serve

MOST_LEVELS = 255
"""Columns with more levels enter boosting by their places."""


def constant(split: Split, ask: Ask) -> Floats:
    """The mean of the target, or the share of the second class."""
    return np.full(len(split.truth), float(split.target.mean()))


def squares(split: Split, ask: Ask) -> Floats:
    """Least squares."""
    train, test = (np.column_stack([np.ones(len(part)), split.lines(part)]) for part in (split.train, split.test))
    return split.unscaled(test @ np.linalg.lstsq(train, split.scaled_target(), rcond=None)[0])


def logistic(split: Split, ask: Ask) -> Floats:
    """Logistic regression as scikit-learn has it."""
    model = LogisticRegression(max_iter=1000).fit(split.lines(split.train), split.target.astype(np.int64))
    return np.asarray(model.predict_proba(split.lines(split.test))[:, 1])


def boosting(split: Split, ask: Ask) -> Floats:
    """Gradient boosting as scikit-learn has it."""
    told = {"categorical_features": [0 < one.levels <= MOST_LEVELS for one in split.columns], "random_state": ask.seed}
    if split.bounds is not None:
        return np.asarray(HistGradientBoostingRegressor(**told).fit(split.train, split.target).predict(split.test))
    model = HistGradientBoostingClassifier(**told).fit(split.train, split.target.astype(np.int64))
    return np.asarray(model.predict_proba(split.test)[:, 1])


if __name__ == "__main__":
    serve({"constant": constant, "squares": squares, "logistic": logistic, "boosting": boosting})
