"""Log hazard ratios by a perturbed objective: counts of times, densities of weights, squares, shares of epsilon."""

from __future__ import annotations

import itertools
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import privfit as pf
from privfit.losses.hazard_tables import HazardTables
from privfit.losses.stopped_hazard import TIME_STEPS, stopped_hazard
from privfit.mechanisms.base import PublicFacts
from privfit.mechanisms.perturbation.cox import HazardPlan, HazardProblem, ObjectiveHazards, plausible_square
from privfit.mechanisms.perturbation.defaults import FOR_CERTIFICATE
from privfit.mechanisms.perturbation.problem import ERMPlan
from privfit.models.inputs import Input
from privfit.models.survival_input import hazard_problem, signed_input
from privfit.privacy import Budget, PrivacyParameters, exact
from privfit.privacy.parts import KNorm, Laplace
from privfit.rows import COUNT_UNIT, SQUARE_STEPS, CachedDesign, Rows, RowWeights, count_by_target, sum_of_squares
from privfit.tables import open_table

ADJACENCIES = ("replace-one", "add-remove")
TIME, EVENT = pf.Numeric("time", 1, 3, bins=[1.5, 2.5]), pf.Category("event", ["no", "yes"])
WHOLE = pf.Schema([pf.Numeric("x", -1, 1), TIME, EVENT])
PROBLEM = hazard_problem(TIME)
TIMES = (-9.0, 1.0, 1.4, 1.5, 2.4, 2.5, 2.999, 3.0, 50.0)
"""Below the grid, inside, on its edges, on its end and beyond."""


def signed(rows: list[tuple[float, ...]]) -> Input:
    """Of x, the time, the event and, if there is a fourth number, the weight."""
    import polars as pl

    names = ["x", "time", "event", "weight"][: len(rows[0])]
    table = pl.DataFrame(rows, schema=names, orient="row", strict=False)
    table = table.with_columns(pl.col("event").replace_strict({0: "no", 1: "yes"}))
    weights = RowWeights(pf.Numeric("weight", 0, 5), 5.0, 1) if len(names) == 4 else None
    return signed_input(Input(open_table(table), WHOLE, weights=weights), TIME, EVENT)


def design_of(rows: list[tuple[float, ...]]) -> CachedDesign:
    given, geometry = signed(rows), ObjectiveHazards().geometry(signed(rows).schema, PROBLEM)
    return CachedDesign(Rows(given.table, given.schema, geometry, weights=given.weights))


def planned(
    epsilon: float = 1.0,
    adjacency: str = "replace-one",
    people: int = 1,
    rows: int = 4,
    intervals: bool = False,
    problem: HazardProblem = PROBLEM,
) -> HazardPlan:
    mechanism = ObjectiveHazards(intervals=intervals)
    parameters = PrivacyParameters(Budget(epsilon), adjacency, people)  # type: ignore[arg-type]
    geometry = mechanism.geometry(signed([(0.0, 2.0, 1)]).schema, PROBLEM)
    facts = PublicFacts(geometry, parameters, rows if adjacency == "replace-one" else None)
    return mechanism.plan(facts, problem)


# -- times -----------------------------------------------------------------------------------------


def counted(rows: list[tuple[float, float, int]]) -> np.ndarray:
    return PROBLEM.in_order(count_by_target(design_of(rows), PROBLEM.signed_grid))


def test_every_row_is_in_the_count_of_its_bin() -> None:
    for time, event in itertools.product(TIMES, (0, 1)):
        place = int(np.searchsorted([1.5, 2.5, 3.0], time, side="right"))
        wanted = np.zeros(7, dtype=int)  # events, censored times, those who left
        wanted[6 if place == 3 else place + 3 * (1 - event)] = 1
        np.testing.assert_array_equal(counted([(0.3, time, event)]), wanted)


@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("people", [1, 2])
def test_no_neighbours_change_counts_by_more_than_claimed(adjacency: str, people: int) -> None:
    claimed = planned(adjacency=adjacency, people=people).times.sensitivity
    kinds, worst = [(0.0, time, event) for time in TIMES[1::2] for event in (0, 1)], 0
    stay = counted([(0.0, 2.0, 1), (0.0, 9.0, 0)])
    for leave in itertools.combinations_with_replacement(kinds, people):
        own = counted([(0.0, 2.0, 1), (0.0, 9.0, 0), *leave])
        enters = itertools.combinations_with_replacement(kinds, people) if adjacency == "replace-one" else [()]
        others = [counted([(0.0, 2.0, 1), (0.0, 9.0, 0), *enter]) for enter in itertools.islice(enters, 8)]
        worst = max(worst, *(int(np.abs(own - other).sum()) for other in [*others, stay][: len(others)]))
    assert worst == claimed  # any smaller claim would be caught


