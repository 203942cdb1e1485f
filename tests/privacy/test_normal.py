"""What normal noise hides, against sums with hundreds of digits, against integrals and against the best attack; and
that it is normal.
"""

from __future__ import annotations

import math
from decimal import Context, Decimal, localcontext

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from scipy.integrate import quad

from privfit.privacy import Event, PrivacyError, SecureNoise, SeededNoise, noised
from privfit.privacy.gaussian import gaussian_delta, least_scale
from privfit.privacy.parts import RoundedGaussian
from privfit.privacy.samplers.decimals import rounded_normal

FALSE_ALARM = 1e-7
DIGITS = Context(prec=220)
SOURCES = {"secure": SecureNoise, "seeded": lambda: SeededNoise(20_240_918)}
shifts = st.floats(-3, 1).map(lambda power: 10.0**power)
places = st.floats(-6, 9)


# -- hundreds of digits ----------------------------------------------------------------------------


def below(x: Decimal) -> Decimal:
    """P(N(0, 1) <= x), by the series x + x^3/3 + x^5/(3 5) + ... whose terms all have one sign."""
    term = total = x
    odd = 1
    while abs(term) > Decimal(10) ** -200:
        odd += 2
        term = term * x * x / odd
        total += term
    return Decimal(1) / 2 + total * (-x * x / 2).exp() / (2 * pi()).sqrt()


def pi() -> Decimal:
    """Machin's formula."""

    def inverse_tangent(whole: int) -> Decimal:
        power = total = Decimal(1) / whole
        odd = 1
        while abs(power) > Decimal(10) ** -215:
            odd += 2
            power = -power / whole**2
            total += power / odd
        return total

    return 4 * (4 * inverse_tangent(5) - inverse_tangent(239))


def exact_delta(epsilon: float, shift: float) -> Decimal:
    with localcontext(DIGITS):
        e, s = Decimal(epsilon), Decimal(shift)
        return below(s / 2 - e / s) - e.exp() * below(-s / 2 - e / s)


def test_the_series_knows_the_tables() -> None:
    with localcontext(DIGITS):
        assert float(pi()) == math.pi
        for x in (-9.0, -1.96, -0.3, 0.0, 1.0, 5.0):
            assert float(below(Decimal(x))) == pytest.approx(float(stats.norm.cdf(x)), rel=1e-12)


@given(shifts, places)
@settings(max_examples=120)
def test_delta_agrees_with_hundreds_of_digits(shift: float, place: float) -> None:
    """From delta near one to delta near 1e-19, with epsilons of either sign."""
    epsilon = shift * (place + shift / 2)
    exact = exact_delta(epsilon, shift)
    found = gaussian_delta(epsilon, shift)
    largest = stats.norm.cdf(shift / 2 - epsilon / shift)  # what delta is the difference from
    assert abs(Decimal(found) - exact) <= Decimal(3e-13 * (1 + abs(epsilon)) * largest)


@given(st.floats(0.01, 20), st.floats(-12, -1).map(lambda power: 10.0**power))
@settings(max_examples=60)
def test_usual_deltas_are_never_told_smaller_than_they_are_by_more_than_callers_allow_for(
    epsilon: float, delta: float
) -> None:
    """Callers ask for a millionth of a millionth less than they may have."""
    scale = least_scale(lambda sd: gaussian_delta(epsilon, 1 / sd), delta * (1 - 1e-12), 1 / epsilon)
    assert exact_delta(epsilon, 1 / scale) <= Decimal(delta)


@pytest.mark.parametrize("epsilon", [-2.0, -0.1, 0.0, 0.3, 1.0, 5.0])
@pytest.mark.parametrize("shift", [0.05, 0.5, 1.0, 4.0])
def test_delta_is_the_integral_of_what_sticks_out(epsilon: float, shift: float) -> None:
    def sticks_out(x: float) -> float:
        return max(0.0, float(stats.norm.pdf(x - shift) - math.exp(epsilon) * stats.norm.pdf(x)))

    crossing = epsilon / shift + shift / 2  # from here on the shifted density is the larger one
    integral = quad(sticks_out, crossing, max(crossing, shift) + 12, limit=200, epsabs=1e-13)[0]
    assert gaussian_delta(epsilon, shift) == pytest.approx(integral, abs=1e-10)


