"""Convex losses: what they state is true, what is not true is refused, and predictions are calibrated."""

from __future__ import annotations

import functools
import math
import pickle
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.optimize import brentq
from scipy.special import expit, logit

from privfit.losses import LOGISTIC, ConvexLoss, hinge, is_ready_made, robust, smooth_hinge, tempered_logistic
from tests.support.beats import assert_told_in_order

CLASSES = np.array([-1.0, 1.0])
MARGINS = {
    "logistic": LOGISTIC,
    "tempered to a half": tempered_logistic(0.5, 1.0),
    "tempered sharply": tempered_logistic(0.5, 50.0),
    "tempered far": tempered_logistic(0.05, 3.0),
    "hardly tempered": tempered_logistic(0.999, 7.0),
    "smooth hinge": smooth_hinge(),
    "narrow hinge": smooth_hinge(1e-3),
    "wide hinge": smooth_hinge(4.0),
    "hinge": hinge(),
}
caps = st.one_of(st.floats(0.01, 0.9999), st.just(1.0))
tapers = st.floats(1.0, 200.0)


def integral_of_slope(loss: ConvexLoss, low: float, high: float, y: float) -> float:
    return float(quad(lambda z: float(loss.slope(np.float64(z), y)), low, high, limit=200)[0])


# -- what ready-made losses state is true ----------------------------------------------------------


@pytest.mark.parametrize("name", MARGINS)
def test_ready_made_losses_pass_their_own_check_and_would_not_with_less(name: str) -> None:
    loss = MARGINS[name]
    loss.check(CLASSES)
    assert loss.most_slope is not None
    with pytest.raises(ValueError, match="states most_slope"):
        replace(loss, most_slope=0.99 * loss.most_slope, taper=None).check(CLASSES)


@pytest.mark.parametrize("loss", [*MARGINS.values(), robust(2.0)])
def test_only_functions_of_ready_made_losses_are_called_without_a_guard(loss: ConvexLoss) -> None:
    assert is_ready_made(loss.slope)
    assert is_ready_made(pickle.loads(pickle.dumps(loss)).curvature)

    @functools.wraps(loss.slope)
    def wrapper(z: Any, y: Any) -> Any:
        return loss.slope(z, y)

    assert wrapper.__module__ == loss.slope.__module__
    assert not is_ready_made(wrapper)
    assert not is_ready_made(loss.scaled(0.0, 2.0).slope)


@given(st.floats(1e-3, 1e3), st.floats(-100, 100), st.floats(1e-2, 1e2))
@settings(max_examples=30)
def test_a_robust_loss_passes_its_check_in_any_units(threshold: float, middle: float, half: float) -> None:
    loss = robust(threshold)
    loss.check(middle + half * np.linspace(-1, 1, 5))
    loss.scaled(middle, half).check(np.linspace(-1, 1, 5))


@given(caps, tapers)
@settings(max_examples=60)
def test_a_tempered_loss_passes_its_check_for_every_cap_and_taper(cap: float, taper: float) -> None:
    tempered_logistic(cap, taper).check(CLASSES)


@given(caps, tapers, st.floats(-60, 60), st.sampled_from([-1.0, 1.0]))
@settings(max_examples=300)
def test_a_tempered_loss_has_no_more_curvature_than_its_slope_leaves(
    cap: float, taper: float, z: float, y: float
) -> None:
    """And no more than the logistic loss has at that slope: it is the smaller of the two, everywhere."""
    loss = tempered_logistic(cap, taper)
    steep, bent = abs(float(loss.slope(np.float64(z), y))), float(loss.curvature(np.float64(z), y))
    allowed = min(steep * (1 - steep), float(loss.taper or 0) * (float(loss.most_slope or 0) - steep))
    assert 0 <= steep <= cap
    assert bent == pytest.approx(max(allowed, 0.0), rel=1e-6, abs=1e-12 * taper)


@given(caps, tapers, st.sampled_from([-1.0, 1.0]))
@settings(max_examples=60)
def test_the_largest_curvature_of_a_tempered_loss_is_reached_and_not_passed(cap: float, taper: float, y: float) -> None:
    loss = tempered_logistic(cap, taper)
    curvature = loss.curvature(np.linspace(-12, 12, 200_001), y)
    assert loss.most_curvature is not None
    assert curvature.max() <= loss.most_curvature * (1 + 1e-12)
    assert curvature.max() >= loss.most_curvature * (1 - 2.5e-4 * taper)  # on a grid this fine


