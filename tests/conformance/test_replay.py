"""Record and replay: what is noised moves no further than paid for, the calls do not depend on data, and nothing else
gets out.
"""

from __future__ import annotations

import math
import warnings
from pathlib import Path

import numpy as np
import pytest
from sklearn.base import is_classifier

import privfit as pf
from privfit.models import ESTIMATORS, private
from privfit.privacy import Event
from privfit.privacy.parts import KNorm, Laplace
from privfit.schema import Geometry, Schema
from tests.conformance.cases import Neighbours, all_variants, attacks, frame, neighbours, releases_weights, schema_for
from tests.support.noise import Call, RecordingNoise, ReplayingNoise

NORMS = {
    "laplace": lambda moved: sum(abs(int(move)) for move in moved),
    "linf": lambda moved: max(abs(int(move)) for move in moved),
    "permute-and-flip": lambda moved: max(moved) - min(moved),
    "l2": lambda moved: math.sqrt(sum(int(move) ** 2 for move in moved)),
}


def fitted(monkeypatch: pytest.MonkeyPatch, estimator: type, rows: list, noise, adjacency: str, variant: dict):
    monkeypatch.setattr(private, "noise_source", lambda random_state: noise)
    ledger = pf.Ledger(epsilon=10.0, delta=1e-3)
    model = estimator(epsilon=0.7, schema=schema_for(estimator), adjacency=adjacency, ledger=ledger, **variant)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(frame(rows))
    return model, ledger, [str(warning.message) for warning in caught]


LAST: dict[tuple, tuple] = {}
"""What was fitted on the first tables of pairs under the variant that is looked at: several pairs have the same one."""


def first_fit(monkeypatch: pytest.MonkeyPatch, estimator: type, pair: Neighbours, variant: dict) -> tuple:
    """The model, ledger, warnings and calls to noise of a pair's first table."""
    key = (estimator, id(variant), pair.adjacency, tuple(pair.left))
    if LAST and next(iter(LAST))[:2] != key[:2]:
        LAST.clear()
    if key not in LAST:
        noise = RecordingNoise(seed=3)
        LAST[key] = (*fitted(monkeypatch, estimator, pair.left, noise, pair.adjacency, variant), noise)
    return LAST[key]


@pytest.mark.parametrize(("estimator", "pair", "variant"), attacks(ESTIMATORS, all_variants))
def test_noised_values_move_no_further_than_paid_for_and_nothing_else_leaves(
    monkeypatch, estimator, pair: Neighbours, variant
) -> None:
    left, left_ledger, left_warnings, first = first_fit(monkeypatch, estimator, pair, variant)
    second = ReplayingNoise(first.calls)
    right, right_ledger, right_warnings = fitted(monkeypatch, estimator, pair.right, second, pair.adjacency, variant)

    shape = [(call.kind, call.values.shape, call.scale) for call in first.calls]
    assert shape == [(call.kind, call.values.shape, call.scale) for call in second.calls], (
        "calls to noise depend on data"
    )
    assert shape, "nothing was noised"

    if not releases_weights(estimator, variant):
        assert_moved_no_further(first.calls, second.calls, left_ledger, variant)
    assert [entry.event for entry in left_ledger.entries()] == [entry.event for entry in right_ledger.entries()]
    assert left_warnings == right_warnings
    assert_same_state(left, right)


def assert_moved_no_further(first: list[Call], second: list[Call], ledger: pf.Ledger, variant: dict) -> None:
    people = variant.get("rows_per_person", 1)
    moves = [
        (one, one.values.astype(object) - other.values.astype(object)) for one, other in zip(first, second, strict=True)
    ]
    if variant.get("delta"):
        spent = sum(people**2 * sum(int(move) ** 2 for move in moved) / (2 * call.scale**2) for call, moved in moves)
        claimed = sum(entry.event.rho for entry in ledger.entries())
        assert all(call.kind == "gaussian" for call, _ in moves)
    else:
        spent = sum(people * NORMS[call.kind](moved) / call.scale for call, moved in moves)
        claimed = ledger.spent.epsilon
    assert spent <= claimed * (1 + 1e-12), f"a loss of {spent} at a claim of {claimed}"


def assert_same_state(left, right) -> None:
    """Everything a model carries is the same when the noisy values are: nothing un-noised is in it."""
    skip = {"ledger"}
    assert left.__dict__.keys() == right.__dict__.keys()
    for name in left.__dict__.keys() - skip:
        one, other = left.__dict__[name], right.__dict__[name]
        if isinstance(one, np.ndarray):
            np.testing.assert_array_equal(one, other, err_msg=name)
        elif isinstance(one, Geometry | Schema):
            assert one == other, name
        else:
            assert repr(one) == repr(other), name
    assert str(left.report_) == str(right.report_)


