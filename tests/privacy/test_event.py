"""Events: the price and the noise of a release, from public facts alone."""

from __future__ import annotations

import dataclasses
import json
import math
from fractions import Fraction

import numpy as np
import opendp.prelude as dp
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st
from scipy import stats

from privfit.privacy import PURE, Budget, Event, PrivacyError, exact
from privfit.privacy.composition import rho_of
from privfit.privacy.event import gaussian_scale, laplace_scale
from privfit.privacy.octahedra import octahedra_sd
from tests.privacy.test_composition import gaussian_delta

dp.enable_features("contrib")

SENSITIVITIES = st.integers(1, 2**45)
EPSILONS = st.one_of(st.floats(1e-4, 100), st.sampled_from([0.1, 0.2, 0.3, 0.7, 1.0, 1 / 3, 0.1 + 0.2]))


def laplace(epsilon=1.0, sensitivity=10, **facts) -> Event:
    return Event.laplace("test", Budget(epsilon), sensitivity=sensitivity, adjacency="replace-one", **facts)


# -- the scale ------------------------------------------------------------------------------------------------------


@given(SENSITIVITIES, EPSILONS)
@example(1, 0.1)
@example(3, 0.3)
@example(2**45, 1e-4)
def test_the_scale_never_costs_more_than_the_written_epsilon(sensitivity, epsilon):
    scale = laplace(epsilon, sensitivity).scale
    assert Fraction(sensitivity) / Fraction(scale) <= exact(epsilon)


@given(SENSITIVITIES, EPSILONS)
@example(1, 0.1)
@example(3, 0.3)
def test_the_scale_is_the_smallest_float_that_suffices(sensitivity, epsilon):
    scale = laplace(epsilon, sensitivity).scale
    assert Fraction(sensitivity) / Fraction(math.nextafter(scale, 0.0)) > exact(epsilon)


@settings(deadline=None, max_examples=60)
@given(SENSITIVITIES, EPSILONS)
def test_opendp_agrees_that_the_scale_pays_for_the_sensitivity(sensitivity, epsilon):
    """OpenDP rounds its own epsilon up to a float; the written epsilon may lie just above the float, so that one step is allowed."""
    scale = laplace(epsilon, sensitivity).scale
    measurement = dp.m.make_laplace(dp.vector_domain(dp.atom_domain(T="i64")), dp.l1_distance(T="i64"), scale=scale)
    claimed = measurement.map(sensitivity)
    allowed = epsilon if exact(epsilon) <= Fraction(epsilon) else math.nextafter(epsilon, math.inf)
    assert claimed <= allowed
    assert claimed > epsilon * (1 - 1e-12)


@given(SENSITIVITIES, EPSILONS, st.integers(1, 1000))
def test_more_rows_per_person_scale_the_sensitivity_as_many_times(sensitivity, epsilon, rows):
    assume(sensitivity * rows / epsilon < 2**62)
    event = laplace(epsilon, sensitivity, rows_per_person=rows)
    assert event.sensitivity == sensitivity * rows
    assert event.scale == laplace(epsilon, sensitivity * rows).scale
    assert event.epsilon == epsilon


@given(SENSITIVITIES, EPSILONS)
def test_half_a_share_draws_with_half_of_epsilon_and_still_costs_all_of_it(sensitivity, epsilon):
    event = laplace(epsilon, sensitivity, share=0.5)
    assert Fraction(sensitivity) / Fraction(event.scale) <= exact(epsilon) / 2
    assert event.cost.epsilon == exact(epsilon)


@pytest.mark.parametrize("share", [0, -0.5, 1.5, 2, math.nan, math.inf])
def test_a_share_above_the_whole_or_of_nothing_is_refused(share):
    with pytest.raises(PrivacyError, match="share="):
        laplace(share=share)


def test_numpy_whole_numbers_do_not_overflow():
    event = laplace(0.5, np.int64(2**40), rows_per_person=np.int64(2**20))
    assert event.sensitivity == 2**60
    assert event.scale == 2.0**61
    assert Event.from_json(event.to_json()) == event


