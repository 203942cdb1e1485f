"""A pattern among exponentially many: the law of what is drawn, against a list of them all."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from decimal import Decimal, localcontext

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chi2

from privfit.privacy import SecureNoise, SeededNoise
from privfit.privacy.samplers.patterns import DOWN, UP, Chain, choose_pattern
from tests.privacy.laws import most_told

BITS = 200


def plain(*gains: tuple[int, int]) -> Chain:
    return Chain(np.array(gains, dtype=np.int64))


def random_chain(rng: np.random.Generator, levels: int, linked: bool, size: int = 40) -> Chain:
    alone = rng.integers(-size, size + 1, (levels, 2))
    return Chain(alone, rng.integers(-size, size + 1, (levels - 1, 2, 2)) if linked else None)


def patterns(chains: Sequence[Chain]) -> list[tuple[int, tuple[int, ...]]]:
    return [
        (place, signs)
        for place, chain in enumerate(chains)
        for signs in itertools.product((DOWN, UP), repeat=chain.levels)
    ]


def by_hand(chain: Chain, signs: Sequence[int]) -> int:
    """What a pattern gains, term by term."""
    total = 0
    for level, sign in enumerate(signs):
        total += int(chain.alone[level][sign])
        if chain.linked is not None and level:
            total += int(chain.linked[level - 1][signs[level - 1]][sign])
    return total


def listed(chains: Sequence[Chain], scale: float) -> dict[tuple[int, tuple[int, ...]], Decimal]:
    """The law, by listing everything: exp(gain / scale), shared out evenly among the patterns of a column."""
    with localcontext() as context:
        context.prec = 100
        rate = 1 / (Decimal(scale) * (1 + Decimal(2) ** -50))
        weights = {
            (place, signs): (by_hand(chains[place], signs) * rate).exp() / 2 ** chains[place].levels
            for place, signs in patterns(chains)
        }
        total = sum(weights.values())
        return {pattern: weight / total for pattern, weight in weights.items()}


CASES = {
    "one column of one level": [plain((3, -4))],
    "three levels": [plain((3, -4), (0, 0), (-10, 9))],
    "columns of other lengths": [plain((3, -4)), plain((1, 2), (5, -5), (0, 7)), plain((-3, 3), (2, 2))],
    "linked": [Chain(np.zeros((3, 2), dtype=np.int64), np.array([[[4, -9], [0, 3]], [[-2, 8], [6, 5]]]))],
    "linked and plain": [
        random_chain(np.random.default_rng(1), 3, True),
        random_chain(np.random.default_rng(2), 2, False),
    ],
    "alone and linked": [
        random_chain(np.random.default_rng(3), 2, True),
        random_chain(np.random.default_rng(4), 3, True),
    ],
}


# -- exactly ---------------------------------------------------------------------------------------


class Told:
    """Hands out numbers of 200 bits, one a draw, as they were given; zero when they are used up."""

    def __init__(self, numbers: Sequence[int] = ()) -> None:
        self._numbers, self.draws = list(numbers), 0

    def below(self, limits: np.ndarray) -> np.ndarray:
        number = self._numbers[self.draws] if self.draws < len(self._numbers) else 0
        self.draws += 1
        found = []
        for limit in reversed(limits.tolist()):
            number, part = divmod(number, limit)
            found.append(part)
        assert number == 0
        return np.array(found[::-1], dtype=np.int64)


def first_with(at_least: int, drawn: Callable[[int], int]) -> int:
    """The smallest number of 200 bits that leads to this place or a later one."""
    low, high = 0, 1 << BITS
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if drawn(middle) >= at_least else (middle + 1, high)
    return low


def drawn_law(chains: Sequence[Chain], scale: float) -> dict[tuple[int, tuple[int, ...]], Decimal]:
    """The law of what the code draws, from the numbers that lead to each answer: every draw is followed to its last
    bit.
    """

    def answers(numbers: Sequence[int]) -> tuple[int, ...]:
        column, signs = choose_pattern(chains, scale, Told(numbers))
        return (column, *signs)

    law: dict[tuple[int, tuple[int, ...]], Decimal] = {}

    def follow(numbers: tuple[int, ...], chance: Decimal, so_far: tuple[int, ...]) -> None:
        place = len(numbers)
        if place and place == 1 + chains[so_far[0]].levels:
            law[so_far[0], so_far[1:]] = chance
            return
        options = 2 if place else len(chains)
        edges = [
            0,
            *(first_with(option, lambda number: answers((*numbers, number))[place]) for option in range(1, options)),
            1 << BITS,
        ]
        for option, (start, stop) in enumerate(itertools.pairwise(edges)):
            follow((*numbers, start), chance * (stop - start) / (1 << BITS), (*so_far, option))

    with localcontext() as context:
        context.prec = 100
        follow((), Decimal(1), ())
    return law


@pytest.mark.parametrize(("name", "scale"), [*((name, 7.0) for name in CASES), ("linked", 25.3)])
def test_every_pattern_is_drawn_with_the_weight_that_a_list_gives_it(name, scale) -> None:
    """To 200 bits: no law that is only nearly the right one passes."""
    wanted, found = listed(CASES[name], scale), drawn_law(CASES[name], scale)
    assert wanted.keys() == found.keys()
    for pattern, chance in wanted.items():
        assert abs(found[pattern] / chance - 1) < Decimal(10) ** -45, pattern


def test_without_anything_to_gain_columns_are_equally_likely_and_so_are_their_patterns() -> None:
    chains = [plain((0, 0)), plain((0, 0), (0, 0), (0, 0))]
    law = drawn_law(chains, 3.0)
    assert {float(law[pattern]) for pattern in patterns(chains[:1])} == {0.25}
    assert {float(law[1, signs]) for signs in itertools.product((0, 1), repeat=3)} == {1 / 16}


@pytest.mark.parametrize("linked", [False, True])
def test_neighbours_are_told_apart_by_less_than_epsilon_and_nearly_by_it(linked) -> None:
    """All gains move against each other as far as is allowed: differences of two change by at most 12, at a scale of 12
    / epsilon.
    """
    epsilon, reach = 0.9, 12
    here = (
        [Chain(np.array([[-60, 60]]))]
        if not linked
        else [Chain(np.zeros((2, 2), np.int64), np.array([[[-60, 60], [60, 60]]]))]
    )
    there = [
        Chain(
            chain.alone + (0 if linked else np.array([[6, -6]])),
            None if chain.linked is None else chain.linked + np.array([[6, -6], [-6, -6]]),
        )
        for chain in here
    ]
    laws = [[float(chance) for chance in drawn_law(chains, reach / epsilon).values()] for chains in (here, there)]
    assert 0.95 * epsilon < most_told(*laws) < epsilon


# -- by sampling -----------------------------------------------------------------------------------


def surprise(chains: Sequence[Chain], scale: float, source, draws: int) -> float:
    """How likely so large a chi-square is, if the law is the one listed. Rare patterns are counted together."""
    law = {pattern: float(chance) for pattern, chance in listed(chains, scale).items()}
    counts = dict.fromkeys(law, 0)
    for _ in range(draws):
        counts[choose_pattern(chains, scale, source)] += 1
    often = [pattern for pattern, chance in law.items() if chance * draws >= 8]
    cells = [(counts[pattern], law[pattern] * draws) for pattern in often]
    rest = 1 - sum(law[pattern] for pattern in often)
    if rest * draws >= 8:
        cells.append((draws - sum(count for count, _ in cells), rest * draws))
    return float(chi2.sf(sum((count - mean) ** 2 / mean for count, mean in cells), len(cells) - 1))


@pytest.mark.parametrize("name", list(CASES)[1:])
def test_drawn_patterns_have_the_frequencies_of_the_list(name) -> None:
    assert surprise(CASES[name], 9.0, SeededNoise(5), 1000) > 1e-5


def test_so_they_have_with_secret_noise() -> None:
    assert surprise(CASES["linked and plain"], 20.0, SecureNoise(), 1500) > 1e-7


def test_frequencies_of_another_scale_are_told_apart() -> None:
    """The test above can fail."""
    chains = CASES["columns of other lengths"]
    law = {pattern: float(chance) for pattern, chance in listed(chains, 9.0).items()}
    drawn = [choose_pattern(chains, 4.5, SeededNoise(seed)) for seed in range(800)]
    counts = [drawn.count(pattern) for pattern in law]
    assert (
        chi2.sf(sum((n - 800 * p) ** 2 / (800 * p) for n, p in zip(counts, law.values(), strict=True)), len(law) - 1)
        < 1e-6
    )


# -- what may be asked of it -----------------------------------------------------------------------


@given(st.integers(0, 10_000), st.integers(1, 6), st.booleans())
def test_the_gain_of_a_pattern_is_the_sum_of_its_terms(seed, levels, linked) -> None:
    rng = np.random.default_rng(seed)
    chain = random_chain(rng, levels, linked)
    signs = tuple(rng.integers(0, 2, levels).tolist())
    assert chain.levels == levels
    assert chain.gain(signs) == by_hand(chain, signs)


@given(st.integers(0, 10_000))
def test_links_that_say_nothing_change_no_draw(seed) -> None:
    rng = np.random.default_rng(seed)
    chains = [random_chain(rng, levels, False) for levels in (3, 1, 4)]
    with_links = [Chain(chain.alone, np.zeros((chain.levels - 1, 2, 2), dtype=np.int64)) for chain in chains]
    assert choose_pattern(chains, 11.0, SeededNoise(seed)) == choose_pattern(with_links, 11.0, SeededNoise(seed))


@pytest.mark.parametrize("linked", [False, True])
def test_the_number_of_draws_is_one_and_one_a_level(linked) -> None:
    """Whatever the gains are: a column's length is public."""
    rng = np.random.default_rng(0)
    for size in (1, 10**6, 10**14):
        chains = [random_chain(rng, levels, linked, size) for levels in (2, 5)]
        source = Told([int(number) << 150 for number in rng.integers(0, 1 << 50, 9)])
        _, signs = choose_pattern(chains, 3.0, source)
        assert source.draws == 1 + len(signs)


@pytest.mark.parametrize("size", [10**9, 10**17])
def test_what_gains_by_far_the_most_is_chosen_however_large_gains_are(size) -> None:
    chains = [plain((0, size // 2)), plain((-size, size), (size // 3, -size)), plain((0, 0))]
    for seed in range(20):
        assert choose_pattern(chains, 0.5, SeededNoise(seed)) == (1, (UP, DOWN))


def test_columns_of_many_levels_are_drawn_from() -> None:
    rng = np.random.default_rng(0)
    chains = [random_chain(rng, 400, True, 5), random_chain(rng, 1500, False, 5)]
    lengths = {choose_pattern(chains, 1e4, SeededNoise(seed))[0] for seed in range(12)}
    assert lengths == {0, 1}


def test_signs_are_as_likely_as_they_gain() -> None:
    """One level, gains 0 and s: up has the chance e / (1 + e)."""
    law = drawn_law([plain((0, 1000))], 1000.0)
    assert math.isclose(float(law[0, (UP,)]), math.e / (1 + math.e), rel_tol=1e-12)
