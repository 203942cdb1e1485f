"""Perturbed objectives and minima: planned from public facts, and refusing in sentences what cannot be private."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import privfit as pf
from privfit.losses import LOGISTIC, ConvexLoss, hinge, robust, smooth_hinge
from privfit.mechanisms import ERMProblem, Perturbation
from privfit.mechanisms.base import PublicFacts
from privfit.mechanisms.perturbation.defaults import FOR_CERTIFICATE, FOR_GRADIENTS, USUAL_ROWS
from privfit.mechanisms.perturbation.objective import objective_noise
from privfit.mechanisms.perturbation.objective_noise import Price, automatic_ridge
from privfit.mechanisms.perturbation.output import automatic_output_ridge
from privfit.mechanisms.perturbation.problem import Gradients
from privfit.privacy import Budget, PrivacyParameters, SeededNoise
from privfit.rows import Rows
from privfit.schema import RowNorms
from privfit.tables import open_table
from tests.support.beats import assert_told_in_order
from tests.support.noise import RecordingNoise
from tests.support.perturbed import SCHEMA, planned, released, table_of

MECHANISMS = [
    pf.ObjectivePerturbation(),
    pf.ObjectivePerturbation(noise="gaussian"),
    pf.ObjectivePerturbation(ridge=1e-3),
    pf.ObjectivePerturbation(steepest=1.0, noise="l2"),
    pf.OutputPerturbation(),
    pf.OutputPerturbation(noise="gaussian", ridge=20.0),
    pf.OutputPerturbation(noise="laplace"),
]
NAMES = [
    re.sub(r"(Objective|Output)Perturbation\((.*)\)", r"\1 \2", repr(m))
    .replace("ridge='auto'", "")
    .replace("noise='auto'", "")
    for m in MECHANISMS
]


# -- plans come from public facts ------------------------------------------------------------------


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=NAMES)
@pytest.mark.parametrize("adjacency", ["replace-one", "add-remove"])
def test_tables_of_the_same_size_are_charged_and_noised_alike(mechanism: Perturbation, adjacency: str) -> None:
    """Event, ridge, loss, and every draw's kind, number and scale: none of them knows what is in the rows."""
    found = []
    for seed in (0, 1, 2):
        noise = RecordingNoise(seed)
        release = released(mechanism, table_of(60, seed), noise, adjacency=adjacency)
        draws = [(call.kind, call.scale, call.values.shape) for call in noise.calls]
        found.append((release.event, release.value.ridge, repr(release.value.loss), draws))
    assert found[0] == found[1] == found[2]
    assert len(found[0][-1]) >= 1


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=NAMES)
@pytest.mark.parametrize("expected", [None, 300])
def test_a_private_number_of_rows_changes_no_plan(mechanism: Perturbation, expected: int | None) -> None:
    found = []
    for rows in (1, 7, 400):
        noise = RecordingNoise(0)
        release = released(mechanism, table_of(rows, 0), noise, adjacency="add-remove", expected=expected)
        found.append(
            (
                release.event,
                release.value.ridge,
                repr(release.value.loss),
                [(call.kind, call.scale) for call in noise.calls],
            )
        )
    assert found[0] == found[1] == found[2]


def test_a_public_number_of_rows_and_a_public_guess_of_it_do_change_the_ridge() -> None:
    """So that the two tests above can fail."""
    few, many = (released(pf.ObjectivePerturbation(), table_of(rows, 0), SeededNoise(0)) for rows in (30, 3000))
    assert few.value.ridge > many.value.ridge
    guessed = [
        planned(pf.ObjectivePerturbation(), adjacency="add-remove", rows=rows, expected=rows).ridge
        for rows in (30, 3000)
    ]
    assert guessed[0] > guessed[1]


def test_without_a_guess_a_private_number_of_rows_is_planned_for_as_a_usual_one() -> None:
    gradients = Gradients(RowNorms(4, 2.0, 1.0, 9), LOGISTIC)
    assert automatic_ridge(gradients, 3.0, None) == automatic_ridge(gradients, 3.0, USUAL_ROWS)
    assert automatic_output_ridge(gradients, 1.0, None) == automatic_output_ridge(gradients, 1.0, USUAL_ROWS)


