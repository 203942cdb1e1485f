"""No row is longer than the norms say, in any norm; and a row is shortened by what it is itself."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privfit.features import ShortenedRows

EDGES = [0.0, 1.0, -1.0, 2.0**-16, 1 - 2.0**-16, 0.5]


@settings(max_examples=200, deadline=None)
@given(
    st.integers(1, 40).flatmap(
        lambda columns: st.lists(
            st.lists(st.one_of(st.sampled_from(EDGES), st.floats(-1, 1, width=16)), min_size=columns, max_size=columns),
            min_size=1,
            max_size=6,
        )
    ),
    st.floats(1e-3, 20.0),
    st.booleans(),
)
def test_no_row_leaves_the_norms(rows: list[list[float]], radius: float, constant: bool) -> None:
    features = ShortenedRows(len(rows[0]), radius, constant)
    found = features(np.array(rows))
    assert found.shape == (len(rows), features.n_columns)
    for row in found:
        exact = math.fsum(float(x) ** 2 for x in row)
        assert exact <= features.norms.l2**2 * (1 + 1e-15)
        assert math.fsum(abs(float(x)) for x in row) <= features.norms.l1 * (1 + 1e-15)
        assert np.abs(row).max() <= features.norms.linf


@pytest.mark.parametrize("constant", [False, True])
def test_the_norms_are_reached(constant: bool) -> None:
    features = ShortenedRows(16, 2.0, constant)
    even, single = features(np.array([[1.0] * 16, [1.0] + [0.0] * 15]))
    assert np.linalg.norm(even) == pytest.approx(features.norms.l2)
    assert np.abs(even).sum() == pytest.approx(features.norms.l1)
    assert np.abs(single).max() == features.norms.linf == 1.0
    (short,) = ShortenedRows(16, 0.01, constant)(np.array([[1.0] + [0.0] * 15]))
    assert np.abs(short[-16:]).max() == pytest.approx(1.0)


@pytest.mark.parametrize("radius", [0.5, 1.2])
def test_short_rows_keep_their_length_and_long_ones_their_direction_in_units_of_a_short_radius(radius: float) -> None:
    features = ShortenedRows(3, radius, False)
    rows = np.array([[0.1, -0.2, 0.3], [0.9, 0.9, -0.9], [0.0, 0.0, 0.0]])
    found = features(rows) * features.unit
    assert features.unit == min(radius, 1)
    np.testing.assert_allclose(found[[0, 2]], rows[[0, 2]], rtol=1e-15)
    np.testing.assert_allclose(found[1], rows[1] * radius / np.linalg.norm(rows[1]))


def test_a_row_is_shortened_by_itself_alone_to_the_bit() -> None:
    rows = np.random.default_rng(0).uniform(-1, 1, (501, 37))
    features = ShortenedRows(37, 1.3, True)
    together = features(rows)
    for place in (0, 1, 7, 250, 500):
        np.testing.assert_array_equal(features(rows[place : place + 1])[0], together[place])
    np.testing.assert_array_equal(features(np.asfortranarray(rows)), together)
