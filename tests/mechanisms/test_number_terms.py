"""Interaction terms of a regression: every bound against all exchanges of a row, the law of choices, what is planned
and charged, and whether a planted pair is found.
"""

from __future__ import annotations

import itertools
from dataclasses import replace
from fractions import Fraction
from functools import cache

import numpy as np
import pytest

import privfit as pf
from privfit.losses import SQUARED, tapered_huber
from privfit.mechanisms import ObjectiveRegression, QuadraticProblem
from privfit.mechanisms.base import PublicFacts
from privfit.mechanisms.perturbation import number_terms, regression
from privfit.mechanisms.perturbation.interaction_terms import (
    STEP_BITS,
    UNIT,
    BudgetSplit,
    IntegerGradients,
    integer_weights,
    menu_of,
    score_bits,
)
from privfit.mechanisms.perturbation.number_terms import (
    NumberTerms,
    automatic_terms,
    in_steps,
    n_candidates,
    shrunken_step,
)
from privfit.mechanisms.perturbation.regression import RegressionPlan
from privfit.privacy import Budget, PrivacyParameters
from privfit.privacy.parts import Additive, Laplace, Selection
from privfit.rows import CachedDesign, Interactions, Residuals, Rows, sum_of_residuals
from privfit.tables import open_table
from tests.privacy.laws import flip_law, most_told
from tests.support.noise import RecordingNoise

ADJACENCIES = ("replace-one", "add-remove")
SCHEMA = pf.Schema(
    [pf.Numeric("age", 0, 70), pf.Category("region", ["n", "s", "w"]), pf.Category("sex", ["f", "m"])],
    target=pf.Numeric("y", -1, 1),
)
PROBLEM = QuadraticProblem(SQUARED, interactions=2)
GEOMETRY = ObjectiveRegression().geometry(SCHEMA, PROBLEM, "splines")
BITS = score_bits(GEOMETRY.n_columns)
VALUES = [(3.0, "n", "f"), (35.0, "s", "m"), (69.0, "w", "f")]
TARGETS = (-1.0, -0.2, 0.0, 0.03, 1.0)
PEOPLE = [(*value, target) for value in VALUES for target in TARGETS]
CENTRE, WIDTH = 0.0625, 0.25


def design_of(rows: list[tuple]) -> CachedDesign:
    return CachedDesign(Rows(open_table(np.array(rows, dtype=object)), SCHEMA, GEOMETRY), fine=True)


def weights_of(seed: int, size: float) -> np.ndarray:
    return np.random.default_rng(seed).normal(0, size, (GEOMETRY.n_columns, 1))


def gradients_of(adjacency: str) -> IntegerGradients:
    return IntegerGradients(tapered_huber(2.0), 2 if adjacency == "replace-one" else 1, (0.0,))


@cache
def measured(rows: tuple, seed: int, size: float) -> tuple[list[int], list[np.ndarray], list[np.ndarray]]:
    """The scores of all candidates, and their sums of slopes and of curvatures."""
    menu, own = menu_of(Interactions(GEOMETRY)), gradients_of("add-remove")
    cells = design_of(list(rows)).cells(
        integer_weights(weights_of(seed, size), BITS), Residuals(CENTRE, WIDTH, 1 << BITS)
    )
    both = cells.sums_and_counts(menu, own.slopes, BITS - STEP_BITS)
    curvatures = cells.sums(menu, own.curvatures, BITS - STEP_BITS)
    return [own.score(*each) for each in both], [sums for sums, _ in both], curvatures


# -- bounds ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_no_exchange_of_a_row_moves_scores_or_sums_beyond_their_bounds(adjacency: str) -> None:
    own, score, sums = gradients_of(adjacency), 0.0, 0.0
    base = (((3.0, "n", "m", 1.0),) * 40) + (((69.0, "w", "f", -1.0),) * 40)
    for seed, size in ((0, 0.0), (1, 0.3), (2, 4.0)):
        found = [measured((*base, person), seed, size) for person in PEOPLE]
        pairs = itertools.combinations(found, 2)
        if adjacency == "add-remove":
            pairs = ((one, measured(base, seed, size)) for one in found)
        for (one, r, h), (other, r2, h2) in pairs:
            moved = [a - b for a, b in zip(one, other, strict=True)]
            score = max(score, (max(moved) - min(moved)) / own.score_sensitivity)
            both = (np.abs(a - b).sum() + np.abs(c - d).sum() for a, b, c, d in zip(r, r2, h, h2, strict=True))
            sums = max(sums, max(map(int, both)) / own.sums_sensitivity)
    assert 0.4 < score <= 1
    assert 0.95 < sums <= 1


def test_slopes_and_curvatures_share_one_draw_at_hardly_any_cost() -> None:
    own = gradients_of("add-remove")
    assert own.curvature_unit == UNIT // 2  # the size of the slope and half the curvature are at most 1
    assert UNIT <= own.sums_sensitivity <= UNIT + 2
    assert own.slopes.shape[0] == 1


