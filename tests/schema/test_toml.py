"""A schema survives its TOML text, whatever its names and levels; a text that is none is refused in three beats."""

from __future__ import annotations

import time
import tomllib
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from privfit.schema import Category, Column, Numeric, Schema, SchemaError
from tests.support.beats import assert_told_in_order

names = st.text(min_size=1, max_size=12)
numbers = st.one_of(st.integers(-(10**6), 10**6), st.floats(-1e9, 1e9))
texts = st.lists(st.text(max_size=8).filter(lambda level: level != "?"), min_size=2, max_size=4, unique=True)
odd_floats = st.floats(allow_nan=False, allow_infinity=False).filter(lambda level: abs(level) < 2**53)
number_levels = st.lists(
    st.one_of(st.integers(-(2**53) + 1, 2**53 - 1), odd_floats), min_size=2, max_size=4, unique=True
)


@st.composite
def numerics(draw: st.DrawFn, name: str) -> Numeric:
    low, high = sorted(draw(st.tuples(numbers, numbers).filter(lambda pair: abs(pair[0] - pair[1]) > 1e-6)))
    edge = (float(low) + float(high)) / 2
    bins = draw(st.sampled_from([None, 2, 17, "auto", [edge], [low, edge, high]]))
    fills: list[st.SearchStrategy] = [st.none(), numbers]
    return Numeric(name, low, high, bins=bins, fill=draw(st.one_of(*fills, *([st.just("missing")] if bins else []))))


@st.composite
def categories(draw: st.DrawFn, name: str) -> Category:
    levels = draw(st.one_of(texts, number_levels, st.just([False, True]), st.just([True, False])))
    fill = draw(st.sampled_from([None, *levels]))
    return Category(name, levels, other=draw(st.booleans()), fill=fill)


@st.composite
def schemas(draw: st.DrawFn) -> Schema:
    drawn = draw(st.lists(names, min_size=2, max_size=4, unique=True))
    columns: list[Column] = [draw(st.one_of(numerics(name), categories(name))) for name in drawn]
    return Schema(columns[1:], draw(st.sampled_from([columns[0], None])))


def facts(schema: Schema) -> str:
    """Everything a schema says, types included: True and 1 are equal, their texts are not."""
    return repr((schema.features, schema.target, schema.any_width))


@given(schemas())
@example(Schema([Category('quote " and \\ back\nnew\tline\x7f\x00\x1f', ['"', "\n", "é", "日本", "\u2028", ""])]))
@example(
    Schema([Numeric("a = [1]\n[target]", 0, 1, bins=[0.1, 0.2]), Category("#", [1, 2.5, -7], other=True, fill="other")])
)
@example(Schema([Category("b", [True, False], fill=False)], Numeric("'''", -5e-300, 1e300, fill=1e22)))
@example(
    Schema(
        [
            Category("n", np.array([1, 2]), fill=np.int64(2)),
            Numeric("f", np.float64(0), np.float32(1), fill=np.float64(0.5)),
        ]
    )
)
@settings(max_examples=300)
def test_a_schema_survives_its_text(schema: Schema) -> None:
    again = Schema.from_toml(schema.to_toml())
    assert again == schema
    assert facts(again) == facts(schema)
    assert again.geometry(target=False) == schema.geometry(target=False)


@given(schemas())
@settings(max_examples=25)
def test_a_schema_survives_its_file(tmp_path_factory: pytest.TempPathFactory, schema: Schema) -> None:
    path = tmp_path_factory.mktemp("toml") / "schema.toml"
    for where in (path, str(path)):
        schema.save(where)
        assert facts(Schema.load(where)) == facts(schema)


@pytest.mark.parametrize("target", [None, (-3, 4), ["no", "yes"], [1, 2]])
def test_a_box_survives_its_text_open_or_closed(target: object) -> None:
    for box in (Schema.box(-0.1, 2.5, target=target), Schema.box(-0.1, 2.5, n_features=3, target=target)):
        again = Schema.from_toml(box.to_toml())
        assert again == box
        assert again.any_width == box.any_width


def test_the_text_is_plain_toml_that_a_person_can_write() -> None:
    text = Schema(
        [Numeric("age", 0, 120, bins="auto", fill=40), Category("sex", ["F", "M"])], Category("ill", [False, True])
    ).to_toml()
    document = tomllib.loads(text)
    assert document == {
        "target": {"name": "ill", "type": "category", "levels": [False, True]},
        "feature": [
            {"name": "age", "type": "numeric", "low": 0.0, "high": 120.0, "bins": "auto", "fill": 40.0},
            {"name": "sex", "type": "category", "levels": ["F", "M"]},
        ],
    }


