"""Support vector machines: the margin they promise, the hinge and its rounded corner, and what each needs."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import minimize
from sklearn.base import clone

import privfit as pf
from privfit.losses import smooth_hinge
from tests.support.beats import assert_told_in_order

SCHEMA = pf.Schema(
    [pf.Numeric("a", -1, 1), pf.Numeric("b", -1, 1), pf.Category("c", [0, 1, 2])],
    target=pf.Category("y", ["no", "yes"]),
)


def table_of(rows: int = 1500, seed: int = 0, noise: float = 0.2) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = np.column_stack([rng.uniform(-1, 1, (rows, 2)), rng.integers(0, 3, rows)])
    return X, np.where(X[:, 0] - X[:, 1] + 0.4 * (X[:, 2] - 1) + noise * rng.normal(size=rows) > 0, "yes", "no")


def dense(X: np.ndarray) -> np.ndarray:
    return np.column_stack([np.rint(X[:, :2] * 2**16) / 2**16, X[:, 2:] == [0, 1, 2]])


@pytest.mark.parametrize("width", [0.5, 0.1, 2.0])
def test_at_a_huge_epsilon_the_rounded_hinge_is_minimised(width: float) -> None:
    """Against a general solver on the same rows."""
    X, y = table_of(400)
    model = pf.LinearSVC(
        1e7, schema=SCHEMA, width=width, mechanism=pf.ObjectivePerturbation(ridge=5.0), numeric="slope", random_state=0
    ).fit(X, y)
    design, sides, loss = dense(X), np.where(y == "yes", 1.0, -1.0), smooth_hinge(width)

    def objective(w: np.ndarray) -> tuple[float, np.ndarray]:
        z = design @ w
        return float(loss.value(z, sides).sum() + 2.5 * w @ w), design.T @ loss.slope(z, sides) + 5.0 * w

    found = minimize(
        objective, np.zeros(5), jac=True, method="L-BFGS-B", options={"gtol": 1e-9, "ftol": 1e-15, "maxiter": 5000}
    )
    np.testing.assert_allclose(model.decision_function(X), design @ found.x, atol=2e-3)


def test_the_hinge_itself_is_minimised_by_its_perturbed_minimum() -> None:
    X, y = table_of(400)
    model = pf.LinearSVC(
        1e7, schema=SCHEMA, loss="hinge", mechanism=pf.OutputPerturbation(ridge=5.0), numeric="slope", random_state=0
    )
    scores = model.fit(X, y).decision_function(X)
    sides = np.where(y == "yes", 1.0, -1.0)
    norm = np.linalg.norm(np.concatenate([model.coef_[0, :2], model.coef_[0, 2:] + model.intercept_[0]]))
    found = np.maximum(0, 1 - sides * scores).sum() + 2.5 * norm**2
    design = dense(X)
    rng = np.random.default_rng(0)
    weights = np.concatenate([model.coef_[0, :2], model.coef_[0, 2:] + model.intercept_[0]])
    np.testing.assert_allclose(design @ weights, scores, atol=1e-3)
    for _ in range(50):  # no step away is lower by more than the rounded corner and the lattice
        other = weights + rng.normal(0, 0.1, 5)
        assert np.maximum(0, 1 - sides * (design @ other)).sum() + 2.5 * other @ other > found - 0.5


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({}, "objective perturbation"),
        ({"loss": "hinge"}, "genetic search, 3 rounds"),
        ({"loss": "hinge", "numeric": "slope"}, "output perturbation"),
        ({"loss": "hinge", "fit_intercept": False}, "output perturbation"),
        ({"mechanism": "output"}, "output perturbation"),
    ],
)
def test_the_usual_mechanism_suits_the_loss(given: dict, told: str) -> None:
    X, y = table_of(100)
    model = pf.LinearSVC(1.0, schema=SCHEMA, random_state=0, **given).fit(X, y)
    assert model.report_.mechanism == told
    assert model.report_.notes[0].endswith("hinge loss") == ("genetic" in told)


def test_it_separates_at_a_moderate_epsilon() -> None:
    X, y = table_of(6000)
    assert pf.LinearSVC(1.0, schema=SCHEMA, random_state=0).fit(X, y).score(*table_of(3000, seed=1)) > 0.85
    assert (
        pf.LinearSVC(1.0, schema=SCHEMA, numeric="slope", delta=1e-6, random_state=0)
        .fit(X, y)
        .score(*table_of(3000, seed=1))
        > 0.85
    )


def test_it_has_sides_and_no_probabilities() -> None:
    X, y = table_of(200)
    model = pf.LinearSVC(2.0, schema=SCHEMA, numeric="splines", random_state=0).fit(X, y)
    assert not hasattr(model, "predict_proba")
    np.testing.assert_array_equal(model.predict(X) == "yes", model.decision_function(X) > 0)
    assert model.coef_.shape == (1, 8 + 8 + 3)
    assert model.intercept_.shape == (1,)


REFUSED = {
    "the hinge in an objective": (
        {"loss": "hinge", "mechanism": "objective"},
        ["The hinge loss states no most_curvature", "private only if", "mechanism='output'"],
    ),
    "the hinge in an objective of one's own": (
        {"loss": "hinge", "mechanism": pf.ObjectivePerturbation(ridge=3.0)},
        ["The hinge loss states no", "private only if", "mechanism='output'"],
    ),
    "another loss": (
        {"loss": "square"},
        ["loss='square' was given", "it is one of", "'huber' if in doubt"],
    ),
    "moments": (
        {"mechanism": "functional"},
        ["mechanism='functional' was given to LinearSVC", "it knows", "'auto' if in doubt"],
    ),
    "moments of one's own": (
        {"mechanism": pf.FunctionalMechanism()},
        ["was given to LinearSVC", "it knows", "'auto' if in doubt"],
    ),
    "no width": ({"width": 0.0}, ["width=0.0", "a positive number", "0.5 if in doubt"]),
    "another kernel": ({"kernel": "cubic"}, ["kernel='cubic' was given", "it is one of", "'linear' if in doubt"]),
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_it_cannot_do_is_refused_in_three_beats_and_uncharged(what: str, tmp_path: Path) -> None:
    parameters, beats = REFUSED[what]
    ledger = pf.Ledger(tmp_path / "ledger.db", epsilon=2.0)
    with pytest.raises(ValueError) as refused:
        pf.LinearSVC(1.0, schema=SCHEMA, ledger=ledger, **parameters).fit(*table_of(30))
    assert_told_in_order(str(refused.value), beats)
    assert ledger.spent.epsilon == 0


def test_it_is_charged_once_and_says_what_it_promises(tmp_path: Path) -> None:
    ledger = pf.Ledger(tmp_path / "ledger.db", epsilon=2.0)
    report = pf.LinearSVC(0.7, schema=SCHEMA, ledger=ledger).fit(*table_of(100)).report_
    assert ledger.spent.epsilon == pytest.approx(0.7, abs=0)
    assert (report.private, report.epsilon, report.delta) == (True, 0.7, 0.0)


def test_parameters_survive_cloning_and_files(tmp_path: Path) -> None:
    X, y = table_of(150)
    model = pf.LinearSVC(1.5, schema=SCHEMA, width=0.2, numeric="slope", random_state=3)
    copy = clone(model)
    assert copy.get_params() == model.get_params()
    np.testing.assert_array_equal(copy.fit(X, y).coef_, model.fit(X, y).coef_)
    model.save(tmp_path / "svm.json")
    loaded = pf.load_model(tmp_path / "svm.json")
    assert (loaded.width, loaded.loss, loaded.epsilon) == (0.2, "huber", 1.5)
    np.testing.assert_array_equal(loaded.decision_function(X), model.decision_function(X))
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))
