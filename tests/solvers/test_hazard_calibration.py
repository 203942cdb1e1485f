"""From the hazard of a mixture of people to that of one: against means over many, and for senseless releases."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize

from privfit.losses.stopped_hazard import TIME_STEPS, stopped_hazard
from privfit.solvers import hazard_calibration
from privfit.solvers.hazard_calibration import MarginalHazard, bisected, smooth_hazard

GRID = np.linspace(0.0, 1.5, 41)


def mixed(spread: float) -> MarginalHazard:
    """The hazard of people whose log hazards are normal, beside a baseline of 1, who are watched for up to 2."""
    scores = spread * np.random.default_rng(1).normal(size=100_000)
    alive = np.array([np.exp(-time * np.exp(scores)).mean() for time in GRID])
    return MarginalHazard(-np.log(alive), alive * (1 - GRID / 2))


@pytest.mark.parametrize("spread", [0.2, 0.7, 1.5])
def test_the_baseline_of_a_mixture_is_found(spread: float) -> None:
    marginal = mixed(spread)
    np.testing.assert_allclose(marginal.baseline(marginal.hazards, spread), GRID, atol=0.01)


@pytest.mark.parametrize("spread", [0.3, 1.0])
def test_ratios_that_are_fitted_beside_the_hazard_of_all_are_moved_to_those_of_one(spread: float) -> None:
    rng, marginal = np.random.default_rng(2), mixed(spread)
    scores = spread * rng.normal(size=200_000)
    lives, watched = rng.exponential(np.exp(-scores)), rng.uniform(0, 2, len(scores))
    times, events = np.minimum(np.minimum(lives, watched), 1.5), (lives <= watched) & (lives < 1.5)
    loss = stopped_hazard(smooth_hazard(GRID / 1.5 * TIME_STEPS, marginal.hazards, np.arange(TIME_STEPS + 1.0)))
    target = np.where(events, 1, -1) * (0.5 + times / 3)
    assert loss.value is not None

    def objective(w: np.ndarray) -> tuple[float, np.ndarray]:
        z = w[0] + w[1] * scores
        slopes = loss.slope(z, target)
        assert loss.value is not None
        return float(loss.value(z, target).mean()), np.array([slopes.mean(), (slopes * scores).mean()])

    constant, fitted = minimize(objective, [0.0, 1.0], jac=True).x
    own = spread * fitted
    assert marginal.factor(own, 0.0) * fitted == pytest.approx(1.0, abs=0.015)
    assert fitted < 0.99
    assert marginal.mean(own) == pytest.approx(constant, abs=0.01)
    assert marginal.spread(own**2 + constant**2) == pytest.approx(own, abs=0.01)


def test_the_mean_curvature_is_that_of_the_loss() -> None:
    marginal, step = mixed(0.8), 1e-5
    slopes = marginal.slopes(0.7, 1.1)
    found = (slopes.at(step)[0] - slopes.at(-step)[0]) / (2 * step)
    assert slopes.at(0.0)[2] == pytest.approx(found, rel=1e-6)


def test_searches_for_one_number_find_the_same_bits() -> None:
    slopes = mixed(0.8).slopes(0.7, 1.1)
    assert [slopes.slope(at) for at in (-3.0, 0.1, 2.0)] == [slopes.at(at)[0] for at in (-3.0, 0.1, 2.0)]
    found = bisected(lambda at: np.array(slopes.slope(float(at))), np.array(-8.0), np.array(8.0))
    assert slopes.mean == float(found)


def test_shrinkage_makes_the_factor_larger_and_noise_smaller() -> None:
    marginal = mixed(0.8)
    factors = [marginal.factor(0.7, own) for own in (-1.0, -0.01, 0.0, 0.01, 1.0)]
    assert factors[0] == pytest.approx(0.0, abs=1e-6)
    assert factors == sorted(factors)
    assert factors[-1] == pytest.approx(hazard_calibration.MOST_FACTOR, abs=1e-6)


def test_twice_as_many_nodes_change_no_factor(monkeypatch: pytest.MonkeyPatch) -> None:
    before = [mixed(spread).factor(spread, 0.0) for spread in (0.3, 1.0, 1.3)]
    monkeypatch.setattr(hazard_calibration, "NODES", 48)
    after = [mixed(spread).factor(spread, 0.0) for spread in (0.3, 1.0, 1.3)]
    np.testing.assert_allclose(before, after, atol=2e-4)


@pytest.mark.parametrize("hazards", [np.zeros(5), np.array([0, 8, 8, 8, 8.0]), np.array([0, 0, 0, 0, 1e-9])])
@pytest.mark.parametrize("at_risk", [np.ones(5), np.array([1.0, 0, 0, 0, 0])])
@pytest.mark.parametrize("square", [1e-6, 16.0])
def test_senseless_releases_have_finite_answers(hazards: np.ndarray, at_risk: np.ndarray, square: float) -> None:
    marginal = MarginalHazard(hazards, at_risk)
    spread = marginal.spread(square)
    found = [spread, marginal.mean(spread), marginal.factor(spread, 1e6), marginal.factor(spread, -1e6)]
    assert np.isfinite([*found, *marginal.baseline(hazards, spread), *marginal.slopes(spread, 3.0).at(8.0)]).all()
