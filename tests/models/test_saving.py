"""Saved models: JSON that predicts the same, carries schema, report and version, and runs no code."""

from __future__ import annotations

import json
import shutil
import time
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import privfit as pf
from privfit.models import ESTIMATORS
from privfit.models.trial import made_up_rows
from tests.conformance.cases import _rows, frame, releases_weights, schema_for, variants
from tests.support.model_files import rewrite

FIXTURES = Path(__file__).parents[1] / "fixtures"
MODEL_FILES = sorted(FIXTURES.glob("model-version-*.json"))


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


@pytest.fixture
def saved(tmp_path) -> Path:
    schema = pf.Schema(
        [pf.Numeric("age", 0, 100), pf.Category("sex", ["f", "m"])], target=pf.Category("ill", ["no", "yes"])
    )
    rng = np.random.default_rng(0)
    table = {"age": rng.uniform(0, 100, 200), "sex": rng.choice(["f", "m"], 200), "ill": rng.choice(["no", "yes"], 200)}
    model = pf.LogisticRegression(1.0, schema=schema, random_state=0).fit(pl.DataFrame(table))
    model.save(tmp_path / "model.json")
    return tmp_path / "model.json"


def refusal(path: Path) -> str:
    with pytest.raises(pf.ModelFileError) as caught:
        pf.load_model(path)
    message = str(caught.value)
    assert message.endswith(".")
    return message


def test_a_file_has_format_two_and_a_checksum_of_the_rest(saved: Path) -> None:
    document = json.loads(saved.read_text())
    assert document["format"] == 2
    assert len(document["checksum"]) == 64
    rewrite(saved, lambda _: None)  # written in another way, it says the same
    assert pf.load_model(saved).report_.epsilon == 1.0


@pytest.mark.parametrize("path", MODEL_FILES, ids=lambda path: path.stem)
def test_files_of_format_one_load(path: Path) -> None:
    assert "checksum" not in json.loads(path.read_text())
    assert pf.load_model(path).report_.epsilon > 0


def test_every_field_that_is_changed_or_missing_is_found(saved: Path) -> None:
    whole = saved.read_text()
    for name in json.loads(whole):
        for change in ("changed", None):
            document = json.loads(whole)
            document[name] = change
            if change is None:
                del document[name]
            saved.write_text(json.dumps(document))
            refusal(saved)


def test_a_coefficient_that_is_changed_is_found(saved: Path) -> None:
    document = json.loads(saved.read_text())
    document["coef"][0] = np.nextafter(document["coef"][0], 10)
    saved.write_text(json.dumps(document))
    assert "checksum" in refusal(saved)


def test_every_byte_that_is_changed_is_found_or_changes_nothing(saved: Path) -> None:
    whole, rng = saved.read_bytes(), np.random.default_rng(1)
    wanted = json.loads(whole)
    for place in rng.choice(len(whole), 150, replace=False):
        changed = bytearray(whole)
        changed[place] ^= 1 << rng.integers(8)
        saved.write_bytes(changed)
        try:
            pf.load_model(saved)
        except pf.ModelFileError:
            continue
        assert json.loads(changed) == wanted


def test_a_file_that_is_cut_off_is_refused(saved: Path) -> None:
    whole = saved.read_bytes()
    for length in range(0, len(whole) - 2, 97):
        saved.write_bytes(whole[:length])
        refusal(saved)


@pytest.mark.parametrize("known", [0, 3, 99, "2", None, True, 1.5, 10**200])
def test_other_formats_are_refused(known: Any, saved: Path) -> None:
    document = json.loads(saved.read_text())
    text = json.dumps(document | {"format": 0}).replace('"format": 0', f'"format": {_digits(known)}')
    saved.write_text(text)
    refusal(saved)


def _digits(value: Any) -> str:
    return "9" * 5000 if isinstance(value, int) and value > 10**100 else json.dumps(value)


def test_a_later_format_is_refused_even_with_a_fitting_checksum(saved: Path) -> None:
    rewrite(saved, lambda document: document.update(format=3))
    assert "later privfit" in refusal(saved)


