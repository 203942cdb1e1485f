"""GUPT to the letter: Laplace noise without a cut, equal blocks, settings from aged rows, ranges from inputs, and a
time limit for every block.
"""

from __future__ import annotations

import itertools
import os
import time
from collections.abc import Iterator
from fractions import Fraction

import numpy as np
import polars as pl
import pytest

import privfit as pf
from privfit.mechanisms.aggregation.block_plan import (
    PERCENTILE_GRID,
    BlockAnswers,
    InputColumns,
    quartile_sensitivity,
    scores_of_counts,
)
from privfit.mechanisms.base import PublicFacts
from privfit.privacy import Budget, PrivacyParameters
from privfit.rows import PartitionedRows, Rows
from privfit.rows.partition import GridColumn
from privfit.rows.timed import answered_in_time, loadable
from privfit.tables import open_table
from tests.support.beats import assert_told_in_order
from tests.support.effort import quick_or_full
from tests.support.noise import RecordingNoise
from tests.support.replays import furthest_moved

SCHEMA = pf.Schema([pf.Numeric("age", 0, 100), pf.Category("job", ["a", "b", "c"]), pf.Numeric("pay", -10, 10)])
RNG = np.random.default_rng(5)


def people(rows: int, seed: int = 0) -> np.ndarray:
    generator = np.random.default_rng(seed)
    return np.column_stack(
        [generator.uniform(20, 60, rows), generator.choice(list("abc"), rows), generator.normal(0, 2, rows)]
    ).astype(object)


def table_of(rows: np.ndarray) -> pl.DataFrame:
    return pl.DataFrame({"age": rows[:, 0].astype(float), "job": rows[:, 1], "pay": rows[:, 2].astype(float)})


def mean_age(rows: np.ndarray) -> float:
    return rows[:, 0].mean()


def aggregate(mechanism: pf.SampleAndAggregate, **more) -> pf.Aggregate:
    return pf.Aggregate(mean_age, low=0, high=100, schema=SCHEMA, mechanism=mechanism, **more)


ANSWERS = BlockAnswers(mean_age, np.zeros(1), np.full(1, 100.0))


# -- as printed ------------------------------------------------------------------------------------


def test_as_printed_noise_is_laplace_and_means_may_leave_their_range() -> None:
    printed = pf.SampleAndAggregate(10, noise="laplace", cut=False)
    found = [
        aggregate(printed, epsilon=0.05, random_state=s).fit(table_of(people(200))).estimate_[0] for s in range(40)
    ]
    assert min(found) < 0
    assert max(found) > 100
    assert np.std(found) == pytest.approx(np.sqrt(2) * 100 / (10 * 0.05), rel=0.4)
    cut = [
        aggregate(pf.SampleAndAggregate(10), epsilon=0.05, random_state=s).fit(table_of(people(200))) for s in range(9)
    ]
    assert all(0 <= one.estimate_[0] <= 100 for one in cut)


def test_the_printed_form_is_a_private_release() -> None:
    ledger = pf.Ledger(epsilon=1.0)
    printed = pf.SampleAndAggregate(noise="laplace", cut=False, dealing="equal")
    assert aggregate(printed, epsilon=0.5, ledger=ledger).fit(table_of(people(200))).report_.private
    assert ledger.spent.epsilon == 0.5


def test_several_answers_share_epsilon_equally() -> None:
    """Laplace noise of p times the width over blocks and epsilon: epsilon / p for each."""
    model = pf.Aggregate(lambda rows: rows[:, [0, 2]].astype(float).mean(axis=0), low=[0, -10], high=[100, 10])
    model.set_params(epsilon=0.5, schema=SCHEMA, mechanism=pf.SampleAndAggregate(10, noise="laplace", cut=False))
    assert model.fit(table_of(people(100))).report_.to_dict()["noise_scale"] == pytest.approx(2 / (10 * 0.5), rel=1e-3)


