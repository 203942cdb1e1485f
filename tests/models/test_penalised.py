"""Ridge, Lasso and ElasticNet: scikit-learn's objectives on what was released, and penalties that cost no privacy or
are paid for.
"""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from sklearn import linear_model

import privfit as pf

MODELS = [
    (pf.Ridge, linear_model.Ridge, {"alpha": 5000.0}),
    (pf.Lasso, linear_model.Lasso, {"alpha": 0.1}),
    (pf.ElasticNet, linear_model.ElasticNet, {"alpha": 0.2, "l1_ratio": 0.3}),
]
SCHEMA = pf.Schema(
    [
        pf.Numeric("a", 0, 10),
        pf.Numeric("b", -1, 1),
        pf.Category("c", list("xyz")),
        pf.Category("s", [0, 1]),
        pf.Numeric("idle", 0, 1),
    ],
    target=pf.Numeric("y", -6, 13),
)


def table(n: int = 30_000) -> pl.DataFrame:
    rng = np.random.default_rng(0)
    frame = pl.DataFrame(
        {
            "a": rng.uniform(0, 10, n),
            "b": rng.uniform(-1, 1, n),
            "c": rng.choice(list("xyz"), n),
            "s": rng.choice([0, 1], n),
            "idle": rng.uniform(0, 1, n),
        }
    )
    signal = 0.5 * frame["a"] + 2 * frame["b"] + (frame["c"] == "x") + 0.7 * frame["s"]
    return frame.with_columns(y=signal + pl.Series(rng.normal(0, 1, n)))


def shown(frame: pl.DataFrame) -> np.ndarray:
    levels = [(frame[name] == level).to_numpy() for name, levels in (("c", "xyz"), ("s", (0, 1))) for level in levels]
    return np.column_stack([frame["a"], frame["b"], *levels, frame["idle"]]).astype(float)


@pytest.mark.parametrize(("ours", "theirs", "settings"), MODELS)
@pytest.mark.parametrize("adjacency", ["replace-one", "add-remove"])
def test_without_noise_to_speak_of_parameters_mean_what_they_mean_in_scikit_learn(
    ours, theirs, settings, adjacency
) -> None:
    frame = table()
    model = ours(1e6, schema=SCHEMA, adjacency=adjacency, random_state=0, **settings).fit(frame)
    reference = theirs(tol=1e-10, **settings).fit(shown(frame), frame["y"])
    np.testing.assert_allclose(model.predict(frame), reference.predict(shown(frame)), atol=1e-3)
    assert model.alpha_ == pytest.approx(settings["alpha"])
    assert model.dual_gap_ <= 1e-10
    if ours is not pf.Lasso:  # whose split between two opposite columns is not unique
        np.testing.assert_allclose(model.coef_, reference.coef_, atol=1e-3)


@pytest.mark.parametrize(("ours", "settings"), [(ours, settings) for ours, _, settings in MODELS])
def test_an_automatic_penalty_depends_on_public_facts_alone(ours, settings) -> None:
    frame = table(2000)
    other = frame.with_columns(y=-frame["y"], a=10 - frame["a"])
    fits = [ours(0.5, schema=SCHEMA, random_state=seed).fit(data) for seed, data in enumerate((frame, other))]
    np.testing.assert_array_equal(fits[0].alpha_, fits[1].alpha_)
    assert np.all(fits[0].alpha_ > 0)
    tighter = ours(5.0, schema=SCHEMA, random_state=0).fit(frame)
    np.testing.assert_allclose(fits[0].alpha_ / tighter.alpha_, 10.0)


def test_a_lasso_leaves_out_what_does_not_matter() -> None:
    model = pf.Lasso(1.0, alpha=0.2, schema=SCHEMA, random_state=1).fit(table())
    named = dict(zip(model.get_feature_names_out(), model.coef_, strict=True))
    assert named["idle"] == 0
    assert named["a"] > 0.3


