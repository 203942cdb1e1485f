"""The loss of a log hazard keeps to its constants, for every hazard, on a grid; smaller constants are caught."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal, getcontext

import numpy as np
import pytest

from privfit.losses import ConvexLoss
from privfit.losses.stopped_hazard import (
    LEAST_HAZARD,
    MOST_HAZARD,
    TIME_STEPS,
    StoppedHazard,
    stopped_hazard,
    time_steps,
)

Z = np.linspace(-40, 40, 80_001)[:, None]
TARGETS = np.array([[-1.0, -0.75, -0.5, 0.5, 0.6, 1.0]])
RISING = np.linspace(0.0, 3.0, TIME_STEPS + 1)
HAZARDS = (None, RISING, 1e9 * RISING, 0 * RISING, np.full(TIME_STEPS + 1, np.nan))


def beyond(loss: ConvexLoss, share: float = 1.0) -> float:
    """How far slope, curvature and self-bound exceed a share of what is stated, at worst."""
    slopes, curvatures = np.abs(loss.slope(Z, TARGETS)), loss.curvature(Z, TARGETS)
    assert loss.most_slope is not None
    assert loss.most_curvature is not None
    assert loss.taper is not None
    return max(
        float((slopes - share * loss.most_slope).max()),
        float((curvatures - share * loss.most_curvature).max()),
        float((curvatures - share * loss.taper * (loss.most_slope - slopes)).max()),
    )


@pytest.mark.parametrize("hazards", HAZARDS)
def test_constants_hold_and_smaller_ones_do_not(hazards: np.ndarray | None) -> None:
    loss = stopped_hazard(hazards)
    assert beyond(loss) <= 1e-14 < 1e-3 < beyond(loss, share=0.99)
    for name, share in (("most_slope", 0.99), ("most_curvature", 0.99), ("taper", 0.99)):
        with pytest.raises(ValueError, match="privacy rests on"):
            replace(loss, **{name: share * getattr(loss, name)}).check(TARGETS[0])


@pytest.mark.parametrize("hazards", HAZARDS)
def test_derivatives_are_those_of_the_value(hazards: np.ndarray | None) -> None:
    loss, z, step = stopped_hazard(hazards), np.linspace(-6, 6, 501)[:, None], 1e-5
    assert loss.value is not None
    slopes = (loss.value(z + step, TARGETS) - loss.value(z - step, TARGETS)) / (2 * step)
    np.testing.assert_allclose(loss.slope(z, TARGETS), slopes, atol=1e-8)
    curvatures = (loss.slope(z + step, TARGETS) - loss.slope(z - step, TARGETS)) / (2 * step)
    np.testing.assert_allclose(loss.curvature(z, TARGETS), curvatures, atol=1e-8)
    loss.check(TARGETS[0])
    loss.check(np.linspace(-1.0, 1.0, 9))  # as every plan does


@pytest.mark.parametrize("hazard", [0.0, 1e-5, 0.3, 1.0, 5.0, 1e6])
def test_the_excess_at_zero_is_bounded(hazard: float) -> None:
    loss = stopped_hazard(np.full(TIME_STEPS + 1, hazard))
    assert loss.value is not None
    assert loss.excess_at_zero is not None
    values = loss.value(np.linspace(-60, 60, 24_001)[:, None], TARGETS)
    excess = (loss.value(np.zeros((1, 1)), TARGETS) - values.min(axis=0)).max()
    assert excess <= loss.excess_at_zero
    if hazard == 0.0:
        assert excess > 0.9 * loss.excess_at_zero  # a bound nine tenths as large would be caught


def test_a_step_of_time_is_read_of_the_target() -> None:
    steps = np.array([0, 1, 777, TIME_STEPS - 1, TIME_STEPS])
    for sign in (-1, 1):
        np.testing.assert_array_equal(time_steps(sign * (TIME_STEPS + steps) / (2 * TIME_STEPS)), steps)
    assert time_steps(0.0) == 0


def test_slopes_are_within_sixteen_units_in_the_last_place() -> None:
    """Beside long decimals: Lemma 5 of docs/proofs/perturbation.md counts on it."""
    getcontext().prec = 60
    own, rng = StoppedHazard(np.log(np.clip(RISING, LEAST_HAZARD, MOST_HAZARD))), np.random.default_rng(0)
    for _ in range(400):
        z, y = float(rng.uniform(-30, 30)), float(rng.choice([-1.0, 1.0]) * rng.integers(1 << 15, 1 << 16) / (1 << 16))
        hazard = (Decimal(z) + Decimal(float(own.log_hazards[int(time_steps(y))]))).exp()
        alive = 1 / (1 + hazard)
        exact = 1 - alive - (alive * alive if y > 0 else 0)
        assert abs(Decimal(float(own.slope(z, y))) - exact) <= 16 * Decimal(2) ** -53
