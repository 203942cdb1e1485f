"""What docs/proofs/learning.md promises before a fit, against fits: the bounds hold, and some tables come close to
them.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from scipy.integrate import quad

from privfit.learning import (
    best_ridge,
    excess_loss,
    noise_norm,
    printed_noise_norm,
    printed_regularised_excess,
    printed_rows_needed,
    regularised_excess,
    ridge_floor,
    rows_needed,
)
from privfit.learning.setting import alignment
from tests.support.beats import assert_told_in_order

METHODS = ("objective", "output")
ADJACENCIES = ("replace-one", "add-remove")


@dataclass(frozen=True)
class Loss:
    """A loss of z = x'w and y, its derivative in z, and the bounds that the library is told."""

    value: Callable
    slope_at: Callable
    slope: float
    curvature: float

    @property
    def bounds(self) -> dict[str, float]:
        return {"slope": self.slope, "curvature": self.curvature}


def huber(corner: float) -> Loss:
    def value(z, y):
        far = np.abs(z - y)
        return np.where(far <= corner, far**2 / 2, corner * (far - corner / 2))

    return Loss(value, lambda z, y: np.clip(z - y, -corner, corner), corner, 1.0)


LOGISTIC = Loss(lambda z, y: np.logaddexp(0, -y * z), lambda z, y: -y / (1 + np.exp(y * z)), 1.0, 0.25)
HUBER = huber(0.5)
LINEAR = Loss(lambda z, y: -y * z, lambda z, y: -y + 0 * z, 1.0, 1e-3)
LOSSES = {"logistic": LOGISTIC, "huber": HUBER, "linear": LINEAR}


def draws(rng: np.random.Generator, count: int, columns: int, scale: float) -> np.ndarray:
    """Vectors of density exp(-|b| / scale), by another way than lengths and directions: a mixture of normal ones."""
    return np.sqrt(rng.gamma((columns + 1) / 2, 2 * scale**2, size=(count, 1))) * rng.normal(size=(count, columns))


def minimisers(loss: Loss, x: np.ndarray, y: np.ndarray, ridge: float, b: np.ndarray, norm: float = 1.0) -> np.ndarray:
    """Of the sum of losses + ridge/2 |w|^2 + b'w, one for every row of b; x and y may differ between them.

    Plain gradient descent.
    """
    w = np.zeros_like(b)
    most = ridge + y.shape[-1] * loss.curvature * norm**2
    for _ in range(int(25 * most / ridge) + 25):
        z = np.einsum("...nd,md->mn" if x.ndim == 2 else "mnd,md->mn", x, w)
        w = w - (np.einsum("nd,mn->md" if x.ndim == 2 else "mnd,mn->md", x, loss.slope_at(z, y)) + ridge * w + b) / most
    return w


def scale_of(columns: int, epsilon: float, ridge: float, **settings) -> float:
    """The scale of the noise: its mean length is `columns` times that."""
    return noise_norm(columns, epsilon, ridge, confidence=None, **settings) / columns


def private_fits(
    rng, loss: Loss, x, y, epsilon: float, ridge: float, count: int, method: str, **settings
) -> tuple[np.ndarray, float]:
    """Weights of `count` fits, and the ridge they were made with."""
    noise = draws(rng, count, x.shape[-1], scale_of(x.shape[-1], epsilon, ridge, method=method, **settings))
    if method == "output":
        return minimisers(loss, x, y, ridge, np.zeros_like(noise), settings.get("norm", 1.0)) + noise, ridge
    used = max(ridge, ridge_floor(epsilon, curvature=loss.curvature, norm=settings.get("norm", 1.0)))
    return minimisers(loss, x, y, used, noise, settings.get("norm", 1.0)), used


def in_ball(rng, shape: tuple[int, ...], norm: float = 1.0) -> np.ndarray:
    x = rng.normal(size=shape)
    return norm * x / np.maximum(1, np.linalg.norm(x, axis=-1, keepdims=True))


