"""Additive models: curves that bend, shapes that add up, monotone curves, predictions within bounds, files."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest

import privfit as pf

ROWS = 20_000
FEATURES = [pf.Numeric("x", -1, 1), pf.Numeric("flat", 0, 10), pf.Category("group", ["a", "b", "c"])]


def table(rows: int = ROWS) -> pl.DataFrame:
    rng = np.random.default_rng(0)
    x, group = rng.uniform(-1, 1, rows), rng.integers(0, 3, rows)
    y = 4 * x**2 + np.array([0.0, 1.0, -1.0])[group] + rng.normal(0, 0.3, rows)
    return pl.DataFrame(
        {
            "x": x,
            "flat": rng.uniform(0, 10, rows),
            "group": np.array(["a", "b", "c"])[group],
            "y": y,
            "high": np.where(y > 1.3, "yes", "no"),
        }
    )


NUMBER = pf.Schema(FEATURES, target=pf.Numeric("y", -3, 40))
CLASSES = pf.Schema(FEATURES, target=pf.Category("high", ["no", "yes"]))


def fitted(**given: object) -> pf.AdditiveRegressor:
    return pf.AdditiveRegressor(**{"epsilon": 1.0, "schema": NUMBER, "random_state": 1, **given}).fit(table())


def test_a_curve_is_found_where_a_slope_finds_nothing() -> None:
    data, model = table(), fitted()
    y = data["y"].to_numpy()
    line = pf.LinearRegression(1.0, schema=NUMBER, random_state=1).fit(data)
    assert model.score(data.drop("y"), y) > 0.9
    assert line.score(data.drop("y"), y) < 0.5


def test_shapes_add_up_to_predictions() -> None:
    model, data = fitted(), table(50)
    shapes = model.shapes_
    assert set(shapes) == {"x", "flat", "group"}
    assert shapes["x"].grid[0] == -1 and shapes["x"].grid[-1] == 1 and len(shapes["x"].grid) == 8  # noqa: PT018
    assert shapes["group"].grid == ("a", "b", "c")
    numbers = sum(np.interp(data[name], shapes[name].grid, shapes[name].values) for name in ("x", "flat"))
    levels = shapes["group"].values[[shapes["group"].grid.index(level) for level in data["group"]]]
    rest = model.predict(data.drop("y", "high")) - numbers - levels
    np.testing.assert_allclose(rest, rest[0], atol=1e-6)


def test_importances_are_one_per_column_and_in_order() -> None:
    importances = fitted().feature_importances_
    assert importances.shape == (3,)
    assert importances[1] < 0.2 * min(importances[0], importances[2])


@pytest.mark.parametrize("direction", [1, -1])
@pytest.mark.parametrize("numeric", ["splines", "slope", "bins"])
def test_monotone_curves_never_turn(direction: int, numeric: str) -> None:
    values = fitted(monotone={"x": direction}, numeric=numeric).shapes_["x"].values
    assert (direction * np.diff(values) >= -1e-12).all()
    if numeric == "splines":
        assert np.ptp(np.sign(np.diff(np.round(fitted().shapes_["x"].values, 6)))) == 2


@pytest.mark.parametrize("given_", [{"group": 1}, {"x": 2}, {"x": True}, {"nobody": 1}])
def test_directions_that_mean_nothing_are_refused(given_: dict) -> None:
    with pytest.raises(pf.PrivacyError, match="monotone="):
        fitted(monotone=given_)
    with pytest.raises(pf.PrivacyError, match="monotone="):
        pf.AdditiveClassifier(1.0, schema=CLASSES, monotone=given_).fit(table(100))


def test_predictions_stay_within_the_bounds_of_the_target() -> None:
    model = pf.AdditiveRegressor(0.01, schema=pf.Schema(FEATURES, pf.Numeric("y", -3, 4)), random_state=3)
    predicted = model.fit(table(300)).predict(table(300))
    assert predicted.min() >= -3 and predicted.max() <= 4  # noqa: PT018


@pytest.mark.parametrize("kind", ["regressor", "classifier"])
def test_a_model_from_a_file_predicts_the_same(kind: str, tmp_path: Path) -> None:
    data = table(2000)
    model = (
        pf.AdditiveRegressor(1.0, schema=NUMBER, monotone={"x": 1}, random_state=1)
        if kind == "regressor"
        else pf.AdditiveClassifier(1.0, schema=CLASSES, monotone={"x": 1}, random_state=1)
    ).fit(data)
    model.save(tmp_path / "model.json")
    loaded = pf.load_model(tmp_path / "model.json")
    assert type(loaded) is type(model)
    np.testing.assert_array_equal(loaded.predict(data), model.predict(data))
    for name, shape in model.shapes_.items():
        np.testing.assert_array_equal(loaded.shapes_[name].values, shape.values)
        np.testing.assert_array_equal(loaded.shapes_[name].lower, shape.lower)
        np.testing.assert_array_equal(loaded.shapes_[name].upper, shape.upper)


def test_a_classifier_has_the_coefficients_of_logistic_regression_unless_curves_are_monotone() -> None:
    data = table(3000)
    one = pf.AdditiveClassifier(1.0, schema=CLASSES, random_state=2).fit(data)
    other = pf.LogisticRegression(1.0, schema=CLASSES, random_state=2).fit(data)
    np.testing.assert_array_equal(one.coef_, other.coef_)
    falling = pf.AdditiveClassifier(1.0, schema=CLASSES, monotone={"x": -1}, random_state=2).fit(data)
    assert (np.diff(falling.shapes_["x"].values) <= 1e-12).all()


def test_few_rows_have_slopes() -> None:
    model = pf.AdditiveRegressor(0.1, schema=NUMBER, random_state=1).fit(table(1000))
    assert len(model.shapes_["x"].grid) == 2


# -- bands -----------------------------------------------------------------------------------------


def widths(model: pf.AdditiveRegressor) -> dict[str, np.ndarray]:
    return {name: shape.upper - shape.lower for name, shape in model.shapes_.items()}


def test_bands_that_are_bought_are_narrower_and_hold_the_curve() -> None:
    free, bought = fitted(), fitted(bands=True)
    assert all((widths(bought)[name] < 0.7 * widths(free)[name]).all() for name in ("x", "flat", "group"))
    shape, truth = bought.shapes_["x"], 4 * np.linspace(-1, 1, 8) ** 2
    assert ((shape.lower <= truth - truth.mean()) & (truth - truth.mean() <= shape.upper)).mean() > 0.8
    assert (shape.lower <= shape.values).all() and (shape.values <= shape.upper).all()  # noqa: PT018


def test_bands_of_a_value_that_nobody_has_allow_for_every_table() -> None:
    data = table().filter(pl.col("group") != "c")
    given_ = {"schema": NUMBER, "random_state": 1}
    free, bought = (pf.AdditiveRegressor(1.0, bands=bands, **given_).fit(data) for bands in (False, True))
    assert widths(bought)["group"][2] > 0.5 * widths(free)["group"][2]
    assert widths(bought)["group"][0] < widths(bought)["group"][2]


def test_monotone_curves_have_monotone_bands_around_them() -> None:
    shape = fitted(monotone={"x": 1}, bands=True).shapes_["x"]
    for end in (shape.lower, shape.upper):
        assert (np.diff(end) >= -1e-12).all()
    assert (shape.lower <= shape.values + 1e-12).all() and (shape.values <= shape.upper + 1e-12).all()  # noqa: PT018


def test_a_classifier_has_bands_that_allow_for_every_table() -> None:
    model = pf.AdditiveClassifier(1.0, schema=CLASSES, random_state=2).fit(table(3000))
    for shape in model.shapes_.values():
        assert (shape.lower < shape.values).all() and (shape.values < shape.upper).all()  # noqa: PT018
    noisy = pf.AdditiveClassifier(1.0, schema=CLASSES, mechanism="output", random_state=2).fit(table(3000))
    assert np.isnan(noisy.shapes_["x"].lower).all()


@pytest.mark.parametrize("bands", [1, "yes", None])
def test_bands_are_true_or_false(bands: object) -> None:
    with pytest.raises(pf.PrivacyError, match="bands="):
        fitted(bands=bands)


@pytest.mark.parametrize("kind", ["regressor", "classifier"])
def test_shapes_are_drawn(kind: str, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    if kind == "regressor":
        model = fitted(bands=True)
    else:
        model = pf.AdditiveClassifier(1.0, schema=CLASSES, random_state=2).fit(table(3000))
    figure = model.plot(tmp_path / "shapes.png")
    assert (tmp_path / "shapes.png").stat().st_size > 10_000
    titles = [panel.get_title() for panel in figure.axes]
    assert titles[:3] == ["x", "flat", "group"]
    np.testing.assert_allclose(figure.axes[0].lines[0].get_ydata(), model.shapes_["x"].values)


def test_bands_with_weights_are_refused_before_the_charge() -> None:
    ledger, data = pf.Ledger(epsilon=1.0), table(2000)
    model = pf.AdditiveRegressor(0.5, schema=NUMBER, bands=True, max_weight=2.0, ledger=ledger)
    with pytest.raises(pf.PrivacyError, match="bands=True was given with weights"):
        model.fit(data, sample_weight=np.ones(2000))
    assert ledger.spent == 0


# -- interaction terms -----------------------------------------------------------------------------


def crossed(rows: int = 30_000) -> pl.DataFrame:
    """A number that depends on two columns together: no sum over columns explains it."""
    rng = np.random.default_rng(3)
    x, group = rng.uniform(-1, 1, rows), rng.integers(0, 3, rows)
    y = np.sign(x) * np.array([1.0, -1.0, 0.0])[group] + rng.normal(0, 1.0, rows)
    names = np.array(["a", "b", "c"])[group]
    return pl.DataFrame({"x": x, "flat": rng.uniform(0, 10, rows), "group": names, "y": y})


@pytest.fixture(scope="module")
def with_terms() -> pf.AdditiveRegressor:
    return pf.AdditiveRegressor(1.0, schema=NUMBER, random_state=1).fit(crossed())


def test_a_pair_of_columns_that_interact_is_found(with_terms: pf.AdditiveRegressor) -> None:
    data = crossed()
    y = data["y"].to_numpy()
    assert with_terms._pairs[0] == (0, 2)
    assert with_terms.score(data.drop("y"), y) > 0.33  # of 0.4 at best
    plain = pf.AdditiveRegressor(1.0, schema=NUMBER, interactions=0, random_state=1).fit(data)
    assert plain.score(data.drop("y"), y) < 0.05
    assert any("x x group" in note for note in with_terms.report_.to_dict()["notes"])
    assert with_terms.feature_importances_[1] < with_terms.feature_importances_[[0, 2]].min() / 3


def test_coefficients_of_cells_have_names_and_add_up_to_predictions(with_terms: pf.AdditiveRegressor) -> None:
    names = list(with_terms.get_feature_names_out())
    assert len(names) == len(set(names)) == len(with_terms.coef_)
    assert "x_[-1, -0.732143) x group_a" in names
    row = pl.DataFrame({"x": [-1.0], "flat": [0.0], "group": ["a"]})
    shown = with_terms._geometry.feature_names
    parts = [
        float(with_terms.coef_[place])
        for place, name in enumerate(names)
        if name in (shown[0], shown[8], "group_a") or (place >= len(shown) and _is_in(name))
    ]
    assert with_terms.predict(row)[0] == pytest.approx(sum(parts) + with_terms.intercept_)


def _is_in(name: str) -> bool:
    """Whether x = -1, flat = 0 and group = a lie in this cell."""
    here = {"x": ("x_[-1, ",), "flat": ("flat_[0, ",), "group": ("group_a",)}
    return all(any(part.startswith(own) for many in here.values() for own in many) for part in name.split(" x "))


def test_terms_survive_saving_and_are_drawn(with_terms: pf.AdditiveRegressor, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    with_terms.save(tmp_path / "model.json")
    loaded = pf.load_model(tmp_path / "model.json")
    data = crossed(500)
    np.testing.assert_array_equal(loaded.predict(data), with_terms.predict(data))
    assert loaded._pairs == with_terms._pairs
    figure = with_terms.plot(tmp_path / "shapes.png")
    titles = [axis.get_title() for axis in figure.axes]
    assert "x by group" in titles


def test_a_monotone_column_has_no_terms() -> None:
    model = pf.AdditiveRegressor(1.0, schema=NUMBER, monotone={"x": 1}, random_state=1).fit(crossed())
    assert model._pairs
    assert not any(0 in pair for pair in model._pairs)
    grid = pl.DataFrame({"x": np.linspace(-1, 1, 100), "flat": np.full(100, 3.0), "group": ["b"] * 100})
    assert (np.diff(model.predict(grid)) >= -1e-9).all()


def test_a_second_fit_without_terms_forgets_them() -> None:
    model = pf.AdditiveRegressor(1.0, schema=NUMBER, random_state=1).fit(crossed())
    assert model._pairs
    model.set_params(interactions=0).fit(crossed())
    assert model._pairs == ()
    assert len(model.coef_) == len(model._geometry.feature_names)


def test_terms_count_rows_by_their_weights() -> None:
    data = crossed()
    weights = np.where(data["group"].to_numpy() == "c", 0.0, 2.0)
    model = pf.AdditiveRegressor(2.0, schema=NUMBER, max_weight=2.0, interactions=1, random_state=1)
    model.fit(data, sample_weight=weights)
    there = data.filter(pl.col("group") != "c")
    assert model._pairs == ((0, 2),)
    assert model.score(there.drop("y"), there["y"].to_numpy()) > 0.4  # of 0.5 at best


def test_a_number_of_terms_that_means_nothing_charges_nothing() -> None:
    ledger = pf.Ledger(epsilon=10.0)
    for wrong in (-1, 21, None, "many"):
        with pytest.raises(pf.PrivacyError, match="how many pairs of columns"):
            fitted(interactions=wrong, ledger=ledger, random_state=None)
    assert ledger.spent == 0


def test_a_classifier_of_curves_says_that_it_has_no_intervals() -> None:
    model = pf.AdditiveClassifier(1.0, schema=CLASSES, random_state=2).fit(table(200))
    for asked in (model.summary, model.confidence_intervals, lambda: model.predict_interval(table(3))):
        with pytest.raises(AttributeError, match=r"has none: its curves have bands, in shapes_.*LogisticRegression"):
            asked()
    assert not hasattr(model, "coef_interval_")
    other = pf.LogisticRegression(1.0, schema=CLASSES, random_state=2, intervals=True, numeric="splines")
    assert len(other.fit(table(200)).coef_interval_) > 2
