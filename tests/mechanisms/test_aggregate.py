"""Sample and aggregate: dealing, sums and percentiles, each searched for a row that moves them more than is claimed."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations_with_replacement, permutations, product

import numpy as np
import pytest

from privfit.mechanisms import SampleAndAggregate
from privfit.mechanisms.aggregation.block_plan import (
    PERCENTILE_GRID,
    BlockAnswers,
    BlockPlan,
    quartile_scores,
    quartile_sensitivity,
)
from privfit.mechanisms.aggregation.trials import made_up_rows
from privfit.mechanisms.base import PublicFacts
from privfit.privacy import Budget, Draws, Event, PrivacyError, PrivacyParameters, SeededNoise, exact
from privfit.privacy.parts import Laplace, RandomBits, Selection
from privfit.rows import PartitionedRows, Rows
from privfit.schema import Category, Numeric, Schema
from privfit.tables import open_table
from tests.support.noise import RecordingNoise

LEVELS = ("a", "b", "c")
SCHEMA = Schema([Category("x", LEVELS)])
LOW, HIGH = np.array([-1.0, 10.0]), np.array([1.0, 30.0])


def terms(epsilon=1.0, delta=0.0, adjacency="replace-one", rows_per_person=1, expected_rows=None) -> PrivacyParameters:
    return PrivacyParameters(Budget(epsilon, delta), adjacency, rows_per_person, expected_rows)


def answers_of(size) -> BlockAnswers:
    low, high = (LOW, HIGH) if size == 2 else (np.zeros(size), np.ones(size))
    return BlockAnswers(lambda rows: low, low, high)


def planned(mechanism, size, parameters, n_rows) -> BlockPlan:
    return mechanism.plan(PublicFacts(SCHEMA.geometry(intercept=False), parameters, n_rows), answers_of(size))


def combined(plan, found, source) -> np.ndarray:
    """The noisy means of these answers, once the event is paid and rows have their blocks."""
    draws = Draws(plan.event, source, paid=True)
    if isinstance(plan.event.parts[0], RandomBits):
        draws.random_integers()
    return plan.combined(found, draws)


# -- dealing ---------------------------------------------------------------------------------------


class Told:
    """A source of coins that shows what it is told to."""

    def __init__(self, draws) -> None:
        self.draws = np.array(draws, dtype=np.int64)

    def below(self, limits):
        assert (self.draws < limits).all()
        return self.draws.copy()

    def geometric(self, size, scale):
        raise AssertionError


def plan_of(blocks, copies=1, moved=1, unit=1 << 16) -> BlockPlan:
    event = Event("any", 1.0, parts=(Laplace(size=2, scale=1.0),))
    facts = PublicFacts(SCHEMA.geometry(intercept=False), terms(), None)
    return BlockPlan(event, facts, answers_of(2), blocks, copies, moved, unit)


@pytest.mark.parametrize(("blocks", "copies"), [(3, 1), (4, 2), (4, 3), (4, 4), (5, 3)])
def test_every_way_to_be_in_different_blocks_is_as_likely(blocks, copies) -> None:
    ways = list(product(*(range(blocks - place) for place in range(copies))))
    found = plan_of(blocks, copies).places(len(ways), Told(np.ravel(ways)))
    assert sorted(map(tuple, found.tolist())) == sorted(permutations(range(blocks), copies))


def test_many_rows_are_dealt_a_part_at_a_time(monkeypatch) -> None:
    monkeypatch.setattr("privfit.mechanisms.aggregation.block_plan.ASSIGNED_AT_ONCE", 10)
    places = plan_of(4, 2).places(35, SeededNoise(0))
    assert places.shape == (35, 2)
    assert (places[:, 0] != places[:, 1]).all()
    assert set(places.ravel()) == {0, 1, 2, 3}


# -- sums ------------------------------------------------------------------------------------------


def spiteful(rows):
    """Whatever moves most: ends of the range and beyond, middles, failures, by a block's content and its order."""
    key = tuple(rows[:, 0].astype(int))
    if key == (0,):
        return [-1.0, 10.0]
    if key == (1,):
        return [1e300, np.inf]
    if key == (2,):
        raise ValueError
    return [[-np.inf, -5.0], [0.3, 29.0], [np.nan, 1.0], [2.0, 12.0]][sum(3**i * k for i, k in enumerate(key)) % 4]