@pytest.mark.parametrize("name", MARGINS)
@pytest.mark.parametrize("y", [-1.0, 1.0])
def test_curvature_is_the_derivative_of_slope(name: str, y: float) -> None:
    """Integrated, so that corners do not matter: the slope rises by what its curvature adds up to."""
    loss = MARGINS[name]
    z = np.linspace(-8.003, 8.001, 320_041)
    middles = (z[1:] + z[:-1]) / 2
    risen = np.concatenate([[0.0], np.cumsum(loss.curvature(middles, y) * np.diff(z))])
    np.testing.assert_allclose(
        loss.slope(z, y) - loss.slope(z[:1], y), risen, atol=0.03 if "hinge" in name and name != "wide hinge" else 1e-4
    )


@pytest.mark.parametrize("name", [name for name, loss in MARGINS.items() if loss.value is not None])
@pytest.mark.parametrize("y", [-1.0, 1.0])
def test_slope_is_the_derivative_of_the_loss(name: str, y: float) -> None:
    loss = MARGINS[name]
    assert loss.value is not None
    z = np.linspace(-6, 6, 41)
    rise = (loss.value(z + 1e-6, y) - loss.value(z - 1e-6, y)) / 2e-6
    np.testing.assert_allclose(loss.slope(z, y), rise, atol=1e-3)


def test_known_values() -> None:
    assert float(LOGISTIC.slope(np.float64(0), 1.0)) == -0.5
    assert float(LOGISTIC.curvature(np.float64(0), 1.0)) == 0.25
    assert [float(hinge().slope(np.float64(z), 1.0)) for z in (-5, 0.9, 1, 1.1)] == pytest.approx([-1, -1, -0.5, 0])
    assert [float(smooth_hinge(0.5).slope(np.float64(z), -1.0)) for z in (0, -0.5, -1, -1.5)] == pytest.approx(
        [1, 1, 0.5, 0]
    )
    assert robust(2.0).slope(np.array([0.0, 4, 6, 9]), 5.0).tolist() == [-2, -1, 1, 2]


def test_the_hinge_loss_keeps_to_its_corner_and_states_no_curvature() -> None:
    z = np.linspace(-3, 3, 60_001)
    loss = hinge()
    assert loss.value is not None
    assert np.abs(loss.value(z, 1.0) - np.maximum(0, 1 - z)).max() <= 1e-3
    assert loss.most_curvature is None
    assert loss.taper is None


@given(caps, tapers)
@settings(max_examples=30)
def test_a_tempered_loss_is_the_logistic_one_until_it_bends_away(cap: float, taper: float) -> None:
    loss = tempered_logistic(cap, taper)
    margins = np.linspace(-30, 30, 2001)
    plain, tempered = -LOGISTIC.slope(margins, 1.0), -loss.slope(margins, 1.0)
    below = plain * (1 - plain) <= float(loss.taper or 0) * (cap - plain)
    np.testing.assert_allclose(tempered[below], plain[below], rtol=1e-9)
    assert (tempered <= np.minimum(plain * (1 + 1e-9), cap)).all()
    assert tempered[0] == pytest.approx(cap, rel=1e-6)


def test_a_cap_of_one_is_the_logistic_loss_itself() -> None:
    assert tempered_logistic(1, 1) is LOGISTIC
    assert tempered_logistic(1.0, 5.0) is LOGISTIC


def test_a_cap_next_to_one_is_as_good_as_any_other() -> None:
    for taper in (1.0, np.nextafter(1.0, 2.0), 50.0):
        assert tempered_logistic(float(np.nextafter(1.0, 0.0)), float(taper)) == LOGISTIC


def test_slopes_stay_finite_far_out() -> None:
    far = np.array([-1e300, -1e5, 1e5, 1e300])
    for loss in MARGINS.values():
        for y in CLASSES:
            assert np.isfinite(loss.slope(far, y)).all()
            assert np.isfinite(loss.curvature(far, y)).all()


# -- units -----------------------------------------------------------------------------------------


