"""Weighted monomials of encoded rows: sums over rows of a function of the target times a product of columns.

They are all that a loss needs which is a polynomial in the linear predictor: the coefficient of every product of weights is such a sum.
Every product that is a function of its own is released once: the square of a level is the level, the square of a sign is one, and two
levels of one block never meet. Functions of the target that others can be made of are released once, too.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from privfit.privacy import Adjacency
from privfit.schema import Block, Geometry, SchemaError

LARGEST = 1 << 38
STEPS = {1: 1 << 16, 2: 1 << 13, 3: 1 << 9, 4: 1 << 7}
TARGET_UNITS = 1 << 12
MOST_VALUES = 200_000
MOST_WEIGHT = 8.0
EXPECTED_NORM = 0.5
SAME = 1e-9
BLOCK_CELLS = 1 << 20

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Monomial = tuple[int, ...]
"""Encoded columns that are multiplied, in rising order; a slope can stand in it more than once, a sign or a level once."""


@dataclass(frozen=True)
class TargetLattice:
    """The values that the encoded target can take: whole numbers from -units to units, and the targets that they stand for."""

    units: int
    points: Integers
    targets: Floats

    @classmethod
    def of(cls, block: Block) -> TargetLattice:
        """Every whole number for a numeric target, in the user's units; -1 and 1 for two classes."""
        if block.kind == "sign":
            return cls(1, np.array([-1, 1]), np.array([-1.0, 1.0]))
        points = np.arange(-TARGET_UNITS, TARGET_UNITS + 1)
        return cls(TARGET_UNITS, points, block.center + block.unit * (points / TARGET_UNITS))


@dataclass(frozen=True, eq=False)
class Weighting:
    """A function of the target in whole numbers, one for every point of its lattice, and the degree of the monomials that it multiplies."""

    table: Integers
    degree: int

    @property
    def top(self) -> int:
        """The largest size of the function."""
        return int(np.abs(self.table).max())

    @property
    def is_constant(self) -> bool:
        """Whether the target does not matter."""
        return bool((self.table == self.table[0]).all())

    @property
    def has_one_sign(self) -> bool:
        """Whether the function is nowhere negative, or nowhere positive."""
        return bool((self.table >= 0).all() or (self.table <= 0).all())