FEATURE = '[[feature]]\nname = "age"\n'
REFUSALS = {
    "no TOML": ("name = \n", ["not valid TOML", "line 1", "Mend that line"]),
    "no features": ("", ["no feature columns", "nothing to fit", "List at least one"]),
    "an unknown part": (
        "[features]\n",
        ["['features']", "does not know", "Use person, [[feature]]"],
    ),
    "one bracket": ('[feature]\nname = "age"\n', ["[feature] table", "features are a list", "Write [[feature]]"]),
    "no name": ('[[feature]]\ntype = "numeric"\n', ["no name", "Write name ="]),
    "an empty name": (
        '[[feature]]\nname = ""\ntype = "category"\nlevels = ["a", "b"]\n',
        ["name ''", "non-empty text", "Write"],
    ),
    "no type": (FEATURE, ["'age'", "type None", '"numeric" or "category"', "Write one"]),
    "an unknown type": (FEATURE + 'type = "date"\n', ["'age'", "type 'date'", '"numeric" or "category"', "Write one"]),
    "an unknown fact": (
        FEATURE + 'type = "numeric"\nlow = 0\nhigh = 1\nunit = "m"\n',
        ["['unit']", "does not know", "It knows"],
    ),
    "no bounds": (FEATURE + 'type = "numeric"\n', ["'age' has no bounds", "private data", "Give them"]),
    "bounds to fill in": (
        FEATURE + 'type = "numeric"\nlow = "?"\nhigh = "?"\n',
        ["'age' has no bounds", "private data", "Give them"],
    ),
    "an infinite bound": (
        FEATURE + 'type = "numeric"\nlow = 0\nhigh = inf\n',
        ["0 and inf", "finite numbers", "Write"],
    ),
    "no levels": (FEATURE + 'type = "category"\n', ["'age' has no levels", "private data", "Give them"]),
    "levels to fill in": (
        FEATURE + 'type = "category"\nlevels = ["?"]\n',
        ["'age' has no levels", "private data", "Give them"],
    ),
    "levels that are no list": (
        FEATURE + 'type = "category"\nlevels = "F, M"\n',
        ["levels of type str", "a list", "Write"],
    ),
    "nested levels": (
        FEATURE + 'type = "category"\nlevels = [["a"], ["b"]]\n',
        ["mixes kinds", "all texts or all finite numbers", "Write"],
    ),
    "a column twice": (
        2 * (FEATURE + 'type = "category"\nlevels = [1, 2]\n'),
        ["['age'] more than once", "listed once"],
    ),
    "a box that is a number": ("box = 5\n", ["[box]", "not two bounds", "Write [box]"]),
    "a box with one bound": ("[box]\nlow = 0\n", ["[box]", "not two bounds", "Write [box]"]),
    "a box with a width": ("[box]\nlow = 0\nhigh = 1\nn_features = 3\n", ["[box]", "not two bounds", "Write [box]"]),
    "a box beside features": (
        "[box]\nlow = 0\nhigh = 1\n" + FEATURE + 'type = "category"\nlevels = [1, 2]\n',
        ["[box] and [[feature]]", "stands for all columns", "Keep the one"],
    ),
    "a box turned over": ("[box]\nlow = 1\nhigh = 0\n", ["bounds 1 and 0", "low < high", "Write"]),
    "a target that is a list": ('[[target]]\nname = "y"\n', ["no name", "Write name ="]),
}


@pytest.mark.parametrize("case", REFUSALS)
def test_a_text_that_is_no_schema_is_refused_in_three_beats(case: str, tmp_path: Path) -> None:
    text, beats = REFUSALS[case]
    path = tmp_path / "s.toml"
    path.write_text(text, encoding="utf-8")
    for read in (lambda: Schema.from_toml(text), lambda: Schema.load(path)):
        with pytest.raises(SchemaError) as caught:
            read()
        message = str(caught.value)
        assert_told_in_order(message, beats)


def test_a_file_that_cannot_be_read_is_refused_by_name(tmp_path: Path) -> None:
    (tmp_path / "latin.toml").write_bytes(b'# caf\xe9\nname = "x"\n')
    for path in (tmp_path / "nowhere.toml", tmp_path, tmp_path / "latin.toml"):
        with pytest.raises(SchemaError, match=r"cannot be read: .*Give the path of a TOML file") as caught:
            Schema.load(path)
        assert path.name in str(caught.value)


@pytest.mark.parametrize("value", ["9" * 5000, "0x" + "f" * 5000, str(2**63), "[" * 3000 + "]" * 3000, "{a=" * 3000])
@pytest.mark.parametrize("place", ["low = {}", "bins = {}", "fill = {}", "levels = [{}]"])
def test_numbers_and_nesting_beyond_toml_are_refused_in_a_sentence(value: str, place: str) -> None:
    kind = "category" if "levels" in place else "numeric"
    text = FEATURE + f'type = "{kind}"\nhigh = 1.0\n' * (kind == "numeric") + place.format(value) + "\n"
    with pytest.raises(SchemaError) as caught:
        Schema.from_toml(text)
    assert len(str(caught.value)) < 1000


def test_a_filter_of_numbers_beyond_floats_is_refused() -> None:
    for bound in (10**400, -(10**5000)):
        with pytest.raises(SchemaError, match="pair"):
            Schema([Numeric("a", 0, 1)], where={"a": {"low": bound}})


def test_a_hundred_thousand_columns_are_a_schema_within_seconds() -> None:
    start = time.process_time()
    schema = Schema([Numeric(f"c{place}", 0, 1) for place in range(100_000)])
    assert len(schema.features) == 100_000
    with pytest.raises(SchemaError, match=r"\['c7'\] more than once"):
        Schema([*schema.features, Numeric("c7", 0, 1)])
    assert time.process_time() - start < 20
