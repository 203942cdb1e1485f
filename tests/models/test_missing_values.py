"""Missing values with a coefficient of their own, in every kind of column and every encoding."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

import privfit as pf
from privfit.models import private
from privfit.rows.layout import Layout
from privfit.rows.workers import Chunk
from tests.conformance.test_replay import NORMS, assert_same_state
from tests.support.noise import RecordingNoise, ReplayingNoise

ROWS = 4000
NUMERIC = ("slope", "bins", "splines")


def features(bins: int | None = None) -> list:
    return [
        pf.Numeric("age", 0, 100, bins=bins, fill="missing"),
        pf.Numeric("wealth", 0, 1e6, fill="missing"),
        pf.Category("sex", ["f", "m"], fill="missing"),
        pf.Category("code", [1, 2], fill="missing"),
    ]


def table() -> pl.DataFrame:
    """People whose age is missing have 60, whatever else they have."""
    rng = np.random.default_rng(2)
    age, gone = rng.uniform(0, 100, ROWS), rng.random((4, ROWS)) < 0.3
    frame = pl.DataFrame(
        {
            "age": age,
            "wealth": rng.uniform(0, 1e6, ROWS),
            "sex": rng.choice(["f", "m"], ROWS),
            "code": rng.integers(1, 3, ROWS),
            "income": np.where(gone[0], 60.0, 0.5 * age),
            "rich": np.where(gone[0] | (age > 70), "yes", "no"),
        }
    )
    holes = zip(("age", "wealth", "sex", "code"), gone, strict=True)
    return frame.with_columns(pl.when(pl.Series(~absent)).then(pl.col(name)).alias(name) for name, absent in holes)


@pytest.mark.parametrize("numeric", ["slope", "bins"])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_a_missing_number_has_a_coefficient_of_its_own(tmp_path, numeric: str, fit_intercept: bool) -> None:
    schema = pf.Schema(features(), pf.Numeric("income", 0, 100))
    model = pf.LinearRegression(1e7, schema=schema, numeric=numeric, fit_intercept=fit_intercept, random_state=0)
    model.fit(table())
    rows = table().head(200)
    predicted = model.predict(rows)
    np.testing.assert_allclose(predicted[rows["age"].is_null().to_numpy()], 60.0, atol=2.0)
    np.testing.assert_allclose(predicted, rows["income"].to_numpy(), atol=8.0)
    names = list(model.get_feature_names_out())
    assert {"age_missing", "wealth_missing", "sex_missing", "code_missing"} <= set(names)
    assert len(names) == len(model.coef_)
    assert np.argmax(model.feature_importances_) == 0
    model.save(tmp_path / "model.json")
    np.testing.assert_array_equal(pf.load_model(tmp_path / "model.json").predict(rows), predicted)


@pytest.mark.parametrize("numeric", ["auto", *NUMERIC])
@pytest.mark.parametrize("estimator", [pf.LogisticRegression, pf.LinearSVC])
def test_classifiers_learn_from_what_is_missing(tmp_path, estimator: type, numeric: str) -> None:
    schema = pf.Schema(features(), pf.Category("rich", ["no", "yes"]))
    model = estimator(1e4, schema=schema, numeric=numeric, random_state=0).fit(table())
    rows = table().drop("rich").head(300)
    assert model.score(rows, table()["rich"].head(300).to_numpy()) > 0.9
    gone = rows.filter(pl.col("age").is_null())
    assert (model.predict(gone) == "yes").mean() > 0.95
    assert "age_missing" in model.get_feature_names_out()
    model.save(tmp_path / "model.json")
    loaded = pf.load_model(tmp_path / "model.json")
    np.testing.assert_array_equal(loaded.decision_function(rows), model.decision_function(rows))


def test_interaction_terms_know_missing_values() -> None:
    schema = pf.Schema(features(), pf.Category("rich", ["no", "yes"]))
    model = pf.LogisticRegression(100.0, schema=schema, interactions=2, random_state=0).fit(table())
    assert len(model.get_feature_names_out()) == model.coef_.shape[1]
    assert np.isfinite(model.predict_proba(table().head(50))).all()


def test_additive_models_show_what_a_missing_value_adds() -> None:
    schema = pf.Schema(features(), pf.Numeric("income", 0, 100))
    model = pf.AdditiveRegressor(1e4, schema=schema, monotone={"age": 1}, random_state=0).fit(table())
    shape = model.shapes_["age"]
    assert shape.grid[-1] == "missing"
    assert len(shape.grid) == len(shape.values)
    assert (np.diff(shape.values[:-1]) >= 0).all()
    assert shape.values[-1] > shape.values[0]


def test_blocks_of_splines_add_up_to_one_where_values_are_missing() -> None:
    """What block-norm noise relies on, whatever is missing."""
    geometry = pf.Schema(features()).geometry(numeric="splines", intercept=False, gaps="spline")
    batch = [np.array([np.nan, 0.0, 37.0, 1e9]), np.array([np.nan, 0.0, 5e5, -1.0])]
    layout = Layout(geometry)
    codes, numbers = layout.chunk([*batch, np.array([-2, 0, 1, -2]), np.array([-2, 0, 1, 0])])
    dense = layout.dense(Chunk(codes, numbers, np.zeros(4)))
    for block in geometry.blocks:
        own = dense[:, block.start : block.stop]
        assert (own >= 0).all()
        np.testing.assert_array_equal(own.sum(axis=1), 1.0)
        assert own[0, -1] == 1.0
        np.testing.assert_array_equal(own[1:3, -1], 0.0)


def test_toml_keeps_missing() -> None:
    schema = pf.Schema(features(4), pf.Numeric("income", 0, 100))
    assert pf.Schema.from_toml(schema.to_toml()) == schema
    assert schema.features[3].levels == (1, 2, "missing")
    assert 'fill = "missing"' in schema.to_toml()
    assert schema.with_bounds({"age": (10, 20)}).features[0].fill == "missing"


SETTINGS = [
    (pf.LinearRegression, {}),
    (pf.LinearRegression, {"fit_intercept": False}),
    (pf.LinearRegression, {"mechanism": pf.FunctionalMechanism(noise="linf")}),
    (pf.LinearRegression, {"mechanism": pf.FunctionalMechanism(noise="gaussian"), "delta": 1e-6}),
    (pf.LinearRegression, {"mechanism": "boosted-adassp", "delta": 1e-6}),
    (pf.Lasso, {"alpha": "select"}),
    (pf.LogisticRegression, {"mechanism": pf.FunctionalMechanism()}),
    (pf.LogisticRegression, {}),
    (pf.LogisticRegression, {"numeric": "slope", "fit_intercept": False}),
    (pf.LinearSVC, {"mechanism": "output"}),
]
PAIRS = [
    ((0.0, 0.0, "f", 1, 0.0, "no"), (None, None, None, None, 100.0, "yes")),
    ((100.0, None, "m", 1, 100.0, "yes"), (None, 1e6, "f", None, 100.0, "no")),
    ((None, None, None, None, 100.0, "yes"), (100.0, 1e6, "m", 2, 0.0, "no")),
]


@pytest.mark.parametrize(("estimator", "variant"), SETTINGS)
def test_a_value_that_goes_missing_moves_no_more_than_is_paid_for(monkeypatch, estimator, variant) -> None:
    classes = estimator in (pf.LogisticRegression, pf.LinearSVC)
    target = pf.Category("rich", ["no", "yes"]) if classes else pf.Numeric("income", 0, 100)
    base = table().head(20)
    for before, after in PAIRS:
        fits, noises = [], []
        for last in (before, after):
            noise = RecordingNoise(3) if not noises else ReplayingNoise(noises[0].calls)
            monkeypatch.setattr(private, "noise_source", lambda _, noise=noise: noise)
            rows = pl.concat([base, pl.DataFrame([last], schema=base.schema, orient="row")])
            ledger = pf.Ledger(epsilon=10.0, delta=1e-3)
            fits.append(estimator(0.7, schema=pf.Schema(features(), target), ledger=ledger, **variant).fit(rows))
            noises.append(noise)
        assert_same_state(*fits)
        weights = classes and not isinstance(variant.get("mechanism"), pf.FunctionalMechanism)
        if weights:
            continue
        moves = [
            (one, one.values.astype(object) - other.values.astype(object))
            for one, other in zip(noises[0].calls, noises[1].calls, strict=True)
        ]
        if variant.get("delta"):
            spent = sum(sum(int(move) ** 2 for move in moved) / (2 * call.scale**2) for call, moved in moves)
            claimed = sum(entry.event.rho for entry in ledger.entries())
        else:
            spent = sum(NORMS[call.kind](moved) / call.scale for call, moved in moves)
            claimed = ledger.spent.epsilon
        assert spent <= claimed * (1 + 1e-12)
