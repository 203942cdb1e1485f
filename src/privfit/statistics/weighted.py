"""Weighted monomials of encoded rows: sums over rows of a function of the target times a product of columns.

They are all that a loss needs which is a polynomial in the linear predictor: the coefficient of every product of
weights is such a sum. Every product that is a function of its own is released once: the square of a level is the level,
the square of a sign is one, and two levels of one block never meet. Functions of the target that others can be made of
are released once, too.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from privfit.privacy import Adjacency, PrivacyParameters
from privfit.schema import Block, Geometry, SchemaError
from privfit.statistics.monomials import Monomial, distinct_monomials, n_distinct, occurs, replaced_numbers, row_counts
from privfit.statistics.weighted_moments import WEIGHT_LEVELS

LARGEST_VALUE = 1 << 38
"""The largest released value of one row, so that sums over millions of rows fit 64 bits."""
STEPS = {1: 1 << 16, 2: 1 << 13, 3: 1 << 9, 4: 1 << 7}
"""Lattice steps to 1 in a feature, by degree: a monomial of that degree stays below LARGEST_VALUE."""
WEIGHT_UNITS = 1 << 10
"""The integer that stands for the largest weight of a row, where rows have weights: coarser than in moments, so that
features and functions of the target keep steps of their own; chosen, not measured."""
WEIGHTED_STEPS = {1: 1 << 14, 2: 1 << 10, 3: 1 << 7, 4: 1 << 5}
"""Steps where rows have weights: a value of one row stays below LARGEST_VALUE with its weight."""
TARGET_UNITS = 1 << 12
"""Points of the target's lattice on either side of its middle: functions of the target are tabulated there."""
MOST_VALUES = 200_000
"""More released values are refused: the sensitivity is enumerated over them."""
MOST_WEIGHT = 8.0
"""The scales of two orders differ by at most this factor. See docs/constants.md."""
EXPECTED_SIZE = 0.5
"""The size of the predictor that the orders' noise is balanced for. See docs/constants.md."""
ZERO_COEFFICIENT = 1e-9
"""Coefficients below this share of the largest are zero: far above rounding."""
BLOCK_CELLS = 1 << 18
"""Values worked on together: it changes time and memory only."""

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Places = NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class TargetLattice:
    """The values that the encoded target can take, integers from -units to units, and the targets that they stand
    for.
    """

    units: int
    points: Integers
    targets: Floats

    @classmethod
    def of(cls, block: Block) -> TargetLattice:
        """Every integer for a numeric target, in the user's units; -1 and 1 for two classes."""
        if block.kind == "sign":
            return cls(1, np.array([-1, 1]), np.array([-1.0, 1.0]))
        points = np.arange(-TARGET_UNITS, TARGET_UNITS + 1)
        return cls(TARGET_UNITS, points, block.center + block.unit * (points / TARGET_UNITS))

    @property
    def scaled(self) -> Floats:
        """The points as numbers of [-1, 1]."""
        return self.points / self.units


