"""Sample and aggregate in models: attacked by replaying noise on a neighbouring table, silent about blocks that fail,
charged once, and of some use.
"""

from __future__ import annotations

import threading
import warnings
from fractions import Fraction

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from sklearn.base import clone

import privfit as pf
from privfit.models import private
from privfit.privacy import exact
from tests.support.beats import assert_told_in_order
from tests.support.noise import RecordingNoise, ReplayingNoise

RNG = np.random.default_rng(0)
SCHEMA = pf.Schema([pf.Numeric("x", 0, 10)])
REST = RNG.uniform(0, 10, 118)


def outlandish(rows):
    """A function that one row can turn over: its answers, its failures, its warnings and its moods depend on it."""
    if (rows > 9.99).any():
        warnings.warn(f"saw {rows.max()}", UserWarning, stacklevel=1)
        raise ValueError(f"saw {rows.max()}")
    if (rows < 0.01).any():
        return [np.inf, -np.inf, 1e300]
    return [np.median(rows), rows.mean(), np.nan if len(rows) % 7 == 0 else len(rows)]


LOW, HIGH = [0.0, 2.0, 0.0], [10.0, 8.0, 40.0]
PAIRS = {
    "replace-one": [
        (np.append(REST, [a, c]), np.append(REST, [b, d]))
        for a, b, c, d in ((0.0, 10.0, 5.0, 5.0), (5.0, 10.0, 1.0, 0.0))
    ],
    "add-remove": [(np.append(REST, [3.0, 10.0]), np.append(REST, [3.0])), (REST, np.append(REST, [0.0, 0.0]))],
}
MECHANISMS = {
    "given": pf.SampleAndAggregate(),
    "percentiles": pf.SampleAndAggregate(9, ranges="percentiles"),
    "in several blocks": pf.SampleAndAggregate(12, resampling=3),
    "Laplace": pf.SampleAndAggregate(7, noise="laplace"),
    "percentiles in several blocks": pf.SampleAndAggregate(8, ranges="percentiles", resampling=2),
}


def fitted(monkeypatch, model, table, noise, y=None):
    monkeypatch.setattr(private, "noise_source", lambda random_state: noise)
    ledger = pf.Ledger(epsilon=10.0, delta=1e-2)
    model = clone(model).set_params(ledger=ledger)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(table) if y is None else model.fit(table, y)
    return model, ledger, [str(warning.message) for warning in caught]


NORMS = {
    "laplace": lambda change: np.abs(change).sum(),
    "linf": lambda change: np.abs(change).max(),
    "gaussian": np.linalg.norm,
}


def price_of(call, other, menus: int) -> Fraction:
    """What a call costs on a pair of tables, in epsilon."""
    assert (call.kind, call.scale, call.values.shape) == (other.kind, other.scale, other.values.shape)
    change = other.values - call.values
    if call.kind == "permute-and-flip":
        apart = sum(int(part.max() - part.min()) for part in np.split(change, menus))
        return Fraction(apart) / Fraction(call.scale)
    return Fraction(int(NORMS[call.kind](change))) / Fraction(call.scale)


def attacked(monkeypatch, model, one, other, menus=1):
    """Fit on both tables with the same noise; the price that the pair really costs, and the two models."""
    recorder = RecordingNoise()
    first, paid, warned = fitted(monkeypatch, model, *one[:1], recorder, *one[1:])
    replayer = ReplayingNoise(recorder.calls)
    second, paid_too, warned_too = fitted(monkeypatch, model, *other[:1], replayer, *other[1:])
    assert len(recorder.calls) == len(replayer.calls)
    assert paid.spent == paid_too.spent
    assert warned == warned_too == []
    assert str(first.report_) == str(second.report_)
    price = sum((price_of(a, b, menus) for a, b in zip(recorder.calls, replayer.calls, strict=True)), Fraction(0))
    return price, first, second


@pytest.mark.parametrize("people", [1, 2])
@pytest.mark.parametrize("adjacency", ["replace-one", "add-remove"])
@pytest.mark.parametrize("name", MECHANISMS)
def test_a_neighbouring_table_cannot_be_told_from_the_same_noise(monkeypatch, name, adjacency, people) -> None:
    model = pf.Aggregate(
        outlandish,
        low=LOW,
        high=HIGH,
        epsilon=0.8,
        schema=SCHEMA,
        mechanism=MECHANISMS[name],
        adjacency=adjacency,
        rows_per_person=people,
        expected_rows=120,
    )
    seen = []
    for one, other in PAIRS[adjacency]:
        if people == 1 and abs(len(one) - len(other)) == 2:
            other = other[:-1]
        if people == 1 and adjacency == "replace-one":
            other = np.append(other[:-1], one[-1])
        price, first, second = attacked(monkeypatch, model, (one[:, None],), (other[:, None],), menus=6)
        assert price <= exact(0.8)
        seen.append(price)
        assert np.array_equal(first.estimate_, second.estimate_)
    assert max(seen) > 0.05  # the attack does something