def test_more_rows_than_the_precision_was_planned_for_are_refused_uncharged(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("privfit.mechanisms.perturbation.precision.MANY_ROWS", 50)
    ledger = pf.Ledger(tmp_path / "ledger.db", epsilon=5.0)
    model = pf.LogisticRegression(1.0, schema=SCHEMA, adjacency="add-remove", ledger=ledger)
    with pytest.raises(pf.DataError) as refused:
        model.fit(table_of(51, 0))
    assert_told_in_order(
        str(refused.value), ["more rows than the precision", "planned for (50)", "expected_rows", "Nothing was charged"]
    )
    assert "51" not in str(refused.value)
    assert ledger.spent.epsilon == 0
    model.fit(table_of(50, 0))
    assert ledger.spent.epsilon == 1


# -- the ridge -------------------------------------------------------------------------------------


@given(st.floats(0.01, 100), st.floats(1.01, 10), st.integers(1, 10**8), st.integers(2, 100), st.integers(1, 5))
@settings(max_examples=60)
def test_the_ridge_rule_rises_with_noise_and_falls_with_rows(
    sd: float, more: float, rows: int, times: int, classes: int
) -> None:
    gradients = Gradients(RowNorms(4, 2.0, 1.0, 9), LOGISTIC, classes, "one" if classes == 1 else "one-vs-rest")
    ridge = automatic_ridge(gradients, sd, rows)
    assert 0 < ridge <= automatic_ridge(gradients, more * sd, rows)
    assert automatic_ridge(gradients, sd, times * rows) <= ridge
    wider = replace(gradients, norms=replace(gradients.norms, columns=20))
    assert automatic_ridge(wider, sd, rows) >= ridge


@given(st.floats(0.05, 10), st.floats(1.01, 10), st.integers(1, 10**8), st.integers(2, 100))
@settings(max_examples=40)
def test_the_ridge_rule_for_a_perturbed_minimum_balances_noise_and_ridge(
    epsilon: float, more: float, rows: int, times: int
) -> None:
    gradients = Gradients(RowNorms(4, 2.0, 1.0, 9), LOGISTIC)
    ridge = automatic_output_ridge(gradients, epsilon, rows)
    assert ridge > automatic_output_ridge(gradients, more * epsilon, rows)
    assert ridge < automatic_output_ridge(gradients, epsilon, times * rows)
    noise = gradients.values * gradients.sensitivity["l2"] / epsilon

    def cost(candidate: float) -> float:
        """What noise of this length does to a loss that curves so much, and what the ridge does."""
        return 0.1 * rows * 4 / 9 * (noise / candidate) ** 2 + candidate

    assert cost(ridge) <= min(cost(1.1 * ridge), cost(ridge / 1.1))


@pytest.mark.parametrize("loss", [LOGISTIC, smooth_hinge(), robust(0.5).scaled(0, 1)], ids=lambda loss: loss.name)
@pytest.mark.parametrize(("classes", "people"), [(1, 1), (1, 3), (4, 1), (4, 2)])
def test_a_ridge_below_what_privacy_needs_is_raised_to_it(loss: ConvexLoss, classes: int, people: int) -> None:
    """Curvature then costs no more than a fifth of epsilon, by a formula of its own, and slopes get what it leaves."""
    for noise in ("laplace", "linf", "l2", "mixed"):
        mechanism = pf.ObjectivePerturbation(ridge=1e-4, noise=noise, steepest=1.0)
        plan = planned(mechanism, loss, classes=classes, people=people)
        epsilon = 0.8 * (1 - FOR_CERTIFICATE)
        several = (classes - 1, 1 / classes) if plan.gradients.coupling == "softmax" else (classes, loss.most_curvature)
        cost = people * several[0] * math.log(1 + several[1] * plan.gradients.norms.l2**2 / plan.ridge)
        assert plan.ridge > 1e-4
        assert cost == pytest.approx((1 - FOR_GRADIENTS) * epsilon)
        assert plan.noise is not None
        assert sum(part.sensitivity / part.scale for part in plan.noise.groups) == pytest.approx(epsilon - cost)


def test_a_ridge_that_is_large_enough_is_left_alone() -> None:
    for ridge in (20.0, 1e3, 1e6):
        for loss in (LOGISTIC, smooth_hinge()):
            assert planned(pf.ObjectivePerturbation(ridge=ridge), loss).ridge == ridge
        assert planned(pf.OutputPerturbation(ridge=ridge)).ridge == ridge


def test_the_report_tells_of_a_raised_ridge_and_only_of_one() -> None:
    table = table_of(80, 0)
    raised, kept = (
        pf.LinearSVC(0.5, schema=SCHEMA, mechanism=pf.ObjectivePerturbation(ridge=ridge), random_state=0)
        .fit(table)
        .report_
        for ridge in (0.01, 500.0)
    )
    assert any("raised from 0.01" in note for note in raised.notes)
    assert raised.repairs["ridge"] > 0.01
    assert not any("raised" in note for note in kept.notes)
    assert kept.repairs["ridge"] == 500.0
    assert "plus 500 / 2" in str(kept)


def test_a_larger_ridge_never_asks_for_more_noise() -> None:
    for loss in (LOGISTIC, smooth_hinge()):
        for noise in ("laplace", "mixed", "gaussian"):
            sizes = [
                planned(pf.ObjectivePerturbation(ridge=ridge, noise=noise, steepest=1.0), loss, delta=1e-6).sd
                for ridge in (0.1, 3, 8, 15, 40, 1e3)
            ]
            assert sizes == sorted(sizes, reverse=True) or max(np.diff(sizes)) < 1e-6 * sizes[0]


def test_several_rows_a_person_and_both_neighbours_multiply_the_noise() -> None:
    plain = planned(pf.ObjectivePerturbation(ridge=1e4, noise="laplace", steepest=1.0), adjacency="add-remove")
    for adjacency, people, times in [("replace-one", 1, 2), ("add-remove", 3, 3), ("replace-one", 3, 6)]:
        plan = planned(
            pf.ObjectivePerturbation(ridge=1e4, noise="laplace", steepest=1.0), adjacency=adjacency, people=people
        )
        assert plan.sd == pytest.approx(times * plain.sd)
        assert plan.event.rows_per_person == people


def test_smaller_slopes_make_less_noise_and_bend_no_more_than_the_ridge_allows() -> None:
    steep, gentle = (planned(pf.ObjectivePerturbation(steepest=steepest, noise="mixed")) for steepest in (1.0, 0.5))
    assert gentle.sd == pytest.approx(steep.sd / 2)
    assert planned(pf.ObjectivePerturbation(noise="mixed")).sd == gentle.sd
    for plan in (steep, gentle):
        loss, epsilon = plan.gradients.loss, 0.8 * (1 - FOR_CERTIFICATE)
        assert loss.taper * 2 * loss.most_slope * plan.gradients.norms.l2**2 / epsilon <= plan.ridge


# -- perturbed minima ------------------------------------------------------------------------------


@pytest.mark.parametrize("noise", ["laplace", "linf", "l2", "gaussian"])
@pytest.mark.parametrize(
    ("adjacency", "people", "times"), [("replace-one", 1, 2), ("add-remove", 1, 1), ("replace-one", 2, 4)]
)
def test_output_noise_hides_how_far_a_minimum_can_move(noise: str, adjacency: str, people: int, times: int) -> None:
    sharp = hinge() if adjacency == "replace-one" else smooth_hinge(0.5)  # a private number of rows allows for less
    for loss in (LOGISTIC, sharp, smooth_hinge(0.1)):
        plan = planned(
            pf.OutputPerturbation(ridge=7.0, noise=noise), loss, adjacency=adjacency, people=people, delta=1e-6
        )
        values = plan.gradients.values
        far = times * plan.gradients.norms.l2 / 7.0  # slopes of 1, rows of that length
        moved = far * (math.sqrt(values) if noise == "laplace" else 1)
        event = plan.event
        precise = moved * (1 + 2 * plan.precision.slack / (far * 7.0))  # two points of the solver
        assert moved <= event.sensitivity / event.unit <= 1.05 * precise <= 1.2 * moved
        if noise == "gaussian":
            assert event.kinds == ("rounded-gaussian",)
            assert event.delta == 1e-6
            assert event.scale / event.sensitivity > 1
        else:
            assert event.delta == 0
            assert Fraction(event.sensitivity) <= Fraction(event.scale) * Fraction(0.8)
            assert event.sensitivity > 0.999 * event.scale * 0.8
        assert event.n_values == values


def test_minima_are_perturbed_in_a_shape_of_least_noise() -> None:
    plans = {kind: planned(pf.OutputPerturbation(ridge=7.0, noise=kind)) for kind in ("laplace", "linf", "l2")}
    chosen = planned(pf.OutputPerturbation(ridge=7.0))
    assert chosen.sd == min(plan.sd for plan in plans.values()) < max(plan.sd for plan in plans.values())
    assert chosen.event.kinds == ("k-norm-l2",)
    wide = pf.Schema([pf.Category(f"c{i}", list(range(9))) for i in range(9)], target=SCHEMA.target)
    assert planned(pf.OutputPerturbation(ridge=7.0), delta=1e-6, schema=wide).event.kinds == ("rounded-gaussian",)


def test_a_perturbed_minimum_has_more_noise_than_a_perturbed_objective() -> None:
    objective, output = planned(pf.ObjectivePerturbation(ridge=30.0)), planned(pf.OutputPerturbation(ridge=30.0))
    assert output.sd > objective.sd / objective.ridge


# -- refusals --------------------------------------------------------------------------------------


def log_loss(**changed: Any) -> ConvexLoss:
    return replace(LOGISTIC, name="loss of mine", **changed)


SQUARED_HINGE = ConvexLoss(
    lambda z, y: -2 * y * np.maximum(0, 1 - y * z),
    lambda z, y: np.where(y * z < 1, 2.0, 0.0),
    2.0,
    2.0,
    link="slopes",
    name="squared hinge",
)
REFUSED: dict[str, tuple[dict, list[str]]] = {
    "a hinge in an objective": (
        {"loss": hinge(), "mechanism": "objective"},
        ["The hinge loss states no most_curvature", "private only if", "State it, or use mechanism='output'"],
    ),
    "no slope stated": ({"loss": log_loss(most_slope=None)}, ["most_slope=None", "a positive number", "State it"]),
    "no slope stated, output": (
        {"loss": log_loss(most_slope=None), "mechanism": "output"},
        ["most_slope=None", "a positive number", "State it"],
    ),
    "too small a slope": (
        {"loss": log_loss(most_slope=0.5)},
        ["has a slope of 1 and states most_slope=0.5", "privacy rests", "Correct the loss"],
    ),
    "too small a slope, output": (
        {"loss": log_loss(most_slope=0.5, taper=None), "mechanism": "output"},
        ["has a slope of 1", "privacy rests", "Correct"],
    ),
    "too small a curvature": (
        {"loss": log_loss(most_curvature=0.1)},
        ["has a curvature of 0.25 and states most_curvature=0.1", "privacy rests", "Correct"],
    ),
    "too small a taper": (
        {"loss": log_loss(taper=0.5)},
        ["more curvature somewhere than its taper=0.5", "privacy rests", "Correct"],
    ),
    "a squared hinge": ({"loss": SQUARED_HINGE}, ["The squared hinge has a slope of", "privacy rests", "Correct"]),
    "a ridge of nothing": ({"penalty": 0.0}, ["penalty=0.0 was given", "a positive number", "'auto' if in doubt"]),
    "a ridge of text": (
        {"mechanism": pf.ObjectivePerturbation(ridge="much")},
        ["ridge='much' was given", "a positive number", "'auto' if in doubt"],
    ),
    "an endless ridge": (
        {"mechanism": pf.OutputPerturbation(ridge=math.inf)},
        ["ridge=inf was given", "a positive number", "'auto' if in doubt"],
    ),
    "an unknown noise": (
        {"mechanism": pf.ObjectivePerturbation(noise="white")},
        ["noise='white' was given", "one of", "'auto' if in doubt"],
    ),
    "mixed noise of a minimum": (
        {"mechanism": pf.OutputPerturbation(noise="mixed")},
        ["noise='mixed' was given", "one of", "'auto' if in doubt"],
    ),
    "steeper than steep": (
        {"mechanism": pf.ObjectivePerturbation(steepest=1.5)},
        ["steepest=1.5 was given", "above 0 and at most 1", "'auto' if in doubt"],
    ),
    "gaussian without delta": (
        {"mechanism": pf.OutputPerturbation(noise="gaussian")},
        ["noise='gaussian' was given with delta=0", "it needs", "Give one"],
    ),
    "an unknown mechanism": (
        {"mechanism": "magic"},
        ["mechanism='magic' was given to ERM", "it knows", "'auto' if in doubt"],
    ),
    "moments": (
        {"mechanism": "functional"},
        ["mechanism='functional' was given to ERM", "it knows", "'auto' if in doubt"],
    ),
    "a loss that is none": (
        {"loss": "logistic"},
        ["loss='logistic' was given to ERM", "it is a pf.ConvexLoss", "Write pf.ConvexLoss"],
    ),
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_cannot_be_private_is_refused_in_three_beats_and_uncharged(what: str, tmp_path: Path) -> None:
    parameters, beats = REFUSED[what]
    ledger = pf.Ledger(tmp_path / "ledger.db", epsilon=10.0)
    with pytest.raises(ValueError) as refused:
        pf.ERM(**{"schema": SCHEMA, "ledger": ledger, **parameters}).fit(table_of(40, 0))
    assert_told_in_order(str(refused.value), beats)
    assert ledger.spent.epsilon == 0


@pytest.mark.parametrize(
    "epsilon",
    [1e-25, 1e-300],
)
def test_an_epsilon_that_asks_for_more_noise_than_64_bits_hold_is_refused_uncharged(
    epsilon: float, tmp_path: Path
) -> None:
    ledger = pf.Ledger(tmp_path / "ledger.db", epsilon=10.0)
    for mechanism in ("objective", "output"):
        with pytest.raises(pf.PrivacyError):
            pf.LogisticRegression(epsilon, schema=SCHEMA, mechanism=mechanism, ledger=ledger).fit(table_of(40, 0))
        assert ledger.spent.epsilon == 0


def test_a_hinge_needs_no_curvature_when_its_minimum_is_perturbed() -> None:
    assert hinge().most_curvature is None
    plan = planned(pf.OutputPerturbation(ridge=5.0), hinge())
    assert plan.event.mechanism == "output perturbation"
    assert plan.event.sensitivity == pytest.approx(
        planned(pf.OutputPerturbation(ridge=5.0), smooth_hinge()).event.sensitivity, rel=1e-2
    )


def test_one_draw_of_a_tilt_and_one_for_the_certificate_is_all_that_is_drawn() -> None:
    noise = RecordingNoise(0)
    released(pf.ObjectivePerturbation(noise="laplace"), table_of(50, 0), noise)
    tilt, certificate = noise.calls
    assert not tilt.values.any()  # noise alone: nothing of the rows is in it
    assert certificate.values.any()
    noise = RecordingNoise(0)
    released(pf.OutputPerturbation(), table_of(50, 0), noise)
    assert [call.kind for call in noise.calls] == ["l2"]


def test_released_weights_are_the_minimum_of_the_tilted_objective() -> None:
    """Recomputed from the draw that was written down: the gradient there is no larger than the certificate's noise
    times the curvature.
    """
    noise, table = RecordingNoise(3), table_of(200, 0)
    mechanism = pf.ObjectivePerturbation(ridge=40.0, steepest=1.0, noise="laplace")
    risk = ERMProblem(LOGISTIC)
    schema = pf.Schema(
        [pf.Category("member", [0, 1]), pf.Category("region", [0, 1, 2, 3])], target=pf.Category("y", [0, 1])
    )
    geometry = mechanism.geometry(schema, risk, "slope")
    release = mechanism.release(
        Rows(open_table(table[:, 1:]), schema, geometry), PrivacyParameters(Budget(0.8)), None, noise, risk
    )
    design = np.column_stack([2 * table[:, 1] - 1, np.eye(4)[table[:, 2].astype(int)]])
    sides, weights = 2 * table[:, 3] - 1, release.value.weights[:, 0]
    tilt = noise.calls[0].output / release.event.unit
    gradient = design.T @ LOGISTIC.slope(design @ weights, sides) + 40.0 * weights + tilt
    certificate = (
        math.sqrt(2) * noise.calls[1].scale * np.linalg.norm(np.ones(5)) / planned_unit(mechanism, geometry, risk)
    )
    assert np.linalg.norm(gradient) < 10 * (40 + 0.25 * 200 * 2) * certificate
    assert np.linalg.norm(gradient) < 0.01 * np.linalg.norm(tilt)


def planned_unit(mechanism: Perturbation, geometry: Any, risk: ERMProblem) -> int:
    return mechanism.plan(PublicFacts(geometry, PrivacyParameters(Budget(0.8)), 200), risk).certificate.unit


def test_a_tilt_for_curvature_that_is_paid_is_larger_by_what_it_costs() -> None:
    gradients = Gradients(RowNorms(4, 2.0, 1.0, 9), smooth_hinge())
    free, paid = (objective_noise("laplace", gradients, Price(1.0, 0.0), cost) for cost in (None, 0.2))
    assert paid.sd == pytest.approx(free.sd / 0.8)
