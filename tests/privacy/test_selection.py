"""Permute-and-flip against its exact law and its claim, and the coins."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy.stats import chisquare

from privfit.privacy import SecureNoise, SeededNoise
from privfit.privacy.selection import HEADS_OF_256, KeyedCoins


def exact_law(scores: list[int], scale: float) -> list[float]:
    """By enumeration of all orders."""
    keep = [math.exp((score - max(scores)) / scale) for score in scores]
    law = [0.0] * len(scores)
    for order in itertools.permutations(range(len(scores))):
        open_ = 1.0 / math.factorial(len(scores))
        for place in order:
            law[place] += open_ * keep[place]
            open_ *= 1 - keep[place]
    return law


@pytest.mark.parametrize("noise", [SecureNoise(), SeededNoise(1)], ids=["secure", "seeded"])
@pytest.mark.parametrize("scores", [[0, 1, 2], [5, 5, -3, 4], [7]])
def test_choices_follow_the_exact_law(noise, scores) -> None:
    draws = 4000
    law = exact_law(scores, 2.0)
    counts = np.bincount([noise.select(scores, 2.0) for _ in range(draws)], minlength=len(scores))
    assert math.isclose(sum(law), 1.0)
    if len(scores) > 1:
        assert chisquare(counts, np.array(law) * draws).pvalue > 1e-7


def test_no_choice_gives_away_more_than_claimed() -> None:
    """All score vectors on a small grid, and all changes whose differences stay within R: the claim of Lemma 1, exactly."""
    scale, reach = 3.0, 2
    worst = 0.0
    for scores in itertools.product(range(-3, 4), repeat=3):
        for change in itertools.product(range(-2, 3), repeat=3):
            if max(change) - min(change) <= reach:
                one, other = exact_law(list(scores), scale), exact_law([s + c for s, c in zip(scores, change, strict=True)], scale)
                worst = max(worst, *(abs(math.log(a / b)) for a, b in zip(one, other, strict=True)))
    assert worst <= reach / scale + 1e-12
    assert worst > 0.7 * reach / scale, "the claim should be close to what is reached"


def test_scores_too_far_apart_for_64_bits_are_no_trouble() -> None:
    assert SeededNoise(0).select([-(10**40), 0, -(10**30)], 1e6) == 1


def test_coins_are_fair_to_their_odds_and_the_same_whenever_asked() -> None:
    coins = KeyedCoins(b"key")
    whole = coins.heads(0, 100_000)
    assert abs(whole.mean() - HEADS_OF_256 / 256) < 6 * math.sqrt(0.16 / 100_000)
    for first, count in ((0, 1), (3, 20_000), (16_383, 2), (16_384, 5), (99_990, 10)):
        np.testing.assert_array_equal(coins.heads(first, count), whole[first : first + count])
    assert not np.array_equal(KeyedCoins(b"other").heads(0, 1000), whole[:1000])
    assert SecureNoise().coins().key != SecureNoise().coins().key