def classes_of(X):
    return np.where(X[:, 0] + 0.2 * RNG.normal(size=len(X)) > 0, "b", "a")


POINTS = RNG.uniform(-1, 1, (160, 2))
CLASSES = classes_of(POINTS)
MODELS = {
    "logistic": (
        pf.LogisticRegression(0.8, schema=pf.Schema.box(-1, 1, target=["a", "b"]), mechanism="sample-and-aggregate"),
        True,
    ),
    "svm": (
        pf.LinearSVC(0.8, schema=pf.Schema.box(-1, 1, target=["a", "b"]), mechanism=pf.SampleAndAggregate(9)),
        True,
    ),
    "three classes": (
        pf.LogisticRegression(
            0.8, schema=pf.Schema.box(-1, 1, target=["a", "b", "z"]), mechanism=pf.SampleAndAggregate(resampling=2)
        ),
        True,
    ),
    "percentiles": (
        pf.LogisticRegression(
            0.8, schema=pf.Schema.box(-1, 1, target=["a", "b"]), mechanism=pf.SampleAndAggregate(ranges="percentiles")
        ),
        True,
    ),
    "kernel": (
        pf.LinearSVC(
            0.8,
            schema=pf.Schema.box(-1, 1, target=["a", "b"]),
            kernel="rbf",
            n_components=6,
            mechanism="sample-and-aggregate",
        ),
        True,
    ),
    "k-means": (pf.KMeans(3, 0.8, schema=pf.Schema.box(-1, 1), mechanism="sample-and-aggregate"), False),
    "k-means, blocks that are too small": (
        pf.KMeans(3, 0.8, schema=pf.Schema.box(-1, 1), mechanism=pf.SampleAndAggregate(80)),
        False,
    ),
}


@pytest.mark.parametrize("adjacency", ["replace-one", "add-remove"])
@pytest.mark.parametrize("name", MODELS)
def test_weights_and_centres_cannot_be_told_from_the_same_noise(monkeypatch, name, adjacency) -> None:
    model, has_classes = MODELS[name]
    model = clone(model).set_params(adjacency=adjacency, expected_rows=160)
    last = np.array([[-1.0, 1.0]])
    one, y = np.vstack([POINTS, last]), np.append(CLASSES, "a")
    other, z = (
        (np.vstack([POINTS, -last]), np.append(CLASSES, "b")) if adjacency == "replace-one" else (POINTS, CLASSES)
    )
    left, right = ((one, y), (other, z)) if has_classes else ((one,), (other,))
    price, first, second = attacked(monkeypatch, model, left, right, menus=6)
    assert price <= exact(0.8)
    mine, theirs = (m.coef_ if has_classes else m.cluster_centers_ for m in (first, second))
    assert np.array_equal(mine, theirs)
    assert price > 0 or "too small" in name


# -- functions that fail ---------------------------------------------------------------------------


def always_fails(rows):
    raise KeyError("age")


@pytest.mark.parametrize(
    ("function", "beats"),
    [
        (always_fails, ["failed on rows made up", "KeyError", "returns 2 numbers", "Nothing was charged"]),
        (lambda rows: 1.0, ["returned 1 number ", "returns 2 numbers", "Nothing was charged"]),
        (lambda rows: [np.nan, 1.0], ["returned NaN", "returns 2 numbers", "Nothing was charged"]),
        ("median", ["function=str was given", "it is a function", "Write one"]),
    ],
)
def test_a_function_that_can_only_fail_is_refused_before_the_charge(function, beats) -> None:
    ledger = pf.Ledger(epsilon=1.0)
    with pytest.raises(pf.PrivacyError) as error:
        pf.Aggregate(function, low=0, high=1, n_outputs=2, schema=SCHEMA, ledger=ledger).fit(REST[:, None])
    assert_told_in_order(str(error.value), beats)
    assert ledger.spent.epsilon == 0


