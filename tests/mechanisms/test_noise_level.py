"""A classifier that noise drowned says so in its report, by a rule of public facts."""

from __future__ import annotations

import math
import warnings
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import privfit as pf
from privfit.losses import LOGISTIC
from privfit.mechanisms.perturbation.defaults import NOISE_LIMIT
from privfit.mechanisms.perturbation.problem import ERMFit
from privfit.models.perturbed import NOISY_NOTE
from privfit.privacy import Event
from privfit.privacy.parts import CERTIFICATE, RELEASE, Laplace, Selection

RNG = np.random.default_rng(5)
X = RNG.uniform(-1, 1, (20_000, 6))
SIGNAL = X @ np.array([4.0, -3.0, 2.0, 0, 0, 0])
TWO = np.where(SIGNAL + RNG.logistic(size=len(X)) > 0, "yes", "no")
THREE = np.array(["a", "b", "c"])[np.digitize(SIGNAL, [-1.5, 1.5])]
KINDS: dict[str, tuple[Any, np.ndarray]] = {
    "logistic": (pf.LogisticRegression(), TWO),
    "tables": (pf.LogisticRegression(interactions=1, numeric="splines"), TWO),
    "output": (pf.LogisticRegression(mechanism="output"), TWO),
    "svm": (pf.LinearSVC(), TWO),
    "delta": (pf.LogisticRegression(delta=1e-6), TWO),
    "erm": (pf.ERM(), TWO),
    "row_norm": (pf.LogisticRegression(row_norm=2.0), TWO),
    "kernel": (pf.LogisticRegression(kernel="rbf", n_components=50), TWO),
    "three classes": (pf.LogisticRegression(), THREE),
    "three by output": (pf.LinearSVC(mechanism="output"), THREE),
}


@pytest.fixture(autouse=True)
def no_warnings() -> None:
    warnings.simplefilter("ignore", pf.PrivacyWarning)


def fitted(kind: str, epsilon: float, rows: int, **parameters: Any) -> Any:
    model, y = KINDS[kind]
    schema = pf.Schema.box(-1, 1, target=sorted(set(y)))
    return type(model)(
        **(model.get_params() | {"epsilon": epsilon, "schema": schema, "random_state": 1} | parameters)
    ).fit(X[:rows], y[:rows])


def is_told(model: Any) -> bool:
    assert (model.report_.repairs["relative_noise"] > NOISE_LIMIT) == (NOISY_NOTE in model.report_.notes)
    return NOISY_NOTE in str(model.report_)


@pytest.mark.parametrize("kind", KINDS)
def test_a_drowned_fit_says_so_and_a_good_one_does_not(kind: str) -> None:
    y = KINDS[kind][1]
    drowned, good = fitted(kind, 0.001, 300), fitted(kind, 2.0, 20_000)
    assert is_told(drowned)
    assert not is_told(good)
    guess = np.mean(y == max(set(y), key=list(y).count))
    assert good.score(X, y) > guess + 0.1


def test_it_depends_on_public_facts_alone() -> None:
    """Rows that have nothing in common, and noise of another seed, have the same relative noise."""
    one = fitted("logistic", 0.01, 400)
    other = fitted("logistic", 0.01, 400, random_state=2).fit(np.zeros((400, 6)), np.full(400, "no"))
    assert one.report_.repairs["relative_noise"] == other.report_.repairs["relative_noise"]
    assert (NOISY_NOTE in one.report_.notes) == (NOISY_NOTE in other.report_.notes)


def test_more_epsilon_or_rows_make_it_less_and_more_columns_make_it_more() -> None:
    def level(epsilon: float, rows: int, columns: int = 6) -> float:
        schema = pf.Schema.box(-1, 1, target=["no", "yes"])
        model = pf.LogisticRegression(epsilon, schema=schema, numeric="slope", random_state=0).fit(
            X[:rows, :columns], TWO[:rows]
        )
        return float(model.report_.repairs["relative_noise"])

    assert level(0.02, 500) == pytest.approx(level(0.01, 500) / 2, rel=1e-3)
    assert level(0.01, 1000) == pytest.approx(level(0.01, 500) / 2, rel=1e-3)
    assert level(0.01, 500, columns=2) < level(0.01, 500)


def test_a_private_number_of_rows_is_not_used() -> None:
    unknown = fitted("logistic", 0.001, 300, adjacency="add-remove")
    assert "relative_noise" not in unknown.report_.repairs
    assert NOISY_NOTE not in unknown.report_.notes
    guessed = [
        fitted("logistic", 0.001, rows, adjacency="add-remove", expected_rows=1_000).report_ for rows in (300, 299)
    ]
    assert guessed[0].repairs["relative_noise"] == guessed[1].repairs["relative_noise"]
    assert NOISY_NOTE in guessed[0].notes


def test_a_regression_is_not_judged_by_a_rule_for_classes() -> None:
    model = pf.ERM(
        pf.losses.robust(1.0), epsilon=0.001, schema=pf.Schema.box(-1, 1, target=(-1, 1)), random_state=0
    ).fit(X[:300], X[:300, 0])
    assert "relative_noise" not in model.report_.repairs


def test_noise_of_tables_is_not_taken_for_noise_of_weights() -> None:
    weights = (Laplace(size=2, scale=1.0), Laplace(size=3, scale=2.0))
    others = (
        Laplace(size=5, scale=9.0, purpose=CERTIFICATE),
        Selection(rule="permute-and-flip", scale=3.0, purpose="choice of columns"),
        Laplace(size=4, scale=50.0, purpose="interaction terms"),
    )
    mechanism, geometry = pf.ObjectivePerturbation(), pf.Schema.box(-1, 1, 3).geometry(intercept=True)  # rows of norm 2
    fit = ERMFit(np.zeros((4, 1)), 1.0, LOGISTIC, n_rows=100)
    found = mechanism.relative_noise(fit, Event("a test", 1.0, parts=(*weights, *others)), geometry)
    assert found == pytest.approx(math.sqrt((2 * 2 + 3 * 8) / 5) * 2.0 / 100)
    everything = Event("a test", 1.0, parts=(*weights, replace(others[2], purpose=RELEASE)))
    louder = mechanism.relative_noise(fit, everything, geometry)
    assert louder is not None
    assert louder > 5 * found
