"""Counts of events and censored times: how far neighbours move them, and the curves that follow."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import privfit as pf
from privfit.mechanisms import SurvivalCounts
from privfit.mechanisms.base import PublicFacts
from privfit.mechanisms.summaries.survival import survival_grid
from privfit.mechanisms.summaries.survival_bands import SurvivalRelease, crossing, on_simplex
from privfit.privacy import Budget, PrivacyParameters
from privfit.rows import Rows
from privfit.schema import Schema
from privfit.solvers.life_table import LifeTable, falling
from privfit.tables import open_table
from tests.support.noise import RecordingNoise

ADJACENCIES = ("replace-one", "add-remove")
COLUMNS = (
    survival_grid(pf.Numeric("time", 0, 2, bins=2)),
    pf.Category("event", [0, 1]),
    pf.Category("group", [0, 1]),
)
ROWS = tuple(itertools.product((-1.0, 0.5, 1.0, 2.0, 9.0), (0.0, 1.0), (0.0, 1.0)))
"""Times below the grid, inside, on an edge, on its end and beyond."""


def noised(rows: tuple[tuple[float, ...], ...], adjacency: str, people: int) -> tuple[np.ndarray, float]:
    """The counts that noise is added to, and its scale."""
    mechanism, source = SurvivalCounts(), RecordingNoise(0)
    schema = Schema(COLUMNS)
    parameters = PrivacyParameters(Budget(1.0), adjacency, people)  # type: ignore[arg-type]
    own = Rows(open_table(np.array(rows)), schema, mechanism.geometry(schema, None))
    mechanism.release(own, parameters, None, source, None)
    (call,) = source.calls
    return np.asarray(call.values), float(call.scale)


def counted(rows: tuple[tuple[float, ...], ...]) -> np.ndarray:
    return noised(rows, "replace-one", 1)[0]


EACH = {row: counted((row,)) for row in ROWS}
"""What every single row counts: counts are sums over rows, as a test says."""


def test_counts_are_sums_of_what_rows_count() -> None:
    generator = np.random.default_rng(0)
    for _ in range(20):
        chosen = tuple(ROWS[place] for place in generator.integers(0, len(ROWS), 7))
        np.testing.assert_array_equal(counted(chosen), sum(EACH[row] for row in chosen))


@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("people", [1, 2])
def test_no_neighbours_move_the_counts_by_more_than_the_noise_is_for(adjacency: str, people: int) -> None:
    _, scale = noised(ROWS[:4], adjacency, people)
    worst = 0
    for leave in itertools.combinations_with_replacement(ROWS, people):
        gone = sum(EACH[row] for row in leave)
        enters = itertools.combinations_with_replacement(ROWS, people) if adjacency == "replace-one" else [()]
        worst = max(worst, *(int(np.abs(gone - sum(EACH[row] for row in enter)).sum()) for enter in enters))
    assert worst == scale  # at epsilon 1; a smaller scale would be caught


def test_what_happens_after_the_grid_is_not_counted_apart() -> None:
    np.testing.assert_array_equal(EACH[9.0, 0.0, 1.0], EACH[2.0, 1.0, 1.0])
    assert all(one.sum() == 1 for one in EACH.values())
    assert len({tuple(one) for one in EACH.values()}) == 2 * 5


def test_noise_has_one_value_for_each_count_and_the_price_is_the_whole_epsilon() -> None:
    schema = Schema(COLUMNS)
    geometry = SurvivalCounts().geometry(schema, None)
    plan = SurvivalCounts().plan(PublicFacts(geometry, PrivacyParameters(Budget(0.3)), 10), None)
    (part,) = plan.event.parts
    assert (plan.event.epsilon, plan.event.n_values) == (0.3, 10)
    assert part.scale == pytest.approx(2 / 0.3)


def test_a_grid_with_too_many_counts_is_refused() -> None:
    schema = Schema([survival_grid(pf.Numeric("time", 0, 2, bins=11_000)), COLUMNS[1]])
    facts = PublicFacts(SurvivalCounts().geometry(schema, None), PrivacyParameters(Budget(1.0)), 10)
    with pytest.raises(pf.SchemaError, match="fewer bins"):
        SurvivalCounts().plan(facts, None)


# -- curves ----------------------------------------------------------------------------------------


def kaplan_meier_by_hand(times: np.ndarray, events: np.ndarray, at: float) -> float:
    """The product over every single event."""
    left = 1.0
    for time in np.unique(times[events & (times < at)]):
        left *= 1 - np.sum(events & (times == time)) / np.sum(times >= time)
    return left


def test_without_noise_the_curve_is_that_of_kaplan_and_meier_up_to_the_bins() -> None:
    generator = np.random.default_rng(0)
    lives, watched = generator.exponential(2.0, 5_000), generator.uniform(0, 6, 5_000)
    times, events = np.minimum(lives, watched), lives <= watched
    table = np.column_stack([times, events])
    curves = pf.kaplan_meier(table, pf.Numeric("t", 0, 4), "event", epsilon=1e6, random_state=0)
    by_hand = [kaplan_meier_by_hand(times, events, at) for at in curves.times]
    assert np.abs(np.asarray(curves.survival) - by_hand).max() < 1e-3


def test_without_censoring_the_life_table_counts_survivors() -> None:
    table = LifeTable.of_cells(np.array([5.0, 3.0, 0.0, 0.0, 2.0]), 2)
    assert table.at_risk.tolist() == [[10.0, 5.0]]
    assert table.survival(1.0)[0].tolist() == pytest.approx([0.5, 0.2])


def test_at_risk_numbers_are_the_best_mean_of_both_sums() -> None:
    """Weighed by one over the variances of the noise, from the beginning and from the end."""
    noisy, rows = np.array([4.0, 7.0, 1.0, 5.0, 9.0]), 30
    found = SurvivalRelease(noisy, 2.0, 2).table(rows).at_risk
    later = noisy[1] + noisy[3] + noisy[4]
    earlier = rows - noisy[0] - noisy[2]
    assert found[0].tolist() == pytest.approx([rows, (2 * later + 3 * earlier) / 5])


def test_curves_fall_and_stay_between_0_and_1() -> None:
    found = falling(np.array([[1.1, 0.8, 0.9, -0.2, 0.1]]))
    assert (np.diff(found) <= 0).all()
    assert found.min() >= 0
    assert found.max() <= 1


def test_the_projection_is_the_nearest_point_that_adds_up() -> None:
    assert on_simplex(np.array([5.0, -3.0, 2.0, 0.0]), 6.0).tolist() == pytest.approx([4.5, 0.0, 1.5, 0.0])


def test_a_curve_crosses_a_share_between_two_times() -> None:
    assert crossing(np.array([0.0, 1.0, 2.0]), np.array([1.0, 0.75, 0.25]), 0.5) == pytest.approx(1.5)
    assert crossing(np.array([0.0, 1.0]), np.array([1.0, 0.75]), 0.5) == np.inf


def covered(rows: int, epsilon: float, groups: int, runs: int) -> tuple[float, float]:
    """How often intervals and bands hold the curve that rows are drawn from."""
    generator, bins = np.random.default_rng(3), 10
    ends = np.arange(1, bins + 1) * 0.3
    truth, scale = np.exp(-((ends / 2) ** 1.3)), 2 / epsilon
    held: list[Any] = []
    for _ in range(runs):
        lives, watched = 2 * generator.exponential(size=rows) ** (1 / 1.3), generator.uniform(0, 5, rows)
        places = np.minimum((np.minimum(lives, watched) / 0.3).astype(int), bins)
        counts = np.zeros((bins + 1, 2, groups), dtype=np.int64)
        np.add.at(counts, (places, (lives <= watched).astype(int), generator.integers(0, groups, rows)), 1)
        lines = np.concatenate([counts[:-1, 1], counts[:-1, 0], counts[-1:].sum(axis=1)]).T.ravel()
        noisy = lines + np.rint(generator.laplace(0, scale, lines.size))
        found = SurvivalRelease(noisy, scale, bins).curves(rows)
        low, high = found.band
        own = (found.survival.low <= truth) & (truth <= found.survival.high)
        held.append((own.mean(), ((low <= truth) & (truth <= high)).all(axis=-1).mean()))
    return tuple(np.mean(held, axis=0))  # type: ignore[return-value]


@pytest.mark.parametrize(("rows", "epsilon", "groups"), [(5_000, 0.1, 1), (5_000, 1.0, 3), (500, 0.5, 1)])
def test_intervals_and_bands_hold_about_nine_times_out_of_ten(rows: int, epsilon: float, groups: int) -> None:
    pointwise, simultaneous = covered(rows, epsilon, groups, 60)
    assert 0.8 < pointwise < 0.98
    assert 0.75 < simultaneous < 0.99


def test_a_curve_ends_where_nobody_is_clearly_at_risk() -> None:
    noisy = np.array([90.0, 5.0, 1.0, 2.0, 0.0])
    found = SurvivalRelease(noisy, 20.0, 2).curves(100)
    assert np.isnan(found.survival.value[0, 1])
    assert (found.survival.low[0, 1], found.band[0][0, 1]) == (0.0, 0.0)
    assert found.survival.high[0, 1] <= found.survival.high[0, 0]


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("n_rows", [None, 1])
@pytest.mark.parametrize("size", [1e15, 4e18])
def test_curves_follow_whatever_the_noise_was(size: float, n_rows: int | None) -> None:
    rng = np.random.default_rng(0)
    for _ in range(20):
        noisy = np.rint(rng.laplace(0, size / 8, 2 * 41))
        found = SurvivalRelease(noisy, size / 8, 20).curves(n_rows)
        assert np.all(found.survival.low <= found.survival.high)
