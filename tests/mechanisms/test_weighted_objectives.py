"""Rows with weights, and classes with weights, in perturbed objectives: how far one row and its weight move what is
released, by brute force; and versions with too little noise, which are caught.
"""

from __future__ import annotations

from itertools import product

import numpy as np
import polars as pl
import pytest

import privfit as pf
from privfit.losses import LOGISTIC
from privfit.mechanisms.base import PublicFacts
from privfit.mechanisms.perturbation.balanced import FOR_COUNTS, BalancedPerturbation, balanced_weights
from privfit.mechanisms.perturbation.defaults import FOR_CERTIFICATE
from privfit.mechanisms.perturbation.interaction_terms import STEP_BITS, IntegerGradients, integer_weights, score_bits
from privfit.mechanisms.perturbation.precision import minimised
from privfit.mechanisms.perturbation.problem import ERMProblem
from privfit.mechanisms.perturbation.quantile import shift_scores, shift_sensitivity
from privfit.privacy import Budget, PrivacyParameters, exact
from privfit.rows import (
    COUNT_UNIT,
    CachedDesign,
    Interactions,
    Rows,
    RowWeights,
    count_residuals_up_to,
    sum_of_residuals,
    weighed_rows,
    weights_of_classes,
)
from privfit.rows.row_weights import SHARE_STEPS
from privfit.tables import open_table
from tests.conformance.test_perturbed import worst_loss
from tests.support.objective_noise import less_noise

EPSILON, BOUND = 0.7, 3.0
FEATURES = [pf.Category(name, ["p", "q", "r"]) for name in "uv"]
CLASSES = pf.Schema(FEATURES, pf.Category("y", ["a", "b"]))
OTHERS = [("r", "r", "a", 1.0), ("p", "q", "b", 0.5)]
CHANGED = [
    ("p", "p", "a", 3.0),
    ("q", "q", "b", 3.0),
    ("q", "q", "b", 50.0),
    ("p", "p", "a", 0.0),
    ("p", "q", "a", 0.7),
]
PAIRS = [(one, other) for one, other in product(CHANGED, repeat=2) if one < other]


def design(rows: list[tuple], schema: pf.Schema, geometry, features=None, by_class=None) -> CachedDesign:
    frame = pl.DataFrame(rows, schema=[*(column.name for column in schema.columns), "w"], orient="row")
    weights = RowWeights(pf.Numeric("w", 0, BOUND), BOUND, 1)
    return CachedDesign(Rows(open_table(frame), schema, geometry, weights=weights), features, by_class=by_class)


def planned(model, schema: pf.Schema, adjacency: str, rows: int, weights: tuple[float, ...] = ()):
    mechanism = model._chosen_mechanism()
    problem = ERMProblem(model._convex_loss(schema), True, max_weight=BOUND, class_weights=weights)
    geometry = mechanism.geometry(schema, problem, "slope")
    parameters = mechanism.for_rows_left_out(PrivacyParameters(Budget(EPSILON), adjacency, 1, 2), rows)
    return mechanism.plan(PublicFacts(geometry, parameters, rows), problem), geometry


MODELS = [
    pf.LogisticRegression(EPSILON),
    pf.LogisticRegression(EPSILON, mechanism=pf.ObjectivePerturbation(steepest=1.0, ridge=0.1)),
    pf.LinearSVC(EPSILON),
]


@pytest.mark.parametrize("adjacency", ["replace-one", "add-remove"])
@pytest.mark.parametrize("by_class", [(), (1.0, 4.0)])
@pytest.mark.parametrize("model", MODELS)
def test_no_weights_are_much_likelier_for_one_row_and_its_weight(model, by_class, adjacency) -> None:
    plan, geometry = planned(model, CLASSES, adjacency, len(OTHERS) + 1, by_class)
    shares = np.array(by_class) / max(by_class) if by_class else None
    losses = []
    for one, other in PAIRS if adjacency == "replace-one" else [(row, None) for row in CHANGED]:
        tables = [OTHERS + [row] * (row is not None) for row in (one, other)]
        left, right = (design(rows, CLASSES, geometry, by_class=shares) for rows in tables)
        losses.append(worst_loss(plan, left, right))
    assert max(losses) <= EPSILON * (1 - FOR_CERTIFICATE) * (1 + 1e-9)
    assert max(losses) > 0.5 * EPSILON or plan.ridge > 1


