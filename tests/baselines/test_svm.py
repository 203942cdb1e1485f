"""PrivateSVM: the printed and the tight constants, attacked on every small table; what is charged, and when."""

from __future__ import annotations

import math

import numpy as np
import pytest

import privfit as pf
from privfit.baselines import PrivateSVM
from privfit.baselines.svm import CALIBRATIONS
from privfit.features import FourierFeatures
from privfit.losses import hinge
from privfit.mechanisms import ERMProblem
from privfit.mechanisms.base import PublicFacts
from privfit.mechanisms.perturbation.printed_svm import PrintedSVM
from privfit.privacy import SecureNoise
from tests.baselines import SCHEMA, apart, terms
from tests.support.beats import assert_told_in_order

RISK = ERMProblem(hinge())


def planned(mechanism: PrintedSVM, given, n: int | None, risk: ERMProblem = RISK):
    return mechanism.plan(PublicFacts(mechanism.geometry(SCHEMA, risk, "slope"), given, n), risk)


# -- constants -------------------------------------------------------------------------------------


@pytest.mark.parametrize("adjacency", ["replace-one", "add-remove"])
@pytest.mark.parametrize("C", [0.5, 10.0])
@pytest.mark.parametrize("epsilon", [0.1, 2.0])
def test_the_printed_noise(adjacency, C, epsilon) -> None:
    n, columns, length = 5000, 4, math.sqrt(2)
    plan = planned(PrintedSVM(noise="laplace", C=C), terms(epsilon, adjacency, expected_rows=n), n)
    assert plan.ridge == pytest.approx(n / C)
    printed = 4 * C * length * math.sqrt(columns) / (epsilon * n)
    assert plan.event.kinds == ("laplace",)
    assert plan.event.n_values == columns
    assert printed <= plan.event.scale / plan.event.unit <= 1.03 * printed


@pytest.mark.parametrize(("adjacency", "moves"), [("replace-one", 2), ("add-remove", 1)])
def test_the_tight_noise(adjacency, moves) -> None:
    n, C, epsilon, length = 5000, 10.0, 0.5, math.sqrt(2)
    plan = planned(PrintedSVM(noise="l2", C=C), terms(epsilon, adjacency, expected_rows=n), n)
    least = moves * C * length / (epsilon * n)
    assert plan.event.kinds == ("k-norm-l2",)
    assert least <= plan.event.scale / plan.event.unit <= 1.03 * least


@pytest.mark.parametrize("noise", list(CALIBRATIONS.values()))
def test_a_factor_of_the_sum_is_n_times_one_of_the_mean(noise) -> None:
    n, C = 5000, 1.0
    of_sum = planned(PrintedSVM(noise=noise, C=C, multiplies="sum"), terms(0.5), n)
    of_mean = planned(PrintedSVM(noise=noise, C=n * C), terms(0.5), n)
    assert of_sum.ridge == pytest.approx(1 / C)
    assert (of_sum.ridge, of_sum.sd) == pytest.approx((of_mean.ridge, of_mean.sd))
    given = terms(0.5, "add-remove", expected_rows=n)
    assert planned(PrintedSVM(noise=noise, C=C, multiplies="sum"), given, None).ridge == of_sum.ridge


def test_fourier_features_have_length_one() -> None:
    features = FourierFeatures(4, 50, 0.5)
    plan = planned(PrintedSVM(C=10.0), terms(1.0), 5000, ERMProblem(hinge(), features=features))
    printed = 4 * 10.0 * math.sqrt(100) / 5000
    assert printed <= plan.event.scale / plan.event.unit <= 1.03 * printed


# -- attacks ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("adjacency", ["replace-one", "add-remove"])
@pytest.mark.parametrize(("noise", "norm"), [("laplace", 1), ("l2", 2)])
@pytest.mark.parametrize("C", [0.1, 1.0, 4.0])
def test_minima_of_neighbours_lie_no_farther_apart_than_claimed(adjacency, noise, norm, C) -> None:
    moves, event = apart(PrintedSVM(noise=noise, C=C), RISK, terms(1.0, adjacency, expected_rows=2))
    bound, most = event.sensitivity / event.unit, np.linalg.norm(moves, ord=norm, axis=1).max()
    assert most <= bound
    assert noise == "laplace" or C > 0.1 or most > 0.9 * bound  # the tight one is tight


# -- the estimator ---------------------------------------------------------------------------------

BOX = pf.Schema.box(-1, 1, target=["no", "yes"])


def easy(n: int = 8000, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n, 3))
    return X, np.where(X @ [1.0, -1.0, 0.5] + 0.2 > 0, "yes", "no")


X, Y = easy()


