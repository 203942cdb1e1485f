"""Random Fourier features: rows of length one whose inner products approach the Gaussian kernel, from a public seed."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privfit.features import FourierFeatures


def of(features: FourierFeatures, rows: np.ndarray) -> np.ndarray:
    """The features of encoded rows."""
    return features(rows @ features.frequencies)


@given(
    st.integers(1, 8),
    st.integers(1, 60),
    st.floats(1e-3, 1e3),
    st.integers(0, 99),
    st.lists(st.floats(-1, 1), min_size=8, max_size=8),
)
@settings(max_examples=150)
def test_no_row_is_longer_than_its_norms(
    columns: int, pairs: int, gamma: float, seed: int, values: list[float]
) -> None:
    features = FourierFeatures(columns, pairs, gamma, seed)
    (row,) = of(features, np.array([values[:columns]]))
    norms = features.norms
    assert row.shape == (features.n_columns,) == (norms.columns,) == (2 * pairs,)
    assert np.abs(row).sum() <= norms.l1 * (1 + 1e-12)
    assert np.sqrt((row**2).sum()) == pytest.approx(norms.l2, rel=1e-12)  # every row is as long as any
    assert np.abs(row).max() <= norms.linf * (1 + 1e-12)


def test_norms_are_reached() -> None:
    features = FourierFeatures(1, 1, 0.5, 3)
    frequency = float(np.arctan2(*of(features, np.array([[1e-3]]))[0, ::-1])) / 1e-3
    (diagonal,) = of(features, np.array([[math.pi / 4 / frequency]]))
    assert np.abs(diagonal).sum() == pytest.approx(features.norms.l1)
    (straight,) = of(features, np.zeros((1, 1)))
    assert np.abs(straight).max() == features.norms.linf == 1.0


@pytest.mark.parametrize("gamma", [0.05, 0.5, 2.0])
@pytest.mark.parametrize("columns", [1, 4])
def test_inner_products_approach_the_gaussian_kernel(gamma: float, columns: int) -> None:
    """Each is a mean of cosines: off by at most five standard deviations of one over the root of twice the pairs, and
    less with more pairs.
    """
    rows = np.random.default_rng(0).uniform(-1, 1, (30, columns))
    kernel = np.exp(-gamma * ((rows[:, None] - rows[None, :]) ** 2).sum(axis=2))
    off = {}
    for pairs in (100, 10_000):
        features = of(FourierFeatures(columns, pairs, gamma, 1), rows)
        off[pairs] = np.abs(features @ features.T - kernel)
        assert off[pairs].max() <= 5 / math.sqrt(2 * pairs) + 1e-12
    assert off[10_000].mean() < off[100].mean() / 3


def test_inner_products_depend_on_differences_only() -> None:
    features = FourierFeatures(3, 50, 0.7)
    rows = np.random.default_rng(1).uniform(-1, 1, (6, 3))
    here, there = of(features, rows), of(features, rows + np.array([0.3, -2.0, 1.0]))
    np.testing.assert_allclose(here @ here.T, there @ there.T, atol=1e-10)


def test_the_same_seed_gives_the_same_features_and_another_one_others() -> None:
    rows = np.random.default_rng(2).uniform(-1, 1, (5, 3))
    first, again, other = (FourierFeatures(3, 20, 0.5, seed) for seed in (7, 7, 8))
    assert first == again != other
    np.testing.assert_array_equal(of(first, rows), of(again, rows))
    assert np.abs(of(first, rows) - of(other, rows)).max() > 0.1
    np.testing.assert_array_equal(of(first, rows), of(first, rows))


def test_rows_do_not_know_of_one_another() -> None:
    features = FourierFeatures(4, 16, 1.0)
    rows = np.random.default_rng(3).uniform(-1, 1, (9, 4))
    np.testing.assert_allclose(
        np.concatenate([of(features, rows[k : k + 1]) for k in range(9)]), of(features, rows), atol=1e-14
    )
