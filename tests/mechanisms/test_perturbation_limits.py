"""Limits of perturbed objectives: noise that no integer holds, deltas that no float holds, ridges too small."""

from __future__ import annotations

import math
import warnings
from dataclasses import replace

import numpy as np
import pytest

import privfit as pf
from privfit.features import FourierFeatures
from privfit.losses import LOGISTIC, ConvexLoss, robust, tempered_logistic
from privfit.mechanisms.base import PublicFacts
from privfit.mechanisms.perturbation import precision as minima
from privfit.mechanisms.perturbation.gaussian_noise import objective_delta
from privfit.mechanisms.perturbation.objective import objective_noise
from privfit.mechanisms.perturbation.objective_noise import Price
from privfit.mechanisms.perturbation.problem import ERMProblem, Gradients
from privfit.privacy import Budget, PrivacyParameters
from privfit.rows import CachedDesign
from privfit.schema import RowNorms
from tests.support.beats import assert_told_in_order
from tests.support.effort import quick_or_full
from tests.support.objective_noise import MIXED, planned

NORMS = RowNorms(3.0, math.sqrt(3.0), 1.0, 3, (0, 1, 2))


@pytest.mark.parametrize("noise", ["auto", "laplace", "linf", "l2"])
def test_a_tilt_that_64_bits_would_cut_is_refused_before_the_charge(noise: str) -> None:
    """A cut tilt has atoms and a bounded support, and its minimum would tell tables apart."""
    ledger = pf.Ledger(epsilon=1.0)
    model = pf.ERM(
        robust(1e9),
        epsilon=1.0,
        schema=pf.Schema.box(-1, 1, target=(-1e10, 1e10)),
        mechanism=pf.ObjectivePerturbation(noise=noise),
        numeric="slope",
        ledger=ledger,
    )
    with pytest.raises(pf.PrivacyError, match="64"):
        model.fit(np.ones((1, 1)), [1e10])
    assert ledger.entries() == []


def test_curvature_of_a_loss_with_slopes_of_both_signs_is_paid_for_under_normal_noise() -> None:
    log_cosh = pf.ConvexLoss(lambda z, y: np.tanh(z - y), lambda z, y: 1 - np.tanh(z - y) ** 2, 1.0, 1.0, taper=2.0)
    gradients = Gradients(NORMS, log_cosh)
    assert ridge_without_cost("gaussian", gradients, 1.0) == math.inf
    assert math.isfinite(ridge_without_cost("laplace", gradients, 1.0))
    assert math.isfinite(ridge_without_cost("gaussian", replace(gradients, loss=LOGISTIC), 1.0))


def ridge_without_cost(kind: str, gradients: Gradients, epsilon: float) -> float:
    return objective_noise(kind, gradients, Price(epsilon, 1e-6)).ridge_without_cost(gradients, epsilon)


@quick_or_full(
    ("people", "coupling", "classes"),
    quick=[(600, "one", 1), (200, "softmax", 10)],
    full=[(2000, "one", 1)],
)
def test_deltas_too_small_for_a_float_are_not_lost_in_great_numbers(people: int, coupling: str, classes: int) -> None:
    gradients = Gradients(NORMS, LOGISTIC, classes, coupling, people)  # type: ignore[arg-type]
    tilt = objective_noise("gaussian", gradients, Price(1.0, 1e-6), 0.0)
    ratio = gradients.gradient_norm["l2"] / tilt.groups[0].scale
    assert 0.5e-6 < objective_delta(gradients, 1.0, ratio) <= 1e-6 * (1 + 1e-6)
    assert objective_delta(gradients, 1.0, 100 * ratio) == math.inf


def test_a_finer_lattice_or_a_larger_epsilon_needs_less_ridge_without_cost() -> None:
    wide = Gradients(RowNorms(5000.0, 70.0, 1.0, 5000), tempered_logistic(0.5, 1.0))
    extra = {
        epsilon: ridge_without_cost("laplace", wide, epsilon) / (wide.self_bound / epsilon) - 1
        for epsilon in (1e-6, 1e-3, 1.0)
    }
    assert extra[1e-6] > extra[1e-3] > extra[1.0] > 0
    assert extra[1e-6] > 2 * 5000 / 2.0**38 / 1e-6