CHANGES: dict[str, Any] = {
    "too few coefficients": lambda d: d["coef"].pop(),
    "too many coefficients": lambda d: d["coef"].append(0.5),
    "no coefficients": lambda d: d.update(coef=[]),
    "coefficients that are texts": lambda d: d.update(coef=["a"] * len(d["coef"])),
    "nested coefficients": lambda d: d.update(coef=[d["coef"]] * 3),
    "no intercept": lambda d: d.update(intercept=[]),
    "two intercepts": lambda d: d.update(intercept=[0.0, 0.0, 0.0]),
    "other names": lambda d: d.update(names=["height", "sex"]),
    "names in another order": lambda d: d.update(names=["sex", "age"]),
    "other features": lambda d: d["features"].reverse(),
    "another model": lambda d: d.update(model="KMeans"),
    "a model that is none": lambda d: d.update(model="Popen"),
    "another model by number": lambda d: d.update(model=3),
    "a parameter that is a place": lambda d: d["parameters"].update(ledger="people.db"),
    "a parameter of no model": lambda d: d["parameters"].update(__class__="x"),
    "a choice that is none": lambda d: d["parameters"].update(numeric="cubic"),
    "no threads": lambda d: d["parameters"].update(n_jobs=0),
    "a billion knots": lambda d: d["encoding"].update(knots=10**9),
    "no encoding": lambda d: d.pop("encoding"),
    "an encoding that is none": lambda d: d["encoding"].update(numeric="cubic"),
    "a schema of a box": lambda d: d.update(schema="[box]\nlow = -1.0\nhigh = 1.0\n"),
    "a schema that is no text": lambda d: d.update(schema=[1]),
    "a schema without a target": lambda d: d.update(schema=d["schema"].replace("[target]", "[[feature]]")),
    "a report that is a list": lambda d: d.update(report=[]),
    "a report without an adjacency": lambda d: d["report"].pop("adjacency"),
    "a report of other neighbours": lambda d: d["report"].update(adjacency="nobody"),
    "a report with an epsilon that is a text": lambda d: d["report"].update(epsilon="much"),
    "an event that is none": lambda d: d["report"].update(event={"mechanism": 3}),
    "facts that are a text": lambda d: d.update(facts="slopes"),
    "slopes that are none": lambda d: d["facts"].update(slopes=[1]),
    "pairs that are none": lambda d: d["facts"].update(pairs=[[0, 7]], cells=[4]),
    "intervals that are none": lambda d: d["facts"].update(certainty={"sampling": 1, "added": 1, "identified": True}),
    "a long certainty": lambda d: d["facts"].update(
        certainty={"sampling": [[1.0] * 9] * 9, "added": [[1.0] * 9] * 9, "identified": [True] * 9}
    ),
    "huge features of a kernel": lambda d: d["facts"].update(fourier=[10**6, 10**6, 1.0, 0]),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_what_does_not_fit_together_ends_at_loading_though_the_checksum_fits(change: Any, saved: Path) -> None:
    start = time.process_time()
    rewrite(saved, change)
    assert "checksum" not in refusal(saved)
    assert time.process_time() - start < 5


@pytest.mark.parametrize("path", MODEL_FILES, ids=lambda path: path.stem)
def test_so_it_does_in_files_without_a_checksum(path: Path, tmp_path) -> None:
    copy = Path(shutil.copy(path, tmp_path / "model.json"))
    rewrite(copy, lambda document: document["coef"].pop())
    refusal(copy)


@pytest.mark.parametrize(
    "content",
    ["[" * 100_000, '{"format": ' + "9" * 10_000 + "}", "\ufeff{}", '{"format": 1}', "null", "NaN", "1" * 9000],
)
def test_json_that_readers_stumble_over_is_refused(content: str, tmp_path) -> None:
    (tmp_path / "model.json").write_text(content)
    refusal(tmp_path / "model.json")


def test_bytes_that_are_no_text_are_refused(tmp_path) -> None:
    (tmp_path / "model.json").write_bytes(bytes(range(256)))
    refusal(tmp_path / "model.json")
    refusal(tmp_path)  # a folder


def test_made_up_rows_are_the_ends_and_the_middle_of_public_ranges() -> None:
    schema = pf.Schema([pf.Numeric("a", -1e308, 1e307), pf.Category("b", ["x", "y", "z"])])
    numbers, codes = made_up_rows(schema)
    assert numbers.tolist() == [-1e308, -4.5e307, 1e307]
    assert codes.tolist() == [0, 1, 2]


@pytest.mark.parametrize(
    "facts",
    [
        {},
        {"coef_interval": [["a", "b"], [0, 1], [0, 1]], "intercept_interval": [0, 1]},
        {"coef_interval": [[0, 1]], "intercept_interval": [0, 1]},
        {"bootstrap": {"draws": [[1.0]], "variance": 1.0}},
    ],
)
def test_intervals_and_penalties_that_do_not_fit_are_refused(facts: dict[str, Any], tmp_path) -> None:
    schema = pf.Schema.box(-1, 1, target=(-1, 1))
    X = np.random.default_rng(0).uniform(-1, 1, (100, 2))
    path = tmp_path / "model.json"
    pf.Lasso(5.0, alpha=0.1, schema=schema, random_state=0).fit(X, X[:, 0]).save(path)

    def change(document: dict[str, Any]) -> None:
        document["facts"] = {} if not facts else document["facts"] | facts

    rewrite(path, change)
    refusal(path)