def test_equal_blocks_have_the_same_size_and_follow_no_row() -> None:
    mechanism = pf.SampleAndAggregate(7, dealing="equal")
    facts = PublicFacts(SCHEMA.geometry(intercept=False), PrivacyParameters(Budget(1.0)), 100)
    plan = mechanism.plan(facts, ANSWERS)
    places = plan.places(100, RecordingNoise())
    assert places.shape == (100, 1)
    assert sorted(np.bincount(places[:, 0])) == [14] * 5 + [15] * 2
    assert not np.array_equal(places[:, 0], np.arange(100) % 7)
    assert np.array_equal(places, plan.places(100, RecordingNoise()))  # the same coins, the same blocks


def test_equal_blocks_are_refused_where_the_number_of_rows_is_private() -> None:
    ledger = pf.Ledger(epsilon=1.0)
    model = aggregate(pf.SampleAndAggregate(7, dealing="equal"), adjacency="add-remove", ledger=ledger)
    with pytest.raises(pf.PrivacyError, match="shifts others"):
        model.fit(table_of(people(100)))
    assert ledger.spent.epsilon == 0


# -- ranges from inputs ----------------------------------------------------------------------------


def of_age(low: np.ndarray, high: np.ndarray) -> tuple[float, float]:
    assert len(low) == len(high) == 3  # a column each, categories too
    return low[0], high[0]


def test_quartiles_of_inputs_become_ranges_of_answers() -> None:
    ages = np.random.default_rng(3).normal(40, 2, 20_000)
    rows = people(20_000)
    rows[:, 0] = ages
    wide = pf.Schema([pf.Numeric("age", 0, 10_000), *SCHEMA.features[1:]])
    helper = pf.SampleAndAggregate(100, ranges="inputs", translate=of_age)
    errors = {}
    for name, mechanism in {"helper": helper, "given": pf.SampleAndAggregate(100)}.items():
        model = pf.Aggregate(mean_age, low=0, high=10_000, schema=wide, mechanism=mechanism, epsilon=1.0)
        found = [model.set_params(random_state=s).fit(table_of(rows)).estimate_[0] for s in range(5)]
        errors[name] = np.median(np.abs(np.array(found) - ages.mean()))
    assert errors["helper"] < 25 < errors["given"]  # a grid point of 10,000 is 39 wide


@pytest.mark.parametrize("adjacency", ["replace-one", "add-remove"])
def test_scores_of_inputs_never_move_apart_by_more_than_is_claimed(adjacency: str) -> None:
    """Lemma 4, all tables of up to four rows on a small grid; half of the bound would be caught."""
    worst = 0
    for rows in itertools.product(range(5), repeat=3):
        others = [(*rows[1:], new) for new in range(5)] if adjacency == "replace-one" else [rows[1:]]
        for other in others:
            one, two = (np.bincount(one, minlength=5) for one in (rows, other))
            for menu, changed in zip(scores_of_counts(one, len(rows)), scores_of_counts(two, len(other)), strict=True):
                change = np.array(changed) - np.array(menu)
                worst = max(worst, int(change.max() - change.min()))
    claimed = quartile_sensitivity(1, 1) // 2  # of one menu of the two
    assert claimed / 2 < worst <= claimed


def test_counts_are_of_the_nearest_grid_points() -> None:
    data = PartitionedRows(Rows(open_table(table_of(people(50))), SCHEMA, SCHEMA.geometry(intercept=False)))
    data.read()
    (counts,) = data.counts([GridColumn(0, 0.0, 100.0, 10)])
    ages = people(50)[:, 0].astype(float)
    assert counts.tolist() == np.bincount(np.rint(ages / 10).astype(int), minlength=11).tolist()
    assert InputColumns.of(SCHEMA.geometry(intercept=False)).numbers == (0, 2)