@pytest.mark.parametrize("epsilon", [1e-9, 1e-6, 500.0, 1e6])
@pytest.mark.parametrize("mechanism", ["objective", "output"])
def test_every_epsilon_can_be_fitted_with(epsilon: float, mechanism: str) -> None:
    X = np.random.default_rng(0).uniform(-1, 1, (200, 2))
    model = pf.LogisticRegression(
        epsilon, schema=pf.Schema.box(-1, 1, target=[0, 1]), mechanism=mechanism, random_state=0
    )
    assert np.isfinite(model.fit(X, (X[:, 0] > 0).astype(int)).coef_).all()


def test_a_public_guess_far_below_the_number_of_rows_does_not_make_a_fit_fail() -> None:
    X = np.random.default_rng(0).uniform(-1, 1, (60_000, 2))
    schema = pf.Schema.box(-1, 1, target=[0, 1])
    model = pf.LogisticRegression(1.0, schema=schema, adjacency="add-remove", expected_rows=100, random_state=0)
    assert model.fit(X, (X[:, 0] > 0).astype(int)).score(X, (X[:, 0] > 0).astype(int)) > 0.9


def test_more_rows_than_the_precision_was_planned_for_are_refused_before_the_charge(monkeypatch) -> None:
    monkeypatch.setattr("privfit.mechanisms.perturbation.precision.FEW_ROWS", 100)
    ledger = pf.Ledger(epsilon=1.0)
    schema = pf.Schema.box(-1, 1, target=[0, 1])
    model = pf.LogisticRegression(1.0, schema=schema, adjacency="add-remove", expected_rows=5, ledger=ledger)
    with pytest.raises(pf.DataError, match="Nothing was charged"):
        model.fit(np.zeros((101, 2)), np.arange(101) % 2)
    assert ledger.entries() == []


@pytest.mark.parametrize("solver", ["newton_on_sample", "minimise_certified"])
def test_a_failing_solver_fails_no_fit(monkeypatch, solver: str) -> None:
    """An error of linear algebra would depend on the rows.

    Accelerated gradient descent takes over, whose steps suffice for every table.
    """

    def failing(*args):
        raise np.linalg.LinAlgError("16-th leading minor of a private matrix")

    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (300, 2))
    y = (X[:, 0] > 0).astype(int)

    def fitted() -> np.ndarray:
        return pf.LogisticRegression(10.0, schema=pf.Schema.box(-1, 1, target=[0, 1]), random_state=0).fit(X, y).coef_

    usual = fitted()
    monkeypatch.setattr(minima, solver, failing)
    np.testing.assert_allclose(fitted(), usual, atol=1e-3)


def test_a_target_far_from_zero_is_fitted_in_its_own_units() -> None:
    X = np.random.default_rng(0).uniform(-1, 1, (5000, 1))
    schema = pf.Schema.box(-1, 1, target=(1e6, 1e6 + 1))
    model = pf.ERM(robust(0.2), epsilon=5.0, schema=schema, random_state=0).fit(X, np.full(5000, 1e6 + 0.3))
    assert model.predict(np.zeros((1, 1)))[0] == pytest.approx(1e6 + 0.3, abs=0.05)


def test_mixed_noise_needs_blocks() -> None:
    model = pf.LogisticRegression(
        1.0,
        schema=pf.Schema.box(-1, 1, target=[0, 1]),
        kernel="rbf",
        mechanism=pf.ObjectivePerturbation(noise="mixed"),
        random_state=0,
    )
    with pytest.raises(pf.PrivacyError, match="mixed"):
        model.fit(np.zeros((4, 2)), [0, 1, 0, 1])


@pytest.mark.parametrize("gamma", [0.0, -1.0, math.inf, 1e300, True])
def test_a_kernel_that_bends_beyond_all_measure_is_refused(gamma: float) -> None:
    model = pf.LogisticRegression(
        1.0, schema=pf.Schema.box(-1, 1, target=[0, 1]), kernel="rbf", gamma=gamma, random_state=0
    )
    with pytest.raises(pf.PrivacyError, match="gamma="):
        model.fit(np.zeros((4, 2)), [0, 1, 0, 1])


