"""Weights of rows: what they mean, what they may reveal, and what is refused."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
import sklearn.linear_model

import privfit as pf
from privfit.audit.replay import NORMS
from privfit.models import private
from tests.conformance.test_replay import assert_same_state
from tests.support.noise import RecordingNoise, ReplayingNoise

SCHEMA = pf.Schema([pf.Numeric("a", -1, 1), pf.Numeric("b", -1, 1)], pf.Numeric("y", -1, 1))
PAIRS = [
    (pf.LinearRegression, {}, sklearn.linear_model.LinearRegression()),
    (pf.Ridge, {"alpha": 200.0}, sklearn.linear_model.Ridge(alpha=200.0)),
    (pf.Lasso, {"alpha": 0.05}, sklearn.linear_model.Lasso(alpha=0.05)),
    (pf.ElasticNet, {"alpha": 0.05}, sklearn.linear_model.ElasticNet(alpha=0.05)),
]


def table(rows: int = 2000) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (rows, 2))
    y = 0.4 * X[:, 0] - 0.2 * X[:, 1] + 0.3 * X[:, 0] ** 2 + rng.normal(0, 0.05, rows)
    return X, np.clip(y, -1, 1), np.where(X[:, 0] > 0, rng.uniform(0, 5, rows), 0.5)


@pytest.mark.parametrize("adjacency", ["replace-one", "add-remove"])
@pytest.mark.parametrize(("estimator", "options", "other"), PAIRS)
def test_without_noise_to_speak_of_it_is_the_fit_of_scikit_learn(estimator, options, other, adjacency) -> None:
    X, y, weights = table()
    model = estimator(1e7, schema=SCHEMA, max_weight=5.0, adjacency=adjacency, random_state=0, **options)
    model.fit(X, y, sample_weight=weights)
    other.fit(X, y, sample_weight=weights)
    np.testing.assert_allclose(model.coef_, other.coef_, atol=5e-4)
    assert abs(model.intercept_ - other.intercept_) < 5e-4
    unweighted = estimator(1e7, schema=SCHEMA, random_state=0, mechanism="functional", **options).fit(X, y)
    assert np.abs(unweighted.coef_ - model.coef_).max() > 0.002


CLASSES = pf.Schema(SCHEMA.features, pf.Category("y", ["no", "yes"]))
PLAIN = pf.ObjectivePerturbation(ridge=10.0, steepest=1.0)


def classes() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    X, y, weights = table()
    return X, np.where(y > 0.1, "yes", "no"), weights


@pytest.mark.parametrize("adjacency", ["replace-one", "add-remove"])
@pytest.mark.parametrize("estimator", [pf.LogisticRegression, pf.ERM, pf.AdditiveClassifier])
def test_classes_are_fitted_as_by_scikit_learn(estimator, adjacency) -> None:
    X, y, weights = classes()
    options = {"schema": CLASSES, "mechanism": PLAIN, "numeric": "slope", "adjacency": adjacency, "random_state": 0}
    options["fit_intercept"] = False  # scikit-learn does not shrink it
    if estimator is not pf.ERM:
        options["interactions"] = 0
    other = sklearn.linear_model.LogisticRegression(C=0.1, tol=1e-10, fit_intercept=False)
    model = estimator(epsilon=1e7, max_weight=5.0, **options).fit(X, y, sample_weight=weights)
    other.fit(X, y, sample_weight=weights)
    np.testing.assert_allclose(model.coef_, other.coef_, rtol=1e-3)
    model = estimator(epsilon=1e7, class_weight={"no": 4.0}, **options).fit(X, y)
    other.set_params(class_weight={"no": 4.0}).fit(X, y)
    np.testing.assert_allclose(model.coef_, other.coef_, rtol=1e-3)
    assert np.abs(estimator(epsilon=1e7, **options).fit(X, y).coef_ - other.coef_).max() > 0.1


def test_both_kinds_of_weights_multiply() -> None:
    X, y, weights = classes()
    options = {"schema": CLASSES, "mechanism": PLAIN, "numeric": "slope", "random_state": 0}
    both = pf.LogisticRegression(1e7, max_weight=5.0, class_weight={"yes": 3.0}, **options).fit(X, y, weights)
    one = pf.LogisticRegression(1e7, max_weight=15.0, **options).fit(X, y, weights * np.where(y == "yes", 3.0, 1.0))
    np.testing.assert_allclose(both.coef_, one.coef_, atol=1e-4)


@pytest.mark.parametrize("mechanism", ["objective", "output", pf.TunedPerturbation()])
def test_balanced_classes_weigh_alike_and_the_report_says_what_that_cost(mechanism) -> None:
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (6000, 2))
    y = np.where(X[:, 0] + rng.normal(0, 0.4, 6000) > 0.8, "yes", "no")
    held = pf.LogisticRegression(4.0, schema=CLASSES, mechanism=mechanism, random_state=0, numeric="slope").fit(X, y)
    model = pf.LogisticRegression(
        4.0, schema=CLASSES, mechanism=mechanism, class_weight="balanced", random_state=0, numeric="slope"
    ).fit(X, y)
    recalls = [np.mean(found.predict(X)[y == "yes"] == "yes") for found in (held, model)]
    assert recalls[1] > recalls[0] + 0.2
    assert "noisy counts had 3% of epsilon" in str(model.report_)
    assert model.report_.epsilon == 4.0


def test_three_classes_weigh_alike_too() -> None:
    X, _, weights = classes()
    y = np.digitize(X[:, 0], [-0.8, 0.9])
    schema = pf.Schema(SCHEMA.features, pf.Category("y", [0, 1, 2]))
    model = pf.LogisticRegression(50.0, schema=schema, class_weight="balanced", max_weight=5.0, random_state=0)
    found = model.fit(X, y, sample_weight=weights).predict(X)
    assert min(np.mean(found[y == place] == place) for place in range(3)) > 0.8


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"class_weight": {"maybe": 1.0}}, "no class of the schema"),
        ({"class_weight": {"no": 0.0}}, "positive numbers"),
        ({"class_weight": "even"}, "'balanced', or a dict"),
        ({"class_weight": "balanced", "mechanism": "functional"}, "takes"),
        ({"class_weight": "balanced", "mechanism": "genetic"}, "takes"),
    ],
)
def test_weights_of_classes_that_mean_nothing_are_refused(options, match) -> None:
    X, y, _ = classes()
    ledger = pf.Ledger(epsilon=1.0)
    with pytest.raises(pf.PrivacyError, match=match):
        pf.LogisticRegression(schema=CLASSES, ledger=ledger, **options).fit(X, y)
    assert ledger.spent.epsilon == 0


@pytest.mark.parametrize("estimator", [pf.LinearRegression, pf.Ridge, pf.AdditiveRegressor, pf.QuantileRegressor])
def test_numbers_by_a_perturbed_objective_follow_the_weights(estimator) -> None:
    X, y, weights = table(4000)
    options = {"mechanism": "objective", "schema": SCHEMA, "numeric": "slope", "random_state": 0}
    model = estimator(1e4, max_weight=5.0, **options).fit(X, y, sample_weight=weights)
    plain = estimator(1e4, **options).fit(X, y)
    residuals = [y - found.predict(X) for found in (model, plain)]
    if estimator is pf.QuantileRegressor:
        assert abs(np.average(residuals[0] < 0, weights=weights) - 0.5) < 0.02
    else:
        assert abs(np.average(residuals[0], weights=weights)) < 0.002
    losses = [np.average(found**2, weights=weights) for found in residuals]
    assert losses[0] < losses[1]


def test_larger_weights_count_as_the_bound_and_a_column_is_as_good_as_an_array() -> None:
    X, y, weights = table()
    frame = pl.DataFrame({"a": X[:, 0], "b": X[:, 1], "y": y, "weight": weights})
    models = [
        pf.LinearRegression(1e7, schema=SCHEMA, max_weight=2.0, random_state=0).fit(*given)
        for given in (
            (X, y, np.minimum(weights, 2.0)),
            (X, y, weights.tolist()),
            (frame, None, "weight"),
            (frame.lazy(), None, "weight"),
        )
    ]
    for model in models[1:]:
        np.testing.assert_array_equal(model.coef_, models[0].coef_)


def test_with_equal_weights_noise_is_much_as_without() -> None:
    X, y, _ = table(300)
    plain = pf.LinearRegression(schema=SCHEMA, mechanism="functional", random_state=0).fit(X, y)
    weighted = pf.LinearRegression(schema=SCHEMA, max_weight=1.0, random_state=0).fit(X, y, np.ones(300))
    assert weighted.report_.sensitivity < 1.2 * plain.report_.sensitivity


COUNTS = pf.Schema(SCHEMA.features, pf.Numeric("y", 0, 5))
LOSSES = [
    (pf.FunctionalRegressor, SCHEMA, {}),
    (pf.FunctionalRegressor, COUNTS, {"loss": pf.losses.poisson(3)}),
    (pf.FunctionalRegressor, SCHEMA, {"loss": pf.losses.huber(0.5), "fit_intercept": False}),
    (pf.FunctionalClassifier, CLASSES, {}),
    (pf.FunctionalClassifier, CLASSES, {"loss": pf.losses.logistic(4)}),
]


@pytest.mark.parametrize("adjacency", ["replace-one", "add-remove"])
@pytest.mark.parametrize(("estimator", "schema", "options"), LOSSES, ids=str)
def test_a_row_of_weight_two_counts_as_two_rows_for_any_loss(estimator, schema, options, adjacency) -> None:
    X, y, _ = table(3000)
    y = np.clip(5 * y, 0, 5) if schema is COUNTS else np.where(y > 0.1, "yes", "no") if schema is CLASSES else y
    twice = np.where(X[:, 1] > 0.2, 2, 1)
    given = {"schema": schema, "adjacency": adjacency, "random_state": 0, **options}
    weighed = estimator(1e7, max_weight=2.0, **given).fit(X, y, sample_weight=twice)
    repeated = estimator(1e7, **given).fit(np.repeat(X, twice, axis=0), np.repeat(y, twice))
    plain = estimator(1e7, **given).fit(X, y)
    apart = np.abs(weighed.coef_ - repeated.coef_).max()
    assert apart < 0.02
    assert apart < 0.3 * np.abs(plain.coef_ - repeated.coef_).max()
    assert "class_weight" not in estimator().get_params() or estimator is pf.FunctionalClassifier


@pytest.mark.parametrize("loss", [None, pf.losses.logistic(4)])
def test_weights_of_classes_are_a_part_of_any_loss(loss) -> None:
    X, y, weights = classes()
    given = {"loss": loss, "schema": CLASSES, "random_state": 0}
    model = pf.FunctionalClassifier(1e7, class_weight={"no": 4.0}, **given).fit(X, y)
    by_rows = pf.FunctionalClassifier(1e7, max_weight=4.0, **given).fit(X, y, np.where(y == "no", 4.0, 1.0))
    np.testing.assert_allclose(model.coef_, by_rows.coef_, rtol=0.02)
    both = pf.FunctionalClassifier(1e7, class_weight={"no": 4.0}, max_weight=5.0, **given).fit(X, y, weights)
    one = pf.FunctionalClassifier(1e7, max_weight=20.0, **given).fit(X, y, weights * np.where(y == "no", 4.0, 1.0))
    np.testing.assert_allclose(both.coef_, one.coef_, rtol=0.05, atol=0.02)
    ledger = pf.Ledger(epsilon=1.0)
    with pytest.raises(pf.PrivacyError, match="buys no counts"):
        pf.FunctionalClassifier(class_weight="balanced", schema=CLASSES, ledger=ledger).fit(X, y)
    assert ledger.spent.epsilon == 0


def test_a_rare_class_of_weight_nine_is_found_more_often() -> None:
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (20_000, 2))
    y = np.where(X[:, 0] + rng.normal(0, 0.4, len(X)) > 0.8, "yes", "no")
    models = [
        pf.FunctionalClassifier(2.0, schema=CLASSES, class_weight=own, random_state=0) for own in (None, {"yes": 9.0})
    ]
    recalls = [np.mean(model.fit(X, y).predict(X)[y == "yes"] == "yes") for model in models]
    assert recalls[1] > recalls[0] + 0.2


@pytest.mark.parametrize("where", [None, {"b": (-0.5, None)}])
@pytest.mark.parametrize(("estimator", "schema", "options"), LOSSES, ids=str)
@pytest.mark.parametrize("change", [(1.0, 1.0, 1.0, 0.0), (-1.0, 1.0, -1.0, 99.0), (1.0, -1.0, 1.0, 2.0)])
def test_any_loss_shows_no_row_or_weight_but_through_noise(
    monkeypatch, change, estimator, schema, options, where
) -> None:
    X, y, weights = table(50)
    rows = np.column_stack([X, y, weights])
    rows[0] = (-1.0, 0.0, 1.0, 3.0)
    other = rows.copy()
    other[0] = change
    own = pf.Schema(schema.features, schema.target, where=where)

    def fitted(held: np.ndarray, noise: object) -> tuple[object, list]:
        monkeypatch.setattr(private, "noise_source", lambda seed: noise)
        ledger = pf.Ledger(epsilon=1.0)
        frame = pl.DataFrame(held, schema=["a", "b", "y", "w"])
        if schema is CLASSES:
            frame = frame.with_columns(pl.when(pl.col("y") > 0).then(pl.lit("yes")).otherwise(pl.lit("no")).alias("y"))
        model = estimator(1.0, schema=own, max_weight=3.0, ledger=ledger, **options)
        return model.fit(frame, sample_weight="w"), [entry.event for entry in ledger.entries()]

    first = RecordingNoise(seed=3)
    left, charged = fitted(rows, first)
    second = ReplayingNoise(first.calls)
    right, charged_too = fitted(other, second)
    assert_same_state(left, right)
    assert charged == charged_too
    pairs = list(zip(first.calls, second.calls, strict=True))
    assert [(one.kind, one.scale) for one, _ in pairs] == [(two.kind, two.scale) for _, two in pairs]
    moves = [(one, one.values.astype(object) - two.values.astype(object)) for one, two in pairs]
    loss = sum(NORMS[one.kind](move) / one.scale for one, move in moves)
    assert 0.1 < loss <= 1 + 1e-9


@pytest.mark.parametrize("where", [None, {"b": (-0.5, None)}])
@pytest.mark.parametrize("change", [(1.0, 1.0, -1.0, 0.0), (-1.0, 1.0, 1.0, 99.0), (1.0, -1.0, 1.0, 2.0)])
def test_nothing_but_noisy_values_depends_on_a_row_or_its_weight(monkeypatch, change, where) -> None:
    """Record and replay: with the same noisy values two neighbours give the same model, report and event."""
    X, y, weights = table(50)
    rows = np.column_stack([X, y, weights])
    rows[0] = (-1.0, 0.0, 1.0, 3.0)
    other = rows.copy()
    other[0] = change
    schema = pf.Schema(SCHEMA.features, SCHEMA.target, where=where)

    def fitted(held: np.ndarray, noise: object) -> tuple[pf.LinearRegression, list]:
        monkeypatch.setattr(private, "noise_source", lambda seed: noise)
        ledger = pf.Ledger(epsilon=1.0)
        model = pf.LinearRegression(1.0, schema=schema, max_weight=3.0, ledger=ledger)
        model.fit(pl.DataFrame(held, schema=["a", "b", "y", "w"]), sample_weight="w")
        return model, [entry.event for entry in ledger.entries()]

    first = RecordingNoise(seed=3)
    left, charged = fitted(rows, first)
    second = ReplayingNoise(first.calls)
    right, charged_too = fitted(other, second)
    assert_same_state(left, right)
    assert charged == charged_too
    pairs = list(zip(first.calls, second.calls, strict=True))
    assert [(one.kind, one.scale) for one, _ in pairs] == [(two.kind, two.scale) for _, two in pairs]
    assert any((one.values != two.values).any() for one, two in pairs)
    moves = [(one, one.values.astype(object) - two.values.astype(object)) for one, two in pairs]
    assert sum(NORMS[one.kind](move) / one.scale for one, move in moves) <= 1 + 1e-9


@pytest.mark.parametrize("bad", [-0.125, np.nan])
def test_a_bad_weight_is_refused_before_the_charge_and_not_quoted(bad) -> None:
    X, y, weights = table(50)
    weights[7] = bad
    ledger = pf.Ledger(epsilon=1.0)
    with pytest.raises(pf.DataError, match="Nothing was charged") as caught:
        pf.Ridge(schema=SCHEMA, max_weight=2.0, ledger=ledger).fit(X, y, sample_weight=weights)
    assert "0.125" not in str(caught.value)
    assert ledger.spent.epsilon == 0


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({}, "without max_weight"),
        ({"max_weight": -1.0}, "positive number"),
        ({"max_weight": 1.0, "mechanism": pf.FunctionalMechanism(calibration="paper")}, "mechanism='auto'"),
        ({"max_weight": 1.0, "mechanism": "adassp", "delta": 1e-6}, "mechanism='auto'"),
        ({"max_weight": 1.0, "intervals": True}, "intervals"),
    ],
)
def test_what_no_noise_is_known_for_is_refused_before_reading(options, match) -> None:
    with pytest.raises(pf.PrivacyError, match=match):
        pf.LinearRegression(schema=SCHEMA, **options).fit("no such file.csv", sample_weight="w")


def test_weights_of_another_length_are_refused() -> None:
    X, y, weights = table(50)
    with pytest.raises(pf.DataError, match="one weight per row"):
        pf.Lasso(schema=SCHEMA, max_weight=2.0).fit(X, y, sample_weight=weights[1:])


@pytest.mark.parametrize(
    ("estimator", "options", "apart"),
    [
        (pf.LogisticRegression, {"mechanism": pf.ObjectivePerturbation(ridge=1.0), "numeric": "slope"}, 1e-5),
        (pf.LinearSVC, {"mechanism": pf.ObjectivePerturbation(ridge=1.0), "numeric": "slope"}, 1e-5),
        (pf.LinearRegression, {"mechanism": "functional"}, 1e-3),
        (pf.Ridge, {"mechanism": "functional", "alpha": 1.0}, 1e-3),
    ],
)
def test_a_weight_of_two_is_two_rows_where_the_ridge_is_the_same(estimator, options, apart) -> None:
    """Moments of weighted rows are on a coarser lattice: docs/proofs/sample-weights.md."""
    rng = np.random.default_rng(0)
    X, weights = rng.uniform(-1, 1, (150, 4)), rng.integers(0, 5, 150)
    y, target = np.clip(X[:, 0] + rng.normal(0, 0.3, 150), -1, 1), (-1.0, 1.0)
    if issubclass(estimator, pf.LogisticRegression | pf.LinearSVC):
        y, target = np.where(y > 0, "yes", "no"), ["no", "yes"]
    schema = pf.Schema.box(-1, 1, target=target)
    weighed = estimator(epsilon=1e12, schema=schema, max_weight=4.0, random_state=0, **options).fit(X, y, weights)
    repeated = estimator(epsilon=1e12, schema=schema, random_state=0, **options)
    repeated.fit(np.repeat(X, weights, axis=0), np.repeat(y, weights))
    np.testing.assert_allclose(weighed.coef_, repeated.coef_, atol=apart)


PLACES = [
    (pf.LogisticRegression, {}),
    (pf.LogisticRegression, {"class_weight": "balanced"}),
    (pf.LinearRegression, {"mechanism": "functional"}),
    (pf.LinearRegression, {"mechanism": "objective"}),
    (pf.QuantileRegressor, {}),
]


@pytest.mark.parametrize("person", [None, "p"])
@pytest.mark.parametrize(("estimator", "options"), PLACES)
def test_weights_in_partitions_and_with_persons_give_the_same_bits(estimator, options, person) -> None:
    frames = pytest.importorskip("dask.dataframe")
    pandas = pytest.importorskip("pandas")
    X, y, weights = classes() if estimator is pf.LogisticRegression else table()
    frame = pandas.DataFrame({"a": X[:, 0], "b": X[:, 1], "y": y, "w": weights, "p": np.arange(len(y)) // 3})
    stated = CLASSES if estimator is pf.LogisticRegression else SCHEMA
    schema = pf.Schema(stated.features, stated.target, person=person)
    terms = {"schema": schema, "max_weight": 5.0, "random_state": 0, "rows_per_person": 2 if person else 1, **options}
    given = [frame, frames.from_pandas(frame, npartitions=3)]
    if person:
        given.append(frame.sample(frac=1.0, random_state=1))
    models = [estimator(20.0, **terms).fit(own, sample_weight="w") for own in given]
    for model in models[1:]:
        np.testing.assert_array_equal(model.coef_, models[0].coef_)
        np.testing.assert_array_equal(model.intercept_, models[0].intercept_)


ONE_PASS = {
    "LinearRegression": (pf.LinearRegression, SCHEMA, {}),
    "AdditiveRegressor": (pf.AdditiveRegressor, SCHEMA, {}),
    "PoissonRegressor": (pf.PoissonRegressor, SCHEMA, {}),
    "LogisticRegression": (pf.LogisticRegression, CLASSES, {}),
    "CoxRegression": (
        pf.CoxRegression,
        pf.Schema(SCHEMA.features[:1]),
        {"time": pf.Numeric("y", -1, 1), "event": pf.Category("b", [0, 1])},
    ),
}


@pytest.mark.parametrize("adjacency", ["replace-one", "add-remove"])
@pytest.mark.parametrize("name", ONE_PASS)
def test_rows_that_pass_by_once_are_counted_as_those_of_a_frame(name: str, adjacency: str) -> None:
    """A stream of rows with weights was planned as if nobody knew how many there are, with far more shrinkage."""
    duckdb = pytest.importorskip("duckdb")
    estimator, schema, options = ONE_PASS[name]
    X, y, weights = table(300) if schema is not CLASSES else (part[:300] for part in classes())
    b = (X[:, 1] > 0).astype(float) if name == "CoxRegression" else X[:, 1]
    frame = pl.DataFrame({"a": X[:, 0], "b": b, "y": y, "weight": weights})
    arrow = frame.to_arrow()
    found = []
    for form in (frame, arrow.to_reader(max_chunksize=7), duckdb.connect().from_arrow(arrow)):
        model = estimator(1.0, schema=schema, max_weight=5.0, adjacency=adjacency, random_state=0, **options)
        model.fit(form, sample_weight="weight")
        found.append((np.ravel(model.coef_).tolist(), model.report_.repairs))
    assert found[0] == found[1] == found[2]


@pytest.mark.parametrize("estimator", [pf.LinearRegression, pf.PoissonRegressor, pf.FunctionalRegressor])
def test_a_weight_that_is_none_is_refused_alike_whatever_and_wherever_it_is(estimator) -> None:
    ledger, told = pf.Ledger(epsilon=100), set()
    for bad in (float("nan"), -1.0, None, -float("inf")):
        for row in (0, 7):
            weights = [1.0] * 10
            weights[row] = bad
            frame = pl.DataFrame({"a": [0.1] * 10, "b": [0.0] * 10, "y": [0.2] * 10, "w": weights})
            with pytest.raises(pf.DataError) as caught:
                estimator(1.0, schema=SCHEMA, max_weight=2.0, ledger=ledger).fit(frame, sample_weight="w")
            told.add(str(caught.value))
    assert len(told) == 1
    assert "'w' contain a value that is negative, NaN or missing" in told.pop()
    assert ledger.n_entries == 0
