"""The attack on tables for pairs: the exact law of a choice, and the worst ratio of a table's noise, on neighbours that hurt."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from privfit.losses import LOGISTIC, tempered_logistic
from privfit.mechanisms.pairs import Shares, Slopes, Tables, menu_of
from tests.privacy.laws import flip_law, most_told
from tests.support.pairs import VALUES, crossing_of, measured, weights_of

PEOPLE = [(*value, label) for value in VALUES for label in ("no", "yes")]
EPSILON = Fraction(40)  # large, so that a fortieth of it still tells pairs apart on few rows


def told(loss, left: list, right: list, moved: int, size: float, seed: int, charged: Slopes | None = None) -> tuple[float, float]:
    """What a choice gives away, and what the noise on a pair's slopes and curvatures can at most, each as a share of what it is charged."""
    weights, slopes = weights_of(seed, size), Slopes(loss, moved)
    shares = Shares.of(1, gaussian=False)
    tables = Tables(charged or slopes, crossing_of(), EPSILON, shares)
    (one, r, c), (other, r2, c2) = measured(left, weights, slopes), measured(right, weights, slopes)
    choice = most_told(flip_law(one, tables.choice_scale), flip_law(other, tables.choice_scale)) / float(EPSILON * shares.choices)
    moves = (np.abs(a - b).sum() + np.abs(h - h2).sum() for a, b, h, h2 in zip(r, r2, c, c2, strict=True))
    return choice, max(map(int, moves)) / tables.table_scale / float(EPSILON * shares.tables)


@pytest.mark.parametrize("loss", [tempered_logistic(0.5, 1.0), LOGISTIC], ids=lambda loss: loss.name)
@pytest.mark.parametrize("many", [1, 30])
def test_no_choice_and_no_table_gives_away_more_than_it_is_charged(loss, many: int) -> None:
    assert len(menu_of(crossing_of())) == 8  # six pairs, and two numbers by themselves
    furthest = np.zeros(2)
    for seed, size in ((0, 0.0), (1, 1.0), (2, 8.0)):
        for crowd in (PEOPLE[1], PEOPLE[4]):
            for left in PEOPLE:
                for right in PEOPLE:
                    found = told(loss, [crowd] * many + [left], [crowd] * many + [right], 2, size, seed)
                    furthest = np.maximum(furthest, found)
                found = told(loss, [crowd] * many + [left], [crowd] * many, 1, size, seed)
                furthest = np.maximum(furthest, found)
    assert furthest.max() <= 1 + 1e-9
    assert furthest[1] > 0.9


def test_the_attack_catches_noise_for_half_of_a_person() -> None:
    loss = tempered_logistic(0.5, 1.0)
    left, right = [PEOPLE[0]] * 30 + [PEOPLE[2]], [PEOPLE[0]] * 30 + [PEOPLE[3]]  # the label alone
    tried = [(size, seed) for size in (0.0, 1.0, 8.0) for seed in range(3)]
    assert max(max(told(loss, left, right, 2, size, seed)) for size, seed in tried) <= 1
    assert max(max(told(loss, left, right, 2, size, seed, charged=Slopes(loss, 1))) for size, seed in tried) > 1
