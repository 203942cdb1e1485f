"""Regression by a perturbed objective: every sensitivity by brute force, the density of the weights, the plan."""

from __future__ import annotations

import itertools
import math
from dataclasses import fields, replace
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import Ridge as SklearnRidge

import privfit as pf
from privfit.losses import SQUARED, ConvexLoss
from privfit.mechanisms import QuadraticProblem
from privfit.mechanisms.base import PublicFacts
from privfit.mechanisms.perturbation import regression
from privfit.mechanisms.perturbation.defaults import FOR_CERTIFICATE
from privfit.mechanisms.perturbation.penalty_matrix import PenaltyMatrix
from privfit.mechanisms.perturbation.precision import minimised
from privfit.mechanisms.perturbation.problem import ERMPlan
from privfit.mechanisms.perturbation.regression import ObjectiveRegression, RegressionPlan
from privfit.mechanisms.perturbation.regression_weights import RegressionWeights
from privfit.mechanisms.perturbation.target_scale import PARTS_OF_ONE, THRESHOLDS, TargetScale
from privfit.privacy import Budget, PrivacyParameters, SeededNoise
from privfit.privacy.parts import CERTIFICATE, Additive, Laplace
from privfit.rows import CachedDesign, Rows, SampledDesign, sum_of_residuals
from privfit.schema import RowNorms
from privfit.tables import open_table
from tests.support.lengths import length
from tests.support.noise import RecordingNoise

ADJACENCIES = ("replace-one", "add-remove")
LINE = pf.Schema([pf.Numeric("x", -1, 1)], target=pf.Numeric("y", -1, 1))
COUNTS = pf.Schema([pf.Numeric("x", -1, 1)], target=pf.Numeric("y", 0, 9))
MIXED = pf.Schema(
    [pf.Numeric("n", 0, 9), pf.Category("s", [0, 1]), pf.Category("c", list("abcd")), pf.Category("d", list("uvw"))],
    target=pf.Numeric("y", -1, 1),
)
PROBLEM = QuadraticProblem(SQUARED)


def design_of(
    rows: list[tuple], schema: pf.Schema = LINE, mechanism: ObjectiveRegression | None = None
) -> CachedDesign:
    geometry = (mechanism or ObjectiveRegression()).geometry(schema, PROBLEM)
    return CachedDesign(Rows(open_table(np.array(rows, dtype=object)), schema, geometry))


def planned(
    schema: pf.Schema = LINE,
    *,
    epsilon: float = 1.0,
    delta: float = 0.0,
    adjacency: str = "replace-one",
    people: int = 1,
    rows: int = 1000,
    guess: int | None = None,
    problem: QuadraticProblem = PROBLEM,
    **settings_: Any,
) -> RegressionPlan:
    mechanism = ObjectiveRegression(**settings_)
    parameters = PrivacyParameters(Budget(epsilon, delta), adjacency, people)  # type: ignore[arg-type]
    facts = PublicFacts(mechanism.geometry(schema, problem), parameters, rows if adjacency == "replace-one" else guess)
    return mechanism.plan(facts, problem)


# -- scores: all neighbours of small tables --------------------------------------------------------


TARGETS = (-1.0, -0.25, 0.0, 0.009, 0.3, 1.0)


def neighbours_of(adjacency: str, people: int) -> list[tuple[list[float], list[float]]]:
    """All pairs of small tables of targets that differ in the rows of one person."""
    found = []
    for stay in itertools.combinations_with_replacement(TARGETS, 2):
        for leave in itertools.combinations_with_replacement(TARGETS, people):
            if adjacency == "add-remove":
                found.append(([*stay, *leave], list(stay)))
            else:
                enters = itertools.combinations_with_replacement(TARGETS, people)
                found += [([*stay, *leave], [*stay, *enter]) for enter in enters]
    return found


class Targets:
    """Only what scores read of a design."""

    def __init__(self, targets: list[float]) -> None:
        self.n_rows, self._targets = len(targets), np.array(targets)

    def total(self, part: Any) -> Any:
        return part(0, type("Chunk", (), {"target": self._targets}))


