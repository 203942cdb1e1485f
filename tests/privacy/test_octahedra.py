"""Noise in octahedra against its exact law, point by point. Every statistical check raises a false alarm less than once in a million runs."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from privfit.privacy import PrivacyError, SecureNoise, SeededNoise
from privfit.privacy.octahedra import _comes_up, _places, _point, octahedra, octahedra_sd, points_within
from privfit.privacy.shapes import cube
from tests.support.lengths import length
from tests.support.pooled import PooledNoise

FALSE_ALARM = 1e-7
LEAST_EXPECTED = 25
SOURCES = {"secure": PooledNoise, "seeded": lambda: SeededNoise(20_261_116)}

LAWS = [((2,), 0.8), ((1, 1), 0.7), ((1, 2), 0.6), ((2, 2), 0.7), ((3,), 1.1), ((1, 3), 0.9), ((2, 1, 1), 0.6)]


# -- counting ------------------------------------------------------------------------------------------------------------------------


def within(width: int, radius: int) -> list[tuple[int, ...]]:
    """All points of an octahedron, one by one."""
    return [point for point in itertools.product(range(-radius, radius + 1), repeat=width) if sum(abs(value) for value in point) <= radius]


@pytest.mark.parametrize("width", [1, 2, 3, 4])
@pytest.mark.parametrize("radius", [0, 1, 2, 5])
def test_points_are_counted_as_they_are_listed(width: int, radius: int) -> None:
    assert points_within(width, radius) == len(within(width, radius))


@given(st.integers(1, 40), st.one_of(st.integers(0, 50), st.integers(0, 2**55)))
def test_points_are_counted_as_by_how_many_values_are_not_zero(width: int, radius: int) -> None:
    assert points_within(width, radius) == sum(2**some * math.comb(width, some) * math.comb(radius, some) for some in range(width + 1))


@given(st.lists(st.integers(1, 12), min_size=1, max_size=6), st.one_of(st.integers(0, 200), st.integers(0, 2**50)))
def test_a_radius_is_kept_with_a_chance_between_that_of_a_cube_and_one(widths: list[int], radius: int) -> None:
    """Lemma 3: the chance is one at most, and no less than a cube's, so that a draw ends as soon."""
    size = sum(widths)
    proposed = 2**size * math.prod(radius + i for i in range(1, size + 1))
    kept = Fraction(math.prod(points_within(width, radius) * math.factorial(width) for width in widths), proposed)
    assert Fraction((2 * radius + 1) ** size, proposed) <= kept <= 1


# -- the law -------------------------------------------------------------------------------------------------------------------------


def shell_chances(widths: tuple[int, ...], scale: float) -> tuple[np.ndarray, np.ndarray]:
    """The chance of each distance, and of one point at that distance."""
    distances = np.arange(int(60 * scale * sum(widths)) + 60)
    inside = [math.prod(points_within(width, int(radius)) for width in widths) for radius in distances]
    points = np.diff(np.array(inside, dtype=float), prepend=0.0)
    mass = points * np.exp(-distances / scale)
    return mass / mass.sum(), np.exp(-distances / scale) / mass.sum()


def p_value(sample: np.ndarray, widths: tuple[int, ...], scale: float) -> float:
    """Points that expect enough draws are cells of their own; further out a shell is one, and far shells are one together."""
    n = len(sample)
    shells, points = shell_chances(widths, scale)
    near = int((n * points >= LEAST_EXPECTED).sum())  # shells whose points are cells
    far = int(np.flatnonzero(n * np.cumsum(shells[::-1])[::-1] >= LEAST_EXPECTED)[-1])  # from here on all shells are one
    parts = itertools.product(*(within(width, near - 1) for width in widths))
    wanted: dict[object, float] = {}
    for point in (tuple(itertools.chain.from_iterable(part)) for part in parts):
        wanted[point] = n * points[round(length("octahedra", np.array(point), widths))]
    wanted |= {shell: n * shells[shell] for shell in range(near, far) if n * shells[shell] >= LEAST_EXPECTED}
    seen = dict.fromkeys(wanted, 0)
    rest = 0
    for point in map(tuple, sample.tolist()):
        shell = round(length("octahedra", np.array(point), widths))
        cell = point if shell < near else shell
        if cell in seen:
            seen[cell] += 1
        else:
            rest += 1
    assert len(wanted) >= 3
    return float(stats.chisquare([*seen.values(), rest], [*wanted.values(), n - sum(wanted.values())]).pvalue)


def drawn(source, widths: tuple[int, ...], scale: float, n: int) -> np.ndarray:
    return np.array([source.octahedra(np.zeros(sum(widths), dtype=np.int64), scale, widths) for _ in range(n)])


