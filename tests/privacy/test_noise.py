"""Samplers against their exact laws. Every statistical check raises a false alarm once in a million runs."""

from __future__ import annotations

import random

import numpy as np
import opendp.prelude as dp
import pytest
from scipy import stats

import privfit as pf
from privfit.privacy import Event, SecureNoise, SeededNoise, noise_source, seeded_generator
from privfit.privacy.samplers import sources as noise

FALSE_ALARM = 1e-6
DRAWS = 40_000
SOURCES = {"secure": SecureNoise, "seeded": lambda: SeededNoise(20_240_601)}
LAWS = ("laplace", "gaussian")
SCALES = (0.3, 1.0, 3.7, 40.0)


def law(kind: str, scale: float) -> tuple[np.ndarray, np.ndarray]:
    """The exact probabilities of integers, as far as doubles reach."""
    k = np.arange(-int(60 * scale) - 60, int(60 * scale) + 61)
    exponent = -np.abs(k) / scale if kind == "laplace" else -(k**2) / (2 * scale**2)
    weights = np.exp(exponent)
    return k, weights / weights.sum()


def p_value(sample: np.ndarray, kind: str, scale: float) -> float:
    """How surprising a sample is under the law: its body by chi-square, its tails by counts beyond rare points."""
    return min(1.0, 2 * min(body_p_value(sample, kind, scale), tail_p_value(sample, kind, scale)))


def body_p_value(sample: np.ndarray, kind: str, scale: float) -> float:
    """Zero alone, then bins to either side that expect at least 25 draws each; the outermost are the whole tails."""
    k, probabilities = law(kind, scale)
    expected = probabilities * len(sample)
    counts = np.bincount(sample - k[0], minlength=len(k))
    middle = len(k) // 2
    widths, taken = [], 0
    side = np.cumsum(expected[middle + 1 :])
    for i, mass in enumerate(side):
        before = side[taken - 1] if taken else 0.0
        if mass - before >= 25 and side[-1] - mass >= 25:
            widths.append(i + 1)
            taken = i + 1
    right = [middle + 1, *(middle + 1 + width for width in widths)]
    left = [middle - width for width in widths]
    starts = np.array(sorted([0, *left, middle, *right]))
    seen, wanted = np.add.reduceat(counts, starts), np.add.reduceat(expected, starts)
    assert wanted.min() >= 25
    return float(stats.chisquare(seen, wanted).pvalue)