def largest_changes(adjacency: str, people: int, beyond: int) -> tuple[int, int, TargetScale]:
    """The largest change of a difference of two scores, of centres and of thresholds, over all neighbours."""
    parameters = PrivacyParameters(Budget(1.0), adjacency, people)  # type: ignore[arg-type]
    scale = TargetScale(parameters, 4, beyond, Fraction(1), Fraction(1))

    @cache
    def scores(targets: tuple[float, ...]) -> list[np.ndarray]:
        table: Any = Targets(list(targets))
        menus = [scale.centre_scores(table), *(scale.threshold_scores(table, centre) for centre in (0.0, 0.25))]
        return [np.array(menu) for menu in menus]

    centres = thresholds = 0
    for left, right in neighbours_of(adjacency, people):
        both = zip(scores(tuple(sorted(left))), scores(tuple(sorted(right))), strict=True)
        first, *others = (int(np.ptp(one - other)) for one, other in both)
        centres, thresholds = max(centres, first), max(thresholds, *others)
    return centres, thresholds, scale


@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("people", [1, 2])
@pytest.mark.parametrize("beyond", [1, PARTS_OF_ONE // 3, PARTS_OF_ONE])
def test_no_neighbours_change_a_difference_of_scores_by_more_than_claimed(
    adjacency: str, people: int, beyond: int
) -> None:
    centres, thresholds, scale = largest_changes(adjacency, people, beyond)
    assert centres == scale.centre_sensitivity  # and no less: the claim is tight
    assert thresholds <= scale.threshold_sensitivity
    if beyond == 1 and adjacency == "replace-one":
        assert thresholds == scale.threshold_sensitivity


def test_a_median_in_one_cell_of_wide_bounds_is_found() -> None:
    scale = planned(rows=50).scale
    scores = scale.centre_scores(Targets([0.3001, 0.3002, 0.3003] * 10))  # type: ignore[arg-type]
    assert max(scores) == 0
    assert sum(score == 0 for score in scores) == 1


# -- the shift -------------------------------------------------------------------------------------


@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_no_row_changes_the_sum_of_residuals_by_more_than_claimed(adjacency: str) -> None:
    plan = planned(MIXED, adjacency=adjacency)
    (part,) = plan.intercept
    assert isinstance(part, Laplace)
    most = 1 << plan.bits
    weights = np.round(np.random.default_rng(0).normal(0, 0.5, (plan.weights.gradients.norms.columns, 1)) * most)
    rows = [(n, s, c, "u", y) for n in (0, 9) for s in (0, 1) for c in "ad" for y in (-1.0, 0.2, 1.0)]
    none = design_of([(3, 1, "b", "v", 0.0)], MIXED)
    base = sum_of_residuals(none, weights, 0.5, 0.1, plan.bits)
    added = [
        sum_of_residuals(design_of([(3, 1, "b", "v", 0.0), row], MIXED), weights, 0.5, 0.1, plan.bits) - base
        for row in rows
    ]
    worst = max(added) - min(added) if adjacency == "replace-one" else max(map(abs, added)) + -(-most // 4)
    assert worst == part.sensitivity


def test_what_a_row_adds_does_not_depend_on_other_rows() -> None:
    rng = np.random.default_rng(1)
    rows = [
        (rng.uniform(0, 9), int(rng.integers(2)), "abcd"[rng.integers(4)], "uvw"[rng.integers(3)], rng.uniform(-1, 1))
        for _ in range(300)
    ]
    plan = planned(MIXED)
    weights = np.round(rng.normal(0, 2, (plan.weights.gradients.norms.columns, 1)) * (1 << plan.bits))
    alone = sum(sum_of_residuals(design_of([row], MIXED), weights, 0.1, 0.3, plan.bits) for row in rows)
    assert alone == sum_of_residuals(design_of(rows, MIXED), weights, 0.1, 0.3, plan.bits)


# -- the weights: densities of neighbours ----------------------------------------------------------


def log_density(plan: ERMPlan, design: SampledDesign, weights: np.ndarray, kind_scale: float = 1.0) -> float:
    """The logarithm of the density of the perturbed minimum at these weights, up to a constant. All rows of a small
    table are in its sample.
    """
    assert plan.noise is not None
    slopes, curvatures = plan.gradients.row_slopes, plan.gradients.row_curvatures
    term = -(design.gradient(weights, slopes) + plan.penalised(weights))
    hessian = design.hessian(weights, curvatures)[0] + plan.penalty_hessian(weights)
    total = 0.0
    for group, part in zip(plan.noise.groups, plan.noise.parts(), strict=True):
        total += length(group.kind, term[list(group.columns)].ravel() * part.unit / part.scale, group.blocks)
    return -total * kind_scale + float(np.linalg.slogdet(hessian)[1])


def worst_loss(plan: ERMPlan, left: CachedDesign, right: CachedDesign, kind_scale: float = 1.0) -> float:
    """The largest difference of log-densities over weights, near and far."""
    rng = np.random.default_rng(0)
    directions = [*np.eye(left.n_columns), np.ones(left.n_columns), *rng.normal(size=(5, left.n_columns))]
    sizes = [s * size for s in (-1, 1) for size in (0.3, 1, 3, 100)]
    tried = [np.zeros((left.n_columns, 1)), *(size * direction[:, None] for size in sizes for direction in directions)]
    one, other = left.sample(), right.sample()
    return max(
        abs(log_density(plan, one, weights, kind_scale) - log_density(plan, other, weights, kind_scale))
        for weights in tried
    )


PAIRS = [
    ([(9, 1, "a", "u", 1.0)], [(0, 0, "b", "v", -1.0)]),
    ([(9, 1, "a", "u", 0.1)], [(9, 1, "a", "u", -0.1)]),
    ([(0, 0, "a", "u", -1.0)], [(9, 1, "d", "w", -1.0)]),
    ([(9, 1, "a", "u", 0.0)], [(4, 0, "c", "v", 0.3)]),
]


@pytest.mark.parametrize("threshold", [1.0, 0.3, 0.01])
@pytest.mark.parametrize("noise", ["auto", "laplace", "linf", "l2", "mixed"])
@pytest.mark.parametrize("people", [1, 2])
def test_no_weights_are_much_likelier_for_one_neighbour(threshold: float, noise: str, people: int) -> None:
    stay = [(5, 0, "c", "w", 0.3), (1, 1, "d", "u", -0.2)]
    for adjacency in ADJACENCIES:
        plan = planned(MIXED, adjacency=adjacency, people=people, rows=2 + people, noise=noise)
        own = regression.RegressionWeights(noise=noise).at(plan.weights, 0.05, threshold)  # type: ignore[arg-type]
        for leave, enter in PAIRS:
            left = design_of(stay + leave * people, MIXED)
            right = design_of(stay + (enter * people if adjacency == "replace-one" else []), MIXED)
            claimed = plan.weights.facts.parameters.budget.epsilon * (1 - FOR_CERTIFICATE)
            assert worst_loss(own, left, right) <= claimed * (1 + 1e-9)


def test_the_attack_comes_close_and_catches_less_noise_and_less_ridge() -> None:
    plan = planned(MIXED, rows=1, epsilon=0.5)
    own = regression.RegressionWeights().at(plan.weights, 0.0, 0.3)
    left, right = design_of(PAIRS[0][0], MIXED), design_of(PAIRS[0][1], MIXED)
    claimed = plan.weights.facts.parameters.budget.epsilon * (1 - FOR_CERTIFICATE)
    assert 0.9 * claimed < worst_loss(own, left, right) <= claimed * (1 + 1e-9)
    assert worst_loss(own, left, right, kind_scale=1.12) > claimed
    norms = own.gradients.norms
    less = replace(own, ridge=own.ridge / 300, penalty=PenaltyMatrix.even(norms, 0.0, has_intercept=False))
    assert worst_loss(less, left, right) > claimed


def kinds(own: type[RegressionWeights] = RegressionWeights) -> list[type[RegressionWeights]]:
    """The mechanism of the weights, and all that are derived from it."""
    return [own, *(kind for derived in own.__subclasses__() for kind in kinds(derived))]


@pytest.mark.parametrize("kind", [kind for kind in kinds() if kind.has_own_loss])
def test_a_loss_that_no_plan_checks_has_no_parameters_and_contradicts_nothing(kind: type[RegressionWeights]) -> None:
    loss = kind().loss_at(0.0, 1.0)
    assert {own.name for own in fields(kind)} == {own.name for own in fields(RegressionWeights)}  # none is of the loss
    for targets in (np.linspace(-1.0, 1.0, 9), np.array([-1.0, 1.0])):  # as plans check others
        loss.check(targets)
    for stated in ("most_slope", "most_curvature"):
        with pytest.raises(ValueError, match=stated):
            replace(loss, **{stated: 0.9 * getattr(loss, stated)}).check(np.linspace(-1.0, 1.0, 9))


def test_a_loss_with_parameters_is_checked_by_every_plan(monkeypatch: pytest.MonkeyPatch) -> None:
    checked: list[str] = []
    monkeypatch.setattr(ConvexLoss, "check", lambda loss, targets: checked.append(loss.name))
    assert {kind.__name__ for kind in kinds() if not kind.has_own_loss} == {"QuantileWeights", "AmountWeights"}
    for model in (pf.QuantileRegressor, pf.PoissonRegressor, pf.LinearRegression):
        model(1.0, schema=LINE if model is not pf.PoissonRegressor else COUNTS, random_state=0).fit([[0.0]], [0.5])
    assert len(checked) == 2


def on_a_line(plan: ERMPlan, rows: list[tuple[float, float]], w: np.ndarray) -> np.ndarray:
    """The density of a minimum over one weight, on a grid: h(-J'(w)) J''(w), normalised by the grid."""
    assert plan.noise is not None
    assert plan.penalty is not None
    loss, ridge = plan.gradients.loss, plan.ridge + plan.penalty.largest
    slope, curvature = ridge * w, np.full(len(w), ridge)
    for x, y in rows:
        slope, curvature = slope + x * loss.slope(x * w, y), curvature + x * x * loss.curvature(x * w, y)
    found = np.exp(-np.abs(slope) / plan.noise.groups[0].scale) * curvature
    return np.asarray(found / found.sum())


@pytest.mark.parametrize("epsilon", [0.2, 2.0])
@pytest.mark.parametrize("threshold", [1.0, 0.05])
def test_the_integrated_probability_of_no_interval_is_much_larger_for_one_neighbour(
    epsilon: float, threshold: float
) -> None:
    """By quadrature in one dimension, with normalisation: the ratio of any two cells' probabilities."""
    plan = planned(epsilon=epsilon, rows=4, problem=replace(PROBLEM, fit_intercept=False))
    own = regression.RegressionWeights().at(plan.weights, 0.0, threshold)
    assert own.noise is not None
    reach = (60 * own.noise.groups[0].scale + 4) / own.ridge
    w = np.linspace(-reach, reach, 40_001)
    claimed = plan.weights.facts.parameters.budget.epsilon * (1 - FOR_CERTIFICATE)
    stay = [(1.0, 0.5), (-0.5, 0.1), (0.7, -1.0)]
    worst = 0.0
    for one, other in itertools.product([(1.0, 1.0), (1.0, -1.0), (-1.0, 0.0), (0.0, 0.0), (1.0, 0.03)], repeat=2):
        ratio = np.log(on_a_line(own, [*stay, one], w)) - np.log(on_a_line(own, [*stay, other], w))
        worst = max(worst, float(np.abs(ratio).max()))
    assert 0.5 * claimed < worst <= claimed * (1 + 1e-6)


# -- the plan and the release ----------------------------------------------------------------------


@pytest.mark.parametrize("delta", [0.0, 1e-6])
@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_parts_spend_at_most_the_price_exactly(delta: float, adjacency: str) -> None:
    for epsilon in (0.1, 1 / 3, 7.0):
        plan = planned(MIXED, epsilon=epsilon, delta=delta, adjacency=adjacency)
        weights = Fraction(plan.weights.facts.parameters.budget.epsilon)
        beside = sum((regression.FOR_CENTRE, regression.FOR_THRESHOLD, regression.FOR_INTERCEPT), Fraction(0))
        assert weights + beside * Fraction(epsilon) <= Fraction(epsilon)
        assert plan.event.delta in (0.0, delta)
        for part in plan.event.parts:
            if isinstance(part, Additive) and part.purpose == "intercept":
                assert Fraction(int(part.sensitivity)) <= Fraction(part.scale) * regression.FOR_INTERCEPT * Fraction(
                    epsilon
                )


@pytest.mark.parametrize("epsilon", [0.01, 1.0, 1000.0])
@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("rows", [1, 300, 10**7])
def test_every_threshold_has_a_plan(epsilon: float, adjacency: str, rows: int) -> None:
    """None is refused after the charge; the ridge is never below that of the plan, and the noise parts do not move."""
    plan = planned(MIXED, epsilon=epsilon, adjacency=adjacency, rows=rows)
    certificate = plan.weights.certificate
    assert certificate is not None
    assert certificate.scale == 0
    for threshold in THRESHOLDS[::4].tolist():
        own = regression.RegressionWeights().at(plan.weights, -1.0, threshold, certificate.unit)
        assert own.certificate is not None
        assert own.precision.solves
        assert own.ridge >= plan.weights.ridge
        assert own.noise == plan.weights.noise
        assert own.certificate.unit == certificate.unit
        assert 0 < own.certificate.scale < 2.0**62


def test_the_minimum_with_a_penalty_matrix_is_certified() -> None:
    rng = np.random.default_rng(2)
    rows = [
        (rng.uniform(0, 9), int(rng.integers(2)), "abcd"[rng.integers(4)], "uvw"[rng.integers(3)], rng.uniform(-1, 1))
        for _ in range(400)
    ]
    design, plan = design_of(rows, MIXED), planned(MIXED, rows=400, epsilon=5.0)
    own = regression.RegressionWeights().at(plan.weights, 0.0, 0.25)
    own = replace(own, penalty=PenaltyMatrix.even(own.gradients.norms, 70.0, has_intercept=False))
    term = rng.normal(0, 5, (own.gradients.norms.columns, 1))
    weights = minimised(own, design, term)
    slopes = own.gradients.row_slopes
    left = design.gradient(weights, slopes, own.gradients.slope_norm["linf"]) + own.penalised(weights) + term
    assert np.linalg.norm(left) <= own.precision.slack


def test_a_penalty_matrix_keeps_equal_block_sums_and_its_eigenvalues() -> None:
    norms = RowNorms.of(ObjectiveRegression().geometry(MIXED, PROBLEM))
    penalty = PenaltyMatrix(norms, (3.0, 5.0), (2.0, 0.0))
    vector = np.zeros((norms.columns, 1))
    for start, stop in norms.blocks:
        vector[start:stop, 0] = np.random.default_rng(start).dirichlet(np.ones(stop - start))
    image = penalty.gradient(vector)
    assert all(abs(image[start:stop].sum()) < 1e-12 for start, stop in norms.blocks)
    values = np.linalg.eigvalsh(penalty.hessian(vector))
    assert values.min() > -1e-12
    assert values.max() == pytest.approx(penalty.largest)


@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_draws_are_those_of_the_event(adjacency: str, fit_intercept: bool) -> None:
    noise, problem = RecordingNoise(0), replace(PROBLEM, fit_intercept=fit_intercept)
    mechanism, rows = ObjectiveRegression(), np.array([(3, 1, "b", "v", 0.0), (1, 0, "a", "w", 0.5)], dtype=object)
    parameters = PrivacyParameters(Budget(1.0), adjacency)  # type: ignore[arg-type]
    opened = Rows(open_table(rows), MIXED, mechanism.geometry(MIXED, problem))
    release = mechanism.release(opened, parameters, None, noise, problem)
    purposes = [part.purpose for part in release.event.parts]
    last = ["intercept"] if fit_intercept else []
    assert purposes[-len(last) - 1 :] == [CERTIFICATE, *last]
    assert purposes[: 1 + fit_intercept] == ["centre of the target", "threshold of residuals"][1 - fit_intercept :]
    assert len(noise.calls) == len(purposes)


# -- what it is worth ------------------------------------------------------------------------------


def skewed(rows: int = 30_000) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(5)
    x = rng.uniform(-1, 1, (rows, 2))
    return x, 3 + x[:, 0] + rng.exponential(1.0, rows)


@pytest.mark.parametrize("bound", [12.0, 2000.0])
@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_wide_bounds_cost_little_and_the_mean_is_kept(bound: float, delta: float) -> None:
    x, y = skewed()
    schema = pf.Schema.box(-1, 1, target=(-bound, bound))
    model = pf.LinearRegression(1.0, delta=delta, schema=schema, mechanism="objective", random_state=1).fit(x, y)
    assert model.coef_ == pytest.approx([1.0, 0.0], abs=0.1)
    assert float(np.mean(model.predict(x) - y)) == pytest.approx(0.0, abs=0.06)


def test_without_an_intercept_the_model_runs_through_the_origin() -> None:
    x, y = skewed()
    schema = pf.Schema.box(-1, 1, target=(-10, 10))
    model = pf.LinearRegression(1.0, schema=schema, mechanism="objective", fit_intercept=False, random_state=1)
    assert model.fit(x, y - 4).intercept_ == 0.0
    assert model.coef_ == pytest.approx([1.0, 0.0], abs=0.1)


def test_intervals_are_asked_of_the_functional_mechanism() -> None:
    x, y = skewed(500)
    schema = pf.Schema.box(-1, 1, target=(-10, 10))
    model = pf.LinearRegression(1.0, schema=schema, mechanism="objective", random_state=1).fit(x, y)
    with pytest.raises(AttributeError, match="Intervals were asked"):
        _ = model.coef_interval_


def test_noise_that_does_not_exist_is_refused() -> None:
    with pytest.raises(pf.PrivacyError, match="noise='loud'"):
        ObjectiveRegression(noise="loud").check()  # type: ignore[arg-type]


def test_the_seeded_source_repeats_a_fit() -> None:
    design = [(3, 1, "b", "v", 0.0)] * 20
    mechanism = ObjectiveRegression()
    geometry = mechanism.geometry(MIXED, PROBLEM)
    fits = [
        mechanism.release(
            Rows(open_table(np.array(design, dtype=object)), MIXED, geometry),
            PrivacyParameters(Budget(1.0)),
            None,
            SeededNoise(4),
            PROBLEM,
        ).value
        for _ in range(2)
    ]
    np.testing.assert_array_equal(fits[0].weights, fits[1].weights)
    assert math.isfinite(fits[0].intercept)


# -- which mechanism "auto" takes, from public facts -----------------------------------------------


def used(rows: int, **given_: Any) -> str:
    x, y = skewed(rows)
    schema = pf.Schema.box(-1, 1, target=(-10, 10))
    return pf.LinearRegression(**{"schema": schema, "random_state": 0, **given_}).fit(x, y).report_.mechanism


def test_auto_perturbs_the_objective_where_rows_times_epsilon_suffice() -> None:
    assert "objective" in used(1000, epsilon=1.0)
    assert "objective" not in used(999, epsilon=1.0)
    assert "objective" not in used(1999, epsilon=1.0, rows_per_person=2)
    assert "objective" not in used(3000, epsilon=1e9)  # nothing is gained by a threshold where there is no noise
    assert "objective" in used(500, epsilon=1.0, numeric="splines")


def test_auto_takes_moments_for_intervals_and_where_the_number_of_rows_is_not_known() -> None:
    assert "functional" in used(3000, epsilon=1.0, intervals=True)
    assert "functional" in used(3000, epsilon=1.0, adjacency="add-remove")
    assert "objective" in used(3000, epsilon=1.0, adjacency="add-remove", expected_rows=2000)


def test_intervals_with_a_mechanism_that_has_none_are_refused() -> None:
    with pytest.raises(pf.PrivacyError, match="intervals=True was given"):
        used(3000, intervals=True, mechanism="boosted-adassp", delta=1e-6)


# -- a penalty of the user's own -------------------------------------------------------------------


@pytest.mark.parametrize("alpha", [50.0, 5000.0])
@pytest.mark.parametrize("units", ["table", "scaled"])
def test_ridge_in_the_objective_is_the_ridge_of_scikit_learn_where_noise_is_small(alpha: float, units: str) -> None:
    rng = np.random.default_rng(3)
    rows = 30_000
    x, group = rng.uniform(0, 9, rows), rng.integers(0, 3, rows)
    y = 0.1 * x + np.array([0.0, 0.5, -0.5])[group] + rng.normal(0, 0.1, rows)
    schema = pf.Schema([pf.Numeric("x", 0, 9), pf.Category("g", ["a", "b", "c"])], target=pf.Numeric("y", -3, 5))
    table = np.column_stack([x.astype(object), np.array(list("abc"))[group], y])
    settings_ = {"mechanism": "objective", "schema": schema, "random_state": 0, "penalty_units": units}
    model = pf.Ridge(200.0, alpha=alpha, **settings_).fit(table[:, :2], y)
    size = 4.5 if units == "scaled" else 1.0  # half the width of the bounds
    design = np.column_stack([x / size, *(group == level for level in range(3))]).astype(float)
    plain = SklearnRidge(alpha=alpha).fit(design, y)
    np.testing.assert_allclose(model.coef_[0] * size, plain.coef_[0], rtol=0.03, atol=2e-3)
    np.testing.assert_allclose(model.coef_[1:] - model.coef_[1:].mean(), plain.coef_[1:], rtol=0.03, atol=5e-3)
    assert model.alpha_ == alpha


def test_an_automatic_ridge_is_the_public_rule_of_linear_regression() -> None:
    x, y = skewed(5000)
    given_ = {"schema": pf.Schema.box(-1, 1, target=(-10, 10)), "mechanism": "objective", "random_state": 2}
    one, other = pf.Ridge(1.0, **given_).fit(x, y), pf.LinearRegression(1.0, **given_).fit(x, y)
    np.testing.assert_array_equal(one.coef_, other.coef_)
    assert np.shape(one.alpha_) == (2,)
    assert np.min(one.alpha_) > 0
