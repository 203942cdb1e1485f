"""dp-xgboost: boosted trees with the settings of its own examples, 20 trees on a fifth of the rows each.

Both tasks are regressions, as in its examples. Its noise has the clock for a seed, so that no two runs are alike.
"""

from __future__ import annotations

import math

import dp_xgboost
import numpy as np

from .serve import Ask, Floats, Split, serve

TREES, SUBSAMPLE = 20, 0.2
LEAST_CHANCE = 0.001
"""Predictions of a class are cut here and at 1 less this, to be probabilities."""


def trees(split: Split, ask: Ask) -> Floats:
    """Predictions within the target's bounds."""
    is_class = split.bounds is None
    lines = [split.lines(part) for part in (split.train, split.test)]
    bounds = {"feature_min": lines[0].shape[1] * [-1.0], "feature_max": lines[0].shape[1] * [1.0]}
    target = split.target if is_class else split.scaled_target()
    told = {
        "objective": "reg:squarederror",
        "tree_method": "approxDP",
        "dp_epsilon_per_tree": per_tree(ask.epsilon),
        "base_score": 0.5 if is_class else 0.0,
        "max_depth": 6,
        "learning_rate": 0.2,
        "lambda": 0.1,
        "subsample": SUBSAMPLE,
        "min_child_weight": 500,
        "nthread": 1,
        "seed": ask.seed,
    }
    model = dp_xgboost.train(told, dp_xgboost.DMatrix(lines[0], label=target, **bounds), num_boost_round=TREES)
    predicted = np.asarray(model.predict(dp_xgboost.DMatrix(lines[1], **bounds)), dtype=np.float64)
    return np.clip(predicted, LEAST_CHANCE, 1 - LEAST_CHANCE) if is_class else split.unscaled(predicted)


def per_tree(epsilon: float) -> float:
    """What each tree may cost, of which sampling of rows makes less."""
    return math.log1p(math.expm1(epsilon / TREES) / SUBSAMPLE)


if __name__ == "__main__":
    serve({"trees": trees})