def test_the_attack_comes_close_to_the_claim_and_catches_less_noise() -> None:
    """Rows of the largest weight, and a row in place of one that counts nothing; a larger one counts no more."""
    plan, geometry = planned(MODELS[0], CLASSES, "replace-one", 1)
    tables = [[("p", "p", "a", 3.0)], [("q", "q", "b", 99.0)], [("q", "q", "b", 0.0)]]
    first, largest, none = (design(rows, CLASSES, geometry) for rows in tables)
    assert 0.95 * EPSILON < worst_loss(plan, first, largest) <= EPSILON
    assert worst_loss(plan, first, none) < worst_loss(plan, first, largest)
    assert worst_loss(less_noise(plan, 1.1), first, largest) > EPSILON


@pytest.mark.parametrize("noise", ["l2", "laplace"])
def test_minima_move_no_further_than_output_noise_covers(noise) -> None:
    mechanism = pf.OutputPerturbation(ridge=3.0, noise=noise)
    plan, geometry = planned(pf.LogisticRegression(EPSILON, mechanism=mechanism), CLASSES, "replace-one", 3)
    assert plan.ridge == pytest.approx(3.0 / BOUND)
    moved = []
    for one, other in PAIRS:
        minima = [
            np.rint(minimised(plan, kept, np.zeros((kept.n_columns, 1))) * plan.event.unit)
            for kept in (design([*OTHERS, row], CLASSES, geometry) for row in (one, other))
        ]
        moved.append(np.linalg.norm((minima[0] - minima[1]).ravel(), 1 if noise == "laplace" else 2))
    assert 0.15 * plan.event.sensitivity < max(moved) <= plan.event.sensitivity


def test_sums_over_cells_move_no_more_than_rows_without_weights_do() -> None:
    """Interaction terms: sums of slopes and curvatures, and the scores that a pair is chosen by."""
    schema = CLASSES
    geometry = pf.ObjectivePerturbation().geometry(schema, ERMProblem(LOGISTIC), "slope")
    bits = score_bits(geometry.n_columns)
    weights = integer_weights(np.random.default_rng(1).normal(0, 1, (geometry.n_columns, 1)), bits)
    own, pair = IntegerGradients(LOGISTIC, 1), Interactions(geometry).pairs(500)[0]
    rows = [(*cells, y, w) for *cells, y, w in product("pqr", "pr", "ab", (0.0, 0.4, 1.1, 2.0, 3.0, 9.0))]
    many = OTHERS * 3

    def found(table: list[tuple]) -> tuple[np.ndarray, int]:
        cells = design(table, schema, geometry).cells(weights)
        sums = [cells.sums([pair], responses, bits - STEP_BITS)[0] for responses in (own.slopes, own.curvatures)]
        return np.concatenate(sums), own.score(*cells.sums_and_counts([pair], own.slopes, bits - STEP_BITS)[0])

    before, score = found(many)
    moves = [(np.abs(sums - before).sum(), abs(new - score)) for sums, new in (found([*many, row]) for row in rows)]
    assert 0.8 * own.sums_sensitivity < max(move for move, _ in moves) <= own.sums_sensitivity
    assert max(move for _, move in moves) <= own.score_sensitivity / 2


NUMBERS = pf.Schema([pf.Numeric("x", -1, 1)], pf.Numeric("y", -1, 1))
NUMBER_ROWS = [(x, y, w) for x, y, w in product((-1.0, 0.3, 1.0), (-1.0, 0.1, 1.0), (0.0, 0.5, 2.9, 3.0, 99.0))]


