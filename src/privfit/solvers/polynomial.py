"""The minimum of a noisy polynomial in the weights: made consistent, repaired, and looked for where the polynomial is
meant. Never sees rows.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.sparse.linalg import lsqr

from privfit.losses import SQUARED
from privfit.schema import Geometry
from privfit.solvers.quadratic import EXPECTED_MEAN, NoiseLevel, Solution, minimise, plausible_mean, plausible_means
from privfit.solvers.reduction import ReducedQuadratic, reduce_quadratic
from privfit.statistics import EXPECTED_SIZE, MomentValues, WeightedMonomials, products_of

MOST_STEPS = 500
"""Descent steps on the released polynomial: post-processing, so that this limits the time only."""
LONGEST_STEP = 0.25
"""Steps are at most so long, because the polynomial is fitted on an interval and may fall without end beyond it."""
STIFFEST = 10.0
"""Directions that are mostly noise have at most so many times the largest curvature that is known, as in the functional
mechanism. See docs/constants.md."""

Floats = NDArray[np.float64]
Function = Callable[[Floats], tuple[float, Floats]]
"""A function of the weights that gives its value and its gradient."""


@dataclass(frozen=True)
class PolynomialSolution:
    """Weights of the encoded columns and the intercept, in the units of the polynomial's argument, and what it took to
    find them.
    """

    weights: Floats
    intercept: float
    solution: Solution
    at_edge: bool


@dataclass(frozen=True, eq=False)
class Polynomial:
    """A polynomial in the weights, the intercept's first if there is one: for every degree the products of weights and
    their coefficients.
    """

    n_weights: int
    terms: tuple[tuple[NDArray[np.intp], Floats], ...]

    @classmethod
    def of(cls, statistic: WeightedMonomials, values: Floats) -> Polynomial:
        """The objective that a statistic's values stand for, summed over rows."""
        place = {value: i for i, value in enumerate(statistic.values)}
        terms = []
        for degree, shares in enumerate(statistic.mixture, start=1):
            used = np.flatnonzero(shares).tolist()
            found = list(products_of(statistic.geometry, degree)) if used else []
            columns = np.array([product for product, _, _ in found], dtype=np.intp).reshape(-1, degree)
            orders = np.array([order for _, order, _ in found], dtype=np.float64)
            sums = [shares[r] * values[[place[r, monomial] for _, _, monomial in found]] for r in used]
            terms.append((columns, orders * np.sum(sums, axis=0) if used else orders))
        return cls(statistic.geometry.n_columns, tuple(terms))

    def __call__(self, weights: Floats) -> tuple[float, Floats]:
        """The value and the gradient."""
        value, gradient = 0.0, np.zeros(self.n_weights)
        for columns, coefficients in self.terms:
            factors = weights[columns]
            value += float(coefficients @ factors.prod(axis=1))
            for place in range(columns.shape[1]):
                others = np.delete(factors, place, axis=1).prod(axis=1)
                gradient += np.bincount(columns[:, place], coefficients * others, self.n_weights)
        return value, gradient

    @property
    def slope(self) -> Floats:
        """The gradient at zero."""
        return self(np.zeros(self.n_weights))[1]

    @property
    def curvature(self) -> Floats:
        """The symmetric matrix M of the terms w'Mw."""
        (left, right), coefficients = self.terms[1][0].T, self.terms[1][1]
        half = np.zeros((self.n_weights, self.n_weights))
        np.add.at(half, (left, right), coefficients / 2)
        return half + half.T


def minimise_polynomial(statistic: WeightedMonomials, values: Floats, noise_sd: Floats) -> PolynomialSolution:
    """Weights that make the noisy objective small.

    `noise_sd` are the standard deviations of each weighting's values, in units of 1.

    The terms up to degree two are repaired and shrunk as any noisy quadratic (`quadratic.minimise`), the intercept
    solved for. For a higher degree that is the start of a descent over the weights that keep the polynomial's argument
    within [-1, 1] for every row that the schema allows, with a penalty that holds each direction back as far as it is
    noise.
    """
    geometry = statistic.geometry
    scale = statistic.largest_coefficient(2)
    objective = Polynomial.of(statistic, values)
    matrix, vector = objective.curvature / scale, -objective.slope / (2 * scale)
    quadratic = reduce_quadratic(
        MomentValues(matrix, vector, float(matrix[0, 0])), geometry, SQUARED, geometry.intercept
    )
    noise_of = np.sqrt((statistic.mixture**2) @ noise_sd**2) / scale
    noise = NoiseLevel(float(noise_of[1]), float(noise_of[0]) / 2, quadratic.target_mean)
    solution = minimise(quadratic.matrix, quadratic.vector, noise, "floor")
    weights, intercept = quadratic.basis @ solution.weights, 0.0
    if geometry.intercept:
        mean = plausible_mean(quadratic.target_mean, noise.vector / max(float(matrix[0, 0]), 1.0))
        intercept = mean - float(plausible_means(quadratic.feature_means) @ weights)
    if statistic.degree == 2:
        return PolynomialSolution(weights, intercept, solution, at_edge=False)
    whole = np.concatenate([[intercept], weights]) if geometry.intercept else weights
    penalty = _penalty(quadratic, solution, noise, geometry.intercept, float(matrix[0, 0])) + _noisy_bend(
        noise_of
    ) * np.eye(len(whole))

    def penalised(point: Floats) -> tuple[float, Floats]:
        value, gradient = objective(point)
        return value / scale + float(point @ penalty @ point), gradient / scale + 2 * penalty @ point

    groups = _groups(geometry)
    stiffness = 2 * float(np.linalg.eigvalsh(matrix + penalty).max())
    found = _descend(
        penalised, _projected(whole, groups), lambda point: _projected(point, groups), 1 / max(stiffness, 1e-300)
    )
    at_edge = _reach(found, groups) > 1 - 1e-6
    first = int(geometry.intercept)
    return PolynomialSolution(found[first:], float(found[0]) if first else 0.0, solution, at_edge)


