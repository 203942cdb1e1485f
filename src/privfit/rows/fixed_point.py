"""Sums over rows in fixed point: the same bits however rows are cut into chunks, in whatever order chunks come, and
wherever they are summed.

Three steps, of which another engine can run the first two elsewhere:

(a) `GradientPass(...)` has all that one pass needs of the weights. It is small and can be pickled. Called with a chunk
    of encoded rows it returns one array of 64-bit integers. It depends on nothing else.
(b) Those arrays are added up, in any order and any grouping: `+` of numpy. They do not overflow below `rows` rows.
(c) `GradientPass.total` turns the sum into floats, where the pass was made.

A worker that keeps `Chunk`s runs (a) on each of them and (b) on what comes out (`CachedRows.total`); only one array
leaves it per pass.

Guarantee: docs/proofs/perturbation.md, Lemma 5.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from privfit.rows.layout import Layout
from privfit.rows.workers import Chunk, Places, Sums

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
RowResponse = Callable[[Floats, Floats], Floats]
"""From predictors (rows, or rows by classes) and targets to what each row adds, times its columns; one value per
predictor.
"""

NUMBER_BITS = 16
"""Encoded numbers are integers in steps of 2^-16 (layout.STEP)."""
FEATURE_BITS = 22
"""Features of rows are rounded towards zero to steps of 2^-22: as fine as sums of 2^12 rows allow for."""
SLOPE_BITS = 38
"""What a row adds is rounded to steps of 2^-38 of the largest slope, or of the next power of two."""
HALF_BITS = SLOPE_BITS // 2
"""Columns of numbers are multiplied by half of these bits at a time."""
PART_BITS = 15
"""Sums of 2^15 such integers are exact in floats: 38 + 15 = 53 bits."""
FLOAT_BITS = 53
"""Integers up to 2^53 are exact in floats, and so are their sums, in whatever order, that do not exceed it."""
SUM_BITS = 62
"""Sums below 2^62 never overflow 64 bits."""
LOW_BITS = 32
"""Larger sums are handed on as high parts and low ones of so many bits, of which neither overflows below 2^44 rows."""
LONGEST = 2.0**200
"""Longer weights have no gradient: no minimum is as long, and predictors of shorter ones never overflow."""
SHORTEST = 2.0**-200
"""Weights and slopes are rounded relative to the largest one, or to this: so quotients do not overflow."""
BLOCK_VALUES = 1 << 16
"""Numbers that are multiplied at a time: they stay in a core's own cache from one product to the next."""
UNIT_ROUNDOFF = 2.0**-53
"""The relative error of one floating-point operation."""
SLOPE_ERRORS = 64
"""Units in the last place of a slope that are counted for its own error, 16 of them, and for steps (b) and (c)."""


@dataclass(frozen=True)
class Predictors:
    """The linear predictors of rows for given weights: of each row a function of that row alone, to the bit.

    Products of numbers with weights are exact: weights are split into integers of few bits, so that a matrix product
    adds up integers below 2^53, in whatever order. What is added to them is added row by row.
    """

    layout: Layout | None
    """None for rows of features, which have no codes."""
    table: Floats
    """What every code adds: (codes, classes). Those of the first group have the constant as well."""
    constant: Floats
    """What every row has: (classes,)."""
    parts: Floats
    """Weights of the number columns as integers, the largest parts first: (parts, numbers, classes)."""
    units: tuple[float, ...]
    """What 1 means in each part."""
    bits: int
    """In how fine steps numbers are: 2^-bits."""

    @classmethod
    def of(cls, layout: Layout | None, weights: Floats) -> Predictors:
        """For weights of shape (columns, classes), all of them finite."""
        if layout is None:
            parts, units = _split(weights, FEATURE_BITS)
            none = np.zeros((1, weights.shape[1]))
            return cls(None, none[:0], none[0], parts, units, FEATURE_BITS)
        first = int(layout.geometry.intercept)
        constant = weights[0] if first else np.zeros(weights.shape[1])
        numbers = weights[layout.number_columns[first:]]
        table = layout.look_up(weights)
        if layout.groups:
            table[: layout.sizes[0]] += constant
        return cls(layout, table, constant, *_split(numbers, NUMBER_BITS), NUMBER_BITS)

    def __call__(self, chunk: Chunk, places: Places | None = None) -> Floats:
        """(rows, classes)."""
        rows, classes = len(chunk.target), self.table.shape[1]
        numbers = _numbers(self.layout, chunk)
        scores: Floats | None = None
        if self.layout is not None and self.layout.groups:
            indicators = self.layout.indicators(chunk, places)
            scores = indicators @ self.table if classes > 1 else (indicators @ self.table[:, 0])[:, None]
        if numbers.shape[1]:
            product = self._products(numbers)
            scores = product + self.constant if scores is None else np.add(scores, product, out=scores)
        return np.tile(self.constant, (rows, 1)) if scores is None else np.asarray(scores, dtype=np.float64)

    def _products(self, numbers: Floats) -> Floats:
        """The products of numbers with their weights: (rows, classes)."""
        rows, (_, width, classes) = len(numbers), self.parts.shape
        parts = self.parts if classes > 1 else self.parts[:, :, 0]  # a vector is multiplied faster than a column
        found = np.empty((len(parts), rows, *parts.shape[2:]))
        for block in _blocks(rows, width):
            for part, out in zip(parts, found, strict=True):
                np.matmul(numbers[block], part, out=out[block])
        total = found[-1]
        total *= self.units[-1]
        for part, unit in zip(found[-2::-1], self.units[-2::-1], strict=True):
            part *= unit
            total += part
        return np.asarray(total if classes > 1 else total[:, None], dtype=np.float64)


