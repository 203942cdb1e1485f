"""Counterexamples to statements of PrivGene (Zhang et al., SIGMOD 2013) that no other test shows; docs/papers.md lists
them all.
"""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

import privfit as pf
from privfit.mechanisms.base import PublicFacts
from privfit.mechanisms.genetic.centres import CentreScorer
from privfit.privacy import Budget, PrivacyParameters
from privfit.rows import on_lattice
from privfit.rows.layout import STEP
from tests.privacy.laws import most_told, weight_law

# -- k-means ---------------------------------------------------------------------------------------


def printed_dampening(centres: np.ndarray) -> float:
    """Equation 18 for sets of one centre in one column: the farthest that a point of [-1, 1] can be from any of them,
    squared.
    """
    return float(((1 + np.abs(centres)) ** 2).max())


def given_away(centres: np.ndarray, dampening: float, epsilon: float) -> float:
    """What the exponential mechanism tells of one row that moves from one end to the other."""
    laws = [
        weight_law([float(-((row - centre) ** 2)) for centre in centres], dampening / epsilon) for row in (-1.0, 1.0)
    ]
    return most_told(*laws)


@pytest.mark.parametrize("epsilon", [0.1, 1.0])
def test_the_dampening_factor_of_k_means_costs_twice_epsilon(epsilon: float) -> None:
    """Equation 18 leaves out the 2 of equation 10.

    One candidate at the one end, 199 at the other: more than 1.98 epsilon; with the 2 no more than epsilon.
    """
    centres = np.array([1.0, *[-1.0] * 199])
    printed = printed_dampening(centres)
    assert printed == 4
    assert 1.98 * epsilon < given_away(centres, printed, epsilon) <= 2 * epsilon
    assert given_away(centres, 2 * printed, epsilon) <= epsilon


def offspring(columns: int, clusters: int, step: float) -> np.ndarray:
    """A set of centres on a public lattice, and all sets that differ from it by one step of one coordinate."""
    rng = np.random.default_rng(columns)
    parent = rng.uniform(-1 + step, 1 - step, clusters * columns)
    moves = step * np.concatenate([np.eye(parent.size), -np.eye(parent.size)])
    return np.concatenate([parent[None], parent + moves])


@pytest.mark.parametrize(("columns", "times"), [(2, 9), (3, 12), (10, 40)])
def test_centres_of_one_parent_are_told_apart_by_far_less_than_a_score_moves(columns: int, times: float) -> None:
    """Section 5.3 finds no bound for the difference of two candidates.

    It is 8 steps; here steps of 0.1, and 0.8 at most.
    """
    candidates = offspring(columns, 3, 0.1)
    scorer = CentreScorer.__new__(CentreScorer)
    scorer._clusters, scorer._printed = 3, False
    terms = PrivacyParameters(Budget(1.0))
    between, score = (scorer.sensitivity(candidates, terms, by_range).most / STEP**2 for by_range in (True, False))
    assert between <= 8 * 0.1 * 1.02  # centres are rounded to the lattice
    assert score / between > times


def test_centres_outside_the_box_are_told_apart_by_more() -> None:
    """Why mutated centres are clipped, which `on_lattice` does: 8 steps hold in the box.

    Two centres at -4 and 4, each moved a step inwards, are told apart by 16.
    """
    step, points = 0.01, np.linspace(-1, 1, 2001)

    def told(end: float) -> float:
        sets = [(end - step, -end), (end, step - end)]
        one, other = (-np.min([(points - centre) ** 2 for centre in centres], axis=0) for centres in sets)
        return float(np.ptp(one - other)) / step

    assert told(1.0) <= 8
    assert told(4.0) == pytest.approx(16, rel=0.01)
    assert np.abs(on_lattice(np.array([[4.0], [-4.0]]))).max() == STEP


def test_the_places_of_the_coordinates_collide() -> None:
    """Section 5.3 puts coordinate j of centre i at place k i + j of the vector.

    With 3 centres in 10 columns 30 numbers have 16 places.
    """
    k, d = 3, 10
    printed = {k * i + j for i, j in itertools.product(range(1, k + 1), range(1, d + 1))}
    assert len(printed) == 16
    assert len({d * i + j for i, j in itertools.product(range(k), range(1, d + 1))}) == k * d


