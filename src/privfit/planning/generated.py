"""Tables for a simulation: from the schema alone, or from a public sample of rows. No private table is opened here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privfit.planning.sampled_law import Coded, Law, SampledLaw
from privfit.planning.summary import rows_of_summary
from privfit.privacy import PublicGenerator, seeded_generator
from privfit.schema import Category, Column, Numeric, Schema
from privfit.tables import DataError, Frame, TableLike, columns_to_frame, in_memory, joined

Floats = NDArray[np.float64]

EXPLAINED = 0.3
"""Share of the target's variance (on the scale of a straight line) that features explain where no sample says how much.
Chosen, not measured."""
FEWEST_ROWS = 50
"""A public sample below this many rows says too little about a target. Chosen, not measured."""


@dataclass(frozen=True)
class Source:
    """Draws tables: features by resampling or by the schema, the target given the features.

    Where a public sample leaves several laws of the target possible, `with_law` settles on one.
    """

    schema: Schema
    sample: Coded | None
    law: Law | None
    laws: SampledLaw | None = None

    @classmethod
    def of(cls, schema: Schema, public: TableLike | Mapping[Any, Any] | None, seed: int) -> Source:
        """From the schema, and from public rows, or a summary of them, where there are some."""
        if public is None:
            return cls(schema, None, None if schema.target is None else made_up_law(schema, seed))
        sample = rows_of_summary(schema, public, seed) if isinstance(public, Mapping) else coded_sample(schema, public)
        return cls(schema, sample, None, None if schema.target is None else SampledLaw.of(schema, sample, seed))

    def with_law(self, seed: int) -> Source:
        """The source with one law for all tables that are drawn of it."""
        return self if self.laws is None else replace(self, law=self.laws.drawn(seed), laws=None)

    def table(self, n_rows: int, seed: int) -> Frame:
        """So many rows."""
        return columns_to_frame(self.decoded(self.coded(n_rows, seed)))

    def coded(self, n_rows: int, seed: int) -> Coded:
        """The same as numbers, levels as their places."""
        generator = seeded_generator(seed)
        if self.sample is None:
            values = {column.name: _from_schema(column, n_rows, generator) for column in self.schema.features}
        else:
            places = generator.integers(len(next(iter(self.sample.values()))), size=n_rows)
            values = {
                column.name: _smoothed(column, self.sample[column.name], places, generator)
                for column in self.schema.features
            }
        if self.law is not None and self.schema.target is not None:
            values[self.schema.target.name] = self.law.draw(values, generator)
        return values

    def decoded(self, values: Coded) -> dict[str, NDArray[Any]]:
        """Columns by name, levels as the schema has them."""
        return {column.name: _decoded(column, values) for column in self.schema.columns}


def _from_schema(column: Column, n_rows: int, generator: PublicGenerator) -> Floats:
    """Levels are equally frequent; numbers lie around the middle of their bounds."""
    if isinstance(column, Category):
        own = [place for place, level in enumerate(column.levels) if column.is_text or not isinstance(level, str)]
        return np.array(own, dtype=np.float64)[generator.integers(len(own), size=n_rows)]
    return np.asarray(column.low + (column.high - column.low) * generator.beta(3, 3, size=n_rows))


def _smoothed(column: Column, held: Floats, places: NDArray[np.int64], generator: PublicGenerator) -> Floats:
    """Resampled values, each moved half of the way to the next smaller or larger one at most. A value that several rows
    have stays: no row comes to lie between zero and the rest where the sample has none.
    """
    if isinstance(column, Category):
        return np.asarray(held[places])
    order = np.argsort(held, kind="stable")
    rising, rank = held[order], np.empty(len(held), dtype=np.intp)
    rank[order] = np.arange(len(held))
    ends = np.concatenate([rising[:1], (rising[1:] + rising[:-1]) / 2, rising[-1:]])
    alone = np.concatenate([[True], rising[1:] != rising[:-1], [True]])
    moves = (alone[1:] & alone[:-1])[rank[places]]
    low, high = ends[rank[places]], ends[rank[places] + 1]
    moved = np.where(moves, low + generator.random(len(places)) * (high - low), held[places])
    whole = bool((held == np.round(held)).all())
    return np.asarray(np.clip(np.round(moved) if whole else moved, column.low, column.high))


def _decoded(column: Column, values: Coded) -> NDArray[Any]:
    if isinstance(column, Numeric):
        return values[column.name]
    return np.array(column.levels, dtype=object)[values[column.name].astype(np.intp)]


def design(schema: Schema, values: Coded) -> Floats:
    """Features for the law of the target: numbers scaled by their bounds to [-1, 1], a column per level."""
    parts = []
    for column in schema.features:
        held = values[column.name]
        if isinstance(column, Numeric):
            parts.append((2 * (held - column.low) / (column.high - column.low) - 1)[:, None])
        else:
            parts.append(np.eye(len(column.levels))[held.astype(np.intp)])
    return np.hstack(parts)


# -- a public sample -------------------------------------------------------------------------------


def coded_sample(schema: Schema, public: TableLike) -> Coded:
    """The public rows that the schema describes whole; rows with missing or unlisted values are left out."""
    frame = joined([in_memory(public)], [column.name for column in schema.columns])
    lacking = [column.name for column in schema.columns if column.name not in list(frame.columns)]
    if lacking:
        raise DataError(f"The public sample has no columns {lacking}. Give a sample with every column of the schema.")
    coded = {column.name: _coded(column, frame[column.name].to_list()) for column in schema.columns}
    kept = np.all([np.isfinite(values) for values in coded.values()], axis=0)
    if kept.sum() < FEWEST_ROWS:
        raise DataError(
            f"The public sample has {int(kept.sum())} rows that the schema describes; a plan needs {FEWEST_ROWS}. "
            "Give more rows, or none, and the plan is made from the schema alone."
        )
    return {name: values[kept] for name, values in coded.items()}


def _coded(column: Column, values: list[Any]) -> Floats:
    if isinstance(column, Numeric):
        numbers = np.array([np.nan if value is None else value for value in values], dtype=np.float64)
        return np.clip(numbers, column.low, column.high)
    places: Mapping[str, int] = {str(level): place for place, level in enumerate(column.levels)}
    unlisted = float(places["other"]) if column.other and column.is_text else np.nan
    return np.array([np.nan if value is None else places.get(str(value), unlisted) for value in values])


# -- the target given the features -----------------------------------------------------------------


@dataclass(frozen=True)
class MadeUpLaw:
    """A linear predictor, and what is drawn given it: a class, or a number with a normal error."""

    schema: Schema
    weights: Floats
    intercept: Floats
    errors: Floats
    """What numbers deviate from the line by; empty for classes."""

    def draw(self, values: Coded, generator: PublicGenerator) -> Floats:
        """One target a row."""
        scores, target = design(self.schema, values) @ self.weights + self.intercept, self.schema.target
        if isinstance(target, Numeric):
            drawn = scores[:, 0] + generator.choice(self.errors, size=len(scores))
            return np.asarray(np.clip(drawn, target.low, target.high))
        shares = np.exp(scores - scores.max(axis=1, keepdims=True))
        reached = np.cumsum(shares / shares.sum(axis=1, keepdims=True), axis=1)
        drawn = (generator.random(len(scores))[:, None] > reached).sum(axis=1)
        return np.asarray(np.minimum(drawn, scores.shape[1] - 1), dtype=np.float64)


def made_up_law(schema: Schema, seed: int) -> MadeUpLaw:
    """Effects drawn at random, as strong as EXPLAINED says."""
    generator, target = seeded_generator(seed), schema.target
    assert target is not None
    probe = design(schema, {column.name: _from_schema(column, 2000, generator) for column in schema.features})
    outputs = len(target.levels) if isinstance(target, Category) else 1
    weights = generator.standard_normal((probe.shape[1], outputs))
    signal = np.sqrt(EXPLAINED / (1 - EXPLAINED)) / (probe @ weights).std(axis=0)
    if isinstance(target, Category):
        weights = weights * signal * np.pi / np.sqrt(3)  # the logistic law's own deviation
        return MadeUpLaw(schema, weights, -(probe @ weights).mean(axis=0), np.zeros(0))
    spread = (target.high - target.low) / 8
    weights = weights * signal * spread
    middle = np.array([(target.low + target.high) / 2]) - (probe @ weights).mean(axis=0)
    return MadeUpLaw(schema, weights, middle, spread * generator.standard_normal(2000))