@pytest.mark.parametrize("sensitivity", [0, -1])
def test_a_sensitivity_of_nothing_is_refused(sensitivity):
    with pytest.raises(PrivacyError, match="sensitivity"):
        laplace(1.0, sensitivity)


@pytest.mark.parametrize(("sensitivity", "epsilon"), [(2**62, 0.5), (1, 1e-300), (10**400, 1.0), (1, 5e-324)])
def test_noise_that_64_bits_cannot_hold_is_refused(sensitivity, epsilon):
    with pytest.raises(PrivacyError, match="more noise than"):
        laplace(epsilon, sensitivity)


def test_the_largest_noise_that_64_bits_can_hold_is_given():
    assert laplace_scale(2**62, Fraction(1)) == 2.0**62


def test_the_noise_sd_is_that_of_the_law_in_the_units_of_the_statistic():
    event = laplace(0.5, 64, unit=16)
    assert event.scale == 128.0
    scale = event.scale
    k = np.arange(-20_000, 20_001)
    law = np.exp(-np.abs(k) / scale) / np.exp(-np.abs(k) / scale).sum()
    assert event.noise_sd == pytest.approx(math.sqrt((law * k**2).sum()) / 16, rel=1e-4)
    assert dataclasses.replace(event, noise="gaussian").noise_sd == 8.0


# -- what an event may be ---------------------------------------------------------------------------------------------


BAD = {
    "epsilon": [-1.0, -1e-300, math.nan, math.inf, -math.inf, "1", None, True],
    "delta": [-1e-9, 1.0, math.nan, math.inf, "0", None],
    "rho": [-0.5, math.nan, math.inf, "0", None],
    "scale": [-1.0, math.nan, math.inf, "1"],
    "sensitivity": [-1, 0.5, math.nan, "1"],
    "rows_per_person": [0, -1, 1.5, "1", True],
    "unit": [0, -1, 0.5],
    "n_values": [-1, 0.5],
    "adjacency": ["other", None],
}


@pytest.mark.parametrize(("field", "value"), [(field, value) for field, values in BAD.items() for value in values], ids=repr)
def test_an_event_that_cannot_be_is_refused(field, value):
    with pytest.raises(PrivacyError, match=field):
        Event(**{"mechanism": "test", "epsilon": 1.0, field: value})


@pytest.mark.parametrize(("field", "value"), [(field, value) for field, values in BAD.items() for value in values], ids=repr)
def test_an_event_that_cannot_be_is_refused_from_json_too(field, value):
    plain = {**Event("test", 1.0).to_dict(), field: value}
    with pytest.raises(PrivacyError, match=field):
        Event.from_json(json.dumps(plain))


def test_an_event_that_costs_nothing_is_refused():
    with pytest.raises(PrivacyError, match="costs nothing"):
        Event("test", 0.0)


@pytest.mark.parametrize("price", [{"rho": 0.1}, {"delta": 1e-6}])
def test_an_event_may_cost_rho_or_delta_alone(price):
    assert Event("test", 0.0, **price).to_dict() == {**Event("test", 1.0).to_dict(), "epsilon": 0.0, **price}


@pytest.mark.parametrize("field", [field.name for field in dataclasses.fields(Event)])
def test_no_field_of_an_event_can_be_changed(field):
    event = laplace()
    with pytest.raises(dataclasses.FrozenInstanceError):
        setattr(event, field, getattr(event, field))


@given(
    EPSILONS,
    SENSITIVITIES,
    st.sampled_from(["replace-one", "add-remove"]),
    st.integers(1, 9),
    st.integers(1, 2**40),
    st.integers(1, 10**6),
    st.text(max_size=20),
)
def test_an_event_is_the_same_after_a_round_trip_through_json(epsilon, sensitivity, adjacency, rows, unit, n_values, name):
    event = Event.laplace(
        name, Budget(epsilon), sensitivity=sensitivity, adjacency=adjacency, rows_per_person=rows, unit=unit, n_values=n_values
    )
    again = Event.from_json(event.to_json())
    assert again == event
    assert again.cost == event.cost
    assert "\n" not in event.to_json()


