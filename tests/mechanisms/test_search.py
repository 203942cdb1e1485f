"""The genetic search: what a row can do to scores is bounded whatever a user's function returns, and the order of
reading, charging and drawing.
"""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Iterator
from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

import privfit as pf
from privfit.mechanisms import Breeding, GeneticMechanism, Search
from privfit.mechanisms.base import USUAL_ROWS, PublicFacts
from privfit.mechanisms.genetic.rounds import automatic_rounds, check_rounds
from privfit.mechanisms.genetic.scores import SumScorer, _unit, scorer_of
from privfit.mechanisms.genetic.search import SearchPlan
from privfit.privacy import Budget, PrivacyError, PrivacyParameters, SeededNoise
from privfit.rows import PlainRows, Rows
from privfit.schema import Schema
from privfit.statistics import RowFitness, TableFitness
from privfit.tables import DataError, open_table

pytestmark = pytest.mark.usefixtures("in_this_thread")

SCHEMA = Schema.box(0, 10).with_features(["x"])
GEOMETRY = SCHEMA.geometry(numeric="slope", intercept=False, several=True)
ADJACENCIES = ("replace-one", "add-remove")
CANDIDATES = np.array([[0.0], [1.0], [2.0]])


def rows_of(values) -> Rows:
    return Rows(open_table(np.asarray(values, dtype=np.float64)[:, None]), SCHEMA, GEOMETRY)


@cache
def plain(values: tuple[float, ...]) -> PlainRows:
    """The rows of a table, read once for all that is tried on it: nothing changes them."""
    rows = PlainRows(rows_of(values))
    rows.read()
    return rows


def scored(fitness, values, adjacency: str, by_range: bool, candidates=CANDIDATES) -> tuple[list[int], int]:
    terms = PrivacyParameters(Budget(1.0), adjacency)
    scorer = scorer_of(fitness, plain(tuple(values)), adjacency)
    scorer.prepare()
    whole, claimed = scorer(candidates, scorer.sensitivity(candidates, terms, by_range))
    return [int(score) for score in whole], claimed


def planned(mechanism: GeneticMechanism, fitness, parameters: PrivacyParameters, n_rows: int = 10) -> SearchPlan:
    return mechanism.plan(PublicFacts(GEOMETRY, parameters, n_rows), Search(fitness, np.zeros(1), np.ones(1)))


def widest_move(one: list[int], other: list[int]) -> int:
    moves = [a - b for a, b in zip(one, other, strict=True)]
    return max(moves) - min(moves)


def neighbours(adjacency: str, kinds: int) -> list[tuple[list[int], list[int]]]:
    """Tables of up to three rows, each one of a few kinds."""
    rest = list(itertools.combinations_with_replacement(range(kinds), 2))
    if adjacency == "add-remove":
        return [([*some, one], list(some)) for some in rest for one in range(kinds)]
    return [([*some, one], [*some, other]) for some in rest for one, other in itertools.combinations(range(kinds), 2)]


def scored_pairs(fitness, adjacency: str, by_range: bool) -> Iterator[tuple[tuple[list[int], int], ...]]:
    """Scores and reach of the tables of every pair of neighbours; each table is in many pairs, and scored once."""
    once = cache(lambda table: scored(fitness, table, adjacency, by_range))
    for pair in neighbours(adjacency, 4):
        yield tuple(once(tuple(table)) for table in pair)


def looked_up(scores: np.ndarray):
    """A row is the number of a line of `scores`."""
    return lambda rows, w: scores[rows[:, 0].astype(int)][:, : len(w)]


