"""diffprivlib: its models with their defaults, given all bounds that the schema has."""

from __future__ import annotations

from typing import Any

import diffprivlib.models as models
import numpy as np

from .serve import Ask, Floats, Split, serve

PEER_CS = (1.0, 0.1, 0.01, 0.003, 0.001, 0.0003)
"""One over the ridge: 1 is the default, and there is no rule for noise."""


def logistic(split: Split, ask: Ask) -> Floats:
    """Logistic regression with the default C."""
    return _logistic(split, ask, 1.0)


def tuned(split: Split, ask: Ask) -> Floats:
    """Logistic regression with the C that has the fewest wrong test rows, which is not private."""
    found = [_logistic(split, ask, inverse) for inverse in PEER_CS]
    return min(found, key=lambda predicted: float(np.mean((predicted > 0.5) != split.truth)))


def bayes(split: Split, ask: Ask) -> Floats:
    """Naive Bayes with normal densities, levels by their places."""
    return _probabilities(models.GaussianNB(epsilon=ask.epsilon, bounds=_bounds(split), random_state=ask.seed), split)


def forest(split: Split, ask: Ask) -> Floats:
    """Random forest, levels by their places."""
    model = models.RandomForestClassifier(
        epsilon=ask.epsilon, bounds=_bounds(split), classes=[0, 1], random_state=ask.seed
    )
    return _probabilities(model, split)


def linear(split: Split, ask: Ask) -> Floats:
    """Linear regression by the functional mechanism."""
    train, test = split.lines(split.train), split.lines(split.test)
    model = models.LinearRegression(
        epsilon=ask.epsilon, bounds_X=(-1.0, 1.0), bounds_y=(-1.0, 1.0), random_state=ask.seed
    )
    return split.unscaled(np.asarray(model.fit(train, split.scaled_target()).predict(test)))


def _logistic(split: Split, ask: Ask, inverse: float) -> Floats:
    model = models.LogisticRegression(
        epsilon=ask.epsilon, data_norm=split.row_norm, C=inverse, random_state=ask.seed, max_iter=1000
    )
    model.fit(split.lines(split.train), split.target.astype(np.int64))
    return np.asarray(model.predict_proba(split.lines(split.test))[:, 1])


def _bounds(split: Split) -> tuple[list[float], list[float]]:
    low = [0.0 if column.levels else column.low for column in split.columns]
    return low, [column.levels - 1.0 if column.levels else column.high for column in split.columns]


def _probabilities(model: Any, split: Split) -> Floats:
    model.fit(split.train, split.target.astype(np.int64))
    return np.asarray(model.predict_proba(split.test)[:, 1])


if __name__ == "__main__":
    serve({"logistic": logistic, "tuned": tuned, "bayes": bayes, "forest": forest, "linear": linear})