@pytest.mark.parametrize(("widths", "scale"), LAWS)
@pytest.mark.parametrize("name", SOURCES)
def test_every_point_has_its_exact_chance(name: str, widths: tuple[int, ...], scale: float) -> None:
    sample = drawn(SOURCES[name](), widths, scale, 2000 if name == "secure" else 8000)
    assert sample.dtype == np.int64
    assert p_value(sample, widths, scale) > FALSE_ALARM


def test_the_law_holds_straight_from_the_secure_source() -> None:
    assert p_value(drawn(SecureNoise(), (1, 2), 0.5, 500), (1, 2), 0.5) > FALSE_ALARM


def wrong(fault: str, widths: tuple[int, ...], scale: float, n: int = 6000) -> np.ndarray:
    """Octahedra as they could be written by mistake."""
    rng = np.random.default_rng(5)
    size = sum(widths)
    source = SeededNoise(6)
    match fault:
        case "Laplace noise":
            return source.laplace(np.zeros((n, size), dtype=np.int64), scale)
        case "a cube":
            return np.array([cube(size, scale, source) for _ in range(n)])
        case "a radius for every block":
            return np.hstack([drawn(source, (width,), scale, n) for width in widths])
        case "every proposal kept":
            radii = source.geometric(n * (size + 1), scale).reshape(n, -1).sum(axis=1)
            return np.array(
                [
                    np.concatenate([_point(width, int(radius), points_within(width, int(radius)), source) for width in widths])
                    for radius in radii
                ]
            )
        case "points on the surface alone":
            sample = drawn(source, widths, scale, 3 * n)
            return sample[np.abs(sample[:, : widths[0]]).sum(axis=1) == [length("octahedra", point, widths) for point in sample]][:n]
        case "a tenth too narrow":
            return drawn(source, widths, 0.85 * scale, n)
        case "a rounded continuous one":
            radii = rng.gamma(size + 1, scale, n)
            parts = []
            for width in widths:
                shares = rng.dirichlet(np.ones(width + 1), n)[:, :width]
                parts.append(radii[:, None] * shares * rng.choice([-1, 1], (n, width)))
            return np.rint(np.hstack(parts)).astype(np.int64)
    raise AssertionError(fault)


@pytest.mark.parametrize(
    "fault",
    [
        "Laplace noise",
        "a cube",
        "a radius for every block",
        "every proposal kept",
        "points on the surface alone",
        "a tenth too narrow",
        "a rounded continuous one",
    ],
)
def test_the_check_catches_wrong_octahedra(fault: str) -> None:
    widths, scale = (1, 2), 0.6
    assert p_value(wrong(fault, widths, scale), widths, scale) < FALSE_ALARM


def test_one_block_is_laplace_noise_and_blocks_of_one_value_are_a_cube() -> None:
    """Two laws that are drawn in other ways."""
    laplace = SeededNoise(1).laplace(np.zeros((6000, 2), dtype=np.int64), 0.8)
    assert p_value(laplace, (2,), 0.8) > FALSE_ALARM
    source = SeededNoise(2)
    assert p_value(np.array([cube(2, 0.7, source) for _ in range(6000)]), (1, 1), 0.7) > FALSE_ALARM
    assert octahedra_sd([7]) == pytest.approx(math.sqrt(2))
    assert octahedra_sd([1] * 9) == pytest.approx(math.sqrt(10 * 11 / 3))


@pytest.mark.parametrize("name", SOURCES)
def test_fine_octahedra_have_the_moments_that_reports_state(name: str) -> None:
    """The largest sum over a block is a Gamma number, a value has its variance, and every block has the same share of the largest sums."""
    widths, scale, n = (3, 3, 8, 12), 2.0**30 + 0.5, 1500
    sample = drawn(SOURCES[name](), widths, scale, n) / scale
    size = sum(widths)
    sums = np.stack([np.abs(block).sum(axis=1) for block in np.split(sample, np.cumsum(widths)[:-1], axis=1)], axis=1)
    assert stats.kstest(sums.max(axis=1), stats.gamma(size).cdf).pvalue > FALSE_ALARM
    largest = np.bincount(sums.argmax(axis=1), minlength=4)
    assert stats.chisquare(largest, n * np.array(widths) / size).pvalue > FALSE_ALARM
    mean_square = (sample**2).mean(axis=1)
    assert abs(mean_square.mean() - octahedra_sd(widths) ** 2) < 6 * mean_square.std() / math.sqrt(n)
    assert stats.binomtest(int((sample[:, 0] > 0).sum()), n).pvalue > FALSE_ALARM


