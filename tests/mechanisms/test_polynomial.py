"""The functional mechanism for any loss: moments where they suffice, public facts before data, and user functions that
never see a row.
"""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest

import privfit as pf
from privfit.losses import SQUARED
from privfit.mechanisms import PolynomialMechanism, QuadraticProblem
from privfit.privacy import Budget, PrivacyParameters, SecureNoise, SeededNoise
from privfit.rows import Rows
from privfit.statistics import MomentValues
from privfit.tables import open_table
from tests.support.audit import epsilon_at_least
from tests.support.beats import assert_told_in_order
from tests.support.noise import RecordingNoise

OBJECTIVE = QuadraticProblem(SQUARED)  # only its fit_intercept counts here


def table_of(n: int, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n, 2))
    return np.column_stack([X, np.clip(X @ [0.5, -0.3] + rng.normal(0, 0.1, n), -1, 1)])


SCHEMA = pf.Schema.box(-1, 1, target=(-1, 1)).with_features(["a", "b"])
CLASSES = pf.Schema([pf.Numeric("a", -1, 1), pf.Numeric("b", -1, 1)], target=pf.Category("y", [0, 1]))


def released(
    mechanism: PolynomialMechanism,
    schema: pf.Schema,
    noise,
    adjacency: str = "replace-one",
    epsilon: float = 1.0,
    ledger=None,
):
    geometry = mechanism.geometry(schema, OBJECTIVE)
    table = table_of(200)
    if schema is CLASSES:
        table[:, 2] = table[:, 2] > 0
    rows = Rows(open_table(table), schema, geometry)
    return mechanism.release(rows, PrivacyParameters(Budget(epsilon), adjacency), ledger, noise, OBJECTIVE), geometry


@pytest.mark.parametrize(
    ("loss", "schema"),
    [
        (pf.losses.squared(), SCHEMA),
        (pf.losses.poisson(), SCHEMA),
        (pf.losses.logistic(), CLASSES),
        (pf.losses.logistic(3), CLASSES),
    ],
    ids=str,
)
def test_losses_that_moments_can_fit_are_released_by_the_functional_mechanism(loss, schema) -> None:
    mechanism = PolynomialMechanism(loss)
    release, geometry = released(mechanism, schema, SeededNoise(0))
    assert isinstance(release.value, MomentValues)
    assert geometry.target is not None
    quadratic = mechanism.quadratic(geometry.target)
    assert quadratic is not None
    table = table_of(200)
    if schema is CLASSES:
        table[:, 2] = table[:, 2] > 0
    rows = Rows(open_table(table), schema, geometry)
    plain = pf.FunctionalMechanism().release(
        rows, PrivacyParameters(Budget(1.0)), None, SeededNoise(0), QuadraticProblem(replace(quadratic, offset=0.0))
    )
    assert release.event == plain.event
    np.testing.assert_array_equal(release.value.products, plain.value.products)


@pytest.mark.parametrize("adjacency", ["replace-one", "add-remove"])
@pytest.mark.parametrize("loss", [pf.losses.huber(0.5), pf.losses.poisson(3), pf.losses.poisson(4)], ids=str)
def test_other_losses_are_one_call_of_laplace_noise_at_the_scale_of_the_event(loss, adjacency) -> None:
    mechanism = PolynomialMechanism(loss)
    noise = RecordingNoise(0)
    release, geometry = released(mechanism, SCHEMA, noise, adjacency)
    (call,) = noise.calls
    statistic = mechanism.statistic(geometry)
    assert (call.kind, call.scale) == ("laplace", release.event.scale)
    assert len(call.values) == release.event.n_values == len(statistic.released(adjacency))
    assert release.event == mechanism.event(statistic, PrivacyParameters(Budget(1.0), adjacency))
    assert release.event.sensitivity / release.event.scale <= 1.0


def test_the_number_of_rows_is_used_only_where_it_is_public() -> None:
    """Under add-remove all values are noisy ones: two tables whose noisy values are the same give the same release."""
    mechanism = PolynomialMechanism(pf.losses.poisson(4))
    one, _ = released(mechanism, SCHEMA, RecordingNoise(0), "add-remove")
    two, _ = released(mechanism, SCHEMA, RecordingNoise(0), "replace-one")
    assert one.event.n_values == two.event.n_values + 1


def test_the_charge_comes_before_the_noise_and_after_the_rows() -> None:
    ledger = pf.Ledger(epsilon=1.0)
    seen = []

    class Watching(SeededNoise):
        private = True  # passes for secret

        def laplace(self, values, scale):
            seen.append(float(ledger.spent))
            return super().laplace(values, scale)

    mechanism = PolynomialMechanism(pf.losses.huber(0.5))
    released(mechanism, SCHEMA, Watching(0), ledger=ledger, epsilon=0.6)
    assert seen == [0.6]
    with pytest.raises(pf.BudgetExceeded):
        released(mechanism, SCHEMA, Watching(0), ledger=ledger, epsilon=0.6)
    assert seen == [0.6]


