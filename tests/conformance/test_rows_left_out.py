"""Record and replay where rows are left out: tables that differ in a whole person, in a row that is used or not, and in
all rows that are used, for every estimator.
"""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import polars as pl
import pytest
from sklearn.base import is_classifier

import privfit as pf
from privfit.mechanisms.base import PublicFacts
from privfit.mechanisms.perturbation.defaults import FOR_CERTIFICATE
from privfit.models import ESTIMATORS, private
from privfit.privacy import Budget, PrivacyParameters
from privfit.rows import CachedDesign, Rows, persons, used_rows
from privfit.tables import open_table
from tests.conformance.cases import FEATURES, releases_weights
from tests.conformance.test_perturbed import EPSILON, worst_loss
from tests.conformance.test_replay import NORMS, assert_same_state
from tests.support.noise import RecordingNoise, ReplayingNoise

NAMES = [column.name for column in FEATURES]
OPPOSITE = (100.0, 101.0, 1.0, "west", "yes", 5.0)
CORNER = (0.0, 100.0, 0.0, "north", "no", -5.0)
MIXED = (0.0, 101.0, 1.0, "west", "no", 5.0)
NO_TARGET = (*OPPOSITE[:5], None)
OTHER_AREA = (*CORNER, "elsewhere")
MOST = 3
"""Rows per person in these tests; persons have up to 20."""


@dataclass(frozen=True)
class Pair:
    """Two tables of rows with a person and an area each, neighbours under what a schema leaves out."""

    name: str
    left: list[tuple]
    right: list[tuple]
    adjacency: str = "replace-one"
    leaves: dict[str, Any] | None = None


def schema_of(estimator: type, leaves: dict[str, Any]) -> pf.Schema:
    target: Any = pf.Category("y", ["a", "b"], fill="drop")
    if not is_classifier(estimator()):
        target = pf.Numeric("y", -5, 5, fill="drop")
    return pf.Schema(FEATURES, target, **leaves)


def frame(estimator: type, rows: list[tuple]) -> pl.DataFrame:
    table = pl.DataFrame(
        [(*row[:5], row[5], row[6], row[7]) for row in rows],
        schema={
            **{column.name: pl.Float64 if isinstance(column, pf.Numeric) else pl.String for column in FEATURES},
            "y": pl.Float64,
            "person": pl.String,
            "area": pl.String,
        },
        orient="row",
    )
    if not is_classifier(estimator()):
        return table
    return table.with_columns(
        pl.when(pl.col("y") > 0).then(pl.lit("b")).when(pl.col("y") <= 0).then(pl.lit("a")).alias("y")
    )


def of(person: str, *rows: tuple) -> list[tuple]:
    """Rows of one person, in the area that is used unless they say another."""
    return [(*row[:6], person, row[6] if len(row) > 6 else "here") for row in rows]


def others() -> list[tuple]:
    rng = np.random.default_rng(5)
    found = []
    for person in range(8):
        for _ in range(1 + 3 * (person % 4)):
            row = (*(float(rng.uniform(low, low + 1)) for low in (0, 100, 0)), "east", "no", float(rng.normal()))
            found += of(f"p{person}", row)
    return found


PERSON = {"person": "person"}
AREA = {"where": {"area": ["here"]}}


def pairs() -> list[Pair]:
    """Persons with many rows for persons with other ones or none that is used; rows for rows that are not used.

    What differs is last, where random bits by place are the same for all other rows.
    """
    base, many = others(), [CORNER] * 20
    mixed = [OPPOSITE, MIXED, CORNER, NO_TARGET] * 5
    return [
        Pair("20 rows for 20 others", base + of("x", *many), base + of("x", *[OPPOSITE] * 20), leaves=PERSON),
        Pair("20 rows for one", base + of("x", *mixed), base + of("x", MIXED), leaves=PERSON),
        Pair("another person", base + of("x", *mixed), base + of("z", *many), leaves=PERSON),
        Pair("20 rows without a target", base + of("x", *many), base + of("x", *[NO_TARGET] * 20), leaves=PERSON),
        Pair("a filtered person", base + of("x", *many), base + of("x", *[OTHER_AREA] * 9), leaves=PERSON | AREA),
        Pair("a person is added", base, base + of("x", *mixed), "add-remove", PERSON),
        Pair("a target goes missing", base + of("x", OPPOSITE), base + of("x", NO_TARGET), leaves={}),
        Pair("a target changes", base + of("x", OPPOSITE), base + of("x", CORNER), leaves={}),
        Pair("a row leaves the area", base + of("x", OPPOSITE), base + of("x", OTHER_AREA), leaves=AREA),
        Pair("a row comes to the area", base + of("x", OTHER_AREA), base + of("x", MIXED), leaves=AREA),
        Pair("no row is used", of("x", OTHER_AREA, OTHER_AREA), of("x", OTHER_AREA, OPPOSITE), leaves=AREA),
        Pair("a row without a target is added", base, base + of("x", NO_TARGET), "add-remove", {}),
    ]


