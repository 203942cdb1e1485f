"""The simulation of 2008: points as the paper describes them, methods that draw what privfit draws, and the order of
the paper's table.
"""

from __future__ import annotations

import math

import numpy as np
import polars as pl
import pytest
from sklearn.linear_model import LogisticRegression

import privfit as pf
from privfit.privacy import Budget, PrivacyParameters, SeededNoise, seeded_generator
from privfit.rows import Rows
from privfit.tables import open_table
from privfit_papers.bench.simulated import (
    DEFAULT,
    HALVED,
    KINDS,
    METHODS,
    PAPER,
    PRINTED,
    REPAIRED,
    SENSITIVITY,
    STANDARD,
    Default,
    Errors,
    Points,
    Printed,
    Repaired,
    Sensitivity,
    Standard,
    ball_risk,
    box,
    closest_epsilon,
    distances,
    epsilon_curve,
    holdout_errors,
    learning_curve,
    plan_in_ball,
    points,
    table_of_errors,
)

EPSILON = 0.02
"""Close to the epsilon that papers/experiments/logistic2008.py finds."""


@pytest.fixture(scope="module")
def separable() -> Points:
    return points("separable")


@pytest.fixture(scope="module")
def unseparable() -> Points:
    return points("unseparable")


# -- points ----------------------------------------------------------------------------------------


def test_points_lie_on_the_sphere_as_many_as_in_the_paper(separable, unseparable) -> None:
    for table in (separable, unseparable):
        assert table.features.shape == (17_500, 10)
        assert np.sqrt((table.features**2).sum(axis=1)) == pytest.approx(1)
        assert np.abs(table.features.mean(axis=0)).max() < 5 / math.sqrt(10 * 17_500)


def test_separable_points_keep_away_from_the_plane_that_labels_them(separable) -> None:
    distances = separable.features @ separable.direction
    assert 0.03 < np.abs(distances).min() < 0.0301
    assert (np.sign(distances) == separable.labels).all()


def test_a_fifth_of_the_labels_near_the_plane_are_flipped_and_none_beyond(unseparable) -> None:
    distances = unseparable.features @ unseparable.direction
    flipped, near = np.sign(distances) != unseparable.labels, np.abs(distances) <= 0.1
    assert not flipped[~near].any()
    assert flipped[near].mean() == pytest.approx(0.2, abs=4 * math.sqrt(0.16 / near.sum()))
    assert near.mean() == pytest.approx(0.23, abs=0.015)  # the share of a sphere in 10 dimensions


def test_folds_test_every_point_once_and_never_fit_on_it(separable) -> None:
    folds = list(separable.folds())
    tested = np.concatenate([fold.test_features for fold in folds])
    assert len(np.unique(tested, axis=0)) == len(tested) == 17_500
    for fold in folds:
        assert len(fold.labels) == 14_000
        assert not set(map(tuple, fold.features.tolist())) & set(map(tuple, fold.test_features.tolist()))


def test_a_learning_curve_fits_on_the_first_rows_and_tests_on_all(separable) -> None:
    whole, part = next(separable.folds()), next(separable.folds(rows=1000))
    assert (part.features == whole.features[:1000]).all()
    assert (part.test_labels == whole.test_labels).all()


# -- methods ---------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def fold(unseparable):
    return next(unseparable.folds(rows=2000))


def test_the_fit_without_noise_is_logistic_regression(fold) -> None:
    peer = LogisticRegression(C=1 / fold.sum_ridge, fit_intercept=False, tol=1e-10).fit(fold.features, fold.labels)
    assert fold.exact == pytest.approx(peer.coef_[0], abs=1e-5)
    assert Standard().errors(fold, 1.0, 1, 0)[0] == pytest.approx(1 - peer.score(fold.test_features, fold.test_labels))


def test_the_sensitivity_method_has_the_printed_noise() -> None:
    plan = plan_in_ball(pf.OutputPerturbation(140.0, "l2"), 10, EPSILON, 14_000)
    assert plan.event.scale / plan.event.unit == pytest.approx(2 / (140 * EPSILON), rel=0.05)
    assert plan.event.scale / plan.event.unit >= 2 / (140 * EPSILON)


def released(mechanism, fold, epsilon: float, noise: SeededNoise) -> np.ndarray:
    """What the library itself releases for rows in the unit ball."""
    risk = ball_risk(10)
    schema = box(10).with_features([f"x{i}" for i in range(10)])
    geometry = mechanism.geometry(schema, risk, "slope")
    table = {f"x{i}": fold.features[:, i] for i in range(10)} | {"target": fold.labels.astype(int)}
    rows = Rows(open_table(pl.DataFrame(table)), schema, geometry)
    return mechanism.release(rows, PrivacyParameters(Budget(epsilon)), None, noise, risk).value.weights[:, 0]