@given(st.floats(0, 1e6), st.floats(0, 1, exclude_max=True), st.floats(0, 1e6))
def test_prices_survive_json_to_the_last_bit(epsilon, delta, rho):
    assume(epsilon or delta or rho)
    event = Event("test", epsilon, delta, rho)
    again = Event.from_json(event.to_json())
    assert (again.epsilon, again.delta, again.rho) == (epsilon, delta, rho)
    assert (again.cost.epsilon, again.cost.delta, again.cost.rho) == (exact(epsilon), exact(delta), exact(rho))


def test_asking_for_the_cost_changes_neither_equality_nor_json():
    asked, fresh = laplace(), laplace()
    assert asked.cost.epsilon == 1
    assert asked == fresh
    assert hash(asked) == hash(fresh)
    assert asked.to_json() == fresh.to_json()


# -- noise in one piece, and in parts -----------------------------------------------------------------------------------


def pure(noise="linf", epsilon=1.0, sensitivity=10, **facts) -> Event:
    return Event.pure("test", Budget(epsilon), noise=noise, sensitivity=sensitivity, adjacency="replace-one", **facts)


@given(st.sampled_from(PURE), SENSITIVITIES, EPSILONS, st.integers(1, 50), st.sampled_from([1.0, 0.5]))
def test_every_pure_noise_has_the_smallest_scale_that_pays_for_a_person(noise, sensitivity, epsilon, rows, share):
    assume(sensitivity * rows / epsilon < 2**60 if noise == "laplace" else 1 <= sensitivity * rows / epsilon < 2**50)
    event = pure(noise, epsilon, sensitivity, rows_per_person=rows, share=share)
    paid = exact(epsilon) * exact(share)
    assert event.noise == noise
    assert Fraction(sensitivity * rows) / Fraction(event.scale) <= paid
    assert Fraction(sensitivity * rows) / Fraction(math.nextafter(event.scale, 0.0)) > paid
    assert (event.sensitivity, event.rows_per_person) == (sensitivity * rows, rows)
    assert (event.cost.epsilon, event.cost.delta, event.cost.rho) == (exact(epsilon), 0, 0)


def test_laplace_is_one_of_the_pure_noises():
    assert laplace(0.3, 77, rows_per_person=2, unit=4) == pure("laplace", 0.3, 77, rows_per_person=2, unit=4)


@pytest.mark.parametrize("noise", ["gaussian", "unknown", "Laplace", "", None])
def test_noise_that_does_not_spend_epsilon_alone_is_refused(noise):
    with pytest.raises(PrivacyError, match="noise="):
        pure(noise)


@pytest.mark.parametrize("noise", PURE)
@pytest.mark.parametrize("wrong", [{"sensitivity": 0}, {"sensitivity": -3}, {"share": 0}, {"share": 1.5}, {"rows_per_person": 0}])
def test_every_pure_noise_refuses_what_would_be_free(noise, wrong):
    with pytest.raises(PrivacyError):
        pure(noise, **wrong)


@pytest.mark.parametrize("wrong", [{"sensitivity": 1.5}, {"rows_per_person": 1.5}])
def test_a_sensitivity_that_is_no_whole_number_is_refused(wrong):
    with pytest.raises((TypeError, PrivacyError)):
        pure(**wrong)
    with pytest.raises((TypeError, PrivacyError)):
        gaussian(**wrong)


@given(st.lists(st.integers(1, 10**6), min_size=1, max_size=6), st.sampled_from(PURE))
def test_parts_are_the_same_after_a_round_trip_through_json(parts, noise):
    event = pure(noise, sensitivity=10**9, parts=tuple(parts), n_values=sum(parts))
    again = Event.from_json(event.to_json())
    assert again == event
    assert again.parts == tuple(parts)
    assert hash(again) == hash(event)
    assert json.loads(event.to_json())["parts"] == parts
    assert [again.part_sd(part) for part in range(len(parts))] == [event.part_sd(part) for part in range(len(parts))]


def test_an_event_that_was_written_before_there_were_parts_is_read_as_one_part():
    plain = laplace(n_values=7).to_dict()
    del plain["parts"]
    assert Event.from_json(json.dumps(plain)) == laplace(n_values=7)


