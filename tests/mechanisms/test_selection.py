"""The private choice of a penalty: every row in one part only, scores exact, and no row tells candidates apart by more
than claimed.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pytest

import privfit as pf
from privfit.losses import SQUARED
from privfit.mechanisms import PenaltySelection, QuadraticProblem
from privfit.mechanisms.functional.penalty_selection import (
    CANDIDATE_STEP,
    SCORE_UNIT,
    held_out_score,
    largest_prediction,
    score_range,
    selection_epsilon,
)
from privfit.privacy import Budget, Event, PrivacyParameters, SeededNoise
from privfit.privacy.samplers.selection import KeyedBits
from privfit.rows import Rows
from privfit.solvers import Penalty
from privfit.statistics import Moments
from privfit.tables import open_table
from tests.support.noise import RecordingNoise, ReplayingNoise

SCHEMA = pf.Schema(
    [pf.Numeric("a", -1, 1), pf.Category("c", [0, 1, 2]), pf.Category("s", [0, 1]), pf.Numeric("b", 0, 4)],
    target=pf.Numeric("y", -1, 3),
)


def rows(n: int, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return np.column_stack(
        [
            rng.uniform(-1, 1, n),
            rng.integers(0, 3, n),
            rng.integers(0, 2, n),
            rng.uniform(0, 4, n),
            rng.uniform(-1, 3, n),
        ]
    ).astype(float)


@pytest.mark.parametrize("n", [1, 5, 70_000])
def test_the_two_parts_are_all_rows_once(n: int) -> None:
    geometry = SCHEMA.geometry()
    moments = Moments(geometry, target_units=1 << 17)
    table = Rows(open_table(rows(n)), SCHEMA, geometry)
    tails, heads, n_heads = table.split_sum(moments, KeyedBits(b"k"))
    np.testing.assert_array_equal(tails + heads, table.sum(moments))
    assert n_heads == KeyedBits(b"k").ones(0, n).sum()
    for batch in (7, 1000):
        again = Rows(open_table(rows(n)), SCHEMA, geometry, batch_rows=batch, threads=3).split_sum(
            moments, KeyedBits(b"k")
        )
        np.testing.assert_array_equal(again[1], heads)
        if n > 10_000:
            break


def test_scores_are_minus_the_squared_errors_but_for_a_constant() -> None:
    geometry = SCHEMA.geometry()
    moments = Moments(geometry, target_units=3 << 15)
    data = rows(500)
    held = Rows(open_table(data), SCHEMA, geometry).sum(moments)
    rng = np.random.default_rng(1)
    candidates = [[int(w) for w in rng.normal(0, 0.4 * CANDIDATE_STEP, geometry.n_columns)] for _ in range(3)]
    encoded = np.column_stack(
        [np.ones(500), data[:, 0], np.eye(3)[data[:, 1].astype(int)], 2 * data[:, 2] - 1, data[:, 3] / 2 - 1]
    )
    target = (data[:, 4] - 1) / 2
    errors = [np.sum((target - encoded @ np.array(w) / CANDIDATE_STEP) ** 2) for w in candidates]
    scores = np.array([held_out_score(moments, held, w) for w in candidates]) / SCORE_UNIT
    np.testing.assert_allclose(scores - scores[0], errors[0] - np.array(errors), atol=0.02)


@pytest.mark.parametrize("intercept", [True, False])
def test_no_row_tells_two_candidates_apart_by_more_than_claimed(intercept: bool) -> None:
    """Corners and random rows, on the integers that are compared."""
    geometry = SCHEMA.geometry(intercept=intercept)
    moments = Moments(geometry, target_units=1 << 17)
    rng = np.random.default_rng(2)
    worst = 0.0
    for _ in range(15):
        candidates = [[int(w) for w in rng.normal(0, CANDIDATE_STEP, geometry.n_columns)] for _ in range(3)]
        claimed = score_range(candidates, geometry)
        for row in [
            *rows(20, seed=3),
            *np.array(np.meshgrid([-1, 1], [0, 1, 2], [0, 1], [0, 4], [-1, 3])).reshape(5, -1).T.astype(float),
        ]:
            sums = Rows(open_table(row[None, :]), SCHEMA, geometry).sum(moments)
            scores = [held_out_score(moments, sums, w) for w in candidates]
            apart = (max(scores) - min(scores)) / SCORE_UNIT
            assert apart <= float(claimed) + 2 / SCORE_UNIT
            worst = max(worst, apart / float(claimed))
    assert worst > 0.6, "the claim should be close to what is reached"


def test_the_largest_prediction_counts_each_block_once() -> None:
    geometry = SCHEMA.geometry()
    weights = [CANDIDATE_STEP, -2 * CANDIDATE_STEP, CANDIDATE_STEP, -3 * CANDIDATE_STEP, 0, CANDIDATE_STEP, 0]
    assert largest_prediction(weights, geometry) == 1 + 2 + 3 + 1


def test_a_choice_beside_gaussian_noise_is_no_dearer_than_its_rho() -> None:
    event = Event.gaussian("test", Budget(1.0, 1e-6), sensitivity=5, adjacency="replace-one")
    epsilon = selection_epsilon(event)
    assert epsilon**2 / 2 <= Fraction(event.rho)
    assert float(epsilon**2 / 2) > 0.999 * event.rho
    assert selection_epsilon(Event.laplace("test", Budget(0.1), sensitivity=5, adjacency="replace-one")) == Fraction(
        1, 10
    )


def test_all_candidates_come_from_one_release_and_the_rows_held_out_do_not_enter_it() -> None:
    """Changing rows whose coin shows heads changes the choice at most, never the moments."""
    key = KeyedBits(b"held")

    class Noise(SeededNoise):
        def keyed_bits(self):
            return key

    data = rows(2000)
    changed = data.copy()
    heads = key.ones(0, 2000)
    changed[heads] = changed[heads][::-1] * [1, 1, 1, 1, -1]
    penalties = (Penalty(0.0), Penalty(100.0))
    mechanism = PenaltySelection(pf.FunctionalMechanism(), penalties)
    objective = QuadraticProblem(SQUARED)
    geometry = mechanism.geometry(SCHEMA, objective)
    releases = [
        mechanism.release(
            Rows(open_table(table), SCHEMA, geometry), PrivacyParameters(Budget(1.0)), None, Noise(5), objective
        )
        for table in (data, changed)
    ]
    np.testing.assert_array_equal(releases[0].value.products, releases[1].value.products)
    np.testing.assert_array_equal(releases[0].value.with_target, releases[1].value.with_target)
    assert {release.value.choice for release in releases} <= {0, 1}


# -- persons with several rows, some of which fit and some of which choose -------------------------


@dataclass(frozen=True)
class GivenBits:
    """Coins as listed, one per row."""

    shown: tuple[bool, ...]

    def ones(self, first: int, count: int) -> np.ndarray:
        return np.array(self.shown[first : first + count], dtype=bool)


def privacy_loss(
    mechanism: PenaltySelection, schema: pf.Schema, tables, coins: list[bool], terms: PrivacyParameters
) -> tuple[float, Event]:
    """What the noisy moments and the choice together can tell of two tables, in shares of the claim, whichever the
    noise was.
    """
    objective = QuadraticProblem(SQUARED)
    geometry = mechanism.geometry(schema, objective)
    first = RecordingNoise(seed=5)
    second = ReplayingNoise(first.calls)
    for noise, table in zip((first, second), tables, strict=True):
        noise._outputs = [call.output for call in first.calls]
        noise.keyed_bits = lambda: GivenBits(tuple(coins))
        release = mechanism.release(Rows(open_table(np.array(table)), schema, geometry), terms, None, noise, objective)
    (one, chosen), (other, chosen_too) = first.calls, second.calls
    assert (one.kind, one.scale, chosen.kind, chosen.scale) == (
        other.kind,
        other.scale,
        chosen_too.kind,
        chosen_too.scale,
    )
    moved = [int(move) for move in one.values - other.values]
    changes = chosen.values - chosen_too.values
    choice = (max(changes) - min(changes)) / chosen.scale
    if release.event.rho:
        return (sum(move**2 for move in moved) / (2 * one.scale**2) + choice**2 / 2) / release.event.rho, release.event
    return (sum(map(abs, moved)) / one.scale + choice) / release.event.epsilon, release.event


CORNER, OPPOSITE = (1.0, 2.0, 1.0, 4.0, 3.0), (-1.0, 0.0, 0.0, 0.0, -1.0)


@pytest.mark.parametrize("adjacency", ["replace-one", "add-remove"])
@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
@pytest.mark.parametrize("people", [1, 2, 3])
def test_however_a_person_s_rows_are_split_they_cost_no_more_than_claimed(people: int, noise, adjacency) -> None:
    base = [tuple(row) for row in rows(30, seed=4)]
    left = [*base, *[CORNER] * people]
    right = [*base, *[OPPOSITE] * people] if adjacency == "replace-one" else base
    terms = PrivacyParameters(Budget(0.7, 1e-6 if noise == "gaussian" else 0.0), adjacency, people)
    mechanism = PenaltySelection(pf.FunctionalMechanism(noise=noise), (Penalty(0.0), Penalty(5.0), Penalty(1e6)))
    reached = []
    for split in itertools.product([False, True], repeat=people):
        coins = [*(i % 4 == 0 for i in range(len(base))), *split]
        loss, event = privacy_loss(mechanism, SCHEMA, (left, right), coins, terms)
        assert (event.rho > 0) == (noise == "gaussian")
        assert loss <= 1 + 1e-12, f"{loss} of the claim with coins {split}"
        reached.append(loss)
    assert max(reached) > 0.5, "an attack this weak would prove nothing"


def test_rounding_is_paid_for_when_one_of_two_rows_chooses(monkeypatch) -> None:
    """Two weights next to each other, a row that fits at a corner and a row that chooses next to one: 1.0002 of the
    claim.
    """
    schema = pf.Schema([pf.Numeric("a", -1, 1)], target=pf.Numeric("y", -1, 1))
    given = itertools.cycle([[6, 0], [7, 0]])
    monkeypatch.setattr(PenaltySelection, "_integer_weights", lambda self, fit, geometry: next(given))
    mechanism = PenaltySelection(pf.FunctionalMechanism(noise="laplace"), (Penalty(0.0), Penalty(1.0)))
    units = mechanism.statistic(schema.geometry(), QuadraticProblem(SQUARED), "laplace").target_units
    terms = PrivacyParameters(Budget(1.0), "add-remove", rows_per_person=2)
    fits, chooses = (1.0, 1.0), (1.0, -1 + 2 / units)
    for place in range(2700, 2740):
        base = [(1.0, place / units)]
        loss, _ = privacy_loss(mechanism, schema, ([*base, fits, chooses], base), [True, False, True], terms)
        assert loss <= 1 + 1e-12
