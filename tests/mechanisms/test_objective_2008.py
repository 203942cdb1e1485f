"""Chaudhuri and Monteleoni (NIPS 2008): Algorithms 1 and 2 as printed, by public parameters. The second is not private,
and no ledger takes it.

That it loses more than it states where the ridge is small is in papers/tests/bench/test_printed_objective.py.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize

import privfit as pf
from privfit.features import ShortenedRows
from privfit.losses import LOGISTIC
from privfit.mechanisms import ERMProblem
from privfit.mechanisms.base import PublicFacts
from privfit.mechanisms.perturbation.objective import PRINTED_2008
from privfit.privacy import Budget, PrivacyParameters
from privfit.rows import Rows
from privfit.tables import open_table
from tests.support.beats import assert_told_in_order
from tests.support.noise import RecordingNoise

BALL = pf.Schema.box(-1, 1, n_features=3, target=[-1, 1])
LAMBDA, N = 0.02, 150


def printed(ridge: float = LAMBDA * N, **settings: Any) -> pf.ObjectivePerturbation:
    return pf.ObjectivePerturbation(ridge=ridge, calibration="paper", **settings)


def in_ball() -> ERMProblem:
    return ERMProblem(LOGISTIC, fit_intercept=False, features=ShortenedRows(3, 1.0, constant=False))


def planned(mechanism: Any, epsilon: float, n: int, adjacency: str = "replace-one", people: int = 1) -> Any:
    terms = PrivacyParameters(Budget(epsilon), adjacency, people, n)  # type: ignore[arg-type]
    return mechanism.plan(PublicFacts(mechanism.geometry(BALL, in_ball(), "slope"), terms, n), in_ball())


@pytest.fixture(scope="module")
def ball() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(1)
    X = rng.normal(size=(N, 3))
    X /= 1.0001 * np.sqrt((X**2).sum(axis=1, keepdims=True))
    return X, np.where(X[:, 0] + 0.3 * rng.normal(size=N) > 0, 1, -1)


def rows_of(ball: tuple[np.ndarray, np.ndarray]) -> Rows:
    table = np.column_stack([*ball]).astype(np.float64)
    return Rows(open_table(table), BALL, printed().geometry(BALL, in_ball(), "slope"))


def model_of(mechanism: Any, **settings: Any) -> pf.LogisticRegression:
    return pf.LogisticRegression(0.5, mechanism=mechanism, schema=BALL, row_norm=1.0, fit_intercept=False, **settings)


# -- the printed statement -------------------------------------------------------------------------


@pytest.mark.parametrize("epsilon", [0.02, 0.5, 4.0])
@pytest.mark.parametrize("ridge", [0.01, 3.0, 140.0])
@pytest.mark.parametrize("adjacency", ["replace-one", "add-remove"])
def test_the_linear_term_has_the_printed_noise_whatever_the_ridge(epsilon, ridge, adjacency) -> None:
    """Density proportional to exp(-epsilon |b| / 2), n lambda as it is, and nothing beside it."""
    plan = planned(printed(ridge), epsilon, 1000, adjacency)
    (part,) = plan.event.parts
    assert plan.event.kinds == ("k-norm-l2",)
    assert part.scale / part.unit == pytest.approx(2 / epsilon, rel=1e-9)
    assert plan.ridge == ridge
    assert plan.gradients.loss == LOGISTIC
    assert plan.event.mechanism == "objective perturbation, as printed in 2008"


def test_drawn_noise_has_the_printed_law() -> None:
    """Its length is of a gamma distribution, with the number of columns and 2 / epsilon."""
    part, noise = planned(printed(), 0.5, N).event.parts[0], RecordingNoise()
    drawn = np.array([noise.l2(np.zeros(3, dtype=np.int64), part.scale) for _ in range(20_000)]) / part.unit
    lengths = np.sqrt((drawn**2).sum(axis=1))
    assert lengths.mean() == pytest.approx(3 * 4, rel=0.02)
    assert lengths.var() == pytest.approx(3 * 16, rel=0.05)
    assert np.abs(drawn.mean(axis=0)).max() < 5 * math.sqrt(4 * 16 / 20_000)


def test_the_fit_minimises_the_objective_as_printed(ball) -> None:
    X, y = ball
    noise = RecordingNoise(7)
    released = printed().release(rows_of(ball), PrivacyParameters(Budget(0.5)), None, noise, in_ball())
    (call,) = noise.calls
    b = call.output / released.event.unit

    def objective(w: np.ndarray) -> float:
        return LAMBDA / 2 * w @ w + b @ w / N + np.mean(np.logaddexp(0, -y * (X @ w)))

    weights = minimize(objective, np.zeros(3), options={"gtol": 1e-9}).x
    assert released.value.weights[:, 0] == pytest.approx(weights, abs=1e-3)


def test_several_rows_a_person_have_noise_in_proportion() -> None:
    one, three = (planned(printed(), 0.5, N, people=people) for people in (1, 3))
    assert three.sd == pytest.approx(3 * one.sd)


@pytest.mark.parametrize("epsilon", [0.02, 0.5, 4.0])
def test_algorithm_1_is_output_perturbation_with_the_printed_noise(epsilon) -> None:
    """Density proportional to exp(-n lambda epsilon |b| / 2), but for what a solver leaves open."""
    plan = planned(pf.OutputPerturbation(ridge=14_000 * 0.01, noise="l2"), epsilon, 14_000)
    assert 1 <= plan.event.scale / plan.event.unit / (2 / (14_000 * 0.01 * epsilon)) < 1.05
    assert plan.ridge == 140


# -- its correction --------------------------------------------------------------------------------


@pytest.mark.parametrize("ridge", [0.001, 0.1, 1.0])
def test_one_record_breaks_it_at_a_small_ridge_and_not_the_repair(ridge) -> None:
    """The record (1, +1) against (0, .), all others zero, at the output 0: slopes of a half and none, curvatures of a
    quarter and none."""

    def loss(plan: Any) -> float:
        scale = plan.event.scale / plan.event.unit
        return math.log1p(1 / (4 * plan.ridge)) - 1 / (2 * scale)

    assert loss(planned(printed(ridge), 0.1, 1000)) > 0.1
    repaired = planned(pf.ObjectivePerturbation(ridge=ridge, noise="l2", steepest=1.0), 0.1, 1000)
    assert abs(loss(repaired)) < 0.1
    assert repaired.ridge > 10 * ridge


# -- never taken for private -----------------------------------------------------------------------

TUNED = pf.TunedPerturbation(candidates=(pf.ObjectivePerturbation(ridge=3.0), printed()))


@pytest.mark.parametrize("mechanism", [printed(), printed(1e6), TUNED], ids=["small ridge", "large", "tuned"])
def test_a_ledger_is_refused_by_the_mechanism_itself(mechanism, ball, monkeypatch) -> None:
    ledger, noise = pf.Ledger(epsilon=5.0), RecordingNoise()
    rows = rows_of(ball)
    monkeypatch.setattr(Rows, "batches", lambda self: pytest.fail("rows were read"))
    with pytest.raises(pf.PrivacyError) as caught:
        mechanism.release(rows, PrivacyParameters(Budget(0.5)), ledger, noise, in_ball())
    told = ["A ledger was given", "leaves out the curvature of one row", "takes private fits only", "leave out"]
    assert_told_in_order(str(caught.value), told)
    assert ledger.entries() == []
    assert noise.calls == []


@pytest.mark.parametrize("mechanism", [printed(), TUNED], ids=["alone", "tuned"])
def test_a_ledger_is_refused_by_the_estimator_and_the_report_says_why(mechanism, ball) -> None:
    ledger = pf.Ledger(epsilon=5.0)
    with pytest.raises(pf.PrivacyError, match="leaves out the curvature"):
        model_of(mechanism, ledger=ledger).fit(*ball)
    assert ledger.entries() == []
    report = model_of(mechanism).fit(*ball).report_
    assert not report.private
    assert report.not_private_because == (PRINTED_2008,)


def test_what_the_library_does_by_default_is_private() -> None:
    assert pf.ObjectivePerturbation().reasons_not_private(in_ball()) == ()
    assert pf.TunedPerturbation().reasons_not_private(in_ball()) == ()


@pytest.mark.parametrize(
    ("mechanism", "beats"),
    [
        (pf.ObjectivePerturbation(calibration="printed"), ["calibration='printed'", "('tight', 'paper')", "Use"]),  # type: ignore[arg-type]
        (pf.ObjectivePerturbation(calibration="paper"), ["ridge='auto'", "no rule", "ridge=140.0"]),
        (printed(noise="laplace"), ["noise='laplace'", "the paper has noise 'l2'", "Leave them out"]),
        (printed(steepest=0.5), ["steepest=0.5", "the loss as it is", "Leave them out"]),
        (printed(interactions=1), ["interactions=1", "no interactions", "Leave them out"]),
    ],
)
def test_what_the_paper_does_not_have_is_refused(mechanism, beats, ball) -> None:
    with pytest.raises(pf.PrivacyError) as caught:
        model_of(mechanism).fit(*ball)
    assert_told_in_order(str(caught.value), beats)


def test_interactions_of_the_estimator_are_refused_too(ball) -> None:
    with pytest.raises(pf.PrivacyError, match="no interactions"):
        model_of(printed(), interactions=2).fit(*ball)
