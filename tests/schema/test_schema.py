"""A schema holds the public facts of a table; a box holds those of an array of any width."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import privfit as pf
from privfit.schema import Category, Numeric, Schema, SchemaError
from tests.support.beats import assert_told_in_order

AGE, SEX, ILL = Numeric("age", 0, 120), Category("sex", ["Female", "Male"]), Category("ill", ["no", "yes"])


def test_columns_are_the_features_in_order_and_the_target_last() -> None:
    assert Schema([SEX, AGE], ILL).columns == (SEX, AGE, ILL)
    assert Schema([SEX, AGE]).columns == (SEX, AGE)
    assert Schema(iter([SEX, AGE])).features == (SEX, AGE)


@pytest.mark.parametrize(
    ("given", "target"),
    [
        ((-2, 5), Numeric("target", -2, 5)),
        ((0.0, 1.0), Numeric("target", 0, 1)),
        ((np.int64(0), np.float32(1)), Numeric("target", 0, 1)),
        ([0, 1], Category("target", [0, 1])),
        (["no", "yes"], Category("target", ["no", "yes"])),
        (("no", "yes"), Category("target", ["no", "yes"])),
        ((False, True), Category("target", [False, True])),
        (("a", "b", "c"), Category("target", ["a", "b", "c"])),
        (np.array([0, 1]), Category("target", [0, 1])),
        (Numeric("income", 0, 9), Numeric("income", 0, 9)),
        (ILL, ILL),
        (None, None),
    ],
)
def test_the_target_of_a_box_is_a_pair_of_bounds_a_list_of_classes_or_a_column(given: object, target: object) -> None:
    for width in (None, 2):
        assert Schema.box(-1, 1, n_features=width, target=given).target == target


def test_an_open_box_takes_any_names_and_a_closed_one_keeps_its_own() -> None:
    settled = Schema.box(-2, 3, target=(0, 1)).with_features(["u", "v"])
    assert settled == Schema([Numeric("u", -2, 3), Numeric("v", -2, 3)], Numeric("target", 0, 1))
    assert not settled.any_width
    closed = Schema.box(-2, 3, n_features=np.int64(2))
    assert closed == Schema([Numeric("x0", -2, 3), Numeric("x1", -2, 3)])
    assert closed.with_features(["u", "v", "w"]) == closed


def test_an_open_box_has_no_geometry_until_its_width_is_settled() -> None:
    box = Schema.box()
    assert box.any_width
    assert box.features == ()
    with pytest.raises(SchemaError, match=r"open width.*with_features"):
        box.geometry()
    assert box.with_features(["a", "b", "c"]).geometry().n_blocks == 3


def test_the_default_box_is_minus_one_to_one() -> None:
    assert Schema.box(n_features=1).features == (Numeric("x0", -1, 1),)


def test_with_target_changes_the_target_only() -> None:
    schema = Schema([AGE], SEX)
    assert schema.with_target(ILL) == Schema([AGE], ILL)
    assert schema.with_target(None) == Schema([AGE])
    assert schema == Schema([AGE], SEX)
    assert Schema.box(-1, 1, target=(0, 1)).with_target(ILL) == Schema.box(-1, 1, target=ILL)
    with pytest.raises(SchemaError, match=r"'age'.*more than once"):
        schema.with_target(Numeric("age", 0, 1))


def test_equal_schemas_are_equal_in_hash_and_through_copies_and_pickles() -> None:
    for schema in (Schema([AGE, SEX], ILL), Schema([AGE]), Schema.box(-1, 1, target=(0, 1)), Schema.box(0, 5, 3)):
        for twin in (copy.deepcopy(schema), pickle.loads(pickle.dumps(schema)), copy.copy(schema)):
            assert twin == schema
            assert hash(twin) == hash(schema)
            assert repr(twin) == repr(schema)


def test_every_fact_takes_part_in_equality() -> None:
    schema = Schema([AGE, SEX], ILL)
    others = [
        Schema([SEX, AGE], ILL),
        Schema([AGE, SEX]),
        Schema([AGE], ILL),
        Schema([AGE, SEX], Category("ill", ["yes", "no"])),
        Schema([Numeric("age", 0, 121), SEX], ILL),
        Schema([Numeric("age", 0, 120, fill=3), SEX], ILL),
        Schema([Numeric("age", 0, 120, bins=3), SEX], ILL),
        Schema.box(0, 120, target=ILL),
    ]
    assert all(schema != other for other in others)
    assert Schema.box(-1, 1) != Schema.box(-1, 2)
    assert schema != "Schema(2 features, target 'ill')"


def test_repr_counts_features_and_names_the_target() -> None:
    assert repr(Schema([AGE, SEX], ILL)) == "Schema(2 features, target 'ill')"
    assert repr(Schema([AGE])) == "Schema(1 feature)"
    assert repr(Schema.box(target=(0, 1))) == "Schema(any number of features, target 'target')"


REFUSALS = {
    "no features": (lambda: Schema([]), ["no feature columns", "nothing to fit", "List at least one"]),
    "a column alone": (lambda: Schema(AGE), ["features of type Numeric", "a list of columns", "Write"]),
    "a name for a column": (lambda: Schema(["age"]), ["column of type str", "Numeric or Category", "Write"]),
    "a pair as target": (lambda: Schema([AGE], (0, 1)), ["column of type tuple", "Numeric or Category", "Write"]),
    "a feature twice": (lambda: Schema([AGE, AGE]), ["['age'] more than once", "listed once"]),
    "the target among features": (
        lambda: Schema([AGE, ILL], ILL),
        ["['ill'] more than once", "the target apart from the features"],
    ),
    "a box of no columns": (lambda: Schema.box(n_features=0), ["n_features=0", "at least 1", "Leave it out"]),
    "a box of half columns": (lambda: Schema.box(n_features=1.5), ["n_features=1.5", "integer", "Leave it out"]),
    "a box of true columns": (lambda: Schema.box(n_features=True), ["n_features=True", "integer", "Leave it out"]),
    "a box turned over": (lambda: Schema.box(1, -1), ["bounds 1 and -1", "low < high", "Write"]),
    "a box without bounds": (lambda: Schema.box(None, None), ["no bounds", "private data", "Give them"]),
    "a target turned over": (lambda: Schema.box(target=(1, 0)), ["bounds 1 and 0", "low < high", "Write"]),
    "a target with one bound": (
        lambda: Schema.box(target=(None, 1)),
        ["'target' has no bounds", "private data", "Give them"],
    ),
    "a target of one class": (lambda: Schema.box(target=["a"]), ["single level, 'a'", "Leave it out"]),
    "a target without classes": (
        lambda: Schema.box(target=[]),
        ["'target' has no levels", "private data", "Give them"],
    ),
    "a text as target": (
        lambda: Schema.box(target="yes"),
        ["target='yes'", "a pair (low, high), a list of classes", "Write"],
    ),
    "a number as target": (
        lambda: Schema.box(target=5),
        ["target=5", "a pair (low, high), a list of classes", "Write"],
    ),
    "a target with bins": (
        lambda: Schema([AGE], Numeric("y", 0, 9, bins=3)).geometry(),
        ["target 'y' has 3 bins", "without bins", "Leave out"],
    ),
    "a target with two bins": (
        lambda: Schema([AGE], Numeric("y", 0, 9, bins=2)).geometry(),
        ["target 'y' has 2 bins", "without bins", "Leave out"],
    ),
    "a target with three classes": (
        lambda: Schema([AGE], Category("y", [1, 2, 3])).geometry(),
        ["target 'y' has 3 classes", "two classes", "join classes"],
    ),
}


@pytest.mark.parametrize("case", REFUSALS)
def test_a_missing_or_contradictory_fact_is_refused_in_three_beats(case: str) -> None:
    make, beats = REFUSALS[case]
    with pytest.raises(SchemaError) as caught:
        make()
    message = str(caught.value)
    assert_told_in_order(message, beats)


def test_a_target_with_bins_is_no_obstacle_where_the_target_is_not_used() -> None:
    assert Schema([AGE], Numeric("y", 0, 9, bins=3)).geometry(target=False).target is None


# -- drafting from a public table ------------------------------------------------------------------

PUBLIC = {"a": [3.0, -1.0, None, 2.0], "b": [1, 5, 2, 2], "c": ["x", "y", None, "x"], "d": [True, False, True, True]}
DRAFT = Schema([Numeric("a", -1, 3), Numeric("b", 1, 5), Category("c", ["x", "y"]), Category("d", [False, True])])


@pytest.mark.parametrize(
    "engine", ["polars", "lazy", "pandas", "nullable", "arrow", "batch", "reader", "parquet", "csv"]
)
def test_a_public_table_of_every_engine_gives_the_same_draft(engine: str, tmp_path: object) -> None:
    frame, arrow = pl.DataFrame(PUBLIC), pa.table(PUBLIC)
    frame.write_parquet(f"{tmp_path}/t.parquet")
    frame.write_csv(f"{tmp_path}/t.csv")
    table = {
        "polars": frame,
        "lazy": frame.lazy(),
        "pandas": pd.DataFrame(PUBLIC),
        "nullable": pd.DataFrame(PUBLIC).convert_dtypes(),
        "arrow": arrow,
        "batch": arrow.to_batches()[0],
        "reader": arrow.to_reader(),
        "parquet": f"{tmp_path}/t.parquet",
        "csv": f"{tmp_path}/t.csv",
    }[engine]
    assert pf.Schema.from_public(table) == DRAFT


def test_the_target_of_a_public_table_is_taken_out_of_its_features() -> None:
    schema = pf.Schema.from_public(pl.DataFrame(PUBLIC), target="d")
    assert schema == Schema(DRAFT.features[:3], Category("d", [False, True]))
    with pytest.raises(SchemaError, match=r"no column 'z'.*Name one of"):
        pf.Schema.from_public(pl.DataFrame(PUBLIC), target="z")


def test_a_public_array_has_columns_by_position_and_constant_ones_have_room() -> None:
    schema = pf.Schema.from_public(np.array([[1.0, 7.0], [2.0, 7.0]]))
    assert schema.features[0] == Numeric("x0", 1, 2)
    assert schema.features[1].low < 7 < schema.features[1].high


def test_infinities_in_a_public_table_are_no_bounds() -> None:
    assert pf.Schema.from_public(pl.DataFrame({"a": [1.0, np.inf, -np.inf, 4.0, np.nan]})).features == (
        Numeric("a", 1, 4),
    )


@pytest.mark.parametrize("table", [np.arange(3), None, {"a": [1]}, pd.DataFrame(np.eye(2), columns=["a", "a"])])
def test_a_public_table_that_is_none_is_refused(table: object) -> None:
    with pytest.raises(ValueError, match=r"dimension|more than one column"):
        pf.Schema.from_public(table)
