"""Matrices that are bought beside an objective: sensitivity by brute force, exact sums, and the sandwich."""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import pytest

import privfit as pf
from privfit.losses import SQUARED
from privfit.mechanisms import QuadraticProblem
from privfit.mechanisms.base import PublicFacts
from privfit.mechanisms.perturbation.bought_moments import (
    MomentPart,
    distinct_places,
    free_directions,
    shown_coefficients,
)
from privfit.mechanisms.perturbation.certainty import Certainty, ellipse
from privfit.mechanisms.perturbation.regression import ObjectiveRegression
from privfit.mechanisms.perturbation.sandwich import Sandwich
from privfit.privacy import Budget, PrivacyParameters
from privfit.privacy.parts import KNorm, Laplace
from privfit.rows import MOMENT_UNIT, CachedDesign, Rows, response_moments
from privfit.schema import Geometry
from privfit.tables import open_table

MIXED = pf.Schema(
    [pf.Numeric("n", 0, 9), pf.Category("s", [0, 1]), pf.Category("c", list("abc"))], target=pf.Numeric("y", -1, 1)
)
NUMBERS = pf.Schema([pf.Numeric("n", 0, 9), pf.Numeric("m", 0, 9)], target=pf.Numeric("y", -1, 1))
GAPS = pf.Schema([pf.Numeric("n", 0, 9, fill="missing"), pf.Category("s", [0, 1])], target=pf.Numeric("y", -1, 1))
LEVELS = pf.Schema([pf.Category("c", list("abc")), pf.Category("d", list("uvw"))], target=pf.Numeric("y", -1, 1))
MENUS = {
    MIXED: ((0, 3.3, 9), (0, 1), "ac", (-1.0, 1.0)),
    NUMBERS: ((0, 3.3, 9), (0, 9), (-1.0, 1.0)),
    LEVELS: ("ab", "uv", (-1.0, 1.0)),
    GAPS: ((0, 3.3, 9, None), (0, 1), (-1.0, 1.0)),
}


def answer(scores: np.ndarray, target: np.ndarray) -> np.ndarray:
    """1 for rows with a large target, 0 for others: what changes most."""
    return (target > 0).astype(np.float64)


def geometry_of(schema: pf.Schema, numeric: str) -> Geometry:
    return ObjectiveRegression().geometry(schema, QuadraticProblem(SQUARED), numeric)  # type: ignore[arg-type]


def design_of(rows: list[tuple], schema: pf.Schema, numeric: str = "slope") -> CachedDesign:
    return CachedDesign(Rows(open_table(np.array(rows, dtype=object)), schema, geometry_of(schema, numeric)))


def summed(rows: list[tuple], schema: pf.Schema, numeric: str) -> np.ndarray:
    design = design_of(rows, schema, numeric)
    weights = np.linspace(-1, 1, design.n_columns)[:, None]
    return response_moments(design, weights, answer)


def planned(schema: pf.Schema, numeric: str, adjacency: str, people: int = 1) -> MomentPart:
    parameters = PrivacyParameters(Budget(1.0), adjacency, people)  # type: ignore[arg-type]
    return MomentPart.planned(PublicFacts(geometry_of(schema, numeric), parameters, 100), Fraction(1, 5), "test")


def largest_changes(schema: pf.Schema, numeric: str, adjacency: str) -> tuple[int, int]:
    """The largest L1 and L-infinity change of the sums, over all pairs of rows or rows alone."""
    places = distinct_places(geometry_of(schema, numeric))
    added = [summed([row], schema, numeric)[places] for row in itertools.product(*MENUS[schema])]
    if adjacency == "add-remove":
        added, others = added, [np.zeros_like(added[0])]
    else:
        others = added
    changes = [one - other for one in added for other in others]
    return max(int(np.abs(own).sum()) for own in changes), max(int(np.abs(own).max()) for own in changes)


CASES = [
    (MIXED, "slope", "replace-one"),
    (MIXED, "slope", "add-remove"),
    (MIXED, "splines", "replace-one"),
    (NUMBERS, "slope", "replace-one"),
    (NUMBERS, "splines", "add-remove"),
    (GAPS, "splines", "replace-one"),
    (LEVELS, "slope", "replace-one"),
]


@pytest.mark.parametrize(("schema", "numeric", "adjacency"), CASES)
def test_no_row_changes_the_sums_by_more_than_claimed(schema: pf.Schema, numeric: str, adjacency: str) -> None:
    geometry, times = geometry_of(schema, numeric), 2 if adjacency == "replace-one" else 1
    entries = geometry.n_blocks + geometry.intercept
    claimed = times * MOMENT_UNIT * entries * (entries + 1) // 2, times * MOMENT_UNIT
    changes = largest_changes(schema, numeric, adjacency)
    assert changes[0] <= claimed[0]
    assert changes[1] <= claimed[1]
    part = planned(schema, numeric, adjacency).part
    assert part.sensitivity == claimed[0 if isinstance(part, Laplace) else 1]
    # claims without the squares of columns, or without rows that enter, would be too small: this search catches them
    if adjacency == "add-remove" or not any(block.width == 1 for block in geometry.blocks):
        assert changes[0] == claimed[0]
    if geometry.intercept and adjacency == "replace-one":
        assert changes[1] == claimed[1]