@pytest.mark.parametrize("calibration", list(CALIBRATIONS))
@pytest.mark.parametrize("adjacency", ["replace-one", "add-remove"])
def test_an_easy_table_is_learned_at_a_large_epsilon(calibration, adjacency) -> None:
    model = PrivateSVM(
        8.0, C=50.0, calibration=calibration, adjacency=adjacency, expected_rows=len(X), schema=BOX, random_state=0
    )
    assert model.fit(X, Y).score(*easy(seed=1)) > 0.95
    assert model.coef_.shape == (1, 3)
    assert list(model.classes_) == ["no", "yes"]


def test_a_factor_too_large_for_a_private_number_of_rows_is_refused_before_the_charge() -> None:
    """Rows may be up to 2^17 here, and minima as long as such tables allow: no solver can promise their weights."""
    ledger = pf.Ledger(epsilon=1.0)
    model = PrivateSVM(
        1.0, C=20.0, calibration="tight", adjacency="add-remove", expected_rows=2, ledger=ledger, schema=BOX
    )
    with pytest.raises(pf.PrivacyError, match=r"ridge of 0\.1 was asked for.*Nothing was charged"):
        model.fit(X, Y)
    assert ledger.entries() == []


def test_a_kernel_bends() -> None:
    ring = np.where((X[:, :2] ** 2).sum(axis=1) > 0.6, "yes", "no")
    params = {"C": 100.0, "calibration": "tight", "schema": BOX, "random_state": 0}
    bent = PrivateSVM(20.0, kernel="rbf", gamma=1.0, n_components=40, **params).fit(X, ring)
    straight = PrivateSVM(20.0, **params).fit(X, ring)
    assert bent.score(X, ring) > 0.8 > straight.score(X, ring)


def test_the_factor_of_privgene_drowns_in_noise_and_says_so() -> None:
    told = PrivateSVM(1.0, C=10.0, C_multiplies="sum", schema=BOX).fit(X, Y).report_
    assert told.noise_scale == pytest.approx(40 * 2 * math.sqrt(4), rel=0.05)
    assert "printed one" in str(told)
    assert "printed one" not in str(PrivateSVM(1.0, calibration="tight", schema=BOX).fit(X, Y).report_)


@pytest.mark.parametrize("calibration", list(CALIBRATIONS))
def test_the_ledger_is_charged_once_and_before_any_draw(calibration, tmp_path, monkeypatch) -> None:
    ledger = pf.Ledger(tmp_path / "people.db", epsilon=1.0)
    spent = []
    for draw in ("laplace", "l2"):
        plain = getattr(SecureNoise, draw)

        def noted(self, *args, plain=plain):
            spent.append(ledger.spent.epsilon)
            return plain(self, *args)

        monkeypatch.setattr(SecureNoise, draw, noted)
    model = PrivateSVM(0.7, calibration=calibration, schema=BOX, ledger=ledger).fit(X, Y)
    assert spent == [0.7]
    assert [entry.epsilon for entry in ledger.entries()] == [0.7]
    assert model.report_.private
    with pytest.raises(pf.BudgetExceeded):
        model.fit(X, Y)
    assert spent == [0.7]


@pytest.mark.parametrize(
    ("params", "beats"),
    [
        ({"C": 0}, ["C=0", "a positive number", "Use 10.0"]),
        ({"C": "auto"}, ["C='auto'", "a positive number", "Use 10.0"]),
        ({"C_multiplies": "rows"}, ["C_multiplies='rows'", "('mean', 'sum')", "Use 'mean'"]),
        ({"calibration": "loose"}, ["calibration='loose'", "('paper', 'tight')", "Use 'paper'"]),
        ({"kernel": "poly"}, ["kernel='poly'", "('linear', 'rbf')", "Use 'linear'"]),
        ({"adjacency": "add-remove"}, ["add-remove", "private", "expected_rows=40_000, or C_multiplies='sum'"]),
    ],
)
def test_what_means_nothing_is_refused_and_nothing_is_charged(params, beats, tmp_path) -> None:
    ledger = pf.Ledger(tmp_path / "people.db", epsilon=1.0)
    with pytest.raises(pf.PrivacyError) as refused:
        PrivateSVM(0.5, schema=BOX, ledger=ledger, **params).fit(X, Y)
    assert_told_in_order(str(refused.value), beats)
    assert ledger.spent.epsilon == 0


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_a_saved_baseline_predicts_the_same(kernel, tmp_path) -> None:
    model = PrivateSVM(2.0, kernel=kernel, n_components=20, schema=BOX).fit(X, Y)
    model.save(tmp_path / "model.json")
    np.testing.assert_allclose(
        pf.load_model(tmp_path / "model.json").decision_function(X[:20]), model.decision_function(X[:20])
    )