@dataclass(frozen=True)
class GradientPass:
    """The sum over rows of x respond(x'weights, target)', with responses of at most `most_slope`, in fixed point; where
    rows have weights, times these.

    Called with a chunk of at most 2^20 rows it returns integers of shape (1 or 2, entries, classes): sums per code, of
    all rows, and per number column by the high and by the low bits of responses; of more than 2^21 rows, high and low
    parts of them.
    """

    predictors: Predictors
    respond: RowResponse
    most_slope: float
    unit: float
    """What 1 means in a response that is rounded: `slope_unit`."""
    rows: int
    """How many rows there may be in all chunks. No sum depends on it."""

    def __call__(self, chunk: Chunk) -> Integers:
        total: Integers | None = None
        for part in chunk.parts(1 << min(PART_BITS, FLOAT_BITS - HALF_BITS - self.predictors.bits)):
            sums = self._exact(part).astype(np.int64)
            total = sums if total is None else np.add(total, sums, out=total)
        assert total is not None
        total = total.reshape(1, len(total), -1)
        if (
            self.rows << (SLOPE_BITS + (self.predictors.bits - HALF_BITS if self.predictors.layout is None else 0))
            < 1 << SUM_BITS
        ):
            return total
        return np.concatenate([total >> LOW_BITS, total & ((1 << LOW_BITS) - 1)])

    def on_chunk(self, first: int, chunk: Chunk) -> Sums:
        """The same as a task of `CachedRows.total`, for which the number of the first row is of no use."""
        return [self(chunk)]

    def _exact(self, chunk: Chunk) -> Floats:
        """The sums over so few rows that they are exact: integers, one line per entry."""
        layout, classes = self.predictors.layout, self.predictors.table.shape[1]
        places = chunk.places() if layout is not None and layout.groups else None
        scores = self.predictors(chunk, places)
        responses = self.respond(scores if classes > 1 else scores[:, 0], chunk.target)
        if chunk.weights is not None:
            with np.errstate(invalid="ignore"):  # a response that is no number counts as 0
                responses = responses * (chunk.weights if np.ndim(responses) == 1 else chunk.weights[:, None])
        whole = self._rounded(responses)
        sums = [whole.sum(axis=0, keepdims=True)]
        if layout is not None and layout.groups:
            sums.insert(0, layout.transposed(chunk, places) @ whole)
        numbers = _numbers(layout, chunk)
        if numbers.shape[1]:
            sums.append(_half_sums(numbers, whole) * 2.0**self.predictors.bits)
        return np.concatenate(sums)

    def _rounded(self, responses: Floats) -> Floats:
        """Responses as integers, cut at their bounds; 0 where there is no number."""
        bounded = np.clip(responses, -self.most_slope, self.most_slope)
        if np.isnan(bounded.max(initial=0.0)):  # a NaN is larger than all
            bounded = np.where(np.isnan(bounded), 0.0, bounded)
        bounded *= 1 / self.unit
        return np.rint(bounded, out=bounded)

    def total(self, sums: Integers) -> Floats:
        """The sums of all chunks' integers as floats: (columns, classes)."""
        carried = sums[-1] >> LOW_BITS
        low = self._by_column(sums[-1] - (carried << LOW_BITS))
        high = self._by_column(carried if len(sums) == 1 else sums[0] + carried)
        return np.asarray((high * 2.0**LOW_BITS + low) * self.unit, dtype=np.float64)

    def _by_column(self, sums: Integers) -> Floats:
        layout, codes = self.predictors.layout, len(self.predictors.table)
        rows, by_number = sums[codes : codes + 1].astype(np.float64), sums[codes + 1 :].astype(np.float64)
        width = len(by_number) // 2
        numbers = (by_number[:width] * 2.0**HALF_BITS + by_number[width:]) * 2.0**-self.predictors.bits
        if layout is None:
            return numbers
        own = np.concatenate([rows, numbers]) if layout.geometry.intercept else numbers
        return layout.gather(sums[:codes].astype(np.float64), own)


