"""Events and their parts: the price and every draw of a release, from public facts alone."""

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
from privfit.privacy.budget import rho_of
from privfit.privacy.event import gaussian_scale, laplace_scale
from privfit.privacy.parts import (
    CERTIFICATE,
    KINDS,
    DiscreteGaussian,
    HeldThreshold,
    KNorm,
    Laplace,
    Part,
    RandomBits,
    Repeat,
    RoundedGaussian,
    Selection,
    Threshold,
    read_part,
)
from privfit.privacy.samplers.norms import block_norm_sds
from tests.privacy.test_composition import gaussian_delta

dp.enable_features("contrib")

SENSITIVITIES = st.integers(1, 2**45)
EPSILONS = st.one_of(st.floats(1e-4, 100), st.sampled_from([0.1, 0.2, 0.3, 0.7, 1.0, 1 / 3, 0.1 + 0.2]))


def laplace(epsilon=1.0, sensitivity=10, **facts) -> Event:
    return Event.laplace("test", Budget(epsilon), sensitivity=sensitivity, adjacency="replace-one", **facts)


# -- the scale -------------------------------------------------------------------------------------


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
    """OpenDP rounds its own epsilon up to a float; the written epsilon may lie just above the float, so that one step
    is allowed.
    """
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
    normal = DiscreteGaussian(size=1, scale=event.scale, unit=16)
    assert dataclasses.replace(event, parts=(normal,)).noise_sd == 8.0


# -- what an event may be --------------------------------------------------------------------------


BAD = {
    "epsilon": [-1.0, -1e-300, math.nan, math.inf, -math.inf, "1", None, True],
    "delta": [-1e-9, 1.0, math.nan, math.inf, "0", None],
    "rho": [-0.5, math.nan, math.inf, "0", None],
    "rows_per_person": [0, -1, 1.5, "1", True],
    "adjacency": ["other", None],
}
WRONG = [(field, value) for field, values in BAD.items() for value in values]


@pytest.mark.parametrize(("field", "value"), WRONG, ids=repr)
def test_an_event_that_cannot_be_is_refused(field, value):
    with pytest.raises(PrivacyError, match=field):
        Event(**{"mechanism": "test", "epsilon": 1.0, field: value})


@pytest.mark.parametrize(("field", "value"), WRONG, ids=repr)
def test_an_event_that_cannot_be_is_refused_from_json_too(field, value):
    plain = {**Event("test", 1.0).to_dict(), field: value}
    with pytest.raises(PrivacyError, match=field):
        Event.from_json(json.dumps(plain))


