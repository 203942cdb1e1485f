"""PrivGene to the letter: what Algorithm 1 and sections 3, 5 and 6 of the paper print, by public parameters, and what
has to be corrected in it.
"""

from __future__ import annotations

import itertools
from fractions import Fraction
from typing import Any

import numpy as np
import polars as pl
import pytest

import privfit as pf
from privfit.losses import LOGISTIC, hinge
from privfit.losses.margins import GRAIN, PER_STEP, MarginLoss
from privfit.mechanisms import Breeding, ERMProblem, GeneticCentres, PrivGene
from privfit.mechanisms.base import PublicFacts
from privfit.mechanisms.genetic.centres import CentreScorer, farthest_point
from privfit.mechanisms.genetic.moves import MovesPlan, penalties
from privfit.mechanisms.genetic.rounds import plan_rounds
from privfit.mechanisms.genetic.weights import WeightScorer, first_candidates, middle_of, on_lattice
from privfit.privacy import Budget, PrivacyParameters, SeededNoise, exact
from privfit.rows import CachedDesign, MarginRows, Points, Rows, losses_of, one_against_rest, point_geometry
from privfit.rows import on_lattice as points_on_lattice
from privfit.schema import Geometry
from privfit.tables import open_table
from tests.mechanisms.test_genes import Scripted
from tests.privacy.laws import most_told
from tests.support.genetic import released_often

COLUMNS = [pf.Numeric("u", -1, 1), pf.Category("c", ["p", "q", "r"]), pf.Category("d", ["s", "t"])]
TWO = pf.Schema(COLUMNS, pf.Category("y", ["a", "b"]))
THREE = pf.Schema(COLUMNS, pf.Category("y", ["a", "b", "c"]))
TERMS = PrivacyParameters(Budget(1.0))
LOW, HIGH = np.full(4, -5.0), np.full(4, 5.0)


def some_rows(schema: pf.Schema, count: int, seed: int = 0) -> list[tuple]:
    rng = np.random.default_rng(seed)
    return [
        (float(rng.uniform(-1, 1)), str(rng.choice(list("pqr"))), str(rng.choice(list("st"))), str(y))
        for y in rng.choice(schema.target.levels, count)
    ]


def cached(rows: list[tuple], schema: pf.Schema, geometry: Geometry) -> CachedDesign:
    return CachedDesign(
        Rows(open_table(pl.DataFrame(rows, schema=["u", "c", "d", "y"], orient="row")), schema, geometry)
    )


def geometry_of(mechanism: PrivGene, schema: pf.Schema, classes: int = 1, numeric: str = "slope") -> Geometry:
    return mechanism.geometry(schema, ERMProblem(LOGISTIC, classes=classes, knots=3), numeric)


# -- Algorithm 1 -----------------------------------------------------------------------------------


@pytest.mark.parametrize("candidates", [6, 7, 200])
@pytest.mark.parametrize("parents", [1, 3])
def test_without_elitism_all_candidates_are_offspring(candidates: int, parents: int) -> None:
    """Lines 4 to 9: the new candidate set begins empty, and m offspring are put in."""
    chosen = np.random.default_rng(0).uniform(-3, 3, (parents, 4))
    found = Breeding(candidates, parents, elitism=False).offspring(chosen, LOW, HIGH, 0, SeededNoise(1))
    assert found.shape == (candidates, 4)
    assert not any((child == parent).all() for child in found for parent in chosen)
    kept = Breeding(candidates, parents).offspring(chosen, LOW, HIGH, 0, SeededNoise(1))
    np.testing.assert_array_equal(kept[:parents], chosen)


