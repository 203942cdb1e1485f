"""MST synthetic data by dpmm, and scikit-learn's gradient boosting fitted on them.

Numbers are cut into equal bins between the schema's bounds, which costs no privacy.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from dpmm.pipelines import MSTPipeline
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

from .serve import Ask, Column, Floats, Split, serve

BINS = 16
"""So many for a number."""
ITERATIONS = 1000
"""Of its inference: a tenth of its default, which takes many minutes a fit."""
TARGET = "the target"


def mst(split: Split, ask: Ask) -> Floats:
    """Boosting on as many made-up rows as there are rows to fit on."""
    low, high = split.bounds or (0.0, 1.0)
    target = Column(TARGET, low, high, 0 if split.bounds else 2)
    columns = [*split.columns, target]
    made_up = _made_up(columns, np.column_stack([split.train, split.target]), ask)
    told = {"random_state": ask.seed, "categorical_features": [0 < one.levels <= 255 for one in split.columns]}
    test = _binned(split.columns, split.test)
    if split.bounds is not None:
        predicted = HistGradientBoostingRegressor(**told).fit(made_up[:, :-1], made_up[:, -1]).predict(test)
        return np.asarray(low + (np.asarray(predicted) + 0.5) / BINS * (high - low))
    classes = made_up[:, -1].astype(np.int64)
    if classes.min() == classes.max():
        return np.full(len(test), float(classes[0]))
    return np.asarray(HistGradientBoostingClassifier(**told).fit(made_up[:, :-1], classes).predict_proba(test)[:, 1])


def _made_up(columns: list[Column], rows: Floats, ask: Ask) -> Floats:
    names = [f"c{place}" for place in range(len(columns))]
    codes = _binned(columns, rows).astype(np.int64)
    frame = pd.DataFrame({name: pd.Categorical(codes[:, place]) for place, name in enumerate(names)})
    domain: dict[str, Any] = {
        name: {"categories": list(range(column.levels or BINS))} for name, column in zip(names, columns, strict=True)
    }
    model = MSTPipeline(epsilon=ask.epsilon, delta=ask.delta, n_jobs=1, gen_kwargs={"n_iters": ITERATIONS})
    model.fit(frame, domain=domain, random_state=ask.seed)
    made = model.generate(n_records=len(rows), random_state=ask.seed)
    return np.column_stack([made[name].astype(np.int64) for name in names]).astype(np.float64)


def _binned(columns: Any, rows: Floats) -> Floats:
    """Levels as they are, numbers by the place of their bin."""
    found = rows.copy()
    for place, column in enumerate(columns):
        if not column.levels:
            share = (rows[:, place] - column.low) / (column.high - column.low)
            found[:, place] = np.clip(np.floor(BINS * share), 0, BINS - 1)
    return found


if __name__ == "__main__":
    serve({"mst": mst})