def test_residuals_move_no_more_than_rows_without_weights_do() -> None:
    geometry = NUMBERS.geometry()
    bits, whole = 20, np.array([[1 << 18], [1 << 19]], dtype=np.float64)
    most, grid = 1 << bits, np.linspace(-0.9, 0.9, 7)
    others = [(0.5, 0.2, 1.0), (-0.2, -0.9, 2.0)]

    def found(rows: list[tuple]) -> tuple[int, int, np.ndarray]:
        kept = design(rows, NUMBERS, geometry)
        counts = count_residuals_up_to(kept, whole, 0.1, 1.0, bits, grid)
        scores = shift_scores(counts.tolist(), weighed_rows(kept, COUNT_UNIT), 0.9)
        return sum_of_residuals(kept, whole, 0.1, 1.0, bits), weighed_rows(kept, most), np.array(scores)

    before = found(others)
    after = [found([*others, row]) for row in NUMBER_ROWS]
    assert max(abs(sums - before[0]) for sums, *_ in after) == most
    assert max(rows - before[1] for _, rows, _ in after) == most
    bound = shift_sensitivity(PrivacyParameters(Budget(1.0), "add-remove"), 0.9) * COUNT_UNIT
    spread = [np.ptp(scores - before[2]) for *_, scores in after]
    assert 0.4 * bound < max(spread) <= bound


def test_counts_of_classes_move_no_more_than_their_noise_covers() -> None:
    mechanism = BalancedPerturbation(fit=pf.ObjectivePerturbation())
    problem = ERMProblem(LOGISTIC, max_weight=BOUND)
    geometry = mechanism.geometry(CLASSES, problem, "slope")
    for adjacency in ("replace-one", "add-remove"):
        parameters = PrivacyParameters(Budget(EPSILON), adjacency, 1, 3)
        part = mechanism.plan(PublicFacts(geometry, parameters, 3), problem).event.parts[0]
        assert part.sensitivity / part.scale <= EPSILON * FOR_COUNTS
        tables = [weights_of_classes(design([*OTHERS, row], CLASSES, geometry), 2, COUNT_UNIT) for row in CHANGED]
        if adjacency == "add-remove":
            tables.append(weights_of_classes(design(OTHERS, CLASSES, geometry), 2, COUNT_UNIT))
            moves = [np.abs(one - tables[-1]).sum() for one in tables]
        else:
            moves = [np.abs(one - other).sum() for one in tables for other in tables]
        assert max(moves) == part.sensitivity


def test_shares_of_a_balanced_plan_add_up_to_the_price_and_depend_on_counts_alone() -> None:
    mechanism = BalancedPerturbation(fit=pf.ObjectivePerturbation())
    geometry = mechanism.geometry(CLASSES, ERMProblem(LOGISTIC), "slope")
    facts = PublicFacts(geometry, PrivacyParameters(Budget(EPSILON)), 1000)
    plan = mechanism.plan(facts, ERMProblem(LOGISTIC))
    assert plan.inner is not None
    assert exact(plan.inner.facts.parameters.budget.epsilon) <= exact(EPSILON) * (1 - FOR_COUNTS)
    assert plan.event.epsilon == EPSILON
    np.testing.assert_allclose(balanced_weights(np.array([100.0, 400.0]), 10.0), [1.0, 0.25])
    np.testing.assert_allclose(balanced_weights(np.array([-100.0, 400.0]), 10.0), [1.0, 0.025])


def test_weights_are_whole_steps_from_zero_to_one() -> None:
    own = RowWeights(pf.Numeric("w", 0, BOUND), BOUND, 1)
    shares = own.shares(np.array([0.0, 1e-9, 1.0, 3.0, 1e300]))
    assert (shares * SHARE_STEPS % 1 == 0).all()
    assert shares.tolist()[::2] == [0.0, round(SHARE_STEPS / 3) / SHARE_STEPS, 1.0]
    assert shares[-2] == 1.0