def variants(estimator: type) -> list[dict]:
    found: list[dict] = [{}]
    if estimator is pf.LinearRegression:
        found += [
            {"fit_intercept": False},
            {"numeric": "bins"},
            {"mechanism": pf.FunctionalMechanism(noise="linf")},
            {"mechanism": pf.FunctionalMechanism(noise="l2")},
            {"mechanism": pf.FunctionalMechanism(noise="gaussian"), "delta": 1e-6},
            {"mechanism": "boosted-adassp", "delta": 1e-6},
            {"mechanism": "objective"},
            {"mechanism": "objective", "delta": 1e-6},
        ]
    if estimator is pf.Lasso:
        found.append({"alpha": "select"})
    if estimator is pf.LogisticRegression:
        found += [{"mechanism": pf.FunctionalMechanism()}, {"mechanism": "output"}, {"numeric": "slope"}]
        found += [{"interactions": 1}, {"delta": 1e-6, "mechanism": pf.ObjectivePerturbation(noise="gaussian")}]
    return found


QUICK = ("20 rows for one", "20 rows without a target", "a row leaves the area", "no row is used")


def cases() -> list[Any]:
    """All pairs for the first variant of LinearRegression and LogisticRegression; of others a few in `make test`."""
    found = []
    for estimator in ESTIMATORS:
        for place, variant in enumerate(variants(estimator)):
            for pair in pairs():
                first = place == 0 and estimator in (pf.LinearRegression, pf.LogisticRegression)
                marks = () if first or pair.name in QUICK else (pytest.mark.slow,)
                name = f"{estimator.__name__}-{pair.name}-{variant}"[:120]
                found.append(pytest.param(estimator, pair, variant, id=name, marks=marks))
    return found


def fitted(monkeypatch: pytest.MonkeyPatch, estimator: type, pair: Pair, rows: list[tuple], noise, variant: dict):
    monkeypatch.setattr(private, "noise_source", lambda random_state: noise)
    ledger = pf.Ledger(epsilon=10.0, delta=1e-3)
    per_person = MOST if "person" in (pair.leaves or {}) else 1
    model = estimator(
        epsilon=0.7,
        schema=schema_of(estimator, pair.leaves or {}),
        adjacency=pair.adjacency,
        rows_per_person=per_person,
        ledger=ledger,
        **variant,
    )
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(frame(estimator, rows))
    return model, ledger, [str(warning.message) for warning in caught]


def loss(first: RecordingNoise, second: RecordingNoise, variant: dict) -> float:
    """What the two tables differ by in all that is noised, over the noise: epsilon, or rho with Gaussian noise."""
    moves = [
        (one, one.values.astype(object) - other.values.astype(object))
        for one, other in zip(first.calls, second.calls, strict=True)
    ]
    if variant.get("delta"):
        return sum(sum(int(move) ** 2 for move in moved) / (2 * call.scale**2) for call, moved in moves)
    return sum(NORMS[call.kind](moved) / call.scale for call, moved in moves)


@pytest.mark.parametrize(("estimator", "pair", "variant"), cases())
def test_a_whole_person_moves_no_more_than_is_promised(monkeypatch, estimator, pair, variant) -> None:
    first = RecordingNoise(seed=3)
    left, left_ledger, left_warnings = fitted(monkeypatch, estimator, pair, pair.left, first, variant)
    second = ReplayingNoise(first.calls)
    right, right_ledger, right_warnings = fitted(monkeypatch, estimator, pair, pair.right, second, variant)
    shapes = [[(call.kind, call.values.shape, call.scale) for call in one.calls] for one in (first, second)]
    assert shapes[0], "nothing was noised"
    assert shapes[0] == shapes[1]
    events = [[entry.event for entry in ledger.entries()] for ledger in (left_ledger, right_ledger)]
    assert events[0] == events[1]
    assert {(event.adjacency, event.rows_per_person) for event in events[0]} == {
        (pair.adjacency, MOST if "person" in pair.leaves else 1)
    }
    assert left_warnings == right_warnings
    assert_same_state(left, right)
    if not releases_weights(estimator, variant):
        claimed = sum(event.rho if variant.get("delta") else event.epsilon for event in events[0])
        assert loss(first, second, variant) <= claimed * (1 + 1e-12)


