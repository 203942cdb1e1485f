"""A perturbed objective with matrices beside it: its parts, their price, and how far neighbours move them."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import polars as pl
import pytest

import privfit as pf
from privfit.audit.recording import Call, RecordingNoise, ReplayingNoise, noise_from
from privfit.losses import LOGISTIC
from privfit.mechanisms import ERMProblem
from privfit.mechanisms.base import PublicFacts
from privfit.mechanisms.perturbation.bought_moments import FOR_BREAD, FOR_MEAT
from privfit.privacy import Budget, PrivacyParameters, exact
from privfit.privacy.parts import Additive

FEATURES = [pf.Numeric("n", 0, 9), pf.Category("s", [0, 1]), pf.Category("c", list("abc"))]
SCHEMA = pf.Schema(FEATURES, target=pf.Category("y", ["no", "yes"]))
BASE = [(float(i % 10), i % 2, "abc"[i % 3], ["no", "yes"][i % 4 == 0]) for i in range(12)]
CORNERS = [(0.0, 0, "a", "no"), (9.0, 1, "c", "yes"), (9.0, 0, "b", "no")]
MODELS = [pf.LogisticRegression, pf.LinearSVC]


def fitted(model: type, rows: list[tuple], noise: RecordingNoise, **own: object) -> pf.LogisticRegression:
    table = pl.DataFrame(rows, schema=["n", "s", "c", "y"], orient="row")
    with noise_from(noise):
        return model(1.0, schema=SCHEMA, intervals=True, **own).fit(table)


def calls_of(model: type, rows: list[tuple], replayed: list[Call] | None = None, **own: object) -> list[Call]:
    noise = RecordingNoise(3, lambda: 0) if replayed is None else ReplayingNoise(replayed, lambda: 0)
    fitted(model, rows, noise, **own)
    return noise.calls


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("adjacency", ["replace-one", "add-remove"])
def test_no_neighbour_moves_a_matrix_further_than_it_paid_for(model: type, adjacency: str) -> None:
    largest = np.zeros(2)
    for one in CORNERS:
        left = [*BASE, one]
        calls = calls_of(model, left, adjacency=adjacency)
        for other in CORNERS:
            right = BASE if adjacency == "add-remove" else [*BASE, other]
            replayed = calls_of(model, right, calls, adjacency=adjacency)
            parts = fitted(model, left, RecordingNoise(3, lambda: 0), adjacency=adjacency).report_.event["parts"][-2:]
            for place, part in enumerate(parts):
                apart = calls[place - 2].values - replayed[place - 2].values
                moved = np.abs(apart).sum() if part["kind"] == "laplace" else np.abs(apart).max()
                largest[place] = max(largest[place], moved / part["sensitivity"])
    assert np.all(largest <= 1)
    moves = largest > 0.05  # so that a much smaller bound would be seen; far from a hinge's corner rows do not curve
    assert moves.all() if model is pf.LogisticRegression else moves[1]


@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_shares_add_up_to_epsilon(delta: float) -> None:
    model = pf.LogisticRegression(0.7, delta=delta, schema=SCHEMA, intervals=True)
    mechanism = model._chosen_mechanism()

    problem = ERMProblem(LOGISTIC)
    facts = PublicFacts(mechanism.geometry(SCHEMA, problem), PrivacyParameters(Budget(0.7, delta)), 1000)
    plan = mechanism.plan(facts, problem)
    left = exact(plan.weights.event.epsilon)
    assert left + exact(0.7) * (FOR_BREAD + FOR_MEAT) <= exact(0.7)
    assert plan.event.epsilon == 0.7
    assert plan.event.delta == plan.weights.event.delta
    bought = [part for part in plan.event.parts if isinstance(part, Additive)][-2:]
    for part, share in zip(bought, (FOR_BREAD, FOR_MEAT), strict=True):
        assert Fraction(part.sensitivity) / Fraction(part.scale) <= exact(0.7) * share * (1 + Fraction(1, 10**12))


def test_what_has_no_intervals_is_refused_before_reading() -> None:
    table = pl.DataFrame(BASE, schema=["n", "s", "c", "y"], orient="row")
    many: list[dict[str, object]] = [
        {"mechanism": "output"},
        {"mechanism": "functional"},
        {"mechanism": pf.ObjectivePerturbation(calibration="paper", ridge=1.0)},
        {"interactions": 1},
        {"class_weight": "balanced"},
        {"kernel": "rbf"},
    ]
    ledger = pf.Ledger(epsilon=5.0)
    for own in many:
        with pytest.raises(pf.PrivacyError, match="intervals"):
            pf.LogisticRegression(1.0, schema=SCHEMA, intervals=True, ledger=ledger, **own).fit(table)
    three = pf.Schema(FEATURES, target=pf.Category("y", ["no", "yes", "maybe"]))
    with pytest.raises(pf.PrivacyError, match="more than two classes"):
        pf.LogisticRegression(1.0, schema=three, intervals=True, ledger=ledger).fit(table)
    with pytest.raises(pf.PrivacyError, match="most_curvature"):
        pf.LinearSVC(1.0, schema=SCHEMA, intervals=True, loss="hinge", ledger=ledger).fit(table)
    assert ledger.spent.epsilon == 0