def test_a_function_that_fails_on_the_rows_alone_gives_the_middle(monkeypatch) -> None:
    def function(rows):
        if (rows == 3.25).any():
            raise SystemExit(f"{rows}")
        return 0.0

    monkeypatch.setattr(private, "noise_source", lambda random_state: RecordingNoise())
    model = pf.Aggregate(
        function,
        low=-1,
        high=5,
        epsilon=1e5,
        schema=SCHEMA,
        mechanism=pf.SampleAndAggregate(4),
        ledger=pf.Ledger(epsilon=1e6),
    )
    assert abs(model.fit(np.full((400, 1), 3.25)).estimate_[0] - 2.0) < 1e-3


def test_the_function_is_tried_on_rows_of_the_schema_with_as_many_as_a_block_has() -> None:
    seen = []

    def function(rows):
        seen.append(rows.copy())
        return rows.shape[1]

    schema = pf.Schema([pf.Numeric("x", 0, 10), pf.Category("c", ["u", "v", "w"])], target=pf.Numeric("t", 100, 101))
    frame = pd.DataFrame({"x": np.full(1000, 5.0), "c": ["v"] * 1000, "t": np.full(1000, 100.5)})
    pf.Aggregate(function, low=0, high=9, schema=schema, mechanism=pf.SampleAndAggregate(20)).fit(frame)
    assert seen[0].shape == (50, 3)
    assert set(seen[0][:, 1]) == {0, 1, 2}
    assert sum(map(len, seen[1:])) == 1000
    assert {tuple(row) for rows in seen[1:] for row in rows} == {(5.0, 1.0, 100.5)}


# -- the rest --------------------------------------------------------------------------------------


def test_medians_are_found_whatever_holds_the_rows() -> None:
    values = RNG.normal(4, 1, 20_000)
    for table in (
        values[:, None],
        pd.DataFrame({"x": values}),
        pa.table({"x": values}),
        pa.table({"x": values}).to_reader(),
    ):
        model = pf.Aggregate(np.median, low=0, high=10, epsilon=5.0, schema=SCHEMA, random_state=0).fit(table)
        assert model.estimate_.shape == (1,)
        assert abs(model.estimate_[0] - 4) < 0.5
        assert not model.report_.private


def test_percentiles_find_answers_in_wide_bounds() -> None:
    values = RNG.normal(4, 1, (40_000, 1))
    errors = {}
    for ranges in ("given", "percentiles"):
        found = [
            pf.Aggregate(
                np.median,
                low=-1000,
                high=1000,
                epsilon=2.0,
                schema=SCHEMA,
                mechanism=pf.SampleAndAggregate(400, ranges=ranges),
                random_state=seed,
            ).fit(values)
            for seed in range(10)
        ]
        errors[ranges] = np.median([abs(model.estimate_[0] - 4) for model in found])
    assert errors["percentiles"] < errors["given"] / 2 + 4


def test_weights_are_close_to_those_of_all_rows_with_much_epsilon() -> None:
    X = RNG.uniform(-1, 1, (20_000, 3))
    y = np.where(2 * X[:, 0] - X[:, 1] + RNG.logistic(size=len(X)) > 0, "b", "a")
    schema = pf.Schema.box(-1, 1, target=["a", "b"])
    model = pf.LogisticRegression(1e5, schema=schema, mechanism="sample-and-aggregate", random_state=0).fit(X, y)
    assert np.allclose(model.coef_, [[2, -1, 0]], atol=0.25)
    machine = pf.LinearSVC(1e5, schema=schema, mechanism="sample-and-aggregate", random_state=0).fit(X, y)
    assert abs(machine.score(X, y) - model.score(X, y)) < 0.01


def test_three_clusters_are_found_with_much_epsilon() -> None:
    wanted = np.array([[10.0, 20.0], [50.0, 80.0], [90.0, 30.0]])
    X = wanted[RNG.integers(3, size=9000)] + RNG.normal(size=(9000, 2))
    model = pf.KMeans(3, 1e4, schema=pf.Schema.box(0, 100), mechanism="sample-and-aggregate", random_state=0).fit(X)
    assert np.allclose(model.cluster_centers_, wanted, atol=1.0)


def test_error_falls_as_epsilon_grows() -> None:
    values = RNG.uniform(0, 10, (5000, 1))
    errors = [
        np.median(
            [
                abs(
                    pf.Aggregate(np.mean, low=0, high=10, epsilon=e, schema=SCHEMA, random_state=s)
                    .fit(values)
                    .estimate_[0]
                    - 5
                )
                for s in range(15)
            ]
        )
        for e in (0.1, 1.0, 100.0)
    ]
    assert errors == sorted(errors, reverse=True)