@dataclass(frozen=True, eq=False)
class WeightedMonomials:
    """The distinct monomials of a geometry, weighted by functions of the target, on one lattice.

    `mixture[j - 1, r]` says how much of weighting r, in units of its top, is in the coefficient of degree j. A monomial of a weighting of degree D is
    multiplied by `step` until it has D factors, so that all values of a weighting are on the same scale.
    """

    geometry: Geometry
    lattice: TargetLattice
    weightings: tuple[Weighting, ...]
    mixture: Floats

    @classmethod
    def of(cls, geometry: Geometry, lattice: TargetLattice, coefficients: Floats) -> WeightedMonomials:
        """The statistic of a loss whose coefficients of degree 1, 2, ... are given for every point of the target's lattice (one row per degree)."""
        functions, degrees, mixture = _functions(coefficients, geometry.intercept)
        for degree in set(degrees):
            _check_size(geometry, degree)
        step = STEPS[len(coefficients)]
        tops = [LARGEST // step**degree for degree in degrees]
        weights = _weights(geometry, degrees, mixture)
        tables = [np.rint(function * max(1, round(weight * top))) for function, weight, top in zip(functions, weights, tops, strict=True)]
        weightings = tuple(Weighting(table.astype(np.int64), degree) for table, degree in zip(tables, degrees, strict=True))
        return cls(geometry, lattice, weightings, mixture)

    # -- the kernel -----------------------------------------------------------------------------------------------------

    @property
    def step(self) -> int:
        """The whole number that stands for 1 in a feature."""
        return STEPS[len(self.mixture)]

    @property
    def target_units(self) -> int:
        """The whole number that stands for 1 in the target."""
        return self.lattice.units

    @property
    def largest(self) -> int:
        """The most that one row can add to a value."""
        return max(self.units(weighting) for weighting in self.weightings)

    @property
    def unit(self) -> int:
        """The whole number that stands for 1 in the values with the finest lattice."""
        return self.largest

    def units(self, weighting: Weighting) -> int:
        """The whole number that stands for 1 in the values of a weighting."""
        return int(weighting.top * self.step**weighting.degree)

    def __call__(self, encoded: Floats) -> Floats:
        """The sums of all values over these rows, weighting after weighting."""
        n_rows = encoded.shape[1]
        size = max(1, BLOCK_CELLS // len(self._tree))
        total = np.zeros(sum(len(kept) for kept in self._kept))
        for start in range(0, n_rows, size):
            rows = encoded[:, start : start + size]
            products = self._products(rows)
            target = rows[-1].astype(np.intp)
            sums = []
            for weighting, kept, filler in zip(self.weightings, self._kept, self._fillers, strict=True):
                table = np.zeros(2 * self.lattice.units + 1)
                table[self.lattice.points + self.lattice.units] = weighting.table
                sums.append((products @ table[target + self.lattice.units])[kept] * filler)
            total += np.concatenate(sums)
        return total

    def _products(self, rows: Floats) -> Floats:
        """Every monomial of every row: each is a shorter one times one more column."""
        products = np.ones((len(self._tree), rows.shape[1]))
        start = 1
        for parents, columns in self._layers:
            stop = start + len(parents)
            np.multiply(products[parents], rows[columns], out=products[start:stop])
            start = stop
        return products

    @cached_property
    def _tree(self) -> list[Monomial]:
        return list(distinct_monomials(self.geometry, len(self.mixture)))

    @cached_property
    def _layers(self) -> list[tuple[NDArray[np.intp], NDArray[np.intp]]]:
        place = {monomial: i for i, monomial in enumerate(self._tree)}
        layers = []
        for degree in range(1, len(self.mixture) + 1):
            layer = [monomial for monomial in self._tree if len(monomial) == degree]
            parents = [place[monomial[:-1]] for monomial in layer]
            layers.append((np.array(parents, dtype=np.intp), np.array([monomial[-1] for monomial in layer], dtype=np.intp)))
        return layers

    @cached_property
    def _kept(self) -> list[NDArray[np.intp]]:
        return [
            np.array([i for i, monomial in enumerate(self._tree) if occurs(self.geometry, monomial, weighting.degree)], dtype=np.intp)
            for weighting in self.weightings
        ]

    @cached_property
    def _fillers(self) -> list[Floats]:
        sizes = np.array([len(monomial) for monomial in self._tree])
        return [float(self.step) ** (weighting.degree - sizes[kept]) for weighting, kept in zip(self.weightings, self._kept, strict=True)]

    # -- what is released ------------------------------------------------------------------------------------------------

    @cached_property
    def values(self) -> tuple[tuple[int, Monomial], ...]:
        """What each value is: the number of its weighting, and its monomial."""
        return tuple((r, self._tree[i]) for r, kept in enumerate(self._kept) for i in kept)

    def released(self, adjacency: Adjacency) -> NDArray[np.intp]:
        """The places of the values that need noise: under replace-one, a constant times the number of rows is public."""
        known = [adjacency == "replace-one" and monomial == () and self.weightings[r].is_constant for r, monomial in self.values]
        return np.flatnonzero(~np.array(known))

    def n_values(self, adjacency: Adjacency) -> int:
        """How many values are released."""
        return len(self.released(adjacency))

    def completed(self, noisy: Floats, n_public: int | None, adjacency: Adjacency) -> Floats:
        """All values in units of 1: the noisy ones, and the public number of rows where it is one of them."""
        whole = np.array([1.0 if self.weightings[r].table[0] > 0 else -1.0 for r, _ in self.values]) * (n_public or 0)
        whole[self.released(adjacency)] = (noisy / self._all_units[self.released(adjacency)]).astype(np.float64)
        return whole

    @cached_property
    def _all_units(self) -> Floats:
        return np.array([float(self.units(self.weightings[r])) for r, _ in self.values])

    # -- how far one row moves them ----------------------------------------------------------------------------------------

    def sensitivity(self, adjacency: Adjacency) -> int:
        """The largest L1 change that one row makes to the released values, in lattice units.

        Guarantee: holds for every pair of neighbouring tables of this geometry; docs/proofs/polynomial.md, Theorems 1 and 2.
        """
        counts = [row_counts(self.geometry, weighting.degree) for weighting in self.weightings]
        if adjacency == "add-remove":
            return self._largest_row([sum(count.numbers) + count.with_levels for count in counts])
        rest, swaps = [], 0
        for weighting, count in zip(self.weightings, counts, strict=True):
            public = int(weighting.is_constant and count.numbers[0] > 0)
            twice = 2 * (sum(count.numbers) - public)
            once = replaced_numbers(self.geometry, weighting.degree, count) if weighting.has_one_sign else twice
            swaps += min(once, twice) * self.units(weighting) if once < twice else 0
            rest.append(count.with_levels + (0 if once < twice else twice // 2))
        apart = 2 * self._largest_row(rest) + swaps
        together = 2 * self._largest_row(
            [sum(c.numbers) + c.with_levels - int(w.is_constant and c.numbers[0] > 0) for w, c in zip(self.weightings, counts, strict=True)]
        )
        return min(apart, together)

    def _largest_row(self, counts: Sequence[int]) -> int:
        """The maximum over targets of the sum over weightings of |function| times a number of monomials of size one."""
        rows = sum(
            (
                np.abs(weighting.table).astype(object) * (self.step**weighting.degree * count)
                for weighting, count in zip(self.weightings, counts, strict=True)
            ),
            start=np.zeros(len(self.lattice.points), dtype=object),
        )
        return int(max(rows))


# -- monomials ---------------------------------------------------------------------------------------------------------------


def distinct_monomials(geometry: Geometry, degree: int) -> Iterator[Monomial]:
    """Every product of at most `degree` columns that is a function of its own, the shortest first, beginning with the constant ()."""
    columns = [
        (column, place, block.kind == "slope") for place, block in enumerate(geometry.blocks) for column in range(block.start, block.stop)
    ]
    layer: list[tuple[Monomial, int]] = [((), -1)]
    yield ()
    for _ in range(degree):
        layer = [
            ((*monomial, column), place)
            for monomial, last in layer
            for column, place, is_slope in columns
            if place > last or (is_slope and monomial[-1] == column)
        ]
        yield from (monomial for monomial, _ in layer)


def occurs(geometry: Geometry, monomial: Monomial, degree: int) -> bool:
    """Whether a product of exactly `degree` columns, the intercept one of them if there is one, equals this monomial in every row."""
    spare = degree - len(monomial)
    if spare < 0 or spare == 0 or geometry.intercept:
        return spare >= 0
    with_level = any(geometry.blocks[place].kind == "levels" for place in _places(geometry, monomial))
    return with_level or (spare % 2 == 0 and geometry.count("sign") > 0)


def products_of(geometry: Geometry, degree: int) -> Iterator[tuple[Monomial, int, Monomial]]:
    """Every product of exactly `degree` columns that is not zero: its columns, in how many orders they come, and the monomial that it equals."""
    first = int(geometry.intercept)
    place = np.concatenate([[-1] * first, *([i] * block.width for i, block in enumerate(geometry.blocks))]).astype(int).tolist()
    is_level = [i >= 0 and geometry.blocks[i].kind == "levels" for i in place]
    is_sign = [i >= 0 and geometry.blocks[i].kind == "sign" for i in place]

    def reduced(columns: Monomial) -> Monomial:
        kept: list[int] = []
        for column in columns:
            if column < first or (is_level[column] and column in kept):
                continue
            if is_sign[column] and column in kept:
                kept.remove(column)
            else:
                kept.append(column)
        return tuple(kept)

    layer: list[Monomial] = [()]
    for _ in range(degree):
        layer = [
            (*columns, column)
            for columns in layer
            for column in range(columns[-1] if columns else 0, len(place))
            if not (columns and is_level[column] and place[column] == place[columns[-1]] and column != columns[-1])
        ]
    for columns in layer:
        orders = math.factorial(degree)
        for column in set(columns):
            orders //= math.factorial(columns.count(column))
        yield columns, orders, reduced(columns)


def _places(geometry: Geometry, monomial: Monomial) -> list[int]:
    return [next(i for i, block in enumerate(geometry.blocks) if block.start <= column < block.stop) for column in monomial]


@dataclass(frozen=True)
class RowCounts:
    """How many monomials of a weighting can be other than zero in one row: those of numbers alone, by their length, and those with a level."""

    numbers: tuple[int, ...]
    with_levels: int


def row_counts(geometry: Geometry, degree: int) -> RowCounts:
    """The counts for all products of exactly `degree` columns: a row has one level of every block."""
    numbers = _lengths([block for block in geometry.blocks if block.kind != "levels"], degree)
    everything = _lengths(geometry.blocks, degree)
    fits = [
        geometry.intercept or length == degree or (geometry.count("sign") > 0 and (degree - length) % 2 == 0)
        for length in range(degree + 1)
    ]
    kept = tuple(number * fit for number, fit in zip(numbers, fits, strict=True))
    return RowCounts(kept, sum(everything) - sum(numbers))


def replaced_numbers(geometry: Geometry, degree: int, counts: RowCounts) -> int:
    """How far a replaced row moves the monomials of numbers alone, of a weighting with one sign and a top of 1.

    Guarantee: docs/proofs/polynomial.md, Lemma 2 and Theorem 2.
    """
    columns = int(geometry.intercept) + geometry.n_blocks - geometry.count("levels")
    even = degree - degree % 2 if geometry.intercept else degree
    if even % 2 or columns == 0:
        return 2 * sum(counts.numbers)
    return math.comb(columns + even - 1, even) + 2 * sum(counts.numbers[even + 1 :])


def _lengths(blocks: Sequence[Block], degree: int, all_levels: bool = False) -> list[int]:
    """How many distinct monomials have each length up to `degree`, counting one level of every block, or all of them."""
    counts = [1] + [0] * degree
    for block in blocks:
        longest = degree if block.kind == "slope" else 1
        own = [1] + [block.width if all_levels else 1] * longest
        counts = [sum(counts[length - k] * own[k] for k in range(min(length, longest) + 1)) for length in range(degree + 1)]
    return counts


def _check_size(geometry: Geometry, degree: int) -> None:
    number = sum(_lengths(geometry.blocks, degree, all_levels=True))
    if number > MOST_VALUES:
        raise SchemaError(
            f"The schema has {geometry.n_columns} encoded columns, and a loss of degree {degree} would release {number} products of them; this statistic takes at most "
            f"{MOST_VALUES}. Use a lower degree, fewer columns, or join levels. Nothing was charged."
        )


# -- functions of the target -----------------------------------------------------------------------------------------------------


def _functions(coefficients: Floats, intercept: bool) -> tuple[list[Floats], list[int], Floats]:
    """Few functions, each at most 1 in size, that the coefficients are mixtures of; the degree of each; the mixture.

    From the highest degree down. With an intercept every product of few columns is among the products of more, so a function that is there for a higher degree
    is there for this one: only what it leaves over needs a function of its own.
    """
    functions: list[Floats] = []
    degrees: list[int] = []
    mixture = np.zeros((len(coefficients), len(coefficients)))
    size = float(np.abs(coefficients).max())
    for degree in range(len(coefficients), 0, -1):
        rest = coefficients[degree - 1]
        if intercept and functions:
            basis = np.column_stack(functions)
            shares = np.linalg.lstsq(basis, rest, rcond=None)[0]
            left = rest - basis @ shares
            if np.abs(left).max() < np.abs(rest).max():
                mixture[degree - 1, : len(functions)] = shares
                rest = left
        top = float(np.abs(rest).max())
        if top > SAME * size:
            if np.ptp(rest) <= SAME * size:
                rest = np.full(len(rest), rest.mean())
                top = abs(float(rest[0]))
            mixture[degree - 1, len(functions)] = top
            functions.append(rest / top)
            degrees.append(degree)
    return functions, degrees, mixture[:, : len(functions)]


def _weights(geometry: Geometry, degrees: Sequence[int], mixture: Floats) -> list[float]:
    """How fine the lattice of each function is, by a public rule; the finest is 1.

    All values get the same noise, so that a function of weight v has noise proportional to (sum of v_r N_r) / v, N_r being its share of the
    sensitivity. Noise in the coefficients of degree j moves the gradient of the objective in proportion to j sqrt((j - 1)!) |w|^(j - 1). The sum of squares
    over functions is least for  v_r^3  proportional to  importance_r^2 / N_r.  The size of the weights, unknown and private, is replaced by a constant.
    """
    orders = np.arange(1, len(mixture) + 1)
    steepness = orders * np.sqrt([math.factorial(j - 1) for j in orders.tolist()]) * EXPECTED_NORM ** (orders - 1.0)
    importance = steepness @ np.abs(mixture)
    counts = [row_counts(geometry, degree) for degree in degrees]
    sizes = np.array([sum(count.numbers) + count.with_levels for count in counts], dtype=np.float64)
    weights = np.cbrt(importance**2 / np.maximum(sizes, 1.0))
    return np.maximum(weights / weights.max(), 1 / MOST_WEIGHT).tolist()
