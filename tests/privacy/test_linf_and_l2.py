"""Noise in one piece against its exact law.

Every statistical check raises a false alarm less than once in a million runs.
"""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy import stats

import privfit as pf
from privfit.privacy import Budget, Event, PrivacyError, SecureNoise, SeededNoise
from privfit.privacy.samplers.decimals import l2_noise
from privfit.privacy.samplers.norms import linf_noise
from tests.support.pooled import PooledNoise

FALSE_ALARM = 1e-7
LEAST_EXPECTED = 25


SOURCES = {"secure": PooledNoise, "seeded": lambda: SeededNoise(20_240_917)}


# -- L-infinity, point by point ----------------------------------------------------------------------


def shells(p: int, scale: float) -> np.ndarray:
    """P(max|b| = M) for M = 0, 1, ...: the number of points at that distance times exp(-M / scale), over their sum."""
    distance = np.arange(int(60 * scale * p) + 60, dtype=float)
    points = (2 * distance + 1) ** p - np.where(distance > 0, (2 * distance - 1) ** p, 0.0)
    mass = points * np.exp(-distance / scale)
    return mass / mass.sum()


def linf_p_value(sample: np.ndarray, scale: float) -> float:
    """Every point that expects enough draws is a cell of its own; the rest of a shell is one, and so are far shells
    together.
    """
    n, p = sample.shape
    expected = shells(p, scale) * n
    distance = np.abs(sample).max(axis=1)
    seen, wanted = [], []
    rest_seen, rest_wanted = 0, 0.0
    for shell, mass in enumerate(expected):
        here = sample[distance == shell]
        per_point = mass / ((2 * shell + 1) ** p - max(2 * shell - 1, 0) ** p)
        if per_point >= LEAST_EXPECTED:
            for point in itertools.product(range(-shell, shell + 1), repeat=p):
                if max(map(abs, point)) == shell:
                    seen.append(int((here == point).all(axis=1).sum()))
                    wanted.append(per_point)
        else:
            rest_seen, rest_wanted = rest_seen + len(here), rest_wanted + mass
            if rest_wanted >= LEAST_EXPECTED and expected[shell + 1 :].sum() >= LEAST_EXPECTED:
                seen.append(rest_seen)
                wanted.append(rest_wanted)
                rest_seen, rest_wanted = 0, 0.0
    seen.append(rest_seen + int((distance >= len(expected)).sum()))
    wanted.append(rest_wanted)
    return float(stats.chisquare(seen, wanted).pvalue)


def linf_draws(source, p: int, scale: float, n: int) -> np.ndarray:
    return np.array([source.linf(np.zeros(p, dtype=np.int64), scale) for _ in range(n)])


LAWS = [(1, 0.3), (1, 2.6), (2, 0.7), (2, 2.0), (3, 1.3)]


@pytest.mark.parametrize(("p", "scale"), LAWS)
@pytest.mark.parametrize("name", SOURCES)
def test_every_point_of_linf_noise_has_its_exact_probability(name: str, p: int, scale: float) -> None:
    sample = linf_draws(SOURCES[name](), p, scale, 4000)
    assert sample.dtype == np.int64
    assert linf_p_value(sample, scale) > FALSE_ALARM


def test_linf_noise_straight_from_the_secure_source_has_the_law_too() -> None:
    assert linf_p_value(linf_draws(SecureNoise(), 1, 1.3, 500), 1.3) > FALSE_ALARM


def test_linf_noise_of_one_value_is_laplace_noise() -> None:
    assert shells(1, 2.5)[1] == pytest.approx(2 * math.exp(-1 / 2.5) * math.tanh(0.5 / 2.5))


def half_widths(weights: np.ndarray, n: int, rng: np.random.Generator) -> np.ndarray:
    return rng.choice(len(weights), size=n, p=weights / weights.sum())


