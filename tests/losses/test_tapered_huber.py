"""The tapered Huber loss keeps to the constants that calibration takes from it."""

from __future__ import annotations

from decimal import Decimal, getcontext

import numpy as np
import pytest

from privfit.losses import ConvexLoss, tapered_huber

GRID = np.concatenate([np.linspace(-9, 9, 40_001), np.geomspace(1e-12, 1e12, 200), -np.geomspace(1e-12, 1e12, 200)])
SETTINGS = [(taper, centre, threshold) for taper in (1.0, 2.0, 5.0) for centre, threshold in ((0.0, 1.0), (-0.7, 2e-4))]


def excess(loss: ConvexLoss, taper: float) -> float:
    """The most by which curvature exceeds a self-bound with this constant, over residuals."""
    slopes, curvatures = (np.asarray(f(GRID, np.zeros_like(GRID))) for f in (loss.slope, loss.curvature))
    return float((curvatures - taper * (1 - np.abs(slopes))).max())


@pytest.mark.parametrize(("taper", "centre", "threshold"), SETTINGS)
def test_slopes_curvatures_and_their_sum_stay_within_what_is_stated(
    taper: float, centre: float, threshold: float
) -> None:
    loss = tapered_huber(taper, centre, threshold)
    for target in (-1.0, 0.0, centre, 1.0):
        z = GRID + (target - centre) / threshold
        slopes, curvatures = loss.slope(z, target), loss.curvature(z, target)
        assert np.abs(slopes).max() <= 1 == loss.most_slope
        assert curvatures.min() >= 0
        assert curvatures.max() <= 1 == loss.most_curvature
        assert (curvatures - loss.taper * (1 - np.abs(slopes))).max() <= 1e-14
        assert loss.value(0.0, target) - loss.value((target - centre) / threshold, target) <= loss.excess_at_zero
    loss.check(np.linspace(-1, 1, 9))


def test_a_smaller_self_bound_is_caught() -> None:
    assert excess(tapered_huber(2.0), 2.0) <= 1e-14 < 1e-3 < excess(tapered_huber(2.0), 1.99)


@pytest.mark.parametrize("taper", [1.0, 2.0, 5.0])
def test_derivatives_belong_to_the_value(taper: float) -> None:
    loss, r, step = tapered_huber(taper), np.linspace(-4, 4, 1001), 1e-5
    slopes = (loss.value(r + step, 0.0) - loss.value(r - step, 0.0)) / (2 * step)
    np.testing.assert_allclose(loss.slope(r, 0.0), slopes, atol=1e-9)
    curvatures = (loss.slope(r + step, 0.0) - loss.slope(r - step, 0.0)) / (2 * step)
    np.testing.assert_allclose(loss.curvature(r, 0.0), curvatures, atol=1e-4)


def test_slopes_are_within_sixteen_units_in_the_last_place() -> None:
    """Beside long decimals: Lemma 5 of docs/proofs/perturbation.md counts on it."""
    getcontext().prec = 60
    loss, rng = tapered_huber(2.0), np.random.default_rng(0)
    for z, y in zip(rng.uniform(-3, 3, 3000), rng.uniform(-1, 1, 3000), strict=True):
        residual = Decimal(float(z)) - Decimal(float(y))
        beyond = max(abs(residual) - Decimal("0.5"), Decimal(0))
        exact = min(abs(residual), Decimal("0.5")) + (1 - (-2 * beyond).exp()) / 2
        assert abs(abs(Decimal(float(loss.slope(z, y)))) - exact) <= 16 * Decimal(2) ** -53


@pytest.mark.parametrize("given_", [{"taper": 0.5}, {"threshold": 0.0}, {"centre": 2.0}, {"taper": np.nan}])
def test_constants_that_mean_nothing_are_refused(given_: dict) -> None:
    with pytest.raises(ValueError, match="tapered Huber"):
        tapered_huber(**given_)
