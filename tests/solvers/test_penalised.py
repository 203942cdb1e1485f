"""The penalised solver: scikit-learn's answers, and a gap that is a true bound."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.linear_model import ElasticNet, Lasso, Ridge

import privfit as pf
from privfit.solvers import minimise_penalised, shown_columns
from privfit.solvers.penalised import TOLERANCE, duality_gap


def problem(n: int, d: int, seed: int):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) @ rng.normal(size=(d, d))
    y = X @ (rng.normal(size=d) * (rng.uniform(size=d) < 0.4)) + rng.normal(size=n)
    X, y = X - X.mean(axis=0), y - y.mean()
    return X, y, X.T @ X, np.linalg.lstsq(X, y, rcond=None)[0]


def objective(Q, start, l1, l2, c) -> float:
    return float((c - start) @ Q @ (c - start)) / 2 + float(l1 @ np.abs(c)) + float(l2 @ c**2) / 2


@pytest.mark.parametrize("d", [1, 4, 25])
@pytest.mark.parametrize(("alpha", "ratio"), [(0.5, 1.0), (0.05, 0.5), (3.0, 0.9)])
def test_lasso_and_elastic_net_agree_with_scikit_learn(d: int, alpha: float, ratio: float) -> None:
    n = 400
    X, y, Q, start = problem(n, d, d)
    found = minimise_penalised(Q, start, np.full(d, n * alpha * ratio), np.full(d, n * alpha * (1 - ratio)))
    kind = Lasso(alpha=alpha, fit_intercept=False, tol=1e-12, max_iter=100_000)
    if ratio < 1:
        kind = ElasticNet(alpha=alpha, l1_ratio=ratio, fit_intercept=False, tol=1e-12, max_iter=100_000)
    np.testing.assert_allclose(found.coefficients, kind.fit(X, y).coef_, atol=1e-6)
    assert found.gap <= TOLERANCE


def test_ridge_agrees_with_scikit_learn() -> None:
    X, y, Q, start = problem(300, 6, 0)
    found = minimise_penalised(Q, start, np.zeros(6), np.full(6, 50.0))
    np.testing.assert_allclose(found.coefficients, Ridge(alpha=50.0, fit_intercept=False).fit(X, y).coef_, atol=1e-9)


@given(st.integers(0, 10_000), st.integers(1, 6), st.floats(0, 2), st.floats(0, 2))
@settings(max_examples=60)
def test_the_gap_is_never_less_than_the_true_distance(seed: int, d: int, l1: float, l2: float) -> None:
    """At any point, not only at the end: the certificate does not depend on how the point was found."""
    rng = np.random.default_rng(seed)
    _, _, Q, start = problem(50, d, seed)
    strengths = np.full(d, 50 * l1) * rng.uniform(0.5, 1.5, d), np.full(d, 50 * l2)
    best = minimise_penalised(Q, start, *strengths)
    least = objective(Q, start, *strengths, best.coefficients)
    curved = Q + np.diag(strengths[1])
    centre = np.linalg.lstsq(curved, Q @ start, rcond=None)[0]
    for _ in range(5):
        c = best.coefficients + rng.normal(size=d) * rng.choice([0.001, 0.1, 1.0])
        excess = objective(Q, start, *strengths, c) - least
        assert duality_gap(curved, centre, strengths[0], c) >= excess - 1e-9 * (1 + abs(excess))


def test_each_column_can_have_its_own_penalty() -> None:
    _, _, Q, start = problem(400, 3, 5)
    found = minimise_penalised(Q, start, np.array([0.0, 1e9, 0.0]), np.zeros(3))
    assert found.coefficients[1] == 0
    assert np.all(found.coefficients[[0, 2]] != 0)


def test_columns_that_add_up_to_nothing_are_no_trouble() -> None:
    """One column per level: the matrix is singular."""
    rng = np.random.default_rng(3)
    X = np.eye(5)[rng.integers(0, 5, 500)]
    y = X @ [1.0, 0.5, 0.0, 0.0, -2.0] + rng.normal(0, 0.3, 500)
    X, y = X - X.mean(axis=0), y - y.mean()
    found = minimise_penalised(X.T @ X, np.linalg.lstsq(X, y, rcond=None)[0], np.full(5, 10.0), np.zeros(5))
    kind = Lasso(alpha=10 / 500, fit_intercept=False, tol=1e-13, max_iter=100_000).fit(X, y)
    np.testing.assert_allclose(X @ found.coefficients, X @ kind.coef_, atol=1e-6)
    assert found.gap <= TOLERANCE


def test_nothing_explained_gives_nothing() -> None:
    found = minimise_penalised(np.zeros((3, 3)), np.zeros(3), np.ones(3), np.ones(3))
    np.testing.assert_array_equal(found.coefficients, 0.0)


def test_shown_columns_are_the_ones_a_person_sees() -> None:
    schema = pf.Schema(
        [pf.Numeric("a", 10, 30), pf.Category("s", [0, 1]), pf.Category("c", list("xyz"))], target=pf.Numeric("y", 0, 1)
    )
    geometry = schema.geometry()
    expected = np.zeros((6, 5))
    expected[0, 0], expected[1:3, 1], expected[3:, 2:] = 10.0, (-0.5, 0.5), np.eye(3)
    np.testing.assert_array_equal(shown_columns(geometry), expected)