def test_the_user_s_function_is_called_with_public_points_only() -> None:
    """Whatever the rows are, the function gets the same arguments."""

    def arguments(table: np.ndarray) -> list:
        seen = []

        def f(z, y):
            seen.append((np.asarray(z).tolist(), np.asarray(y).tolist()))
            return np.logaddexp(0, z - y)

        mechanism = PolynomialMechanism(pf.PolynomialLoss.fit(f, degree=3))
        geometry = mechanism.geometry(SCHEMA, OBJECTIVE)
        rows = Rows(open_table(table), SCHEMA, geometry)
        release = mechanism.release(rows, PrivacyParameters(Budget(1.0)), None, SeededNoise(0), OBJECTIVE)
        mechanism.solve(release, geometry, OBJECTIVE)
        return seen

    assert arguments(table_of(50)) == arguments(np.zeros((7, 3)))


@pytest.mark.parametrize("adjacency", ["replace-one", "add-remove"])
@pytest.mark.parametrize("loss", [pf.losses.poisson(4), pf.losses.huber(0.3, 4, 1.0)], ids=str)
def test_both_adjacencies_lead_to_the_same_fit_without_noise(loss, adjacency) -> None:
    mechanism = PolynomialMechanism(loss)
    release, geometry = released(mechanism, SCHEMA, SeededNoise(0), adjacency, epsilon=1e9)
    fit = mechanism.solve(release, geometry, OBJECTIVE)
    other, _ = released(mechanism, SCHEMA, SeededNoise(1), "replace-one", epsilon=1e9)
    again = mechanism.solve(other, geometry, OBJECTIVE)
    np.testing.assert_allclose(fit.weights, again.weights, atol=1e-3)


@pytest.mark.parametrize(
    "functional",
    [
        pf.FunctionalMechanism(repair="trim"),
        pf.FunctionalMechanism(calibration="paper"),
        pf.FunctionalMechanism(noise="linf"),
    ],
    ids=["repair", "calibration", "noise"],
)
def test_settings_of_moments_are_refused_for_other_losses(functional) -> None:
    mechanism = PolynomialMechanism(pf.losses.poisson(4), functional)
    mechanism.check()
    with pytest.raises(pf.PrivacyError) as refusal:
        mechanism.geometry(SCHEMA, OBJECTIVE)
    assert_told_in_order(
        str(refusal.value),
        ["was given for a loss that moments cannot fit", "takes repair='floor'", "Leave the mechanism out"],
    )
    replace(mechanism, loss=pf.losses.squared()).geometry(SCHEMA, OBJECTIVE)


def test_a_loss_that_is_none_a_second_loss_and_one_that_curves_downward_are_refused() -> None:
    with pytest.raises(pf.PrivacyError, match=r"loss='poisson' was given.*PolynomialLoss.*Write"):
        PolynomialMechanism("poisson").check()  # type: ignore[arg-type]
    with pytest.raises(pf.PrivacyError, match=r"was given beside the loss.*one loss.*Leave it out"):
        PolynomialMechanism(pf.losses.squared(), pf.FunctionalMechanism(loss=SQUARED)).check()
    upside_down = PolynomialMechanism(pf.PolynomialLoss.fit(lambda z, y: -np.cosh(z - y)))
    with pytest.raises(pf.PrivacyError, match=r"does not curve upward.*a loss with a minimum does.*Check its sign"):
        upside_down.geometry(SCHEMA, OBJECTIVE)


def test_sharing_functions_of_the_target_keeps_the_sensitivity_small() -> None:
    """The values of all degrees that do not depend on the target are released once: 34 monomials of 3 columns and not
    34 + 19 + 9 + 3.
    """
    schema = pf.Schema.box(-1, 1, target=(0, 5)).with_features(["a", "b", "c"])
    mechanism = PolynomialMechanism(pf.losses.poisson(4))
    statistic = mechanism.statistic(mechanism.geometry(schema, OBJECTIVE))
    assert len(statistic.released("replace-one")) == 34 + 4


@pytest.mark.parametrize("factor", [1.0, 2.5])
def test_a_black_box_attack_stays_under_the_claim_and_catches_too_little_noise(factor: float) -> None:
    """The two rows that move the values furthest, thousands of draws of real noise, outputs scored by their likelihood
    ratio.
    """
    schema = pf.Schema([pf.Category("s", [0, 1])], target=pf.Numeric("y", -1, 1))
    mechanism = PolynomialMechanism(pf.losses.huber(0.5))
    geometry = mechanism.geometry(schema, QuadraticProblem(SQUARED, fit_intercept=False))
    statistic = mechanism.statistic(geometry)
    event = mechanism.event(statistic, PrivacyParameters(Budget(1.0)))
    rows = [[s, y] for s in (0, 1) for y in np.linspace(-1, 1, 9)]
    values = [Rows(open_table(np.array([row], dtype=float)), schema, geometry).sum(statistic) for row in rows]
    left, right = max(itertools.product(values, values), key=lambda pair: np.abs(pair[0] - pair[1]).sum())
    assert np.abs(left - right).sum() > 0.8 * event.sensitivity
    scale = event.scale / factor

    def scores(exact: np.ndarray) -> np.ndarray:
        outputs = SecureNoise().laplace(np.tile(exact, (12_000, 1)), scale)
        return (np.abs(outputs - right).sum(axis=1) - np.abs(outputs - left).sum(axis=1)) / scale

    found = epsilon_at_least(scores(left), scores(right), threshold=0.7 * factor)  # fails by chance below 1e-11
    assert (found <= 1.0) == (factor == 1.0)
