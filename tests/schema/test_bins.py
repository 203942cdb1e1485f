"""The public rule for bins looks at the bounds only: 8 bins, equal in width, or in a (signed) logarithm for a wide
range.
"""

from __future__ import annotations

import math
import time
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from privfit.schema import Numeric, Schema, SchemaError
from privfit.schema.columns import MOST_BINS

bounds = st.tuples(st.floats(-1e6, 1e6), st.floats(-1e6, 1e6)).map(sorted).filter(lambda pair: pair[1] - pair[0] > 1e-3)


def steps_are_equal(values: list[float]) -> bool:
    steps = np.diff(values)
    return bool(np.allclose(steps, steps[0], rtol=1e-6, atol=0))


@given(bounds)
def test_auto_makes_eight_bins_inside_the_bounds(pair: list[float]) -> None:
    low, high = pair
    edges = Numeric("a", low, high, bins="auto").edges()
    assert len(edges) == 7
    assert all(a < b for a, b in pairwise((low, *edges, high)))


@given(st.floats(-1e6, 1e6), st.floats(1e-3, 999), st.integers(2, 30))
def test_equal_bins_have_the_exact_edges_rounded_once(low: float, width: float, count: int) -> None:
    high = low + width
    exact = [float(Fraction(low) + (Fraction(high) - Fraction(low)) * i / count) for i in range(1, count)]
    assert list(Numeric("a", low, high, bins=count).edges()) == exact
    assert Numeric("a", low, high, bins="auto").edges() == Numeric("a", low, high, bins=8).edges()


@given(st.floats(0, 1e9), st.floats(1001, 1e9), st.booleans())
def test_a_wide_range_on_one_side_of_zero_has_bins_equal_in_the_logarithm_from_low(
    low: float, width: float, negative: bool
) -> None:
    assume(width > low * 1e-3)
    low, high = (-low - width, -low) if negative else (low, low + width)
    edges = Numeric("a", low, high, bins="auto").edges()
    places = [math.log1p(edge - low) for edge in (low, *edges, high)]
    assert len(edges) == 7
    assert np.allclose(np.diff(places), math.log1p(high - low) / 8, rtol=1e-4)
    assert edges[0] - low < (high - low) / 8  # finer near low than equal bins are


@given(st.floats(0.5, 1e9), st.floats(1001, 1e9))
def test_a_wide_range_across_zero_has_bins_equal_in_the_signed_logarithm(below: float, above: float) -> None:
    edges = Numeric("a", -below, above, bins="auto").edges()
    places = [math.copysign(math.log1p(abs(edge)), edge) for edge in (-below, *edges, above)]
    assert len(edges) == 7
    assert steps_are_equal(places)


def test_a_range_like_a_bank_balance_is_not_collapsed_into_few_bins() -> None:
    edges = np.array(Numeric("balance", -8019, 102127, bins="auto").edges())
    assert (edges < 0).sum() == 3
    assert np.abs(edges).min() < 10  # a logarithm from low would have its first positive edge beyond 1000


@pytest.mark.parametrize(("high", "logarithmic"), [(1000.0, False), (np.nextafter(1000.0, 2000.0), True)])
def test_the_logarithm_starts_just_above_a_range_of_a_thousand(high: float, logarithmic: bool) -> None:
    edges = Numeric("a", 0, high, bins="auto").edges()
    assert (edges[0] < 100) == logarithmic


def test_a_number_of_bins_stays_equal_in_width_however_wide_the_range() -> None:
    assert Numeric("a", 0, 100_000, bins=4).edges() == (25_000.0, 50_000.0, 75_000.0)


def test_the_widest_range_still_has_finite_rising_edges() -> None:
    for bins in (8, 100, "auto"):
        edges = Numeric("a", -8.9e307, 8.9e307, bins=bins).edges()
        assert np.isfinite(edges).all()
        assert all(a < b for a, b in pairwise((-8.9e307, *edges, 8.9e307)))


def test_bins_as_numeric_style_touch_only_numbers_without_bins_of_their_own() -> None:
    geometry = Schema([Numeric("a", 0, 10), Numeric("b", 0, 10, bins=3)]).geometry(numeric="bins")
    assert [len(block.labels) for block in geometry.blocks] == [8, 3]
    slopes = Schema([Numeric("a", 0, 10), Numeric("b", 0, 10, bins=3)]).geometry(numeric="slope")
    assert [block.kind for block in slopes.blocks] == ["slope", "levels"]


@pytest.mark.parametrize(
    ("low", "high"), [(0, 10), (100, 101), (1e9, 1e9 + 1), (1e15, 1e15 + 8), (-1e-12, 1e-12), (-1e300, 1e300)]
)
def test_every_bin_has_a_name_of_its_own(low: float, high: float) -> None:
    labels = Schema([Numeric("a", low, high, bins=8, fill="missing")]).geometry().feature_names
    assert len(set(labels)) == 9
    assert labels[-1] == "a_missing"
    assert labels[0].startswith("a_[")
    assert [label[-1] for label in labels[:-1]] == [")"] * 7 + ["]"]
    ends = [tuple(map(float, label[3:-1].split(", "))) for label in labels[:-1]]
    assert all(left[1] == right[0] for left, right in pairwise(ends))


def test_the_most_bins_are_made_quickly_and_more_are_refused() -> None:
    start = time.process_time()
    assert len(Numeric("a", 0, 1, bins=MOST_BINS).edges()) == MOST_BINS - 1
    assert time.process_time() - start < 5
    for bins in (MOST_BINS + 1, 10**18, 10**5000, list(np.linspace(0.001, 0.999, MOST_BINS))):
        with pytest.raises(SchemaError, match="from 2 to 65,536") as caught:
            Numeric("a", 0, 1, bins=bins)
        assert len(str(caught.value)) < 500
