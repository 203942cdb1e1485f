"""Log means and proportions by a perturbed objective: scores of caps, densities of weights, sums, shares of epsilon."""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import pytest

import privfit as pf
from privfit.losses import SQUARED
from privfit.mechanisms import QuadraticProblem
from privfit.mechanisms.base import PublicFacts
from privfit.mechanisms.perturbation import amounts
from privfit.mechanisms.perturbation.amounts import ObjectiveAmounts, ObjectiveProportions
from privfit.mechanisms.perturbation.defaults import FOR_CERTIFICATE
from privfit.mechanisms.perturbation.problem import ERMPlan
from privfit.mechanisms.perturbation.regression import ObjectiveRegression, RegressionPlan
from privfit.mechanisms.perturbation.target_scale import THRESHOLDS
from privfit.privacy import Budget, PrivacyParameters, exact
from privfit.privacy.parts import Laplace, Selection
from privfit.rows import AMOUNT_STEPS, AmountSums, CachedDesign, Rows
from privfit.tables import open_table

ADJACENCIES = ("replace-one", "add-remove")
LINE = pf.Schema([pf.Numeric("x", -1, 1)], target=pf.Numeric("y", -2, 10))
MECHANISMS = [ObjectiveAmounts(), ObjectiveProportions()]


def planned(
    mechanism: ObjectiveRegression | None = None,
    epsilon: float = 1.0,
    adjacency: str = "replace-one",
    people: int = 1,
    intercept: bool = True,
    rows: int = 4,
) -> RegressionPlan:
    mechanism, problem = mechanism or ObjectiveAmounts(), QuadraticProblem(SQUARED, intercept)
    parameters = PrivacyParameters(Budget(epsilon), adjacency, people)  # type: ignore[arg-type]
    geometry = mechanism.geometry(LINE, problem)
    return mechanism.plan(PublicFacts(geometry, parameters, rows if adjacency == "replace-one" else None), problem)


def design_of(rows: list[tuple[float, float]]) -> CachedDesign:
    geometry = ObjectiveAmounts().geometry(LINE, QuadraticProblem(SQUARED))
    return CachedDesign(Rows(open_table(np.array(rows)), LINE, geometry))


# -- the choice of a cap ---------------------------------------------------------------------------


@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("people", [1, 2])
def test_no_neighbours_change_a_difference_of_scores_by_more_than_claimed(adjacency: str, people: int) -> None:
    plan, worst = planned(adjacency=adjacency, people=people, rows=100), 0
    scale = plan.scale
    claimed = scale.parts()[0].sensitivity  # type: ignore[attr-defined]
    values = (-2.0, 0.001, 0.3, 10.0)
    for stay in itertools.combinations_with_replacement(values, 2):
        for leave in itertools.combinations_with_replacement(values, people):
            enters = itertools.combinations_with_replacement(values, people)
            others = [(*stay, *enter) for enter in enters] if adjacency == "replace-one" else [stay]
            own, *found = (
                np.array(scale.scores(design_of([(0.0, y) for y in ys])))  # type: ignore[attr-defined]
                for ys in ((*stay, *leave), *others)
            )
            worst = max(worst, *(int(np.ptp(own - other)) for other in found))
    assert 0.9 * claimed < worst <= claimed  # nine tenths of what is claimed would be caught


def test_a_cap_is_above_most_amounts_and_not_far_above() -> None:
    scale = planned(epsilon=1e3, rows=200).scale  # scores are of caps before they are stretched
    design = design_of([(0.0, 1.0)] * 190 + [(0.0, 9.0)] * 10)
    best = int(np.argmax(scale.scores(design)))  # type: ignore[attr-defined]
    assert 1.0 <= 10 * THRESHOLDS[best] < 2.0


# -- the sums that the intercept is made of --------------------------------------------------------


@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("people", [1, 3])
def test_no_row_changes_the_sums_by_more_than_claimed(adjacency: str, people: int) -> None:
    plan = planned(adjacency=adjacency, people=people)
    part, (zero, top) = plan.intercept[-1], amounts.amount_scale(plan.facts.geometry)
    assert isinstance(part, Laplace)
    assert part.size == 2
    weights = np.array([[0.5], [3.0]]) * (1 << plan.bits)  # scores from -2.5 to 3.5, in units of 16
    sums = AmountSums(zero, top / 2, 1 << plan.bits, plan.bits)
    stay = (0.1, 1.0)
    base = sums.of(design_of([stay]), weights)
    ends = itertools.product((-1.0, 0.2, 1.0), (-2.0, 0.0, 3.0, 10.0))
    added = [sums.of(design_of([stay, row]), weights) - base for row in ends]
    pairs = itertools.product(added, added) if adjacency == "replace-one" else ((one, 0 * one) for one in added)
    worst = people * max(int(np.abs(one - other).sum()) for one, other in pairs)
    assert 0.99 * part.sensitivity < worst <= part.sensitivity


