"""Weights and centres of one block, which sample and aggregate averages."""

from __future__ import annotations

import numpy as np
import pytest

from privfit.losses import LOGISTIC, hinge, smooth_hinge
from privfit.mechanisms import NAMED_CLUSTERERS, AggregatedCentres, SampleAndAggregate, clusterer
from privfit.mechanisms.aggregation.block_fits import block_centres, block_weights
from privfit.privacy import PrivacyError


@pytest.mark.parametrize("loss", [LOGISTIC, smooth_hinge(0.5), hinge()])
def test_the_weights_of_a_block_are_those_of_least_loss(loss) -> None:
    rng = np.random.default_rng(0)
    design = rng.uniform(-1, 1, (300, 4))
    side = np.where(design[:, 0] - design[:, 1] + 0.3 * rng.normal(size=300) > 0, 1.0, -1.0)
    weights = block_weights(loss, 1, 1.0, 5.0)(np.column_stack([design, side]))[:, 0]

    def risk(w):
        return float(np.sum(loss.value(design @ w, side)) + w @ w / 2)

    for _ in range(200):
        assert risk(weights) <= risk(weights + 0.1 * rng.normal(size=4))
    tight = block_weights(loss, 1, 1e-6, 0.5)(np.column_stack([design, side]))
    assert np.abs(tight).max() <= 0.5


def test_a_block_of_one_class_gives_the_middle() -> None:
    rows = np.column_stack([np.random.default_rng(0).normal(size=(20, 3)), np.ones(20)])
    assert not block_weights(LOGISTIC, 1, 1.0, 5.0)(rows).any()
    rows[:, -1] = np.arange(20) % 2
    weights = block_weights(LOGISTIC, 3, 1.0, 5.0)(rows)
    assert weights.shape == (3, 3)
    assert not weights[:, 2].any()
    assert weights[:, 0].any()


def test_the_centres_of_a_block_are_sorted_and_found() -> None:
    rng = np.random.default_rng(0)
    wanted = np.array([[-0.7, 0.5], [-0.7, -0.5], [0.4, 0.0]])
    points = wanted[rng.integers(3, size=300)] + 0.02 * rng.normal(size=(300, 2))
    found = block_centres(3)(points)
    assert (np.diff(found[:, 0]) >= 0).all()
    assert np.abs(found[2] - wanted[2]).max() < 0.02
    with pytest.raises(PrivacyError):
        block_centres(3)(points[:2])


def test_k_means_knows_it_by_name_and_by_instance() -> None:
    assert NAMED_CLUSTERERS["sample-and-aggregate"] == clusterer(SampleAndAggregate()) == AggregatedCentres()
    assert clusterer(SampleAndAggregate(7)).settings.blocks == 7
    with pytest.raises(PrivacyError, match="blocks"):
        clusterer(SampleAndAggregate(0))
