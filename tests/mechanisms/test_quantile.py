"""Quantile regression by a perturbed objective: scores of shifts, densities of weights, shares of epsilon."""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import pytest

import privfit as pf
from privfit.losses import SQUARED
from privfit.mechanisms import QuadraticProblem
from privfit.mechanisms.base import PublicFacts
from privfit.mechanisms.perturbation import quantile as quantiles
from privfit.mechanisms.perturbation.defaults import FOR_CERTIFICATE
from privfit.mechanisms.perturbation.problem import ERMPlan
from privfit.mechanisms.perturbation.quantile import SHARP_CELLS, QuantileObjective, shift_scores, shift_sensitivity
from privfit.mechanisms.perturbation.regression import FOR_CENTRE, FOR_THRESHOLD, RegressionPlan
from privfit.privacy import Budget, PrivacyParameters
from privfit.privacy.parts import Selection

ADJACENCIES = ("replace-one", "add-remove")
LINE = pf.Schema([pf.Numeric("x", -1, 1)], target=pf.Numeric("y", -1, 1))
EDGES = np.array([0.0, 1.0, 2.0])
VALUES = (-0.5, 0.5, 1.5, 2.5)


def scores(values: tuple[float, ...], quantile: float) -> np.ndarray:
    counts = [int(np.sum(np.array(values) <= edge)) for edge in EDGES]
    return np.array(shift_scores(counts, len(values), quantile))


def largest_change(adjacency: str, people: int, quantile: float) -> int:
    """The largest change of a difference of two scores, over all neighbours of small tables."""
    worst = 0
    for size in (1, 2, 3):
        for stay in itertools.combinations_with_replacement(VALUES, size):
            for leave in itertools.combinations_with_replacement(VALUES, people):
                enters = itertools.combinations_with_replacement(VALUES, people)
                others = [(*stay, *enter) for enter in enters] if adjacency == "replace-one" else [stay]
                own = scores((*stay, *leave), quantile)
                worst = max(worst, *(int(np.ptp(own - scores(other, quantile))) for other in others))
    return worst


@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("people", [1, 2])
@pytest.mark.parametrize("quantile", [0.1, 0.5, 0.9])
def test_no_neighbours_change_a_difference_of_scores_by_more_than_claimed(
    adjacency: str, people: int, quantile: float
) -> None:
    parameters = PrivacyParameters(Budget(1.0), adjacency, people)  # type: ignore[arg-type]
    found, claimed = largest_change(adjacency, people, quantile), shift_sensitivity(parameters, quantile)
    assert claimed / 2 < found <= claimed  # half of what is claimed would be caught
    if quantile == 0.5 and adjacency == "replace-one" and people == 1:
        assert found == claimed


def test_a_quantile_in_one_cell_is_found() -> None:
    assert np.flatnonzero(scores((0.4, 0.5, 0.6) * 5, 0.5) == 0).tolist() == [1]


def planned(epsilon: float = 1.0, quantile: float = 0.5, intercept: bool = True, rows: int = 4) -> RegressionPlan:
    mechanism, problem = QuantileObjective(quantile=quantile), QuadraticProblem(SQUARED, intercept)
    facts = PublicFacts(mechanism.geometry(LINE, problem), PrivacyParameters(Budget(epsilon)), rows)
    return mechanism.plan(facts, problem)


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
    w = np.unique(np.concatenate([np.linspace(-reach, reach, 20_001), np.linspace(-5, 5, 5_001)]))
    stay, ends = [(1.0, 0.5), (-0.5, 0.1)], [(1.0, 1.0), (1.0, -1.0), (-1.0, 0.0), (0.0, 0.0), (1.0, 0.03)]
    pairs = itertools.combinations(ends, 2)
    logs = {end: on_a_line(own, [*stay, end], w, ridge) for end in ends}
    return max(float(np.abs(logs[one] - logs[other]).max()) for one, other in pairs)


@pytest.mark.parametrize("epsilon", [0.2, 2.0])
@pytest.mark.parametrize("quantile", [0.1, 0.5])
@pytest.mark.parametrize("threshold", [1.0, 0.05])
def test_no_weights_are_much_likelier_for_one_neighbour(epsilon: float, quantile: float, threshold: float) -> None:
    plan = planned(epsilon, quantile, intercept=False, rows=3)
    own = plan.steps.at(plan.weights, 0.0, threshold)
    assert own.penalty is not None
    claimed = plan.weights.facts.parameters.budget.epsilon * (1 - FOR_CERTIFICATE)
    assert worst_ratio(own, own.ridge + own.penalty.largest) <= claimed * (1 + 1e-6)
    assert worst_ratio(own, own.ridge / 300) > claimed  # a ridge that is too small is caught


@pytest.mark.parametrize("epsilon", [0.1, 1 / 3, 7.0])
def test_parts_spend_at_most_the_price_exactly(epsilon: float) -> None:
    plan = planned(epsilon)
    weights = Fraction(plan.weights.facts.parameters.budget.epsilon)
    assert weights + (FOR_CENTRE + FOR_THRESHOLD + quantiles.FOR_QUANTILE) * Fraction(epsilon) <= Fraction(epsilon)
    (part,) = plan.intercept
    assert isinstance(part, Selection)
    spent = quantiles.FOR_QUANTILE * Fraction(epsilon)
    assert Fraction(int(part.sensitivity)) <= Fraction(part.scale) * spent


def test_with_intervals_shifts_are_chosen_among_finer_cells() -> None:
    """A median of many rows is known better than 256 cells show: where in its cell it lies would decide on coverage."""
    ends, centres = QuantileObjective(sharp=True)._cells
    np.testing.assert_array_equal(ends, np.arange(1 - SHARP_CELLS // 2, SHARP_CELLS // 2) / (SHARP_CELLS // 2))
    assert len(centres) == SHARP_CELLS == 8 * len(QuantileObjective()._cells[1])
    rng = np.random.default_rng(0)
    X, missed = rng.uniform(-1, 1, (40_000, 1)), []
    for place in range(4):
        y = X[:, 0] + rng.exponential(1.0, len(X)) + 0.0047 * place
        schema = pf.Schema.box(-1, 1, n_features=1, target=(-5, 20))
        model = pf.QuantileRegressor(200.0, schema=schema, intervals=True, random_state=0).fit(X, y)
        missed.append(abs(np.mean(y <= model.predict(X)) - 0.5))
    assert max(missed) < 0.002  # half of one of 256 cells is twice as much
