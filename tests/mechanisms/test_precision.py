"""What the solver promises for every table, from public facts: no minimum is longer, no noise is, and no table is
solved less precisely.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import gammaincc

import privfit as pf
from privfit.losses import LOGISTIC, ConvexLoss, hinge, robust, smooth_hinge, tempered_logistic
from privfit.mechanisms.base import PublicFacts
from privfit.mechanisms.perturbation import precision as minima
from privfit.mechanisms.perturbation.output import output_precision
from privfit.mechanisms.perturbation.precision import (
    longest_minimum,
    minimised,
    most_rows,
    precision_of,
    quiet_ridge,
)
from privfit.mechanisms.perturbation.problem import ERMPlan, ERMProblem, Gradients
from privfit.privacy import Budget, PrivacyParameters, SeededNoise
from privfit.rows import CachedDesign, Rows
from privfit.rows.fixed_point import most_rounding
from privfit.schema import RowNorms
from privfit.tables import open_table
from tests.support.objective_noise import MIXED, drawn, gradients_of, planned

CORNERS = RowNorms(2.0, math.sqrt(2.0), 1.0, 2, (0, 1))
LOSSES: dict[str, ConvexLoss] = {
    "logistic": LOGISTIC,
    "tempered": tempered_logistic(0.5, 4.0),
    "hinge": smooth_hinge(0.3),
    "wide hinge": smooth_hinge(3.0),
    "huber": robust(0.2).scaled(0.0, 1.0),
}
FAR = {
    "a far target": robust(0.2).scaled(2.4e15, 1.0),
    "a huge threshold": robust(7.2e13).scaled(1.2e15, 1.0),
    "a threshold as large as its target": robust(5.7e11).scaled(3.8e8, 1.0),
}

# -- the ball --------------------------------------------------------------------------------------


def minimum_of(loss: ConvexLoss, design: np.ndarray, target: np.ndarray, ridge: float, noise: np.ndarray) -> np.ndarray:
    def gradient(weights: np.ndarray) -> np.ndarray:
        return design.T @ loss.slope(design @ weights, target) + ridge * weights + noise

    def hessian(weights: np.ndarray) -> np.ndarray:
        return (design.T * loss.curvature(design @ weights, target)) @ design + ridge * np.eye(len(weights))

    weights = np.zeros(design.shape[1])
    for _ in range(200):  # damped, because slopes have kinks
        here = gradient(weights)
        step, length = np.linalg.solve(hessian(weights), here), np.linalg.norm(here)
        size = next((s for s in 0.5 ** np.arange(40) if np.linalg.norm(gradient(weights - s * step)) < length), 0.0)
        if size == 0.0:  # as near as floats go: every further step would be the same
            break
        weights = weights - size * step
    return weights


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("ridge", [1e-3, 0.1, 5.0])
def test_no_minimum_is_longer_than_the_ball(name: str, ridge: float) -> None:
    """Tables of corner rows, separable ones among them, with noise that pushes the minimum out."""
    loss, longest = LOSSES[name], 0.0
    rng = np.random.default_rng(0)
    for target in itertools.product((-1.0, 1.0), repeat=4):
        design = rng.choice([-1.0, 1.0], (4, 2))
        plain = minimum_of(loss, design, np.array(target), ridge, np.zeros(2))
        push = -0.3 * plain / max(float(np.linalg.norm(plain)), 1e-12)
        for noise in (np.zeros(2), push):
            length = float(np.linalg.norm(minimum_of(loss, design, np.array(target), ridge, noise)))
            bound = longest_minimum(
                Gradients(CORNERS, loss), 4, ridge, float(np.linalg.norm(noise)), float(loss.excess_at_zero)
            )
            assert length <= bound
            longest = max(longest, length / bound)
    assert longest > 0.01  # it is no bound of nothing


@pytest.mark.parametrize("name", LOSSES)
def test_the_excess_at_zero_is_the_largest_one(name: str) -> None:
    loss = LOSSES[name]
    excess = [max(-_value(loss, z, y) for z in np.linspace(-60.0, 60.0, 241)) for y in (-1.0, 1.0)]
    assert max(excess) <= loss.excess_at_zero * (1 + 1e-3)  # of the trapezoids
    assert max(excess) > 0.4 * loss.excess_at_zero


def _value(loss: ConvexLoss, z: float, y: float) -> float:
    """The loss at z less that at 0: its slope's integral."""
    points = np.linspace(0.0, z, 2001)
    return float(np.trapezoid(np.broadcast_to(loss.slope(points, y), points.shape), points))


