"""PrivGene as it is printed: what one row can do to scores of weight vectors, the paper's own constants, its first
candidates and its mutations.
"""

from __future__ import annotations

import itertools
import tracemalloc
from functools import cache

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privfit.losses import LOGISTIC, hinge, smooth_hinge
from privfit.losses.margins import GRAIN, MarginLoss
from privfit.mechanisms import Breeding, ERMProblem, PrivGene
from privfit.mechanisms.base import PublicFacts
from privfit.mechanisms.genetic.weights import (
    FARTHEST,
    HINGE_WEIGHT,
    PrintedFactor,
    WeightScorer,
    first_candidates,
    largest_score,
    on_lattice,
    widest_apart,
)
from privfit.privacy import Budget, PrivacyParameters, SeededNoise
from privfit.rows import CachedDesign, Rows, losses_of
from privfit.schema import Category, Geometry, Numeric, Schema
from privfit.tables import open_table
from tests.privacy.laws import LAWS, most_told
from tests.support.genetic import released_often

TARGET = Category("y", ["a", "b"])
SLOPES = Schema([Numeric("u", -1, 1), Numeric("v", -1, 1), Category("c", ["p", "q", "r"])], TARGET)
LINE = Schema([Numeric("u", -1, 1), Numeric("v", -1, 1)], TARGET)
LOSSES = {"logistic": LOGISTIC, "huber": smooth_hinge(0.5), "hinge": hinge()}
ADJACENCIES = ("replace-one", "add-remove")
ENDS = {"u": [-1.0, -0.5, 0.0, 0.25, 1.0], "v": [-1.0, 0.5, 1.0], "c": ["p", "q", "r"]}


def geometry_of(schema: Schema, numeric: str = "slope") -> Geometry:
    return PrivGene(moves="genes").geometry(schema, ERMProblem(LOGISTIC), numeric)


def loss_of(name: str, geometry: Geometry) -> MarginLoss:
    return MarginLoss(LOSSES[name], int(FARTHEST * GRAIN) * (geometry.n_blocks + 1) + 1)


def rows_of(rows: list[tuple], schema: Schema, geometry: Geometry) -> Rows:
    names = [*(column.name for column in schema.features), "y"]
    return Rows(open_table(pl.DataFrame(rows, schema=names, orient="row")), schema, geometry)


@cache
def kept_of(rows: tuple[tuple, ...], schema: Schema, geometry: Geometry) -> CachedDesign:
    """The rows of a table, read once for all that is asked of them: nothing changes them."""
    return CachedDesign(rows_of(list(rows), schema, geometry))


def scorer(
    rows: list[tuple], schema: Schema, name: str, printed: bool = False, breeding: Breeding | None = None
) -> WeightScorer:
    geometry = geometry_of(schema)
    kept = kept_of(tuple(rows), schema, geometry)
    factor = PrintedFactor(name != "logistic", breeding or Breeding()) if printed else None
    return WeightScorer(kept, loss_of(name, geometry), geometry, None if name == "logistic" else HINGE_WEIGHT, factor)


def domain(schema: Schema) -> list[tuple]:
    return list(itertools.product(*(ENDS[column.name] for column in schema.features), ["a", "b"]))


def told(scores: np.ndarray, adjacency: str) -> int:
    """The most by which a row changes a difference of two scores: scores are (rows, candidates) without the prior."""
    apart = scores[:, :, None] - scores[:, None, :]
    most = apart.max(axis=0)
    return int((most + most.T).max()) if adjacency == "replace-one" else int(np.abs(apart).max())


def scores_of_rows(schema: Schema, name: str, candidates: np.ndarray, rows: list[tuple] | None = None) -> np.ndarray:
    """Minus the loss of every possible row, one line each; what is known without rows taken out."""
    found = []
    for row in rows or domain(schema):
        scores = scorer([row], schema, name)
        found.append(scores(candidates, scores.sensitivity(candidates, PrivacyParameters(Budget(1.0)), True))[0])
    return np.array(found) + prior(name, candidates)


