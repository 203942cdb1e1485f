"""Filter-Priority: its law is that of noising every cell, by exact chances and against the materialised table; nothing
that is empty is listed.
"""

from __future__ import annotations

import itertools
import math
import tracemalloc
from collections import Counter
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest
from scipy.stats import binom, chisquare

import privfit as pf
from privfit.mechanisms.base import PublicFacts
from privfit.mechanisms.histograms.filtered_sample import (
    CellCounts,
    FilteredSample,
    cell_noise,
    filtered,
    priority_sample,
)
from privfit.mechanisms.histograms.noisy_histogram import CellTable, Counting
from privfit.privacy import Budget, Draws, Event, PrivacyParameters, SecureNoise, SeededNoise
from privfit.privacy.parts import RandomBits, Threshold
from privfit.privacy.samplers import threshold as passing
from privfit.privacy.samplers.threshold import below, binomial, distinct, inverted, lifted
from privfit.rows import Rows, cell_geometry
from privfit.tables import open_table
from tests.support.beats import assert_told_in_order
from tests.support.pooled import PooledNoise

FilterPriority = pf.baselines.FilterPriority
SIX = pf.Schema.box(0, 1, 1)
RARE = 1e-6


class Told(SeededNoise):
    """Answers `below` with what it is told, then as usual."""

    def __init__(self, answers) -> None:
        super().__init__(0)
        self._answers = list(answers)

    def below(self, limits):
        return np.array(
            [
                self._answers.pop(0) if self._answers else int(super(Told, self).below(np.array([limit]))[0])
                for limit in limits
            ]
        )


def mass(k: int, scale: float) -> float:
    """P(noise = k)."""
    alpha = math.exp(-1 / scale)
    return (1 - alpha) / (1 + alpha) * alpha ** abs(k)


def at_least(k: int, scale: float) -> float:
    """P(noise >= k), for whole k of any sign, by its closed form."""
    alpha = math.exp(-1 / scale)
    return alpha**k / (1 + alpha) if k >= 1 else 1 - alpha ** (1 - k) / (1 + alpha)


# -- the binomial number ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("trials", "threshold", "scale"), [(1, 1, 2.0), (7, 2, 3.0), (40, 1, 0.5), (500, 9, 2.0), (6, 1, 1e6)]
)
@pytest.mark.parametrize("share", [0.001, 0.1, 0.37, 0.5, 0.9, 0.9999])
def test_inversion_agrees_with_the_binomial_law(trials, threshold, scale, share) -> None:
    """A uniform number u is mapped to the k with F(k - 1) <= u < F(k), F the sum of chances: here from exact fractions
    of a coin's chance to 60 digits.
    """
    bits = 240
    drawn = int(share * 2**53) << (bits - 53)
    found = inverted(trials, threshold, scale, drawn, bits, passing.DIGITS)
    coin = Fraction((Decimal(-threshold) / Decimal(scale)).exp())
    u, total = Fraction(drawn, 1 << bits), Fraction(0)
    for k in range(trials + 1):
        total += math.comb(trials, k) * coin**k * (1 - coin) ** (trials - k)
        if u < total:
            break
    assert found == k


def test_a_uniform_number_too_close_to_call_is_refined() -> None:
    """The first words put u at the first sum of probabilities, to 240 bits: the next words decide."""
    trials, threshold, scale = 3, 1, 2.0
    with passing.localcontext(passing.Context(prec=300)):
        coin = (-Decimal(threshold) / Decimal(scale)).exp()
        edge = (1 - coin) ** trials
        close = int(edge * (1 << 480))
    words = [(close >> (480 - 60 * (i + 1))) & ((1 << 60) - 1) for i in range(8)]
    assert inverted(trials, threshold, scale, close >> 240, 240, passing.DIGITS) is None
    below_edge, above_edge = [*words[:4], 0, 0, 0, 0], [*words[:4], *[(1 << 60) - 1] * 4]
    assert binomial(trials, threshold, scale, Told(below_edge)) == 0
    assert binomial(trials, threshold, scale, Told(above_edge)) == 1


def test_all_and_none() -> None:
    most = (1 << 240) - 1
    assert inverted(5, 1, 2.0, most, 240, passing.DIGITS) == 5
    assert inverted(5, 1, 2.0, 0, 240, passing.DIGITS) == 0
    assert inverted(10**12, 10**6, 2.0, 0, 240, passing.DIGITS) == 0


