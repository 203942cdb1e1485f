"""A forecast in a second or two, for a table that need not exist: what rows, columns and bounds do to a fit."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from privfit.planning.generated import Source
from privfit.planning.plan import CLASSIFIERS, measure
from privfit.planning.result import Plan, forecast
from privfit.planning.simulation import NO_NOISE, Repetition, Settings, without_noise
from privfit.schema import Category, Numeric, Schema

MOST_ROWS = 4_000
"""Rows of a generated table. More make a steadier forecast, fewer a page that answers sooner. Chosen, not measured."""
REPETITIONS = 3
"""Generated tables for a spread. Chosen, not measured."""
KEPT_TABLES = 16
"""Generated tables that are kept for the next question: moving epsilon or a bound makes no table anew."""
LEVELS = 4
"""Levels of a category of a supposed table. Chosen, not measured."""
EVERY = 3
"""Every third column of a supposed table is a category. Chosen, not measured."""


def supposed_schema(columns: int, model: str) -> Schema:
    """A table that nobody has: numbers, every third column a category, and a target."""
    features = [
        Category(f"category{place}", [f"level{level}" for level in range(LEVELS)])
        if place % EVERY == 0
        else Numeric(f"number{place}", 0, 1)
        for place in range(1, columns + 1)
    ]
    return Schema(features, Category("target", ["no", "yes"]) if model in CLASSIFIERS else Numeric("target", 0, 1))


def wider(schema: Schema, times: float) -> Schema:
    """The schema with bounds so many times as wide, about the same middle."""
    numbers = [column for column in schema.columns if isinstance(column, Numeric)]
    added = {one.name: (times - 1) / 2 * (one.high - one.low) for one in numbers}
    return schema.with_bounds({one.name: (one.low - added[one.name], one.high + added[one.name]) for one in numbers})


def what_if(schema: Schema, n_rows: int, *, model: str, epsilon: Sequence[float], times_as_wide: float = 1.0) -> Plan:
    """The forecast of a fit whose bounds are so many times as wide as the values need.

    Tables are generated from the schema as it is, and fitted with the wider one. Nothing private is read.
    """
    settings = Settings(model, n_rows, MOST_ROWS, 1, {})
    tables = _tables(schema, settings.simulated_rows)
    believed = wider(schema, times_as_wide)
    reference = float(np.mean([one.score(without_noise(settings), believed, "auto", NO_NOISE) for one in tables]))
    forecasts = tuple(
        forecast("auto", one, [table.score(settings, believed, "auto", one) for table in tables]) for one in epsilon
    )
    source, rows = "schema", settings.simulated_rows
    what = measure(schema, model)
    return Plan(model, n_rows, rows, REPETITIONS, source, what, reference, forecasts, (), epsilon[0], {})


@lru_cache(maxsize=KEPT_TABLES)
def _tables(schema: Schema, rows: int) -> list[Repetition]:
    source = Source.of(schema, None, 0)
    return [Repetition.of(source, rows, seed) for seed in range(REPETITIONS)]