def prior(name: str, candidates: np.ndarray) -> np.ndarray:
    if name == "logistic":
        return np.zeros(len(candidates), dtype=np.int64)
    whole = np.rint(candidates * GRAIN) / GRAIN
    return np.rint(0.5 * np.sum(whole[:, 1:] ** 2, axis=1) / HINGE_WEIGHT * GRAIN * (1 << 15)).astype(np.int64)


CROWDS = {
    "anywhere": lambda rng, width: rng.uniform(-5, 5, (6, width)),
    "near zero": lambda rng, width: rng.uniform(-0.1, 0.1, (6, width)),
    "corners": lambda rng, width: rng.choice([-5.0, 5.0], (6, width)),
    "of one parent": lambda rng, width: Breeding(12).offspring(
        rng.uniform(-4, 4, (1, width)),
        np.full(width, -5.0),
        np.full(width, 5.0),
        int(rng.integers(60)),
        SeededNoise(int(rng.integers(99))),
    ),
    "a lattice step apart": lambda rng, width: rng.uniform(4, 5, width) + rng.integers(-1, 2, (6, width)) / GRAIN,
}


# -- what a row can do -----------------------------------------------------------------------------


@pytest.mark.parametrize("crowd", CROWDS)
@pytest.mark.parametrize("name", LOSSES)
def test_no_row_tells_two_candidates_apart_by_more_than_the_sensitivity(name, crowd) -> None:
    width = geometry_of(SLOPES).n_columns
    for seed in range(2):
        candidates = CROWDS[crowd](np.random.default_rng(seed), width)
        scores = scores_of_rows(SLOPES, name, candidates)
        for adjacency, by_range in itertools.product(ADJACENCIES, (True, False)):
            whole = scorer(domain(SLOPES)[:1], SLOPES, name)
            _, claimed = whole(
                candidates, whole.sensitivity(candidates, PrivacyParameters(Budget(1.0), adjacency), by_range)
            )
            assert told(scores, adjacency) <= claimed


@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("name", ["logistic", "hinge"])
def test_some_row_nearly_does(name, adjacency) -> None:
    """Candidates far on one side that differ in one slope: a row at either end of it is on the wrong side."""
    candidates = np.array([[4.0, 0.3, 0.0], [4.0, -0.3, 0.0]])
    found = scorer([(1.0, 0.0, "a")], LINE, name)
    _, claimed = found(candidates, found.sensitivity(candidates, PrivacyParameters(Budget(1.0), adjacency), True))
    assert 0.95 * claimed < told(scores_of_rows(LINE, name, candidates), adjacency) <= claimed


@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("name", LOSSES)
def test_a_range_never_costs_more_than_the_change_of_a_score(name, adjacency) -> None:
    rng = np.random.default_rng(0)
    scores = scorer(domain(SLOPES)[:1], SLOPES, name)
    for crowd in CROWDS.values():
        candidates = crowd(rng, geometry_of(SLOPES).n_columns)
        ranges, changes = (
            scores.sensitivity(candidates, PrivacyParameters(Budget(1.0), adjacency), by_range).most
            for by_range in (True, False)
        )
        assert 0 <= ranges <= changes


@settings(max_examples=30)
@given(st.integers(0, 10_000))
def test_predictors_are_no_larger_and_no_farther_apart_than_public_facts_say(seed) -> None:
    rng = np.random.default_rng(seed)
    geometry = geometry_of(SLOPES)
    weights = rng.integers(-2560, 2561, (4, geometry.n_columns))
    design = np.array([[1.0, u, v, *np.eye(3)[k]] for u, v, k in itertools.product((-1, 1), (-1, 1), range(3))])
    scores = design @ weights.T
    assert np.all(largest_score(weights, geometry) >= np.abs(scores).max(axis=0))
    assert widest_apart(weights, geometry) >= np.abs(scores[:, :, None] - scores[:, None, :]).max()
    slopes = weights[:, :3]  # slopes and the constant alone: reached by a row at the ends
    alone = np.column_stack([slopes, np.zeros((4, 3), dtype=np.int64)])
    assert np.array_equal(largest_score(alone, geometry), np.abs(design @ alone.T).max(axis=0))


