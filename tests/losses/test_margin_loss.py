"""Losses on a lattice: integers that fall, as steep as the loss and no steeper, and bounds that are those of the
table itself.
"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from privfit.losses import LOGISTIC, hinge, smooth_hinge, tempered_logistic
from privfit.losses.margins import GRAIN, PER_STEP, MarginLoss

LOSSES = {
    "logistic": LOGISTIC,
    "tempered": tempered_logistic(0.5, 50.0),
    "tempered a little": tempered_logistic(0.9, 2.0),
    "huber": smooth_hinge(0.5),
    "wide huber": smooth_hinge(3.0),
    "hinge": hinge(),
    "a corner narrower than the lattice": smooth_hinge(1e-9),
}
REACH = 8 * GRAIN
REAL = ("logistic", "huber", "wide huber", "hinge", "a corner narrower than the lattice")


@pytest.fixture(params=LOSSES)
def name(request) -> str:
    return request.param


def test_values_are_whole_numbers_that_fall_to_zero(name) -> None:
    values = MarginLoss(LOSSES[name], REACH).values
    assert values.shape == (2 * REACH + 1,)
    np.testing.assert_array_equal(values, np.rint(values))
    assert np.all(np.diff(values) <= 0)
    assert values[-1] == 0
    assert values[0] > 0


def test_no_step_is_steeper_than_the_loss_and_the_steepest_is_as_steep(name) -> None:
    steepest = -np.diff(MarginLoss(LOSSES[name], REACH).values).min()
    most = LOSSES[name].most_slope * PER_STEP
    assert most - 1 - 0.02 * most <= steepest <= np.ceil(most)


@pytest.mark.parametrize("name", REAL)
def test_values_are_those_of_the_loss(name) -> None:
    """But for a constant, which tells no candidates apart, and for the corner, which one lattice step may cut."""
    loss = MarginLoss(LOSSES[name], REACH)
    margins = np.arange(-REACH, REACH + 1) / GRAIN
    real = np.asarray(LOSSES[name].value(margins, np.ones_like(margins)))
    np.testing.assert_allclose(loss.values / loss.unit, real - real[-1], atol=2 / GRAIN)


@pytest.mark.parametrize("name", ["tempered", "tempered a little"])
def test_values_without_a_stated_loss_are_sums_of_its_slopes(name) -> None:
    loss = MarginLoss(LOSSES[name], REACH)
    fine = np.linspace(-8, 8, 16 * 8192 + 1)
    slopes = -np.asarray(LOSSES[name].slope(fine, np.ones_like(fine)))
    area = np.concatenate([np.cumsum(((slopes[1:] + slopes[:-1]) / 2 * np.diff(fine))[::-1])[::-1], [0.0]])
    np.testing.assert_allclose(loss.values / loss.unit, area[::16], atol=1e-4)


@given(st.sampled_from(list(LOSSES)), st.integers(0, 400), st.integers(1, 200))
def test_the_spread_is_the_largest_difference_of_two_moves_of_any_row(name, within, step) -> None:
    loss = MarginLoss(LOSSES[name], 600)
    values = loss.values.astype(np.int64).tolist()
    told = max(
        values[600 + margin + one] - values[600 + margin + other]
        for margin in range(-within, within + 1, max(1, within // 40))
        for one in {-step, -step // 2, 0, step}
        for other in {-step, 0, step // 3, step}
    )
    spread = loss.spread(within, step)
    assert told <= spread
    assert spread == max(
        values[600 + margin - step] - values[600 + margin + step] for margin in range(-within, within + 1)
    )


def test_a_spread_may_use_the_whole_table(name) -> None:
    """The last round's farthest rows end at the table's ends; a step more would leave it."""
    loss = MarginLoss(LOSSES[name], 128)
    assert loss.spread(128 - 16, 16) >= loss.spread(0, 16)
    assert loss.change(128, True) == loss.values[0]
    with pytest.raises(IndexError):
        loss.spread(128, 16)


def test_a_spread_grows_with_the_step_and_with_the_margins(name) -> None:
    loss = MarginLoss(LOSSES[name], REACH)
    by_step = [loss.spread(GRAIN, step) for step in (8, 64, 512)]
    by_margin = [loss.spread(within, 64) for within in (0, 64, 512, 2048)]
    assert by_step == sorted(by_step)
    assert by_step[0] < by_step[-1]
    assert by_margin == sorted(by_margin)


def test_a_spread_is_at_most_two_steps_at_the_steepest(name) -> None:
    loss = MarginLoss(LOSSES[name], REACH)
    assert loss.spread(REACH - 64, 64) <= 2 * 64 * np.ceil(LOSSES[name].most_slope * PER_STEP)


@given(st.sampled_from(list(LOSSES)), st.integers(1, 300), st.integers(0, 10_000))
def test_no_score_moves_by_more_than_the_change(name, within, seed) -> None:
    loss = MarginLoss(LOSSES[name], 300)
    margins = np.random.default_rng(seed).integers(-within, within + 1, (40, 2)) + 300
    old, new = loss.values[margins].T
    assert np.abs(old - new).max() <= loss.change(within, True)
    assert np.abs(old).max() <= loss.change(within, False)
    assert np.abs(loss.values[300 - within] - loss.values[300 + within]) == loss.change(within, True)
    assert loss.change(within, True) <= loss.change(within, False)


def test_tempering_halves_what_a_row_can_do() -> None:
    plain, tempered = (
        MarginLoss(LOSSES[name], 20 * GRAIN).spread(16 * GRAIN, GRAIN) for name in ("logistic", "tempered")
    )
    assert tempered == pytest.approx(plain / 2, rel=1e-3)


@pytest.mark.parametrize("width", [1e-9, 1e-3, 0.5])
def test_margins_far_on_the_right_side_lose_nothing_and_far_on_the_wrong_side_a_full_step(width) -> None:
    falls = -np.diff(MarginLoss(smooth_hinge(width), REACH).values)
    assert np.all(falls[REACH + 2 * GRAIN :] == 0)
    assert np.all(falls[: REACH - GRAIN] == PER_STEP)