def test_features_of_a_row_are_the_same_beside_any_others() -> None:
    from privfit.rows import Rows
    from privfit.rows.layout import Layout
    from privfit.tables import open_table

    schema = pf.Schema.box(-1, 1, n_features=9, target=[0, 1])
    geometry = schema.geometry(intercept=False)
    rows = np.random.default_rng(0).uniform(-1, 1, (50, 9))
    layout, features = Layout(geometry), FourierFeatures(9, 40, 100.0)

    def made(table: np.ndarray) -> np.ndarray:
        from privfit.rows.workers import Chunk

        labelled = np.column_stack([table, np.zeros(len(table))])
        batch = next(iter(Rows(open_table(labelled), schema, geometry).batches()))
        return features(layout.turned(Chunk(*layout.chunk(batch), np.zeros(len(table))), features.frequencies))

    together = made(rows)
    for place in (0, 17, 49):
        np.testing.assert_allclose(made(rows[place : place + 1])[0], together[place], atol=4e-16)


@pytest.mark.parametrize("classes", [2, 4])
def test_a_start_from_few_rows_and_their_curvature_leads_to_the_same_minimum(
    classes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Which rows are looked at first decides how many passes there are, and nothing else: the output's noise covers the
    rest.
    """
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (20_000, 3))
    y = np.clip(((X[:, 0] + 1) / 2 * classes + rng.normal(0, 0.5, len(X))).astype(int), 0, classes - 1)

    def fitted() -> np.ndarray:
        model = pf.LogisticRegression(
            epsilon=1e4, schema=pf.Schema.box(-1, 1, target=list(range(classes))), random_state=0
        )
        return np.asarray(model.fit(X, y).coef_)

    whole = fitted()
    monkeypatch.setattr("privfit.rows.cached_design.SAMPLE_VALUES", 1)
    estimated: list[int] = []
    curved = CachedDesign.hessian
    monkeypatch.setattr(
        CachedDesign, "hessian", lambda kept, *args: estimated.append(kept.hessian_rows) or curved(kept, *args)
    )
    np.testing.assert_allclose(fitted(), whole, atol=1e-4)
    assert estimated == [len(X) // 32]


@pytest.mark.parametrize("expected", [1_000, 36_000])
def test_rounding_asks_for_no_more_ridge_where_the_number_of_rows_is_about_known(
    expected: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The true number is private, so that the plan is for far more rows than expected; yet not for so many that the
    ridge would have to grow.
    """
    schema = pf.Schema([pf.Numeric(f"x{i}", -1, 1) for i in range(14)], target=pf.Category("y", [0, 1]))
    mechanism, risk = pf.ObjectivePerturbation(), ERMProblem(LOGISTIC)
    terms = PrivacyParameters(Budget(1.0), "add-remove", 1, expected)
    geometry = mechanism.geometry(schema, risk, "splines")
    planned = mechanism.plan(PublicFacts(geometry, terms, expected), risk).ridge
    monkeypatch.setattr(
        "privfit.mechanisms.perturbation.objective.quiet_ridge", lambda gradients, rows, least, *_: least
    )
    assert planned == mechanism.plan(PublicFacts(geometry, terms, expected), risk).ridge


@pytest.mark.parametrize("ridge", [1e20, 1e300, 1.7e308])
@pytest.mark.parametrize("mechanism", ["objective", "output"])
def test_a_ridge_that_leaves_no_weights_is_refused_before_the_charge_or_does_no_harm(
    ridge: float, mechanism: str
) -> None:
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (500, 2))
    y = (X[:, 0] > 0).astype(int)
    ledger = pf.Ledger(epsilon=2.0)
    model = pf.ERM(
        None, ridge, epsilon=1.0, schema=pf.Schema.box(-1, 1, target=[0, 1]), mechanism=mechanism, ledger=ledger
    )
    try:
        assert model.fit(X, y).score(X, y) > 0.7
    except pf.PrivacyError as refused:
        assert_told_in_order(str(refused), ["A ridge of", "was asked for", "Use a smaller one"])
        assert ledger.spent.epsilon == 0