@pytest.mark.parametrize(("trials", "threshold", "scale"), [(7, 2, 3.0), (10**12, 55, 2.0), (10**40, 90 * 7, 7.0)])
def test_binomial_numbers_have_their_law(trials, threshold, scale) -> None:
    noise, runs = SeededNoise(5), 2000
    mean = float(trials * Decimal(-threshold / scale).exp())
    assert mean < 20
    drawn = np.array([binomial(trials, threshold, scale, noise) for _ in range(runs)])
    last = int(mean + 4 * math.sqrt(mean) + 3)
    chances = np.array([_poisson_like(trials, mean, k) for k in range(last)])
    wanted = runs * np.append(chances, 1 - chances.sum())
    seen = np.append(np.bincount(drawn, minlength=last)[:last], (drawn >= last).sum())
    kept = wanted > 5
    assert (
        chisquare(np.append(seen[kept], seen[~kept].sum()), np.append(wanted[kept], wanted[~kept].sum())).pvalue > RARE
    )


def _poisson_like(trials: int, mean: float, k: int) -> float:
    if trials < 1000:
        return float(binom.pmf(k, trials, mean / trials))
    return math.exp(-mean + k * math.log(mean) - math.lgamma(k + 1))  # equal to twelve digits for so many trials


# -- which cells -----------------------------------------------------------------------------------


def test_every_choice_of_cells_is_equally_likely() -> None:
    noise = SeededNoise(2)
    for count in (2, 4):
        seen = Counter(tuple(distinct(count, 6, noise)) for _ in range(3000))
        choices = list(itertools.combinations(range(6), count))
        assert set(seen) <= set(choices)
        assert chisquare([seen[choice] for choice in choices]).pvalue > RARE
    assert distinct(6, 6, noise) == list(range(6))
    assert distinct(0, 10**30, noise) == []