@given(st.floats(-50, 50), st.floats(0.01, 100), st.floats(-3, 3), st.floats(-1, 1))
@settings(max_examples=100)
def test_a_scaled_loss_is_the_loss_in_other_units(middle: float, half: float, z: float, y: float) -> None:
    loss = robust(0.7)
    scaled = loss.scaled(middle, half)
    rise = integral_of_slope(scaled, z, z + 0.5, y)
    assert loss.value is not None
    wanted = float(
        loss.value(middle + half * (z + 0.5), middle + half * y) - loss.value(middle + half * z, middle + half * y)
    )
    assert rise == pytest.approx(wanted, rel=1e-4, abs=1e-6 * half)
    assert scaled.most_slope == half * 0.7
    assert scaled.most_curvature == half**2


@given(st.floats(0.05, 20.0), caps.filter(lambda cap: cap < 1), tapers)
@settings(max_examples=30)
def test_what_a_loss_states_is_scaled_with_it(half: float, cap: float, taper: float) -> None:
    """Classes are not scaled in practice; a loss with a taper shows whether all three constants keep together."""
    loss = tempered_logistic(cap, taper)
    scaled = loss.scaled(0.0, half)
    z = np.linspace(-30, 30, 3001) / half
    slope, curvature = scaled.slope(z, 1 / half), scaled.curvature(z, 1 / half)
    assert scaled.most_slope is not None
    assert scaled.taper is not None
    assert scaled.most_curvature is not None
    assert np.abs(slope).max() <= scaled.most_slope * (1 + 1e-12)
    assert curvature.max() <= scaled.most_curvature * (1 + 1e-9)
    assert (curvature - scaled.taper * (scaled.most_slope - np.abs(slope))).max() <= 1e-9 * scaled.most_slope * max(
        1, scaled.taper
    )
    assert (scaled.one_sided, scaled.link, scaled.name) == (loss.one_sided, loss.link, loss.name)


def test_a_loss_that_states_nothing_has_nothing_to_scale() -> None:
    scaled = ConvexLoss(lambda z, y: z - y, lambda z, y: 1 + 0 * z).scaled(1.0, 2.0)
    assert (scaled.most_slope, scaled.most_curvature, scaled.taper) == (None, None, None)


# -- calibration -----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [name for name in MARGINS if name not in ("hinge", "narrow hinge")])
@pytest.mark.parametrize("share", [0.02, 0.2, 0.5, 0.7, 0.97])
def test_the_best_constant_has_the_log_odds_of_the_classes(name: str, share: float) -> None:
    """Minimise the loss of a table with so many of the second class, with nothing but a constant: its probability is
    that share.
    """
    loss = MARGINS[name]
    best = brentq(
        lambda z: share * float(loss.slope(np.float64(z), 1.0)) + (1 - share) * float(loss.slope(np.float64(z), -1.0)),
        -30,
        30,
    )
    assert float(loss.log_odds(np.array([best]))[0]) == pytest.approx(logit(share), abs=1e-6)


@given(caps, tapers, st.floats(-20, 20))
@settings(max_examples=100)
def test_log_odds_rise_and_are_those_of_the_classes_exchanged(cap: float, taper: float, z: float) -> None:
    loss = tempered_logistic(cap, taper)
    low, here, high, mirrored = loss.log_odds(np.array([z - 0.1, z, z + 0.1, -z]))
    assert low <= here <= high
    assert here == pytest.approx(-mirrored, rel=1e-9, abs=1e-9)


def test_log_odds_of_the_logistic_loss_are_the_predictor() -> None:
    z = np.linspace(-700, 700, 99)
    assert (LOGISTIC.log_odds(z) == z).all()


def test_the_hinge_loss_is_certain_beyond_its_corner_and_says_so_without_a_warning(
    recwarn: pytest.WarningsRecorder,
) -> None:
    assert smooth_hinge(0.5).log_odds(np.array([-2.0, 0.0, 2.0])).tolist() == [-math.inf, 0.0, math.inf]
    assert not recwarn.list


# -- what is not true is refused -------------------------------------------------------------------


def changed(**facts: Any) -> ConvexLoss:
    return replace(LOGISTIC, **({"name": "tried loss"} | facts))