def tail_p_value(sample: np.ndarray, kind: str, scale: float) -> float:
    """Counts beyond the points that at most one draw in a hundred, in a thousand and in ten thousand passes."""
    k, probabilities = law(kind, scale)
    lowest = 1.0
    for rarity in (1e-2, 1e-3, 1e-4):
        beyond = np.cumsum(probabilities[len(k) // 2 :][::-1])[::-1] * 2  # P(|k| >= t) for t = 0, 1, ...
        point = max(1, int(np.argmax(beyond <= rarity)))
        lowest = min(lowest, stats.binomtest(int((np.abs(sample) >= point).sum()), len(sample), beyond[point]).pvalue)
    return 3 * lowest


def draws(source, kind: str, scale: float, n: int = DRAWS) -> np.ndarray:
    return getattr(source, kind)(np.zeros(n, dtype=np.int64), scale)


# -- the laws --------------------------------------------------------------------------------------


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("kind", LAWS)
@pytest.mark.parametrize("name", SOURCES)
def test_noise_follows_its_exact_law(name, kind, scale):
    assert p_value(draws(SOURCES[name](), kind, scale), kind, scale) > FALSE_ALARM


def broken(kind: str, scale: float) -> dict[str, np.ndarray]:
    """Samplers as they are often written, each wrong in its own way."""
    rng = np.random.default_rng(5)
    right = draws(SeededNoise(6), kind, scale)
    return {
        "half the scale": draws(SeededNoise(7), kind, scale / 2),
        "a twentieth too little": draws(SeededNoise(8), kind, scale * 0.95),
        "rounded floats": np.rint(
            rng.laplace(0, scale, DRAWS) if kind == "laplace" else rng.normal(0, scale, DRAWS)
        ).astype(np.int64),
        "two zeros": np.where(rng.random(DRAWS) < 0.5, 1, -1) * (rng.geometric(-np.expm1(-1 / scale), DRAWS) - 1),
        "cut tails": right[np.abs(right) < np.quantile(np.abs(right), 0.9985)],
        "one-sided": np.abs(right),
        "moved by one": right + 1,
        "even numbers only": right // 2 * 2,
    }


@pytest.mark.parametrize(
    ("kind", "scale", "fault"),
    [
        *((kind, 1.0, fault) for kind in LAWS for fault in broken("laplace", 1.0)),
        *(
            (kind, 3.7, fault)
            for kind in LAWS
            for fault in ("half the scale", "a twentieth too little", "cut tails", "even numbers only")
        ),
    ],
)
def test_the_check_of_a_law_catches_a_wrong_sampler(kind, scale, fault):
    assert p_value(broken(kind, scale)[fault], kind, scale) < FALSE_ALARM


@pytest.mark.parametrize("scale", [2.0**30, 2.0**50])
@pytest.mark.parametrize("kind", LAWS)
@pytest.mark.parametrize("name", SOURCES)
def test_large_scales_keep_their_law_and_every_low_bit(name, kind, scale):
    n = 4000
    sample = draws(SOURCES[name](), kind, scale, n)
    assert stats.kstest(sample / scale, "laplace" if kind == "laplace" else "norm").pvalue > FALSE_ALARM
    low_bits = np.bincount(sample & 15, minlength=16)
    assert stats.chisquare(low_bits).pvalue > FALSE_ALARM


@pytest.mark.parametrize("kind", LAWS)
@pytest.mark.parametrize("name", SOURCES)
def test_values_of_one_vector_receive_independent_noise(name, kind):
    sample = draws(SOURCES[name](), kind, 10.0, 20_000)
    for lag in (1, 2, 7):
        assert stats.pearsonr(sample[:-lag], sample[lag:]).pvalue > FALSE_ALARM / 3
    assert len(np.unique(sample)) > 20


@pytest.mark.parametrize("kind", LAWS)
@pytest.mark.parametrize("name", SOURCES)
def test_noise_is_added_to_the_values(name, kind):
    values = np.array([-(2**60), -7, 0, 3, 2**53 + 1, 2**60], dtype=np.int64)
    noisy = getattr(SOURCES[name](), kind)(values, 0.01)  # at this scale noise is zero but for one draw in 10^43
    assert noisy.tolist() == values.tolist()


@pytest.mark.parametrize("shape", [(1,), (7,), (3, 4), (2, 3, 2)])
@pytest.mark.parametrize("kind", LAWS)
@pytest.mark.parametrize("name", SOURCES)
def test_shape_order_and_type_are_kept_and_the_input_is_not_changed(name, kind, shape):
    values = (np.arange(np.prod(shape), dtype=np.int64) * 10**9).reshape(shape)
    for given in (values, np.asfortranarray(values)):
        before = given.copy()
        noisy = getattr(SOURCES[name](), kind)(given, 2.0)
        assert noisy.shape == shape
        assert noisy.dtype == np.int64
        assert np.abs(noisy - before).max() < 10**8
        assert (given == before).all()


# -- where it comes from ---------------------------------------------------------------------------


def test_secure_noise_is_private_and_no_seed_repeats_it():
    results = []
    for _ in range(2):
        np.random.seed(0)
        random.seed(0)
        results.append(draws(noise_source(None), "laplace", 1000.0, 50))
    assert noise_source(None).private is True
    assert (results[0] != results[1]).any()


@pytest.mark.parametrize("seed", [0, 7, np.int64(3)])
@pytest.mark.parametrize("kind", LAWS)
def test_seeded_noise_is_repeatable_and_says_that_it_is_not_private(kind, seed):
    first, again, other = (noise_source(s) for s in (seed, seed, seed + 1))
    assert first.private is again.private is False
    assert isinstance(first, SeededNoise)
    wanted = draws(first, kind, 100.0, 50)
    assert (draws(again, kind, 100.0, 50) == wanted).all()
    assert (draws(other, kind, 100.0, 50) != wanted).any()
    assert (draws(first, kind, 100.0, 50) != wanted).any()


@pytest.mark.parametrize(
    "state", [lambda: np.random.default_rng(4), lambda: np.random.RandomState(4)], ids=["generator", "random state"]
)
def test_generators_are_used_and_moved_on(state):
    first, again = state(), state()
    assert (draws(SeededNoise(first), "laplace", 100.0, 50) == draws(SeededNoise(again), "laplace", 100.0, 50)).all()
    shared = state()
    one, two = (draws(SeededNoise(shared), "laplace", 100.0, 50) for _ in range(2))
    assert (one != two).any()
    assert isinstance(seeded_generator(shared), np.random.Generator)


@pytest.mark.parametrize("count", [1, 2, 40])
@pytest.mark.parametrize("name", SOURCES)
def test_a_coin_falls_once_in_so_many_times(name, count):
    source = SOURCES[name]()
    fallen = sum(source.one_in(count) for _ in range(8000))
    assert stats.binomtest(fallen, 8000, 1 / count).pvalue > FALSE_ALARM


class CountingOpenDP:
    """OpenDP with a counter on the measurements that are made and on their calls."""

    def __init__(self) -> None:
        self.made: list[tuple[str, float]] = []
        self.sizes: list[int] = []
        self.m = self

    def __getattr__(self, name):
        if not name.startswith("make_"):
            return getattr(dp, name)

        def make(*args, scale, **options):
            self.made.append((name, scale))
            measurement = getattr(dp.m, name)(*args, scale=scale, **options)

            def measure(values):
                self.sizes.append(len(values))
                return measurement(values)

            return measure

        return make


@pytest.fixture
def opendp_calls(monkeypatch):
    dp.enable_features("contrib")
    counting = CountingOpenDP()
    monkeypatch.setattr(noise, "_opendp", lambda: counting)
    return counting


@pytest.mark.parametrize("kind", LAWS)
def test_one_vector_call_draws_all_noise(opendp_calls, kind):
    getattr(SecureNoise(), kind)(np.zeros((30, 20), dtype=np.int64), 5.0)
    assert opendp_calls.made == [(f"make_{kind}", 5.0)]
    assert opendp_calls.sizes == [600]


@pytest.fixture
def pieces(monkeypatch):
    """The K-norm noise that was asked for: kind, number of values, scale."""
    made: list[tuple[str, int, float]] = []

    def counted(kind, draw, size):
        def drawn(*arguments):
            made.append((kind, size(arguments[0]), arguments[1]))
            return draw(*arguments)

        return drawn

    monkeypatch.setattr(noise, "linf_noise", counted("linf", noise.linf_noise, int))
    monkeypatch.setattr(noise, "l2_noise", counted("l2", noise.l2_noise, np.size))
    return made


def fitted(width, **settings):
    X = np.random.default_rng(0).uniform(-1, 1, (50, width))
    ledger = pf.Ledger(epsilon=1.0, delta=1e-6)
    model = pf.LinearRegression(schema=pf.Schema.box(-1, 1, target=(-1, 1)), ledger=ledger, **settings)
    report = model.fit(X, X[:, 0]).report_
    (part,) = Event.from_dict(report.event).parts
    return report, part


@pytest.mark.parametrize(("width", "settings"), [(1, {}), (6, {"mechanism": pf.FunctionalMechanism(noise="laplace")})])
def test_a_fit_draws_once_for_all_released_values_at_the_scale_of_its_report(opendp_calls, pieces, width, settings):
    report, part = fitted(width, **settings)
    assert opendp_calls.sizes == [report.released_values]
    assert opendp_calls.made == [("make_laplace", part.scale)]
    assert pieces == []


def test_a_fit_with_linf_noise_draws_one_for_each_part_at_the_scale_of_its_report(opendp_calls, pieces):
    report, part = fitted(6)  # numbers only: the noise that is least
    features, target = part.blocks
    assert features == 6 + 6 * 7 // 2
    assert features + target == report.released_values
    assert pieces == [("linf", features, part.scale), ("linf", target, part.scale)]
    assert opendp_calls.made == [], "half-widths of a fine lattice are made of secret bits directly"


def test_a_fit_with_l2_noise_draws_one_at_the_scale_of_its_report(opendp_calls, pieces):
    report, part = fitted(6, mechanism=pf.FunctionalMechanism(noise="l2"))
    assert pieces == [("l2", report.released_values, part.scale)]
    assert opendp_calls.made == []


def test_a_fit_with_gaussian_noise_draws_once_at_the_scale_of_its_report(opendp_calls, pieces):
    report, part = fitted(6, delta=1e-6, mechanism=pf.FunctionalMechanism(noise="gaussian"))
    assert opendp_calls.sizes == [report.released_values]
    assert opendp_calls.made == [("make_gaussian", part.scale)]
    assert pieces == []
