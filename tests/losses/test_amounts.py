"""The losses of amounts and proportions keep to their constants, on a grid; smaller constants are caught."""

from __future__ import annotations

from decimal import Decimal, getcontext

import numpy as np
import pytest

from privfit.losses import PROPORTION, ConvexLoss, capped_mean

SHARPNESS = (1.0, 1.25, 2.0, 6.0)
LOSSES = [*(capped_mean(sharpness=k) for k in SHARPNESS), PROPORTION]
Z = np.linspace(-40, 40, 80_001)[:, None]
TARGETS = np.array([[-1.0, -0.7, 0.0, 0.4, 1.0]])


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


@pytest.mark.parametrize("loss", LOSSES)
def test_constants_hold_and_smaller_ones_do_not(loss: ConvexLoss) -> None:
    assert beyond(loss) <= 1e-14 < 1e-3 < beyond(loss, share=0.99)


@pytest.mark.parametrize("loss", LOSSES)
def test_the_curvature_and_the_self_bound_are_tight(loss: ConvexLoss) -> None:
    slopes, curvatures = np.abs(loss.slope(Z, TARGETS)), loss.curvature(Z, TARGETS)
    assert curvatures.max() == pytest.approx(loss.most_curvature, rel=1e-6)
    left = loss.most_slope - slopes  # type: ignore[operator]
    steep = left > 1e-7
    assert (curvatures[steep] / left[steep]).max() == pytest.approx(loss.taper, rel=1e-2)


@pytest.mark.parametrize("loss", LOSSES)
def test_the_curvature_is_the_derivative_of_the_slope(loss: ConvexLoss) -> None:
    z, step = np.linspace(-6, 6, 501)[:, None], 1e-5
    found = (loss.slope(z + step, TARGETS) - loss.slope(z - step, TARGETS)) / (2 * step)
    np.testing.assert_allclose(loss.curvature(z, TARGETS), found, atol=1e-8)
    loss.check(TARGETS[0])


@pytest.mark.parametrize("start", [-9.0, -0.3, 0.0, 1.5, 7.0])
@pytest.mark.parametrize("sharpness", SHARPNESS)
def test_the_excess_at_zero_is_bounded(sharpness: float, start: float) -> None:
    loss = capped_mean(sharpness=sharpness, start=start)
    z = np.linspace(-60, 60, 240_001)
    for target in (-1.0, -0.9, 0.0, 1.0):
        slopes = loss.slope(z, target)
        towards = np.where(z >= 0, -slopes, slopes)  # how the loss falls on the way from 0
        excess = max(float(np.maximum(towards[side], 0).sum()) for side in (z >= 0, z < 0)) * (z[1] - z[0])
        assert loss.excess_at_zero is not None
        assert excess <= loss.excess_at_zero


@pytest.mark.parametrize("sharpness", SHARPNESS)
def test_slopes_are_within_sixteen_units_in_the_last_place(sharpness: float) -> None:
    """Beside long decimals: Lemma 5 of docs/proofs/perturbation.md counts on it."""
    getcontext().prec = 60
    loss, rng = capped_mean(-1.0, 0.25, sharpness=sharpness), np.random.default_rng(0)
    for z, y in zip(rng.uniform(-9, 9, 1000), rng.uniform(-1, -0.8, 1000), strict=True):
        turn = Decimal(sharpness) * (Decimal(float(z)) - Decimal("1.5"))
        level = (1 / (1 + (-turn).exp())) ** (1 / Decimal(sharpness))
        exact = level - Decimal(float((y + 1) / 0.25))
        assert abs(Decimal(float(loss.slope(z, y))) - exact) <= 16 * Decimal(2) ** -53


def test_amounts_below_zero_count_as_none_and_beyond_the_cap_as_the_cap() -> None:
    loss = capped_mean(0.0, 0.5)
    assert loss.slope(1.0, -0.3) == loss.slope(1.0, 0.0)
    assert loss.slope(1.0, 0.5) == loss.slope(1.0, 0.9)


def test_a_proportion_at_its_ends_is_a_class() -> None:
    from privfit.losses import LOGISTIC

    np.testing.assert_allclose(PROPORTION.slope(Z, 1.0), LOGISTIC.slope(Z, 1.0), atol=1e-15)
    np.testing.assert_allclose(PROPORTION.slope(Z, -1.0), LOGISTIC.slope(Z, -1.0), atol=1e-15)


@pytest.mark.parametrize("given", [{"cap": 0.0}, {"sharpness": 0.5}, {"start": float("nan")}, {"zero": float("inf")}])
def test_constants_that_mean_nothing_are_refused(given: dict) -> None:
    with pytest.raises(ValueError, match="capped mean"):
        capped_mean(**given)
