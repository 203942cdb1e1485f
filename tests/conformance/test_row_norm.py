"""The attack on models with a public row norm: neighbours whose rows are at the bound, beyond it, and opposite."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression as Plain

import privfit as pf
from privfit.mechanisms.base import PublicFacts
from privfit.mechanisms.perturbation.defaults import FOR_CERTIFICATE
from privfit.mechanisms.perturbation.printed_erm import PrintedObjective, Tuned
from privfit.privacy import Budget, PrivacyParameters
from privfit.rows import CachedDesign, Rows
from privfit.tables import open_table
from tests.conformance.test_perturbed import EPSILON, worst_loss
from tests.support.objective_noise import less_noise

SCHEMA = pf.Schema.box(-2, 2, n_features=3, target=["a", "b"])
LONG, OPPOSITE, SHORT, ZERO = (2.0, 2.0, 2.0), (-2.0, -2.0, -2.0), (0.3, -0.1, 0.2), (0.0, 0.0, 0.0)
PAIRS = [
    ("long and opposite", (*LONG, "a"), (*OPPOSITE, "b")),
    ("the label", (*LONG, "a"), (*LONG, "b")),
    ("beyond the box", (1e300, -5.0, float("inf"), "a"), (*OPPOSITE, "b")),
    ("short and long", (*SHORT, "b"), (*LONG, "a")),
    ("nothing and long", (*ZERO, "a"), (0.0, 2.0, 0.0, "b")),
]
BASE = [(0.5, -0.5, 1.0, "a"), (*SHORT, "b"), (*LONG, "b")]


def planned(estimator: type, left: list, right: list, adjacency: str, **settings):
    model = estimator(epsilon=EPSILON, **settings)
    mechanism = model._chosen_mechanism()
    risk = model._problem(mechanism, SCHEMA)
    geometry = mechanism.geometry(SCHEMA, risk, "slope")
    tables = [
        CachedDesign(Rows(open_table(np.array(rows, dtype=object)), SCHEMA, geometry), risk.features)
        for rows in (left, right)
    ]
    known = len(left) if adjacency == "replace-one" else None
    return mechanism.plan(PublicFacts(geometry, PrivacyParameters(Budget(EPSILON), adjacency), known), risk), *tables


@pytest.mark.parametrize("noise", ["auto", "l2", "laplace", "linf"])
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("estimator", [pf.LogisticRegression, pf.LinearSVC])
def test_no_weights_are_much_likelier_for_one_neighbour(estimator: type, intercept: bool, noise: str) -> None:
    settings = {"row_norm": 1.0, "fit_intercept": intercept, "mechanism": pf.ObjectivePerturbation(noise=noise)}
    for name, one, other in PAIRS:
        for left, right, adjacency in (
            ([*BASE, one], [*BASE, other], "replace-one"),
            (BASE, [*BASE, other], "add-remove"),
        ):
            plan, *tables = planned(estimator, left, right, adjacency, **settings)
            assert worst_loss(plan, *tables) <= EPSILON * (1 - FOR_CERTIFICATE) * (1 + 1e-9), (name, adjacency)


def test_the_attack_comes_close_and_catches_rows_that_are_not_shortened() -> None:
    settings = {"row_norm": 1.0, "fit_intercept": False, "mechanism": pf.ObjectivePerturbation(noise="l2")}
    left, right = [(*LONG, "a")], [(*OPPOSITE, "a")]
    plan, *tables = planned(pf.LogisticRegression, left, right, "replace-one", **settings)
    assert worst_loss(plan, *tables) > 0.9 * EPSILON
    _, *whole = planned(pf.LogisticRegression, left, right, "replace-one", **(settings | {"row_norm": 100.0}))
    assert worst_loss(plan, *whole) > 1.4 * EPSILON
    assert worst_loss(less_noise(plan, 1.2), *tables) > EPSILON


def sphere(rows: int, columns: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(rows, columns))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    return X, np.where(X[:, 0] + 0.3 * rng.normal(size=rows) / np.sqrt(columns) > 0, "b", "a")


def test_noise_follows_the_length_and_not_the_number_of_columns() -> None:
    X, y = sphere(20_000, 40)
    schema = pf.Schema.box(-1, 1, target=["a", "b"])
    errors = {
        norm: np.mean(
            [
                1 - pf.LogisticRegression(0.2, schema=schema, row_norm=norm, random_state=i).fit(X, y).score(X, y)
                for i in range(3)
            ]
        )
        for norm in (None, 1.0)
    }
    assert errors[1.0] < 0.6 * errors[None]
    noise = [
        pf.LogisticRegression(1.0, schema=schema, row_norm=norm, random_state=0).fit(X, y).report_.to_dict()
        for norm in (None, 1.0)
    ]
    assert "scaled down" in str(noise[1])
    assert "shortened" not in str(noise[0])


def test_without_noise_to_speak_of_it_is_logistic_regression_in_the_units_of_the_table() -> None:
    X, y = sphere(3_000, 5)
    X = 30 * X
    schema = pf.Schema.box(-50, 50, target=["a", "b"])
    model = pf.LogisticRegression(
        1e7, schema=schema, row_norm=30.001, mechanism=pf.ObjectivePerturbation(ridge=1.0, steepest=1.0), random_state=0
    ).fit(X, y)
    # the ridge is on the constant too, and on numbers in units of the length
    plain = Plain(C=1.0, fit_intercept=False, tol=1e-10, max_iter=10_000).fit(
        np.column_stack([np.ones(len(X)), X / 30.001]), y
    )
    np.testing.assert_allclose(model.coef_[0] * 30.001, plain.coef_[0, 1:], atol=2e-2, rtol=1e-3)
    assert model.intercept_[0] == pytest.approx(plain.coef_[0, 0], abs=2e-2)


def test_bounds_wider_than_rows_are_long_hardly_matter() -> None:
    X, y = sphere(8_000, 10)
    errors = {
        bound: np.mean(
            [
                1
                - pf.LogisticRegression(
                    0.3, schema=pf.Schema.box(-bound, bound, target=["a", "b"]), row_norm=1.0, random_state=i
                )
                .fit(X, y)
                .score(X, y)
                for i in range(4)
            ]
        )
        for bound in (1.0, 100.0)
    }
    assert errors[100.0] < errors[1.0] + 0.02


def test_a_hinge_of_rows_with_a_length_is_fitted_by_its_output() -> None:
    X, y = sphere(2_000, 3)
    model = pf.LinearSVC(
        5.0, loss="hinge", schema=pf.Schema.box(-1, 1, target=["a", "b"]), row_norm=1.0, random_state=0
    ).fit(X, y)
    assert "output" in str(model.report_)
    assert model.score(X, y) > 0.6


def test_settings_chosen_by_the_jmlr_algorithm_know_the_constant() -> None:
    X, y = sphere(6_000, 4)
    tuned = Tuned(candidates=(PrintedObjective(regularisation=1e-3),))
    model = pf.LogisticRegression(
        5.0, schema=pf.Schema.box(-1, 1, target=["a", "b"]), row_norm=1.0, mechanism=tuned, random_state=0
    ).fit(X, y)
    assert model.coef_.shape == (1, 4)
    assert model.score(X, y) > 0.8


def test_a_saved_model_predicts_alike(tmp_path) -> None:
    X, y = sphere(500, 4)
    model = pf.LinearSVC(1.0, schema=pf.Schema.box(-1, 1, target=["a", "b"]), row_norm=1.0, random_state=0).fit(X, y)
    model.save(tmp_path / "model.json")
    loaded = pf.load_model(tmp_path / "model.json")
    np.testing.assert_array_equal(loaded.decision_function(X), model.decision_function(X))
    assert loaded.row_norm == 1.0


@pytest.mark.parametrize(
    ("settings", "schema"),
    [
        ({"row_norm": 0.0}, SCHEMA),
        ({"row_norm": float("nan")}, SCHEMA),
        ({"row_norm": "long"}, SCHEMA),
        ({"row_norm": 1e-4}, SCHEMA),
        ({"row_norm": 10**400}, SCHEMA),
        ({"row_norm": 1.0, "kernel": "rbf"}, SCHEMA),
        ({"row_norm": 1.0, "numeric": "splines"}, SCHEMA),
        ({"row_norm": 1.0, "mechanism": "functional"}, SCHEMA),
        ({"row_norm": 1.0, "mechanism": "genetic"}, SCHEMA),
        ({"row_norm": 1.0, "mechanism": "sample-and-aggregate"}, SCHEMA),
        ({"row_norm": 1.0}, pf.Schema([pf.Numeric("x", 0, 1)], target=pf.Category("y", ["a", "b"]))),
        (
            {"row_norm": 1.0},
            pf.Schema([pf.Numeric("x", -1, 1), pf.Numeric("z", -2, 2)], target=pf.Category("y", ["a", "b"])),
        ),
        ({"row_norm": 1.0}, pf.Schema([pf.Category("c", ["p", "q"])], target=pf.Category("y", ["a", "b"]))),
    ],
)
def test_where_a_length_means_nothing_it_is_refused_uncharged(settings: dict, schema: pf.Schema, tmp_path) -> None:
    ledger = pf.Ledger(tmp_path / "ledger.db", epsilon=5.0)
    columns = len(schema.features)
    X = (
        np.full((30, columns), "p", dtype=object)
        if isinstance(schema.features[0], pf.Category)
        else np.zeros((30, columns))
    )
    with pytest.raises(pf.PrivacyError, match="row_norm"):
        pf.LogisticRegression(1.0, schema=schema, ledger=ledger, **settings).fit(X, ["a", "b"] * 15)
    assert ledger.spent.epsilon == 0