# -- noise -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("columns", [1, 2, 7, 40])
@pytest.mark.parametrize("confidence", [0.5, 0.95, 0.999])
def test_the_length_of_noise_is_exceeded_exactly_as_often_as_claimed(columns: int, confidence: float) -> None:
    """By integrating the density exp(-|b| / scale) over what lies beyond."""
    scale = scale_of(columns, 1.0, 3.0)
    length = noise_norm(columns, 1.0, 3.0, confidence=confidence) / scale
    beyond = quad(lambda r: math.exp((columns - 1) * math.log(r) - r - math.lgamma(columns)), length, length + 200)[0]
    assert beyond == pytest.approx(1 - confidence, rel=1e-6)


def test_the_lemma_on_the_length_of_noise_is_exact_for_one_column_and_loose_for_more() -> None:
    settings = {"method": "objective", "curvature": 1e-9}
    assert noise_norm(1, 0.7, 10.0, **settings) == pytest.approx(printed_noise_norm(1, 0.7))
    assert 3 * noise_norm(20, 0.7, 10.0, **settings) < printed_noise_norm(20, 0.7)
    assert printed_noise_norm(3, 0.5, confidence=0.9) == pytest.approx(2 * 3 * math.log(3 / 0.1) / 0.5)


@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("loss", ["logistic", "huber"])
@pytest.mark.parametrize("ridge", [1e-3, 0.3, 10.0])
@pytest.mark.parametrize("epsilon", [0.1, 2.0])
def test_noise_in_the_objective_hides_every_row(adjacency: str, loss: str, ridge: float, epsilon: float) -> None:
    """The exact density of the released weight, one column, for every pair of neighbours of a table with nothing else
    in it.
    """
    chosen = LOSSES[loss]
    scale = scale_of(1, epsilon, ridge, adjacency=adjacency, **chosen.bounds)
    used = max(ridge, ridge_floor(epsilon, curvature=chosen.curvature))
    w = np.linspace(-60, 60, 4801)
    logs = []
    for x in (0.0, 0.3, 1.0):
        for y in (-1.0, 1.0):
            pull = used * w + x * chosen.slope_at(x * w, y)
            logs.append(-np.abs(pull) / scale + np.log(np.gradient(pull, w)))
    without = logs[0]
    losses = (
        [np.abs(a - b) for a in logs for b in logs]
        if adjacency == "replace-one"
        else [np.abs(a - without) for a in logs]
    )
    inner = np.max(losses, axis=0)[1:-1]
    assert inner.max() <= epsilon * (1 + 1e-3)
    assert inner.max() >= 0.4 * epsilon


def test_algorithm_2_as_printed_does_not_hide_a_row() -> None:
    w, epsilon, ridge = np.linspace(-0.01, 0.01, 5), 0.1, 0.01
    pull = ridge * w + LOGISTIC.slope_at(w, 1.0)
    ratio = (
        -np.abs(pull) * epsilon / 2 + np.log(np.gradient(pull, w)) + np.abs(ridge * w) * epsilon / 2 - math.log(ridge)
    )
    assert ratio.max() > 20 * epsilon


@pytest.mark.parametrize(("adjacency", "replaced"), [("replace-one", 1.0), ("add-remove", 0.0)])
def test_noise_on_the_output_hides_the_largest_move_and_not_more(adjacency: str, replaced: float) -> None:
    """Far targets pull with the whole slope: the move of the minimiser is then the scale times epsilon."""
    x = np.array([[1.0], [1.0]])
    one, other = (
        minimisers(HUBER, x * [[1], [used]], y, 2.0, np.zeros((1, 1)))
        for used, y in ((1.0, [9, 9]), (replaced, [9, -9]))
        for y in [np.array(y)]
    )
    scale = scale_of(1, 0.7, 2.0, method="output", adjacency=adjacency, **HUBER.bounds)
    assert float(abs(one - other)[0, 0]) == pytest.approx(scale * 0.7)