def test_a_row_has_the_hazard_of_its_time() -> None:
    hazards = np.array([0.0, 0.5, 0.5, 2.0])
    steps = PROBLEM.at_steps(hazards)
    assert len(steps) == TIME_STEPS + 1
    assert np.all(np.diff(steps) >= 0)
    np.testing.assert_allclose(steps[[0, *PROBLEM.ends]], hazards, atol=1e-3)
    assert np.ptp(steps[PROBLEM.ends[0] + 1 : PROBLEM.ends[1] - 1]) == 0  # nobody leaves there


def test_bins_that_times_cannot_be_told_apart_by_are_refused() -> None:
    with pytest.raises(pf.SchemaError, match="narrower"):
        hazard_problem(pf.Numeric("time", 0, 1, bins=[0.50001, 0.500012]))


# -- the weights -----------------------------------------------------------------------------------


def on_a_line(plan: ERMPlan, loss: Any, rows: list[tuple[float, float]], w: np.ndarray, ridge: float) -> np.ndarray:
    """The log-density of a minimum over one weight, h(-J'(w)) J''(w), up to a constant that all tables share: J' takes
    every value once.
    """
    assert plan.noise is not None
    slope, curvature = ridge * w, np.full(len(w), ridge)
    for x, y in rows:
        slope, curvature = slope + x * loss.slope(x * w, y), curvature + x * x * loss.curvature(x * w, y)
    return np.asarray(np.log(curvature) - np.abs(slope) / plan.noise.groups[0].scale)


def alone(epsilon: float) -> ERMPlan:
    """The plan of one weight without the constant beside it, which a test over a line needs."""
    from privfit.mechanisms.perturbation.cox import HazardWeights
    from privfit.mechanisms.perturbation.problem import ERMProblem

    schema = pf.Schema([pf.Numeric("x", -1, 1)], signed([(0.0, 2.0, 1)]).schema.target)
    steps, problem = HazardWeights(noise="laplace"), ERMProblem(stopped_hazard(), fit_intercept=False)
    facts = PublicFacts(steps.geometry(schema, problem), PrivacyParameters(Budget(epsilon)), 10_000)
    return steps.plan(facts, problem)


def worst_ratio(own: ERMPlan, loss: Any, ridge: float) -> float:
    assert own.noise is not None
    reach = (60 * own.noise.groups[0].scale + 4) / ridge
    w = np.unique(np.concatenate([np.linspace(-reach, reach, 20_001), np.linspace(-12, 12, 8_001)]))
    stay, ends = [(0.0, 0.75)], [(1.0, 1.0), (1.0, -1.0), (-1.0, -1.0), (-1.0, 1.0), (0.0, 0.5), (1.0, -0.75), (1, 0.6)]
    logs = {end: on_a_line(own, loss, [*stay, end], w, ridge) for end in ends}
    return max(float(np.abs(logs[one] - logs[other]).max()) for one, other in itertools.combinations(ends, 2))


@pytest.mark.parametrize("epsilon", [0.2, 2.0])
@pytest.mark.parametrize("most", [0.0, 0.5, 7.0])
def test_no_weights_are_much_likelier_for_one_neighbour(epsilon: float, most: float) -> None:
    own, loss = alone(epsilon), stopped_hazard(np.linspace(0, most, TIME_STEPS + 1))
    claimed = epsilon * (1 - FOR_CERTIFICATE)
    largest = own.ridge + (0.0 if own.penalty is None else own.penalty.largest)
    assert worst_ratio(own, loss, largest) <= claimed * (1 + 1e-6)
    assert worst_ratio(own, loss, own.ridge) <= claimed * (1 + 1e-6)
    assert worst_ratio(own, loss, own.ridge / 300) > claimed  # a ridge that is too small is caught


# -- squared scores --------------------------------------------------------------------------------


@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("people", [1, 3])
def test_no_row_changes_the_sum_of_squares_by_more_than_claimed(adjacency: str, people: int) -> None:
    plan = planned(adjacency=adjacency, people=people)
    weights = np.array([[0.1], [2.0]]) * (1 << plan.bits)
    base = sum_of_squares(design_of([(0.2, 2.0, 1)]), weights, plan.bits)
    added = [
        sum_of_squares(design_of([(0.2, 2.0, 1), (x, 2.0, 0)]), weights, plan.bits) - base
        for x in (-1.0, -0.05, 0.0, 0.3, 1.0)
    ]
    others = added if adjacency == "replace-one" else [0]
    worst = people * max(abs(one - other) for one in added for other in others)
    assert 0.99 * plan.spread.sensitivity < worst <= plan.spread.sensitivity
    assert min(added) >= 0


