"""The projection on what must add up: exact moments stay, noisy ones get better, and everything adds up."""

from __future__ import annotations

import numpy as np
import pytest

import privfit as pf
from privfit.rows import Rows
from privfit.solvers.consistency import _constraints, project
from privfit.statistics import Moments
from privfit.tables import open_table


def setup(intercept: bool, adjacency: str):
    rng = np.random.default_rng(0)
    n = 400
    table = np.column_stack(
        [
            rng.integers(0, 4, n),
            rng.integers(0, 3, n),
            rng.uniform(-1, 1, n),
            rng.integers(0, 2, n),
            rng.uniform(-1, 1, n),
        ]
    )
    features = [
        pf.Category("a", [0, 1, 2, 3]),
        pf.Category("b", [0, 1, 2]),
        pf.Numeric("x", -1, 1),
        pf.Category("s", [0, 1]),
    ]
    schema = pf.Schema(features, target=pf.Numeric("y", -1, 1))
    geometry = schema.geometry(intercept=intercept)
    moments = Moments(geometry)
    sums = Rows(open_table(table), schema, geometry).sum(moments)
    products, counted, _ = moments.unpack(moments.distinct(sums, n, adjacency).astype(float), adjacency)
    values = products if counted is None else np.append(products, counted)
    return values, geometry, (float(n) if adjacency == "replace-one" else None)


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("adjacency", ["replace-one", "add-remove"])
def test_exact_moments_are_consistent_and_noisy_ones_become_so(intercept, adjacency) -> None:
    values, geometry, n = setup(intercept, adjacency)
    np.testing.assert_allclose(project(values, geometry, n), values, atol=1e-6)
    rng = np.random.default_rng(1)
    noisy = values + rng.laplace(0, 5, len(values))
    projected = project(noisy, geometry, n)
    constraints, totals = _constraints(geometry, len(values), n)
    assert constraints.shape[0] > 10
    np.testing.assert_allclose(constraints @ projected, totals, atol=1e-6)
    np.testing.assert_allclose(project(projected, geometry, n), projected, atol=1e-6)
    assert np.sum((projected - values) ** 2) < np.sum((noisy - values) ** 2)


def test_the_projection_averages_a_good_part_of_the_noise_away() -> None:
    values, geometry, n = setup(True, "replace-one")
    rng = np.random.default_rng(2)
    ratios = []
    for _ in range(50):
        noise = rng.laplace(0, 5, len(values))
        ratios.append(np.sum((project(values + noise, geometry, n) - values) ** 2) / np.sum(noise**2))
    assert np.mean(ratios) < 0.8


def test_without_blocks_of_levels_nothing_changes() -> None:
    geometry = pf.Schema.box(-1, 1, n_features=3, target=(-1, 1)).geometry()
    values = np.arange(float(geometry.n_products))
    assert (project(values, geometry, 5.0) == values).all()