@pytest.mark.parametrize("limit", [3, 10**12, 2**62, 2**62 + 1, 10**30, 7**50])
def test_numbers_below_any_limit(limit) -> None:
    drawn = below(4000, limit, SeededNoise(3))
    assert all(0 <= number < limit for number in drawn)
    thirds = Counter(3 * number // limit for number in drawn)
    assert chisquare([thirds[i] for i in range(3)]).pvalue > RARE
    low_bits = Counter(number % 3 for number in drawn)
    assert chisquare([low_bits[i] for i in range(3)]).pvalue > RARE


# -- the law of the filtered table -----------------------------------------------------------------


@pytest.mark.parametrize("threshold", [1, 2, 5])
@pytest.mark.parametrize("scale", [0.7, 2.0, 9.0])
def test_the_chance_of_every_value_is_that_of_noising_the_cell(threshold, scale) -> None:
    """By exact chances: a coin of exp(-threshold / scale) and a number k >= 0 of noise make threshold + k as likely as
    noise alone does.
    """
    for k in range(60):
        assert math.exp(-threshold / scale) * mass(k, scale) == pytest.approx(mass(threshold + k, scale), rel=1e-12)
    total = sum(math.exp(-threshold / scale) * mass(k, scale) for k in range(2000))
    assert total == pytest.approx(at_least(threshold, scale), rel=1e-9)


COUNTS = {1: 3, 4: 1}
CELLS, THRESHOLD, SCALE = 5, 2, 2.0
FILTERED = Event("test", 1.0, parts=(Threshold(size=CELLS, scale=SCALE, threshold=THRESHOLD),))


def materialised(noise) -> tuple:
    """Noise on every cell, then the threshold."""
    values = np.array([COUNTS.get(cell, 0) for cell in range(CELLS)], dtype=np.int64)
    return tuple(
        (cell, value) for cell, value in enumerate(noise.laplace(values, SCALE).tolist()) if value >= THRESHOLD
    )


def sparse(noise) -> tuple:
    draws = Draws(FILTERED, noise, paid=True)
    table = filtered(CellCounts(COUNTS, 0), THRESHOLD, draws)
    draws.finish()
    return tuple(zip(table.cells, table.weights.astype(int).tolist(), strict=True))


@pytest.mark.parametrize("make", [lambda: SeededNoise(11), PooledNoise], ids=["seeded", "secret"])
def test_filtered_tables_have_the_law_of_noising_every_cell(make) -> None:
    """Outcomes are whole tables: cells and values, values from 5 on taken together.

    Exact chances, the materialised version and ours agree.
    """
    noise = make()
    runs = 20_000 if isinstance(noise, SeededNoise) else 1_000
    most = 5

    def coarse(outcome: tuple) -> tuple:
        return tuple((cell, min(value, most)) for cell, value in outcome)

    seen = Counter(coarse(sparse(noise)) for _ in range(runs))
    values = [None, *range(THRESHOLD, most + 1)]
    exact = {}
    for one in itertools.product(values, repeat=CELLS):
        outcome = tuple((cell, value) for cell, value in enumerate(one) if value is not None)
        exact[outcome] = _coarse_chance(outcome, most)
    assert sum(exact.values()) == pytest.approx(1.0)
    assert set(seen) <= set(exact)
    _agree(seen, exact, runs)
    if isinstance(noise, SeededNoise):
        _agree(Counter(coarse(materialised(noise)) for _ in range(runs)), exact, runs)


def _coarse_chance(outcome: tuple, most: int) -> float:
    held, found = dict(outcome), 1.0
    for cell in range(CELLS):
        count = COUNTS.get(cell, 0)
        if cell not in held:
            found *= 1 - at_least(THRESHOLD - count, SCALE)
        else:
            found *= at_least(most - count, SCALE) if held[cell] == most else mass(held[cell] - count, SCALE)
    return found


def _agree(seen: Counter, exact: dict, runs: int) -> None:
    """Chi-square of whole tables, and of which cells passed."""
    for seen_too, exact_too in ((seen, exact), (_patterns(seen), _patterns(exact))):
        likely = [outcome for outcome, p in exact_too.items() if runs * p > 5]
        rest = 1 - sum(exact_too[outcome] for outcome in likely)
        counts = [seen_too[outcome] for outcome in likely]
        wanted = [runs * exact_too[outcome] for outcome in likely]
        assert len(likely) > 15
        if runs * rest > 1e-3:
            counts, wanted = [*counts, runs - sum(counts)], [*wanted, runs * rest]
        assert chisquare(counts, wanted, sum_check=False).pvalue > RARE


def _patterns(chances: dict) -> Counter:
    found: Counter = Counter()
    for outcome, chance in chances.items():
        found[tuple(cell for cell, _ in outcome)] += chance
    return found


def test_a_broken_version_is_caught() -> None:
    """Zero cells that pass one time in ten less than they should are seen by the same test."""
    noise, runs = SeededNoise(11), 20_000
    seen = Counter()
    for _ in range(runs):
        outcome = [(cell, min(value, 5)) for cell, value in sparse(noise) if cell in COUNTS or not noise.one_in(10)]
        seen[tuple(outcome)] += 1
    values = [None, *range(THRESHOLD, 6)]
    exact = {
        outcome: _coarse_chance(outcome, 5)
        for one in itertools.product(values, repeat=CELLS)
        for outcome in [tuple((cell, value) for cell, value in enumerate(one) if value is not None)]
    }
    with pytest.raises(AssertionError):
        _agree(seen, exact, runs)


@pytest.mark.parametrize(("adjacency", "moves"), [("replace-one", 2), ("add-remove", 1)])
def test_exact_chances_of_neighbours_differ_by_epsilon_at_most(adjacency, moves) -> None:
    """Enumerated: every filtered table on four cells, for all neighbours of small tables."""
    epsilon, cells, threshold = 0.8, 3, 2
    facts = PublicFacts(
        cell_geometry(pf.Schema.box(0, 1, 1), cells), PrivacyParameters(Budget(epsilon), adjacency), None
    )
    event = FilteredSample(threshold=threshold).plan(facts, Counting(cells, None)).event
    scale = event.scale
    assert (event.sensitivity, scale) == cell_noise(facts.parameters) == (moves, moves / epsilon)
    values = [None, *range(threshold, 9)]

    def law(counts) -> np.ndarray:
        chances = []
        for count in counts:
            chances.append([1 - at_least(threshold - count, scale)] + [mass(v - count, scale) for v in values[1:]])
        return np.array(
            [
                math.prod(chances[i][place] for i, place in enumerate(one))
                for one in itertools.product(range(len(values)), repeat=cells)
            ]
        )

    tables = list(itertools.product(range(3), repeat=cells))
    worst = 0.0
    for left, right in itertools.permutations(tables, 2):
        apart = sum(abs(a - b) for a, b in zip(left, right, strict=True))
        same_size = sum(left) == sum(right)
        if (apart == 2 and same_size) if adjacency == "replace-one" else apart == 1:
            worst = max(worst, float(np.max(np.log(law(left) / law(right)))))
    assert worst <= epsilon + 1e-9
    assert worst > 0.98 * epsilon


# -- priority sampling -----------------------------------------------------------------------------


def test_a_priority_sample_keeps_totals_on_average() -> None:
    table = CellTable(list(range(0, 60, 3)), np.array([50.0, 20.0, 10.0, 5.0] * 5))
    noise = SeededNoise(4)
    sums, first = [], []
    for _ in range(4000):
        sample = priority_sample(table, 6, noise)
        assert len(sample.cells) == 6
        assert sample.cells == sorted(sample.cells)
        sums.append(sample.weights.sum())
        first.append(sample.weights[sample.cells.index(0)] if 0 in sample.cells else 0.0)
    assert abs(np.mean(sums) - table.weights.sum()) < 5 * np.std(sums) / math.sqrt(len(sums))
    assert abs(np.mean(first) - 50.0) < 5 * np.std(first) / math.sqrt(len(first))


def test_the_event_is_a_threshold_and_the_random_bits_of_the_sample() -> None:
    facts = PublicFacts(cell_geometry(SIX, 6), PrivacyParameters(Budget(0.5), "replace-one", 3), 8)
    event = FilteredSample(threshold=7).plan(facts, Counting(6, 8)).event
    passed, bits = event.parts
    assert passed == Threshold(size=6, scale=12.0, threshold=7, sensitivity=6, epsilon=0.5)
    assert isinstance(bits, RandomBits)
    assert (event.n_values, event.sensitivity, event.scale) == (6, 6, 12.0)
    assert event.in_words == "discrete Laplace"
    assert Event.from_json(event.to_json()) == event


def test_a_small_table_is_published_as_it_is() -> None:
    table = CellTable([3, 9], np.array([4.0, 2.0]))
    assert priority_sample(table, 2, SeededNoise(0)) is table


# -- rules, refusals, size -------------------------------------------------------------------------


@pytest.mark.parametrize("n_cells", [100, 10**6, 10**12, 10**40])
@pytest.mark.parametrize("rows", [None, 500, 50_000])
@pytest.mark.parametrize("scale", [0.6, 2.0, 40.0])
def test_the_automatic_threshold_lets_no_more_empty_cells_pass_than_are_sampled(n_cells, rows, scale) -> None:
    threshold, size = FilteredSample().settled(n_cells, scale, rows)
    assert 1 <= size <= n_cells
    expected = [
        math.log(n_cells) + math.log(at_least(1, scale)) - (least - 1) / scale for least in (threshold, threshold - 1)
    ]
    assert expected[0] <= math.log(size) + 1e-9
    assert threshold == 1 or expected[1] > math.log(size) - 1e-9


def test_what_is_published_is_in_the_order_of_cells_and_at_least_the_threshold() -> None:
    rng = np.random.default_rng(0)
    table = FilterPriority(1.0, schema=pf.Schema.box(0, 1), cells=10, threshold=9, sample_size=200, random_state=1).fit(
        rng.uniform(0, 1, (3000, 4)) ** 4
    )
    cells = np.rint(np.column_stack(list(table.columns_.values())) * 10 - 0.5).astype(int) @ [1000, 100, 10, 1]
    assert (np.diff(cells) > 0).all()
    assert (table.weights_ >= 9).all()
    assert len(table.weights_) <= 200
    assert (table.threshold_, table.sample_size_) == (9, 200)


@pytest.mark.parametrize("columns", [12, 40])
def test_a_table_of_a_million_million_cells_and_more_takes_little_memory(columns) -> None:
    rng = np.random.default_rng(0)
    rows = np.concatenate([np.full((600, columns), 0.55), rng.uniform(0, 1, (2000, columns))])
    tracemalloc.start()
    model = FilterPriority(1.0, schema=pf.Schema.box(0, 1), cells=10, ledger=pf.Ledger(epsilon=1.0)).fit(rows)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 200e6
    assert 1000 < len(model.weights_) <= 2600
    largest = int(np.argmax(model.weights_))
    assert all(values[largest] == pytest.approx(0.55) for values in model.columns_.values())
    assert abs(model.weights_[largest] - 600) < 60
    assert model.report_.private
    assert model.report_.released_values == 10**columns


def test_both_adjacencies_and_persons_with_several_rows_charge_the_ledger() -> None:
    rows = np.random.default_rng(0).uniform(0, 1, (500, 3))
    for adjacency, people, scale in (("replace-one", 1, 4.0), ("add-remove", 1, 2.0), ("add-remove", 3, 6.0)):
        ledger = pf.Ledger(epsilon=1.0)
        model = FilterPriority(
            0.5,
            schema=pf.Schema.box(0, 1),
            adjacency=adjacency,
            rows_per_person=people,
            expected_rows=500,
            ledger=ledger,
        ).fit(rows)
        assert float(ledger.spent) == 0.5
        assert model.report_.noise_scale == scale
        assert model.to_frame().columns == ["x0", "x1", "x2", "weight"]


def test_how_many_numbers_are_drawn_for_cells_with_rows_depends_on_public_facts() -> None:
    """Under replace-one: one per row, or one per cell, however many cells the rows are in."""
    sizes = []

    class Counting_(SeededNoise):
        def laplace(self, values, scale):
            sizes.append(len(values))
            return super().laplace(values, scale)

    for table in (np.zeros((50, 2)), np.random.default_rng(0).uniform(0, 1, (50, 2))):
        schema = pf.Schema.box(0, 1, 2)
        rows = Rows(open_table(table), schema, cell_geometry(schema, 20))
        FilteredSample(threshold=1000).release(
            rows, PrivacyParameters(Budget(1.0)), None, Counting_(0), Counting(20, 50)
        )
    assert sizes == [50, 50]  # and none for empty cells, of which none pass


def test_a_threshold_that_lets_everything_pass_is_refused_and_charges_nothing() -> None:
    ledger = pf.Ledger(epsilon=1.0)
    with pytest.raises(pf.PrivacyError) as refusal:
        FilterPriority(schema=pf.Schema.box(0, 1), cells=10, threshold=1, ledger=ledger).fit(np.zeros((5, 12)))
    assert_told_in_order(
        str(refusal.value), ["threshold=1", "about 10^12.0 cells", "larger threshold", "'auto'", "Nothing was charged"]
    )
    assert float(ledger.spent) == 0.0


@pytest.mark.parametrize(
    "parameters",
    [
        {"threshold": 0},
        {"threshold": 1.5},
        {"threshold": "low"},
        {"sample_size": 0},
        {"sample_size": True},
        {"threshold": 10**12},
        {"cells": 1},
    ],
    ids=str,
)
def test_parameters_that_mean_nothing_are_refused(parameters) -> None:
    ledger = pf.Ledger(epsilon=1.0)
    with pytest.raises(pf.PrivacyError):
        FilterPriority(**{"schema": pf.Schema.box(0, 1), "ledger": ledger, "cells": 5, **parameters}).fit(
            np.zeros((5, 2))
        )
    assert float(ledger.spent) == 0.0


def test_bad_rows_charge_nothing() -> None:
    ledger = pf.Ledger(epsilon=1.0)
    with pytest.raises(pf.DataError, match="Nothing was charged"):
        FilterPriority(schema=pf.Schema.box(0, 1), cells=10, ledger=ledger).fit(np.full((5, 12), np.nan))
    assert float(ledger.spent) == 0.0


def test_a_table_in_which_nothing_passes_can_be_shown() -> None:
    model = FilterPriority(schema=pf.Schema.box(0, 1), cells=4, threshold=10_000, random_state=0).fit(np.zeros((5, 2)))
    assert model.to_frame().height == 0
    with pytest.raises(pf.PrivacyError, match="dominated by noise"):
        model.draw(5)


def test_the_secret_sampler_of_lifted_cells_has_the_right_rate() -> None:
    found = [len(lifted(10**9, 40, 2.0, noise)) for noise in [SecureNoise()] * 300]
    mean = 10**9 * at_least(40, 2.0)
    assert abs(np.mean(found) - mean) < 5 * math.sqrt(mean / len(found))


@pytest.mark.parametrize(("adjacency", "scale"), [("replace-one", 4.0), ("add-remove", 2.0)])
def test_fitted_from_end_to_end_every_cell_passes_as_often_as_if_it_were_noised(adjacency, scale) -> None:
    """Six cells with 5, 2, 1, 0, 0, 0 rows at epsilon 0.5, threshold 3: rates of passing and mean excesses, by their
    closed forms.
    """
    counts, runs = [5, 2, 1, 0, 0, 0], 3000
    rows = np.repeat((np.arange(6) + 0.5) / 6, counts)[:, None]
    passed, above = np.zeros(6), np.zeros(6)
    noise = SeededNoise(8)
    for _ in range(runs):
        release = FilteredSample(threshold=3, sample_size=6).release(
            Rows(open_table(rows), SIX, cell_geometry(SIX, 6)),
            PrivacyParameters(Budget(0.5), adjacency),
            None,
            noise,
            Counting(6, 8),
        )
        passed[release.value.cells] += 1
        above[release.value.cells] += release.value.weights - 3
    assert release.event.scale == scale
    chances = np.array([at_least(3 - count, scale) for count in counts])
    assert (np.abs(passed - runs * chances) < 5 * np.sqrt(runs * chances * (1 - chances))).all()
    empty = above[3:].sum() / passed[3:].sum()
    mean = 1 / math.expm1(1 / scale)  # of a geometric number
    assert abs(empty - mean) < 5 * math.sqrt(mean * (1 + mean) / passed[3:].sum())


def test_streams_are_counted_and_public_tables_are_stamped() -> None:
    rows = pa.table({"x0": np.linspace(0, 1, 400)})
    for make in (FilterPriority, pf.baselines.DPME):
        with pytest.raises(pf.PrivacyError, match="expected_rows"):
            make(schema=SIX, adjacency="add-remove").fit(rows.to_reader())
        of_stream, of_table = (make(schema=SIX, random_state=0).fit(form) for form in (rows.to_reader(), rows))
        np.testing.assert_array_equal(of_stream.weights_, of_table.weights_)
        model = make(schema=SIX, cells=4, ledger=pf.Ledger(epsilon=1.0)).fit(rows.to_reader())
        assert abs(model.weights_.sum() - 400) < 60
        public = make(schema="public", cells=4).fit(np.linspace(0, 7, 400)[:, None])
        assert not public.report_.private


def test_cells_with_and_without_rows_end_at_the_same_number() -> None:
    """At scales near 2^63 noise is cut; a lifted cell must not show a number that no noisy count can have."""
    found = lifted(200_000, 1 << 61, 2.0**59, SeededNoise(0))
    assert len(found) > 100
    assert max(found.values()) <= (1 << 63) - 1
    assert max(lifted(200_000, (1 << 63) - 2, 2.0**60, SeededNoise(1)).values(), default=0) <= (1 << 63) - 1


def test_grids_beyond_floats_are_published_or_refused_in_words() -> None:
    rows = np.zeros((50, 200))
    ledger = pf.Ledger(epsilon=1.0)
    model = pf.baselines.FilterPriority(
        1.0, schema=pf.Schema.box(-1, 1), cells=10, sample_size=1000, ledger=ledger
    ).fit(rows)
    assert len(model.weights_) <= 1000
    assert ledger.spent.epsilon == 1


def test_a_column_called_weight_is_refused_before_the_charge() -> None:
    ledger = pf.Ledger(epsilon=1.0)
    schema = pf.Schema([pf.Numeric("weight", 0, 200)])
    for publisher in (pf.baselines.DPME, pf.baselines.FilterPriority, pf.baselines.LaplacePublisher):
        with pytest.raises(pf.SchemaError, match="name of the weights"):
            publisher(1.0, schema=schema, ledger=ledger).fit(np.zeros((5, 1)))
    assert ledger.spent.epsilon == 0