def test_every_fit_is_charged_and_a_spent_ledger_refuses_before_the_function_runs() -> None:
    ran = threading.Event()

    def function(rows):
        ran.set()
        return 0.5

    ledger = pf.Ledger(epsilon=1.0)
    model = pf.Aggregate(function, low=0, high=1, epsilon=0.6, schema=SCHEMA, ledger=ledger)
    model.fit(REST[:, None])
    assert ledger.spent.epsilon == 0.6
    assert model.report_.private
    assert model.report_.epsilon == 0.6
    ran.clear()
    with pytest.raises(pf.BudgetExceeded):
        clone(model).fit(REST[:, None])
    assert not ran.is_set()
    assert ledger.spent.epsilon == 0.6


def test_the_report_says_when_hardly_anything_is_left_beside_noise() -> None:
    told = {}
    for epsilon in (0.1, 10.0):
        model = pf.Aggregate(lambda rows: np.zeros(9), low=-1, high=1, n_outputs=9, epsilon=epsilon, schema=SCHEMA).fit(
            REST[:, None]
        )
        told[epsilon] = "mostly noise" in str(model.report_)
    assert told == {0.1: True, 10.0: False}
    clusters = pf.KMeans(5, 0.1, schema=pf.Schema.box(-1, 1), mechanism="sample-and-aggregate").fit(POINTS)
    assert "mostly noise" in str(clusters.report_)


def test_a_delta_buys_gaussian_noise_where_that_is_less() -> None:
    ledger = pf.Ledger(epsilon=1.0, delta=1e-5)
    model = pf.Aggregate(
        lambda rows: np.zeros(200), low=-1, high=1, n_outputs=200, delta=1e-6, schema=SCHEMA, ledger=ledger
    ).fit(REST[:, None])
    assert model.report_.noise == "discrete Gaussian"
    assert model.report_.delta == 1e-6


def test_functions_run_in_processes_of_their_own() -> None:
    def function(rows):
        import os

        return os.getpid() % 1000 == here % 1000, np.mean(rows)

    import os

    here = os.getpid()
    model = pf.Aggregate(
        function,
        low=[0, 0],
        high=[1, 10],
        epsilon=1e5,
        schema=SCHEMA,
        mechanism=pf.SampleAndAggregate(5, workers="processes"),
        random_state=0,
    ).fit(np.full((100, 1), 3.0))
    assert np.allclose(model.estimate_, [0.0, 3.0], atol=1e-3)
    lock = threading.Lock()
    with pytest.raises(pf.PrivacyError, match="Nothing was charged"):  # what cannot be sent to a process
        clone(model).set_params(function=lambda rows: [1.0, lock.locked()]).fit(np.full((100, 1), 3.0))


def test_a_classifier_can_be_saved(tmp_path) -> None:
    model = clone(MODELS["logistic"][0]).set_params(random_state=1).fit(POINTS, CLASSES)
    model.save(tmp_path / "model.json")
    assert np.array_equal(pf.load_model(tmp_path / "model.json").predict_proba(POINTS), model.predict_proba(POINTS))


@pytest.mark.parametrize(
    ("parameters", "beats"),
    [
        ({"low": 1, "high": 1}, ["were given", "low is below high", "Give public bounds"]),
        ({"low": -np.inf}, ["were given", "every bound is a number", "Give public bounds"]),
        ({"low": [0, 0], "high": [1, 1, 1]}, ["were given", "two numbers with n_outputs"]),
        ({"n_outputs": 0}, ["n_outputs=0 was given", "integer", "Or give"]),
        ({"mechanism": "objective"}, ["mechanism='objective' was given", "it knows", "Use 'auto'"]),
        ({"mechanism": pf.SampleAndAggregate(0)}, ["blocks=0 was given", "integer", "Use 'auto'"]),
    ],
)
def test_parameters_that_mean_nothing_are_refused_in_three_beats(parameters, beats) -> None:
    with pytest.raises(pf.PrivacyError) as error:
        pf.Aggregate(np.median, **{"low": 0, "high": 1, "schema": SCHEMA, **parameters}).fit(REST[:, None])
    assert_told_in_order(str(error.value), beats)


def test_models_that_do_not_average_weights_refuse_it() -> None:
    schema = pf.Schema.box(-1, 1, target=["a", "b"])
    for model in (
        pf.ERM(schema=schema, mechanism="sample-and-aggregate"),
        pf.ERM(schema=schema, mechanism=pf.SampleAndAggregate()),
    ):
        with pytest.raises(pf.PrivacyError, match="mechanism"):
            model.fit(POINTS, CLASSES)
