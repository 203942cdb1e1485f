"""Noisy polynomials: the objective is the one that was summed, its minimum is found, and noise cannot carry the weights
away.
"""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy.optimize import minimize

from privfit.losses import PolynomialLoss, huber, logistic, poisson
from privfit.rows import Rows
from privfit.schema import Category, Numeric, Schema
from privfit.solvers import consistent_sums, minimise_polynomial
from privfit.solvers.polynomial import Polynomial, _groups, _projected, _reach
from privfit.statistics import TargetLattice, WeightedMonomials
from privfit.tables import open_table

LOSSES = [huber(0.3, 2, 1.0), huber(0.3, 3, 1.0), huber(0.3, 4, 1.0), poisson(4, 1.0), logistic(4, 1.0)]


def table_of(n: int, seed: int = 0) -> tuple[np.ndarray, Schema]:
    rng = np.random.default_rng(seed)
    table = np.column_stack([rng.uniform(-1, 1, (n, 2)), rng.integers(0, 2, n), rng.integers(0, 3, n)])
    score = 0.4 * table[:, 0] - 0.2 * table[:, 1] + 0.1 * table[:, 2] + 0.15 * (table[:, 3] == 1)
    target = np.clip(score + rng.normal(0, 0.2, n), -1, 1)
    features = [Numeric("a", -1, 1), Numeric("b", -1, 1), Category("s", [0, 1]), Category("c", [0, 1, 2])]
    return np.column_stack([table, target]), Schema(features, target=Numeric("y", -1, 1))


def summed(loss: PolynomialLoss, intercept: bool, n: int = 400) -> tuple[WeightedMonomials, np.ndarray, np.ndarray]:
    """The statistic, its exact values, and the encoded rows with their targets."""
    table, schema = table_of(n)
    geometry = schema.geometry(intercept=intercept)
    assert geometry.target is not None
    lattice = TargetLattice.of(geometry.target)
    statistic = WeightedMonomials.of(geometry, lattice, loss.coefficients(lattice.targets)[1:])
    sums = Rows(open_table(table), schema, geometry).sum(statistic)
    values = statistic.in_units_of_one(sums[statistic.released("add-remove")], 0, "add-remove")
    ones = [np.ones(n)] if intercept else []
    rows = np.column_stack(
        [
            *ones,
            table[:, 0],
            table[:, 1],
            2 * table[:, 2] - 1,
            *(table[:, 3] == level for level in range(3)),
            table[:, 4],
        ]
    )
    return statistic, values, rows


@pytest.mark.parametrize("loss", LOSSES, ids=str)
@pytest.mark.parametrize("intercept", [True, False])
def test_the_objective_is_the_sum_of_the_rows_polynomials(loss: PolynomialLoss, intercept: bool) -> None:
    statistic, values, rows = summed(loss, intercept)
    objective = Polynomial.of(statistic, values)
    rng = np.random.default_rng(1)
    for _ in range(5):
        weights = rng.uniform(-0.5, 0.5, rows.shape[1] - 1)
        z = rows[:, :-1] @ weights
        powers = z[None, :] ** np.arange(1, loss.degree + 1)[:, None]
        expected = float((powers * loss.coefficients(rows[:, -1])[1:]).sum())
        assert objective(weights)[0] == pytest.approx(expected, abs=0.01 * len(rows) ** 0.5), (
            "features are rounded to 1 / 128"
        )


def test_gradient_slope_and_curvature_are_those_of_the_objective() -> None:
    statistic, values, _ = summed(poisson(4, 1.0), True)
    objective = Polynomial.of(statistic, values)
    rng = np.random.default_rng(2)
    point, move = rng.normal(size=7), 1e-6 * rng.normal(size=7)
    ahead, behind = objective(point + move)[0], objective(point - move)[0]
    assert objective(point)[1] @ move == pytest.approx((ahead - behind) / 2, rel=1e-5)
    small = 1e-4 * rng.normal(size=7)
    assert objective(small)[0] == pytest.approx(objective.slope @ small + small @ objective.curvature @ small, abs=1e-8)


@pytest.mark.parametrize("loss", [poisson(4, 1.5), huber(0.5, 4, 1.5)], ids=str)
def test_the_descent_finds_the_minimum_over_the_set(loss: PolynomialLoss) -> None:
    """Against a general solver on the same convex polynomial, with the same constraint written out for every corner."""
    table, schema = table_of(2000)
    geometry = schema.geometry()
    assert geometry.target is not None
    lattice = TargetLattice.of(geometry.target)
    scaled = WeightedMonomials.of(geometry, lattice, loss.coefficients(lattice.targets, 0.0, 1.5)[1:])
    sums = Rows(open_table(table), schema, scaled.geometry).sum(scaled)
    values = scaled.in_units_of_one(sums, 0, "add-remove")
    found = minimise_polynomial(scaled, values, np.full(len(scaled.weightings), 1e-9))
    objective = Polynomial.of(scaled, values)
    corners = np.array(
        [[1.0, a, b, s, *np.eye(3)[level]] for a, b, s in itertools.product([-1, 1], repeat=3) for level in range(3)]
    )
    constraint = {"type": "ineq", "fun": lambda w: np.concatenate([1 - corners @ w, 1 + corners @ w])}
    best = minimize(
        lambda w: objective(w)[0],
        np.zeros(7),
        jac=lambda w: objective(w)[1],
        constraints=constraint,
        method="SLSQP",
        tol=1e-12,
    )
    reached = objective(np.concatenate([[found.intercept], found.weights]))[0]
    assert reached <= best.fun + 1e-4 * abs(best.fun)
    assert found.at_edge == (loss.link == "exp"), "counts below zero pull a logarithm of a mean to its edge"