def wrong_linf_noise(fault: str, p: int, scale: float, n: int = 4000) -> np.ndarray:
    """L-infinity noise as it could be written by mistake."""
    rng = np.random.default_rng(11)
    r = np.arange(400, dtype=float)
    decay = np.exp(-r / scale)

    def spread(weights: np.ndarray) -> np.ndarray:
        widths = half_widths(weights * decay, n, rng)[:, None]
        return rng.integers(-widths, widths + 1, size=(n, p))

    match fault:
        case "independent Laplace noise":
            return SeededNoise(3).laplace(np.zeros((n, p), dtype=np.int64), scale)
        case "every proposal kept":
            return spread(np.array([math.comb(int(width) + p, p) for width in r], dtype=float))
        case "one proposal number too few":
            return spread((2 * r + 1) ** p / (r + p))
        case "kept with 2R in place of 2R + 1":
            return spread((2 * r) ** p)
        case "one factor of the chance forgotten":
            return spread((2 * r + 1) ** (p - 1) * (r + p))
        case "without its upper face":
            widths = half_widths((2 * r + 1) ** p * decay, n, rng)[:, None]
            return rng.integers(-widths, np.maximum(widths, 1), size=(n, p))
        case "a rounded continuous draw":
            return np.rint(rng.gamma(p + 1, scale, n)[:, None] * rng.uniform(-1, 1, (n, p))).astype(np.int64)
        case "a tenth too narrow":
            return linf_draws(SeededNoise(4), p, 0.9 * scale, n)
    raise AssertionError(fault)


FAULTS = [
    "independent Laplace noise",
    "every proposal kept",
    "one proposal number too few",
    "kept with 2R in place of 2R + 1",
    "one factor of the chance forgotten",
    "without its upper face",
    "a rounded continuous draw",
    "a tenth too narrow",
]


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize(("p", "scale"), [(2, 0.7), (3, 1.3)])
def test_the_check_catches_wrong_linf_noise(p: int, scale: float, fault: str) -> None:
    if fault == "a rounded continuous draw":
        scale = 0.4  # on finer lattices the two laws are nearly the same
    assert linf_p_value(wrong_linf_noise(fault, p, scale), scale) < FALSE_ALARM


# -- L-infinity, many values -------------------------------------------------------------------------


def one_of_linf_noise(p: int):
    """The distribution of one value over the scale: a uniform number times a Gamma(p + 1) half-width G.

    P(|value| <= t) = E[min(t / G, 1)] = P(G <= t) + t E[1 / G; G > t], and 1 / G makes a Gamma(p) of a Gamma(p + 1),
    over p.
    """

    def cdf(t: np.ndarray) -> np.ndarray:
        size = np.abs(t)
        return 0.5 + np.sign(t) / 2 * (stats.gamma.cdf(size, p + 1) + size / p * stats.gamma.sf(size, p))

    return cdf