ANYTHING = st.one_of(
    st.floats(-10, 10),
    st.sampled_from([np.nan, np.inf, -np.inf, 1e308, -1e308, 1e300, -1e300, 5e-324, 0.0, 1e16, 1e16 + 2]),
)
LINES = arrays(np.float64, (4, 3), elements=ANYTHING)
STATED = [
    {"spread": 1.0},
    {"spread": 1e-300},
    {"spread": 0.0},
    {"spread": 1e300},
    {"spread": 0.1, "bounds": (-0.3, 0.3)},
    {"bounds": (-0.3, 0.4)},
    {"bounds": (0.0, 7.0)},
    {"bounds": (1e6, 1e6 + 1e-3)},
    {"bounds": lambda w: ([-1.0, 5.0, 0.0], [-0.9, 5.1, 0.1])},
    {"bounds": (-np.inf, 0.0), "spread": 2.0},
]


@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("by_range", [True, False], ids=["by range", "by change"])
@pytest.mark.parametrize("stated", STATED, ids=[f"statement {number}" for number in range(len(STATED))])
@settings(max_examples=15, deadline=None)
@given(lines=LINES)
def test_no_row_changes_a_difference_of_scores_by_more_than_the_sensitivity_whatever_a_function_returns(
    lines, stated, by_range, adjacency
) -> None:
    fitness = RowFitness(looked_up(lines), **stated)
    if not by_range and fitness.most_change(CANDIDATES, adjacency) in (None, np.inf):
        by_range = True
    for (left, reach), (right, reach_too) in scored_pairs(fitness, adjacency, by_range):
        assert reach == reach_too, "the reach depends on the rows"
        assert widest_move(left, right) <= reach
        assert max(map(abs, left)) < 2**62


@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("by_range", [True, False], ids=["by range", "by change"])
@settings(max_examples=40, deadline=None)
@given(
    lines=arrays(
        np.float64,
        (4, 3),
        elements=st.one_of(st.floats(-10, 10), st.sampled_from([1e-300, 1e200, -1e200, 1e16, 1e16 + 2])),
    )
)
def test_no_row_of_a_domain_changes_a_difference_of_scores_by_more_than_the_sensitivity(
    lines, by_range, adjacency
) -> None:
    fitness = RowFitness(looked_up(lines), domain=range(4))
    for (left, reach), (right, reach_too) in scored_pairs(fitness, adjacency, by_range):
        assert reach == reach_too
        assert widest_move(left, right) <= reach


@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_the_sensitivity_is_attained(adjacency) -> None:
    """So that a smaller one would be wrong: rows at either end, candidates at either end."""
    fitness = RowFitness(lambda rows, w: -np.abs(rows - w.T), spread=10.0)
    ends = np.array([[0.0], [10.0]])
    left, claimed = scored(fitness, [5, 5, 0], adjacency, True, ends)
    right, _ = scored(fitness, [5, 5, 10] if adjacency == "replace-one" else [5, 5], adjacency, True, ends)
    assert (
        widest_move(left, right)
        == claimed
        == (2 if adjacency == "replace-one" else 1) * round(10 * _unit(20.0 if adjacency == "replace-one" else 10.0))
    )


@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_a_table_score_that_keeps_its_word_stays_within_the_sensitivity(adjacency) -> None:
    rng, moved = np.random.default_rng(0), []
    fitness = TableFitness(lambda rows, w: -np.abs(np.sin(rows).sum() - 3 * w[:, 0]), sensitivity=2.0)
    for _ in range(50):
        one = rng.uniform(0, 10, 6)
        other = np.append(one[:-1], rng.uniform(0, 10)) if adjacency == "replace-one" else one[:-1]
        (left, claimed), (right, claimed_too) = (scored(fitness, table, adjacency, True) for table in (one, other))
        assert claimed == claimed_too
        moved.append(widest_move(left, right))
        assert moved[-1] <= claimed
    assert max(moved) > 0.3 * claimed


@pytest.mark.parametrize("number", [np.nan, np.inf, -np.inf, 1e300, -1e300])
def test_a_table_score_that_is_no_number_still_becomes_a_whole_one(number) -> None:
    fitness = TableFitness(lambda rows, w: np.array([0.0, number, 1.0]), sensitivity=1.0)
    whole, claimed = scored(fitness, [1, 2], "replace-one", True)
    assert (whole[1] > whole[2]) == (number > 1)
    assert claimed < 2**26
    assert max(map(abs, whole)) <= 2**61