WRONG: dict[str, tuple[ConvexLoss, str]] = {
    "a slope above the stated one": (changed(most_slope=0.99), "has a slope of 1 and states most_slope=0.99"),
    "a slope above the stated one far out": (
        changed(
            slope=lambda z, y: np.where(np.abs(z) > 5000, 2.0, 0.5) * np.sign(z),
            most_slope=1.0,
            value=None,
            one_sided=False,
            taper=None,
        ),
        "has a slope of 2",
    ),
    "a slope that falls": (changed(slope=lambda z, y: -y * np.exp(-(z**2)), value=None), "is not convex"),
    "a curvature below zero": (changed(curvature=lambda z, y: -0.01 + 0 * z * y), "is not convex"),
    "a curvature above the stated one": (
        changed(most_curvature=0.249),
        "has a curvature of 0.25 and states most_curvature=0.249",
    ),
    "less left than it bends": (changed(taper=0.9), "taper=0.9"),
    "less left than it bends, with a smaller cap": (replace(tempered_logistic(0.5, 4.0), taper=3.5), "taper=3.5"),
    "two signs": (
        changed(
            slope=lambda z, y: np.clip(z - y, -1, 1),
            curvature=lambda z, y: 1.0 * (np.abs(z - y) <= 1),
            value=None,
            most_curvature=1.0,
            taper=None,
        ),
        "slopes of both signs",
    ),
    "the slope of another loss": (
        changed(slope=lambda z, y: -y * expit(-2 * y * z), most_curvature=0.5, taper=None),
        "not the derivative of its value",
    ),
    "a slope that is not a number somewhere": (
        changed(slope=lambda z, y: np.where(z > 9000, np.nan, LOGISTIC.slope(z, y))),
        "no finite numbers",
    ),
    "a curvature that is infinite somewhere": (
        changed(curvature=lambda z, y: np.where(z == 0, np.inf, 0.0) + 0 * y),
        "no finite numbers",
    ),
}


@pytest.mark.parametrize("what", WRONG)
def test_a_loss_that_contradicts_itself_is_refused(what: str) -> None:
    loss, told = WRONG[what]
    with pytest.raises(ValueError) as refused:
        loss.check(CLASSES)
    assert_told_in_order(
        str(refused.value),
        [f"The {loss.name} has", told.removeprefix("has "), "." if "finite" in told else "Correct the loss"],
    )


LIES: dict[str, ConvexLoss] = {
    "no curvature at all": replace(smooth_hinge(0.05), curvature=lambda z, y: 0.0 * z * y, most_curvature=1e-3),
    "half of the curvature": changed(
        curvature=lambda z, y: LOGISTIC.curvature(z, y) / 2, most_curvature=0.125, taper=None
    ),
    "half of the taper": changed(curvature=lambda z, y: LOGISTIC.curvature(z, y) / 2, taper=0.5),
}


@pytest.mark.parametrize("what", LIES)
def test_a_loss_whose_slope_rises_faster_than_its_curvature_says_is_refused(what: str) -> None:
    """The volume around a minimum depends on how the slope really rises, not on what a second function says."""
    with pytest.raises(ValueError, match="privacy rests on these facts"):
        LIES[what].check(CLASSES)


@pytest.mark.parametrize("value", [None, 0, -1.0, math.inf, math.nan, True, "1"])
def test_a_loss_without_a_largest_slope_is_refused(value: Any) -> None:
    with pytest.raises(ValueError) as refused:
        changed(most_slope=value).check(CLASSES)
    assert_told_in_order(str(refused.value), [f"states most_slope={value!r}", "a positive number", "State it"])


@pytest.mark.parametrize("name", ["most_curvature", "taper"])
@pytest.mark.parametrize("value", [0, -1.0, math.inf, math.nan, True, "1"])
def test_constants_that_are_no_positive_numbers_are_refused(name: str, value: Any) -> None:
    with pytest.raises(ValueError, match=f"states {name}=.*positive number"):
        changed(**{name: value}).check(CLASSES)


def test_constants_may_be_larger_than_need_be_or_absent() -> None:
    for loss in (
        changed(most_slope=2.0, most_curvature=3, taper=np.float64(9.0)),
        changed(most_curvature=None, taper=None, value=None),
    ):
        loss.check(CLASSES)
        with pytest.raises(ValueError, match="states most_slope"):
            replace(loss, most_slope=0.9).check(CLASSES)


def test_an_unknown_link_is_refused() -> None:
    with pytest.raises(ValueError, match=r"link='probit'; a link is one of .*Use 'identity'"):
        changed(link="probit").check(CLASSES)


def test_a_loss_of_numbers_is_checked_where_its_targets_are() -> None:
    """It is steep only for targets beyond 50."""
    loss = ConvexLoss(
        lambda z, y: np.clip(z - y, -1, 1) * np.where(np.abs(y) > 50, 2, 1),
        lambda z, y: 2.0 * (np.abs(z - y) <= 1),
        most_slope=1.0,
    )
    loss.check(np.linspace(-40, 40, 5))
    with pytest.raises(ValueError, match="has a slope of 2"):
        loss.check(np.linspace(-100, 100, 5))