def test_persons_with_several_rows_change_more() -> None:
    one, three = (planned(MIXED, "slope", "replace-one", people).part for people in (1, 3))
    assert three.sensitivity == 3 * one.sensitivity
    assert three.scale == pytest.approx(3 * one.scale)
    assert isinstance(planned(pf.Schema.box(-1, 1, n_features=8, target=(-1, 1)), "slope", "replace-one").part, KNorm)


def test_sums_are_exact_and_the_same_in_any_order() -> None:
    rng = np.random.default_rng(0)
    rows = [(n, int(s), c, y) for n, s, c, y in zip(rng.uniform(0, 9, 300), rng.integers(0, 2, 300), "abc" * 100,
                                                    rng.choice([-1.0, 1.0], 300), strict=True)]  # fmt: skip
    whole, backwards = (summed(list(own), MIXED, "splines") for own in (rows, reversed(rows)))
    one_by_one = sum(summed([row], MIXED, "splines") for row in rows)
    assert np.array_equal(whole, backwards)
    assert np.array_equal(whole, one_by_one)
    assert np.array_equal(whole, whole.T)
    kept = np.zeros_like(whole)
    places = distinct_places(geometry_of(MIXED, "splines"))
    kept[places] = whole[places]
    assert np.array_equal(np.triu(whole), kept)  # nothing is left out that a row can add


def test_weights_that_are_too_long_have_no_sums() -> None:
    design = design_of([(3.0, 1, "a", 1.0)], MIXED)
    assert not response_moments(design, np.full((design.n_columns, 1), 1e300), answer).any()


@pytest.mark.parametrize("schema", [MIXED, NUMBERS])
def test_directions_span_what_a_fit_can_have_and_coefficients_follow(schema: pf.Schema) -> None:
    geometry = geometry_of(schema, "splines")
    basis = free_directions(geometry)
    assert np.allclose(basis.T @ basis, np.eye(basis.shape[1]))
    sums = np.array([basis[block.start : block.stop].sum(axis=0) for block in geometry.blocks if block.width > 1])
    assert np.allclose(sums, sums[0])
    assert basis.shape[1] == geometry.n_columns - len(sums) + 1
    shown = shown_coefficients(geometry, centred=True)
    weights = basis @ np.arange(1.0, basis.shape[1] + 1)
    coef = shown @ weights
    wide = [block for block in geometry.blocks if block.width > 1]
    assert coef[: wide[0].width].sum() == pytest.approx(0.0, abs=1e-9)
    assert coef[-1] == pytest.approx(sum(weights[block.start : block.stop].mean() for block in wide))


def test_a_penalty_is_undone_and_directions_that_noise_hides_are_named() -> None:
    rng = np.random.default_rng(1)
    x = rng.uniform(-1, 1, (5_000, 3))
    x[:, 2] = x[:, 1] + 0.001 * rng.standard_normal(5_000)
    hessian, truth = x.T @ x, np.array([1.0, 0.5, -0.5])
    ridge = 200.0
    shrunk = np.linalg.solve(hessian + ridge * np.eye(3), hessian @ truth)
    exact = Sandwich(np.eye(3), hessian, 0.0)
    assert np.allclose(exact.debiased(shrunk, ridge * shrunk), shrunk + np.linalg.solve(hessian, ridge * shrunk))
    noisy = Sandwich(np.eye(3), hessian, 10.0)
    assert noisy.identified(np.eye(3)).tolist() == [True, False, False]
    assert noisy.identified(np.array([[0.0, 1.0, 1.0]])).all()  # their sum is
    covariance = sum(exact.covariances(np.zeros((3, 3)), 4 * np.eye(3), np.zeros(3)))
    assert np.allclose(covariance, 4 * np.linalg.inv(hessian) @ np.linalg.inv(hessian), rtol=1e-6)
    assert all(np.all(np.diag(own) >= 0) for own in noisy.covariances(-np.eye(3), np.eye(3), np.ones(3)))


def test_covariances_are_finite_where_noise_hides_every_row() -> None:
    bread = np.array([[-300.0, 500.0], [500.0, -400.0]])  # no column has a positive sum, and one direction is known
    sandwich = Sandwich(np.eye(2), bread, 50.0)
    assert sandwich.inverse()[1].shape[1] == 1
    known = Certainty.of(sandwich, np.ones(2), np.full(2, 1e4), np.eye(2), 1.0, np.eye(2), 0.1, np.eye(2), 1.0)
    assert np.isfinite(known.covariance).all()
    assert ellipse(known.covariance).shape[1] > 0