# -- scores ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("crowd", CROWDS)
def test_what_moves_change_adds_up_to_the_losses_themselves(crowd, name) -> None:
    """Candidates that move one level of the first are scored by the change alone: the same integers, duplicates
    and weights at the bounds among them.
    """
    rng = np.random.default_rng(3)
    rows = [
        (float(u), float(v), str(c), str(y))
        for u, v, c, y in zip(
            *rng.uniform(-1, 1, (2, 60)), rng.choice(list("pqr"), 60), rng.choice(["a", "b"], 60), strict=True
        )
    ]
    geometry = geometry_of(SLOPES)
    kept, loss = CachedDesign(rows_of(rows, SLOPES, geometry)), loss_of(name, geometry)
    scores = WeightScorer(kept, loss, geometry)
    for _ in range(3):
        candidates = np.clip(CROWDS[crowd](rng, geometry.n_columns), -5, 5)
        candidates = np.concatenate([candidates, candidates[:2]])
        found, _ = scores(candidates, scores.sensitivity(candidates, PrivacyParameters(Budget(1.0)), True))
        assert np.array_equal(found, -losses_of(kept, loss, on_lattice(candidates).T))


@pytest.mark.parametrize("name", LOSSES)
def test_scores_are_minus_the_loss_and_for_hinges_minus_half_the_squared_weights_over_c(name) -> None:
    """The paper's f over C; the constant, which is the first weight here, is not penalised."""
    rng = np.random.default_rng(0)
    candidates = rng.uniform(-3, 3, (7, 3))
    rows = [
        (float(u), float(v), str(y))
        for u, v, y in zip(*rng.uniform(-1, 1, (2, 40)), rng.choice(["a", "b"], 40), strict=True)
    ]
    scores = scorer(rows, LINE, name)
    whole, _ = scores(candidates, scores.sensitivity(candidates, PrivacyParameters(Budget(1.0)), True))
    sides = np.array([1.0 if row[-1] == "b" else -1.0 for row in rows])
    design = np.array([[1.0, row[0], row[1]] for row in rows])
    losses = np.asarray(LOSSES[name].value(design @ candidates.T, sides[:, None])).sum(axis=0)
    penalty = 0 if name == "logistic" else np.sum(candidates[:, 1:] ** 2, axis=1) / 2 / 10
    found, wanted = whole / loss_of(name, geometry_of(LINE)).unit, -(losses + penalty)
    np.testing.assert_allclose(found - found[0], wanted - wanted[0], atol=40 * 4 / GRAIN)


def test_the_best_candidate_wins_where_epsilon_is_large() -> None:
    rng = np.random.default_rng(0)
    rows = [(float(u), float(v), "b" if u - v > 0.2 else "a") for u, v in rng.uniform(-1, 1, (500, 2))]
    mechanism = PrivGene(moves="genes", rounds=25, candidates=60)
    geometry = geometry_of(LINE)
    release = mechanism.release(
        rows_of(rows, LINE, geometry), PrivacyParameters(Budget(1e5)), None, SeededNoise(0), ERMProblem(LOGISTIC)
    )
    constant, u, v = release.value.weights[:, 0]
    assert u > 2
    assert v < -2
    assert constant < 0
    right = [(constant + u * row[0] + v * row[1] > 0) == (row[2] == "b") for row in rows]
    assert np.mean(right) > 0.95


# -- as printed ------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", LOSSES)
def test_the_printed_constants_are_those_of_the_paper(name) -> None:
    """Equations 11 and 15 (over C) by the largest |w|_1 + 1, 13 and 16 by the largest |w - w'|_1, the smaller of both
    for the enhanced rule.
    """
    candidates = np.array([[1.0, -2.0, 0.5], [1.25, -2.0, 0.5], [1.0, -1.5, 0.5]])
    scores = scorer([(0.0, 0.0, "a")], LINE, name, printed=True)
    terms = PrivacyParameters(Budget(1.0))
    assert scores.sensitivity(candidates, terms, False).most == 2 * (3.75 + 1)
    first = scorer([(0.0, 0.0, "a")], LINE, name, printed=True)
    assert first.sensitivity(candidates, terms, True).most == pytest.approx(
        2 * 0.75, abs=2 / GRAIN
    )  # margins are rounded to the lattice
    apart = np.array([[5.0, 0.0, 0.0], [-5.0, 0.0, 0.0]])
    assert scorer([(0.0, 0.0, "a")], LINE, name, printed=True).sensitivity(apart, terms, True).most == 2 * 6.0