def told(left: tuple, right: tuple | None, moved: int, crowd: tuple, seed: int, charged: int) -> tuple[float, float]:
    """What a choice and a table give away, as shares of what they are charged, where scales are for `charged` rows."""
    split, epsilon = BudgetSplit(1, Fraction(1, 10), Fraction(1, 10)), Fraction(30)
    terms = NumberTerms(IntegerGradients(tapered_huber(2.0), charged, (0.0,)), Interactions(GEOMETRY), epsilon, split)
    (one, r, h), (other, r2, h2) = (
        measured((*((crowd,) * 20), *(() if last is None else (last,))), seed, 0.5 * seed) for last in (left, right)
    )
    choice = most_told(flip_law(one, terms.choice_scale), flip_law(other, terms.choice_scale)) / float(
        epsilon * split.choices
    )
    moves = (np.abs(a - b).sum() + np.abs(c - d).sum() for a, b, c, d in zip(r, r2, h, h2, strict=True))
    return choice, max(map(int, moves)) / terms.table_scale / float(epsilon * split.tables)


def test_no_choice_and_no_table_gives_away_more_than_charged_and_noise_for_half_a_person_is_caught() -> None:
    found = [told(left, right, 2, PEOPLE[1], seed, 2) for seed in (0, 1, 2) for left in PEOPLE for right in PEOPLE[::2]]
    alone = [told(left, None, 1, PEOPLE[1], seed, 1) for seed in (0, 1, 2) for left in PEOPLE]
    assert np.max([*found, *alone]) <= 1 + 1e-9
    assert np.max([told(left, right, 2, PEOPLE[1], 0, 1) for left in PEOPLE for right in PEOPLE]) > 1.5


