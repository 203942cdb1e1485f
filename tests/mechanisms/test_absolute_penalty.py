"""Penalties on absolute values in a perturbed objective: the lemma's claims, densities of neighbours, and what lasso
and elastic net make of them.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from mpmath import mp, mpf
from sklearn.linear_model import ElasticNet as SklearnElasticNet
from sklearn.linear_model import Lasso as SklearnLasso

import privfit as pf
from privfit.mechanisms import ObjectiveRegression
from privfit.mechanisms.perturbation.absolute_penalty import AbsolutePenalty
from privfit.mechanisms.perturbation.defaults import FOR_CERTIFICATE
from privfit.mechanisms.perturbation.precision import minimised
from privfit.mechanisms.perturbation.problem import ERMPlan
from privfit.schema import RowNorms
from privfit.solvers import Penalty
from tests.mechanisms.test_regression import MIXED, PAIRS, PROBLEM, design_of, planned, worst_loss

NORMS = RowNorms.of(ObjectiveRegression().geometry(MIXED, PROBLEM))
PENALTY = AbsolutePenalty(NORMS, (3.0, 0.0), (2.0, 0.0), (5.0, 0.3), (40.0, 0.0), 1000.0)
ADJACENCIES = ("replace-one", "add-remove")
GROUPS = pf.Schema(
    [pf.Numeric("x", 0, 9), pf.Numeric("z", 0, 9), pf.Category("g", list("abcd")), pf.Category("s", [0, 1])]
)


def weights_like(seed: int, size: float) -> np.ndarray:
    return np.random.default_rng(seed).normal(0, size, (NORMS.columns, 1))


@pytest.mark.parametrize("size", [1e-6, 1e-3, 0.1, 3.0, 1e4])
def test_the_gradient_is_that_of_the_penalty_in_equal_block_sums_and_monotone(size: float) -> None:
    one, other = weights_like(0, size), weights_like(1, size)
    first, second = PENALTY.gradient(one), PENALTY.gradient(other)
    for start, stop in NORMS.blocks:
        assert abs(first[start:stop].sum()) <= PENALTY.rounding_at_zero + PENALTY.rounding * np.linalg.norm(one)
    assert float(((one - other) * (first - second)).sum()) >= 0
    assert np.linalg.norm(first - second) <= PENALTY.largest * np.linalg.norm(one - other) * (1 + 1e-9)
    assert np.abs(PENALTY.gradient(np.zeros_like(one))).max() == 0


@pytest.mark.parametrize("size", [1e-3, 0.02, 0.3, 3.0])
def test_the_hessian_is_the_derivative_of_the_gradient(size: float) -> None:
    weights = weights_like(2, size)
    hessian, step = PENALTY.hessian(weights), 1e-7 * size
    for column in range(NORMS.columns):
        moved = weights.copy()
        moved[column] += step
        back = weights.copy()
        back[column] -= step
        found = (PENALTY.gradient(moved) - PENALTY.gradient(back))[:, 0] / (2 * step)
        np.testing.assert_allclose(found, hessian[:, column], rtol=1e-4, atol=1e-5 * PENALTY.largest)
    values = np.linalg.eigvalsh(hessian)
    assert values.min() >= -1e-9
    assert values.max() <= PENALTY.largest * (1 + 1e-12)


def exact_gradient(weights: np.ndarray) -> list[Any]:
    """The gradient of the absolute part with 60 digits."""
    own = [mpf(float(w)) for w in weights[:, 0]]

    def slope(t: Any, strength: float) -> Any:
        bent = mpf(PENALTY.curvature) * t
        return mpf(strength) * bent / mp.sqrt(bent**2 + mpf(strength) ** 2) if strength else mpf(0)

    found = [mpf(0)] * len(own)
    for column, strength in zip(NORMS.singles, PENALTY.absolute_on_singles, strict=True):
        found[column] = slope(own[column], strength)
    for (start, stop), strength in zip(NORMS.blocks, PENALTY.absolute_on_blocks, strict=True):
        block = own[start:stop]
        low, high = min(block), max(block)
        for _ in range(220):
            middle = (low + high) / 2
            low, high = (middle, high) if sum(slope(w - middle, strength) for w in block) > 0 else (low, middle)
        found[start:stop] = [slope(w - low, strength) for w in block]
    return found


@pytest.mark.parametrize("size", [0.0, 1e-9, 1e-3, 1.0, 1e6])
def test_rounding_moves_the_gradient_no_further_than_stated(size: float) -> None:
    only = replace(PENALTY, on_blocks=(0.0, 0.0), on_singles=(0.0, 0.0))
    with mp.workdps(60):
        for seed in range(20):
            weights = weights_like(seed, size) + np.array([0, 7.0, -3.0, 1e3])[seed % 4] * size
            far = [
                mpf(float(own)) - exact
                for own, exact in zip(only.gradient(weights)[:, 0], exact_gradient(weights), strict=True)
            ]
            off = float(mp.sqrt(sum(d**2 for d in far)))
            assert off <= only.rounding_at_zero + only.rounding * np.linalg.norm(weights)


def plan_with(strength: float, threshold: float = 0.3, **given: Any) -> ERMPlan:
    """A plan of the weights with penalties of this strength, in units of the threshold."""
    penalty = Penalty(strength, 0.7, ridge=False)
    plan = planned(MIXED, problem=replace(PROBLEM, penalty=penalty), **given)
    return plan.steps.at(plan.weights, 0.05, threshold)


@pytest.mark.parametrize("strength", [1e-3, 0.1, 100.0])
@pytest.mark.parametrize("noise", ["auto", "laplace"])
@pytest.mark.parametrize("people", [1, 2])
def test_no_weights_are_much_likelier_for_one_neighbour(strength: float, noise: str, people: int) -> None:
    stay = [(5, 0, "c", "w", 0.3), (1, 1, "d", "u", -0.2)]
    plan = plan_with(strength, people=people, rows=2 + people, noise=noise)
    assert isinstance(plan.penalty, AbsolutePenalty)
    for leave, enter in PAIRS:
        left, right = (design_of(stay + own * people, MIXED) for own in (leave, enter))
        claimed = plan.facts.parameters.budget.epsilon * (1 - FOR_CERTIFICATE)
        assert worst_loss(plan, left, right) <= claimed * (1 + 1e-9)


def test_the_attack_comes_close_and_catches_less_noise_and_less_ridge() -> None:
    plan = plan_with(0.1, rows=1, epsilon=0.5)
    claimed = plan.facts.parameters.budget.epsilon * (1 - FOR_CERTIFICATE)
    left, right = design_of(PAIRS[0][0], MIXED), design_of(PAIRS[0][1], MIXED)
    assert 0.9 * claimed < worst_loss(plan, left, right) <= claimed * (1 + 1e-9)
    assert worst_loss(plan, left, right, kind_scale=1.12) > claimed
    assert isinstance(plan.penalty, AbsolutePenalty)
    less = replace(plan.penalty, on_blocks=(0.0, 0.0), on_singles=(0.0, 0.0))
    assert worst_loss(replace(plan, ridge=plan.ridge / 300, penalty=less), left, right) > claimed


@pytest.mark.parametrize("strength", [1e-3, 0.05])
def test_the_minimum_is_certified(strength: float) -> None:
    rng = np.random.default_rng(2)
    rows = [
        (rng.uniform(0, 9), int(rng.integers(2)), "abcd"[rng.integers(4)], "uvw"[rng.integers(3)], rng.uniform(-1, 1))
        for _ in range(400)
    ]
    design, own = design_of(rows, MIXED), plan_with(strength, rows=400, epsilon=5.0)
    term = rng.normal(0, 5, (own.gradients.norms.columns, 1))
    weights = minimised(own, design, term)
    slopes = own.gradients.row_slopes
    left = design.gradient(weights, slopes, own.gradients.slope_norm["linf"]) + own.penalised(weights) + term
    assert np.linalg.norm(left) <= own.precision.slack


@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("alpha", [1e-12, 0.01, 1e12])
@pytest.mark.parametrize("rows", [1, 300, 10**6])
def test_every_threshold_has_a_plan(adjacency: str, alpha: float, rows: int) -> None:
    guess = {} if adjacency == "replace-one" else {"guess": rows}
    problem = replace(PROBLEM, penalty=Penalty(alpha, 0.5, ridge=False))
    plan = planned(MIXED, adjacency=adjacency, rows=rows, problem=problem, **guess)
    assert plan.weights.certificate is not None
    for threshold in (1.0, 0.1, 1 / 8192):
        own = plan.steps.at(plan.weights, -1.0, threshold, plan.weights.certificate.unit)
        assert own.precision.solves
        assert own.ridge >= plan.weights.ridge


# -- what lasso and elastic net make of it ---------------------------------------------------------


def grouped(rows: int = 30_000) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """A table, its columns one per level, and a target that two of the four columns matter to."""
    rng = np.random.default_rng(3)
    x, z, group, sign = (
        rng.uniform(0, 9, rows),
        rng.uniform(0, 9, rows),
        rng.integers(0, 4, rows),
        rng.integers(0, 2, rows),
    )
    y = 0.1 * x + np.array([0.0, 0.5, -0.5, 0.02])[group] + rng.normal(0, 0.1, rows)
    table = np.column_stack([x.astype(object), z, np.array(list("abcd"))[group], sign])
    levels = [*(group == own for own in range(4)), sign == 0, sign == 1]
    return table, np.column_stack([x, z, *levels]).astype(float), y


def fitted(estimator: type, table: np.ndarray, y: np.ndarray, **given: Any) -> Any:
    schema = pf.Schema(GROUPS.features, target=pf.Numeric("y", -3, 5))
    return estimator(**{"schema": schema, "mechanism": "objective", "random_state": 0, **given}).fit(table, y)


@pytest.mark.parametrize("alpha", [0.01, 0.1])
@pytest.mark.parametrize("units", ["table", "scaled"])
def test_it_is_the_lasso_of_scikit_learn_where_noise_is_small(alpha: float, units: str) -> None:
    table, columns, y = grouped()
    sizes, half = (np.array([4.5, 4.5, 1, 1, 1, 1, 0.5, 0.5]), 4.0) if units == "scaled" else (np.ones(8), 1.0)
    alpha = alpha / half**2
    model = fitted(pf.Lasso, table, y, epsilon=200.0, alpha=alpha, penalty_units=units)
    plain = SklearnLasso(alpha=alpha, tol=1e-9, max_iter=100_000).fit(columns / sizes, y / half)
    np.testing.assert_allclose(model.coef_, plain.coef_ * half / sizes, atol=3e-3)
    assert np.array_equal(model.coef_ == 0, np.abs(plain.coef_) < 1e-9)
    assert model.alpha_ == alpha


def test_it_is_the_elastic_net_of_scikit_learn_where_noise_is_small() -> None:
    table, columns, y = grouped()
    model = fitted(pf.ElasticNet, table, y, epsilon=200.0, alpha=0.05, l1_ratio=0.6)
    plain = SklearnElasticNet(alpha=0.05, l1_ratio=0.6, tol=1e-9, max_iter=100_000).fit(columns, y)
    np.testing.assert_allclose(model.coef_, plain.coef_, atol=4e-3)
    assert model.alpha_ == 0.05


def test_a_large_alpha_leaves_the_mean() -> None:
    table, _, y = grouped(5000)
    model = fitted(pf.Lasso, table, y, epsilon=1.0, alpha=100.0)
    assert not np.any(model.coef_)
    assert model.intercept_ == pytest.approx(np.mean(y), abs=0.2)


def test_an_automatic_alpha_makes_columns_zero_that_do_not_matter() -> None:
    table, _, y = grouped()
    model = fitted(pf.Lasso, table, y, epsilon=0.2)
    assert model.coef_[0] == pytest.approx(0.1, abs=0.02)
    assert np.ptp(model.coef_[2:6]) > 0.8
    assert not np.any(model.coef_[[1, 6, 7]])
    assert np.shape(model.alpha_) == (8,)
    assert np.min(model.alpha_) > 0


def test_an_alpha_per_row_needs_a_public_number_of_rows() -> None:
    table, _, y = grouped(500)
    ledger, given = pf.Ledger(epsilon=1.0), {"alpha": 0.01, "epsilon": 0.5, "random_state": None}
    with pytest.raises(pf.PrivacyError, match="private number of rows"):
        fitted(pf.Lasso, table, y, adjacency="add-remove", ledger=ledger, **given)
    schema = pf.Schema(GROUPS.features, target=pf.Numeric("y", -3, 5))
    weighted = pf.Lasso(0.5, schema=schema, alpha=0.01, mechanism="objective", max_weight=1.0, ledger=ledger)
    with pytest.raises(pf.PrivacyError, match="weights of rows"):
        weighted.fit(table, y, sample_weight=np.ones(len(y)))
    assert ledger.spent == 0
    fitted(pf.Lasso, table, y, adjacency="add-remove", expected_rows=600, ledger=ledger, **given)
    fitted(pf.Lasso, table, y, adjacency="add-remove", ledger=ledger, **{**given, "alpha": "auto"})


def test_a_selected_alpha_takes_moments() -> None:
    table, _, y = grouped(500)
    with pytest.raises(pf.PrivacyError, match="objective"):
        fitted(pf.Lasso, table, y, alpha="select")
