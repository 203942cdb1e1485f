"""Derivatives from tables: near the loss itself, between 0 and 1, and the same bits in any order."""

from __future__ import annotations

import numpy as np
import pytest

from privfit.losses import (
    LOGISTIC,
    PROPORTION,
    ConvexLoss,
    capped_mean,
    robust,
    smooth_hinge,
    smooth_pinball,
    tapered_huber,
    tempered_logistic,
)
from privfit.losses.tabulated import TabulatedLoss

CLASSES = [LOGISTIC, tempered_logistic(0.5, 1.5), smooth_hinge(0.5)]
NUMBERS = [
    PROPORTION,
    capped_mean(-1.0, 0.3, sharpness=2.0),
    robust(0.7),
    smooth_pinball(0.8, 0.125, 0.2, 0.3),
    tapered_huber(2.0, -0.1, 0.2),
]


@pytest.mark.parametrize("loss", CLASSES + NUMBERS, ids=lambda loss: loss.name)
def test_tables_are_near_the_loss_and_between_0_and_1(loss: ConvexLoss) -> None:
    rng = np.random.default_rng(0)
    z = rng.normal(0, 2, 5_000)
    y = rng.choice([-1.0, 1.0], 5_000) if loss in CLASSES else rng.uniform(-1, 1, 5_000)
    tables = TabulatedLoss.of(loss)
    assert tables is not None
    curvature, square = tables.curvature(z, y), tables.square(z, y)
    for own in (curvature, square):
        assert np.all((own >= 0) & (own <= 1))
    assert np.quantile(np.abs(curvature * tables.most_curvature - loss.curvature(z, y)), 0.98) < 0.03 * loss.sharpest
    assert np.abs(square * tables.most_square - loss.slope(z, y) ** 2).max() < 0.05 * tables.most_square


@pytest.mark.parametrize("loss", CLASSES + NUMBERS, ids=lambda loss: loss.name)
def test_a_row_has_the_same_bits_wherever_it_stands(loss: ConvexLoss) -> None:
    rng = np.random.default_rng(1)
    z, y = rng.normal(0, 3, 1_001), rng.choice([-1.0, 1.0], 1_001)
    tables = TabulatedLoss.of(loss)
    assert tables is not None
    for respond in (tables.curvature, tables.square):
        whole = respond(z, y)
        assert np.array_equal(whole[::-1], respond(z[::-1], y[::-1]))
        assert np.array_equal(whole[7::3], respond(z[7::3].copy(), y[7::3].copy()))
        assert np.array_equal(whole[:5], [respond(z[i : i + 1], y[i : i + 1])[0] for i in range(5)])


def test_far_predictors_and_no_numbers_have_answers() -> None:
    tables = TabulatedLoss.of(LOGISTIC)
    assert tables is not None
    far = np.array([1e300, -1e300, np.inf, -np.inf, np.nan])
    assert np.allclose(tables.square(far, np.ones(5)), [0, 1, 0, 1, 0.25], atol=0.01)
    assert np.all(np.isfinite(tables.curvature(far, np.ones(5))))


def test_losses_of_users_and_such_without_a_bounded_curvature_have_no_tables() -> None:
    own = ConvexLoss(slope=lambda z, y: np.tanh(z - y), curvature=lambda z, y: 1 / np.cosh(z - y) ** 2, most_slope=1.0)
    assert TabulatedLoss.of(own) is None