@pytest.mark.parametrize("name", LOSSES)
def test_what_a_grid_finds_of_the_excess_is_no_less_and_hardly_more(name: str) -> None:
    loss = replace(LOSSES[name], excess_at_zero=None)
    found = loss.found_excess(np.linspace(-1.0, 1.0, 9))
    assert LOSSES[name].excess_at_zero * 0.4 < found < 1.02 * LOSSES[name].excess_at_zero
    assert replace(LOSSES["huber"], slope=lambda z, y: -1.0 + 0 * z).found_excess(np.ones(1)) == math.inf


def test_a_loss_that_states_no_excess_is_planned_for_by_the_grid_and_kept_in_a_surer_ball() -> None:
    own = replace(LOGISTIC, excess_at_zero=None, likely_excess=0.7)
    sure, likely = (precision_of(Gradients(CORNERS, loss), 1000, 0.1, 0.0, 1e-6) for loss in (LOGISTIC, own))
    assert likely.slack <= 2 * sure.slack
    assert likely.ball > 10 * sure.ball
    assert sure.radius < likely.radius < 2 * sure.radius


@pytest.mark.parametrize(
    ("stated", "told"),
    [
        ({"excess_at_zero": 0.5}, "excess_at_zero"),
        ({"smoothness": 0.1, "most_curvature": None}, "smoothness"),
        ({"least_at_target": True}, "z = y"),
    ],
)
def test_a_loss_that_states_too_little_is_refused(stated: dict, told: str) -> None:
    with pytest.raises(ValueError, match=told):
        replace(LOGISTIC, **stated).check(np.array([-1.0, 1.0]))


# -- the noise -------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["laplace", "linf", "l2", "mixed", "gaussian"])
@pytest.mark.parametrize("classes", [1, 3])
def test_noise_is_hardly_ever_as_long_as_its_bound_and_not_far_from_it(kind: str, classes: int) -> None:
    plan = planned(MIXED, classes=classes, noise=kind, delta=1e-6 if kind == "gaussian" else 0.0)
    assert plan.noise is not None
    bound, source = plan.noise.bound, SeededNoise(7)
    lengths = [float(np.linalg.norm(drawn(plan.noise, source))) for _ in range(300)]
    assert max(lengths) < bound
    assert max(lengths) > bound / 40


@pytest.mark.parametrize("size", [1, 2, 10, 1000, 10**5])
def test_the_tail_of_pure_noise_is_below_its_probability(size: int) -> None:
    """The length of K-norm noise over its scale is a Gamma number."""
    nats = 30.0  # where the tail can still be computed
    assert gammaincc(size, size + math.sqrt(2 * size * nats) + nats) <= math.exp(-nats)


# -- the plan --------------------------------------------------------------------------------------


@given(
    st.sampled_from(sorted(LOSSES | FAR)),
    st.integers(1, 10**9),
    st.floats(1e-12, 1e12),
    st.floats(0, 1e9),
    st.sampled_from([1e-6, 1e-4]),
    st.sampled_from([1, 4]),
)
@settings(max_examples=300, deadline=None)
def test_what_the_theorem_assumes_holds_in_every_plan(
    name: str, rows: int, ridge: float, noise: float, tolerance: float, classes: int
) -> None:
    gradients = Gradients(CORNERS, (LOSSES | FAR)[name], classes, "one" if classes == 1 else "one-vs-rest")
    found = precision_of(gradients, rows, ridge, noise, tolerance)
    if not found.solves:
        return
    condition = found.smoothness / ridge
    curvature, offset = gradients.smoothness, gradients.offset
    steepest = gradients.slope_norm["linf"]
    rounding = most_rounding(rows, CORNERS.l2, 2, 3 * found.radius, steepest, curvature, offset, classes)
    rho = rounding + 2.0**-50 * (3 * ridge * found.radius + noise) + 128 * 2.0**-53 * found.smoothness * found.radius
    reached = 2 * rho * math.sqrt(math.sqrt(condition) + 1.5)
    assert found.ball >= found.radius >= longest_minimum(gradients, rows, ridge, noise, gradients.excess_at_zero)
    assert max(reached, 2 * tolerance * gradients.sensitivity["l2"]) <= ridge * found.radius / 4 * (1 + 1e-6)
    assert found.slack >= 2 * tolerance * gradients.sensitivity["l2"] * (1 - 1e-9)
    assert found.accelerated >= 4 * math.sqrt(condition) * math.log(1.75 * ridge * found.radius / found.slack) * (
        1 - 1e-9
    )
    if found.plain:
        assert found.slack >= 2 * rho * (1 - 1e-9)
        assert found.plain >= condition * math.log(reached / rho) * (1 - 1e-9)
    else:
        assert found.slack >= reached * (1 - 1e-9)


