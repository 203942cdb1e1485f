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

from privfit.privacy import Budget, Event, PrivacyError, exact
from privfit.privacy.event import laplace_scale

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
