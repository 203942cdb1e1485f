"""The attack on tables for pairs: the exact law of a choice, and the worst ratio of a table's noise, on neighbours that hurt."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from privfit.losses import LOGISTIC, tempered_logistic
from privfit.mechanisms.pairs import FOR_CHOICES, MOST_CELLS, Slopes, Tables
from tests.privacy.laws import flip_law, most_told
from tests.support.pairs import VALUES, crossing_of, measured, weights_of

PEOPLE = [(*value, label) for value in VALUES for label in ("no", "yes")]
EPSILON = Fraction(40)  # large, so that a fortieth of it still tells pairs apart on few rows


def told(loss, left: list, right: list, moved: int, size: float, seed: int, charged: Slopes | None = None) -> tuple[float, float]:
    """What a choice gives away, and what the noise on a pair's slopes can at most, each as a share of what it is charged."""
    weights, slopes = weights_of(seed, size), Slopes(loss, moved)
    tables = Tables(charged or slopes, crossing_of(), EPSILON, 1)
    (one, r, _), (other, r2, _) = measured(left, weights, slopes), measured(right, weights, slopes)
    choice = most_told(flip_law(one, tables.choice_scale), flip_law(other, tables.choice_scale)) / float(EPSILON * FOR_CHOICES)
    table = max(int(np.abs(a - b).sum()) for a, b in zip(r, r2, strict=True)) / tables.slope_scale
    return choice, table / float(EPSILON * Fraction(12, 100) * Fraction(4, 5))


@pytest.mark.parametrize("loss", [tempered_logistic(0.5, 1.0), LOGISTIC], ids=lambda loss: loss.name)
@pytest.mark.parametrize("many", [1, 30])
def test_no_choice_and_no_table_gives_away_more_than_it_is_charged(loss, many: int) -> None:
    assert len(crossing_of().pairs(MOST_CELLS)) == 6
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
