"""PrivateERM: the printed constants, attacked on every small table; what is charged, and when."""

from __future__ import annotations

import itertools
import math
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

import privfit as pf
from privfit.baselines import BASELINES, PrivateERM
from privfit.baselines.erm import LOSSES
from privfit.mechanisms import ERMProblem
from privfit.mechanisms.base import PublicFacts
from privfit.mechanisms.perturbation.printed_erm import PrintedObjective, PrintedOutput
from privfit.privacy import SecureNoise
from tests.baselines import SCHEMA, apart, small_table, terms
from tests.support.beats import assert_told_in_order

CURVATURES = {"logistic": 0.25, "huber": 1.0}
FOR_SOLVER = 0.005


def as_printed(epsilon: float, n: int, Lambda: float, c: float) -> tuple[float, float]:
    """epsilon' and Lambda + Delta, letter by letter from the paper."""
    left = epsilon - math.log(1 + 2 * c / (n * Lambda) + c**2 / (n**2 * Lambda**2))
    if left > 0:
        return left, Lambda
    Delta = c / (n * (math.exp(epsilon / 4) - 1)) - Lambda
    return epsilon / 2, Lambda + Delta


def planned(mechanism, loss: str, given, n: int | None, schema: pf.Schema = SCHEMA):
    risk = ERMProblem(LOSSES[loss])
    return mechanism.plan(PublicFacts(mechanism.geometry(schema, risk, "slope"), given, n), risk)


def test_weights_are_those_that_are_released_and_nothing_is_undone(monkeypatch: pytest.MonkeyPatch) -> None:
    X = np.column_stack([np.random.default_rng(0).uniform(-1, 1, 300), np.arange(300) % 3])
    y = np.where(X[:, 0] > 0, "b", "a")
    given_ = {
        "schema": pf.Schema([pf.Numeric("x", -1, 1), pf.Category("c", [0, 1, 2])], target=pf.Category("y", ["a", "b"]))
    }
    found = [PrivateERM(1.0, regularisation=0.1, random_state=0, **given_).fit(X, y)]
    monkeypatch.setattr("privfit.mechanisms.perturbation.problem.UNDONE", 0.9)
    found.append(PrivateERM(1.0, regularisation=0.1, random_state=0, **given_).fit(X, y))
    np.testing.assert_array_equal(found[0].coef_, found[1].coef_)
    assert not any("stretched" in note for note in found[0].report_.notes)


# -- constants -------------------------------------------------------------------------------------


@pytest.mark.parametrize("loss", list(LOSSES))
@pytest.mark.parametrize("adjacency", ["replace-one", "add-remove"])
@pytest.mark.parametrize("epsilon", [0.05, 0.8, 4.0])
@pytest.mark.parametrize("Lambda", [1e-12, 1e-4, 3e-3, 1.0])
def test_the_objective_is_tilted_by_the_printed_noise(loss, adjacency, epsilon, Lambda) -> None:
    n = 5000
    plan = planned(PrintedObjective(regularisation=Lambda), loss, terms(epsilon, adjacency, expected_rows=n), n)
    left, whole = as_printed(epsilon * (1 - FOR_SOLVER), n, Lambda, CURVATURES[loss])
    length = plan.gradients.norms.l2
    assert length == math.sqrt(2)  # a number, and a category that carries the intercept
    assert plan.ridge == pytest.approx(n * whole * length**2, rel=1e-9)
    assert plan.event.kinds == ("k-norm-l2",)
    assert plan.event.scale / plan.event.unit == pytest.approx(2 * length / left, rel=1e-6)
    assert ("Lambda raised" in plan.event.mechanism) == (whole > Lambda)
    undone = (
        2 * (plan.precision.slack + 2 / plan.event.unit) * 2 / plan.ridge
    )  # four weights; what two solvers leave undone, in L1
    assert plan.certificate.scale / plan.certificate.unit >= undone / (FOR_SOLVER * epsilon)


def test_the_fallback_of_the_paper_is_where_its_epsilon_is_used_up() -> None:
    """The branch changes at 2 log(1 + c / (n Lambda)) = epsilon; just before it the printed noise explodes, just behind
    it is 4 / epsilon.
    """
    epsilon, n = 1.0, 1000
    turn = 0.25 / n / math.expm1(epsilon * (1 - FOR_SOLVER) / 2)
    before, behind = (
        planned(PrintedObjective(regularisation=turn * by), "logistic", terms(epsilon), n) for by in (1.0001, 0.9999)
    )
    assert before.sd > 1000 * behind.sd
    assert behind.event.scale / behind.event.unit == pytest.approx(4 * math.sqrt(2) / (1 - FOR_SOLVER), rel=1e-9)