def test_more_rows_need_more_of_everything_so_that_a_plan_covers_every_part() -> None:
    plans = [precision_of(gradients_of(MIXED), rows, 3.0, 50.0, 1e-6) for rows in (10, 10**3, 10**5, 10**7)]
    for fewer, more in itertools.pairwise(plans):
        assert fewer.radius <= more.radius
        assert fewer.slack <= more.slack
        assert fewer.smoothness <= more.smoothness


def test_a_quiet_ridge_is_the_smallest_one() -> None:
    plan = planned(MIXED, rows=10**8)
    assert plan.noise is not None
    found = quiet_ridge(plan.gradients, 10**8, 1e-3, plan.noise, 0.99)
    slacks = [precision_of(plan.gradients, 10**8, found * times, plan.noise.bound, 1e-6).slack for times in (1.0, 0.99)]
    sds = [
        2 * math.sqrt(2 * plan.gradients.values) * slack / (found * times * 0.99 * 0.005)
        for slack, times in zip(slacks, (1.0, 0.99), strict=True)
    ]
    assert sds[0] <= 0.02 < sds[1]
    assert quiet_ridge(plan.gradients, 10**8, 10 * found, plan.noise, 0.99) == 10 * found


EXTREME: list[tuple[dict, dict]] = [
    ({"loss": robust(1e154)}, {"mechanism": pf.ObjectivePerturbation(noise="gaussian"), "delta": 1e-6}),
    ({"loss": robust(1e300)}, {}),
    ({"loss": robust(1e200)}, {"mechanism": "output"}),
    ({"loss": robust(1e-300)}, {"mechanism": "output"}),
    ({"loss": robust(1e-160)}, {"epsilon": 1e6, "mechanism": "output"}),
    ({"loss": robust(1.0)}, {"epsilon": 1e300, "mechanism": "output"}),
    ({"loss": robust(1.0)}, {"epsilon": 1e300}),
    ({"loss": robust(1.0), "penalty": 5e-324}, {}),
    ({"loss": robust(1.0), "penalty": 1.7e308}, {"mechanism": "output"}),
    ({"loss": robust(1.0)}, {"expected_rows": 10**400, "adjacency": "add-remove"}),
    ({"loss": robust(1.0)}, {"rows_per_person": 10**400}),
]


@pytest.mark.filterwarnings("ignore::privfit.PrivacyWarning")
@pytest.mark.parametrize(("loss", "more"), EXTREME)
def test_no_setting_leads_to_a_raw_error_or_an_endless_plan(loss: dict, more: dict) -> None:
    ledger = pf.Ledger(epsilon=1e301, delta=0.1)
    schema = pf.Schema([pf.Numeric("x", -1, 1)], target=pf.Numeric("y", 0, 1))
    model = pf.ERM(**loss, **more, schema=schema, numeric="slope", ledger=ledger)
    try:
        assert np.isfinite(model.fit(np.zeros((3, 1)), np.zeros(3)).coef_).all()
    except pf.PrivacyError:
        assert ledger.entries() == []


@pytest.mark.parametrize("rows", [10**3, 10**6, 10**8])
@pytest.mark.parametrize("adjacency", ["replace-one", "add-remove"])
def test_an_automatic_ridge_of_a_sharp_loss_is_never_refused(rows: int, adjacency: str) -> None:
    for epsilon in (0.01, 1.0, 1000.0):
        risk = ERMProblem(hinge())
        mechanism = pf.OutputPerturbation()
        geometry = mechanism.geometry(MIXED, risk, "splines")
        plan = mechanism.plan(PublicFacts(geometry, PrivacyParameters(Budget(epsilon), adjacency, 1, rows), rows), risk)  # type: ignore[arg-type]
        moved = plan.gradients.sensitivity["l2"] / plan.ridge
        assert (
            moved
            <= plan.event.sensitivity / plan.event.unit
            <= 1.2 * moved + math.sqrt(plan.gradients.values) / plan.event.unit
        )


def test_a_private_number_of_rows_has_a_public_limit() -> None:
    add, replace_one = PrivacyParameters(Budget(1.0), "add-remove"), PrivacyParameters(Budget(1.0))
    assert most_rows(add, None) == 1 << 21
    assert most_rows(PrivacyParameters(Budget(1.0), "add-remove", 1, 10**6), 10**6) == 4 * 10**6
    assert most_rows(replace_one, 123) == 123


# -- the solver ------------------------------------------------------------------------------------