def test_the_price_has_two_halves() -> None:
    mechanism = pf.SampleAndAggregate(10, ranges="inputs", translate=of_age, noise="laplace")
    facts = PublicFacts(SCHEMA.geometry(intercept=False), PrivacyParameters(Budget(0.5)), 100)
    parts = mechanism.plan(facts, ANSWERS).event.parts
    assert Fraction(parts[1].sensitivity) / Fraction(parts[1].scale) <= Fraction(1, 4)
    assert Fraction(parts[2].sensitivity) / Fraction(parts[2].scale) <= Fraction(1, 4)


def failing(low: np.ndarray, high: np.ndarray) -> tuple:
    raise ValueError


@pytest.mark.parametrize(
    "said",
    [failing, lambda low, high: (np.nan, 1.0), lambda low, high: (5.0, 5.0), lambda low, high: ([1, 2, 3], 1.0)],
    ids=["raises", "nan", "empty", "too many"],
)
def test_a_translation_that_fails_after_the_charge_leaves_the_ranges_given(said) -> None:
    def translate(low: np.ndarray, high: np.ndarray):
        works = (low[0], high[0]) == (0, 100)  # the public bounds: it works before the charge
        return (0.0, 100.0) if works else said(low, high)

    ledger = pf.Ledger(epsilon=1.0)
    model = aggregate(pf.SampleAndAggregate(9, ranges="inputs", translate=translate), epsilon=0.9, ledger=ledger)
    assert 0 <= model.fit(table_of(people(300))).estimate_[0] <= 100
    assert ledger.spent.epsilon == 0.9


# -- record and replay -----------------------------------------------------------------------------


def pairs_of(count: int, adjacency: str) -> Iterator[tuple]:
    for place in range(count):
        rows = people(20 + place % 7, place)
        rows[-1, 0] = (0.0, 100.0, 50.0)[place % 3]
        other = rows.copy()
        other[-1] = [100.0 - rows[-1, 0], "c", 10.0]
        yield table_of(rows), table_of(rows[:-1] if adjacency == "add-remove" else other)


@pytest.mark.parametrize(
    ("adjacency", "mechanism"),
    [
        ("replace-one", pf.SampleAndAggregate(4, noise="laplace", cut=False, dealing="equal")),
        ("add-remove", pf.SampleAndAggregate(4, noise="laplace", cut=False)),
        ("replace-one", pf.SampleAndAggregate(4, ranges="inputs", translate=of_age)),
        ("add-remove", pf.SampleAndAggregate(4, ranges="inputs", translate=of_age)),
    ],
)
@quick_or_full("many", quick=[120], full=[500])
def test_hundreds_of_pairs_of_neighbours_cannot_be_told_apart(monkeypatch, adjacency: str, mechanism, many) -> None:
    model = aggregate(mechanism, epsilon=0.8, adjacency=adjacency)

    def fit(table) -> tuple:
        model.set_params(ledger=pf.Ledger(epsilon=1.0)).fit(table)
        return model.estimate_.tolist(), model.report_.to_dict() | {"receipt": None}

    tried, furthest = furthest_moved(fit, pairs_of(many, adjacency), monkeypatch)
    assert tried == many
    share = 0.5 if mechanism.ranges == "inputs" else 1.0
    assert 0.05 < furthest <= 0.8 * share * (1 + 1e-9)


# -- aged rows -------------------------------------------------------------------------------------


def test_more_blocks_for_a_function_that_needs_few_rows() -> None:
    aged = table_of(people(4000, 1))
    mean = aggregate(pf.SampleAndAggregate(), epsilon=0.2).blocks_from(aged, 20_000)

    def largest(rows: np.ndarray) -> float:
        return rows[:, 0].max()

    most = pf.Aggregate(largest, low=0, high=100, schema=SCHEMA, epsilon=5.0).blocks_from(aged, 20_000)
    assert mean > 2000  # a mean has no bias
    assert most < mean / 4


