"""A regression by a perturbed objective with matrices beside it: its parts, their price, and how far neighbours move
them.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import polars as pl
import pytest

import privfit as pf
from privfit.audit.recording import Call, RecordingNoise, ReplayingNoise, noise_from
from privfit.losses import SQUARED, capped_mean, smooth_pinball, tapered_huber
from privfit.losses.tabulated import TabulatedLoss
from privfit.mechanisms import QuadraticProblem, RegressionIntervals
from privfit.mechanisms.base import PublicFacts
from privfit.mechanisms.perturbation.amounts import ObjectiveAmounts, ObjectiveProportions
from privfit.mechanisms.perturbation.bought_moments import FOR_BREAD, FOR_MEAT
from privfit.mechanisms.perturbation.certainty import Certainty, Level
from privfit.mechanisms.perturbation.quantile import QuantileObjective
from privfit.mechanisms.perturbation.regression import ObjectiveRegression
from privfit.mechanisms.perturbation.regression_intervals import RegressionIntervalPlan
from privfit.mechanisms.perturbation.sandwich import Sandwich
from privfit.privacy import Budget, PrivacyParameters, exact
from privfit.privacy.parts import Additive

FEATURES = [pf.Numeric("n", 0, 9), pf.Category("s", [0, 1]), pf.Category("c", list("abc"))]
SCHEMA = pf.Schema(FEATURES, target=pf.Numeric("y", 0, 8))
BASE = [(float(i % 10), i % 2, "abc"[i % 3], float(i % 4)) for i in range(12)]
CORNERS = [(0.0, 0, "a", 0.0), (9.0, 1, "c", 8.0), (9.0, 0, "b", 1.0)]
MODELS = [pf.PoissonRegressor, pf.FractionalRegressor, pf.QuantileRegressor]
MECHANISMS = [
    ObjectiveAmounts().for_intervals(),
    ObjectiveProportions(),
    QuantileObjective(quantile=0.8),
    ObjectiveRegression().for_intervals(),
]


def fitted(model: type, rows: list[tuple], noise: RecordingNoise, **own: object) -> pf.PoissonRegressor:
    table = pl.DataFrame(rows, schema=["n", "s", "c", "y"], orient="row")
    with noise_from(noise):
        return model(1.0, schema=SCHEMA, intervals=True, **own).fit(table)


def calls_of(model: type, rows: list[tuple], replayed: list[Call] | None = None, **own: object) -> list[Call]:
    noise = RecordingNoise(3, lambda: 0) if replayed is None else ReplayingNoise(replayed, lambda: 0)
    fitted(model, rows, noise, **own)
    return noise.calls


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("adjacency", ["replace-one", "add-remove"])
def test_no_neighbour_moves_a_matrix_further_than_it_paid_for(model: type, adjacency: str) -> None:
    largest, own = np.zeros(2), {"adjacency": adjacency, "expected_rows": 13}
    for one in CORNERS:
        left = [*BASE, one]
        calls = calls_of(model, left, **own)
        parts = fitted(model, left, RecordingNoise(3, lambda: 0), **own).report_.event["parts"][-2:]
        for other in CORNERS:
            replayed = calls_of(model, BASE if adjacency == "add-remove" else [*BASE, other], calls, **own)
            for place, part in enumerate(parts):
                apart = calls[place - 2].values - replayed[place - 2].values
                moved = np.abs(apart).sum() if part["kind"] == "laplace" else np.abs(apart).max()
                largest[place] = max(largest[place], moved / part["sensitivity"])
    assert np.all(largest <= 1)
    # so that a much smaller bound would be seen; rows far from a quantile do not curve
    assert largest[1] > 0.05
    assert largest[0] > 0.05 or model is pf.QuantileRegressor


def planned(mechanism: ObjectiveRegression, budget: Budget, **own: object) -> RegressionIntervalPlan:
    buying = RegressionIntervals(mechanism)
    problem = buying.settle(QuadraticProblem(SQUARED, spread=True))
    facts = PublicFacts(buying.geometry(SCHEMA, problem), PrivacyParameters(budget, **own), 1000)  # type: ignore[arg-type]
    return buying.plan(facts, problem)


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_shares_add_up_to_epsilon(mechanism: ObjectiveRegression, delta: float) -> None:
    plan = planned(mechanism, Budget(0.7, delta))
    assert exact(plan.fit.event.epsilon) + exact(0.7) * (FOR_BREAD + FOR_MEAT) <= exact(0.7)
    assert plan.event.epsilon == 0.7
    assert plan.event.delta == plan.fit.event.delta
    assert plan.event.parts[:-2] == plan.fit.event.parts
    bought = [part for part in plan.event.parts[-2:] if isinstance(part, Additive)]
    for part, share in zip(bought, (FOR_BREAD, FOR_MEAT), strict=True):
        assert Fraction(part.sensitivity) / Fraction(part.scale) <= exact(0.7) * share * (1 + Fraction(1, 10**12))


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_what_one_means_does_not_depend_on_what_is_released(mechanism: ObjectiveRegression) -> None:
    plan = planned(mechanism, Budget(0.7))
    weights = plan.fit.weights
    assert weights.certificate is not None
    for centre, threshold in ((0.0, 1.0), (0.25, 0.125), (-0.5, 2.0**-13)):
        own = plan.fit.steps.at(weights, centre, threshold, weights.certificate.unit)
        tables = mechanism.answers(own.gradients.loss, plan.fit)
        assert (tables.most_curvature, tables.most_square) == (plan.matrices.bread.level, plan.matrices.meat.level)


@pytest.mark.parametrize(
    "loss", [capped_mean(-1.0, 0.5), capped_mean(-0.4, 1.7, sharpness=1.0), smooth_pinball(0.8, 0.125, 0.1, 0.3),
             tapered_huber(2.0, -0.2, 0.5), pf.losses.PROPORTION],
)  # fmt: skip
def test_tables_answer_from_0_to_1_what_the_loss_says(loss: pf.ConvexLoss) -> None:
    tables = TabulatedLoss.of(loss)
    assert tables is not None
    z, y = (each.ravel() for each in np.meshgrid(np.linspace(-40, 40, 1601), np.linspace(-1, 1, 41)))
    curvature, square = tables.curvature(z, y), tables.square(z, y)
    assert min(curvature.min(), square.min()) >= 0
    assert max(curvature.max(), square.max()) <= 1
    inside = np.abs(tables.curvature.axis(z, y)) < 15
    steepness = loss.taper * tables.most_curvature / 64  # half a cell, at twice the most that curvature changes
    assert np.allclose(curvature * tables.most_curvature, loss.curvature(z, y), atol=steepness)
    assert np.allclose(square[inside] * tables.most_square, loss.slope(z, y)[inside] ** 2, atol=0.07)


def test_cut_answers_are_cut_and_no_others_change() -> None:
    whole = TabulatedLoss.of(capped_mean(-1.0, 1.0))
    assert whole is not None
    cut = whole.up_to(0.25, curvature=True)
    z, y = (each.ravel() for each in np.meshgrid(np.linspace(-8, 8, 161), np.linspace(-1, 1, 41)))
    assert max(cut.curvature(z, y).max(), cut.square(z, y).max()) <= 1
    for name, most in (("curvature", "most_curvature"), ("square", "most_square")):
        own, other = (getattr(each, name)(z, y) * getattr(each, most) for each in (whole, cut))
        assert getattr(cut, most) < getattr(whole, most)
        assert np.allclose(other, np.minimum(own, getattr(cut, most)))


def test_a_moved_intercept_takes_up_what_errors_do_to_all_rows() -> None:
    rng = np.random.default_rng(0)
    x = np.column_stack([np.ones(400), rng.uniform(0, 1, 400)])
    sandwich = Sandwich(np.eye(2), x.T @ x, 1e-9)
    level = Level(np.array([1.0, 0.0]), 0.5)
    noise, none = 900 * np.eye(2), np.zeros(2)
    made = [
        Certainty.of(sandwich, np.ones(2), none, np.zeros((2, 2)), 1e-9, noise, 0.0, np.eye(2), 1.0, own)
        for own in (None, level)
    ]
    plain, moved = (np.diag(own.noise) for own in made)
    assert moved[1] == pytest.approx(plain[1])
    mean = np.array([1.0, x[:, 1].mean()])  # a row in the middle has the noise of the move alone
    assert mean @ made[1].noise @ mean == pytest.approx(0.25)
    assert mean @ made[0].noise @ mean != pytest.approx(0.25, rel=0.2)
    shrunk = Certainty.of(
        sandwich, np.ones(2), x.T @ x @ [0, 0.3], np.zeros((2, 2)), 1e-9, noise, 0.0, np.eye(2), 0.0, level
    )
    assert shrunk.weights[1] == pytest.approx(1.3)
    assert shrunk.weights @ mean == pytest.approx(np.ones(2) @ mean)


def test_second_moments_are_drawn_to_the_hessian_where_they_are_noise() -> None:
    rng = np.random.default_rng(1)
    x = rng.uniform(-1, 1, (5_000, 3))
    hessian, skewed = x.T @ x, (x * (1 + x[:, :1])).T @ (x * (1 + x[:, :1]))
    sandwich = Sandwich(np.eye(3), hessian, 1.0)
    assert np.allclose(sandwich.steadied(skewed, 1.0), skewed, rtol=1e-3, atol=5)
    noise = rng.normal(0, 1e4, (3, 3))
    off = [sandwich.steadied(own, 1e4) - 2 * hessian for own in (2 * hessian + noise + noise.T,)]
    assert np.linalg.norm(off) < 0.9 * np.linalg.norm(noise + noise.T)
    assert np.isfinite(Sandwich(np.eye(3), np.zeros((3, 3)), 1.0).steadied(skewed, 1.0)).all()


def test_a_corner_is_rounded_less_the_more_is_known_of_it() -> None:
    own = QuantileObjective(quantile=0.9)
    problem, found = QuadraticProblem(SQUARED), []
    for rows in (1_000, 10_000, 100_000, 1_000_000):
        facts = PublicFacts(own.geometry(SCHEMA, problem), PrivacyParameters(Budget(1.0)), rows)
        found.append(own.for_intervals()._weights(problem, facts).width)
        assert own._weights(problem, facts).width == 0.125
    assert found[0] == 0.125
    assert found == sorted(found, reverse=True)
    assert found[-1] == pytest.approx(found[-2] / 10 ** (1 / 3))
    assert ObjectiveRegression().for_intervals() != ObjectiveRegression()


def test_what_has_no_intervals_is_refused() -> None:
    with pytest.raises(pf.PrivacyError, match="without bands"):
        RegressionIntervals(replace(ObjectiveRegression(), bands=True)).check()
