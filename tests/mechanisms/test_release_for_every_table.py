"""Whether anything is released depends on public facts alone: tables at which a solver that has to prove its precision,
or to converge, finds it hard, beside neighbours at which it does not.

Both release; or both are refused, with the same words, before anything is charged.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import privfit as pf
from privfit.baselines import PrivateERM, PrivateSVM

ONE = pf.Schema([pf.Numeric("x", -1, 1)], target=pf.Category("y", ["a", "y"]))
SIXTY = pf.Schema.box(-1, 1, 60, target=["a", "y"])
Rows = tuple[np.ndarray, np.ndarray]


def outcome(make: Callable[..., Any], rows: Rows) -> tuple[str, int]:
    """Released, or the words of the refusal; and how often the ledger was charged."""
    ledger = pf.Ledger(epsilon=1e6)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            make(ledger=ledger).fit(*rows)
    except pf.PrivacyError as error:
        return f"refused: {error}", len(ledger.entries())
    return "released", len(ledger.entries())


def assert_same_outcome(make: Callable[..., Any], left: Rows, right: Rows) -> None:
    one, other = outcome(make, left), outcome(make, right)
    assert one == other
    assert one[1] == (1 if one[0] == "released" else 0)


def nearly_zero(first: float, rows: int = 300) -> Rows:
    """All rows at 0 but the first, all of one class."""
    column = np.zeros((rows, 1))
    column[0] = first
    return column, np.full(rows, "y")


def tiny_margins(rows: int, margin: float) -> tuple[Rows, Rows]:
    """Two classes this far from 0, on either side: weights that part them are very long.

    And the same with one row on the wrong side, at the bound: weights are short.
    """
    side = np.where(np.arange(rows) % 2, 1.0, -1.0)
    column = (side * margin)[:, None]
    other = column.copy()
    other[0] = 1.0
    classes = np.where(side > 0, "y", "a")
    return (column, classes), (other, classes)


def test_minimum_of_a_hinge_with_a_tiny_penalty() -> None:
    def make(**given: Any) -> Any:
        return pf.ERM(
            pf.losses.hinge(), 1e-8, 1.0, schema=ONE, mechanism="output", numeric="slope", fit_intercept=False, **given
        )

    assert_same_outcome(make, nearly_zero(0.01), nearly_zero(0.0001))


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_printed_output_perturbation_at_its_own_default(fit_intercept: bool) -> None:
    def make(**given: Any) -> Any:
        return PrivateERM(method="output", schema=ONE, fit_intercept=fit_intercept, **given)

    assert_same_outcome(make, *tiny_margins(60_000, 2.0**-16))


def test_logistic_minimum_with_a_tiny_ridge() -> None:
    def make(**given: Any) -> Any:
        mechanism = pf.OutputPerturbation(ridge=1e-8)
        return pf.LogisticRegression(schema=ONE, mechanism=mechanism, numeric="slope", fit_intercept=False, **given)

    assert_same_outcome(make, *tiny_margins(20_000, 2.0**-16))


def test_support_vector_minimum_with_a_small_ridge() -> None:
    def make(**given: Any) -> Any:
        mechanism = pf.OutputPerturbation(ridge=1e-3)
        return pf.LinearSVC(
            schema=ONE, loss="hinge", mechanism=mechanism, numeric="slope", fit_intercept=False, **given
        )

    assert_same_outcome(make, *tiny_margins(20_000, 2.0**-14))


def test_printed_support_vectors_of_many_columns_that_no_plane_parts() -> None:
    """A solver that converges for classes which a plane parts well, and not for classes that are coins.

    The two tables are 200 neighbours apart: between some two of them the outcome turns.
    """
    rng = np.random.default_rng(0)
    columns = rng.uniform(-1, 1, (200, 60))
    parted = 0.01 * columns, np.where(columns[:, 0] > 0, "y", "a")
    coins = columns, np.where(rng.uniform(size=200) < 0.5, "y", "a")

    def make(**given: Any) -> Any:
        return PrivateSVM(C=1, C_multiplies="sum", schema=SIXTY, **given)

    assert_same_outcome(make, parted, coins)


def test_tilted_objective_with_a_tiny_ridge() -> None:
    """Nothing holds weights back but the ridge where all rows are at 0: noise makes them very long.

    Two rows on either side at the bound hold them.
    """

    def make(**given: Any) -> Any:
        mechanism = pf.ObjectivePerturbation(ridge=1e-12)
        return pf.LogisticRegression(
            1000.0, schema=ONE, mechanism=mechanism, numeric="slope", fit_intercept=False, **given
        )

    column, classes = nearly_zero(0.0)
    held = column.copy(), classes.copy()
    held[0][:2] = 1.0
    held[1][1] = "a"
    assert_same_outcome(make, (column, classes), held)


@pytest.mark.parametrize("estimator", [pf.LogisticRegression, pf.LinearSVC])
def test_tilted_objective_of_many_columns_that_are_all_the_same(estimator: Any) -> None:
    """All rows equal, 200 neighbours away from rows that hold every weight."""
    rng = np.random.default_rng(0)
    coins = rng.choice([-1.0, 1.0], (200, 60)), np.where(rng.uniform(size=200) < 0.5, "y", "a")

    def make(**given: Any) -> Any:
        return estimator(1000.0, schema=SIXTY, mechanism=pf.ObjectivePerturbation(ridge=1e-8), numeric="slope", **given)

    assert_same_outcome(make, (np.ones((200, 60)), np.full(200, "y")), coins)


@pytest.mark.parametrize("loss", ["logistic", "huber"])
def test_printed_objective_perturbation_at_its_own_default(loss: str) -> None:
    """With a Lambda of 1e-12 and an epsilon that needs no larger one: classes that a plane parts, 200 neighbours away
    from classes that are coins.
    """
    rng = np.random.default_rng(0)
    coins = rng.choice([-1.0, 1.0], (200, 60)), np.where(rng.uniform(size=200) < 0.5, "y", "a")
    columns = rng.uniform(-1, 1, (200, 60))

    def make(**given: Any) -> Any:
        return PrivateERM(100.0, loss=loss, schema=SIXTY, **given)

    assert_same_outcome(make, (columns, np.where(columns[:, 0] > 0, "y", "a")), coins)
