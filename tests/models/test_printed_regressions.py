"""The functional mechanism and its regularised forms to the letter, by parameters alone: printed calibrations,
encodings and repairs for every estimator.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator

import numpy as np
import pytest
from scipy.optimize import minimize

import privfit as pf
from privfit.losses import SQUARED
from privfit.mechanisms.base import PublicFacts
from privfit.mechanisms.functional.problem import QuadraticProblem
from privfit.privacy import Budget, PrivacyParameters
from privfit.solvers import stationary_point
from tests.support.beats import assert_told_in_order
from tests.support.effort import quick_or_full
from tests.support.noise import RecordingNoise
from tests.support.replays import furthest_moved, told

REGRESSIONS = (pf.LinearRegression, pf.Ridge, pf.Lasso, pf.ElasticNet)
CALIBRATIONS = ("paper", "paper-box")
REPAIRS = ("ridge", "trim", "rerun", "floor", None)
NUMBERS = pf.Schema([pf.Numeric("a", -1, 1), pf.Numeric("b", 0, 10), pf.Numeric("c", 5, 6)], pf.Numeric("y", 0, 50))
CLASSES = pf.Schema(NUMBERS.features, pf.Category("y", ["n", "p"]))


def people(rows: int, seed: int = 0) -> np.ndarray:
    generator = np.random.default_rng(seed)
    X = np.column_stack([generator.uniform(-1, 1, rows), generator.uniform(0, 10, rows), generator.uniform(5, 6, rows)])
    y = 25 + 10 * X[:, 0] + 1.5 * (X[:, 1] - 5) - 8 * (X[:, 2] - 5.5) + generator.normal(0, 3, rows)
    return np.column_stack([X, np.clip(y, 0, 50)])


def scaled(table: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    low, high = np.array([-1, 0, 5, 0]), np.array([1, 10, 6, 50])
    whole = 2 * (table - low) / (high - low) - 1
    return whole[:, :-1], whole[:, -1]


def box(repair: str | None = None) -> pf.FunctionalMechanism:
    return pf.FunctionalMechanism(calibration="paper-box", repair=repair)


# -- every printed calibration and repair, for every estimator --------------------------------------


@pytest.mark.parametrize("calibration", CALIBRATIONS)
@pytest.mark.parametrize("repair", REPAIRS)
@pytest.mark.parametrize("estimator", [*REGRESSIONS, pf.LogisticRegression])
def test_every_printed_form_is_a_call(estimator, repair, calibration: str) -> None:
    logistic = estimator is pf.LogisticRegression
    table = people(3000)
    y = np.where(table[:, 3] > 25, "p", "n") if logistic else table[:, 3]
    mechanism = pf.FunctionalMechanism(calibration=calibration, repair=repair)
    ledger = pf.Ledger(epsilon=200.0)
    model = estimator(100.0, schema=CLASSES if logistic else NUMBERS, mechanism=mechanism, ledger=ledger)
    model.fit(table[:, :3], y)
    assert model.report_.private
    assert ledger.spent.epsilon == 100.0
    assert calibration in model.report_.mechanism
    assert np.isfinite(model.coef_).all()


# -- the box: sensitivity, noise, replay -------------------------------------------------------------


def rows_of(d: int) -> Iterator[np.ndarray]:
    """Corners and zeros of the box, the target last."""
    return (np.array(row) for row in itertools.product((-1.0, 0.0, 1.0), repeat=d + 1))


def released(row: np.ndarray) -> np.ndarray:
    return np.concatenate([np.outer(row[:-1], row[:-1]).ravel(), 2 * row[:-1] * row[-1]])


@pytest.mark.parametrize("d", [1, 2])
def test_all_entries_move_by_no_more_than_the_printed_bound_and_by_more_than_a_third_of_it(d: int) -> None:
    """Theorem 6, all pairs of rows."""
    worst = max(np.abs(released(one) - released(other)).sum() for one in rows_of(d) for other in rows_of(d))
    printed = SQUARED.printed_sensitivity(d)
    assert printed == 2 * (d + 1) ** 2
    assert printed / 3 < worst <= 2 * (d * d + 2 * d) < printed


@pytest.mark.parametrize("d", [1, 3, 8])
def test_noise_is_on_every_entry_with_the_printed_scale(d: int) -> None:
    schema = pf.Schema.box(-1, 1, n_features=d, target=(-1, 1))
    mechanism, problem = box(), QuadraticProblem(SQUARED, fit_intercept=True)
    facts = PublicFacts(mechanism.geometry(schema, problem), PrivacyParameters(Budget(0.4)), 100)
    event = mechanism.plan(facts, problem).event
    assert event.n_values == d * d + d
    assert event.scale / event.unit == pytest.approx(2 * (d + 1) ** 2 / 0.4)
    assert event.kinds == ("laplace",)


def test_without_noise_the_four_regressions_are_the_papers() -> None:
    """Equation 4 on columns and a target scaled to [-1, 1], without an intercept."""
    table, size, n = people(2000), 40.0, 2000
    X, y = scaled(table)
    for alpha, model in (
        (None, pf.LinearRegression(1e9)),
        (1.0, pf.Ridge(1e9, alpha=size, penalty_units="scaled")),
        (0.0, pf.Lasso(1e9, alpha=size / (2 * n), penalty_units="scaled")),
        (0.5, pf.ElasticNet(1e9, alpha=size * 1.5 / (2 * n), l1_ratio=1 / 3, penalty_units="scaled")),
    ):

        def loss(w: np.ndarray, alpha: float | None = alpha) -> float:
            penalty = 0.0 if alpha is None else size * (alpha * w @ w + (1 - alpha) * np.abs(w).sum())
            return float(np.sum((y - X @ w) ** 2) + penalty)

        found = minimize(
            loss, np.zeros(3), method="Nelder-Mead", options={"xatol": 1e-9, "fatol": 1e-9, "maxiter": 9999}
        )
        model.set_params(schema=NUMBERS, mechanism=box(), random_state=0).fit(table[:, :3], table[:, 3])
        half = np.array([1.0, 5.0, 0.5])
        np.testing.assert_allclose(model.coef_ * half / 25, found.x, atol=2e-4)


def pairs_of(count: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    for place in range(count):
        table = people(12, place)
        other = table.copy()
        table[0], other[0] = [1, 10, 6, 50], [-1, 0, 5, 50] if place % 2 else [-1, 10, 5, 0]
        yield table, other


@pytest.mark.parametrize("repair", [None, "trim"])
@quick_or_full("many", quick=[120], full=[500])
def test_hundreds_of_pairs_of_neighbours_cannot_be_told_apart(monkeypatch, repair: str | None, many: int) -> None:
    model = pf.ElasticNet(0.5, alpha=0.01, penalty_units="scaled", schema=NUMBERS, mechanism=box(repair))

    def fit(table: np.ndarray) -> tuple:
        model.set_params(ledger=pf.Ledger(epsilon=1.0)).fit(table[:, :3], table[:, 3])
        return model.coef_.tolist(), str(model.report_), model.dual_gap_

    tried, furthest = furthest_moved(fit, pairs_of(many), monkeypatch)
    assert tried == many
    assert 0.1 < furthest <= 0.5


def test_rows_per_person_and_other_neighbours() -> None:
    model = pf.LinearRegression(1.0, schema=NUMBERS, mechanism=box("trim"), rows_per_person=3)
    table = people(50)
    scale = model.fit(table[:, :3], table[:, 3]).report_.to_dict()["noise_scale"]
    assert scale == pytest.approx(3 * 2 * 16)
    ledger = pf.Ledger(epsilon=1.0)
    with pytest.raises(pf.PrivacyError, match="paper-box"):
        model.set_params(adjacency="add-remove", ledger=ledger).fit(table[:, :3], table[:, 3])
    assert ledger.spent.epsilon == 0


# -- objectives without a minimum --------------------------------------------------------------------


def test_a_noisy_objective_without_a_minimum_is_taken_as_it_is_and_told(monkeypatch) -> None:
    """repair=None: most noisy matrices of few rows are indefinite; an L1 penalty gives no minimum (e4)."""
    table, seen = people(30), []
    model = pf.Lasso(0.5, alpha=0.1, schema=NUMBERS, mechanism=box())
    for seed in range(12):
        told(lambda rows: model.fit(rows[:, :3], rows[:, 3]), table, RecordingNoise(seed), monkeypatch)
        bounded = model.report_.repairs["bounded"]
        assert (model.dual_gap_ == math.inf) == (not bounded)
        assert ("no minimum" in str(model.report_)) == (not bounded)
        seen.append(bounded)
    assert not all(seen)


def test_a_ridge_gives_a_minimum_to_what_has_none() -> None:
    matrix, vector = np.diag([-1.0, 2.0]), np.array([1.0, 1.0])
    found = stationary_point(matrix, vector, np.zeros(2), np.full(2, 3.0))
    np.testing.assert_allclose(found.coefficients, [1 / 2, 1 / 5])
    assert found.gap < 1e-9
    assert stationary_point(matrix, vector, np.zeros(2), np.zeros(2)).gap == math.inf


def test_a_point_without_slope_has_none() -> None:
    generator = np.random.default_rng(0)
    for _ in range(50):
        noisy = generator.normal(size=(4, 4))
        matrix, vector, l1 = noisy + noisy.T, generator.normal(size=4), np.full(4, 0.1)
        found = stationary_point(matrix, vector, l1, np.zeros(4)).coefficients
        slope, moved = matrix @ found - vector, found != 0
        np.testing.assert_allclose(slope[moved] + (l1 * np.sign(found))[moved], 0, atol=1e-6)


@pytest.mark.parametrize(
    ("model", "beats"),
    [
        (
            pf.Ridge(mechanism=pf.FunctionalMechanism(calibration="box")),
            ("calibration='box'", "'paper-box'", "Use 'tight'"),
        ),
        (
            pf.Ridge(mechanism=pf.FunctionalMechanism(calibration="paper-box", noise="linf")),
            ("noise='linf'", "Laplace", "Use 'laplace'"),
        ),
        (pf.Lasso(penalty_units="columns"), ("penalty_units='columns'", "'scaled'", "Use 'table'")),
    ],
)
def test_what_means_nothing_is_refused_in_three_beats(model, beats: tuple[str, ...]) -> None:
    table = people(20)
    with pytest.raises(pf.PrivacyError) as refused:
        model.set_params(schema=NUMBERS).fit(table[:, :3], table[:, 3])
    assert_told_in_order(str(refused.value), beats)


def test_a_model_without_a_minimum_can_be_saved(tmp_path) -> None:
    table = people(30)
    model = pf.Lasso(0.5, alpha=0.1, schema=NUMBERS, mechanism=box()).fit(table[:, :3], table[:, 3])
    model.save(tmp_path / "model.json")
    np.testing.assert_array_equal(pf.load_model(tmp_path / "model.json").coef_, model.coef_)