@pytest.mark.parametrize("parts", [(3,), ("laplace",), ({"kind": "laplace", "size": 3},), (None,)], ids=repr)
def test_parts_that_are_no_parts_are_refused(parts):
    with pytest.raises(PrivacyError, match="no parts"):
        Event("test", 1.0, parts=parts)


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
def test_an_event_is_the_same_after_a_round_trip_through_json(
    epsilon, sensitivity, adjacency, rows, unit, n_values, name
):
    event = Event.laplace(
        name,
        Budget(epsilon),
        sensitivity=sensitivity,
        adjacency=adjacency,
        rows_per_person=rows,
        unit=unit,
        n_values=n_values,
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


# -- noise in one piece, and in parts --------------------------------------------------------------


def pure(noise="linf", epsilon=1.0, sensitivity=10, **facts) -> Event:
    return Event.pure("test", Budget(epsilon), noise=noise, sensitivity=sensitivity, adjacency="replace-one", **facts)


@given(st.sampled_from(PURE), SENSITIVITIES, EPSILONS, st.integers(1, 50), st.sampled_from([1.0, 0.5]))
def test_every_pure_noise_has_the_smallest_scale_that_pays_for_a_person(noise, sensitivity, epsilon, rows, share):
    assume(sensitivity * rows / epsilon < 2**60 if noise == "laplace" else 1 <= sensitivity * rows / epsilon < 2**50)
    event = pure(noise, epsilon, sensitivity, rows_per_person=rows, share=share)
    paid = exact(epsilon) * exact(share)
    assert event.kinds == ({"laplace": "laplace", "linf": "k-norm-linf", "l2": "k-norm-l2"}[noise],)
    assert event.parts[0].epsilon == epsilon * share
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
@pytest.mark.parametrize(
    "wrong", [{"sensitivity": 0}, {"sensitivity": -3}, {"share": 0}, {"share": 1.5}, {"rows_per_person": 0}]
)
def test_every_pure_noise_refuses_what_would_be_free(noise, wrong):
    with pytest.raises(PrivacyError):
        pure(noise, **wrong)


@pytest.mark.parametrize("wrong", [{"sensitivity": 1.5}, {"rows_per_person": 1.5}])
def test_a_sensitivity_that_is_no_integer_is_refused(wrong):
    with pytest.raises((TypeError, PrivacyError)):
        pure(**wrong)
    with pytest.raises((TypeError, PrivacyError)):
        gaussian(**wrong)


@pytest.mark.parametrize("noise", ["laplace", "l2"])
def test_only_l_infinity_noise_has_blocks(noise):
    with pytest.raises(PrivacyError, match="blocks="):
        pure(noise, n_values=7, blocks=(3, 4))
    assert pure("linf", n_values=7, blocks=(3, 4)).parts[0].blocks == (3, 4)


def cube_sd(p: int, scale: float) -> float:
    """The deviation of one of p values of a cube: uniform on -R..R, with P(R) proportional to (2R + 1)^p exp(-R /
    scale).
    """
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


def test_every_block_has_a_deviation_of_its_own_at_one_scale():
    event = pure("linf", 0.5, 4096, unit=64, n_values=13, blocks=(9, 4))
    (part,) = event.parts
    scale = 2 * 4096 / 64
    assert event.noise_sd == event.summary.usual_sd == part.sd == pytest.approx(math.sqrt(10 * 11 / 3) * scale)
    assert part.block_sd(1) == part.block_sd(-1) == pytest.approx(math.sqrt(5 * 6 / 3))
    whole = dataclasses.replace(part, blocks=())
    assert whole.sd == whole.block_sd(0) * scale == pytest.approx(math.sqrt(14 * 15 / 3) * scale)
    for kind, factor in ((Laplace, math.sqrt(2)), (DiscreteGaussian, 1.0), (RoundedGaussian, 1.0)):
        assert kind(size=13, scale=part.scale, unit=64).sd == pytest.approx(factor * scale)


# -- Gaussian noise --------------------------------------------------------------------------------


def gaussian(epsilon=1.0, delta=1e-6, sensitivity=10, **facts) -> Event:
    return Event.gaussian("test", Budget(epsilon, delta), sensitivity=sensitivity, adjacency="replace-one", **facts)


GAUSSIAN_EPSILONS = st.floats(1e-3, 20)
GAUSSIAN_DELTAS = st.floats(-30, -1).map(lambda power: 10.0**power)


@given(GAUSSIAN_EPSILONS, GAUSSIAN_DELTAS, st.integers(1, 2**40), st.integers(1, 20))
def test_a_gaussian_scale_never_costs_more_than_the_rho_that_the_event_states_and_hardly_less(
    epsilon, delta, sensitivity, rows
):
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
    measurement = dp.m.make_gaussian(
        dp.vector_domain(dp.atom_domain(T="i64"), size=1), dp.l2_distance(T=float), scale=event.scale
    )
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


# -- parts -----------------------------------------------------------------------------------------

ADDITIVE = (
    Laplace(size=4, scale=2.5, sensitivity=3, unit=8, epsilon=0.25),
    DiscreteGaussian(size=2, scale=1.5, rho=0.01, purpose="rounds"),
    RoundedGaussian(size=2**40, scale=3e9, sensitivity=2**60 + 1, unit=2**32),
    KNorm(norm="l2", size=3, scale=7.0),
    KNorm(norm="linf", size=5, scale=7.0),
    KNorm(norm="linf", size=5, blocks=(2, 3), scale=7.0, purpose=CERTIFICATE),
    KNorm(norm="blocks", size=5, blocks=(2, 3), scale=9.0),
    Laplace(size=1),
)
PARTS = (
    *ADDITIVE,
    Selection(rule="exponential"),
    Selection(rule="permute-and-flip", count=9, scale=4.0, sensitivity=2, epsilon=0.5),
    Threshold(size=10**300, scale=2.0, threshold=1400, sensitivity=2, epsilon=0.125),
    HeldThreshold(size=10**6, scale=2.0, threshold=40, sensitivity=2, epsilon=0.125),
    RandomBits(purpose="which rows form a part"),
    Repeat(parts=(Laplace(size=2, scale=1.0), RandomBits()), times=3, epsilon=0.3),
    Repeat(parts=(KNorm(norm="linf", size=2, blocks=(1, 1), scale=1.0),), one_in=1000),
)


def test_every_kind_of_part_is_tested():
    assert {type(part) for part in PARTS} == set(KINDS.values())


@pytest.mark.parametrize("part", PARTS, ids=repr)
def test_every_part_is_the_same_after_a_round_trip_through_json(part):
    event = Event("test", 1.0, 1e-6, 0.5, parts=(part, *PARTS[:1]))
    again = Event.from_json(event.to_json())
    assert again == event
    assert hash(again) == hash(event)
    assert again.parts[0] == part
    assert type(again.parts[0]) is type(part)
    assert read_part(json.loads(json.dumps(part.to_dict()))) == part
    assert again.to_json() == event.to_json()


def test_what_a_part_leaves_at_its_default_is_not_written():
    assert Laplace(size=4).to_dict() == {"kind": "laplace", "size": 4}
    assert RandomBits().to_dict() == {"kind": "random-bits"}


def test_numpy_numbers_become_plain_ones():
    part = Laplace(size=np.int64(3), scale=np.float64(2.5), sensitivity=np.int64(2**60), unit=np.int32(4))
    assert [type(value) for value in (part.size, part.scale, part.sensitivity, part.unit)] == [int, float, int, int]
    assert read_part(json.loads(json.dumps(part.to_dict()))) == part


@pytest.mark.parametrize("part", PARTS, ids=repr)
def test_no_field_of_a_part_can_be_changed(part):
    for field in dataclasses.fields(part):
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(part, field.name, getattr(part, field.name))


NONSENSE = {
    "epsilon": [-0.1, math.nan, math.inf, "1", None, True],
    "rho": [-0.1, math.nan, math.inf, "1", None],
    "purpose": [None, 3, b"release"],
    "scale": [-1.0, math.nan, math.inf, "1", None],
    "sensitivity": [-1, math.nan, math.inf, "1", None],
    "unit": [0, -1, 0.5, True],
    "size": [0, -1, 0.5, True, "3"],
    "count": [0, -1, 1.5, True],
    "threshold": [0, -1, 1.5, True],
    "rule": ["best", None, ["exponential"]],
    "norm": ["l1", None, ["l2"]],
    "blocks": [(2, 2), (5, 0), (6, -1), (2.5, 2.5), (True, 4), ("2", 3)],
    "times": [-1, 0.5, True],
    "one_in": [-1, 0.5, True],
    "parts": [(), (3,), (RandomBits(), None)],
}


@pytest.mark.parametrize(
    ("part", "field", "value"),
    [
        (part, field.name, value)
        for part in PARTS
        for field in dataclasses.fields(part)
        for value in NONSENSE[field.name]
    ],
    ids=repr,
)
def test_a_part_that_cannot_be_is_refused(part, field, value):
    with pytest.raises(PrivacyError):
        dataclasses.replace(part, **{field: value})


@pytest.mark.parametrize(
    "make",
    [
        lambda: KNorm(norm="l2", size=5, blocks=(2, 3)),
        lambda: KNorm(norm="blocks", size=5),
        lambda: Threshold(size=5, scale=0.0, threshold=3),
        lambda: RandomBits(epsilon=0.1),
        lambda: RandomBits(rho=0.1),
        lambda: Repeat(parts=(RandomBits(),)),
        lambda: Repeat(parts=(RandomBits(),), times=2, one_in=9),
        lambda: Repeat(parts=(Repeat(parts=(RandomBits(),), times=2),), times=2),
    ],
)
def test_parts_that_say_two_things_or_nothing_are_refused(make):
    with pytest.raises(PrivacyError):
        make()


@pytest.mark.parametrize(
    "plain",
    [
        {},
        {"kind": "laplace"},
        {"kind": "cauchy", "size": 3},
        {"kind": "laplace", "size": 3, "colour": "red"},
        {"kind": "threshold", "size": 3, "scale": 1.0},
        {"kind": "repeat", "times": 3},
        {"kind": ["laplace"], "size": 3},
    ],
    ids=repr,
)
def test_a_part_that_nobody_knows_is_refused(plain):
    with pytest.raises(PrivacyError, match="does not know"):
        read_part(plain)
    with pytest.raises(PrivacyError, match="does not know"):
        Event.from_dict({**Event("test", 1.0).to_dict(), "parts": [plain]})


@pytest.mark.parametrize("name", ["epsilon", "rho"])
@pytest.mark.parametrize(
    ("parts", "spent"),
    [
        (lambda share: (Laplace(size=1, **share), Selection(rule="exponential", **share)), 2),
        (lambda share: (Threshold(size=1, scale=1.0, threshold=1, **share),), 1),
        (lambda share: (Repeat(parts=(Laplace(size=1),), times=3, **share),), 1),
        (lambda share: (Repeat(parts=(Laplace(size=1, **share), RandomBits()), times=3),), 3),
        (lambda share: (Repeat(parts=(Laplace(size=1, **share),), one_in=9),), 2),
    ],
)
def test_parts_spend_at_most_the_price(name, parts, spent):
    own = parts({name: 0.1})
    assert Event("test", **{"epsilon": 1e-3, name: 0.1 * spent}, parts=own).parts == own
    with pytest.raises(PrivacyError, match=f"spend {name}"):
        Event("test", **{"epsilon": 1e-3, name: 0.1 * spent * (1 - 1e-6)}, parts=own)


# -- what the parts say together -------------------------------------------------------------------


def of(*parts: Part) -> Event:
    return Event("test", 1.0, parts=parts)


def test_what_is_released_is_counted_without_certificates_and_random_bits():
    certificate = Laplace(size=9, purpose=CERTIFICATE)
    assert of(RandomBits(), Laplace(size=4), KNorm(norm="l2", size=3), certificate).n_values == 7
    assert of(Repeat(parts=(Laplace(size=4), RandomBits()), times=3), Laplace(size=2)).n_values == 14
    assert of(Repeat(parts=(Laplace(size=4),), one_in=10)).n_values == 4
    assert of(Selection(rule="exponential", count=5), Selection(rule="exponential")).n_values == 6
    assert of(Threshold(size=10**40, scale=1.0, threshold=9)).n_values == 10**40
    assert of().n_values == of(RandomBits()).n_values == 0


def test_the_main_parts_are_those_of_the_first_purpose():
    event = of(
        RandomBits(purpose="rows"),
        Laplace(size=4, scale=8.0, sensitivity=3, unit=4),
        Laplace(size=9, scale=1.0, sensitivity=100, purpose=CERTIFICATE),
        KNorm(norm="l2", size=3, scale=6.0, sensitivity=5, unit=2),
    )
    assert event.kinds == ("laplace", "k-norm-l2")
    assert event.in_words == "discrete Laplace and K-norm, L2"
    assert (event.sensitivity, event.scale, event.unit) == (8, 8.0, 4)
    assert event.noise_sd == pytest.approx(math.sqrt(2) * 2)
    assert event.summary.usual_sd == pytest.approx(math.sqrt((4 * 2 * 2**2 + 3 * 4 * 3**2) / 7))


def test_of_gaussian_parts_the_largest_sensitivity_is_told():
    event = of(*(RoundedGaussian(size=2, scale=1.0, sensitivity=own) for own in (3, 5, 4)))
    assert event.sensitivity == 5


def test_choices_alone_have_no_noise():
    event = of(Selection(rule="permute-and-flip", count=2, scale=3.0, sensitivity=7))
    assert (event.sensitivity, event.scale, event.unit, event.noise_sd, event.summary.usual_sd) == (0, 0.0, 1, 0.0, 0.0)
    assert event.in_words == "permute-and-flip"


def test_a_threshold_has_the_noise_of_every_cell():
    event = of(Threshold(size=100, scale=3.0, threshold=9, sensitivity=2))
    assert (event.sensitivity, event.scale, event.unit) == (2, 3.0, 1)
    assert event.noise_sd == event.summary.usual_sd == pytest.approx(math.sqrt(2) * 3)


def test_an_event_without_parts_says_nothing_of_noise():
    event = of()
    assert (event.main, event.kinds, event.in_words) == ((), (), "")
    assert (event.sensitivity, event.scale, event.noise_sd, event.summary.usual_sd) == (0, 0.0, 0.0, 0.0)
    elsewhere = Event("test", 1.0, elsewhere=True)
    assert elsewhere.in_words == "unknown"
    assert Event.from_json(elsewhere.to_json()) == elsewhere != event


@pytest.mark.parametrize(
    ("part", "words"),
    [
        (ADDITIVE[0], "discrete Laplace"),
        (ADDITIVE[1], "discrete Gaussian"),
        (ADDITIVE[2], "Gaussian, rounded"),
        (ADDITIVE[3], "K-norm, L2"),
        (ADDITIVE[4], "K-norm, L-infinity"),
        (ADDITIVE[6], "K-norm, block norm"),
        (Selection(rule="exponential"), "exponential"),
        (Threshold(size=1, scale=1.0, threshold=1), "discrete Laplace"),
    ],
)
def test_noise_is_told_in_the_words_of_the_field(part, words):
    assert part.in_words == words


# -- files of version 2 ----------------------------------------------------------------------------

OLD = {
    "mechanism": "test",
    "epsilon": 0.5,
    "delta": 0.0,
    "rho": 0.0,
    "adjacency": "replace-one",
    "rows_per_person": 1,
    "noise": "laplace",
    "sensitivity": 6,
    "scale": 12.0,
    "unit": 4,
    "n_values": 7,
    "parts": [],
    "scales": [],
}
SEVERAL = {
    "noise": "octahedra+laplace",
    "parts": [5, 2],
    "scales": [9.0, 4.0],
    "widths": [[2, 3], []],
    "scale": 9.0,
    "unit": 1,
}


def old(**facts) -> Event:
    return Event.from_json(json.dumps({**OLD, **facts}))


def test_one_kind_of_noise_is_one_part():
    assert old().parts == (Laplace(size=7, scale=12.0, sensitivity=6, unit=4),)
    assert old(noise="gaussian").parts == (DiscreteGaussian(size=7, scale=12.0, sensitivity=6, unit=4),)
    assert old(noise="normal").parts == (RoundedGaussian(size=7, scale=12.0, sensitivity=6, unit=4),)
    assert old(noise="l2").parts == (KNorm(norm="l2", size=7, scale=12.0, sensitivity=6, unit=4),)
    parted = KNorm(norm="linf", size=7, blocks=(4, 3), scale=12.0, sensitivity=6, unit=4)
    assert old(noise="linf", parts=[4, 3]).parts == (parted,)
    blocks = KNorm(norm="blocks", size=7, blocks=(4, 3), scale=12.0, sensitivity=6, unit=4)
    assert old(noise="octahedra", widths=[[4, 3]]).parts == (blocks,)


def test_an_event_that_was_written_before_there_were_parts_is_read():
    plain = {name: value for name, value in OLD.items() if name not in ("parts", "scales")}
    assert Event.from_dict(plain) == old()


def test_kinds_with_scales_of_their_own_are_parts_of_their_own():
    event = old(**SEVERAL)
    assert event.parts == (
        KNorm(norm="blocks", size=5, blocks=(2, 3), scale=9.0, sensitivity=6),
        Laplace(size=2, scale=4.0),
    )
    squares = np.square(block_norm_sds((2, 3))[0])
    assert event.noise_sd == pytest.approx(9 * math.sqrt((2 * squares[0] + 3 * squares[1]) / 5))
    assert event.summary.usual_sd == pytest.approx(math.sqrt((5 * event.noise_sd**2 + 2 * 2 * 4.0**2) / 7))
    assert (event.n_values, event.sensitivity) == (7, 6)


@pytest.mark.parametrize("rule", ["permute-and-flip", "exponential"])
def test_choices_are_a_selection(rule):
    assert old(noise=rule).parts == (Selection(rule=rule, count=7),)


def test_a_release_made_elsewhere_has_a_price_alone():
    event = old(noise="unknown", n_values=0, sensitivity=0, scale=0.0, unit=1)
    assert event == Event("test", 0.5, elsewhere=True)
    assert not old(n_values=0).elsewhere


def test_what_is_read_is_written_in_this_version():
    event = old(**SEVERAL)
    assert "noise" not in event.to_dict()
    assert Event.from_json(event.to_json()) == event


@pytest.mark.parametrize(
    "wrong",
    [
        {"scale": -1.0},
        {"scale": math.nan},
        {"scale": math.inf},
        {"scale": "1"},
        {"sensitivity": -1},
        {"sensitivity": 0.5},
        {"sensitivity": math.nan},
        {"sensitivity": "1"},
        {"unit": 0},
        {"unit": -1},
        {"unit": 0.5},
        {"n_values": -1},
        {"n_values": 0.5},
        {"n_values": "7"},
        {"noise": 3},
        {"noise": None},
        {"noise": ["laplace"]},
        {"noise": "cauchy"},
        {"noise": "laplace+laplace"},
        {"colour": "red"},
        *({"parts": parts} for parts in ([3, 3], [9], [-1, 8], [0, 7], [7, 0], [4, 3, 0], [3.5, 3.5])),
        {"parts": [4, 3], "scales": [1.0]},
        {"parts": [4, 3], "scales": [1.0, 2.0], "noise": "laplace"},
        {"parts": [4, 3], "scales": [1.0, -2.0], "noise": "laplace+laplace"},
        {**SEVERAL, "widths": []},
        {**SEVERAL, "widths": [[2, 2], []]},
        {**SEVERAL, "widths": [[2, 3], [2]]},
        {**SEVERAL, "widths": [[5, 0], []]},
        {**SEVERAL, "widths": [[2, 3]]},
        {**SEVERAL, "widths": [[2, 3], [], []]},
        {**SEVERAL, "widths": [[2.5, 2.5], []]},
        {**SEVERAL, "noise": "laplace+laplace"},
        {"epsilon": -1.0},
        {"rows_per_person": 0},
        {"adjacency": "other"},
    ],
    ids=repr,
)
def test_an_event_of_version_two_that_cannot_be_is_refused(wrong):
    with pytest.raises(PrivacyError):
        old(**wrong)