def test_what_a_row_adds_does_not_depend_on_other_rows() -> None:
    rng = np.random.default_rng(1)
    rows = [(float(x), float(y)) for x, y in zip(rng.uniform(-1, 1, 300), rng.uniform(-2, 10, 300), strict=True)]
    plan, weights = planned(), rng.normal(0, 1 << 18, (2, 1)).round()
    sums = AmountSums(-2 / 3, 0.37, 12_345, plan.bits)
    alone = sum(sums.of(design_of([row]), weights) for row in rows)
    np.testing.assert_array_equal(sums.of(design_of(rows), weights), alone)


def test_what_is_predicted_is_the_exponential() -> None:
    bits, scores = 20, np.array([-20.0, -3.0, -0.5, 0.4])
    for score in scores:
        sums = AmountSums(-2 / 3, 1.0, 0, bits)
        weights = np.array([[round(score / 16 * (1 << bits))], [0.0]])
        predicted = int(sums.of(design_of([(0.0, 0.0)]), weights)[1]) / AMOUNT_STEPS
        assert predicted == pytest.approx(min(np.exp(score), 1.0), rel=0.003, abs=1e-6)


# -- the weights -----------------------------------------------------------------------------------


def on_a_line(plan: ERMPlan, rows: list[tuple[float, float]], w: np.ndarray, ridge: float) -> np.ndarray:
    """The log-density of a minimum over one weight, h(-J'(w)) J''(w), up to a constant that all tables share: J' takes
    every value once.
    """
    assert plan.noise is not None
    loss, slope, curvature = plan.gradients.loss, ridge * w, np.full(len(w), ridge)
    for x, y in rows:
        slope, curvature = slope + x * loss.slope(x * w, y), curvature + x * x * loss.curvature(x * w, y)
    return np.asarray(np.log(curvature) - np.abs(slope) / plan.noise.groups[0].scale)


def worst_ratio(own: ERMPlan, ridge: float) -> float:
    assert own.noise is not None
    reach = (60 * own.noise.groups[0].scale + 4) / ridge
    w = np.unique(np.concatenate([np.linspace(-reach, reach, 20_001), np.linspace(-9, 9, 5_001)]))
    stay, ends = [(0.0, 0.3)], [(1.0, 1.0), (1.0, -1.0), (-1.0, -1.0), (0.0, 0.0), (1.0, -0.6)]
    logs = {end: on_a_line(own, [*stay, end], w, ridge) for end in ends}
    return max(float(np.abs(logs[one] - logs[other]).max()) for one, other in itertools.combinations(ends, 2))


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize("epsilon", [0.2, 2.0])
@pytest.mark.parametrize("threshold", [1.0, 0.05])
def test_no_weights_are_much_likelier_for_one_neighbour(
    mechanism: ObjectiveRegression, epsilon: float, threshold: float
) -> None:
    plan = planned(mechanism, epsilon, intercept=False, rows=10_000)
    own = plan.steps.at(plan.weights, -2 / 3, threshold)
    claimed = plan.weights.facts.parameters.budget.epsilon * (1 - FOR_CERTIFICATE)
    most = own.ridge + (0.0 if own.penalty is None else own.penalty.largest)
    assert worst_ratio(own, most) <= claimed * (1 + 1e-6)
    assert worst_ratio(own, own.ridge / 300) > claimed  # a ridge that is too small is caught


def test_the_plan_does_not_depend_on_the_cap_that_is_chosen_later() -> None:
    for intercept in (True, False):
        plan = planned(intercept=intercept, rows=1000)
        found = [plan.steps.at(plan.weights, -2 / 3, cap) for cap in (1.0, 0.1, float(THRESHOLDS[0]))]
        assert len({(own.ridge, repr(own.precision)) for own in found}) == 1


# -- the price -------------------------------------------------------------------------------------


@pytest.mark.parametrize("epsilon", [0.1, 1 / 3, 7.0])
@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize("intercept", [True, False])
def test_parts_spend_at_most_the_price_exactly(mechanism: ObjectiveRegression, epsilon: float, intercept: bool) -> None:
    plan = planned(mechanism, epsilon, intercept=intercept)
    spent = exact(plan.weights.facts.parameters.budget.epsilon)
    for part in (*plan.scale.parts(), *plan.intercept):
        assert isinstance(part, Laplace | Selection)
        spent += Fraction(int(part.sensitivity)) / Fraction(part.scale)
    assert exact(epsilon) * Fraction(999, 1000) < spent <= exact(epsilon)