SCHEMA = pf.Schema.box(-1, 1, n_features=2, target=["a", "b"])


def kept_of(table: list[tuple[float, float, str]], plan_geometry) -> CachedDesign:
    import polars as pl

    frame = pl.DataFrame(table, schema=["x0", "x1", "target"], orient="row")
    return CachedDesign(Rows(open_table(frame), SCHEMA, plan_geometry))


def plan_of(mechanism, loss: ConvexLoss, rows: int) -> tuple[ERMPlan, object]:
    risk = ERMProblem(loss, fit_intercept=False)
    geometry = mechanism.geometry(SCHEMA, risk, "slope")
    return mechanism.plan(PublicFacts(geometry, PrivacyParameters(Budget(1.0)), rows), risk), geometry


def exact_minimum(plan: ERMPlan, kept: CachedDesign, tilt: np.ndarray) -> np.ndarray:
    """By Newton's method on the rows themselves, damped, to the last place."""
    sample = kept.sample()
    design, target = (np.repeat(rows, sample._counts.astype(int), axis=0) for rows in (sample._design, sample._target))
    return minimum_of(plan.gradients.loss, design, target, plan.ridge, tilt[:, 0])[:, None]


HARD = {
    "all alike": [(1.0, 1.0, "b")] * 30,
    "collinear": [(value, -value, "b" if value > 0 else "a") for value in np.linspace(-1, 1, 30)],
    "one class": [(0.5, 0.1 * i / 30, "a") for i in range(30)],
    "tiny margins": [(2.0**-16, 0.0, "b")] * 29 + [(1.0, 0.0, "a")],
    "zeros": [(0.0, 0.0, "a")] * 30,
}


@pytest.mark.parametrize("table", HARD)
@pytest.mark.parametrize("loss", [LOGISTIC, smooth_hinge(0.05)])
@pytest.mark.parametrize("ridge", [0.01, 10.0])
@pytest.mark.parametrize("broken", [False, True])
def test_every_table_is_solved_as_precisely_as_planned(
    table: str, loss: ConvexLoss, ridge: float, broken: bool, monkeypatch
) -> None:
    if broken:  # then accelerated descent has to do it alone
        monkeypatch.setattr(minima, "_usual_minimum", lambda *_: None)
    plan, geometry = plan_of(pf.OutputPerturbation(ridge=ridge), loss, 30)
    kept, tilt = kept_of(HARD[table], geometry), np.zeros((2, 1))
    found = minimised(plan, kept, tilt)
    assert np.linalg.norm(found) <= plan.precision.ball
    if plan.precision.solves:
        assert np.linalg.norm(found - exact_minimum(plan, kept, tilt)) <= plan.precision.slack / plan.ridge


@pytest.mark.parametrize("start", [np.nan, np.inf, 1e300])
def test_whatever_the_usual_solver_leaves_a_point_of_the_ball_is_released(start: float, monkeypatch) -> None:
    monkeypatch.setattr(minima, "_usual_minimum", lambda *_: minima.Minimum(np.full((2, 1), start), math.nan, 1))
    for ridge in (1e-6, 1.0):
        plan, geometry = plan_of(pf.OutputPerturbation(ridge=ridge), LOGISTIC, 30)
        found = minimised(plan, kept_of(HARD["collinear"], geometry), np.zeros((2, 1)))
        assert np.linalg.norm(found) <= plan.precision.ball


def test_a_tiny_ridge_gets_a_ball_and_a_usual_one_a_minimum() -> None:
    gradients = gradients_of(MIXED)
    ball, far = output_precision(gradients, 1000, 1e-9)
    assert not ball.solves
    assert far == 2 * ball.ball < gradients.sensitivity["l2"] / 1e-9
    solved, near = output_precision(gradients, 1000, 10.0)
    assert solved.solves
    assert 1 < near / (gradients.sensitivity["l2"] / 10.0) < 1.001
    with pytest.raises(pf.PrivacyError, match="Nothing was charged"):
        output_precision(gradients_of(MIXED, hinge()), 10**9, 1.0)


def test_slopes_are_cut_where_a_loss_does_not_keep_to_what_it_states() -> None:
    lying = ConvexLoss(
        lambda z, y: np.where(np.abs(y - 0.5) < 1e-9, np.nan, 1e9),
        lambda z, y: 0 * z,
        most_slope=1.0,
        most_curvature=1.0,
    )
    respond = Gradients(CORNERS, lying).row_slopes
    assert respond(np.zeros(3), np.array([0.0, 0.5, 1.0])).tolist() == [1.0, 0.0, 1.0]