def test_the_chosen_number_of_blocks_has_the_least_of_the_printed_sum() -> None:
    aged = table_of(people(2000, 1))
    model = pf.Aggregate(lambda rows: np.var(rows[:, 0]), low=0, high=2500, schema=SCHEMA, epsilon=1.0)
    answers = model._aged(aged, 5000)
    sums = {}
    for blocks in answers._candidates():
        found = answers._block_answers(blocks)
        off = abs(found.mean() - np.var(people(2000, 1)[:, 0].astype(float)))
        sums[blocks] = off + np.sqrt(2) * 2500 / (blocks * 1.0)
    assert model.blocks_from(aged, 5000) == min(sums, key=sums.get)


def test_the_epsilon_for_an_accuracy_keeps_it() -> None:
    aged, private = table_of(people(4000, 1)), table_of(people(4000, 2))
    model = aggregate(pf.SampleAndAggregate(100))
    epsilon = model.epsilon_for(aged, 4000, accuracy=0.95, confidence=0.9)
    truth = people(4000, 2)[:, 0].astype(float).mean()
    errors = [
        abs(model.set_params(epsilon=epsilon, random_state=seed).fit(private).estimate_[0] - truth)
        for seed in range(60)
    ]
    assert np.mean(np.array(errors) <= 0.05 * truth) >= 0.9
    assert np.quantile(errors, 0.9) > 0.01 * truth  # Chebyshev's bound, and not a wild one
    assert model.epsilon_for(aged, 4000, within=0.05 * 40, confidence=0.9) == pytest.approx(epsilon, rel=0.1)
    assert model.epsilon_for(aged, 4000, accuracy=0.97, confidence=0.9) > 1.5 * epsilon


def test_the_printed_formula_for_epsilon() -> None:
    """Chebyshev: variance of blocks over their number, and 2 (width / (blocks epsilon))^2, are delta within^2."""
    aged = table_of(people(4000, 1))
    model = aggregate(pf.SampleAndAggregate(50, noise="laplace"))
    epsilon = model.epsilon_for(aged, 4000, within=3.0, confidence=0.8)
    sampling = model._aged(aged, 4000)._block_answers(50).var(axis=0, ddof=1)[0] / 50
    assert pytest.approx(sampling + 2 * (100 / (50 * epsilon)) ** 2, rel=1e-2) == 0.2 * 3.0**2


# -- time ------------------------------------------------------------------------------------------


def test_a_late_block_counts_with_the_middle_and_takes_no_longer() -> None:
    def slow_for_the_old(rows: np.ndarray) -> float:
        if rows[:, 0].max() == 95.0:
            time.sleep(60)
        return rows[:, 0].mean()

    young, old = people(40, 1), people(40, 1)
    old[0, 0] = 95.0
    mechanism = pf.SampleAndAggregate(3, time_limit=0.4)
    model = pf.Aggregate(
        slow_for_the_old, low=0, high=100, schema=SCHEMA, mechanism=mechanism, epsilon=1e6, random_state=1
    )
    found, times = [], []
    for rows in (young, old):
        start = time.monotonic()
        found.append(model.fit(table_of(rows)).estimate_[0])
        times.append(time.monotonic() - start)
    apart = found[1] - found[0]
    assert abs(apart) > 1  # one block of three says 50 and not its mean
    assert abs(apart) < 100 / 3
    assert min(times) >= 3 * 0.4
    assert max(times) < 60


def test_who_is_early_is_waited_for_and_who_is_late_is_ended() -> None:
    rows = np.arange(6.0)[:, None]
    for function, answer in ((np.median, 2.5), (lambda rows: time.sleep(9), np.nan), (lambda rows: 1 / 0, np.nan)):
        loaded = loadable(function)
        start = time.monotonic()
        (found,) = answered_in_time(loaded, rows, 1, 0.5)
        assert 0.5 <= time.monotonic() - start < 8
        np.testing.assert_equal(found, answer)