def test_no_weighed_row_changes_counts_or_squares_by_more_than_claimed() -> None:
    weighed = replace(PROBLEM, max_weight=5.0)
    plan, columns = planned(adjacency="add-remove", people=2, problem=weighed), np.array([[0.1], [2.0]])
    base, worst = [(0.2, 2.0, 1, 1.7), (0.1, 1.2, 0, 0.3)], np.zeros(2, dtype=np.int64)

    def sums(rows: list[tuple[float, ...]]) -> tuple[np.ndarray, int]:
        design = design_of(rows)
        counts = PROBLEM.in_order(count_by_target(design, PROBLEM.signed_grid))
        return counts, sum_of_squares(design, columns * (1 << plan.bits), plan.bits)

    before, after = sums([*base, (0.0, 1.0, 1, 0.0)]), []
    for x, time, event, weight in itertools.product((-1.0, 0.3, 1.0), (1.4, 9.0), (0, 1), (0.0, 2.5, 5.0, 80.0)):
        after.append(sums([*base, (x, time, event, weight)]))
        if not weight:
            assert np.array_equal(after[-1][0], before[0])
            assert after[-1][1] == before[1]
    for one, other in itertools.product(after, repeat=2):  # a row in place of another: two rows of add-remove
        worst = np.maximum(worst, [np.abs(one[0] - other[0]).sum(), abs(one[1] - other[1])])
    assert plan.times.sensitivity == 2 * COUNT_UNIT == worst[0]
    assert 0.49 * plan.spread.sensitivity < worst[1] <= plan.spread.sensitivity
    whole = sums([(0.2, 2.0, 1, 5.0)])
    assert whole[0].sum() == COUNT_UNIT
    assert sums([(0.2, 2.0, 1, 2.5)])[1] == whole[1] // 2


def test_what_a_row_adds_does_not_depend_on_other_rows() -> None:
    rng = np.random.default_rng(1)
    rows = [(float(x), 2.0, 0) for x in rng.uniform(-1, 1, 100)]
    plan, weights = planned(), rng.normal(0, 1 << 18, (2, 1)).round()
    each = [sum_of_squares(design_of([row]), weights, plan.bits) for row in rows]
    assert sum_of_squares(design_of(rows), weights, plan.bits) == sum(each)
    exact_sum = float(np.minimum(((weights[0] + weights[1] * [x for x, *_ in rows]) / (1 << plan.bits)) ** 2, 1).sum())
    assert sum(each) / SQUARE_STEPS == pytest.approx(exact_sum, abs=0.01)


def test_a_noisy_square_is_weighed_against_a_usual_one() -> None:
    assert plausible_square(0.9, 0.0, 0.5) == pytest.approx(0.9, rel=0.003)
    assert 0.5 < plausible_square(-40.0, 1e9, 0.5) < 1.0
    assert 0.05 < plausible_square(-0.5, 0.3, 0.5) < plausible_square(0.2, 0.3, 0.5) < 0.5
    for wild in (np.nan, np.inf, -np.inf, 1e300):
        assert 0 < plausible_square(wild, 1.0, 0.5) <= 16


# -- the price -------------------------------------------------------------------------------------


@pytest.mark.parametrize("epsilon", [0.1, 1 / 3, 7.0])
@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("intervals", [False, True])
def test_parts_spend_at_most_the_price_exactly(epsilon: float, adjacency: str, intervals: bool) -> None:
    plan = planned(epsilon, adjacency, intervals=intervals)
    spent = exact(plan.weights.facts.parameters.budget.epsilon)
    bought = () if plan.matrices is None else plan.matrices.parts
    assert len(bought) == 2 * intervals
    for part in (plan.times, plan.spread, *bought):
        assert isinstance(part, Laplace | KNorm)
        spent += Fraction(int(part.sensitivity)) / Fraction(part.scale)
    assert exact(epsilon) * Fraction(999, 1000) < spent <= exact(epsilon)
    assert plan.event.parts == (plan.times, *plan.weights.event.parts, *bought, plan.spread)
    assert plan.event.epsilon == epsilon


# -- what intervals are made of ----------------------------------------------------------------------


def test_tables_are_near_the_loss_and_the_same_wherever_a_row_stands() -> None:
    rng = np.random.default_rng(0)
    loss = stopped_hazard(np.linspace(0, 3, TIME_STEPS + 1))
    tables, z = HazardTables.of(loss), rng.normal(0, 2, 3_000)
    y = rng.choice([-1.0, 1.0], 3_000) * rng.integers(1 << 15, (1 << 16) + 1, 3_000) / (1 << 16)
    np.testing.assert_allclose(tables.curvature(z, y) * tables.most_curvature, loss.curvature(z, y), atol=0.01)
    np.testing.assert_allclose(tables.square(z, y), loss.slope(z, y) ** 2, atol=0.02)
    for respond in (tables.curvature, tables.square):
        whole = respond(z, y)
        assert np.all((whole >= 0) & (whole <= 1))
        np.testing.assert_array_equal(whole[7::3], respond(z[7::3].copy(), y[7::3].copy()))
        assert np.isfinite(respond(np.array([np.nan, np.inf, -np.inf]), np.array([1.0, -1.0, 1.0]))).all()