@pytest.mark.parametrize("epsilon", [-1.0, 0.0, 0.5, 3.0])
@pytest.mark.parametrize("shift", [0.1, 1.0, 3.0])
def test_no_attack_gains_more_than_delta_and_the_best_one_gains_it(epsilon: float, shift: float) -> None:
    """Half-lines to either side, and stretches: all ways to tell the two apart that are worth trying."""
    ends = np.concatenate([[-np.inf], np.linspace(-15, 15, 301), [np.inf]])
    here, there = stats.norm.cdf(ends - shift), stats.norm.cdf(ends)
    gained = np.triu((here[None, :] - here[:, None]) - math.exp(epsilon) * (there[None, :] - there[:, None]))
    delta = gaussian_delta(epsilon, shift)
    assert gained.max() <= delta + 1e-12
    crossing = epsilon / shift + shift / 2
    best = stats.norm.sf(crossing - shift) - math.exp(epsilon) * stats.norm.sf(crossing)
    assert best == pytest.approx(delta, abs=1e-12)


@given(shifts, st.floats(-2, 10), st.floats(1.001, 2.0))
@settings(max_examples=100)
def test_delta_rises_with_the_shift_and_falls_with_epsilon(shift: float, epsilon: float, more: float) -> None:
    slack = 1e-14
    assert gaussian_delta(epsilon, shift) <= gaussian_delta(epsilon, shift * more) + slack
    assert gaussian_delta(epsilon + more, shift) <= gaussian_delta(epsilon, shift) + slack
    assert 0 <= gaussian_delta(epsilon, shift) <= 1 + slack


def test_no_shift_needs_no_delta_unless_epsilon_is_negative() -> None:
    assert gaussian_delta(1.0, 0.0) == gaussian_delta(0.0, 0.0) == gaussian_delta(0.0, -1.0) == 0.0
    assert gaussian_delta(-1.0, 0.0) == pytest.approx(1 - math.exp(-1))
    assert gaussian_delta(-1.0, 1e-9) == pytest.approx(1 - math.exp(-1), rel=1e-6)


@pytest.mark.parametrize(
    ("epsilon", "shift", "delta"),
    [(1e5, 1e-3, 0.0), (1e300, 1e-9, 0.0), (1.0, 1e6, 1.0), (-1e5, 0.1, 1.0), (800.0, 1.0, 0.0)],
)
def test_extremes_are_numbers(epsilon: float, shift: float, delta: float) -> None:
    assert gaussian_delta(epsilon, shift) == pytest.approx(delta, abs=1e-9)


# -- the least scale -------------------------------------------------------------------------------


@given(
    st.floats(0.01, 20),
    st.floats(-12, -0.5).map(lambda power: 10.0**power),
    st.floats(-6, 6).map(lambda power: 10.0**power),
)
@settings(max_examples=80)
def test_the_least_scale_is_enough_and_hardly_less_would_not_be(epsilon: float, delta: float, start: float) -> None:
    def at(scale: float) -> float:
        return gaussian_delta(epsilon, 1 / scale)

    scale = least_scale(at, delta, start)
    assert at(scale) <= delta
    assert at(scale * (1 - 3e-9)) > delta


@given(st.floats(-9, 9), st.floats(-9, 9))
def test_a_step_is_found_from_its_upper_side(step: float, start: float) -> None:
    """A function that jumps: all below the step is too much."""
    edge = 10.0**step
    scale = least_scale(lambda tried: 1.0 if tried < edge else 0.0, 0.5, 10.0**start)
    assert edge <= scale <= edge * (1 + 2e-9)


def test_no_scale_is_enough_for_what_never_falls() -> None:
    with pytest.raises(ArithmeticError, match="No scale of noise is large enough"):
        least_scale(lambda scale: 0.1, 0.01, 1.0)


def test_a_known_scale() -> None:
    """At epsilon 1 and delta 1e-5, where the classical rule sqrt(2 log(1.25 / delta)) / epsilon asks for 4.8448."""
    assert least_scale(lambda sd: gaussian_delta(1.0, 1 / sd), 1e-5, 1.0) == pytest.approx(3.7304, abs=5e-4)


# -- normal noise is normal ------------------------------------------------------------------------


def rounded_law(scale: float, cells: int) -> np.ndarray:
    """P(k) for k = -cells..cells, the outer two with all that lies beyond them."""
    edges = np.concatenate([[-np.inf], np.arange(-cells, cells) + 0.5, [np.inf]])
    return np.diff(stats.norm.cdf(edges / scale))


def coarse_p_value(sample: np.ndarray, scale: float) -> float:
    cells = int(2.5 * scale) + 1
    counts = np.bincount(np.clip(sample, -cells, cells) + cells, minlength=2 * cells + 1)
    return float(stats.chisquare(counts, rounded_law(scale, cells) * len(sample)).pvalue)


@pytest.mark.parametrize("scale", [1.0, 1.7, 6.0])
@pytest.mark.parametrize("name", SOURCES)
def test_every_whole_number_near_zero_has_its_chance(name: str, scale: float) -> None:
    sample = SOURCES[name]().normal(np.zeros(4000, dtype=np.int64), scale)
    assert sample.dtype == np.int64
    assert coarse_p_value(sample, scale) > FALSE_ALARM