@pytest.mark.parametrize("adjacency", ["replace-one", "add-remove"])
@pytest.mark.parametrize("loss", list(LOSSES))
def test_the_output_gets_the_printed_noise(adjacency, loss) -> None:
    n, Lambda, epsilon = 5000, 0.01, 0.5
    plan = planned(PrintedOutput(regularisation=Lambda), loss, terms(epsilon, adjacency, expected_rows=n), n)
    length = math.sqrt(2)
    assert plan.ridge == pytest.approx(n * Lambda * length**2)
    printed = 2 / (n * Lambda * epsilon)  # for rows of length 1, whose weights are `length` times ours
    scale = plan.event.scale / plan.event.unit
    assert printed / length <= scale <= 1.05 * printed / length


def test_several_rows_a_person_are_paid_for() -> None:
    one, three = (
        planned(PrintedOutput(regularisation=0.01), "huber", terms(0.5, people=people), 5000) for people in (1, 3)
    )
    assert three.sd == pytest.approx(3 * one.sd, rel=0.05)
    one, three = (
        planned(PrintedObjective(regularisation=1.0), "huber", terms(0.5, people=people), 5000) for people in (1, 3)
    )
    assert three.sd >= 3 * one.sd


# -- attacks ---------------------------------------------------------------------------------------


def largest_loss(loss: str, scale: float, ridge: float, adjacency: str) -> float:
    """The largest loss of privacy of a tilted objective of one column over all tables of up to two shared records and
    one more, at outputs of every size, without approximation.
    """
    f, records = LOSSES[loss], np.linspace(-1.0, 1.0, 21)
    outputs = np.concatenate([-np.geomspace(1e-3, 1e4, 300), [0.0], np.geomspace(1e-3, 1e4, 300)])
    pulls = np.array([record * f.slope(record * outputs, 1.0) for record in records])
    bends = np.array([record**2 * f.curvature(record * outputs, 1.0) for record in records])
    worst = 0.0
    for size in range(3):
        for common in itertools.combinations_with_replacement(range(0, len(records), 5), size):
            pull, bend = ridge * outputs + pulls[list(common)].sum(axis=0), ridge + bends[list(common)].sum(axis=0)
            with_one = np.log(bend + bends) - np.abs(pull + pulls) / scale
            without = np.log(bend) - np.abs(pull) / scale
            found = np.ptp(with_one, axis=0) if adjacency == "replace-one" else np.abs(with_one - without)
            worst = max(worst, float(found.max()))
    return worst


@pytest.mark.parametrize("loss", list(LOSSES))
@pytest.mark.parametrize("adjacency", ["replace-one", "add-remove"])
@pytest.mark.parametrize("Lambda", [1e-12, 1e-3, 0.05, 1.0])
@pytest.mark.parametrize("epsilon", [0.1, 1.0])
def test_no_small_table_loses_more_than_epsilon(loss, adjacency, Lambda, epsilon) -> None:
    left, whole = as_printed(epsilon, 3, Lambda, CURVATURES[loss])
    assert largest_loss(loss, 2 / left, 3 * whole, adjacency) <= epsilon


def test_the_attack_finds_what_the_rule_of_2008_forgets() -> None:
    assert largest_loss("logistic", 2 / 0.1, 3 * 1e-3, "replace-one") > 1.0


@pytest.mark.parametrize("adjacency", ["replace-one", "add-remove"])
@pytest.mark.parametrize("loss", list(LOSSES))
@pytest.mark.parametrize("factor", [0.01, 0.2, 3.0])
def test_minima_of_neighbours_lie_no_farther_apart_than_claimed(adjacency, loss, factor) -> None:
    given = terms(1.0, adjacency, expected_rows=2)
    moves, event = apart(PrintedOutput(regularisation=factor), ERMProblem(LOSSES[loss]), given)
    bound = event.sensitivity / event.unit
    most = np.linalg.norm(moves, axis=1).max()
    nearest = {"logistic": 0.4, "huber": 0.9}[loss] / (
        1 if adjacency == "replace-one" else 2
    )  # of the printed bound, twice what adding a row needs
    assert most <= bound
    assert most > nearest * bound or factor < 1


