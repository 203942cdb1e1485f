"""How a row is read depends on that row alone, whatever stands beside it and however the table was handed over."""

from __future__ import annotations

import warnings
from collections import UserList, deque

import numpy as np
import pytest

import privfit as pf
from privfit.models import private
from tests.support.noise import RecordingNoise

NAN = float("nan")
ROWS = 200

TARGET_FORMS = {
    "list": list,
    "column of lists": lambda values: [[value] for value in values],
    "deque": deque,
    "UserList": UserList,
    "tuple": tuple,
}
TABLE_FORMS = {
    "lists": lambda values: [[value] for value in values],
    "tuples": lambda values: [(value,) for value in values],
    "arrays": lambda values: [np.array([value]) for value in values],
    "deques": lambda values: [deque([value]) for value in values],
    "UserList": lambda values: UserList([[value] for value in values]),
    "object array": lambda values: np.array([[value] for value in values], dtype=object),
}


def loss_of(monkeypatch, schema: pf.Schema, left: tuple, right: tuple) -> float:
    calls = []
    for X, y in (left, right):
        noise = RecordingNoise()
        monkeypatch.setattr(private, "noise_source", lambda random_state, noise=noise: noise)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            pf.LogisticRegression(1.0, schema=schema, mechanism="functional").fit(X, y)
        calls.append(noise.calls[0])
    return float(np.abs(calls[0].values - calls[1].values).sum() / calls[0].scale)


@pytest.mark.parametrize("form", TARGET_FORMS)
def test_one_text_in_the_target_does_not_change_how_others_are_read(monkeypatch, form) -> None:
    schema = pf.Schema([pf.Numeric("x", -1, 1)], target=pf.Category("y", ["a", "other"], fill="a"))
    X = np.zeros((ROWS, 1))
    targets = [TARGET_FORMS[form](values) for values in ([NAN] * ROWS, [NAN] * (ROWS - 1) + ["b"])]
    assert loss_of(monkeypatch, schema, (X, targets[0]), (X, targets[1])) <= 1.0


@pytest.mark.parametrize("form", TABLE_FORMS)
def test_one_text_in_a_column_does_not_change_how_others_are_read(monkeypatch, form) -> None:
    schema = pf.Schema([pf.Category("x", ["a", "b", "other"], fill="a")], target=pf.Category("y", ["no", "yes"]))
    y = ["no", "yes"] * (ROWS // 2)
    tables = [TABLE_FORMS[form](values) for values in ([NAN] * ROWS, [NAN] * (ROWS - 1) + ["c"])]
    assert loss_of(monkeypatch, schema, (tables[0], y), (tables[1], y)) <= 1.0


def test_no_warning_tells_of_a_single_huge_value() -> None:
    X = np.zeros((5, 1), dtype=np.longdouble)
    X[2, 0] = np.longdouble("1e400")
    model = pf.LinearRegression(1.0, schema=pf.Schema.box(-1, 1, target=(-1, 1)), random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.fit(X, np.zeros(5))
    assert np.isfinite(model.coef_).all()


def test_no_warning_tells_of_the_sum_of_squared_targets() -> None:
    """A target on a very fine lattice: its square, which is never released, would overflow 64 bits for some tables
    only.
    """
    mechanism = pf.FunctionalMechanism(calibration="paper", loss=pf.QuadraticLoss(curvature=0.0005, slope=2))
    model = pf.LinearRegression(1.0, schema=pf.Schema.box(0, 1, target=(0, 1)), mechanism=mechanism, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.fit(np.ones((135, 1)), np.ones(135))
    assert np.isfinite(model.coef_).all()


def test_a_lattice_too_fine_for_exact_sums_is_refused_and_charges_nothing() -> None:
    mechanism = pf.FunctionalMechanism(calibration="paper", loss=pf.QuadraticLoss(curvature=1e-8, slope=1))
    ledger = pf.Ledger(epsilon=1.0)
    with pytest.raises(ValueError, match="2\\^53"):
        pf.LinearRegression(1.0, schema=pf.Schema.box(0, 1, target=(0, 1)), mechanism=mechanism, ledger=ledger).fit(
            np.ones((5, 1)), np.ones(5)
        )
    assert ledger.entries() == []