def test_for_hinges_the_printed_text_takes_half_of_its_own_equation_from_the_second_round_on() -> None:
    """'2C times the mutation scale': 5% of 10 at first, then 5% less from round to round."""
    low, high = np.full(3, -5.0), np.full(3, 5.0)
    breeding = Breeding(200)
    terms = PrivacyParameters(Budget(1.0))
    found: dict[str, list[float]] = {}
    for name in ("hinge", "logistic"):
        scores = scorer([(0.0, 0.0, "a")], LINE, name, printed=True, breeding=breeding)
        candidates, _, _ = first_candidates(200, geometry_of(LINE), SeededNoise(0))
        found[name] = [scores.sensitivity(candidates, terms, True).most]
        for number in range(3):
            candidates = breeding.offspring(candidates[50:51], low, high, number, SeededNoise(number))
            found[name].append(scores.sensitivity(candidates, terms, True).most)
    assert found["hinge"][1:] == pytest.approx([2 * 0.5 * 0.95**number for number in range(3)])
    assert found["logistic"][1:] == pytest.approx([4 * 0.5 * 0.95**number for number in range(3)], abs=8 / GRAIN)
    assert found["hinge"][0] == pytest.approx(found["logistic"][0], abs=2 / GRAIN)


def test_and_so_they_are_not_private_for_hinges() -> None:
    """The audit catches it: some two rows tell two children of one parent apart by twice as much as is paid for."""
    parent = np.array([[4.0, 1.0, 0.0]])
    candidates = np.concatenate([parent, parent + np.array([0, 0.5, 0]), parent - np.array([0, 0.5, 0])])
    scores = scorer([(0.0, 0.0, "a")], LINE, "hinge", printed=True)
    terms = PrivacyParameters(Budget(1.0))
    scores.sensitivity(candidates, terms, True)
    _, claimed = scores(candidates, scores.sensitivity(candidates, terms, True))
    assert told(scores_of_rows(LINE, "hinge", candidates), "replace-one") > 1.9 * claimed


@pytest.mark.parametrize("crowd", CROWDS)
@pytest.mark.parametrize("by_range", [True, False])
def test_for_the_logistic_loss_they_are(crowd, by_range) -> None:
    width = geometry_of(SLOPES).n_columns
    for seed in range(2):
        candidates = CROWDS[crowd](np.random.default_rng(seed), width)
        scores = scores_of_rows(SLOPES, "logistic", candidates)
        for adjacency in ADJACENCIES:
            whole = scorer(domain(SLOPES)[:1], SLOPES, "logistic", printed=True)
            _, claimed = whole(
                candidates, whole.sensitivity(candidates, PrivacyParameters(Budget(1.0), adjacency), by_range)
            )
            assert told(scores, adjacency) <= claimed


@pytest.mark.parametrize("printed", [True, False])
@pytest.mark.parametrize("apart", [1, 2, 3, 9])
def test_rounding_margins_to_the_lattice_is_paid_for(apart, printed) -> None:
    """Margins halfway between two lattice points are rounded to the even one: candidates that differ by 1 can look 2
    apart, to two rows in two directions.
    """
    schema = Schema([Numeric(name, -1, 1) for name in ("u", "v", "w")], TARGET)
    here = np.array([5.0, 5.0, 1 / GRAIN, 0.0])
    candidates = np.array([here, here + np.array([0, 0, 0, apart / GRAIN])])
    rows = [(1.0, 0.5, 1.0, "a"), (1.0, -0.5, -1.0, "a"), (1.0, 0.5, -1.0, "a"), (1.0, -0.5, 1.0, "a")]
    scores = scorer(rows[:1], schema, "logistic", printed=printed)
    _, claimed = scores(candidates, scores.sensitivity(candidates, PrivacyParameters(Budget(1.0)), True))
    assert told(scores_of_rows(schema, "logistic", candidates, rows), "replace-one") <= claimed