@pytest.mark.parametrize("m", [6, 7, 12])
def test_crossover_gets_half_as_many_pairs_of_different_parents(m: int) -> None:
    """Lines 5 to 7: m/2 times two vectors are chosen and crossed."""
    seen: list[Any] = []

    def crossover(first: Any, second: Any, generation: pf.Generation) -> Any:
        seen.append((first, second, generation))
        return first, second

    chosen = np.arange(12.0).reshape(3, 4) / 4
    Breeding(m, 3, 0.1, 0.5, elitism=False, crossover=crossover).offspring(chosen, LOW, HIGH, 2, SeededNoise(0))
    ((first, second, generation),) = seen
    assert first.shape == second.shape == (-(-m // 2), 4)
    for one, other in zip(first, second, strict=True):
        assert any((one == parent).all() for parent in chosen)
        assert not (one == other).all()
    assert generation.number == 2
    np.testing.assert_allclose(generation.step, 0.1 * 0.5**2 * 10)


def printed_mutate(children: Any, generation: pf.Generation) -> Any:
    """Section 3 as printed: a random d' < d. Here the constant, the paper's last coordinate, is the first."""
    place = generation.random.integers(1, children.shape[1], len(children))
    sign = generation.random.choice([-1, 1], len(children))
    moved = children.copy()
    moved[np.arange(len(children)), place] += sign * generation.step[place]
    return moved


def test_the_printed_mutation_is_a_function_of_the_user_and_never_moves_the_constant() -> None:
    rows = [(*row[:3], "b") for row in some_rows(TWO, 300)]  # a larger constant is best for all of them
    kept = {}
    for mutate in (printed_mutate, None):
        trace: list[Any] = []

        def crossover(first: Any, second: Any, generation: pf.Generation, trace: list[Any] = trace) -> Any:
            trace.append(first[0].copy())
            return first, second

        mechanism = PrivGene(moves="genes", rounds=12, candidates=60, mutate=mutate, crossover=crossover)
        model = pf.LogisticRegression(50.0, schema=TWO, mechanism=mechanism, random_state=0)
        model.fit(pl.DataFrame(rows, schema=["u", "c", "d", "y"], orient="row"))
        kept[mutate] = {float(weights[0]) for weights in trace[1:]}  # the first is the trial's
    assert len(kept[printed_mutate]) == 1
    assert len(kept[None]) > 1


def test_candidates_of_a_parent_that_is_not_among_them_are_scored_by_what_they_change() -> None:
    geometry = geometry_of(PrivGene(moves="genes"), TWO)
    kept = cached(some_rows(TWO, 80), TWO, geometry)
    loss = MarginLoss(LOGISTIC, 2560 * 4 + 1)
    width = geometry.n_columns
    parent = np.random.default_rng(1).uniform(-3, 3, (1, width))
    children = Breeding(40, elitism=False).offspring(
        parent, np.full(width, -5.0), np.full(width, 5.0), 0, SeededNoise(0)
    )
    np.testing.assert_array_equal(middle_of(on_lattice(children)), on_lattice(parent))
    scores = WeightScorer(kept, loss, geometry)
    found, _ = scores(children, scores.sensitivity(children, TERMS, True))
    np.testing.assert_array_equal(found, -losses_of(kept, loss, on_lattice(children).T))


# -- sections 5.1, 5.2 and 6: the objective --------------------------------------------------------


@pytest.mark.parametrize("C", [0.01, 1.0, 10.0])
@pytest.mark.parametrize("loss", [LOGISTIC, hinge()], ids=lambda loss: loss.name)
def test_scores_of_genes_are_the_objective_over_c(C: float, loss: Any) -> None:
    """-(|alpha|^2 / 2 + C sum of losses), divided by C; the constant is not penalised."""
    geometry = geometry_of(PrivGene(moves="genes"), TWO)
    kept, table = cached(some_rows(TWO, 30), TWO, geometry), MarginLoss(loss, 2560 * 4 + 1)
    candidates = np.random.default_rng(0).uniform(-2, 2, (5, geometry.n_columns))
    scorer = WeightScorer(kept, table, geometry, C)
    found, reach = scorer(candidates, scorer.sensitivity(candidates, TERMS, True))
    whole = on_lattice(candidates) / GRAIN
    penalty = (whole[:, 1:] ** 2).sum(axis=1) / 2 / C
    wanted = -losses_of(kept, table, on_lattice(candidates).T) - penalty * table.unit
    np.testing.assert_allclose(found, wanted, atol=1)
    plain = WeightScorer(kept, table, geometry)
    assert reach == plain(candidates, plain.sensitivity(candidates, TERMS, True))[1], "no row can change the penalty"


@pytest.mark.parametrize("numeric", ["bins", "splines"])
@pytest.mark.parametrize("C", [0.02, 5.0])
def test_gains_of_columns_are_differences_of_the_objective_over_c(C: float, numeric: str) -> None:
    mechanism = PrivGene(C=C, rounds=3)
    geometry = geometry_of(mechanism, TWO, numeric=numeric)
    problem = ERMProblem(hinge(), knots=3)
    plan = mechanism.plan(PublicFacts(geometry, TERMS, 50), problem)
    assert isinstance(plan, MovesPlan)
    assert plan.schedule.C == C
    margins = MarginRows(cached(some_rows(TWO, 50), TWO, geometry), plan.schedule.loss)
    margins.move(1, (1, 0, 1), plan.schedule.steps[0])
    step = plan.schedule.steps[1]
    before, plain = margins.weights.copy(), margins.gains(step)
    first = 0
    for chain, (alone, linked) in zip(plan._chains(margins, step), plain, strict=True):
        levels = chain.levels
        for signs in itertools.product((0, 1), repeat=levels):
            after = before.copy()
            after[first : first + levels] += [(2 * sign - 1) * step for sign in signs]
            grown = float((after.astype(float) ** 2).sum() - (before.astype(float) ** 2).sum()) / GRAIN**2 / 2 / C
            unpenalised = type(chain)(alone, linked).gain(signs)
            assert chain.gain(signs) == pytest.approx(unpenalised - grown * GRAIN * PER_STEP, abs=levels)
        first += levels
    assert penalties(np.array([0]), step, C).tolist()[0][0] == penalties(np.array([0]), step, C).tolist()[0][1]


@pytest.mark.parametrize("settings", [{}, {"moves": "coordinates"}, {"moves": "genes", "candidates": 60}], ids=str)
@pytest.mark.parametrize("estimator", [pf.LogisticRegression, pf.LinearSVC])
def test_a_small_c_keeps_weights_small_in_every_kind_of_move(settings: dict, estimator: Any) -> None:
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (800, 2))
    y = np.where(X[:, 0] > 0.1, "b", "a")
    schema = pf.Schema.box(-1, 1, target=["a", "b"])

    def fitted(C: float | None) -> Any:
        mechanism = PrivGene(rounds=15, C=C, **settings)
        return estimator(200.0, schema=schema, mechanism=mechanism, random_state=0).fit(X, y)

    def size(C: float | None) -> float:
        return float(np.abs(fitted(C).coef_).max())

    assert size(0.002) < 0.5 * size(None)
    assert "plus 500 / 2 times the squared weights" in str(fitted(0.002).report_)


def test_the_papers_logistic_loss_is_scored_in_every_kind_of_move() -> None:
    for settings, numeric in (({}, "splines"), ({"moves": "coordinates"}, "bins"), ({"moves": "genes"}, "slope")):
        for steepest, wanted in ((1.0, 1.0), (0.25, 0.25), ("auto", 1.0 if "genes" in str(settings) else 0.5)):
            mechanism = PrivGene(steepest=steepest, rounds=2, **settings)
            facts = PublicFacts(geometry_of(mechanism, TWO, numeric=numeric), TERMS, 100)
            plan: Any = mechanism.plan(facts, ERMProblem(LOGISTIC, knots=3))
            loss = plan.schedule.loss if isinstance(plan, MovesPlan) else plan.population.loss
            assert loss.loss.most_slope == wanted


# -- section 6: the search box; section 5.4: first candidates --------------------------------------


@pytest.mark.parametrize("box", [0.3, 2.0, 40.0])
def test_no_weight_leaves_the_box_and_first_candidates_fill_it(box: float) -> None:
    geometry = geometry_of(PrivGene(moves="genes"), TWO)
    for constants in (True, False):
        found, low, high = first_candidates(200, geometry, SeededNoise(0), box, constants)
        assert set(high.tolist()) == set((-low).tolist()) == {box}
        assert 0.95 * box < np.abs(found).max() <= box
        assert np.all(found[:, 1:] == 0, axis=1).sum() == (20 if constants else 0)
    mechanism = PrivGene(moves="genes", box=box, rounds=6, mutation=1.0, decay=1.0, candidates=20)
    model = pf.LogisticRegression(5.0, schema=TWO, mechanism=mechanism, random_state=0).fit(
        pl.DataFrame(some_rows(TWO, 60), schema=["u", "c", "d", "y"], orient="row")
    )
    assert np.abs(model.coef_).max() <= 2 * box + 2 / GRAIN  # two levels are told by their difference


def test_a_box_too_large_for_its_columns_is_refused_before_the_charge() -> None:
    ledger = pf.Ledger(epsilon=1.0)
    schema = pf.Schema([pf.Numeric(f"x{place}", -1, 1) for place in range(40)], TWO.target)
    model = pf.LogisticRegression(schema=schema, mechanism=PrivGene(moves="genes", box=1000.0), ledger=ledger)
    with pytest.raises(pf.PrivacyError, match="box=1000 was given for 40 columns"):
        model.fit(np.zeros((5, 40)), np.full(5, "a"))
    assert ledger.entries() == []


def test_more_rows_than_64_bit_sums_of_losses_hold_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    from privfit.mechanisms.genetic import population

    monkeypatch.setattr(population, "MOST_SUM", 20 * (1 << 24) * 5)
    ledger = pf.Ledger(epsilon=1.0)
    model = pf.LogisticRegression(schema=TWO, mechanism=PrivGene(moves="genes", box=5.0, rounds=2), ledger=ledger)
    table = pl.DataFrame(some_rows(TWO, 60), schema=["u", "c", "d", "y"], orient="row")
    with pytest.raises(pf.DataError, match="64-bit sums of their losses would overflow"):
        model.fit(table)
    assert ledger.entries() == []


# -- section 5.3: k-means --------------------------------------------------------------------------


def test_scattered_centres_have_twice_the_constant_that_equation_18_prints() -> None:
    rng = np.random.default_rng(0)
    schema = pf.Schema.box(-1, 1, n_features=2)
    points = Points(Rows(open_table(rng.uniform(-1, 1, (20, 2))), schema, point_geometry(schema)))
    points.read()
    candidates = rng.uniform(-1, 1, (30, 6))
    printed, tight = (CentreScorer(points, 3, as_printed).sensitivity(candidates, TERMS, False).most
                      for as_printed in (True, False))  # fmt: skip
    assert tight == 2 * printed == 2 * farthest_point(points_on_lattice(candidates).reshape(30, 3, 2))
    assert CentreScorer(points, 3, False).sensitivity(candidates, TERMS, True).most <= tight


def test_centres_begin_scattered_if_told_so_and_a_ledger_takes_that() -> None:
    rows, ledger = np.tile([[-0.5, -0.5], [0.5, 0.5]], (300, 1)), pf.Ledger(epsilon=1.0)
    schema = pf.Schema.box(-1, 1, n_features=2)
    seen: list[Any] = []

    def crossover(first: Any, second: Any, generation: pf.Generation) -> Any:
        seen.append(first[0].copy())
        return first, second

    gene = PrivGene("exponential", moves="genes", start="scattered", parents=10, rounds=3, crossover=crossover)
    model = pf.KMeans(2, 1.0, schema=schema, mechanism=gene, ledger=ledger).fit(rows)
    assert model.report_.private
    assert ledger.spent == 1.0
    low, high = GeneticCentres.of(gene)._bounds(2, 2)
    first = GeneticCentres.of(gene)._first_candidates(2, 2, low, high, SeededNoise(0))
    assert len(np.unique(first[:, 0])) > 150
    evenly = GeneticCentres.of(PrivGene(moves="genes"))._first_candidates(2, 2, low, high, SeededNoise(0))
    assert len(np.unique(evenly[:, 0])) <= 3


@pytest.mark.parametrize(
    ("settings", "words"),
    [({"box": 2.0}, "box of at most 1"), ({"C": 3.0}, "no loss of classes"), ({"steepest": 1.0}, "no loss of classes")],
)
def test_what_means_nothing_for_centres_is_refused(settings: dict, words: str) -> None:
    model = pf.KMeans(2, schema=pf.Schema.box(-1, 1), mechanism=PrivGene(moves="genes", **settings))
    with pytest.raises(pf.PrivacyError, match=words):
        model.fit(np.zeros((5, 2)))


# -- more than two classes -------------------------------------------------------------------------


@pytest.mark.parametrize("most_bytes", [None, 0])
def test_one_against_the_rest_is_a_table_of_two_classes(most_bytes: int | None) -> None:
    rows = some_rows(THREE, 70)
    geometry = geometry_of(PrivGene(moves="genes"), THREE, 3)
    two = geometry_of(PrivGene(moves="genes"), TWO)
    kept = cached(rows, THREE, geometry)
    if most_bytes is not None:
        kept._spill(kept._chunks)
        kept._chunks = None  # as where rows do not fit in memory
    loss = MarginLoss(LOGISTIC, 2560 * 4 + 1)
    weights = np.random.default_rng(0).integers(-2000, 2000, (geometry.n_columns, 6))
    for place, own in enumerate(one_against_rest(kept, 3)):
        relabelled = [(*row[:3], "b" if row[3] == THREE.target.levels[place] else "a") for row in rows]
        np.testing.assert_array_equal(
            losses_of(own, loss, weights), losses_of(cached(relabelled, TWO, two), loss, weights)
        )
    assert [own is kept for own in one_against_rest(kept, 1)] == [True]


@pytest.mark.parametrize("settings", [{}, {"moves": "coordinates"}, {"moves": "genes"}], ids=str)
@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_all_classes_share_one_budget(settings: dict, delta: float) -> None:
    mechanism = PrivGene(rounds=9, selection="enhanced", **settings)
    numeric = {"genes": "slope"}.get(mechanism.moves, "bins")
    facts = PublicFacts(geometry_of(mechanism, THREE, 3, numeric), PrivacyParameters(Budget(0.7, delta)), 100)
    plan: Any = mechanism.plan(facts, ERMProblem(LOGISTIC, classes=3, knots=3))
    choices = plan.schedule.choices if isinstance(plan, MovesPlan) else plan.rounds.choices
    assert len(choices.each) == plan.event.n_values == 27
    if delta:
        assert sum(one**2 for one in choices.each) / 8 <= exact(plan.event.rho)
    else:
        assert sum(choices.each) == Fraction(7, 10)
        assert sum(part.epsilon for part in plan.event.parts) == pytest.approx(0.7)
    assert "for each of 3 classes" in plan.event.mechanism


def test_three_searches_give_away_no_more_than_epsilon_together() -> None:
    """All choices of one round for each class, by their exact law, for all rows that a table can differ by."""
    epsilon, schema = 2.0, pf.Schema(COLUMNS[:1], THREE.target)
    mechanism = PrivGene("enhanced", moves="genes", rounds=1, candidates=3, C=1.0)
    problem = ERMProblem(hinge(), classes=3, coupling="one-vs-rest")
    geometry = mechanism.geometry(schema, problem, "slope")
    laws, seen = [], []
    for row in itertools.product((-1.0, 1.0), "abc"):
        table = pl.DataFrame([(0.2, "a")] * 3 + [row], schema=["u", "y"], orient="row")
        law, asked = [], []
        rows = Rows(open_table(table), schema, geometry)
        release = released_often(mechanism, rows, PrivacyParameters(Budget(epsilon)), problem)
        for script in itertools.product(range(3), repeat=3):
            value, event = release(noise := Scripted(script))
            law.append(noise.chance)
            asked.append((noise.asked, value.weights.tolist(), event))
        laws.append(law)
        seen.append(asked)
    assert all(asked == seen[0] for asked in seen)
    worst = max(most_told(one, other) for one, other in itertools.combinations(laws, 2))
    assert 0.1 * epsilon < worst <= epsilon * (1 + 1e-9)


def test_rounds_follow_the_share_of_a_class() -> None:
    terms = PrivacyParameters(Budget(1.0))
    three, one = (plan_rounds(terms, 48_000, "enhanced", Breeding(), "auto", searches) for searches in (3, 1))
    assert (three.count, one.count) == (20, 60)
    assert three.choices.each[0] == one.choices.each[0]


@pytest.mark.parametrize("estimator", [pf.LogisticRegression, pf.LinearSVC])
@pytest.mark.parametrize("settings", [{}, {"moves": "genes", "elitism": False}], ids=str)
def test_three_classes_are_learned_saved_and_charged_once(estimator: Any, settings: dict, tmp_path: Any) -> None:
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (3000, 2))
    y = np.array(["left", "middle", "right"])[np.digitize(X[:, 0] + 0.2 * X[:, 1], [-0.35, 0.35])]
    schema, ledger = pf.Schema.box(-1, 1, target=["left", "middle", "right"]), pf.Ledger(epsilon=30.0)
    model = estimator(30.0, schema=schema, mechanism=PrivGene(**settings), ledger=ledger).fit(X, y)
    assert model.score(X, y) > 0.6
    assert len(model.coef_) == 3
    assert len(ledger.entries()) == 1
    assert ledger.spent == 30.0
    model.save(tmp_path / "model.json")
    again = pf.load_model(tmp_path / "model.json")
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    if estimator is pf.LogisticRegression:
        np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1.0)
        np.testing.assert_allclose(again.predict_proba(X), model.predict_proba(X))