def test_a_large_penalty_leaves_the_mean() -> None:
    frame = table()
    for model in (pf.Ridge(1.0, alpha=1e15), pf.Lasso(1.0, alpha=1e9), pf.ElasticNet(1.0, alpha=1e9)):
        model.set_params(schema=SCHEMA, random_state=2).fit(frame)
        np.testing.assert_allclose(model.predict(frame), frame["y"].mean(), atol=0.2)


@pytest.mark.parametrize("ours", [pf.Ridge, pf.Lasso, pf.ElasticNet])
def test_a_selected_penalty_costs_one_epsilon_and_says_so(ours) -> None:
    ledger = pf.Ledger(epsilon=1.0)
    model = ours(1.0, alpha="select", schema=SCHEMA, ledger=ledger).fit(table(4000))
    assert ledger.remaining == 0
    assert len(ledger.entries()) == 1
    assert "selected privately" in ledger.entries()[0].mechanism
    assert "selected privately" in str(model.report_)
    with pytest.raises(pf.BudgetExceeded):
        ours(1.0, alpha="select", schema=SCHEMA, ledger=ledger).fit(table(4000))


@pytest.mark.parametrize("ours", [pf.Ridge, pf.Lasso, pf.ElasticNet])
def test_the_selection_finds_the_penalty_that_predicts(ours) -> None:
    frame = table()
    chosen = [
        ours(2.0, alpha="select", alphas=[1e7, 0.001, 1e8], schema=SCHEMA, random_state=seed).fit(frame).alpha_
        for seed in range(5)
    ]
    np.testing.assert_allclose(chosen, 0.001)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"alpha": -1.0}, "alpha=-1.0"),
        ({"alpha": "cv"}, "'auto' or 'select'"),
        ({"alpha": float("nan")}, "at least 0"),
        ({"alpha": True}, "alpha=True"),
        ({"alpha": "select", "alphas": []}, "list of numbers"),
        ({"alpha": "select", "alphas": 3.0}, "list of numbers"),
        ({"alpha": "select", "mechanism": pf.FunctionalMechanism(repair="rerun")}, "alpha='select'"),
    ],
)
def test_what_means_nothing_is_refused_before_anything_is_charged(settings, words) -> None:
    ledger = pf.Ledger(epsilon=1.0)
    with pytest.raises(pf.PrivacyError, match=words.replace("(", r"\(")):
        pf.Lasso(1.0, schema=SCHEMA, ledger=ledger, **settings).fit(table(100))
    assert ledger.entries() == []


def test_a_ratio_outside_its_bounds_is_refused() -> None:
    with pytest.raises(pf.PrivacyError, match=r"l1_ratio=1\.5"):
        pf.ElasticNet(1.0, l1_ratio=1.5, schema=SCHEMA, random_state=0).fit(table(100))


@pytest.mark.parametrize(("ours", "settings"), [(ours, settings) for ours, _, settings in MODELS])
@pytest.mark.parametrize("repair", ["trim", "ridge", None])
def test_penalised_fits_stay_finite_under_any_repair_and_much_noise(ours, settings, repair) -> None:
    for seed in range(5):
        model = ours(
            0.01, schema=SCHEMA, random_state=seed, mechanism=pf.FunctionalMechanism(repair=repair), **settings
        ).fit(table(500))
        assert np.all(np.isfinite(model.coef_))


@pytest.mark.parametrize(
    "settings", [{"alpha": 0.01}, {}, {"alpha": "select"}, {"alpha": "select", "alphas": [0, 0.01]}]
)
@pytest.mark.parametrize("ours", [pf.Ridge, pf.Lasso, pf.ElasticNet])
@pytest.mark.parametrize(
    "features", [[pf.Numeric("a", 0, 10)], [pf.Numeric("a", 0, 10), pf.Category("c", list("xyz"))]]
)
def test_a_private_number_of_rows_is_released_where_it_is_needed(ours, settings, features) -> None:
    """Add-remove without an intercept: nothing but the penalty and the intervals needs the number of rows."""
    schema = pf.Schema(features, target=pf.Numeric("y", -6, 13))
    model = ours(5.0, schema=schema, adjacency="add-remove", fit_intercept=False, random_state=0, **settings).fit(
        table(3000)
    )
    assert np.all(np.isfinite(model.coef_))
    assert np.all(np.isfinite(model.alpha_))
    low, high = model.coef_interval_.T
    assert np.all(np.isfinite(low) & np.isfinite(high) & (low <= model.coef_) & (model.coef_ <= high))
    assert model.report_.released_values > model._geometry.n_products + 1