# -- logistic regression and support vectors -------------------------------------------------------


@pytest.mark.parametrize("weights", [(0.2, -0.1), (1.5, 2.0), (-5.0, 4.0)])
def test_a_score_moves_by_twice_the_size_of_the_weights_and_less_for_short_hinges(weights) -> None:
    """Equations 11 and 15 have |w|_1 + 1.

    For the logistic loss |w|_1 is exact, for hinges the smaller of |w|_1 + 1 and 2 |w|_1.
    """
    size = sum(map(abs, weights))
    margins = np.array(
        [y * (x * weights[0] + weights[1]) for x, y in itertools.product(np.linspace(-1, 1, 41), (-1, 1))]
    )
    assert np.ptp(np.logaddexp(0, -margins)) == pytest.approx(size)
    assert np.ptp(np.maximum(1 - margins, 0)) == pytest.approx(min(1 + size, 2 * size))
    assert margins.max() == pytest.approx(size)


@pytest.mark.parametrize(
    ("low", "high", "ends"),
    [(100, 200, (0.5, 1.5)), (0, 10, (-0.5, 0.5)), (-10, 10, (-1.0, 0.0)), (-300, -100, (-2.0, -1.0))],
)
def test_the_footnote_on_scaling_leaves_the_box(low: float, high: float, ends: tuple[float, float]) -> None:
    """Footnote 1 subtracts half of the range in place of the middle.

    Ages from 100 to 200 end at 1.5; here they end at -1 and 1.
    """
    printed = [(x - 0.5 * (high - low)) / (high - low) for x in (low, high)]
    assert printed == pytest.approx(ends)
    (block,) = pf.Schema([pf.Numeric("x", low, high)]).geometry(intercept=False).blocks
    assert [(x - block.center) / block.unit for x in (low, high)] == pytest.approx([-1, 1])


# -- the search ------------------------------------------------------------------------------------


def test_mutations_as_printed_never_move_the_bias() -> None:
    """Section 3 mutates coordinate d' < d, and section 5.1 keeps the bias in coordinate d.

    Where only the bias matters all children are as good as their parent.
    """
    d, y = 4, np.ones(30)
    x = np.zeros((30, d - 1))

    def fitness(w: np.ndarray) -> float:
        z = x @ w[:-1] + w[-1]
        return float(np.sum(y * z - np.logaddexp(0, z)))

    def children(places) -> set[float]:
        return {round(fitness(step * np.eye(d)[place - 1]), 9) for place in places for step in (-0.5, 0.5)}

    assert children(range(1, d)) == {round(fitness(np.zeros(d)), 9)}
    assert max(children(range(1, d + 1))) > fitness(np.zeros(d)) + 5


def test_the_number_of_rounds_tells_how_many_rows_there_are() -> None:
    """Section 3: c n epsilon / m' rounds.

    With c = 0.00125 and epsilon 1 a table of 49,600 rows has 62 rounds, and 61 without one of them.
    """
    assert [math.floor(0.00125 * n) for n in (49_600, 49_599)] == [62, 61]


def test_the_factor_that_private_erm_was_given_leaves_it_in_its_fallback() -> None:
    """Section 6 compares with a regularisation factor of 10^-12.

    Its curvature alone would cost 31 at 40,000 rows, so that half of epsilon is all that is left.
    """
    cost = 2 * math.log1p(0.25 / (40_000 * 1e-12))
    assert cost == pytest.approx(31.3, abs=0.1)
    from privfit.baselines.erm import LOSSES
    from privfit.mechanisms import ERMProblem
    from privfit.mechanisms.perturbation.printed_erm import PrintedObjective

    mechanism, risk = PrintedObjective(regularisation=1e-12), ERMProblem(LOSSES["logistic"])
    schema = pf.Schema.box(-1, 1, n_features=3, target=[0, 1])
    for epsilon in (0.05, 1.0, 3.2):
        plan = mechanism.plan(
            PublicFacts(mechanism.geometry(schema, risk, "slope"), PrivacyParameters(Budget(epsilon)), 40_000), risk
        )
        assert "Lambda raised" in plan.event.mechanism
        assert plan.event.scale / plan.event.unit == pytest.approx(4 * plan.gradients.norms.l2 / epsilon, rel=0.01)