def test_a_table_fitness_is_scored_by_its_sensitivity_even_where_a_range_would_do() -> None:
    """The enhanced rule falls back to the exponential one."""
    fitness = TableFitness(lambda rows, w: np.zeros(len(w)), sensitivity=3.0)
    by_range, by_change = (scored(fitness, [1], "replace-one", asked)[1] for asked in (True, False))
    assert by_range == by_change == int(6 * _unit(6.0)) + 5  # and rounding
    choices = planned(GeneticMechanism("enhanced", rounds=3), fitness, PrivacyParameters(Budget(1.0))).rounds.choices
    assert (choices.rule, choices.by_range) == ("exponential", False)


def test_the_scores_are_the_fitness_but_for_a_constant_and_the_lattice() -> None:
    values = np.random.default_rng(1).uniform(0, 10, 500)
    candidates = np.linspace(0, 10, 7)[:, None]
    wanted = -np.abs(values[:, None] - candidates.T).sum(axis=0) - candidates[:, 0]
    score, prior = (lambda rows, w: -np.abs(rows - w.T)), (lambda w: -w[:, 0])
    for fitness, unit in [
        (RowFitness(score, spread=10.0, prior=prior), _unit(20.0)),
        (RowFitness(score, bounds=(-10, 0), prior=prior), _unit(20.0)),
        (RowFitness(score, domain=np.unique(values), prior=prior), None),
        (TableFitness(lambda rows, w: score(rows, w).sum(axis=0) + prior(w), 10.0), _unit(20.0)),
    ]:
        found = np.array(scored(fitness, values, "replace-one", True, candidates)[0], dtype=float)
        gaps, wanted_gaps = found - found[0], wanted - wanted[0]
        ratio = gaps @ wanted_gaps / (wanted_gaps @ wanted_gaps)
        np.testing.assert_allclose(gaps / ratio, wanted_gaps, atol=500 * 2.0**-18)
        if unit is not None:
            assert ratio == pytest.approx(unit, rel=1e-6)


@pytest.mark.parametrize("by_range", [True, False])
def test_a_prior_that_is_no_number_makes_a_candidate_the_last_and_tells_nothing_of_the_rows(by_range) -> None:
    """A sum that wraps around would put it first or last, depending on one row."""
    for number in (np.nan, -np.inf):
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            fitness = RowFitness(
                lambda rows, w: -np.abs(rows - w.T), bounds=(-10, 0), prior=lambda w, n=number: np.array([n, 0.0, 0.0])
            )
            (left, claimed), (right, _) = (
                scored(fitness, table, "replace-one", by_range) for table in ([0, 0], [0, 5])
            )
        assert min(left) == left[0]
        assert min(right) == right[0]
        assert widest_move(left, right) <= claimed


def test_a_unit_is_a_power_of_two_that_makes_a_sensitivity_about_two_to_the_24() -> None:
    for most in (1e-300, 0.3, 1.0, 20.0, 1e300):
        assert 2**23 <= most * _unit(most) <= 2**24
        assert np.frexp(_unit(most))[0] == 0.5
    assert _unit(0.0) == 1.0
    assert 0 < _unit(5e-324) < np.inf, "the smallest number there is"


# -- rounds ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rows", "epsilon", "parents", "people", "rounds"),
    [
        (20_000, 1.0, 1, 1, 25),
        (20_000, 0.4, 1, 1, 10),
        (20_000, 1.0, 5, 1, 5),
        (20_000, 1.0, 1, 5, 5),
        (10, 1.0, 1, 1, 1),
        (10**9, 1.0, 1, 1, 10_000),
        (None, 1.0, 1, 1, 25),
        (10**6, 1e306, 1, 1, 10_000),
    ],
)
def test_rounds_follow_the_papers_rule(rows, epsilon, parents, people, rounds) -> None:
    assert USUAL_ROWS == 20_000
    assert automatic_rounds(PrivacyParameters(Budget(epsilon), rows_per_person=people), rows, parents) == rounds