@dataclass(frozen=True, eq=False)
class Weighting:
    """A function of the target in integers, one for every point of its lattice, and the degree of the monomials
    that it multiplies.
    """

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

    `mixture[j - 1, r]` says how much of weighting r, in units of its top, is in the loss's coefficient of degree j. A
    shorter monomial of a weighting of degree D is multiplied by `step` until it has D factors, so that all values of a
    weighting have one unit.
    """

    geometry: Geometry
    lattice: TargetLattice
    weightings: tuple[Weighting, ...]
    mixture: Floats
    row_weights: int = 0
    """The integer that stands for the largest weight of a row; 0 where rows count alike."""

    @classmethod
    def of(
        cls, geometry: Geometry, lattice: TargetLattice, coefficients: Floats, weighed: bool = False
    ) -> WeightedMonomials:
        """The statistic of a loss, given its coefficients of degree 1, 2, ... (one row each) at every point of the
        target's lattice; `weighed` is whether rows have weights.
        """
        if geometry.count("share") or geometry.count("indicators"):
            raise ValueError(
                "A geometry of the paper's encoding was given; weighted monomials know slopes, signs and levels. Use "
                "paper=False."
            )
        functions, degrees, mixture = _functions(coefficients, geometry.intercept)
        _check_size(geometry, max(degrees))
        row_weights = WEIGHT_UNITS if weighed else 0
        step, largest = _steps(row_weights)[max(degrees)], LARGEST_VALUE // max(row_weights, 1)
        weights = _weights(geometry, degrees, mixture)
        tops = [max(1, round(weight * largest / step**degree)) for weight, degree in zip(weights, degrees, strict=True)]
        tables = [np.rint(function * top).astype(np.int64) for function, top in zip(functions, tops, strict=True)]
        return cls(geometry, lattice, tuple(map(Weighting, tables, degrees)), mixture, row_weights)

    @property
    def degree(self) -> int:
        """The most columns that are multiplied."""
        return max(weighting.degree for weighting in self.weightings)

    def largest_coefficient(self, degree: int) -> float:
        """The largest size, over all targets, of the loss's coefficient of a degree."""
        shares = zip(self.mixture[degree - 1], self.weightings, strict=True)
        return float(np.abs(sum(share * weighting.table / weighting.top for share, weighting in shares)).max())

    # -- the kernel --------------------------------------------------------------------------------

    @property
    def step(self) -> int:
        """The integer that stands for 1 in a feature."""
        return _steps(self.row_weights)[self.degree]

    @property
    def target_units(self) -> int:
        """The integer that stands for 1 in the target."""
        return self.lattice.units

    @property
    def units(self) -> list[int]:
        """The integer that stands for 1 in the values of each weighting."""
        most = max(self.row_weights, 1)
        return [most * weighting.top * self.step**weighting.degree for weighting in self.weightings]

    @property
    def largest(self) -> int:
        """The most that one row can add to a value."""
        return max(self.units)

    @property
    def unit(self) -> int:
        """The integer that stands for 1 in the values that have the largest one."""
        return self.largest

    def __call__(self, encoded: Floats) -> Floats:
        """The sums of all values over these rows, in the order of `values`."""
        tables = np.zeros((2 * self.lattice.units + 1, len(self.weightings)))
        tables[self.lattice.points + self.lattice.units] = np.column_stack(
            [weighting.table for weighting in self.weightings]
        )
        size = max(1, BLOCK_CELLS // len(self._monomials))
        total = np.zeros(len(self.values))
        for start in range(0, encoded.shape[1], size):
            rows = encoded[: len(encoded) - (self.row_weights > 0), start : start + size]
            functions = tables[rows[-1].astype(np.intp) + self.lattice.units]
            if self.row_weights:  # the last line; whatever its lattice, between 0 and `row_weights`
                shares = encoded[-1, start : start + size] / WEIGHT_LEVELS
                functions = functions * np.rint(shares * self.row_weights)[:, None]
            sums = self._products(rows) @ functions
            total += np.concatenate([sums[kept, r] for r, kept in enumerate(self._kept)]) * self._fillers
        return total

    def _products(self, rows: Floats) -> Floats:
        """Every monomial of every row: each is a shorter one times one more column."""
        products = np.ones((len(self._monomials), rows.shape[1]))
        for own, parents, columns in self._layers:
            np.multiply(products[parents], rows[columns], out=products[own])
        return products

    @cached_property
    def _monomials(self) -> list[Monomial]:
        return list(distinct_monomials(self.geometry, self.degree))

    @cached_property
    def _layers(self) -> list[tuple[slice, Places, Places]]:
        """For every length: where its monomials are, where those without the last column are, and the last columns."""
        place = {monomial: i for i, monomial in enumerate(self._monomials)}
        layers, start = [], 1
        for length in range(1, self.degree + 1):
            layer = [monomial for monomial in self._monomials if len(monomial) == length]
            parents = np.array([place[monomial[:-1]] for monomial in layer], dtype=np.intp)
            layers.append(
                (
                    slice(start, start + len(layer)),
                    parents,
                    np.array([monomial[-1] for monomial in layer], dtype=np.intp),
                )
            )
            start += len(layer)
        return layers

    @cached_property
    def _kept(self) -> list[Places]:
        """Which monomials each weighting is multiplied with."""
        return [
            np.array(
                [i for i, monomial in enumerate(self._monomials) if occurs(self.geometry, monomial, weighting.degree)],
                dtype=np.intp,
            )
            for weighting in self.weightings
        ]

    @cached_property
    def _fillers(self) -> Floats:
        return np.array(
            [float(self.step ** (self.weightings[r].degree - len(monomial))) for r, monomial in self.values]
        )

    # -- what is released --------------------------------------------------------------------------

    @cached_property
    def values(self) -> list[tuple[int, Monomial]]:
        """What each value is: the number of its weighting, and its monomial."""
        return [(r, self._monomials[i]) for r, kept in enumerate(self._kept) for i in kept]

    def released(self, adjacency: Adjacency) -> Places:
        """The places of the values that get noise. Under replace-one the number of rows, which is public, does not."""
        public = [
            adjacency == "replace-one" and monomial == () and self.weightings[r].is_constant
            for r, monomial in self.values
        ]
        return np.flatnonzero(~np.array(public))

    def in_units_of_one(self, noisy: Integers, n_rows: int, adjacency: Adjacency) -> Floats:
        """All values, in units of 1: the noisy ones, and those that the public number of rows makes.

        Under add-remove `n_rows` is not used.
        """
        values = n_rows * np.array([self.weightings[r].table[0] / self.weightings[r].top for r, _ in self.values])
        released = self.released(adjacency)
        units = np.array([float(self.units[r]) for r, _ in self.values])
        values[released] = noisy / units[released]
        return values

    # -- how far one row moves them ----------------------------------------------------------------

    def row_sensitivity(self, parameters: PrivacyParameters) -> int:
        """The largest change per row that changes, to be multiplied by `rows_per_person`, weights of rows included.

        Where the number of rows that count is private, 2 m rows are those of m slots: half of the larger of both
        sensitivities counts per row.

        Guarantee: docs/proofs/polynomial.md, Theorem 4.
        """
        assert parameters.adjacency == "add-remove" or not self.row_weights  # the sum of weights is private
        if parameters.promise is None:
            return self.sensitivity(parameters.adjacency)
        return -(-max(self.sensitivity("replace-one"), self.sensitivity("add-remove")) // 2)

    def sensitivity(self, adjacency: Adjacency) -> int:
        """The largest L1 change that one row makes to the released values, in lattice units.

        Guarantee: holds for every pair of neighbouring tables of this geometry; docs/proofs/polynomial.md, Theorems 1
        and 2.
        """
        counts = [row_counts(self.geometry, weighting.degree) for weighting in self.weightings]
        if adjacency == "add-remove":
            return self._largest_row([sum(count.numbers) + count.with_levels for count in counts])
        numbers = [
            sum(count.numbers[weighting.is_constant :])
            for weighting, count in zip(self.weightings, counts, strict=True)
        ]
        everything = [number + count.with_levels for number, count in zip(numbers, counts, strict=True)]
        swapped = 0
        others = everything.copy()
        for r, (weighting, count) in enumerate(zip(self.weightings, counts, strict=True)):
            bound = replaced_numbers(self.geometry, weighting.degree, count)
            if weighting.has_one_sign and bound < 2 * numbers[r]:
                swapped += bound * self.units[r]
                others[r] -= numbers[r]
        return min(2 * self._largest_row(everything), 2 * self._largest_row(others) + swapped)

    def _largest_row(self, counts: Sequence[int]) -> int:
        """The maximum over targets of the sum over weightings of |function| times a number of monomials, each of its
        largest size.
        """
        most = max(self.row_weights, 1)
        sizes = [most * self.step**one.degree * count for one, count in zip(self.weightings, counts, strict=True)]
        rows = zip(*(np.abs(weighting.table).tolist() for weighting in self.weightings), strict=True)
        return int(max(sum(size * value for size, value in zip(sizes, row, strict=True)) for row in rows))


def _steps(row_weights: int) -> dict[int, int]:
    """Lattice steps by degree."""
    return WEIGHTED_STEPS if row_weights else STEPS


def _check_size(geometry: Geometry, degree: int) -> None:
    number = n_distinct(geometry, degree)
    if number > MOST_VALUES:
        raise SchemaError(
            f"The schema has {geometry.n_columns} encoded columns, and a loss of degree {degree} needs {number} "
            "different products of them; this statistic takes "
            f"at most {MOST_VALUES}. Use a lower degree, fewer columns, or join levels. Nothing was charged."
        )


# -- functions of the target -----------------------------------------------------------------------


def _functions(coefficients: Floats, intercept: bool) -> tuple[list[Floats], list[int], Floats]:
    """Few functions of the target, each of size 1, that the coefficients are mixtures of; their degrees; the mixture.

    From the highest degree down. With an intercept the products of few columns are among those of many, so that a
    function which is there for a higher degree is there for a lower one: only what is left over needs a function of its
    own.
    """
    functions: list[Floats] = []
    degrees: list[int] = []
    mixture = np.zeros((len(coefficients), len(coefficients)))
    least = ZERO_COEFFICIENT * float(np.abs(coefficients).max())
    for degree in range(len(coefficients), 0, -1):
        rest = coefficients[degree - 1]
        if intercept and functions:
            basis = np.column_stack(functions)
            shares = np.linalg.lstsq(basis, rest, rcond=None)[0]
            if np.abs(rest - basis @ shares).max() < np.abs(rest).max():
                mixture[degree - 1, : len(functions)] = shares
                rest = rest - basis @ shares
        if np.abs(rest).max() <= least:
            continue
        size = float(rest.mean()) if np.ptp(rest) <= least else float(np.abs(rest).max())
        mixture[degree - 1, len(functions)] = size
        functions.append(np.ones(len(rest)) if np.ptp(rest) <= least else rest / size)
        degrees.append(degree)
    return functions, degrees, mixture[:, : len(functions)]


def _weights(geometry: Geometry, degrees: Sequence[int], mixture: Floats) -> list[float]:
    """How fine the lattice of each function is, by a public rule; the finest is 1.

    All values get the same noise, so that a function of weight v has noise proportional to (sum of v_r N_r) / v, N_r
    being the number of its values in a row. Noise in the coefficients of degree j moves the gradient of the objective
    in proportion to j sqrt((j - 1)!) |w|^(j - 1). The sum of the squares is least for  v_r^3  proportional to
    importance_r^2 / N_r.  The size of the weights, unknown and private, is replaced by a constant.
    """
    orders = range(1, len(mixture) + 1)
    steepness = np.array([j * math.sqrt(math.factorial(j - 1)) * EXPECTED_SIZE ** (j - 1) for j in orders])
    importance = steepness @ np.abs(mixture)
    counts = [row_counts(geometry, degree) for degree in degrees]
    sizes = np.array([sum(count.numbers) + count.with_levels for count in counts], dtype=np.float64)
    weights = np.cbrt(importance**2 / np.maximum(sizes, 1.0))
    return [max(weight, 1 / MOST_WEIGHT) for weight in (weights / weights.max()).tolist()]