@pytest.mark.parametrize("factor", [1e-4, 1e4])
def test_the_ridge_for_noise_on_the_minimum_grows_as_the_loss_does(factor: float) -> None:
    def ridge(loss: ConvexLoss) -> float:
        return planned(MIXED, loss, pf.OutputPerturbation).ridge

    stretched = replace(
        LOGISTIC,
        slope=lambda z, y: factor * LOGISTIC.slope(z, y),
        curvature=lambda z, y: factor * LOGISTIC.curvature(z, y),
        most_slope=factor,
        most_curvature=0.25 * factor,
        taper=None,
        value=None,
        excess_at_zero=factor * LOGISTIC.excess_at_zero,
        name="stretched",
    )
    assert ridge(stretched) == pytest.approx(factor * ridge(LOGISTIC))


def test_noise_on_the_minimum_fits_a_number_in_its_own_units() -> None:
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (20_000, 3))
    y = np.clip(125_000 + 25_000 * (X @ [2, -1, 1] + rng.normal(0, 0.1, 20_000)), 0, 250_000)
    schema = pf.Schema.box(-1, 1, target=(0, 250_000))
    model = pf.ERM(
        pf.losses.robust(5000.0), epsilon=1.0, schema=schema, mechanism="output", numeric="slope", random_state=0
    ).fit(X, y)
    assert model.score(X, y) > 0.8


def stepped(size: float, place: float) -> object:
    """A slope that jumps by so much at a place, and is straight elsewhere."""
    return lambda z, y: -y * (size * (y * z < place) + (1 - size) * np.clip((2 - y * z) / 4, 0, 1))


@pytest.mark.parametrize(
    "slope",
    [
        lambda z, y: np.where(y * z < 1, -y, 0.0),
        stepped(1.0, 0.123),
        stepped(0.3, 0.987),
        stepped(0.01, 0.5),
        stepped(0.5, -50.0),
    ],
)
def test_a_slope_that_jumps_is_refused_before_the_charge(slope: object) -> None:
    ledger = pf.Ledger(epsilon=1.0)
    loss = ConvexLoss(slope, lambda z, y: 0.0 * z, most_slope=1.0, link="slopes")  # type: ignore[arg-type]
    with pytest.raises(pf.PrivacyError) as refused:
        pf.ERM(loss, schema=pf.Schema.box(-1, 1, target=[0, 1]), mechanism="output", ledger=ledger).fit(
            np.zeros((5, 2)), [0, 1, 0, 1, 0]
        )
    assert_told_in_order(str(refused.value), ["has a slope that jumps", "Round the corner", "Nothing was charged"])
    assert ledger.spent.epsilon == 0


def test_weights_that_noise_makes_long_are_planned_for() -> None:
    """Rounding grows with the weights, and those with noise over the ridge: a small ridge at 600 columns is fitted, not
    refused after the charge.
    """
    rng = np.random.default_rng(3)
    X = rng.normal(size=(20_000, 600))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    y = (X @ rng.normal(size=600) > 0).astype(int)
    mechanism = pf.ObjectivePerturbation(ridge=0.5)
    model = pf.LogisticRegression(
        1.0, schema=pf.Schema.box(-1, 1, target=[0, 1]), row_norm=1.0, mechanism=mechanism, random_state=0
    ).fit(X, y)
    assert np.linalg.norm(model.coef_) > 300


def test_gaussian_noise_is_not_tried_where_a_person_has_very_many_rows() -> None:
    assert planned(MIXED, people=10, delta=1e-6).event.delta == 0
    assert planned(MIXED, people=5000, delta=1e-6).event.delta == 0
    with pytest.raises(pf.PrivacyError, match="rows_per_person=5000"):
        planned(MIXED, people=5000, delta=1e-6, noise="gaussian")


