"""Objective perturbation as printed in 2008 loses more than it states; privfit's rule does not, by the same exact
computation.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import expit

import privfit as pf
from privfit.losses import LOGISTIC, ConvexLoss, tempered_logistic
from privfit.privacy import SeededNoise, seeded_generator
from privfit_papers.bench.printed_objective import largest_loss, perturbed_minima, two_column_loss
from privfit_papers.bench.simulated import Fold, Printed, box, plan_in_ball

RIDGES = (0.001, 0.1, 1.0, 10.0, 100.0)
OTHERS = [np.array(others)[:, None] for others in ([0.0], [1.0] * 5, [-1.0] * 5, [0.7, -0.3, 1.0, -1.0])]
"""Records that both tables share."""


def every_loss(loss: ConvexLoss, scale: float, ridge: float) -> list[float]:
    return [
        *(largest_loss(loss, scale, ridge, others=others) for others in OTHERS),
        two_column_loss(loss, scale, ridge),
    ]


# -- the counterexample ----------------------------------------------------------------------------


@pytest.mark.parametrize(("ridge", "loss"), [(0.001, 5.50), (0.1, 1.23), (1.0, 0.235)])
def test_the_printed_method_loses_far_more_than_its_epsilon_of_a_tenth(ridge, loss) -> None:
    assert largest_loss(LOGISTIC, 2 / 0.1, ridge) == pytest.approx(loss, abs=0.006)


@pytest.mark.parametrize("ridge", [0.001, 0.1, 1.0])
def test_one_record_against_nothing_breaks_the_printed_method_at_a_single_output(ridge) -> None:
    """At w = 0 by hand: the record (1, +1) has a slope of a half and a curvature of a quarter, the record (0, .) has
    neither."""
    by_hand = math.log1p(1 / (4 * ridge)) - 0.1 / 4
    found = largest_loss(LOGISTIC, 2 / 0.1, ridge, np.array([[0.0], [1.0]]), np.array([[0.0]]))
    assert found == pytest.approx(by_hand, rel=1e-12)
    assert found > 0.1


@pytest.mark.parametrize("epsilon", [0.1, 1.0])
def test_the_printed_method_keeps_its_word_where_the_ridge_is_large(epsilon) -> None:
    assert max(every_loss(LOGISTIC, 2 / epsilon, 2 / epsilon)) <= epsilon


@pytest.mark.parametrize("part", [0.1, 0.5, 0.75])
def test_two_columns_break_the_printed_method_wherever_the_ridge_is_smaller(part) -> None:
    assert two_column_loss(LOGISTIC, 2 / 0.1, part * 2 / 0.1) > 0.1


def test_the_papers_own_learning_curve_begins_with_fits_that_are_not_private() -> None:
    assert two_column_loss(LOGISTIC, 2 / 0.02, 1000 * 0.01, rows=1000) > 1.5 * 0.02


def test_the_density_behind_the_loss_is_that_of_the_output() -> None:
    """Draws of the printed fit have the stated density: its integral over an interval is the share of fits there."""
    epsilon, ridge, record = 0.5, 0.2, 1.0

    def density(w: float) -> float:
        return math.exp(-epsilon / 2 * abs(ridge * w - expit(-w))) * epsilon / 4 * (ridge + expit(w) * expit(-w))

    features, labels = np.array([[record], [0.0]]), np.array([1.0, 1.0])
    weights = Printed().weights(Fold(features, labels, features, labels, ridge=ridge / 2), epsilon, 20_000, 3)[0]
    assert quad(density, -400, 400, points=[0.0], limit=500)[0] == pytest.approx(1, abs=1e-6)
    for low, high in ((-5.0, 0.0), (0.0, 4.0), (4.0, 30.0)):
        share = quad(density, low, high, limit=200)[0]
        assert np.mean((weights > low) & (weights < high)) == pytest.approx(
            share, abs=4 * math.sqrt(share * (1 - share) / 20_000)
        )


# -- privfit's rule, by the same computation -------------------------------------------------------


@pytest.mark.parametrize("epsilon", [0.02, 0.1, 1.0, 5.0])
@pytest.mark.parametrize("steepest", [1.0, "auto", 0.8, 0.3])
@pytest.mark.parametrize("ridge", RIDGES)
def test_privfits_rule_stays_under_its_epsilon(epsilon, steepest, ridge) -> None:
    plan = plan_in_ball(pf.ObjectivePerturbation(ridge, "l2", steepest), 2, epsilon, 1000)
    assert (
        max(every_loss(plan.gradients.loss, plan.event.scale / plan.event.unit, plan.ridge)) <= epsilon * 0.995
    )  # the rest is for the solver


@pytest.mark.parametrize("steepest", [1.0, "auto"])
def test_a_ridge_below_what_privacy_needs_is_raised(steepest) -> None:
    plan = plan_in_ball(pf.ObjectivePerturbation(0.001, "l2", steepest), 2, 0.1, 1000)
    assert plan.ridge > 0.001
    unraised = largest_loss(plan.gradients.loss, plan.event.scale / plan.event.unit, 0.001)
    assert unraised > 1  # the same noise without the raised ridge


@pytest.mark.parametrize("steepest", [1.0, "auto"])
def test_privfits_rule_comes_so_close_to_its_epsilon_that_a_little_less_noise_would_be_seen(steepest) -> None:
    plan = plan_in_ball(pf.ObjectivePerturbation(100.0, "l2", steepest), 2, 0.1, 1000)
    scale = plan.event.scale / plan.event.unit
    assert max(every_loss(plan.gradients.loss, scale, plan.ridge)) <= 0.1
    assert max(every_loss(plan.gradients.loss, 0.98 * scale, plan.ridge)) > 0.1


def test_two_columns_in_closed_form_are_what_determinants_say() -> None:
    """Against the plain formula: all Hessians written out, their determinants taken."""
    ridge, scale = 0.7, 3.0
    others, counts = np.array([[0.3, -0.2], [0.1, 0.9]]), np.array([2.0, 1.0])
    records, outputs = np.array([[0.6, 0.8], [-1.0, 0.0], [0.0, 0.1]]), np.array([[1.0, -2.0], [0.5, 4.0]])

    def log_density(record: np.ndarray, w: np.ndarray) -> float:
        rows = [others[0], others[0], others[1], record]
        hessian = ridge * np.eye(2) + sum(expit(row @ w) * expit(-row @ w) * np.outer(row, row) for row in rows)
        b = -(ridge * w - sum(expit(-row @ w) * row for row in rows))
        return float(np.log(np.linalg.det(hessian)) - np.sqrt(b @ b) / scale)

    plain = max(np.ptp([log_density(record, w) for record in records]) for w in outputs)
    assert largest_loss(LOGISTIC, scale, ridge, records, outputs, others, counts) == pytest.approx(plain, rel=1e-10)


# -- the fit ---------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def ball() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(1)
    features = rng.normal(size=(150, 3))
    features /= np.sqrt((features**2).sum(axis=1, keepdims=True))
    return features, np.where(features[:, 0] + 0.3 * rng.normal(size=150) > 0, 1.0, -1.0)


def test_the_figures_have_the_fit_of_the_public_call(ball) -> None:
    """The same noise, and the minimum of the same objective."""
    features, labels = ball
    (drawn,) = Printed().weights(Fold(features, labels, features, labels, ridge=0.02), 0.5, 1, 7).T
    mechanism = pf.ObjectivePerturbation(ridge=0.02 * len(labels), calibration="paper")
    model = pf.LogisticRegression(
        0.5,
        mechanism=mechanism,
        schema=box(3),
        row_norm=1.0,
        fit_intercept=False,
        random_state=seeded_generator([7, 0]),
    )
    assert model.fit(features, labels.astype(int)).coef_[0] == pytest.approx(drawn, rel=1e-3)


@pytest.mark.parametrize(
    "loss", [LOGISTIC, tempered_logistic(0.5, 1.0), tempered_logistic(0.5, 20.0)], ids=lambda loss: f"{loss.taper:g}"
)
@pytest.mark.parametrize("length", [0.0, 1.0, 10.0])
def test_all_perturbed_objectives_are_minimised_together(ball, loss, length) -> None:
    features, labels = ball
    signed = features * labels[:, None]
    noise = SeededNoise(2)
    noises = length * np.column_stack([noise.l2(np.zeros(3, dtype=np.int64), 1e6) for _ in range(20)]) / 1e6
    weights = perturbed_minima(signed, loss, 0.3, noises)
    gradients = np.stack(
        [signed.T @ loss.slope(signed @ w, 1.0) + 0.3 * w + b for w, b in zip(weights.T, noises.T, strict=True)]
    )
    assert np.abs(gradients).max() < 1e-5
    assert perturbed_minima(signed, loss, 0.3, noises, np.full(3, 4.0)) == pytest.approx(weights, abs=1e-4)
