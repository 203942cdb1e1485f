"""The rounded pinball loss keeps to its constants, on a grid; smaller constants are caught."""

from __future__ import annotations

from decimal import Decimal, getcontext

import numpy as np
import pytest

from privfit.losses import ConvexLoss, smooth_pinball

CASES = [(0.5, 0.25), (0.9, 0.25), (0.05, 1.0), (0.3, 0.01)]
RESIDUALS = np.linspace(-40, 40, 80_001)


def beyond(loss: ConvexLoss, width: float, share: float = 1.0) -> float:
    """How far slope, curvature and self-bound exceed a share of what is stated, at worst."""
    z = RESIDUALS * width
    slopes, curvatures = np.abs(loss.slope(z, 0.0)), loss.curvature(z, 0.0)
    assert loss.most_slope is not None
    assert loss.most_curvature is not None
    assert loss.taper is not None
    return max(
        float((slopes - share * loss.most_slope).max()),
        float((curvatures - share * loss.most_curvature).max()),
        float((curvatures - share * loss.taper * (loss.most_slope - slopes)).max()),
    )


@pytest.mark.parametrize(("quantile", "width"), CASES)
def test_constants_hold_and_smaller_ones_do_not(quantile: float, width: float) -> None:
    loss = smooth_pinball(quantile, width)
    assert beyond(loss, width) <= 1e-14 / width < 1e-3 < beyond(loss, width, share=0.99)


@pytest.mark.parametrize(("quantile", "width"), CASES)
def test_each_constant_is_tight(quantile: float, width: float) -> None:
    loss, z = smooth_pinball(quantile, width), RESIDUALS * width
    slopes, curvatures = np.abs(loss.slope(z, 0.0)), loss.curvature(z, 0.0)
    assert slopes.max() == pytest.approx(loss.most_slope)
    assert curvatures.max() == pytest.approx(loss.most_curvature)
    steep = (loss.most_slope - slopes > 1e-9) & (np.abs(RESIDUALS) > 5)
    assert (curvatures[steep] / (loss.most_slope - slopes[steep])).max() == pytest.approx(loss.taper, rel=1e-2)


@pytest.mark.parametrize(("quantile", "width"), CASES)
def test_derivatives_belong_to_the_value(quantile: float, width: float) -> None:
    loss, z, step = smooth_pinball(quantile, width), np.linspace(-4, 4, 1001) * width, 1e-5 * width
    slopes = (loss.value(z + step, 0.0) - loss.value(z - step, 0.0)) / (2 * step)  # type: ignore[misc]
    np.testing.assert_allclose(loss.slope(z, 0.0), slopes, atol=1e-8)
    curvatures = (loss.slope(z + step, 0.0) - loss.slope(z - step, 0.0)) / (2 * step)
    np.testing.assert_allclose(loss.curvature(z, 0.0) * width, curvatures * width, atol=1e-8)
    loss.check(np.linspace(-1, 1, 5))


@pytest.mark.parametrize(("quantile", "width"), CASES)
@pytest.mark.parametrize(("centre", "threshold"), [(0.0, 1.0), (-1.0, 0.01), (0.5, 0.3)])
def test_the_excess_at_zero_is_bounded(quantile: float, width: float, centre: float, threshold: float) -> None:
    loss = smooth_pinball(quantile, width, centre, threshold)
    assert loss.value is not None
    assert loss.excess_at_zero is not None
    for target in (-1.0, -0.2, 0.7, 1.0):
        lowest = (target - centre) / threshold + width * np.log(quantile / (1 - quantile))
        assert abs(loss.slope(lowest, target)) < 1e-9
        assert loss.value(0.0, target) - loss.value(lowest, target) <= loss.excess_at_zero


def test_slopes_are_within_sixteen_units_in_the_last_place() -> None:
    """Beside long decimals: Lemma 5 of docs/proofs/perturbation.md counts on it."""
    getcontext().prec = 60
    loss, rng = smooth_pinball(0.9, 0.25), np.random.default_rng(0)
    for z, y in zip(rng.uniform(-3, 3, 2000), rng.uniform(-1, 1, 2000), strict=True):
        residual = (Decimal(float(z)) - Decimal(float(y))) / Decimal("0.25")
        exact = 1 / (1 + (-residual).exp()) - Decimal(float(np.float64(0.9)))
        assert abs(Decimal(float(loss.slope(z, y))) - exact) <= 16 * Decimal("0.9") * Decimal(2) ** -53


@pytest.mark.parametrize("given_", [{"quantile": 0.0}, {"quantile": 1.0}, {"width": 0.0}, {"centre": 2.0}])
def test_constants_that_mean_nothing_are_refused(given_: dict) -> None:
    with pytest.raises(ValueError, match="pinball"):
        smooth_pinball(**given_)
