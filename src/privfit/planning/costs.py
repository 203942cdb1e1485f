"""What costs most: the plan once more with one public fact changed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from privfit.planning.simulation import WITHOUT_TARGET, Repetition, Settings, Step
from privfit.schema import Category, Numeric, Schema

MOST_PRICED_COLUMNS = 4
"""Columns that are left out in turn, the widest first: each costs fits. Chosen, not measured."""


@dataclass(frozen=True)
class Change:
    """One public fact that is changed, and what the fit without a name for its mechanism gains by it."""

    what: str
    gain: float
    deviation: float

    @property
    def matters(self) -> bool:
        """Whether the gain is above its spread over repetitions."""
        return self.gain > self.deviation


def changes(schema: Schema, settings: Settings) -> Iterator[tuple[str, Schema, Settings]]:
    """Every change in words, with the schema and settings that it makes."""
    numbers = [column for column in schema.columns if isinstance(column, Numeric) and column.name in _numbers(schema)]
    if numbers and settings.model not in WITHOUT_TARGET:  # there the scale of distances would change
        yield "bounds half as wide", schema.with_bounds({one.name: _half(one) for one in numbers}), settings
    widest = sorted(schema.features, key=_width, reverse=True)
    if len(widest) > 1 and settings.model not in WITHOUT_TARGET:
        for column in widest[:MOST_PRICED_COLUMNS]:
            kept = [one for one in schema.features if one is not column]
            yield f"without column {column.name}", Schema(kept, schema.target), settings
    several = [one for one in widest if isinstance(one, Category) and one.is_text and len(one.levels) > 3]
    if several and settings.model not in WITHOUT_TARGET:
        joined = [_fewer_levels(one) if one is several[0] else one for one in schema.features]
        yield f"half of the levels of {several[0].name}, the rest joined", Schema(joined, schema.target), settings
    if settings.rows_per_person > 1:
        yield "one row per person", schema, replace(settings, rows_per_person=1)


def _numbers(schema: Schema) -> set[str]:
    return {column.name for column in schema.columns if isinstance(column, Numeric)}


def _half(column: Numeric) -> tuple[float, float]:
    quarter = (column.high - column.low) / 4
    return column.low + quarter, column.high - quarter


def _width(column: Category | Numeric) -> int:
    return len(column.levels) if isinstance(column, Category) else 1


def _fewer_levels(column: Category) -> Category:
    own = [level for level in column.levels if level != "other"]
    return Category(column.name, own[: len(own) // 2], other=True)


def measured_changes(
    schema: Schema, settings: Settings, repetitions: list[Repetition], epsilon: float, step: Step
) -> tuple[Change, ...]:
    """What each change gains, the most first, on the same tables and with the same seeds."""
    before = np.array([one.score(settings, schema, "auto", epsilon) for one in repetitions])
    found = []
    for what, changed, own in changes(schema, settings):
        gains = np.array([one.score(own, changed, "auto", epsilon) for one in repetitions]) - before
        found.append(Change(what, float(gains.mean()), float(gains.std(ddof=1)) if len(gains) > 1 else 0.0))
        step()
    return tuple(sorted(found, key=lambda change: -change.gain))