@pytest.mark.parametrize("rounds", [0, -1, 2.5, True, "many", None, 10_001])
def test_rounds_that_mean_nothing_are_refused(rounds) -> None:
    with pytest.raises(PrivacyError, match="chosen without looking at the rows"):
        check_rounds(rounds)


@pytest.mark.parametrize("parents", [1, 3])
@pytest.mark.parametrize("rounds", [1, 2, 7])
def test_every_round_may_spend_as_much_and_its_parents_share_it(rounds, parents) -> None:
    fitness = RowFitness(None, spread=1.0)
    plan = planned(GeneticMechanism("auto", Breeding(parents=parents), rounds), fitness, PrivacyParameters(Budget(0.7)))
    choices = plan.rounds.choices
    assert sum(choices.each) * 10 == 7
    assert len(choices.each) == (rounds - 1) * parents + 1
    per_round = [sum(choices.each[i * parents : (i + 1) * parents]) for i in range(rounds)]
    assert len(set(per_round)) == 1
    assert f"{rounds} round" in plan.event.mechanism
    assert plan.event.n_values == len(choices.each)
    assert sum(part.epsilon for part in plan.event.parts) == pytest.approx(0.7)


def test_the_number_of_rows_decides_about_rounds_only_where_it_is_public() -> None:
    def events(adjacency: str, **terms) -> list[str]:
        found = []
        for count in (4_000, 40_000):
            search = Search(
                RowFitness(lambda rows, w: np.zeros((len(rows), len(w))), spread=1.0), np.zeros(1), np.ones(1)
            )
            mechanism = GeneticMechanism("auto", Breeding(candidates=3))
            found.append(
                mechanism.release(
                    rows_of(np.zeros(count)),
                    PrivacyParameters(Budget(1.0), adjacency, **terms),
                    None,
                    SeededNoise(0),
                    search,
                ).event.mechanism
            )
        return found

    assert events("replace-one") == ["genetic search, 5 rounds", "genetic search, 50 rounds"]
    assert events("add-remove") == ["genetic search, 25 rounds"] * 2
    assert events("add-remove", expected_rows=8_000) == ["genetic search, 10 rounds"] * 2


# -- the order of things ---------------------------------------------------------------------------


class Watched(SeededNoise):
    """Noise that writes down when it is asked, and passes for private."""

    private = True

    def __init__(self, seen: list[str]) -> None:
        super().__init__(0)
        self._seen = seen

    def below(self, limits):
        self._seen.append("draw")
        return super().below(limits)

    def select_each(self, menus, scale, rule):
        self._seen.append("choose")
        return [0] * len(menus)


@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("fitness", ["sum", "domain", "table"])
def test_rows_are_read_and_the_ledger_is_charged_once_before_anything_is_drawn(monkeypatch, adjacency, fitness) -> None:
    seen: list[str] = []
    score = lambda rows, w: seen.append("score") or -np.abs(rows - w.T)  # noqa: E731
    fits = {
        "sum": RowFitness(score, spread=10.0),
        "domain": RowFitness(score, domain=range(11)),
        "table": TableFitness(lambda rows, w: score(rows, w).sum(axis=0), 10.0),
    }
    ledger = pf.Ledger(epsilon=5.0)
    for name in ("check", "charge"):
        original = getattr(pf.Ledger, name)
        monkeypatch.setattr(
            pf.Ledger, name, lambda self, *a, _o=original, _n=name, **k: seen.append(_n) or _o(self, *a, **k)
        )
    read = PlainRows.read
    monkeypatch.setattr(PlainRows, "read", lambda self: seen.append("read") or read(self))
    mechanism = GeneticMechanism("auto", Breeding(candidates=4, parents=2), 3)
    mechanism.release(
        rows_of(range(10)),
        PrivacyParameters(Budget(1.0), adjacency),
        ledger,
        Watched(seen),
        Search(fits[fitness], np.zeros(1), np.ones(1)),
    )
    assert seen.count("charge") == 1
    assert seen.count("read") == 1
    charged = seen.index("charge")
    assert not {"draw", "choose"} & set(seen[:charged])
    assert "check" in seen[:charged]
    assert "score" in seen[:charged]
    assert seen.count("choose") == 5
    assert "read" not in seen[charged:]
    if adjacency == "add-remove":
        assert seen.index("check") < seen.index("read"), "a ledger that cannot pay is asked before rows are read"