def test_a_ridge_below_the_floor_is_raised_and_leaves_the_share_of_epsilon() -> None:
    floor = ridge_floor(0.5, noise_share=0.6)
    assert math.log1p(0.25 / floor) == pytest.approx(0.4 * 0.5)
    assert scale_of(3, 0.5, 1e-9, noise_share=0.6) == pytest.approx(2 / (0.6 * 0.5))
    assert regularised_excess(100, 3, 0.5, 1e-9, noise_share=0.6) == regularised_excess(
        100, 3, 0.5, floor, noise_share=0.6
    )
    assert excess_loss(100, 3, 0.5, 1e-9, reference_norm=2) == excess_loss(
        100, 3, 0.5, ridge_floor(0.5), reference_norm=2
    )
    assert excess_loss(100, 3, 0.5, 4.0, reference_norm=2) != excess_loss(100, 3, 0.5, 3.0, reference_norm=2)


@pytest.mark.parametrize("columns", [1, 2, 3, 10, 50])
@pytest.mark.parametrize("failure", [0.3, 0.05, 0.01])
def test_no_spread_of_rows_meets_noise_more_often_than_claimed(columns: int, failure: float) -> None:
    """u'Mu for random directions u: rows in one direction, in all, and in between."""
    rng = np.random.default_rng(columns)
    directions = rng.normal(size=(20_000, columns))
    squares = (directions / np.linalg.norm(directions, axis=1, keepdims=True)) ** 2
    claimed = alignment(columns, failure)
    shares = [np.eye(columns)[0], np.full(columns, 1 / columns), *rng.dirichlet(np.full(columns, 0.3), size=8)]
    for share in shares:
        assert np.mean(squares @ share > claimed * (1 + 1e-12)) <= failure + 3 * math.sqrt(failure / 20_000)
    assert claimed <= min(1.0, 3 * np.quantile(squares[:, 0], 1 - failure))
    assert claimed >= np.quantile(squares[:, 0], 1 - failure) - 0.02


# -- on the fitted table ---------------------------------------------------------------------------


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("loss", ["logistic", "huber"])
@pytest.mark.parametrize("ridge", [0.5, 8.0])
def test_noise_lifts_the_regularised_loss_no_further_than_claimed(
    method: str, adjacency: str, loss: str, ridge: float
) -> None:
    rng = np.random.default_rng(5)
    chosen, rows, columns, epsilon, norm = LOSSES[loss], 30, 3, 1.5, 1.4
    settings = {"adjacency": adjacency, "norm": norm, **chosen.bounds}
    x, y = in_ball(rng, (rows, columns), norm), rng.choice([-1.0, 1.0], size=rows)
    w, used = private_fits(rng, chosen, x, y, epsilon, ridge, 600, method, **settings)
    best = minimisers(chosen, x, y, used, np.zeros((1, columns)), norm)

    def height(w: np.ndarray) -> np.ndarray:
        return chosen.value(w @ x.T, y).mean(axis=1) + used / (2 * rows) * (w**2).sum(axis=1)

    lift = height(w) - height(best)
    for confidence in (0.5, 0.9):
        bound = regularised_excess(rows, columns, epsilon, ridge, method=method, confidence=confidence, **settings)
        assert np.mean(lift > bound) <= 1 - confidence
    mean = regularised_excess(rows, columns, epsilon, ridge, method=method, confidence=None, **settings)
    assert lift.mean() <= mean + 3 * lift.std() / math.sqrt(len(lift))


def test_the_lift_by_noise_in_the_objective_is_exact_where_rows_are_empty() -> None:
    """With rows of zeros only the penalty is left: the weights are -b / ridge, and the bound is their own quantile."""
    rng = np.random.default_rng(6)
    ridge, rows = 2.0, 10
    b = draws(rng, 20_000, 4, scale_of(4, 1.0, ridge))
    lift = (b**2).sum(axis=1) / (2 * ridge * rows)
    assert np.mean(lift > regularised_excess(rows, 4, 1.0, ridge)) == pytest.approx(0.05, abs=0.006)
    assert lift.mean() == pytest.approx(regularised_excess(rows, 4, 1.0, ridge, confidence=None), rel=0.03)