ORIGIN = [
    (pf.LinearRegression, linear_model.LinearRegression, {}),
    (pf.Ridge, linear_model.Ridge, {"alpha": 1000.0}),
    (pf.ElasticNet, linear_model.ElasticNet, {"alpha": 0.05, "l1_ratio": 0.3}),
]


@pytest.mark.parametrize(("ours", "theirs", "settings"), ORIGIN)
@pytest.mark.parametrize("columns", [["a", "b"], ["a", "b", "s"], ["a", "c", "s"]])
def test_without_an_intercept_a_model_runs_through_the_origin_as_in_scikit_learn(
    ours, theirs, settings, columns
) -> None:
    frame = table()
    features = [column for column in SCHEMA.features if column.name in columns]
    schema = pf.Schema(features, target=pf.Numeric("y", -6, 13))
    parts = [
        np.column_stack([(frame[column.name] == level).to_numpy() for level in column.levels])
        if isinstance(column, pf.Category)
        else frame[column.name]
        for column in features
    ]
    X = np.column_stack(parts).astype(float)
    model = ours(1e7, schema=schema, fit_intercept=False, random_state=0, **settings).fit(frame)
    reference = theirs(fit_intercept=False, **settings).fit(X, frame["y"])
    assert model.intercept_ == 0
    if (
        ours is pf.LinearRegression or "s" not in columns or "c" not in columns
    ):  # a second category's share of the constant is not unique
        np.testing.assert_allclose(model.predict(frame), reference.predict(X), atol=2e-3)


def test_alphas_without_a_choice_are_refused() -> None:
    with pytest.raises(pf.PrivacyError, match="alpha='select'"):
        pf.Ridge(1.0, alphas=[1, 10], schema=SCHEMA, random_state=0).fit(table(100))


@pytest.mark.usefixtures("few_refits")
@pytest.mark.parametrize(("ours", "settings"), [(ours, settings) for ours, _, settings in MODELS])
def test_a_saved_model_keeps_its_penalty_and_its_intervals(ours, settings, tmp_path) -> None:
    model = ours(1.0, schema=SCHEMA, random_state=0, **settings).fit(table(3000))
    automatic = ours(1.0, schema=SCHEMA, random_state=0).fit(table(3000))
    for fitted in (model, automatic):
        fitted.save(tmp_path / "model.json")
        loaded = pf.load_model(tmp_path / "model.json")
        assert {name: loaded.get_params()[name] for name in settings} == {
            name: fitted.get_params()[name] for name in settings
        }
        np.testing.assert_allclose(loaded.alpha_, fitted.alpha_)
        np.testing.assert_allclose(loaded.coef_interval_, fitted.coef_interval_)
        assert loaded.dual_gap_ == fitted.dual_gap_
        np.testing.assert_allclose(loaded.confidence_intervals(0.5)[0], fitted.confidence_intervals(0.5)[0], rtol=1e-4)
        np.testing.assert_allclose(
            loaded.predict_interval(table(9), of="target"), fitted.predict_interval(table(9), of="target"), rtol=1e-4
        )


def test_a_delta_that_protects_nobody_is_remarked_on() -> None:
    with pytest.warns(pf.PrivacyWarning, match="more than one in 500 rows"):
        pf.LinearRegression(
            1.0, delta=0.01, schema=SCHEMA, random_state=0, mechanism=pf.FunctionalMechanism(noise="gaussian")
        ).fit(table(500))
