"""Private choices against their exact laws and their claims, and the coins."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy.stats import chisquare

from privfit.privacy import SecureNoise, SeededNoise
from privfit.privacy.samplers.selection import ONES_OF_256, KeyedBits, exponential
from tests.privacy.laws import LAWS, flip_law, listed_flip_law, most_told, renyi, weight_law

SOURCES = pytest.mark.parametrize("noise", [SecureNoise(), SeededNoise(1)], ids=["secure", "seeded"])
RULES = pytest.mark.parametrize("rule", LAWS)
DRAWS = 4000


@pytest.mark.parametrize("scores", [[0, 1, 2], [5, 5, -3, 4], [7], [0, -40, 3, 3, -1, 2, 0], [900, -900]])
@pytest.mark.parametrize("scale", [2.0, 0.3])
def test_the_law_of_permute_and_flip_is_that_of_all_orders(scores, scale) -> None:
    np.testing.assert_allclose(flip_law(scores, scale), listed_flip_law(scores, scale), rtol=1e-12)


@SOURCES
@pytest.mark.parametrize("scores", [[0, 1, 2], [5, 5, -3, 4], [7]])
def test_choices_follow_the_exact_law(noise, scores) -> None:
    law = flip_law(scores, 2.0)
    counts = np.bincount([noise.select(scores, 2.0) for _ in range(DRAWS)], minlength=len(scores))
    assert math.isclose(sum(law), 1.0)
    if len(scores) > 1:
        assert chisquare(counts, np.array(law) * DRAWS).pvalue > 1e-7


@SOURCES
@RULES
@pytest.mark.parametrize("scale", [2.0, 0.7, 1.3], ids=str)
def test_each_menu_of_a_batch_follows_the_exact_law_of_the_rule(noise, rule, scale) -> None:
    """Menus of different lengths in one call; scales that are integers, not, and below one."""
    menus = [[0, 1, 2], [5, 5, 4, 3], [-9], [10**30, 10**30 + 1]]
    drawn = np.array(noise.select_each(menus * DRAWS, scale, rule)).reshape(DRAWS, len(menus))
    for place, menu in enumerate(menus):
        counts, law = np.bincount(drawn[:, place], minlength=len(menu)), LAWS[rule](menu, scale)
        assert math.isclose(sum(law), 1.0)
        if len(menu) > 1:
            assert chisquare(counts, np.array(law) * DRAWS).pvalue > 1e-7


@SOURCES
@RULES
def test_menus_of_a_batch_are_independent(noise, rule) -> None:
    """All pairs of outcomes as often as the product of the laws says, next to each other and one apart, so also where
    one menu needs more tries than another.
    """
    menus = [[0, 1, 2], [4, 0, 0], [0, 0]]
    drawn = np.array(noise.select_each(menus * DRAWS, 1.5, rule)).reshape(DRAWS, len(menus))
    for one, other in itertools.combinations(range(len(menus)), 2):
        pairs = np.bincount(
            drawn[:, one] * len(menus[other]) + drawn[:, other], minlength=len(menus[one]) * len(menus[other])
        )
        law = np.outer(LAWS[rule](menus[one], 1.5), LAWS[rule](menus[other], 1.5)).ravel()
        assert chisquare(pairs, law * DRAWS).pvalue > 1e-7


def test_the_two_rules_differ_where_they_should() -> None:
    """So that a test of one against the law of the other would fail."""
    menus = [[0, 1, 2]] * DRAWS
    flips = np.bincount(SeededNoise(2).select_each(menus, 2.0, "permute-and-flip"), minlength=3)
    assert chisquare(flips, np.array(weight_law([0, 1, 2], 2.0)) * DRAWS).pvalue < 1e-7
    weights = np.bincount(SeededNoise(2).select_each(menus, 2.0, "exponential"), minlength=3)
    assert chisquare(weights, np.array(flip_law([0, 1, 2], 2.0)) * DRAWS).pvalue < 1e-7


def changes(reach: int, size: int) -> list[tuple[int, ...]]:
    return [
        change
        for change in itertools.product(range(-reach, reach + 1), repeat=size)
        if max(change) - min(change) <= reach
    ]


@RULES
def test_no_choice_gives_away_more_than_claimed(rule) -> None:
    """All score vectors on a small grid, and all changes whose differences stay within R: the claims of Lemmas 1 and 3,
    exactly.
    """
    scale, reach = 3.0, 2
    worst = 0.0
    for scores in itertools.product(range(-3, 4), repeat=3):
        one = LAWS[rule](scores, scale)
        for change in changes(reach, 3):
            worst = max(worst, most_told(one, LAWS[rule]([s + c for s, c in zip(scores, change, strict=True)], scale)))
    assert worst <= reach / scale + 1e-12
    assert worst > 0.7 * reach / scale, "the claim should be close to what is reached"


def test_the_exponential_rule_costs_an_eighth_of_epsilon_squared() -> None:
    """Lemma 3 by enumeration: its Renyi divergence of order a is at most a epsilon^2 / 8, at all orders tried, and
    close to that somewhere.
    """
    scale, reach = 3.0, 2
    epsilon, used = reach / scale, 0.0
    for scores in itertools.product(range(-4, 5, 2), repeat=3):
        one = weight_law(scores, scale)
        for change in changes(reach, 3):
            other = weight_law([s + c for s, c in zip(scores, change, strict=True)], scale)
            for order in (1.0001, 1.5, 2.0, 8.0, 64.0):
                used = max(used, renyi(one, other, order) / (order * epsilon**2 / 8))
    assert 0.9 < used <= 1 + 1e-6


def test_permute_and_flip_costs_more_than_an_eighth() -> None:
    """Why it is charged as a pure choice: at the price of the exponential rule it would overspend."""
    scale, reach = 3.0, 2
    epsilon = reach / scale
    used = max(
        renyi(flip_law(scores, scale), flip_law([s + c for s, c in zip(scores, change, strict=True)], scale), 1.0001)
        for scores in itertools.product((-12, 0), (-2, 0, 2), (-2, 0, 2))
        for change in changes(reach, 3)
    )
    assert used > 1.0001 * epsilon**2 / 8


@RULES
def test_scores_too_far_apart_for_64_bits_are_no_trouble(rule) -> None:
    assert SeededNoise(0).select_each([[-(10**40), 0, -(10**30)]], 1e6, rule) == [1]


@RULES
def test_the_largest_scale_there_is_still_chooses_evenly(rule) -> None:
    """Scores within a thousandth of the scale: all equally likely, but for what nobody can measure."""
    menus = [[0, 2**50, -(2**50)]] * DRAWS
    counts = np.bincount(SecureNoise().select_each(menus, 2.0**62, rule), minlength=3)
    assert chisquare(counts).pvalue > 1e-7


class Stubborn:
    """Answers as told, then what accepts anything."""

    def __init__(self, places: list[list[int]], flips: list[list[int]]) -> None:
        self.places, self.flips, self.limits, self.scales = places, flips, [], []

    def below(self, limits):
        self.limits.append(limits.tolist())
        return np.array(self.places.pop(0), dtype=np.int64)

    def geometric(self, size, scale):
        self.scales.append(scale)
        return np.array(self.flips.pop(0), dtype=np.int64)


def test_a_menu_that_found_nothing_is_tried_again_alone_and_the_first_that_is_kept_counts() -> None:
    source = Stubborn([[0, 0, 1, 1, 0], [1, 2, 2]], [[4, 4, 0, 0, 9], [0, 1, 0]])
    assert exponential([[0, 0 - 5, 5], [3, 3]], 2.0, source) == [2, 1]
    assert source.limits == [[3, 3, 3, 2, 2], [3, 3, 3]]
    assert source.scales == [2.0, 2.0]


def test_coins_are_fair_to_their_odds_and_the_same_whenever_asked() -> None:
    coins = KeyedBits(b"key")
    whole = coins.ones(0, 100_000)
    assert abs(whole.mean() - ONES_OF_256 / 256) < 6 * math.sqrt(0.16 / 100_000)
    for first, count in ((0, 1), (3, 20_000), (16_383, 2), (16_384, 5), (99_990, 10)):
        np.testing.assert_array_equal(coins.ones(first, count), whole[first : first + count])
    assert not np.array_equal(KeyedBits(b"other").ones(0, 1000), whole[:1000])
    assert SecureNoise().keyed_bits().key != SecureNoise().keyed_bits().key