# -- the estimator ---------------------------------------------------------------------------------

BOX = pf.Schema.box(-1, 1, target=["no", "yes"])


def easy(n: int = 8000, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n, 3))
    return X, np.where(X @ [1.0, -1.0, 0.5] + 0.2 > 0, "yes", "no")


X, Y = easy()


@pytest.mark.parametrize("loss", list(LOSSES))
@pytest.mark.parametrize(
    ("method", "factor"),
    [("objective", 1e-12), ("objective", 1e-4), ("output", 1e-2), ("objective", "tune"), ("output", "tune")],
)
@pytest.mark.parametrize("adjacency", ["replace-one", "add-remove"])
def test_an_easy_table_is_learned_at_a_large_epsilon(loss, method, factor, adjacency) -> None:
    model = PrivateERM(
        8.0,
        loss=loss,
        method=method,
        regularisation=factor,
        adjacency=adjacency,
        expected_rows=len(X),
        schema=BOX,
        random_state=0,
    )
    assert model.fit(X, Y).score(*easy(seed=1)) > 0.93
    assert model.coef_.shape == (1, 3)
    assert model.intercept_.shape == (1,)
    assert list(model.classes_) == ["no", "yes"]


def test_numbers_and_categories_enter_as_in_the_papers() -> None:
    table = small_table(4000)
    model = PrivateERM(5.0, schema=SCHEMA, random_state=0).fit(table[:, :2], table[:, 2].astype(int))
    assert list(model.get_feature_names_out()) == ["x", "level_0", "level_1", "level_2"]
    assert model.score(table[:, :2], table[:, 2].astype(int)) > 0.85


def test_a_hopeless_regulariser_is_not_chosen() -> None:
    """Noise on the output drowns everything where Lambda is tiny."""
    found = [
        PrivateERM(
            2.0, method="output", regularisation="tune", candidates=(1e-9, 0.01, 1e-8), schema=BOX, random_state=seed
        ).fit(X, Y)
        for seed in range(10)
    ]
    chosen = [model.regularisation_ for model in found]
    assert chosen.count(0.01) >= 9
    assert "0.01 was chosen among 1e-09, 0.01, 1e-08" in str(found[chosen.index(0.01)].report_)


def test_probabilities_are_for_the_logistic_loss() -> None:
    model = PrivateERM(5.0, schema=BOX, random_state=0).fit(X, Y)
    chances = model.predict_proba(X[:50])
    np.testing.assert_allclose(chances.sum(axis=1), 1)
    np.testing.assert_array_equal(model.predict(X[:50]), model.classes_[chances.argmax(axis=1)])
    np.testing.assert_allclose(np.log(chances[:, 1] / chances[:, 0]), model.decision_function(X[:50]))
    assert not hasattr(PrivateERM(loss="huber"), "predict_proba")


@pytest.mark.parametrize(
    "params",
    [{}, {"method": "output", "regularisation": 0.1}, {"regularisation": "tune"}],
    ids=["objective", "output", "tune"],
)
@pytest.mark.parametrize("adjacency", ["replace-one", "add-remove"])
def test_the_ledger_is_charged_once_and_before_any_draw(params, adjacency, tmp_path, monkeypatch) -> None:
    ledger = pf.Ledger(tmp_path / "people.db", epsilon=1.0)
    spent = []
    for draw in ("laplace", "l2", "below", "select", "keyed_bits"):
        plain = getattr(SecureNoise, draw)

        def noted(self, *args, plain=plain):
            spent.append(ledger.spent.epsilon)
            return plain(self, *args)

        monkeypatch.setattr(SecureNoise, draw, noted)
    model = PrivateERM(0.7, schema=BOX, adjacency=adjacency, expected_rows=len(X), ledger=ledger, **params).fit(X, Y)
    assert spent
    assert set(spent) == {0.7}
    assert [entry.epsilon for entry in ledger.entries()] == [0.7]
    assert model.report_.private
    spent.clear()
    with pytest.raises(pf.BudgetExceeded):
        model.fit(X, Y)
    assert not spent


