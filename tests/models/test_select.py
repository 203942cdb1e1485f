"""Columns selected privately: scikit-learn's ways of selecting, one charge, nothing un-noised, pipelines."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.feature_selection import SelectorMixin
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks

import privfit as pf
from privfit.audit.recording import noise_from
from tests.support.noise import RecordingNoise, ReplayingNoise

RNG = np.random.default_rng(0)
X = RNG.uniform(-1, 1, (3000, 5))
Y = np.where(X[:, 1] + X[:, 3] > 0, "yes", "no")
NUMBERS = np.clip(X[:, 1] - X[:, 3] + RNG.normal(0, 0.1, 3000), -3, 3)
NAMES = ["a", "b", "c", "d", "e"]
COLUMNS = [pf.Numeric(name, -1, 1) for name in NAMES]
SCHEMA = pf.Schema(COLUMNS, pf.Category("y", ["no", "yes"]))
FRAME = pl.DataFrame(X, schema=NAMES).with_columns(y=pl.Series(Y))


@parametrize_with_checks([pf.SelectPrivate(1, epsilon=epsilon, schema="public") for epsilon in (0.5, 1e6)])
def test_every_check_of_scikit_learn_passes(estimator: Any, check: Any) -> None:
    check(estimator)


@pytest.fixture
def ledger() -> pf.Ledger:
    return pf.Ledger(epsilon=10.0)


def test_it_is_a_selector_and_charges_once(ledger: pf.Ledger) -> None:
    select = pf.SelectPrivate(2, epsilon=1.0, schema=SCHEMA, ledger=ledger).fit(X, Y)
    assert all(hasattr(select, name) for name in vars(SelectorMixin) if not name.startswith("_"))
    assert sorted(select.selected_) == ["b", "d"]
    assert select.get_support(indices=True).tolist() == [1, 3]
    assert np.array_equal(select.transform(X), X[:, [1, 3]])
    assert select.inverse_transform(select.transform(X)).shape == X.shape
    (entry,) = ledger.entries()
    assert (entry.epsilon, entry.mechanism, entry.model) == (1.0, "column selection", "SelectPrivate")
    assert [part.kind for part in entry.event.parts] == ["laplace", "selection"]
    assert select.report_.private
    assert not hasattr(select, "classes_")


@pytest.mark.parametrize("adjacency", ["replace-one", "add-remove"])
def test_a_number_as_target(adjacency: str, ledger: pf.Ledger) -> None:
    schema = pf.Schema(COLUMNS, pf.Numeric("y", -1000, 1000))
    select = pf.SelectPrivate(2, epsilon=2.0, schema=schema, adjacency=adjacency, ledger=ledger).fit(X, NUMBERS)
    assert sorted(select.selected_) == ["b", "d"]
    assert [part.kind for part in ledger.entries()[0].event.parts] == ["selection", "laplace", "selection"]


@pytest.mark.parametrize(
    ("parameters", "table", "error", "words"),
    [
        ({"k": 0}, X, pf.PrivacyError, "k=0 was given"),
        ({"k": 6}, X, pf.PrivacyError, "k=6 columns were asked for, and there are 5"),
        ({"k": True}, X, pf.PrivacyError, "k=True was given"),
        ({"schema": pf.Schema(COLUMNS)}, X, pf.SchemaError, "without a target"),
        ({}, np.full((10, 5), np.nan), pf.DataError, "contains NaN"),
        ({"random_state": 0}, X, pf.PrivacyError, "random_state"),
    ],
)
def test_what_means_nothing_is_refused_and_charges_nothing(parameters, table, error, words, ledger) -> None:
    with pytest.raises(error, match=words):
        pf.SelectPrivate(**{"k": 2, "schema": SCHEMA, "ledger": ledger, **parameters}).fit(table, Y[: len(table)])
    assert not ledger.entries()


def replay(left: np.ndarray, right: np.ndarray, **parameters: Any) -> None:
    """Under the same noise, neighbours give the same selector."""
    fitted, calls = [], None
    for rows in (left, right):
        noise = RecordingNoise(3) if calls is None else ReplayingNoise(calls)
        with noise_from(noise):
            ledger = pf.Ledger(epsilon=10.0)
            select = pf.SelectPrivate(2, schema=SCHEMA, ledger=ledger, **parameters)
            fitted.append(select.fit(rows[:, :5].astype(float), rows[:, 5]))
        shape = [(call.kind, call.scale, call.values.shape) for call in noise.calls]
        assert calls is None or shape == [(call.kind, call.scale, call.values.shape) for call in calls]
        calls = noise.calls
    one, other = ({name: repr(value) for name, value in vars(select).items() if name != "ledger"} for select in fitted)
    one["report_"], other["report_"] = (str(select.report_) for select in fitted)
    assert one == other


@pytest.mark.parametrize("people", [1, 2])
def test_record_and_replay(people: int) -> None:
    base = np.column_stack([X[:50].astype(object), Y[:50]])
    corner, opposite = ([value] * 5 for value in (-1.0, 1e300))
    for y, other in (("no", "yes"), ("no", "no")):
        left, right = np.vstack([base, [[*corner, y]]]), np.vstack([base, [[*opposite, other]]])
        replay(left, right, rows_per_person=people)
        replay(left, base, rows_per_person=people, adjacency="add-remove")
    replay(base[:1], base[1:2])


# -- in a pipeline ---------------------------------------------------------------------------------


def pipeline(ledger: pf.Ledger | None = None, model: Any = None, **parameters: Any) -> Pipeline:
    """A selection before a model, both with the whole schema."""
    own = {"schema": SCHEMA, "ledger": ledger, **parameters}
    return make_pipeline(pf.SelectPrivate(2, epsilon=1.0, **own), model or pf.LogisticRegression(1.0, **own))


TABLES = {
    "array": X,
    "sparse": sparse.csr_array(X),
    "pandas": pd.DataFrame(X, columns=NAMES),
    "polars": FRAME.drop("y"),
    "arrow": FRAME.drop("y").to_arrow(),
}


@pytest.mark.parametrize("kind", TABLES)
def test_the_next_step_leaves_the_others_out_of_its_schema(kind: str, ledger: pf.Ledger) -> None:
    both = pipeline(ledger).fit(TABLES[kind], Y)
    assert [column.name for column in both[-1].schema_.features] == sorted(both[0].selected_) == ["b", "d"]
    assert both[-1].schema is SCHEMA
    assert np.mean(both.predict(TABLES[kind]) == Y) > 0.9
    assert [entry.epsilon for entry in ledger.entries()] == [1.0, 1.0]


def test_columns_of_a_table_that_holds_the_target(tmp_path: Path) -> None:
    """Also of a file, of which nothing is copied; and of a frame with a person and a filter."""
    path = tmp_path / "people.parquet"
    FRAME.write_parquet(path)
    for table in (FRAME, FRAME.to_pandas(), FRAME.lazy(), FRAME.to_arrow(), path):
        assert np.mean(pipeline().fit(table).predict(FRAME.drop("y")) == Y) > 0.9
    frame = FRAME.with_columns(person=pl.int_range(3000), area=pl.lit("north"))
    schema = pf.Schema(COLUMNS, SCHEMA.target, person="person", where={"area": ["north"]})
    both = pipeline(schema=schema).fit(frame)
    assert both[0].transform(frame).columns == ["b", "d", "area", "person", "y"]
    assert np.mean(both.predict(frame.drop("y")) == Y) > 0.9


def test_infinite_cells_end_no_pipeline_after_its_charge(ledger: pf.Ledger) -> None:
    """They are clipped, as in every fit: an error of `transform` would show that a row has one."""
    huge = np.where(np.arange(len(X))[:, None] == 7, np.inf, X)
    both = pipeline(ledger).fit(huge, Y)
    assert sorted(both[0].selected_) == ["b", "d"]
    assert [entry.epsilon for entry in ledger.entries()] == [1.0, 1.0]


def test_a_schema_in_a_file_keeps_what_the_next_step_reads(tmp_path: Path) -> None:
    schema = pf.Schema(COLUMNS, SCHEMA.target, person="person")
    schema.save(tmp_path / "schema.toml")
    frame = FRAME.with_columns(person=pl.int_range(3000))
    for given in (tmp_path / "schema.toml", str(tmp_path / "schema.toml")):
        both = pipeline(schema=given).fit(frame)
        assert both[0].transform(frame).columns == ["b", "d", "person", "y"]
        assert both[-1].schema_.person == "person"


def test_a_box_of_open_width_knows_columns_by_position() -> None:
    both = pipeline(schema=pf.Schema.box(-1, 1, target=["no", "yes"])).fit(X, Y)
    assert both[0].get_support(indices=True).tolist() == [1, 3]
    assert np.mean(both.predict(X) == Y) > 0.9


def test_by_hand_the_selected_schema_is_given(ledger: pf.Ledger) -> None:
    select = pf.SelectPrivate(2, schema=SCHEMA).fit(X, Y)
    model = pf.LogisticRegression(1.0, schema=select.selected_schema_).fit(select.transform(X), Y)
    assert np.mean(model.predict(select.transform(X)) == Y) > 0.9
    with pytest.raises(pf.DataError, match="2 features"):
        pf.LogisticRegression(1.0, schema=SCHEMA, ledger=ledger).fit(select.transform(X), Y)
    assert not ledger.entries()


def test_pipelines_fit_again_are_cloned_nested_and_cached(tmp_path: Path, ledger: pf.Ledger) -> None:
    both = pipeline(ledger).fit(X, Y)
    both.set_params(selectprivate__k=3).fit(X, Y)  # what an earlier fit dropped does not count
    assert len(both[-1].schema_.features) == 3
    assert np.mean(cross_val_score(clone(both), X, Y, cv=2, error_score="raise")) > 0.9
    outer = make_pipeline(pf.SelectPrivate(3, epsilon=1.0, schema=SCHEMA), pipeline()).fit(X, Y)
    assert [column.name for column in outer[-1][-1].schema_.features] == ["b", "d"]
    cached = Pipeline(both.steps, memory=str(tmp_path)).fit(X, Y)
    assert len(cached[-1].schema_.features) == 3
    two = make_pipeline(pf.SelectPrivate(4, schema=SCHEMA), pf.SelectPrivate(2, schema=SCHEMA)).fit(X, Y).fit(X, Y)
    assert two.transform(X).shape == (3000, 2)
    assert len(ledger.entries()) == 10


@pytest.mark.parametrize("output", ["pandas", "polars"])
def test_output_as_scikit_learn_is_told(output: str) -> None:
    select = pf.SelectPrivate(2, schema=SCHEMA).set_output(transform=output).fit(FRAME.to_pandas())
    for table in (TABLES["pandas"], FRAME.to_pandas(), TABLES["polars"]):
        assert list(select.transform(table).columns) == ["b", "d"]
    assert list(select.get_feature_names_out()) == ["b", "d"]


def test_rows_left_out_are_not_counted(ledger: pf.Ledger) -> None:
    schema = pf.Schema(COLUMNS, SCHEMA.target, where={"a": (0, None)})
    pf.SelectPrivate(1, schema=schema, ledger=ledger).fit(FRAME)
    (entry,) = ledger.entries()
    assert (entry.event.adjacency, entry.event.rows_per_person) == ("replace-one", 1)
    assert entry.event.parts[0].sensitivity == 2  # one row that leaves and one that enters


def test_a_table_of_arrow_without_a_selected_column_is_refused() -> None:
    select = pf.SelectPrivate(2, schema=SCHEMA).fit(FRAME)
    with pytest.raises(pf.DataError, match="without the column 'b'"):
        select.transform(pa.table({"d": [1.0]}))