def test_what_a_block_prints_or_leaves_running_is_no_answer(capfd) -> None:
    def noisy(rows: np.ndarray) -> float:
        print("a row", rows)
        os.system("sleep 5 &")
        return 4.0

    start = time.monotonic()
    assert answered_in_time(loadable(noisy), np.ones((2, 1)), 1, 1.5) == [4.0]
    assert time.monotonic() - start < 5
    assert "a row" not in "".join(capfd.readouterr())


def test_a_limit_that_made_up_rows_are_too_slow_for_is_refused_before_the_charge() -> None:
    ledger = pf.Ledger(epsilon=1.0)

    def slow(rows: np.ndarray) -> float:
        time.sleep(0.3)
        return 1.0

    model = pf.Aggregate(slow, low=0, high=2, schema=SCHEMA, mechanism=pf.SampleAndAggregate(3, time_limit=0.05))
    with pytest.raises(pf.PrivacyError, match="took longer"):
        model.set_params(ledger=ledger).fit(table_of(people(30)))
    assert ledger.spent.epsilon == 0


# -- refusals --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("wrong", "beats"),
    [
        ({"ranges": "inputs"}, ("ranges='inputs'", "translate=None", "Give both")),
        ({"translate": of_age}, ("ranges='given'", "translate=", "Give both")),
        ({"time_limit": 0}, ("time_limit=0", "seconds", "Leave it out")),
        ({"dealing": "fair"}, ("dealing='fair'", "one of", "Use 'independent'")),
        ({"dealing": "equal", "resampling": 2}, ("resampling=2", "equal", "Use dealing='independent'")),
    ],
)
def test_settings_that_mean_nothing_are_refused_in_three_beats(wrong: dict, beats: tuple[str, ...]) -> None:
    with pytest.raises(pf.PrivacyError) as refused:
        pf.SampleAndAggregate(**wrong).check()
    assert_told_in_order(str(refused.value), beats)


def test_ranges_of_inputs_are_for_functions_and_numbers() -> None:
    helper = pf.SampleAndAggregate(5, ranges="inputs", translate=of_age)
    with pytest.raises(pf.PrivacyError, match=r"pf\.Aggregate"):
        pf.KMeans(2, schema=pf.Schema.box(0, 1), mechanism=helper).fit(RNG.uniform(size=(50, 2)))
    bad = pf.SampleAndAggregate(5, ranges="inputs", translate=failing)
    with pytest.raises(pf.PrivacyError, match="translate failed on the bounds"):
        aggregate(bad, ledger=pf.Ledger(epsilon=1.0)).fit(table_of(people(30)))


@pytest.mark.parametrize("wrong", [{}, {"accuracy": 0.9, "within": 1.0}, {"accuracy": 2.0}, {"within": 0.0}])
def test_an_accuracy_that_means_nothing_is_refused(wrong: dict) -> None:
    with pytest.raises(pf.PrivacyError):
        aggregate(pf.SampleAndAggregate(20)).epsilon_for(table_of(people(400)), 400, **wrong)


def test_too_few_aged_rows_and_too_much_accuracy_are_refused() -> None:
    model = aggregate(pf.SampleAndAggregate(20))
    with pytest.raises(pf.PrivacyError, match="aged rows"):
        model.blocks_from(table_of(people(1)), 10_000)
    with pytest.raises(pf.PrivacyError, match="less accuracy"):
        model.epsilon_for(table_of(people(400)), 400, accuracy=0.9999, confidence=0.99)
    assert PERCENTILE_GRID == 256


def test_a_process_is_ended_once_because_its_number_may_be_anothers_later(monkeypatch) -> None:
    ended: list[int] = []
    real = os.killpg
    monkeypatch.setattr(os, "killpg", lambda group, sent: (ended.append(group), real(group, sent)))
    assert answered_in_time(loadable(np.sum), np.ones((2, 1)), 1, 1.5) == [2.0]
    assert len(ended) == 1
