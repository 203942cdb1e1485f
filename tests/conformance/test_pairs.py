"""The attack on tables for pairs: the exact law of a choice, and the worst ratio of a table's noise, on neighbours that
hurt.
"""

from __future__ import annotations

from fractions import Fraction
from functools import cache

import numpy as np
import pytest

from privfit.losses import LOGISTIC, tempered_logistic
from privfit.mechanisms.perturbation.interaction_terms import BudgetSplit, IntegerGradients, InteractionTerms, menu_of
from tests.privacy.laws import flip_law, most_told
from tests.support.pairs import VALUES, interactions_of, measured, weights_of

PEOPLE = [(*value, label) for value in VALUES for label in ("no", "yes")]
EPSILON = Fraction(40)  # large, so that a fortieth of it still tells pairs apart on few rows


@cache
def found_in(crowd: tuple, many: int, last: tuple | None, loss, moved: int, size: float, seed: int) -> tuple:
    """Scores and sums of a crowd of equal people and one more. A table is in many pairs, and measured once."""
    rows = [crowd] * many + ([] if last is None else [last])
    return measured(rows, weights_of(seed, size), IntegerGradients(loss, moved))


def told(
    one_more: tuple, other_more: tuple | None, moved: int, charged: IntegerGradients | None = None, **same
) -> tuple:
    """What a choice gives away, and what the noise on a pair's slopes and curvatures can at most, each as a share of
    what it is charged.
    """
    shares = BudgetSplit.of(1, gaussian=False)
    tables = InteractionTerms(charged or IntegerGradients(same["loss"], moved), interactions_of(), EPSILON, shares)
    (one, r, c), (other, r2, c2) = (found_in(last=last, moved=moved, **same) for last in (one_more, other_more))
    choice = most_told(flip_law(one, tables.choice_scale), flip_law(other, tables.choice_scale)) / float(
        EPSILON * shares.choices
    )
    moves = (np.abs(a - b).sum() + np.abs(h - h2).sum() for a, b, h, h2 in zip(r, r2, c, c2, strict=True))
    return choice, max(map(int, moves)) / tables.table_scale / float(EPSILON * shares.tables)


@pytest.mark.parametrize("loss", [tempered_logistic(0.5, 1.0), LOGISTIC], ids=lambda loss: loss.name)
@pytest.mark.parametrize("many", [1, 30])
def test_no_choice_and_no_table_gives_away_more_than_it_is_charged(loss, many: int) -> None:
    assert len(menu_of(interactions_of())) == 8  # six pairs, and two numbers by themselves
    furthest = np.zeros(2)
    for seed, size in ((0, 0.0), (1, 1.0), (2, 8.0)):
        for crowd in (PEOPLE[1], PEOPLE[4]):
            same = {"crowd": crowd, "many": many, "loss": loss, "size": size, "seed": seed}
            for left in PEOPLE:
                for right in PEOPLE:
                    furthest = np.maximum(furthest, told(left, right, 2, **same))
                furthest = np.maximum(furthest, told(left, None, 1, **same))
    assert furthest.max() <= 1 + 1e-9
    assert furthest[1] > 0.9


def test_the_attack_catches_noise_for_half_of_a_person() -> None:
    loss = tempered_logistic(0.5, 1.0)
    same = {"crowd": PEOPLE[0], "many": 30, "loss": loss}
    left, right = PEOPLE[2], PEOPLE[3]  # the label alone
    tried = [{"size": size, "seed": seed} for size in (0.0, 1.0, 8.0) for seed in range(3)]
    assert max(max(told(left, right, 2, **same, **own)) for own in tried) <= 1
    assert max(max(told(left, right, 2, IntegerGradients(loss, 1), **same, **own)) for own in tried) > 1