@pytest.mark.parametrize("parts", [(3, 4), (3, 3, 3), (9,), (-1, 9), (0, 8), (8, 0), (4, 4, 0)])
def test_parts_that_are_not_all_values_are_refused(parts):
    with pytest.raises(PrivacyError, match="parts="):
        pure(parts=parts, n_values=8)
    with pytest.raises(PrivacyError, match="parts="):
        Event.from_json(json.dumps({**laplace(n_values=8).to_dict(), "parts": parts}))


def cube_sd(p: int, scale: float) -> float:
    """The deviation of one of p values of a cube: uniform on -R..R, with P(R) proportional to (2R + 1)^p exp(-R / scale)."""
    r = np.arange(int(scale * (p + 60)), dtype=float)
    log_mass = p * np.log(2 * r + 1) - r / scale
    mass = np.exp(log_mass - log_mass.max())
    return math.sqrt((mass * r * (r + 1) / 3).sum() / mass.sum())


@pytest.mark.parametrize("p", [1, 2, 5, 50])
def test_the_deviations_of_the_shapes_are_those_of_their_laws(p):
    facts = {"epsilon": 0.25, "sensitivity": 2000, "unit": 16, "n_values": p}
    assert pure("linf", **facts).noise_sd == pytest.approx(cube_sd(p, 8000.0) / 16, rel=1e-3)
    squared_length = stats.gamma(p, scale=8000.0).moment(2)
    assert pure("l2", **facts).noise_sd == pytest.approx(math.sqrt(squared_length / p) / 16, rel=1e-12)
    assert pure("linf", **facts).noise_sd > pure("l2", **facts).noise_sd * 0.99


def test_every_part_has_a_deviation_of_its_own_at_one_scale():
    event = pure("linf", 0.5, 4096, unit=64, n_values=13, parts=(9, 4))
    scale = 2 * 4096 / 64
    assert event.part_sd(0) == event.noise_sd == pytest.approx(math.sqrt(10 * 11 / 3) * scale)
    assert event.part_sd(1) == event.part_sd(-1) == pytest.approx(math.sqrt(5 * 6 / 3) * scale)
    whole = dataclasses.replace(event, parts=())
    assert whole.part_sd(0) == whole.part_sd(-1) == pytest.approx(math.sqrt(14 * 15 / 3) * scale)
    for noise, factor in (("laplace", math.sqrt(2)), ("gaussian", 1.0)):
        parted = dataclasses.replace(event, noise=noise)
        assert parted.part_sd(0) == parted.part_sd(-1) == pytest.approx(factor * scale)


def in_octahedra(**facts):
    given_ = {"noise": "octahedra+laplace", "parts": (5, 2), "scales": (9.0, 4.0), "widths": ((2, 3), ()), "n_values": 7}
    return Event("test", 0.5, **{**given_, **facts})


def test_blocks_of_octahedra_are_the_same_after_a_round_trip_through_json():
    event = in_octahedra()
    again = Event.from_json(event.to_json())
    assert again == event
    assert hash(again) == hash(event)
    assert again.widths == ((2, 3), ())
    assert again.part_sd(0) == event.part_sd(0) == pytest.approx(9 * octahedra_sd((2, 3)))
    assert again.part_sd(1) == pytest.approx(4 * math.sqrt(2))
    whole = Event("test", 0.5, noise="octahedra", scale=9.0, n_values=5, widths=((2, 3),))
    assert whole.noise_sd == event.part_sd(0)


@pytest.mark.parametrize(
    "wrong",
    [
        {"widths": ()},
        {"widths": ((2, 2), ())},
        {"widths": ((2, 3), (2,))},
        {"widths": ((5, 0), ())},
        {"widths": ((2, 3),)},
        {"widths": ((2, 3), (), ())},
        {"noise": "laplace+laplace"},
        {"noise": "laplace+laplace", "widths": ((2, 3), (2,))},
        {"widths": ((2.5, 2.5), ())},
    ],
)
def test_blocks_that_are_not_those_of_their_part_are_refused(wrong):
    with pytest.raises(PrivacyError, match="widths="):
        in_octahedra(**wrong)


