"""Bands of curves: the sums that they are made of by brute force, the matrices by loops over rows, and coverage."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import privfit as pf
from privfit.losses import SQUARED, tapered_huber
from privfit.mechanisms import ObjectiveRegression, QuadraticProblem
from privfit.mechanisms.base import PublicFacts
from privfit.mechanisms.perturbation.precision import minimised
from privfit.mechanisms.perturbation.quantile import QuantileObjective
from privfit.mechanisms.perturbation.regression_weights import TAPER
from privfit.mechanisms.perturbation.shape_bands import (
    SUM_UNIT,
    LeastCurvature,
    centred,
    contrasts,
    curvature_part,
    curvature_sums,
    least_hessian,
)
from privfit.privacy import Budget, PrivacyParameters, SeededNoise
from privfit.rows import CachedDesign, Rows
from privfit.tables import open_table

ADJACENCIES = ("replace-one", "add-remove")
SCHEMA = pf.Schema(
    [pf.Numeric("n", 0, 7), pf.Category("s", [0, 1]), pf.Category("c", list("abc"))], target=pf.Numeric("y", -1, 1)
)
PROBLEM = QuadraticProblem(SQUARED)
GEOMETRY = ObjectiveRegression().geometry(SCHEMA, PROBLEM, "splines")


def design_of(rows: list[tuple]) -> CachedDesign:
    return CachedDesign(Rows(open_table(np.array(rows, dtype=object)), SCHEMA, GEOMETRY))


def facts(adjacency: str = "replace-one", people: int = 1) -> PublicFacts:
    return PublicFacts(GEOMETRY, PrivacyParameters(Budget(1.0), adjacency, people), 100)  # type: ignore[arg-type]


def random_rows(rng: np.random.Generator, rows: int) -> list[tuple]:
    return [
        (rng.uniform(0, 7), int(rng.integers(2)), "abc"[rng.integers(3)], float(rng.uniform(-1, 1)))
        for _ in range(rows)
    ]


@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("people", [1, 2])
def test_no_person_changes_the_sums_by_more_than_claimed(adjacency: str, people: int) -> None:
    part, curvature = curvature_part(facts(adjacency, people)), LeastCurvature(TAPER, 0.0, 1.0)
    weights, stay = np.zeros((GEOMETRY.n_columns, 1)), [(3.3, 0, "b", 0.9)]
    rows = [(n, s, c, y) for n in (0, 7, 3.7) for s in (0, 1) for c in "ac" for y in (0.0, 0.6)]
    sums = {row: curvature_sums(design_of(stay + [row] * people), weights, curvature) for row in rows}
    alone = curvature_sums(design_of(stay), weights, curvature)
    if adjacency == "replace-one":
        worst = max(int(np.abs(one - other).sum()) for one in sums.values() for other in sums.values())
    else:
        worst = max(int(np.abs(one - alone).sum()) for one in sums.values())
    assert worst == part.sensitivity  # and no less: the claim is tight
    assert worst > replace(part, sensitivity=int(0.9 * part.sensitivity)).sensitivity


def test_a_row_adds_the_same_whatever_stands_beside_it() -> None:
    rng = np.random.default_rng(0)
    rows, curvature = random_rows(rng, 200), LeastCurvature(TAPER, 0.1, 0.3)
    weights = rng.normal(0, 1, (GEOMETRY.n_columns, 1))
    alone = sum(curvature_sums(design_of([row]), weights, curvature) for row in rows)
    np.testing.assert_array_equal(alone, curvature_sums(design_of(rows), weights, curvature))
    assert (curvature_sums(design_of(rows), weights * 1e30, curvature) == 0).all()


def test_curvatures_are_those_of_the_loss_rounded_down_to_eighths() -> None:
    scores, target = np.linspace(-3, 3, 1001), np.full(1001, 0.2)
    rounded, loss = LeastCurvature(TAPER, 0.1, 0.5)(scores, target), tapered_huber(TAPER, 0.1, 0.5)
    exact = loss.curvature(scores, target)
    assert (rounded <= exact + 1e-12).all()
    assert (exact - rounded <= 1 / 8 + 1e-12).all()
    assert set(rounded * 8) <= set(range(9))


def test_matrices_of_levels_are_those_of_the_rows_and_of_curves_where_rows_are_even() -> None:
    rng = np.random.default_rng(1)
    rows = random_rows(rng, 40_000)
    weights, curvature = np.zeros((GEOMETRY.n_columns, 1)), LeastCurvature(TAPER, 0.0, 1.0)
    sums = curvature_sums(design_of(rows), weights, curvature) / SUM_UNIT
    dense = design_of(rows)
    encoded = np.concatenate([dense._dense(one) for one in dense._every_chunk()])
    bend = np.concatenate([curvature(np.zeros(len(one.target)), one.target) for one in dense._every_chunk()])
    for block in GEOMETRY.blocks:
        own = encoded[:, block.start : block.stop]
        mean = (bend @ own) / bend.sum()
        exact = (own - mean).T @ ((own - mean) * bend[:, None])
        found, basis = least_hessian(block, sums, 0.0, GEOMETRY), contrasts(block)
        apart = basis.T @ (exact - found) @ basis / max(float(np.abs(exact).max()), 1.0)
        assert np.abs(apart).max() < (0.03 if block.kind == "spline" else 1e-9)


def test_less_is_counted_on_where_sums_are_noisy() -> None:
    sums = np.full(GEOMETRY.n_columns, 500.0)
    for block in GEOMETRY.blocks:
        calm, noisy = (least_hessian(block, sums, sd, GEOMETRY) for sd in (0.0, 100.0))
        assert np.linalg.eigvalsh(calm - noisy).min() > -1e-9
        assert np.abs(least_hessian(block, sums, 1e6, GEOMETRY)).max() == 0


def test_curves_without_noise_are_held_curve_by_curve() -> None:
    """Correlated columns, in a small form of papers/experiments/bands.py."""
    rng, mechanism = np.random.default_rng(2), ObjectiveRegression(bands=True)
    n = rng.uniform(0, 7, 20_000)
    c = np.clip((n + rng.normal(0, 1.5, len(n))) / 7 * 3, 0, 2.99).astype(int)
    s, y = rng.integers(0, 2, len(n)), np.clip(0.1 * n - 0.3 + 0.1 * c + rng.normal(0, 0.2, len(n)), -1, 1)
    table = np.column_stack([n.astype(object), s, np.array(list("abc"))[c], y])
    rows = Rows(open_table(table), SCHEMA, GEOMETRY)
    design, parameters = CachedDesign(rows), PrivacyParameters(Budget(1.0))
    plan = mechanism.plan(PublicFacts(GEOMETRY, parameters, len(n)), PROBLEM)
    assert plan.weights.certificate is not None
    held = []
    for seed in range(12):
        fit = mechanism.release(rows, parameters, None, SeededNoise(seed), PROBLEM).value
        own = plan.steps.at(plan.weights, fit.centre, fit.threshold, plan.weights.certificate.unit)
        calm = minimised(own, design, np.zeros((GEOMETRY.n_columns, 1)))[:, 0] * fit.threshold
        assert fit.bands is not None
        for block in GEOMETRY.blocks:
            own_columns = slice(block.start, block.stop)
            apart = centred(block) @ (fit.weights - calm)[own_columns]
            held.append((block.column.name, float(np.mean(np.abs(apart) <= fit.bands[own_columns]))))
            assert fit.bands[own_columns].max() < 0.3
    for name in "nsc":
        assert np.mean([share for own_name, share in held if own_name == name]) >= 0.9


def test_a_quantile_has_no_bands_to_buy() -> None:
    with pytest.raises(pf.PrivacyError, match="bands=True"):
        QuantileObjective(bands=True).check()
