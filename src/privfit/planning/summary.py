"""Rows that agree with a public summary of a table: means and deviations, shares of levels, and correlations."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from privfit.planning.sampled_law import Coded
from privfit.privacy import seeded_generator
from privfit.schema import Category, Column, Numeric, Schema, SchemaError

Floats = NDArray[np.float64]

SUMMARY_ROWS = 2_000
"""Rows that are made of a summary: more follow it closer and take longer. Chosen, not measured."""
SKEWED = 2.0
"""A number whose mean is fewer deviations above its lower bound has a log-normal law, others a normal one. Chosen, not
measured."""
LEAST_EIGENVALUE = 1e-3
"""Correlations that cannot all be true are moved until their matrix has no smaller eigenvalue. Chosen, not measured."""


def rows_of_summary(schema: Schema, summary: Mapping[Any, Any], seed: int) -> Coded:
    """Rows with these means, deviations and shares; levels are their places in the schema.

    Columns go together as correlations of normal laws say, a category's levels in the order of the schema. Columns that
    the summary does not have are even between their bounds or over their levels, and pairs that it does not have are
    independent.
    """
    columns = schema.columns
    given = _checked(columns, summary)
    scores = _related(columns, given, seed)
    each = zip(columns, scores.T, strict=True)
    return {column.name: _made(column, given.get(column.name), own) for column, own in each}


def _checked(columns: tuple[Column, ...], summary: Mapping[Any, Any]) -> dict[Any, Any]:
    """The summary, if it is about these columns."""
    known = {column.name for column in columns}
    for name, fact in summary.items():
        pair = isinstance(name, tuple)
        if not set(name if pair else (name,)) <= known or (pair and len(set(name)) != 2):
            raise SchemaError(
                f"The public summary has an entry for {name!r}; entries are for columns of the schema "
                f"({', '.join(sorted(known))}) or pairs of them. Name one of these."
            )
        if pair and not (isinstance(fact, int | float) and -1.0 <= fact <= 1.0):
            raise SchemaError(
                f"The public summary has {fact!r} for the pair {name!r}; it is a correlation, from -1 to 1. Write "
                f"{name!r}: 0.3."
            )
    return dict(summary)


def _related(columns: tuple[Column, ...], given: Mapping[Any, Any], seed: int) -> Floats:
    """Standard normal scores of every row and column, related as the correlations say."""
    place = {column.name: number for number, column in enumerate(columns)}
    matrix = np.eye(len(columns))
    for pair, correlation in given.items():
        if isinstance(pair, tuple):
            one, other = (place[name] for name in pair)
            matrix[one, other] = matrix[other, one] = float(correlation)
    values, vectors = np.linalg.eigh(matrix)
    root = vectors * np.sqrt(np.maximum(values, LEAST_EIGENVALUE))
    scores = seeded_generator(seed).normal(size=(SUMMARY_ROWS, len(columns))) @ root.T
    return np.asarray(scores / np.sqrt((root**2).sum(axis=1)))


def _made(column: Column, fact: Any, scores: Floats) -> Floats:
    """The values of a column at its scores."""
    if isinstance(column, Category):
        shares = _shares(column, fact)
        return np.asarray(np.searchsorted(np.cumsum(shares)[:-1] / shares.sum(), ndtr(scores)), dtype=np.float64)
    if fact is None:
        return np.asarray(column.low + (column.high - column.low) * ndtr(scores))
    mean, deviation = _moments(column, fact)
    above = mean - column.low
    if above < SKEWED * deviation:
        spread = np.log1p((deviation / above) ** 2)
        values = column.low + np.exp(np.log(above) - spread / 2 + np.sqrt(spread) * scores)
    else:
        values = mean + deviation * scores
    return np.asarray(np.clip(values, column.low, column.high))


def _shares(column: Category, fact: Any) -> Floats:
    if fact is None:
        return np.ones(len(column.levels))
    right = (
        isinstance(fact, Mapping) and set(fact) <= set(column.levels) and all(_is_share(one) for one in fact.values())
    )
    if not right or not sum(fact.values()) > 0:
        raise SchemaError(
            f"The public summary has {fact!r} for the category {column.name!r}; it is a dict of the shares of its "
            f"levels {list(column.levels)!r}. Write {{{column.levels[0]!r}: 0.3, ...}}."
        )
    return np.array([float(fact.get(level, 0.0)) for level in column.levels])


def _moments(column: Numeric, fact: Any) -> tuple[float, float]:
    pair = tuple(fact) if isinstance(fact, tuple | list) else ()
    if (
        len(pair) != 2
        or not all(_is_number(one) for one in pair)
        or not column.low < pair[0] < column.high
        or pair[1] <= 0
    ):
        raise SchemaError(
            f"The public summary has {fact!r} for the number {column.name!r}; it is its mean, between {column.low:g} "
            f"and {column.high:g}, and its standard deviation. Write {column.name!r}: (mean, deviation)."
        )
    return float(pair[0]), float(pair[1])


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and bool(np.isfinite(value))


def _is_share(value: object) -> bool:
    return _is_number(value) and value >= 0  # type: ignore[operator]