def charged_for(
    fitness, values=range(10), low=0.0, high=10.0, start=None, epsilon=1.0, error=Exception, words=".", **options
) -> list:
    """What a ledger was charged for a search that fails with this error."""
    ledger = pf.Ledger(epsilon=5.0)
    mechanism = GeneticMechanism(options.pop("selection", "auto"), Breeding(candidates=4), 3)
    search = Search(fitness, np.array([low]), np.array([high]), start)
    with pytest.raises(error, match=words):
        mechanism.release(rows_of(values), PrivacyParameters(Budget(epsilon), **options), ledger, Watched([]), search)
    return ledger.entries()


def test_a_fitness_that_fails_is_not_charged() -> None:
    def broken(rows, w):
        raise ZeroDivisionError("no score")

    assert not charged_for(RowFitness(broken, spread=1.0), error=PrivacyError, words="ZeroDivisionError: no score")
    assert not charged_for(TableFitness(broken, 1.0), error=PrivacyError, words="ZeroDivisionError: no score")
    assert not charged_for(
        RowFitness(broken, domain=range(11)), error=PrivacyError, words="ZeroDivisionError: no score"
    )
    assert not charged_for(
        RowFitness(lambda rows, w: np.zeros(3), spread=1.0), error=ValueError, words="scores of shape"
    )
    assert not charged_for(
        RowFitness(lambda rows, w: np.zeros((len(rows), len(w)))), error=ValueError, words="State spread"
    )
    assert not charged_for(
        TableFitness(lambda rows, w: np.zeros(len(w)), -1.0), error=ValueError, words="State what one row can do"
    )


def test_the_plain_exponential_rule_refuses_a_fitness_that_states_a_spread_alone() -> None:
    assert not charged_for(
        RowFitness(lambda rows, w: -np.abs(rows - w.T), spread=10.0),
        selection="exponential",
        error=PrivacyError,
        words="needs bounds=",
    )


def test_a_domain_lists_all_rows() -> None:
    score = lambda rows, w: -np.abs(rows - w.T)  # noqa: E731
    assert not charged_for(RowFitness(score, domain=range(9)), error=DataError, words="does not list in its domain")
    assert not charged_for(RowFitness(score, domain=np.zeros((0, 1))), error=PrivacyError, words="lists all rows")
    assert not charged_for(RowFitness(score, domain=[0.0, np.nan]), error=PrivacyError, words="lists all rows")
    assert not charged_for(RowFitness(score, domain=np.zeros((1, 1, 1))), error=PrivacyError, words="lists all rows")


@pytest.mark.parametrize("number", [np.nan, np.inf, -np.inf])
def test_a_row_of_a_domain_has_a_number_for_a_score(number) -> None:
    fitness = RowFitness(lambda rows, w: np.where(rows == 3, number, -np.abs(rows - w.T)), domain=range(11))
    assert not charged_for(fitness, values=[1, 2], error=ValueError, words="no number")