def test_persons_without_a_cap_are_flagged(monkeypatch) -> None:
    """The attack works: with all rows of all persons, one person moves more than is promised."""
    monkeypatch.setattr(persons, "_left_out", uncapped(persons._left_out))
    pair, first = pairs()[0], RecordingNoise(3)
    _, ledger, _ = fitted(monkeypatch, pf.LinearRegression, pair, pair.left, first, {})
    second = ReplayingNoise(first.calls)
    fitted(monkeypatch, pf.LinearRegression, pair, pair.right, second, {})
    assert loss(first, second, {}) > 3 * ledger.spent.epsilon


def uncapped(left_out):
    return lambda part, most: left_out(part, 1000)


def test_noise_for_half_of_what_a_slot_changes_is_flagged(monkeypatch) -> None:
    """The attack works: noise that forgets that a row leaves and another enters is too small."""
    promised = PrivacyParameters.for_rows_left_out

    def forgetful(self: PrivacyParameters, slots: int | None) -> PrivacyParameters:
        return replace(promised(self, slots), rows_per_person=self.rows_per_person)

    monkeypatch.setattr(PrivacyParameters, "for_rows_left_out", forgetful)
    pair, first = next(pair for pair in pairs() if pair.name == "a target changes"), RecordingNoise(3)
    _, ledger, _ = fitted(monkeypatch, pf.LinearRegression, pair, pair.left, first, {"numeric": "bins"})
    second = ReplayingNoise(first.calls)
    fitted(monkeypatch, pf.LinearRegression, pair, pair.right, second, {"numeric": "bins"})
    assert loss(first, second, {}) > 1.2 * ledger.spent.epsilon


ABSENT_PAIRS = [pair for pair in pairs() if pair.adjacency == "replace-one"]


@pytest.mark.parametrize("numeric", ["slope", "splines"])
@pytest.mark.parametrize("pair", ABSENT_PAIRS, ids=lambda pair: pair.name)
def test_no_weights_are_much_likelier_where_a_person_is_another(pair, numeric) -> None:
    """Perturbed objectives: the densities of both tables at many weights."""
    estimator, per_person = pf.LogisticRegression, MOST if "person" in pair.leaves else 1
    model = estimator(epsilon=EPSILON)
    mechanism, stated = model._chosen_mechanism(), schema_of(estimator, pair.leaves)
    schema = stated.of_used_rows()
    risk = model._problem(mechanism, schema, numeric)
    geometry = mechanism.geometry(schema, risk, numeric)
    tables = [
        used_rows(open_table(frame(estimator, rows)), stated, per_person, b"one key for both", True)
        for rows in (pair.left, pair.right)
    ]
    assert tables[0].slots == tables[1].slots
    designs = [CachedDesign(Rows(table, schema, geometry)) for table in tables]
    if not all(design.n_rows for design in designs):
        return
    parameters = mechanism.for_rows_left_out(
        PrivacyParameters(Budget(EPSILON), "replace-one", per_person), tables[0].slots
    )
    plan = mechanism.plan(PublicFacts(geometry, parameters, tables[0].slots), risk)
    assert worst_loss(plan, *designs) <= EPSILON * (1 - FOR_CERTIFICATE) * (1 + 1e-9)
    assert math.isfinite(worst_loss(plan, *designs))


@pytest.mark.parametrize("adjacency", ["replace-one", "add-remove"])
@pytest.mark.parametrize("mechanism", ["auto", "grid", "hybrid", "cells", "lloyd", "genetic"])
def test_clusters_are_released_where_no_row_is_used(mechanism: str, adjacency: str) -> None:
    """One row more that is used must not decide whether there is a release."""
    schema = pf.Schema([pf.Numeric("x", 0, 1)], where={"z": (0.5, None)})
    for used in (0, 1):
        frame = pl.DataFrame({"x": np.linspace(0, 1, 60), "z": np.arange(60) < used}).cast(pl.Float64)
        model = pf.KMeans(
            2, 1.0, schema=schema, mechanism=mechanism, adjacency=adjacency, expected_rows=60, random_state=0
        )
        assert model.fit(frame).cluster_centers_.shape == (2, 1)