@pytest.mark.parametrize("estimator", [estimator for estimator in ESTIMATORS if not releases_weights(estimator, {})])
def test_the_replay_catches_a_dropped_clip(monkeypatch, estimator) -> None:
    """The attack works: without clipping, an outlier moves the sums further than paid for."""
    from privfit.rows import encoding

    clip = np.clip

    def dropped(values, low, high, out=None):
        return clip(values, low, high) if out is None else np.copyto(out, values)

    monkeypatch.setattr(encoding.np, "clip", dropped)
    rows = next(pair for pair in neighbours(estimator) if pair.name == "corners swapped")
    outlier = (1000.0, *rows.left[-1][1:])
    first, second = RecordingNoise(1), RecordingNoise(1)
    _model, ledger, _ = fitted(monkeypatch, estimator, rows.left, first, "replace-one", {})
    fitted(monkeypatch, estimator, [*rows.left[:-1], outlier], second, "replace-one", {})
    moved = np.abs(first.calls[0].values - second.calls[0].values).sum()
    assert moved / first.calls[0].scale > ledger.spent.epsilon


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_the_replay_catches_an_attribute_that_is_not_noised(monkeypatch, estimator) -> None:
    """The attack works: a model that keeps something of its rows is found out."""
    keep = estimator._keep

    def leaking(self, result):
        keep(self, result)
        self.secret_ = leaked[-1]

    leaked: list[int] = []
    monkeypatch.setattr(estimator, "_keep", leaking)
    pair = neighbours(estimator)[0]
    first = RecordingNoise(3)
    leaked.append(1)
    left, _, _ = fitted(monkeypatch, estimator, pair.left, first, pair.adjacency, {})
    leaked.append(2)
    right, _, _ = fitted(monkeypatch, estimator, pair.right, ReplayingNoise(first.calls), pair.adjacency, {})
    with pytest.raises(AssertionError):
        assert_same_state(left, right)


@pytest.mark.parametrize("estimator", ESTIMATORS)
@pytest.mark.parametrize("width", [1, 3, 7])
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.2])
def test_the_events_of_a_fit_compose_to_exactly_the_claim(estimator, width, fit_intercept, epsilon) -> None:
    rng = np.random.default_rng(0)
    target = ["a", "b"] if is_classifier(estimator()) else (-1, 1)
    y = np.array(["a", "b"] * 20) if target == ["a", "b"] else rng.uniform(-1, 1, 40)
    ledger = pf.Ledger(epsilon=10.0)
    schema = pf.Schema.box(-1, 1, target=target)
    model = estimator(epsilon=epsilon, schema=schema, fit_intercept=fit_intercept, ledger=ledger).fit(
        rng.uniform(-1, 1, (40, width)), y
    )
    assert ledger.spent.epsilon == epsilon
    assert ledger.spent.delta == 0.0
    assert (model.report_.epsilon, model.report_.delta, model.report_.private) == (epsilon, 0.0, True)
    event = Event.from_dict(model.report_.event)
    pure = [part for part in event.flat() if isinstance(part, Laplace | KNorm) and part.scale]
    assert all(part.sensitivity / part.scale <= epsilon for part in pure)
    assert event == ledger.entries()[0].event


ATTACKED_ELSEWHERE = {
    "KMeans": "models/test_kmeans.py",
    "CoxRegression": "models/test_cox.py",
    "PCA": "models/test_pca.py",
    "GaussianNB": "models/test_naive_bayes.py",
    "GeneticSearch": "models/test_search.py",
    "Aggregate": "models/test_aggregate.py",
    "SelectPrivate": "models/test_select.py",
    "PrivateSearch": "models/test_private_search.py",
    "ImportanceWeights": "publish/test_weights.py",
}
"""Estimators without coefficients, and the file that replays them on neighbouring tables."""


def test_every_exported_estimator_is_attacked() -> None:
    from sklearn.base import BaseEstimator

    exported = {thing for thing in vars(pf).values() if isinstance(thing, type) and issubclass(thing, BaseEstimator)}
    assert {thing.__name__ for thing in exported - set(ESTIMATORS)} == set(ATTACKED_ELSEWHERE)
    for name, file in ATTACKED_ELSEWHERE.items():
        text = (Path(__file__).parents[1] / file).read_text(encoding="utf-8")
        assert name in text, file
        assert "replay" in text.lower(), file


def test_every_mechanism_and_estimator_states_its_guarantee() -> None:
    import inspect

    from privfit import mechanisms

    stated = [
        *ESTIMATORS,
        *(
            thing
            for thing in vars(mechanisms).values()
            if inspect.isclass(thing) and hasattr(thing, "release") and not inspect.isabstract(thing)
        ),
    ]
    assert pf.FunctionalMechanism in stated
    for thing in stated:
        assert "Guarantee:" in (thing.__doc__ or ""), thing.__name__