@pytest.mark.parametrize(
    ("params", "beats"),
    [
        ({"loss": "hinge"}, ["loss='hinge'", "one of ('logistic', 'huber')", "Use 'logistic'"]),
        ({"method": "magic"}, ["method='magic'", "one of ('objective', 'output')", "Use 'objective'"]),
        ({"regularisation": 0}, ["regularisation=0", "a positive number", "Use 1e-3"]),
        ({"regularisation": True}, ["regularisation=True", "a positive number", "Use 1e-3"]),
        ({"regularisation": "auto"}, ["regularisation='auto'", "'tune'", "Use 1e-3"]),
        ({"regularisation": "tune", "candidates": ()}, ["0 candidates", "from 1 to 100", "Give few"]),
        (
            {"regularisation": "tune", "candidates": (1e-3, -1)},
            ["regularisation=-1.0", "a positive number", "Use 1e-3"],
        ),
        ({"regularisation": "tune", "candidates": "many"}, ["regularisation='many'", "a positive number", "Use 1e-3"]),
        ({"adjacency": "add-remove"}, ["add-remove", "private", "expected_rows=40_000"]),
        ({"adjacency": "add-remove", "regularisation": "tune"}, ["add-remove", "private", "expected_rows=40_000"]),
        ({"random_state": 0}, ["A ledger was given", "not private", "leave out"]),
    ],
)
def test_what_means_nothing_is_refused_and_nothing_is_charged(params, beats, tmp_path) -> None:
    ledger = pf.Ledger(tmp_path / "people.db", epsilon=1.0)
    with pytest.raises(pf.PrivacyError) as refused:
        PrivateERM(0.5, schema=BOX, ledger=ledger, **params).fit(X, Y)
    assert_told_in_order(str(refused.value), beats)
    assert ledger.spent.epsilon == 0


def test_more_than_two_classes_are_refused() -> None:
    with pytest.raises(pf.SchemaError, match="3 classes; it fits two"):
        PrivateERM(schema=pf.Schema.box(-1, 1, target=["a", "b", "c"])).fit(X, np.resize(["a", "b", "c"], len(X)))


def test_the_report_tells_constants_and_branch() -> None:
    told = PrivateERM(1.0, schema=BOX).fit(X, Y).report_
    assert told.mechanism == "PrivateERM, objective, Lambda raised"
    assert told.noise_scale == pytest.approx(
        2 * 2 * 2 / (1 - FOR_SOLVER), rel=1e-6
    )  # twice the length of a row over half of epsilon
    assert told.repairs["ridge"] == pytest.approx(0.25 * 4 / math.expm1((1 - FOR_SOLVER) / 4), rel=1e-9)
    assert "as printed in 2011" in str(told)
    tuned_report = PrivateERM(1.0, regularisation="tune", schema=BOX).fit(X, Y).report_
    assert tuned_report.mechanism == "PrivateERM, objective, tuned over 5 values of Lambda"
    assert "over its part of the rows" in str(tuned_report)
    assert "delta was not spent" in str(PrivateERM(1.0, delta=1e-6, schema=BOX).fit(X, Y).report_)


def test_a_saved_baseline_predicts_the_same(tmp_path) -> None:
    for model in (PrivateERM(2.0, regularisation=1e-3, schema=BOX), PrivateERM(2.0, loss="huber", schema=BOX)):
        model.fit(X, Y).save(tmp_path / "model.json")
        loaded = pf.load_model(tmp_path / "model.json")
        np.testing.assert_allclose(loaded.decision_function(X[:20]), model.decision_function(X[:20]))
        assert hasattr(loaded, "predict_proba") == hasattr(model, "predict_proba")
        assert loaded.regularisation_ == model.regularisation_


def test_the_example_of_the_guide_runs() -> None:
    page = (Path(__file__).parents[2] / "docs" / "baselines.md").read_text()
    (example,) = re.findall(r"```python\n(.*?)```", page, flags=re.S)
    found: dict[str, Any] = {}
    exec(example, found)
    assert found["erm"].score(found["X"], found["y"]) > 0.7


@parametrize_with_checks(
    [baseline(epsilon=epsilon, schema="public") for baseline, epsilon in zip(BASELINES, (1.0, 1e6), strict=True)]
)
def test_every_check_of_scikit_learn_passes(estimator: Any, check: Any) -> None:
    check(estimator)