def test_a_penalty_beyond_64_bits_never_wraps_a_score_round() -> None:
    """With the smallest C, the widest box and more than a thousand levels half the squared weights pass 2^63 steps of
    the loss. A score that wrapped round would go from the worst to the best because of one row.
    """
    schema = pf.Schema([pf.Category("c", [f"l{place}" for place in range(1200)])], pf.Category("y", ["a", "b"]))
    mechanism, problem = PrivGene(moves="genes", box=1000.0, C=1e-3, candidates=4), ERMProblem(hinge())
    mechanism.check()
    geometry = mechanism.geometry(schema, problem)
    population = mechanism.plan(PublicFacts(geometry, TERMS, 2), problem).population
    candidates = np.zeros((2, geometry.n_columns))
    for place in range(geometry.n_columns - 1):  # as near to 2^63 from below as a lattice of weights allows
        left = 2**63 - 0.5 * np.sum(candidates[0] ** 2) / 1e-3 * population.loss.unit
        candidates[0, 1 + place] = min(1000.0, np.floor(np.sqrt(2e-3 * left / population.loss.unit) * GRAIN) / GRAIN)

    def apart(first: str) -> tuple[int, int]:
        table = pl.DataFrame([("l0", first), ("l1", "b")], schema=["c", "y"], orient="row")
        kept = CachedDesign(Rows(open_table(table), schema, geometry))
        scorer = population.scorer(kept, geometry, mechanism.breeding)
        scores, sensitivity = scorer(candidates, scorer.sensitivity(candidates, TERMS, True))
        return int(scores[0]) - int(scores[1]), sensitivity

    (one, sensitivity), (other, _) = apart("a"), apart("b")
    assert abs(one - other) <= sensitivity
