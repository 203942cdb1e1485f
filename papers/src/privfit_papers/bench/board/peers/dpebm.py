"""DP-EBM: the additive models of interpret, with their defaults, given all bounds that the schema has."""

from __future__ import annotations

from typing import Any

import numpy as np
from interpret.privacy import DPExplainableBoostingClassifier, DPExplainableBoostingRegressor

from .serve import Ask, Floats, Split, serve


def classes(split: Split, ask: Ask) -> Floats:
    """The classifier's probabilities."""
    model = DPExplainableBoostingClassifier(**_told(split, ask))
    model.fit(_mixed(split, split.train), split.target.astype(np.int64))
    return np.asarray(model.predict_proba(_mixed(split, split.test))[:, 1])


def numbers(split: Split, ask: Ask) -> Floats:
    """The regressor's predictions, within the target's bounds."""
    assert split.bounds is not None
    low, high = split.bounds
    model = DPExplainableBoostingRegressor(privacy_target_min=low, privacy_target_max=high, **_told(split, ask))
    model.fit(_mixed(split, split.train), split.target)
    return np.asarray(np.clip(model.predict(_mixed(split, split.test)), low, high))


def _told(split: Split, ask: Ask) -> dict[str, Any]:
    return {
        "epsilon": ask.epsilon,
        "delta": ask.delta,
        "random_state": ask.seed,
        "n_jobs": 1,
        "feature_types": ["nominal" if column.levels else "continuous" for column in split.columns],
        "privacy_bounds": {
            place: (column.low, column.high) for place, column in enumerate(split.columns) if not column.levels
        },
    }


def _mixed(split: Split, part: Floats) -> Any:
    """Numbers as they are, levels as texts."""
    mixed = part.astype(object)
    for place, column in enumerate(split.columns):
        if column.levels:
            mixed[:, place] = part[:, place].astype(np.int64).astype(str)
    return mixed


if __name__ == "__main__":
    serve({"classes": classes, "numbers": numbers})