def _penalty(
    quadratic: ReducedQuadratic, solution: Solution, noise: NoiseLevel, intercept: bool, n_rows: float
) -> Floats:
    """The quadratic penalty under which the terms of degree two have the minimum that `minimise` found.

    Each of its directions is held back by what its repair and its shrinkage amount to. Directions that do nothing, such
    as adding to all levels of a block, cost something, and so does the intercept as far as the mean is noise.
    """
    curvature = np.einsum("ij,ik,kj->j", solution.directions, quadratic.matrix, solution.directions)
    stiffest = STIFFEST * max(float(curvature.max(initial=0.0)), noise.matrix)
    repaired = np.minimum(1 / np.maximum(solution.factors, 1e-300), stiffest)
    basis = quadratic.basis @ solution.directions
    penalty: Floats = basis @ ((repaired - curvature)[:, None] * basis.T) + stiffest * (
        np.eye(len(basis)) - basis @ basis.T
    )
    if not intercept:
        return penalty
    whole = np.zeros((len(penalty) + 1,) * 2)
    whole[1:, 1:] = penalty
    whole[0, 0] = noise.vector**2 / (max(n_rows, 1.0) * EXPECTED_MEAN**2) + max(-n_rows, 0.0)
    return whole


def _noisy_bend(noise_of: Floats) -> float:
    """How much curvature noise in the terms above degree two can feign, at weights of the usual size."""
    bends = [
        math.comb(j, 2) * math.sqrt(math.factorial(j - 2)) * EXPECTED_SIZE ** (j - 2)
        for j in range(3, len(noise_of) + 1)
    ]
    return float(noise_of[2:] @ np.array(bends))


# -- values that could be those of a table ---------------------------------------------------------


def consistent_sums(statistic: WeightedMonomials, values: Floats, released: NDArray[np.intp]) -> Floats:
    """The nearest values for which the levels of every block add up, as each row has one of them.

    What was not released stays.
    """
    place = {value: i for i, value in enumerate(statistic.values)}
    blocks = [block for block in statistic.geometry.blocks if block.kind == "levels"]
    rows: list[int] = []
    columns: list[int] = []
    signs: list[float] = []
    for (r, monomial), own in place.items():
        for block in blocks:
            if any(block.start <= column < block.stop for column in monomial):
                continue
            longer = [(r, tuple(sorted((*monomial, level)))) for level in range(block.start, block.stop)]
            if all(value in place for value in longer):
                rows.extend([rows[-1] + 1 if rows else 0] * (block.width + 1))
                columns.extend([*(place[value] for value in longer), own])
                signs.extend([1.0] * block.width + [-1.0])
    if not rows:
        return values
    constraints = coo_array((signs, (rows, columns)), shape=(rows[-1] + 1, len(values))).tocsr()
    free = constraints[:, released]
    corrected = values.copy()
    correction: Floats = lsqr(free, constraints @ values, atol=1e-12, btol=1e-12, iter_lim=10_000)[0]
    corrected[released] -= correction
    return corrected


# -- the set over which the minimum is looked for --------------------------------------------------


def _groups(geometry: Geometry) -> list[slice]:
    """The weights of the intercept and of each block: a row has the intercept and at most one weight of every block."""
    return [*[slice(0, 1)] * geometry.intercept, *(slice(block.start, block.stop) for block in geometry.blocks)]


def _reach(point: Floats, groups: list[slice]) -> float:
    """The most that |x'w + b| can be in a row that the schema allows, or a little more."""
    return float(sum(np.abs(point[group]).max() for group in groups))


def _projected(point: Floats, groups: list[slice]) -> Floats:
    """The nearest weights with a reach of at most 1: every group is clipped, at heights that take the same sum off each
    group.
    """
    if _reach(point, groups) <= 1:
        return point
    sums = [np.cumsum(np.sort(np.abs(point[group]))[::-1]) for group in groups]

    def heights(taken: float) -> list[float]:
        return [max(0.0, float(((total - taken) / np.arange(1, len(total) + 1)).max())) for total in sums]

    low, high = 0.0, max(float(total[-1]) for total in sums)
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (middle, high) if sum(heights(middle)) > 1 else (low, middle)
    clipped = point.copy()
    for group, height in zip(groups, heights(high), strict=True):
        clipped[group] = np.clip(point[group], -height, height)
    return clipped


def _descend(objective: Function, start: Floats, project: Callable[[Floats], Floats], step: float) -> Floats:
    """A local minimum over a convex set by projected gradients with spectral steps; every step goes down, none goes
    far.
    """
    point = start
    value, gradient = objective(point)
    for _ in range(MOST_STEPS):
        direction = project(point - step * gradient) - point
        length = float(np.linalg.norm(direction))
        direction *= min(1.0, LONGEST_STEP / max(length, 1e-300))
        gain = float(gradient @ direction)
        if not gain < -1e-13 * max(abs(value), 1e-300):
            break
        share = 1.0
        trial = point + direction
        new_value, new_gradient = objective(trial)
        while not new_value <= value + 1e-4 * share * gain and share > 1e-10:
            share /= 2
            trial = point + share * direction
            new_value, new_gradient = objective(trial)
        if not new_value <= value:
            break
        moved, bent = trial - point, float((trial - point) @ (new_gradient - gradient))
        step = float(moved @ moved) / bent if bent > 0 else 2 * step
        point, value, gradient = trial, new_value, new_gradient
    return point
