"""Steps from noisy sums of cells: what they are without noise, that they know how noisy sums are, and that no sums
whatever make them fail.
"""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from privfit.solvers import noisy_cells
from privfit.solvers.noisy_cells import EFFECTS, expected_steps


def test_without_noise_a_step_is_the_newton_step_where_rows_are_many() -> None:
    slopes, curvatures = np.array([-5000.0, 5000.0, -9000.0, 0.0]), np.array([10_000.0, 10_000.0, 3000.0, 2000.0])
    for in_order in (False, True):
        steps = expected_steps(slopes, curvatures, (1e-6, 1e-6), in_order)
        assert steps == pytest.approx([0.5, -0.5, 3.0, 0.0], abs=0.02)


def test_steps_are_no_longer_than_the_largest_effect_and_shorter_under_more_noise() -> None:
    slopes, curvatures = np.array([-60.0, -1e6, 60.0]), np.array([20.0, 1.0, 20.0])
    sizes = [np.abs(expected_steps(slopes, curvatures, (scale, scale), False)) for scale in (0.1, 5.0, 20.0, 100.0)]
    assert np.max(sizes) <= EFFECTS[-1]
    assert all(np.all(less[[0, 2]] > more[[0, 2]]) for less, more in itertools.pairwise(sizes))
    assert sizes[-1][0] < 0.3


def test_where_most_cells_have_no_effect_less_is_lost_than_by_newton_steps_held_back_by_noise() -> None:
    rng = np.random.default_rng(0)
    cells, scale = 400, 1.0
    sizes = np.exp(rng.uniform(0, 4, cells))
    effects = np.where(rng.uniform(size=cells) < 0.1, rng.choice([-2.0, 2.0], cells), 0.0)
    gains, newton = [], []
    for _ in range(20):
        slopes = -effects * sizes + rng.normal(size=cells) * np.sqrt(0.6 * sizes) + rng.laplace(scale=scale, size=cells)
        curvatures = sizes + rng.laplace(scale=scale, size=cells)
        steps = expected_steps(slopes, curvatures, (scale, scale), False)
        held = np.hypot(np.maximum(curvatures, 0), 3 * np.sqrt(2) * scale)
        gains.append(np.sum(sizes * (steps - effects) ** 2))
        newton.append(np.sum(sizes * (-slopes / held - effects) ** 2))
    assert np.mean(gains) < 0.8 * np.mean(newton)


def test_neighbours_along_a_number_count_and_those_of_a_category_do_not() -> None:
    rng = np.random.default_rng(1)
    slopes = -np.repeat([1.0, -1.0], 64) * 6 + rng.laplace(scale=4, size=128)
    curvatures = np.full(128, 6.0)
    truth = np.repeat([1.0, -1.0], 64)
    alone, beside = (expected_steps(slopes, curvatures, (4.0, 4.0), in_order) for in_order in (False, True))
    assert np.mean((beside - truth) ** 2) < 0.5 * np.mean((alone - truth) ** 2)
    order = rng.permutation(128)
    shuffled = expected_steps(slopes[order], curvatures[order], (4.0, 4.0), False)
    assert shuffled == pytest.approx(alone[order])


def test_noise_alone_makes_small_steps() -> None:
    rng = np.random.default_rng(2)
    steps = [
        expected_steps(
            rng.laplace(scale=5, size=500), np.full(500, 40.0) + rng.laplace(scale=5, size=500), (5.0, 5.0), o
        )
        for o in (False, True)
    ]
    assert np.sqrt(np.mean(steps[0] ** 2)) < 0.14
    assert np.sqrt(np.mean(steps[1] ** 2)) < 0.08


def test_the_density_is_that_of_both_errors_together() -> None:
    away, grid = np.array([-7.0, -1.0, 0.0, 2.5]), np.linspace(-60, 60, 24_001)
    for scale, sd in ((1.0, 2.0), (4.0, 0.5), (1.0, 1.0)):
        found = noisy_cells._log_density(away, scale, np.array(sd))
        normal = np.exp(-((grid / sd) ** 2) / 2)
        exact = [np.sum(normal * np.exp(-np.abs(value - grid) / scale)) for value in away]
        assert found - found[2] == pytest.approx(np.log(exact) - np.log(exact[2]), abs=1e-5)


def test_what_is_said_from_beside_is_the_sum_over_all_other_effects() -> None:
    """Against every combination of effects of four cells, of their halves and of all."""
    rng, before = np.random.default_rng(3), np.array([0.2, 0.5, 0.3])
    likely = rng.uniform(0.1, 1.0, (4, 3))
    stay = noisy_cells.CHANGES
    moves = (1 - stay) * np.eye(3) + stay * before  # from a part's effect to a half's
    exact = np.zeros((4, 3))
    for root, left, right, *leaves in itertools.product(range(3), repeat=7):
        chance = before[root] * moves[root, left] * moves[root, right]
        for place, (parent, leaf) in enumerate(zip((left, left, right, right), leaves, strict=True)):
            chance *= moves[parent, leaf] * likely[place, leaf]
        for place, leaf in enumerate(leaves):
            exact[place, leaf] += chance / likely[place, leaf]
    found = noisy_cells._beside(likely, before)
    assert found / found.sum(axis=1, keepdims=True) == pytest.approx(exact / exact.sum(axis=1, keepdims=True))


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("scale", [1e-9, 1e-3, 1.0, 1e9, 1e14])
@pytest.mark.parametrize("cells", [1, 2, 3, 500])
def test_no_sums_make_them_fail_or_warn(scale: float, cells: int) -> None:
    rng = np.random.default_rng(4)
    ends = (0.0, 5000.0, -(2.0**53), 2.0**53)
    cases = [(np.full(cells, one), np.full(cells, other)) for one, other in itertools.product(ends, repeat=2)]
    cases.append((rng.normal(size=cells) * 1e4, rng.normal(size=cells) * 1e4))
    with np.errstate(all="raise", under="ignore"):
        for (slopes, curvatures), in_order in itertools.product(cases, (False, True)):
            steps = expected_steps(slopes, curvatures, (scale, 4 * scale), in_order)
            assert steps.shape == (cells,)
            assert np.all(np.abs(steps) <= EFFECTS[-1])