# -- the law of a fit ------------------------------------------------------------------------------


class Scripted:
    """Makes the choices it is told to, with the same public coins every time, and multiplies how likely they were."""

    private = True

    def __init__(self, script: tuple[int, ...]) -> None:
        self._script, self._coins = list(script), SeededNoise(3)
        self.chance, self.asked = 1.0, []

    def below(self, limits):
        return self._coins.below(limits)

    def select_each(self, menus, scale, rule):
        (menu,) = menus
        answer = self._script.pop(0)
        self.chance *= LAWS[rule](menu, scale)[answer]
        self.asked.append((len(menu), scale, rule))
        return [answer]


@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize(
    ("options", "name"),
    [
        ({}, "logistic"),
        ({"selection": "enhanced"}, "hinge"),
        ({"selection": "exponential"}, "huber"),
        ({"calibration": "paper"}, "logistic"),
        ({"calibration": "paper", "selection": "exponential"}, "logistic"),
        ({"elitism": False}, "hinge"),
        ({"elitism": False, "calibration": "paper"}, "logistic"),
        ({"C": 0.05, "box": 0.5}, "logistic"),
        ({"steepest": 0.3, "start": "scattered", "box": 20.0}, "logistic"),
        ({"crossover": lambda one, other, generation: (-one, other * 3), "elitism": False}, "hinge"),
    ],
)
def test_two_rounds_of_the_paper_give_away_no_more_than_epsilon(options, name, adjacency) -> None:
    """All rows that a table can differ by, beside a crowd of others, and all choices of both rounds."""
    epsilon, candidates = 1.5, 4
    mechanism = PrivGene(moves="genes", rounds=2, candidates=candidates, **options)
    geometry = geometry_of(LINE)
    terms = PrivacyParameters(Budget(epsilon), adjacency, 1, 100)
    crowd = [(0.25, 0.5, "a")] * 8
    tables = [[*crowd, row] for row in itertools.product((-1.0, 1.0), (-1.0, 1.0), ("a", "b"))]
    laws, seen = [], []
    for rows in [*tables, crowd] if adjacency == "add-remove" else tables:
        law, asked = [], []
        release = released_often(mechanism, rows_of(rows, LINE, geometry), terms, ERMProblem(LOSSES[name]))
        for script in itertools.product(range(candidates), repeat=2):
            value, event = release(noise := Scripted(script))
            law.append(noise.chance)
            asked.append((noise.asked, value.weights.tolist(), event))
        laws.append(law)
        seen.append(asked)
    assert all(asked == seen[0] for asked in seen), "what is asked or released depends on the rows beyond the choices"
    pairs = [(laws[-1], law) for law in laws[:-1]] if adjacency == "add-remove" else itertools.combinations(laws, 2)
    worst = max(most_told(one, other) for one, other in pairs)
    assert 0.02 * epsilon < worst <= epsilon * (1 + 1e-9)


# -- candidates ------------------------------------------------------------------------------------


def test_the_first_candidates_are_the_papers() -> None:
    """180 anywhere in [-5, 5], 10 that predict the one class for all rows, 10 that predict the other."""
    geometry = geometry_of(SLOPES)
    found, low, high = first_candidates(200, geometry, SeededNoise(0))
    assert found.shape == (200, geometry.n_columns)
    assert set(low.tolist()) == {-5.0}
    assert set(high.tolist()) == {5.0}
    constant = np.all(found[:, 1:] == 0, axis=1)
    assert constant.sum() == 20
    assert (found[constant, 0] > 0).sum() == (found[constant, 0] < 0).sum() == 10
    assert np.all(np.abs(on_lattice(found[constant])[:, 0]) >= 1), "a constant of zero predicts nothing"
    assert len(np.unique(found[constant, 0])) == 20
    others = found[~constant]
    assert np.abs(others).max() <= 5
    assert np.all(np.histogram(others, bins=5, range=(-5, 5))[0] > 0.7 * others.size / 5)