def test_a_set_that_is_too_small_is_reported() -> None:
    table, schema = table_of(2000)
    geometry = schema.geometry()
    assert geometry.target is not None
    lattice = TargetLattice.of(geometry.target)
    loss = PolynomialLoss.fit(lambda z, y: (y - z) ** 2 + 0.001 * z**4, degree=4, interval=0.1)
    statistic = WeightedMonomials.of(geometry, lattice, loss.coefficients(lattice.targets, 0.0, 0.1)[1:])
    values = statistic.in_units_of_one(Rows(open_table(table), schema, geometry).sum(statistic), 0, "add-remove")
    found = minimise_polynomial(statistic, values, np.full(len(statistic.weightings), 1e-9))
    assert found.at_edge
    assert _reach(np.concatenate([[found.intercept], found.weights]), _groups(geometry)) <= 1 + 1e-9


def test_the_projection_is_the_nearest_point_of_the_set() -> None:
    _, schema = table_of(1)
    rng = np.random.default_rng(0)
    for intercept in (True, False):
        groups = _groups(schema.geometry(intercept=intercept))
        for _ in range(30):
            point = rng.normal(size=groups[-1].stop) * rng.uniform(0.1, 3)
            near = _projected(point, groups)
            assert _reach(near, groups) <= 1 + 1e-9
            np.testing.assert_allclose(_projected(near, groups), near, atol=1e-9)
            others = rng.normal(size=(200, len(point)))
            others = [other * rng.uniform() / max(_reach(other, groups), 1e-9) for other in others]
            others += [near + 0.1 * (other - near) for other in others]
            assert all((point - near) @ (other - near) <= 1e-9 for other in others), (
                "no feasible direction leads closer"
            )


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("degree", [2, 4])
def test_exact_sums_are_consistent_already_and_noisy_ones_come_closer(intercept: bool, degree: int) -> None:
    statistic, values, _ = summed(huber(0.3, degree, 1.0), intercept)
    everything = np.arange(len(values))
    np.testing.assert_allclose(consistent_sums(statistic, values, everything), values, atol=1e-6)
    rng = np.random.default_rng(0)
    noisy = values + rng.laplace(0, 5, len(values))
    better = consistent_sums(statistic, noisy, everything)
    assert np.linalg.norm(better - values) < np.linalg.norm(noisy - values)
    place = {value: i for i, value in enumerate(statistic.values)}
    levels = [place[0, (column,)] for column in range(3 + intercept, 6 + intercept)]
    if intercept:
        assert better[levels].sum() == pytest.approx(better[place[0, ()]])


def test_a_public_number_of_rows_stays_as_it_is() -> None:
    statistic, values, rows = summed(poisson(4, 1.0), True)
    released = statistic.released("replace-one")
    assert len(released) == len(values) - 1
    noisy = values.copy()
    noisy[released] += np.random.default_rng(0).laplace(0, 5, len(released))
    public = np.setdiff1d(np.arange(len(values)), released)
    better = consistent_sums(statistic, noisy, released)
    np.testing.assert_array_equal(better[public], len(rows))


@pytest.mark.parametrize("loss", LOSSES, ids=str)
@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("size", [1e-3, 1.0, 1e3, 1e6, 1e12])
def test_noise_of_any_size_leaves_weights_that_are_finite_and_bounded(
    loss: PolynomialLoss, intercept: bool, size: float
) -> None:
    statistic, values, _ = summed(loss, intercept, 50)
    rng = np.random.default_rng(int(np.log10(size)) + 9)
    for _ in range(4):
        noisy = consistent_sums(statistic, values + size * rng.laplace(size=len(values)), np.arange(len(values)))
        found = minimise_polynomial(statistic, noisy, np.full(len(statistic.weightings), size * np.sqrt(2)))
        whole = np.concatenate([[found.intercept], found.weights])
        assert np.isfinite(whole).all()
        assert np.abs(whole).max() < 30
        if statistic.degree > 2:
            assert np.abs(whole).max() <= 1 + 1e-9


def test_a_drowned_fit_stays_near_zero() -> None:
    statistic, values, _ = summed(poisson(4, 1.0), True, 50)
    rng = np.random.default_rng(3)
    sizes = []
    for _ in range(20):
        noisy = values + 1e5 * rng.laplace(size=len(values))
        found = minimise_polynomial(statistic, noisy, np.full(len(statistic.weightings), 1e5 * np.sqrt(2)))
        sizes.append(np.linalg.norm(found.weights))
    assert np.median(sizes) < 0.1
