"""Saved models: JSON that predicts the same, carries schema, report and version, and runs no code."""

from __future__ import annotations

import json

import numpy as np
import polars as pl
import pytest

import privfit as pf
from privfit.models import ESTIMATORS
from tests.conformance.cases import _rows, frame, releases_weights, schema_for, variants


def named(estimator: type, **parameters):
    table = frame(_rows(estimator, 60))
    return estimator(epsilon=1.0, schema=schema_for(estimator), random_state=0, **parameters).fit(table), table


@pytest.mark.usefixtures("few_refits")
@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_a_loaded_model_predicts_the_same_to_the_bit(estimator, tmp_path) -> None:
    for variant in variants(estimator):
        model, table = named(estimator, **variant)
        model.save(tmp_path / "model.json")
        loaded = pf.load_model(tmp_path / "model.json")
        assert type(loaded) is type(model)
        np.testing.assert_array_equal(loaded.predict(table), model.predict(table))
        np.testing.assert_array_equal(loaded.coef_, model.coef_)
        assert str(loaded.report_) == str(model.report_)
        assert loaded.schema_ == model.schema_
        assert list(loaded.get_feature_names_out()) == list(model.get_feature_names_out())
        if hasattr(model, "classes_"):
            np.testing.assert_array_equal(loaded.classes_, model.classes_)
            np.testing.assert_array_equal(loaded.decision_function(table), model.decision_function(table))
        if hasattr(loaded, "predict_proba"):
            np.testing.assert_array_equal(loaded.predict_proba(table), model.predict_proba(table))


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_the_file_is_plain_json_with_schema_report_and_version(estimator, tmp_path) -> None:
    model, _ = named(estimator)
    model.save(tmp_path / "model.json")
    document = json.loads((tmp_path / "model.json").read_text())
    assert document["privfit"] == pf.__version__
    assert document["model"] == estimator.__name__
    assert pf.Schema.from_toml(document["schema"]) == model.schema_
    assert document["report"]["epsilon"] == 1.0
    assert document["report"]["private"] is False
    assert "random_state" not in document["parameters"]


def test_a_box_model_knows_columns_by_position_and_keeps_no_name_of_the_table(tmp_path) -> None:
    rng = np.random.default_rng(0)
    table = pl.DataFrame({"secret_a": rng.uniform(-1, 1, 50), "secret_b": rng.uniform(-1, 1, 50)})
    y = rng.uniform(-1, 1, 50)
    schema = pf.Schema.box(-1, 1, target=(-1, 1))
    for given in (table.to_pandas(), table.to_numpy()):
        model = pf.LinearRegression(1.0, schema=schema, random_state=0).fit(given, y)
        model.save(tmp_path / "model.json")
        assert "secret" not in (tmp_path / "model.json").read_text()
        loaded = pf.load_model(tmp_path / "model.json")
        assert hasattr(loaded, "feature_names_in_") == hasattr(model, "feature_names_in_")
        for again in (table, table.to_numpy(), table.rename({"secret_a": "z"})):
            np.testing.assert_array_equal(loaded.predict(again), model.predict(table.to_numpy()))


@pytest.mark.parametrize("content", ["", "{}", "[]", "not json", '{"format": 99}', '{"format": 1, "model": "Popen"}'])
def test_what_is_not_a_model_is_refused_in_a_sentence(content, tmp_path) -> None:
    (tmp_path / "model.json").write_text(content)
    with pytest.raises(pf.ModelFileError, match=r"model\.json"):
        pf.load_model(tmp_path / "model.json")
    with pytest.raises(pf.ModelFileError, match="There is no model file"):
        pf.load_model(tmp_path / "nothing.json")


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_the_report_says_what_was_promised(estimator) -> None:
    table = frame(_rows(estimator, 60))
    model = estimator(
        epsilon=0.5,
        schema=schema_for(estimator),
        adjacency="add-remove",
        rows_per_person=2,
        ledger=pf.Ledger(epsilon=1.0),
    ).fit(table)
    report = model.report_
    text, plain = str(report), report.to_dict()
    for word in (
        "objective perturbation" if releases_weights(estimator, {}) else "functional mechanism",
        "epsilon",
        "0.5",
        "add-remove",
        "at most 2",
        "sensitivity",
        "scale",
        "released values",
        "bounds of 3 numeric",
    ):
        assert word in text
    assert "private          yes" in text
    assert plain["private"] is True
    if releases_weights(estimator, {}):
        shift_and_count = 2 * (estimator in (pf.AdditiveRegressor, pf.PoissonRegressor, pf.GammaRegressor))
        assert plain["released_values"] == model._geometry.n_columns + shift_and_count
        assert plain["repairs"]["ridge"] > 0
    else:
        assert plain["noise_scale"] == pytest.approx(plain["sensitivity"] / 0.5)
        squares = hasattr(type(model), "coef_interval_")  # whose models buy the sum of the target's squares
        assert plain["released_values"] == model._geometry.n_products + 1 + squares
    assert "the number of rows" not in plain["public"]
    assert json.loads(json.dumps(plain)) == plain
    assert pf.Report.from_dict(plain) == report