@pytest.mark.parametrize("epsilon", [0.02, 0.5])
@pytest.mark.parametrize(
    ("method", "mechanism"),
    [
        (Repaired(), pf.ObjectivePerturbation(20.0, "l2", 1.0)),
        (Repaired("auto"), pf.ObjectivePerturbation(20.0, "l2")),
        (Printed(), pf.ObjectivePerturbation(20.0, calibration="paper")),
        (Sensitivity(), pf.OutputPerturbation(20.0, "l2")),
    ],
    ids=["repaired", "halved", "printed", "sensitivity"],
)
def test_fits_made_all_at_once_are_what_the_library_releases(fold, method, mechanism, epsilon) -> None:
    ours = method.weights(fold, epsilon, 1, seed=5)[:, 0]
    theirs = released(mechanism, fold, epsilon, SeededNoise(seeded_generator([5, fold.number])))
    assert ours == pytest.approx(theirs, abs=1e-3 * np.abs(theirs).max())


def test_only_methods_that_keep_their_epsilon_say_that_they_do() -> None:
    private = {method.name: method.private for method in (*METHODS, Repaired(), Default())}
    assert private == {SENSITIVITY: True, PRINTED: False, STANDARD: False, REPAIRED: True, DEFAULT: True}


# -- results ---------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def rows() -> dict[tuple[str, str], Errors]:
    methods = (*METHODS, Repaired(), Repaired("auto", HALVED), Default())
    return {(row.table, row.method): row for kind in KINDS for row in table_of_errors(kind, EPSILON, methods, draws=8)}


@pytest.mark.parametrize("kind", KINDS)
def test_the_order_of_the_papers_table_holds(rows, kind) -> None:
    assert rows[kind, SENSITIVITY].mean > rows[kind, PRINTED].mean + 0.05 > rows[kind, STANDARD].mean + 0.1


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("method", [SENSITIVITY, PRINTED, STANDARD])
def test_the_papers_means_are_met(rows, kind, method) -> None:
    assert rows[kind, method].mean == pytest.approx(PAPER[kind][method][0], abs=0.045)


@pytest.mark.parametrize("kind", KINDS)
def test_the_repair_costs_next_to_nothing_here_and_halved_slopes_gain(rows, kind) -> None:
    assert rows[kind, REPAIRED].mean == pytest.approx(rows[kind, PRINTED].mean, abs=0.005)
    assert rows[kind, HALVED].mean < 0.8 * rows[kind, REPAIRED].mean
    assert rows[kind, STANDARD].mean < rows[kind, DEFAULT].mean < rows[kind, REPAIRED].mean


def test_at_the_papers_settings_the_repair_adds_only_what_its_certificate_costs() -> None:
    plan = plan_in_ball(pf.ObjectivePerturbation(140.0, "l2", 1.0), 10, EPSILON, 14_000)
    assert plan.ridge == 140.0
    assert plan.event.scale / plan.event.unit == pytest.approx(2 / (0.995 * EPSILON), rel=1e-6)


def test_errors_fall_with_epsilon_and_with_rows() -> None:
    by_epsilon = epsilon_curve("separable", (0.01, 0.1), (Sensitivity(), Printed()), draws=5, n_points=5000)
    assert [(row.epsilon, row.method) for row in by_epsilon] == [
        (epsilon, name) for epsilon in (0.01, 0.1) for name in (SENSITIVITY, PRINTED)
    ]
    assert by_epsilon[0].mean > by_epsilon[2].mean + 0.05
    assert by_epsilon[1].mean > by_epsilon[3].mean + 0.05
    by_rows = learning_curve("separable", 0.1, (500, 4000), (Printed(),), draws=5, n_points=5000)
    assert [row.rows for row in by_rows] == [500, 4000]
    assert by_rows[0].mean > by_rows[1].mean + 0.05


def test_runs_repeat_and_other_seeds_differ() -> None:
    first, again, other = (
        epsilon_curve("unseparable", (0.1,), (Printed(),), 3, seed=seed, n_points=1000) for seed in (0, 0, 1)
    )
    assert first == again
    assert first != other


def test_deviations_are_over_all_draws_and_over_folds() -> None:
    class Fixed:
        name, private = "fixed", False

        def errors(self, fold, epsilon, draws, seed):
            return np.array([0.0, 0.2]) + 0.1 * (fold.number == 0)

    (row,) = table_of_errors("separable", 1.0, [Fixed()], n_points=100)
    assert row.mean == pytest.approx(0.12)
    assert row.of_folds == pytest.approx(0.04)
    assert row.deviation == pytest.approx(math.sqrt(0.04**2 + 0.1**2))
    assert row.to_dict()["rows"] == 80


def test_the_closest_epsilon_is_the_one_whose_means_are_the_papers() -> None:
    def row(kind, method: str, epsilon: float, off: float) -> Errors:
        return Errors(kind, method, epsilon, 1, 1, PAPER[kind][method][0] + off, 0.0, 0.0, False)

    curves = [
        row(kind, method, epsilon, off)
        for kind in KINDS
        for method in (SENSITIVITY, PRINTED)
        for epsilon, off in ((0.1, 0.02), (0.2, -0.01), (0.3, 0.03))
    ]
    assert distances(curves) == pytest.approx({0.1: 0.02, 0.2: 0.01, 0.3: 0.03})
    assert closest_epsilon(curves) == 0.2


def test_the_papers_ridge_does_no_worse_than_larger_ones_on_other_points() -> None:
    errors = holdout_errors("unseparable", (0.01, 1.0))
    assert errors[0.01] < errors[1.0] < 0.06