@pytest.mark.parametrize("count", [2, 5, 9, 10, 11, 30])
def test_few_candidates_are_enough(count) -> None:
    found, _, _ = first_candidates(count, geometry_of(LINE), SeededNoise(0))
    assert found.shape == (count, 3)
    mechanism = PrivGene(moves="genes", candidates=count, rounds=2)
    rows = rows_of([(0.5, 0.5, "a"), (0.1, 0.2, "b")], LINE, geometry_of(LINE))
    assert mechanism.release(
        rows, PrivacyParameters(Budget(1.0)), None, SeededNoise(0), ERMProblem(LOGISTIC)
    ).value.weights.shape == (
        3,
        1,
    )


def test_mutations_meet_every_weight_and_the_constant() -> None:
    """Children of the first selected candidate, over many rounds: every coordinate has moved, up and down."""
    geometry = geometry_of(SLOPES)
    parent = np.full((1, geometry.n_columns), 0.5)
    children = Breeding(400).offspring(parent, np.full(parent.size, -5.0), np.full(parent.size, 5.0), 0, SeededNoise(0))
    for column in range(geometry.n_columns):
        assert {-256, 256} <= set((on_lattice(children) - on_lattice(parent))[:, column].tolist()), column


@pytest.mark.parametrize("parents", [1, 3])
def test_shares_of_all_choices_add_up(parents) -> None:
    mechanism = PrivGene(moves="genes", parents=parents, rounds=5)
    facts = PublicFacts(geometry_of(LINE), PrivacyParameters(Budget(0.7)), 100)
    plan = mechanism.plan(facts, ERMProblem(LOGISTIC))
    each = plan.rounds.choices.each
    assert len(each) == plan.event.n_values == 4 * parents + 1
    assert sum(each) * 10 == 7
    assert sum(part.epsilon for part in plan.event.parts) == pytest.approx(0.7)


def test_rounds_are_the_papers() -> None:
    """0.00125 times rows times epsilon over parents, of a public number of rows."""
    mechanism = PrivGene(moves="genes", parents=2)

    def rounds(terms: PrivacyParameters, n_rows: int | None) -> int:
        return mechanism.plan(PublicFacts(geometry_of(LINE), terms, n_rows), ERMProblem(LOGISTIC)).rounds.count

    assert rounds(PrivacyParameters(Budget(1.0)), 48_000) == 30
    assert rounds(PrivacyParameters(Budget(0.5)), 48_000) == 15
    assert rounds(PrivacyParameters(Budget(1.0)), 10) == 1


def test_more_parents_than_one_are_selected_and_crossed_over() -> None:
    rows = rows_of([(0.5, 0.5, "a"), (0.1, 0.2, "b")] * 20, LINE, geometry_of(LINE))
    mechanism = PrivGene(moves="genes", parents=3, rounds=4, candidates=20)
    noise = Counting(0)
    mechanism.release(rows, PrivacyParameters(Budget(1.0)), None, noise, ERMProblem(LOGISTIC))
    assert noise.sizes == [20, 19, 18] * 3 + [20]


class Counting(SeededNoise):
    """Writes down how long menus were."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.sizes: list[int] = []

    def select_each(self, menus, scale, rule):
        self.sizes += [len(menu) for menu in menus]
        return super().select_each(menus, scale, rule)


def test_candidates_are_as_far_apart_as_the_level_in_which_they_differ_most_and_levels_take_little_memory() -> None:
    rng = np.random.default_rng(5)
    schema = Schema(
        [Category("many", list(range(3_000))), Category("few", list("pqr"))], target=Category("y", ["a", "b"])
    )
    geometry = schema.geometry(numeric="bins", whole=True)
    weights = rng.integers(-500, 501, (200, geometry.n_columns))
    tracemalloc.start()
    found = widest_apart(weights, geometry)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert found == max(int(largest_score(weights - one, geometry).max()) for one in weights)
    assert most < 50e6