@pytest.mark.parametrize("name", SOURCES)
def test_one_value_of_wide_linf_noise_has_the_moments_and_the_law_that_reports_state(name: str) -> None:
    p, scale, n = 50, 2.0**30 + 0.5, 1500
    sample = linf_draws(SOURCES[name](), p, scale, n) / scale
    event = Event.pure(
        "test", Budget(1.0), noise="linf", sensitivity=2**30, adjacency="replace-one", n_values=p, unit=2**30
    )
    variance = (p + 1) * (p + 2) / 3
    assert event.noise_sd == pytest.approx(math.sqrt(variance))
    fourth = (p + 1) * (p + 2) * (p + 3) * (p + 4) / 5
    for place in (0, p // 2, p - 1):
        ones = sample[:, place]
        assert abs(ones.mean()) < 6 * math.sqrt(variance / n)
        assert abs((ones**2).mean() - variance) < 6 * math.sqrt((fourth - variance**2) / n)
    assert stats.kstest(sample[:, 7], one_of_linf_noise(p)).pvalue > FALSE_ALARM
    assert stats.kstest(np.abs(sample).max(axis=1), stats.gamma(p).cdf).pvalue > FALSE_ALARM


@pytest.mark.parametrize("name", SOURCES)
def test_every_low_bit_of_wide_linf_noise_is_fair(name: str) -> None:
    sample = linf_draws(SOURCES[name](), 50, 2.0**45, 200)
    for bits in (sample & 15, sample >> 20 & 15):
        assert stats.chisquare(np.bincount(bits.ravel(), minlength=16)).pvalue > FALSE_ALARM
    assert (sample.min() < -(2**48)) & (sample.max() > 2**48)


def test_linf_noise_is_added_to_the_values_whatever_their_shape() -> None:
    values = np.array([[-(2**61), -7, 0], [3, 2**53 + 1, 2**61]], dtype=np.int64)
    for source in (SecureNoise(), SeededNoise(1)):
        moved = np.abs(source.linf(values, 40.0) - values)
        assert moved.shape == values.shape
        assert 0 < moved.max() < 40 * 100


@pytest.mark.parametrize("name", SOURCES)
def test_linf_draws_follow_one_another_without_memory(name: str) -> None:
    widths = np.abs(linf_draws(SOURCES[name](), 3, 50.0, 3000)).max(axis=1)
    assert stats.pearsonr(widths[:-1], widths[1:]).pvalue > FALSE_ALARM


# -- what L-infinity noise is made of ------------------------------------------------------------------------

SMALL = [1, 2, 3, 5, 6, 7, 10, 64, 100]
LARGE = [2**62, 2**62 - 1, 2**61 + 1, 3 * 2**60, 5 * 2**59 + 3, 10**18]


def below_p_value(drawn: np.ndarray, limit: int) -> float:
    """Small limits value by value; large ones by sixteen equal stretches and by the lowest four bits."""
    if limit <= 100:
        return float(stats.chisquare(np.bincount(drawn, minlength=limit)).pvalue) if limit > 1 else 1.0
    stretches = np.array([int(value) * 16 // limit for value in drawn])
    parts = [np.bincount(which, minlength=16) for which in (stretches, drawn & 15)]
    return 2 * min(float(stats.chisquare(part).pvalue) for part in parts)


@pytest.mark.parametrize("name", SOURCES)
def test_numbers_below_a_limit_are_all_equally_likely(name: str) -> None:
    limits = np.tile(np.array(SMALL + LARGE, dtype=np.int64), (6000, 1))
    drawn = SOURCES[name]().below(limits)
    assert drawn.dtype == np.int64
    assert ((drawn >= 0) & (drawn < limits)).all()
    for place, limit in enumerate(SMALL + LARGE):
        assert below_p_value(drawn[:, place], limit) > FALSE_ALARM / 10, limit


def test_the_check_catches_numbers_that_were_not_rejected() -> None:
    rng = np.random.default_rng(0)
    raw = rng.integers(2**63, size=6000, dtype=np.uint64)
    for limit in (3 * 2**60, 5 * 2**59 + 3):
        assert below_p_value((raw % np.uint64(limit)).astype(np.int64), limit) < FALSE_ALARM
    assert below_p_value(rng.integers(6, size=6000) // 2 * 2, 6) < FALSE_ALARM


def test_limits_of_one_call_do_not_mix() -> None:
    limits = np.array(
        [1, 3 * 2**61, 2, 3 * 2**61, 3] * 200, dtype=np.int64
    )  # a quarter of the tries at the large ones is rejected
    drawn = SecureNoise().below(limits)
    assert (drawn < limits).all()
    assert (drawn[::5] == 0).all()
    assert set(drawn[2::5].tolist()) == {0, 1}
    assert set(drawn[4::5].tolist()) == {0, 1, 2}
    assert drawn[1::5].max() > 2**62


@pytest.mark.parametrize("scale", [0.3, 1.0, 3.7, 40.0])
@pytest.mark.parametrize("name", ["secure", "seeded"])
def test_geometric_numbers_have_their_exact_law(name: str, scale: float) -> None:
    n = 30_000
    drawn = (SecureNoise() if name == "secure" else SeededNoise(5)).geometric(n, scale)
    assert drawn.shape == (n,)
    assert drawn.min() == 0
    stop = -math.expm1(-1 / scale)
    cells = max(
        int(scale * math.log(n * stop / LEAST_EXPECTED)), 1
    )  # the last cell that expects enough alone; the tail expects more
    expected = n * stop * np.exp(-np.arange(cells) / scale)
    expected = np.append(expected, n - expected.sum())
    assert stats.chisquare(np.bincount(np.minimum(drawn, cells), minlength=cells + 1), expected).pvalue > FALSE_ALARM
    assert stats.pearsonr(drawn[:-1], drawn[1:]).pvalue > FALSE_ALARM


@pytest.mark.parametrize("name", ["secure", "seeded"])
def test_wide_geometric_numbers_keep_their_law_and_every_low_bit(name: str) -> None:
    drawn = (SecureNoise() if name == "secure" else SeededNoise(6)).geometric(5000, 2.0**50)
    assert stats.kstest(drawn / 2.0**50, "expon").pvalue > FALSE_ALARM
    assert stats.chisquare(np.bincount(drawn & 15, minlength=16)).pvalue > FALSE_ALARM


@pytest.mark.parametrize("size", [1, 2, 17, 1000])
def test_as_many_geometric_numbers_come_as_were_asked_for(size: int) -> None:
    assert len(SecureNoise().geometric(size, 2.0)) == size


# -- L2 ---------------------------------------------------------------------------------------------


def l2_draws(source, p: int, scale: float, n: int) -> np.ndarray:
    return np.array([source.l2(np.zeros(p, dtype=np.int64), scale) for _ in range(n)])


def l2_p_value(sample: np.ndarray, scale: float) -> float:
    """The length is Gamma(p, scale); the direction has the same law along every axis, and no corners; and the two are
    independent.
    """
    n, p = sample.shape
    length = np.sqrt((sample.astype(float) ** 2).sum(axis=1))
    lowest = float(stats.kstest(length / scale, stats.gamma(p).cdf).pvalue)
    axes = [
        np.eye(p)[0],
        np.eye(p)[-1],
        np.ones(p) / math.sqrt(p),
        np.where(np.arange(p) % 2, 1.0, -1.0) / math.sqrt(p),
    ]
    for axis in axes:
        along = sample @ axis / length
        if p > 1:
            lowest = min(lowest, float(stats.kstest((along + 1) / 2, stats.beta((p - 1) / 2, (p - 1) / 2).cdf).pvalue))
            lowest = min(lowest, float(stats.spearmanr(np.abs(along), length).pvalue))
        lowest = min(lowest, float(stats.binomtest(int((along > 0).sum()), n, 0.5).pvalue))
    moment = p * (p + 2) * (p + 4) * (p + 6)  # the squares of a uniform direction are Dirichlet(1/2, ..., 1/2)
    variance = (105 * p + 9 * p * (p - 1)) / moment - (3 / (p + 2)) ** 2
    corners = ((sample / length[:, None]) ** 4).sum(axis=1).mean() - 3 / (p + 2)
    if p > 1:
        lowest = min(lowest, 2 * float(stats.norm.sf(abs(corners) / math.sqrt(variance / n))))
    return min(1.0, 14 * lowest)


@pytest.mark.parametrize(("p", "n"), [(1, 2000), (2, 2000), (3, 2000), (7, 800), (40, 250)])
@pytest.mark.parametrize("name", ["secure", "seeded"])
def test_l2_noise_has_its_length_and_its_direction(name: str, p: int, n: int) -> None:
    source = SecureNoise() if name == "secure" else SeededNoise(8)
    assert l2_p_value(l2_draws(source, p, 2.0**33 + 0.25, n), 2.0**33) > FALSE_ALARM


def wrong_ball(fault: str, p: int = 3, n: int = 3000) -> np.ndarray:
    """L2 noise as it could be written by mistake, at scale 1."""
    rng = np.random.default_rng(12)
    normal = rng.normal(size=(n, p))
    direction = normal / np.linalg.norm(normal, axis=1, keepdims=True)
    length = rng.gamma(p, 1, (n, 1))
    match fault:
        case "one Gamma too many":
            return rng.gamma(p + 1, 1, (n, 1)) * direction
        case "half a Gamma too few":
            return rng.gamma(p - 0.5, 1, (n, 1)) * direction
        case "directions of a box":
            box = rng.uniform(-1, 1, (n, p))
            return length * box / np.linalg.norm(box, axis=1, keepdims=True)
        case "normal noise of the same size":
            return math.sqrt(p + 1) * normal
        case "a tenth too short":
            return 0.9 * length * direction
        case "directions that lean":
            return length * np.where(rng.random((n, 1)) < 0.2, np.abs(direction), direction)
        case "the length of the normal numbers kept":
            return length * normal / math.sqrt(p)
        case "independent Laplace noise":
            return rng.laplace(size=(n, p)) * math.sqrt((p + 1) / 2)
    raise AssertionError(fault)


@pytest.mark.parametrize(
    "fault",
    [
        "one Gamma too many",
        "half a Gamma too few",
        "directions of a box",
        "normal noise of the same size",
        "a tenth too short",
        "directions that lean",
        "the length of the normal numbers kept",
        "independent Laplace noise",
    ],
)
def test_the_check_catches_a_wrong_ball(fault: str) -> None:
    assert l2_p_value(wrong_ball(fault), 1.0) < FALSE_ALARM


def test_the_deviation_of_l2_noise_is_the_one_that_reports_state() -> None:
    p, n, scale = 12, 500, 2.0**30
    event = Event.pure(
        "test", Budget(1.0), noise="l2", sensitivity=2**30, adjacency="replace-one", n_values=p, unit=2**30
    )
    squares = (l2_draws(SecureNoise(), p, scale, n) / scale) ** 2
    length_variance = (p * (p + 1) * (p + 2) * (p + 3) - (p * (p + 1)) ** 2) / p**2  # of the mean square of a row
    assert abs(squares.mean() - event.noise_sd**2) < 6 * math.sqrt(length_variance / n)
    assert event.noise_sd == pytest.approx(math.sqrt(p + 1))


def test_l2_noise_at_a_small_scale_is_rounded_noise() -> None:
    """At scale 1 one value of L2 noise is a Laplace number, rounded."""
    sample = l2_draws(SecureNoise(), 1, 1.0, 3000).ravel()
    zero, side = 1 - math.exp(-0.5), [math.exp(-(k - 0.5)) * -math.expm1(-1) / 2 for k in range(1, 4)]
    far = math.exp(-3.5) / 2
    expected = 3000 * np.array([far, *side[::-1], zero, *side, far])
    assert stats.chisquare(np.bincount(np.clip(sample, -4, 4) + 4, minlength=9), expected).pvalue > FALSE_ALARM


def test_l2_noise_is_added_to_the_values_to_the_last_bit() -> None:
    values = np.array([[-(2**60), -7, 0], [3, 2**53 + 1, 2**60 - 1]], dtype=np.int64)
    before = values.copy()
    moved = SecureNoise().l2(values, 50.0) - values
    assert (values == before).all()
    assert moved.shape == values.shape
    assert 0 < np.abs(moved).max() < 50 * 100


def test_no_two_draws_are_alike() -> None:
    for draw in (SecureNoise().l2, SecureNoise().linf):
        assert len({tuple(draw(np.zeros(3, dtype=np.int64), 2.0**40).tolist()) for _ in range(50)}) == 50


def test_seeded_shapes_are_repeatable() -> None:
    for kind in ("linf", "l2"):
        first, again, other = (
            getattr(SeededNoise(seed), kind)(np.zeros(5, dtype=np.int64), 1000.0) for seed in (1, 1, 2)
        )
        assert (first == again).all()
        assert (first != other).any()


# -- refusals --------------------------------------------------------------------------------------


@pytest.mark.parametrize(("size", "scale"), [(41, 1.0), (2, 0.04), (10_000, 3.0)])
def test_a_lattice_too_coarse_for_linf_noise_is_refused(size: int, scale: float) -> None:
    for source in (SecureNoise(), SeededNoise(0)):
        with pytest.raises(PrivacyError, match="finer than its noise") as refused:
            linf_noise(size, scale, source)
        assert "noise='laplace'" in str(refused.value)


@pytest.mark.parametrize(("size", "scale"), [(50, 2.0**60), (1000, 2.0**56)])
def test_linf_noise_that_64_bits_cannot_hold_is_refused(size: int, scale: float) -> None:
    for source in (SecureNoise(), SeededNoise(0)):
        with pytest.raises(PrivacyError, match="64-bit integers"):
            linf_noise(size, scale, source)


# -- what was found and mended ---------------------------------------------------------------------


def test_whether_linf_noise_is_refused_depends_on_public_facts_alone() -> None:
    """A draw that is refused when it is large tells neighbours apart: what lies just within reach of one is out of
    reach of the other.
    """
    source, refused = SeededNoise(2), 0
    for _ in range(200):
        try:
            linf_noise(1, 2.0**59, source)
        except PrivacyError:
            refused += 1
    assert refused in (0, 200)


class Impatient(SeededNoise):
    """A source that is asked for at most so many half-widths."""

    def __init__(self, tries: int) -> None:
        super().__init__(3)
        self.left = tries

    def geometric(self, size: int, scale: float) -> np.ndarray:
        self.left -= 1
        assert self.left >= 0, "still no half-width was kept"
        return super().geometric(size, scale)


@pytest.mark.parametrize(("size", "scale"), [(8, 1.0), (84, 10.5), (400, 50.0)])
def test_the_coarsest_linf_noise_that_is_not_refused_is_drawn_soon(size: int, scale: float) -> None:
    assert linf_noise(size, scale, Impatient(5000)).shape == (size,)
    with pytest.raises(PrivacyError, match="finer than its noise"):
        linf_noise(size + 1, scale, Impatient(0))


def test_a_fit_that_no_linf_noise_can_cover_takes_other_noise_or_is_refused_before_it_is_charged() -> None:
    X = np.random.default_rng(0).uniform(-1, 1, (50, 3))
    ledger = pf.Ledger(epsilon=1e13)
    settings = {"schema": pf.Schema.box(-1, 1, target=(-1, 1)), "ledger": ledger}
    with pytest.raises(PrivacyError, match="finer than its noise"):
        pf.LinearRegression(1e12, mechanism=pf.FunctionalMechanism(noise="linf"), **settings).fit(X, X[:, 0])
    assert ledger.entries() == []
    pf.LinearRegression(1e12, **settings).fit(X, X[:, 0])
    assert ledger.entries()[0].event.kinds == ("laplace",)


def test_l2_noise_does_not_cut_sums_that_rows_may_have() -> None:
    values = np.array([2**62, -(2**62)], dtype=np.int64)
    assert np.abs(l2_noise(values, 1.0) - values).max() < 100


def test_seeded_l2_noise_is_added_to_the_values_to_the_last_bit() -> None:
    values = np.array([2**53 + 1, 2**60 + 1], dtype=np.int64)
    assert (SeededNoise(0).l2(values, 1e-6) == values).all()


# -- geometric numbers made of secret bits ---------------------------------------------------------


@pytest.mark.parametrize("scale", [1, 2, 7, 50])
def test_geometric_numbers_of_a_whole_scale_follow_their_law(scale: int) -> None:
    draws = 60_000
    counts = np.bincount(SecureNoise().geometric(draws, float(scale)))
    law = np.exp(-np.arange(len(counts)) / scale) * -np.expm1(-1 / scale)
    often = law * draws >= 10
    seen = np.append(counts[often], counts[~often].sum())
    expected = np.append(law[often] * draws, draws * (1 - law[often].sum()))
    assert stats.chisquare(seen, expected).pvalue > 1e-7


def test_geometric_numbers_of_a_fine_lattice_are_exponential() -> None:
    drawn = SecureNoise().geometric(50_000, 2.0**40) / 2.0**40
    assert stats.kstest(drawn, "expon").pvalue > 1e-7
    low = (SecureNoise().geometric(50_000, 2.0**40) % 256).astype(int)
    assert stats.chisquare(np.bincount(low, minlength=256)).pvalue > 1e-7


@pytest.mark.parametrize(("parts", "whole"), [(0, 5), (1, 5), (5, 5), (3, 1 << 53), (1 << 53, 1 << 53)])
def test_trials_succeed_with_their_probability(parts: int, whole: int) -> None:
    draws = 40_000
    up = int(SecureNoise().exp_trials(np.full(draws, parts, dtype=np.int64), whole).sum())
    assert stats.binomtest(up, draws, np.exp(-parts / whole)).pvalue > 1e-7 if parts else up == draws