@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_no_row_changes_the_sum_of_residuals_beside_terms_by_more_than_claimed(adjacency: str) -> None:
    plan = planned(adjacency=adjacency)
    most, (part,) = 1 << plan.bits, plan.intercept
    assert isinstance(part, Laplace)
    weights, rng = integer_weights(weights_of(3, 0.2), plan.bits), np.random.default_rng(4)
    menu, interactions = menu_of(Interactions(GEOMETRY)), Interactions(GEOMETRY)
    added = [(pair, rng.integers(-most, most, interactions.n_cells(pair))) for pair in (menu[0], menu[-1])]

    def summed(*rows: tuple) -> int:
        return sum_of_residuals(design_of(list(rows)), weights, CENTRE, 0.5, plan.bits, added)

    none = PEOPLE[0]
    alone = [summed(none, person) - summed(none) for person in PEOPLE]
    assert summed(*PEOPLE) == sum(summed(person) for person in PEOPLE)  # a row adds what it adds anywhere
    worst = max(alone) - min(alone) if adjacency == "replace-one" else max(map(abs, alone)) + -(-most // 4)
    assert 0.95 * part.sensitivity < worst <= part.sensitivity


def test_residuals_beside_terms_are_those_of_a_loop() -> None:
    rng, most = np.random.default_rng(7), 1 << 12
    weights = integer_weights(weights_of(5, 0.1), 12)
    pair = menu_of(Interactions(GEOMETRY))[0]
    table = rng.integers(-most, most, Interactions(GEOMETRY).n_cells(pair))
    found = sum_of_residuals(design_of(PEOPLE), weights, CENTRE, 0.5, 12, [(pair, table)])
    opened = open_table(np.array(PEOPLE, dtype=object))
    (batch,) = opened.batches(SCHEMA.features, opened.positions(SCHEMA.features), 100)
    cells, expected = Interactions(GEOMETRY).numbers(pair, batch), 0
    for person, cell in zip(PEOPLE, cells, strict=True):
        exceeds = design_of([person]).cells(weights, Residuals(CENTRE, 0.5, most)).sum_of_scores(1 << 40)
        expected -= int(np.clip(exceeds + table[cell], -most, most))
    assert found == expected


# -- the plan --------------------------------------------------------------------------------------


def planned(
    adjacency: str = "replace-one",
    epsilon: float = 1.0,
    delta: float = 0.0,
    rows: int = 100_000,
    problem: QuadraticProblem = PROBLEM,
    people: int = 1,
) -> RegressionPlan:
    parameters = PrivacyParameters(Budget(epsilon, delta), adjacency, people)  # type: ignore[arg-type]
    mechanism = ObjectiveRegression()
    return mechanism.plan(PublicFacts(mechanism.geometry(SCHEMA, problem, "splines"), parameters, rows), problem)


@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("delta", [0.0, 1e-6])
@pytest.mark.parametrize("number", [1, 3, 4])
def test_shares_add_up_exactly(adjacency: str, delta: float, number: int) -> None:
    for epsilon, people in ((0.1, 1), (1 / 3, 3), (7.0, 1)):
        problem = replace(PROBLEM, interactions=number)
        plan = planned(adjacency, epsilon, delta, problem=problem, people=people)
        assert plan.terms is not None
        spent = Fraction(plan.weights.facts.parameters.budget.epsilon)
        spent += (regression.FOR_CENTRE + regression.FOR_THRESHOLD) * Fraction(epsilon)
        for part in plan.event.parts:
            if isinstance(part, Selection) and part.purpose == "choice of columns":
                assert part.sensitivity == people * gradients_of(adjacency).score_sensitivity
                spent += Fraction(int(part.sensitivity)) / Fraction(part.scale)
            elif isinstance(part, Additive) and part.purpose in ("interaction terms", "intercept"):
                spent += Fraction(int(part.sensitivity)) / Fraction(part.scale)
        assert 0.999 * Fraction(epsilon) < spent <= Fraction(epsilon)


@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_draws_are_those_of_the_event(adjacency: str) -> None:
    noise, mechanism = RecordingNoise(0), ObjectiveRegression(bands=True)
    parameters = PrivacyParameters(Budget(1.0), adjacency)  # type: ignore[arg-type]
    rows = Rows(open_table(np.array(PEOPLE, dtype=object)), SCHEMA, GEOMETRY)
    release = mechanism.release(rows, parameters, None, noise, PROBLEM)
    purposes = [part.purpose for part in release.event.parts]
    assert purposes[-6:-1] == ["choice of columns", "interaction terms"] * 2 + ["intercept"]
    assert len(noise.calls) == len(purposes)
    assert len(release.value.pairs) == 2


def test_many_rows_are_sampled_and_the_intercept_is_of_all() -> None:
    plan = planned(rows=10 * number_terms.ENOUGH_ROWS)
    assert plan.terms is not None
    assert plan.terms.of_256 == 25
    assert [part.purpose for part in plan.event.parts].count("sample of the rows") == 1


def test_auto_follows_public_facts() -> None:
    parameters = PrivacyParameters(Budget(1.0))
    assert [automatic_terms(parameters, rows, 3) for rows in (None, 29_999, 30_000, 60_000)] == [0, 0, 2, 4]
    assert [automatic_terms(parameters, rows, 60) for rows in (59_000, 60_000)] == [0, 4]
    several = replace(parameters, rows_per_person=2)
    assert automatic_terms(several, 60_000, 3) == 2
    auto = replace(PROBLEM, interactions="auto")
    assert planned(rows=1000, problem=auto).terms is None
    terms = planned(rows=100_000, problem=auto).terms
    assert terms is not None
    assert terms.split.pairs == n_candidates(GEOMETRY) == 4  # three pairs, and a number by itself


def test_columns_apart_have_no_terms_and_too_many_are_refused() -> None:
    apart = replace(PROBLEM, interactions=1, apart=("age",))
    terms = planned(problem=apart).terms
    assert terms is not None
    assert terms.menu == [(1, 2)]
    with pytest.raises(pf.PrivacyError, match="where 1 pairs of columns"):
        planned(problem=replace(apart, interactions=2))
    for wrong in (-1, 21, 1.5, "two", None, True):
        with pytest.raises(pf.PrivacyError, match="how many pairs of columns"):
            planned(problem=replace(PROBLEM, interactions=wrong))  # type: ignore[arg-type]


def test_quantiles_have_no_terms() -> None:
    mechanism = pf.QuantileRegressor()._chosen_mechanism()
    facts = PublicFacts(GEOMETRY, PrivacyParameters(Budget(1.0)), 100_000)
    assert mechanism.plan(facts, PROBLEM).terms is None


# -- what is made of noisy sums --------------------------------------------------------------------


def test_a_step_is_that_of_newton_where_noise_and_sampling_are_small_and_nothing_where_they_are_all() -> None:
    curvatures = np.array([4e6, 1e6, 2e6])
    effects = np.array([1.0, -0.5, 0.25])
    np.testing.assert_allclose(shrunken_step(-effects * curvatures, curvatures, 1.0), effects, rtol=1e-3)
    noise = np.random.default_rng(0).normal(0, 1.0, 200)
    assert np.abs(shrunken_step(noise, np.full(200, 50.0), 1.2)).max() == 0
    assert np.isfinite(shrunken_step(noise, np.full(200, -50.0), 0.1)).all()
    some = shrunken_step(-effects * 50, np.full(3, 50.0), 100.0)
    assert (np.abs(some) < np.abs(effects)).all()


def test_tables_in_steps() -> None:
    table = number_terms.PairTable((0, 1), np.array([0.5, -0.25]))
    ((pair, steps),) = in_steps([table], 0.5, 16)
    assert pair == (0, 1)
    assert steps.tolist() == [16, -8]
