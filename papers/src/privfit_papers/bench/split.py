"""One random split of a table in four fifths to fit on and one fifth to test on, as frames and as plain numbers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
import polars as pl
from numpy.typing import NDArray

from privfit.privacy import seeded_generator
from privfit.schema import Category, Numeric, Schema
from privfit_papers.bench.accuracy import TRAIN_SHARE

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Part:
    """Rows as a frame, their features as one number a column, and their target within its bounds."""

    frame: pl.DataFrame
    features: Floats
    target: Floats


@dataclass(frozen=True)
class Split:
    """Rows to fit on, rows to test on, and what is public about both."""

    train: Part
    test: Part
    schema: Schema

    @property
    def mean_error(self) -> float:
        """The root mean squared test error of predicting the mean of the rows to fit on."""
        return root_mean_square(self.test.target - self.train.target.mean())


@dataclass(frozen=True)
class Outcome:
    """The root mean squared test error of one fit, and whether the objective that it came from had a minimum."""

    error: float
    bounded: bool = True


class Comparison(Protocol):
    """Something to compare with: one outcome for each of its models. Without an epsilon it adds no noise."""

    def outcomes(self, split: Split, epsilon: float | None, seed: int) -> dict[str, Outcome]:
        """Fit on the one part, test on the other."""
        ...


def numeric_target(schema: Schema) -> Numeric:
    """The schema's target, which these comparisons need to be a number."""
    if not isinstance(schema.target, Numeric):
        raise ValueError(
            "The schema's target is not a number, and regressions are compared. Give a schema with a Numeric target."
        )
    return schema.target


def random_split(frame: pl.DataFrame, schema: Schema, seed: int) -> Split:
    """The same split for the same seed."""
    target = numeric_target(schema)
    whole = Part(
        frame,
        codes(frame, schema),
        np.clip(frame.get_column(target.name).cast(pl.Float64).to_numpy(), target.low, target.high),
    )
    order = seeded_generator(seed).permutation(frame.height)
    cut = int(TRAIN_SHARE * frame.height)
    train, test = (Part(frame[rows], whole.features[rows], whole.target[rows]) for rows in (order[:cut], order[cut:]))
    return Split(train, test, schema)


def codes(frame: pl.DataFrame, schema: Schema) -> Floats:
    """One number per column and row: numbers within their bounds, categories as the place of their level in the schema.

    Dandekar et al. count one dimension per attribute and do not say how they encode categories; this is the reading
    that fits.
    """
    columns = []
    for column in schema.features:
        values = frame.get_column(column.name)
        if isinstance(column, Category):
            places = values.replace_strict(
                list(column.levels), list(range(len(column.levels))), return_dtype=pl.Float64
            )
            columns.append(places.to_numpy())
        else:
            columns.append(np.clip(values.cast(pl.Float64).to_numpy(), column.low, column.high))
    return np.column_stack(columns)


def root_mean_square(errors: Floats) -> float:
    """The root of the mean of the squares."""
    return float(np.sqrt(np.mean(errors**2)))