def first_is_a(rows):
    return LOW if rows[0, 0] == 0 else HIGH


def any_is_a(rows):
    return LOW if (rows[:, 0] == 0).any() else HIGH


def sums_of(table, places, blocks, unit, function) -> np.ndarray:
    """The integers that noise is put on."""
    noise = RecordingNoise()
    plan = plan_of(blocks, places.shape[1], unit=unit)
    answers = np.full((blocks, 2), np.nan)
    if table:  # an empty table is refused long before
        rows = PartitionedRows(
            Rows(
                open_table(np.array(table, dtype=object)[:, None]), SCHEMA, SCHEMA.geometry(intercept=False), threads=1
            )
        )
        rows.read()
        answers = rows.answers(places, blocks, function, 2)
    combined(plan, answers, noise)
    return noise.calls[0].values


@pytest.mark.parametrize(("blocks", "copies", "people"), [(2, 1, 1), (3, 1, 1), (3, 2, 1), (3, 1, 2), (2, 2, 2)])
@pytest.mark.parametrize("adjacency", ["replace-one", "add-remove"])
def test_no_person_moves_a_sum_by_more_than_is_claimed(blocks, copies, people, adjacency) -> None:
    unit, n = 1 << 16, 2 + people
    plan = planned(
        SampleAndAggregate(blocks, resampling=copies), 2, terms(adjacency=adjacency, rows_per_person=people), n
    )
    assert plan.moved == min(blocks, copies * people)
    sets = [list(way) for way in permutations(range(blocks), copies)]
    dealings = [np.array(way) for way in product(sets, repeat=n)][:: 1 if len(sets) ** n < 20 else 7]
    tables, worst = [("a", "b", "c", "c")[:n], ("c", "c", "a", "b")[:n], ("a", "a", "c", "c")[:n]], 0
    for places, table, function in product(dealings, tables, (spiteful, first_is_a, any_is_a)):
        before = sums_of(table, places, blocks, unit, function)
        if adjacency == "replace-one":
            neighbours = [((*others, *table[people:]), places) for others in product(LEVELS, repeat=people)]
        else:  # rows at the front go: all others change their place in the table, and keep their coins
            neighbours = [(table[mine:], places[mine:]) for mine in range(1, people + 1)]
        for other, own in neighbours:
            worst = max(worst, int(np.abs(sums_of(other, own, blocks, unit, function) - before).max()))
    assert worst == plan.moved * unit


def test_equal_parts_would_not_be_private_under_add_remove() -> None:
    """As the paper deals rows: one that goes shifts others, and more answers change than are paid for."""
    table, halves, fewer = ("b", "a", "b", "a"), np.array([[0], [0], [1], [1]]), np.array([[0], [0], [1]])
    change = sums_of(table[1:], fewer, 2, 1 << 16, first_is_a) - sums_of(table, halves, 2, 1 << 16, first_is_a)
    assert np.abs(change).max() == 2 << 16


BAGS = [(0,), (1,), (0, 0), (0, 1), (1, 1), (0, 0, 0), (0, 0, 1), (0, 1, 1), (1, 1, 1)]
"""What a block of up to three rows with two levels can hold."""


def output_law(dealings, table, says) -> np.ndarray:
    """The exact law, up to a factor, of one noisy sum over two blocks at epsilon 1, all ways to deal being as likely;
    an empty block says a half.
    """
    reached = np.arange(-3.0, 5.0, 0.5)
    laws = []
    for places in dealings:
        bags = [
            tuple(sorted(row for row, place in zip(table, places, strict=True) if place == block)) for block in range(2)
        ]
        laws.append(np.exp(-np.abs(reached - sum(says.get(bag, 0.5) for bag in bags))))
    return np.mean(laws, axis=0)


def loss_of(one, other) -> float:
    return float(np.abs(np.log(one / other)).max())


def by_coins(n):
    return list(product(range(2), repeat=n))