@pytest.mark.parametrize("name", SOURCES)
def test_fine_noise_has_the_mean_the_variance_and_the_law_of_a_normal_number(name: str) -> None:
    n, scale = 4000, 2.0**38 + 0.3
    sample = SOURCES[name]().normal(np.zeros(n, dtype=np.int64), scale) / scale
    assert abs(sample.mean()) < 6 / math.sqrt(n)
    assert abs((sample**2).mean() - 1) < 6 * math.sqrt(2 / n)
    assert abs((sample**4).mean() - 3) < 6 * math.sqrt(96 / n)
    assert stats.kstest(sample, "norm").pvalue > FALSE_ALARM
    low = (SOURCES[name]().normal(np.zeros(n, dtype=np.int64), scale) & 15).astype(int)
    assert stats.chisquare(np.bincount(low, minlength=16)).pvalue > FALSE_ALARM


@pytest.mark.parametrize("name", SOURCES)
def test_values_of_one_draw_do_not_know_of_one_another(name: str) -> None:
    """Normal numbers are made in pairs: neither they nor their sizes may be tied, within a pair or from one to the
    next.
    """
    sample = SOURCES[name]().normal(np.zeros(6000, dtype=np.int64), 1000.0).astype(float)
    for one, other in ((sample[::2], sample[1::2]), (sample[:-2:2], sample[2::2]), (sample[1:-1:2], sample[2::2])):
        assert stats.pearsonr(one, other).pvalue > FALSE_ALARM
        assert stats.pearsonr(one**2, other**2).pvalue > FALSE_ALARM


@pytest.mark.parametrize("fault", ["a tenth too narrow", "cut down, not rounded", "Laplace noise", "pairs of one size"])
def test_the_checks_catch_wrong_noise(fault: str) -> None:
    rng = np.random.default_rng(4)
    scale, n = 1.7, 4000
    if fault == "pairs of one size":
        angles = rng.uniform(0, 2 * math.pi, 3000)
        assert stats.pearsonr(np.cos(angles) ** 2, np.sin(angles) ** 2).pvalue < FALSE_ALARM
        return
    wrong = {
        "a tenth too narrow": np.rint(0.9 * scale * rng.normal(size=n)),
        "cut down, not rounded": np.floor(scale * rng.normal(size=n)),
        "Laplace noise": np.rint(scale / math.sqrt(2) * rng.laplace(size=n)),
    }[fault]
    assert coarse_p_value(wrong.astype(np.int64), scale) < FALSE_ALARM


@pytest.mark.parametrize("name", SOURCES)
def test_noise_is_added_to_the_values_to_the_last_bit(name: str) -> None:
    values = np.array([[-(2**60), -7, 0], [3, 2**53 + 1, 2**60 - 1]], dtype=np.int64)
    before = values.copy()
    moved = SOURCES[name]().normal(values, 50.0) - values
    assert (values == before).all()
    assert moved.shape == values.shape
    assert 0 < np.abs(moved).max() < 50 * 10


def test_noise_beyond_64_bits_stops_at_their_end() -> None:
    most = (1 << 63) - 1
    drawn = rounded_normal(np.full(40, most, dtype=np.int64), 1e9)
    assert drawn.max() == most
    assert 0 < drawn.min() < most


@pytest.mark.parametrize("values", [1, 2, 3, 8])
def test_as_many_values_come_as_were_given(values: int) -> None:
    assert rounded_normal(np.zeros(values, dtype=np.int64), 5.0).shape == (values,)


def test_no_two_secret_draws_are_alike_and_seeded_ones_are() -> None:
    zeros = np.zeros(3, dtype=np.int64)
    assert len({tuple(SecureNoise().normal(zeros, 2.0**40).tolist()) for _ in range(50)}) == 50
    first, again, other = (SeededNoise(seed).normal(zeros, 1000.0) for seed in (1, 1, 2))
    assert (first == again).all()
    assert (first != other).any()


@pytest.mark.parametrize(("size", "scale"), [(1, 0.99), (3, 2.0**53), (1, math.nan)])
def test_a_lattice_that_does_not_suit_the_scale_is_refused(size: int, scale: float) -> None:
    with pytest.raises(PrivacyError, match="a scale of at least 1, and fits 64 bits"):
        rounded_normal(np.zeros(size, dtype=np.int64), scale)


def test_an_event_of_normal_noise_is_drawn_as_such() -> None:
    part = RoundedGaussian(size=2000, scale=300.0, sensitivity=10)
    event = Event("test", 1.0, 1e-5, parts=(part,))
    sample = noised(SecureNoise(), np.zeros(2000, dtype=np.int64), event.parts) / 300.0
    assert event.noise_sd == pytest.approx(300.0)
    assert stats.kstest(sample, "norm").pvalue > FALSE_ALARM