def test_the_lift_by_noise_on_the_output_comes_close_where_rows_agree() -> None:
    """All rows are the first unit vector and all targets 0, and noise is small enough for Huber's loss to stay a
    square.
    """
    rng = np.random.default_rng(7)
    rows, ridge, epsilon, columns = 1000, 50.0, 10.0, 5
    settings = {"method": "output", **huber(1.0).bounds}
    noise = draws(rng, 20_000, columns, scale_of(columns, epsilon, ridge, **settings))
    lift = huber(1.0).value(noise[:, 0], 0.0) + ridge / (2 * rows) * (noise**2).sum(axis=1)
    bound = regularised_excess(rows, columns, epsilon, ridge, **settings)
    assert 0.3 * bound < np.quantile(lift, 0.95) < bound
    assert lift.mean() == pytest.approx(
        regularised_excess(rows, columns, epsilon, ridge, confidence=None, **settings), rel=0.05
    )


@pytest.mark.parametrize("seed", range(5))
def test_the_minimiser_near_a_moved_centre_is_no_worse_than_any_weights(seed: int) -> None:
    """Lemma 5: the sum of losses at argmin(losses + R/2 |w - v|^2) is at most that at any w, plus R/4 |w - v|^2."""
    rng = np.random.default_rng(seed)
    x, y, ridge = in_ball(rng, (20, 3)), rng.choice([-1.0, 1.0], size=20), 1.0
    centre = 3 * rng.normal(size=(50, 3))
    fitted = minimisers(LOGISTIC, x, y, ridge, -ridge * centre)
    others = 3 * rng.normal(size=(50, 3))
    sums = [LOGISTIC.value(w @ x.T, y).sum(axis=1) for w in (fitted, others)]
    assert np.all(sums[0] <= sums[1] + ridge / 4 * ((others - centre) ** 2).sum(axis=1) + 1e-9)


# -- on new rows -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Population:
    """Finitely many kinds of rows, so that the loss on new rows is a sum."""

    x: np.ndarray
    y: np.ndarray
    share: np.ndarray

    def tables(self, rng, count: int, rows: int) -> tuple[np.ndarray, np.ndarray]:
        kinds = rng.choice(len(self.share), size=(count, rows), p=self.share)
        return self.x[kinds], self.y[kinds]

    def loss(self, loss: Loss, w: np.ndarray) -> np.ndarray:
        return loss.value(w @ self.x.T, self.y) @ self.share


def population(seed: int, columns: int, reference: np.ndarray) -> Population:
    """Ten kinds of features, each with both classes, as often as the reference weights have it."""
    rng = np.random.default_rng(seed)
    x = in_ball(rng, (10, columns))
    positive = 1 / (1 + np.exp(-x @ reference))
    return Population(np.vstack([x, x]), np.repeat([1.0, -1.0], 10), np.concatenate([positive, 1 - positive]) / 10)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("loss", sorted(LOSSES))
@pytest.mark.parametrize("ridge", [None, 4.0])
def test_new_rows_lose_no_more_than_claimed(method: str, adjacency: str, loss: str, ridge: float | None) -> None:
    rng = np.random.default_rng(8)
    chosen, rows, epsilon, reference = LOSSES[loss], 60, 1.0, np.array([1.5, -1.0, 0.5])
    norm = float(np.linalg.norm(reference))
    settings = {"method": method, "adjacency": adjacency, **chosen.bounds}
    people = population(1, 3, reference)
    x, y = people.tables(rng, 400, rows)
    for confidence in (None, 0.5, 0.9):
        used = ridge or best_ridge(rows, 3, epsilon, reference_norm=norm, confidence=confidence, **settings)
        w, _ = private_fits(rng, chosen, x, y, epsilon, used, 400, **settings)
        excess = people.loss(chosen, w) - people.loss(chosen, reference[None])
        bound = excess_loss(rows, 3, epsilon, ridge, reference_norm=norm, confidence=confidence, **settings)
        if confidence is None:
            assert excess.mean() <= bound + 3 * excess.std() / math.sqrt(len(excess))
        else:
            assert np.mean(excess > bound) <= 1 - confidence