def in_equal_parts(n):
    """As the paper deals rows."""
    return [places for places in by_coins(n) if sum(places) in (n // 2, (n + 1) // 2)]


def test_the_exact_law_keeps_its_promise_and_that_of_equal_parts_does_not() -> None:
    ours, theirs = 0.0, 0.0
    for values in product((0, 1), repeat=len(BAGS)):  # every function of what is in a block
        says = dict(zip(BAGS, values, strict=True))
        for table in [(0, 0, 1), (0, 1, 1), (0, 0, 0)]:
            own = output_law(by_coins(3), table, says)
            neighbours = [(table[1:], 2), (table[:2], 2), ((1, *table[1:]), 3), ((*table[:2], 0), 3)]
            ours = max(ours, *(loss_of(own, output_law(by_coins(n), other, says)) for other, n in neighbours))
            unlike = output_law(in_equal_parts(3), table, says)
            theirs = max(
                theirs, *(loss_of(unlike, output_law(in_equal_parts(n), other, says)) for other, n in neighbours[:2])
            )
    assert 0.8 < ours <= 1 + 1e-12
    assert theirs > 1.45


# -- percentiles -----------------------------------------------------------------------------------


@pytest.mark.parametrize("blocks", [1, 2, 3, 4, 5])
@pytest.mark.parametrize("moved", [1, 2])
def test_percentile_scores_never_move_apart_by_more_than_is_claimed(blocks, moved) -> None:
    points = (0, 1, 100, 101, PERCENTILE_GRID)
    moved = min(moved, blocks)
    worst = 0
    for shared in combinations_with_replacement(points, blocks - moved):
        menus = [
            np.array(quartile_scores(np.array([*shared, *own]), blocks))
            for own in combinations_with_replacement(points, moved)
        ]
        for one in menus:
            for other in menus:
                change = other - one
                worst = max(worst, int((change.max(axis=1) - change.min(axis=1)).max()))
    claimed = quartile_sensitivity(moved, 1) // 2
    assert worst <= claimed
    assert worst == claimed or blocks < 4 * moved


def test_percentiles_are_best_where_they_are() -> None:
    near = np.arange(100)
    first, third = (np.array(scores) for scores in quartile_scores(near, 100))
    assert np.flatnonzero(first == first.max()).tolist() == [24, 25]
    assert np.flatnonzero(third == third.max()).tolist() == [74, 75]
    assert first[0] == -(100 - 4)
    assert first[PERCENTILE_GRID] == -(400 - 100)


def test_percentiles_and_noise_share_epsilon() -> None:
    for people, copies in ((1, 1), (3, 2)):
        mechanism = SampleAndAggregate(50, "percentiles", resampling=copies)
        plan = planned(mechanism, 4, terms(0.7, rows_per_person=people), 1000)
        ranges = next(part for part in plan.event.parts if isinstance(part, Selection))
        price = Fraction(ranges.sensitivity) / Fraction(ranges.scale)
        price += Fraction(plan.event.sensitivity) / Fraction(plan.event.scale)
        assert price <= exact(0.7)
        assert price > exact(0.7) * (1 - Fraction(1, 10**9))
        assert ranges.sensitivity == quartile_sensitivity(people * copies, 4) == 8 * people * copies * 8
        assert plan.event.epsilon == 0.7


def test_with_much_epsilon_percentiles_cut_and_the_rest_is_averaged() -> None:
    answers = np.column_stack([np.linspace(-0.5, 0.5, 101), np.full(101, 17.0)])
    answers[0], answers[1] = np.nan, [50.0, -50.0]
    plan = planned(SampleAndAggregate(101, "percentiles"), 2, terms(1e6), 1000)
    found = combined(plan, answers, SeededNoise(0))
    answers[0], answers[1] = (LOW + HIGH) / 2, [1.0, 10.0]
    wanted = [np.clip(column, *np.quantile(column, [0.25, 0.75])).mean() for column in answers.T]
    assert np.allclose(found, wanted, atol=2 * (HIGH - LOW) / PERCENTILE_GRID)


@pytest.mark.parametrize("where", [10.0, 30.0, 21.7])
def test_answers_that_agree_leave_a_range_of_one_point(where) -> None:
    plan = planned(SampleAndAggregate(60, "percentiles"), 2, terms(1e6), 1000)
    found = combined(plan, np.tile([[0.0, where]], (60, 1)), SeededNoise(1))
    assert np.allclose(found, [0.0, where], atol=1.01 * 20 / PERCENTILE_GRID)


# -- the plan --------------------------------------------------------------------------------------


def test_the_mean_of_all_answers_is_what_much_epsilon_gives() -> None:
    answers = np.random.default_rng(0).uniform([-2.0, 0.0], [2.0, 40.0], (500, 2))
    found = combined(planned(SampleAndAggregate(500), 2, terms(1e6), 10), answers, SeededNoise(0))
    assert np.allclose(found, np.clip(answers, LOW, HIGH).mean(axis=0), atol=1e-4)


def test_drowned_means_stay_in_their_range() -> None:
    for seed in range(20):
        found = combined(planned(SampleAndAggregate(3), 2, terms(1e-3), 10), np.zeros((3, 2)), SeededNoise(seed))
        assert (found >= LOW).all()
        assert (found <= HIGH).all()


@pytest.mark.parametrize("rows", [1, 2, 100, 48_842, 10**6])
def test_the_number_of_blocks_is_the_papers(rows) -> None:
    assert planned(SampleAndAggregate(), 1, terms(), rows).blocks == max(1, round(rows**0.4))
    assert planned(SampleAndAggregate(resampling=3), 1, terms(), rows).blocks == 3 * max(1, round(rows**0.4))
    hidden = terms(adjacency="add-remove", expected_rows=rows)
    assert planned(SampleAndAggregate(), 1, hidden, rows).blocks == max(1, round(rows**0.4))


@pytest.mark.parametrize("size", [1, 2, 5, 124])
@pytest.mark.parametrize("people", [1, 4])
def test_noise_is_the_least_that_covers_what_a_person_moves(size, people) -> None:
    told = terms(0.3, rows_per_person=people)
    plan = planned(SampleAndAggregate(70), size, told, None)
    sds = {
        kind: planned(SampleAndAggregate(70, noise=kind), size, told, None).event.noise_sd
        for kind in ("laplace", "linf")
    }
    assert plan.event.kinds == (("laplace",) if size == 1 else ("k-norm-linf",))
    assert plan.event.noise_sd == min(sds.values())
    norm = size if plan.event.kinds == ("laplace",) else 1
    assert plan.event.sensitivity == norm * people * plan.unit
    assert Fraction(plan.event.sensitivity) <= Fraction(plan.event.scale) * exact(0.3)
    assert plan.event.rows_per_person == people


def test_gaussian_noise_is_taken_where_it_is_less() -> None:
    plan = planned(SampleAndAggregate(70), 124, terms(1.0, 1e-6), None)
    assert plan.event.kinds == ("discrete-gaussian",)
    assert plan.event.sensitivity >= np.sqrt(124) * plan.unit
    assert plan.event.sensitivity <= np.sqrt(124) * plan.unit + 1
    assert (
        plan.event.noise_sd < planned(SampleAndAggregate(70, noise="linf"), 124, terms(1.0, 1e-6), None).event.noise_sd
    )
    assert planned(SampleAndAggregate(70), 1, terms(1.0, 1e-6), None).event.kinds == ("laplace",)
    assert planned(SampleAndAggregate(70, "percentiles"), 124, terms(1.0, 1e-6), None).event.delta == 0
    with pytest.raises(PrivacyError, match="delta"):
        planned(SampleAndAggregate(70, noise="gaussian"), 2, terms(), None)


def test_a_person_with_more_rows_than_blocks_moves_every_block_once() -> None:
    assert planned(SampleAndAggregate(5), 1, terms(rows_per_person=100), None).moved == 5


@pytest.mark.parametrize(
    "settings",
    [
        {"blocks": 0},
        {"blocks": True},
        {"blocks": 2.5},
        {"blocks": "many"},
        {"resampling": 0},
        {"resampling": 3, "blocks": 2},
        {"ranges": "loose"},
        {"noise": "l2"},
        {"noise": "gaussian", "ranges": "percentiles"},
        {"largest_weight": 0},
        {"largest_weight": np.inf},
        {"ridge": "auto"},
    ],
)
def test_settings_that_mean_nothing_are_refused(settings) -> None:
    with pytest.raises(PrivacyError, match=next(iter(settings))):
        SampleAndAggregate(**settings).check()


def test_made_up_rows_are_as_the_schema_says() -> None:
    schema = Schema(
        [Numeric("far", -8e307, 8e307), Category("c", LEVELS), Category("two", ["x", "y"])], target=Numeric("t", 5, 6)
    )
    rows = made_up_rows(schema.geometry(intercept=False), 500)
    assert rows.shape == (500, 4)
    assert np.isfinite(rows).all()
    assert set(rows[:, 1]) == {0, 1, 2}
    assert set(rows[:, 2]) == {0, 1}
    assert (rows[:, 3] >= 5).all()
    assert (rows[:, 3] <= 6).all()
