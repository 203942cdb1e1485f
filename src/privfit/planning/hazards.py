"""Generated tables with a time and an event, and how well a model of hazards orders their rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privfit.models.survival_input import columns_of
from privfit.planning.generated import EXPLAINED, Floats, Source, design
from privfit.privacy import PrivacyError, seeded_generator
from privfit.schema import Category, Numeric, Schema
from privfit.tables import Frame, TableLike, columns_to_frame

ERROR_VARIANCE = np.pi**2 / 6
"""Of the logarithm of an exponential time: the law's own."""
WATCHED, HAZARD = 1.2, 1.5
"""People are watched for up to so many times the range of times, and the hazard is this over that range: about half of
them have an event. Chosen, not measured."""
COMPARED_ROWS = 3_000
"""Rows whose pairs are compared for a concordance: a standard error of about .006. Chosen, not measured."""


def with_time(schema: Schema, parameters: Mapping[str, Any]) -> tuple[Schema, dict[str, Any]]:
    """The schema with the time as its target and without the event, and the parameters that name both."""
    time, event = columns_of(parameters.get("time", "time"), parameters.get("event", "event"), schema)
    features = [column for column in schema.columns if column.name not in (time.name, event.name)]
    return Schema(features, time), {**parameters, "time": time.name, "event": event}


@dataclass(frozen=True)
class HazardSource:
    """Draws tables whose times are exponential, with hazards that are proportional and effects drawn at random."""

    features: Source
    time: Numeric
    event: Category
    effects: Floats
    centre: float

    @classmethod
    def of(cls, schema: Schema, event: Category, public: TableLike | None, seed: int) -> HazardSource:
        """From the schema, whose target is the time."""
        if public is not None:
            raise PrivacyError(
                "A public sample was given to a plan of hazards, which is made from the schema alone. Leave out public."
            )
        assert isinstance(schema.target, Numeric)
        features, generator = Source.of(schema.with_target(None), None, seed), seeded_generator(seed)
        probe = design(features.schema, features.coded(2_000, seed))
        effects = generator.standard_normal(probe.shape[1])
        scores = probe @ effects
        effects = effects * np.sqrt(ERROR_VARIANCE * EXPLAINED / (1 - EXPLAINED)) / scores.std()
        return cls(features, schema.target, event, effects, float((probe @ effects).mean()))

    def with_law(self, seed: int) -> HazardSource:
        """Itself: effects are drawn once, as those of other targets that come from the schema."""
        return self

    def table(self, n_rows: int, seed: int) -> Frame:
        """So many rows."""
        generator, values = seeded_generator(seed), self.features.coded(n_rows, seed)
        scores = design(self.features.schema, values) @ self.effects - self.centre
        lives = generator.exponential(1.0, n_rows) * np.exp(-scores) / HAZARD
        watched = generator.random(n_rows) * WATCHED
        times = self.time.low + np.minimum(np.minimum(lives, watched), 1.0) * (self.time.high - self.time.low)
        happened = (lives <= watched) & (lives < 1.0)
        levels = np.array(self.event.levels, dtype=object)[happened.astype(np.intp)]
        own: dict[str, NDArray[Any]] = {self.time.name: times, self.event.name: levels}
        return columns_to_frame({**self.features.decoded(values), **own})


def concordance(model: Any, test: Frame) -> float:
    """Of the pairs of whom one has an event while the other is still there, the share in which the model gives the
    first the higher log hazard.
    """
    scores = model.predict(test)[:COMPARED_ROWS]
    times = np.array(test[model.time].to_list())[:COMPARED_ROWS]
    happened = np.array([level == model.event.levels[1] for level in test[model.event.name].to_list()])[:COMPARED_ROWS]
    pairs = (times[:, None] < times[None, :]) & happened[:, None]
    above = (scores[:, None] > scores[None, :]) + 0.5 * (scores[:, None] == scores[None, :])
    return float(above[pairs].mean()) if pairs.any() else 0.5