@pytest.mark.parametrize(
    ("confidence", "ridge", "share"), [(None, None, 0.4), (None, 200.0, 0.95), (0.9, None, 0.15), (0.9, 200.0, 0.4)]
)
def test_the_bound_is_within_a_small_factor_of_a_hard_population(
    confidence: float | None, ridge: float | None, share: float
) -> None:
    """A straight loss whose mean slope is as small as the ridge can just not follow; the noise hardly matters.

    None: the best ridge.
    """
    rng = np.random.default_rng(9)
    rows, reference = 400, 3.0
    settings = {"confidence": confidence, **LINEAR.bounds}
    used = ridge or best_ridge(rows, 1, 50.0, reference_norm=reference, **settings)
    tilt = used * reference / (2 * rows)
    people = Population(np.ones((2, 1)), np.array([1.0, -1.0]), np.array([1 + tilt, 1 - tilt]) / 2)
    x, y = people.tables(rng, 2000, rows)
    w, _ = private_fits(rng, LINEAR, x, y, 50.0, used, 2000, "objective", **LINEAR.bounds)
    excess = people.loss(LINEAR, w) - people.loss(LINEAR, np.array([[reference]]))
    bound = excess_loss(rows, 1, 50.0, ridge, reference_norm=reference, **settings)
    reached = excess.mean() if confidence is None else np.quantile(excess, confidence)
    assert share * bound < reached <= bound


@pytest.mark.parametrize("method", METHODS)
def test_what_noise_is_said_to_cost_is_what_it_costs_where_rows_agree(method: str) -> None:
    """Small epsilon, so that all but the noise is negligible; rows are one unit vector, targets 0.

    The ridge outweighs the rows.
    """
    rng = np.random.default_rng(10)
    loss, rows, columns, epsilon, ridge = huber(1.0), 20, 3, 0.01, 4000.0
    settings = {"method": method, **loss.bounds}
    x, y = np.tile(np.eye(columns)[0], (rows, 1)), np.zeros(rows)
    w, _ = private_fits(rng, loss, x, y, epsilon, ridge, 20_000, **settings)
    bound = excess_loss(rows, columns, epsilon, ridge, reference_norm=1e-3, confidence=None, **settings)
    assert 0.85 * bound < loss.value(w[:, 0], 0.0).mean() < bound


@pytest.mark.parametrize("method", METHODS)
def test_a_likely_bound_on_a_large_table_says_something(method: str) -> None:
    """Less than half of what separates the weights 0 from the reference at most, and far less with more rows."""
    settings = {"reference_norm": 5.0, "method": method}
    assert excess_loss(10_000, 10, 1.0, **settings) < 0.1 * 5.0
    assert excess_loss(1_000_000, 10, 1.0, **settings) < 0.01 * 5.0
    assert excess_loss(10_000, 10, 1.0, confidence=None, **settings) < 0.02 * 5.0


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("confidence", [None, 0.95])
@pytest.mark.parametrize("ridge", [None, 30.0])
def test_bounds_fall_with_rows_and_epsilon_and_rise_with_all_else(
    method: str, confidence: float | None, ridge: float | None
) -> None:
    base = {
        "rows": 3000,
        "columns": 6,
        "epsilon": 0.3,
        "ridge": ridge,
        "reference_norm": 4.0,
        "method": method,
        "confidence": confidence,
    }
    here = excess_loss(**base)
    lower = [{"rows": 4000}, {"epsilon": 0.4}, {"adjacency": "add-remove"}]
    higher = [{"columns": 7}, {"reference_norm": 5.0}, {"slope": 1.3}, {"curvature": 0.4}, {"norm": 1.5}]
    if confidence is not None:
        lower += [{"confidence": None}, {"confidence": 0.8}]
        higher += [{"confidence": 0.99}]
    assert all(excess_loss(**{**base, **change}) < here for change in lower)
    assert all(excess_loss(**{**base, **change}) > here for change in higher)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("confidence", [None, 0.95])
