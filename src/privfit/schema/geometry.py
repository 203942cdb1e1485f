"""What calibration may know: the shape that the public schema gives to every encoded row.

A row is a list of blocks. Each block is one column of the schema, encoded with values of at most one:

    slope        one number in [-1, 1]                        a numeric column
    sign         one number, -1 or 1                          a category (or bins) with two levels
    levels       a 1 among zeros, one place per level         a category (or bins) with more levels
    spline       two neighbouring shares that add up to 1,    a numeric column as a line from knot to knot
                 one place per knot
    slope-or-missing    a slope, and 0 beside it; or 0, and a 1 beside it: a numeric column whose missing values
                        have a coefficient of their own
    spline-or-missing   a spline with one more place, which is 1 where the value is missing
    share        one number in [0, 1]                         a numeric column as two of the papers scale it
    indicators   zeros with at most one 1; the last level     a category as the functional-mechanism paper encodes
                 is all zeros                                 it

and, optionally, a constant 1 in front: the intercept. Nothing here comes from data.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from itertools import pairwise
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from privfit.schema.columns import AUTO_KNOTS, MISSING, Bins, Category, Column, Numeric
from privfit.schema.errors import SchemaError

if TYPE_CHECKING:
    from privfit.schema.schema import Schema

Norm = Literal["l1", "l2", "linf"]
Kind = Literal["slope", "sign", "levels", "spline", "share", "indicators", "slope-or-missing", "spline-or-missing"]
Gaps = Literal["refused", "slope", "spline"]
"""How numbers enter whose missing values have a coefficient of their own, where they have no bins."""

ZERO = -1
"""Marks a product that is zero in every row."""
CONSTANT = -2
"""Marks a product that is one in every row."""


@dataclass(frozen=True)
class Block:
    """One column of the schema and the encoded columns it becomes.

    `labels` name what a person sees: a number under its own name, a category as one name per level, also where fewer
    encoded columns carry the same information.
    """

    column: Column
    kind: Kind
    start: int
    width: int
    labels: tuple[str, ...]
    edges: tuple[float, ...] = ()
    """Edges between bins, or, for splines, the knots."""
    anchored: bool = False
    """Whether a number is measured from zero and not from the middle of its bounds: for models that run through the
    origin.
    """

    @property
    def stop(self) -> int:
        return self.start + self.width

    @cached_property
    def center(self) -> float:
        """The value that a number is measured from: the middle of its bounds, or the lower one for a share."""
        low, high = self._bounds()
        if self.anchored:
            return 0.0
        return low if self.kind == "share" else low / 2 + high / 2

    @cached_property
    def unit(self) -> float:
        """The distance from the centre that becomes 1."""
        low, high = self._bounds()
        if self.anchored:
            return max(abs(low), abs(high))
        return high - low if self.kind == "share" else high / 2 - low / 2

    @cached_property
    def reach(self) -> tuple[float, float]:
        """The bounds as encoded: -1 and 1, or less on one side for a number that is measured from zero."""
        low, high = self._bounds()
        if self.anchored:
            return max(low / self.unit, -1.0), min(high / self.unit, 1.0)
        return (0.0 if self.kind == "share" else -1.0), 1.0

    def _bounds(self) -> tuple[float, float]:
        if not isinstance(self.column, Numeric) or self.edges:
            raise TypeError(f"Block {self.column.name!r} holds levels and has no centre.")
        return self.column.low, self.column.high


def make_block(
    column: Column,
    start: int,
    *,
    bins: Bins = None,
    paper: bool = False,
    anchored: bool = False,
    whole: bool = False,
    shares: bool = False,
    knots: int = 0,
    gaps: Gaps = "refused",
    scaled: bool = False,
) -> Block:
    """The block of one column, starting at encoded column `start`.

    `whole` gives two levels a column each, so that they can carry a constant; with `shares` numbers without bins of
    their own are scaled to [0, 1], with `knots` they become lines between so many. `scaled` bins are equal on the
    column's own scale.
    """
    if isinstance(column, Numeric) and column.fill == MISSING and column.bins is None and bins is None:
        return _block_with_gaps(column, start, "refused" if paper or shares else gaps, anchored, knots or AUTO_KNOTS)
    if knots and isinstance(column, Numeric) and column.bins is None:
        points = column.auto_knots if knots == AUTO_KNOTS else column.knots(knots)
        points = tuple(dict.fromkeys(points))  # fewer where floats are hardly finer than the range
        at_knots = tuple(f"{column.name}_at_{point}" for point in _told_apart(points))
        return Block(column, "spline", start, len(points), at_knots, points)
    if isinstance(column, Numeric) and column.bins is None and bins is None:
        share = paper or shares
        return Block(column, "share" if share else "slope", start, 1, (column.name,), anchored=anchored and not share)
    edges = column.edges(bins, scaled=scaled and column.bins is None) if isinstance(column, Numeric) else ()
    labels = level_labels(column, edges)
    if paper:
        return Block(column, "indicators", start, len(labels) - 1, labels, edges)
    if len(labels) == 2 and not whole:
        return Block(column, "sign", start, 1, labels, edges)
    return Block(column, "levels", start, len(labels), labels, edges)


def _block_with_gaps(column: Numeric, start: int, gaps: Gaps, anchored: bool, knots: int) -> Block:
    """The block of a number without bins whose missing values have a coefficient of their own."""
    absent = f"{column.name}_{MISSING}"
    if gaps == "slope":
        return Block(column, "slope-or-missing", start, 2, (column.name, absent), anchored=anchored)
    if gaps == "spline":
        line = make_block(replace(column, fill=None), start, knots=knots)
        labels = (*line.labels, absent)
        return Block(column, "spline-or-missing", start, len(labels), labels, line.edges)
    raise SchemaError(
        f"Column {column.name!r} has fill='missing' and enters as a number here, where missing values can have no "
        "coefficient of their own. Give it bins, or a public number in their place. Nothing was charged."
    )


def constant_carrier(features: Sequence[Column], bins: Bins, knots: int, gaps: Gaps = "refused") -> Column | None:
    """The category of two levels that needs a column per level, so that some block carries a constant."""
    blocks = [make_block(column, 0, bins=bins, knots=knots, gaps=gaps) for column in features]
    if any(block.kind in ("levels", "spline", "spline-or-missing") for block in blocks):
        return None
    return next((block.column for block in blocks if block.kind == "sign"), None)


def level_labels(column: Column, edges: tuple[float, ...]) -> tuple[str, ...]:
    """The names of a category's levels, or of a number's bins between these edges."""
    if isinstance(column, Category):
        return tuple(f"{column.name}_{level}" for level in column.levels)
    names = [f"{column.name}_[{a}, {b})" for a, b in pairwise(_told_apart((column.low, *edges, column.high)))]
    names[-1] = names[-1][:-1] + "]"
    return tuple(names) if column.fill != MISSING else (*names, f"{column.name}_{MISSING}")


def _told_apart(numbers: tuple[float, ...]) -> list[str]:
    """Numbers as short texts, with as many digits as it takes to distinguish them."""
    texts: list[str] = []
    for digits in range(6, 18):
        texts = [f"{number:.{digits}g}" for number in numbers]
        if len(set(texts)) == len(numbers):
            break
    return texts


@dataclass(frozen=True)
class Geometry:
    """The public shape of an encoded row; every sensitivity in privfit is a function of it."""

    blocks: tuple[Block, ...]
    intercept: bool = True
    target: Block | None = None
    n_blocks: int = field(init=False, repr=False, compare=False)
    """Blocks of features; the intercept is not one."""
    n_columns: int = field(init=False, repr=False, compare=False)
    """Encoded feature columns, the intercept included."""
    l1: float = field(init=False, repr=False, compare=False)
    """The largest L1 norm of an encoded row with its intercept: every block counts once, whatever its width."""
    l2: float = field(init=False, repr=False, compare=False)
    """The largest L2 norm of an encoded row, the intercept included."""
    linf: float = field(init=False, repr=False, compare=False)
    """The largest entry of an encoded row."""

    def __post_init__(self) -> None:
        nonzero = len(self.blocks) + self.intercept
        derived = {
            "n_blocks": len(self.blocks),
            "n_columns": int(self.intercept) + sum(block.width for block in self.blocks),
            "l1": float(nonzero),
            "l2": math.sqrt(nonzero),
            "linf": 1.0,
        }
        for name, value in derived.items():
            object.__setattr__(self, name, value)

    def count(self, kind: Kind) -> int:
        """How many blocks are of this kind."""
        return sum(block.kind == kind for block in self.blocks)

    @cached_property
    def feature_names(self) -> tuple[str, ...]:
        """One name per number, and one per level of every category."""
        return tuple(label for block in self.blocks for label in block.labels)

    @cached_property
    def products(self) -> NDArray[np.int64]:
        """Which products of two columns are the same in every row, as a symmetric table of numbers.

        The target, if there is one, is the last column; its square is not part of the table (marked zero). Equal
        numbers are equal products. `ZERO` marks products that are zero in every row, `CONSTANT` those that are one in
        every row. The products of features are numbered first, those with the target last.
        """
        d = self.n_columns
        size = d + (self.target is not None)
        distinct = np.triu(np.ones((size, size), dtype=bool))
        table = np.full((size, size), ZERO, dtype=np.int64)
        for block in self.blocks:
            own = slice(block.start, block.stop)
            if block.kind == "levels":
                distinct[own, own] = np.eye(block.width, dtype=bool) & (not self.intercept)
            if block.kind == "sign":
                distinct[own, own] = False
                table[own, own] = CONSTANT
            if block.kind == "slope-or-missing":
                distinct[own, own] = [[True, False], [False, not self.intercept]]
        if self.intercept:
            distinct[0, 0] = False
            table[0, 0] = CONSTANT
        if size > d:
            distinct[d, d] = False
        feature_part = np.count_nonzero(distinct[:d, :d])
        table[:d, :d][distinct[:d, :d]] = np.arange(feature_part)
        if size > d:
            table[:d, d] = feature_part + np.arange(d)
        for block in self.blocks:
            if block.kind == "levels" and self.intercept:
                levels = np.arange(block.start, block.stop)
                table[levels, levels] = table[0, levels]  # a 0/1 column is its own square
            if block.kind == "slope-or-missing" and self.intercept:
                table[block.start + 1, block.start + 1] = table[0, block.start + 1]
        upper = np.triu(table)
        return np.asarray(upper + np.triu(table, 1).T, dtype=np.int64)

    @property
    def n_products(self) -> int:
        """How many distinct products there are that are neither zero nor constant."""
        return int(self.products.max(initial=-1)) + 1

    def table_units(self, weights: NDArray[np.float64], intercept: float) -> tuple[NDArray[np.float64], float]:
        """One coefficient per name in `feature_names`, and the intercept, for numbers in their own units; from one
        weight per encoded column without the constant, and the weight of the constant.
        """
        offset = int(self.intercept)
        coef: list[float] = []
        for block in self.blocks:
            own = weights[block.start - offset : block.stop - offset].tolist()
            if block.kind in ("slope", "share", "slope-or-missing"):
                coef.extend([own[0] / block.unit, *own[1:]])
                intercept -= own[0] * block.center / block.unit
            elif block.kind == "sign":
                coef.extend([-own[0], own[0]])
            elif block.kind == "indicators":
                coef.extend([*own, 0.0])
            else:
                coef.extend(own)
        return np.array(coef), float(intercept)


@dataclass(frozen=True)
class RowNorms:
    """The largest norms that a row of features can have: public facts."""

    l1: float
    l2: float
    linf: float
    columns: int
    singles: tuple[int, ...] = ()
    """Columns that are blocks of their own, each at most one in size: numbers, signs and the intercept."""
    blocks: tuple[tuple[int, int], ...] = ()
    """Where the other columns' blocks begin and end: entries that are not negative and add up to exactly one in every
    row.
    """

    entries: int = field(init=False, repr=False, compare=False)
    """How many products a predictor adds up: one per block, or one per column of features that are dense."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "entries", len(self.singles) + len(self.blocks) or self.columns)

    @classmethod
    def of(cls, geometry: Geometry) -> RowNorms:
        """Those of encoded rows.

        Noise relies on what blocks add up to, so that a kind that may add up to less is refused.
        """
        if any(block.kind in ("indicators", "slope-or-missing") for block in geometry.blocks):
            raise TypeError("Indicators without a column for the last level do not add up to one; encode levels.")
        singles = tuple([0] * geometry.intercept + [block.start for block in geometry.blocks if block.width == 1])
        blocks = tuple((block.start, block.stop) for block in geometry.blocks if block.width > 1)
        return cls(geometry.l1, geometry.l2, geometry.linf, geometry.n_columns, singles, blocks)

    def __getitem__(self, norm: Norm) -> float:
        return {"l1": self.l1, "l2": self.l2, "linf": self.linf}[norm]


