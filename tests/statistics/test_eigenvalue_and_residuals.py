"""The smallest eigenvalue and what is left of a target: exact, and moved by no row further than docs/proofs/adassp.md
claims.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from privfit.solvers.adaptive import whole_basis
from privfit.statistics import Moments
from privfit.statistics.eigenvalue import EIGENVALUE_GRID, eigenvalue_sensitivity, smallest_eigenvalue
from privfit.statistics.residuals import FINE, WEIGHT_STEP, AbsoluteResidual, ResidualMoments, whole_weights
from tests.support.corners import MIXED, NUMBER, corners, geometry_of, rows_of

# -- the smallest eigenvalue -----------------------------------------------------------------------


def eigenvalues(features: list, fit_intercept: bool, tables: list[np.ndarray]) -> list[int]:
    schema, geometry = geometry_of(features, fit_intercept)
    d, moments, basis = geometry.n_columns, Moments(geometry), whole_basis(geometry)
    return [
        smallest_eigenvalue(rows_of(table, schema, geometry).sum(moments)[:d, :d], moments.unit, basis)
        for table in tables
    ]


@pytest.mark.parametrize("features", [NUMBER, MIXED], ids=["number", "mixed"])
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("common", [1, 30])
def test_no_row_moves_the_smallest_eigenvalue_further_than_claimed(
    features: list, fit_intercept: bool, common: int
) -> None:
    """Against every corner: with few rows in common, where the eigenvalue is small, and with many."""
    rng = np.random.default_rng(common)
    choices = corners(features)
    shared = [choices[i] for i in rng.integers(len(choices), size=common)]
    found = eigenvalues(features, fit_intercept, [np.array([*shared, row]) for row in choices])
    without = eigenvalues(features, fit_intercept, [np.array(shared)])[0]
    claimed = eigenvalue_sensitivity(geometry_of(features, fit_intercept)[1])
    assert max(found) - min(found) <= claimed
    assert max(abs(value - without) for value in found) <= claimed


def test_the_claim_about_the_smallest_eigenvalue_is_close() -> None:
    """One column without an intercept: a row adds its square, and nothing else can."""
    one, other = eigenvalues(NUMBER, False, [np.array([[0.5, 0.0], [x, 0.0]]) for x in (0.0, 1.0)])
    assert other - one > 0.99 * EIGENVALUE_GRID
    assert eigenvalue_sensitivity(geometry_of(NUMBER, False)[1]) <= 1.01 * EIGENVALUE_GRID + 1


def positive(matrix: list[list[Fraction]]) -> bool:
    """Whether a symmetric matrix is positive definite, in exact arithmetic."""
    rows = [row[:] for row in matrix]
    for i in range(len(rows)):
        if rows[i][i] <= 0:
            return False
        for j in range(i + 1, len(rows)):
            factor = rows[j][i] / rows[i][i]
            rows[j] = [a - factor * b for a, b in zip(rows[j], rows[i], strict=True)]
    return True


@pytest.mark.parametrize("seed", range(30))
def test_the_smallest_eigenvalue_is_right_to_a_step_in_exact_arithmetic(seed: int) -> None:
    """Also where the columns are nearly, or exactly, the same and where the sums are as large as they may be."""
    rng = np.random.default_rng(seed)
    d, size = int(rng.integers(1, 5)), int(10 ** rng.uniform(0, 4))
    table = rng.integers(-size, size + 1, (6, d))
    if d > 1 and seed % 3 == 0:
        table[:, 1] = table[:, 0] + (rng.integers(-1, 2, 6) if seed % 2 else 0)
    times = 2**28 if seed % 5 == 0 else 1
    products = (table.T @ table) * times
    found = smallest_eigenvalue(products, 1, np.eye(d))
    error = Fraction(int(np.trace(products)) * 4 * (d + 2) ** 2, 2**53)

    def less(t: Fraction) -> list[list[Fraction]]:
        return [[Fraction(int(products[i, j])) - (t if i == j else 0) for j in range(d)] for i in range(d)]

    assert positive(less(Fraction(found, EIGENVALUE_GRID) - error - Fraction(1, 2**40)))
    assert not positive(less(Fraction(found + 1, EIGENVALUE_GRID) + error))


# -- residuals -------------------------------------------------------------------------------------


def by_hand(encoded: list[list[int]], weights: tuple[int, ...], bound: float) -> list[int]:
    """The moments of residuals in Python's integers, row by row.

    The target is last in a row, on the fine lattice.
    """
    whole = max(1, int(bound * FINE))
    shift = max(0, whole.bit_length() - 16)
    cut = whole >> shift
    total = [0] * len(weights)
    for *x, y in encoded:
        left = Fraction(y - sum(w * value for w, value in zip(weights, x, strict=True)), 1 << shift)
        r = max(-cut, min(cut, round(left)))
        total = [entry + value * r for entry, value in zip(total, x, strict=True)]
    return total


@pytest.mark.parametrize("bound", [1.0, 0.25, 0.013, 2.0**-12, 1e-9])
def test_residuals_are_exact_whole_numbers(bound: float) -> None:
    rng = np.random.default_rng(1)
    schema, geometry = geometry_of(MIXED, True)
    table = np.column_stack(
        [rng.uniform(-1, 1, 500), rng.integers(2, size=500), rng.integers(3, size=500), rng.uniform(-1.2, 1.2, 500)]
    )
    weights = whole_weights(rng.normal(0, 0.4, geometry.n_columns))
    statistic = ResidualMoments(geometry, weights, bound)
    kept: list[np.ndarray] = []

    class Seen(ResidualMoments):
        def __call__(self, encoded: np.ndarray) -> np.ndarray:
            kept.append(encoded.copy())
            return super().__call__(encoded)

    rows_of(table, schema, geometry).sum(Seen(geometry, weights, bound))
    encoded = [[int(value) for value in row] for row in np.concatenate(kept, axis=1).T]
    assert rows_of(table, schema, geometry).sum(statistic).tolist() == by_hand(encoded, weights, bound)


@pytest.mark.parametrize("features", [NUMBER, MIXED], ids=["number", "mixed"])
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("bound", [1.0, 0.3, 2.0**-12])
def test_no_row_moves_residual_moments_further_than_claimed_and_some_row_does(
    features: list, fit_intercept: bool, bound: float
) -> None:
    rng = np.random.default_rng(0)
    schema, geometry = geometry_of(features, fit_intercept)
    weights = [(0,) * geometry.n_columns] + [
        whole_weights(rng.normal(0, size, geometry.n_columns)) for size in (0.3, 30.0, 1e9)
    ]
    closest = dict.fromkeys([(a, n) for a in ("add-remove", "replace-one") for n in ("l1", "l2")], 0.0)
    for each in weights:
        statistic = ResidualMoments(geometry, each, bound)
        single = AbsoluteResidual(geometry, each, bound)
        tables = [np.array([row]) for row in corners(features)]
        vectors = np.array([rows_of(table, schema, geometry).sum(statistic) for table in tables])
        sizes = np.array([rows_of(table, schema, geometry).sum(single)[0] for table in tables])
        moves = {
            "add-remove": vectors,
            "replace-one": (vectors[:, None] - vectors[None]).reshape(-1, geometry.n_columns),
        }
        for adjacency, moved in moves.items():
            lengths = {"l1": np.abs(moved).sum(axis=1), "l2": np.sqrt((moved.astype(float) ** 2).sum(axis=1))}
            for norm, found in lengths.items():
                claimed = statistic.sensitivity(adjacency, norm)
                assert found.max() <= claimed * (1 + 1e-15)
                closest[adjacency, norm] = max(closest[adjacency, norm], found.max() / claimed)
        assert 0 <= sizes.min() <= sizes.max() <= single.sensitivity("replace-one", "l1") == single.cut
    assert min(closest.values()) > 0.99, "the claims are attained"


def test_weights_that_would_not_be_exact_are_refused() -> None:
    geometry = geometry_of(MIXED, True)[1]
    with pytest.raises(ValueError, match="limited size"):
        ResidualMoments(geometry, (2**40,) * geometry.n_columns)
    with pytest.raises(ValueError, match="one weight"):
        ResidualMoments(geometry, (0,))
    held = whole_weights([np.nan, np.inf, -1e300, 0.5])
    assert held == (0, 2**10 * WEIGHT_STEP, -(2**10) * WEIGHT_STEP, WEIGHT_STEP // 2)
