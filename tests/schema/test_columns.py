"""Columns keep the public facts they were given, and refuse missing or contradictory ones in three beats."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from privfit.schema import Category, Numeric, SchemaError
from tests.support.beats import assert_told_in_order

finite = st.floats(allow_nan=False, allow_infinity=False, width=32)


@given(finite, finite)
def test_bounds_are_kept_when_they_rise_and_refused_when_they_do_not(low: float, high: float) -> None:
    if low < high:
        column = Numeric("a", low, high)
        assert (column.low, column.high) == (low, high)
    else:
        with pytest.raises(SchemaError, match="low < high"):
            Numeric("a", low, high)


@pytest.mark.parametrize("kind", [int, float, np.int64, np.int8, np.float32, np.float64])
def test_bounds_of_every_number_type_become_the_same_plain_floats(kind: type) -> None:
    column = Numeric("a", kind(-3), kind(5), fill=kind(2))
    assert column == Numeric("a", -3, 5, fill=2)
    assert {type(column.low), type(column.high), type(column.fill)} == {float}


@pytest.mark.parametrize(
    "bins", [[2, 4], (2, 4), np.array([2, 4]), [0, 2, 4, 10], np.array([0.0, 2.0, 4.0, 10.0]), [np.int64(2), 4.0]]
)
def test_edges_of_any_sequence_are_kept_as_the_inner_ones(bins: object) -> None:
    column = Numeric("a", 0, 10, bins=bins)
    assert column.bins == (2.0, 4.0)
    assert column.edges() == (2.0, 4.0)


@pytest.mark.parametrize("bins", [7, np.int64(7)])
def test_a_number_of_bins_is_kept_as_a_plain_number(bins: object) -> None:
    column = Numeric("a", 0, 10, bins=bins)
    assert column.bins == 7
    assert type(column.bins) is int


def test_own_bins_win_over_the_estimators_and_no_bins_at_all_are_refused() -> None:
    assert len(Numeric("a", 0, 10, bins=3).edges("auto")) == 2
    assert len(Numeric("a", 0, 10).edges("auto")) == 7
    with pytest.raises(SchemaError, match="'a' has no bins"):
        Numeric("a", 0, 10).edges()


def test_missing_and_drop_are_fills_of_every_column() -> None:
    assert Numeric("a", 0, 1, bins=2, fill="missing").fill == Numeric("a", 0, 1, fill="missing").fill == "missing"
    assert Category("a", ["x"], fill="missing").levels == ("x", "missing")
    assert Category("a", ["x", "y"], fill="drop").drops
    assert not Category("a", ["x", "drop"], fill="drop").drops
    assert Numeric("a", 0, 1, fill="drop").drops
    with pytest.raises(SchemaError, match="'missing' for a coefficient of its own, or 'drop' for a target"):
        Numeric("a", 0, 1, fill="gone")


def test_levels_keep_their_order_and_lose_their_numpy_types() -> None:
    for levels in (["b", "a"], ("b", "a"), np.array(["b", "a"]), np.array(["b", "a"], dtype=object)):
        assert Category("c", levels).levels == ("b", "a")
    numbers = Category("c", np.array([3, 1]), fill=np.int64(1))
    assert numbers.levels == (3, 1)
    assert {type(level) for level in (*numbers.levels, numbers.fill)} == {int}


def test_other_is_added_once_and_found_in_the_list() -> None:
    assert Category("c", ["a"], other=True).levels == ("a", "other")
    assert Category("c", ["a", "other"], other=True).levels == ("a", "other")
    assert Category("c", ["other", "a"]).other
    assert not Category("c", ["a", "b"]).other
    assert Category("c", [1, 2], other=True).levels == (1, 2, "other")


def test_texts_are_told_from_numbers_also_beside_other() -> None:
    assert Category("c", ["a", "b"]).is_text
    assert Category("c", ["1", "2"]).is_text
    assert not Category("c", [1, 2], other=True).is_text
    assert not Category("c", [False, True]).is_text


def test_a_question_mark_beside_other_levels_is_a_level() -> None:
    assert Category("workclass", ["Private", "?"]).levels == ("Private", "?")


def test_columns_are_values_equal_hashable_and_frozen() -> None:
    assert Numeric("a", 0, 1) == Numeric("a", 0.0, 1.0)
    assert hash(Numeric("a", 0, 1, bins=[0.5])) == hash(Numeric("a", 0, 1, bins=(0.5,)))
    assert Numeric("a", 0, 1) != Numeric("a", 0, 2)
    assert hash(Category("c", ["a", "b"])) == hash(Category("c", ("a", "b")))
    assert Category("c", ["a", "b"]) != Category("c", ["b", "a"])
    for column in (Numeric("a", 0, 1), Category("c", ["a", "b"])):
        with pytest.raises(AttributeError):
            column.name = "b"  # type: ignore[misc]


# Every refusal: what was given, what is needed, what to do.
REFUSALS = {
    "no name": (lambda: Numeric("", 0, 1), ["name ''", "non-empty text", "Write"]),
    "a name that is no text": (lambda: Category(3, ["a", "b"]), ["name 3", "non-empty text", "Write"]),
    "no bounds": (
        lambda: Numeric("age"),
        ["'age' has no bounds", "cannot be taken from private data", "Numeric('age', low=0, high=120)"],
    ),
    "one bound": (lambda: Numeric("age", 0), ["'age' has no bounds", "cannot be taken from private data", "Give them"]),
    "bounds still to fill in": (lambda: Numeric("age", "?", "?"), ["'age' has no bounds", "private data", "Give them"]),
    "bounds the wrong way": (lambda: Numeric("age", 9, 1), ["bounds 9 and 1", "low < high", "Write the smallest"]),
    "equal bounds": (lambda: Numeric("age", 2, 2), ["bounds 2 and 2", "low < high", "Write the smallest"]),
    "infinite bounds": (lambda: Numeric("age", 0, math.inf), ["0 and inf", "finite numbers", "Write the smallest"]),
    "NaN bounds": (lambda: Numeric("age", math.nan, 1), ["nan and 1", "finite numbers", "Write the smallest"]),
    "text bounds": (lambda: Numeric("age", "0", "9"), ["'0' and '9'", "finite numbers", "Write the smallest"]),
    "truth bounds": (lambda: Numeric("age", False, True), ["False and True", "finite numbers", "Write the smallest"]),
    "a bound beyond floats": (
        lambda: Numeric("age", 0, 10**400),
        ["bounds 0 and 1000", "finite numbers", "Write the smallest"],
    ),
    "bounds too far apart": (
        lambda: Numeric("a", -1.7e308, 1.7e308),
        ["distance is not a finite number", "protects nobody", "Give bounds"],
    ),
    "bounds too close": (
        lambda: Numeric("a", 0, 5e-324),
        ["too close", "at least 1e-290 apart", "Give the column in a smaller unit"],
    ),
    "one bin": (lambda: Numeric("a", 0, 1, bins=1), ["bins=1", "from 2 to 65,536", "Write"]),
    "a truth value as bins": (lambda: Numeric("a", 0, 1, bins=True), ["bins=True", "from 2 to 65,536", "Write"]),
    "an unknown rule": (lambda: Numeric("a", 0, 1, bins="quantile"), ["bins='quantile'", "'auto'", "Write"]),
    "half a bin": (lambda: Numeric("a", 0, 9, bins=2.5), ["bins=2.5", "a number from 2 to 65,536", "Write"]),
    "edges that fall": (
        lambda: Numeric("a", 0, 9, bins=[5, 3]),
        ["bins=[5, 3]", "rising edges between 0 and 9", "Write"],
    ),
    "edges twice": (lambda: Numeric("a", 0, 9, bins=[5, 5]), ["bins=[5, 5]", "rising edges", "Write"]),
    "edges outside": (lambda: Numeric("a", 0, 9, bins=[5, 12]), ["bins=[5, 12]", "between 0 and 9", "Write"]),
    "no inner edge": (lambda: Numeric("a", 0, 9, bins=[0, 9]), ["bins=[0, 9]", "rising edges", "Write"]),
    "no edge": (lambda: Numeric("a", 0, 9, bins=[]), ["bins=[]", "rising edges", "Write"]),
    "text edges": (lambda: Numeric("a", 0, 9, bins=["1", "2"]), ["bins=['1', '2']", "rising edges", "Write"]),
    "a NaN edge": (lambda: Numeric("a", 0, 9, bins=[1, math.nan]), ["nan]", "rising edges", "Write"]),
    "text fill": (lambda: Numeric("a", 0, 1, fill="no"), ["fill='no'", "a public number", "Write a number"]),
    "NaN fill": (lambda: Numeric("a", 0, 1, fill=math.nan), ["fill=nan", "a public number", "Write a number"]),
    "a fill that is a word": (
        lambda: Numeric("a", 0, 1, fill="gone"),
        ["fill='gone'", "'missing' for a coefficient", "Write"],
    ),
    "no levels": (lambda: Category("c"), ["'c' has no levels", "cannot be taken from private data", "Give them"]),
    "empty levels": (lambda: Category("c", []), ["'c' has no levels", "private data", "Give them"]),
    "levels still to fill in": (lambda: Category("c", ["?"]), ["'c' has no levels", "private data", "Give them"]),
    "levels as one text": (lambda: Category("c", "yes"), ["levels of type str", "levels are a list", "Write"]),
    "levels without order": (lambda: Category("c", {"a", "b"}), ["levels of type set", "levels are a list", "Write"]),
    "levels as a number": (lambda: Category("c", 5), ["levels of type int", "levels are a list", "Write"]),
    "one level": (lambda: Category("c", ["a"]), ["single level, 'a'", "says nothing", "Leave it out"]),
    "mixed levels": (lambda: Category("c", ["a", 1]), ["mixes kinds", "all texts or all finite numbers", "Write"]),
    "a missing level": (
        lambda: Category("c", ["a", None]),
        ["mixes kinds", "all texts or all finite numbers", "Write"],
    ),
    "a NaN level": (lambda: Category("c", [1, math.nan]), ["mixes kinds", "finite numbers", "Write"]),
    "a level twice": (lambda: Category("c", ["a", "a"]), ["lists a level twice", "one thing", "list it once"]),
    "one and true": (lambda: Category("c", [1, True]), ["lists a level twice", "one thing", "list it once"]),
    "integers that floats merge": (
        lambda: Category("c", [2**53, 2**53 + 1]),
        ["2^53 or more", "no longer distinguished", "as texts"],
    ),
    "a level beyond floats": (lambda: Category("c", [1, 10**400]), ["mixes kinds", "finite numbers", "Write"]),
    "a fill that is no level": (
        lambda: Category("c", ["a", "b"], fill="z"),
        ["fill='z'", "not one of its levels", "Choose one of ['a', 'b']"],
    ),
}


@pytest.mark.parametrize("case", REFUSALS)
def test_a_missing_or_contradictory_fact_is_refused_in_three_beats(case: str) -> None:
    make, beats = REFUSALS[case]
    with pytest.raises(SchemaError) as caught:
        make()
    message = str(caught.value)
    assert_told_in_order(message, beats)
    assert message.endswith(".")