@pytest.mark.parametrize("width", [0, -1, math.inf, math.nan, 1e7, "0.5", None, True])
def test_a_hinge_of_no_width_is_refused(width: Any) -> None:
    with pytest.raises(ValueError, match=r"was given width=.*positive number.*Use 0\.5"):
        smooth_hinge(width)


@pytest.mark.parametrize("threshold", [0, -1, math.inf, math.nan, "1", None])
def test_a_robust_loss_without_a_threshold_is_refused(threshold: Any) -> None:
    with pytest.raises(ValueError, match=r"was given threshold=.*positive number in the target's units"):
        robust(threshold)


@pytest.mark.parametrize(("cap", "taper"), [(0, 1), (-0.5, 1), (1.1, 1), (0.5, 0.9), (math.nan, 1), (0.5, math.nan)])
def test_a_cap_or_taper_out_of_range_is_refused(cap: float, taper: float) -> None:
    with pytest.raises(ValueError, match=r"was given cap=.*taper=.*Use 1 and 1 for the logistic loss"):
        tempered_logistic(cap, taper)


def test_a_loss_says_what_it_states() -> None:
    assert repr(LOGISTIC) == "ConvexLoss(logistic loss, most_slope=1.0, most_curvature=0.25, taper=1.0)"


@pytest.mark.parametrize("width", [1e-2, 1e-3, 1e-4])
@pytest.mark.parametrize("middle", [0.7, 0.71, 0.7137])
def test_curvature_is_looked_for_between_the_points_of_the_grid(width: float, middle: float) -> None:
    def bent(curvature: float) -> ConvexLoss:
        return ConvexLoss(
            lambda z, y: -y * np.clip((middle + width - y * z) / (2 * width), 0, 1),
            lambda z, y: np.where(np.abs(middle - y * z) <= width, 1 / (2 * width), 0.0),
            most_slope=1.0,
            most_curvature=curvature,
            one_sided=True,
        )

    bent(0.5 / width).check(CLASSES)
    with pytest.raises(ValueError, match="states most_curvature"):
        bent(0.4 / width).check(CLASSES)
    lying = replace(bent(0.4 / width), curvature=lambda z, y: 0.0 * z)  # the slope tells
    with pytest.raises(ValueError, match="states most_curvature"):
        lying.check(CLASSES)
    assert replace(lying, most_curvature=None).sharpest == pytest.approx(0.5 / width, rel=1e-3)


@pytest.mark.parametrize("kind", [np.float16, np.float32, np.float64])
def test_constants_are_kept_as_plain_floats(kind: Any) -> None:
    """Calibration computes with them, and would do so in their precision."""
    loss = ConvexLoss(LOGISTIC.slope, LOGISTIC.curvature, most_slope=kind(1), most_curvature=kind(0.25), taper=kind(1))
    assert {type(value) for value in (loss.most_slope, loss.most_curvature, loss.taper)} == {float}
    assert type(smooth_hinge(kind(0.3)).most_curvature) is float
    assert type(robust(kind(0.3)).most_slope) is float


@pytest.mark.parametrize("name", MARGINS)
def test_losses_without_functions_of_the_users_own_can_be_pickled(name: str) -> None:
    loss = MARGINS[name]
    if name.startswith(("tempered", "hardly")):
        return  # these are made by fits, which keep two numbers of them
    again = pickle.loads(pickle.dumps(loss))
    z = np.linspace(-3, 3, 50)
    for function in ("slope", "curvature", "value"):
        np.testing.assert_array_equal(getattr(again, function)(z, 1.0), getattr(loss, function)(z, 1.0))
    assert (again == LOGISTIC) == (loss == LOGISTIC)


@pytest.mark.parametrize(
    "slope", [None, lambda z: z, lambda z, y: None, lambda z, y: 1j * z, lambda z, y: "steep", lambda z, y: z[:3]]
)
def test_a_slope_that_is_no_function_of_numbers_is_refused_in_a_sentence(slope: Any) -> None:
    loss = ConvexLoss(slope, lambda z, y: 0.0 * z, most_slope=1.0, most_curvature=1.0)
    with pytest.raises(ValueError, match="The loss has"):
        loss.check(CLASSES)
