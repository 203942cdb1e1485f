"""privfit, and methods as their papers print them, which have no package."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl

from privfit import AdditiveClassifier, AdditiveRegressor, LinearRegression, LogisticRegression
from privfit.privacy import seeded_generator
from privfit.schema import Category, Numeric, Schema
from privfit_papers.bench.board.printed import BoostedAdaSSP, TukeyEM

from .serve import Ask, Floats, Split, serve

TARGET = "the target"


def additive(split: Split, ask: Ask) -> Floats:
    """The additive model of the task."""
    return _fitted(AdditiveClassifier if split.bounds is None else AdditiveRegressor, split, ask)


def lines(split: Split, ask: Ask) -> Floats:
    """One slope per number: the linear model of the task."""
    if split.bounds is not None:
        return _fitted(LinearRegression, split, ask)
    return _fitted(LogisticRegression, split, ask, numeric="slope", interactions=0)


def adassp(split: Split, ask: Ask) -> Floats:
    """Boosted AdaSSP."""
    model = BoostedAdaSSP(ask.epsilon, ask.delta, seeded_generator(ask.seed))
    weights = model.fit(_with_constant(split, split.train), split.scaled_target())
    return split.unscaled(_with_constant(split, split.test) @ weights)


def tukey(split: Split, ask: Ask) -> Floats:
    """TukeyEM."""
    model = TukeyEM(ask.epsilon, ask.delta, seeded_generator(ask.seed))
    weights = model.fit(_independent(split, split.train), split.scaled_target())
    return split.unscaled(_independent(split, split.test) @ weights)


def _fitted(estimator: Any, split: Split, ask: Ask, **more: Any) -> Floats:
    schema, frames = _schema(split), [_frame(split, part) for part in (split.train, split.test)]
    private = {"epsilon": ask.epsilon, "delta": ask.delta, "schema": schema, "random_state": ask.seed}
    target = split.target.astype(np.int64) if split.bounds is None else split.target
    model = estimator(**private, **more).fit(frames[0].with_columns(pl.Series(TARGET, target)))
    if split.bounds is None:
        return np.asarray(model.predict_proba(frames[1])[:, 1])
    return np.asarray(np.clip(model.predict(frames[1]), *split.bounds))


def _schema(split: Split) -> Schema:
    features = [
        Category(one.name, list(range(one.levels))) if one.levels else Numeric(one.name, one.low, one.high)
        for one in split.columns
    ]
    target = Category(TARGET, [0, 1]) if split.bounds is None else Numeric(TARGET, *split.bounds)
    return Schema(features, target=target)


def _frame(split: Split, part: Floats) -> pl.DataFrame:
    columns = {one.name: part[:, place] for place, one in enumerate(split.columns)}
    whole = [pl.col(one.name).cast(pl.Int64) for one in split.columns if one.levels]
    return pl.DataFrame(columns).with_columns(whole)


def _with_constant(split: Split, part: Floats) -> Floats:
    """Rows of length 1 at most, with a constant."""
    return np.asarray(np.column_stack([np.ones(len(part)), split.lines(part)]) / np.hypot(1.0, split.row_norm))


def _independent(split: Split, part: Floats) -> Floats:
    """Rows with a constant, and without the first level of each category, which it carries."""
    blocks = [one.lines(part[:, place])[:, 1 if one.levels else 0 :] for place, one in enumerate(split.columns)]
    return np.hstack([np.ones((len(part), 1)), *blocks])


if __name__ == "__main__":
    serve({"additive": additive, "lines": lines, "adassp": adassp, "tukey": tukey})