def most_rounding(
    rows: int,
    norm: float,
    entries: int,
    length: float,
    most_slope: float,
    most_curvature: float,
    offset: float = 0.0,
    classes: int = 1,
) -> float:
    """The most by which a sum of `GradientPass` differs from the real one, in L2, from public facts: for this many rows
    of this length with so many blocks or dense columns, weights of this length, and slopes of at most `most_slope` in
    each class.

    Guarantee: docs/proofs/perturbation.md, Lemma 5.
    """
    slope = slope_unit(most_slope) / 2 + SLOPE_ERRORS * UNIT_ROUNDOFF * most_slope
    predictor = (entries + 8) * norm * max(length, SHORTEST) + 4 * offset
    return rows * norm * (math.sqrt(classes) * slope + 2 * UNIT_ROUNDOFF * most_curvature * predictor)


def slope_unit(most_slope: float) -> float:
    """In how fine steps slopes of at most this size are added up: a power of two, so that integers stay integers."""
    return math.ldexp(max(power_of_two(most_slope), SHORTEST), -SLOPE_BITS)


def power_of_two(value: float) -> float:
    """The least power of two that is not smaller; 0 for 0."""
    mantissa, exponent = math.frexp(value)
    return math.ldexp(1.0 if mantissa > 0.5 else mantissa, exponent)


def on_lattice(features: Floats) -> Floats:
    """Features, rounded towards zero: no row becomes longer."""
    return np.trunc(features * 2.0**FEATURE_BITS) * 2.0**-FEATURE_BITS + 0.0  # no zero has a sign


def _numbers(layout: Layout | None, chunk: Chunk) -> Floats:
    """The number columns of rows but for the constant."""
    return chunk.numbers[:, 1:] if layout is not None and layout.geometry.intercept else chunk.numbers


def _blocks(rows: int, width: int) -> Iterator[slice]:
    step = max(1, BLOCK_VALUES // width)
    return (slice(start, min(start + step, rows)) for start in range(0, rows, step))


def _half_sums(numbers: Floats, whole: Floats) -> Floats:
    """The sums of numbers times the high bits, and then times the low bits, of integers: exact."""
    high = np.rint(whole * 2.0**-HALF_BITS)
    low = whole - high * 2.0**HALF_BITS
    width = numbers.shape[1]
    total = np.zeros((2 * width, *whole.shape[1:]))
    for block in _blocks(len(numbers), width):
        part = numbers[block].T
        total[:width] += part @ high[block]
        total[width:] += part @ low[block]
    return total


def _split(weights: Floats, bits: int) -> tuple[Floats, tuple[float, ...]]:
    """Weights as sums of integers times units, each integer short enough that its product with numbers of so many bits
    is exact, summed over all columns.
    """
    columns = len(weights)
    each = FLOAT_BITS - bits - columns.bit_length()
    count = math.ceil((FLOAT_BITS + 1 + columns.bit_length() / 2) / each)
    unit = max(power_of_two(float(np.abs(weights).max(initial=0.0))), SHORTEST)
    left, parts, units = weights, [], []
    for _ in range(count):
        unit = math.ldexp(unit, -each)
        whole = np.rint(left / unit)
        left = left - whole * unit
        parts.append(whole)
        units.append(unit)
    return np.stack(parts), tuple(units)