@pytest.mark.parametrize("epsilon", [0.01, 1.0, 30.0])
@pytest.mark.parametrize("rows", [1, 500, 10**7])
def test_no_other_ridge_is_better_than_the_best(
    method: str, confidence: float | None, epsilon: float, rows: int
) -> None:
    settings = {"reference_norm": 3.0, "method": method, "confidence": confidence}
    best = excess_loss(rows, 8, epsilon, **settings)
    assert best == excess_loss(rows, 8, epsilon, best_ridge(rows, 8, epsilon, **settings), **settings)
    others = [excess_loss(rows, 8, epsilon, ridge, **settings) for ridge in np.geomspace(1e-6, 1e9, 400)]
    assert best <= min(others) * (1 + 1e-9)
    assert min(others) <= best * 1.01


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("confidence", [None, 0.95])
@pytest.mark.parametrize(("excess", "epsilon"), [(0.5, 0.1), (0.05, 1.0), (20.0, 5.0)])
def test_rows_needed_are_enough_and_one_less_is_not(
    method: str, confidence: float | None, excess: float, epsilon: float
) -> None:
    settings = {"reference_norm": 3.0, "method": method, "confidence": confidence}
    rows = rows_needed(excess, 5, epsilon, **settings)
    assert excess_loss(rows, 5, epsilon, **settings) <= excess
    assert rows == 1 or excess_loss(rows - 1, 5, epsilon, **settings) > excess


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("confidence", [None, 0.95])
def test_the_unit_of_the_columns_does_not_matter(method: str, confidence: float | None) -> None:
    """Columns three times as large need weights a third as long, and the ridge is counted in their squares."""
    settings = {"method": method, "confidence": confidence, "slope": 0.7, "curvature": 0.4}
    small, large = {"norm": 1.0, **settings}, {"norm": 3.0, **settings}
    assert regularised_excess(900, 4, 0.5, 45.0, **large) == pytest.approx(
        regularised_excess(900, 4, 0.5, 5.0, **small)
    )
    for ridge in (45.0, None):
        here = excess_loss(900, 4, 0.5, ridge, reference_norm=2.0, **large)
        assert here == pytest.approx(excess_loss(900, 4, 0.5, ridge and ridge / 9, reference_norm=6.0, **small))
    assert ridge_floor(0.5, norm=3.0) == pytest.approx(9 * ridge_floor(0.5))


# -- as printed ------------------------------------------------------------------------------------


def test_the_lemmas_as_printed_are_looser_by_what_the_proofs_say() -> None:
    """One column, where lengths agree; a tiny curvature stands for a ridge that costs nothing.

    Lemma 4 is loose by 4.
    """
    ours = regularised_excess(1000, 1, 1.0, 20.0, curvature=1e-12)
    assert printed_regularised_excess(1000, 1, 1.0, 20.0) == pytest.approx(4 * ours)
    mean_ridge = 20.0 / 1000
    ours = regularised_excess(1000, 1, 1.0, 20.0, method="output")
    printed = printed_regularised_excess(1000, 1, 1.0, 20.0, method="output")
    assert printed / ours == pytest.approx((1 + mean_ridge) / (0.25 + mean_ridge))


def test_the_theorems_as_printed_are_at_hand() -> None:
    tail = 4 * math.log(4 / 0.05)
    settings = {"reference_norm": 3.0, "constant": 2.0}
    assert printed_rows_needed(0.1, 4, 0.01, **settings) == pytest.approx(2 * tail * 3 / (0.1 * 0.01))
    assert printed_rows_needed(0.1, 4, 10.0, **settings) == pytest.approx(2 * 900)
    assert printed_rows_needed(0.1, 4, 0.01, method="output", **settings) == pytest.approx(
        2 * tail * 9 / (0.1**1.5 * 0.01)
    )


# -- what may be given -----------------------------------------------------------------------------

