"""Normal noise on an objective keeps its delta: recomputed from the theorem, integrated in one dimension, and sampled
for several classes.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.special import log_ndtr

import privfit as pf
from privfit.losses import LOGISTIC, ConvexLoss, robust, smooth_hinge, tempered_logistic
from privfit.mechanisms.perturbation.defaults import FLAT_ROWS, FOR_CERTIFICATE
from privfit.mechanisms.perturbation.gaussian_noise import objective_delta
from privfit.mechanisms.perturbation.problem import ERMPlan
from privfit.privacy import SeededNoise
from tests.support.objective_noise import (
    CLASSES,
    LOGCOSH,
    MIXED,
    corner_rows,
    drawn,
    drawn_covariance,
    gradients_of,
    less_noise,
    planned,
    steepest_pull,
)

# -- by the theorem, recomputed --------------------------------------------------------------------


def hidden(epsilon: float, shift: float) -> float:
    """The delta of a normal number that hides a shift, written once more."""
    if shift == 0:
        return max(0.0, 1 - math.exp(epsilon))
    first, second = log_ndtr(shift / 2 - epsilon / shift), epsilon + log_ndtr(-shift / 2 - epsilon / shift)
    return float(math.exp(first) - math.exp(second))


def stated_delta(plan: ERMPlan, people: int, entering: int, epsilon: float) -> float:
    """Theorem 3 for this plan, from its ridge, its scales and the loss alone."""
    gradients = plan.gradients
    r = steepest_pull(plan)
    loss, classes = gradients.loss, gradients.classes
    flat = math.inf
    if loss.taper and loss.one_sided and classes == 1:
        flat = loss.taper * loss.most_slope * gradients.norms.l2**2 / plan.ridge
    if people * flat <= epsilon * FLAT_ROWS * (1 + 1e-9):
        cost = 0.0
    else:
        flat = 0.0
        directions, bend = (
            (classes - 1, 1 / classes) if gradients.coupling == "softmax" else (classes, gradients.loss.most_curvature)
        )
        cost = people * directions * math.log(1 + bend * gradients.norms.l2**2 / plan.ridge)
    if not loss.one_sided:
        return 2 ** (classes * (people + entering)) * hidden(epsilon - cost, (people + entering) * r)
    corners = {"one": 1, "softmax": classes - 1, "one-vs-rest": 2**classes - 1}[gradients.coupling]
    return sum(
        math.comb(people, i)
        * math.comb(entering, j)
        * corners ** (i + j)
        * hidden(epsilon - cost - (people - i) * flat, (i + j) * r)
        for i in range(people + 1)
        for j in range(entering + 1)
    )


NORMAL = [
    ("logistic", LOGISTIC, 1, {}),
    ("the plain logistic", LOGISTIC, 1, {"steepest": 1.0}),
    ("smooth hinge", smooth_hinge(), 1, {}),
    ("smooth hinge, small ridge", smooth_hinge(), 1, {"ridge": 0.01}),
    ("Huber, both signs", robust(0.4).scaled(0.0, 1.0), 1, {}),
    ("log-cosh, both signs", LOGCOSH, 1, {}),
    ("one-vs-rest", LOGISTIC, 3, {}),
    ("one-vs-rest, hinge", smooth_hinge(), 4, {}),
    ("softmax", LOGISTIC, 5, {}),
]


@pytest.mark.parametrize(("loss", "classes", "given_"), [case[1:] for case in NORMAL], ids=[case[0] for case in NORMAL])
@pytest.mark.parametrize("people", [1, 2])
@pytest.mark.parametrize("adjacency", ["replace-one", "add-remove"])
def test_normal_noise_keeps_its_delta_by_the_theorem_recomputed(
    loss: ConvexLoss, classes: int, given_: dict, people: int, adjacency: str
) -> None:
    for epsilon, delta in [(0.3, 1e-6), (3.0, 1e-9)]:
        plan = planned(
            MIXED,
            loss,
            classes=classes,
            people=people,
            adjacency=adjacency,
            epsilon=epsilon,
            delta=delta,
            noise="gaussian",
            **given_,
        )
        found = stated_delta(plan, people, people if adjacency == "replace-one" else 0, epsilon * (1 - FOR_CERTIFICATE))
        assert found <= delta
        assert found > delta / 3  # and not much more noise than that


@pytest.mark.parametrize("people", [1, 2])
@pytest.mark.parametrize("replaced", [True, False])
def test_more_noise_or_fewer_rows_a_person_never_make_delta_larger(people: int, replaced: bool) -> None:
    gradients = gradients_of(MIXED, people=people, replaced=replaced)
    more = gradients_of(MIXED, people=people + 1, replaced=replaced)
    found = [objective_delta(gradients, 1.0, shift, 0.1) for shift in (0.05, 0.1, 0.2, 0.4)]
    assert found == sorted(found)
    assert all(
        objective_delta(more, 1.0, shift, 0.1) > objective_delta(gradients, 1.0, shift, 0.1)
        for shift in (0.1, 0.2, 0.4)
    )
    assert objective_delta(gradients, 1.0, 0.2, 0.2) >= objective_delta(gradients, 1.0, 0.2, 0.0)


def test_a_two_sided_loss_with_a_taper_pays_for_rows_without_slope() -> None:
    """What bends then is largest in the middle of the slopes, and no corner: the middle has to count as one, or
    curvature has to be paid for.
    """
    tapered = replace(LOGCOSH, taper=2.0)
    plan = planned(MIXED, tapered, delta=1e-6, noise="gaussian")
    epsilon = 1 - FOR_CERTIFICATE
    gradients = plan.gradients
    r = steepest_pull(plan)
    flat = 2.0 * gradients.norms.l2**2 / plan.ridge
    with_middle = 2 * hidden(epsilon - flat, r) + 4 * hidden(epsilon, 2 * r)
    all_paid = 4 * hidden(epsilon - math.log1p(gradients.norms.l2**2 / plan.ridge), 2 * r)
    assert min(with_middle, all_paid) <= 1e-6


@pytest.mark.parametrize("classes", [1, 3])
def test_rows_pull_only_where_there_is_noise_and_sums_of_blocks_are_one(classes: int) -> None:
    """Noise on all directions that rows can pull in, and on no other: between the sums of blocks."""
    plan = planned(MIXED, LOGISTIC, classes=classes, delta=1e-6, noise="gaussian")
    norms, covariance = plan.gradients.norms, drawn_covariance(plan)
    rows = np.array(corner_rows(norms, np.random.default_rng(1), 300))
    assert np.linalg.matrix_rank(covariance) == np.linalg.matrix_rank(rows) == norms.columns - len(norms.blocks) + 1
    assert np.linalg.matrix_rank(np.vstack([covariance / covariance.max(), rows])) == np.linalg.matrix_rank(rows)
    if classes == 1:
        np.testing.assert_allclose(plan.noise.covariance(), covariance, atol=1e-9 * covariance.max())
        assert plan.noise.largest_variance() == pytest.approx(np.linalg.norm(covariance, 2))
    noise = SeededNoise(3)
    draws = np.array([drawn(plan.noise, noise)[:, 0] for _ in range(4000)])
    seen = np.cov(draws.T)
    deviations = np.sqrt(np.diag(covariance))
    np.testing.assert_allclose(
        seen / np.outer(deviations, deviations), covariance / np.outer(deviations, deviations), atol=0.1
    )


# -- and by integration: the density of a perturbed minimum in one dimension -----------------------


LINE = pf.Schema([pf.Numeric("x", -1, 1)], target=pf.Numeric("y", -1, 1))
TABLES: list[tuple[list, list, list]] = [  # rows (x, y) that stay, that leave, that enter
    ([], [(1.0, 1.0)], [(1.0, -1.0)]),
    ([], [(1.0, 1.0)], [(-1.0, 1.0)]),
    ([(1.0, 1.0)] * 3 + [(0.5, -1.0)] * 2, [(1.0, 1.0)], [(1.0, -1.0)]),
    ([(1.0, 1.0), (-1.0, -1.0)], [(1.0, 1.0)], [(0.0, -1.0)]),
    ([(1.0, 1.0), (-0.3, 1.0)] * 4, [(0.0, 1.0)], [(1.0, 1.0)]),
    ([(1.0, 1.0)] * 30, [(-1.0, 1.0)], [(1.0, 1.0)]),
]


QUADRATURE = 1e-5


def densities(
    plan: ERMPlan, stay: list, leave: list, enter: list, points: int = 60_001
) -> tuple[np.ndarray, np.ndarray, float]:
    """Densities of the minimum on a grid of weights, for both tables: h(-J'(w)) J''(w), by Lemma 3."""
    loss, ridge, sd = plan.gradients.loss, plan.ridge, plan.event.scale / plan.event.unit
    reach = (14 * sd + len(stay + leave) * plan.gradients.slope_norm["linf"]) / ridge
    w = np.linspace(-reach, reach, points)

    def density(rows: list) -> np.ndarray:
        slope, bend = ridge * w, np.full(points, ridge)
        for x, y in rows:
            slope = slope + x * loss.slope(x * w, y)
            bend = bend + x * x * loss.curvature(x * w, y)
        return np.exp(-0.5 * (slope / sd) ** 2) * bend / (sd * math.sqrt(2 * math.pi))

    return density(stay + leave), density(stay + enter), float(w[1] - w[0])


def hockey_stick(plan: ERMPlan, stay: list, leave: list, enter: list, epsilon: float) -> float:
    left, right, step = densities(plan, stay, leave, enter)
    assert left.sum() * step == pytest.approx(1, abs=1e-3)  # the grid holds it all
    one = np.maximum(left - math.exp(epsilon) * right, 0).sum() * step
    other = np.maximum(right - math.exp(epsilon) * left, 0).sum() * step
    return float(max(one, other))


ON_A_LINE = [
    ("logistic", LOGISTIC, {}),
    ("the plain logistic", LOGISTIC, {"steepest": 1.0}),
    ("tempered sharply", tempered_logistic(0.3, 20.0), {}),
    ("smooth hinge", smooth_hinge(), {"ridge": 1.0}),
    ("Huber, both signs", robust(0.4).scaled(0.0, 1.0), {}),
    ("log-cosh, both signs", LOGCOSH, {}),
    ("log-cosh with a taper", replace(LOGCOSH, taper=2.0), {}),
]


def one_dimension(loss: ConvexLoss, adjacency: str, people: int, epsilon: float, **settings_: object) -> ERMPlan:
    schema = pf.Schema(LINE.features, target=CLASSES if loss.one_sided else LINE.target)
    return planned(
        schema,
        loss,
        fit_intercept=False,
        adjacency=adjacency,
        people=people,
        epsilon=epsilon,
        delta=1e-2,
        noise="gaussian",
        **settings_,
    )


@pytest.mark.parametrize(("loss", "given_"), [case[1:] for case in ON_A_LINE], ids=[case[0] for case in ON_A_LINE])
@pytest.mark.parametrize("adjacency", ["replace-one", "add-remove"])
@pytest.mark.parametrize("people", [1, 2])
def test_the_integrated_delta_of_a_perturbed_minimum_is_at_most_the_claimed_one(
    loss: ConvexLoss, given_: dict, adjacency: str, people: int
) -> None:
    for epsilon in (0.5, 2.0):
        plan = one_dimension(loss, adjacency, people, epsilon, **given_)
        found = [
            hockey_stick(
                plan,
                stay,
                leave * people,
                enter * people if adjacency == "replace-one" else [],
                epsilon * (1 - FOR_CERTIFICATE),
            )
            for stay, leave, enter in TABLES
        ]
        assert 0 < max(found) <= 1e-2 * (1 + QUADRATURE)


def test_the_integral_comes_close_to_the_claim_and_catches_less_noise() -> None:
    """Otherwise the test above would say nothing."""
    plan = one_dimension(LOGISTIC, "add-remove", 1, 1.0)
    pair = ([], [(1.0, 1.0)], [])
    epsilon = 1 - FOR_CERTIFICATE
    assert hockey_stick(plan, *pair, epsilon) > 1e-3
    less = less_noise(plan, 1.6)
    assert hockey_stick(less, *pair, epsilon) > 1e-2


def test_a_ridge_far_below_the_free_one_breaks_the_claim_of_normal_noise() -> None:
    plan = one_dimension(LOGISTIC, "add-remove", 1, 1.0)
    pair = ([], [(1.0, 1.0)], [])
    assert plan.ridge >= plan.noise.ridge_without_cost(plan.gradients, 1 - FOR_CERTIFICATE) * (1 - 1e-9)
    assert hockey_stick(plan, *pair, 1 - FOR_CERTIFICATE) <= 1e-2
    assert hockey_stick(replace(plan, ridge=plan.ridge / 100), *pair, 1 - FOR_CERTIFICATE) > 1e-2


@pytest.mark.parametrize("classes", [3, 5])
def test_the_sampled_delta_of_several_classes_is_at_most_the_claimed_one(classes: int) -> None:
    """One column and several classes: minima for many tilts, and how much likelier each is on one table than on the
    other.
    """
    schema = pf.Schema([pf.Numeric("x", -1, 1)], target=CLASSES)
    epsilon, delta = 1.0, 1e-2
    plan = planned(schema, classes=classes, fit_intercept=False, epsilon=epsilon, delta=delta, noise="gaussian")
    sd = plan.event.scale / plan.event.unit
    tilts = np.random.default_rng(1).normal(0, sd, (20_000, classes))
    losses = privacy_losses(plan, tilts, [(1.0, 0)], [(1.0, 1)], sd)
    lost = np.maximum(0, -np.expm1(epsilon * (1 - FOR_CERTIFICATE) - losses))
    assert lost.mean() <= delta
    bared = privacy_losses(plan, tilts / 6, [(1.0, 0)], [(1.0, 1)], sd / 6)  # and far less noise would not do
    assert np.maximum(0, -np.expm1(epsilon - bared)).mean() > delta


def privacy_losses(plan: ERMPlan, tilts: np.ndarray, leave: list, enter: list, sd: float) -> np.ndarray:
    """log p(w) - log p'(w) at the minimum w of the first table with each tilt, by Newton's method and Lemma 3."""
    w = np.zeros_like(tilts)
    for _ in range(200):
        slope, bend = _pull_and_bend(plan, w, leave)
        step = np.linalg.solve(bend, (slope + tilts)[:, :, None])[:, :, 0]
        w = w - np.clip(step, -2, 2)
        if np.abs(step).max() < 1e-10:
            break
    slope, bend = _pull_and_bend(plan, w, leave)
    assert np.abs(slope + tilts).max() < 1e-6
    other, bend_other = _pull_and_bend(plan, w, enter)
    return (
        ((other**2).sum(1) - (slope**2).sum(1)) / (2 * sd**2)
        + np.linalg.slogdet(bend)[1]
        - np.linalg.slogdet(bend_other)[1]
    )


def _pull_and_bend(plan: ERMPlan, w: np.ndarray, rows: list) -> tuple[np.ndarray, np.ndarray]:
    loss, classes = plan.gradients.loss, w.shape[1]
    slope, bend = plan.ridge * w, np.tile(plan.ridge * np.eye(classes), (len(w), 1, 1))
    for x, label in rows:
        if plan.gradients.coupling == "softmax":
            chances = np.exp(x * w - (x * w).max(axis=1, keepdims=True))
            chances /= chances.sum(axis=1, keepdims=True)
            slope = slope + x * (chances - np.eye(classes)[label])
            bend = bend + x * x * (chances[:, :, None] * np.eye(classes) - chances[:, :, None] * chances[:, None, :])
        else:
            sides = 2 * np.eye(classes)[label] - 1
            slope = slope + x * loss.slope(x * w, sides)
            bend = bend + x * x * loss.curvature(x * w, sides)[:, :, None] * np.eye(classes)
    return slope, bend
