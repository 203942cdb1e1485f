"""Noise in the block norm against its exact law, point by point.

Every statistical check raises a false alarm less than once in a million runs.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Callable
from fractions import Fraction
from functools import cache

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from privfit.privacy import PrivacyError, SecureNoise, SeededNoise
from privfit.privacy.samplers.norms import (
    _bernoulli,
    _block,
    _distinct,
    _places,
    block_norm_noise,
    block_norm_sds,
    check_fits,
    points_between,
)
from tests.support.effort import quick_or_full
from tests.support.lengths import length
from tests.support.pooled import PooledNoise

FALSE_ALARM = 1e-7
LEAST_EXPECTED = 25
DRAWS = 1500
"""As many as every fault below needs to be caught (p of 1e-10 at most, with its seed)."""
SOURCES = {"secure": PooledNoise, "seeded": lambda: SeededNoise(20_261_116)}

LAWS = [
    ((2,), 0.8),
    ((2, 2), 1.0),
    ((2, 3), 1.0),
    ((3, 3), 1.0),
    ((1, 2), 1.0),
    ((1, 1, 3), 1.0),
    ((2, 2, 2), 1.0),
    ((4, 2), 1.1),
]


def blocks_of(point: np.ndarray, widths: tuple[int, ...]) -> list[np.ndarray]:
    return np.split(np.asarray(point), np.cumsum(widths)[:-1])


# -- counting --------------------------------------------------------------------------------------


def between(width: int, up: int, down: int) -> list[tuple[int, ...]]:
    """All blocks whose positive values add up to at most `up`, negative ones to at most `down`, and all to the
    difference, one by one.
    """
    return [
        point
        for point in itertools.product(range(-down, up + 1), repeat=width)
        if sum(point) == up - down and sum(max(value, 0) for value in point) <= up
    ]


@pytest.mark.parametrize("width", [2, 3, 4])
@pytest.mark.parametrize(("up", "down"), [(0, 0), (0, 3), (3, 0), (1, 2), (4, 4), (5, 2)])
def test_points_are_counted_as_they_are_listed(width: int, up: int, down: int) -> None:
    assert sum(points_between(width - 1, up, down)) == len(between(width, up, down))


@given(
    st.integers(1, 30),
    st.one_of(st.integers(0, 50), st.integers(0, 2**55)),
    st.one_of(st.integers(0, 50), st.integers(0, 2**55)),
)
def test_points_are_as_many_with_signs_turned_round(free: int, up: int, down: int) -> None:
    assert sum(points_between(free, up, down)) == sum(points_between(free, down, up))


@given(
    st.lists(st.integers(1, 12), min_size=1, max_size=6),
    st.one_of(st.integers(0, 200), st.integers(0, 2**50)),
    st.floats(0, 1),
)
def test_a_proposal_is_kept_with_a_probability_of_at_most_one(frees: list[int], both: int, share: float) -> None:
    """Lemma 3, and the bound from below by which a draw ends soon."""
    up = round(share * both)
    size, widest = sum(frees), max(frees)
    counts = [
        Fraction(sum(points_between(free, up, both - up)) * math.factorial(free) * 2**free, math.comb(2 * free, free))
        for free in frees
    ]
    kept = math.prod(counts) * (both + 1) / math.prod(both + widest + i for i in range(size + 1))
    assert kept <= 1
    if both >= 15 * size**2 and abs(2 * up - both) <= both / (2 * math.sqrt(size)):
        assert kept >= 0.4


# -- the law ---------------------------------------------------------------------------------------


def blocks_by_size_and_sum(width: int, furthest: int) -> np.ndarray:
    """How many blocks have these sizes in all (rows) and this sum (columns, 0 in the middle), value by value; of a
    value that stands alone, which sums of blocks go with it.
    """
    if width == 1:
        table = np.zeros((furthest + 1, 2 * furthest + 1))
        for size, total in itertools.product(range(furthest + 1), range(-furthest, furthest + 1)):
            table[size, furthest + total] = (1 + (size > 0)) * ((size - total) % 2 == 0)
        return table
    table = np.zeros((furthest + 1, 2 * furthest + 1))
    table[0, furthest] = 1
    for _ in range(width):
        longer = np.zeros_like(table)
        for value in range(-furthest, furthest + 1):
            size = abs(value)
            longer[size:, max(value, 0) : 2 * furthest + 1 + min(value, 0)] += table[
                : furthest + 1 - size, max(-value, 0) : 2 * furthest + 1 - max(value, 0)
            ]
        table = longer
    return table


@cache
def shell_probabilities(widths: tuple[int, ...], scale: float) -> tuple[np.ndarray, np.ndarray]:
    """The chance of each distance, and of one point at that distance."""
    furthest = int(25 * scale * sum(widths)) + 25
    inside = np.ones((furthest + 1, 2 * furthest + 1))
    for width in widths:
        inside *= np.cumsum(blocks_by_size_and_sum(width, furthest), axis=0)
    if min(widths) == 1:  # sums are at most as far as the distance, where no block says so
        assert max(widths) > 1
    points = np.diff(inside.sum(axis=1), prepend=0.0)
    weights = np.exp(-np.arange(furthest + 1) / scale)
    return points * weights / (points @ weights), weights / (points @ weights)


@cache
def near_points(widths: tuple[int, ...], distance: int) -> list[tuple[int, ...]]:
    """All points up to this distance: blocks with one sum, and values alone that are even or odd as it is."""
    kinds = [
        [
            part
            for part in itertools.product(range(-distance, distance + 1), repeat=width)
            if sum(map(abs, part)) <= distance
        ]
        for width in widths
    ]
    whole = [place for place, width in enumerate(widths) if width > 1]
    found = []
    for parts in itertools.product(*kinds):
        total = sum(parts[whole[0]])
        if all(sum(part) == total if len(part) > 1 else (part[0] - total) % 2 == 0 for part in parts):
            found.append(tuple(itertools.chain.from_iterable(parts)))
    return found


def p_value(sample: np.ndarray, widths: tuple[int, ...], scale: float) -> float:
    """Points that expect enough draws are cells of their own; further out a shell is one, and far shells are one
    together. Points that the law does not know are far.
    """
    n = len(sample)
    shells, points = shell_probabilities(widths, scale)
    near = int((n * points >= LEAST_EXPECTED).sum())  # shells whose points are cells
    far = int(
        np.flatnonzero(n * np.cumsum(shells[::-1])[::-1] >= LEAST_EXPECTED)[-1]
    )  # from here on all shells are one
    wanted: dict[object, float] = {
        point: n * points[round(length("blocks", np.array(point), widths))] for point in near_points(widths, near - 1)
    }
    wanted |= {shell: n * shells[shell] for shell in range(near, far) if n * shells[shell] >= LEAST_EXPECTED}
    seen = dict.fromkeys(wanted, 0)
    rest = 0
    for point, count in Counter(map(tuple, sample.tolist())).items():
        shell = round(length("blocks", np.array(point), widths))
        cell = point if shell < near else shell
        if cell in seen:
            seen[cell] += count
        else:
            rest += count
    assert len(wanted) >= 3
    return float(stats.chisquare([*seen.values(), rest], [*wanted.values(), n - sum(wanted.values())]).pvalue)


def drawn(source, widths: tuple[int, ...], scale: float, n: int) -> np.ndarray:
    return np.array([block_norm_noise(widths, scale, source, any_scale=True) for _ in range(n)])


@pytest.mark.parametrize(("widths", "scale"), LAWS)
@pytest.mark.parametrize("name", SOURCES)
@quick_or_full("times", quick=[1], full=[3])
def test_every_point_has_its_exact_probability(times: int, name: str, widths: tuple[int, ...], scale: float) -> None:
    sample = drawn(SOURCES[name](), widths, scale, times * (600 if name == "secure" else DRAWS))
    assert sample.dtype == np.int64
    assert p_value(sample, widths, scale) > FALSE_ALARM


@quick_or_full("draws", quick=[200], full=[1000])
def test_the_law_holds_straight_from_the_secure_source(draws: int) -> None:
    assert p_value(drawn(SecureNoise(), (2, 3), 0.5, draws), (2, 3), 0.5) > FALSE_ALARM


def test_the_law_is_the_one_that_is_claimed() -> None:
    """The chances that samples are held against, by adding up exp(-M / scale) over all near points."""
    for widths, scale in LAWS:
        shells, points = shell_probabilities(widths, scale)
        listed = near_points(widths, 3)
        for distance in range(4):
            own = [point for point in listed if length("blocks", np.array(point), widths) == distance]
            assert shells[distance] == pytest.approx(len(own) * points[distance])
        np.testing.assert_allclose(points[1:] / points[:-1], math.exp(-1 / scale))


def wrong(fault: str, widths: tuple[int, ...], scale: float, n: int = DRAWS) -> np.ndarray:
    """Block-norm noise as it could be written by mistake."""
    rng = np.random.default_rng(5)
    frees = [width - 1 for width in widths]
    size = sum(frees)
    source = SeededNoise(6)

    def points(up: int, down: int) -> np.ndarray:
        return np.concatenate(
            [_block(width, up, down, points_between(width - 1, up, down), source) for width in widths]
        )

    match fault:
        case "Laplace noise":
            return source.laplace(np.zeros((n, sum(widths)), dtype=np.int64), scale)
        case "blocks with sums of their own":
            return np.hstack([drawn(source, (width,), scale, n) for width in widths])
        case "every proposal kept":
            sums = source.geometric(n * (size + 2), scale).reshape(n, -1).sum(axis=1) + 1 - max(frees)
            return np.array(
                [points(up := int(source.below(np.array([both + 1]))[0]), int(both) - up) for both in sums[sums >= 0]]
            )
        case "as much up as down":
            sums = source.geometric(n * (size + 2), scale).reshape(n, -1).sum(axis=1)
            return np.array([points(int(both) // 2, int(both) // 2) for both in sums])
        case "points on the surface alone":
            sample = drawn(source, widths, scale, 3 * n)
            return sample[
                np.abs(sample[:, : widths[0]]).sum(axis=1) == [length("blocks", point, widths) for point in sample]
            ][:n]
        case "a tenth too narrow":
            return drawn(source, widths, 0.85 * scale, n)
        case "the last value left out of the distance":
            found = []
            for point in drawn(source, widths, 1.3 * scale, 4 * n):
                free = [block[:-1] for block in blocks_of(point, widths)]
                far = length("blocks", point, widths) / (1.3 * scale) - max(np.abs(own).sum() for own in free) / scale
                if rng.random() < min(1.0, math.exp(far)):
                    found.append(point)
            return np.array(found[:n])
        case "a rounded continuous one":
            found = []
            for _ in range(n):
                up, down = rng.gamma(size / 2 + 1, scale, 2)
                blocks = []
                for free in frees:
                    signs = rng.choice([-1, 1], free)
                    shares = rng.dirichlet(np.ones(free + 1))[:free] * np.where(signs > 0, up, down) * signs
                    blocks.append(np.append(shares, up - down - shares.sum()))
                found.append(np.rint(np.concatenate(blocks)).astype(np.int64))
            return np.array(found)
    raise AssertionError(fault)


@pytest.mark.parametrize(
    "fault",
    [
        "Laplace noise",
        "blocks with sums of their own",
        "every proposal kept",
        "as much up as down",
        "points on the surface alone",
        "a tenth too narrow",
        "the last value left out of the distance",
        "a rounded continuous one",
    ],
)
def test_the_check_catches_wrong_block_norm_noise(fault: str) -> None:
    widths, scale = (2, 3), 0.8
    assert p_value(wrong(fault, widths, scale), widths, scale) < FALSE_ALARM


def test_one_block_is_laplace_noise() -> None:
    """A law that is drawn in another way."""
    laplace = SeededNoise(1).laplace(np.zeros((6000, 2), dtype=np.int64), 0.8)
    assert p_value(laplace, (2,), 0.8) > FALSE_ALARM
    assert block_norm_sds((7,)) == ((pytest.approx(math.sqrt(2)),), pytest.approx(math.sqrt(14)))


@pytest.mark.parametrize("name", SOURCES)
def test_fine_block_norm_noise_has_the_moments_that_reports_state(name: str) -> None:
    """The largest sum over a block is a Gamma number, and values of every block have the deviations that are stated,
    the last ones too.
    """
    widths, scale, n = (1, 3, 3, 8, 12, 1), 2.0**30 + 0.5, 1500
    sample = drawn(SOURCES[name](), widths, scale, n) / scale
    blocks = [block.T for block in blocks_of(sample.T, widths)]
    sums = np.stack([block.sum(axis=1) for block in blocks if block.shape[1] > 1], axis=1)
    assert np.ptp(sums, axis=1).max() < 1e-6
    sizes = np.stack([np.abs(block).sum(axis=1) for block in blocks], axis=1)
    assert stats.kstest(sizes.max(axis=1), stats.gamma(2 + 2 + 2 + 7 + 11 + 2 - 1).cdf).pvalue > FALSE_ALARM
    sds, sum_sd = block_norm_sds(widths)
    squares = [(sums[:, 0] ** 2, sum_sd)]
    for block, sd in zip(blocks, sds, strict=True):
        width = block.shape[1]
        about = block - block.mean(axis=1, keepdims=True) if width > 1 else block
        squares.append(((about**2).sum(axis=1) / max(width - 1, 1), sd))
        if width > 1:
            squares.append((about[:, -1] ** 2 * width / (width - 1), sd))
            assert abs(np.corrcoef(sums[:, 0], block[:, 0] - block[:, -1])[0, 1]) < 6 / math.sqrt(n)
    for square, sd in squares:
        assert abs(square.mean() - sd**2) < 6 * square.std() / math.sqrt(n)
    assert stats.binomtest(int((sample[:, 1] > 0).sum()), n).pvalue > FALSE_ALARM


@pytest.mark.parametrize("name", SOURCES)
def test_every_low_bit_is_fair(name: str) -> None:
    sample = drawn(SOURCES[name](), (8,) * 5 + (3,) * 3, 2.0**38, 150)
    for bits in (sample & 15, sample >> 20 & 15):
        assert stats.chisquare(np.bincount(bits.ravel(), minlength=16)).pvalue > FALSE_ALARM


# -- what it is made of ----------------------------------------------------------------------------


@pytest.mark.parametrize(("width", "up", "down"), [(2, 0, 0), (2, 3, 1), (3, 2, 2), (3, 0, 2), (4, 1, 2)])
@pytest.mark.parametrize("name", SOURCES)
def test_all_points_of_a_block_are_equally_likely(name: str, width: int, up: int, down: int) -> None:
    points = between(width, up, down)
    seen = dict.fromkeys(points, 0)
    source = SOURCES[name]()
    for _ in range(60 * len(points)):
        seen[tuple(_block(width, up, down, points_between(width - 1, up, down), source).tolist())] += 1
    assert len(points) == 1 or stats.chisquare(list(seen.values())).pvalue > FALSE_ALARM


def test_all_choices_of_places_and_of_numbers_are_equally_likely() -> None:
    source = SeededNoise(3)
    for choose in (lambda: sorted(_places(5, 3, source).tolist()[:3]), lambda: (_distinct(3, 5, source) - 1).tolist()):
        seen = dict.fromkeys(itertools.combinations(range(5), 3), 0)
        for _ in range(3000):
            seen[tuple(choose())] += 1
        assert stats.chisquare(list(seen.values())).pvalue > FALSE_ALARM


@pytest.mark.parametrize(
    ("part", "whole"), [(1, 3), (2**40 + 1, 2**41), (5, 2**33), (3**60, 3**60 + 2 * 3**59), (10**30 - 1, 10**30)]
)
def test_trials_of_large_fractions_succeed_with_their_probability(part: int, whole: int) -> None:
    source, n = SeededNoise(4), 4000
    up = sum(_bernoulli(part, whole, source) for _ in range(n))
    assert stats.binomtest(up, n, float(Fraction(part, whole))).pvalue > FALSE_ALARM


class Told:
    """A source whose digits are told beforehand."""

    def __init__(self, digits: list[int]) -> None:
        self.digits = digits

    def below(self, limits: np.ndarray) -> np.ndarray:
        assert limits.tolist() == [2**32]
        return np.array([self.digits.pop(0)])


def test_a_trial_is_decided_by_the_first_digit_that_differs() -> None:
    """One third is 0.5555... in digits of sixteen: of 2^32, each is 0x55555555."""
    same = 0x55555555
    for digits, up in [
        ([same - 1], True),
        ([same + 1], False),
        ([same, same, same - 1], True),
        ([same, same + 1], False),
    ]:
        assert _bernoulli(1, 3, Told(list(digits))) is up  # type: ignore[arg-type]
    assert _bernoulli(1, 2**32, Told([0])) is True  # type: ignore[arg-type]
    assert _bernoulli(1, 2**32, Told([1])) is False  # type: ignore[arg-type]
    assert _bernoulli(3, 3, Told([])) is True  # type: ignore[arg-type]
    assert _bernoulli(0, 3, Told([])) is False  # type: ignore[arg-type]


# -- use and refusals ------------------------------------------------------------------------------


@pytest.mark.parametrize("make", [SecureNoise, lambda: SeededNoise(1)], ids=["secure", "seeded"])
def test_block_norm_noise_is_added_to_the_values(make: Callable) -> None:
    values = np.array([-(2**61), -7, 0, 3, 2**53 + 1, 2**61], dtype=np.int64)
    moved = make().block_norm(values, 2.0**22, (2, 3, 1)) - values
    assert np.abs(moved).min() > 0
    assert np.abs(moved).max() < 2.0**22 * 100
    assert moved[:2].sum() == moved[2:5].sum()
    assert (moved[5] - moved[:2].sum()) % 2 == 0


def test_seeded_block_norm_noise_is_repeatable_and_secret_noise_never_alike() -> None:
    zeros, widths = np.zeros(5, dtype=np.int64), (2, 3)
    first, again, other = (SeededNoise(seed).block_norm(zeros, 2.0**30, widths).tolist() for seed in (1, 1, 2))
    assert first == again != other
    assert len({tuple(SecureNoise().block_norm(zeros, 2.0**30, widths).tolist()) for _ in range(50)}) == 50


def test_a_lattice_too_coarse_and_noise_too_large_are_refused() -> None:
    check_fits("blocks", 41, 16 * 41**2)
    for source in (SecureNoise(), SeededNoise(0)):
        with pytest.raises(PrivacyError, match="far finer than its noise"):
            block_norm_noise((20, 21), 16 * 41**2 - 1.0, source)
        with pytest.raises(PrivacyError, match="64-bit integers"):
            block_norm_noise((20, 21), 2.0**60, source)


def test_wide_categories_and_many_are_drawn_soon() -> None:
    """Numbers of thousands of digits, and the coarsest lattice that is not refused."""
    assert block_norm_noise((200,) * 10, 2.0**35, SeededNoise(0)).shape == (2000,)
    assert block_norm_noise((30, 34), 16.0 * 64**2, SeededNoise(0)).shape == (64,)