GOOD = {"rows": 100, "columns": 3, "epsilon": 1.0, "reference_norm": 2.0}
REFUSALS = {
    "rows": ({"rows": 0}, ["rows=0", "integer", "Give the number of rows"]),
    "rows in half": ({"rows": 10.5}, ["rows=10.5", "integer", "Give the number of rows"]),
    "columns": ({"columns": True}, ["columns=True", "integer", "Give the number of encoded columns"]),
    "epsilon": ({"epsilon": -1.0}, ["epsilon=-1.0", "positive", "1.0 is a common start"]),
    "ridge": ({"ridge": 0.0}, ["ridge=0.0", "positive", "best_ridge"]),
    "reference": ({"reference_norm": math.inf}, ["reference_norm=inf", "finite", "a guess will do"]),
    "slope": ({"slope": math.nan}, ["slope=nan", "positive", "1.0 for the logistic"]),
    "curvature": ({"curvature": "0.25"}, ["curvature='0.25'", "positive", "0.25 for the logistic"]),
    "norm": ({"norm": 0}, ["norm=0", "positive", "clipped"]),
    "method": ({"method": "input"}, ["method='input'", "'objective'", "Choose one"]),
    "confidence": ({"confidence": 1.0}, ["confidence=1.0", "between 0 and 1", "Give one"]),
    "share": ({"noise_share": 1.0}, ["noise_share=1.0", "between 0 and 1", "0.8"]),
    "adjacency": ({"adjacency": "swap"}, ["adjacency='swap'", "'replace-one'", "Choose one"]),
}


@pytest.mark.parametrize("case", REFUSALS)
def test_what_makes_no_sense_is_refused_in_three_beats(case: str) -> None:
    change, beats = REFUSALS[case]
    with pytest.raises(ValueError) as refusal:
        excess_loss(**{**GOOD, **change})
    assert_told_in_order(str(refusal.value), beats)


@pytest.mark.parametrize(
    ("call", "beats"),
    [
        (lambda: rows_needed(0.0, 3, 1.0, reference_norm=1.0), ["excess=0.0", "positive", "Give the loss"]),
        (lambda: rows_needed(1e-12, 3, 1.0, reference_norm=1.0), ["excess=1e-12", "more than", "Accept"]),
        (lambda: printed_noise_norm(3, 1.0, confidence=None), ["confidence=None", "between 0 and 1", "Give one"]),
        (
            lambda: printed_rows_needed(0.1, 3, 1.0, reference_norm=1.0, constant=0),
            ["constant=0", "positive", "leaves it open"],
        ),
        (
            lambda: printed_regularised_excess(9, 3, 1.0, 1.0, method="none"),
            ["method='none'", "'objective'", "Choose one"],
        ),
    ],
)
def test_other_questions_are_refused_in_three_beats(call: Callable, beats: list[str]) -> None:
    with pytest.raises(ValueError) as refusal:
        call()
    assert_told_in_order(str(refusal.value), beats)


def test_whole_numbers_of_numpy_and_extreme_budgets_are_fine() -> None:
    assert excess_loss(np.int64(100), np.int32(3), np.float64(1.0), reference_norm=2) == excess_loss(**GOOD)
    assert ridge_floor(1e6) == 0.0
    assert 0 < excess_loss(100, 3, 1e6, reference_norm=2) < excess_loss(100, 3, 1.0, reference_norm=2)
    assert excess_loss(10**9, 3, 1e-6, reference_norm=2) < math.inf


def test_the_example_of_the_guide_prints_what_the_guide_says(capsys: pytest.CaptureFixture[str]) -> None:
    text = (Path(__file__).parents[1] / "docs" / "learning.md").read_text()
    example = text.split("```python\n")[1].split("```")[0]
    exec(compile(example, "docs/learning.md", "exec"), {})
    code = "\n".join(line for line in example.splitlines() if not line.startswith("#"))
    said = re.findall(r"# ([\d.]+):", code)  # a formatted call may put its comment on a later line than its print
    assert len(said) == code.count("print(")
    assert capsys.readouterr().out.split("\n")[:-1] == said