@pytest.mark.parametrize("options", [{"epsilon": 1e-12}, {"rows_per_person": 10**12}], ids=str)
def test_more_noise_than_64_bits_can_hold_is_refused_before_the_charge(options) -> None:
    assert not charged_for(
        RowFitness(lambda rows, w: -np.abs(rows - w.T), spread=10.0), error=PrivacyError, words="64-bit", **options
    )


def test_a_budget_that_cannot_pay_is_refused_before_rows_are_scored() -> None:
    ledger = pf.Ledger(epsilon=0.5)
    search = Search(RowFitness(lambda rows, w: pytest.fail("rows were scored"), spread=1.0), np.zeros(1), np.ones(1))
    with pytest.raises(pf.BudgetExceeded):
        GeneticMechanism(rounds=2).release(rows_of([1]), PrivacyParameters(Budget(1.0)), ledger, Watched([]), search)


@pytest.mark.parametrize("parents", [1, 2])
def test_a_search_can_begin_with_a_single_candidate(parents) -> None:
    search = Search(
        RowFitness(lambda rows, w: -np.abs(rows - w.T), spread=10.0), np.zeros(1), np.full(1, 10.0), np.array([[3.0]])
    )
    mechanism = GeneticMechanism("auto", Breeding(candidates=6, parents=parents), 30)
    release = mechanism.release(rows_of([7.0] * 500), PrivacyParameters(Budget(50.0)), None, SeededNoise(0), search)
    assert abs(release.value[0] - 7) < 1


def test_a_start_outside_the_bounds_is_brought_inside() -> None:
    search = Search(
        RowFitness(lambda rows, w: np.zeros((len(rows), len(w))), spread=1.0),
        np.zeros(1),
        np.ones(1),
        np.array([[5.0], [7.0]]),
    )
    assert GeneticMechanism(rounds=1).release(
        rows_of([1]), PrivacyParameters(Budget(1.0)), None, SeededNoise(0), search
    ).value.tolist() == [1.0]


def test_several_parents_are_different_candidates() -> None:
    """They are taken one after the other from those that are left."""
    noise, menus = SeededNoise(0), []
    original = noise.select_each
    noise.select_each = lambda m, scale, rule: menus.append([len(menu) for menu in m]) or original(m, scale, rule)
    search = Search(RowFitness(lambda rows, w: -np.abs(rows - w.T), spread=10.0), np.zeros(1), np.full(1, 10.0))
    GeneticMechanism("auto", Breeding(candidates=6, parents=3), 3).release(
        rows_of([1, 2]), PrivacyParameters(Budget(1.0)), None, noise, search
    )
    assert menus == [[6], [5], [4], [6], [5], [4], [6]]


@pytest.mark.parametrize("kind", ["sum", "table"])
def test_numbers_that_overflow_make_no_warning_that_would_tell_of_a_row(kind) -> None:
    def wild(rows, w):
        return np.log(rows - 5.0) * np.exp(1e3 * rows) / (rows - w.T)

    fitness = (
        RowFitness(wild, spread=1.0) if kind == "sum" else TableFitness(lambda rows, w: wild(rows, w).sum(axis=0), 1.0)
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for by_range in (True, False):
            if kind == "table" or by_range:
                whole, _ = scored(fitness, [0, 1, 5, 7], "replace-one", by_range)
    assert len(whole) == 3


def test_a_row_is_scored_alone_by_the_library_itself() -> None:
    """Sums over tables are sums over their rows, to the last step: nothing is rounded over several rows."""
    values = np.random.default_rng(5).uniform(0, 10, 40)
    fitness = RowFitness(lambda rows, w: -((rows - w.T) ** 2) / 3, spread=20.0)
    scorer = SumScorer(plain(tuple(values)), fitness)
    reach = scorer.sensitivity(CANDIDATES, PrivacyParameters(Budget(1.0)), True)
    whole, _ = scorer(CANDIDATES, reach)
    alone = sum(SumScorer(plain((value,)), fitness)(CANDIDATES, reach)[0] for value in values)
    np.testing.assert_array_equal(whole, alone)