# -- the method of a schema ------------------------------------------------------------------------


def geometry_of(
    self: Schema,
    *,
    numeric: Literal["slope", "bins", "splines"] = "slope",
    intercept: bool = True,
    target: bool = True,
    paper: bool = False,
    anchored: Literal["no", "features", "all"] = "no",
    several: bool = False,
    knots: int = AUTO_KNOTS,
    whole: bool = False,
    shares: bool = False,
    gaps: Gaps = "refused",
    bins: int | Literal["auto"] = "auto",
) -> Geometry:
    """Return the public geometry of the encoded rows.

    Parameters
    ----------
    numeric : {'slope', 'bins', 'splines'}, default='slope'
        Encoding of numbers without bins of their own.
    intercept : bool, default=True
        Whether there is a constant column.
    target : bool, default=True
        Whether the target is encoded too.
    paper : bool, default=False
        Whether to encode as the functional-mechanism paper does.
    anchored : {'no', 'features', 'all'}, default='no'
        Which numbers (none, the features, or the target too) are measured from zero, for a model without a constant
        that runs through the origin. The first category still has one column per level, and so carries a constant.
    several : bool, default=False
        Whether the target may have more than two classes.
    knots : int, default=8
        Number of knots of a number as splines.
    whole : bool, default=False
        Whether categories of two levels also have one column per level.
    shares : bool, default=False
        Whether numbers without bins are scaled to [0, 1] and not to [-1, 1].
    gaps : {'refused', 'slope', 'spline'}, default='refused'
        How numbers without bins enter whose missing values have a coefficient of their own.
    bins : int or 'auto', default='auto'
        Number of bins of a number in bins; "auto" is what the column says.

    Returns
    -------
    Geometry
        Blocks of columns, with their bounds and norms.
    """
    if self.any_width:
        raise SchemaError("This schema is a box of open width. Settle it first: schema.with_features(names).")
    between: Bins = bins if numeric == "bins" else None
    points = knots if numeric == "splines" else 0
    through_origin = anchored != "no" and not paper
    carrier = constant_carrier(self.features, between, points, gaps) if through_origin else None
    numbers = partial(make_block, bins=between, shares=shares, knots=points, gaps=gaps, scaled=True)
    encoded = partial(numbers, paper=paper, anchored=through_origin)
    blocks: list[Block] = []
    start = int(intercept)
    for column in self.features:
        blocks.append(encoded(column, start, whole=whole or column is carrier))
        start = blocks[-1].stop
    if self.target is None or not target:
        return Geometry(tuple(blocks), intercept)
    goal = make_block(self.target, start, anchored=anchored == "all")
    if goal.edges or (goal.width > 1 and not several):
        raise SchemaError(
            f"The target {goal.column.name!r} has {len(goal.labels)} {'bins' if goal.edges else 'classes'}; "
            "a target is a number without bins or has two classes. Leave out its bins, or join classes."
        )
    return Geometry(tuple(blocks), intercept, goal)