def test_a_ridge_so_small_that_precision_costs_more_than_privacy_is_told() -> None:
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (3000, 2))
    y = (X[:, 0] > 0).astype(int)
    schema = pf.Schema.box(-1, 1, target=[0, 1])
    with pytest.warns(pf.PrivacyWarning, match="is so small that every weight has noise"):
        pf.ERM(None, 1e-5, epsilon=100.0, schema=schema, random_state=0).fit(X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        pf.ERM(None, 1.0, epsilon=100.0, schema=schema, random_state=0).fit(X, y)


def test_what_a_loss_of_the_users_own_warns_of_or_raises_about_rows_is_not_told() -> None:
    """Numpy's warnings, Python's, numbers that are none and errors, for one value that a row may have: nothing of it
    comes out.
    """

    def own(trouble: object) -> ConvexLoss:
        def curvature(z: object, y: object) -> object:
            trouble(np.abs(np.asarray(y) - 0.125) < 1e-9)  # type: ignore[operator]
            return 1.0 + 0 * np.asarray(z)

        return ConvexLoss(lambda z, y: np.clip(z - y, -1, 1), curvature, most_slope=1.0, most_curvature=1.0)

    def divides(bad: np.ndarray) -> None:
        assert np.isfinite(1 / np.where(bad, 0.0, 1.0)).any()

    def warns(bad: np.ndarray) -> None:
        if bad.any():
            warnings.warn("a row", stacklevel=2)

    def raising(kind: type[BaseException]) -> object:
        def raises(bad: np.ndarray) -> None:
            if bad.any():
                raise kind("a row of 0.125")

        return raises

    schema = pf.Schema([pf.Numeric("x", -1, 1)], target=pf.Numeric("y", -1, 1))
    X, y = np.linspace(-1, 1, 60)[:, None], np.linspace(-1, 1, 60)
    y[7] = 0.125
    for trouble in (divides, warns):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            pf.ERM(own(trouble), epsilon=1.0, schema=schema, random_state=0).fit(X, y)
    for kind in (KeyError, ValueError, OSError, pf.PrivacyError, MemoryError, SystemExit, KeyboardInterrupt):
        ledger = pf.Ledger(epsilon=1.0)
        model = pf.ERM(own(raising(kind)), epsilon=1.0, schema=schema, ledger=ledger).fit(X, y)
        assert np.isfinite(model.coef_).all()
        assert ledger.spent.epsilon == 1.0


def test_a_loss_that_fails_for_no_rows_at_all_fails_no_fit() -> None:
    """Parts of a tuned fit may be empty, and a maximum of nothing is an error."""
    own = ConvexLoss(
        lambda z, y: -y * (np.max(np.abs(z)) >= 0) / (1 + np.exp(y * z)),
        lambda z, y: np.exp(-np.abs(z)) / (1 + np.exp(-np.abs(z))) ** 2,
        most_slope=1.0,
        most_curvature=0.25,
        link="slopes",
    )
    mechanism = pf.TunedPerturbation(candidates=tuple(pf.ObjectivePerturbation(ridge=1.0) for _ in range(3)))
    schema = pf.Schema.box(-1, 1, target=[0, 1])
    for seed in range(5):
        model = pf.ERM(own, schema=schema, mechanism=mechanism, random_state=seed).fit(np.zeros((2, 1)), [0, 1])
        assert np.isfinite(model.coef_).all()


@pytest.mark.parametrize("place", ["sample", "hessian"])
def test_memory_that_the_usual_solver_lacks_fails_no_fit(place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A dense sample takes memory by the number of rows, which is private under add-remove; the descent takes none."""

    def failing(*args):
        raise MemoryError("20000 rows")

    monkeypatch.setattr(CachedDesign, place, failing)
    X = np.random.default_rng(0).uniform(-1, 1, (50, 2))
    schema = pf.Schema.box(-1, 1, target=[0, 1])
    model = pf.LogisticRegression(1.0, schema=schema, adjacency="add-remove", random_state=0).fit(
        X, (X[:, 0] > 0).astype(int)
    )
    assert np.isfinite(model.coef_).all()


def test_a_warning_about_a_ridge_comes_before_the_charge() -> None:
    ledger = pf.Ledger(epsilon=200.0)
    model = pf.ERM(None, 1e-5, epsilon=100.0, schema=pf.Schema.box(-1, 1, target=[0, 1]), ledger=ledger)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(pf.PrivacyWarning):
            model.fit(np.zeros((50, 2)), np.arange(50) % 2)
    assert ledger.spent.epsilon == 0


@pytest.mark.parametrize("ridge", [5e-324, 1e-300])
def test_a_ridge_that_leaves_nothing_but_noise_is_refused_in_a_sentence(ridge: float) -> None:
    with pytest.raises(pf.PrivacyError, match="Use a larger"):
        pf.ERM(None, ridge, epsilon=1.0, schema=pf.Schema.box(-1, 1, target=[0, 1]), mechanism="output").fit(
            np.zeros((5, 2)), [0, 1, 0, 1, 0]
        )