# -- Gaussian noise -----------------------------------------------------------------------------------------------------


def gaussian(epsilon=1.0, delta=1e-6, sensitivity=10, **facts) -> Event:
    return Event.gaussian("test", Budget(epsilon, delta), sensitivity=sensitivity, adjacency="replace-one", **facts)


GAUSSIAN_EPSILONS = st.floats(1e-3, 20)
GAUSSIAN_DELTAS = st.floats(-30, -1).map(lambda power: 10.0**power)


@given(GAUSSIAN_EPSILONS, GAUSSIAN_DELTAS, st.integers(1, 2**40), st.integers(1, 20))
def test_a_gaussian_scale_never_costs_more_than_the_rho_that_the_event_states_and_hardly_less(epsilon, delta, sensitivity, rows):
    event = gaussian(epsilon, delta, sensitivity, rows_per_person=rows)
    reach = sensitivity * rows
    assert event.rho == rho_of(epsilon, delta)
    assert event.sensitivity == reach
    assert Fraction(reach) ** 2 <= 2 * event.cost.rho * Fraction(event.scale) ** 2
    assert Fraction(reach) ** 2 > 2 * event.cost.rho * Fraction(event.scale * (1 - 2.0**-51)) ** 2
    assert (event.cost.epsilon, event.cost.delta, event.cost.rho) == (exact(epsilon), exact(delta), exact(event.rho))


@given(st.floats(0.05, 20), st.floats(-9, -1).map(lambda power: 10.0**power))
def test_the_true_loss_of_a_gaussian_event_is_within_its_price(epsilon, delta):
    event = gaussian(epsilon, delta, 2**30)
    assert gaussian_delta((event.sensitivity / event.scale) ** 2 / 2, epsilon) <= delta
    halved = event.scale / 2
    assert gaussian_delta((event.sensitivity / halved) ** 2 / 2, epsilon) > delta, "half the noise would not do"


@settings(deadline=None, max_examples=40)
@given(GAUSSIAN_EPSILONS, GAUSSIAN_DELTAS, st.integers(1, 2**40))
def test_opendp_agrees_that_the_gaussian_scale_pays_for_the_sensitivity(epsilon, delta, sensitivity):
    event = gaussian(epsilon, delta, sensitivity)
    measurement = dp.m.make_gaussian(dp.vector_domain(dp.atom_domain(T="i64"), size=1), dp.l2_distance(T=float), scale=event.scale)
    assert event.rho * (1 - 1e-12) <= measurement.map(float(sensitivity)) <= event.rho * (1 + 1e-14)


def test_a_gaussian_event_is_the_same_after_a_round_trip_through_json():
    event = gaussian(0.3, 1e-7, 2**33 + 1, rows_per_person=3, unit=2**32, n_values=99)
    again = Event.from_json(event.to_json())
    assert again == event
    assert again.cost == event.cost
    assert again.noise_sd == event.scale / 2**32


def test_gaussian_noise_without_a_delta_is_refused():
    with pytest.raises(PrivacyError, match="delta=0"):
        gaussian(delta=0.0)


@pytest.mark.parametrize("sensitivity", [0, -1])
def test_gaussian_noise_for_nothing_is_refused(sensitivity):
    with pytest.raises(PrivacyError, match="sensitivity"):
        gaussian(sensitivity=sensitivity)
    with pytest.raises(PrivacyError, match="rho"):
        gaussian_scale(1, Fraction(0))


@pytest.mark.parametrize(("sensitivity", "epsilon"), [(2**62, 0.5), (2**40, 1e-12), (10**400, 1.0), (1, 1e-40)])
def test_gaussian_noise_that_64_bits_cannot_hold_is_refused(sensitivity, epsilon):
    with pytest.raises(PrivacyError, match="more noise than"):
        gaussian(epsilon, 1e-6, sensitivity)


@pytest.mark.parametrize("noise", [3, None, b"laplace", ["laplace"]], ids=repr)
def test_noise_that_is_no_text_is_refused(noise) -> None:
    with pytest.raises(PrivacyError, match="it is a text"):
        Event("m", 0.01, noise=noise)