@pytest.mark.parametrize("name", SOURCES)
def test_every_low_bit_is_fair(name: str) -> None:
    sample = drawn(SOURCES[name](), (8,) * 5 + (3,) * 3, 2.0**38, 150)
    for bits in (sample & 15, sample >> 20 & 15):
        assert stats.chisquare(np.bincount(bits.ravel(), minlength=16)).pvalue > FALSE_ALARM


# -- what it is made of --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("width", "radius"), [(1, 0), (1, 3), (2, 2), (3, 1), (3, 2)])
@pytest.mark.parametrize("name", SOURCES)
def test_all_points_within_a_radius_are_equally_likely(name: str, width: int, radius: int) -> None:
    points = within(width, radius)
    seen = dict.fromkeys(points, 0)
    source = SOURCES[name]()
    for _ in range(60 * len(points)):
        seen[tuple(_point(width, radius, len(points), source).tolist())] += 1
    assert len(points) == 1 or stats.chisquare(list(seen.values())).pvalue > FALSE_ALARM


def test_all_choices_of_places_are_equally_likely() -> None:
    source, seen = SeededNoise(3), dict.fromkeys(itertools.combinations(range(5), 3), 0)
    for _ in range(3000):
        seen[tuple(sorted(_places(5, 3, source).tolist()))] += 1
    assert stats.chisquare(list(seen.values())).pvalue > FALSE_ALARM


@pytest.mark.parametrize(("part", "whole"), [(1, 3), (2**40 + 1, 2**41), (5, 2**33), (3**60, 3**60 + 2 * 3**59), (10**30 - 1, 10**30)])
def test_coins_of_large_fractions_come_up_with_their_odds(part: int, whole: int) -> None:
    source, n = SeededNoise(4), 4000
    up = sum(_comes_up(part, whole, source) for _ in range(n))
    assert stats.binomtest(up, n, float(Fraction(part, whole))).pvalue > FALSE_ALARM


class Told:
    """A source whose digits are told beforehand."""

    def __init__(self, digits: list[int]) -> None:
        self.digits = digits

    def below(self, limits: np.ndarray) -> np.ndarray:
        assert limits.tolist() == [2**32]
        return np.array([self.digits.pop(0)])


def test_a_coin_is_decided_by_the_first_digit_that_differs() -> None:
    """One third is 0.5555... in digits of sixteen: of 2^32, each is 0x55555555."""
    same = 0x55555555
    for digits, up in [([same - 1], True), ([same + 1], False), ([same, same, same - 1], True), ([same, same + 1], False)]:
        assert _comes_up(1, 3, Told(list(digits))) is up  # type: ignore[arg-type]
    assert _comes_up(1, 2**32, Told([0])) is True  # type: ignore[arg-type]
    assert _comes_up(1, 2**32, Told([1])) is False  # type: ignore[arg-type]
    assert _comes_up(3, 3, Told([])) is True  # type: ignore[arg-type]
    assert _comes_up(0, 3, Told([])) is False  # type: ignore[arg-type]


# -- use and refusals ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("make", [SecureNoise, lambda: SeededNoise(1)], ids=["secure", "seeded"])
def test_octahedra_are_added_to_the_values(make: Callable) -> None:
    values = np.array([-(2**61), -7, 0, 3, 2**53 + 1, 2**61], dtype=np.int64)
    moved = make().octahedra(values, 2.0**22, (2, 3, 1)) - values
    assert np.abs(moved).min() > 0
    assert np.abs(moved).max() < 2.0**22 * 100


def test_seeded_octahedra_are_repeatable_and_secret_ones_never_alike() -> None:
    zeros, widths = np.zeros(5, dtype=np.int64), (2, 3)
    first, again, other = (SeededNoise(seed).octahedra(zeros, 2.0**30, widths).tolist() for seed in (1, 1, 2))
    assert first == again != other
    assert len({tuple(SecureNoise().octahedra(zeros, 2.0**30, widths).tolist()) for _ in range(50)}) == 50


def test_a_lattice_too_coarse_and_noise_too_large_are_refused_as_for_a_cube() -> None:
    for source in (SecureNoise(), SeededNoise(0)):
        with pytest.raises(PrivacyError, match="finer than its noise"):
            octahedra((20, 21), 1.0, source)
        with pytest.raises(PrivacyError, match="64-bit whole numbers"):
            octahedra((20, 21), 2.0**60, source)


def test_wide_categories_are_drawn_soon() -> None:
    """Numbers of thousands of digits, and the coarsest lattice that is not refused."""
    assert octahedra((2000, 2000), 2.0**35, SeededNoise(0)).shape == (4000,)
    assert octahedra((30, 34), 8.0, SeededNoise(0)).shape == (64,)
